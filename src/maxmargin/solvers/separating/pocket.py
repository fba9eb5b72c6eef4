"""The pocket algorithm with ratchet (Gallant, 1990).

Perceptron corrections; the pocket holds the a that classified most samples correctly so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arrays import Floats, Integers
from ...data.normalised_samples import Samples
from ...problems import SeparationProblem
from ...progress import Progress
from ...runtime.row_access import rows_of
from ...schedules import Schedule
from ...solution import Solution, Status
from .compiled_passes import passes_of
from .online import FIXED_INCREMENT, OnlineRule, corrections, snapshot
from .visiting_orders import VisitingOrders


@dataclass(frozen=True)
class Tuning:
    """Constants of the pocket algorithm."""

    # Samples up to which mistakes are counted after every correction. For n times as many, they
    # are counted after every n²-th one, so that counting takes about as long as for this many.
    counted_samples: int = 5000


TUNING = Tuning()


@dataclass
class Pocket:
    """The best a so far, the weight of the samples it misclassifies, and the passes since then."""

    a: Floats
    wrong: float
    age: int = 0

    def offer(self, problem: SeparationProblem, a: Floats) -> None:
        """Replace the plane if a makes strictly fewer mistakes."""
        wrong = count_wrong(problem.Z, a, problem.weights, self.wrong)
        if wrong < self.wrong:
            self.a[:] = a
            self.wrong, self.age = wrong, -1  # 0 when the current pass ends


@dataclass(frozen=True)
class OnlinePocket:
    """Keep the a of a perceptron that makes strictly fewer (weighted) mistakes than all before.

    The pocket starts with w = 0 and the bias of the class of the largest weight, so that no answer
    is worse. Mistakes are counted after every correction, or, as a count takes as long as a pass,
    after fewer of them where there are many samples (`Tuning`), and at the end of a pass. Ends when
    no sample is misclassified, when the pocket has not changed for ``patience`` passes, or after
    ``max_iter`` passes: the solution's status says which. Optimal in the limit on data that no
    plane separates, but without an a priori bound.
    """

    schedule: Schedule
    patience: int
    max_iter: int
    rng: np.random.RandomState | None = None
    updates_before: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Correct ``a`` in place and return the plane in the pocket."""
        Z = problem.Z
        pocket = Pocket(a.copy(), count_wrong(Z, a, problem.weights, np.inf))
        pocket.offer(problem, most_frequent(problem))
        pocket.age = 0
        progress.unit = "pass"
        t = self.updates_before
        status = Status.CONVERGED if pocket.wrong == 0 else Status.ITERATION_LIMIT
        orders = VisitingOrders(Z.n_samples, self.rng)
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
        pocket: Pocket,
        order: Integers,
        t: int,
        progress: Progress,
    ) -> tuple[int, int, bool]:
        """Correct a on every mistake; return the updates, the mistakes, and whether to stop."""
        rule = OnlineRule(FIXED_INCREMENT, 0.0, problem.weights, self.schedule)
        every = max(1, round((problem.Z.n_samples / TUNING.counted_samples) ** 2))
        since, mistakes = 0, 0
        at_most = 1 if progress.watchers else every
        for part in corrections(problem, a, rule, order, t, at_most):
            if part.updates == 0:
                continue
            t, since = t + part.updates, since + part.updates
            mistakes += part.errors
            if since >= every:
                pocket.offer(problem, a)
                since = 0
            if progress.update(part.objective, int(part.last), partial(snapshot, problem.Z, a)):
                return t, mistakes, True
            if pocket.wrong == 0:
                break
        if since:  # not counted yet
            pocket.offer(problem, a)
        return t, mistakes, False


def most_frequent(problem: SeparationProblem) -> Floats:
    """Return w = 0 with biases by which the class of the largest weight wins; 0 without a bias."""
    Z = problem.Z
    return Z.pack(np.zeros((Z.n_vectors, Z.X.shape[1])), Z.prior_biases(problem.weights))


def count_wrong(Z: Samples, a: Floats, weights: Floats, limit: float) -> float:
    """Return the weight of the samples that a misclassifies, counted until it reaches ``limit``.

    Most planes that are no better than the pocket reach it after a few rows.
    """
    vectors = a.reshape(Z.n_vectors, -1)
    count = passes_of(Z).count_wrong
    return float(count(rows_of(Z.X), Z.index, Z.labels, vectors, weights, float(limit)))
