"""Tasks that have most of their rows in common, such as the same two classes in several folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Integers
from .dual import DualProblem


@dataclass(frozen=True)
class SharedRows:
    """Rows of X of groups of tasks, each once per group.

    Parameters
    ----------
    members : ndarray of int of shape (n_tasks,)
        The tasks, group after group.
    firsts : ndarray of int of shape (n_groups + 1,)
        The first of ``members`` of each group, and the end.
    rows : ndarray of int
        Rows of X in ascending order, group after group.
    starts : ndarray of int of shape (n_groups + 1,)
        The first of ``rows`` of each group, and the end.
    places : ndarray of int of shape (n_variables,)
        Which of ``rows`` every variable belongs to; variables are one task after the other.
    numbers : ndarray of int of shape (n_variables,)
        Which of its group the task of a variable is.
    """

    members: Integers
    firsts: Integers
    rows: Integers
    starts: Integers
    places: Integers
    numbers: Integers

    @classmethod
    def of(cls, problems: Sequence[DualProblem], names: Sequence[str]) -> SharedRows:
        """Group tasks by their names: those of one name have most of their rows in common."""
        groups: dict[str, list[int]] = {}
        for t, name in enumerate(names):
            groups.setdefault(name, []).append(t)
        sizes = [problem.n_variables for problem in problems]
        ends = np.cumsum(sizes)
        places, numbers = np.empty(ends[-1], np.intp), np.empty(ends[-1], np.intp)
        rows: list[Integers] = []
        starts = [0]
        for members in groups.values():
            mine, where = np.unique(
                np.concatenate([problems[t].index for t in members]), return_inverse=True
            )
            cuts = np.cumsum([sizes[t] for t in members])[:-1]
            for number, (t, place) in enumerate(zip(members, np.split(where, cuts), strict=True)):
                places[ends[t] - sizes[t] : ends[t]] = place + starts[-1]
                numbers[ends[t] - sizes[t] : ends[t]] = number
            rows.append(mine)
            starts.append(starts[-1] + mine.size)
        firsts = np.cumsum([0, *(len(members) for members in groups.values())])
        return cls(
            np.concatenate([np.array(members, dtype=np.intp) for members in groups.values()]),
            firsts, np.concatenate(rows), np.array(starts), places, numbers,
        )  # fmt: skip

    @cached_property
    def groups(self) -> Integers:
        """The group of every task."""
        sizes = np.diff(self.firsts)
        groups = np.empty(self.members.size, dtype=np.intp)
        groups[self.members] = np.repeat(np.arange(sizes.size), sizes)
        return groups

    @cached_property
    def has_repeats(self) -> bool:
        """Whether a task has a row twice."""
        most = int(self.numbers.max()) + 1
        return bool(np.bincount(most * self.places + self.numbers).max() > 1)
