"""Sums over the rows of X that products with the normalised samples are made of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Matrix, blocks_of, linear_scores, row_block, row_length


class RowSums(Protocol):
    """The sums in each step of a separating algorithm: an engine's features, or `BlockSums`."""

    def scores(self, w: Floats, b: Floats) -> Floats:
        """Return x_i·w_k + b_k of every row and weight vector: (n, n_vectors)."""

    def combine(self, c: Floats) -> Floats:
        """Return Σ_i c_ik x_i for coefficients of shape (n, n_vectors): (n_vectors, d)."""


class BlockSums:
    """Plain sums over blocks of rows in float64, which certificates use.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    index : ndarray of int of shape (n,), optional
        The rows of X to sum over; all of them by default.
    """

    def __init__(self, X: Matrix, index: Integers | None = None) -> None:
        self.X, self.index = X, index
        self.n_rows = X.shape[0] if index is None else index.size

    def scores(self, w: Floats, b: Floats) -> Floats:
        """Return x_i·w_k + b_k of every row and weight vector: (n, n_vectors)."""
        scores = linear_scores(self.X, w, self.index)
        scores += b
        return scores

    def magnitudes(self, w: Floats, b: Floats) -> Floats:
        """Return |x_i|·|w_k| + |b_k| of every row and weight vector: (n, n_vectors)."""
        return linear_scores(self.X, w, self.index, absolute=True) + np.abs(b)

    def combine(self, c: Floats) -> Floats:
        """Return Σ_i c_ik x_i for coefficients of shape (n, n_vectors): (n_vectors, d)."""
        total = np.zeros((c.shape[1], self.X.shape[1]))
        for block, rows in self._blocks():
            total += (rows.T @ c[block]).T
        return total

    @cached_property
    def squared_lengths(self) -> Floats:
        """‖x_i‖² of every row."""
        lengths = np.empty(self.n_rows)
        for block, rows in self._blocks():
            if sparse.issparse(rows):
                lengths[block] = _squares(rows) @ np.ones(rows.shape[1])
            else:
                lengths[block] = np.einsum("ij,ij->i", rows, rows)
        return lengths

    def squared_columns(self, c: Floats) -> Floats:
        """Return Σ_i c_i x_ij² of every feature j."""
        total = np.zeros(self.X.shape[1])
        for block, rows in self._blocks():
            total += _squares(rows).T @ c[block]
        return total

    def _blocks(self) -> Iterator[tuple[slice, Matrix]]:
        for block in blocks_of(self.n_rows, row_length(self.X)):
            yield block, row_block(self.X, block, self.index)


def _squares(rows: Matrix) -> Matrix:
    if not sparse.issparse(rows):
        return rows * rows
    return sparse.csr_matrix((rows.data**2, rows.indices, rows.indptr), shape=rows.shape)
