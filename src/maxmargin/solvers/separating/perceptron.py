"""The perceptron, single-sample and batch (Rosenblatt, 1958; Novikoff, 1962).

J(a) = −Σ z·a over the misclassified rows z·a ≤ 0; its subgradient is −Σ z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Floats
from ...problems import SeparationProblem
from ...progress import Progress
from ...schedules import Schedule
from ...solution import Solution
from .batch import Correction, run_batch
from .engine_sums import on_engine
from .online import FIXED_INCREMENT, OnlineRule, no_mistake, rounding_of, run_passes


@dataclass(frozen=True)
class OnlinePerceptron:
    """Visit the rows in turn: z·a ≤ 0 ⇒ a ← a + ρ(t) z.

    A weight v represents v consecutive visits. Ends after a pass without a mistake: on separable
    data, with a constant rate and from zero, after at most (max‖z‖/γ)² mistakes, where γ is the
    largest min z·a/‖a‖.
    """

    schedule: Schedule
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the final plane."""
        rule = OnlineRule(FIXED_INCREMENT, 0.0, problem.weights, self.schedule)
        return run_passes(
            problem, a, rule, max_iter=self.max_iter, rng=self.rng, finished=no_mistake,
            progress=progress, updates_before=self.updates_before,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchPerceptron:
    """Correct all mistakes at once: a ← a + ρ(t) Σ_{z·a ≤ 0} v z."""

    schedule: Schedule
    max_iter: int

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the final plane."""
        problem = on_engine(problem)
        weights = problem.row_weights

        def correct(margins: Floats, t: int) -> Correction:
            # Samples that may lie on the plane, given rounding errors, count as mistakes.
            wrong = margins <= rounding_of(problem.Z, a)
            rate = self.schedule.rates(t, 1)[0]
            objective = -float(weights[wrong] @ margins[wrong])
            return Correction(rate * weights * wrong, objective, not wrong.any())

        return run_batch(problem, a, correct, max_iter=self.max_iter, progress=progress)
