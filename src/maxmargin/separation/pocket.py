"""The pocket algorithm with ratchet (Gallant, 1990).

Perceptron corrections, while the pocket keeps the a that had most samples right so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..problem import SeparationProblem
from ..rows import compiled, row_dot, rows_of
from ..samples import Floats, KeslerSamples, Samples
from ..schedules import Schedule
from ..solution import Progress, Solution, Status
from .online import FIXED_INCREMENT, OnlineRule, corrections, snapshot, visiting_order


@dataclass
class Pocketed:
    """The best a so far, the weight of the samples it gets wrong, and the updates since."""

    a: Floats
    wrong: float
    age: int = 0


@dataclass(frozen=True)
class OnlinePocket:
    """After every correction count; pocket a only for strictly fewer (weighted) mistakes.

    Ends when nothing is wrong, when the pocket has not changed for ``patience`` corrections, or at
    ``max_iter`` passes: the solution's status says which. Best in the limit on data that no plane
    separates, with no bound known beforehand.
    """

    schedule: Schedule
    patience: int
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the plane in the pocket."""
        Z = problem.Z
        rule = OnlineRule(FIXED_INCREMENT, 0.0, problem.weights, self.schedule)
        pocket = Pocketed(a.copy(), count_wrong(Z, a, problem.weights, np.inf))
        show = partial(snapshot, Z, pocket.a)
        progress.unit = "pass"
        t = self.updates_before
        status = Status.CONVERGED if pocket.wrong == 0 else Status.ITERATION_LIMIT
        orders = visiting_order(Z.n_samples, self.rng)
        for _ in range(self.max_iter):
            status = Status.ITERATION_LIMIT
            mistakes = 0
            for last, part in corrections(problem, a, rule, next(orders), t, at_most=1):
                if part.updates == 0:
                    continue
                t += part.updates
                mistakes += part.errors
                self._ratchet(problem, a, pocket)
                stop = progress.update(part.objective, last, partial(snapshot, Z, a))
                status = _reason_to_stop(pocket, self.patience, stop)
                if status is not Status.ITERATION_LIMIT:
                    break
            if mistakes == 0:
                status = Status.CONVERGED
            stop = progress.iteration(pocket.wrong, mistakes, pocket.wrong, show)
            if status is Status.ITERATION_LIMIT and stop:
                status = Status.STOPPED
            if status is not Status.ITERATION_LIMIT:
                break
        a[:] = pocket.a
        return snapshot(Z, a, status, progress, n_updates=t)

    @staticmethod
    def _ratchet(problem: SeparationProblem, a: Floats, pocket: Pocketed) -> None:
        wrong = count_wrong(problem.Z, a, problem.weights, pocket.wrong)
        if wrong < pocket.wrong:
            pocket.a[:] = a
            pocket.wrong, pocket.age = wrong, 0
        else:
            pocket.age += 1


def _reason_to_stop(pocket: Pocketed, patience: int, stop: bool) -> Status:
    if pocket.wrong == 0:
        return Status.CONVERGED
    if stop:
        return Status.STOPPED
    return Status.PATIENCE if pocket.age >= patience else Status.ITERATION_LIMIT


def count_wrong(Z: Samples, a: Floats, weights: Floats, limit: float) -> float:
    """Weight of the samples that a gets wrong, counted until it reaches ``limit``.

    A plane that is no better than the pocket shows it early: most counts end after a few rows.
    """
    vectors = a.reshape(Z.n_vectors, -1)
    count: Any = kesler_wrong if isinstance(Z, KeslerSamples) else signed_wrong
    return float(count(rows_of(Z.X), Z.index, Z.labels, vectors, weights, float(limit)))


@compiled
def signed_wrong(rows, index, y, a, weights, limit):
    """Σ of the weights of z·a ≤ 0, cut off at ``limit``."""
    w = a[0][:-1]
    wrong = 0.0
    for r in range(index.size):
        if y[r] * (row_dot(rows, index[r], w) + a[0, -1]) <= 0.0:
            wrong += weights[r]
            if wrong >= limit:
                break
    return wrong


@compiled
def kesler_wrong(rows, index, labels, a, weights, limit):
    """Σ of the weights of samples that do not score highest in their own class."""
    wrong = 0.0
    for r in range(index.size):
        i = index[r]
        own = labels[r]
        best = row_dot(rows, i, a[own][:-1]) + a[own, -1]
        for j in range(a.shape[0]):
            if j != own and row_dot(rows, i, a[j][:-1]) + a[j, -1] >= best:
                wrong += weights[r]
                break
        if wrong >= limit:
            break
    return wrong
