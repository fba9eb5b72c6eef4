"""Limits of the active set method."""

from __future__ import annotations

from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.progress import Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.active_set import ActiveSet
from tests.helpers.fits import noisy


def test_active_set_gives_up_after_so_much_work():
    X, y = noisy(300)
    problem = DualProblem.hinge(RBF(0.3), X, y, 1e6)
    solution = ActiveSet(Gram(problem.kernel, X), work=1e7).solve(problem, None, Progress())
    assert solution.status is Status.PATIENCE
    assert solution.n_iter <= 51
