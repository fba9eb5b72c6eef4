"""P, D, the best bias and the balance of a point of the dual."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solvers.dual.choice import Dual
from maxmargin.solvers.dual.interior_point import DualInteriorPoint
from maxmargin.solvers.dual.optimality import (
    Optimality,
    best_bias,
    exactly_balanced,
    moved_to_balance,
)
from tests.helpers.dual_problems import PROBLEMS
from tests.helpers.fits import TOL, noisy


def test_the_free_variables_restore_the_balance_where_they_can():
    y, upper = np.array([1.0, 1.0, -1.0]), np.full(3, 2.0)
    moved = moved_to_balance(np.array([1.5, 1.0, 1.0]), y, upper)
    assert moved @ y == pytest.approx(0.0, abs=1e-15)
    assert ((moved > 0.0) & (moved < upper)).all()
    assert moved_to_balance(upper, y, upper) is None
    assert moved_to_balance(np.array([np.nan, 1.0, 1.0]), y, upper) is None


def test_balance_is_restored_to_the_last_digit():
    rng = np.random.default_rng(0)
    y = np.where(rng.normal(size=200) > 0, 1.0, -1.0)
    alpha = np.clip(rng.normal(size=200), 0.0, 1.0)
    heavy = y == np.sign(y @ alpha)
    free = heavy & (alpha > 0) & (alpha < 1)
    alpha[free] *= 1.0 - abs(y @ alpha) / alpha[free].sum()
    assert 0.0 < abs(sum(map(Fraction, y * alpha))) < 1e-12
    result = exactly_balanced(DualProblem.hinge(Linear(), y[:, None], y, 1.0), alpha)
    assert sum(map(Fraction, y * result)) == 0
    assert np.allclose(result, alpha, rtol=1e-12)
    assert np.array_equal(result[(alpha == 0) | (alpha == 1)], alpha[(alpha == 0) | (alpha == 1)])


@pytest.mark.parametrize("seed", range(6))
def test_balance_keeps_the_digits_that_light_samples_need(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((36, 3)), np.where(np.arange(36) % 2, 1.0, -1.0)
    problem = DualProblem.squared_hinge(RBF(0.3), X, y, rng.choice([1e-12, 1e12], 36))
    solution = Dual.of(problem.kernel, X, "auto", TOL).solve(problem, None, Progress(), Limits())
    result = exactly_balanced(problem, solution.alpha)
    changes = problem.ridge * np.abs(result - solution.alpha)
    assert changes.max() <= 1e-9
    assert mm.certify(problem, solution).holds(TOL)


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
