"""The Gram matrix on the CPU: computed in blocks by matrix products, kept where memory allows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..kernels import Kernel, Precomputed
from ..samples import Floats, Integers

# Kernel values computed at a time: 16 MiB in float32.
BLOCK = 1 << 22
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
        self._whole: Any = None

    @property
    def n_samples(self) -> int:
        """Rows of K."""
        return self.index.size

    def diagonal(self) -> Floats:
        """Return K(x_i, x_i) in float64."""
        return self.kernel.diagonal(self.X)[self.index]

    def restrict(self, rows: Integers) -> Gram:
        """Return the Gram matrix of some of these rows."""
        return Gram(self.kernel, self.X, self.index[rows])

    def block(self, rows: Integers) -> Floats:
        """Return K[rows, rows]."""
        return self._entries(rows, rows)

    def dot(self, rows: Integers, v: Floats) -> Floats:
        """Return K[:, rows] v in float64."""
        total = np.empty(self.n_samples)
        step = max(1, BLOCK // max(rows.size, 1))
        for first in range(0, self.n_samples, step):
            block = np.arange(first, min(first + step, self.n_samples))
            total[block] = self._entries(block, rows).astype(np.float64, copy=False) @ v
        return total

    def _entries(self, rows: Integers, columns: Integers) -> Floats:
        if self._keep and self._whole is None:
            self._whole = self._compute(np.arange(self.n_samples), np.arange(self.n_samples))
        if self._whole is not None:
            return self._whole[np.ix_(rows, columns)]
        return self._compute(rows, columns)

    def _compute(self, rows: Integers, columns: Integers) -> Floats:
        rows, columns = self.index[rows], self.index[columns]
        if isinstance(self.kernel, Precomputed):
            return self.X[np.ix_(rows, columns)]
        return self.kernel(self.X[rows], self.X[columns])


def free_memory() -> int:
    """Bytes of memory that are free now (4 GiB where the system does not say)."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
