"""The problem in some of its variables, and the active-set steps on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....arrays import Floats, Integers
from ....solution import Status
from ..feasibility import Constraints
from ..optimality import kkt_interval, multipliers, violations
from .factor import Factor, add_rows
from .tuning import EPSILON

if TYPE_CHECKING:
    from .point import Point


class Chunk:
    """The problem in some of its variables, the others at rest, and the active-set steps on it.

    H̃ = H + σAᵀA agrees with H = Q + D wherever Ad = 0, and is positive definite on F exactly when
    H is so on {Ad = 0}: that is what its Cholesky factor is kept for. Only variables that leave it
    so enter F; one that does not is the end of a direction of no curvature, along which α moves
    until some variable meets its bound.
    """

    def __init__(self, point: Point, rows: Integers, tol: float) -> None:
        problem = point.problem
        self.problem = problem.restrict(rows)
        y, upper, ridge = self.problem.signs, self.problem.upper, self.problem.ridge
        self.rows, self.tuning = rows, point.tuning
        self.H = point.gram.block(rows) * y * y[:, np.newaxis]
        self.H[np.diag_indices(rows.size)] += ridge
        whole = point.constraints
        A, lower = np.ascontiguousarray(whole.A[:, rows]), whole.lower[rows]
        self.constraints = Constraints(A, whole.a, lower, upper)
        self.A, self.lower = A, lower
        self.alpha, self.gradient = point.alpha[rows], point.gradient[rows]
        self.upper = upper
        self.objective = self.lowest = point.objective
        # What the chunk's share of Aα has to be.
        self.a = self.A @ self.alpha - (point.A @ point.alpha - point.a)
        self.sigma = point.sigma
        diagonal = self.H.diagonal() + self.sigma * (self.A != 0).any(axis=0)
        self.scale = np.sqrt(np.maximum(diagonal, 0.0))
        self.proof: Floats | None = None
        self.entering: int | None = None
        self.refined = self.stalled = 0
        self.factor, self.free = self._factor(point)
        self._look()
        self.stationary = self._settled(tol)

    def _factor(self, point: Point) -> tuple[Factor, Integers]:
        """Return the factor of F, the first rows of the chunk, and which of them it holds."""
        free = np.arange(point.free.size)
        if point.factor is not None and point.factor.updates < max(free.size, 50):
            return point.factor, free
        block = self.H[: free.size, : free.size] + self.sigma * (
            self.A[:, : free.size].T @ self.A[:, : free.size]
        )
        factor = Factor.of(block)
        if factor is not None:
            return factor, free
        # Of a start: what depends on others stays where it is, until it is found to violate.
        return Factor.of_independent(block)

    @property
    def violation(self) -> float:
        """The worst violation of a KKT condition."""
        return float(self.violations.max())

    def _look(self) -> None:
        """Find λ and what it leaves violated."""
        free = np.zeros(self.rows.size, dtype=bool)
        free[self.free] = True
        self.found = multipliers(self.constraints, self.alpha, self.gradient, free)
        self.slope = self.gradient + self.found @ self.A
        self.violations = violations(self.constraints, self.alpha, self.slope)

    def _settled(self, tol: float) -> bool:
        """Whether the free variables are stationary."""
        return bool(np.abs(self.slope[self.free]).max(initial=0.0) < 0.1 * tol)

    def step(self, tol: float) -> Status | None:
        """Move once; CONVERGED without a move when no KKT condition is violated by ``tol``."""
        if self.stationary and self.entering is None:
            j = self._violator(tol)
            if j is None:
                return Status.CONVERGED
            self._enter(j)
        status = self._newton(tol) if self.entering is None else self._slide(self.entering)
        if status is None and self.stalled > self.rows.size + self.tuning.hopeless_steps:
            status = Status.PATIENCE
        grown = EPSILON * self.sigma * float(self.alpha[np.isinf(self.upper)].sum())
        return Status.DIVERGED if status is None and grown > self.tuning.blurred_margin else status

    def _violator(self, tol: float) -> int | None:
        """Return the variable to enter F: the worst, or the first by Bland's rule in a stall."""
        outside = self.violations.copy()
        outside[self.free] = 0.0
        if outside.max() <= tol:
            return None
        bland = self.stalled > self.tuning.degenerate_steps
        candidates = np.flatnonzero(outside > tol)
        j = int(candidates[self.rows[candidates].argmin()] if bland else outside.argmax())
        for row in self.A:
            if row[j] and not row[self.free].any():
                # λ of this row is open: one end of the violated interval fixes it, free but in
                # its place, and the other end is the violator.
                pivot, j = kkt_interval(self.constraints, row, self.alpha, self.gradient)[:2]
                self._enter(pivot)
                self._look()
        return j

    def _enter(self, j: int) -> None:
        """Free variable j, or keep it in waiting where that would leave F without curvature."""
        column = self.H[self.free, j] + self.sigma * (self.A[:, j] @ self.A[:, self.free])
        diagonal = self.H[j, j] + self.sigma * float(self.A[:, j] @ self.A[:, j])
        sizes = self.scale[np.append(self.free, j)]
        independent, self.dependence = self.factor.append(
            column, diagonal, sizes, self.tuning.flat_curvature
        )
        if independent:
            self.free = np.append(self.free, j)
            self.stationary, self.refined, self.entering = False, 0, None
        else:
            self.entering = j

    def _newton(self, tol: float) -> Status | None:
        """Go to the minimum over F, or until a bound is met."""
        free = self.free
        A = self.A[:, free]
        present = A.any(axis=1)
        A, excess = A[present], (self.A @ self.alpha - self.a)[present]
        direction = -self.factor.solve(self.slope[free])
        if len(A):
            V = np.column_stack([self.factor.solve(row) for row in A])
            direction -= V @ np.linalg.solve(A @ V, excess + A @ direction)
        if not np.isfinite(direction).all():  # beyond the range of numbers
            return Status.PATIENCE
        reach, k = self._reach(free, direction)
        self._move(free, direction, min(reach, 1.0))
        if reach < 1.0:
            self._leave(k, direction[k])
            self.refined = 0
        else:
            self.refined += 1
            # A second step on the same F is iterative refinement.
            self.stationary = self.refined > 2 or self._settled(tol)
        return None

    def _slide(self, j: int) -> Status | None:
        """Move along the direction of no curvature that variable j would bring into F."""
        if self.violations[j] <= 0.0:
            self.entering = None
            return None
        rows = np.append(self.free, j)
        direction = np.append(-self.dependence, 1.0) * -np.sign(self.slope[j])
        if not np.isfinite(direction).all():
            return Status.PATIENCE
        reach, k = self._reach(rows, direction)
        # An entry that is rounding may pretend to be the bound of an unbounded direction.
        if np.isinf(reach) or abs(direction[k]) < 1e-8 * np.abs(direction).max():
            status = self._unbounded(rows, direction)
            if status or np.isinf(reach):
                return status or Status.DIVERGED
        self._move(rows, direction, reach)
        if k == self.free.size:
            self.alpha[j] = self.lower[j] if direction[k] < 0 else self.upper[j]
            self.entering = None
        else:
            self._leave(k, direction[k])
            self._enter(j)
        return None

    def _unbounded(self, rows: Integers, direction: Floats) -> Status | None:
        """Check whether the direction, without what rounding makes negative, is Gordan's proof."""
        u: Floats = np.zeros(self.rows.size)
        u[rows] = np.maximum(direction, 0.0)
        bounded = np.isfinite(self.upper) | (self.problem.ridge > 0.0)
        if not u.any() or bounded[u > 0].any() or not self.problem.has_unit_margin:
            return None
        u = convex(self.A, u)
        curvature = float(u @ self.H @ u)
        noise = 2.0 * self.tuning.flat_curvature * float(u @ self.scale) ** 2
        if abs(curvature) > noise or np.abs(self.A @ u).max(initial=0.0) > 1e-12:
            return None
        self.proof = u
        return Status.INSEPARABLE

    def _move(self, rows: Integers, direction: Floats, length: float) -> None:
        """α ← α + length·direction, with its gradient and the objective."""
        change, turned = length * direction, np.zeros(self.rows.size)
        add_rows(self.H, rows, change, turned)
        self.objective += float(change @ (self.slope[rows] + 0.5 * turned[rows]))
        self.alpha[rows] = np.clip(self.alpha[rows] + change, self.lower[rows], self.upper[rows])
        self.gradient += turned
        self._look()
        # Every step rounds the objective: a cycle may seem to lower it by that, without end.
        rounding = (self.stalled + 1) * EPSILON * abs(self.lowest)
        descends = self.objective < self.lowest - rounding
        self.stalled = 0 if descends else self.stalled + 1
        self.lowest = self.objective if descends else self.lowest

    def _leave(self, k: int, direction: float) -> None:
        """Put the k-th free variable to rest at the bound it has met."""
        j = self.free[k]
        self.alpha[j] = self.lower[j] if direction < 0 else self.upper[j]
        self.factor.drop(k)
        self.free = np.delete(self.free, k)
        self._look()

    def _reach(self, rows: Integers, direction: Floats) -> tuple[float, int]:
        """Return how far the direction goes within the bounds, and which entry ends it."""
        if not rows.size:
            return np.inf, 0
        size = np.abs(direction)
        alpha = self.alpha[rows]
        room = np.where(direction > 0, self.upper[rows] - alpha, alpha - self.lower[rows])
        ratios = np.full(rows.size, np.inf)
        with np.errstate(over="ignore"):
            np.divide(room, size, out=ratios, where=size > 0)
        reach = float(ratios.min())
        ties = np.flatnonzero(ratios <= reach * (1.0 + 1e-12))
        if self.stalled > self.tuning.degenerate_steps:  # Bland's rule
            return reach, int(ties[self.rows[rows[ties]].argmin()])
        return reach, int(ties[size[ties].argmax()])


def convex(A: Floats, u: Floats) -> Floats:
    """Return u scaled to Σu = 1, and each class to half of that where y is a row of A."""
    u = u.copy()
    for members in [*(A > 0), *(A < 0)]:
        u[members] /= u[members].sum() or 1.0
    return u / u.sum()
