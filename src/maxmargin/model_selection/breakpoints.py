"""The breakpoints of a path of costs, every one of them certified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..arrays import Floats
from ..certificates import MarginCertificate, certify
from ..certificates.dual import certify_tasks
from ..certificates.scores import kernel_scores
from ..problems import DualProblem
from ..progress import Limits, Progress
from ..solution import Solution, Status
from ..solvers.dual.choice import Dual, WarmStart
from ..solvers.dual.cost_path import CostWalk, Leg, Pause, Places
from ..solvers.dual.optimality import exactly_balanced


@dataclass(frozen=True)
class Tuning:
    """How a path is checked, and how it goes on where rounding ends it."""

    # Breakpoints that are certified together.
    certified_together: int = 256
    # By how much C grows, relative to it, where no step leads on: at first, and from one time in
    # a row to the next, at most by so much; and where not even single machines are certified.
    first_skip: float = 1e-9
    skip_growth: float = 4.0
    longest_skip: float = 1e-3
    longest_uncertified_skip: float = 1.0


@dataclass(frozen=True, eq=False)
class PathMachine:
    """A machine whose cost is to vary.

    Parameters
    ----------
    problem : DualProblem
        The machine of C = 1.
    dual : Dual
        How the machine of a single C is solved.
    """

    problem: DualProblem
    dual: Dual

    def at(self, C: float) -> DualProblem:
        """Return the problem of a cost C."""
        return replace(self.problem, upper=C * self.problem.upper)

    @cached_property
    def walk(self) -> CostWalk:
        """The walk over C, with the whole Gram matrix."""
        gram = self.dual.engine.gram(self.dual.kernel, self.problem.index)
        return CostWalk(gram.whole(), self.problem.signs, self.problem.upper)

    def solve(self, C: float, alpha: Floats | None, limits: Limits) -> Solution:
        """Return the exact optimum of one cost, from α of another one."""
        problem = self.at(C)
        start = None if alpha is None else np.minimum(alpha, problem.upper)
        return self.dual.solve_exactly(problem, start, limits)

    def otherwise(self, C: float, alpha: Floats, tol: float, limits: Limits) -> Solution | None:
        """Return the answer of `Dual.solve`, which begins with α, if it is certified to tol."""
        problem = self.at(C)
        solution = self.dual.solve(problem, WarmStart(alpha, None), Progress(), limits)
        return solution if certify(problem, solution).holds(tol) else None

    def moved_back(self, numbers: Floats, alpha: Floats) -> None:
        """Turn α and b about the origin of the engine into those of the rows where they are."""
        if self.dual.origin is None:
            return
        for each, point in zip(numbers, alpha, strict=True):
            problem = self.at(float(each[0]))
            point[:] = exactly_balanced(problem, point)
            here = Solution(np.empty((0, 0)), each[1:2], Status.CONVERGED, alpha=point)
            each[1] = self.dual.moved_back(problem, here).b[0]


@dataclass(eq=False)
class Breakpoints:
    """Breakpoints found so far, the certified ones first.

    ``numbers`` are C, b, ‖w‖² and the number of misclassified samples of each, ``alpha`` its α,
    and ``at`` where the variables are between the point before and it.
    """

    machine: PathMachine
    numbers: list[Floats] = field(default_factory=list)
    alpha: list[Floats] = field(default_factory=list)
    at: list[Places] = field(default_factory=list)
    certificates: list[MarginCertificate] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, leg: Leg, at_most: int | None = None) -> None:
        """Add points that are yet to be certified, up to a number of all points."""
        some = slice(None if at_most is None else max(at_most - len(self), 0))
        numbers = leg.numbers[some].copy()
        alpha = leg.a[some] * numbers[:, :1]
        self.machine.moved_back(numbers, alpha)
        self.numbers += list(numbers)
        self.alpha += list(alpha)
        self.at += list(leg.at[some])

    def replace_last(self, solution: Solution) -> None:
        """Put the answer of another solver in place of the last point."""
        alpha, b = solution.alpha, float(solution.b[0])
        assert alpha is not None
        numbers = self.numbers[-1]
        problem = self.machine.at(float(numbers[0]))
        w = alpha * problem.signs
        scores = kernel_scores(problem, w)[0]
        errors = np.count_nonzero((scores + b >= 0.0) != (problem.signs > 0.0))
        numbers[1:], self.alpha[-1] = (b, w @ scores, errors), alpha

    def certify(self, tol: float) -> float | None:
        """Certify the points added last; return C of the first that fails, and forget the rest."""
        first = len(self.certificates)
        found = range(first, len(self))
        problems = [self.machine.at(self.numbers[k][0]) for k in found]
        solutions = [self.solution(k) for k in found]
        proofs = certify_tasks(problems, solutions) if problems else []
        held = next((k for k, each in enumerate(proofs) if not each.holds(tol)), len(proofs))
        failed = float(self.numbers[first + held][0]) if held < len(proofs) else None
        self.certificates += proofs[:held]
        for each in (self.numbers, self.alpha, self.at):
            del each[first + held :]  # type: ignore[attr-defined]
        return failed

    def accept(self) -> None:
        """Keep the points added last, whatever their certificates say."""
        self.certify(np.inf)

    def solution(self, k: int) -> Solution:
        """Return a point as the answer of a solver."""
        b = np.array([self.numbers[k][1]])
        return Solution(np.empty((0, 0)), b, Status.CONVERGED, alpha=self.alpha[k])


@dataclass(eq=False)
class FollowedPath:
    """A path on its way from one cost to another.

    Parameters
    ----------
    machine : PathMachine
    ends : tuple of float
        The least and the largest C.
    tol : float
        To which every breakpoint is certified.
    limits : Limits
        Breakpoints and seconds.
    progress : Progress
        Called after every leg.

    Attributes
    ----------
    points : Breakpoints
    status : Status
        Why the path ended.
    n_resolved : int
        How often the machine of a single C was solved on the way.
    """

    machine: PathMachine
    ends: tuple[float, float]
    tol: float
    limits: Limits
    progress: Progress
    tuning: Tuning = field(default_factory=Tuning)
    points: Breakpoints = field(init=False)
    status: Status = Status.CONVERGED
    n_resolved: int = 0

    def __post_init__(self) -> None:
        self.points = Breakpoints(self.machine)

    def follow(self) -> FollowedPath:
        """Find all breakpoints."""
        self._restart(self.ends[0])
        self.n_resolved, skip = 0, self.tuning.first_skip
        n_before = len(self.points)
        for leg in self._legs():
            self.points.add(leg, self.limits.iterations)
            ended = self._ended()
            waiting = len(self.points) - len(self.points.certificates)
            if leg.pause is Pause.FULL and not ended and waiting < self.tuning.certified_together:
                continue
            failed = self.points.certify(self.tol)
            if ended or (leg.pause is Pause.ARRIVED and failed is None):
                self.status = ended or self.status
                break
            if failed is None and leg.pause is Pause.FULL:
                continue
            # A second failure at the same point is passed by a longer step.
            is_stuck = len(self.points) == n_before
            skip = self._longer(skip) if is_stuck else self.tuning.first_skip
            last = float(self.points.numbers[-1][0])
            C = min(max(failed or last, last * (1.0 + skip)), self.ends[1])
            self._restart(C)
            n_before = len(self.points)
            if self.ends[1] == C:
                break
        return self

    def _longer(self, skip: float) -> float:
        is_certified = self.points.certificates[-1].holds(self.tol)
        tuning = self.tuning
        longest = tuning.longest_skip if is_certified else tuning.longest_uncertified_skip
        return min(tuning.skip_growth * skip, longest)

    def _legs(self) -> Iterator[Leg]:
        while True:
            yield self.machine.walk.leg(self.ends[1])

    def _restart(self, C: float) -> None:
        """Solve the machine of one C, and go on from there."""
        alpha = None
        if len(self.points):
            alpha = self.points.alpha[-1] * (C / float(self.points.numbers[-1][0]))
        left = replace(self.limits, iterations=None).after(self.progress.seconds)
        solution = self.machine.solve(C, alpha, left)
        assert solution.alpha is not None
        self.machine.walk.start(solution.alpha, C)
        self.n_resolved += 1
        here = self.machine.walk.here()
        self.points.add(here)
        if self.points.certify(self.tol) is None:
            return
        # The roundings of the walk, as where a row is far from all others: solvers know more ways.
        self.points.add(here)
        left = replace(self.limits, iterations=None).after(self.progress.seconds)
        other = self.machine.otherwise(C, solution.alpha, self.tol, left)
        if other is not None:
            self.points.replace_last(other)
        else:
            # The best there is: the certificate says how far it is from the optimum.
            self.status = Status.PATIENCE
        self.points.accept()

    def _ended(self) -> Status | None:
        """Tell the callbacks of the last point; return why the path ends here, if it does."""
        points, k = self.points, len(self.points) - 1
        _, _, square, errors = points.numbers[k]
        dual = float(points.alpha[k].sum()) - 0.5 * float(square)
        stopped = self.progress.iteration(
            -dual, int(errors), 0.0, lambda: points.solution(k), dual=dual, exact=True
        )
        return Status.STOPPED if stopped else self.limits.reached(len(points), self.progress)
