"""The interior point method of the dual."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.active_set import ActiveSet
from maxmargin.solvers.dual.interior_point import DualInteriorPoint
from tests.helpers.dual_problems import PROBLEMS
from tests.helpers.fits import TOL, noisy


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
