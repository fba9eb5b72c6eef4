"""Compiled steps from one event of the path to the next.

They share three tuples: the ``machine`` (K, y, upper, σ); the ``state`` (a, q, at, free, counts,
level), with q = Qa, ``at`` where each variable is (`LOWER`, `FREE` or `UPPER`), F the first
``counts[N_FREE]`` numbers of ``free``, and λ and β in ``level``; and the ``factor`` (R, Z, d, e),
with RᵀR = H̃ = Q_FF + σyyᵀ, Z = R⁻ᵀ(1, y), and two vectors to work with. All are changed in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays import Floats, Integers
from ....runtime.row_access import compiled, compiled_part
from ..active_set.factor import drop_column, solve_transposed, solve_upper

Arrays = tuple[Any, ...]
Places = NDArray[np.int8]

LOWER, FREE, UPPER = 0, 1, 2
# Places in ``level`` and in ``counts``.
LAMBDA, BETA = 0, 1
N_FREE, N_IDLE, N_CHANGES = 0, 1, 2
# What ended a call of `advance`.
FULL, ARRIVED, STALLED, INDEFINITE = 0, 1, 2, 3
# A rate of change, relative to the largest, that may be rounding.
FLAT_RATE = 1e-10
# A pivot, relative to the diagonal, below which independence is looked at more closely.
SMALL_PIVOT = 1e-6
# Curvature along d, relative to (Σ|d_i|√H_ii)², that counts as 0.
FLAT_CURVATURE = 1e-14
# By how many times more it must be negative before Q counts as not positive semidefinite.
NEGATIVE_CURVATURE = 1e4
# The distance of a from a bound, relative to it, that counts as 0.
AT_BOUND = 1e-12
# A length of a step, relative to λ, that counts as 0.
NO_STEP = 1e-14
# Steps of no length in a row after which variables are chosen by Bland's rule.
DEGENERATE_STEPS = 20


@compiled_part
def product(machine: Arrays, free: Integers, n_free: int, d: Floats, out: Floats) -> None:
    """Do out ← Q[:, F] d, four rows of K at a time."""
    K, y, _, _ = machine
    out[:] = 0.0
    whole = n_free - n_free % 4
    for k in range(0, whole, 4):
        i0, i1, i2, i3 = free[k], free[k + 1], free[k + 2], free[k + 3]
        v0, v1, v2, v3 = y[i0] * d[k], y[i1] * d[k + 1], y[i2] * d[k + 2], y[i3] * d[k + 3]
        r0, r1, r2, r3 = K[i0], K[i1], K[i2], K[i3]
        for i in range(out.size):
            out[i] += v0 * r0[i] + v1 * r1[i] + v2 * r2[i] + v3 * r3[i]
    for k in range(whole, n_free):
        row, by = K[free[k]], y[free[k]] * d[k]
        for i in range(out.size):
            out[i] += by * row[i]
    for i in range(out.size):
        out[i] *= y[i]


@compiled_part
def find_direction(machine: Arrays, state: Arrays, factor: Arrays) -> float:
    """Find how a_F, q and β change as λ falls: Q_FF d + y_F δ = −1, yᵀd = 0; return δ."""
    free, n_free = state[3], state[4][N_FREE]
    R, Z, d, e = factor
    both = square = 0.0
    for k in range(n_free):
        both += Z[0, k] * Z[1, k]
        square += Z[1, k] * Z[1, k]
    delta = -both / square
    for k in range(n_free):
        d[k] = -(Z[0, k] + delta * Z[1, k])
    if n_free == 1:  # yᵀd = 0, exactly
        d[0] = 0.0
    solve_upper(R, n_free, d)
    product(machine, free, n_free, d, e)
    return delta


@compiled_part
def first_leaving(
    a: Floats, upper: Floats, free: Integers, n_free: int, d: Floats, bland: bool
) -> tuple[float, int]:
    """Return how far d goes within the bounds, and the place in F of what ends it."""
    largest = 0.0
    for k in range(n_free):
        largest = max(largest, abs(d[k]))
    reach, found, size = np.inf, -1, 0.0
    for k in range(n_free):
        if abs(d[k]) <= FLAT_RATE * largest:
            continue
        i = free[k]
        room = upper[i] - a[i] if d[k] > 0.0 else a[i]
        t = max(room, 0.0) / abs(d[k])
        better = found < 0 or (i < free[found] if bland else abs(d[k]) > size)
        if t < reach * (1.0 - 1e-12) or (t <= reach * (1.0 + 1e-12) and better):
            reach, found, size = min(t, reach), k, abs(d[k])
    return reach, found


@compiled_part
def first_entering(
    y: Floats, state: Arrays, delta: float, e: Floats, bland: bool
) -> tuple[float, int]:
    """Return when the gradient of a resting variable first meets 0, and which one."""
    _, q, at, _, _, level = state
    lam, beta = level[LAMBDA], level[BETA]
    scale = 1.0 + abs(delta)
    for i in range(q.size):
        scale = max(scale, abs(e[i]))
    reach, found, size = np.inf, -1, 0.0
    for i in range(q.size):
        if at[i] == FREE:
            continue
        sign = 1.0 if at[i] == LOWER else -1.0
        rate = sign * (e[i] + y[i] * delta + 1.0)
        if rate >= -FLAT_RATE * scale:
            continue
        t = max(sign * (q[i] - lam + y[i] * beta), 0.0) / -rate
        better = found < 0 or (not bland and -rate > size)
        if t < reach * (1.0 - 1e-12) or (t <= reach * (1.0 + 1e-12) and better):
            reach, found, size = min(t, reach), i, -rate
    return reach, found


@compiled_part
def meeting_pair(y: Floats, state: Arrays) -> tuple[float, int, int]:
    """Return, without free variables, when β is fixed, and the pair that does it.

    Of the bounds of β only those of variables at their upper bound approach each other: from
    below q_i − λ of the negative class, from above λ − q_i of the positive one.
    """
    _, q, at, _, _, level = state
    low, high, i, j = -np.inf, np.inf, -1, -1
    for k in range(q.size):
        value = y[k] * (level[LAMBDA] - q[k])
        if at[k] == UPPER and y[k] < 0.0 and value > low:
            low, i = value, k
        if at[k] == UPPER and y[k] > 0.0 and value < high:
            high, j = value, k
    return max(0.5 * (high - low), 0.0), i, j


@compiled
def middle(machine: Arrays, state: Arrays) -> float:
    """Return the middle of the interval that variables at their bounds leave to β."""
    _, y, upper, _ = machine
    a, q, _, _, _, level = state
    low, high = -np.inf, np.inf
    for k in range(q.size):
        value = y[k] * (level[LAMBDA] - q[k])
        if (a[k] > 0.5 * upper[k]) == (y[k] < 0.0):
            low = max(low, value)
        else:
            high = min(high, value)
    return 0.5 * (low + high)


@compiled_part
def append_to(machine: Arrays, state: Arrays, factor: Arrays, j: int) -> int:
    """Free variable j unless it depends on F; then d is H̃[F, F]⁻¹H̃[F, j].

    Return 1 where it is free, 0 where it depends on F, −1 where Q is not positive semidefinite.
    """
    K, y, _, sigma = machine
    _, _, at, free, counts, _ = state
    R, Z, x, _ = factor
    n_free = counts[N_FREE]
    diagonal = pivot = K[j, j] + sigma
    for k in range(n_free):
        x[k] = y[free[k]] * y[j] * (K[j, free[k]] + sigma)
    solve_transposed(R, n_free, x)
    for k in range(n_free):
        pivot -= x[k] * x[k]
    if pivot <= SMALL_PIVOT * diagonal:
        solved, size = x.copy(), np.sqrt(diagonal)
        solve_upper(R, n_free, solved)
        for k in range(n_free):
            size += abs(solved[k]) * np.sqrt(K[free[k], free[k]] + sigma)
        flat = FLAT_CURVATURE * size * size
        if pivot <= flat:
            x[:n_free] = solved[:n_free]
            return -1 if pivot < -NEGATIVE_CURVATURE * flat else 0
    root, one, sign = np.sqrt(pivot), 1.0, y[j]
    for k in range(n_free):
        R[k, n_free] = x[k]
        one -= x[k] * Z[0, k]
        sign -= x[k] * Z[1, k]
    R[n_free, n_free] = root
    Z[0, n_free], Z[1, n_free] = one / root, sign / root
    free[n_free], at[j] = j, FREE
    counts[N_FREE] += 1
    counts[N_CHANGES] += 1
    return 1


@compiled_part
def put_to_rest(machine: Arrays, state: Arrays, factor: Arrays, k: int, place: int) -> None:
    """Put the k-th free variable to rest at a bound."""
    a, _, at, free, counts, _ = state
    i = free[k]
    a[i] = 0.0 if place == LOWER else machine[2][i]
    at[i] = place
    drop_column(factor[0], counts[N_FREE], k, factor[1])
    for m in range(k, counts[N_FREE] - 1):
        free[m] = free[m + 1]
    counts[N_FREE] -= 1
    counts[N_CHANGES] += 1


@compiled_part
def slide(machine: Arrays, state: Arrays, factor: Arrays, j: int) -> float:
    """Move along the direction (−d, 1) of no curvature until some variable meets a bound.

    The gradient does not change: all a on the way are optimal. The variable that ends it rests,
    and j is free unless it is j itself. Return the length, or −1 where rounding leaves no way on.
    """
    a, _, at, free, counts, _ = state
    upper, n_free = machine[2], counts[N_FREE]
    sign = -1.0 if at[j] == UPPER else 1.0
    v = np.empty(n_free + 1)
    v[:n_free] = -sign * factor[2][:n_free]
    v[n_free] = sign
    free[n_free] = j
    reach, k = first_leaving(a, upper, free, n_free + 1, v, state[4][N_IDLE] > DEGENERATE_STEPS)
    move(machine, state, n_free + 1, v, factor[3], reach)
    if k == n_free:
        at[j] = UPPER if sign > 0.0 else LOWER
        a[j] = upper[j] if sign > 0.0 else 0.0
        return reach
    put_to_rest(machine, state, factor, k, UPPER if v[k] > 0.0 else LOWER)
    return reach if append_to(machine, state, factor, j) == 1 else -1.0


@compiled_part
def move(machine: Arrays, state: Arrays, n_moved: int, v: Floats, e: Floats, length: float) -> None:
    """Do a ← a + length·v within the bounds, and q with it."""
    a, q, _, free, _, _ = state
    upper = machine[2]
    product(machine, free, n_moved, v, e)
    for m in range(n_moved):
        i = free[m]
        a[i] = min(max(a[i] + length * v[m], 0.0), upper[i])
    for i in range(q.size):
        q[i] += length * e[i]


@compiled
def enter(machine: Arrays, state: Arrays, factor: Arrays, j: int) -> float:
    """Free variable j, or slide where it depends on F; return by how much a_j jumps, or −1."""
    done = append_to(machine, state, factor, j)
    return slide(machine, state, factor, j) if done == 0 else 0.5 * (done - 1.0)


@compiled_part
def step(machine: Arrays, state: Arrays, factor: Arrays, end: float) -> tuple[float, int, int, int]:
    """Let λ fall to the next event; return by how much, and what leaves F or enters it."""
    a, q, _, free, counts, level = state
    y, upper = machine[1], machine[2]
    d, e = factor[2], factor[3]
    n_free, lam, bland = counts[N_FREE], level[LAMBDA], counts[N_IDLE] > DEGENERATE_STEPS
    if not n_free:
        t, i, j = meeting_pair(y, state)
        t = min(t, lam - end)
        level[LAMBDA] = end if t == lam - end else lam - t
        level[BETA] = middle(machine, state)
        return t, -1, i, j
    delta = find_direction(machine, state, factor)
    leaving, k = first_leaving(a, upper, free, n_free, d, bland)
    entering, j = first_entering(y, state, delta, e, bland)
    t = min(leaving, entering, lam - end)
    for m in range(n_free):
        i = free[m]
        a[i] = min(max(a[i] + t * d[m], 0.0), upper[i])
    if t == leaving:
        a[free[k]] = upper[free[k]] if d[k] > 0.0 else 0.0
    for i in range(q.size):
        q[i] += t * e[i]
    level[LAMBDA] = end if t == lam - end else lam - t
    level[BETA] += t * delta
    return t, k if leaving <= entering else -1, -1, j


@compiled
def record(machine: Arrays, state: Arrays, numbers: Floats, point: Floats) -> None:
    """Write down λ, β, aᵀQa and the number of misclassified samples, and a.

    Where no a is strictly between its bounds, β is the middle of what the KKT conditions leave.
    """
    a, q, _, free, counts, level = state
    upper = machine[2]
    square, errors, beta, is_open = 0.0, 0, level[BETA], True
    for k in range(counts[N_FREE]):
        i = free[k]
        is_open &= a[i] <= AT_BOUND * upper[i] or a[i] >= (1.0 - AT_BOUND) * upper[i]
    if is_open:
        beta = middle(machine, state)
    for i in range(a.size):
        point[i] = a[i]
        square += a[i] * q[i]
        # On the plane the positive class is predicted.
        score = machine[1][i] * q[i] + beta
        errors += score < 0.0 if machine[1][i] > 0.0 else score >= 0.0
    numbers[0], numbers[1], numbers[2], numbers[3] = level[LAMBDA], beta, square, errors


@compiled
def advance(
    machine: Arrays,
    state: Arrays,
    factor: Arrays,
    end: float,
    points: Arrays,
    most_changes: int,
    most_work: float,
) -> tuple[int, int]:
    """Follow the path until λ = ``end``, ``points`` are full, or enough work is done.

    Breakpoints are those after every step of positive length and after every jump of a:
    ``points`` are (numbers, a, at), the first two as `record` writes them, and where the variables
    were on the way. Return how many, and what ended it.
    """
    a, _, at, _, counts, level = state
    levels, values, places = points
    n, found, work = a.size, 0, 0.0
    while found + 2 <= len(levels) and work < most_work and counts[N_CHANGES] < most_changes:
        work += 1e3 + 1.5 * counts[N_FREE] * (n + counts[N_FREE])
        t, leaving, other, entering = step(machine, state, factor, end)
        arrived = level[LAMBDA] <= end
        counts[N_IDLE] += 1
        jump = 0.0
        # What is left of a after a long step has lost digits, which refinement restores.
        is_long = t > level[LAMBDA]
        if t > NO_STEP * level[LAMBDA] or arrived:
            counts[N_IDLE] = 0
            record(machine, state, levels[found], values[found])
            places[found] = at
            found += 1
        if arrived:
            return found, ARRIVED
        if counts[N_IDLE] > DEGENERATE_STEPS + 4 * n:
            return found, STALLED
        if leaving >= 0:
            place = UPPER if factor[2][leaving] > 0.0 else LOWER
            put_to_rest(machine, state, factor, leaving, place)
        else:
            jump = enter(machine, state, factor, other) if other >= 0 else 0.0
            if jump >= 0.0:
                jump = enter(machine, state, factor, entering)
            if jump < 0.0:
                return found, INDEFINITE
        if jump > 0.0:
            record(machine, state, levels[found], values[found])
            places[found] = at
            found += 1
        if is_long:
            break
    return found, FULL
