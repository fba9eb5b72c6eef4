"""The perceptron, single-sample and batch (Rosenblatt, 1958; Novikoff, 1962).

J(a) = −Σ z·a over the misclassified rows z·a ≤ 0; its subgradient is −Σ z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arrays import Floats
from ...problems import SeparationProblem
from ...progress import Progress
from ...schedules import Schedule
from ...solution import Solution
from .batch import Correction, Evaluation, evaluated, merged_evaluations, run_batch
from .engine_sums import on_engine, reduced
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

        def evaluate(a: Floats, t: int) -> Evaluation:
            # Samples that may lie on the plane, given rounding errors, count as mistakes.
            slack, rate = rounding_of(problem.Z, a), float(self.schedule.rates(t, 1)[0])
            rule = partial(correct_mistakes, rate=rate, slack=slack)
            return reduced(problem, evaluated, merged_evaluations, common=(a, rule))

        return run_batch(problem, a, evaluate, max_iter=self.max_iter, progress=progress)


def correct_mistakes(
    problem: SeparationProblem, margins: Floats, rate: float, slack: float
) -> Correction:
    """Return the correction of all rows with z·a ≤ slack."""
    weights, wrong = problem.row_weights, margins <= slack
    objective = -float(weights[wrong] @ margins[wrong])
    return Correction(rate * weights * wrong, objective, not wrong.any())
