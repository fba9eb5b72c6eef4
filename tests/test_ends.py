"""Every fit ends, with a proof or a warning, and with the best model that it has seen."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import qp
from maxmargin.certificates.compensated import Doubled, combine
from maxmargin.engines.cpu.features import Features
from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Solution, Status
from maxmargin.solvers.best_seen import BestSeen
from maxmargin.solvers.dual.active_set import ActiveSet
from maxmargin.solvers.dual.feature_space import FeatureSpace
from maxmargin.solvers.dual.interior_point import DualInteriorPoint
from maxmargin.solvers.dual.optimality import Optimality, best_bias, exactly_balanced
from maxmargin.solvers.dual.qp.libraries import Answer, Program, TimeUpError

TOL = 1e-3


def noisy(n, d=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def separable(n=6000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += y
    return X, y


def quiet_fit(model, X, y, **options):
    """Return the model, and whether it warned of its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **options)
    return model, any(issubclass(w.category, ConvergenceWarning) for w in caught)


def assert_proved(model, tol=TOL):
    certificate = model.certificate_
    assert certificate.holds(tol), certificate
    assert certificate.relative_gap <= 2.0 * tol, certificate
    assert model.status_ is Status.CONVERGED


def p_of_nothing(y, C, loss="hinge"):
    """Return P(0, b) at the best b."""
    few, many = sorted([np.sum(y == label) for label in np.unique(y)])
    if loss == "hinge":
        return 2.0 * C * few
    return 4.0 * C * few * many / (few + many)


# A linear kernel is the linear machine ---------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
def test_linear_kernel_is_solved_whatever_its_scale(loss, scale, fit_intercept, C):
    X, y = noisy(300, 2)
    model = mm.SVC(C=C, kernel="linear", loss=loss, fit_intercept=fit_intercept)
    model, warned = quiet_fit(model, scale * X, y)
    # Rounding of α alone changes y g(x) by about ε Σ α ‖x‖².
    if 2e-16 * 300 * C * scale**2 < 0.1 * TOL:
        assert_proved(model)
    else:
        assert warned or model.certificate_.holds(TOL)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5])
def test_separable_classes_have_their_gap_at_any_scale(scale):
    X, y = separable()
    model = mm.SVC(kernel="linear").fit(scale * X, y)
    assert_proved(model)
    assert model.certificate_.primal * scale**2 == pytest.approx(0.498419, rel=1e-3)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_kernel_agrees_with_the_linear_machine(make, dtype):
    X, y = noisy(4000, 6)
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(dtype)
    model = mm.SVC(kernel="linear").fit(make(X), y)
    assert_proved(model)
    plane = mm.LinearSVC(loss="hinge", tol=1e-8).fit(X.astype(np.float64), y)
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    assert np.allclose(coef, plane.coef_, atol=1e-4)
    assert np.allclose(model.intercept_, plane.intercept_, atol=1e-4)


def test_linear_kernel_with_weights_and_many_classes():
    X, _ = noisy(1500, 4)
    rng = np.random.default_rng(1)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=1500), [-1.0, 0.0, 1.0])
    weights = rng.uniform(0.0, 3.0, size=1500)
    weights[::7] = 0.0
    for multi_class in ("ovo", "ovr"):
        model = mm.SVC(kernel="linear", class_weight={0: 50.0}, multi_class=multi_class)
        model.fit(X, y, sample_weight=weights)
        assert all(status is Status.CONVERGED for status in model.statuses_)
        assert all(c.holds(TOL) and c.relative_gap <= 2 * TOL for c in model.certificates_)


def test_linear_kernel_keeps_callbacks_limits_and_warm_starts():
    X, y = noisy(4000, 3)
    steps = []
    model = mm.SVC(kernel="linear", callback=steps.append).fit(X, y)
    assert model.n_iter_[0] == len(steps) == len(model.trace_) > 1
    assert np.all(np.diff(model.trace_.primal) <= 0.0)  # the best so far is shown
    stopped, warned = quiet_fit(mm.SVC(kernel="linear", callback=lambda step: True), X, y)
    assert stopped.status_ is Status.STOPPED
    assert not warned
    limited, warned = quiet_fit(mm.SVC(kernel="linear", max_iter=2), X, y)
    assert limited.status_ is Status.ITERATION_LIMIT
    assert warned
    again = mm.SVC(kernel="linear", warm_start=True).fit(X, y)
    first = again.n_iter_[0]
    assert again.fit(X, y).n_iter_[0] <= first
    assert_proved(again)


def test_steps_show_p_and_d_of_what_they_hand_out():
    X, y = noisy(200, 3)
    problem = DualProblem.hinge(Linear(), X, y, 1.0)
    seen = []

    def look(step):
        solution = step.snapshot()
        certificate = mm.certify(problem, solution)
        seen.append((step.primal, certificate.primal, step.dual, certificate.dual))

    FeatureSpace(Features(X)).solve(problem, None, Progress([look]))
    primal, true_primal, dual, true_dual = np.array(seen).T
    assert np.allclose(primal, true_primal, rtol=1e-9)
    assert np.allclose(dual, true_dual, rtol=1e-9, atol=1e-9)


# Rows far from the origin ----------------------------------------------------------------------


def exact_violation(model, X, y):
    """Return the worst violation of the KKT conditions of a hinge machine, in rationals."""
    signs = np.where(y == model.classes_[1], 1, -1)
    beta = dict(zip(model.support_, map(Fraction, model.dual_coef_[0]), strict=True))
    rows = [[Fraction(value) for value in row] for row in X]
    w = [sum(c * rows[i][j] for i, c in beta.items()) for j in range(X.shape[1])]
    b, C, worst = Fraction(model.intercept_[0]), Fraction(model.C), Fraction(0)
    for i, row in enumerate(rows):
        margin = signs[i] * (sum(p * q for p, q in zip(w, row, strict=True)) + b)
        alpha = abs(beta.get(i, Fraction(0)))
        worst = max(worst, 1 - margin if alpha < C else 0, margin - 1 if alpha > 0 else 0)
    return float(worst)


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("solver", ["auto", "smo", "decomposition", "active-set", "qp"])
def test_a_shift_of_all_rows_changes_nothing_but_b(offset, solver):
    if solver == "qp":
        pytest.importorskip("piqp")
    X, y = noisy(40, 3)
    plain = mm.SVC(kernel="linear").fit(X, y)
    model, _ = quiet_fit(mm.SVC(kernel="linear", solver=solver), X + offset, y)
    assert exact_violation(model, X + offset, y) <= TOL
    assert np.allclose(model.coef_, plain.coef_, atol=2e-3)


def test_balance_is_restored_to_the_last_digit():
    rng = np.random.default_rng(0)
    y = np.where(rng.normal(size=200) > 0, 1.0, -1.0)
    alpha = np.clip(rng.normal(size=200), 0.0, 1.0)
    heavy = y == np.sign(y @ alpha)
    free = heavy & (alpha > 0) & (alpha < 1)
    alpha[free] *= 1.0 - abs(y @ alpha) / alpha[free].sum()
    assert 0.0 < abs(sum(map(Fraction, y * alpha))) < 1e-12
    result = exactly_balanced(alpha, y, np.ones(200))
    assert sum(map(Fraction, y * result)) == 0
    assert np.allclose(result, alpha, rtol=1e-12)
    assert np.array_equal(result[(alpha == 0) | (alpha == 1)], alpha[(alpha == 0) | (alpha == 1)])


# Small duals end -------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rbf_of_any_cost_ends_with_its_proof(C, loss):
    X, y = noisy(300)
    assert_proved(mm.SVC(C=C, loss=loss).fit(X, y))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_large_kernel_values_end(loss):
    X, y = noisy(600)
    started = time.perf_counter()
    model = mm.SVC(kernel="poly", gamma=1.0, coef0=1.0, loss=loss)
    model, warned = quiet_fit(model, 10.0 * X, y)
    assert time.perf_counter() - started < 30.0  # one or two seconds on a machine of its own
    # What rounding of such values can do may be more than tol; what is known of it is not.
    certificate = model.certificate_
    assert certificate.violation <= TOL
    assert certificate.relative_gap <= 2.0 * TOL
    assert certificate.holds(TOL) or warned


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("nu", [0.05, 0.5])
@pytest.mark.filterwarnings("ignore:.*positive semidefinite")
def test_nu_machines_end_with_their_proof(kernel, nu):
    X, y = noisy(300)
    assert_proved(mm.NuSVC(nu=nu, kernel=kernel).fit(X, y))


@pytest.mark.parametrize("coef0", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.filterwarnings("ignore:.*positive semidefinite")
def test_indefinite_kernels_end(coef0, C):
    X, y = noisy(300)
    model = mm.SVC(C=C, kernel="sigmoid", gamma=1.0, coef0=coef0)
    model, warned = quiet_fit(model, X, y)
    assert warned or model.certificate_.holds(TOL)


def test_columns_of_far_apart_scales_end_with_a_warning():
    X, y = noisy(40)
    X = X * [1e-8, 1.0, 1e8]
    for solver in ("auto", "active-set", "smo"):
        model, warned = quiet_fit(mm.SVC(kernel="linear", solver=solver), X, y)
        assert warned or model.certificate_.holds(TOL)
        assert model.certificate_.primal <= p_of_nothing(y, 1.0) * (1 + 1e-9)


PROBLEMS = {
    "rbf": lambda X, y: DualProblem.hinge(RBF(0.3), X, y, 1e4),
    "rbf, squared": lambda X, y: DualProblem.squared_hinge(RBF(0.3), X, y, 1e8),
    "nu": lambda X, y: DualProblem.nu(RBF(0.3), X, y, 0.3),
    "nu, no margin": lambda X, y: DualProblem.nu(Linear(), X, y, 0.1),
    "poly": lambda X, y: DualProblem.hinge(Polynomial(3, coef0=1.0), 10 * X, y, 1.0),
    "weights": lambda X, y: DualProblem.hinge(RBF(0.3), X, y, np.geomspace(1e-3, 1e3, len(y))),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_dual_interior_point_solves(name):
    X, y = noisy(200)
    problem = PROBLEMS[name](X, y)
    gram = Gram(problem.kernel, problem.X, dtype=np.float64)
    solution = DualInteriorPoint(gram, TOL).solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    certificate = mm.certify(problem, solution)
    assert certificate.holds(TOL)
    assert certificate.relative_gap <= 2 * TOL


def test_dual_interior_point_agrees_with_the_active_set():
    X, y = noisy(150)
    problem = DualProblem.hinge(RBF(0.3), X, y, 1.0)
    gram = Gram(problem.kernel, X)
    inside = DualInteriorPoint(gram, 1e-7).solve(problem, None, Progress())
    exact = ActiveSet(gram).solve(problem, None, Progress())
    assert np.allclose(inside.alpha, exact.alpha, atol=1e-5)
    assert inside.b == pytest.approx(exact.b, abs=1e-5)


def test_dual_interior_point_keeps_its_limits():
    X, y = noisy(100)
    problem = DualProblem.hinge(RBF(0.3), X, y, 1.0)
    solver = DualInteriorPoint(Gram(problem.kernel, X), TOL, Limits(2))
    assert solver.solve(problem, None, Progress()).status is Status.ITERATION_LIMIT
    stopped = DualInteriorPoint(Gram(problem.kernel, X), TOL)
    assert stopped.solve(problem, None, Progress([lambda step: True])).status is Status.STOPPED


def test_active_set_gives_up_after_so_much_work():
    X, y = noisy(300)
    problem = DualProblem.hinge(RBF(0.3), X, y, 1e6)
    solution = ActiveSet(Gram(problem.kernel, X), work=1e7).solve(problem, None, Progress())
    assert solution.status is Status.PATIENCE
    assert solution.n_iter <= 51


@pytest.mark.parametrize("solver", ["smo", "decomposition", "coordinate-ascent"])
def test_named_solvers_end_where_they_creep(solver):
    """In a process of its own: without an end this is a hang."""
    code = f"""
        import warnings, numpy as np, maxmargin as mm
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 3))
        y = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = mm.SVC(kernel="linear", solver={solver!r},
                           fit_intercept={solver != "coordinate-ascent"}).fit(1e4 * X, y)
        print(model.status_, "use solver='auto'" in str(caught[-1].message))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "patience ran out True", done.stderr


# The best that was seen ------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("max_iter", [1, 3, 30])
@pytest.mark.parametrize("solver", ["auto", "smo", "decomposition", "active-set"])
def test_an_unfinished_kernel_machine_is_no_worse_than_nothing(loss, C, max_iter, solver):
    X, y = noisy(200, 5)
    nothing = p_of_nothing(y, C, loss) * (1 + 1e-9)
    for kernel in ("linear", "rbf", "poly"):
        model = mm.SVC(C=C, loss=loss, solver=solver, kernel=kernel, max_iter=max_iter)
        model, _ = quiet_fit(model, 10.0 * X, y)
        assert model.certificate_.primal <= nothing
        trace = model.trace_
        known = np.isfinite(trace.primal) & np.isfinite(trace.dual)
        assert np.all(trace.dual[known] <= trace.primal[known] * (1 + 1e-9))


@pytest.mark.parametrize("solver", ["newton", "interior-point", "coordinate-descent"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_an_unfinished_linear_machine_is_no_worse_than_nothing(solver, loss):
    X, y = noisy(200, 5)
    for C in (1.0, 1e4):
        for max_iter in (1, 3):
            model = mm.LinearSVC(C=C, loss=loss, solver=solver, max_iter=max_iter)
            model, _ = quiet_fit(model, 1e3 * X, y)
            assert model.certificate_.primal <= p_of_nothing(y, C, loss) * (1 + 1e-9)


def test_an_unfinished_joint_machine_is_no_worse_than_nothing():
    X, _ = noisy(400, 5)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for C in (1.0, 1e3):
        for scale in (1.0, 1e3):
            model = mm.LinearSVC(C=C, multi_class="crammer_singer", max_iter=1)
            model, _ = quiet_fit(model, scale * X, y)
            assert model.certificate_.primal <= C * 400 * (1 + 1e-9)


def test_best_seen_keeps_the_least_p():
    progress = Progress()
    seen = BestSeen(progress)
    for primal in (5.0, 2.0, 3.0, np.nan):
        alpha = np.array([primal])
        solution = Solution(np.empty((0, 0)), np.zeros(1), Status.STOPPED, alpha=alpha)
        seen.iteration(0.0, 0, 0.0, lambda solution=solution: solution, primal=primal)
    assert seen.primal == 2.0
    assert seen.best.alpha[0] == 2.0
    assert len(progress.history) == 4  # the trace is shared
    last = Solution(np.empty((0, 0)), np.zeros(1), Status.TIME_LIMIT, alpha=np.array([3.0]))
    assert seen.better_than(last, 3.0).alpha[0] == 2.0
    assert seen.better_than(last, 3.0).status is Status.TIME_LIMIT
    assert seen.better_than(last, 1.0) is last


@pytest.mark.parametrize("nu", [None, 0.4])
def test_best_bias_has_the_least_p(nu):
    X, y = noisy(60)
    problem = DualProblem.hinge(RBF(0.3), X, y, np.linspace(0.1, 2.0, 60))
    if nu is not None:
        problem = DualProblem.nu(RBF(0.3), X, y, nu)
    rng = np.random.default_rng(3)
    alpha = rng.uniform(0.0, 1.0, size=60) * problem.upper
    scores = problem.kernel(X) @ (alpha * y)
    best = Optimality.of(problem, alpha, scores, b=best_bias(problem, scores)).primal
    others = [Optimality.of(problem, alpha, scores, b=b).primal for b in np.linspace(-5, 5, 2001)]
    assert best <= min(others) + 1e-12


def test_optimality_agrees_with_the_certificate():
    X, y = noisy(80)
    for problem in (PROBLEMS["rbf"](X, y), PROBLEMS["nu"](X, y), PROBLEMS["rbf, squared"](X, y)):
        gram = Gram(problem.kernel, X)
        solution = DualInteriorPoint(gram, TOL, Limits(8)).solve(problem, None, Progress())
        support = np.flatnonzero(solution.alpha)
        scores = gram.dot(support, (solution.alpha * y)[support])
        point = Optimality.of(problem, solution.alpha, scores, 1.0, float(solution.b[0]))
        certificate = mm.certify(problem, solution)
        # The certificate's are bounds, rounding included.
        size = max(abs(certificate.primal), abs(certificate.dual))
        assert point.primal == pytest.approx(certificate.primal, abs=1e-7 * size)
        assert point.dual == pytest.approx(certificate.dual, abs=1e-7 * size)
        assert point.violation == pytest.approx(certificate.violation, rel=1e-6, abs=1e-9)
        assert point.gap == pytest.approx(certificate.relative_gap, rel=1e-6, abs=1e-7)


# Limits of time --------------------------------------------------------------------------------


def test_the_clock_counts_from_the_beginning_of_the_fit():
    X, y = noisy(4500, 3)
    quiet_fit(mm.SVC(C=1e5, gamma=1.0, max_iter=5000), X, y)  # compiles
    started = time.perf_counter()
    model, warned = quiet_fit(mm.SVC(C=1e5, gamma=1.0, time_limit=1.0), X, y)
    assert time.perf_counter() - started < 4.0  # on a busy machine
    assert model.status_ is Status.TIME_LIMIT
    assert warned
    assert not hasattr(model, "_clock")


def test_an_iteration_that_would_end_beyond_the_limit_is_not_begun():
    progress = Progress()
    progress.history = [(1, 0.0, 0, 0.0, 0.0), (2, 0.0, 0, 0.0, 10.0)]
    assert progress.expected_seconds == pytest.approx(5.0, abs=1.0)
    assert Limits(None, 4.0).reached(2, progress) is Status.TIME_LIMIT
    assert Limits(None, 7.0).reached(2, progress) is None


# Quadratic programs ----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_qp_answers_are_proved(scale, fit_intercept, loss, kernel):
    pytest.importorskip("piqp")
    for seed in range(3):
        X, y = noisy(60, 2, seed)
        model = mm.SVC(kernel=kernel, loss=loss, fit_intercept=fit_intercept, solver="qp")
        assert_proved(model.fit(scale * X, y))


@pytest.mark.parametrize("library", ["piqp", "clarabel"])
def test_a_program_is_answered_alike_in_another_process(library):
    pytest.importorskip(library)
    X, y = noisy(50)
    program = qp.dual_qp(X, y, kernel="rbf", gamma=0.3)
    arrays = program.P, program.q, program.G, program.h, program.A, program.b
    asked = Program(*arrays, library, 1e-9, 60)
    here, there = asked.answer(), asked.answer_elsewhere()
    assert here.status == there.status == "solved"
    assert here.n_iter == there.n_iter
    for name in ("x", "y", "z"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    again = Answer.unpacked(here.packed())
    assert np.array_equal(again.x, here.x)
    assert again.status == here.status


def test_a_program_is_left_when_the_time_is_up():
    pytest.importorskip("piqp")
    X, y = noisy(1500)
    program = qp.dual_qp(X, y, kernel="rbf", gamma=0.3)
    started = time.perf_counter()
    answer = qp.solve(program, "piqp", limits=Limits(None, 0.2))
    assert time.perf_counter() - started < 2.0  # its matrices are looked at, too
    assert answer.status is qp.QPStatus.TIME_LIMIT
    assert not answer.x.any()
    with pytest.raises(TimeUpError):
        Program(*vars(program).values(), "piqp", 1e-9, 60, 0.01).answer_elsewhere()


def test_a_failure_of_the_library_says_so():
    pytest.importorskip("piqp")
    X, y = noisy(5)
    program = qp.dual_qp(X, y)
    wrong = Program(program.P, program.q[:3], *list(vars(program).values())[2:], "piqp", 1e-9, 60)
    with pytest.raises(RuntimeError, match="piqp failed"):
        wrong.answer_elsewhere()


# Sums of many terms ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_sums_in_halves_have_twice_the_digits(n):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-8, 9, size=(n, 3))
    c = rng.normal(size=n)
    start = Doubled(np.ones(3), np.zeros(3))
    total = combine(start, rows, c)
    for j in range(3):
        terms = [Fraction(x) * Fraction(k) for x, k in zip(rows[:, j], c, strict=True)]
        exact, size = 1 + sum(terms), 1 + sum(map(abs, terms))
        found = Fraction(total.high[j]) + Fraction(total.low[j])
        assert abs(found - exact) <= Fraction(1e-29) * size
