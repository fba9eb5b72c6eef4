"""Certificates of the same tasks at several costs, against those of single ones."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificates.cost_grid import CertifiedTasks, SquaredDistances, certify_costs
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.problems.shared_rows import SharedRows
from maxmargin.solution import Solution, Status

COSTS = np.array([0.5, 20.0])
KERNEL = RBF(0.4)


def classifier(X, y, rows):
    labels, ones = np.where(y[rows] > 0, 1.0, -1.0), np.ones(rows.size)
    return DualProblem.classification(KERNEL, X, labels, ones, 0.0 * ones, index=rows)


def regression(X, y, rows):
    return DualProblem.regression(KERNEL, X, y[rows], 1.0, 0.1, index=rows)


def posed(pose, n=150):
    """Return tasks of three folds and some α of each, which is not the best one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(n)
    folds = [np.flatnonzero(np.arange(n) % 3 != k) for k in range(3)]
    problems = [pose(X, y, rows) for rows in folds]
    size = sum(problem.n_variables for problem in problems)
    shares = rng.random((COSTS.size, size)) * (rng.random((COSTS.size, size)) < 0.5)
    upper = np.concatenate([problem.upper for problem in problems])
    b = rng.standard_normal((COSTS.size, len(problems)))
    return X, problems, COSTS[:, np.newaxis] * shares * upper, b


def certified(problems, names, alpha, b, X, costs=COSTS, tol=1e-3, kernel=KERNEL):
    grid = CertifiedTasks.of(problems, SharedRows.of(problems, list(names)))
    return certify_costs(grid, kernel, costs, alpha, b, SquaredDistances.of(X), tol)


@pytest.mark.parametrize("names", ["aaa", "aba", "abc"])
@pytest.mark.parametrize("pose", [classifier, regression])
def test_they_are_those_of_single_tasks(pose, names):
    X, problems, alpha, b = posed(pose)
    proofs = certified(problems, names, alpha, b, X)
    ends = np.cumsum([problem.n_variables for problem in problems])[:-1]
    for c, cost in enumerate(COSTS):
        for t, (problem, own) in enumerate(zip(problems, np.split(alpha[c], ends), strict=True)):
            problem = replace(problem, upper=problem.upper * cost, ridge=problem.ridge / cost)
            answer = Solution(
                np.empty((0, 0)), b[c, [t]], Status.STOPPED, n_iter=0, n_updates=0, seconds=0.0,
                alpha=own,
            )  # fmt: skip
            single = mm.certify(problem, answer)
            for name in ("primal", "dual", "violation"):
                assert getattr(proofs, name)[c, t] == pytest.approx(getattr(single, name), rel=1e-9)


def some_alpha(rng, upper):
    """Return α at bounds, free, beside bounds by rounding, and some out of the box."""
    shares = rng.choice([0.0, 1.0, 1e-17, 1.0 - 1e-16, 0.3, -0.01, 1.02], upper.shape)
    return np.where(rng.random(upper.shape) < 0.5, shares, rng.random(upper.shape)) * upper


CASES = ["any", "balanced", "zero", "full", "one sign", "box"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("gamma", [1e-3, 0.4, 50.0])
@pytest.mark.parametrize(("n", "tol"), [(150, 0.0), (1200, 0.0), (150, np.inf)])
def test_numbers_of_hinges_are_those_of_any_tasks(case, gamma, n, tol):
    """They are as large as those of the general formulas, but for rounding, which is counted."""
    rng = np.random.default_rng(1)
    X, problems, _, b = posed(classifier, n)
    problems = [replace(each, upper=rng.random(each.index.size) + 0.01) for each in problems]
    costs, kernel = np.array([1e-6, 1.0, 300.0, 1e9]), RBF(gamma)
    b = rng.standard_normal((costs.size, len(problems)))
    upper = costs[:, np.newaxis] * np.concatenate([problem.upper for problem in problems])
    signs = np.concatenate([problem.signs for problem in problems])
    alpha = some_alpha(rng, upper)
    if case == "balanced":
        alpha = np.minimum(upper, 0.01 * costs[:, np.newaxis]) * np.ones_like(alpha)
    elif case == "zero":
        alpha[:] = 0.0
    elif case == "full":
        alpha = upper.copy()
    elif case == "one sign":
        alpha = np.where(signs > 0.0, upper, 0.0)
    elif case == "box":
        alpha *= 3.0
    grid = CertifiedTasks.of(problems, SharedRows.of(problems, list("aab")))
    general = CertifiedTasks.of(problems, grid.shared)
    general.__dict__["are_hinges"] = False
    assert grid.are_hinges
    distances = SquaredDistances.of(X)
    found, expected = (
        certify_costs(each, kernel, costs, alpha, b, distances, tol) for each in (grid, general)
    )
    # Sums are of the size of P and of b yᵀα, and rounded once per term.
    size = np.abs(expected.primal) + np.abs(expected.dual) + np.abs(b) * upper.sum(axis=1).max()
    for name in ("primal", "dual", "gap"):
        off = np.abs(getattr(found, name) - getattr(expected, name))
        assert (off <= 1e-11 * size).all(), name
    assert (found.gap >= expected.gap * (1.0 - 1e-12)).all()
    for name in ("violation", "box", "rounding", "relative_gap"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), 1e-7, 1e-10)
    np.testing.assert_allclose(found.balance, expected.balance, 1e-9, 1e-13)


def test_rounding_is_bounded_more_closely_where_that_is_needed():
    X, problems, alpha, b = posed(classifier)
    closer, first = (certified(problems, "abc", alpha, b, X, tol=tol) for tol in (0.0, np.inf))
    assert (closer.rounding < first.rounding).all()
    worst = np.maximum(first.violation + first.rounding, 0.5 * first.relative_gap)
    tol = float(np.median(np.maximum(worst, np.maximum(first.balance, first.box))))
    loose = ~first.hold(tol)
    assert not loose.all()
    found = certified(problems, "abc", alpha, b, X, tol=tol)
    np.testing.assert_array_equal(found.gap[loose], closer.gap[loose])
    is_known = (found.gap == closer.gap) | (found.gap == first.gap)
    assert is_known.all()


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("what", ["alpha", "b"])
def test_nothing_is_proved_of_what_is_not_finite(what, broken):
    X, problems, alpha, b = posed(classifier)
    (alpha if what == "alpha" else b)[0, 1] = broken
    proofs = certified(problems, "aaa", alpha, b, X)
    t = 0 if what == "alpha" else 1
    assert not proofs.hold(1e300)[0, t]
    assert proofs.hold(1e300)[1].all()


def test_costs_beyond_float64_are_infinite():
    X, problems, alpha, b = posed(classifier)
    problems = [replace(each, upper=10.0 * each.upper) for each in problems]
    proofs = certified(problems, "aaa", alpha, b, X, costs=np.array([1.0, 1e308]))
    assert not proofs.hold(1e-3).any()
