"""Passes over the n variables of a dual problem: extremes, violators, sums of the duality gap."""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled, compiled_part

# Bins of f into which violators are counted.
N_BINS = 1024


@compiled
def extremes(f, beta, lower, upper):
    """Return the largest f that may grow and the least that may shrink."""
    top, low = -np.inf, np.inf
    for i in range(f.size):
        if beta[i] < upper[i] and f[i] > top:
            top = f[i]
        if beta[i] > lower[i] and f[i] < low:
            low = f[i]
    return top, low


@compiled
def violators(f, beta, lower, upper, inside, top, low, most, wanted):
    """Return up to ``wanted`` places outside the set where f is most wrong, by at most ``most``.

    Half of them have a large f that may grow, half a small one that may shrink. They are not
    sorted but counted into bins of f, which is as good and takes two passes.
    """
    n, scale = f.size, (N_BINS - 1) / most
    rising, falling = np.zeros(N_BINS, dtype=np.int64), np.zeros(N_BINS, dtype=np.int64)
    for i in range(n):
        if not inside[i]:
            if f[i] > low and beta[i] < upper[i]:
                rising[_bin(f[i] - low, scale)] += 1
            if f[i] < top and beta[i] > lower[i]:
                falling[_bin(top - f[i], scale)] += 1
    least_up, spare_up = _threshold(rising, wanted // 2)
    room = wanted - min(wanted // 2, rising.sum())
    least_down, spare_down = _threshold(falling, room)
    chosen, count, i = np.empty(wanted, dtype=np.int64), 0, 0
    stride = _stride(n)  # of equal violators, choose some from all over the data
    for _ in range(n):
        i = i + stride if i + stride < n else i + stride - n
        if inside[i] or count == wanted:
            continue
        up = _bin(f[i] - low, scale) if f[i] > low and beta[i] < upper[i] else -1
        down = _bin(top - f[i], scale) if f[i] < top and beta[i] > lower[i] else -1
        if up > least_up or (up == least_up and spare_up > 0):
            spare_up -= up == least_up
        elif down > least_down or (down == least_down and spare_down > 0):
            spare_down -= down == least_down
        else:
            continue
        chosen[count] = i
        count += 1
    return chosen[:count]


@compiled_part
def _bin(excess, scale):
    """The bin of a violation."""
    return min(int(excess * scale), N_BINS - 1)


@compiled_part
def _threshold(counts, room):
    """Return the bin above which all fit into ``room``, and how many of its own do too."""
    at, above = N_BINS - 1, 0
    while at > 0 and above + counts[at] <= room:
        above += counts[at]
        at -= 1
    return at, min(counts[at], room - above)


@compiled_part
def _stride(n):
    """Return a step of about 0.618 n that visits all of n places in turn."""
    step = max(1, int(0.6180339887 * n))
    while True:
        a, b = step, n
        while b:
            a, b = b, a % b
        if a == 1:
            return step
        step += 1


@compiled
def gap_sums(rows, signs, target, ridge, lower, upper, beta, f, level, b):
    """Return what `Totals` names, of the variables of one group.

    In terms of β the variable i adds (b_i − β_i)(t_i − ½D_i(b_i + β_i)) to the gap, where
    t_i = f_i + D_iβ_i − λ and b_i maximises b t_i − ½D_i b² within the bounds.
    """
    gap, square, smallest, size, errors = 0.0, 0.0, np.inf, 0.0, 0
    for k in range(rows.size):
        i = rows[k]
        slope = f[i] + ridge[i] * beta[i]
        score = target[i] - slope
        square += beta[i] * score
        size += abs(beta[i])
        smallest = min(smallest, signs[i] * (score + level))
        errors += signs[i] * (slope - b) >= signs[i] * target[i]
        t = slope - level
        if t == 0.0 and ridge[i] == 0.0:
            continue
        best = upper[i] if t > 0.0 else lower[i]
        if ridge[i] > 0.0:
            best = min(max(t / ridge[i], lower[i]), upper[i])
        gap += (best - beta[i]) * (t - 0.5 * ridge[i] * (best + beta[i]))
    return gap, square, smallest, size, errors
