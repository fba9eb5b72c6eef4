"""Hinges of all folds and classes at once, against fits one by one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin.certificates import certify
from maxmargin.certificates.hinge_grid import certify_hinges
from maxmargin.engines.planes import HingeFeatures, PlaneTasks
from maxmargin.engines.registry import engine_for
from maxmargin.problems import PrimalProblem
from maxmargin.progress import Progress
from maxmargin.runtime import vectors
from maxmargin.solvers.primal import hinge_grid
from maxmargin.solvers.primal.hinge_grid import HingeGrid
from maxmargin.solvers.primal.newton import SemismoothNewton

COSTS = np.array([1e-3, 1e-2, 1.0, 1.0, 50.0])


def posed(n_classes, n=120, d=5, scales=None):
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((n, d)) * (1.0 if scales is None else scales)
    codes = rng.permutation(np.arange(n) % n_classes)
    X[:, 0] += codes
    weights = np.where(np.arange(n) % 4 == np.arange(4)[:, np.newaxis], 0.0, 1.0)
    weights *= rng.integers(0, 3, n)
    return X, PlaneTasks(codes, n_classes if n_classes > 2 else 1, weights)


def tuned(monkeypatch, **given):
    """Change what decides which rows take part in the steps."""
    monkeypatch.setattr(hinge_grid, "TUNING", replace(hinge_grid.TUNING, **given))


def solved(X, tasks, bias="free", tol=1e-6, stopped=lambda: False, costs=COSTS):
    """Yield planes and certificates of every task, cost by cost."""
    features = engine_for(X).features()
    assert isinstance(features, HingeFeatures)
    solver = HingeGrid(features, tasks, bias, tol)
    for cost, answers in zip(costs, solver.solve(costs, X.shape[1], stopped), strict=False):
        for task, answer in enumerate(answers):
            y = tasks.labels(task)
            proofs = certify_hinges(X, y, tasks.weights, *answer, cost=float(cost), bias=bias)
            yield cost, y, answer.planes.copy(), proofs


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("kind", [np.array, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_planes_are_certified_and_those_of_single_fits(
    n_classes, kind, bias, is_whole, monkeypatch
):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))  # several parts
    if not is_whole:
        tuned(monkeypatch, whole_numbers=0, near_share=0.3, fewest_sampled=40)
    X, tasks = posed(n_classes)
    X = kind(X)
    found = list(solved(X, tasks, bias))
    assert len(found) == COSTS.size * tasks.n_tasks
    for cost, y, planes, proofs in found:
        assert all(proof.holds(1e-6) for proof in proofs)
        v = tasks.weights[1]
        rows = np.flatnonzero(v)
        problem = PrimalProblem.of(X[rows], y[rows], cost * v[rows], "hinge", bias)
        newton = SemismoothNewton(engine_for(problem.X).features(), 1e-9)
        single = newton.solve(problem, None, Progress())
        assert certify(problem, single).holds(1e-8)
        np.testing.assert_allclose(planes[1, :-1], single.w[0], rtol=2e-2, atol=2e-3)
        assert proofs[1].primal == pytest.approx(certify(problem, single).primal, rel=2e-6)


def test_answers_do_not_depend_on_the_number_of_threads():
    from maxmargin.runtime.threads import at_most

    X, tasks = posed(3)
    with at_most(1):
        one = [planes for *_, planes, _ in solved(X, tasks)]
    with at_most(2):
        two = [planes for *_, planes, _ in solved(X, tasks)]
    np.testing.assert_array_equal(one, two)


def test_features_of_few_rows_are_found_although_rows_are_held(monkeypatch):
    """Rows of a rare feature may all be held, so that nothing holds its weight back."""
    tuned(monkeypatch, whole_numbers=0, near_share=0.05, fewest_sampled=100)
    rng = np.random.default_rng(0)
    common = (rng.random((2000, 10)) < 0.4).astype(float)
    rare = np.zeros((2000, 10))
    rare[rng.permutation(2000)[:60], np.arange(60) % 10] = 1.0
    level = common @ rng.standard_normal(10) + rng.standard_normal(2000)
    X = sparse.csr_matrix(np.hstack([common, rare]))
    weights = np.ones((2, 2000))
    weights[0, ::2], weights[1, 1::2] = 0.0, 0.0
    tasks = PlaneTasks((level > np.median(level)).astype(int), 1, weights)
    costs = np.logspace(-3, 3, 12)
    for *_, proofs in solved(X, tasks, costs=costs, tol=1e-4):
        assert all(proof.holds(1e-4) for proof in proofs)


@pytest.mark.parametrize("cost", [1e-4, 1e4])
def test_classes_that_a_plane_separates(cost):
    X, tasks = posed(2)
    X[:, 0] += 20.0 * tasks.codes
    for *_, proofs in solved(X, tasks, costs=np.sort([1.0, cost])):
        assert all(proof.holds(1e-6) for proof in proofs)


def test_where_no_plane_is_better_there_is_none():
    """One-vs-rest planes of rare classes are then equal, and not by rounding alone."""
    half = np.random.default_rng(0).standard_normal((40, 5))
    X = np.vstack([half, -half, np.zeros((4, 5))])
    tasks = PlaneTasks((np.arange(84) >= 80).astype(int), 1, np.ones((1, 84)))
    for *_, planes, proofs in solved(X, tasks):
        assert proofs[0].holds(1e-12)
        np.testing.assert_array_equal(planes, [[0.0, 0.0, 0.0, 0.0, 0.0, -1.0]])


def test_a_search_that_is_stopped_yields_no_more():
    X, tasks = posed(2)
    assert not list(solved(X, tasks, stopped=lambda: True))
    asked = []

    def after_a_while():
        asked.append(0)
        return len(asked) > 5

    assert 0 < len(list(solved(X, tasks, stopped=after_a_while))) < COSTS.size


def test_rows_of_a_large_array_are_not_all_copied(monkeypatch):
    """Where too many are near the kink, the planes are for another solver."""
    X, tasks = posed(2)
    tuned(monkeypatch, whole_numbers=0, copied_numbers=0, near_share=0.4, fewest_sampled=10)
    *_, proofs = next(solved(X, tasks))
    assert not any(proof.holds(1e-6) for proof in proofs)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_numbers_beyond_float64_end_in_proofs_that_do_not_hold():
    X, tasks = posed(2, scales=1e150)
    *_, proofs = list(solved(X, tasks))[-1]
    assert not any(proof.holds(1e-2) for proof in proofs)
