"""All small tasks of a fit side by side, each from kernel values to its solution in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import RBF
from ..base import Ended, TaskGoal
from .products import Products
from .task_descent import N_NUMBERS, fill_within, solve_task

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .gram import Gram


class KernelBlocks(NamedTuple):
    """Where the kernel values of tasks come from: all of K, or K within every class and X.

    Parameters
    ----------
    whole : ndarray of shape (n, n) or (0, 0)
        K of all rows of X.
    index : ndarray of int
        The row of ``whole`` of every variable of all tasks, one after the other; empty without.
    classes : ndarray of int of shape (n_tasks, 2)
        The two classes of each task.
    edges : ndarray of int of shape (n_classes + 1,)
        Where the rows of each class begin in ``rows``.
    rows, squares, exact_rows : ndarray
        The rows of X class by class, centred, their ‖x‖², and the rows in float64 where others are
        not (else empty).
    within, corners : ndarray
        K within every class, one after the other, and where each begins.
    gamma : float
    """

    whole: Floats
    index: Integers  # type: ignore[assignment]  # a method of tuples
    classes: Integers
    edges: Integers
    rows: Floats
    squares: Floats
    exact_rows: Floats
    within: Floats
    corners: Integers
    gamma: float

    @classmethod
    def of_whole(cls, gram: Gram, problems: Sequence[DualProblem]) -> KernelBlocks:
        """Take all values from K of all rows."""
        K = gram.whole()
        if not (K.flags.c_contiguous and K.flags.writeable):  # compiled code has one type of array
            K = np.array(K, order="C")
        none, nothing = np.zeros(0), np.zeros((0, 0))
        return cls(
            K, np.concatenate([p.index for p in problems]), np.zeros((len(problems), 2), np.intp),
            np.zeros(2, np.intp), nothing, none, nothing, none, np.zeros(2, np.intp), 1.0,
        )  # fmt: skip

    @classmethod
    def of_classes(
        cls, gram: Gram, codes: Integers, problems: Sequence[DualProblem]
    ) -> KernelBlocks | None:
        """Compute values from rows that are in the order of their classes; None where not so."""
        numbers: list[int] = []
        members: list[Integers] = []
        classes = np.empty((len(problems), 2), dtype=np.intp)
        places: dict[int, int] = {}
        for classes_of, problem in zip(classes, problems, strict=True):
            n_first = _n_first(problem)
            for side, part in enumerate((problem.index[:n_first], problem.index[n_first:])):
                if not part.size:
                    return None
                label = int(codes[part[0]])
                at = places.setdefault(label, len(members))
                if at == len(members):
                    numbers.append(label)
                    members.append(part)
                elif not np.array_equal(members[at], part):
                    return None
                classes_of[side] = at
        if any((codes[part] != label).any() for label, part in zip(numbers, members, strict=True)):
            return None
        return cls._computed(gram, classes, members)

    @classmethod
    def _computed(cls, gram: Gram, classes: Integers, members: list[Integers]) -> KernelBlocks:
        assert isinstance(gram.kernel, RBF)
        sizes = np.array([part.size for part in members])
        exact: Any = gram.X[np.concatenate(members)]
        exact = exact.toarray() if sparse.issparse(exact) else exact
        exact = exact.astype(np.float64) - exact.mean(axis=0, dtype=np.float64)
        rows = exact.astype(gram.dtype)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64).astype(gram.dtype)
        edges, corners = (np.concatenate([[0], np.cumsum(each)]) for each in (sizes, sizes**2))
        within, gamma = np.empty(corners[-1], dtype=gram.dtype), gram.kernel.gamma
        fill_within(sizes.size, rows, squares, gamma, edges, corners, within)
        if rows.dtype == exact.dtype:
            exact = np.zeros((0, 0))
        return cls(
            np.zeros((0, 0), gram.dtype), np.zeros(0, np.intp), classes, edges, rows, squares,
            exact, within, corners, gamma,
        )  # fmt: skip


def can_compute(gram: Gram) -> bool:
    """Whether `KernelBlocks.of_classes` knows the kernel, and dense rows of X fit the memory."""
    size = gram.X.shape[0] * gram.X.shape[1] * 12.0
    return type(gram.kernel) is RBF and isinstance(gram.values, Products) and size <= gram.budget


def solve_tasks(
    blocks: KernelBlocks, gram: Gram, problems: Sequence[DualProblem], goal: TaskGoal
) -> list[Ended]:
    """Solve every task from α = 0, those with most variables first."""
    sizes = np.array([problem.n_variables for problem in problems])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n_first = sizes if blocks.index.size else np.array([_n_first(each) for each in problems])
    signs, p, lower, upper, ridge, index = (
        np.concatenate([getattr(problem, name) for problem in problems])
        for name in ("signs", "p", "lower", "upper", "ridge", "index")
    )
    diagonal, most = gram.diagonal()[index], np.asarray(goal.max_steps)
    alpha, numbers = np.zeros(starts[-1]), np.zeros((len(problems), N_NUMBERS))
    solve_task(
        sizes.size, np.argsort(-sizes, kind="stable"),
        (starts, n_first, signs, p, lower, upper, ridge, diagonal, most), tuple(blocks),
        (goal.tol, goal.final_tol, goal.rounding, bool(problems[0].groups)), alpha, numbers,
    )  # fmt: skip
    b, steps, converged, violation, value, gap, errors = numbers.T.tolist()
    alphas = np.split(alpha, starts[1:-1])
    columns = zip(alphas, b, steps, converged, violation, value, gap, errors, strict=True)
    return [Ended(*row) for row in columns]


def _n_first(problem: DualProblem) -> int:
    """Return how many variables there are before the first of the second sign."""
    others = problem.signs != problem.signs[0]
    return int(others.argmax()) if others.any() else problem.n_variables
