"""Passes of the perceptron over few samples, whose margins are kept.

A pass computes z·a of every sample, though few of them change a. Here an update by a sample adds
its products with all others to their margins, and a visit is a comparison. Where a margin may be at
most the threshold, given a bound of its rounding errors, z·a is computed as in any other pass: the
same samples are corrected, by the same steps.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Floats, Integers, row_length
from ...data.normalised_samples import SignedSamples
from ...runtime.row_access import compiled, compiled_part, row_add, row_dot, row_square, rows_of
from .compiled_passes import visits_needed

# Samples up to which products of all of them are kept: 32 MB, of which rows that no update needs
# take no memory.
MAX_SAMPLES = 2048
# Updates after which margins are computed anew.
RENEWED_AFTER = 512
EPS = float(np.finfo(np.float64).eps)


class KeptMargins:
    """Margins of all samples of a task, and products of those that have corrected a plane.

    Parameters
    ----------
    Z : SignedSamples
    gain : ndarray of shape (n_samples,)
    """

    def __init__(self, Z: SignedSamples, gain: Floats) -> None:
        n = Z.n_samples
        self._samples = rows_of(Z.X), Z.index, Z.labels, Z.bias_step, gain
        self._kept = np.empty(n), np.empty((n, n)), np.zeros(n, dtype=bool)
        self._longest = float(np.sqrt(Z.squared_rows.max()))

    @staticmethod
    def pays(Z: SignedSamples, updates: float) -> bool:
        """Return whether passes with so many updates are shorter with kept margins.

        A visit then takes about 2 ns and an update ¼ ns per sample, where a visit takes
        16 + d/2 ns otherwise.
        """
        return Z.n_samples <= MAX_SAMPLES and updates < 56 + 2 * row_length(Z.X)

    def passes(self, a: Floats, orders: Integers, rate: float, slack: float, seen: Floats) -> int:
        """Make a pass in each of the ``orders``, as `signed_passes` does."""
        made: int = kept_passes(
            *self._samples, a.reshape(1, -1), orders, rate, slack, self._longest, self._kept, seen
        )
        return made


@compiled
def kept_passes(rows, index, y, bias_step, gain, a, orders, rate, slack, longest, kept, seen):
    """Make passes of the perceptron until one corrects nothing; return how many were made."""
    plane = a[0]
    w = plane[:-1]
    margins, since, doubt = kept[0], RENEWED_AFTER, 0.0
    for k in range(orders.shape[0]):
        updates = errors = 0
        objective, lowest = 0.0, np.inf
        order = orders[k]
        for v in range(order.size):
            if since == RENEWED_AFTER:
                renew(rows, index, y, w, plane[-1], margins)
                doubt = rounding(w, plane[-1], bias_step, gain, rate, longest)
                since = 0
            r = order[v]
            if margins[r] > slack + doubt:
                continue
            i = index[r]
            margin = y[r] * (row_dot(rows, i, w) + plane[-1])
            lowest = min(lowest, margin)
            if margin <= 0.0:
                errors += 1
            if margin > slack:
                continue
            step = rate * gain[r]
            updates += 1
            since += 1
            objective -= margin
            if gain[r] > 1.0:
                length = row_square(rows, i) + bias_step
                step = min(step, visits_needed(margin, rate, length))
            row_add(rows, i, w, step * y[r])
            plane[-1] += step * y[r] * bias_step
            products = products_of(rows, index, y, bias_step, r, w.size, kept)
            for q in range(margins.size):
                margins[q] += step * y[r] * products[q]
        if updates == 0:  # all margins are above the threshold, and the lowest is wanted
            renew(rows, index, y, w, plane[-1], margins)
            lowest = margins.min()
        seen[k, 0] = updates
        seen[k, 1] = errors
        seen[k, 2] = objective
        seen[k, 3] = 0.0
        seen[k, 4] = lowest
        if updates == 0:
            return k + 1
    return orders.shape[0]


@compiled_part
def renew(rows, index, y, w, b, margins):
    """Compute the margins y(w·x + b)."""
    for r in range(margins.size):
        margins[r] = y[r] * (row_dot(rows, index[r], w) + b)


@compiled_part
def rounding(w, b, bias_step, gain, rate, longest):
    """Return a bound of what rounding does to a margin, kept or computed, until it is renewed.

    A margin is at most ‖x‖‖w‖ + |b|, and a sum of d + 1 products. An update rounds w, b, the
    product of two rows, and the sum of it and the margin.
    """
    growth = RENEWED_AFTER * rate * gain.max()
    length = np.sqrt((w * w).sum())
    size = longest * (length + growth * longest) + abs(b) + growth * bias_step
    return 2.0 * EPS * (4 * RENEWED_AFTER + 3 * w.size + 20) * size


@compiled_part
def products_of(rows, index, y, bias_step, r, n_columns, kept):
    """Return y_q(x_r·x_q + bias_step) of every sample q, computed once."""
    margins, products, is_known = kept
    line = products[r]
    if not is_known[r]:
        is_known[r] = True
        x = np.zeros(n_columns)
        row_add(rows, index[r], x, 1.0)
        for q in range(margins.size):
            line[q] = y[q] * (row_dot(rows, index[q], x) + bias_step)
    return line
