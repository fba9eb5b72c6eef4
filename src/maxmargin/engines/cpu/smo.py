"""Sequential minimal optimisation: two variables at a time (Platt, 1999; Fan, Chen, Lin, 2005).

With β_i = y_i α_i, which lies between 0 and y_i u_i, the dual of the support vector machine is

    min ½ βᵀ(K + D)β − p yᵀβ   subject to   lower ≤ β ≤ upper,   Σβ = 0.

Its negative gradient is f = p y − (K + D)β: the label minus the score, without the bias. Raising
β_i and lowering β_j by the same t keeps Σβ = 0 and gains t(f_i − f_j) − ½t²(K_ii + K_jj − 2K_ij).
So β is optimal when no variable that can be raised has a larger f than one that can be lowered:

    max{f_i : β_i < upper_i} − min{f_j : β_j > lower_j} ≤ 0,

and the bias is any number between the two. Of all pairs the one is moved whose i has the largest f
and whose j promises the largest gain ½(f_i − f_j)²/(K_ii + K_jj − 2K_ij), of equals the last, as in
LIBSVM, until one of the two meets its bound or the gain is taken in full.

The machine with ν keeps the sum of each class: pairs are then chosen within a class.
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled, compiled_part
from ...runtime.simd import (
    count,
    fill,
    largest,
    load,
    place_of_largest,
    places,
    rough_reciprocal,
    store,
    where_greater,
)
from .task_rows import fetch, stored

# Larger than any gradient: added to entries that may not be chosen.
FAR = 1e30
# Differences of β, relative to it, that are rounding: a variable that close to its bound is there.
ROUNDING = 4e-16
# The least curvature: kernels of equal rows, and indefinite ones, have none.
FLAT = 1e-12


@compiled
def pair_steps(K, curvature, beta, lower, upper, f, raisable, lowerable, edges, stop, max_steps):
    """Move pairs of β in place, f with them, until max f − min f ≤ stop in every group.

    ``curvature`` is the diagonal of K + D. ``raisable`` and ``lowerable`` hold 0 where β may grow
    or shrink and ∓∞ elsewhere, so that the searches need no branch.
    """
    n = count(f)
    first, onward = places(f), fill(f, n)
    zero, two, flat = fill(f, 0.0), fill(f, 2.0), fill(f, FLAT)
    for k in range(f.size):
        _open(k, beta, lower, upper, raisable, lowerable)
    # Places of the type of edges: literal zeros would be compiled as a case of their own.
    i, j, t, steps, n_groups = edges[0], edges[0], 0.0, 0, edges.size - 1
    rows = stored(K)
    fetch(K, i)
    while steps < max_steps:
        # f ← f − t (K_i − K_j), and at once the largest f that may grow, the least that may shrink.
        Ki, Kj, by = rows[i], rows[j], fill(f, t)
        group, violation, most = 0, -FAR, 0.0
        for g in range(n_groups):
            top, at, low = fill(f, -FAR), zero, fill(f, FAR)
            place = first + fill(f, edges[g])
            for k in range(edges[g], edges[g + 1], n):
                value = load(f, k) - by * (load(Ki, k) - load(Kj, k))
                store(f, k, value)
                up, down = value + load(raisable, k), value + load(lowerable, k)
                at = where_greater(top, up, at, place)
                top = where_greater(top, up, top, up)
                low = where_greater(low, down, down, low)
                place = place + onward
            highest, lowest = largest(top), -largest(zero - low)
            if highest - lowest > violation:
                violation, group, most = highest - lowest, g, highest
                i = np.int64(place_of_largest(top, at))
        if violation <= stop:
            break
        # The partner that gains most: (f_i − f_j)²/(K_ii + K_jj − 2K_ij).
        fetch(K, i)
        Ki, own, highest = rows[i], fill(f, curvature[i]), fill(f, most)
        best, at = fill(f, -1.0), zero
        place = first + fill(f, edges[group])
        for k in range(edges[group], edges[group + 1], n):
            fall = highest - (load(f, k) + load(lowerable, k))
            fall = where_greater(fall, zero, fall, zero)
            bend = own + load(curvature, k) - two * load(Ki, k)
            gain = fall * fall * rough_reciprocal(where_greater(bend, flat, bend, flat))
            at = where_greater(best, gain, at, place)
            best = where_greater(best, gain, best, gain)
            place = place + onward
        j = np.int64(place_of_largest(best, at))
        fetch(K, j)
        t = _move(i, j, most - f[j], curvature[i] + curvature[j] - 2.0 * Ki[j], beta, lower, upper)
        _open(i, beta, lower, upper, raisable, lowerable)
        _open(j, beta, lower, upper, raisable, lowerable)
        steps += 1
    if steps == max_steps:  # f of the last of them
        Ki, Kj, by = rows[i], rows[j], fill(f, t)
        for k in range(edges[0], edges[n_groups], n):
            store(f, k, load(f, k) - by * (load(Ki, k) - load(Kj, k)))
    return steps


@compiled_part
def _move(i, j, slope, bend, beta, lower, upper):
    """Raise β_i and lower β_j by what gains most within their bounds; return by how much."""
    t = np.float64(slope) / max(np.float64(bend), FLAT)
    room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
    if t < room_i and t < room_j:
        beta[i] += t
        beta[j] -= t
        return t
    # The bound itself, not what rounding makes of it.
    t = min(room_i, room_j)
    beta[i] = upper[i] if room_i - t <= ROUNDING * (abs(beta[i]) + t) else beta[i] + t
    beta[j] = lower[j] if room_j - t <= ROUNDING * (abs(beta[j]) + t) else beta[j] - t
    return t


@compiled_part
def _open(k, beta, lower, upper, raisable, lowerable):
    """Note whether β_k may grow and shrink."""
    raisable[k] = 0.0 if beta[k] < upper[k] else -FAR
    lowerable[k] = 0.0 if beta[k] > lower[k] else FAR
