"""Small tasks of a fit side by side: each is one compiled call of the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...engines.base import Ended, TaskGoal
from ...problems import DualProblem
from ...solution import Solution, Status, Trace
from .attempts import TUNING
from .optimality import is_hard

if TYPE_CHECKING:
    from .choice import Dual

# Variables of a task, and numbers that its steps may pass over: some hundredths of a second.
MAX_VARIABLES, MAX_NUMBERS = 3000, 5 * 10**7


def solve_small(dual: Dual, problems: Sequence[DualProblem]) -> list[Solution]:
    """Return the solutions of all tasks, or an empty list where they are not small.

    A solution that has not converged is where another solver may begin.
    """
    if not _are_small(dual, problems):
        return []
    steps = [_max_steps(dual, problem) for problem in problems]
    degree = int(getattr(dual.kernel, "degree", 0))
    rounding = TUNING.rounding * max(1, 2 * degree)
    final = min(dual.tol, dual.tuning.polish_tol) if dual.engine.is_few else dual.tol
    began = time.perf_counter()
    goal = TaskGoal(dual.tol, final, steps, rounding)
    ended = dual.engine.solve_small(dual.kernel, problems, dual.precision, goal)
    if ended is None:
        return []
    seconds = (time.perf_counter() - began) / len(problems)
    return [_solution(each, seconds) for each in ended]


def _are_small(dual: Dual, problems: Sequence[DualProblem]) -> bool:
    """Whether all tasks are soft-margin classifiers of few samples, on rows as they are."""
    if dual.solver != "auto" or dual.origin is not None:
        return False
    first = problems[0]
    return max(p.n_variables for p in problems) <= MAX_VARIABLES and all(
        p.has_unit_margin and len(p.groups) == len(first.groups) < 2 and not is_hard(p).any()
        for p in problems
    )


def _max_steps(dual: Dual, problem: DualProblem) -> int:
    n = problem.n_variables
    return min(dual.first_steps(problem) or MAX_NUMBERS, MAX_NUMBERS // n)


def _solution(ended: Ended, seconds: float) -> Solution:
    """Return the solution of a task; its trace is one round."""
    steps = int(ended.steps)
    primal = ended.value / (ended.gap - 1.0) if ended.converged else np.nan  # (P − D)/P is known
    trace = Trace(
        np.ones(1, np.int64), np.array([ended.value]), np.array([ended.errors], np.int64),
        np.array([ended.violation]), np.array([seconds]), np.array([primal]),
        np.array([-ended.value]), np.ones(1, bool), "round",
    )  # fmt: skip
    status = Status.CONVERGED if ended.converged else Status.PATIENCE
    return Solution(
        np.empty((0, 0)), np.array([ended.b]), status, steps, steps, seconds, ended.alpha,
        trace=trace,
    )  # fmt: skip
