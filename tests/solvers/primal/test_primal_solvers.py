"""Every solver of the linear machine on every kind of data, by certificate and by a QP."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.cpu import descent_state, primal_passes
from maxmargin.engines.cpu import features as features_module
from maxmargin.progress import Limits, Progress
from maxmargin.runtime import threads, vectors
from maxmargin.runtime.team import Region
from maxmargin.runtime.threads import at_most
from maxmargin.solution import Status
from maxmargin.solvers.primal.ledger import Plane
from tests.helpers.clocks import set_clock
from tests.helpers.primal_solvers import (
    BIASES,
    KINDS,
    LOSSES,
    REFERENCE,
    ROUNDING,
    TOLERANCES,
    WEIGHTS,
    D,
    N,
    answer,
    assert_solves,
    best,
    cloud,
    dense,
    posed,
    weights,
)
from tests.helpers.storage import read_only

# Every kind of data -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "kind", ["float64", "float32", "by columns", "csr", "csr int64", "blocks", "csr blocks"]
)
def test_certificate_holds_and_the_value_is_the_optimum(method, kind, loss, bias, name):
    if not method.blocks and "blocks" in kind:
        pytest.skip(f"{method.name} visits rows one by one")
    X, y = cloud()
    problem = posed(KINDS[kind](X), y, weights(name), loss, bias)
    least = best(loss, bias, name)
    for tol in TOLERANCES:
        found, certificate = assert_solves(method, problem, tol)
        near = REFERENCE * least
        assert least - near <= certificate.primal <= (1.0 + 2.0 * tol) * least + near
        assert (1.0 - 2.0 * tol) * least - near <= certificate.dual <= least + near
        assert found.n_iter >= len(found.trace) > 0
        if name == "some zero":
            assert not found.alpha[weights(name) == 0.0].any()


@pytest.mark.parametrize("C", [1e-4, 1e4])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_small_and_large_costs(method, loss, bias, C):
    problem = posed(*cloud(), C, loss, bias)
    assert_solves(method, problem, 1e-6)


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_more_features_than_samples(method, loss, bias, as_sparse):
    X, y = cloud(40, 120, density=0.2)
    X = sparse.csr_matrix(X) if as_sparse else X
    for C in (0.1, 100.0):
        assert_solves(method, posed(X, y, C, loss, bias), 1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_degenerate_grids(method, seed):
    """Integer samples: ties, duplicates, rows of zeros, no curvature, several optima."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (40, 2)).astype(float)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for loss in LOSSES:
        for bias in BIASES:
            for C in (1.0, rng.choice([0.1, 1.0, 10.0], 40)):
                assert_solves(method, posed(X, y, C, loss, bias), 1e-8)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["all zero", "all equal", "rank 1", "zero column", "one feature"])
def test_rank_deficient(method, kind, loss, bias):
    rng = np.random.default_rng(11)
    X = {
        "all zero": np.zeros((6, 2)),
        "all equal": np.full((6, 2), 7.0),
        "rank 1": np.outer(rng.normal(size=6), rng.normal(size=3)),
        "zero column": np.column_stack([rng.normal(size=6), np.zeros(6)]),
        "one feature": rng.normal(size=(6, 1)),
    }[kind]
    y = np.array([-1.0, 1.0] * 3)
    for rows in (X, sparse.csr_matrix(X)):
        assert_solves(method, posed(rows, y, 1.0, loss, bias), 1e-8)


def test_classes_of_very_unequal_size(method):
    X, y = cloud(300, 3, seed=3)
    y = np.where(np.arange(300) < 3, 1.0, -1.0)
    for loss in LOSSES:
        assert_solves(method, posed(X, y, 1.0, loss), 1e-8)


def test_every_sample_at_its_bound(method):
    """An interval of b is optimal, and no α is between its bounds."""
    X = np.array([[0.0], [0.3], [0.2], [0.5]])
    found, _ = assert_solves(method, posed(X, np.array([-1.0, -1.0, 1.0, 1.0]), 0.01), 1e-8)
    np.testing.assert_allclose(found.alpha, 0.01, rtol=1e-4)


def test_six_points(method):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    found, _ = assert_solves(method, posed(X, y.astype(float), 10.0), 1e-10)
    np.testing.assert_allclose(found.w[0], [-1 / 3, 1 / 5], atol=1e-6)
    assert found.b[0] == pytest.approx(2 / 15, abs=1e-5)
    np.testing.assert_allclose(
        found.alpha, [8 / 225, 0, 1 / 25, 0, 17 / 225, 0], atol=1e-6
    )  # fmt: skip


def test_agrees_with_the_kernel_machine(method):
    X, y = cloud()
    C = weights("unequal")
    for loss in ("hinge", "squared_hinge"):
        _, certificate = assert_solves(method, posed(X, y, C, loss), 1e-8)
        model = mm.SVC(C=1.0, kernel="linear", loss=loss, tol=1e-9).fit(X, y, C)
        assert certificate.dual == pytest.approx(model.certificate_.dual, rel=1e-6)


# Starts, limits, callbacks ------------------------------------------------------------------------


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_at_the_answer_is_used_and_not_changed(method, loss, bias):
    problem = posed(*cloud(), weights("unequal"), loss, bias)
    first, _ = assert_solves(method, problem)
    start = Plane(read_only(first.w[0]), float(first.b[0]), read_only(first.alpha))
    again, _ = assert_solves(method, problem, start=start)
    if method.warm:
        assert again.n_iter <= max(3, first.n_iter // 3)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_any_start_will_do(method, loss, bias):
    X, y = cloud()
    rng = np.random.default_rng(9)
    problem = posed(X, y, weights("some zero"), loss, bias)
    for alpha in (None, rng.uniform(-1.0, 20.0, N), np.zeros(N), np.full(N, 1e6)):
        start = Plane(rng.standard_normal(D) * 5.0, 3.0, alpha)
        assert_solves(method, problem, start=start)


@pytest.mark.parametrize("loss", LOSSES)
def test_limits(method, loss):
    problem = posed(*cloud(), 1.0, loss)
    for limits, status in (
        (Limits(iterations=1), Status.ITERATION_LIMIT),
        (Limits(seconds=0.0), Status.TIME_LIMIT),
    ):
        found = answer(method, problem, tol=1e-12, limits=limits)
        certificate = mm.certify(problem, found)
        assert found.status is status
        assert found.n_iter == 1
        assert 1e-12 < certificate.relative_gap < np.inf
        assert certificate.box == 0.0
        assert certificate.balance <= ROUNDING


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_a_limit_leaves_the_best_so_far(method, loss, bias):
    """More steps never leave a worse answer."""
    X, y = cloud()
    problem = posed(X, y, 1.0, loss, bias)
    gaps = []
    for steps in (1, 3, 9, 27):
        certificate = mm.certify(
            problem, answer(method, problem, tol=1e-10, limits=Limits(steps))
        )  # fmt: skip
        gaps.append(certificate.relative_gap)
    assert gaps[-1] < gaps[0]
    assert (np.diff(gaps) <= ROUNDING).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_callback_sees_every_step_and_stops(method, loss):
    X, y = cloud()
    problem = posed(X, y, 1.0, loss)
    seen = []
    found = answer(method, problem, tol=1e-8, progress=Progress([seen.append]))
    assert len(seen) == len(found.trace) == found.n_iter
    np.testing.assert_array_equal([step.objective for step in seen], found.trace.objective)
    assert [step.iteration for step in seen] == list(range(1, len(seen) + 1))
    # Whichever side of the gap a method reports, in the end both are the optimum.
    certificate = mm.certify(problem, found)
    assert seen[-1].objective == pytest.approx(certificate.dual, rel=1e-4)
    wrong = int((y * (X @ found.w[0] + found.b[0]) < 0).sum())
    if method.counts:
        assert abs(seen[-1].errors - wrong) <= 2
    stopped = answer(method, problem, tol=1e-8, progress=Progress([lambda step: True]))
    assert stopped.status is Status.STOPPED
    assert len(stopped.trace) == stopped.n_iter == 1
    assert np.isfinite(mm.certify(problem, stopped).gap)


def test_snapshots_are_copies(method):
    X, y = cloud()
    problem = posed(X, y, 1.0)
    kept, then = [], []

    def keep(step):
        kept.append(step.snapshot())
        then.append((kept[-1].w.copy(), kept[-1].b.copy()))

    answer(method, problem, tol=1e-8, progress=Progress([keep]))
    for now, (w, b) in zip(kept, then, strict=True):
        np.testing.assert_array_equal(now.w, w)
        np.testing.assert_array_equal(now.b, b)
        assert now.w.shape == (1, D)
    assert not np.array_equal(kept[0].w, kept[-1].w)


@pytest.mark.parametrize("kind", ["float64", "csr", "by columns", "blocks"])
@pytest.mark.parametrize("loss", LOSSES)
def test_input_is_not_changed(method, loss, kind):
    if not method.blocks and "blocks" in kind:
        pytest.skip(f"{method.name} visits rows one by one")
    X, y = cloud()
    given = KINDS[kind](X)
    blocks = given._source if isinstance(given, mm.RowBlocks) else [given]
    for block in blocks:
        parts = [block.data, block.indices, block.indptr] if sparse.issparse(block) else [block]
        for part in parts:
            part.flags.writeable = False
    problem = posed(given, read_only(y), weights("some zero"), loss)
    problem = replace(problem, upper=read_only(problem.upper), ridge=read_only(problem.ridge))
    start = Plane(read_only(np.ones(D)), 0.5, read_only(np.full(N, 0.1)))
    found, _ = assert_solves(method, problem, start=start)
    np.testing.assert_array_equal(dense(given), X)
    # What is handed out is the caller's from then on.
    assert not np.shares_memory(found.alpha, start.alpha)
    assert not np.shares_memory(found.w, start.w)


# The same bits every time -------------------------------------------------------------------------


@pytest.fixture
def two_cores(monkeypatch):
    """Two cores and parts so small that there are many of them."""
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    small = features_module.Tuning(moments_multiplications=1e3)
    monkeypatch.setattr(features_module, "TUNING", small)
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=1 << 9))


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_on_any_number_of_cores(method, loss, kind, two_cores):
    X, y = cloud(1000, 8)
    problem = posed(KINDS[kind](X), y, weights("unequal", 1000), loss)
    found = []
    for n_jobs in (1, 2, 2):
        with at_most(n_jobs):
            found.append(answer(method, problem))
            certificate = mm.certify(problem, found[-1])
        assert certificate.holds(1e-6)
    for other in found[1:]:
        np.testing.assert_array_equal(other.w, found[0].w)
        np.testing.assert_array_equal(other.b, found[0].b)
        np.testing.assert_array_equal(other.alpha, found[0].alpha)


def test_how_fast_the_machine_is_does_not_change_the_answer(method, monkeypatch):
    """Under a clock that creeps, and one that races, the same steps are taken."""
    problem = posed(*cloud(200, 4), 300.0)
    found = []
    for pace in (1e-9, 10.0):
        set_clock(monkeypatch, count(step=pace))
        found.append(answer(method, problem, limits=Limits(2000), tol=1e-7))
    assert found[0].n_iter == found[1].n_iter
    np.testing.assert_array_equal(found[0].alpha, found[1].alpha)


def plain_functions(module):
    """Return the Python of the compiled functions and regions that a module defines, by name."""

    def in_turn(region):
        def run(n_parts, *arguments):
            for part in range(n_parts):
                region.kernel.py_func(part, *arguments)

        return run

    return {
        name: in_turn(function) if isinstance(function, Region) else function.py_func
        for name, function in vars(module).items()
        if isinstance(function, Region)
        or (hasattr(function, "py_func") and function.py_func.__module__ == module.__name__)
    }


@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_compiled_code_does_what_its_python_does(method, kind, monkeypatch):
    X, y = cloud(40, 3)
    for loss in LOSSES:
        for name in ("equal", "some zero"):
            problem = posed(KINDS[kind](X), y, weights(name, 40), loss)
            compiled = answer(method, problem)
            with monkeypatch.context() as patch:
                for module in (primal_passes, descent_state, features_module):
                    functions = plain_functions(module)
                    assert functions
                    for each, function in functions.items():
                        patch.setattr(module, each, function)
                plain = answer(method, problem)
            assert plain.n_iter == compiled.n_iter
            np.testing.assert_allclose(plain.w, compiled.w, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(plain.alpha, compiled.alpha, rtol=1e-6, atol=1e-7)
