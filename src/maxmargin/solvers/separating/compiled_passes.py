"""Compiled loops over the samples, for two classes and for Kesler's construction.

`passes_of` is the only place where solvers distinguish the two. Kernels of both kinds take the same
arguments: weight vectors ``a`` of shape (n_vectors, d + 1) and margins of shape
(n_samples, rows per sample).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.normalised_samples import KeslerSamples, Samples, SignedSamples
from ...runtime.row_access import (
    compiled,
    compiled_part,
    prefetch,
    row_add,
    row_dot,
    row_prefetch,
    row_square,
)

# How many rows ahead of their turn a shuffled pass prefetches, and the numbers of X up to which a
# cache has them all.
ROWS_AHEAD, CACHED_NUMBERS = 8, 1 << 15


class Visits(NamedTuple):
    """What a compiled part of a pass has done and seen.

    Attributes
    ----------
    visited : int
        Samples visited.
    last : int
        Row of X that was corrected last, −1 if none was.
    updates, errors : int
        Corrections, and samples with z·a ≤ 0 when visited.
    objective : float
        Sum of the criterion over the corrected rows, each before its correction.
    longest : float
        Norm of the longest step of a rule whose steps are proportional to m − z·a.
    lowest : float
        Smallest z·a.
    """

    visited: int
    last: int
    updates: int
    errors: int
    objective: float
    longest: float
    lowest: float


@dataclass(frozen=True)
class Passes:
    """The compiled kernels for one kind of samples.

    Attributes
    ----------
    correct : callable
        (rows, index, labels, bias_step, a, order, margins, gain, rates, tau, slack, law) ↦ the
        fields of `Visits` as a plain tuple: a NamedTuple cannot be made safely in compiled code.
    count_wrong : callable
        (rows, index, labels, a, weights, limit) ↦ weight of the misclassified samples.
    """

    correct: Callable[..., tuple[Any, ...]]
    count_wrong: Callable[..., float]


@compiled_part
def visits_needed(margin, rate, length):
    """Return the step of as many fixed increments as turn a margin ≤ 0 positive."""
    return rate * (np.floor(-margin / (rate * length)) + 1.0) if length > 0.0 else rate


@compiled_part
def look_ahead(rows, index, labels, gain, margins, per_sample, order, visited):
    """Prefetch what a shuffled pass reads next: the numbers of a sample, then its row."""
    if visited + 2 * ROWS_AHEAD < order.size:
        later = order[visited + 2 * ROWS_AHEAD]
        prefetch(index, later)
        prefetch(labels, later)
        prefetch(gain, later)
        prefetch(margins, later * per_sample)
        row_prefetch(rows, index[order[visited + ROWS_AHEAD]])


@compiled_part
def is_shuffled(order, index, n_columns):
    """Return whether rows of a large X are not visited in turn, as hardware prefetches them."""
    if index.size * n_columns <= CACHED_NUMBERS:
        return False
    return order.size > 0 and order[-1] - order[0] != order.size - 1


@compiled
def signed_pass(rows, index, y, bias_step, a, order, margins, gain, rates, tau, slack, law):
    """Correct the plane a[0] = (w, b) on the rows of ``order``, until the rates are used up."""
    plane = a[0]
    w = plane[:-1]
    targets = margins.reshape(-1)
    objective = longest = 0.0
    lowest = np.inf
    visited = updates = errors = 0
    last = -1
    shuffled = is_shuffled(order, index, w.size)
    while visited < order.size and updates < rates.size:
        # Prefetches in the loop below would prevent the compiler from optimising it.
        stop = visited + 1 if shuffled else order.size
        if shuffled:
            look_ahead(rows, index, y, gain, targets, 1, order, visited)
        while visited < stop and updates < rates.size:
            r = order[visited]
            i = index[r]
            visited += 1
            margin = y[r] * (row_dot(rows, i, w) + plane[-1])
            if margin < lowest:
                lowest = margin
            if margin <= 0.0:
                errors += 1
            if margin <= tau * targets[r] + slack:
                step = rates[updates] * gain[r]
                updates += 1
                last = i
                if law.proportional:
                    error = targets[r] - margin
                    length = row_square(rows, i) + bias_step
                    scale = 1.0 / length if law.normalised and length > 0.0 else 1.0
                    step *= error * scale
                    objective += 0.5 * error * error * scale
                    longest = max(longest, abs(step) * np.sqrt(length))
                else:
                    objective -= margin
                    if gain[r] > 1.0:
                        length = row_square(rows, i) + bias_step
                        step = min(step, visits_needed(margin, rates[updates - 1], length))
                row_add(rows, i, w, step * y[r])
                plane[-1] += step * y[r] * bias_step
    return visited, last, updates, errors, objective, longest, lowest


@compiled
def signed_passes(
    rows, index, y, bias_step, a, orders, margins, gain, rates, tau, slack, law, seen
):
    """Make a pass in each of the ``orders``, until one corrects nothing or a is not finite.

    The updates, errors, objective, longest and lowest of each pass go to ``seen``. Return how many
    passes were made.
    """
    for k in range(orders.shape[0]):
        _, _, updates, errors, objective, longest, lowest = signed_pass(
            rows, index, y, bias_step, a, orders[k], margins, gain, rates, tau, slack, law
        )
        seen[k, 0] = updates
        seen[k, 1] = errors
        seen[k, 2] = objective
        seen[k, 3] = longest
        seen[k, 4] = lowest
        if updates == 0 or not np.isfinite(a).all():
            return k + 1
    return orders.shape[0]


@compiled
def kesler_pass(rows, index, labels, bias_step, a, order, margins, gain, rates, tau, slack, law):
    """Correct the linear machine a (n_classes, d + 1) on each sample against each rival class.

    The scores of a sample are computed once and updated with the corrections it causes.
    """
    n_classes = a.shape[0]
    scores = np.empty(n_classes)
    flat = margins.reshape(-1)
    shuffled = is_shuffled(order, index, a.shape[1])
    objective = longest = 0.0
    lowest = np.inf
    visited = updates = errors = 0
    last = -1
    while visited < order.size and updates + n_classes - 1 <= rates.size:
        if shuffled:
            look_ahead(rows, index, labels, gain, flat, n_classes - 1, order, visited)
        r = order[visited]
        i = index[r]
        own = labels[r]
        visited += 1
        for j in range(n_classes):
            scores[j] = row_dot(rows, i, a[j][:-1]) + a[j, -1]
        length = row_square(rows, i) + bias_step
        wrong = False
        for j in range(n_classes):
            if j == own:
                continue
            margin = scores[own] - scores[j]
            if margin < lowest:
                lowest = margin
            wrong |= margin <= 0.0
            target = margins[r, j - (j > own)]
            if margin <= tau * target + slack:
                step = rates[updates] * gain[r]
                updates += 1
                last = i
                if law.proportional:
                    error = target - margin
                    scale = 0.5 / length if law.normalised and length > 0.0 else 1.0
                    step *= error * scale
                    objective += 0.5 * error * error * scale
                    longest = max(longest, abs(step) * np.sqrt(2.0 * length))
                else:
                    objective -= margin
                    if gain[r] > 1.0:
                        needed = visits_needed(margin, rates[updates - 1], 2.0 * length)
                        step = min(step, needed)
                row_add(rows, i, a[own][:-1], step)
                row_add(rows, i, a[j][:-1], -step)
                a[own, -1] += step * bias_step
                a[j, -1] -= step * bias_step
                scores[own] += step * length
                scores[j] -= step * length
        errors += wrong
    return visited, last, updates, errors, objective, longest, lowest


@compiled
def signed_wrong(rows, index, y, a, weights, limit):
    """Return the sum of the weights of samples with z·a ≤ 0, cut off at ``limit``."""
    w = a[0][:-1]
    wrong = 0.0
    for r in range(index.size):
        if y[r] * (row_dot(rows, index[r], w) + a[0, -1]) <= 0.0:
            wrong += weights[r]
            if wrong >= limit:
                break
    return wrong


@compiled
def kesler_wrong(rows, index, labels, a, weights, limit):
    """Return the sum of the weights of samples that do not score highest in their own class."""
    wrong = 0.0
    for r in range(index.size):
        i = index[r]
        own = labels[r]
        best = row_dot(rows, i, a[own][:-1]) + a[own, -1]
        for j in range(a.shape[0]):
            if j != own and row_dot(rows, i, a[j][:-1]) + a[j, -1] >= best:
                wrong += weights[r]
                break
        if wrong >= limit:
            break
    return wrong


PASSES: dict[type[Samples], Passes] = {
    SignedSamples: Passes(signed_pass, signed_wrong),
    KeslerSamples: Passes(kesler_pass, kesler_wrong),
}


def passes_of(Z: Samples) -> Passes:
    """Return the compiled kernels for the kind of samples of Z."""
    return PASSES[type(Z)]
