"""The state of the path, kept accurate between calls of the compiled steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ....arrays import Floats, Integers
from ..active_set.factor import Factor
from . import events
from .events import BETA, FREE, LAMBDA, LOWER, N_CHANGES, N_FREE, N_IDLE, UPPER, advance, enter


@dataclass(frozen=True)
class Tuning:
    """How long a call of the compiled steps is."""

    # Breakpoints, and multiplications, of one call: less than a tenth of a second.
    points: int = 64
    work: float = 5e7
    # Changes of the factor, beyond the free variables, after which it is computed anew.
    changes: int = 50


class Pause(IntEnum):
    """Why a walk pauses."""

    FULL = events.FULL
    ARRIVED = events.ARRIVED
    STALLED = events.STALLED
    INDEFINITE = events.INDEFINITE


class Leg(NamedTuple):
    """Breakpoints in a row, and why there are no more of them.

    ``numbers`` has a row of C, b, ‖w‖² and the number of misclassified samples per breakpoint,
    ``a`` one of α/C, and ``at`` one of where the variables are between the one before and it.
    """

    numbers: Floats
    a: Floats
    at: events.Places
    pause: Pause


class CostWalk:
    """The machines of growing cost, from one breakpoint to the next.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The Gram matrix, in float64.
    y : ndarray of shape (n,)
        Labels −1 and +1.
    costs : ndarray of shape (n,)
        c > 0: the bounds of α are Cc.
    tuning : Tuning, optional
    """

    def __init__(self, K: Floats, y: Floats, costs: Floats, tuning: Tuning | None = None) -> None:
        n = len(y)
        self.K, self.y, self.upper = np.ascontiguousarray(K), y, costs
        self.tuning = tuning or Tuning()
        self.sigma = float(K.diagonal().max()) or 1.0
        self.a: Floats = np.zeros(n)
        self.q: Floats = np.zeros(n)
        self.at = np.zeros(n, dtype=np.int8)
        self.free = np.zeros(n + 1, dtype=np.intp)
        self.counts, self.level = np.zeros(3, dtype=np.intp), np.zeros(2)
        self.R, self.Z = np.zeros((n, n)), np.zeros((2, n))
        self._direction, self._turned = np.zeros(n + 1), np.zeros(n)

    def start(self, alpha: Floats, C: float) -> None:
        """Go to the optimum α of a cost C."""
        near = events.AT_BOUND * self.upper
        self.a = alpha / C
        self.at = np.full(self.a.size, FREE, dtype=np.int8)
        self.at[self.a <= near] = LOWER
        self.at[self.a >= self.upper - near] = UPPER
        self.a[self.at == LOWER] = 0.0
        self.a[self.at == UPPER] = self.upper[self.at == UPPER]
        self.level[LAMBDA] = 1.0 / C
        self.counts[:] = 0
        free = np.flatnonzero(self.at == FREE)
        self.free[: free.size] = free
        self.counts[N_FREE] = free.size
        self._multiply()
        self._factorise()
        self._refine()

    def leg(self, C: float) -> Leg:
        """Follow the path, at most as far as the cost C."""
        if self.counts[N_CHANGES] > self.counts[N_FREE] + self.tuning.changes:
            self._factorise()
        most_changes = int(self.counts[N_FREE]) + 2 * self.tuning.changes
        m, n = self.tuning.points, self.a.size
        levels, points, at = np.empty((m, 4)), np.empty((m, n)), np.empty((m, n), dtype=np.int8)
        found, pause = advance(
            *self._arrays(), 1.0 / C, (levels, points, at), most_changes, self.tuning.work
        )
        self._multiply()
        self._refine()
        if found and levels[found - 1, LAMBDA] == self.level[LAMBDA]:
            events.record(*self._arrays()[:2], levels[found - 1], points[found - 1])
        numbers = _of_costs(levels[:found])
        if pause == events.ARRIVED:
            numbers[-1, 0] = C
        return Leg(numbers, points[:found], at[:found], Pause(pause))

    def here(self) -> Leg:
        """Return the point that the walk has come to; what is on the way there is not known."""
        numbers, point = np.empty((1, 4)), np.empty((1, self.a.size))
        if not self.counts[N_FREE]:
            self.level[BETA] = events.middle(*self._arrays()[:2])
        events.record(*self._arrays()[:2], numbers[0], point[0])
        unknown = np.full((1, self.a.size), FREE, dtype=np.int8)
        return Leg(_of_costs(numbers), point, unknown, Pause.FULL)

    @property
    def C(self) -> float:
        """The cost that the walk has come to."""
        return float(1.0 / self.level[LAMBDA])

    def _arrays(self) -> tuple[events.Arrays, events.Arrays, events.Arrays]:
        """Return the machine, the state and the factor as compiled steps take them."""
        return (
            (self.K, self.y, self.upper, self.sigma),
            (self.a, self.q, self.at, self.free, self.counts, self.level),
            (self.R, self.Z, self._direction, self._turned),
        )

    def _rows(self) -> Integers:
        return self.free[: self.counts[N_FREE]]

    def _multiply(self) -> None:
        """Compute q = Qa anew."""
        self.q = self.y * (self.K @ (self.y * self.a))

    def _factorise(self) -> None:
        """Compute the factor of F anew; variables that depend on others are moved to a bound."""
        F = self._rows().copy()
        signs = self.y[F]
        block = (self.K[np.ix_(F, F)] + self.sigma) * signs * signs[:, np.newaxis]
        factor, kept = Factor.of(block), np.arange(F.size)
        if factor is None:
            factor, kept = Factor.of_independent(block)
        size = kept.size
        self.R[:size, :size] = factor.R[:size, :size]
        self.counts[:] = (size, self.counts[N_IDLE], 0)
        self.free[:size] = F[kept]
        right = np.stack([np.ones(size), self.y[F[kept]]], axis=1)
        if size:
            R = self.R[:size, :size]
            self.Z[:, :size] = solve_triangular(R, right, trans="T", check_finite=False).T
        others = np.delete(F, kept)
        self.at[others] = LOWER  # where they are put if nothing else ends the slide
        for j in others.tolist():
            enter(*self._arrays(), j)

    def _refine(self) -> None:
        """Take a Newton step on F, which removes what rounding has left of its gradient.

        Where F is nearly dependent, or the step leads out of the box, it may do harm: then a stays
        as it is.
        """
        F = self._rows()
        if not F.size:
            return
        y = self.y[F]
        before, q, rest = self.a[F], self.q, self._rest(F)
        R = self.R[: F.size, : F.size]
        right = np.stack([self.q[F] - self.level[LAMBDA] + y * self.level[BETA], y], axis=1)
        both = solve_triangular(R, right, trans="T", check_finite=False)
        both = solve_triangular(R, both, check_finite=False)
        excess = float(self.y @ self.a)
        change = (float(y @ both[:, 0]) - excess) / float(y @ both[:, 1])
        step = -both[:, 0] + change * both[:, 1]
        self.a[F] = np.clip(before + step, 0.0, self.upper[F])
        self.q = q + self.y * (self.K[:, F] @ (y * (self.a[F] - before)))
        if not self._rest(F) <= rest:
            self.a[F], self.q = before, q
            self._rest(F)

    def _rest(self, F: Integers) -> float:
        """Set β to its mean over F; return the largest gradient that is left, and yᵀa."""
        y, lam = self.y[F], self.level[LAMBDA]
        self.level[BETA] = float(np.mean(y * (lam - self.q[F])))
        gradient = self.q[F] - lam + y * self.level[BETA]
        return float(np.abs(gradient).max()) + self.sigma * abs(float(self.y @ self.a))


def _of_costs(levels: Floats) -> Floats:
    """Return C, b, ‖w‖² and errors for λ, β, aᵀQa and errors."""
    numbers = levels.copy()
    C = 1.0 / levels[:, LAMBDA]
    numbers[:, 0], numbers[:, 1], numbers[:, 2] = C, C * levels[:, BETA], C**2 * levels[:, 2]
    return numbers
