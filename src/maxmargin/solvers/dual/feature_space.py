"""The dual of a linear kernel, solved through the primal in d + 1 unknowns.

Given: a `DualProblem` with K(x, z) = x·z and more samples than features. Wanted: α and b.

The linear machine is solved by `newton`, or by `interior_point` where C or the scales of the
features are too much for that, to a gap far below the one required. That gap is one of P(w, b) at
the solver's own w; the kernel machine has w = Σ α_i y_i x_i. So α of samples off the margin is put
onto the bound where it belongs, and α on the margin is corrected by Newton steps on

    y_i (w·x_i + b) + (D_i + ε)α_i = 1 + εα⁰_i,   w = Σ α_i y_i x_i,   yᵀα = 0,

with the free set held, w computed anew from α in each (proximal steps: α⁰ is the last α).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...arrays import Floats
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
from .feasibility import Mask
from .optimality import AIM, Optimality, best_bias, exactly_balanced, moved_to_balance


@dataclass(frozen=True)
class Tuning:
    """When methods in feature space give way to each other, and how far they go."""

    # The relative gap that the linear machine is solved to, and to which α is corrected.
    tight_gap: float = 1e-9
    # Newton steps after which the interior point takes over.
    newton_steps: int = 100
    # Corrections of α on the margin, and their ε relative to max K(x, x).
    max_corrections: int = 12
    proximal_share: float = 1e-9
    # Features up to which the interior point's systems are worth their time.
    interior_point_up_to_features: int = 3000


@dataclass(frozen=True)
class FeatureSpace:
    """The solver of kernel machines with a linear kernel, for n > d, hinge and squared hinge.

    Ends with ``CONVERGED`` where the KKT conditions hold to ``tol`` and the relative gap is at most
    2·tol; with ``PATIENCE`` where rounding allows no more. A callback or a limit leaves the best α
    that was seen.

    Parameters
    ----------
    features : Features
        X of the rows ``problem.index``.
    tol : float
        The largest violation of a KKT condition, in units of y g(x).
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
        upper, ridge = _one_if_equal(problem.upper), _one_if_equal(problem.ridge)
        linear = PrimalProblem(
            None, problem.signs, upper, ridge, "free" if problem.groups else "none"
        )
        shown = _Shown(problem, linear, self.features, progress)
        start = None
        if alpha is not None:
            point = shown.judge(np.clip(alpha, 0.0, problem.upper))
            start = Plane(shown.w, point.b, point.alpha)
        status = Status.PATIENCE
        for solver in self._solvers():
            found = solver.solve(linear, start, shown)
            status = self._ended(found, progress)
            if status is not Status.PATIENCE:
                break
            if self._settle(problem, shown, found):
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

    def _settle(self, problem: DualProblem, shown: _Shown, found: Solution) -> bool:
        """Make α belong to the plane found; return whether it is then optimal to tol."""
        assert found.alpha is not None
        margins = problem.signs * self.features.scores(found.w[0], float(found.b[0]))
        # Only samples about the margin of the plane found may be free.
        near = margins < 1.0 + 0.5 * self.tol
        if not problem.ridge.any():
            near &= margins > 1.0 - 0.5 * self.tol
        point = shown.judge(_at_bounds(problem, found.alpha, margins, 0.5 * self.tol))
        best, share = point, point.share(self.tol)
        for _ in range(self.tuning.max_corrections):
            if share <= self.tuning.tight_gap / self.tol:
                break
            point = shown.judge(self._corrected(problem, point, near))
            if point.share(self.tol) < share:
                best = point
            elif point.share(self.tol) > 0.9 * share:
                break
            share = min(share, point.share(self.tol))
        shown.settle(best)
        return share <= AIM

    def _corrected(self, problem: DualProblem, point: Optimality, near: Mask) -> Floats:
        """Return α after a proximal Newton step on what is free or, if near, violates."""
        y, alpha, upper = problem.signs, point.alpha, problem.upper
        lacking = 1.0 - y * (point.scores + point.b) - problem.ridge * alpha
        free = (alpha > 0.0) & (alpha < upper)
        if point.violation <= self.tol:
            free |= ((alpha <= 0.0) & (lacking > 0.0)) | ((alpha >= upper) & (lacking < 0.0))
        rows = np.flatnonzero(free & near)
        if not rows.size:
            return alpha
        here = self.features.restrict(rows)
        largest = float(here.squared_lengths().max()) or 1.0
        c = 1.0 / (problem.ridge[rows] + self.tuning.proximal_share * largest)
        e = lacking[rows]
        H = here.moments(c)
        H[np.diag_indices(self.features.n_columns)] += 1.0
        signed = c * e * y[rows]
        # α of the caller's own may leave yᵀα ≠ 0: the step makes up for it.
        excess = float(y @ alpha) if problem.groups else 0.0
        right = np.append(here.combine(signed), signed.sum() + excess)
        if not problem.groups:
            H[-1], H[:, -1], H[-1, -1], right[-1] = 0.0, 0.0, 1.0, 0.0
        step = Factored(H).solve(right)
        change = c * (e - y[rows] * here.scores(step[:-1], float(step[-1])))
        alpha = alpha.copy()
        alpha[rows] = np.clip(alpha[rows] + change, 0.0, upper[rows])
        return alpha


class _Shown(BestSeen):
    """Steps of the linear machine, shown as those of the kernel machine.

    P of a step is that of Σ α_i y_i x_i, not of the solver's w; what is shown is the best so far.
    """

    def __init__(
        self,
        problem: DualProblem,
        linear: PrimalProblem,
        features: HostFeatures,
        progress: Progress,
    ) -> None:
        super().__init__(progress)
        self.problem, self.linear, self.features = problem, linear, features
        nothing = np.zeros(problem.n_variables)
        b = best_bias(problem, nothing)
        self.point = Optimality.of(problem, nothing, nothing, b=b)
        self.settled: Optimality | None = None
        self.w: Floats = np.zeros(features.n_columns)

    def judge(self, alpha: Floats, *, exactly: bool = True) -> Optimality:
        """Return what α is worth once yᵀα = 0, to rounding or exactly."""
        problem = self.problem
        if problem.groups:
            free_moved = moved_to_balance(alpha, problem.signs, problem.upper)
            alpha = balanced(self.linear, alpha) if free_moved is None else free_moved
            alpha = exactly_balanced(problem, alpha) if exactly else alpha
        self.w = self.features.combine(alpha * problem.signs)
        return Optimality.of(problem, alpha, self.features.scores(self.w))

    def keep(self, point: Optimality) -> None:
        """Hand this out unless something better has been seen."""
        if point.primal < self.point.primal:
            self.point = point

    def record(self, report: Report) -> bool:
        """Judge the α of a step, where it has one, as the kernel machine's."""
        solution = report.snapshot()
        if solution.alpha is not None:
            self.keep(self.judge(solution.alpha, exactly=False))
        return self._show(report.objective, report.errors, report.violation)

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
        wrong = int(np.count_nonzero(self.problem.signs * (shown.scores + shown.b) <= 0.0))
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


def _at_bounds(problem: DualProblem, alpha: Floats, margins: Floats, band: float) -> Floats:
    """Return α at the bound that its margin implies, where that is off 1 by more than the band."""
    if problem.ridge.any():
        lacking = np.maximum(1.0 - margins, 0.0)
        return lacking / problem.ridge
    alpha = np.where(margins > 1.0 + band, 0.0, alpha)
    return np.where(margins < 1.0 - band, problem.upper, alpha)
