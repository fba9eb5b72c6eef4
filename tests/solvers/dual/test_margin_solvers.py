"""Every solver of the support vector machine's dual on every kind of problem, by its certificate.

A new solver gets one line in `METHODS`: a factory f(gram, tol, limits) and what it promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC, LinearSVC, NuSVC

import maxmargin as mm
from maxmargin import qp
from maxmargin.engines.cpu.gram import Gram, Selected
from maxmargin.kernels import RBF, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.active_set import ActiveSet, Tuning
from maxmargin.solvers.dual.active_set import factor as factors
from maxmargin.solvers.dual.decomposition import Decomposition
from maxmargin.solvers.dual.qp import QuadraticProgram
from maxmargin.solvers.dual.qp import program as qp_program
from maxmargin.solvers.dual.qp import solver as qp_solver


@dataclass(frozen=True)
class Method:
    """A solver: how it is made, what is asked of it, and what its certificate must hold to.

    ``handles`` names the problems it knows; ``warm`` ones use a start; ``steps`` ones report every
    step, ``rounds`` ones several steps at a time; ``proves`` ones return multipliers of inseparable
    classes. ``exact`` is what their α may differ by from rational numbers of the worked examples.
    """

    name: str
    make: Callable[[Any, float, Limits], Any]
    tol: float
    holds: float
    exact: float = 1e-12
    handles: Callable[[DualProblem], bool] = lambda problem: True
    warm: bool = True
    steps: bool = True
    rounds: bool = False
    proves: bool = True
    needs: str = "numpy"


def in_float64(gram, tol, limits, **options):
    gram = Gram(gram.kernel, gram.X, gram.index, dtype=np.float64)
    return Decomposition(gram, None, tol, limits, **options)


def in_float32(gram, tol, limits):
    fast, exact = (Gram(gram.kernel, gram.X, dtype=dtype) for dtype in (np.float32, np.float64))
    return Decomposition(fast.restrict(gram.index), Selected(exact, gram.index), tol, limits)


def on_the_whole(gram, tol, limits):
    gram = Gram(gram.kernel, gram.X, gram.index, dtype=np.float64)
    gram.whole()
    return Decomposition(gram, None, tol, limits, gram.n_samples)


def is_soft(problem):
    return bool((np.isfinite(problem.upper) | (problem.ridge > 0.0)).all())


# These stop at the very tolerance they are given, and have no proof of inseparability.
DESCENT = {"rounds": True, "proves": False}
# Interior points know a degenerate α, 0 as its multiplier is, to the root of their tolerance only:
# 1e-12 for PIQP, 1e-10 for Clarabel.
METHODS = [
    Method("active-set", ActiveSet, tol=1e-10, holds=1e-8),
    Method(
        "piqp", lambda *options: QuadraticProgram(*options, "piqp"),
        tol=1e-12, holds=1e-6, exact=1e-7, warm=False, steps=False, needs="piqp",
    ),
    Method(
        "clarabel", lambda *options: QuadraticProgram(*options, "clarabel"),
        tol=1e-12, holds=1e-4, exact=1e-7, warm=False, steps=False, needs="clarabel",
    ),
    Method("decomposition", in_float64, tol=1e-9, holds=4e-9, exact=1e-9, **DESCENT),
    Method(
        "decomposition-float32", in_float32, tol=1e-5, holds=1e-5, exact=1e-5, **DESCENT
    ),
    Method(
        "decomposition-in-parts", partial(in_float64, working_set=32),
        tol=1e-6, holds=1e-6, exact=1e-6, handles=is_soft, **DESCENT,
    ),
    Method(
        "smo", on_the_whole, tol=1e-9, holds=4e-9, exact=1e-9,
        handles=lambda problem: problem.groups, **DESCENT,
    ),
    Method(
        "coordinate-ascent", on_the_whole, tol=1e-9, holds=1e-9, exact=1e-9,
        handles=lambda problem: not problem.groups, **DESCENT,
    ),
]  # fmt: skip

SIX_ALPHA = np.array([8 / 225, 0, 1 / 25, 0, 17 / 225, 0])


def blobs(n, d, seed, noise=0.7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)


def six_points():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    return DualProblem.hard(Linear(), X, y.astype(float))


def xor(kernel):
    X, y = mm.datasets.load_xor(return_X_y=True)
    return DualProblem.hard(kernel, X, y.astype(float))


def weighted_hinge():
    X, y = blobs(120, 3, 0)
    return DualProblem.hinge(RBF(gamma=0.5), X, y, np.random.default_rng(1).uniform(0.2, 5, 120))


def squared_hinge():
    return DualProblem.squared_hinge(RBF(gamma=0.5), *blobs(90, 2, 2), 2.0)


def nu_machine():
    return DualProblem.nu(RBF(gamma=0.5), *blobs(100, 3, 3), 0.4)


def no_bias():
    return DualProblem.hinge(Linear(), *blobs(80, 3, 4), 1.0, bias=False)


def rank_deficient():
    X, y = blobs(60, 2, 5)
    X = np.round(2 * X)  # many samples are equal, and K has rank 2
    return DualProblem.hinge(Linear(), np.vstack([X, X]), np.append(y, y), 0.5)


def two_samples():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    return DualProblem.hinge(Linear(), X, np.array([-1.0, 1.0]), 10.0)


def all_at_bound():
    X = np.array([[0.0], [0.3], [0.2], [0.5]])
    return DualProblem.hinge(Linear(), X, np.array([-1.0, -1.0, 1.0, 1.0]), 0.01)


PROBLEMS = {
    "six points": six_points,
    "xor": lambda: xor(Polynomial(2, coef0=1.0)),
    "weighted hinge": weighted_hinge,
    "squared hinge": squared_hinge,
    "nu": nu_machine,
    "no bias": no_bias,
    "rank deficient": rank_deficient,
    "two samples": two_samples,
    "all at bound": all_at_bound,
    "hard rbf": lambda: DualProblem.hard(RBF(gamma=1.0), *blobs(80, 2, 6)),
    "large C": lambda: DualProblem.hinge(Linear(), *blobs(60, 2, 7), 1000.0),
}


@pytest.fixture(params=METHODS, ids=lambda method: method.name)
def method(request):
    pytest.importorskip(request.param.needs)
    return request.param


def answer(method, problem, alpha=None, progress=None, limits=None, tol=None):
    gram = Gram(problem.kernel, problem.X, dtype=np.float64)
    if problem.index.size != problem.X.shape[0]:
        gram = gram.restrict(problem.index)
    solver = method.make(gram, tol or method.tol, limits or Limits())
    return solver.solve(problem, alpha, progress or Progress())


def posed(method, name):
    problem = PROBLEMS[name]()
    if not method.handles(problem):
        pytest.skip(f"{method.name} does not solve this problem")
    return problem


def scores(problem, solution):
    return problem.kernel(problem.X) @ (solution.alpha * problem.signs)


@pytest.mark.parametrize("name", PROBLEMS)
def test_certificate_holds(method, name):
    problem = posed(method, name)
    solution = answer(method, problem)
    assert solution.status is Status.CONVERGED
    assert solution.alpha.min() >= 0
    assert (solution.alpha <= problem.upper).all()
    assert mm.certify(problem, solution).holds(method.holds)
    assert solution.n_iter >= len(solution.trace)
    assert method.rounds or solution.n_iter == len(solution.trace)


def reference(name, problem):
    """Decision values of scikit-learn, without b and b itself, in the scale of the problem."""
    K, y = problem.kernel(problem.X), problem.signs
    if name == "no bias":
        model = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
        return model.fit(problem.X, y).decision_function(problem.X), 0.0
    scale = 1.0
    if name == "nu":
        model = NuSVC(nu=problem.total, kernel="precomputed", tol=1e-10).fit(K, y)
        scale = problem.total / np.abs(model.dual_coef_).sum()  # LIBSVM divides by ρ
    else:
        C = np.where(np.isinf(problem.upper), 1e8, problem.upper)
        model = SVC(C=1.0, kernel="precomputed", tol=1e-10)
        model.fit(K + np.diag(problem.ridge), y, sample_weight=C)
    plain = K[:, model.support_] @ model.dual_coef_[0]
    return scale * plain, scale * model.intercept_[0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_agrees_with_scikit_learn(method, name):
    problem = posed(method, name)
    solution = answer(method, problem)
    plain, b = reference(name, problem)
    near = 5e-4 * np.abs(plain).max()  # LIBSVM keeps its kernel values in float32
    np.testing.assert_allclose(scores(problem, solution), plain, atol=near)
    if name != "all at bound":  # where an interval of b is optimal
        assert solution.b[0] == pytest.approx(b, abs=near)


def test_six_points_are_exact(method):
    problem = posed(method, "six points")
    solution = answer(method, problem)
    exact = method.exact
    np.testing.assert_allclose(solution.alpha, SIX_ALPHA, atol=exact)
    w = (solution.alpha * problem.signs) @ problem.X
    np.testing.assert_allclose(w, [-1 / 3, 1 / 5], atol=exact)
    assert solution.b[0] == pytest.approx(2 / 15, abs=exact)
    assert set(np.flatnonzero(solution.alpha)) == {0, 2, 4}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_xor_is_exact(method, sign):
    problem = posed(method, "xor")
    problem = replace(problem, signs=sign * problem.signs)
    solution = answer(method, problem)
    exact = method.exact
    np.testing.assert_allclose(solution.alpha, 1 / 8, atol=exact)
    assert solution.b[0] == pytest.approx(0.0, abs=exact)
    np.testing.assert_allclose(scores(problem, solution), problem.signs, atol=4 * exact)
    assert mm.certify(problem, solution).dual == pytest.approx(1 / 4, abs=exact)


def touching_hulls():
    X, y = mm.datasets.load_xor(return_X_y=True)
    yield "xor", DualProblem.hard(Linear(), X, y.astype(float))
    yield "noise", DualProblem.hard(Linear(), *blobs(50, 2, 8))
    twins = np.array([[0.3, 1.0], [2.0, 0.0], [2.0, 0.0], [0.0, -1.0]])
    yield "twins", DualProblem.hard(RBF(gamma=0.5), twins, np.array([1.0, 1.0, -1.0, -1.0]))
    origin = np.array([[1.0], [0.0], [-1.0]])
    problem = DualProblem.hard(Linear(), origin, np.array([1.0, 1.0, -1.0]))
    yield "origin", replace(problem, groups=(), sums=())


@pytest.mark.parametrize("case", list(touching_hulls()), ids=lambda case: case[0])
def test_inseparable_classes_are_refuted(method, case):
    problem = case[1]
    if not method.proves or not method.handles(problem):
        pytest.skip(f"{method.name} has no proof")
    solution = answer(method, problem)
    assert solution.status is Status.INSEPARABLE
    u = solution.multipliers
    assert u.min() >= 0
    assert u.sum() == pytest.approx(1.0, abs=1e-14)
    if problem.groups:
        assert problem.signs @ u == pytest.approx(0.0, abs=1e-14)
    K = problem.kernel(problem.X)
    assert abs((u * problem.signs) @ K @ (u * problem.signs)) <= 1e-14 * K.max()


@pytest.mark.parametrize("name", ["six points", "weighted hinge", "squared hinge", "nu", "no bias"])
def test_start_is_used_and_not_changed(method, name):
    problem = posed(method, name)
    first = answer(method, problem)
    start = first.alpha.copy()
    again = answer(method, problem, start)
    np.testing.assert_array_equal(start, first.alpha)
    assert mm.certify(problem, again).holds(method.holds)
    if method.warm:
        assert again.n_iter <= 3


@pytest.mark.parametrize("name", PROBLEMS)
def test_any_start_will_do(method, name):
    problem = posed(method, name)
    start = np.random.default_rng(9).uniform(-1.0, 2.0, problem.signs.size)
    before = start.copy(), problem.upper.copy(), problem.signs.copy()
    solution = answer(method, problem, start)
    assert mm.certify(problem, solution).holds(method.holds)
    for array, copy in zip((start, problem.upper, problem.signs), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_limits(method):
    problem = posed(method, "weighted hinge")
    some = answer(method, problem, limits=Limits(iterations=2))
    assert some.status is Status.ITERATION_LIMIT
    assert some.n_iter <= 2
    assert mm.certify(problem, some).violation > method.holds
    if method.steps:
        none = answer(method, problem, limits=Limits(seconds=0.0))
        assert none.status is Status.TIME_LIMIT
        assert none.n_iter <= 1


def test_callback_sees_and_stops(method):
    problem = posed(method, "weighted hinge")
    seen = []
    last = answer(method, problem, progress=Progress([seen.append]))
    np.testing.assert_allclose([step.objective for step in seen], last.trace.objective)
    if method.steps:
        assert (np.diff(last.trace.objective) <= 1e-10).all()
    assert seen[-1].objective == pytest.approx(-mm.certify(problem, last).dual, rel=1e-6)
    wrong = int((problem.signs * (scores(problem, last) + last.b[0]) <= 0).sum())
    assert seen[-1].errors == wrong
    stopped = answer(method, problem, progress=Progress([lambda step: True]))
    assert stopped.status is Status.STOPPED
    assert len(stopped.trace) == 1


def test_snapshot_is_a_copy(method):
    problem = posed(method, "weighted hinge")
    kept = []
    answer(method, problem, progress=Progress([lambda step: kept.append(step.snapshot())]))
    for solution in kept:
        assert solution.alpha.min() >= 0
        assert (solution.alpha <= problem.upper).all()
        assert abs(problem.signs @ solution.alpha) < method.holds
    if method.steps:
        assert not np.array_equal(kept[0].alpha, kept[-1].alpha)


def test_data_of_every_kind_give_one_answer(method):
    problem = posed(method, "weighted hinge")
    X = np.round(problem.X, 1).astype(np.float32)
    exact = replace(problem, X=X.astype(np.float64))
    expected = scores(exact, answer(method, exact))
    K = problem.kernel(X.astype(np.float64))
    for other in (
        replace(problem, X=X),
        replace(problem, X=sparse.csr_matrix(X)),
        replace(problem, X=K, kernel=Precomputed()),
    ):
        solution = answer(method, other)
        assert mm.certify(other, solution).holds(method.holds)
        np.testing.assert_allclose(K @ (solution.alpha * problem.signs), expected, atol=2e-5)


def test_rows_named_by_the_index_take_part(method):
    problem = posed(method, "weighted hinge")
    rows = np.arange(0, 120, 2)
    part = problem.restrict(rows)
    assert mm.certify(part, answer(method, part)).holds(method.holds)


@pytest.mark.parametrize("seed", range(8))
def test_degenerate_grids(seed):
    """Integer samples: ties, duplicates, no curvature, several optima."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (40, 2)).astype(float)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for problem in (
        DualProblem.hinge(Linear(), X, y, 1.0),
        DualProblem.hinge(Polynomial(2, coef0=1.0), X, y, rng.choice([0.1, 1.0, 10.0], 40)),
        DualProblem.nu(RBF(gamma=0.5), X, y, 0.5),
        DualProblem.hinge(RBF(gamma=1e-4), X, y, 100.0, bias=False),
    ):
        solution = answer(METHODS[0], problem, tol=1e-10)
        assert solution.status is Status.CONVERGED
        # Without a margin violations, and rounding, are relative to a millionth of K.
        assert mm.certify(problem, solution).holds(1e-6 if problem.total else 1e-9)


def test_active_set_beyond_one_chunk():
    X, y = blobs(700, 4, 10)
    order = np.argsort(y, kind="stable")  # the first few hundred are of one class
    X, y = X[order], y[order]
    assert 2 * Tuning.violators_per_chunk < 700
    for problem in (
        DualProblem.hinge(RBF(gamma=0.3), X, y, 3.0),
        DualProblem.nu(RBF(gamma=0.3), X, y, 0.6),
    ):
        solution = answer(METHODS[0], problem)
        assert mm.certify(problem, solution).holds(1e-9)
        free = (solution.alpha > 0) & (solution.alpha < problem.upper)
        nearly = solution.alpha * np.where(free, 1 + 1e-7 * X[:, 0], 1.0)
        polished = answer(METHODS[0], problem, nearly)
        assert mm.certify(problem, polished).holds(1e-9)
        assert polished.n_iter < 5


def test_active_set_needs_no_positive_margin_to_end():
    """Samples so close that their kernel values hardly tell the classes apart."""
    X = np.linspace(0.0, 0.03, 14)[:, np.newaxis]
    y = np.where(np.arange(14) % 3, 1.0, -1.0)
    problem = DualProblem.hard(RBF(gamma=0.5), X, y)
    solution = answer(METHODS[0], problem, limits=Limits(iterations=5000))
    assert solution.status in (Status.INSEPARABLE, Status.PATIENCE)
    if solution.status is Status.INSEPARABLE:
        u = solution.multipliers * y
        assert abs(u @ problem.kernel(X) @ u) < 1e-13


def test_active_set_ends_on_an_indefinite_kernel():
    X, y = blobs(60, 3, 11)
    kernel = Sigmoid(gamma=2.0, coef0=-1.0)
    soft = answer(METHODS[0], DualProblem.hinge(kernel, X, y, 1.0))
    assert soft.status in (Status.CONVERGED, Status.PATIENCE)
    assert abs(y @ soft.alpha) < 1e-10
    hard = answer(METHODS[0], DualProblem.hard(kernel, X, y))
    assert hard.status is not Status.CONVERGED


@pytest.mark.parametrize("compiled", [True, False])
def test_factor_follows_its_matrix(compiled, monkeypatch):
    if not compiled:
        for name in ("solve_transposed", "solve_upper", "drop_column", "add_rows"):
            monkeypatch.setattr(factors, name, getattr(factors, name).py_func)
    rng = np.random.default_rng(12)
    B = rng.standard_normal((12, 12))
    M = B @ B.T + np.eye(12)
    factor, rows = factors.Factor(), []
    for j in range(12):
        assert factor.append(M[rows, j], M[j, j], np.sqrt(M.diagonal()[[*rows, j]]), 1e-14)[0]
        rows.append(j)
    for k in (11, 0, 4):
        factor.drop(k)
        del rows[k]
        R = factor.R[: factor.size, : factor.size]
        np.testing.assert_allclose(np.triu(R).T @ np.triu(R), M[np.ix_(rows, rows)], atol=1e-12)
    b = rng.standard_normal(9)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(M[np.ix_(rows, rows)], b))
    total = np.ones(12)
    factors.add_rows(M, np.array([3, 5]), np.array([2.0, -1.0]), total)
    np.testing.assert_allclose(total, 1.0 + 2.0 * M[3] - M[5])
    twin = M[rows, rows[0]]
    independent, x = factor.append(
        twin, M[rows[0], rows[0]], np.sqrt(M.diagonal()[[*rows, 1]]), 1e-14
    )
    assert not independent
    np.testing.assert_allclose(x, np.eye(9)[0], atol=1e-12)


# The public matrices ----------------------------------------------------------------------------


def test_textbook_matrices_of_the_six_points():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    hard = qp.dual_qp(X, y, C=np.inf)
    np.testing.assert_array_equal(hard.P[0], [37, 61, 70, -17, -43, -34])
    np.testing.assert_array_equal(hard.q, -np.ones(6))
    np.testing.assert_array_equal(hard.G, -np.eye(6))
    np.testing.assert_array_equal(hard.h, np.zeros(6))
    np.testing.assert_array_equal(hard.A, [[1, 1, 1, -1, -1, -1]])
    np.testing.assert_array_equal(hard.b, [0])
    soft = qp.dual_qp(X, y, C=3.0)
    np.testing.assert_array_equal(soft.G, np.vstack([np.eye(6), -np.eye(6)]))
    np.testing.assert_array_equal(soft.h, [3.0] * 6 + [0.0] * 6)
    squared = qp.dual_qp(X, y, C=500.0, loss="squared_hinge")
    np.testing.assert_allclose(squared.P - hard.P, 0.001 * np.eye(6), atol=1e-12)
    np.testing.assert_array_equal(squared.G, hard.G)
    nu = qp.dual_qp(X, y, nu=0.5)
    np.testing.assert_array_equal(nu.q, np.zeros(6))
    np.testing.assert_array_equal(nu.G[-1], -np.ones(6))
    assert nu.h[-1] == -0.5


def test_second_class_in_sorted_order_is_positive():
    program = qp.dual_qp([[0.0], [1.0]], ["pear", "apple"])
    np.testing.assert_array_equal(program.A, [[1, -1]])


@pytest.mark.parametrize("library", ["auto", "piqp", "clarabel"])
def test_worked_examples_as_programs(library):
    pytest.importorskip("piqp" if library == "auto" else library)
    X, y = mm.datasets.load_six_points(return_X_y=True)
    answer = qp.solve(qp.dual_qp(X, y, C=np.inf), library)
    assert answer.status is qp.QPStatus.SOLVED
    np.testing.assert_allclose(answer.x, SIX_ALPHA, atol=1e-8)
    assert answer.equality[0] == pytest.approx(2 / 15, abs=1e-7)  # b
    assert answer.inequality.min() >= 0
    assert max(answer.primal_residual, answer.dual_residual, answer.gap) < 1e-8
    assert answer.objective == pytest.approx(-17 / 225, abs=1e-9)
    # With 0.001·I added to H, as some notes do for stability.
    ridged = qp.solve(qp.dual_qp(X, y, C=500.0, loss="squared_hinge"), library)
    np.testing.assert_allclose(
        ridged.x, [0.035554, 0, 0.039998, 0, 0.075551, 0], atol=5e-7
    )  # fmt: skip


@pytest.mark.parametrize("library", ["piqp", "clarabel"])
def test_general_programs(library):
    pytest.importorskip(library)
    none = np.empty((0, 2)), np.empty(0)
    # Several bounds of one variable, scaled, one at ∞, and a row of two variables.
    G = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, -4.0], [0.0, 1.0], [1.0, 1.0]])
    h = np.array([1.0, 3.0, 4.0, np.inf, 0.2])
    program = qp.QP(np.eye(2), np.array([-3.0, 2.0]), G, h, *none)
    solved = qp.solve(program, library)
    assert solved.status is qp.QPStatus.SOLVED
    np.testing.assert_allclose(solved.x, [0.5, -1.0], atol=1e-7)
    stationary = program.P @ solved.x + program.q + G.T @ solved.inequality
    np.testing.assert_allclose(stationary, 0.0, atol=1e-7)
    np.testing.assert_allclose(solved.inequality[[1, 3, 4]], 0.0, atol=1e-7)
    unbounded = qp.solve(
        qp.QP(np.diag([1.0, 0.0]), np.array([0.0, -1.0]), -np.eye(2), np.zeros(2), *none), library
    )
    assert unbounded.status is qp.QPStatus.UNBOUNDED
    np.testing.assert_allclose(unbounded.x, [0.0, 1.0], atol=1e-6)
    crossed = qp.QP(np.eye(1), np.zeros(1), np.array([[1.0], [-1.0]]), -np.ones(2), *(
        np.empty((0, 1)), np.empty(0)
    ))  # fmt: skip
    assert qp.solve(crossed, library).status is qp.QPStatus.INFEASIBLE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C=0.0 is not positive"),
        ({"C": np.nan}, "not positive"),
        ({"C": [1.0, 2.0]}, "C has shape"),
        ({"loss": "huber"}, "loss='huber'"),
        ({"nu": 0.9}, "nu=0.9 is infeasible"),
        ({"nu": 0.2, "C": 2.0}, "nu=0.2 replaces C"),
        ({"kernel": "precomputed"}, "must be square"),
        ({"y": [1, 1, 1, 1]}, "2 classes, y holds 1"),
        ({"y": [1, 2, 3, 1]}, "2 classes, y holds 3"),
        ({"y": [1, 2]}, "inconsistent"),
        ({"X": [[np.nan, 0.0]] * 4}, "NaN"),
    ],
)
def test_bad_input_is_named(options, message):
    given = {"X": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], "y": [0, 1, 1, 1], **options}
    with pytest.raises(ValueError, match=message):
        qp.dual_qp(given.pop("X"), given.pop("y"), **given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"P": np.ones((2, 3))}, "P has shape"),
        ({"P": np.array([[1.0, 1.0], [0.0, 1.0]])}, "not symmetric"),
        ({"q": np.array([np.nan, 0.0])}, "q holds NaN"),
        ({"h": np.array([np.nan, 0.0])}, "h holds NaN"),
        ({"A": np.ones((2, 2))}, "A has shape"),
    ],
)
def test_bad_programs_are_named(change, message):
    program = qp.QP(np.eye(2), np.zeros(2), -np.eye(2), np.zeros(2), np.ones((1, 2)), np.ones(1))
    with pytest.raises(ValueError, match=message):
        qp.solve(replace(program, **change))


def test_unknown_and_missing_libraries(monkeypatch):
    program = qp.dual_qp([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="solver='cplex' is none"):
        qp.solve(program, "cplex")
    monkeypatch.setattr(qp_program, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[qp\]"'):
        qp.solve(program)


def test_too_large_a_program_is_refused(monkeypatch):
    monkeypatch.setattr(qp_solver, "free_memory", lambda: 1000)
    problem = two_samples()
    assert answer(METHODS[1], problem).status is Status.CONVERGED
    with pytest.raises(ValueError, match='solver="decomposition"'):
        answer(METHODS[1], weighted_hinge())
