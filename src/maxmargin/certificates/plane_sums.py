"""Compiled sums over the rows of a linear machine, for its certificate: formulas of their own.

Regions work on rows ``part * step`` and on; what a part finds goes to its own line, `N_FOUND`
numbers of which the places are named below. u and D hold one number per row, or one for all.
``two_sided`` says whether y are targets, with a tube of ``epsilon``, and ``alpha`` is β; a free
bias is then taken from the targets (``shift``), not added to the scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats
from ..runtime.row_access import compiled, compiled_part, row_add, row_dot, row_square
from ..runtime.team import parallel
from .dual_tasks import ROUNDING, TINY
from .scores import UNIT

# How norms are rounded up.
UPWARDS = 1.0 + 1e-6
# Rows that are measured, and then judged, while they are in a core's cache.
CHUNK_ROWS = 512

# Sums: the loss, the largest loss that rounding allows; yβ − ε|β|, the sizes of its terms, |β|, β
# and Dβ² after Σβ = 0 is restored; bounds of the rounding errors of Σ βx; and the losses of targets
# with no plane and no tube.
LOSS, MOST_LOSS, GAIN, TERMS, ALPHA, REST, RIDGE, BLUR, UNEXPLAINED = range(9)
# The least and the largest of all.
LEAST_MARGIN, LEAST_SLOPE, LARGEST_SLOPE, ERROR, FARTHEST = range(9, 14)
N_FOUND = 14
# Sums and largest values of α before.
POSITIVE, NEGATIVE, LARGEST, OUTSIDE = range(4)


class Found(NamedTuple):
    """What all rows say."""

    loss: float
    most_loss: float
    gain: float
    terms: float
    alpha: float
    rest: float
    ridge: float
    blur: float
    unexplained: float
    least_margin: float
    least_slope: float
    largest_slope: float
    error: float
    farthest: float

    @classmethod
    def of(cls, lines: Floats) -> Found:
        """Return what the lines of all parts come to."""
        return cls(*(float(value) for value in merged(lines)[0]))


def merged(lines: Floats) -> Floats:
    """Return what the lines of several parts come to, as one line."""
    sums, least, largest = np.split(lines, [LEAST_MARGIN, LARGEST_SLOPE], axis=1)
    return np.hstack([sums.sum(axis=0), least.min(axis=0), largest.max(axis=0)])[np.newaxis]


@compiled_part
def _of(values, i):
    return values[i] if values.size > 1 else values[0]


@compiled_part
def _inside(alpha, box, two_sided, i):
    """Return α_i clipped to 0 ≤ α ≤ u, or to |α| ≤ u; a NaN stays one."""
    a, u = alpha[i], _of(box, i)
    least = -u if two_sided else 0.0
    if a < least:
        return least
    return u if a > u else a


@parallel
def add_up_alpha(part, step, alpha, box, y, two_sided, found):
    """Add up |β| in its box by sign; find the largest, and how far outside of the box α is."""
    positive, negative, largest, outside = 0.0, 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        a = _inside(alpha, box, two_sided, i)
        size = abs(a)
        largest, outside = max(largest, size), max(outside, abs(alpha[i] - a))
        if (a if two_sided else y[i]) > 0.0:
            positive += size
        else:
            negative += size
    line = found[part]
    line[POSITIVE], line[NEGATIVE], line[LARGEST], line[OUTSIDE] = (
        positive, negative, largest, outside,
    )  # fmt: skip


@parallel
def measure(
    part,
    step,
    rows,
    centre,
    w,
    b,
    y,
    two_sided,
    epsilon,
    shift,
    alpha,
    box,
    plus,
    minus,
    upper,
    ridge,
    largest,
    found,
    sums,
):
    """Compute the scores of some rows and judge them; add up βx, every term about a centre."""
    last, d = min((part + 1) * step, y.size), w.size
    scores, wrong, some = np.empty(CHUNK_ROWS), np.empty(CHUNK_ROWS), np.empty(d)
    line, x, length = found[part], np.empty(d), 0.0
    offset = abs(b)
    for j in range(d):
        length += w[j] * w[j]
        if centre[j] * w[j] != 0.0:  # then b, or the shift, was rounded
            offset = abs(b) + abs(shift)
    length = np.sqrt(length) * UPWARDS
    n_chunks = (last - part * step) // CHUNK_ROWS + sums.shape[0] + 1
    start_line(line)
    for first in range(part * step, last, CHUNK_ROWS):
        n = min(CHUNK_ROWS, last - first)
        squares, weights = 0.0, 0.0
        some[:] = 0.0
        for k in range(n):
            i = first + k
            signed = _inside(alpha, box, two_sided, i) * (1.0 if two_sided else y[i])
            signed *= plus if signed > 0.0 else minus
            if len(rows) == 1:
                square, score = _about(rows[0][i], centre, w, x)
                if signed != 0.0:
                    for j in range(d):
                        some[j] += signed * x[j]
            else:
                square, score = row_square(rows, i), row_dot(rows, i, w)
                if signed != 0.0:
                    row_add(rows, i, some, signed)
            squares += square
            weights += signed * signed
            scores[k] = score + b
            wrong[k] = (d + 4) * UNIT * (np.sqrt(square) * UPWARDS * length + offset)
        for j in range(d):
            sums[part, j] += some[j]
        # Of a sum of n terms, and of those of all chunks.
        line[BLUR] += (n + n_chunks + 2) * UNIT * np.sqrt(squares * weights) * UPWARDS**2
        _judge(
            scores[:n],
            wrong[:n],
            first,
            y,
            two_sided,
            epsilon,
            shift,
            alpha,
            box,
            plus,
            minus,
            upper,
            ridge,
            largest,
            line,
        )


@compiled_part
def _about(row, centre, w, x):
    """Write a row less a centre to x; return its squared length, and w·x."""
    square, product = 0.0, 0.0
    for j in range(x.size):
        value = np.float64(row[j]) - centre[j]
        x[j] = value
        square += value * value
        product += value * w[j]
    return square, product


@parallel
def judge(
    part,
    step,
    scores,
    wrong,
    y,
    two_sided,
    epsilon,
    shift,
    alpha,
    box,
    plus,
    minus,
    upper,
    ridge,
    largest,
    found,
):
    """Judge rows whose scores, and bounds of their errors, are known."""
    some = slice(part * step, min((part + 1) * step, y.size))
    line = found[part]
    start_line(line)
    _judge(
        scores[some],
        wrong[some],
        part * step,
        y,
        two_sided,
        epsilon,
        shift,
        alpha,
        box,
        plus,
        minus,
        upper,
        ridge,
        largest,
        line,
    )


@compiled_part
def start_line(line):
    """Begin with no row."""
    line[:] = 0.0
    line[LEAST_MARGIN], line[LEAST_SLOPE], line[LARGEST_SLOPE] = np.inf, np.inf, -np.inf


@compiled
def _judge(
    scores,
    wrong,
    first,
    y,
    two_sided,
    epsilon,
    shift,
    alpha,
    box,
    plus,
    minus,
    upper,
    ridge,
    largest,
    line,
):
    """Add the losses of some rows, and the terms of D; find the worst of the KKT conditions."""
    loss, most_loss, gain, terms, total = 0.0, 0.0, 0.0, 0.0, 0.0
    rest, squares, unexplained = 0.0, 0.0, 0.0
    error, farthest = line[ERROR], line[FARTHEST]
    margin, least, most = line[LEAST_MARGIN], line[LEAST_SLOPE], line[LARGEST_SLOPE]
    for k in range(scores.size):
        i = first + k
        u, D, a = _of(upper, i), _of(ridge, i), _inside(alpha, box, two_sided, i)
        finite = D if np.inf > D else 0.0
        if two_sided:
            target, lost = _difference(y[i], shift)
            r, side = target - scores[k], 1.0 if a > 0.0 else -1.0
            # The side of β, and of r where β = 0.
            y_score = 1.0 + epsilon - (side * r if a != 0.0 else abs(r))
            z, unsure = abs(r) - epsilon, wrong[k] + abs(lost)
            if scores[k] != 0.0:
                unsure += 2.0 * UNIT * abs(r)
            restored = (plus if a > 0.0 else minus) * a
            gain += restored * target - epsilon * abs(restored)
            terms += abs(restored) * (abs(target) + epsilon)
            farthest = max(farthest, abs(target))
            unexplained += loss_of(abs(target), u, D)
        else:
            y_score = y[i] * scores[k]
            z, unsure = 1.0 - y_score, wrong[k]
            restored = (plus if y[i] > 0.0 else minus) * a * y[i]
            gain += abs(restored)
            terms += abs(restored)
        loss += loss_of(z, u, D)
        most_loss += loss_of(z + unsure, u, D)
        error = max(error, unsure)
        total += abs(restored)
        rest += restored
        if restored != 0.0:  # β² may underflow
            squares += finite * (restored * restored + TINY)
        if u > 0.0 and np.inf > D:
            a = abs(a)
            slope = y_score + finite * a
            margin = min(margin, y_score)
            # At its bound is what rounding cannot tell from it.
            if a < (1.0 - ROUNDING) * u:
                least = min(least, slope)
            if a > ROUNDING * min(u, largest):
                most = max(most, slope)
    line[LOSS] += loss
    line[MOST_LOSS] += most_loss
    line[GAIN] += gain
    line[TERMS] += terms
    line[ALPHA] += total
    line[UNEXPLAINED] += unexplained
    line[REST] += rest
    line[RIDGE] += squares
    line[LEAST_MARGIN], line[LEAST_SLOPE], line[LARGEST_SLOPE] = margin, least, most
    line[ERROR], line[FARTHEST] = error, farthest


@compiled_part
def _difference(a, b):
    """Return a − b as it is rounded, and what was lost."""
    rounded = a - b
    part = rounded - a
    return rounded, (a - (rounded - part)) - (b + part)


@compiled_part
def loss_of(z, u, D):
    """Return h(z); 0 for a hard margin, which allows no slack."""
    if z < 0.0:
        return 0.0
    if u == np.inf:
        return 0.5 * z * z / D if D > 0.0 else 0.0 * z
    if D == 0.0:
        return u * z
    a = min(z / D, u)
    return a * (z - 0.5 * D * a) if np.inf > D else 0.0 * z
