"""All small tasks of a fit side by side, each from kernel values to its solution in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import RBF
from ...runtime.simd import square
from ..base import Ended, TaskGoal
from .products import Products
from .task_descent import N_NUMBERS, fill_within, solve_gathered, solve_pair

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .gram import Gram


class PairBlocks(NamedTuple):
    """Rows of X class by class, and K within every class.

    Parameters
    ----------
    classes : ndarray of int of shape (n_tasks, 2)
        The two classes of each task.
    rows, squares : ndarray
        The rows, centred, and their ‖x‖².
    gamma : float
    edges : ndarray of int of shape (n_classes + 1,)
        Where the rows of each class begin.
    within, corners : ndarray
        K within every class, one after the other, and where each begins.
    exact_rows : ndarray or None
        The rows in float64 where others are not.
    """

    classes: Integers
    rows: Floats
    squares: Floats
    gamma: float
    edges: Integers
    within: Floats
    corners: Integers
    exact_rows: Floats | None

    @classmethod
    def of(cls, gram: Gram, codes: Integers, problems: Sequence[DualProblem]) -> PairBlocks | None:
        """Return the blocks of pairs of classes; None where a task is something else."""
        size = gram.X.shape[0] * gram.X.shape[1] * 12.0
        if type(gram.kernel) is not RBF or not isinstance(gram.values, Products):
            return None
        found = _members(codes, problems) if size <= gram.budget else None
        if found is None:
            return None
        classes, members = found
        sizes = np.array([part.size for part in members])
        exact: Any = gram.X[np.concatenate(members)]
        exact = exact.toarray() if sparse.issparse(exact) else exact
        exact = exact.astype(np.float64) - exact.mean(axis=0, dtype=np.float64)
        rows = exact.astype(gram.dtype)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64).astype(gram.dtype)
        edges, corners = (np.concatenate([[0], np.cumsum(each)]) for each in (sizes, sizes**2))
        within, gamma = np.empty(corners[-1], dtype=gram.dtype), gram.kernel.gamma
        fill_within(sizes.size, rows, squares, gamma, edges, corners, within)
        is_exact = rows.dtype == exact.dtype
        return cls(
            classes, rows, squares, gamma, edges, within, corners, None if is_exact else exact
        )


def _members(
    codes: Integers, problems: Sequence[DualProblem]
) -> tuple[Integers, list[Integers]] | None:
    """Return the two classes of each task, numbered anew, and the rows of each class."""
    members: list[Integers] = []
    numbers: dict[int, int] = {}
    classes = np.empty((len(problems), 2), dtype=np.intp)
    for of_task, problem in zip(classes, problems, strict=True):
        others = problem.signs != problem.signs[0]
        n_first = int(others.argmax())
        if not n_first:
            return None
        for side, part in enumerate((problem.index[:n_first], problem.index[n_first:])):
            label = int(codes[part[0]])
            of_task[side] = numbers.setdefault(label, len(members))
            if of_task[side] == len(members):
                if (codes[part] != label).any():
                    return None
                members.append(part)
            elif not np.array_equal(members[of_task[side]], part):
                return None
    return classes, members


def solve_tasks(
    gram: Gram, blocks: PairBlocks | None, problems: Sequence[DualProblem], goal: TaskGoal
) -> list[Ended]:
    """Solve every task from α = 0, those with most variables first.

    Kernel values are those of the classes, or of K of all rows.
    """
    sizes = np.array([problem.n_variables for problem in problems])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    signs, p, lower, upper, ridge, index = (
        np.concatenate([getattr(problem, name) for problem in problems])
        for name in ("signs", "p", "lower", "upper", "ridge", "index")
    )
    diagonal, most = gram.diagonal()[index], np.asarray(goal.max_steps)
    alpha, numbers = np.zeros(starts[-1]), np.zeros((len(problems), N_NUMBERS))
    order = np.argsort(-sizes, kind="stable")
    posed = (starts, signs, p, lower, upper, ridge, diagonal, most)
    tols, alone = (goal.tol, goal.final_tol, goal.rounding), None if problems[0].groups else 1
    if blocks is None:
        whole = _padded(gram)
        solve_gathered(sizes.size, order, posed, whole, index, tols, alone, alpha, numbers)
    else:
        exact, shared = blocks.exact_rows, tuple(blocks[1:-1])
        solve_pair(
            sizes.size, order, posed, blocks.classes, shared, exact, tols, alone, alpha, numbers
        )
    columns = zip(np.split(alpha, starts[1:-1]), *numbers.T.tolist(), strict=True)
    return [Ended(*row) for row in columns]


def _padded(gram: Gram) -> Floats:
    """Return K of all rows, beyond whose end vectors may be read."""
    K, padded = gram.whole(), gram.padded()
    if padded is None:
        padded = square(K.shape[0], K.dtype)
        padded[:] = K
    return padded
