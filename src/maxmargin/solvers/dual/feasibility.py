"""α within its bounds, with the sums that it must have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...problems import DualProblem

Mask = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Constraints:
    """The feasible set Aα = a, l ≤ α ≤ u.

    The rows of A are ±1 on their variables and share none, so that they stay independent on any
    subset of the variables.
    """

    A: Floats
    a: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, problem: DualProblem) -> Constraints:
        """Return the feasible set of a problem: one row of A per group, with its signs."""
        A = np.zeros((len(problem.groups), problem.n_variables))
        for row, group in zip(A, problem.groups, strict=True):
            row[group] = problem.signs[group]
        return cls(A, np.array(problem.sums), problem.lower, problem.upper)

    def nearest(self, alpha: Floats | None, tol: float = 0.0) -> Floats:
        """Return a copy of α, or of 0, that is clipped to its bounds and moved to Aα = a.

        As few variables as possible are moved, the free ones first: those at a bound stay there
        where they can. What has to be lowered is lowered before anything is raised. Sums that are
        right to ``tol``, relative to their terms, are left as they are.
        """
        start = np.zeros(self.lower.size) if alpha is None else np.array(alpha, dtype=np.float64)
        start = np.clip(start, self.lower, self.upper)
        for row, target in zip(self.A, self.a, strict=True):
            excess = float(row @ start - target)
            if abs(excess) <= tol * max(float(np.abs(row) @ np.abs(start)), abs(target)):
                continue
            pull = row * np.sign(excess)
            left = self._lower(start, np.flatnonzero(pull > 0), abs(excess))
            if left > 0.0:
                self._raise(start, np.flatnonzero(pull < 0), left)
        return start

    def inside(self, alpha: Floats) -> Mask:
        """Return which variables lie strictly between their bounds."""
        return np.asarray((alpha > self.lower) & (alpha < self.upper))

    def snapped(self, alpha: Floats) -> Floats:
        """Return α with what is within the rounding of Σα of a bound put onto it."""
        unit = (64.0 + 4.0 * alpha.size) * EPSILON
        at_upper = alpha >= (1.0 - unit) * self.upper  # which may be less than that rounding
        low = np.where(alpha - self.lower <= unit * alpha.max(initial=0.0), self.lower, alpha)
        return np.where(at_upper, self.upper, low)

    def _lower(self, alpha: Floats, rows: Integers, amount: float) -> float:
        """Lower Σα over some variables; return what the bounds leave of the amount."""
        rows, used, full = self._shares(alpha, rows, alpha - self.lower, amount)
        alpha[rows] = np.where(full, self.lower[rows], alpha[rows] - used)
        return amount - float(used.sum()) if full.all() else 0.0

    def _raise(self, alpha: Floats, rows: Integers, amount: float) -> None:
        """Raise Σα over some variables as far as the bounds allow."""
        rows, used, full = self._shares(alpha, rows, self.upper - alpha, amount)
        alpha[rows] = np.where(full, self.upper[rows], alpha[rows] + used)

    def _shares(
        self, alpha: Floats, rows: Integers, room: Floats, amount: float
    ) -> tuple[Integers, Floats, Mask]:
        """Return the variables in order, the share of each, and whether it uses all of its room."""
        resting = (alpha <= self.lower) | (alpha >= self.upper)
        rows = rows[np.lexsort((-room[rows], resting[rows]))]
        most = np.minimum(room[rows], amount)
        used = np.clip(amount - (np.cumsum(most) - most), 0.0, most)
        return rows, used, used >= room[rows]
