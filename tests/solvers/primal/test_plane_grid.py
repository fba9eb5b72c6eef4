"""Squared hinges of all folds and classes at once, against fits one by one."""

import numpy as np
import pytest

from maxmargin.certificates import certify
from maxmargin.certificates.plane_grid import certify_planes
from maxmargin.engines.cpu import plane_grid as passes
from maxmargin.engines.planes import PassesForPlanes, PlaneTasks
from maxmargin.engines.registry import engine_for
from maxmargin.problems import PrimalProblem
from maxmargin.progress import Progress
from maxmargin.runtime import vectors
from maxmargin.solvers.primal.newton import SemismoothNewton
from maxmargin.solvers.primal.plane_grid import PlaneGrid

COSTS = np.array([1e-3, 1e-2, 1.0, 1.0, 50.0])


def posed(n_classes, n=120, d=5, scales=None):
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((n, d)) * (1.0 if scales is None else scales)
    codes = rng.permutation(np.arange(n) % n_classes)
    X[:, 0] += codes
    weights = np.where(np.arange(n) % 4 == np.arange(4)[:, np.newaxis], 0.0, 1.0)
    weights *= rng.integers(0, 3, n)
    return X, PlaneTasks(codes, n_classes if n_classes > 2 else 1, weights)


def solved(X, tasks, bias="free", tol=1e-6, stopped=lambda: False):
    features = engine_for(X).features()
    assert isinstance(features, PassesForPlanes)
    return list(PlaneGrid(features, tasks, bias, tol).solve(COSTS, X.shape[1], stopped))


def certified(X, tasks, planes, cost, bias="free"):
    return certify_planes(
        X, tasks.codes, tasks.positive, tasks.weights, tasks.fold_of, planes, cost, bias
    )


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("kind", [np.array, np.float32])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_planes_are_certified_and_those_of_single_fits(n_classes, kind, bias, monkeypatch):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))  # several parts
    X, tasks = posed(n_classes)
    X = kind(X)
    for cost, planes in zip(COSTS, solved(X, tasks, bias), strict=True):
        proofs = certified(X, tasks, planes, cost, bias)
        assert all(proof.holds(1e-6) for proof in proofs)
        k = len(planes) - 2
        v, y = (
            tasks.weights[tasks.fold_of[k]],
            np.where(tasks.codes == tasks.positive[k], 1.0, -1.0),
        )
        rows = np.flatnonzero(v)
        problem = PrimalProblem.of(X[rows], y[rows], cost * v[rows], "squared_hinge", bias)
        newton = SemismoothNewton(engine_for(problem.X).features(), 1e-9)
        single = newton.solve(problem, None, Progress())
        assert certify(problem, single).holds(1e-8)
        np.testing.assert_allclose(planes[k, :-1], single.w[0], rtol=2e-2, atol=2e-3)
        assert proofs[k].primal == pytest.approx(certify(problem, single).primal, rel=2e-6)


def test_answers_do_not_depend_on_the_number_of_threads():
    from maxmargin.runtime.threads import at_most

    X, tasks = posed(3)
    with at_most(1):
        one = solved(X, tasks)
    with at_most(2):
        two = solved(X, tasks)
    np.testing.assert_array_equal(one, two)


def test_a_sample_of_the_rows_is_enough_for_the_curvature(monkeypatch):
    monkeypatch.setattr(passes, "CURVED_ROWS", 60)
    X, tasks = posed(2, n=1200)
    for cost, planes in zip(COSTS, solved(X, tasks), strict=True):
        proofs = certified(X, tasks, planes, cost)
        assert all(proof.holds(1e-6) for proof in proofs)


def test_a_search_that_is_stopped_makes_no_further_pass():
    X, tasks = posed(2)
    planes = solved(X, tasks, stopped=lambda: True)
    assert not np.any(planes)


def test_numbers_beyond_float64_end_in_proofs_that_do_not_hold():
    X, tasks = posed(2, scales=1e150)
    with np.errstate(all="ignore"):
        planes = solved(X, tasks)[-1]
        proofs = certified(X, tasks, planes, 50.0)
    assert not any(proof.holds(1e-2) for proof in proofs)
