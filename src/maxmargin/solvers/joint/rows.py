"""The rows of X, block by block: sums over them and products with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Floats, Integers, blocks_of, row_block, row_length
from ...runtime.row_access import rows_of
from ...runtime.threads import in_parallel
from .passes import square_rows

# Numbers of rows that are copied to spare finding them again.
HELD = 1 << 22
# Multiplications that are shared between cores.
HEAVY = 1e7


class Rows:
    """Rows of X, all of them or those named: products in float64, block by block on all cores."""

    def __init__(self, X: Any, index: Integers | None) -> None:
        self.X, self.index = X, index
        self.n_rows = X.shape[0] if index is None else index.size
        self.n_columns = X.shape[1]

    @property
    def numbers(self) -> int:
        """Numbers stored in all rows, about."""
        return self.n_rows * row_length(self.X)

    @property
    def names(self) -> Integers:
        """The places of the rows in X."""
        return np.arange(self.n_rows) if self.index is None else self.index

    def take(self, rows: Integers) -> Rows:
        """Return some of the rows: a copy in float64 where they are few."""
        taken = Rows(self.X, rows if self.index is None else self.index[rows])
        if taken.numbers > max(HELD, self.X.shape[0] * row_length(self.X) // 8):
            return taken
        return Rows(self.X[taken.index].astype(np.float64, copy=False), None)

    def scores(self, w: Floats, b: Floats) -> Floats:
        """Return w_k·x_i + b_k: (n_rows, c)."""
        out = np.empty((self.n_rows, len(w)))

        def work(block: slice, rows: Any) -> None:
            out[block] = rows @ w.T
            out[block] += b

        self._over(work, len(w))
        return out

    def combine(self, alpha: Floats) -> Floats:
        """Return Σ_i α_i^k x_i: (c, d)."""
        if sparse.issparse(self.X):
            total = np.zeros((self.n_columns, alpha.shape[1]))
            for block, rows in self._blocks():
                total += rows.T @ alpha[block]
            return np.asarray(total.T)
        parts = self._over(lambda block, rows: alpha[block].T @ rows, alpha.shape[1])
        return sum(parts, np.zeros((alpha.shape[1], self.n_columns)))

    def squares(self, weights: Floats) -> Floats:
        """Return Σ_i v_i^k x_ij² of every feature: (c, d)."""
        total = np.zeros((weights.shape[1], self.n_columns))
        for block, rows in self._blocks():
            squared = rows.multiply(rows) if sparse.issparse(rows) else rows**2
            total += (squared.T @ weights[block]).T
        return total

    def gram(self, chosen: Integers) -> Floats:
        """Return x_i·x_j of the rows chosen."""
        names = chosen if self.index is None else self.index[chosen]
        X = row_block(self.X, slice(0, names.size), names)
        product = X @ X.T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)

    def augmented(self, has_bias: bool) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows (x, 1), or x without a bias, as dense blocks."""
        for block, rows in self._blocks():
            rows = rows.toarray() if sparse.issparse(rows) else rows
            yield block, np.column_stack([rows, np.ones(len(rows))]) if has_bias else rows

    def squared_lengths(self) -> Floats:
        """Return ‖x_i‖² of every row."""
        out = np.empty(self.n_rows)
        square_rows(rows_of(self.X), self.names, out)
        return out

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        for block in blocks_of(self.n_rows, row_length(self.X)):
            yield block, row_block(self.X, block, self.index)

    def _over(self, work: Callable[[slice, Any], Any], n_vectors: int) -> list[Any]:
        """Return ``work(block, rows)`` of every block; blocks depend on X alone."""
        if self.numbers * n_vectors < HEAVY:
            return [work(block, rows) for block, rows in self._blocks()]

        def part(block: slice, stop: Event) -> Any:
            return None if stop.is_set() else work(block, row_block(self.X, block, self.index))

        return in_parallel(part, list(blocks_of(self.n_rows, row_length(self.X))))
