"""The best solution that a solver has seen."""

from __future__ import annotations

import numpy as np

from maxmargin.progress import Progress
from maxmargin.solution import Solution, Status
from maxmargin.solvers.best_seen import BestSeen


def test_best_seen_keeps_the_least_p():
    progress = Progress()
    seen = BestSeen(progress)
    for primal in (5.0, 2.0, 3.0, np.nan):
        alpha = np.array([primal])
        solution = Solution(np.empty((0, 0)), np.zeros(1), Status.STOPPED, alpha=alpha)
        seen.iteration(0.0, 0, 0.0, lambda solution=solution: solution, primal=primal)
    assert seen.primal == 2.0
    assert seen.best.alpha[0] == 2.0
    assert len(progress.history) == 4  # the trace is shared
    last = Solution(np.empty((0, 0)), np.zeros(1), Status.TIME_LIMIT, alpha=np.array([3.0]))
    assert seen.better_than(last, 3.0).alpha[0] == 2.0
    assert seen.better_than(last, 3.0).status is Status.TIME_LIMIT
    assert seen.better_than(last, 1.0) is last
