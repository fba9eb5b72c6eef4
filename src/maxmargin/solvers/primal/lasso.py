"""Quadratics with an ℓ1 penalty: min ½uᵀHu − q·u + Σ λ_j |u_j|.

One variable at a time goes to its minimum, which finds the variables that are 0; where that is
slow, the others move together towards the minimum for their signs, and those that would change
their sign become 0. Every move descends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...arrays import Floats, Integers
from ...engines.l1 import Quadratic
from ...runtime.row_access import compiled


@dataclass(frozen=True)
class Tuning:
    """What is tried, and how often."""

    passes: int = 20  # over the variables, before all move together
    together: float = 0.5  # of the passes that are left, for that
    fewest: int = 30  # passes for it
    accuracy: float = 0.1  # of the slopes, relative to what is enough, for all together
    shares: tuple[float, ...] = (1.0, 0.5, 0.25, 0.0625)  # of the way to go, on trial
    ridge: float = 1e-14  # relative to the largest H_jj, where H of the signs is singular
    solved_variables: int = 2000  # of a matrix, that move together


TUNING = Tuning()


def minimise(
    model: Quadratic, u: Floats, penalties: Floats, enough: float, passes: int,
    tuning: Tuning = TUNING,
) -> tuple[Floats, bool]:  # fmt: skip
    """Return the minimum from u on, and whether slopes are within ``enough`` of their best.

    Parameters
    ----------
    model : Quadratic
        About u.
    u : ndarray of shape (m,)
        Where to begin.
    penalties : ndarray of shape (m,)
        λ > 0.
    enough : float
    passes : int
        The work to spend, in passes over the variables.
    """
    u = u.copy()
    while passes > 0:
        if model.descend(u, penalties, enough, min(passes, tuning.passes)) <= enough:
            return u, True
        passes -= tuning.passes
        work = max(int(tuning.together * passes), tuning.fewest)
        if work <= passes:
            _move_together(model, u, penalties, enough, work, tuning)
            passes -= work
    return u, False


def _move_together(
    model: Quadratic, u: Floats, penalties: Floats, enough: float, work: int, tuning: Tuning
) -> None:
    """Move the variables that are not 0 towards the minimum for their signs, in place."""
    some = np.flatnonzero(u)
    if not some.size:
        return
    values, signed = u[some], penalties[some] * np.sign(u[some])
    step = model.direction(some, signed, tuning.accuracy * enough, work)
    if step is None:
        return
    turning = step * values < 0.0
    zeros = np.full(some.size, np.inf)
    np.divide(-values, step, out=zeros, where=turning)
    for share in (*tuning.shares, float(zeros.min())):
        if share > 1.0:
            break
        # A variable that would change its sign becomes 0.
        moved = np.where(zeros <= share, -values, share * step)
        falls = model.change(some, moved) + float(signed @ moved)
        if falls <= 0.0:
            model.move(some, moved)
            u[some] = np.where(zeros <= share, 0.0, values + moved)
            return


class Matrix:
    """A `Quadratic` whose H is at hand, where u is now and with its slopes there.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Positive semidefinite.
    slopes : ndarray of shape (m,)
    sums : ndarray of shape (m,)
        By how much a free bias moves the other way when a coefficient moves by 1.
    shift : float
        Its best change, before they move.
    """

    def __init__(
        self, H: Floats, slopes: Floats, sums: Floats, shift: float, tuning: Tuning = TUNING
    ) -> None:
        self.H, self.slopes, self.sums, self.shift = H, slopes.copy(), sums, shift
        self.tuning = tuning

    def descend(self, u: Floats, penalties: Floats, enough: float, passes: int) -> float:
        """Move one coefficient at a time."""
        before = u.copy()
        worst = float(_descend(self.H, penalties, u, self.slopes, enough, passes))
        self.shift -= float(self.sums @ (u - before))
        return worst

    def direction(
        self, some: Integers, penalties: Floats, enough: float, passes: int
    ) -> Floats | None:
        """Return p with H_SS p = slopes_S − λ_S."""
        if some.size > self.tuning.solved_variables:
            return None
        part = self.H[np.ix_(some, some)]
        part[np.diag_indices(some.size)] += self.tuning.ridge * part.diagonal().max()
        try:
            factor = cho_factor(part, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        step: Floats = cho_solve(factor, self.slopes[some] - penalties, check_finite=False)
        return step if np.isfinite(step).all() else None

    def change(self, some: Integers, step: Floats) -> float:
        """Return by how much a step would change the quadratic."""
        used = step != 0.0
        where, by = some[used], step[used]
        return float(by @ (0.5 * (self.H[np.ix_(where, where)] @ by) - self.slopes[where]))

    def move(self, some: Integers, step: Floats) -> None:
        """Go a step of some coefficients."""
        self.slopes -= self.H[:, some] @ step
        self.shift -= float(self.sums[some] @ step)


@compiled
def _descend(H, penalties, u, slopes, enough, passes):
    """Go over the variables, one at a time; return the largest change of a slope in a pass."""
    worst = 0.0
    for _ in range(passes):
        worst = 0.0
        for j in range(u.size):
            h, before, after = H[j, j], u[j], 0.0
            if h > 0.0:
                target, width = before + slopes[j] / h, penalties[j] / h
                if target > width:
                    after = target - width
                elif target < -width:
                    after = target + width
            if after != before:
                change = after - before
                u[j] = after
                line = H[j]
                for k in range(u.size):
                    slopes[k] -= change * line[k]
                worst = max(worst, abs(change) * h)
        if worst <= enough:
            break
    return worst
