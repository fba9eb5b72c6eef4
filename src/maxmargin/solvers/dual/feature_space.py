"""The dual of a linear kernel, solved through the primal in d + 1 unknowns.

Given: a `DualProblem` with K(x, z) = x·z and more samples than features. Wanted: α and b.

The linear machine is solved by `newton`, or by `interior_point` where C or the scales of the
features are too much for that, to a gap far below the one required. That gap is one of P(w, b) at
the solver's own w; the kernel machine has w = Σ α_i s_i x_i. So α of samples off the kink is put
onto the bound where it belongs, and α on the kink is corrected by Newton steps on

    s_i (w·x_i + b) + (D_i + δ)α_i = −p_i + δα⁰_i,   w = Σ α_i s_i x_i,   sᵀα = 0,

with the free set held, w computed anew from α in each (proximal steps: α⁰ is the last α).

A regression has two variables per row, α and α*. Its linear machine is that of targets, whose
β = α − α* has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ...arrays import Floats, Integers
from ...engines.linear import HostFeatures
from ...problems import DualProblem, PrimalProblem
from ...problems.best_bias import balanced
from ...progress import Limits, Progress, Report
from ...solution import Solution, Status
from ..best_seen import BestSeen
from ..linear_systems import Factored
from ..primal.interior_point import InteriorPoint
from ..primal.ledger import Plane
from ..primal.newton import SemismoothNewton
from ..targets import Units
from .feasibility import Mask
from .optimality import AIM, Optimality, best_bias, exactly_balanced, moved_to_balance


@dataclass(frozen=True)
class Tuning:
    """When methods in feature space give way to each other, and how far they go."""

    # The relative gap that the linear machine is solved to, and to which α is corrected.
    tight_gap: float = 1e-9
    # Newton steps after which the interior point takes over.
    newton_steps: int = 100
    # Corrections of α on the kink, and their δ relative to max K(x, x).
    max_corrections: int = 12
    proximal_share: float = 1e-9
    # Features up to which the interior point's systems are worth their time.
    interior_point_up_to_features: int = 3000


def linear_machine(problem: DualProblem) -> PrimalProblem | None:
    """Return the linear machine of a dual with a linear kernel; None where there is none.

    That of labels has p = −1. That of targets has variables of opposite signs, one after the other,
    for every row, with p = ε − y and ε + y.
    """
    bias: Literal["free", "none"] = "free" if problem.groups else "none"
    if problem.has_unit_margin:
        upper, ridge = _one_if_equal(problem.upper), _one_if_equal(problem.ridge)
        return PrimalProblem(problem.X, problem.signs, upper, ridge, bias)
    if len(problem.groups) > 1 or problem.total or problem.lower.any() or problem.n_variables % 2:
        return None
    first, second = np.array([problem.index, problem.signs, problem.upper, problem.ridge]).reshape(
        4, 2, -1
    ).swapaxes(0, 1)  # fmt: skip
    mirrored = np.array([1.0, -1.0, 1.0, 1.0])[:, np.newaxis] * second
    p, p_starred = np.split(problem.p, 2)
    widths = 0.5 * (p + p_starred)
    epsilon = float(np.median(widths))
    rounding = 8.0 * float(np.finfo(float).eps * np.abs(problem.p).max())
    if not ((first == mirrored).all() and (first[1] == 1.0).all() and epsilon >= 0.0):
        return None
    if np.abs(widths - epsilon).max() > rounding:
        return None
    return PrimalProblem(
        problem.X, 0.5 * (p_starred - p), _one_if_equal(first[2]), _one_if_equal(first[3]), bias,
        two_sided=True, epsilon=epsilon,
    )  # fmt: skip


@dataclass(frozen=True)
class _Machine:
    """A dual problem, its linear machine, and the rows that its variables belong to."""

    problem: DualProblem
    linear: PrimalProblem
    features: HostFeatures
    units: Units

    @classmethod
    def of(cls, problem: DualProblem, features: HostFeatures) -> _Machine:
        linear = linear_machine(problem)
        assert linear is not None
        units = Units.of(linear) if linear.two_sided else Units(0.0, 1.0)
        return cls(problem, linear, features, units)

    @property
    def posed(self) -> PrimalProblem:
        """The linear machine in the units of its targets."""
        return self.units.posed(self.linear) if self.linear.two_sided else self.linear

    def scores(self, w: Floats, b: float = 0.0) -> Floats:
        """Return w·x + b of every variable."""
        scores = self.features.scores(w, b)
        return np.tile(scores, 2) if self.linear.two_sided else scores

    def combine(self, alpha: Floats) -> Floats:
        """Return w = Σ α s x."""
        beta = self.beta(alpha)
        return self.features.combine(beta if self.linear.two_sided else beta * self.problem.signs)

    def beta(self, alpha: Floats) -> Floats:
        """Return what the linear machine has in the place of α."""
        if not self.linear.two_sided:
            return alpha
        above, below = np.split(alpha, 2)
        return above - below

    def alpha(self, beta: Floats) -> Floats:
        """Return α of what the linear machine has in its place."""
        if not self.linear.two_sided:
            return beta
        return np.maximum(np.concatenate([beta, -beta]), 0.0)

    def slacks(self, scores: Floats) -> Floats:
        """Return z = −p − s(w·x + b) of every variable."""
        return -self.problem.p - self.problem.signs * scores

    def rows(self, variables: Integers, alpha: Floats) -> tuple[Integers, Integers]:
        """Return some variables, of the two of a row the larger, and their rows, which increase."""
        n = self.features.n_rows
        order = variables[np.argsort(-alpha[variables], kind="stable")]
        rows, first = np.unique(order % n, return_index=True)
        return order[first], rows


@dataclass(frozen=True)
class FeatureSpace:
    """The solver of kernel machines with a linear kernel, for n > d: labels and targets.

    Ends with ``CONVERGED`` where the KKT conditions hold to ``tol`` and the relative gap is at most
    2·tol; with ``PATIENCE`` where rounding allows no more. A callback or a limit leaves the best α
    that was seen.

    Parameters
    ----------
    features : Features
        X of the rows ``problem.index``, those of a regression once.
    tol : float
        The largest violation of a KKT condition, in the units of the certificate.
    limits : Limits
        Of steps, and seconds.
    tuning : Tuning
    """

    features: HostFeatures
    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: DualProblem, alpha: Floats | None, progress: Progress) -> Solution:
        """Return α and b, starting from ``alpha`` or from nothing."""
        machine = _Machine.of(problem, self.features)
        shown = _Shown(machine, progress)
        if shown.point.share(self.tol) <= AIM:
            shown.settle(shown.point)
            return shown.solution(Status.CONVERGED)
        start = None
        if alpha is not None:
            point = shown.judge(np.clip(alpha, 0.0, problem.upper))
            start = machine.units.entered(Plane(shown.w, point.b, machine.beta(point.alpha)))
        status = Status.PATIENCE
        for solver in self._solvers():
            found = machine.units.back(solver.solve(machine.posed, start, shown))
            status = self._ended(found, progress)
            if status is not Status.PATIENCE:
                break
            if self._settle(machine, shown, found):
                status = Status.CONVERGED
                break
        return shown.solution(status)

    def _solvers(self) -> list[Any]:
        """Return Newton's method with few steps, and the interior point."""
        most, seconds = self.limits.iterations, self.limits.seconds
        steps = self.tuning.newton_steps if most is None else min(self.tuning.newton_steps, most)
        tol = min(self.tuning.tight_gap, 1e-3 * self.tol)
        solvers: list[Any] = [SemismoothNewton(self.features, tol, Limits(steps, seconds))]
        if self.features.n_columns <= self.tuning.interior_point_up_to_features:
            rest = None if most is None else max(1, most - steps)
            solvers.append(InteriorPoint(self.features, tol, Limits(rest, seconds)))
        return solvers

    def _ended(self, found: Solution, progress: Progress) -> Status:
        """Return what ended the fit before its time; PATIENCE where nothing did."""
        if found.status in (Status.STOPPED, Status.TIME_LIMIT):
            return found.status
        if found.status is Status.CONVERGED:
            return Status.PATIENCE
        return self.limits.reached(len(progress.history), progress) or Status.PATIENCE

    def _settle(self, machine: _Machine, shown: _Shown, found: Solution) -> bool:
        """Make α belong to the plane found; return whether it is then optimal to tol."""
        assert found.alpha is not None
        z = machine.slacks(machine.scores(found.w[0], float(found.b[0])))
        # Only samples about the kink of the plane found may be free.
        band = 0.5 * self.tol * machine.problem.target_scale
        near = z > -band
        if not machine.problem.ridge.any():
            near &= z < band
        point = shown.judge(_at_bounds(machine.problem, machine.alpha(found.alpha), z, band))
        best, share = point, point.share(self.tol)
        for _ in range(self.tuning.max_corrections):
            if share <= self.tuning.tight_gap / self.tol:
                break
            point = shown.judge(self._corrected(machine, point, near))
            if point.share(self.tol) < share:
                best = point
            elif point.share(self.tol) > 0.9 * share:
                break
            share = min(share, point.share(self.tol))
        shown.settle(best)
        return share <= AIM

    def _corrected(self, machine: _Machine, point: Optimality, near: Mask) -> Floats:
        """Return α after a proximal Newton step on what is free or, if near, violates."""
        problem = machine.problem
        alpha, upper = point.alpha, problem.upper
        lacking = machine.slacks(point.scores + point.b) - problem.ridge * alpha
        free = (alpha > 0.0) & (alpha < upper)
        if point.violation <= self.tol:
            free |= ((alpha <= 0.0) & (lacking > 0.0)) | ((alpha >= upper) & (lacking < 0.0))
        moving, rows = machine.rows(np.flatnonzero(free & near), alpha)
        if not rows.size:
            return alpha
        here, signs = self.features.restrict(rows), problem.signs[moving]
        largest = float(here.squared_lengths().max()) or 1.0
        c = 1.0 / (problem.ridge[moving] + self.tuning.proximal_share * largest)
        e = lacking[moving]
        H = here.moments(c)
        H[np.diag_indices(self.features.n_columns)] += 1.0
        signed = c * e * signs
        # α of the caller's own may leave sᵀα ≠ 0: the step makes up for it.
        excess = float(problem.signs @ alpha) if problem.groups else 0.0
        right = np.append(here.combine(signed), signed.sum() + excess)
        if not problem.groups:
            H[-1], H[:, -1], H[-1, -1], right[-1] = 0.0, 0.0, 1.0, 0.0
        step = Factored(H).solve(right)
        change = c * (e - signs * here.scores(step[:-1], float(step[-1])))
        alpha = alpha.copy()
        alpha[moving] = np.clip(alpha[moving] + change, 0.0, upper[moving])
        return alpha


class _Shown(BestSeen):
    """Steps of the linear machine, shown as those of the kernel machine.

    P of a step is that of Σ α_i s_i x_i, not of the solver's w; what is shown is the best so far.
    """

    def __init__(self, machine: _Machine, progress: Progress) -> None:
        super().__init__(progress)
        problem = machine.problem
        self.machine, self.problem = machine, problem
        nothing = np.zeros(problem.n_variables)
        b = best_bias(problem, nothing)
        self.point = Optimality.of(problem, nothing, nothing, b=b)
        self.settled: Optimality | None = None
        self.w: Floats = np.zeros(machine.features.n_columns)

    def judge(self, alpha: Floats, *, exactly: bool = True) -> Optimality:
        """Return what α is worth once sᵀα = 0, to rounding or exactly."""
        problem, machine = self.problem, self.machine
        if problem.groups:
            moved = moved_to_balance(alpha, problem.signs, problem.upper)
            if moved is None:
                moved = machine.alpha(balanced(machine.linear, machine.beta(alpha)))
            alpha = exactly_balanced(problem, moved) if exactly else moved
        self.w = machine.combine(alpha)
        return Optimality.of(problem, alpha, machine.scores(self.w))

    def keep(self, point: Optimality) -> None:
        """Hand this out unless something better has been seen."""
        if point.primal < self.point.primal:
            self.point = point

    def record(self, report: Report) -> bool:
        """Judge the α of a step, where it has one, as the kernel machine's."""
        scale, solution = self.machine.units.scale, report.snapshot()
        if solution.alpha is not None:
            alpha = self.machine.alpha(scale * solution.alpha)
            self.keep(self.judge(alpha, exactly=False))
        return self._show(report.objective * scale**2, report.errors, report.violation)

    def _show(self, objective: float, errors: int, violation: float) -> bool:
        point = self.point
        snapshot = partial(point.solution, Status.STOPPED)
        report = Report(objective, errors, violation, snapshot, point.primal, point.dual)
        return Progress.record(self, report)

    def measured(self, primal: float, dual: float) -> None:
        """Enter P and D of what is shown, whatever those of the solver's own plane are."""
        super().measured(self.point.primal, self.point.dual)

    def settle(self, point: Optimality) -> None:
        """Show what α became in the end, as a last step."""
        self.keep(point)
        self.settled, shown = point, self.point
        scores = shown.scores + shown.b
        wrong = int(
            np.count_nonzero(self.machine.linear.errors(scores[: self.machine.linear.y.size]))
        )
        self._show(shown.primal, wrong, max(shown.gap, 0.0))

    def solution(self, status: Status) -> Solution:
        """Return what came out in the end, or the best on the way there."""
        trace, point = self.trace(), self.settled or self.point
        # Scores without bounds are for the solvers to judge by, not for the certificate.
        return replace(
            point.solution(status), scores=point.scores, n_iter=len(trace), n_updates=len(trace),
            seconds=self.seconds, trace=trace,
        )  # fmt: skip


def _one_if_equal(values: Floats) -> Floats:
    return values[:1] if (values == values[0]).all() else values


def _at_bounds(problem: DualProblem, alpha: Floats, z: Floats, band: float) -> Floats:
    """Return α at the bound that its slack implies, where that is off 0 by more than the band."""
    if problem.ridge.any():
        return np.maximum(z, 0.0) / problem.ridge
    alpha = np.where(z < -band, 0.0, alpha)
    return np.where(z > band, problem.upper, alpha)
