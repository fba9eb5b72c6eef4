"""Compiled passes over vectors of a linear machine: scores, β, y, u and D of all rows.

Every region works on rows ``part * step`` and on, ``step`` of them at most; sums go to the line
``sums[part]``. u, D and β⁰ hold one number per row, or a single one for all. ``two_sided`` says
whether y are targets, with a tube of ``epsilon``, or labels, with an ``epsilon`` of 0.
"""

from __future__ import annotations

import numpy as np

from ...problems.losses import loss_value, proximal_beta, slack
from ...runtime.row_access import compiled_part
from ...runtime.team import parallel

_proximal_beta = compiled_part(proximal_beta)
_slack = compiled_part(slack)
_loss_value = compiled_part(loss_value)

# What `mark_kink` and `mark_held` say of a row.
ON_KINK, IN_SUM = 1, 2
NEAR, ON_PARABOLA = 1, 2


@compiled_part
def _of(values, i):
    return values[i] if values.size > 1 else values[0]


@parallel
def project(
    part, step, scores, y, two_sided, epsilon, center, upper, ridge, delta, beta, change, sums
):
    """Fill in β and its change; add up what is not proved of the loss, the loss, errors and β."""
    short, losses, errors, changes = 0.0, 0.0, 0.0, 0.0
    least_error = 0.0 if two_sided else 1.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        u, D = _of(upper, i), _of(ridge, i)
        r = y[i] - scores[i]
        z = _slack(r, y[i], two_sided, epsilon)
        if z > least_error:
            errors += 1.0
        value = _proximal_beta(r, y[i], two_sided, epsilon, _of(center, i), u, D, delta)
        loss = _loss_value(z, u, D)
        # Elsewhere β is that of the loss itself.
        finite = D if np.inf > D else 0.0
        if u < np.inf:
            short += loss - value * r + abs(value) * (epsilon + 0.5 * finite * abs(value))
        losses += loss
        moved = value - beta[i]
        changes += moved
        change[i] = moved
        beta[i] = value
    sums[part, 0], sums[part, 1], sums[part, 2], sums[part, 3] = short, losses, errors, changes


@parallel
def slope(part, step, scores, along, y, two_sided, epsilon, center, upper, ridge, delta, t, sums):
    """Add up β_i p_i at the scores s + tp."""
    total = 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        r = y[i] - (scores[i] + t * along[i])
        u, D, before = _of(upper, i), _of(ridge, i), _of(center, i)
        total += _proximal_beta(r, y[i], two_sided, epsilon, before, u, D, delta) * along[i]
    sums[part, 0] = total


@parallel
def loss(part, step, scores, y, two_sided, epsilon, upper, ridge, sums):
    """Add up h_i(z_i)."""
    total = 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        z = _slack(y[i] - scores[i], y[i], two_sided, epsilon)
        total += _loss_value(z, _of(upper, i), _of(ridge, i))
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
def mark_kink(part, step, beta, upper, marks, counts):
    """Mark the rows on the kink; count them, and those that came and left since `kink_changes`."""
    inside, before, both = 0, 0, 0
    for i in range(part * step, min((part + 1) * step, beta.size)):
        # Without branches, which the processor could not foresee.
        was, size = marks[i] // IN_SUM, abs(beta[i])
        now = (size > 0.0) & (size < _of(upper, i))
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
def sign_totals(part, step, beta, upper, sums):
    """Add up |β| of both signs, and of the rows with |β| < u among them."""
    positive, negative, below_positive, below_negative = 0.0, 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, beta.size)):
        size = abs(beta[i])
        below = size if size < _of(upper, i) else 0.0
        if beta[i] > 0.0:
            positive += size
            below_positive += below
        else:
            negative += size
            below_negative += below
    sums[part, 0], sums[part, 1] = positive, negative
    sums[part, 2], sums[part, 3] = below_positive, below_negative


@parallel
def balance(
    part,
    step,
    beta,
    y,
    epsilon,
    upper,
    ridge,
    heavier,
    factor,
    below,
    relative,
    out,
    change,
    sums,
):
    """Multiply β of the heavier sign, all of it or |β| < u alone; add up yβ − ε|β|, Dβ² and β.

    ``out`` is the new β, where there is room for it; ``change`` is it, too, or its change.
    """
    total, squares, balance = 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        before, D = beta[i], _of(ridge, i)
        value = before
        if before * heavier > 0.0 and (abs(before) < _of(upper, i) or not below):
            value = factor * before
        if out.size:
            out[i] = value
        change[i] = value - before if relative else value
        total += value * y[i] - epsilon * abs(value)
        squares += D * value * value if np.inf > D else 0.0
        balance += value
    sums[part, 0], sums[part, 1], sums[part, 2] = total, squares, balance


@parallel
def mark_held(
    part,
    step,
    scores,
    y,
    two_sided,
    epsilon,
    upper,
    ridge,
    width,
    reach,
    places_beta,
    beta,
    slopes,
    marks,
    counts,
    sums,
):
    """Mark the rows near the kink, and those held on a parabola; put β of the others to its bound.

    Add up the constant of the quadratic of rows held, and its slopes at 0.
    """
    near, parabolas, errors, constant, total = 0, 0, 0, 0.0, 0.0
    least_error = 0.0 if two_sided else 1.0
    for i in range(part * step, min((part + 1) * step, y.size)):
        u, D = _of(upper, i), _of(ridge, i)
        r, half = y[i] - scores[i], 0.5 * _of(width, i)
        z = _slack(r, y[i], two_sided, epsilon)
        mark, slope, value = 0, 0.0, 0.0
        if abs(z - half) - half <= reach:
            mark, value = NEAR, beta[i]
            near += 1
        elif z > 0.0:
            errors += z > least_error
            side = 1.0 if r > 0.0 else -1.0
            # What the score is compared with, and 1 of a label of its side.
            target = y[i] - side * epsilon
            if u < np.inf:
                finite = D if np.inf > D else 0.0
                value = slope = side * u
                constant += slope * target - 0.5 * finite * u * u
            else:
                mark, slope = ON_PARABOLA, target / D
                parabolas += 1
                constant += 0.5 * slope * target
        if places_beta:
            beta[i] = value
        marks[i] = mark
        slopes[i] = slope
        total += slope
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
