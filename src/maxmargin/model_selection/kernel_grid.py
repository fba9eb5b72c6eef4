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

from ..arrays import Floats, Integers
from ..certificates import MarginCertificate
from ..certificates.cost_grid import SquaredDistances, certify_costs
from ..engines.registry import engine_for
from ..estimators.claims import TimeLimit
from ..estimators.formulation import Formulation, certify_fit
from ..kernels import RBF, Kernel, Linear
from ..multiclass import Task
from ..problems import DualProblem
from ..problems.shared_rows import SharedRows
from ..progress import Limits
from ..solution import Solution, Status
from ..solvers.centring import Origin
from ..solvers.dual.choice import Dual
from ..solvers.dual.cost_grid import at_cost, completed, solve_costs, solve_small_costs
from .folds import Fold

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


@dataclass(frozen=True)
class Answers:
    """α of some tasks, one task after the other, at several costs."""

    kernel: Any
    rows: list[Integers]
    costs: Floats
    alpha: Floats

    def serves(self, kernel: Any, problems: Sequence[DualProblem], costs: Floats) -> bool:
        """Whether these are answers of the same tasks and costs, but for γ."""
        return (
            type(kernel) is type(self.kernel)
            and getattr(kernel, "gamma", 0.0) > 0.0
            and replace(self.kernel, gamma=kernel.gamma) == kernel
            and np.array_equal(self.costs, costs)
            and len(self.rows) == len(problems)
            and all(map(np.array_equal, self.rows, (problem.index for problem in problems)))
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
        self._known: list[Answers] = []
        self._fresh: list[Answers] = []

    def learn(self) -> None:
        """Let later kernels begin with the answers of those evaluated so far.

        Not while kernels are evaluated side by side: what they find would depend on their turns.
        """
        size = sum(each.alpha.nbytes for each in self._fresh)
        self._known = self._fresh if size <= MOST_REMEMBERED else []
        self._fresh = []

    def _recalled(self, kernel: Any, problems: Sequence[DualProblem], costs: Floats) -> Floats:
        """Return α of all tasks and costs with the most similar kernel known; else 0."""
        alike = [each for each in self._known if each.serves(kernel, problems, costs)]
        if not alike:
            return np.zeros((costs.size, sum(problem.n_variables for problem in problems)))

        def distance(each: Answers) -> tuple[float, float]:
            return abs(np.log(each.kernel.gamma / kernel.gamma)), -each.kernel.gamma

        return min(alike, key=distance).alpha

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
        posed = [
            (fold, task, self.formulation.pose(kernel, fold.training, task))
            for fold in folds
            for task in fold.tasks
        ]
        problems = [problem for *_, problem in posed]
        largest = max(self.formulation.largest_cost(fold.training) for fold in folds)
        dual = self._dual(kernel, len(problems), largest * float(costs[-1]))
        scores, certificates = self._solved(dual, posed, problems, costs, solved, stop)
        ends = np.cumsum([0, *(len(fold.tasks) for fold in folds)])
        shape = (costs.size, len(folds))
        gaps, holds = np.empty(shape), np.empty(shape, dtype=bool)
        for c, of_cost in enumerate(certificates):
            for k in range(len(folds)):
                mine = of_cost[ends[k] : ends[k + 1]]
                gaps[c, k] = max(each.relative_gap for each in mine)
                holds[c, k] = all(each.holds(self.model.tol) for each in mine)
        planes = [np.stack(scores[a:b], axis=-1) for a, b in pairwise(ends)]
        seconds = (time.perf_counter() - started) / (costs.size * len(folds))
        return Evaluated(planes, gaps, holds, seconds)

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
        posed: list[tuple[Fold, Task, DualProblem]],
        problems: list[DualProblem],
        costs: Floats,
        solved: Callable[[float], None],
        stop: Event,
    ) -> tuple[list[Floats], list[list[MarginCertificate]]]:
        """Return g(x) of held-out rows, (n_costs, n_test) of every task, and the certificates."""
        limits = self.time_limit.limits(self.model.max_iter)
        names = [task.name for _, task, _ in posed]
        small = None
        if self.model.max_iter == -1 and dual.origin is None:
            tests = [fold.test for fold, *_ in posed]
            shared = SharedRows.of(problems, names)
            recalled = self._recalled(dual.kernel, problems, costs)
            small = solve_small_costs(
                dual, problems, shared, costs, recalled, tests, limits, stop.is_set
            )
        if small is None:
            return self._one_by_one(dual, posed, problems, costs, limits, solved)
        self._fresh.append(Answers(dual.kernel, [p.index for p in problems], costs, small.alpha))
        starts = np.cumsum([0, *(problem.n_variables for problem in problems)])
        ends = np.cumsum([0, *(fold.test.size for fold, *_ in posed)])
        alpha, b, scores = small.alpha, small.b, small.scores
        # What is left.
        limits = Limits(seconds=0.0) if stop.is_set() else self.time_limit.limits(-1)
        for (c, t), solution in completed(dual, problems, costs, small, limits).items():
            alpha[c, starts[t] : starts[t + 1]], b[c, t] = solution.alpha, solution.b[0]
            scores[c, ends[t] : ends[t + 1]] = self._held_out(dual, *posed[t][:2], solution)
        proofs = self._proofs(problems, names, costs, alpha, b)
        return np.split(scores, ends[1:-1], axis=1), proofs

    def _proofs(
        self,
        problems: list[DualProblem],
        names: list[str],
        costs: Floats,
        alpha: Floats,
        b: Floats,
    ) -> list[list[MarginCertificate]]:
        """Certify the answers at all costs; anew where rounding leaves too much open."""
        tol, distances = self.model.tol, self._squared_distances(problems[0].kernel)
        known: list[list[MarginCertificate] | None] = [None] * costs.size
        if distances is not None:
            known = list(certify_costs(problems, names, costs, alpha, b, distances, tol))
        starts = np.cumsum([problem.n_variables for problem in problems])[:-1]
        found = []
        for proofs, cost, of_cost, biases in zip(known, costs.tolist(), alpha, b, strict=True):
            if proofs is None or not all(proof.holds(tol) for proof in proofs):
                parts = zip(np.split(of_cost, starts), biases.tolist(), strict=True)
                solutions = [_solution(part, bias) for part, bias in parts]
                mine = [at_cost(problem, cost) for problem in problems]
                proofs = certify_fit(tol, self.time_limit, mine, solutions)
            found.append(proofs)
        return found

    def _one_by_one(
        self,
        dual: Dual,
        posed: list[tuple[Fold, Task, DualProblem]],
        problems: list[DualProblem],
        costs: Floats,
        limits: Limits,
        solved: Callable[[float], None],
    ) -> tuple[list[Floats], list[list[MarginCertificate]]]:
        by_task = solve_costs(dual, problems, costs, limits, solved)
        scores = [
            np.array([self._held_out(dual, fold, task, solution) for solution in solutions])
            for (fold, task, _), solutions in zip(posed, by_task, strict=True)
        ]
        by_cost = [list(each) for each in zip(*by_task, strict=True)]
        return scores, self._certified(problems, by_cost, costs)

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
    ) -> list[list[MarginCertificate]]:
        found = []
        for solutions, cost in zip(by_cost, costs.tolist(), strict=True):
            mine = [at_cost(problem, cost) for problem in problems]
            found.append(certify_fit(self.model.tol, self.time_limit, mine, solutions))
        return found

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
