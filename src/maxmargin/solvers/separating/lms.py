"""Least mean squares (Widrow, Hoff, 1960; Duda, Hart, Stork, section 5.8.4).

J(a) = ½ Σ (m − z·a)² includes all rows, also those classified correctly: any data have a
minimiser, which on separable data does not necessarily separate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Floats
from ...caller import warn_caller
from ...problems import SeparationProblem
from ...progress import Progress
from ...schedules import Constant, Harmonic, Schedule
from ...solution import Solution
from .batch import Correction, run_batch
from .engine_sums import on_engine
from .online import WIDROW_HOFF, OnlineRule, run_passes


@dataclass(frozen=True)
class Tuning:
    """Constants of the power method for the default rate of batch LMS."""

    power_steps: int = 100
    # The iteration ends when λ grows by less than this.
    eigenvalue_relative_growth: float = 1e-4


TUNING = Tuning()


@dataclass(frozen=True)
class OnlineLMS:
    """Visit the rows in turn: a ← a + ρ(k) v (m − z·a) z.

    The default schedule ρ(k) = n/((n + k) max v‖z‖²) has Σρ = ∞ and Σρ² < ∞, and no single step
    overshoots. Ends when every step of a pass is shorter than ``tol``.
    """

    schedule: Schedule | None
    tol: float
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the final plane."""
        energy = problem.row_weights * problem.Z.squared_norms()
        n = energy.size
        largest = float(energy.max()) or 1.0
        schedule = self.schedule or Harmonic(c=n / largest, offset=n - 1)
        _warn_if_unstable(schedule, 2.0 / (float(energy.mean()) or 1.0), "2/trace(R)")
        rule = OnlineRule(WIDROW_HOFF, np.inf, problem.weights, schedule)
        return run_passes(
            problem, a, rule, max_iter=self.max_iter, rng=self.rng,
            finished=lambda seen: seen.longest < self.tol,
            progress=progress, updates_before=self.updates_before,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchLMS:
    """All rows at once: a ← a + ρ(t) Zᵀ V (m − Za), V the diagonal of weights.

    The default rate is ρ = 1/λ, λ the largest eigenvalue of ZᵀVZ (power method).
    Ends when a step is shorter than ``tol``.
    """

    schedule: Schedule | None
    tol: float
    max_iter: int

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the final plane."""
        problem = on_engine(problem)
        weights = problem.row_weights
        largest = _largest_eigenvalue(problem, weights) or 1.0
        schedule = self.schedule or Constant(1.0 / largest)
        _warn_if_unstable(schedule, 2.0 / largest, "2/λ_max(ZᵀZ)")

        def correct(margins: Floats, t: int) -> Correction:
            error = problem.margins - margins
            rate = schedule.rates(t, 1)[0]
            return Correction(rate * weights * error, 0.5 * float(weights @ error**2))

        return run_batch(
            problem, a, correct, max_iter=self.max_iter, progress=progress, shortest=self.tol
        )


def _warn_if_unstable(schedule: Schedule, bound: float, formula: str) -> None:
    if isinstance(schedule, Constant) and schedule.rates(1, 1)[0] >= bound:
        warn_caller(
            f"learning_rate must be below {formula} = {bound:.4g} for LMS to converge on these "
            f"data, got {schedule.rate:g}. Use a smaller rate, mm.Harmonic(...), or scaled "
            "features.",
            RuntimeWarning,
        )


def _largest_eigenvalue(problem: SeparationProblem, weights: Floats) -> float:
    """Estimate λ_max(ZᵀVZ) by Rayleigh quotients of the power method, from a seeded start."""
    Z = problem.Z
    # A random vector has a component in every eigenspace; b is in units of √bias_step.
    w, b = Z.unpack(np.random.default_rng(0).standard_normal(Z.shape[1]))
    vector = Z.pack(w, b * np.sqrt(Z.bias_step))
    largest = 0.0
    for _ in range(TUNING.power_steps):
        length = Z.norm(vector)
        if length == 0.0:
            break
        margins = Z.dot(vector / length)
        previous, largest = largest, float(weights @ margins**2)
        if largest <= (1.0 + TUNING.eigenvalue_relative_growth) * previous:
            break
        vector = Z.adjoint(weights * margins)
    return largest
