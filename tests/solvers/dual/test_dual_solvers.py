"""Every solver of the dual on every kind of classification problem, by its certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC, LinearSVC, NuSVC

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Precomputed
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from tests.helpers.dual_solvers import METHODS, PROBLEMS, SIX_ALPHA, answer, blobs, posed, scores


@pytest.fixture(params=METHODS, ids=lambda method: method.name)
def method(request):
    pytest.importorskip(request.param.needs)
    return request.param


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
