"""Passes over the n variables of a dual problem: extremes, violators, sums of the duality gap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...runtime.row_access import compiled, compiled_part
from ...runtime.team import parallel

# Bins of f into which violators are counted.
N_BINS = 1024
# Variables that a thread passes over at a time.
PART = 8192


def survey(f: Floats, beta: Floats, lower: Floats, upper: Floats) -> tuple[float, float, float]:
    """Return the largest f that may grow, the least that may shrink, and the mean of the free."""
    found = np.empty((_parts(f.size), 4))
    survey_part(len(found), f, beta, lower, upper, found)
    n_free = float(found[:, 3].sum())
    mean = float(found[:, 2].sum()) / n_free if n_free else np.nan
    return float(found[:, 0].max()), float(found[:, 1].min()), mean


@parallel
def survey_part(part, f, beta, lower, upper, found):
    """Survey some variables."""
    top, low, total, count = -np.inf, np.inf, 0.0, 0
    for i in range(part * PART, min(part * PART + PART, f.size)):
        grows, shrinks = beta[i] < upper[i], beta[i] > lower[i]
        if grows and f[i] > top:
            top = f[i]
        if shrinks and f[i] < low:
            low = f[i]
        if grows and shrinks:
            total += f[i]
            count += 1
    found[part, 0], found[part, 1], found[part, 2], found[part, 3] = top, low, total, count


def violators(
    f: Floats,
    beta: Floats,
    lower: Floats,
    upper: Floats,
    inside: NDArray[np.bool_],
    level: tuple[float, float],
    most: float,
    wanted: int,
) -> Integers:
    """Return up to ``wanted`` places outside the set where f is most wrong, by at most ``most``.

    Half of them have a large f that may grow, half a small one that may shrink. They are not
    sorted but counted into bins of f, which is as good and takes two passes.
    """
    n_parts = _parts(f.size)
    variables = (f, beta, lower, upper, inside, *level, (N_BINS - 1) / most)
    bins = np.zeros((n_parts, 2, N_BINS), dtype=np.int64)
    count_violators(n_parts, *variables, bins)
    rising, falling = bins.sum(axis=0)
    least_up, spare_up = _threshold(rising, wanted // 2)
    room = wanted - min(wanted // 2, int(rising.sum()))
    least_down, spare_down = _threshold(falling, room)
    # Of equal violators, choose some from all over the data.
    up = _shares(bins[:, 0, least_up], spare_up)
    down = _shares(bins[:, 1, least_down], spare_down)
    chosen, counts = np.empty(f.size, dtype=np.int64), np.zeros(n_parts, dtype=np.int64)
    choose_violators(n_parts, *variables, least_up, up, least_down, down, chosen, counts)
    return np.concatenate([chosen[k * PART : k * PART + n] for k, n in enumerate(counts)])


def _shares(counts: Integers, room: int) -> Integers:
    """Divide some places among the parts, in proportion to what each could fill."""
    ends = np.cumsum(counts) * room // max(1, int(counts.sum()))
    return np.diff(ends, prepend=0)


@parallel
def count_violators(part, f, beta, lower, upper, inside, top, low, scale, bins):
    """Count the violators among some variables, by bins of f."""
    rising, falling = bins[part, 0], bins[part, 1]
    for i in range(part * PART, min(part * PART + PART, f.size)):
        if not inside[i]:
            if f[i] > low and beta[i] < upper[i]:
                rising[_bin(f[i] - low, scale)] += 1
            if f[i] < top and beta[i] > lower[i]:
                falling[_bin(top - f[i], scale)] += 1


@parallel
def choose_violators(
    part, f, beta, lower, upper, inside, top, low, scale, least_up, spare_up, least_down,
    spare_down, chosen, counts,
):  # fmt: skip
    """Choose the variables of a part above the least bins, and some of those bins."""
    start, count, at = part * PART, 0, 0
    n = min(PART, f.size - start)
    left_up, left_down, stride = spare_up[part], spare_down[part], _stride(n)
    for _ in range(n):
        at = at + stride if at + stride < n else at + stride - n
        i = start + at
        if inside[i]:
            continue
        up = _bin(f[i] - low, scale) if f[i] > low and beta[i] < upper[i] else -1
        down = _bin(top - f[i], scale) if f[i] < top and beta[i] > lower[i] else -1
        if up > least_up or (up == least_up and left_up > 0):
            left_up -= up == least_up
        elif down > least_down or (down == least_down and left_down > 0):
            left_down -= down == least_down
        else:
            continue
        chosen[start + count] = i
        count += 1
    counts[part] = count


def gap_totals(
    rows: Integers, variables: Any, level: float, b: float
) -> tuple[float, float, float, float, int]:
    """Return what `Totals` names, of the variables of one group."""
    found = np.empty((_parts(rows.size), 5))
    sum_gaps(len(found), rows, *variables, level, b, found)  # type: ignore[call-arg]
    gap, square, _, size, errors = found.sum(axis=0).tolist()
    return gap, square, float(found[:, 2].min()), size, int(errors)


@parallel
def sum_gaps(part, rows, signs, target, ridge, lower, upper, beta, f, level, b, found):
    """Sum over some of the variables of a group."""
    some = rows[part * PART : part * PART + PART]
    gap, square, smallest, size, errors = gap_sums(
        some, signs, target, ridge, lower, upper, beta, f, level, b
    )
    row = found[part]
    row[0], row[1], row[2], row[3], row[4] = gap, square, smallest, size, errors


def _parts(n: int) -> int:
    return max(1, -(-n // PART))


def _threshold(counts: Integers, room: int) -> tuple[int, int]:
    """Return the bin above which all fit into ``room``, and how many of its own do too."""
    above = np.cumsum(counts[::-1])  # of the bins from the last one on
    at = max(0, N_BINS - 1 - int(np.searchsorted(above, room, side="right")))
    fitting = int(above[N_BINS - 2 - at]) if at < N_BINS - 1 else 0
    return at, min(int(counts[at]), room - fitting)


@compiled_part
def _bin(excess, scale):
    """The bin of a violation."""
    return min(int(excess * scale), N_BINS - 1)


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
