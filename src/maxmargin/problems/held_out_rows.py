"""Rows that folds hold out, and which tasks of a fold multiply the same kernel values there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Integers
from .dual import DualProblem


@dataclass(frozen=True)
class HeldOutRows:
    """The rows of X that every fold holds out, and the classes of its tasks.

    Parameters
    ----------
    rows : ndarray of int
        Rows of X, fold after fold.
    ends : ndarray of int of shape (n_folds + 1,)
        The first of ``rows`` of each fold, and the end.
    tasks : ndarray of int of shape (n_folds + 1,)
        The first task of each fold, and the end.
    classes : ndarray of int of shape (n_classes, 3)
        Variables that belong to the same rows in some tasks of a fold: the first variable of the
        first of these tasks, their number, and the first of ``users``; fold after fold.
    firsts : ndarray of int of shape (n_folds + 1,)
        The first of ``classes`` of each fold, and the end.
    users : ndarray of int of shape (n_users + 1, 2)
        The tasks of each class, and the first variable in each; then the end.
    """

    rows: Integers
    ends: Integers
    tasks: Integers
    classes: Integers
    firsts: Integers
    users: Integers

    @classmethod
    def of(
        cls, problems: Sequence[DualProblem], tests: Sequence[Integers], sizes: Sequence[int]
    ) -> HeldOutRows:
        """List the classes of folds that hold out ``tests`` and have so many tasks each."""
        tasks = np.cumsum([0, *sizes])
        starts = np.cumsum([0, *(problem.n_variables for problem in problems)]).tolist()
        classes: list[tuple[int, int, int]] = []
        users: list[tuple[int, int]] = []
        firsts = [0]
        for first, last in zip(tasks[:-1].tolist(), tasks[1:].tolist(), strict=True):
            found: dict[bytes, list[tuple[int, int, int]]] = {}
            for t in range(first, last):
                for start, rows in _classes_of(problems[t], is_alone=last == first + 1):
                    member = t, starts[t] + start, rows.size
                    found.setdefault(rows.tobytes(), []).append(member)
            for members in found.values():
                classes.append((*members[0][1:], len(users)))
                users.extend(member[:2] for member in members)
            firsts.append(len(classes))
        users.append((len(problems), starts[-1]))
        return cls(
            np.concatenate(tests), np.cumsum([0, *(test.size for test in tests)]), tasks,
            np.array(classes, dtype=np.intp).reshape(-1, 3), np.array(firsts), np.array(users),
        )  # fmt: skip

    @cached_property
    def ends_of_tasks(self) -> Integers:
        """Where the rows of each task begin, one task after the other, and the end."""
        return np.cumsum([0, *np.repeat(np.diff(self.ends), np.diff(self.tasks)).tolist()])

    def rows_of_tasks(self) -> Integers:
        """Return the rows that each task holds out, one task after the other."""
        counts = np.diff(self.tasks).tolist()
        parts = zip(np.split(self.rows, self.ends[1:-1]), counts, strict=True)
        return np.concatenate([np.tile(rows, count) for rows, count in parts])


def _classes_of(problem: DualProblem, *, is_alone: bool) -> list[tuple[int, Integers]]:
    """Return rows of equal sign and where they begin, of tasks that may share them."""
    changes = [] if is_alone else (1 + np.flatnonzero(np.diff(problem.signs))).tolist()
    if len(changes) != 1:
        return [(0, problem.index)]
    middle = changes[0]
    return [(0, problem.index[:middle]), (middle, problem.index[middle:])]
