"""Descent of one task at one cost, all rows of its group in memory.

The variables are those of all rows of the group: of rows that the task holds out both bounds are 0,
so that Kβ is known of them, too. Pairs of variables are moved: of all of them where they are few,
else of a working set of those that violate most, whose part of K fits the cache. Where pairs have
taken as long as a Newton step of the free variables would, one is made.
"""

from __future__ import annotations

import numpy as np

from ...runtime.atomics import now
from ...runtime.row_access import compiled_part
from .free_step import MAX_FREE, free_step, free_step_numbers
from .smo import pair_steps
from .task_descent import (
    BIAS,
    CONVERGED,
    GAP_TOLS,
    PAIR_GOAL_TOLS,
    STEPS,
    extremes,
    firm_gap,
    gap_of_groups,
    multiplier,
)
from .task_rows import VECTOR
from .values import UNIT

# Variables of a working set, a multiple of the numbers in a vector, and steps with it per variable.
SET_SIZE, LEAST_SET, STEPS_PER_VARIABLE = 768, 128, 20
# Vectors of a working set beside its part of K.
N_VECTORS = 7
# A round ends at this share of the violation before it.
ROUND_SHARE = 0.1
# f is computed anew where rounding may have changed it by this share of the violation allowed.
DRIFT_SHARE = 0.01
# Classes of violations into which variables are counted, to find the worst of them.
N_BINS = 128
# The numbers that a descent keeps from one slice to the next: the goal relative to the usual one,
# steps so far, numbers passed since the last Newton step, by how much longer the next one waits,
# variables of the next working set, and whether f has just been computed anew.
TIGHTENED, MADE, PASSED, PATIENCE, SIZE, FRESH = range(6)
N_KEPT = 16


@compiled_part
def begin(kept):
    """Write what a descent begins with."""
    kept[TIGHTENED], kept[MADE], kept[PASSED] = 1.0, 0.0, 0.0
    kept[PATIENCE], kept[SIZE], kept[FRESH] = 1.0, SET_SIZE, 0.0


@compiled_part
def descend(K, curvature, task, n, goal, max_steps, memory, kept, budget, numbers):
    """Descend from β, whose f is known, until the KKT conditions hold and the gap is small.

    Parameters
    ----------
    K : ndarray
        Of the rows of the group; of few rows it is in ``memory`` instead.
    curvature : ndarray
        The diagonal of K.
    task : tuple
        Places of the variables of the task, and the vectors of all rows: signs, target, D = 0,
        bounds, β, and f.
    n : int
        Rows of the group.
    goal : ndarray
        The tol of the caller, the one to reach, and the relative rounding error of a score.
    max_steps : int
    memory : ndarray
        A working set's part of K, and its vectors.
    kept : ndarray
        What is kept from one call to the next, and changed.
    budget : float
        Numbers that may be passed over by this call.
    numbers : ndarray
        The bias, the number of steps, and 1 if it has converged.

    Returns
    -------
    (float, bool)
        What is left of the budget, and whether this has ended.
    """
    _, _, target, _, low, up, beta, f = task
    tol, final_tol, rounding = goal[0], goal[1], goal[2]
    while True:
        top, least, mean = extremes(f, beta, low, up, 0, n)
        violation, b = top - least, multiplier(top, least, mean, final_tol)
        stop = kept[TIGHTENED] * PAIR_GOAL_TOLS * final_tol
        numbers[BIAS], numbers[STEPS] = b, kept[MADE]
        if violation > stop:
            if kept[MADE] >= max_steps:
                return budget, True
            if budget < 0.0:
                return budget, False
            t0 = now()
            work, is_stuck = improve(
                K, curvature, task, n, top, least, stop, max_steps, memory, kept
            )
            budget -= work
            kept[6] += now() - t0
            if is_stuck:
                return budget, True
            continue
        if kept[FRESH] == 0.0 and drift(beta, n, kept[MADE]) > DRIFT_SHARE * stop:
            t0 = now()
            budget -= refresh(K, task, n, memory)
            kept[7] += now() - t0
            kept[FRESH] = 1.0
            continue
        gap, _ = gap_of_groups(task, n, None, b, b)
        value = objective(beta, target, f, n)
        scale = max(abs(gap - value), 1e-300)
        if gap > GAP_TOLS * final_tol * scale and kept[TIGHTENED] >= 1e-6:
            kept[TIGHTENED] *= 0.5  # many small violations add up
            continue
        firm = firm_gap(task, curvature, f.size, b, b, 1.0, gap, rounding)
        numbers[CONVERGED] = firm <= 2.0 * tol * scale
        return budget, True


@compiled_part
def objective(beta, target, f, n):
    """Return ½βᵀKβ − βᵀ target."""
    value = 0.0
    for k in range(n):
        value -= 0.5 * beta[k] * (f[k] + target[k])
    return value


@compiled_part
def improve(K, curvature, task, n, top, least, stop, max_steps, memory, kept):
    """Make a Newton step or steps of pairs; return the numbers passed over, and if none helps."""
    _, _, _, _, low, up, beta, _ = task
    n_free = count_free(beta, low, up, n)
    due = kept[PATIENCE] * free_step_numbers(n_free)
    may_solve = 1 < n_free <= MAX_FREE
    kept[FRESH] = 0.0
    if may_solve and kept[PASSED] >= due:
        t0 = now()
        gains = move_free(K, task, n, n_free, memory)
        kept[8] += now() - t0
        kept[PASSED], kept[PATIENCE] = 0.0, 1.0 if gains else 2.0 * kept[PATIENCE]
        return free_step_numbers(n_free), False
    set_size = int(kept[SIZE])
    most = max_steps - int(kept[MADE])
    if may_solve:
        most = min(most, int((due - kept[PASSED]) / min(n, set_size)) + min(n, set_size))
    made, moved, size = move(K, curvature, task, n, top, least, stop, most, memory, set_size, kept)
    work = float(made) * size + (0.0 if n <= SET_SIZE else float(size) ** 2 + float(moved) * n)
    kept[MADE] += made
    kept[PASSED] += work
    kept[SIZE] = next_size(size, moved)
    return work, made == 0


@compiled_part
def next_size(size, moved):
    """Return the size of the next working set, for one of which so many variables have moved."""
    wanted = 2 * moved + -(2 * moved) % VECTOR
    return min(max(wanted, size // 2, LEAST_SET), SET_SIZE)


@compiled_part
def drift(beta, n, steps):
    """Return about how far rounding may have moved f in so many steps."""
    largest = 0.0
    for k in range(n):
        largest = max(largest, abs(beta[k]))
    return UNIT * (steps + n) * largest


@compiled_part
def count_free(beta, low, up, n):
    """Return how many variables are between their bounds."""
    found = 0
    for k in range(n):
        found += low[k] < beta[k] < up[k]
    return found


@compiled_part
def subtract_row(K, memory, k, by, f, n):
    """Do f ← f − by·K_k."""
    if n <= SET_SIZE:
        near = memory[k]
        for j in range(n):
            f[j] -= by * near[j]
        return
    row = K[k]
    for j in range(n):
        f[j] -= by * row[j]


@compiled_part
def refresh(K, task, n, memory):
    """Compute f anew; return the numbers passed over."""
    _, _, target, _, _, _, beta, f = task
    work = 0.0
    for k in range(n):
        f[k] = target[k]
    for k in range(n):
        if beta[k] != 0.0:
            subtract_row(K, memory, k, beta[k], f, n)
            work += n
    return work


@compiled_part
def move_free(K, task, n, n_free, memory):
    """Make a Newton step of the free variables, and move f with them; return whether it gains."""
    _, _, _, _, low, up, beta, f = task
    m, is_small = 0, n <= SET_SIZE
    free = np.empty(n_free, dtype=np.intp)
    for k in range(n):
        if low[k] < beta[k] < up[k]:
            free[m] = k
            m += 1
    A, slopes = np.empty((n_free, n_free)), np.empty(n_free)
    lowest, highest = np.empty(n_free), np.empty(n_free)
    for v in range(n_free):
        k, out = free[v], A[v]
        if is_small:
            near = memory[k]
            for u in range(n_free):
                out[u] = near[free[u]]
        else:
            row = K[k]
            for u in range(n_free):
                out[u] = row[free[u]]
        slopes[v], lowest[v], highest[v] = f[k], low[k] - beta[k], up[k] - beta[k]
    change, gains = free_step(A, slopes, lowest, highest)
    if not gains:
        return False
    for v in range(n_free):
        k, by = free[v], change[v]
        before = beta[k]
        # The bound itself, not what rounding makes of it.
        if by <= lowest[v]:
            beta[k] = low[k]
        elif by >= highest[v]:
            beta[k] = up[k]
        else:
            beta[k] += by
        subtract_row(K, memory, k, beta[k] - before, f, n)
    return True


@compiled_part
def move(K, curvature, task, n, top, least, stop, most, memory, set_size, kept):
    """Move pairs of variables, those that violate most where there are many, and f with them.

    Return the steps, how many variables moved, and of how many.
    """
    _, _, _, _, low, up, beta, f = task
    edges = np.empty(2, dtype=np.intp)
    edges[0], edges[1] = 0, f.size
    last = memory.shape[0] - N_VECTORS
    if n <= SET_SIZE:
        steps = pair_steps(
            memory, curvature, beta, low, up, f, memory[last], memory[last + 1], edges, 0.5 * stop,
            most,
        )  # fmt: skip
        return steps, n, n
    members = np.empty(set_size, dtype=np.intp)
    m = choose(f, beta, low, up, n, top, least, members)
    t0 = now()
    size = m + -m % VECTOR
    edges[1] = size
    bend, now = memory[last][:size], memory[last + 1][:size]
    lowest, highest = memory[last + 2][:size], memory[last + 3][:size]
    slopes, grows, shrinks = (
        memory[last + 4][:size], memory[last + 5][:size], memory[last + 6][:size],
    )  # fmt: skip
    for v in range(size):
        bend[v] = now[v] = lowest[v] = highest[v] = slopes[v] = 0.0
    for v in range(m):
        k = members[v]
        bend[v], now[v], slopes[v] = curvature[k], beta[k], f[k]
        lowest[v], highest[v] = low[k], up[k]
    for v in range(m):
        row, out = K[members[v]], memory[v]
        for u in range(m):
            out[u] = row[members[u]]
        for u in range(m, size):
            out[u] = 0.0
    enough = max(0.5 * stop, ROUND_SHARE * (top - least))
    most = min(most, STEPS_PER_VARIABLE * m)
    t1 = now()
    kept[10] += t1 - t0
    steps = pair_steps(
        memory, bend, now, lowest, highest, slopes, grows, shrinks, edges, enough, most
    )
    moved = 0
    t0 = now()
    kept[9] += t0 - t1
    for v in range(m):
        k = members[v]
        if now[v] != beta[k]:
            subtract_row(K, memory, k, now[v] - beta[k], f, n)
            beta[k] = now[v]
            moved += 1
    kept[11] += now() - t0
    return steps, moved, m


@compiled_part
def choose(f, beta, low, up, n, top, least, members):
    """Choose the variables that violate most, as many that may grow as that may shrink.

    They are counted by their violation; those of the last class that has room are taken in order.
    """
    counts, size = np.zeros((2, N_BINS), dtype=np.intp), members.size
    per_bin = (N_BINS - 1) / (top - least)
    for k in range(n):
        kind, excess = violation_of(f[k], beta[k] < up[k], beta[k] > low[k], top, least)
        if excess > 0.0:
            counts[kind, int(excess * per_bin)] += 1
    totals = counts[0].sum(), counts[1].sum()
    first = min(totals[0], max(size // 2, size - totals[1]))
    second = min(totals[1], size - first)
    edge0, room0 = last_class(counts[0], first)
    edge1, room1 = last_class(counts[1], second)
    m = 0
    for k in range(n):
        kind, excess = violation_of(f[k], beta[k] < up[k], beta[k] > low[k], top, least)
        if excess <= 0.0:
            continue
        at = int(excess * per_bin)
        if kind == 0 and (at > edge0 or (at == edge0 and room0 > 0)):
            room0 -= at == edge0
        elif kind == 1 and (at > edge1 or (at == edge1 and room1 > 0)):
            room1 -= at == edge1
        else:
            continue
        members[m] = k
        m += 1
    return m


@compiled_part
def violation_of(f, grows, shrinks, top, least):
    """Return whether a variable is to shrink rather than to grow, and by how much f is off."""
    rise = f - least if grows else -1.0
    fall = top - f if shrinks else -1.0
    if rise >= fall:
        return 0, rise
    return 1, fall


@compiled_part
def last_class(counts, wanted):
    """Return the class down to which the largest ones hold so many, and how many of its own."""
    at = counts.size - 1
    while at > 0 and wanted > counts[at]:
        wanted -= counts[at]
        at -= 1
    return at, wanted
