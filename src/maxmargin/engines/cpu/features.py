"""X of a linear machine, seen through the sums over its rows that solvers need.

Xw, Xᵀc and Xᵀdiag(c)X are sums of d-vectors and d×d matrices over blocks of rows, in float64
whatever the type of X, on all cores. Nothing of the size of X is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...data.row_blocks import RowBlocks
from ...runtime.row_access import compiled, row_add, row_dot, row_square, rows_of
from ...runtime.threads import in_parallel

# Stored numbers in a part of the rows that a core takes at a time: of less, threads cost more.
PART = 1 << 21
# Numbers of scaled rows that are multiplied at a time: they fit a core's cache.
PANEL = 1 << 17
# Multiplications of a sum of squares that a core may well do alone.
HEAVY = 5e7


class Features:
    """The rows of X: an array, a CSR matrix, or blocks of either.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n_rows, n_columns)
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape

    def scores(self, w: Floats, b: float = 0.0, out: Floats | None = None) -> Floats:
        """Return x_i·w + b of every row, in ``out`` where it is given."""
        out = np.empty(self.n_rows) if out is None else out

        def work(rows: Any, first: int, last: int, start: int) -> None:
            _scores(rows, w, b, out[start : start + last - first], first, last)

        self._over(work)
        return out

    def combine(self, c: Floats) -> Floats:
        """Return Xᵀc; rows with c_i = 0 are not read."""

        def work(rows: Any, first: int, last: int, start: int) -> Floats:
            total = np.zeros(self.n_columns)
            _combine(rows, c[start : start + last - first], first, last, total)
            return total

        return sum(self._over(work), np.zeros(self.n_columns))

    def moments(self, c: Floats, chosen: Integers | None = None) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ for c ≥ 0, over some rows or over those with c_i > 0.

        Of chosen rows, in increasing order, c holds one number each, or a single one for all.
        """
        if chosen is None:
            chosen = np.flatnonzero(c)
            c = c[chosen]
        c = np.broadcast_to(c, chosen.shape)
        size = self.n_columns + 1
        total = np.zeros((size, size))
        for start, block in self._blocks():
            rows = rows_of(block)
            low, high = np.searchsorted(chosen, [start, start + block.shape[0]])
            used, here = chosen[low:high] - start, c[low:high]
            # Few parts: each has a square of numbers to add up.
            work = used.size * (mean_stored(block) + 1.0) ** 2
            n_parts = int(min(4, 1 + work // HEAVY))

            def part(some: slice, stop: Event, rows=rows, used=used, here=here) -> Floats:
                sums = np.zeros((size, size))
                if len(rows) == 1:
                    _dense_moments(rows, used[some], np.sqrt(here[some]), sums)
                else:
                    _sparse_moments(rows, used[some], np.ascontiguousarray(here[some]), sums)
                return sums

            step = max(1, -(-used.size // n_parts))
            parts = [slice(k, k + step) for k in range(0, used.size, step)]
            for sums in in_parallel(part, parts):
                total += sums
        if not self.is_dense:
            _mirror(total)
        return total

    def squared_lengths(self) -> Floats:
        """Return ‖x_i‖² of every row."""
        out = np.empty(self.n_rows)

        def work(rows: Any, first: int, last: int, start: int) -> None:
            _squares(rows, out[start : start + last - first], first, last)

        self._over(work)
        return out

    def squared_columns(self, c: Floats) -> Floats:
        """Return Σ c_i x_ij² of every column j."""

        def work(rows: Any, first: int, last: int, start: int) -> Floats:
            total = np.zeros(self.n_columns)
            _column_squares(rows, c[start : start + last - first], first, last, total)
            return total

        return sum(self._over(work), np.zeros(self.n_columns))

    def gram(self) -> Floats:
        """Return XXᵀ, of few rows."""
        X = self.X
        if sparse.issparse(X):
            return np.asarray((X @ X.T).toarray(), dtype=np.float64)
        X = X.astype(np.float64, copy=False)
        return X @ X.T

    def restrict(self, rows: Integers) -> Features:
        """Return the engine of some rows, in increasing order: a copy of them."""
        return Features(self.X[rows])

    def scaled(self, factors: Floats) -> Features:
        """Return the engine of X with every column multiplied by a factor, in float64: a copy."""
        if sparse.issparse(self.X):
            return Features((self.X @ sparse.diags_array(factors)).tocsr())
        return Features(self.X * factors)

    @property
    def rows(self) -> Any:
        """X as compiled kernels take it."""
        return rows_of(self.X)

    @cached_property
    def mean_stored(self) -> float:
        """Stored numbers a row."""
        if isinstance(self.X, RowBlocks):
            return sum(mean_stored(X) * X.shape[0] for X in self.X) / max(self.n_rows, 1)
        return mean_stored(self.X)

    @property
    def is_dense(self) -> bool:
        """Whether rows are arrays."""
        return not self.X.sparse if isinstance(self.X, RowBlocks) else not sparse.issparse(self.X)

    def _over(self, work: Callable[[Any, int, int, int], Any]) -> list[Any]:
        """Return ``work(rows, first, last, start)`` of every part of every block.

        Rows ``first`` to ``last`` of the block are rows ``start`` and on of X. Parts depend on X
        alone, so that sums are the same on any number of cores.
        """
        done: list[Any] = []
        for start, block in self._blocks():
            rows, n = rows_of(block), block.shape[0]
            step = max(64, int(PART / (mean_stored(block) + 1.0)))

            def part(first: int, stop: Event, rows=rows, n=n, start=start, step=step) -> Any:
                if stop.is_set():
                    return None
                return work(rows, first, min(first + step, n), start + first)

            done += in_parallel(part, range(0, n, step))
        return done

    def _blocks(self) -> Iterator[tuple[int, Any]]:
        if isinstance(self.X, RowBlocks):
            start = 0
            for block in self.X:
                yield start, _row_by_row(block)
                start += block.shape[0]
        elif sparse.issparse(self.X) or self.X.flags.c_contiguous:
            yield 0, self.X
        else:
            # Columns are turned into rows by the block: a copy of all of them is not made.
            step = max(64, PART // self.n_columns)
            for start in range(0, self.n_rows, step):
                yield start, _row_by_row(self.X[start : start + step])


def _row_by_row(block: Any) -> Any:
    return block if sparse.issparse(block) else np.ascontiguousarray(block)


def mean_stored(X: Any) -> float:
    """Return the stored numbers a row."""
    return X.nnz / max(X.shape[0], 1) if sparse.issparse(X) else float(X.shape[1])


def _dense_moments(rows: Any, used: Integers, factors: Floats, total: Floats) -> None:
    """Add (fx, f)(fx, f)ᵀ of some rows, by products of panels of them."""
    panel = np.empty((max(16, min(PANEL // total.shape[0], used.size)), total.shape[0]))
    for k in range(0, used.size, panel.shape[0]):
        some = slice(k, k + panel.shape[0])
        n = used[some].size
        _scaled(rows, used[some], factors[some], panel)
        total += panel[:n].T @ panel[:n]


@compiled
def _scores(rows, w, b, out, first, last):
    for i in range(first, last):
        out[i - first] = row_dot(rows, i, w) + b


@compiled
def _combine(rows, c, first, last, total):
    for i in range(first, last):
        if c[i - first] != 0.0:
            row_add(rows, i, total, c[i - first])


@compiled
def _squares(rows, out, first, last):
    for i in range(first, last):
        out[i - first] = row_square(rows, i)


@compiled
def _column_squares(rows, c, first, last, total):
    for i in range(first, last):
        if len(rows) == 1:
            x = rows[0][i]
            for j in range(total.size):
                total[j] += c[i - first] * (np.float64(x[j]) * np.float64(x[j]))
        else:
            for k in range(rows[2][i], rows[2][i + 1]):
                value = np.float64(rows[0][k])
                total[rows[1][k]] += c[i - first] * value * value


@compiled
def _scaled(rows, chosen, factors, out):
    d = out.shape[1] - 1
    for k in range(chosen.size):
        x = rows[0][chosen[k]]
        for j in range(d):
            out[k, j] = factors[k] * x[j]
        out[k, d] = factors[k]


@compiled
def _sparse_moments(rows, used, c, total):
    """Add c (x, 1)(x, 1)ᵀ of some rows to the lower triangle; columns come in increasing order."""
    data, indices, indptr = rows
    d = total.shape[0] - 1
    for r in range(used.size):
        first, last = indptr[used[r]], indptr[used[r] + 1]
        for k in range(first, last):
            scaled = c[r] * data[k]
            line = total[indices[k]]
            for m in range(first, k + 1):
                line[indices[m]] += scaled * data[m]
            total[d, indices[k]] += scaled
        total[d, d] += c[r]


@compiled
def _mirror(square):
    """Copy the lower triangle to the upper one."""
    for i in range(square.shape[0]):
        for j in range(i):
            square[j, i] = square[i, j]
