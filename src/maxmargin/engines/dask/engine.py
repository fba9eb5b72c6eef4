"""The Dask engine: X in partitions, on the workers of a cluster."""

from __future__ import annotations

from typing import Any

from ...arrays import Integers
from ...kernels import Kernel
from ..base import Precision
from ..registry import engine_for
from .features import DaskFeatures
from .gram import DaskGram
from .rows import DaskRows

# Rows on which the precision of kernel values is decided.
SEEN_ROWS = 2000


class DaskEngine:
    """X in partitions.

    Parameters
    ----------
    X : DaskRows
    **options
        Those of other engines, which have no meaning here.
    """

    is_few = False
    most_variables = 0

    def __init__(self, X: DaskRows, **options: Any) -> None:
        self.X = X

    def precision(self, kernel: Kernel, tol: float, largest: float = 1.0) -> Precision:
        """Return "fast" where float32 kernel values are precise enough, as seen on some rows.

        The bounds of errors that are followed are those of all rows.
        """
        precision: Precision = engine_for(self.X.head(SEEN_ROWS)).precision(kernel, tol, largest)
        return precision

    def gram(
        self,
        kernel: Kernel,
        index: Integers | None = None,
        precision: Precision = "exact",
        *,
        keep: bool = True,
    ) -> DaskGram:
        """Return K of the rows of X named by ``index``, of which nothing is kept."""
        return DaskGram(kernel, self.X, index, precision)

    def features(self, index: Integers | None = None) -> DaskFeatures:
        """Return the rows of X, which are all of them."""
        if index is not None:
            raise NotImplementedError("rows of a cluster are taken all together")
        return DaskFeatures(self.X)
