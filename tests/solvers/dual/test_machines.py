"""Regression and one-class machines, posed by hand as instances of the one dual record."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.svm import SVR, NuSVR, OneClassSVM

import maxmargin as mm
from maxmargin.certificates import dual_tasks as certificate_formulas
from maxmargin.engines.cpu.gram import Gram, GramView
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Solution, Status
from maxmargin.solvers.dual import optimality
from maxmargin.solvers.dual.active_set import ActiveSet
from maxmargin.solvers.dual.choice import Dual, WarmStart
from maxmargin.solvers.dual.decomposition import Decomposition
from maxmargin.solvers.dual.interior_point import DualInteriorPoint
from maxmargin.solvers.dual.qp import QuadraticProgram

KERNEL = RBF(gamma=0.5)


def samples(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n)


def weights(n=80):
    return np.random.default_rng(1).uniform(0.5, 2.0, n)


X, Y = samples()
REGRESSIONS = {
    "epsilon": lambda: DualProblem.regression(KERNEL, X, Y, 1.0, 0.1),
    "epsilon, costs": lambda: DualProblem.regression(KERNEL, X, Y, weights(), 0.1),
    "epsilon, far targets": lambda: DualProblem.regression(KERNEL, X, Y + 1e4, 1.0, 0.1),
    "epsilon, linear": lambda: DualProblem.regression(Linear(), X, Y, 1.0, 0.1),
    "epsilon, polynomial": lambda: DualProblem.regression(
        Polynomial(2, coef0=1.0), X, Y, 0.1, 0.05
    ),
    "nu": lambda: DualProblem.nu_regression(KERNEL, X, Y, 2.0, 0.4),
    "nu, costs": lambda: DualProblem.nu_regression(KERNEL, X, Y, weights(), 0.3),
}
OTHERS = {
    "squared": lambda: DualProblem.regression(KERNEL, X, Y, 1.0, 0.1, squared=True),
    "no bias": lambda: DualProblem.regression(KERNEL, X, Y, 1.0, 0.1, bias=False),
    "wide tube": lambda: DualProblem.regression(KERNEL, X, Y, 1.0, 5.0),
}
ONE_CLASS = {
    "one class": lambda: DualProblem.one_class(KERNEL, X, 0.3),
    "one class, weights": lambda: DualProblem.one_class(KERNEL, X, 0.3, weights()),
    "one class, linear": lambda: DualProblem.one_class(Linear(), X + 3.0, 0.2),
}


def in_beta(problem):
    """Pose a machine in β = sα, with signs of 1 and bounds below 0."""
    ends = problem.signs * problem.lower, problem.signs * problem.upper
    return replace(
        problem,
        signs=np.ones(problem.n_variables),
        p=problem.signs * problem.p,
        lower=np.minimum(*ends),
        upper=np.maximum(*ends),
    )


LABELS = np.where(Y > 0, 1.0, -1.0)
OTHERS |= {
    "hinge in β": lambda: in_beta(DualProblem.hinge(KERNEL, X, LABELS, 1.0)),
    "no bias in β": lambda: in_beta(DualProblem.hinge(KERNEL, X, LABELS, 1.0, bias=False)),
    "nu in β": lambda: in_beta(DualProblem.nu(KERNEL, X, LABELS, 0.4)),
    "α of at least 0.1": lambda: replace(
        DualProblem.hinge(KERNEL, X, LABELS, 1.0), lower=np.full(80, 0.1)
    ),
}
MACHINES = REGRESSIONS | OTHERS | ONE_CLASS


def exact_gram(problem):
    return Gram(problem.kernel, problem.X, problem.index, dtype=np.float64)


def in_float32(problem):
    fast = Gram(problem.kernel, problem.X, problem.index, dtype=np.float32)
    exact = Gram(problem.kernel, problem.X, dtype=np.float64)
    return Decomposition(fast, GramView(exact, problem.index), 1e-4)


def on_the_whole(problem):
    gram = exact_gram(problem)
    gram.whole()
    return Decomposition(gram, None, 1e-7, working_set=problem.n_variables)


def quadratic_program(library, problem):
    pytest.importorskip(library)
    return QuadraticProgram(exact_gram(problem), solver=library)


SOLVERS = {
    "active set": lambda problem: ActiveSet(exact_gram(problem)),
    "decomposition": lambda problem: Decomposition(exact_gram(problem), None, 1e-7),
    "decomposition in parts": lambda problem: Decomposition(
        exact_gram(problem), None, 1e-7, working_set=32
    ),
    "decomposition in float32": in_float32,
    "SMO or coordinate ascent": on_the_whole,
    "interior point": lambda problem: DualInteriorPoint(exact_gram(problem), 1e-7),
    "piqp": partial(quadratic_program, "piqp"),
    "clarabel": partial(quadratic_program, "clarabel"),
}
TOLERANCES = {"decomposition in float32": 1e-4, "clarabel": 1e-4}


def solved(problem, name="active set"):
    return SOLVERS[name](problem).solve(problem, None, Progress())


def scores(problem, solution):
    """Return g(x) of every row of X."""
    K = problem.kernel(problem.X, problem.X[problem.index])
    return K @ (problem.signs * solution.alpha) + solution.b[0]


def coefficients(problem, solution):
    """Return α − α* of every row of X."""
    beta = np.zeros(problem.X.shape[0])
    np.add.at(beta, problem.index, problem.signs * solution.alpha)
    return beta


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", MACHINES)
def test_every_solver_certifies_every_machine(name, solver):
    problem = MACHINES[name]()
    solution = solved(problem, solver)
    certificate = mm.certify(problem, solution)
    assert solution.status is Status.CONVERGED
    assert certificate.holds(TOLERANCES.get(solver, 1e-6))
    assert certificate.coverage == "complete"


@pytest.mark.parametrize("solver", ["auto", "decomposition", "pairs", "active-set", "qp"])
@pytest.mark.parametrize("name", MACHINES)
def test_the_choice_of_solvers_answers_every_machine(name, solver):
    problem = MACHINES[name]()
    if solver == "pairs":
        solver = "smo" if problem.groups else "coordinate-ascent"
    dual = Dual.of(problem.kernel, problem.X, solver, 1e-6)
    solution = dual.solve(problem, None, Progress(), Limits())
    assert solution.status is Status.CONVERGED
    assert mm.certify(problem, solution).holds(1e-6)
    again = dual.solve(problem, WarmStart(solution.alpha, None), Progress(), Limits())
    assert again.n_iter <= solution.n_iter
    assert mm.certify(problem, again).holds(1e-6)


def reference(name, problem):
    """Return scikit-learn's machine of a problem that is posed above."""
    K = problem.kernel(problem.X)
    n = len(K)
    if name in ONE_CLASS:
        nu = problem.sums[0] / problem.upper.sum()
        model = OneClassSVM(nu=nu, kernel="precomputed", tol=1e-10)
        return model.fit(K, sample_weight=problem.upper)
    cost = problem.upper[:n]
    if name.startswith("nu"):
        # Its C·weight is LIBSVM's C of a sample.
        model = NuSVR(nu=problem.total / cost.sum(), C=1.0, kernel="precomputed", tol=1e-10)
        return model.fit(K, problem.p[n:], sample_weight=cost)
    epsilon = 0.5 * (problem.p[:n] + problem.p[n:])
    model = SVR(C=1.0, epsilon=epsilon[0], kernel="precomputed", tol=1e-10)
    return model.fit(K, problem.p[n:] - epsilon, sample_weight=cost)


@pytest.mark.parametrize("name", REGRESSIONS | ONE_CLASS)
def test_agrees_with_scikit_learn(name):
    problem = MACHINES[name]()
    solution = solved(problem)
    model = reference(name, problem)
    expected = np.zeros(problem.X.shape[0])
    expected[model.support_] = model.dual_coef_[0]
    # LIBSVM keeps its kernel values in float32.
    np.testing.assert_allclose(coefficients(problem, solution), expected, atol=2e-4)
    assert solution.b[0] == pytest.approx(model.intercept_[0], rel=1e-6, abs=2e-4)
    K = problem.kernel(problem.X)
    linear = 0.0
    if name not in ONE_CLASS:
        n = len(expected)
        signed = problem.p.reshape(2, n)
        linear = 0.5 * (signed[0] - signed[1]) @ expected + 0.5 * signed.sum(axis=0) @ abs(expected)
    value = 0.5 * expected @ K @ expected + linear
    dual = mm.certify(problem, solution).dual
    if name not in ("nu, costs",):  # α and α* of the same row may both be positive
        assert -dual == pytest.approx(value, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", range(3))
def test_certificate_and_solvers_agree(name, seed):
    """Both have formulas of their own for P, D and the violation."""
    problem = MACHINES[name]()
    rng = np.random.default_rng(seed)
    alpha = np.minimum(rng.exponential(size=problem.n_variables), problem.upper)
    alpha = optimality.Constraints.of(problem).nearest(alpha)
    plain = problem.kernel(problem.X)[np.ix_(problem.index, problem.index)] @ (
        problem.signs * alpha
    )
    b = float(rng.normal()) if problem.groups else 0.0
    largest = float(problem.kernel.diagonal(problem.X).max())
    seen = optimality.Optimality.of(problem, alpha, plain, largest, b)
    certificate = mm.certify(problem, Solution(np.empty((0, 0)), np.array([b]), Status.STOPPED,
                                               alpha=alpha))  # fmt: skip
    assert certificate.primal == pytest.approx(seen.primal, rel=1e-9)
    assert certificate.dual == pytest.approx(seen.dual, rel=1e-8, abs=1e-8 * abs(seen.primal))
    assert certificate.relative_gap == pytest.approx(seen.gap, rel=1e-6)
    assert certificate.violation == pytest.approx(seen.violation, rel=1e-9)
    square = float((problem.signs * alpha) @ plain)
    margins = problem.signs * (plain + b)
    assert certificate_formulas.primal_value(problem, square, margins, b) == pytest.approx(
        optimality.primal_value(problem, square, plain, b), rel=1e-12
    )


@pytest.mark.parametrize("name", MACHINES)
def test_wrong_answers_are_not_certified(name):
    problem = MACHINES[name]()
    solution = solved(problem)
    rng = np.random.default_rng(0)

    def holds(alpha, b):
        wrong = Solution(np.empty((0, 0)), np.array([b]), Status.CONVERGED, alpha=alpha)
        return mm.certify(problem, wrong).holds(1e-4)

    assert holds(solution.alpha, solution.b[0])
    if problem.groups and name != "wide tube":
        assert not holds(solution.alpha, solution.b[0] + 0.1)
    noise = solution.alpha + 0.05 * rng.random(problem.n_variables)
    assert not holds(noise, solution.b[0])
    if solution.alpha.any():
        assert not holds(0.9 * solution.alpha, solution.b[0])


# Limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("squared", [False, True])
def test_a_tube_as_wide_as_the_targets_leaves_no_weights(squared):
    half = 0.5 * (Y.max() - Y.min())
    problem = DualProblem.regression(KERNEL, X, Y, 1.0, half, squared=squared)
    solution = solved(problem)
    assert not solution.alpha.any()
    assert solution.b[0] == pytest.approx(0.5 * (Y.max() + Y.min()))
    narrower = DualProblem.regression(KERNEL, X, Y, 1.0, 0.99 * half, squared=squared)
    assert solved(narrower).alpha.any()


@pytest.mark.parametrize("solver", ["active set", "decomposition", "interior point", "piqp"])
@pytest.mark.parametrize("squared", [False, True])
def test_targets_of_zero_without_a_tube(squared, solver):
    problem = DualProblem.regression(KERNEL, X, 0.0 * Y, 1.0, 0.0, squared=squared)
    np.testing.assert_allclose(scores(problem, solved(problem, solver)), 0.0, atol=1e-9)


def test_a_narrow_tube_of_great_cost_interpolates():
    problem = DualProblem.regression(RBF(gamma=2.0), X, Y, 1e6, 0.0)
    np.testing.assert_allclose(scores(problem, solved(problem)), Y, atol=1e-8)


def test_squared_loss_without_a_tube_is_kernel_ridge_regression():
    C = 3.0
    problem = DualProblem.regression(KERNEL, X, Y, C, 0.0, squared=True, bias=False)
    expected = np.linalg.solve(KERNEL(X) + np.eye(len(Y)) / (2.0 * C), Y)
    np.testing.assert_allclose(coefficients(problem, solved(problem)), expected, atol=1e-10)


@pytest.mark.parametrize("nu", [0.1, 0.35, 0.8])
def test_nu_of_a_regression_bounds_fractions(nu):
    problem = DualProblem.nu_regression(KERNEL, X, Y, 5.0, nu)
    solution = solved(problem)
    n, residuals = len(Y), Y - scores(problem, solution)
    beta = coefficients(problem, solution)
    free = (np.abs(beta) > 1e-9) & (np.abs(beta) < 5.0 * (1.0 - 1e-9))
    epsilon = np.abs(residuals[free]).mean()  # free samples lie on the tube
    assert np.ptp(np.abs(residuals[free])) < 1e-8
    assert np.sum(np.abs(residuals) > epsilon + 1e-8) <= nu * n + 1e-9
    assert np.sum(np.abs(beta) > 1e-9) >= nu * n - 1e-9
    # The machine of that ε is the same.
    same = DualProblem.regression(KERNEL, X, Y, 5.0, float(epsilon))
    np.testing.assert_allclose(coefficients(same, solved(same)), beta, atol=1e-6)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.7])
def test_nu_of_one_class_bounds_fractions(nu):
    problem = DualProblem.one_class(KERNEL, X, nu)
    solution = solved(problem)
    n, g = X.shape[0], scores(problem, solution)
    assert np.sum(g < -1e-9) <= nu * n + 1e-9
    assert np.sum(solution.alpha > 1e-9) >= nu * n - 1e-9


def test_one_class_of_all_samples_is_the_density_estimate():
    problem = DualProblem.one_class(KERNEL, X, 1.0)
    solution = solved(problem)
    np.testing.assert_array_equal(solution.alpha, 1.0)
    density = scores(problem, solution) - solution.b[0]
    np.testing.assert_allclose(density, KERNEL(X).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", ["epsilon", "nu"])
def test_targets_may_be_moved_and_turned(name):
    def machine(y):
        if name == "nu":
            return DualProblem.nu_regression(KERNEL, X, y, 2.0, 0.4)
        return DualProblem.regression(KERNEL, X, y, 1.0, 0.1)

    plain, moved, turned = (solved(machine(y)) for y in (Y, Y + 7.0, -Y))
    beta = coefficients(machine(Y), plain)
    np.testing.assert_allclose(coefficients(machine(Y), moved), beta, atol=1e-9)
    np.testing.assert_allclose(coefficients(machine(Y), turned), -beta, atol=1e-9)
    assert moved.b[0] == pytest.approx(plain.b[0] + 7.0)
    assert turned.b[0] == pytest.approx(-plain.b[0])


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_certificates_do_not_depend_on_the_unit_of_the_targets(factor):
    problem = DualProblem.regression(KERNEL, X, factor * Y, factor * 1.0, factor * 0.1)
    solution = Decomposition(exact_gram(problem), None, 1e-6).solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    assert mm.certify(problem, solution).holds(1e-6)
    plain = solved(DualProblem.regression(KERNEL, X, Y, 1.0, 0.1))
    np.testing.assert_allclose(solution.alpha, factor * plain.alpha, atol=1e-3 * factor)


# Rational arithmetic ------------------------------------------------------------------------------


def exact_values(problem, alpha, b):
    """Return P and D of a linear kernel as rational numbers, at the best ρ."""
    X = [[Fraction(float(x)) for x in row] for row in problem.X[problem.index]]
    s, p, lower, upper, a = (
        [Fraction(float(value)) for value in part]
        for part in (problem.signs, problem.p, problem.lower, problem.upper, alpha)
    )
    w = [sum(ai * si * x[j] for ai, si, x in zip(a, s, X, strict=True)) for j in range(len(X[0]))]
    square = sum(value * value for value in w)
    margins = [
        si * (sum(wj * xj for wj, xj in zip(w, x, strict=True)) + Fraction(b))
        for si, x in zip(s, X, strict=True)
    ]

    def primal(rho):
        value = square / 2
        for k, (group, t) in enumerate(zip(problem.groups, problem.sums, strict=True)):
            moved = (2 * k - 1) * rho  # μ are b − ρ and b + ρ
            value += Fraction(t) * (Fraction(b) + moved)
            for i in group:
                z = -p[i] - margins[i] - s[i] * moved
                value += max(upper[i] * z, lower[i] * z)
        return value

    rhos = [m + pi for m, pi in zip(margins, p, strict=True)]
    primals = map(primal, rhos if len(problem.groups) == 2 else [Fraction(0)])
    dual = -square / 2 - sum(pi * ai for pi, ai in zip(p, a, strict=True))
    return min(primals), dual


def with_exact_sums(problem, alpha):
    """Return α in multiples of 2⁻²⁰ with the sums that it must have, or None."""
    alpha = np.clip(np.round(alpha * 2**20), 0, problem.upper * 2**20)
    for group, total in zip(problem.groups, problem.sums, strict=True):
        rest = total * 2**20 - (problem.signs * alpha)[group].sum()
        for i in group:
            moved = np.clip(alpha[i] + problem.signs[i] * rest, 0, problem.upper[i] * 2**20)
            rest -= problem.signs[i] * (moved - alpha[i])
            alpha[i] = moved
        assert rest == 0
    return alpha / 2**20


@pytest.mark.parametrize("far", [0.0, 2.0**20])
@pytest.mark.parametrize("name", ["epsilon", "nu", "one class"])
def test_claims_cover_rational_arithmetic(name, far):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(16, 2)) + far
    y = np.round(rows[:, 0] - far + 0.5 * rng.normal(size=16), 2)
    problem = {
        "epsilon": lambda: DualProblem.regression(Linear(), rows, y, 1.0, 0.125),
        "nu": lambda: DualProblem.nu_regression(Linear(), rows, y, 1.0, 0.5),
        "one class": lambda: DualProblem.one_class(Linear(), rows, 0.5),
    }[name]()
    solution = solved(problem, "interior point")
    for step in (0.0, 1e-3):
        alpha = with_exact_sums(problem, solution.alpha + step * rng.random(problem.n_variables))
        b = float(solution.b[0])
        answer = Solution(np.empty((0, 0)), np.array([b]), Status.CONVERGED, alpha=alpha)
        certificate = mm.certify(problem, answer)
        primal, dual = exact_values(problem, alpha, b)
        assert Fraction(certificate.gap) >= primal - dual
        assert Fraction(certificate.primal) >= primal
        assert Fraction(certificate.dual) <= dual


# The record --------------------------------------------------------------------------------------


def test_a_part_keeps_the_groups_of_its_variables():
    problem = DualProblem.nu_regression(KERNEL, X, Y, 1.0, 0.5)
    part = problem.restrict(np.array([5, 100, 7, 81]))
    np.testing.assert_array_equal(part.index, [5, 20, 7, 1])
    np.testing.assert_array_equal(part.signs, [1.0, -1.0, 1.0, -1.0])
    assert [group.tolist() for group in part.groups] == [[0, 2], [1, 3]]
    assert part.sums == problem.sums


def test_the_unit_of_scores_is_that_of_the_targets():
    assert DualProblem.hinge(KERNEL, X, LABELS, 3.0).target_scale == 1.0
    assert DualProblem.hinge(KERNEL, X, np.ones(80), 3.0).target_scale == 1.0
    assert DualProblem.nu(KERNEL, X, LABELS, 0.3).target_scale == 0.0
    half = 0.5 * np.ptp(Y)
    assert DualProblem.regression(KERNEL, X, Y + 5.0, 1.0, 0.25).target_scale == pytest.approx(half)
    assert DualProblem.regression(KERNEL, X, np.full(80, 5.0), 1.0, 0.25).target_scale == 0.25


@pytest.mark.parametrize("nu", [0.0, 1.5, -1.0])
def test_nu_must_be_a_fraction(nu):
    with pytest.raises(ValueError, match=r"nu must be more than 0 and at most 1, got nu="):
        DualProblem.one_class(KERNEL, X, nu)
    with pytest.raises(ValueError, match=r"nu must be more than 0 and at most 1, got nu="):
        DualProblem.nu_regression(KERNEL, X, Y, 1.0, nu)


def test_there_are_at_most_two_groups():
    problem = DualProblem.hinge(KERNEL, X, LABELS, 1.0)
    groups = tuple(np.array_split(np.arange(80), 3))
    with pytest.raises(ValueError, match="at most two"):
        replace(problem, groups=groups, sums=(0.0, 0.0, 0.0))


def test_groups_hold_every_variable():
    problem = DualProblem.hinge(KERNEL, X, LABELS, 1.0)
    with pytest.raises(ValueError, match="79 places for 80 variables"):
        replace(problem, groups=(np.arange(79),), sums=(0.0,))
