"""Coordinate ascent: one variable at a time, for machines without a bias.

Without Σβ = 0 (see `smo` for β and f) a variable may move alone: raising β_i by t gains
t f_i − ½t²(K + D)_ii, most with t = f_i/(K + D)_ii. The one that gains most, ½f_i²/(K + D)_ii, is
moved until it meets its bound or the gain is taken in full. β is optimal when f_i ≤ 0 wherever β_i
may grow and f_i ≥ 0 wherever it may shrink (Cristianini, Shawe-Taylor, 2000, section 7.2).
"""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled
from ...runtime.simd import (
    count,
    fill,
    largest,
    load,
    place_of_largest,
    rough_reciprocal,
    store,
    where_greater,
)
from .smo import FLAT, _open
from .task_rows import fetch, stored


@compiled
def single_steps(K, curvature, beta, lower, upper, f, raisable, lowerable, stop, max_steps):
    """Move one β at a time in place, f with it, until no β violates by more than stop."""
    n = count(f)
    places = np.arange(n).astype(f.dtype)
    first, onward = load(places, 0), fill(f, n)
    zero, flat = fill(f, 0.0), fill(f, FLAT)
    for k in range(f.size):
        _open(k, beta, lower, upper, raisable, lowerable)
    i, t, steps, rows = 0, 0.0, 0, stored(K)
    fetch(K, i)
    while steps < max_steps:
        Ki, by = rows[i], fill(f, t)
        best, at, worst, place = fill(f, -1.0), zero, zero, first
        for k in range(0, f.size, n):
            value = load(f, k) - by * load(Ki, k)
            store(f, k, value)
            up, down = value + load(raisable, k), zero - (value + load(lowerable, k))
            wrong = where_greater(up, down, up, down)
            wrong = where_greater(wrong, zero, wrong, zero)
            bend = load(curvature, k)
            gain = wrong * wrong * rough_reciprocal(where_greater(bend, flat, bend, flat))
            worst = where_greater(wrong, worst, wrong, worst)
            at = where_greater(gain, best, place, at)
            best = where_greater(gain, best, gain, best)
            place = place + onward
        if largest(worst) <= stop:
            break
        i = int(place_of_largest(best, at))
        fetch(K, i)
        goal = beta[i] + np.float64(f[i]) / max(np.float64(curvature[i]), FLAT)
        goal = min(max(goal, lower[i]), upper[i])
        t, beta[i] = goal - beta[i], goal
        _open(i, beta, lower, upper, raisable, lowerable)
        steps += 1
    return steps
