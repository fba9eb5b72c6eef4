"""Relaxation with margin (Agmon, Motzkin, Schoenberg, 1954; Duda, Hart, Stork, section 5.6).

J(a) = ½ Σ (m − z·a)²/‖z‖² over the rows with z·a ≤ m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Floats
from ...problems import SeparationProblem
from ...progress import Progress
from ...schedules import Constant
from ...solution import Solution
from .batch import Correction, Evaluation, evaluated, run_batch
from .engine_sums import on_engine
from .online import RELAXATION, OnlineRule, rounding_of, run_passes


@dataclass(frozen=True)
class OnlineRelaxation:
    """Visit the rows in turn: z·a ≤ m ⇒ a ← a + β (m − z·a)/‖z‖² z, 0 < β < 2.

    β = 1 moves exactly onto z·a = m. A row within ``tol`` of its margin, z·a > (1 − tol) m, is not
    corrected: the sequence of the textbook (tol = 0) reaches m in the limit only. A weight v
    represents v consecutive visits: the factor 1 − (1 − β)^v for β < 1; for β ≥ 1 only the first
    visit corrects.
    """

    relaxation: float
    tol: float
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the final plane."""
        beta = _factor(self.relaxation, problem.weights)
        rule = OnlineRule(RELAXATION, 1.0 - self.tol, beta, Constant(1.0))
        return run_passes(
            problem, a, rule, max_iter=self.max_iter, rng=self.rng,
            finished=lambda seen: seen.updates == 0,
            progress=progress, updates_before=self.updates_before,
        )  # fmt: skip


def _factor(beta: float, visits: Floats) -> Floats:
    """Return the relaxation factor of ``visits`` consecutive corrections by β."""
    if beta < 1.0:
        return 1.0 - (1.0 - beta) ** visits
    return beta * np.minimum(visits, 1.0)


@dataclass(frozen=True)
class BatchRelaxation:
    """Sum the steps of all violators: a ← a + β Σ v (m − z·a)/‖z‖² z.

    The sum of many steps may overshoot, cycle, and on data that no plane separates even grow
    without bound. After the first step that does not decrease the criterion, steps are limited to β
    times the minimiser along them, which never increases it. A row has reached its margin only if
    it does so by more than a bound of the rounding errors.
    """

    relaxation: float
    tol: float
    max_iter: int

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the final plane."""
        problem = on_engine(problem)
        Z, m = problem.Z, problem.margins
        lengths = Z.squared_norms()
        gain = problem.row_weights / np.where(lengths > 0, lengths, 1.0)
        lowest, overshoots = np.inf, False

        def correct(problem: SeparationProblem, margins: Floats) -> Correction:
            nonlocal lowest, overshoots
            short = margins <= np.maximum((1.0 - self.tol) * m, rounding_of(Z, a))
            # The minimum along a step is that of all samples below m, also within ``tol`` of it.
            violates = margins < m if overshoots else short
            u = gain * np.where(violates, np.maximum(m - margins, 0.0), 0.0)
            objective = 0.5 * float(u @ (m - margins))
            overshoots |= objective >= lowest
            lowest = min(lowest, objective)
            factor = 1.0
            if overshoots:
                factor = min(1.0, _line_minimum(m - margins, Z.dot(Z.adjoint(u)), gain))
            return Correction(self.relaxation * factor * u, objective, not short.any())

        def evaluate(a: Floats, t: int) -> Evaluation:
            return evaluated(problem, a, correct)

        return run_batch(problem, a, evaluate, max_iter=self.max_iter, progress=progress)


def _line_minimum(error: Floats, slope: Floats, gain: Floats) -> float:
    """Minimise Σ gain (error − θ slope)₊² over θ ≥ 0 by Newton's method with a bracket."""
    theta, low, high = 0.0, 0.0, np.inf
    for _ in range(100):
        active = error > theta * slope
        weighted = (gain * slope)[active]
        descent = float(weighted @ (error - theta * slope)[active])
        low, high = (theta, high) if descent > 0 else (low, theta)
        curvature = float(weighted @ slope[active])
        target = theta + descent / curvature if curvature > 0 else np.inf
        if not low < target < high:
            target = 0.5 * (low + high) if np.isfinite(high) else 2.0 * max(theta, 1.0)
        if abs(target - theta) <= 1e-12 * target:
            break
        theta = target
    return theta
