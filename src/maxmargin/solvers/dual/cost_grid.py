"""The same tasks at several costs: each begins with the answer at the cost before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event

import numpy as np

from ...arrays import Floats
from ...engines.base import CostGrid, SolvesCosts, TaskArrays, TaskGoal
from ...problems import DualProblem
from ...problems.held_out_rows import HeldOutRows
from ...problems.shared_rows import SharedRows
from ...progress import Limits, Progress
from ...runtime.threads import in_parallel
from ...solution import Solution, Status
from .attempts import TUNING
from .choice import Dual, WarmStart

# Numbers that the steps of a task may pass over at one cost, and about how many they do per second.
MAX_NUMBERS, NUMBERS_PER_SECOND = 10**9, 2.0 * 10**9
# Variables from which fewer numbers are better: decomposition keeps its working sets, and what it
# computes anew takes no longer than what is gathered from so many rows.
MANY, NUMBERS_OF_MANY = 4096, 3 * 10**8


def at_cost(problem: DualProblem, cost: float) -> DualProblem:
    """Return a problem of C = 1 at another C: bounds of α are multiplied, and D is divided."""
    return replace(problem, upper=problem.upper * cost, ridge=problem.ridge / cost)


@dataclass(frozen=True)
class GridTasks:
    """Tasks of C = 1 that several kernels have in common.

    Parameters
    ----------
    arrays : TaskArrays
    shared : SharedRows
    held_out : HeldOutRows
    are_hinges : bool
        Whether all are classifiers with a bias and a margin of 1, of finite costs and D = 0.
    """

    arrays: TaskArrays
    shared: SharedRows
    held_out: HeldOutRows
    are_hinges: bool

    @classmethod
    def of(
        cls, problems: Sequence[DualProblem], shared: SharedRows, held_out: HeldOutRows
    ) -> GridTasks:
        """Put the variables of problems one after the other; their kernels do not matter."""
        arrays = TaskArrays.of(problems)
        has_unit_margins = bool((arrays.p == -1.0).all()) and not arrays.lower.any()
        has_losses = not arrays.ridge.any() and bool(np.isfinite(arrays.upper).all())
        has_sums = any(len(each.groups) != 1 or each.total for each in problems)
        return cls(arrays, shared, held_out, has_unit_margins and has_losses and not has_sums)


def solve_small_costs(
    dual: Dual,
    tasks: GridTasks,
    costs: Floats,
    recalled: Floats,
    limits: Limits,
    stopped: Callable[[], bool],
) -> CostGrid | None:
    """Return small tasks at every cost, compiled; None where they are something else.

    ``costs`` ascend; ``recalled`` is as in the engine. What is not solved when the time is over,
    or when ``stopped``, has not converged.
    """
    engine, n = dual.engine, tasks.arrays.sizes
    fits = tasks.are_hinges and dual.solver == "auto" and not tasks.shared.has_repeats
    if not fits or not isinstance(engine, SolvesCosts):
        return None
    most = np.where(n > MANY, NUMBERS_OF_MANY, MAX_NUMBERS)
    if limits.seconds is not None:
        most = np.minimum(most, NUMBERS_PER_SECOND * limits.seconds / (n.size * costs.size))
    # Few variables take millions of steps within as many numbers, other solvers milliseconds.
    max_steps = np.minimum(most / n, dual.tuning.steps_per_variable * n).astype(np.intp)
    goal = TaskGoal(dual.tol, dual.tol, max_steps, TUNING.rounding, Limits())
    started = time.perf_counter()

    def is_over() -> bool:
        return stopped() or limits.after(time.perf_counter() - started).seconds == 0.0

    return engine.cost_grid(
        dual.kernel, tasks.arrays, tasks.shared, costs, recalled, tasks.held_out, goal, is_over
    )


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

    Each begins with the answer at the cost before where there is one, else where the grid has left
    it; tasks are solved side by side.
    """
    starts = np.cumsum([0, *(problem.n_variables for problem in problems)])
    started, left_over = time.perf_counter(), np.flatnonzero(~grid.converged.all(axis=0))

    def one(t: int, stop: Event) -> dict[tuple[int, int], Solution]:
        found: dict[tuple[int, int], Solution] = {}
        for c in np.flatnonzero(~grid.converged[:, t]).tolist():
            known = found.get((c - 1, t))
            if known is not None and known.status is Status.CONVERGED:
                start = grown(problems[t], known, float(costs[c] / costs[c - 1]))
            else:
                before = c - 1 if c > 0 and grid.converged[c - 1, t] else c
                own = grid.alpha[before, starts[t] : starts[t + 1]]
                start = WarmStart(float(costs[c] / costs[before]) * own, None)
            problem = at_cost(problems[t], float(costs[c]))
            left = limits.after(time.perf_counter() - started)
            found[c, t] = dual.solve(problem, start, Progress(stop=stop), left)
        return found

    if left_over.size:
        dual.load_solvers()
    parts = in_parallel(one, left_over.tolist(), alone=not dual.kernel.elementwise)
    return {place: solution for part in parts for place, solution in part.items()}
