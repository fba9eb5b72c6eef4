"""Kernel values of few dense rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ...kernels.products import finite
from .dense_products import middle
from .products import Products


class FewRows(Products):
    """⟨x,z⟩ of few rows by NumPy, which takes no longer there, and nothing has to be compiled."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        super().__init__(kernel, X, index, dtype)
        self.formula = None
        rows = self.of(slice(None)).astype(np.float64)
        if kernel.shift_invariant:
            rows -= middle(rows)
        self._rows = np.ascontiguousarray(rows, dtype=self.dtype)
        self.squares = np.einsum("ij,ij->i", self._rows, self._rows)
        self.terms = X.shape[1]

    def left(self, rows: Integers | None = None) -> tuple[Any, ...]:
        if rows is None:
            return self._rows, self.squares
        return self._rows[rows], self.squares[rows]

    def right(self, rows: Integers | None = None) -> tuple[Any, ...]:
        return self.left(rows)

    def _strip(self, columns: slice) -> tuple[Any, ...]:
        return self._rows[columns], self.squares[columns]

    def _fill(self, left: tuple[Any, ...], right: tuple[Any, ...], out: Floats) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.kernel.from_products(left[0] @ right[0].T, left[1], right[1])
            out[:] = finite(values, self.kernel)
