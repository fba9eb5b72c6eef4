"""Newton's method on the free variables of a task, where steps of pairs are many and short.

The free variables F of a problem are those strictly between their bounds. With all others held
fixed, their best values solve

    (K + D)_FF δ + λe = f_F,   Σδ = 0,

by a Cholesky factorisation. Those that this would move beyond a bound are put there, and the others
solved for again, until none is beyond. The way from β to that point is one of descent, and its best
length is known: f is linear along it. Pair steps then find which variables are free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .kernel_rows import KernelRows
    from .task_state import TaskState

# Free variables up to which a factorisation takes milliseconds, and from which it is of use.
MOST_FREE, LEAST_FREE = 8192, 64
# Times that variables are put to their bounds.
MAX_ROUNDS = 12
# What is added to the diagonal of K, relative to it, at first: rows that are nearly equal.
JITTER = 1e-13
# Numbers of K that are computed at a time.
BLOCK_NUMBERS = 1 << 27


def newton_step(state: TaskState, t: int, rows: KernelRows) -> bool:
    """Move the free variables of one task to their best values, as far as that descends."""
    beta, lower, upper = state.beta[t], state.lower[t], state.upper[t]
    free = ((beta > lower) & (beta < upper)).nonzero().reshape(-1)
    if not LEAST_FREE <= len(free) <= MOST_FREE:
        return False
    index = state.index[t, free]
    A = rows.values(index, index)
    A.diagonal().add_(state.ridge[t, free] + JITTER * A.diagonal().amax())
    change = _best_change(A, state.f[t, free], (lower - beta)[free], (upper - beta)[free])
    if change is None:
        return False
    slope, bend = state.f[t, free] @ change, change @ (A @ change)
    length = (slope / bend.clamp_min(1e-300)).clamp(0.0, 1.0)
    new = _moved(beta[free], length * change, lower[free], upper[free])
    _move(state, t, free, new - beta[free], rows)
    state.beta[t, free] = new
    return True


def _move(state: TaskState, t: int, free: Any, moved: Any, rows: KernelRows) -> None:
    """Update f of all variables of a task."""
    state.f[t, free] -= state.ridge[t, free] * moved
    index, step = state.index[t, free], max(1, BLOCK_NUMBERS // rows.n_rows)
    total = torch.zeros(rows.n_rows, dtype=torch.float64, device=moved.device)
    for first in range(0, len(free), step):
        some = slice(first, first + step)
        total += moved[some] @ rows.values(index[some])
    state.f[t] -= total[state.index[t]]


def _moved(beta: Any, change: Any, lower: Any, upper: Any) -> Any:
    """Return β after a change, at a bound exactly where it goes there."""
    new = beta + change
    new = torch.where(change >= upper - beta, upper, new)
    return torch.where(change <= lower - beta, lower, new)


def _best_change(A: Any, f: Any, low: Any, high: Any) -> Any:
    """Return the best change within bounds and of sum 0; None where none is found soon."""
    change = torch.zeros_like(f)
    inside = torch.ones_like(f, dtype=torch.bool)
    for _ in range(MAX_ROUNDS):
        some = inside.nonzero().reshape(-1)
        if len(some) < 2:
            return None
        part = A if len(some) == len(f) else A[some[:, None], some[None, :]]
        factor, failed = torch.linalg.cholesky_ex(part)
        if int(failed):
            return None
        fixed = torch.where(inside, 0.0, change)
        right = torch.stack([(f - A @ fixed)[some], torch.ones_like(some, dtype=f.dtype)], 1)
        u, v = torch.cholesky_solve(right, factor).unbind(1)
        level = (u.sum() + fixed.sum()) / v.sum()
        change = fixed.index_copy(0, some, u - level * v)
        beyond = inside & ((change > high) | (change < low))
        change = change.clamp(low, high)
        if not bool(beyond.any()):
            return change
        inside &= ~beyond
    return None
