"""Newton's method for hinges of many folds and classes, cost after cost.

Given: X, labels of some tasks, weights v of the rows in every fold, and ascending costs C. Wanted:
the planes a = (w, b) of

    min ½‖w‖² [+ ½b²] + C Σ v_i (1 − y_i a·(x_i, 1))₊

for every fold, task and cost, and the shares α_i/(Cv_i) that prove them. The method is that of
`newton`: the proximal point method on the dual, with Newton's steps on the rounded hinge. What is
shared here is

- the choice of rows: scores go on from one cost to the next, so that a line through those of the
  last two costs, over log C, tells which rows come near the kink of some fold. The losses of all
  others are lines, whose sums take one pass over X for all folds, and Newton's steps read a few
  rows only, which lie side by side;
- the pass that shows whether rows held have met the kink after all. They are then among the rows
  near it, and the steps begin again, from where they began if the planes went astray;
- α, of which the share of its bound stays nearly the same from cost to cost.

Large X begin with a sample of their rows. Certificates tell which planes have not converged after
some rounds: they are for another solver.

Reference: Li, Sun, Toh, "A highly efficient semismooth Newton augmented Lagrangian method for
solving Lasso problems", *SIAM J. Optim.* 28 (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ...arrays import Floats, Integers
from ...engines.planes import GOING, HingeFeatures, NearRows, PlaneTasks


@dataclass(frozen=True)
class Tuning:
    """What the method decides by."""

    widest_delta: float = 2.0  # δ of a start from nothing
    nearby_delta: float = 0.1  # δ of a start from planes nearby
    most_widened: float = 1e2  # by which δ grows where α are small
    whole_numbers: int = 1 << 16  # numbers in X up to which all rows take part in every step
    copied_numbers: int = 1 << 22  # numbers in X up to which all rows may be copied
    most_copied: float = 0.5  # the share of larger X that may be
    near_share: float = 0.08  # the share of the rows that takes part in the steps of larger X
    rows_per_column: float = 4.0  # that take part, at least
    wider: float = 1.5  # by which that grows where rows held have met the kink
    sample_share: float = 0.125  # the share of the rows in a sample
    fewest_sampled: int = 2000  # rows in it
    sample_gap: float = 0.01  # the relative gap that is enough for a sample
    aim: float = 0.3  # of tol, at which steps on some rows aim
    enough: float = 0.95  # of tol, with which all rows are content
    astray: float = 0.1  # the relative gap from which on planes go back to where they began
    most_steps: int = 300  # of a round
    most_rounds: int = 8  # of a cost


TUNING = Tuning()
SIGNS = np.array([1.0, -1.0])


class Answer(NamedTuple):
    """The planes (w, b) of one task in all folds at one cost, and α/(Cv) of all rows.

    Parameters
    ----------
    planes : ndarray of shape (n_folds, d + 1)
    shares : ndarray of shape (n_folds, n)
    """

    planes: Floats
    shares: Floats


@dataclass(frozen=True)
class HingeGrid:
    """The solver of hinges on the same rows.

    Parameters
    ----------
    features : HingeFeatures
        X, as an engine holds it.
    tasks : PlaneTasks
    bias : {"free", "penalised", "none"}
    tol : float
        The relative duality gap to stop at.
    """

    features: HingeFeatures
    tasks: PlaneTasks
    bias: Literal["free", "penalised", "none"]
    tol: float

    def solve(
        self, costs: Floats, n_columns: int, stopped: Callable[[], bool]
    ) -> Iterator[list[Answer]]:
        """Yield the planes of every task at every cost, which ascend, until stopped.

        What is yielded is overwritten later.
        """
        runs = [
            _Run(self, self.tasks.labels(task), n_columns, stopped)
            for task in range(self.tasks.n_tasks)
        ]
        levels, ahead = np.log(costs), 0.0
        for c, cost in enumerate(costs.tolist()):
            for run in runs:
                if stopped():
                    return
                with np.errstate(all="ignore"):  # at huge costs; the proof shows it
                    run.solve(cost, ahead)
            yield [Answer(run.planes, run.hinges.shares) for run in runs]
            ahead = 0.0
            if 0 < c < costs.size - 1 and levels[c] > levels[c - 1]:
                ahead = (levels[c + 1] - levels[c]) / (levels[c] - levels[c - 1])


class _Run:
    """The planes of one task in all folds."""

    def __init__(
        self, grid: HingeGrid, y: Floats, n_columns: int, stopped: Callable[[], bool]
    ) -> None:
        self.tol, self.stopped, self.n_rows = grid.tol, stopped, y.size
        weights = grid.tasks.weights
        self.hinges = grid.features.hinges(y, weights, has_bias=grid.bias != "none")
        self.planes: Floats = np.zeros((len(weights), n_columns + 1))
        self.change: Floats = np.zeros_like(self.planes)
        self.penalty: Floats = np.ones(n_columns + 1)
        self.bias = grid.bias
        self.penalty[-1] = float(grid.bias != "free")
        # Σ v of the rows of each sign.
        self.heaviness = np.column_stack([np.sum(weights[:, y == sign], axis=1) for sign in SIGNS])
        self.numbers = y.size * (n_columns + 1)
        self.has_begun = False
        # The cost before, and Σ v z₊ there.
        self.cost = 1.0
        self.losses: Floats = np.zeros(len(weights))

    def solve(self, cost: float, ahead: float) -> None:
        """Find the planes of another cost: ``ahead`` times the last change is the first guess."""
        ahead = min(ahead, 1.0)
        planes = self.planes + ahead * self.change
        least = TUNING.rows_per_column * planes.shape[1] / self.n_rows
        is_whole = self.numbers <= TUNING.whole_numbers or least >= 1.0
        share = 1.0 if is_whole else max(TUNING.near_share, least)
        self.hinges.begin(self._factors(cost))
        if ahead == 0.0 and not is_whole:
            self._sampled(cost, planes)
            share *= 2.0
        width = TUNING.nearby_delta if self.has_begun or not is_whole else TUNING.widest_delta
        self.has_begun = True
        for _ in range(TUNING.most_rounds):
            near = self.hinges.near(cost, ahead, share)
            if self._is_too_much(near) or self._round(cost, near, planes, width):
                break
            if self.stopped() or share >= 1.0:
                break
            ahead, share = 0.0, min(1.0, TUNING.wider * share)
        self._prefer_none(cost, planes)
        if self.bias == "free":
            planes[:, -1] += self.hinges.centre()
        self.change, self.planes, self.cost = planes - self.planes, planes, cost

    def _factors(self, cost: float) -> Floats:
        """Return what shares of α are multiplied by at another cost.

        α grows at most like C, and to the multiple tα of the largest D(tα) = tΣα − ½t²‖w‖²: where a
        plane separates the classes it stays as it is.
        """
        if not self.has_begun:
            return np.ones(len(self.planes))
        square, loss = 2.0 * self._quadratic(self.planes), self.cost * self.losses
        growth = cost / self.cost
        best = np.divide(square + loss, square, out=np.full(loss.size, growth), where=square > 0.0)
        return np.asarray(np.minimum(best, growth) / growth)

    def _prefer_none(self, cost: float, planes: Floats) -> None:
        """Replace planes that are no better than w = 0, which several classes may share."""
        primal = self._quadratic(planes) + cost * self.losses
        none = np.zeros_like(planes)
        none[:, -1] = self._biases_without_planes(cost)
        losses = np.sum(self.heaviness * np.maximum(1.0 - SIGNS * none[:, -1:], 0.0), axis=1)
        is_better = self._quadratic(none) + cost * losses <= primal
        if is_better.any():
            planes[is_better] = none[is_better]
            self.losses = self.hinges.place(planes)

    def _biases_without_planes(self, cost: float) -> Floats:
        """Return the best b where w = 0."""
        excess = cost * (self.heaviness @ SIGNS)
        if self.bias == "none":
            return np.zeros(excess.size)
        return np.sign(excess) if self.bias == "free" else np.clip(excess, -1.0, 1.0)

    def _quadratic(self, planes: Floats) -> Floats:
        """Return ½‖w‖² [+ ½b²]."""
        return 0.5 * np.sum(self.penalty * planes**2, axis=1)

    def _round(self, cost: float, near: NearRows, planes: Floats, width: float) -> bool:
        """Move planes by the rows near the kink; return whether another round is of no use.

        That is where all rows are content, and where the steps did not come to an end. Planes that
        went astray go back.
        """
        before = planes.copy()
        ended = self._minimise(near, planes, width, TUNING.aim * self.tol)
        value, gap = near.measured()
        self.losses = self.hinges.place(planes)
        primal = self._quadratic(planes) + cost * self.losses
        short = primal - value + gap
        if np.all(short <= TUNING.astray * primal):
            near.publish()
        else:
            planes[:] = before
            self.losses = self.hinges.place(planes)
        return not ended or bool(np.all(short <= TUNING.enough * self.tol * primal))

    def _sampled(self, cost: float, planes: Floats) -> None:
        """Move planes by a sample of the rows."""
        n = max(int(TUNING.sample_share * self.n_rows), TUNING.fewest_sampled)
        width = TUNING.nearby_delta if self.has_begun else TUNING.widest_delta
        some = self.hinges.sample(cost, min(n, self.n_rows))
        self._minimise(some, planes, width, TUNING.sample_gap)
        self.hinges.place(planes)

    def _minimise(self, near: NearRows, planes: Floats, width: float, aim: float) -> bool:
        """Go Newton's steps, with looks at the clock between some; return whether all ended.

        δ is the wider the less of their bounds the free α take: α changes by u/δ times the change
        of a score.
        """
        delta = width * np.clip(0.5 / near.free_shares(), 1.0, TUNING.most_widened)
        ends: Integers = np.full(len(planes), GOING)
        left = TUNING.most_steps
        while left > 0 and (ends == GOING).any() and not self.stopped():
            left -= near.minimise(planes, delta, self.penalty, aim, ends, left)
        return not (ends == GOING).any()

    def _is_too_much(self, near: NearRows) -> bool:
        """Whether rows near the kink are a large part of a large X."""
        large = self.numbers > TUNING.copied_numbers
        return large and near.n_rows > TUNING.most_copied * self.n_rows
