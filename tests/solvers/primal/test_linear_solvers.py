"""Solvers of the linear machine on every kind of data and problem, by certificate and by a QP.

A new solver gets one line in `METHODS`, a new kind of X one in `KINDS`. Then what they are made of:
sums over rows, planes and their gaps, certificates, and rows that come in blocks.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin import qp
from maxmargin.certificates import primal as plane_certificate
from maxmargin.engines.cpu import descent_state, primal_state
from maxmargin.engines.cpu import features as features_module
from maxmargin.engines.cpu.features import Features
from maxmargin.engines.cpu.primal_state import PrimalState
from maxmargin.kernels import Linear
from maxmargin.problems import DualProblem, PrimalProblem, losses
from maxmargin.problems.best_bias import balanced, best_biases
from maxmargin.progress import Limits, Progress
from maxmargin.runtime import threads
from maxmargin.runtime.threads import at_most
from maxmargin.solution import Solution, Status
from maxmargin.solvers.line_search import line_search
from maxmargin.solvers.linear_systems import Factored
from maxmargin.solvers.primal import coordinate_descent, direction, interior_point, newton
from maxmargin.solvers.primal.coordinate_descent import CoordinateDescent
from maxmargin.solvers.primal.interior_point import InteriorPoint
from maxmargin.solvers.primal.ledger import Ledger, Plane
from maxmargin.solvers.primal.newton import SemismoothNewton

# A line of the registry is all that a new loss takes.
losses.LOSSES.setdefault("smoothed_hinge", losses.Loss(upper=1.0, ridge=0.5))
LOSSES = ["hinge", "squared_hinge", "smoothed_hinge"]
BIASES = ["free", "penalised", "none"]
# The default, and one that only second-order steps get to.
TOLERANCES = [1e-4, 1e-8]
# A certificate adds up in another order than a solver does.
AIM = 0.99
# The value that the quadratic program's solver finds is good to so much.
REFERENCE = 1e-7
# The same numbers added up in another order.
ROUNDING = 1e-12
# Far above anything that these problems need: a solver that does not end fails instead.
LIMITS = Limits(2000, 30.0)
N, D = 90, 5


@dataclass(frozen=True)
class Method:
    """A solver; ``warm`` ones use a start, ``blocks`` ones take rows that come in blocks.

    ``counts`` ones know of every sample, at every step, whether it is on its side.
    """

    name: str
    make: Callable[..., Any]
    module: Any
    warm: bool = True
    blocks: bool = True
    counts: bool = True


METHODS = [
    Method("newton", SemismoothNewton, newton),
    Method("interior-point", InteriorPoint, interior_point, warm=False),
    Method("coordinate-descent", CoordinateDescent, coordinate_descent, blocks=False, counts=False),
]


@pytest.fixture(params=METHODS, ids=lambda method: method.name)
def method(request):
    return request.param


# Data ---------------------------------------------------------------------------------------------


def cloud(n=N, d=D, *, seed=0, noise=0.7, density=0.7, shift=0.3):
    """Return X, exact in float32 and with some zeros, and y = ±1 of classes that overlap."""
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.standard_normal((n, d))) / 8 * (rng.random((n, d)) < density)
    return X, np.where(X[:, 0] + noise * rng.standard_normal(n) + shift > 0, 1.0, -1.0)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def in_blocks(X, make=np.asarray):
    """Return X as blocks of unequal sizes."""
    n = X.shape[0]
    return mm.RowBlocks([make(X[rows]) for rows in np.split(np.arange(n), [1, n // 3, n // 2])])


def long_indices(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "by columns, float32": lambda X: np.asfortranarray(X.astype(np.float32)),
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read only": read_only,
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csr int64": long_indices,
    "blocks": in_blocks,
    "blocks float32": lambda X: in_blocks(X.astype(np.float32)),
    "csr blocks": lambda X: in_blocks(X, sparse.csr_matrix),
    "blocks of columns": lambda X: in_blocks(X, np.asfortranarray),
}


def dense(X):
    """Return X of any kind as an array in float64."""
    if isinstance(X, mm.RowBlocks):
        return np.vstack([dense(block) for block in X])
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def weights(name, n=N):
    rng = np.random.default_rng(1)
    return {
        "equal": 2.0,
        "unequal": rng.uniform(0.2, 5.0, n),
        "some zero": np.where(np.arange(n) % 4 == 1, 0.0, rng.uniform(0.2, 5.0, n)),
    }[name]


WEIGHTS = ["equal", "unequal", "some zero"]


def posed(X, y, C=1.0, loss="hinge", bias="free"):
    return PrimalProblem.of(X, y, C, loss, bias)


def answer(method, problem, start=None, *, tol=1e-6, limits=LIMITS, progress=None):
    solver = method.make(Features(problem.X), AIM * tol, limits)
    return solver.solve(problem, start, progress or Progress())


def assert_solves(method, problem, tol=1e-6, **options):
    """The solver converges, to a certificate that says so, and warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = answer(method, problem, tol=tol, **options)
        certificate = mm.certify(problem, found)
    assert certificate.holds(tol), f"{found.status}: {certificate}"
    assert found.status is Status.CONVERGED
    assert found.alpha.min() >= 0.0
    assert (found.alpha <= problem.upper).all()
    if problem.bias == "none":
        assert found.b[0] == 0.0
    return found, certificate


# The optimum by another way -----------------------------------------------------------------------


def by_hand(problem):
    """Return y, C and K = XXᵀ (+ 1) of the samples that count, and the curvature D of the loss."""
    y = problem.y
    upper, D = (np.broadcast_to(values, y.shape) for values in (problem.upper, problem.ridge))
    counts = (upper > 0.0) & np.isfinite(D)
    X = dense(problem.X)[counts]
    K = X @ X.T + float(problem.bias == "penalised")
    return y[counts], upper[counts], D[counts], K


def optimum(problem):
    """Return the value of the dual as a general quadratic program."""
    pytest.importorskip("clarabel")
    y, upper, D, K = by_hand(problem)
    n = y.size
    above = np.isfinite(upper)
    G = np.vstack([-np.eye(n), np.eye(n)[above]])
    h = np.concatenate([np.zeros(n), upper[above]])
    A = y[np.newaxis] if problem.bias == "free" else np.empty((0, n))
    program = qp.QP(np.outer(y, y) * K + np.diag(D), -np.ones(n), G, h, A, np.zeros(len(A)))
    solved = qp.solve(program, "clarabel")
    assert solved.status is qp.QPStatus.SOLVED
    return -solved.objective


@cache
def best(loss, bias, name):
    """Return the optimum of the problems of the matrix below; all kinds of X hold the same rows."""
    return optimum(posed(*cloud(), weights(name), loss, bias))


# Every solver, on every kind of data --------------------------------------------------------------


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


# The ways of Newton's method ----------------------------------------------------------------------

MANY = 2000


@dataclass(frozen=True)
class Way:
    """Constants under which small data take the way of large ones, and what is then called."""

    name: str
    tuning: newton.Tuning
    called: list[tuple[Any, str]]


DIRECT = direction.Tuning(direct_multiplications=0.0)
WAYS = [
    Way("rows near the kink", newton.Tuning(whole_numbers=100), [(PrimalState, "hold")]),
    Way(
        "samples of the rows",
        newton.Tuning(whole_numbers=100, sample_factor=4, fewest_rows=100),
        [(newton._Run, "from_samples"), (PrimalState, "hold")],
    ),
    Way(
        "conjugate gradients", newton.Tuning(direction=DIRECT),
        [(direction, "by_conjugate_gradients")],
    ),
    Way(
        "conjugate gradients near the kink", newton.Tuning(whole_numbers=100, direction=DIRECT),
        [(direction, "by_conjugate_gradients"), (PrimalState, "hold")],
    ),
]  # fmt: skip


@pytest.fixture
def watched(monkeypatch):
    """Return watch(owner, name) ↦ a list that grows with every call of a method."""

    def watch(owner, name):
        calls, function = [], owner.__dict__[name]

        def watching(*args, **options):
            out = function(*args, **options)
            calls.append(out)
            return out

        monkeypatch.setattr(owner, name, watching)
        return calls

    return watch


@pytest.mark.parametrize("kind", ["float64", "csr", "blocks"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_of_newtons_method(way, kind, monkeypatch, watched):
    monkeypatch.setattr(primal_state, "TUNING", replace(primal_state.TUNING, part_rows=500))
    called = [watched(*who) for who in way.called]
    X, y = cloud(MANY, 6)
    X = KINDS[kind](X)
    method = replace(METHODS[0], make=partial(SemismoothNewton, tuning=way.tuning))
    for loss in LOSSES:
        for bias in BIASES:
            C = weights("some zero" if bias == "free" else "equal", MANY)
            assert_solves(method, posed(X, y, C, loss, bias), 1e-7)
    assert all(called)  # the test sees what it is about
    if "samples" in way.name:
        assert any(plane is not None for plane in called[0])


def test_fewer_free_samples_than_features(watched):
    """The system of a step is then as large as they are many."""
    by_gram = watched(direction, "by_gram")
    X, y = cloud(30, 60)
    for bias in BIASES:
        assert_solves(METHODS[0], posed(X, y, 1.0, "hinge", bias), 1e-8)
    assert by_gram


def test_descent_that_creeps_is_ended_by_newtons_method(watched):
    polished = watched(CoordinateDescent, "_polished")
    X, y = cloud(200, 4)
    for loss in LOSSES:
        for bias in BIASES:
            found, _ = assert_solves(METHODS[2], posed(X, y, 1e4, loss, bias), 1e-8)
            assert found.n_iter == len(found.trace)
    assert polished


def test_descent_in_slices(monkeypatch):
    """Between two of them a fit can be interrupted."""
    monkeypatch.setattr(descent_state, "TUNING", descent_state.Tuning(slice_numbers=64))
    for bias in BIASES:
        assert_solves(METHODS[2], posed(*cloud(300), 1.0, "hinge", bias), 1e-4)


def test_samples_far_from_the_margin_are_rightly_left_out():
    """The plane is that of a solver which leaves none out."""
    for seed in range(3):
        X, y = cloud(400, 3, noise=0.2, seed=seed)
        for bias in BIASES:
            problem = posed(X, y, 1.0, "hinge", bias)
            exact, _ = assert_solves(METHODS[1], problem, 1e-10)
            found, _ = assert_solves(METHODS[2], problem, 1e-10)
            np.testing.assert_allclose(found.w, exact.w, atol=1e-4)


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
def test_nothing_of_the_callers_is_changed(method, loss, kind):
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
    monkeypatch.setattr(threads, "_available", lambda: 2)
    small = features_module.Tuning(part_numbers=1 << 9, moments_multiplications=1e3)
    monkeypatch.setattr(features_module, "TUNING", small)
    monkeypatch.setattr(primal_state, "TUNING", primal_state.Tuning(part_rows=1 << 8))
    monkeypatch.setattr(plane_certificate, "PART", 1 << 10)


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


def test_the_order_of_descent_is_that_of_the_seed():
    problem = posed(*cloud(), 1.0)
    one, same, other = (
        CoordinateDescent(Features(problem.X), 1e-4, LIMITS, seed).solve(problem, None, Progress())
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one.alpha, same.alpha)
    assert not np.array_equal(one.alpha, other.alpha)


def test_how_fast_the_machine_is_does_not_change_the_answer(method, monkeypatch):
    """Under a clock that creeps, and one that races, the same steps are taken."""
    problem = posed(*cloud(200, 4), 300.0)
    found = []
    for pace in (1e-9, 10.0):
        ticks = iter(np.arange(1, 10**6) * pace)
        monkeypatch.setattr("time.perf_counter", lambda ticks=ticks: float(next(ticks)))
        found.append(answer(method, problem, limits=Limits(2000), tol=1e-7))
    assert found[0].n_iter == found[1].n_iter
    np.testing.assert_array_equal(found[0].alpha, found[1].alpha)


def compiled_functions(module):
    """Return the compiled functions that a module defines, by name."""
    return {
        name: function
        for name, function in vars(module).items()
        if hasattr(function, "py_func") and function.py_func.__module__ == module.__name__
    }


@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_compiled_code_does_what_its_python_does(method, kind, monkeypatch):
    X, y = cloud(40, 3)
    for loss in LOSSES:
        for name in ("equal", "some zero"):
            problem = posed(KINDS[kind](X), y, weights(name, 40), loss)
            compiled = answer(method, problem)
            with monkeypatch.context() as patch:
                for module in (primal_state, descent_state, features_module):
                    functions = compiled_functions(module)
                    assert functions
                    for each, function in functions.items():
                        patch.setattr(module, each, function.py_func)
                plain = answer(method, problem)
            assert plain.n_iter == compiled.n_iter
            np.testing.assert_allclose(plain.w, compiled.w, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(plain.alpha, compiled.alpha, rtol=1e-6, atol=1e-7)


# Sums over rows -----------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def rows(request):
    """X of every kind, and the same as an array."""
    X = cloud(300, 7)[0]
    return KINDS[request.param](X), X


def numbers(n=300):
    """Return numbers for the rows, some of them 0."""
    rng = np.random.default_rng(2)
    return rng.uniform(0.1, 2.0, n) * (rng.random(n) < 0.6)


@pytest.mark.parametrize("part", [64, 1 << 19], ids=["parts", "whole"])
def test_sums_over_rows(rows, part, monkeypatch):
    tuning = features_module.Tuning(
        part_numbers=part, moments_multiplications=1e3 if part == 64 else 1e7
    )
    monkeypatch.setattr(features_module, "TUNING", tuning)
    given, X = rows
    features, c = Features(given), numbers()
    w, b = np.linspace(-1.0, 2.0, 7), 0.25
    augmented = np.column_stack([X, np.ones(300)])
    close = {"rtol": ROUNDING, "atol": ROUNDING * 300}
    assert (features.n_rows, features.n_columns) == X.shape
    np.testing.assert_allclose(features.scores(w, b), X @ w + b, **close)
    np.testing.assert_allclose(features.scores(w), X @ w, **close)
    np.testing.assert_allclose(features.combine(c - 0.5), (c - 0.5) @ X, **close)
    moments = features.moments(c)
    np.testing.assert_allclose(moments, augmented.T @ (c[:, np.newaxis] * augmented), **close)
    np.testing.assert_array_equal(moments, moments.T)
    chosen = np.array([0, 1, 40, 299])
    some = augmented[chosen]
    for factors in (np.array([2.0]), np.array([1.0, 0.5, 3.0, 0.25])):
        expected = some.T @ (factors[:, np.newaxis] * some)
        np.testing.assert_allclose(features.moments(factors, chosen), expected, **close)
    np.testing.assert_allclose(features.squared_lengths(), (X**2).sum(axis=1), **close)
    np.testing.assert_allclose(features.squared_columns(c), c @ X**2, **close)
    for sums in (features.scores(w), features.combine(c), moments, features.squared_columns(c)):
        assert sums.dtype == np.float64


@pytest.mark.parametrize("chosen", [np.arange(0, 300, 7), np.array([0, 299]), np.arange(300)])
def test_some_rows(rows, chosen):
    given, X = rows
    some = Features(given).restrict(chosen)
    np.testing.assert_array_equal(dense(some.X), X[chosen])
    np.testing.assert_allclose(some.scores(np.arange(7.0)), X[chosen] @ np.arange(7.0), atol=1e-12)
    if not isinstance(given, mm.RowBlocks):
        assert some.X.dtype == given.dtype
        np.testing.assert_allclose(some.gram(), X[chosen] @ X[chosen].T, atol=1e-12)
        assert some.gram().dtype == np.float64


def test_what_features_say_of_themselves(rows):
    given, X = rows
    features = Features(given)
    is_sparse = sparse.issparse(given) or getattr(given, "sparse", False)
    assert features.is_dense == (not is_sparse)
    stored = np.count_nonzero(X) if is_sparse else X.size
    assert features.stored_per_row == pytest.approx(stored / 300)


def test_no_row_at_all():
    for X in (np.empty((0, 4)), sparse.csr_matrix((0, 4))):
        features = Features(X)
        assert features.scores(np.ones(4)).shape == (0,)
        np.testing.assert_array_equal(features.combine(np.empty(0)), np.zeros(4))
        np.testing.assert_array_equal(features.moments(np.empty(0)), np.zeros((5, 5)))


# Planes and their gaps ----------------------------------------------------------------------------


def loss_value(problem, z):
    """Return Σ h(z), from the definition of the losses."""
    z = np.maximum(z, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = np.where(problem.ridge > 0.0, np.minimum(z / problem.ridge, problem.upper), np.nan)
        alpha = np.where(problem.ridge > 0.0, alpha, problem.upper)
        ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
    return float(np.sum(alpha * z - 0.5 * ridge * alpha**2))


def values_by_hand(problem, w, b, alpha):
    """Return P(w, b) and D(α), from their definitions."""
    X, y = dense(problem.X), problem.y
    penalty = b**2 if problem.bias == "penalised" else 0.0
    primal = 0.5 * (w @ w + penalty) + loss_value(problem, 1.0 - y * (X @ w + b))
    v, s = (alpha * y) @ X, float(alpha @ y)
    penalty = s**2 if problem.bias == "penalised" else 0.0
    ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
    dual = alpha.sum() - 0.5 * (v @ v + penalty) - 0.5 * np.sum(ridge * alpha**2)
    return primal, dual


def feasible(problem, seed=0):
    """Return some α of 0 ≤ α ≤ u, with yᵀα = 0 where the bias is free."""
    rng = np.random.default_rng(seed)
    upper = np.broadcast_to(np.minimum(problem.upper, 1.0), problem.y.shape)
    alpha = np.where(np.isfinite(problem.ridge), upper, 0.0) * rng.random(problem.y.size)
    return balanced(problem, alpha) if problem.bias == "free" else alpha


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_values_are_those_of_the_definition(loss, bias, name):
    X, y = cloud()
    problem = posed(X, y, weights(name), loss, bias)
    features, w, b = Features(X), np.linspace(-1, 1, D), 0.0 if bias == "none" else 0.7
    alpha = feasible(problem)
    primal, dual = values_by_hand(problem, w, b, alpha)
    state = features.primal_state(problem)
    ledger = Ledger(problem, state)
    state.place(w, b)
    state.start(alpha)
    assert ledger.enter(Plane(w, b)) == pytest.approx(primal, rel=1e-12)
    assert state.dual() == pytest.approx(dual, rel=1e-12)
    assert state.dual(state.total()) == pytest.approx(dual, rel=1e-12)
    np.testing.assert_allclose(state.alpha(), alpha, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bias", BIASES)
def test_the_ledger_keeps_the_best_of_both_sides(bias):
    X, y = cloud()
    problem = posed(X, y, 1.0, "hinge", bias)
    state = Features(X).primal_state(problem)
    ledger = Ledger(problem, state)
    assert ledger.gap == 1.0
    rng = np.random.default_rng(3)
    start = ledger.solution(Status.STOPPED, 0, Progress())
    primals, duals = map(list, zip(values_by_hand(problem, start.w[0], start.b[0], start.alpha)))
    for k in range(20):
        w, b = rng.standard_normal(D), float(rng.standard_normal() * (bias != "none"))
        alpha = feasible(problem, k) * rng.random()
        primal, dual = values_by_hand(problem, w, b, alpha)
        primals.append(primal)
        duals.append(dual)
        state.place(w, b)
        state.start(alpha)
        ledger.enter(Plane(w, b))
        state.values += 1e3  # what a solver does with it afterwards
        assert ledger.primal == pytest.approx(min(primals), rel=1e-12)
        assert ledger.dual == pytest.approx(max(duals), rel=1e-12)
        assert ledger.gap == pytest.approx(
            (min(primals) - max(duals)) / min(primals), rel=1e-9
        )  # fmt: skip
    found = ledger.solution(Status.CONVERGED, 20, Progress())
    primal, dual = values_by_hand(problem, found.w[0], found.b[0], found.alpha)
    assert dual == pytest.approx(max(duals), rel=1e-12)
    assert primal == pytest.approx(ledger.primal, rel=1e-12)
    if bias == "free":  # the best for w
        assert primal <= min(primals) * (1.0 + 1e-12)
        for shift in (-1e-3, 1e-3):
            moved = values_by_hand(problem, found.w[0], found.b[0] + shift, found.alpha)[0]
            assert primal <= moved * (1.0 + 1e-12)
    else:
        assert primal == pytest.approx(min(primals), rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_balancing_keeps_the_box_and_takes_only(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(30) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    upper = rng.uniform(0.0, 2.0, 30)
    problem = PrimalProblem(np.zeros((30, 1)), y, upper, np.zeros(1))
    alpha = np.clip(rng.uniform(-1.0, 3.0, 30), 0.0, upper)
    before = alpha.copy()
    after = balanced(problem, alpha)
    np.testing.assert_array_equal(alpha, before)
    assert abs(y @ after) <= ROUNDING * 30
    assert (after >= 0.0).all()
    assert (after <= before + ROUNDING).all()
    # The lighter class keeps what it has.
    heavier = np.sign(y @ before)
    np.testing.assert_array_equal(after[y != heavier], before[y != heavier])
    np.testing.assert_allclose(balanced(problem, after), after, atol=ROUNDING)


def test_balancing_one_class_leaves_nothing():
    problem = PrimalProblem(np.zeros((3, 1)), np.ones(3), np.ones(1), np.zeros(1))
    np.testing.assert_array_equal(balanced(problem, np.ones(3)), np.zeros(3))


@pytest.mark.parametrize("tied", [False, True], ids=["apart", "tied"])
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_best_bias_is_that_of_a_grid(loss, name, tied, seed):
    rng = np.random.default_rng(seed)
    n = 40 if name != "equal" else 41
    scores = rng.standard_normal(n) * 2.0
    scores = np.round(scores) if tied else scores
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    problem = posed(np.zeros((n, 1)), y, weights(name, n), loss)
    low, high = best_biases(problem, scores)
    assert low <= high

    def total(t):
        return loss_value(problem, 1.0 - y * (scores + t))

    least = min(total(t) for t in np.concatenate([np.linspace(-9, 9, 2000), y - scores]))
    for t in (low, high, 0.5 * (low + high)):
        assert total(t) <= least + 1e-9 * abs(least)
    for t in (low - 1e-3, high + 1e-3):
        assert total(t) > total(low)


def test_some_rows_that_count_several_times():
    X, y = cloud()
    for loss in LOSSES:
        problem = posed(X, y, weights("unequal"), loss)
        chosen = np.arange(0, N, 3)
        some = Features(X).primal_state(problem).sample(chosen, 3.0)
        w = np.linspace(-1, 1, D)
        expected = 3.0 * loss_value(
            posed(X[chosen], y[chosen], weights("unequal")[chosen], loss),
            1.0 - y[chosen] * (X[chosen] @ w),
        )
        some.place(w, 0.0)
        assert some.loss() == pytest.approx(expected)
        equal = Features(X).primal_state(posed(X, y, 2.0, loss)).sample(chosen, 1.0)
        assert equal.problem.upper.size == equal.problem.ridge.size == 1
        one_class = np.flatnonzero(y > 0)
        assert Features(X).primal_state(problem).sample(one_class, 1.0) is None


# Steps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_line_search_descends_to_half_the_slope(seed):
    """Along a random convex function whose slope is piecewise linear."""
    rng = np.random.default_rng(seed)
    kinks, rises = rng.exponential(10.0 ** rng.uniform(-3, 3), 12), rng.exponential(1.0, 12)
    curvature = 10.0 ** rng.uniform(-4, 2)
    first = -float(rises.sum()) * rng.uniform(0.1, 1.0)

    def slope(t):
        return first + curvature * t + float(rises[kinks < t].sum())

    def value(t):
        return first * t + 0.5 * curvature * t * t + float(rises @ np.maximum(t - kinks, 0.0))

    t = line_search(slope, first)
    assert t > 0.0
    assert value(t) < 0.0
    # No further on is less than a small part of what could be gained.
    grid = np.concatenate([np.linspace(0.0, 4.0 * t, 2001), kinks])
    assert value(t) <= 0.25 * min(value(s) for s in grid)


def test_line_search_takes_the_whole_step_of_a_parabola():
    assert line_search(lambda t: t - 1.0, -1.0) == 1.0


@pytest.mark.parametrize("slope", [lambda t: -1.0, lambda t: -1e-300, lambda t: 1.0])
def test_line_search_ends_whatever_it_is_told(slope):
    """A slope that never rises, and one that rounding has the sign of."""
    assert 0.0 <= line_search(slope, -1.0) < np.inf


def test_line_search_ends_where_there_is_no_descent():
    calls = []

    def slope(t):
        calls.append(t)
        return 0.0

    assert np.isfinite(line_search(slope, 0.0))
    assert len(calls) <= 60


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_factored_matrices_solve(scale):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((6, 6)) * np.array([1.0, scale, 1.0, 1.0, scale, 1.0])
    H = B.T @ B + np.diag(np.diag(B.T @ B)) * 1e-3
    before = H.copy()
    x = rng.standard_normal(6)
    found = Factored(H).solve(x)
    assert (np.abs(H @ found - x) <= ROUNDING * (np.abs(H) @ np.abs(found))).all()
    np.testing.assert_array_equal(H, before)


def test_factored_matrices_of_low_rank_end():
    b = np.array([1.0, 2.0, 3.0, 0.0])
    x = Factored(np.outer(b, b)).solve(b)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(np.outer(b, b) @ x, b, rtol=1e-2)


# Certificates -------------------------------------------------------------------------------------


def certified(problem, w, b, alpha):
    found = Solution(
        np.asarray(w, float)[np.newaxis], np.array([float(b)]), Status.STOPPED, alpha=alpha
    )
    return mm.certify(problem, found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_hold_the_values_of_the_definition(loss, bias, kind, monkeypatch):
    monkeypatch.setattr(plane_certificate, "PART", 64)
    X, y = cloud()
    problem = posed(KINDS[kind](X), y, weights("some zero"), loss, bias)
    w, b = np.linspace(-1, 1, D), 0.0 if bias == "none" else 0.7
    alpha = feasible(problem)
    primal, dual = values_by_hand(problem, w, b, alpha)
    found = certified(problem, w, b, alpha)
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.dual == pytest.approx(dual, rel=1e-12)
    assert found.gap == pytest.approx(primal - dual, rel=1e-12)
    assert found.relative_gap == pytest.approx((primal - dual) / primal, rel=1e-12)
    assert found.box == 0.0
    assert found.balance <= ROUNDING
    assert found.n_checked == N
    # The conditions: y g + Dα ≥ 1 below the bound, ≤ 1 above 0.
    upper, D_ = (np.broadcast_to(v, y.shape) for v in (problem.upper, problem.ridge))
    counts = (upper > 0) & np.isfinite(D_)
    slope = (y * (X @ w + b) + np.where(np.isfinite(D_), D_, 0.0) * alpha) - 1.0
    violation = max(
        (-slope[counts & (alpha < upper)]).max(), slope[counts & (alpha > 0)].max(), 0.0
    )
    assert found.violation == pytest.approx(violation, rel=1e-9)
    assert not found.holds(1e-4)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_answer_looks_better_than_the_optimum(loss, bias, name):
    """Whatever is handed in: P is never below, nor D above, so that no gap can be feigned."""
    problem = posed(*cloud(), weights(name), loss, bias)
    least = best(loss, bias, name)
    exact = answer(METHODS[0], problem, tol=1e-8)
    rng = np.random.default_rng(4)
    for k in range(60):
        size = 10.0 ** rng.uniform(-6, 2)
        w = exact.w[0] + size * rng.standard_normal(D)
        b = exact.b[0] + size * rng.standard_normal() * (bias != "none")
        alpha = exact.alpha + size * rng.standard_normal(N) * (rng.random(N) < 0.3)
        if k % 3 == 0:
            alpha = exact.alpha * rng.uniform(0.0, 2.0)
        found = certified(problem, w, b, alpha)
        assert found.primal >= least * (1.0 - REFERENCE)
        assert found.dual <= least * (1.0 + REFERENCE)
        assert found.gap >= -REFERENCE * least
        assert certified(problem, w, b, exact.alpha).dual == pytest.approx(least, rel=1e-6)
        assert certified(problem, exact.w[0], exact.b[0], alpha).primal == pytest.approx(
            least, rel=1e-6
        )


@pytest.mark.parametrize("size", [1e-3, 10.0])
def test_infeasible_multipliers_are_reported(size):
    X, y = cloud()
    problem = posed(X, y, 1.0)
    exact = answer(METHODS[0], problem, tol=1e-8)
    plane = exact.w[0], exact.b[0]
    assert certified(problem, *plane, exact.alpha).holds(1e-8)
    zero, full = np.argmin(exact.alpha), np.argmax(exact.alpha)
    assert (exact.alpha[zero], exact.alpha[full]) == (0.0, 1.0)

    def changed(i, value):
        alpha = exact.alpha.copy()
        alpha[i] = value
        return certified(problem, *plane, alpha)

    negative, above = changed(zero, -size), changed(full, 1.0 + size)
    assert negative.box == pytest.approx(size)
    assert above.box == pytest.approx(size)
    for found in (negative, above):
        assert not found.holds(0.5 * size)
        assert found.dual <= found.primal
    unbalanced = changed(zero, min(size, 1.0))
    total = exact.alpha.sum() + min(size, 1.0)
    assert unbalanced.box == 0.0
    assert unbalanced.balance == pytest.approx(min(size, 1.0) / total, rel=1e-3)
    assert not unbalanced.holds(1e-6)


@pytest.mark.parametrize("bias", ["penalised", "none"])
def test_no_balance_is_asked_where_the_bias_is_not_free(bias):
    problem = posed(*cloud(), 1.0, "hinge", bias)
    found = certified(problem, np.zeros(D), 0.0, (problem.y > 0) * 0.5)
    assert found.balance == 0.0


def test_a_bias_that_is_not_asked_for_proves_nothing():
    """Where there is to be none, a plane that has one must not look better than the optimum."""
    X, y = cloud(shift=1.5)
    problem = posed(X, y, 1.0, "hinge", "none")
    with_bias, without = (
        answer(METHODS[0], replace(problem, bias=bias), tol=1e-8) for bias in ("free", "none")
    )
    least = mm.certify(problem, without).dual
    found = certified(problem, with_bias.w[0], with_bias.b[0], without.alpha)
    assert found.primal >= least * (1.0 - REFERENCE) or not found.holds(1e-3)


def test_a_gap_below_0_is_no_proof():
    """P < D happens to no feasible answer, by more than rounding: something is wrong then."""
    found = plane_certificate.PlaneCertificate(99.0, 100.0, -1.0, -0.0101, 0.0, 0.0, 0.0)
    assert not found.holds(1e-4)
    assert replace(found, gap=-1e-14, relative_gap=-1e-16).holds(1e-4)


def test_certificates_of_the_hard_margin():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    y = y.astype(float)
    hard = PrimalProblem(X, y, np.full(1, np.inf), np.zeros(1))
    alpha = np.array([8, 0, 9, 0, 17, 0]) / 225
    w, b = np.array([-1 / 3, 1 / 5]), 2 / 15
    exact = certified(hard, w, b, alpha)
    assert exact.holds(1e-12)
    assert exact.primal == pytest.approx(17 / 225)
    assert exact.dual == pytest.approx(17 / 225)
    assert hard.hard
    assert not posed(X, y, 1.0).hard
    # A plane that is too near is scaled until no margin is below 1; one that errs has no value.
    near = certified(hard, 0.5 * w, 0.5 * b, alpha)
    assert near.primal == pytest.approx(17 / 225)
    assert certified(hard, 2.0 * w, 2.0 * b, alpha).primal == pytest.approx(4 * 17 / 225)
    wrong = certified(hard, -w, b, alpha)
    assert wrong.primal == wrong.relative_gap == np.inf
    assert not wrong.holds(1e6)
    # Of samples that do not count nothing is asked.
    some = replace(hard, upper=np.array([np.inf, np.inf, np.inf, np.inf, np.inf, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certified(some, w, b, alpha).holds(1e-12)


def test_the_certificate_of_the_kernel_machine_is_the_same():
    X, y = cloud()
    C = weights("unequal")
    for loss in ("hinge", "squared_hinge"):
        problem = posed(X, y, C, loss)
        found = answer(METHODS[0], problem, tol=1e-10)
        alpha = found.alpha
        pose = DualProblem.hinge if loss == "hinge" else DualProblem.squared_hinge
        plane, kernel = (
            certified(problem, (alpha * y) @ X, found.b[0], alpha),
            mm.certify(
                pose(Linear(), X, y, C), Solution(np.empty((0, 0)), found.b, Status.CONVERGED,
                                                  alpha=alpha)
            ),
        )  # fmt: skip
        assert plane.primal == pytest.approx(kernel.primal, rel=1e-10)
        assert plane.dual == pytest.approx(kernel.dual, rel=1e-10)
        assert plane.violation == pytest.approx(kernel.violation, rel=1e-6, abs=1e-12)


def test_certificates_say_what_they_hold():
    problem = posed(*cloud(), 1.0)
    text = str(mm.certify(problem, answer(METHODS[0], problem)))
    for told in ("relative gap", "primal", "dual", "KKT"):
        assert told in text


# Rows in blocks -----------------------------------------------------------------------------------


def test_blocks_know_their_shape_and_kind():
    X = cloud()[0]
    blocks = in_blocks(X)
    assert blocks.shape == X.shape
    assert len(blocks) == N
    assert not blocks.sparse
    assert sum(blocks.sizes) == N
    assert in_blocks(X, sparse.csr_matrix).sparse
    for _ in range(2):  # again and again
        np.testing.assert_array_equal(np.vstack(list(blocks)), X)


@pytest.mark.parametrize(
    "chosen", [np.arange(N), np.array([0, 1, 2]), np.array([44, 45, 89]), np.arange(0)]
)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_some_rows_of_blocks(make, chosen):
    X = cloud()[0]
    some = in_blocks(X, make)[chosen]
    np.testing.assert_array_equal(dense(some), X[chosen])
    assert sparse.issparse(some) == (make is not np.asarray)


def test_blocks_of_any_numbers_become_floats():
    X = np.arange(12).reshape(6, 2)
    for dtype in (np.int64, np.uint8, bool, np.float16, np.float32, np.float64):
        expected = np.float32 if dtype is np.float32 else np.float64
        for block in mm.RowBlocks([X[:4].astype(dtype), X[4:].astype(dtype)]):
            assert block.dtype == expected
    assert mm.RowBlocks([X[:4].tolist(), X[4:].tolist()]).shape == (6, 2)
    kept = X.astype(np.float32)
    assert all(np.shares_memory(block, kept) for block in mm.RowBlocks([kept[:4], kept[4:]]))


def test_sparse_blocks_of_any_form_become_canonical():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    doubled = sparse.csr_matrix(
        (np.array([1.0, 1.0, 1.0, 3.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = doubled.data.copy(), doubled.indices.copy()
    for other in (doubled, sparse.csc_matrix(X), sparse.coo_array(X)):
        (block,) = mm.RowBlocks([other])
        assert block.format == "csr"
        assert block.has_canonical_format
        np.testing.assert_array_equal(block.toarray(), X)
    np.testing.assert_array_equal(doubled.data, before[0])
    np.testing.assert_array_equal(doubled.indices, before[1])


def test_a_function_makes_the_blocks_anew():
    X, made = cloud()[0], []

    def source():
        made.append(1)
        yield X[:50]
        yield X[50:]

    blocks = mm.RowBlocks(source)
    count = len(made)
    np.testing.assert_array_equal(np.vstack(list(blocks)), X)
    np.testing.assert_array_equal(np.vstack(list(blocks)), X)
    assert len(made) == count + 2


def test_one_block_is_held_at_a_time():
    """A source that makes its blocks as they are asked for finds the last one forgotten."""
    alive, most = [], []

    def source():
        for k in range(5):
            block = np.full((10, 2), float(k))
            alive.append(weakref.ref(block))
            most.append(sum(each() is not None for each in alive))
            yield block
            del block

    for _ in mm.RowBlocks(source):
        pass
    assert max(most) <= 2  # the one that is being read, and the next


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda X: (X[k : k + 10] for k in range(0, N, 10)), TypeError, "more than once"),
        (lambda X: iter([X]), TypeError, "more than once"),
        (lambda X: [X, X[:, :2]], ValueError, "width"),
        (lambda X: [X, sparse.csr_matrix(X)], ValueError, "one kind"),
        (lambda X: [], ValueError, "no block"),
        (lambda X: list, ValueError, "no block"),
        (lambda X: [X[:, 0]], ValueError, "(?i)2-?d|column|shape|dimension"),
    ],
    ids=["generator", "iterator", "widths", "kinds", "none", "none made", "flat"],
)
def test_blocks_that_are_none(make, error, told):
    with pytest.raises(error, match=told):
        mm.RowBlocks(make(cloud()[0]))


@pytest.mark.parametrize("change", ["fewer", "more", "narrower"])
def test_blocks_that_change_between_passes_are_refused(change):
    X = cloud()[0]
    parts = [X[:30], X[30:60]]
    blocks = mm.RowBlocks(lambda: iter(parts))
    list(blocks)
    if change == "fewer":
        parts.pop()
    elif change == "more":
        parts.append(X[60:])
    else:
        parts[1] = parts[1][:, :2]
    with pytest.raises(ValueError, match="same in every pass"):
        list(blocks)
