"""The engine contract for many planes on the same rows: sums of all of them from one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..arrays import Floats, Integers


@dataclass(frozen=True)
class PlaneTasks:
    """Two-class tasks on the same rows: those of all folds, one after the other.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The class of every row.
    n_tasks : int
        Per fold: one per class against the rest; 1 of two classes, whose second one is +1.
    weights : ndarray of shape (n_folds, n)
        v, of the rows in every fold: 0 of those that it holds out.
    """

    codes: Integers
    n_tasks: int
    weights: Floats

    @property
    def n_planes(self) -> int:
        """The number of tasks of all folds."""
        return len(self.weights) * self.n_tasks

    @property
    def fold_of(self) -> Integers:
        """The fold of every task."""
        return np.arange(self.n_planes) // self.n_tasks

    @property
    def task_of(self) -> Integers:
        """The place of every task in its fold."""
        return np.arange(self.n_planes) % self.n_tasks

    @property
    def positive(self) -> Integers:
        """The class whose rows are +1, of every task."""
        return self.task_of if self.n_tasks > 1 else np.ones(self.n_planes, dtype=np.intp)

    def labels(self, task: int) -> Floats:
        """Return ±1 of every row in a task of a fold."""
        return np.where(self.codes == self.positive[task], 1.0, -1.0)


class HingeSums(NamedTuple):
    """What a pass over all rows says of some planes, with z = 1 − y(w·x + b)."""

    loss: Floats  # Σ v z₊² of every plane
    total: Floats  # Σ v z₊ y (x, 1) of every plane
    moments: Floats  # Σ v (x, 1)(x, 1)ᵀ over z > 0, the mean of every group of planes


@runtime_checkable
class PassesForPlanes(Protocol):
    """`Features` that can be passed over for many planes at once."""

    def hinge_sums(
        self, tasks: PlaneTasks, planes: Floats, active: Integers, groups: Integers | None
    ) -> HingeSums:
        """Return sums of the squared hinges of the planes (w, b) of some tasks.

        ``groups`` are the numbers of those whose mean curvature is wanted, None for that of no
        planes; it may be that of a sample of the rows.
        """


# How Newton's steps of a plane on the rows near the kink end: not yet, at the gap aimed at, where
# rounding leaves no descent, and where they go so far that rows held may meet the kink.
GOING, MET, STALLED, STRAYED = range(4)


class NearRows(Protocol):
    """The rows near the kink of some planes; the losses of all others are lines."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    def minimise(
        self,
        planes: Floats,
        delta: Floats,
        penalty: Floats,
        aim: float,
        ends: Integers,
        most_steps: int,
    ) -> int:
        """Go some of Newton's steps with the planes whose end is `GOING`, and return their number.

        Planes, δ and ends change in place. ``penalty`` is the diagonal of M, ``aim`` the relative
        gap to end at.
        """

    def free_shares(self) -> Floats:
        """Return the mean α/u over 0 < α < u for every plane, 1 where there are none."""

    def measured(self) -> tuple[Floats, Floats]:
        """Return the value of every plane after its last step, and by how much it may be less."""

    def publish(self) -> None:
        """Let α/(Cv) of these rows be those of the state they came from."""


class Hinges(Protocol):
    """Hinges of the planes of one task in all folds, on all rows."""

    @property
    def shares(self) -> Floats:
        """α/(Cv) of every row in every fold, of shape (n_folds, n)."""

    def begin(self, factors: Floats) -> None:
        """Begin with another cost: changes of scores count from here.

        The shares of every plane are multiplied by a factor.
        """

    def place(self, planes: Floats) -> Floats:
        """Compute the scores of all rows, and return Σ v z₊ of every plane."""

    def centre(self) -> Floats:
        """Move the scores of every plane to the middle of those of its best biases.

        Return by how much.
        """

    def near(self, cost: float, ahead: float, share: float) -> NearRows:
        """Return about a share of the rows, those nearest to the kink, and hold the others.

        Scores are taken to go on by ``ahead`` times their change since the cost before. Rows that
        were held and met the kink all the same are among those returned.
        """

    def sample(self, cost: float, size: int) -> NearRows:
        """Return some of the rows, at random, with weights to stand for all of them."""


@runtime_checkable
class HingeFeatures(Protocol):
    """`Features` that have the hinges of several planes on the same rows."""

    def hinges(self, y: Floats, weights: Floats, *, has_bias: bool) -> Hinges:
        """Return the hinges of a task with labels y and weights of shape (n_folds, n)."""
