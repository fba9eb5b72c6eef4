"""The Gram matrix of rows in partitions: its products are computed where the rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats, Integers
from ...kernels import Kernel
from ..base import Claim, Precision
from ..base import Gram as BaseGram
from .dual_part import kernel_sums
from .dual_state import DaskDualState
from .rows import DaskRows

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .checks import Block


class DaskGram:
    """K = (K(x_i, x_j)) of some rows of X in partitions; none of it is kept.

    Parameters
    ----------
    kernel : Kernel
    X : DaskRows
    index : ndarray of int, optional
        The rows that take part, all by default.
    precision : str
    """

    def __init__(
        self, kernel: Kernel, X: DaskRows, index: Integers | None, precision: Precision
    ) -> None:
        self.kernel, self.X, self.precision = kernel, X, precision
        self.index = np.arange(X.shape[0]) if index is None else index
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if precision == "fast" else np.float64)

    def dual_state(
        self,
        problem: DualProblem,
        alpha: Floats,
        exact: BaseGram | None = None,
        claim: Claim | None = None,
    ) -> DaskDualState:
        """Return the state of a problem at a feasible α; claims are not used."""
        return DaskDualState(problem, self, alpha, has_exact=exact is not None)

    def dot(self, rows: Integers, v: Floats) -> Floats:
        """Return K[:, rows] v in float64."""
        different, places = np.unique(self.index[rows], return_inverse=True)
        by_row = np.bincount(places, v).astype(np.float64, copy=False)
        Z = [self.X.stacked(different)] * len(self.X.blocks)
        sums: Floats = self.X.cluster.round(
            _sums, np.concatenate, self.X.blocks, Z, common=(by_row, self.kernel, self.precision)
        )
        return sums[self.index]


def _sums(block: Block, Z: Any, v: Floats, kernel: Kernel, precision: Precision) -> Floats:
    return kernel_sums(kernel, block.X, Z, v, precision)[0]
