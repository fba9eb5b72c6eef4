"""The pocket algorithm with ratchet (Gallant, 1990).

Perceptron corrections, while the pocket keeps the a that had most samples right so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...data.normalised_samples import KeslerSamples, Samples
from ...problems import SeparationProblem
from ...progress import Progress
from ...runtime.row_access import compiled, row_dot, rows_of
from ...schedules import Schedule
from ...solution import Solution, Status
from .online import FIXED_INCREMENT, OnlineRule, corrections, snapshot, visiting_order

# Samples up to which every correction is counted; of more, counts take no longer than of these.
COUNTED = 5000


@dataclass
class Pocketed:
    """The best a so far, the weight of the samples it gets wrong, and the passes since."""

    a: Floats
    wrong: float
    age: int = 0

    def offer(self, problem: SeparationProblem, a: Floats) -> None:
        """Take a in for strictly fewer mistakes."""
        wrong = count_wrong(problem.Z, a, problem.weights, self.wrong)
        if wrong < self.wrong:
            self.a[:] = a
            self.wrong, self.age = wrong, -1  # a pass goes on


@dataclass(frozen=True)
class OnlinePocket:
    """After a correction count; pocket a only for strictly fewer (weighted) mistakes.

    The pocket begins with w = 0 and the bias of the class that weighs most, so that no answer is
    worse. Every correction is counted, but of more than `COUNTED` samples every (n/COUNTED)²th, and
    the last of a pass: a count takes as long as a pass. Ends when nothing is wrong, when the pocket
    has not changed for ``patience`` passes, or at ``max_iter`` passes: the solution's status says
    which. Best in the limit on data that no plane separates, with no bound known beforehand.
    """

    schedule: Schedule
    patience: int
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the plane in the pocket."""
        Z = problem.Z
        pocket = Pocketed(a.copy(), count_wrong(Z, a, problem.weights, np.inf))
        pocket.offer(problem, most_frequent(problem))
        pocket.age = 0
        progress.unit = "pass"
        t = self.updates_before
        status = Status.CONVERGED if pocket.wrong == 0 else Status.ITERATION_LIMIT
        orders = visiting_order(Z.n_samples, self.rng)
        for _ in range(self.max_iter):
            status = Status.ITERATION_LIMIT
            before = t
            t, mistakes, stop = self._one_pass(problem, a, pocket, next(orders), t, progress)
            pocket.age += 1
            stop |= progress.iteration(
                pocket.wrong, mistakes, pocket.wrong, partial(snapshot, Z, pocket.a)
            )
            if pocket.wrong == 0 or t == before:
                status = Status.CONVERGED
            elif stop:
                status = Status.STOPPED
            elif pocket.age >= self.patience:
                status = Status.PATIENCE
            if status is not Status.ITERATION_LIMIT:
                break
        a[:] = pocket.a
        return snapshot(Z, a, status, progress, n_updates=t)

    def _one_pass(
        self,
        problem: SeparationProblem,
        a: Floats,
        pocket: Pocketed,
        order: Integers,
        t: int,
        progress: Progress,
    ) -> tuple[int, int, bool]:
        """Correct a on every mistake; return the updates, the mistakes, and whether to stop."""
        rule = OnlineRule(FIXED_INCREMENT, 0.0, problem.weights, self.schedule)
        every, since, mistakes = max(1, round((problem.Z.n_samples / COUNTED) ** 2)), 0, 0
        at_most = 1 if progress.watchers else every
        for last, part in corrections(problem, a, rule, order, t, at_most):
            if part.updates == 0:
                continue
            t, since = t + part.updates, since + part.updates
            mistakes += part.errors
            if since >= every:
                pocket.offer(problem, a)
                since = 0
            if progress.update(part.objective, last, partial(snapshot, problem.Z, a)):
                return t, mistakes, True
            if pocket.wrong == 0:
                break
        if since:  # not counted yet
            pocket.offer(problem, a)
        return t, mistakes, False


def most_frequent(problem: SeparationProblem) -> Floats:
    """Return w = 0 with biases by which the class of the most weight wins; 0 without a bias."""
    Z, weights = problem.Z, problem.weights
    w, b = Z.unpack(np.zeros(Z.shape[1]))
    if Z.bias_step == 0.0:
        return Z.pack(w, b)
    if isinstance(Z, KeslerSamples):
        totals = np.bincount(Z.labels, weights=weights, minlength=Z.n_vectors)
        return Z.pack(w, totals / totals.sum())
    # The share of the positive class less that of the other; where they are the same, either.
    excess = float(weights @ Z.labels) / float(weights.sum())
    return Z.pack(w, np.array([excess or 1.0 / Z.n_samples]))


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
