"""Compiled passes over vectors of a linear machine: scores, α, y, u and D of all rows.

Every region works on rows ``part * step`` and on, ``step`` of them at most; sums go to the line
``sums[part]``. u, D and α⁰ hold one number per row, or a single one for all.
"""

from __future__ import annotations

import numpy as np

from ...problems.losses import loss_value, proximal_alpha
from ...runtime.row_access import compiled_part
from ...runtime.team import parallel

_proximal_alpha = compiled_part(proximal_alpha)
_loss_value = compiled_part(loss_value)

# What `mark_kink` and `mark_held` say of a row.
ON_KINK, IN_SUM = 1, 2
NEAR, ON_PARABOLA = 1, 2


@compiled_part
def _of(values, i):
    return values[i] if values.size > 1 else values[0]


@parallel
def project(part, step, scores, y, center, upper, ridge, delta, alpha, change, sums):
    """Fill in α, and y times its change; add up the slack, the loss, errors and changes."""
    slack, losses, errors, changes = 0.0, 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        u, D = _of(upper, i), _of(ridge, i)
        z = 1.0 - y[i] * scores[i]
        if z > 1.0:
            errors += 1.0
        a = _proximal_alpha(z, _of(center, i), u, D, delta)
        loss = _loss_value(z, u, D)
        # Elsewhere α is that of the loss itself.
        finite = D if np.inf > D else 0.0
        slack += loss - a * (z - 0.5 * finite * a) if u < np.inf else 0.0
        losses += loss
        moved = (a - alpha[i]) * y[i]
        changes += moved
        change[i] = moved
        alpha[i] = a
    sums[part, 0], sums[part, 1], sums[part, 2], sums[part, 3] = slack, losses, errors, changes


@parallel
def slope(part, step, scores, along, y, center, upper, ridge, delta, t, sums):
    """Add up α_i y_i p_i at the scores s + tp."""
    total = 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        z = 1.0 - y[i] * (scores[i] + t * along[i])
        a = _proximal_alpha(z, _of(center, i), _of(upper, i), _of(ridge, i), delta)
        total += a * y[i] * along[i]
    sums[part, 0] = total


@parallel
def loss(part, step, scores, y, upper, ridge, sums):
    """Add up h_i(z_i)."""
    total = 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        total += _loss_value(1.0 - y[i] * scores[i], _of(upper, i), _of(ridge, i))
    sums[part, 0] = total


@parallel
def advance(part, step, along, t, scores, largest):
    """Go t steps; find the largest change of a score, and the largest score."""
    moved, most = 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, scores.size)):
        change = t * along[i]
        scores[i] += change
        moved, most = max(moved, abs(change)), max(most, abs(scores[i]))
    largest[part, 0], largest[part, 1] = moved, most


@parallel
def mark_kink(part, step, alpha, upper, marks, counts):
    """Mark the rows on the kink; count them, and those that came and left since `kink_changes`."""
    inside, before, both = 0, 0, 0
    for i in range(part * step, min((part + 1) * step, alpha.size)):
        # Without branches, which the processor could not foresee.
        was = marks[i] // IN_SUM
        now = (alpha[i] > 0.0) & (alpha[i] < _of(upper, i))
        marks[i] = was * IN_SUM + now
        inside += now
        before += was
        both += was & now
    counts[part, 0], counts[part, 1], counts[part, 2] = inside, inside - both, before - both


@parallel
def kink_changes(part, step, marks, afresh, first_came, first_left, came, left):
    """List the rows that came to the kink and left it; if ``afresh``, all that are on it came."""
    k, m = first_came[part], first_left[part]
    for i in range(part * step, min((part + 1) * step, marks.size)):
        now, was = marks[i] & ON_KINK, marks[i] & IN_SUM
        if now and (afresh or not was):
            came[k] = i
            k += 1
        elif was and not now and not afresh:
            left[m] = i
            m += 1
        marks[i] = ON_KINK | IN_SUM if now else 0


@parallel
def class_totals(part, step, alpha, y, upper, sums):
    """Add up α of both classes, and of the rows with α < u among them."""
    positive, negative, below_positive, below_negative = 0.0, 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        a = alpha[i]
        below = a if a < _of(upper, i) else 0.0
        if y[i] > 0.0:
            positive += a
            below_positive += below
        else:
            negative += a
            below_negative += below
    sums[part, 0], sums[part, 1] = positive, negative
    sums[part, 2], sums[part, 3] = below_positive, below_negative


@parallel
def balance(
    part, step, alpha, y, upper, ridge, heavier, factor, below, relative, out, signed, sums
):
    """Multiply α of the heavier class, all of it or α < u alone; add up α, Dα² and what is signed.

    ``out`` is the new α, where there is room for it; ``signed`` y times it, or its change.
    """
    total, squares, balance = 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        before, D = alpha[i], _of(ridge, i)
        a = before
        if y[i] == heavier and (before < _of(upper, i) or not below):
            a = factor * before
        if out.size:
            out[i] = a
        signed[i] = (a - before if relative else a) * y[i]
        total += a
        squares += D * a * a if np.inf > D else 0.0
        balance += a * y[i]
    sums[part, 0], sums[part, 1], sums[part, 2] = total, squares, balance


@parallel
def mark_held(
    part,
    step,
    scores,
    y,
    upper,
    ridge,
    width,
    reach,
    places_alpha,
    alpha,
    signed,
    marks,
    counts,
    sums,
):
    """Mark the rows near the kink, and those held on a parabola; put α of the others to its bound.

    Add up the constant of the quadratic of rows held, and Σ of what is signed: its slopes at 0.
    """
    near, parabolas, errors, constant, total = 0, 0, 0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        u, D = _of(upper, i), _of(ridge, i)
        z, half = 1.0 - y[i] * scores[i], 0.5 * _of(width, i)
        mark, slope, a = 0, 0.0, 0.0
        if abs(z - half) - half <= reach:
            mark, a = NEAR, alpha[i]
            near += 1
        elif z > 0.0:
            errors += z > 1.0
            finite = D if np.inf > D else 0.0
            if u < np.inf:
                a = slope = u
                constant += u - 0.5 * finite * u * u
            else:
                mark, slope = ON_PARABOLA, 1.0 / D
                parabolas += 1
                constant += 0.5 * slope
        if places_alpha:
            alpha[i] = a
        marks[i] = mark
        signed[i] = slope * y[i]
        total += signed[i]
    counts[part, 0], counts[part, 1], counts[part, 2] = near, parabolas, errors
    sums[part, 0], sums[part, 1] = constant, total


@parallel
def marked(part, step, marks, mark, first, out):
    """List the rows that have a mark."""
    k = first[part]
    for i in range(part * step, min((part + 1) * step, marks.size)):
        if marks[i] == mark:
            out[k] = i
            k += 1
