"""A Newton step of the variables between their bounds, by a factorisation of their part of K.

SMO needs the more steps the worse the condition of K on the free variables is; this needs none of
them, but all of their kernel values.
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled, compiled_part

# Variables that may be free, and how often those that meet a bound are held there.
MAX_FREE, MAX_CLIPS = 4096, 10
# By this share of the largest K(x, x) the diagonal is raised, so that rounding leaves K definite:
# in double and in single precision, which does for a direction.
RAISED, RAISED_SINGLE = 1e-13, 1e-6


@compiled_part
def free_step_numbers(n_free):
    """Return how many numbers SMO passes over in the time of a step of so many variables."""
    return 4.0 * n_free**2 + n_free**3 / 16.0


@compiled_part
def free_step(A, f, low, high):
    """Return the change of free variables that gains most within their bounds, and if it gains.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        K of them, in double or single precision.
    f : ndarray of shape (n,)
        The gradient.
    low, high : ndarray of shape (n,)
        Bounds of the change, whose sum is 0.
    """
    n = f.size
    change, is_inside, raised = np.zeros(n), np.ones(n, dtype=np.bool_), 0.0
    for k in range(n):
        raised = max(raised, (RAISED_SINGLE if A.itemsize == 4 else RAISED) * A[k, k])
    for _ in range(MAX_CLIPS):
        some = np.flatnonzero(is_inside)
        is_definite, root = lower_root(A, some, raised)
        if some.size < 2 or not is_definite:
            return change, False
        first, second = np.empty(some.size), np.ones(some.size)
        for r in range(some.size):
            row, total = A[some[r]], f[some[r]]
            for k in range(n):
                if not is_inside[k]:
                    total -= row[k] * change[k]
            first[r] = total
        solve_by_root(root, first)
        solve_by_root(root, second)
        held = 0.0
        for k in range(n):
            held += 0.0 if is_inside[k] else change[k]
        level, has_met = (first.sum() + held) / second.sum(), False
        for r in range(some.size):
            k = some[r]
            change[k] = first[r] - level * second[r]
            if not low[k] < change[k] < high[k]:
                change[k] = min(max(change[k], low[k]), high[k])
                is_inside[k], has_met = False, True
        if not has_met:
            return change, along(A, f, change)
    return change, False


@compiled
def best_free_step(A, f, low, high):
    """Call `free_step`."""
    return free_step(A, f, low, high)


@compiled_part
def along(A, f, change):
    """Scale a change to the length that gains most, at most its own; return if it gains at all."""
    curved = np.dot(A, change.astype(A.dtype)).astype(f.dtype)
    slope, bend = np.dot(f, change), np.dot(change, curved)
    if not slope > 0.0:
        return False
    if bend > slope:
        change *= slope / bend
    return True


@compiled_part
def lower_root(A, some, raised):
    """Return whether A[some, some] is definite, and L with LLᵀ = A[some, some]."""
    part = np.empty((some.size, some.size), dtype=A.dtype)
    for r in range(some.size):
        row, values = A[some[r]], part[r]
        for c in range(some.size):
            values[c] = row[some[c]]
        values[r] += raised
    try:
        part = np.linalg.cholesky(part)
    except Exception:  # the only kind that compiled code can catch
        return False, part
    return True, part


@compiled_part
def solve_by_root(root, x):
    """Solve LLᵀz = x in place."""
    n = x.size
    for r in range(n):
        row, total = root[r], x[r]
        for k in range(r):
            total -= row[k] * x[k]
        x[r] = total / row[r]
    for r in range(n - 1, -1, -1):
        row = root[r]
        x[r] /= row[r]
        for k in range(r):
            x[k] -= row[k] * x[r]
