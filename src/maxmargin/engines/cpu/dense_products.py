"""Kernel values of dense rows."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ...runtime.row_access import StoredRows, rows_of
from ...runtime.simd import aligned, count
from ...runtime.threads import in_parallel
from .dense_panels import (
    PANEL_VECTORS,
    TAKEN_ROWS,
    lay_parts,
    lay_rows,
    roundings,
    take_rows,
)
from .products import Products
from .tiles import n_parts
from .values import TILE_COLUMNS

# Bytes of the laid out rows, relative to those of X, up to which all of them are kept.
LARGEST_COPY = 1.5
# Rows whose mean is taken for that of all.
CENTRE_ROWS = 1024


class DenseProducts(Products):
    """⟨x,z⟩ of rows that are cast, centred, made dense and laid into panels.

    All of them once where they are not much larger than X is, else those that are asked for.
    """

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        # Rows are moved before digits are lost.
        self.centre = np.zeros(X.shape[1], dtype=np.result_type(X.dtype, self.dtype))
        if kernel.shift_invariant:
            # About the mean ‖x‖² + ‖z‖² − 2⟨x,z⟩ loses the least.
            some = self._dense(slice(0, None, max(1, self.n_samples // CENTRE_ROWS)))
            self.centre[:] = middle(some)
        # Rows of X lie in one piece, unlike those of panels.
        self._rows: StoredRows = () if sparse.issparse(X) else rows_of(X)
        self.panel = PANEL_VECTORS * count(np.empty(0, dtype=dtype))
        self.squares = np.zeros(-(-self.n_samples // self.panel) * self.panel, dtype=dtype)
        size = self.n_samples * X.shape[1] * self.dtype.itemsize
        share = self.n_samples / max(1, X.shape[0])
        self.has_columns = size <= LARGEST_COPY * share * _stored_bytes(X)
        self.panels = self._empty(self.n_samples if self.has_columns else 0)
        self.terms = roundings(X.shape[1])

        def work(start: int, stop: Event) -> None:
            rows = self._centred(slice(start, start + TILE_COLUMNS))
            squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
            self.squares[start : start + squares.size] = squares
            if self.has_columns:
                lay_rows(rows, self.panels[start // self.panel :])

        in_parallel(work, range(0, self.n_samples, TILE_COLUMNS))

    def _empty(self, n: int) -> Floats:
        return aligned((-(-n // self.panel), self.X.shape[1], self.panel), self.dtype)

    def _dense(self, rows: Any) -> Floats:
        X = self.of(rows)
        # The same sums for every layout.
        return X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)

    def _centred(self, rows: Any) -> Floats:
        return np.ascontiguousarray(self._dense(rows) - self.centre, dtype=self.dtype)

    def left(self, rows: Integers | None = None) -> tuple[Any, ...]:
        rows = np.arange(self.n_samples) if rows is None else rows
        if sparse.issparse(self.X):
            return self._centred(rows), self.squares[rows]
        x = np.empty((rows.size, self.X.shape[1]), dtype=self.dtype)
        samples = rows if self.index is None else self.index[rows]
        parts = n_parts(rows.size, TAKEN_ROWS)
        take_rows(parts, *self._rows, samples, self.centre, x)  # type: ignore[call-arg]
        return x, self.squares[rows]

    def right(self, rows: Integers | None = None) -> tuple[Any, ...]:
        if rows is None:
            return self.panels, self.squares
        x, x_sq = self.left(rows)
        panels = self._empty(rows.size)
        lay_parts(len(panels), x, panels)
        squares = np.zeros(panels.shape[0] * self.panel, dtype=self.dtype)
        squares[: rows.size] = x_sq
        return panels, squares


def _stored_bytes(X: Any) -> int:
    """Return the memory that X takes."""
    return sum(part.nbytes for part in ((X.data, X.indices) if sparse.issparse(X) else (X,)))


def middle(rows: Floats) -> Floats:
    """Return the median of the means of some groups of rows: a mean that outliers do not move."""
    starts = np.linspace(0, len(rows), min(64, max(1, len(rows))), endpoint=False).astype(np.intp)
    sums = np.add.reduceat(rows, starts, axis=0, dtype=np.float64)
    means = np.sort(sums / np.diff(starts, append=len(rows))[:, np.newaxis], axis=0)
    return 0.5 * (means[(len(means) - 1) // 2] + means[len(means) // 2])
