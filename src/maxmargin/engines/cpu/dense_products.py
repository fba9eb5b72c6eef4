"""Kernel values of dense rows, which BLAS multiplies."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ...runtime.threads import in_parallel
from .products import Products
from .tiles import BLOCK_ROWS, n_parts, take_rows
from .values import TILE_COLUMNS


class DenseProducts(Products):
    """⟨x,z⟩ by BLAS, of rows that are cast, centred and made dense.

    All of them once where they are no larger than X was, else a tile at a time.
    """

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        self.centre: Any = 0.0
        if kernel.shift_invariant:
            # About the mean ‖x‖² + ‖z‖² − 2⟨x,z⟩ loses the least.
            some = self._dense(slice(0, None, max(1, self.n_samples // 4096)))
            self.centre = _middle(some)
        self.rows: Any = None
        self.squares = np.empty(self.n_samples, dtype=dtype)
        keep = not sparse.issparse(X) and self.dtype.itemsize <= X.dtype.itemsize
        kept = np.empty((self.n_samples, X.shape[1]), dtype=dtype) if keep else None

        def work(start: int, stop: Event) -> None:
            part = slice(start, start + TILE_COLUMNS)
            rows = self._centred(part)
            self.squares[part] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
            if kept is not None:
                kept[part] = rows

        in_parallel(work, range(0, self.n_samples, TILE_COLUMNS))
        self.rows, self.terms = kept, X.shape[1]
        self.has_columns = kept is not None

    def _dense(self, rows: Any) -> Floats:
        X = self.of(rows)
        # The same sums for every layout.
        return X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)

    def _centred(self, rows: Any) -> Floats:
        if self.rows is not None:
            return self.rows[rows]
        X = self._dense(rows)
        if self.kernel.shift_invariant:  # before digits are lost
            X = X - self.centre.astype(np.result_type(X.dtype, self.dtype), copy=False)
        return X.astype(self.dtype, copy=False)

    def prepare(self, rows: Integers) -> Any:
        return self.left(rows)

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        x, x_sq = prepared
        np.dot(x[part], self._centred(columns).T, out=out)
        self._transform(out, x_sq[part], self.squares[columns])

    def left(self, rows: Integers | None = None) -> tuple[Any, ...]:
        if rows is None:
            return self.rows, self.squares
        return self._taken(rows), self.squares[rows]

    right = left

    def _taken(self, rows: Integers) -> Floats:
        if self.rows is None:
            return np.ascontiguousarray(self._centred(rows))
        taken = np.empty((rows.size, self.rows.shape[1]), dtype=self.dtype)
        take_rows(n_parts(rows.size, BLOCK_ROWS), self.rows, rows, taken)
        return taken


def _middle(rows: Floats) -> Floats:
    """Return the median of the means of some groups of rows: a mean that outliers do not move."""
    starts = np.linspace(0, len(rows), min(64, max(1, len(rows))), endpoint=False).astype(np.intp)
    sums = np.add.reduceat(rows, starts, axis=0, dtype=np.float64)
    means = np.sort(sums / np.diff(starts, append=len(rows))[:, np.newaxis], axis=0)
    return 0.5 * (means[(len(means) - 1) // 2] + means[len(means) // 2])
