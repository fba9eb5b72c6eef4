"""Small tasks of a fit side by side: each is one compiled call of the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...engines.base import Ended, TaskArrays, TaskGoal
from ...problems import DualProblem
from ...solution import Solution, Status, Trace
from .attempts import TUNING

if TYPE_CHECKING:
    from .choice import Dual

# Variables of a task, and numbers that its steps may pass over: some hundredths of a second.
MAX_VARIABLES, MAX_NUMBERS = 3000, 5 * 10**7


def solve_small(dual: Dual, problems: Sequence[DualProblem]) -> list[Solution]:
    """Return the solutions of all tasks, or an empty list where they are not small.

    A solution that has not converged is where another solver may begin.
    """
    n_groups = len(problems[0].groups)
    alike = all(len(each.groups) == n_groups and not each.total for each in problems)
    if dual.solver != "auto" or dual.origin is not None or n_groups > 1 or not alike:
        return []
    tasks = TaskArrays.of(problems)
    if tasks.sizes.max() > MAX_VARIABLES or not _are_soft_classifiers(tasks):
        return []
    degree = int(getattr(dual.kernel, "degree", 0))
    final = min(dual.tol, dual.tuning.polish_tol) if dual.engine.is_few else dual.tol
    steps = np.array([_max_steps(dual, problem) for problem in problems])
    goal = TaskGoal(dual.tol, final, steps, TUNING.rounding * max(1, 2 * degree))
    began = time.perf_counter()
    ended = dual.engine.solve_small(dual.kernel, tasks, dual.precision, goal)
    if ended is None:
        return []
    return _solutions(tasks, ended, (time.perf_counter() - began) / len(problems))


def _are_soft_classifiers(tasks: TaskArrays) -> bool:
    """Whether all tasks are of margin 1, and something keeps every α from growing."""
    hard = np.isinf(tasks.upper) & (tasks.ridge == 0.0)
    return bool((tasks.p == -1.0).all() and not tasks.lower.any() and not hard.any())


def _max_steps(dual: Dual, problem: DualProblem) -> int:
    n = problem.n_variables
    return min(dual.first_steps(problem) or MAX_NUMBERS, MAX_NUMBERS // n)


def _solutions(tasks: TaskArrays, ended: Ended, seconds: float) -> list[Solution]:
    """Return the solution of every task; its trace is one round."""
    steps, converged = ended.steps.astype(np.int64).tolist(), ended.converged > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # (P − D)/P is known
        primal = np.where(converged, ended.value / (ended.gap - 1.0), np.nan)
    one, times, exact = np.ones(1, np.int64), np.array([seconds]), np.ones(1, bool)
    errors, dual, w = ended.errors.astype(np.int64), -ended.value, np.empty((0, 0))
    alphas = np.split(ended.alpha, tasks.starts[1:-1])
    solutions = []
    for k, (alpha, good) in enumerate(zip(alphas, converged.tolist(), strict=True)):
        at = slice(k, k + 1)
        trace = Trace(
            one, ended.value[at], errors[at], ended.violation[at], times, primal[at], dual[at],
            exact, "round",
        )  # fmt: skip
        status = Status.CONVERGED if good else Status.PATIENCE
        solutions.append(
            Solution(w, ended.b[at], status, steps[k], steps[k], seconds, alpha, trace=trace)
        )
    return solutions
