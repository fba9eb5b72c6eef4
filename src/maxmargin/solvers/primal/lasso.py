"""Quadratics with an ℓ1 penalty, of some hundred variables: min ½uᵀGu − q·u + Σ λ_j |u_j|.

One variable at a time goes to its minimum, which finds the variables that are 0; where that is
slow, the others move together to the minimum for their signs, or as far as the first of them that
becomes 0. Every move descends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...arrays import Floats
from ...runtime.row_access import compiled


@dataclass(frozen=True)
class Tuning:
    """What is tried, and how often."""

    passes: int = 20  # over the variables, before all move together
    rounds: int = 100  # of both
    ridge: float = 1e-14  # relative to the largest G_jj, where G of the signs is singular
    solved_variables: int = 2000  # that move together


TUNING = Tuning()


def minimise(
    G: Floats, q: Floats, penalties: Floats, u: Floats, enough: float, tuning: Tuning = TUNING
) -> Floats:
    """Return the minimum, from u on; slopes are left that differ from their best by ``enough``.

    Parameters
    ----------
    G : ndarray of shape (m, m)
        Positive semidefinite.
    q : ndarray of shape (m,)
    penalties : ndarray of shape (m,)
        λ > 0.
    u : ndarray of shape (m,)
        Where to begin.
    enough : float
    """
    u = u.copy()
    slopes = q - G @ u
    for _ in range(tuning.rounds):
        if descend(G, penalties, u, slopes, enough, tuning.passes) <= enough:
            break
        _move_together(G, penalties, u, slopes, tuning)
    return u


@compiled
def descend(G, penalties, u, slopes, enough, passes):
    """Go over the variables, one at a time; return the largest change of a slope in a pass."""
    worst = 0.0
    for _ in range(passes):
        worst = 0.0
        for j in range(u.size):
            h, before, after = G[j, j], u[j], 0.0
            if h > 0.0:
                target, width = before + slopes[j] / h, penalties[j] / h
                if target > width:
                    after = target - width
                elif target < -width:
                    after = target + width
            if after != before:
                change = after - before
                u[j] = after
                line = G[j]
                for k in range(u.size):
                    slopes[k] -= change * line[k]
                worst = max(worst, abs(change) * h)
        if worst <= enough:
            break
    return worst


def _move_together(G: Floats, penalties: Floats, u: Floats, slopes: Floats, tuning: Tuning) -> None:
    """Move the variables that are not 0 to the minimum for their signs, or to the first zero."""
    some = np.flatnonzero(u)
    if not 0 < some.size <= tuning.solved_variables:
        return
    part = G[np.ix_(some, some)]
    part[np.diag_indices(some.size)] += tuning.ridge * part.diagonal().max()
    values = u[some]
    try:
        step = cho_solve(
            cho_factor(part, lower=True, overwrite_a=True),
            slopes[some] - penalties[some] * np.sign(values),
        )
    except LinAlgError:
        return
    if not np.isfinite(step).all():
        return
    turning = step * values < 0.0
    zeros = np.full(some.size, np.inf)
    np.divide(-values, step, out=zeros, where=turning)
    first = int(zeros.argmin())
    t = min(1.0, float(zeros[first]))
    u[some] = values + t * step
    if zeros[first] <= 1.0:
        u[some[first]] = 0.0
    slopes -= G[:, some] @ (u[some] - values)
