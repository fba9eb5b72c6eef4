"""Passes of the single-sample rules over partitions, one after the other.

The plane travels from partition to partition; each visits its samples by the compiled pass. In the
order of the rows, a pass is the same as over the rows in memory. Shuffled, the partitions are
visited in a random order and the samples of each in a random order: the order of partitions in pass
p is drawn by a generator of the seed (s, p), that of the samples of a partition by one of the seed
(s, p, number of its first row), where s is drawn from ``random_state`` once per task.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...arrays import Floats
from ...problems import SeparationProblem
from ...progress import Progress
from .online import Made, OnlineRule, Pass, corrections


class PassesInPartitions:
    """Passes over samples in partitions; the gain of a sample is its weight.

    Parameters
    ----------
    problem : SeparationProblem
    rng : RandomState or None
        Of the orders; None for increasing ones.
    progress : Progress
    """

    def __init__(
        self, problem: SeparationProblem, rng: np.random.RandomState | None, progress: Progress
    ) -> None:
        if progress.watchers:
            raise ValueError(
                "A callback with every_update is called after each update, which is made on a "
                "worker where X is a Dask collection: use one without, or an array."
            )
        self._problem = problem
        self._seed = None if rng is None else int(rng.randint(2**31 - 1))
        self._n_partitions = len(problem.Z.X.sizes)
        self._n_made = 0

    def make(self, a: Floats, rule: OnlineRule, t: int, left: int) -> Made:
        """Make one pass: one task per partition, each of which waits for the one before."""
        self._n_made += 1
        order = np.arange(self._n_partitions)
        if self._seed is not None:
            order = np.random.default_rng([self._seed, self._n_made]).permutation(order)
        common = replace(rule, gain=np.empty(0)), t, self._seed, self._n_made
        found, seen = self._problem.chain(
            visit_partition, (a.copy(), Pass()), order=order, common=common
        )
        a[:] = found
        return Made(seen, seen.updates)


def visit_partition(
    problem: SeparationProblem, state: tuple[Floats, Pass], rule: OnlineRule, t: int,
    seed: int | None, number: int,
) -> tuple[Floats, Pass]:  # fmt: skip
    """Go on with a pass in one partition; return the plane and the totals after it."""
    a, seen = state[0].copy(), replace(state[1])
    order = np.arange(problem.Z.n_samples)
    if seed is not None:
        order = np.random.default_rng([seed, number, problem.Z.first_row]).permutation(order)
    rule = replace(rule, gain=problem.weights)
    for part in corrections(problem, a, rule, order, t + seen.updates, order.size):
        seen.add(part)
    return a, seen
