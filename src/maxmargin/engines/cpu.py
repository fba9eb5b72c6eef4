"""The Gram matrix on the CPU: computed in blocks by matrix products, kept where memory allows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Event
from typing import Any

import numpy as np

from ..kernels import Kernel, Precomputed
from ..rows import compiled
from ..samples import Floats, Integers
from ..threads import in_parallel

# Kernel values computed at a time: 16 MiB in float32.
BLOCK = 1 << 22
# Side of the tiles that a kept Gram matrix is made of: they fit a core's cache.
TILE = 512
# The share of the free memory that a kept Gram matrix may take.
SHARE = 0.25


class Gram:
    """K = (K(x_i, x_j)) of some rows of X: the narrow waist between solvers and engines.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features), or the square Gram matrix itself for
        a precomputed kernel. float32 rows give float32 blocks; sums are made in float64.
    index : ndarray of int, optional
        The rows that take part, all by default.
    budget : int, optional
        Bytes that K may take to be kept whole, a quarter of the free memory by default; beyond it
        blocks are computed each time they are asked for.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> gram = Gram(Linear(), np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> gram.dot(np.array([1]), np.array([2.0]))
    array([ 2., 10.])
    """

    def __init__(
        self, kernel: Kernel, X: Any, index: Integers | None = None, budget: int | None = None
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.index = np.arange(X.shape[0]) if index is None else index
        size = self.index.size**2 * X.dtype.itemsize
        self._keep = size <= (free_memory() * SHARE if budget is None else budget)
        # A Gram matrix that the caller computed is there already.
        given = isinstance(kernel, Precomputed) and index is None
        self._keep |= given
        self._whole: Any = X if given else None
        self._diagonal: Any = None

    @property
    def n_samples(self) -> int:
        """Rows of K."""
        return self.index.size

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i) in float64."""
        if self._diagonal is None:
            self._diagonal = self.kernel.diagonal(self.X)[self.index]
        return self._diagonal

    def restrict(self, rows: Integers) -> Gram:
        """Return the Gram matrix of some of these rows."""
        return Gram(self.kernel, self.X, self.index[rows])

    def block(self, rows: Integers) -> Floats:
        """Return K[rows, rows]."""
        if self._hold():
            first = rows[0] if rows.size else 0
            if (rows == np.arange(first, first + rows.size)).all():
                return self._whole[first : first + rows.size, first : first + rows.size].copy()
            return self._whole[np.ix_(rows, rows)]
        K = self._compute(rows, rows)
        if self.kernel.elementwise:  # else K may belong to the caller
            np.fill_diagonal(K, self.diagonal()[rows])
        return K

    def dot(self, rows: Integers, v: Floats) -> Floats:
        """Return K[:, rows] v in float64."""
        total = np.zeros(self.n_samples)
        if self._hold():
            # K is symmetric, and its rows lie in one piece.
            add_rows(self._whole, rows, v, total)
            return total
        for some in _pieces(self.n_samples, rows.size):
            K = self._compute(np.arange(some.start, some.stop), rows)
            total[some] = K.astype(np.float64, copy=False) @ v
        return total

    def _hold(self) -> bool:
        """Whether K is kept whole; computes it, on all cores, when that is first asked."""
        if self._keep and self._whole is None:
            self._whole = np.empty((self.n_samples, self.n_samples), dtype=self.X.dtype)
            edges = range(0, self.n_samples, TILE)
            corners = [(i, j) for i in edges for j in edges if i <= j]
            in_parallel(self._fill, corners, alone=not self.kernel.elementwise)
            np.fill_diagonal(self._whole, self.diagonal())
        return self._keep

    def _fill(self, corner: tuple[int, int], stop: Event) -> None:
        """Compute one tile of K on or above the diagonal, and mirror it."""
        if stop.is_set():
            return
        rows, columns = (np.arange(k, min(k + TILE, self.n_samples)) for k in corner)
        tile = self._compute(rows, columns)
        self._whole[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = tile
        self._whole[columns[0] : columns[-1] + 1, rows[0] : rows[-1] + 1] = tile.T

    def _compute(self, rows: Integers, columns: Integers) -> Floats:
        rows, columns = self.index[rows], self.index[columns]
        if isinstance(self.kernel, Precomputed):
            return self.X[np.ix_(rows, columns)]
        return self.kernel(self.X[rows], self.X[columns])


def _pieces(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows that make blocks of about ``BLOCK`` values each."""
    step = max(1, BLOCK // max(n_columns, 1))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def free_memory() -> int:
    """Bytes of memory that are free now (4 GiB where the system does not say)."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30


@compiled
def add_rows(K, rows, v, total):
    """Do total ← total + Σ_k v_k K[rows_k], in strips that stay in the cache."""
    for start in range(0, total.size, 2048):
        part = total[start : start + 2048]
        for k in range(rows.size):
            values = K[rows[k]][start : start + 2048]
            for j in range(part.size):
                part[j] += v[k] * values[j]
