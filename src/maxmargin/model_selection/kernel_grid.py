"""All folds and costs of one kernel: solved from each other, certified, and scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..certificates.cost_grid import SquaredDistances, certify_costs
from ..engines.registry import engine_for
from ..estimators.claims import TimeLimit
from ..estimators.formulation import Formulation, certify_fit
from ..kernels import RBF, Kernel, Linear
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Limits
from ..solution import Solution, Status
from ..solvers.centring import Origin
from ..solvers.dual.choice import Dual
from ..solvers.dual.cost_grid import (
    at_cost,
    completed,
    solve_costs,
    solve_small_costs,
)
from .folds import Fold
from .posed import Posed

# Bytes of answers that are kept for other kernels.
MOST_REMEMBERED = 1 << 30


class Evaluated(NamedTuple):
    """The machines of one kernel.

    Parameters
    ----------
    scores : list of ndarray of shape (n_costs, n_test, n_planes)
        g(x) of the held-out rows of every fold.
    gaps : ndarray of shape (n_costs, n_folds)
        The largest certified relative gap of the tasks of a machine.
    holds : ndarray of bool of shape (n_costs, n_folds)
        Whether all of its certificates hold to tol.
    seconds : float
        Of one machine, on average.
    """

    scores: list[Floats]
    gaps: Floats
    holds: NDArray[np.bool_]
    seconds: float


class Proved(NamedTuple):
    """What is certified of every task at every cost: arrays (n_costs, n_tasks)."""

    gaps: Floats
    holds: NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """α of the tasks of some folds at several costs."""

    kernel: Any
    posed: Posed
    costs: Floats
    alpha: Floats

    def serves(self, kernel: Any, posed: Posed, costs: Floats) -> bool:
        """Whether these are answers of the same tasks and costs, but for γ."""
        return (
            posed is self.posed
            and type(kernel) is type(self.kernel)
            and getattr(kernel, "gamma", 0.0) > 0.0
            and replace(self.kernel, gamma=kernel.gamma) == kernel
            and np.array_equal(self.costs, costs)
        )


@dataclass
class KernelGrid:
    """What the machines of all kernels of a search share.

    Parameters
    ----------
    model : SVC or SVR
        With C = 1, and all other parameters.
    formulation : Formulation
        Of that model.
    X : array or CSR matrix
    time_limit : TimeLimit
    """

    model: Any
    formulation: Formulation
    X: Any
    time_limit: TimeLimit

    def __post_init__(self) -> None:
        self._distances: SquaredDistances | None = None
        self._has_looked, self._lock = False, Lock()
        self._posed: dict[tuple[int, ...], Posed] = {}
        self._known: list[Answers] = []
        self._fresh: list[Answers] = []

    def learn(self) -> None:
        """Let later kernels begin with the answers of those evaluated so far.

        Not while kernels are evaluated side by side: what they find would depend on their turns.
        """
        size = sum(each.alpha.nbytes for each in self._fresh)
        self._known = self._fresh if size <= MOST_REMEMBERED else []
        self._fresh = []

    def _recalled(self, kernel: Any, posed: Posed, costs: Floats) -> Floats:
        """Return α of all tasks and costs with the most similar kernel known; else 0."""
        alike = [each for each in self._known if each.serves(kernel, posed, costs)]
        if not alike:
            return np.zeros((costs.size, int(posed.starts[-1])))

        def distance(each: Answers) -> tuple[float, float]:
            return abs(np.log(each.kernel.gamma / kernel.gamma)), -each.kernel.gamma

        return min(alike, key=distance).alpha

    def _pose(self, kernel: Kernel, folds: Sequence[Fold]) -> Posed:
        """Return the tasks of folds, posed once for all kernels."""
        key = tuple(map(id, folds))
        with self._lock:
            if key not in self._posed:
                self._posed[key] = Posed.of(self.formulation.pose, kernel, folds)
            return self._posed[key]

    def evaluate(
        self,
        kernel: Kernel,
        folds: Sequence[Fold],
        costs: Floats,
        solved: Callable[[float], None],
        stop: Event,
    ) -> Evaluated:
        """Return the machines of one kernel, for costs that ascend.

        ``solved`` is called with shares of the machines, after each that takes long. Once ``stop``
        is set nobody needs the rest.
        """
        started = time.perf_counter()
        posed = self._pose(kernel, folds)
        largest = max(self.formulation.largest_cost(fold.training) for fold in folds)
        dual = self._dual(kernel, len(posed.tasks), largest * float(costs[-1]))
        scores, proved = self._solved(dual, posed, costs, solved, stop)
        first = posed.ends[:-1]
        gaps = np.maximum.reduceat(proved.gaps, first, axis=1)
        holds = np.logical_and.reduceat(proved.holds, first, axis=1)
        seconds = (time.perf_counter() - started) / (costs.size * len(folds))
        return Evaluated(scores, gaps, holds, seconds)

    def _dual(self, kernel: Kernel, n_tasks: int, largest: float) -> Dual:
        """Return how tasks are solved: of linear kernels on centred rows, where X is far off."""
        model, size = self.model, self.model.cache_size
        budget = None if size == "auto" else float(size) * 2**20
        given = partial(
            Dual.of, kernel, self.X, model.solver, model.tol, shrinking=model.shrinking,
            n_tasks=n_tasks, largest=largest,
        )  # fmt: skip
        may_centre = isinstance(kernel, Linear) and self.formulation.may_centre
        if may_centre and Origin.far_mean(self.X) is not None:
            return given(may_centre=True, budget=budget)
        return given(engine=engine_for(self.X, "cpu", reuse=True, budget=budget))

    def _solved(
        self,
        dual: Dual,
        posed: Posed,
        costs: Floats,
        solved: Callable[[float], None],
        stop: Event,
    ) -> tuple[list[Floats], Proved]:
        """Return g(x) of held-out rows, (n_costs, n_test, n_tasks) of every fold, and proofs."""
        limits = self.time_limit.limits(self.model.max_iter)
        small = None
        if self.model.max_iter == -1 and dual.origin is None:
            with self._lock:
                tasks = posed.to_solve
            recalled = self._recalled(dual.kernel, posed, costs)
            small = solve_small_costs(dual, tasks, costs, recalled, limits, stop.is_set)
        if small is None:
            return self._one_by_one(dual, posed, costs, limits, solved)
        self._fresh.append(Answers(dual.kernel, posed, costs, small.alpha))
        alpha, b, scores = small.alpha, small.b, small.scores
        if not small.converged.all():
            # What is left.
            limits = Limits(seconds=0.0) if stop.is_set() else self.time_limit.limits(-1)
            problems, starts = posed.with_kernel(dual.kernel), posed.starts
            for (c, t), solution in completed(dual, problems, costs, small, limits).items():
                alpha[c, starts[t] : starts[t + 1]], b[c, t] = solution.alpha, solution.b[0]
                k = int(np.searchsorted(posed.ends, t, side="right")) - 1
                values = self._held_out(dual, *posed.tasks[t], solution)
                scores[k][c, :, t - posed.ends[k]] = values
        return scores, self._proved(dual.kernel, posed, costs, alpha, b)

    def _proved(
        self, kernel: Kernel, posed: Posed, costs: Floats, alpha: Floats, b: Floats
    ) -> Proved:
        """Certify the answers at all costs; anew where rounding leaves too much open."""
        tol, distances = self.model.tol, self._squared_distances(kernel)
        found = Proved(np.full(b.shape, np.inf), np.zeros(b.shape, dtype=bool))
        if distances is not None:
            assert isinstance(kernel, RBF)
            with self._lock:
                tasks = posed.to_certify
            proofs = certify_costs(tasks, kernel, costs, alpha, b, distances, tol)
            found = Proved(proofs.relative_gap, proofs.hold(tol))
        for c in np.flatnonzero(~found.holds.all(axis=1)).tolist():
            open_tasks = np.flatnonzero(~found.holds[c]).tolist()
            problems, starts = posed.with_kernel(kernel), posed.starts.tolist()
            solutions = [
                _solution(alpha[c, starts[t] : starts[t + 1]], b[c, t]) for t in open_tasks
            ]
            mine = [at_cost(problems[t], float(costs[c])) for t in open_tasks]
            for t, proof in zip(
                open_tasks, certify_fit(tol, self.time_limit, mine, solutions), strict=True
            ):
                found.gaps[c, t], found.holds[c, t] = proof.relative_gap, proof.holds(tol)
        return found

    def _one_by_one(
        self,
        dual: Dual,
        posed: Posed,
        costs: Floats,
        limits: Limits,
        solved: Callable[[float], None],
    ) -> tuple[list[Floats], Proved]:
        problems = posed.with_kernel(dual.kernel)
        by_task = solve_costs(dual, problems, costs, limits, solved)
        scores = [
            np.array([self._held_out(dual, fold, task, solution) for solution in solutions])
            for (fold, task), solutions in zip(posed.tasks, by_task, strict=True)
        ]
        by_cost = [list(each) for each in zip(*by_task, strict=True)]
        planes = [np.stack(scores[a:b], axis=-1) for a, b in pairwise(posed.ends.tolist())]
        return planes, self._certified(problems, by_cost, costs)

    def _held_out(self, dual: Dual, fold: Fold, task: Task, solution: Solution) -> Floats:
        """Return g(x) of the held-out rows of a fold."""
        expand = self.formulation.expand
        coefficients, b = expand(dual.kernel, fold.training, task, solution)
        support = np.flatnonzero(coefficients)
        gram = dual.engine.gram(dual.kernel, None, dual.precision)
        if dual.origin is not None:  # the rows of gram are about it
            b += coefficients[support] @ dual.X[task.rows[support]] @ dual.origin.centre
        return b + gram.product(fold.test, task.rows[support], coefficients[support])

    def _certified(
        self, problems: list[DualProblem], by_cost: list[list[Solution]], costs: Floats
    ) -> Proved:
        tol, gaps, holds = self.model.tol, [], []
        for solutions, cost in zip(by_cost, costs.tolist(), strict=True):
            mine = [at_cost(problem, cost) for problem in problems]
            proofs = certify_fit(tol, self.time_limit, mine, solutions)
            gaps.append([proof.relative_gap for proof in proofs])
            holds.append([proof.holds(tol) for proof in proofs])
        return Proved(np.array(gaps), np.array(holds))

    def _squared_distances(self, kernel: Kernel) -> SquaredDistances | None:
        """Return ‖x − z‖² for all certificates of Gaussian kernels, computed once."""
        if type(kernel) is not RBF:
            return None
        with self._lock:
            if not self._has_looked:
                self._distances, self._has_looked = SquaredDistances.of(self.X), True
        return self._distances


def _solution(alpha: Floats, b: float) -> Solution:
    return Solution(
        w=np.empty((0, 0)), b=np.array([b]), status=Status.CONVERGED, n_iter=0, n_updates=0,
        seconds=0.0, alpha=alpha,
    )  # fmt: skip
