"""Kernel values of rows that are mostly zeros: only the others are multiplied.

They are multiplied with panels of samples that lie feature by feature, which pays up to some half
of non-zeros, in dense arrays as well.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ...runtime.row_access import rows_of
from ...runtime.simd import aligned, count
from .products import Products
from .sparse_panels import (
    CHUNK,
    PANEL_VECTORS,
    PART_ROWS,
    count_nonzeros,
    lay_panels,
    measure_rows,
    n_sections,
    pick_nonzeros,
)
from .tiles import n_parts
from .values import TILE_COLUMNS


class SparseProducts(Products):
    """⟨x,z⟩ from the non-zeros of x alone, for a panel of samples z at a time."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        self.csr = _csr(X, index, self.dtype)
        self.panel = PANEL_VECTORS * count(np.empty(0, dtype=dtype))
        n_panels = -(-self.n_samples // self.panel)
        # Zeros beyond the last sample: tiles are computed in whole panels.
        self.squares = np.zeros(n_panels * self.panel, dtype=dtype)
        data, _, indptr = self.csr
        longest = int(np.diff(indptr).max(initial=0))
        sections = n_sections(X.shape[1], data.size / max(1, self.n_samples))
        self.terms = min(longest, CHUNK + -(-longest // CHUNK) + sections - 1)
        self.starts = np.empty((self.n_samples, sections + 1), dtype=indptr.dtype)
        parts = n_parts(self.n_samples, PART_ROWS)
        measure_rows(parts, *self.csr, X.shape[1], self.squares, self.starts)

    @cached_property
    def panels(self) -> Floats:
        """All samples, feature by feature."""
        return self._laid(np.arange(self.n_samples))

    def _laid(self, samples: Integers) -> Floats:
        n_panels = -(-samples.size // self.panel)
        panels = aligned((n_panels, self.X.shape[1], self.panel), self.dtype)
        lay_panels(n_panels, *self.csr, samples, panels)
        return panels

    @property
    def cost(self) -> float:
        return 2.0 * self.csr[0].size / max(self.n_samples, 1)

    def left(self, rows: Integers | None = None) -> tuple[Any, ...]:
        rows = np.arange(self.n_samples) if rows is None else rows
        return (*self.csr[:2], self.starts, rows, self.squares[rows])

    def right(self, rows: Integers | None = None) -> tuple[Any, ...]:
        if rows is None:
            return self.panels, self.squares
        panels = self._laid(rows)
        squares = np.zeros(panels.shape[0] * self.panel, dtype=self.dtype)
        squares[: rows.size] = self.squares[rows]
        return panels, squares


class WideProducts(Products):
    """⟨x,z⟩ of CSR rows with so many columns that dense panels of them all would not fit."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, sparse.csr_matrix(X), index, dtype)
        self.formula, self.has_columns = None, False
        self.squares = np.zeros(self.n_samples, dtype=dtype)
        for start in range(0, self.n_samples, TILE_COLUMNS):
            rows = self.of(slice(start, start + TILE_COLUMNS)).astype(np.float64)
            self.squares[start : start + TILE_COLUMNS] = rows.multiply(rows).sum(axis=1).A1
        self.terms = int(np.diff(self.X.indptr).max(initial=0))

    @property
    def cost(self) -> float:
        return 4.0 * self.X.nnz / max(self.X.shape[0], 1)

    def prepare(self, rows: Integers) -> tuple[Any, ...]:
        return self.of(rows).astype(self.dtype, copy=False), self.squares[rows]

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        x, x_sq = prepared
        z = self.of(columns).astype(self.dtype, copy=False)
        out[:] = (x[part] @ z.T).toarray()
        self._transform(out, x_sq[part], self.squares[columns])

    def left(self, rows: Integers | None = None) -> tuple[Any, ...]:
        return self.prepare(np.arange(self.n_samples) if rows is None else rows)

    right = left

    def block(self, rows: Integers, columns: Any) -> Floats:
        (z, z_sq), _ = columns
        x, x_sq = self.left(rows)
        out = np.asarray((x @ z.T).toarray())
        self._transform(out, x_sq, z_sq)
        return out


def _csr(X: Any, index: Integers | None, dtype: Any) -> tuple[Floats, Integers, Integers]:
    """Return rows of X as data, indices and indptr."""
    if sparse.issparse(X):
        rows = X if index is None else X[index]
        data, indices, indptr = rows_of(rows if rows.has_sorted_indices else rows.sorted_indices())
        return data.astype(dtype, copy=False), indices, indptr
    rows = np.arange(X.shape[0]) if index is None else index
    indptr = np.zeros(rows.size + 1, dtype=np.int64)
    parts = n_parts(rows.size, PART_ROWS)
    count_nonzeros(parts, X, rows, indptr[1:])
    np.cumsum(indptr, out=indptr)
    data, indices = np.empty(indptr[-1], dtype=dtype), np.empty(indptr[-1], dtype=np.int32)
    pick_nonzeros(parts, X, rows, indptr, data, indices)
    # With SciPy's type of indices where it suffices, so that code is compiled once for both.
    return data, indices, indptr.astype(sparse.get_index_dtype(maxval=indptr[-1]))
