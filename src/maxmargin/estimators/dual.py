"""Which solver answers the dual problem of a machine, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from ..problem import MarginProblem
from ..samples import Floats
from ..solution import Limits, Progress, Solution, Status
from .gram import SMALL, Engines
from .hard_margin import solve_kernel_machine

# Samples up to which a hard margin is solved by the active-set method from the start; beyond, steps
# are as many as support vectors, and decomposition comes near the end sooner.
EXACT = 256
# α max K(x, x) that a hard margin of a hundredth of the largest ‖φ(x)‖ does not exceed.
COSTLY = 1e4
# Steps of decomposition a sample before the active-set method takes over, of few and of up to so
# many samples; its steps, and the violation it ends at.
ENOUGH, PLENTY, NEWTON = 100, 1000, 5000
POLISH, EXACTLY = 2000, 1e-10

Solver = Literal["auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"]


class WarmStart(NamedTuple):
    """α of the rows of a task to begin with, and the scores that it had, with their bounds."""

    alpha: Floats
    scores: Floats | None
    bounds: Floats | None = None


@dataclass(frozen=True)
class Dual:
    """How the duals of a fit are solved: by the solver asked for, or by the one that suits."""

    engines: Engines
    solver: Solver
    tol: float
    shrinking: bool

    def solve(
        self, problem: MarginProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Return the solution of a task, or raise the proof that a hard margin has none."""
        if not _is_hard(problem):
            return self._solve(problem, start, progress, limits)
        exact = self._method(problem) in ("active-set", "qp")
        attempt = partial(
            self._solve if exact else self._within_bounds, problem, start, progress, limits
        )
        return solve_kernel_machine(problem, attempt, self.tol, progress, limits)

    def _method(self, problem: MarginProblem) -> str:
        """Return the name of the solver that was asked for, or of the one that suits."""
        if self.solver == "coordinate-ascent" and problem.balanced:
            raise ValueError(
                "solver='coordinate-ascent' moves one α at a time, which yᵀα = 0 forbids: use "
                "fit_intercept=False, or solver='smo'."
            )
        if self.solver == "smo" and not problem.balanced:
            raise ValueError(
                "solver='smo' moves pairs of α, which only a machine with a bias needs: use "
                "solver='coordinate-ascent' with fit_intercept=False."
            )
        if self.solver != "auto":
            return self.solver
        small = problem.y.size <= EXACT
        return "active-set" if _is_hard(problem) and small else "decomposition"

    def _solve(
        self, problem: MarginProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        name = self._method(problem)
        if name == "decomposition":
            return self._decompose(problem, start, progress, limits)
        solver = self._exact_solver(name, problem, limits)
        solution: Solution = solver.solve(problem, start and start.alpha, progress)
        return solution

    def _decompose(
        self, problem: MarginProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        from ..margin.decomposition import WORKING_SET, Decomposition

        n = problem.y.size
        gram, exact = self.engines.fast(problem), self.engines.corrections(problem)
        working_set = n if n <= SMALL and gram.is_whole else WORKING_SET
        alone = problem.index.size == problem.X.shape[0]  # pairs of classes are many
        solver = Decomposition(
            gram, exact, self.tol, limits, working_set, self.shrinking, often=alone
        )
        if self.solver == "auto" and n <= NEWTON:
            return _to_the_end(solver, self.engines.few, problem, start, progress)
        return solver.solve(problem, *_beginning(start, progress))

    def _exact_solver(self, name: str, problem: MarginProblem, limits: Limits) -> Any:
        """Return a solver in float64 alone, on the whole Gram matrix but for the active set."""
        from ..margin.active_set import ActiveSet
        from ..margin.decomposition import Decomposition
        from ..margin.qp import QuadraticProgram

        n, gram = problem.y.size, self.engines.exact(problem)
        if name == "active-set":
            return ActiveSet(gram, min(self.tol, EXACTLY), limits)
        if not gram.fits:
            raise ValueError(
                f"solver={name!r} needs the whole Gram matrix, {n}² float64 values, which does not "
                "fit: use solver='decomposition', or raise cache_size."
            )
        if name == "qp":
            return QuadraticProgram(gram, min(self.tol, 1e-12), limits)
        gram.whole()
        return Decomposition(gram, None, self.tol, limits, n, often=True)

    def _within_bounds(
        self, problem: MarginProblem, start: WarmStart | None, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve a hard margin as a costly soft one, for a while, which cannot run away.

        Where no α meets its bound the answer is the hard margin's. Else the active-set method goes
        on from there, and finds the plane or the proof that there is none.
        """
        largest = max(float(problem.kernel.diagonal(problem.X)[problem.index].max()), 1e-300)
        bound = np.minimum(problem.upper, COSTLY / largest)
        steps = min(100 * problem.y.size, limits.iterations or 2**62)
        soft, for_a_while = replace(problem, upper=bound), replace(limits, iterations=steps)
        solution = self._solve(soft, start, progress, for_a_while)
        assert solution.alpha is not None
        ended = solution.status in (Status.STOPPED, Status.TIME_LIMIT) or (
            solution.n_iter == limits.iterations
        )
        met = solution.alpha >= bound
        if ended or (solution.status is Status.CONVERGED and not met.any()):
            return solution
        exact = self._exact_solver("active-set", problem, limits)
        return exact.solve(problem, solution.alpha, progress)


def _to_the_end(
    solver: Any, few: bool, problem: MarginProblem, start: WarmStart | None, progress: Progress
) -> Solution:
    """Solve by decomposition, and on by the active-set method where that creeps or samples are few.

    From there it takes some steps to the optimum, to rounding. The answer for few samples is then
    one and the same for rows in another order, and for a row given twice or with a weight of 2.
    """
    from ..margin.active_set import ActiveSet

    limits, n = solver.limits, problem.y.size
    most = np.inf if limits.iterations is None else limits.iterations
    enough = min((ENOUGH if few else PLENTY) * n, most)
    solution: Solution = replace(solver, limits=replace(limits, iterations=int(enough))).solve(
        problem, *_beginning(start, progress)
    )
    creeps = solution.status is Status.ITERATION_LIMIT and solution.n_iter < most
    done = few and solution.status is Status.CONVERGED
    if not (creeps or done or solution.status is Status.PATIENCE):
        return solution
    exact = ActiveSet(solver.exact or solver.gram, EXACTLY, Limits(POLISH, limits.seconds))
    polished = exact.solve(problem, solution.alpha, Progress())
    assert polished.alpha is not None
    balance = abs(float(problem.y @ polished.alpha)) if problem.balanced else 0.0
    feasible = balance <= 1e-9 * float(polished.alpha.sum())  # an indefinite kernel may spoil it
    if polished.status is Status.CONVERGED and feasible:
        return replace(
            solution,
            status=polished.status,
            alpha=polished.alpha,
            b=polished.b,
            scores=None,
            score_bounds=None,
        )
    if not creeps:
        return solution
    rest = None if limits.iterations is None else limits.iterations - solution.n_iter
    last: Solution = replace(solver, limits=replace(limits, iterations=rest)).solve(
        problem, solution.alpha, progress, solution.scores, solution.score_bounds
    )
    return replace(last, n_iter=solution.n_iter + last.n_iter)


def _beginning(start: WarmStart | None, progress: Progress) -> tuple[Any, ...]:
    """Return what decomposition is told of a start."""
    if start is None:
        return None, progress
    return start.alpha, progress, start.scores, start.bounds


def _is_hard(problem: MarginProblem) -> bool:
    """Whether some α has nothing that keeps it from growing."""
    return bool((np.isinf(problem.upper) & (problem.ridge == 0.0)).any())
