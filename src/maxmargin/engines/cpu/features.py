"""X of a linear machine: the sums over its rows that states and solvers need.

Xw, Xᵀc and Xᵀdiag(c)X are sums of d-vectors and d×d matrices over blocks of rows, in float64
whatever the type of X, on all cores. Nothing of the size of X is made. For a machine of c classes
w is (c, d) and the coefficients of rows are (n, c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ...arrays import (
    Container,
    Floats,
    Integers,
    blocks_of,
    container,
    row_block,
    row_length,
    row_pieces,
)
from ...problems import JointProblem, L1Problem, PrimalProblem
from ...runtime.row_access import StoredRows, compiled_part, row_add, row_dot, row_square, rows_of
from ...runtime.team import Region, parallel
from ...runtime.threads import in_parallel
from ...runtime.vectors import in_slices, nonzero, part_count, part_rows, taken
from ..planes import HingeSums, PlaneTasks
from .ascent_state import AscentState
from .descent_state import DescentState
from .hinge_grid import Hinges
from .interior_state import InteriorState
from .joint_state import JointState
from .l1_state import L1State
from .panel_products import TILE, add_products
from .plane_grid import hinge_sums
from .primal_state import PrimalState

Result = TypeVar("Result")


@dataclass(frozen=True)
class Tuning:
    """Sizes of the parts that cores work on."""

    moments_multiplications: float = 1e6  # of a sum of squares that one core does alone
    moments_numbers: int = 1 << 24  # in the sums of all parts
    fewest_parts: int = 4  # worth their memory at any size
    most_parts: int = 128
    copied_numbers: int = 1 << 22  # of rows that are copied to spare finding them again
    classes_multiplications: float = 1e7  # of products with several vectors that one core does


TUNING = Tuning()


class Features:
    """The rows of X: an array, a CSR matrix, or blocks of either.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n, n_columns)
    index : ndarray of int, optional
        The rows of X meant, in increasing order; all of them by default.
    """

    def __init__(self, X: Any, index: Integers | None = None) -> None:
        self.X, self.index = X, index
        self._container: Container = container(X)
        self.n_rows = X.shape[0] if index is None else index.size
        self.n_columns = X.shape[1]

    def primal_state(self, problem: PrimalProblem) -> PrimalState:
        """Return the state of a linear machine at w = 0, b = 0 and α = 0."""
        return PrimalState(problem, self)

    def joint_state(self, problem: JointProblem) -> JointState:
        """Return the state of a joint machine at w = 0, b = 0 and α = 0."""
        return JointState.of(problem, self)

    def ascent_state(self, state: JointState, a: Floats, relative_step: float) -> AscentState:
        """Return the state of sequential ascent."""
        return AscentState(state, a, relative_step)

    def interior_state(self, problem: PrimalProblem) -> InteriorState:
        """Return the first iterate of the interior point method."""
        return InteriorState(problem, self)

    def descent_state(self, problem: PrimalProblem) -> DescentState:
        """Return the state of coordinate descent at α = 0."""
        return DescentState(problem, self)

    def l1_state(self, problem: L1Problem) -> L1State:
        """Return the state of a machine of few features at w = 0 and b = 0."""
        return L1State(problem, self)

    @property
    def is_dense(self) -> bool:
        """Whether rows are arrays."""
        return not self._container.sparse

    @property
    def on_device(self) -> bool:
        """Rows are in the memory of the host."""
        return False

    @property
    def random_access(self) -> bool:
        """Whether rows can be visited in any order."""
        return self._container.random_access

    @property
    def by_rows(self) -> bool:
        """Whether the numbers of a row are stored next to each other."""
        return not self.is_dense or bool(self.X.flags.c_contiguous)

    @property
    def slopes_at_once(self) -> int:
        """One: every point of a line search is a pass."""
        return 1

    @property
    def has_curvature(self) -> bool:
        """It is computed when it is asked for."""
        return False

    @property
    def whole_step_first(self) -> bool:
        """Points are tried one by one."""
        return False

    @property
    def holds_rows(self) -> bool:
        """Steps on the rows near the kink take less time."""
        return True

    @property
    def most_sampled(self) -> int:
        """All rows."""
        return self.n_rows

    def draw(self, size: int) -> Any:
        """Return a sample of the rows: one of each of ``size`` runs of consecutive rows."""
        out, n = np.empty(size, dtype=np.intp), self.n_rows

        def draw(some: slice) -> None:
            ends = np.arange(some.start, some.stop + 1) * n // size
            shares = np.random.default_rng([size, some.start]).random(some.stop - some.start)
            out[some] = ends[:-1] + (shares * np.diff(ends)).astype(np.intp)

        in_slices(draw, size)
        return out

    @cached_property
    def stored_per_row(self) -> float:
        """The mean number of stored values per row."""
        return self._container.stored() / max(self.X.shape[0], 1)

    @property
    def _is_table(self) -> bool:
        """Whether X is one array, stored row by row."""
        return isinstance(self.X, np.ndarray) and bool(self.X.flags.c_contiguous)

    # Sums over rows ------------------------------------------------------------------------

    def scores(self, w: Floats, b: Floats | float = 0.0, out: Floats | None = None) -> Floats:
        """Return w·x_i + b of every row, in ``out`` where it is given; (n, c) for w of (c, d)."""
        if w.ndim == 2:
            return self._class_scores(w, b)
        out = np.empty(self.n_rows) if out is None else out
        for start, block in self._pieces():
            here = out[start : start + block.shape[0]]
            _read(_scores, block, w, float(b), here)
        return out

    def combine(self, c: Floats) -> Floats:
        """Return Xᵀc, (c, d) for coefficients of several classes."""
        return self._class_combine(c) if c.ndim == 2 else self._summed(_combine, c)

    def moments(self, c: Floats, chosen: Integers | None = None) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ for c ≥ 0, over some rows or over those with c_i > 0.

        For chosen rows, in increasing order, c holds one number each, or a single one for all.
        """
        if chosen is None:
            chosen = nonzero(c)
            c = taken(c, chosen)
        size = self.n_columns + 1
        total = np.zeros((size, size))
        for start, block in self._pieces():
            low, high = np.searchsorted(chosen, [start, start + block.shape[0]])
            used, here = chosen[low:high], c if c.size == 1 else c[low:high]
            if used.size:
                total += _moments(block, used if start == 0 else used - start, here)
        return total

    def hinge_sums(
        self, tasks: PlaneTasks, planes: Floats, active: Integers, groups: Integers | None
    ) -> HingeSums:
        """Return sums of the squared hinges of the planes (w, b) of some tasks."""
        return hinge_sums(self, tasks, planes, active, groups)

    def hinges(self, y: Floats, weights: Floats, *, has_bias: bool) -> Hinges:
        """Return the hinges of one task in all folds."""
        return Hinges(self, y, weights, has_bias=has_bias)

    def squared_lengths(self) -> Floats:
        """Return ‖x_i‖² of every row."""
        out = np.empty(self.n_rows)
        for start, block in self._pieces():
            _read(_squares, block, out[start : start + block.shape[0]])
        return out

    def squared_columns(self, c: Floats) -> Floats:
        """Return Σ c_i x_ij² of every column j; (c, d) for weights of several classes."""
        return self._class_squares(c) if c.ndim == 2 else self._summed(_column_squares, c)

    def gram(self, rows: Integers | None = None) -> Floats:
        """Return XXᵀ of a few rows, all of them by default."""
        X = self._copied(slice(None) if rows is None else rows)
        product = X @ X.T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)

    def augmented(self, has_bias: bool) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows (x, 1), or x without a bias, as dense blocks in float64."""
        for block, rows in self._blocks():
            rows = rows.toarray() if sparse.issparse(rows) else rows
            yield block, np.column_stack([rows, np.ones(len(rows))]) if has_bias else rows

    # Other rows ----------------------------------------------------------------------------

    def restrict(self, rows: Integers) -> Features:
        """Return some of the rows, in increasing order: a copy of them."""
        rows = rows if self.index is None else self.index[rows]
        return Features(taken(self.X, rows) if self._is_table else self.X[rows])

    def view(self, rows: Integers) -> Features:
        """Return some of the rows, in increasing order, without a copy."""
        return Features(self.X, rows if self.index is None else self.index[rows])

    def take(self, rows: Integers) -> Features:
        """Return some of the rows: a copy in float64 where they are few, or X is in pieces."""
        per_row = self.stored_per_row
        few = max(TUNING.copied_numbers, self.X.shape[0] * per_row // 8)
        if rows.size * per_row > few and self.random_access:
            return self.view(rows)
        return Features(self._copied(rows))

    def scaled(self, factors: Floats) -> Features:
        """Return X with every column multiplied by a factor, in float64: a copy."""
        X = self._copied(slice(None))
        if sparse.issparse(X):
            return Features((X @ sparse.diags_array(factors)).tocsr())
        return Features(X * factors)

    def compiled_rows(self) -> StoredRows:
        """Return all of X as compiled kernels take it, for those that visit rows in any order."""
        return rows_of(self.X)

    def places(self) -> Integers:
        """Return the places of the rows in X."""
        return np.arange(self.n_rows) if self.index is None else self.index

    def _copied(self, rows: Integers | slice) -> Any:
        named = rows if self.index is None and self.random_access else self.places()[rows]
        if not self._is_table or isinstance(named, slice):
            return self.X[named].astype(np.float64, copy=False)
        out = np.empty((named.size, self.n_columns))

        def copy(some: slice) -> None:
            out[some] = self.X[named[some]]

        in_slices(copy, named.size, 2.0 * self.n_columns)
        return out

    # Several vectors at once ---------------------------------------------------------------

    def _class_scores(self, w: Floats, b: Floats | float) -> Floats:
        out = np.empty((self.n_rows, len(w)))

        def work(block: slice, rows: Any) -> None:
            out[block] = rows @ w.T
            out[block] += b

        self._over_blocks(work, len(w))
        return out

    def _class_combine(self, c: Floats) -> Floats:
        if not self.is_dense:
            total = np.zeros((self.n_columns, c.shape[1]))
            for block, rows in self._blocks():
                total += rows.T @ c[block]
            return np.asarray(total.T)
        total = np.zeros((c.shape[1], self.n_columns))
        for part in self._over_blocks(lambda block, rows: c[block].T @ rows, c.shape[1]):
            total += part
        return total

    def _class_squares(self, c: Floats) -> Floats:
        total = np.zeros((c.shape[1], self.n_columns))
        for block, rows in self._blocks():
            squared = rows.multiply(rows) if sparse.issparse(rows) else rows**2
            total += (squared.T @ c[block]).T
        return total

    # Iteration -----------------------------------------------------------------------------

    def _summed(self, region: Region[...], c: Floats) -> Floats:
        """Return the sum of d-vectors over all rows that a region makes of parts of them."""
        total = np.zeros(self.n_columns)
        for start, block in self._pieces():
            n, per_row = block.shape[0], _stored_per_row(block)
            # The sums of all parts have fewer numbers than the rows.
            step = max(part_rows(n, per_row + 1.0), int(4 * self.n_columns / max(per_row, 1.0)))
            sums = np.zeros((part_count(n, step), self.n_columns))
            region(len(sums), step, rows_of(block), c[start : start + n], sums)
            total += sums.sum(axis=0)
        return total

    def _over_blocks(self, work: Callable[[slice, Any], Result], n_vectors: int) -> list[Result]:
        """Return ``work(block, rows)`` of every block; blocks depend on X alone."""
        heavy = self.n_rows * self.stored_per_row * n_vectors >= TUNING.classes_multiplications
        if not (heavy and self.random_access):
            return [work(block, rows) for block, rows in self._blocks()]

        def part(block: slice, stop: Event) -> Any:
            if stop.is_set():
                return None
            return work(block, row_block(self.X, block, self.index))

        return in_parallel(part, list(blocks_of(self.n_rows, row_length(self.X))))

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows in float64, each with its place."""
        if self.index is not None:
            for block in blocks_of(self.n_rows, row_length(self.X)):
                yield block, row_block(self.X, block, self.index)
            return
        for start, piece in self._container.pieces():
            for block in blocks_of(piece.shape[0], row_length(piece)):
                place = slice(start + block.start, start + block.stop)
                yield place, row_block(piece, block)

    def _pieces(self) -> Iterator[tuple[int, Any]]:
        """Yield pieces of rows as they are stored, row by row, each with the place of its first."""
        if self.index is not None:
            for block in blocks_of(self.n_rows, row_length(self.X)):
                yield block.start, self.X[self.index[block]]
            return
        yield from row_pieces(self.X)


def _stored_per_row(X: Any) -> float:
    return X.nnz / max(X.shape[0], 1) if sparse.issparse(X) else float(X.shape[1])


def _read(region: Region[...], X: Any, *arguments: Any) -> None:
    """Let a region read all rows of X, in parts that depend on X alone."""
    n = X.shape[0]
    step = part_rows(n, _stored_per_row(X) + 1.0)
    region(part_count(n, step), step, rows_of(X), *arguments)


def _moments(X: Any, used: Integers, c: Floats) -> Floats:
    """Return Σ c (x, 1)(x, 1)ᵀ of some rows of X."""
    size = X.shape[1] + 1
    dense = not sparse.issparse(X)
    # Every part has a square of numbers to add up; whole vectors of them where rows are dense.
    side = -(-size // TILE) * TILE if dense else size
    n_parts = int(used.size * (_stored_per_row(X) + 1.0) ** 2 / TUNING.moments_multiplications)
    most = max(TUNING.fewest_parts, min(TUNING.most_parts, TUNING.moments_numbers // side**2))
    step = -(-used.size // max(1, min(n_parts, most)))
    sums = np.zeros((part_count(used.size, step), side, side))
    region = _dense_moments if dense else _sparse_moments
    region(len(sums), step, rows_of(X), used, c, sums)
    lower = np.tril(sums.sum(axis=0)[:size, :size])
    return np.asarray(lower + np.tril(lower, -1).T)


# Rows whose products are computed at once: they fit a core's cache.
PANEL_ROWS = 128
# Columns up to which rows are added four at a time: a sum then stays in few registers.
FEW_COLUMNS = 128


@parallel
def _scores(part, step, rows, w, b, out):
    for i in range(part * step, min((part + 1) * step, out.size)):
        out[i] = row_dot(rows, i, w) + b


@parallel
def _combine(part, step, rows, c, sums):
    """Add c_i x_i; rows of c_i = 0 are not read."""
    total = sums[part]
    last = min((part + 1) * step, c.size)
    chosen = np.empty(1024, np.intp)
    for first in range(part * step, last, chosen.size):
        # Without a branch that depends on c, which the processor could not foresee.
        n = 0
        for i in range(first, min(first + chosen.size, last)):
            chosen[n] = i
            n += c[i] != 0.0
        _add_rows(rows, chosen[:n], c, total)


@compiled_part
def _add_rows(rows, chosen, c, total):
    n = chosen.size
    together = 0
    if len(rows) == 1:
        together = n // 4 * 4 if total.size <= FEW_COLUMNS else 0
        X = rows[0]
        for k in range(0, together, 4):
            i, j, l, m = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]  # noqa: E741
            p, q, r, s = c[i], c[j], c[l], c[m]
            for h in range(total.size):
                total[h] += (p * X[i, h] + q * X[j, h]) + (r * X[l, h] + s * X[m, h])
    for k in range(together, n):
        row_add(rows, chosen[k], total, c[chosen[k]])


@parallel
def _squares(part, step, rows, out):
    for i in range(part * step, min((part + 1) * step, out.size)):
        out[i] = row_square(rows, i)


@parallel
def _column_squares(part, step, rows, c, sums):
    total = sums[part]
    for i in range(part * step, min((part + 1) * step, c.size)):
        if len(rows) == 1:
            x = rows[0][i]
            for j in range(total.size):
                total[j] += c[i] * (np.float64(x[j]) * np.float64(x[j]))
        else:
            for k in range(rows[2][i], rows[2][i + 1]):
                value = np.float64(rows[0][k])
                total[rows[1][k]] += c[i] * value * value


@parallel
def _dense_moments(part, step, rows, used, c, sums):
    """Add c (x, 1)(x, 1)ᵀ of some rows to the lower triangle, panel by panel."""
    total = sums[part]
    X = rows[0]
    d = X.shape[1]
    last = min((part + 1) * step, used.size)
    panel = np.zeros((PANEL_ROWS, total.shape[0]))
    for first in range(part * step, last, PANEL_ROWS):
        n = min(PANEL_ROWS, last - first)
        for k in range(n):
            factor = np.sqrt(c[first + k] if c.size > 1 else c[0])
            x, line = X[used[first + k]], panel[k]
            for j in range(d):
                line[j] = factor * x[j]
            line[d] = factor
        add_products(panel[:n], total)


@parallel
def _sparse_moments(part, step, rows, used, c, sums):
    """Add c (x, 1)(x, 1)ᵀ of some rows to the lower triangle; columns come in increasing order."""
    total = sums[part]
    data, indices, indptr = rows
    d = total.shape[0] - 1
    for r in range(part * step, min((part + 1) * step, used.size)):
        first, last = indptr[used[r]], indptr[used[r] + 1]
        weight = c[r] if c.size > 1 else c[0]
        for k in range(first, last):
            scaled = weight * data[k]
            line = total[indices[k]]
            for m in range(first, k + 1):
                line[indices[m]] += scaled * data[m]
            total[d, indices[k]] += scaled
        total[d, d] += weight
