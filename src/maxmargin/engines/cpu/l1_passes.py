"""Compiled passes of machines of few features, over rows and over columns."""

from __future__ import annotations

import numpy as np

from ...runtime.row_access import compiled, compiled_part, row_add, row_dot
from ...runtime.team import parallel
from .panel_products import add_products

# Rows whose products are computed at once: they fit a core's cache.
PANEL_ROWS = 128
# The curvature, relative to a column's own, that rounding leaves where a bias takes its place.
FLAT = 1e-13


@compiled_part
def _of(values, i):
    return values[i] if values.size > 1 else values[0]


@parallel
def measure(part, step, scores, y, costs, signed, sums):
    """Fill in α y; add up the loss, α, α y, errors and rows inside."""
    loss, total, balance, errors, inside = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        z = max(1.0 - y[i] * scores[i], 0.0)
        alpha = _of(costs, i) * z
        errors += z > 1.0
        inside += alpha > 0.0
        loss += 0.5 * alpha * z
        total += alpha
        balance += alpha * y[i]
        signed[i] = alpha * y[i]
    sums[part, 0], sums[part, 1], sums[part, 2] = loss, total, balance
    sums[part, 3], sums[part, 4] = errors, inside


@parallel
def bias_slope(part, step, scores, y, costs, t, sums):
    """Add up α y of the scores moved by t, and the curvature of their losses."""
    balance, curvature = 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        z = 1.0 - y[i] * (scores[i] + t)
        c = _of(costs, i)
        balance += c * max(z, 0.0) * y[i]
        curvature += c if z > 0.0 else 0.0
    sums[part, 0], sums[part, 1] = balance, curvature


@parallel
def slope(part, step, scores, along, y, costs, t, sums):
    """Add up α_i y_i p_i at the scores s + tp."""
    total = 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        z = max(1.0 - y[i] * (scores[i] + t * along[i]), 0.0)
        total += _of(costs, i) * z * y[i] * along[i]
    sums[part, 0] = total


@parallel
def column_moments(part, step, rows, used, columns, c, sums):
    """Add c (x, 1)(x, 1)ᵀ of some columns of dense rows to the lower triangle, panel by panel."""
    total, X, m = sums[part], rows[0], columns.size
    last = min((part + 1) * step, used.size)
    panel = np.zeros((PANEL_ROWS, total.shape[0]))
    for first in range(part * step, last, PANEL_ROWS):
        n = min(PANEL_ROWS, last - first)
        for k in range(n):
            factor = np.sqrt(_of(c, first + k))
            x, line = X[used[first + k]], panel[k]
            for j in range(m):
                line[j] = factor * x[columns[j]]
            line[m] = factor
        add_products(panel[:n], total)


# Columns of a CSR matrix --------------------------------------------------------------------------


@compiled
def count_columns(rows, used, place, ends):
    """Count the numbers of columns j in some rows, at ends[place_j + 1]."""
    for r in range(used.size):
        for k in range(rows[2][used[r]], rows[2][used[r] + 1]):
            j = place[rows[1][k]]
            if j >= 0:
                ends[j + 1] += 1


@compiled
def lay_columns(rows, used, factors, place, ends, data, indices):
    """Write columns of some rows, each row multiplied by its factor, one column after the other.

    ``ends`` are the starts of the columns, and their ends afterwards.
    """
    for r in range(used.size):
        factor = _of(factors, r)
        for k in range(rows[2][used[r]], rows[2][used[r] + 1]):
            j = place[rows[1][k]]
            if j >= 0:
                data[ends[j]] = factor * rows[0][k]
                indices[ends[j]] = r
                ends[j] += 1


# Descent over columns -----------------------------------------------------------------------------


@compiled
def descend(columns, squares, sums, weight, penalties, u, residuals, rest, lost, enough, passes):
    """Go over columns, one coefficient to its minimum at a time, until changes are small.

    The columns are rows here. ``weight`` is Σ c_i where a bias moves along, ∞ otherwise;
    ``sums`` are those of c_i x_ij, and rest[0] that of c_i e_i; ``lost`` is what rounding of the
    columns took from the slopes.
    """
    worst = 0.0
    for _ in range(passes):
        worst = 0.0
        for j in range(u.size):
            h = squares[j] - sums[j] * sums[j] / weight
            before, after = u[j], 0.0
            if h > FLAT * squares[j]:
                g = row_dot(columns, j, residuals) + lost[j] - sums[j] * rest[0] / weight
                target, width = before + g / h, penalties[j] / h
                if target > width:
                    after = target - width
                elif target < -width:
                    after = target + width
            if after != before:
                change = after - before
                u[j] = after
                row_add(columns, j, residuals, -change)
                rest[0] -= change * sums[j]
                worst = max(worst, abs(change) * h)
        if worst <= enough:
            break
    return worst
