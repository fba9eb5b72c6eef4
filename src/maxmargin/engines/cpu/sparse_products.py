"""Kernel values of rows that are mostly zeros: only the others are multiplied.

They are multiplied with panels of samples that lie feature by feature, which pays up to some half
of non-zeros, in dense arrays as well.
"""

from __future__ import annotations

from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ...runtime.row_access import rows_of
from ...runtime.simd import aligned, count
from ...runtime.threads import in_parallel
from .products import Products
from .sparse_panels import (
    CHUNK,
    PANEL_VECTORS,
    divide,
    lay_panels,
    n_sections,
    pick_nonzeros,
    square_rows,
)
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
        square_rows(*self.csr, self.squares)
        data, indices, indptr = self.csr
        longest = int(np.diff(indptr).max(initial=0))
        sections = n_sections(X.shape[1], data.size / max(1, self.n_samples))
        self.terms = min(longest, CHUNK + -(-longest // CHUNK) + sections - 1)
        self.starts = np.empty((self.n_samples, sections + 1), dtype=indptr.dtype)
        divide(indices, indptr, X.shape[1], self.starts)

    @cached_property
    def panels(self) -> Floats:
        """All samples, feature by feature."""
        return self._laid(np.arange(self.n_samples))

    def _laid(self, samples: Integers) -> Floats:
        n_panels = -(-samples.size // self.panel)
        panels = aligned((n_panels, self.X.shape[1], self.panel), self.dtype)
        several = max(1, n_panels // 8)

        def lay(first: int, stop: Event) -> None:
            some = samples[first * self.panel : (first + several) * self.panel]
            lay_panels(*self.csr, some, panels[first : first + several])

        in_parallel(lay, range(0, n_panels, several))
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
    parts = np.array_split(rows, max(1, rows.size // 1024))
    counts = in_parallel(lambda part, stop: np.count_nonzero(X[part], axis=1), parts)
    indptr = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(np.concatenate(counts), out=indptr[1:])
    if indptr[-1] < 1 << 31:  # as CSR matrices have it
        indptr = indptr.astype(np.int32)
    data, indices = np.empty(indptr[-1], dtype=dtype), np.empty(indptr[-1], dtype=np.int32)
    starts = np.cumsum([0, *(part.size for part in parts)])
    (all_rows,) = rows_of(X)
    in_parallel(
        lambda k, stop: pick_nonzeros(
            all_rows, parts[k], indptr[starts[k] : starts[k + 1]], data, indices
        ),
        range(len(parts)),
    )
    return data, indices, indptr
