"""Kernel values of rows that are mostly zeros: only the others are multiplied.

They are multiplied with panels of samples that lie feature by feature, which pays below a quarter
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
from ...runtime.row_access import compiled
from ...runtime.simd import aligned, count, fill, load, store
from ...runtime.threads import in_parallel
from .products import Products
from .values import TILE_COLUMNS, TILE_ROWS

# Vectors in a panel: as many running sums stay in registers.
PANEL_VECTORS = 8
# Products of sparse rows that are summed before they are added to the others: a sum of n numbers in
# parts has the rounding errors of CHUNK + n/CHUNK.
CHUNK = 16


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
        longest = int(np.diff(self.csr[2]).max(initial=0))
        self.terms = min(longest, CHUNK + -(-longest // CHUNK))

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

    def tile(self, prepared: Integers, part: slice, columns: slice, out: Floats) -> None:
        rows = prepared[part]
        first, last = columns.start // self.panel, -(-columns.stop // self.panel)
        whole = slice(columns.start, last * self.panel)
        buffer = out
        if whole.stop > columns.stop:
            buffer = np.empty((rows.size, whole.stop - whole.start), dtype=self.dtype)
        sparse_products(*self.csr, rows, self.panels[first:last], buffer)
        self._transform(buffer, self.squares[rows], self.squares[whole])
        if buffer is not out:
            out[:] = buffer[:, : out.shape[1]]

    def against(self, columns: Integers) -> Any:
        panels = self._laid(columns)
        z_sq = np.zeros(panels.shape[0] * self.panel, dtype=self.dtype)
        z_sq[: columns.size] = self.squares[columns]
        return panels, z_sq, columns.size

    def block(self, rows: Integers, columns: Any) -> Floats:
        panels, z_sq, n_columns = columns
        out = np.empty((rows.size, z_sq.size), dtype=self.dtype)

        def work(start: int, stop: Event) -> None:
            part = slice(start, start + TILE_ROWS)
            sparse_products(*self.csr, rows[part], panels, out[part])
            self._transform(out[part], self.squares[rows[part]], z_sq)

        in_parallel(work, range(0, rows.size, TILE_ROWS))
        return out[:, :n_columns]


class WideProducts(Products):
    """⟨x,z⟩ of CSR rows with so many columns that dense panels of them all would not fit."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, sparse.csr_matrix(X), index, dtype)
        self.squares = np.zeros(self.n_samples, dtype=dtype)
        for start in range(0, self.n_samples, TILE_COLUMNS):
            rows = self.of(slice(start, start + TILE_COLUMNS)).astype(np.float64)
            self.squares[start : start + TILE_COLUMNS] = rows.multiply(rows).sum(axis=1).A1
        self.terms = int(np.diff(self.X.indptr).max(initial=0))

    @property
    def cost(self) -> float:
        return 4.0 * self.X.nnz / max(self.X.shape[0], 1)

    def prepare(self, rows: Integers) -> Any:
        return self.of(rows).astype(self.dtype, copy=False), self.squares[rows]

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        x, x_sq = prepared
        z = self.of(columns).astype(self.dtype, copy=False)
        out[:] = (x[part] @ z.T).toarray()
        self._transform(out, x_sq[part], self.squares[columns])

    def against(self, columns: Integers) -> Any:
        return self.of(columns).astype(self.dtype, copy=False).T, self.squares[columns]

    def block(self, rows: Integers, columns: Any) -> Floats:
        z, z_sq = columns
        out = np.asarray((self.of(rows).astype(self.dtype, copy=False) @ z).toarray())
        self._transform(out, self.squares[rows], z_sq)
        return out


def _csr(X: Any, index: Integers | None, dtype: Any) -> tuple[Floats, Integers, Integers]:
    """Return rows of X as data, indices and indptr."""
    if sparse.issparse(X):
        rows = X if index is None else X[index]
        return rows.data.astype(dtype, copy=False), rows.indices, rows.indptr
    rows = np.arange(X.shape[0]) if index is None else index
    parts = np.array_split(rows, max(1, rows.size // 1024))
    counts = in_parallel(lambda part, stop: np.count_nonzero(X[part], axis=1), parts)
    indptr = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(np.concatenate(counts), out=indptr[1:])
    data, indices = np.empty(indptr[-1], dtype=dtype), np.empty(indptr[-1], dtype=np.int32)
    starts = np.cumsum([0, *(part.size for part in parts)])
    in_parallel(
        lambda k, stop: pick_nonzeros(
            X, parts[k], indptr[starts[k] : starts[k + 1]], data, indices
        ),
        range(len(parts)),
    )
    return data, indices, indptr


@compiled
def pick_nonzeros(X, rows, starts, data, indices):
    """Write the non-zeros of dense rows to their places in a CSR matrix."""
    for r in range(rows.size):
        x, k = X[rows[r]], starts[r]
        for j in range(x.size):
            if x[j] != 0.0:
                data[k] = x[j]
                indices[k] = j
                k += 1


@compiled
def square_rows(data, indices, indptr, squares):
    """Do squares_i ← ‖x_i‖², summed in float64."""
    for i in range(indptr.size - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * data[k]
        squares[i] = total


@compiled
def lay_panels(data, indices, indptr, samples, panels):
    """Write samples into panels of zeros, feature by feature."""
    width = panels.shape[2]
    for s in range(samples.size):
        panel, column = panels[s // width], s % width
        i = samples[s]
        for k in range(indptr[i], indptr[i + 1]):
            panel[indices[k], column] = data[k]


@compiled
def sparse_products(data, indices, indptr, rows, panels, out):
    """Do out[r] ← ⟨x_rows[r], x_s⟩ for all samples s of the panels, eight vectors at a time."""
    n, width = count(data), panels.shape[2]
    zero = fill(data, 0.0)
    for p in range(panels.shape[0]):
        panel, start = panels[p], p * width
        for r in range(rows.size):
            i = rows[r]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
            k, last = indptr[i], indptr[i + 1]
            while k < last:
                a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = zero
                end = min(k + CHUNK, last)
                while k < end:
                    x, z = fill(data, data[k]), panel[np.uint32(indices[k])]
                    a0 = a0 + x * load(z, 0)
                    a1 = a1 + x * load(z, n)
                    a2 = a2 + x * load(z, 2 * n)
                    a3 = a3 + x * load(z, 3 * n)
                    a4 = a4 + x * load(z, 4 * n)
                    a5 = a5 + x * load(z, 5 * n)
                    a6 = a6 + x * load(z, 6 * n)
                    a7 = a7 + x * load(z, 7 * n)
                    k += 1
                s0, s1, s2, s3 = s0 + a0, s1 + a1, s2 + a2, s3 + a3
                s4, s5, s6, s7 = s4 + a4, s5 + a5, s6 + a6, s7 + a7
            dot = out[r]
            store(dot, start, s0)
            store(dot, start + n, s1)
            store(dot, start + 2 * n, s2)
            store(dot, start + 3 * n, s3)
            store(dot, start + 4 * n, s4)
            store(dot, start + 5 * n, s5)
            store(dot, start + 6 * n, s6)
            store(dot, start + 7 * n, s7)
