"""Small tasks of a fit side by side: each is one compiled call of the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats, Integers
from ...engines.base import Ended, TaskArrays, TaskGoal
from ...problems import DualProblem
from ...progress import Limits
from ...solution import Solution, Status, Trace
from .attempts import TUNING
from .feasibility import Constraints

if TYPE_CHECKING:
    from .choice import Dual

# Numbers that the steps of a task may pass over: some hundredths of a second.
MAX_NUMBERS = 5 * 10**7


def solve_small(
    dual: Dual,
    problems: Sequence[DualProblem],
    starts: Sequence[Floats | None],
    limits: Limits,
) -> list[Solution]:
    """Return the solutions of all tasks, or an empty list where they are not small.

    A solution that has not converged is where another solver may begin.
    """
    first = problems[0]
    if len(problems) > 1 or not first.target_scale or first.has_unit_margin:
        return _solve_alike(dual, problems, starts, limits)
    # Regression, in units of half the range of its targets: violations are then relative to 1.
    unit = first.target_scale
    sums = tuple(total / unit for total in first.sums)
    scaled = replace(first, p=first.p / unit, upper=first.upper / unit, sums=sums)
    start = None if starts[0] is None else starts[0] / unit
    return [_scaled_up(each, unit) for each in _solve_alike(dual, [scaled], [start], limits)]


def _scaled_up(solution: Solution, unit: float) -> Solution:
    """Return a solution as of targets that are multiplied by a number."""
    trace = solution.trace
    assert solution.alpha is not None
    assert trace is not None
    # unit² may be beyond the range of float64.
    names = ("objective", "primal", "dual")
    values = {name: unit * (unit * getattr(trace, name)) for name in names}
    trace = replace(trace, violation=unit * trace.violation, **values)
    return replace(solution, alpha=unit * solution.alpha, b=unit * solution.b, trace=trace)


def _solve_alike(
    dual: Dual,
    problems: Sequence[DualProblem],
    given: Sequence[Floats | None],
    limits: Limits,
) -> list[Solution]:
    """Return the solutions of tasks that are about one thing."""
    sums = problems[0].sums
    alike = all(each.sums == sums for each in problems)
    if dual.solver != "auto" or dual.origin is not None or not alike:
        return []
    if max(problem.n_variables for problem in problems) > dual.engine.most_variables:
        return []
    orders = [np.concatenate(each.groups) for each in problems] if problems[0].total else []
    if orders:
        tasks = _grouped(problems, orders, given)
    else:
        tasks = TaskArrays.of(problems, _starts(problems, given))
    if not _are_soft(tasks):
        return []
    degree = int(getattr(dual.kernel, "degree", 0))
    final = min(dual.tol, dual.tuning.polish_tol) if dual.engine.is_few else dual.tol
    steps = np.array([_max_steps(dual, problem) for problem in problems])
    goal = TaskGoal(dual.tol, final, steps, TUNING.rounding * max(1, 2 * degree), limits)
    began = time.perf_counter()
    ended = dual.engine.solve_small(dual.kernel, tasks, dual.precision, goal)
    if ended is None:
        return []
    solutions = _solutions(tasks, ended, (time.perf_counter() - began) / len(problems))
    return (
        [
            replace(each, alpha=_put_back(each.alpha, order))
            for each, order in zip(solutions, orders, strict=True)
        ]
        if orders
        else solutions
    )


def _starts(problems: Sequence[DualProblem], given: Sequence[Floats | None]) -> Floats | None:
    """Return feasible α of all problems, near to those given; None where none is given."""
    if not any(alpha is not None for alpha in given):
        return None
    return _nearest(problems, given)


def _nearest(problems: Sequence[DualProblem], given: Sequence[Floats | None]) -> Floats:
    pairs = zip(problems, given, strict=True)
    return np.concatenate([Constraints.of(each).nearest(alpha, tol=1e-12) for each, alpha in pairs])


def _grouped(
    problems: Sequence[DualProblem], orders: Sequence[Integers], given: Sequence[Floats | None]
) -> TaskArrays:
    """Put the variables of the first group of each problem first, and begin with a feasible α."""
    moved = [problem.restrict(order) for problem, order in zip(problems, orders, strict=True)]
    pairs = zip(given, orders, strict=True)
    starts = [None if alpha is None else alpha[order] for alpha, order in pairs]
    return TaskArrays.of(moved, _nearest(moved, starts))


def _put_back(alpha: Floats | None, order: Integers) -> Floats:
    """Return α in the order that the variables had."""
    assert alpha is not None
    back = np.empty_like(alpha)
    back[order] = alpha
    return back


def _are_soft(tasks: TaskArrays) -> bool:
    """Whether violations are relative to 1, or to ρ of ν, and something keeps every α small."""
    hard = np.isinf(tasks.upper) & (tasks.ridge == 0.0)
    # ρ does not know of D.
    fits = not (tasks.total and tasks.ridge.any())
    return bool(fits and not tasks.lower.any() and not hard.any())


def _max_steps(dual: Dual, problem: DualProblem) -> int:
    n = problem.n_variables
    if np.isfinite(dual.engine.most_variables):
        return min(dual.first_steps(problem) or MAX_NUMBERS, MAX_NUMBERS // n)
    return dual.patient_steps(problem)


def _solutions(tasks: TaskArrays, ended: Ended, seconds: float) -> list[Solution]:
    """Return the solution of every task; its trace is one round."""
    steps, converged = ended.steps.astype(np.int64).tolist(), ended.converged > 0.0
    primal = np.where(converged, ended.gap - ended.value, np.nan)
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
