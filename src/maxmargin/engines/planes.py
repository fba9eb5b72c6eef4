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
