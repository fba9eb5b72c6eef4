"""Single-sample corrections: the compiled pass that perceptron, relaxation and LMS share.

Visit the rows z of Z in turn. Where z·a ≤ τ m, correct a ← a + s z with the step

    s = ρ(t) g            fixed increment (perceptron, τ = 0)
    s = g (m − z·a)/‖z‖²  relaxation      (τ = 1 − tol)
    s = ρ(t) g (m − z·a)  Widrow–Hoff     (τ = ∞: every sample corrects)

where m is the sample's margin, g its gain (its weight, or its relaxation factor) and t the number
of the update. A gain above 1 of the fixed increment stands for that many visits in a row, which
stop correcting once the sample is right.
Reference: Duda, Hart, Stork, *Pattern Classification*, sections 5.5, 5.6 and 5.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats, Integers, row_length
from ...data.normalised_samples import KeslerSamples, Samples
from ...problems import SeparationProblem
from ...progress import Progress
from ...runtime.row_access import (
    compiled,
    prefetch,
    row_add,
    row_dot,
    row_prefetch,
    row_square,
    rows_of,
)
from ...schedules import Schedule
from ...solution import Solution, Status

# Multiply-adds in one call of a compiled kernel: some 10 ms, so that Ctrl-C is never far away.
SLICE = 1 << 24
# Rows that the memory is asked for ahead of their turn in a shuffled pass.
AHEAD = 8


class Law(NamedTuple):
    """How long a correction is: proportional to m − z·a or fixed, divided by ‖z‖² or not."""

    proportional: bool
    normalised: bool


FIXED_INCREMENT = Law(proportional=False, normalised=False)
RELAXATION = Law(proportional=True, normalised=True)
WIDROW_HOFF = Law(proportional=True, normalised=False)


@dataclass(frozen=True)
class OnlineRule:
    """A law, its threshold factor τ, the gain of every sample and the schedule.

    ``slack`` is added to the threshold: what rounding may make of a margin of 0.
    """

    law: Law
    tau: float
    gain: Floats
    schedule: Schedule
    slack: float = 0.0


@dataclass
class Pass:
    """What one pass over the rows has seen so far."""

    updates: int = 0
    errors: int = 0
    objective: float = 0.0
    longest: float = 0.0
    lowest: float = np.inf

    def add(self, part: Pass) -> None:
        """Count in a part of the pass."""
        self.updates += part.updates
        self.errors += part.errors
        self.objective += part.objective
        self.longest = max(self.longest, part.longest)
        self.lowest = min(self.lowest, part.lowest)


def visiting_order(n_samples: int, rng: np.random.RandomState | None) -> Iterator[Integers]:
    """Yield the order of rows for pass after pass: in turn, or shuffled anew by ``rng``."""
    order = np.arange(n_samples)
    while True:
        yield order if rng is None else rng.permutation(n_samples)


def corrections(
    problem: SeparationProblem, a: Floats, rule: OnlineRule, order: Integers, t: int, at_most: int
) -> Iterator[tuple[int, Pass]]:
    """Run one pass in compiled slices of at most ``at_most`` updates each.

    Changes ``a`` in place; yields after each slice the row of X last corrected and what the slice
    saw, so that the caller can look at a between updates (``at_most=1``) or merely breathe.
    """
    Z = problem.Z
    advance = _kernel_of(Z, problem, a, rule)
    per_slice = max(1, SLICE // (row_length(Z.X) * Z.n_vectors))
    position = 0
    while position < order.size:
        chunk = order[position : position + per_slice]
        # A sample needs as many rates as it gives rows: it is never left half corrected.
        count = min(max(at_most, Z.rows_per_sample), chunk.size * Z.rows_per_sample)
        rates = rule.schedule.rates(t + 1, count)
        visited, last, *seen = advance(chunk, rates)
        position += visited
        part = Pass(*seen)
        t += part.updates
        yield int(last), part


def run_passes(
    problem: SeparationProblem,
    a: Floats,
    rule: OnlineRule,
    *,
    max_iter: int,
    rng: np.random.RandomState | None,
    finished: Callable[[Pass], bool],
    progress: Progress,
    updates_before: int = 0,
) -> Solution:
    """Repeat passes until ``finished(pass)``, ``max_iter`` passes, or a callback says stop."""
    show = partial(snapshot, problem.Z, a)
    progress.unit = "pass"
    at_most = 1 if progress.watchers else problem.Z.shape[0]
    t = updates_before
    status = Status.ITERATION_LIMIT
    orders = visiting_order(problem.Z.n_samples, rng)
    start, best, lowest = a.copy(), a.copy(), np.inf
    for _ in range(max_iter):
        seen = Pass()
        stop = False
        for last, part in corrections(problem, a, rule, next(orders), t, at_most):
            t += part.updates
            seen.add(part)
            stop = part.updates > 0 and progress.update(part.objective, last, show)
            if stop:
                break
        if not np.isfinite(a).all():
            a[:] = best if lowest < _criterion(problem, start) else start
            status = Status.DIVERGED
            break
        if seen.objective < lowest:
            best[:], lowest = a, seen.objective
        stop |= progress.iteration(seen.objective, seen.errors, seen.longest, show)
        if finished(seen) and not stop:
            # A margin that rounding may have made positive is none: correct it as well.
            slack = rounding_of(problem.Z, a) if rule.tau == 0.0 else -np.inf
            if seen.lowest > slack:
                status = Status.CONVERGED
                break
            rule = replace(rule, slack=slack)
        if stop:
            status = Status.STOPPED
            break
    return snapshot(problem.Z, a, status, progress, n_updates=t)


def rounding_of(Z: Samples, a: Floats) -> float:
    """Bound on what rounding may have added to an entry of Za."""
    longest = np.sqrt(Z.squared_norms().max())
    return float((Z.X.shape[1] + 2) * np.finfo(float).eps * longest * Z.norm(a))


def _criterion(problem: SeparationProblem, a: Floats) -> float:
    """½ Σ v (m − z·a)², what the only rule that can diverge descends."""
    return 0.5 * float(problem.row_weights @ (problem.margins - problem.Z.dot(a)) ** 2)


def snapshot(
    Z: Samples,
    a: Floats,
    status: Status = Status.STOPPED,
    progress: Progress | None = None,
    **numbers: Any,
) -> Solution:
    """Return a copy of the current planes as a solution."""
    w, b = Z.unpack(a)
    if progress is None:
        return Solution(w=w, b=b, status=status)
    trace = progress.trace()
    seconds = progress.seconds
    return Solution(
        w=w, b=b, status=status, n_iter=len(trace), seconds=seconds, trace=trace, **numbers
    )


def _kernel_of(
    Z: Samples, problem: SeparationProblem, a: Floats, rule: OnlineRule
) -> Callable[[Integers, Floats], Any]:
    rows = rows_of(Z.X)
    if isinstance(Z, KeslerSamples):
        margins = problem.margins.reshape(Z.n_samples, -1)
        vectors = a.reshape(Z.n_vectors, -1)

        def kesler(order: Integers, rates: Floats) -> Any:
            return kesler_pass(
                rows, Z.index, Z.labels, Z.bias_step, vectors, order,
                margins, rule.gain, rates, rule.tau, rule.slack, rule.law,
            )  # fmt: skip

        return kesler

    def signed(order: Integers, rates: Floats) -> Any:
        return signed_pass(
            rows, Z.index, Z.labels, Z.bias_step, a, order,
            problem.margins, rule.gain, rates, rule.tau, rule.slack, rule.law,
        )  # fmt: skip

    return signed


@compiled
def visits_needed(margin, rate, length):
    """The step of as many fixed increments as turn a margin ≤ 0 positive."""
    return rate * (np.floor(-margin / (rate * length)) + 1.0) if length > 0.0 else rate


@compiled
def look_ahead(rows, index, labels, gain, margins, per_sample, order, visited):
    """Ask the memory for what a shuffled pass needs next: a sample's numbers, then its row."""
    if visited + 2 * AHEAD < order.size:
        later = order[visited + 2 * AHEAD]
        prefetch(index, later)
        prefetch(labels, later)
        prefetch(gain, later)
        prefetch(margins, later * per_sample)
        row_prefetch(rows, index[order[visited + AHEAD]])


@compiled
def is_shuffled(order):
    """Whether rows are not visited in turn, where the hardware looks ahead by itself."""
    return order.size > 0 and order[-1] - order[0] != order.size - 1


@compiled
def signed_pass(rows, index, y, bias_step, a, order, margins, gain, rates, tau, slack, law):
    """Correct the plane a = (w, b) on the rows of ``order``, until the rates are used up."""
    w = a[:-1]
    objective = longest = 0.0
    lowest = np.inf
    visited = updates = errors = 0
    last = -1
    shuffled = is_shuffled(order)
    while visited < order.size and updates < rates.size:
        # Prefetches in the loop below would keep the compiler from optimising it.
        stop = visited + 1 if shuffled else order.size
        if shuffled:
            look_ahead(rows, index, y, gain, margins, 1, order, visited)
        while visited < stop and updates < rates.size:
            r = order[visited]
            i = index[r]
            visited += 1
            margin = y[r] * (row_dot(rows, i, w) + a[-1])
            if margin < lowest:
                lowest = margin
            if margin <= 0.0:
                errors += 1
            if margin <= tau * margins[r] + slack:
                step = rates[updates] * gain[r]
                updates += 1
                last = i
                if law.proportional:
                    error = margins[r] - margin
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
                a[-1] += step * y[r] * bias_step
    return visited, last, updates, errors, objective, longest, lowest


@compiled
def kesler_pass(rows, index, labels, bias_step, a, order, margins, gain, rates, tau, slack, law):
    """Correct the linear machine a (n_classes, d + 1) on each sample against each rival class.

    The scores of a sample are computed once and moved along with the corrections it causes.
    """
    n_classes = a.shape[0]
    scores = np.empty(n_classes)
    flat = margins.reshape(-1)
    shuffled = is_shuffled(order)
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
