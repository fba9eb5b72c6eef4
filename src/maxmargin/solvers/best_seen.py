"""The best model that a solver has shown: what a fit that ends early returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..progress import Progress, Report
from ..solution import Solution


class BestSeen(Progress):
    """A `Progress` that shares clock, trace and callbacks with another and keeps the least P.

    Along a dual ascent D rises, but P of the plane that belongs to α need not fall: the last α of
    a fit that was cut short may be far worse than an earlier one.

    Parameters
    ----------
    progress : Progress
        The one that solvers would otherwise report to.
    shift : callable, optional
        Solution ↦ solution in the coordinates of the caller, where a solver works in others.
    """

    def __init__(
        self, progress: Progress, shift: Callable[[Solution], Solution] | None = None
    ) -> None:
        self.callbacks, self.watchers = progress.callbacks, progress.watchers
        self.stop = progress.stop
        self.task, self.rows, self.labels = progress.task, progress.rows, progress.labels
        self.started, self.history = progress.started, progress.history
        self.bounds, self.exact = progress.bounds, progress.exact
        self.shift = shift or (lambda solution: solution)
        self.primal = np.inf
        self.best: Solution | None = None

    def record(self, report: Report) -> bool:
        """Record an iteration as `Progress` does, and its solution where P is the least so far."""
        if report.primal < self.primal:
            self.offer(report.primal, report.snapshot())
        return super().record(report._replace(snapshot=lambda: self.shift(report.snapshot())))

    def offer(self, primal: float, solution: Solution) -> None:
        """Keep a solution if its P is the least so far."""
        if primal < self.primal and solution.alpha is not None:
            self.primal, self.best = primal, solution

    def better_than(self, solution: Solution, primal: float) -> Solution:
        """Return the best seen, with the status of ``solution``, where its P is less than that."""
        if self.best is None or not self.primal < primal:
            return solution
        return replace(
            solution, alpha=self.best.alpha, b=self.best.b, w=self.best.w, scores=self.best.scores,
            score_bounds=self.best.score_bounds,
        )  # fmt: skip
