"""All of K, filled row by row as values are asked for, and shared by Gram matrices of some rows."""

from __future__ import annotations

from threading import Event, Lock
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...runtime.row_access import compiled
from ...runtime.simd import square
from ...runtime.threads import in_parallel
from .products import Products
from .row_cache import keep_rows
from .tiles import fill_rows, n_parts
from .values import TILE_COLUMNS, TILE_ROWS, Values


class Store:
    """K of all rows of X: a row is computed, in full, when one of its values is first asked for.

    Parameters
    ----------
    values : Values
        Where values of all rows are computed.
    diagonal : ndarray of shape (n,)
        K(x_i, x_i).

    Attributes
    ----------
    n_computed : int
        Kernel values computed so far.
    """

    def __init__(self, values: Values, diagonal: Floats) -> None:
        self.values, self.diagonal, self.n_computed = values, diagonal, 0
        self.K: Floats = square(values.n_samples, values.dtype)
        self.known = np.zeros(values.n_samples, dtype=bool)
        self._lock = Lock()

    def view(self, index: Integers) -> StoredValues:
        """Return the values of some rows."""
        return StoredValues(self, index)

    def fill(self, rows: Integers) -> None:
        """Compute the rows among these that are not known."""
        if self.known[rows].all():
            return
        with self._lock:
            rows = np.unique(rows[~self.known[rows]])
            self._compute(rows)
            if self.values.kernel.elementwise:  # exactly the diagonal, which products would round
                self.K[rows, rows] = self.diagonal[rows]
            self.known[rows] = True
            self.n_computed += rows.size * self.values.n_samples

    def _compute(self, rows: Integers) -> None:
        values, n = self.values, self.values.n_samples
        if isinstance(values, Products) and values.has_columns and values.formula is not None:
            operands = values.left(rows), values.right(), values.formula, values.gamma
            strips = n_parts(n, TILE_COLUMNS)
            fill_rows(strips, *operands, rows, self.K, *values.scratch.tiles())
            return
        prepared = values.prepare(rows)

        def work(start: int, stop: Event) -> None:
            columns = slice(start, min(start + TILE_COLUMNS, n))
            for first in range(0, rows.size, TILE_ROWS):
                if stop.is_set():
                    return
                part = slice(first, min(first + TILE_ROWS, rows.size))
                tile = np.empty((part.stop - first, columns.stop - start), values.dtype)
                values.tile(prepared, part, columns, tile)
                keep_rows(tile, rows[part], start, self.K)

        in_parallel(work, range(0, n, TILE_COLUMNS), alone=not values.kernel.elementwise)


class StoredValues(Values):
    """Kernel values of some rows, from a store."""

    cost = 0.0

    def __init__(self, store: Store, index: Integers) -> None:
        source = store.values
        super().__init__(source.kernel, source.X, index, source.dtype)
        self.store, self.rows = store, index

    def prepare(self, rows: Integers) -> Integers:
        self.store.fill(self.rows[rows])
        return self.rows[rows]

    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        gather(self.store.K, prepared[part], self.rows[columns], out)

    def against(self, columns: Integers) -> Integers:
        return self.rows[columns]

    def block(self, rows: Integers, columns: Any) -> Floats:
        rows, known = self.rows[rows], self.store.known
        # K is symmetric: compute the fewer rows.
        if np.count_nonzero(~known[columns]) < np.count_nonzero(~known[rows]):
            return self._gathered(columns, rows).T
        return self._gathered(rows, columns)

    def _gathered(self, rows: Integers, columns: Integers) -> Floats:
        self.store.fill(rows)
        out = np.empty((rows.size, columns.size), self.dtype)

        def work(start: int, stop: Event) -> None:
            part = slice(start, start + TILE_ROWS)
            gather(self.store.K, rows[part], columns, out[part])

        in_parallel(work, range(0, rows.size, TILE_ROWS))
        return out

    @property
    def relative(self) -> Floats | None:
        relative = self.store.values.relative
        return None if relative is None else relative[self.rows]

    def weights(self, columns: Integers, v: Floats) -> Floats:
        return self.store.values.weights(self.rows[columns], v)

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        return self.store.values.bound(self.rows[rows], self.rows[columns], v)


@compiled
def gather(K, rows, columns, out):
    """Do out[r, c] ← K[rows_r, columns_c]."""
    for r in range(rows.size):
        row, values = K[rows[r]], out[r]
        for c in range(columns.size):
            values[c] = row[columns[c]]
