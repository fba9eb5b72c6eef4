"""Compiled passes over the samples: projections of their shares, and sums of their losses."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from ...runtime.row_access import PART, compiled, compiled_part, row_add, row_dot, row_prefetch
from ...runtime.team import parallel


def class_scores(rows, i, w, classes, count, out, every):
    """Write w_k·x_i of the first ``count`` of some classes k to out; ``every`` is for notes.

    A sparse row meets all classes at once: w is then stored feature by feature.
    """
    for m in range(count):
        out[m] = row_dot(rows, i, w[classes[m]])


@overload(class_scores, jit_options=PART)
def _class_scores(rows, i, w, classes, count, out, every):
    if len(rows) == 1:

        def dense(rows, i, w, classes, count, out, every):
            for m in range(count):
                out[m] = row_dot(rows, i, w[classes[m]])

        return dense

    def csr(rows, i, w, classes, count, out, every):
        first, last = rows[2][i], rows[2][i + 1]
        if 3 * count < w.shape[0]:
            out[:count] = 0.0
            for k in range(first, last):
                x, column = rows[0][k], w[:, np.uint32(rows[1][k])]
                for m in range(count):
                    out[m] += x * column[np.uint32(classes[m])]
            return
        every[:] = 0.0
        for k in range(first, last):
            x, column = rows[0][k], w[:, np.uint32(rows[1][k])]
            for m in range(every.size):
                every[m] += x * column[m]
        for m in range(count):
            out[m] = every[classes[m]]

    return csr


def class_add(rows, i, w, classes, count, steps):
    """Do w_k ← w_k + step_k x_i for the first ``count`` of some classes k."""
    for m in range(count):
        row_add(rows, i, w[classes[m]], steps[m])


@overload(class_add, jit_options=PART)
def _class_add(rows, i, w, classes, count, steps):
    if len(rows) == 1:

        def dense(rows, i, w, classes, count, steps):
            for m in range(count):
                row_add(rows, i, w[classes[m]], steps[m])

        return dense

    def csr(rows, i, w, classes, count, steps):
        for k in range(rows[2][i], rows[2][i + 1]):
            x, column = rows[0][k], w[:, np.uint32(rows[1][k])]
            for m in range(count):
                column[np.uint32(classes[m])] += steps[m] * x

    return csr


@compiled_part
def simplex_threshold(v, count, own, notes):
    """Return θ for which Σ max(v_k − θ, 0) = 1 over the first ``count`` entries.

    To that of the own class 1 is to be added: a share near 1 is told from 1 by what its rivals
    have, which the sum must not lose. The largest entries are looked for one after the other:
    few of them have a share.
    """
    for k in range(count):
        notes[k] = k
    total, theta, above = 0.0, -np.inf, 1.0
    for r in range(count):
        best, value = r, -np.inf
        for m in range(r, count):
            k = notes[m]
            full = v[k] + 1.0 if k == own else v[k]
            if full > value:
                best, value = m, full
        if value <= theta:
            break
        k = notes[best]
        notes[best] = notes[r]
        if k == own:
            above = 0.0
        total += v[k]
        theta = (total - above) / (r + 1)
    return theta


@compiled_part
def extremes(s, b, here, mine, label, share):
    """Make scores values; return the largest, the least with a share, the own's and rivals' score.

    ``here`` lists the classes of the sample, the first ``mine`` of which take part.
    """
    top, least, own, rival = -np.inf, np.inf, -np.inf, -np.inf
    for m in range(mine):
        k = here[m]
        s[m] += b[k]
        if k == label:
            own = s[m]
        else:
            rival = max(rival, s[m])
            s[m] += 1.0
        top = max(top, s[m])
        if share[k] > 0.0:
            least = min(least, s[m])
    return top, least, own, rival


@compiled_part
def leave_out(s, here, mine, share, least):
    """Move classes without a share and of a value below ``least`` to the end of the list.

    Returns how many are left.
    """
    m = 0
    while m < mine:
        k = here[m]
        if share[k] == 0.0 and s[m] < least:
            mine -= 1
            here[m], here[mine], s[m] = here[mine], k, s[mine]
        else:
            m += 1
    return mine


@compiled_part
def project(s, here, mine, label, share, top, curvature, v, notes, moved, steps):
    """Move shares to the projection of p + s/curvature; return how many moved, and the own's step.

    The classes that moved and what they gave away are listed in ``moved`` and ``steps``: the own
    one, if it did, last, with what its rivals gave or took.
    """
    given, at = 0.0, -1  # what the rivals have, and the place of the own class
    for m in range(mine):
        if here[m] == label:
            at = m
        else:
            given += share[here[m]]
    for m in range(mine):
        v[m] = (-given if m == at else share[here[m]]) + (s[m] - top) / curvature
    theta = simplex_threshold(v, mine, at, notes)
    n_moved, gone = 0, 0.0
    for m in range(mine):
        k, new = here[m], min(max(v[m] - theta, 0.0), 1.0)
        if m != at and new != share[k]:
            steps[n_moved], moved[n_moved] = share[k] - new, k
            gone += steps[n_moved]
            share[k] = new
            n_moved += 1
    if at < 0 or gone == 0.0:
        return n_moved, 0.0
    share[label] = min(max(v[at] + 1.0 - theta, 0.0), 1.0)
    steps[n_moved], moved[n_moved] = -gone, label
    return n_moved + 1, -gone


@compiled
def sequential_pass(
    rows, names, labels, cost, curvature, p, w, b, bias_step, balance, order, classes, count, far
):
    """Project the shares of samples one after the other, in place, and w, b, Σα with them.

    Classes without a share whose value is more than ``far`` below all that have one leave the
    sample's list; samples with one class left are not moved. Returns the gap met, the worst
    violation, samples on the wrong side, and the change of Σ_i α_i^y.
    """
    c = w.shape[0]
    s, v, every, steps = np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    moved, notes = np.empty(c, dtype=classes.dtype), np.empty(c, dtype=np.int64)
    gap, worst, errors, flow = 0.0, 0.0, 0, 0.0
    for place in range(order.size):
        i = order[place]
        if place + 2 < order.size:
            row_prefetch(rows, names[order[place + 2]])
        here, mine, share = classes[i], count[i], p[i]
        class_scores(rows, names[i], w, here, mine, s, every)
        top, least, own, rival = extremes(s, b, here, mine, labels[i], share)
        for m in range(mine):
            gap += cost[i] * share[here[m]] * (top - s[m])
        errors += rival >= own
        worst = max(worst, top - least)
        mine = leave_out(s, here, mine, share, least - far)
        count[i] = mine
        if mine < 2 or top <= least:
            continue
        n_moved, own_step = project(
            s, here, mine, labels[i], share, top, curvature[i], v, notes, moved, steps
        )
        flow += cost[i] * own_step
        for m in range(n_moved):
            steps[m] *= cost[i]
            b[moved[m]] += bias_step * steps[m]
            balance[moved[m]] += steps[m]
        class_add(rows, names[i], w, moved, n_moved, steps)
    return gap, worst, errors, flow


# Regions over rows ``part * step`` and on, whose sums go to the line of the part ------------------


@parallel
def smoothed_maxima(part, step, values, along, t, labels, cost, center, delta, p, sums):
    """Write p = the projection of p⁰ + s/δ, s the values at values + t·along.

    Adds up C_i (max s − p·s), and the derivative of Φ's losses by t, C_i (p − e_y)·along.
    """
    n, c = values.shape
    s, v, notes = np.empty(c), np.empty(c), np.empty(c, dtype=np.int64)
    gap, slope = 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, n)):
        y, top, given = labels[i], -np.inf, 0.0
        for k in range(c):
            s[k] = values[i, k] + t * along[i, k] + (1.0 if k != y else 0.0)
            top = max(top, s[k])
            given += center[i, k] if k != y else 0.0
        for k in range(c):
            v[k] = (center[i, k] if k != y else -given) + (s[k] - top) / delta
        theta = simplex_threshold(v, c, y, notes)
        for k in range(c):
            share = v[k] - theta if k != y else v[k] + 1.0 - theta
            share = min(max(share, 0.0), 1.0)
            p[i, k] = share
            gap += cost[i] * share * (top - s[k])
            slope += cost[i] * share * (along[i, k] - along[i, y])
    sums[part, 0], sums[part, 1] = gap, slope


@parallel
def survey(part, step, values, scale, labels, cost, p, distance, found):
    """Write how far samples are from a kink; find Σ C_i ξ_i, the largest ξ, and errors.

    That is what the largest value exceeds all others by, 0 where it has not all of p.
    """
    n, c = values.shape
    loss, worst, errors = 0.0, 0.0, 0.0
    for i in range(part * step, min((part + 1) * step, n)):
        y = labels[i]
        top, second, best = -np.inf, -np.inf, 0
        for k in range(c):
            s = scale * values[i, k] + (1.0 if k != y else 0.0)
            if s > top:
                top, second, best = s, top, k
            else:
                second = max(second, s)
        own = scale * values[i, y]
        loss += cost[i] * (top - own)
        worst = max(worst, top - own)
        errors += best != y and top - 1.0 >= own
        distance[i] = top - second if p[i, best] == 1.0 else 0.0
    found[part, 0], found[part, 1], found[part, 2] = loss, worst, errors


@parallel
def multipliers(part, step, p, labels, cost, factors, alpha, sums):
    """Write α, what flows from class y to class k multiplied by factors[y, k], if there are any.

    α of the own class is made from those of its rivals: Σ_k α_i^k = 0 to rounding. Adds up α of
    every class, and of the own ones.
    """
    n, c = p.shape
    for i in range(part * step, min((part + 1) * step, n)):
        y, own = labels[i], 0.0
        for k in range(c):
            flow = cost[i] * p[i, k] if k != y else 0.0
            if factors.size:
                flow *= factors[y, k]
            alpha[i, k] = -flow
            sums[part, k] -= flow
            own += flow
        alpha[i, y] = own
        sums[part, y] += own
        sums[part, c] += own


@parallel
def add_up_moves(part, step, along, cost, sums):
    """Add up C_i max_k |the step's value|."""
    total = 0.0
    for i in range(part * step, min((part + 1) * step, along.shape[0])):
        largest = 0.0
        for k in range(along.shape[1]):
            largest = max(largest, abs(along[i, k]))
        total += cost[i] * largest
    sums[part, 0] = total
