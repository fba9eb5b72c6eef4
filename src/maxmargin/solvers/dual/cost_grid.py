"""The same tasks at several costs: each begins with the answer at the cost before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event

import numpy as np

from ...arrays import Floats, Integers
from ...engines.base import CostGrid, SolvesCosts, TaskArrays, TaskGoal
from ...problems import DualProblem
from ...progress import Limits, Progress
from ...runtime.threads import in_parallel
from ...solution import Solution, Status
from .attempts import TUNING
from .choice import Dual, WarmStart

# Numbers that the steps of a task may pass over at one cost, and about how many they do per second.
MAX_NUMBERS, NUMBERS_PER_SECOND = 10**9, 2.0 * 10**9


def at_cost(problem: DualProblem, cost: float) -> DualProblem:
    """Return a problem of C = 1 at another C: bounds of α are multiplied, and D is divided."""
    return replace(problem, upper=problem.upper * cost, ridge=problem.ridge / cost)


def solve_small_costs(
    dual: Dual,
    problems: Sequence[DualProblem],
    costs: Floats,
    tests: list[Integers],
    limits: Limits,
) -> CostGrid | None:
    """Return small tasks at every cost, compiled; None where they are something else.

    ``problems`` are those of C = 1, ``costs`` ascend.
    """
    engine, n = dual.engine, np.array([problem.n_variables for problem in problems])
    hinge = all(
        len(each.groups) == 1
        and each.has_unit_margin
        and not each.ridge.any()
        and not each.lower.any()
        and bool(np.isfinite(each.upper).all())
        for each in problems
    )
    if not hinge or dual.solver != "auto" or not isinstance(engine, SolvesCosts):
        return None
    most = float(MAX_NUMBERS)
    if limits.seconds is not None:
        most = min(most, NUMBERS_PER_SECOND * limits.seconds / (len(problems) * costs.size))
    # Few variables take millions of steps in less numbers, and other solvers milliseconds.
    max_steps = np.minimum(most / n, dual.tuning.steps_per_variable * n).astype(np.intp)
    goal = TaskGoal(dual.tol, dual.tol, max_steps, TUNING.rounding, Limits())
    return engine.cost_grid(dual.kernel, TaskArrays.of(problems), costs, tests, goal)


def solve_costs(
    dual: Dual,
    problems: Sequence[DualProblem],
    costs: Floats,
    limits: Limits,
    solved: Callable[[float], None] = lambda share: None,
) -> list[list[Solution]]:
    """Return the solutions of every task at all costs, which ascend, tasks side by side.

    ``solved`` is called after each of them with its share of all.
    """
    dual.load_solvers()
    started = time.perf_counter()

    def one(k: int, stop: Event) -> list[Solution]:
        start, found = None, []
        for c, cost in enumerate(costs.tolist()):
            left = limits.after(time.perf_counter() - started)
            solution = dual.solve(at_cost(problems[k], cost), start, Progress(stop=stop), left)
            found.append(solution)
            solved(1.0 / (len(problems) * costs.size))
            if c + 1 < costs.size:
                start = grown(problems[k], solution, float(costs[c + 1]) / cost)
        return found

    return in_parallel(one, range(len(problems)), alone=not dual.kernel.elementwise)


def grown(problem: DualProblem, solution: Solution, most: float) -> WarmStart:
    """Return where a cost that is ``most`` times as large begins.

    α is multiplied by the number up to that of the largest dual value, as far as scores are known.
    """
    alpha, scores, bounds = solution.alpha, solution.scores, solution.score_bounds
    assert alpha is not None
    by = most
    if scores is not None:
        square = float((alpha * problem.signs) @ scores)
        gain = -float(problem.p @ alpha)
        if square > 0.0:
            by = float(np.clip(gain / square, 1.0, most))
    if scores is None or bounds is None:
        return WarmStart(by * alpha, None)
    return WarmStart(by * alpha, by * scores, by * bounds)


def completed(
    dual: Dual, problems: Sequence[DualProblem], costs: Floats, grid: CostGrid, limits: Limits
) -> dict[tuple[int, int], Solution]:
    """Solve what did not converge in a grid by other methods: (cost, task) ↦ solution.

    Each begins with the answer at the cost before where that is one of these, else where the grid
    has left it.
    """
    starts = np.cumsum([0, *(problem.n_variables for problem in problems)])
    found: dict[tuple[int, int], Solution] = {}
    started = time.perf_counter()
    for c, t in np.argwhere(~grid.converged).tolist():
        start = WarmStart(grid.alpha[c, starts[t] : starts[t + 1]], None)
        before = found.get((c - 1, t))
        if before is not None and before.status is Status.CONVERGED:
            start = grown(problems[t], before, float(costs[c] / costs[c - 1]))
        problem = at_cost(problems[t], float(costs[c]))
        left = limits.after(time.perf_counter() - started)
        found[c, t] = dual.solve(problem, start, Progress(), left)
    return found
