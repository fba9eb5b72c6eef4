"""c classes as binary tasks, or as one joint task: labels → tasks → votes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from .arrays import Floats, Integers, Labels, PartitionedVector, VectorOnDevice
from .kernels.namespace import array_namespace, beside
from .runtime.vectors import in_slices


@dataclass(frozen=True)
class Task:
    """One problem to be solved: which rows, their labels, and what they are called.

    Parameters
    ----------
    rows : ndarray of int of shape (n,)
        Rows of X.
    labels : ndarray of shape (n,)
        −1.0 and +1.0, 0.0 of rows in partitions that do not take part, class numbers (int) in a
        joint task, or the targets of a regression.
    name : str
        For progress and reports, such as "apple against the rest".
    n_vectors : int
        Weight vectors wanted: 1, or the number of classes in a joint task.
    """

    rows: Integers
    labels: Labels
    name: str
    n_vectors: int = 1


class Reduction(ABC):
    """A way from c ≥ 2 class numbers to tasks, and from their scores back to classes."""

    @abstractmethod
    def tasks(
        self, codes: Integers, rows: Integers, names: list[str], *, by_class: bool = False
    ) -> list[Task]:
        """Return the tasks for class numbers ``codes`` (of all rows of X), on ``rows`` only.

        With ``by_class`` the rows of the positive class of each of several tasks come first.
        """

    @abstractmethod
    def confidences(self, scores: Floats, n_classes: int) -> Floats:
        """Turn scores (n, n_planes) into confidences (n, n_classes); the largest one wins.

        Scores may be of any library with the array API; confidences are beside them.
        """


class Binary(Reduction):
    """Two classes: one task, g ≥ 0 is the second class."""

    def tasks(
        self, codes: Integers, rows: Integers, names: list[str], *, by_class: bool = False
    ) -> list[Task]:
        name = f"{names[1]} against {names[0]}"
        if isinstance(codes, VectorOnDevice) and rows.size == len(codes):
            return [Task(rows, codes.signs(1), name)]
        labels = np.empty(rows.size)

        def sign(some: slice) -> None:
            np.subtract(2.0 * codes[rows[some]], 1.0, out=labels[some])

        in_slices(sign, rows.size)
        return [Task(rows, labels, name)]

    def confidences(self, scores: Floats, n_classes: int) -> Floats:
        return array_namespace(scores).stack([-scores[:, 0], scores[:, 0]], axis=-1)


class OneVsRest(Reduction):
    """A plane for each class against all others; the largest g wins."""

    def tasks(
        self, codes: Integers, rows: Integers, names: list[str], *, by_class: bool = False
    ) -> list[Task]:
        titles = [f"{name} against the rest" for name in names]
        if isinstance(codes, VectorOnDevice) and rows.size == len(codes) and not by_class:
            return [Task(rows, codes.signs(k), title) for k, title in enumerate(titles)]
        tasks = []
        for k, title in enumerate(titles):
            mine = codes[rows] == k
            order = np.argsort(~mine, kind="stable") if by_class else slice(None)
            labels = np.where(mine[order], 1.0, -1.0)
            tasks.append(Task(rows[order], labels, title))
        return tasks

    def confidences(self, scores: Floats, n_classes: int) -> Floats:
        return scores


class OneVsOne(Reduction):
    """A plane for each pair of classes; the majority wins.

    Equal votes are decided by the sum of the scores for each class, squashed to (−⅓, ⅓) so that
    they never outweigh a vote (as scikit-learn's SVC does it). The first class of a pair is the
    positive one.
    """

    @staticmethod
    def pairs(n_classes: int) -> list[tuple[int, int]]:
        """Return the pairs of classes, in the order of the tasks."""
        return list(combinations(range(n_classes), 2))

    def tasks(
        self, codes: Integers, rows: Integers, names: list[str], *, by_class: bool = False
    ) -> list[Task]:
        tasks = []
        if isinstance(codes, PartitionedVector):
            return [
                Task(rows, codes.pair_signs(i, j), f"{names[i]} against {names[j]}")
                for i, j in self.pairs(len(names))
            ]
        members = [rows[codes[rows] == k] for k in range(len(names))]
        for i, j in self.pairs(len(names)):
            pair = np.concatenate([members[i], members[j]])
            labels = np.repeat([1.0, -1.0], [members[i].size, members[j].size])
            if not by_class:
                pair = np.sort(pair)
                labels = np.where(codes[pair] == i, 1.0, -1.0)
            tasks.append(Task(pair, labels, f"{names[i]} against {names[j]}"))
        return tasks

    def votes(self, won: Any, n_classes: int) -> Any:
        """Return how many planes decide for each class, (n, n_classes).

        ``won`` of shape (n, n_planes) says whether each decides for its first class. Who does not
        win a pair loses it; float32 holds whole numbers.
        """
        first, second = _membership(n_classes)
        change, lost = (each.astype(np.float32) for each in (first - second, second.sum(axis=0)))
        xp = array_namespace(won)
        return xp.astype(won, xp.float32) @ beside(change, won) + beside(lost, won)

    def confidences(self, scores: Floats, n_classes: int) -> Floats:
        first, second = _membership(n_classes)
        sums = scores @ beside(first - second, scores)
        return self.votes(scores >= 0, n_classes) + sums / (3 * (abs(sums) + 1))


@cache
def _membership(n_classes: int) -> tuple[Floats, Floats]:
    """Return which class is the first of each pair, and which the second: (n_pairs, n_classes)."""
    first, second = np.array(OneVsOne.pairs(n_classes)).T
    classes = np.eye(n_classes)
    return classes[first], classes[second]


class Kesler(Reduction):
    """A linear machine: one weight vector per class, found jointly; the largest score wins.

    The planes between classes are differences of weight vectors, so every point of space has a
    class, with no region undecided (Duda, Hart, Stork, sections 5.2.2 and 5.12).
    """

    def tasks(
        self, codes: Integers, rows: Integers, names: list[str], *, by_class: bool = False
    ) -> list[Task]:
        return [Task(rows, codes[rows], "linear machine", n_vectors=len(names))]

    def confidences(self, scores: Floats, n_classes: int) -> Floats:
        return scores


REDUCTIONS: dict[str, type[Reduction]] = {
    "ovr": OneVsRest,
    "ovo": OneVsOne,
    "kesler": Kesler,
    "crammer_singer": Kesler,  # of the largest margin
}


def reduction_for(multi_class: str, n_classes: int) -> Reduction:
    """Return the named reduction; two classes are one binary task under every name."""
    return Binary() if n_classes == 2 else REDUCTIONS[multi_class]()
