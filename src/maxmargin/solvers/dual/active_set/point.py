"""α of all variables, its gradient and its free set."""

from __future__ import annotations

import numpy as np

from ....arrays import Floats, Integers
from ....engines.base import HostGram
from ....problems import DualProblem
from ....progress import Progress
from ....solution import Solution, Status
from ..feasibility import Constraints, Mask
from ..optimality import bias, dual_gradient, multipliers, primal_value, violations
from .chunk import Chunk
from .factor import Factor
from .tuning import EPSILON, Tuning


class Point:
    """α of all variables with its gradient, and the free set with its factor.

    ``constraints`` other than those of the problem are those of one on the way to it.
    """

    def __init__(
        self,
        problem: DualProblem,
        gram: HostGram,
        alpha: Floats | None,
        constraints: Constraints | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.problem, self.is_part = problem, constraints is not None
        self.tuning = tuning or Tuning()
        self.constraints = constraints or Constraints.of(problem)
        self.gram = gram
        self.A, self.a = self.constraints.A, self.constraints.a
        self.sizes = np.sqrt(np.maximum(gram.diagonal(), 0.0))
        self.sigma = float(self.sizes.max()) ** 2 or 1.0
        # Scores have the scale of the targets, or where p = 0 about that of K times Σα.
        self.unit = problem.target_scale or min(1.0, float(np.abs(self.a).sum()) * self.sigma)
        self.alpha = self.constraints.snapped(self.constraints.nearest(alpha))
        self.gradient = dual_gradient(problem, self.gram, self.alpha)
        self.free = np.flatnonzero(self.constraints.inside(self.alpha))
        self.factor: Factor | None = None
        self.proof: Floats | None = None
        self.lowest = self.least = np.inf
        self.patience = self.tuning.idle_chunks
        self.work = 0.0
        self._fresh = True

    @property
    def objective(self) -> float:
        """½αᵀ(Q + D)α + pᵀα, for the gradient is (Q + D)α + p."""
        alpha = self.alpha
        return 0.5 * float(alpha @ self.gradient + self.problem.p @ alpha)

    def rounding(self) -> float:
        """Bound what rounding makes of the terms p_i and α_j K(x_i, x_j) of the gradient."""
        products = float(self.sizes.max() * (self.sizes @ np.abs(self.alpha)))
        return EPSILON * (products + float(np.abs(self.problem.p).max()))

    def chunk(self, tol: float) -> Chunk | None:
        """Return the free variables and the worst violators, or None when nothing is violated."""
        self._price()
        if self.worst.max() <= tol and not self._fresh:
            # The gradient is a sum of many steps: the end is seen on a new one.
            self.gradient = dual_gradient(self.problem, self.gram, self.alpha)
            self._fresh = True
            self._price()
        if self.worst.max() <= tol:
            return None
        rows = np.concatenate([self.free, self._violators()])
        self._outside = int(self._wrong.sum() - self._wrong[rows].sum())
        chunk = Chunk(self, rows, tol)
        self.factor = chunk.factor
        return chunk

    def _violators(self) -> Integers:
        """Return what joins the free variables: all others if they are few, else the worst.

        As many as would raise a row of Aα as would lower it: they can move in pairs only.
        """
        others = np.ones(self.alpha.size, dtype=bool)
        others[self.free] = False
        if others.size <= self.tuning.whole_up_to_variables:
            return np.flatnonzero(others)
        others &= self.worst > 0
        pulls = self.A * self.slope
        sides = [others & (pull < 0) for pull in (*pulls, *-pulls)] or [others]
        return np.concatenate(
            [self._first(side, self.tuning.violators_per_chunk // len(sides)) for side in sides]
        )

    def _first(self, side: Mask, count: int) -> Integers:
        rows = np.flatnonzero(side)
        return rows[np.argsort(-self.worst[rows], kind="stable")[:count]]

    def _price(self) -> None:
        """Find the violation of every KKT condition, and which samples are on the wrong side."""
        problem, free = self.problem, np.zeros(self.alpha.size, dtype=bool)
        free[self.free] = True
        found = multipliers(self.constraints, self.alpha, self.gradient, free)
        self.slope = self.gradient + found @ self.A
        self.worst = violations(self.constraints, self.alpha, self.slope)
        self._wrong = margins_of(problem, self.alpha, self.gradient, found)[1] <= 0.0

    def look(self, chunk: Chunk) -> tuple[int, float, float]:
        """Return how many samples are on the wrong side, P and D.

        Wrong are those of the chunk now, and of the others those when last computed. P is known
        where all samples are in the chunk.
        """
        plain, margins = margins_of(chunk.problem, chunk.alpha, chunk.gradient, chunk.found)
        errors = self._outside + int(np.count_nonzero(margins <= 0.0))
        if self.is_part:
            return errors, np.nan, np.nan
        if chunk.rows.size < self.alpha.size:
            return errors, np.nan, -chunk.objective
        scores, b = chunk.problem.signs * plain, bias(chunk.problem, chunk.found)
        primal = primal_value(chunk.problem, float(chunk.alpha @ plain), scores, b)
        return errors, primal, -chunk.objective

    def absorb(self, chunk: Chunk) -> None:
        """Take over what the steps of a chunk have changed."""
        problem, rows = self.problem, chunk.rows
        change = chunk.alpha - self.alpha[rows]
        moved = np.flatnonzero(change)
        self.alpha[rows] = chunk.alpha
        change, moved = change[moved], rows[moved]
        if moved.size:
            self.gradient += problem.signs * self.gram.dot(moved, problem.signs[moved] * change)
            self.gradient[moved] += problem.ridge[moved] * change
            self._fresh = False
        self.free = rows[chunk.free]
        if chunk.proof is not None:
            self.proof = np.zeros(self.alpha.size)
            self.proof[rows] = chunk.proof

    def descends(self) -> bool:
        """Whether the objective or the violation has fallen in one of the last few chunks."""
        self._price()
        objective, violation = self.objective, float(self.worst.max())
        falls = objective < self.lowest or violation < self.least
        self.lowest, self.least = min(objective, self.lowest), min(violation, self.least)
        self.patience = self.tuning.idle_chunks if falls else self.patience - 1
        return self.patience > 0

    def snapshot(self, chunk: Chunk) -> Solution:
        """Return the state within a chunk."""
        alpha = self.alpha.copy()
        alpha[chunk.rows] = chunk.alpha
        b = np.array([bias(self.problem, chunk.found)])
        return Solution(np.empty((0, 0)), b, Status.STOPPED, alpha=alpha)

    def solution(self, status: Status, progress: Progress) -> Solution:
        """Return the final state."""
        problem, trace = self.problem, progress.trace()
        alpha = self.constraints.snapped(self.alpha)
        inner = self.constraints.inside(alpha)
        found = multipliers(self.constraints, alpha, self.gradient, inner)
        return Solution(
            w=np.empty((0, 0)),
            b=np.array([bias(problem, found)]),
            status=status,
            n_iter=len(trace),
            seconds=progress.seconds,
            alpha=alpha,
            multipliers=self.proof,
            scores=problem.signs * margins_of(problem, self.alpha, self.gradient, found)[0],
            trace=trace,
        )


def margins_of(
    problem: DualProblem, alpha: Floats, gradient: Floats, found: Floats
) -> tuple[Floats, Floats]:
    """Return y(g(x) − b) and y g(x), from the gradient y(g(x) − b) + Dα − p."""
    plain = gradient - problem.p - problem.ridge * alpha
    return plain, plain + problem.signs * bias(problem, found)
