"""All small tasks of a fit side by side, each from kernel values to its solution in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import RBF
from ...runtime.simd import square
from ...runtime.threads import at_most
from ..base import Ended, TaskArrays, TaskGoal
from .products import Products
from .task_descent import (
    N_NUMBERS,
    PART_ROWS,
    centre_rows,
    fill_within,
    solve_gathered,
    solve_pair,
)

if TYPE_CHECKING:
    from .gram import Gram

# Kernel values of all tasks up to which one thread solves them: a few tenths of a millisecond.
SHORT_VALUES = 1 << 15


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
    def of(cls, gram: Gram, codes: Integers, tasks: TaskArrays) -> PairBlocks | None:
        """Return the blocks of pairs of classes; None where a task is something else."""
        size = gram.X.shape[0] * gram.X.shape[1] * 12.0
        if type(gram.kernel) is not RBF or not isinstance(gram.values, Products):
            return None
        found = _members(codes, tasks) if size <= gram.budget else None
        if found is None:
            return None
        classes, members = found
        sizes = np.array([part.size for part in members])
        X: Any = gram.X.toarray() if sparse.issparse(gram.X) else np.ascontiguousarray(gram.X)
        order = np.concatenate(members)
        shape = (order.size, X.shape[1])
        exact, rows = np.empty(shape), np.empty(shape, gram.dtype)
        squares = np.empty(order.size, gram.dtype)
        centre = X[:: max(1, X.shape[0] // 4096)].mean(axis=0, dtype=np.float64)
        centre_rows(-(-order.size // PART_ROWS), X, order, centre, exact, rows, squares)
        edges, corners = (np.concatenate([[0], np.cumsum(each)]) for each in (sizes, sizes**2))
        within, gamma = np.empty(corners[-1], dtype=gram.dtype), gram.kernel.gamma
        fill_within(sizes.size, rows, squares, gamma, edges, corners, within)
        is_exact = rows.dtype == exact.dtype
        return cls(
            classes, rows, squares, gamma, edges, within, corners, None if is_exact else exact
        )


def _members(codes: Integers, tasks: TaskArrays) -> tuple[Integers, list[Integers]] | None:
    """Return the two classes of each task, numbered anew, and the rows of each class."""
    begin, sizes = tasks.starts[:-1], tasks.sizes
    n_first = np.add.reduceat(tasks.signs > 0.0, begin, dtype=np.intp)
    if not (n_first.all() and (n_first < sizes).all()):
        return None
    middle = begin + n_first
    labels = np.column_stack([codes[tasks.index[begin]], codes[tasks.index[middle]]])
    names, places, classes = np.unique(labels, return_index=True, return_inverse=True)
    ends = np.column_stack([begin, middle, tasks.starts[1:]])
    classes = classes.reshape(-1, 2)
    members = [tasks.index[ends[k // 2, k % 2] : ends[k // 2, k % 2 + 1]] for k in places.tolist()]
    if any((codes[part] != name).any() for part, name in zip(members, names, strict=True)):
        return None
    expected = np.concatenate([members[k] for k in classes.ravel().tolist()])
    signs = np.repeat(np.tile([1.0, -1.0], sizes.size), np.diff(ends).ravel())
    same = np.array_equal(expected, tasks.index) and np.array_equal(signs, tasks.signs)
    return (classes, members) if same else None


def solve_tasks(gram: Gram, blocks: PairBlocks | None, tasks: TaskArrays, goal: TaskGoal) -> Ended:
    """Solve every task, those with most variables first.

    Kernel values are those of the classes, or of K of all rows.
    """
    starts, index = tasks.starts, tasks.index
    n_tasks, order = starts.size - 1, np.argsort(-tasks.sizes, kind="stable")
    alpha, numbers = tasks.alpha.copy(), np.zeros((n_tasks, N_NUMBERS))
    # Few arrays: each argument takes the compiler time.
    columns = starts[:-1], tasks.sizes, goal.max_steps, tasks.n_first
    listed = np.column_stack([order, *(column[order] for column in columns)])
    variables = np.array(
        [tasks.signs, tasks.p, tasks.lower, tasks.upper, tasks.ridge, gram.diagonal()[index]]
    )
    tols = np.array([goal.tol, goal.final_tol, goal.rounding, tasks.total])
    alone, of_nu = None if tasks.has_bias else 1, 1 if tasks.alpha.any() else None
    if blocks is None:
        whole = padded_values(gram)
        is_short = int(tasks.sizes @ tasks.sizes) <= SHORT_VALUES
        with at_most(1 if is_short else None):
            solve_gathered(
                n_tasks, listed, variables, whole, index, tols, alone, of_nu, alpha, numbers
            )
    else:
        exact, shared = blocks.exact_rows, tuple(blocks[1:-1])
        solve_pair(
            n_tasks, listed, variables, blocks.classes, shared, exact, tols, alone, alpha, numbers
        )
    return Ended(alpha, *numbers.T)


def padded_values(gram: Gram) -> Floats:
    """Return K of all rows, beyond whose end vectors may be read."""
    K, padded = gram.whole(), gram.padded()
    if padded is None:
        padded = square(K.shape[0], K.dtype)
        padded[:] = K
    return padded
