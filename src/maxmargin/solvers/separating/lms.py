"""Least mean squares (Widrow, Hoff, 1960; Duda, Hart, Stork, section 5.8.4).

J(a) = ½ Σ (m − z·a)² includes all rows, also those classified correctly: any data have a
minimiser, which on separable data does not necessarily separate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ...arrays import Floats
from ...caller import warn_caller
from ...problems import SeparationProblem
from ...progress import Progress
from ...schedules import Constant, Harmonic, Schedule
from ...solution import Solution
from .batch import Correction, Evaluation, evaluated, merged_evaluations, run_batch
from .engine_sums import on_engine, reduced
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
        energy = problem.reduce(_energy, _merged_energy)
        n = problem.Z.shape[0]
        largest = energy.largest or 1.0
        schedule = self.schedule or Harmonic(c=n / largest, offset=n - 1)
        _warn_if_unstable(schedule, 2.0 / (energy.total / n or 1.0), "2/trace(R)")
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
        largest = _largest_eigenvalue(problem) or 1.0
        schedule = self.schedule or Constant(1.0 / largest)
        _warn_if_unstable(schedule, 2.0 / largest, "2/λ_max(ZᵀZ)")

        def evaluate(a: Floats, t: int) -> Evaluation:
            rule = partial(correct_all, rate=float(schedule.rates(t, 1)[0]))
            return reduced(problem, evaluated, merged_evaluations, common=(a, rule))

        return run_batch(
            problem, a, evaluate, max_iter=self.max_iter, progress=progress, shortest=self.tol
        )


def correct_all(problem: SeparationProblem, margins: Floats, rate: float) -> Correction:
    """Return the correction of all rows."""
    weights, error = problem.row_weights, problem.margins - margins
    return Correction(rate * weights * error, 0.5 * float(weights @ error**2))


class Energy(NamedTuple):
    """The largest v‖z‖², and their sum."""

    largest: float
    total: float


def _energy(problem: SeparationProblem) -> Energy:
    energy = problem.row_weights * problem.Z.squared_norms()
    return Energy(float(energy.max()), float(energy.sum()))


def _merged_energy(found: list[Energy]) -> Energy:
    largest, total = zip(*found, strict=True)
    return Energy(max(largest), sum(total))


def _warn_if_unstable(schedule: Schedule, bound: float, formula: str) -> None:
    if isinstance(schedule, Constant) and schedule.rates(1, 1)[0] >= bound:
        warn_caller(
            f"learning_rate must be below {formula} = {bound:.4g} for LMS to converge on these "
            f"data, got {schedule.rate:g}. Use a smaller rate, mm.Harmonic(...), or scaled "
            "features.",
            RuntimeWarning,
        )


def _largest_eigenvalue(problem: SeparationProblem) -> float:
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
        previous = largest
        largest, vector = reduced(problem, _product, _added, common=(vector / length,))
        if largest <= (1.0 + TUNING.eigenvalue_relative_growth) * previous:
            break
    return largest


def _product(problem: SeparationProblem, vector: Floats) -> tuple[float, Floats]:
    """Return vᵀZᵀVZv and ZᵀVZv."""
    weights, margins = problem.row_weights, problem.Z.dot(vector)
    return float(weights @ margins**2), problem.Z.adjoint(weights * margins)


def _added(found: list[tuple[float, Floats]]) -> tuple[float, Floats]:
    quotients, products = zip(*found, strict=True)
    return sum(quotients), np.sum(products, axis=0)
