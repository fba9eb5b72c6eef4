"""Single-sample corrections: the compiled pass that perceptron, relaxation and LMS share.

Visit the rows z of Z in turn. Where z·a ≤ τ m, correct a ← a + s z with the step

    s = ρ(t) g            fixed increment (perceptron, τ = 0)
    s = g (m − z·a)/‖z‖²  relaxation      (τ = 1 − tol)
    s = ρ(t) g (m − z·a)  Widrow–Hoff     (τ = ∞: every sample is corrected)

where m is the sample's margin, g its gain (its weight, or its relaxation factor) and t the number
of the update. A gain above 1 of the fixed increment represents that many consecutive visits, which
stop correcting once the sample is classified correctly.
Reference: Duda, Hart, Stork, *Pattern Classification*, sections 5.5, 5.6 and 5.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ...arrays import Floats, Integers, row_length
from ...data.normalised_samples import Samples, SignedSamples
from ...data.partitioned_samples import total
from ...problems import SeparationProblem
from ...progress import Progress
from ...runtime.row_access import rows_of
from ...schedules import Constant, Schedule
from ...solution import Solution, Status
from .compiled_passes import Visits, passes_of, signed_passes
from .kept_margins import KeptMargins
from .visiting_orders import VisitingOrders


@dataclass(frozen=True)
class Tuning:
    """Constants of the single-sample rules."""

    # Multiply-adds per call of a compiled kernel, about 10 ms: Ctrl-C works between calls.
    slice_multiply_adds: int = 1 << 24
    # Passes of small problems in one call: of the first, and of any.
    first_passes: int = 8
    most_passes: int = 256


TUNING = Tuning()


class Law(NamedTuple):
    """The length of a correction: proportional to m − z·a or fixed, divided by ‖z‖² or not."""

    proportional: bool
    normalised: bool


FIXED_INCREMENT = Law(proportional=False, normalised=False)
RELAXATION = Law(proportional=True, normalised=True)
WIDROW_HOFF = Law(proportional=True, normalised=False)


@dataclass(frozen=True)
class OnlineRule:
    """When and by how much a sample corrects a.

    Parameters
    ----------
    law : Law
    tau : float
        τ, the factor of the margin m at or below which z·a is corrected.
    gain : ndarray of shape (n_samples,)
        g of each sample.
    schedule : Schedule
        ρ(t).
    slack : float, default=0.0
        Added to the threshold: a bound of the rounding errors of z·a.
    """

    law: Law
    tau: float
    gain: Floats
    schedule: Schedule
    slack: float = 0.0


# Of the numbers of a `Pass`, the objective, the errors and the violation.
REPORTED = [2, 1, 3]


@dataclass
class Pass:
    """Totals of one pass over the rows so far; the fields are those of `Visits`."""

    updates: int = 0
    errors: int = 0
    objective: float = 0.0
    longest: float = 0.0
    lowest: float = np.inf

    @classmethod
    def of(cls, numbers: Floats) -> Pass:
        """Return the totals that a compiled pass has written, in the order of the fields."""
        updates, errors, *others = numbers.tolist()
        return cls(int(updates), int(errors), *others)

    def add(self, part: Visits) -> None:
        """Add a part of the pass."""
        self.updates += part.updates
        self.errors += part.errors
        self.objective += part.objective
        self.longest = max(self.longest, part.longest)
        self.lowest = min(self.lowest, part.lowest)


def corrections(
    problem: SeparationProblem, a: Floats, rule: OnlineRule, order: Integers, t: int, at_most: int
) -> Iterator[Visits]:
    """Run one pass in compiled slices of at most ``at_most`` updates each.

    Changes ``a`` in place and yields after each slice, so that the caller can read a between
    updates (``at_most=1``) and Ctrl-C is served.
    """
    Z = problem.Z
    correct = passes_of(Z).correct
    rows, vectors = rows_of(Z.X), a.reshape(Z.n_vectors, -1)
    margins = problem.margins.reshape(Z.n_samples, -1)
    per_slice = max(1, TUNING.slice_multiply_adds // (row_length(Z.X) * Z.n_vectors))
    position = 0
    while position < order.size:
        chunk = order[position : position + per_slice]
        # One rate per row of Z: all rows of a sample are visited in the same slice.
        count = min(max(at_most, Z.rows_per_sample), chunk.size * Z.rows_per_sample)
        rates = rule.schedule.rates(t + 1, count)
        seen = correct(
            rows, Z.index, Z.labels, Z.bias_step, vectors, chunk,
            margins, rule.gain, rates, rule.tau, rule.slack, rule.law,
        )  # fmt: skip
        part = Visits(*seen)
        position += part.visited
        t += part.updates
        yield part


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
    """Repeat passes until ``finished(pass)``, ``max_iter`` passes, or a callback stops them."""
    show = partial(snapshot, problem.Z, a)
    progress.unit = "pass"
    t = updates_before
    status = Status.ITERATION_LIMIT
    passes = _passes_over(problem, rng, progress, show, several=finished is no_mistake)
    start, best, lowest = a.copy(), a.copy(), np.inf
    n_passes = 0
    while n_passes < max_iter:
        made = passes.make(a, rule, t, max_iter - n_passes)
        seen, stop = made.last, made.stop
        t += made.updates
        n_passes += made.n_passes
        if not np.isfinite(a).all():
            a[:] = best if lowest < _criterion(problem, start) else start
            status = Status.DIVERGED
            break
        if seen.objective < lowest:
            best[:], lowest = a, seen.objective
        stop |= progress.iteration(seen.objective, seen.errors, seen.longest, show)
        if finished(seen) and not stop:
            # A margin that may be positive by rounding alone is corrected in another pass.
            slack = rounding_of(problem.Z, a) if rule.tau == 0.0 else -np.inf
            if seen.lowest > slack:
                status = Status.CONVERGED
                break
            rule = replace(rule, slack=slack)
        if stop:
            status = Status.STOPPED
            break
    return snapshot(problem.Z, a, status, progress, n_updates=t)


class Made(NamedTuple):
    """Passes that were made.

    Attributes
    ----------
    last : Pass
        Totals of the last of them.
    updates : int
        Corrections of all of them.
    n_passes : int, default=1
    stop : bool, default=False
        Whether a callback stops the fit.
    """

    last: Pass
    updates: int
    n_passes: int = 1
    stop: bool = False


class Passes(Protocol):
    """A way to visit all samples."""

    def make(self, a: Floats, rule: OnlineRule, t: int, left: int) -> Made:
        """Make up to ``left`` passes, which change ``a``; ``t`` updates were made before."""


def _passes_over(
    problem: SeparationProblem, rng: np.random.RandomState | None, progress: Progress,
    show: Callable[[], Solution], *, several: bool,
) -> Passes:  # fmt: skip
    """Return passes over samples in memory, or in partitions."""
    if problem.in_partitions:
        from .partitioned_passes import PassesInPartitions

        return PassesInPartitions(problem, rng, progress)
    return PassesInMemory(problem, rng, progress, show, several=several)


class PassesInMemory:
    """Passes over samples in memory.

    Parameters
    ----------
    problem : SeparationProblem
    rng : RandomState or None
        Of the orders; None for increasing ones.
    progress : Progress
    show : callable
        Returns the current answer.
    several : bool
        Whether several passes may be made in one compiled call, until one corrects nothing.
    """

    def __init__(
        self, problem: SeparationProblem, rng: np.random.RandomState | None, progress: Progress,
        show: Callable[[], Solution], *, several: bool,
    ) -> None:  # fmt: skip
        self._problem, self._progress, self._show = problem, progress, show
        self._at_most = 1 if progress.watchers else problem.Z.shape[0]
        self._orders = VisitingOrders(problem.Z.n_samples, rng)
        self._several = SeveralPasses(problem, self._orders)
        self._in_one_call = TUNING.first_passes if several and not progress.callbacks else 0

    def make(self, a: Floats, rule: OnlineRule, t: int, left: int) -> Made:
        """Make several passes in one call if that is short, else one."""
        several = self._several.make(a, rule, t, min(self._in_one_call, left))
        self._in_one_call = min(2 * self._in_one_call, TUNING.most_passes)
        if len(several):
            self._progress.passed(several[:-1, REPORTED].tolist())
            return Made(Pass.of(several[-1]), int(several[:, 0].sum()), len(several))
        seen, stop = Pass(), False
        order = next(self._orders)
        for part in corrections(self._problem, a, rule, order, t, self._at_most):
            seen.add(part)
            stop = part.updates > 0 and self._progress.update(
                part.objective, int(part.last), self._show
            )
            if stop:
                break
        return Made(seen, seen.updates, stop=stop)


def no_mistake(seen: Pass) -> bool:
    """Return whether a pass has corrected nothing."""
    return seen.updates == 0


class SeveralPasses:
    """Passes over few samples in one compiled call each time, with constant rates.

    Parameters
    ----------
    problem : SeparationProblem
    orders : VisitingOrders
    """

    def __init__(self, problem: SeparationProblem, orders: VisitingOrders) -> None:
        self._problem, self._orders = problem, orders
        self._updates = np.inf  # of a pass of the last call
        self._kept: KeptMargins | None = None

    def make(self, a: Floats, rule: OnlineRule, t: int, count: int) -> Floats:
        """Make up to ``count`` passes, until one corrects nothing; return the numbers of each.

        None are made where a call would take long, and where rates differ from update to update.
        """
        Z = self._problem.Z
        count = min(count, TUNING.slice_multiply_adds // (Z.n_samples * row_length(Z.X)))
        if count < 2 or not (isinstance(Z, SignedSamples) and isinstance(rule.schedule, Constant)):
            return np.empty((0, 5))
        orders, seen = self._orders.several(count), np.empty((count, 5))
        rates = rule.schedule.rates(t + 1, Z.n_samples)
        if rule.law == FIXED_INCREMENT and KeptMargins.pays(Z, self._updates):
            self._kept = self._kept or KeptMargins(Z, rule.gain)
            made = self._kept.passes(a, orders, float(rates[0]), rule.slack, seen)
        else:
            made = signed_passes(
                rows_of(Z.X), Z.index, Z.labels, Z.bias_step, a.reshape(1, -1), orders,
                self._problem.margins.reshape(-1, 1), rule.gain, rates, rule.tau, rule.slack,
                rule.law, seen,
            )  # fmt: skip
        self._updates = float(seen[:made, 0].mean())
        return seen[:made]


def rounding_of(Z: Samples, a: Floats) -> float:
    """Return a bound of the rounding error of each entry of Za."""
    return float((Z.X.shape[1] + 2) * np.finfo(float).eps * Z.longest * Z.norm(a))


def _criterion(problem: SeparationProblem, a: Floats) -> float:
    """½ Σ v (m − z·a)², the criterion of the only rule that can diverge."""
    return problem.reduce(_squares, total, common=(a,))


def _squares(problem: SeparationProblem, a: Floats) -> float:
    return 0.5 * float(problem.row_weights @ (problem.margins - problem.Z.dot(a)) ** 2)


def snapshot(
    Z: Samples,
    a: Floats,
    status: Status = Status.STOPPED,
    progress: Progress | None = None,
    *,
    n_updates: int = 0,
    multipliers: Floats | None = None,
    margins: Floats | None = None,
) -> Solution:
    """Return a copy of the current planes as a solution, with the trace so far."""
    w, b = Z.unpack(a)
    if progress is None:
        return Solution(w=w, b=b, status=status)
    trace = progress.trace()
    return Solution(
        w=w, b=b, status=status, n_iter=len(trace), n_updates=n_updates, seconds=progress.seconds,
        multipliers=multipliers, margins=margins, trace=trace,
    )  # fmt: skip
