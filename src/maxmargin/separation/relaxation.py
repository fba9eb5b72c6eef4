"""Relaxation with margin (Agmon, Motzkin, Schoenberg, 1954; Duda, Hart, Stork, section 5.6).

J(a) = ½ Σ (m − z·a)²/‖z‖² over the rows with z·a ≤ m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import SeparationProblem
from ..samples import Floats
from ..schedules import Constant
from ..solution import Progress, Solution
from .batch import Correction, run_batch
from .online import RELAXATION, OnlineRule, run_passes

# A criterion this many times its value at a = 0 is on its way to infinity.
RUNAWAY = 100.0


@dataclass(frozen=True)
class OnlineRelaxation:
    """Visit the rows in turn: z·a ≤ m ⇒ a ← a + β (m − z·a)/‖z‖² z, 0 < β < 2.

    β = 1 moves exactly onto z·a = m. A row within ``tol`` of its margin, z·a > (1 − tol) m, is
    left alone: the sequence of the textbook (tol = 0) reaches m in the limit only. A weight v
    makes the factor min(vβ, max(β, 1)): for β ≥ 1 a whole weight does what that many visits in a
    row would, and no weight can make the factor leave (0, 2).
    """

    relaxation: float
    tol: float
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the plane it ends at."""
        beta = np.minimum(self.relaxation * problem.weights, max(self.relaxation, 1.0))
        rule = OnlineRule(RELAXATION, 1.0 - self.tol, beta, Constant(1.0))
        return run_passes(
            problem, a, rule, max_iter=self.max_iter, rng=self.rng,
            finished=lambda seen: seen.updates == 0,
            progress=progress, updates_before=self.updates_before,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchRelaxation:
    """Sum the steps of all violators: a ← a + β Σ v (m − z·a)/‖z‖² z.

    The sum of many steps may overshoot, and on data that no plane separates even grow without
    bound. When the criterion exceeds `RUNAWAY` times its value at a = 0 the sum is halved, from
    then on and each time again: the criterion is convex, so that it comes to rest.
    """

    relaxation: float
    tol: float
    max_iter: int

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the plane it ends at."""
        lengths = problem.Z.squared_norms()
        gain = problem.row_weights / np.where(lengths > 0, lengths, 1.0)
        limit = RUNAWAY * 0.5 * float(gain @ problem.margins**2)
        beta = self.relaxation

        def correct(margins: Floats, t: int) -> Correction:
            nonlocal beta
            short = margins <= (1.0 - self.tol) * problem.margins
            error = np.where(short, problem.margins - margins, 0.0)
            objective = 0.5 * float(gain @ error**2)
            if objective > limit:
                beta /= 2.0
            return Correction(beta * gain * error, objective, not short.any())

        return run_batch(problem, a, correct, max_iter=self.max_iter, progress=progress)
