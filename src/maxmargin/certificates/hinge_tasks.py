"""Certificates of classifiers of margin 1 at several costs, from their scores in one pass.

The formulas are those of `dual_tasks` for p = −1, l = 0, D = 0, one group with the sum 0, and
K(x, x) ≤ 1: the loss of a variable is uz₊ with z = 1 − s(w·φ(x) + b).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, Integers
from ..runtime.team import parallel
from .dual import Proofs
from .dual_tasks import ROUNDING, TINY
from .scores import UNIT

# Of every task and cost: non-zero α; Σα and Σ(u − α) of the variables of each sign; the largest α,
# and how far one was out of its bounds.
TERMS, PLUS, MINUS, ROOM_PLUS, ROOM_MINUS, LARGEST, BOX = range(7)
# With e the bound of the error of a margin: Σαe, Σα(1 − z), Σuz₊, by how much that may be less,
# Σ of the terms of the gap, at most and as they are, Σα(|z| + e), Σ(u − α)(|z| + e) of each sign,
# and the largest violations of the KKT conditions, without e and with it.
BLUR, SQUARE, LOSS, LEAST_LOSS, WIDEST, WIDENED, TAKEN, RAISED_PLUS, RAISED_MINUS = range(7, 16)
NOMINAL, WORST = 16, 17
N_FOUND = 18
# What is rounded in a sum beside its terms.
ROUNDINGS = 64.0


def hinge_proofs(
    starts: Integers,
    variables: Floats,
    relative: Floats,
    costs: Floats,
    alpha: Floats,
    b: Floats,
    scores: Floats,
    sizes: Floats | None,
    tasks: Integers,
) -> Proofs:
    """Return the numbers of the certificates of some tasks, each of shape (n_costs, n_tasks).

    Parameters
    ----------
    starts : ndarray of int
        The first variable of every task, and the end.
    variables : ndarray of shape (3, n_variables)
        s, l = 0 and u of C = 1.
    relative : ndarray of shape (n_variables,)
        Bounds of the relative errors of kernel values.
    costs : ndarray of shape (m,)
    alpha, scores : ndarray of shape (m, n_variables)
        α as it is given, and w·φ(x).
    b : ndarray of shape (m, n_tasks)
    sizes : ndarray of shape (m, n_variables), optional
        Σ α_l K(x_l, x_m); without them K ≤ 1 bounds them.
    tasks : ndarray of int
    """
    found = np.zeros((costs.size, tasks.size, N_FOUND))
    closer = np.empty((0, 0)) if sizes is None else sizes
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        measure(
            tasks.size, tasks, starts, variables, relative, costs, alpha, b, scores, closer, found
        )
        return _proofs(np.moveaxis(found, 2, 0), b[:, tasks], np.diff(starts)[tasks])


def _proofs(found: Floats, b: Floats, n: Integers) -> Proofs:
    """Return the numbers of certificates from the sums over their variables."""
    total, rest, blur = found[PLUS] + found[MINUS], found[PLUS] - found[MINUS], found[BLUR]
    square = found[SQUARE] - b * rest
    primal = 0.5 * square + found[LOSS]
    unit = (ROUNDINGS + n) * UNIT
    cancelled = np.abs(b * rest)
    size = total + np.abs(primal) + np.abs(square) + cancelled + found[WIDEST]
    gap = found[WIDEST] + _repair(found, rest, unit * total, np.abs(b)) + unit * size
    unknown = found[WIDENED] + 1.5 * blur + unit * cancelled
    least = 0.5 * (square - blur) + found[LEAST_LOSS]
    relative = np.where(np.isfinite(gap), gap / np.maximum(least, TINY), np.inf)
    return Proofs(
        primal + unknown, primal - unknown - gap, gap, relative, found[NOMINAL],
        np.abs(rest) / np.maximum(1.0, total), found[BOX] / np.maximum(1.0, found[LARGEST]),
        found[WORST] - found[NOMINAL],
    )  # fmt: skip


def _repair(found: Floats, rest: Floats, rounding: Floats, multiplier: Floats) -> Floats:
    """Return what D loses when α is moved until yᵀα = 0, as in `dual_tasks`."""
    off, is_plus = np.abs(rest) + rounding, rest >= 0.0
    room, taken = np.where(is_plus, found[PLUS], found[MINUS]), found[TAKEN]
    short = room < off
    room = np.where(short, np.where(is_plus, found[ROOM_MINUS], found[ROOM_PLUS]), room)
    raised = np.where(is_plus, found[RAISED_MINUS], found[RAISED_PLUS])
    taken = np.where(short, raised, taken)
    moved = off / room * taken + 0.5 * off**2
    return np.where((room >= off) & (off > 0.0), moved, off * multiplier)


@parallel
def measure(part, tasks, starts, variables, relative, costs, alpha, b, scores, closer, found):
    """Add up what the variables of a task say at every cost: `TERMS`, …"""
    t = tasks[part]
    first, last = starts[t], starts[t + 1]
    signs, bounds, errors = variables[0, first:last], variables[2, first:last], relative[first:last]
    for c in range(costs.size):
        given, values, line = alpha[c, first:last], scores[c, first:last], found[c, part]
        terms, plus, minus, room_plus, room_minus, largest, box = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(given.size):
            upper = costs[c] * bounds[i]
            a = min(max(given[i], 0.0), upper)
            box = max(box, abs(a - given[i]))
            largest = max(largest, a)
            is_plus = 1.0 if signs[i] > 0.0 else 0.0
            plus += is_plus * a
            minus += (1.0 - is_plus) * a
            room_plus += is_plus * (upper - a)
            room_minus += (1.0 - is_plus) * (upper - a)
            terms += 1.0 if a != 0.0 else 0.0 * given[i]  # NaN remains
        line[TERMS], line[PLUS], line[MINUS], line[LARGEST], line[BOX] = (
            terms, plus, minus, largest, box,
        )  # fmt: skip
        line[ROOM_PLUS], line[ROOM_MINUS] = room_plus, room_minus
        bias, sums = b[c, t], (terms + 4.0) * UNIT
        blur, square, loss, least_loss, widest, widened = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        taken, raised_plus, raised_minus, nominal, worst = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(given.size):
            upper = costs[c] * bounds[i]
            a = min(max(given[i], 0.0), upper)
            score = values[i] + bias
            size = plus + minus if closer.size == 0 else closer[c, first + i]
            error = (errors[i] + sums) * size + 2.0 * UNIT * (abs(bias) + abs(score))
            z = 1.0 - signs[i] * score
            low, high = z - error, z + error
            at_low = upper * max(low, 0.0)
            at_high, here = upper * max(high, 0.0), upper * max(z, 0.0)
            most = max(at_low - a * low, at_high - a * high)
            blur += a * error
            square += a * (1.0 - z)
            loss += here
            least_loss += at_low
            widest += most
            widened += most - (here - a * z)
            cost = abs(z) + error
            taken += a * cost
            room = (upper - a) * cost
            raised_plus += room if signs[i] > 0.0 else 0.0
            raised_minus += 0.0 if signs[i] > 0.0 else room
            may_grow = a < (1.0 - ROUNDING) * upper
            may_shrink = a > ROUNDING * min(upper, largest)
            wrong = max(z if may_grow else -np.inf, -z if may_shrink else -np.inf)
            nominal, worst = max(nominal, wrong), max(worst, wrong + error)
        line[BLUR], line[SQUARE], line[LOSS], line[LEAST_LOSS] = blur, square, loss, least_loss
        line[WIDEST], line[WIDENED], line[TAKEN] = widest, widened, taken
        line[RAISED_PLUS], line[RAISED_MINUS] = raised_plus, raised_minus
        line[NOMINAL], line[WORST] = nominal, worst
