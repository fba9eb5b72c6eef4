"""Where kernel values come from: tiles K[rows, columns] of some rows of X."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import Kernel

# Columns of a tile, and rows of X worked on at a time: a tile of float32 is half a megabyte.
TILE_COLUMNS = 512
TILE_ROWS = 256
# The unit roundoff of float64, in which sums are made.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


class Values(ABC):
    """K(x_i, x_j) for the rows of X named by ``index``, in ``dtype``."""

    def __init__(self, kernel: Kernel, X: Any, index: Integers | None, dtype: Any) -> None:
        self.kernel = kernel
        self.X = X
        self.index = index
        self.dtype = np.dtype(dtype)
        self.n_samples = X.shape[0] if index is None else index.size

    @property
    def cost(self) -> float:
        """Multiplications a value, about: what a kept one spares."""
        return float(self.X.shape[1])

    def of(self, rows: Any) -> Any:
        """Return rows of X."""
        return self.X[rows if self.index is None else self.index[rows]]

    def prepare(self, rows: Integers) -> Any:
        """Return what `tile` needs of some rows."""
        return rows

    @abstractmethod
    def tile(self, prepared: Any, part: slice, columns: slice, out: Floats) -> None:
        """Write K[rows[part], columns] to ``out``."""

    def against(self, columns: Integers) -> Any:
        """Return what `block` needs of some columns."""
        return columns

    @abstractmethod
    def block(self, rows: Integers, columns: Any) -> Floats:
        """Return K[rows, columns], the columns made ready by `against`."""

    @property
    def unit(self) -> float:
        """The unit roundoff."""
        return 0.5 * float(np.finfo(self.dtype).eps)

    @property
    def relative(self) -> Floats | None:
        """ρ with Σ_j \\|v_j ΔK_ij\\| ≤ ρ_i Σ_j `weights`_j K_ij, where K ≥ 0; else None."""
        return None

    def weights(self, columns: Integers, v: Floats) -> Floats:
        """Return the weights that go with `relative`."""
        return np.abs(v)

    def bound(self, rows: Any, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors Σ_j \\|v_j ΔK_ij\\| for the rows i."""
        n = self.n_samples if isinstance(rows, slice) else rows.size
        # What the caller computed is not wrong; of other formulas nothing is known.
        return np.full(n, np.inf if self.kernel.elementwise else 0.0)


class Given(Values):
    """The caller's own Gram matrix."""

    cost = 0.0

    def tile(self, prepared: Integers, part: slice, columns: slice, out: Floats) -> None:
        out[:] = self.block(prepared[part], np.arange(columns.start, columns.stop))

    def block(self, rows: Integers, columns: Any) -> Floats:
        if self.index is not None:
            rows, columns = self.index[rows], self.index[columns]
        return np.asarray(self.X[np.ix_(rows, columns)], dtype=self.dtype)


class Opaque(Values):
    """Any function of two sets of rows."""

    cost = np.inf

    def tile(self, prepared: Integers, part: slice, columns: slice, out: Floats) -> None:
        out[:] = self.block(prepared[part], np.arange(columns.start, columns.stop))

    def block(self, rows: Integers, columns: Any) -> Floats:
        x, z = (self.of(some).astype(self.dtype, copy=False) for some in (rows, columns))
        return np.asarray(self.kernel(x, z), dtype=self.dtype)
