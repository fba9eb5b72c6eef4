"""The Dask engine: X in partitions, on the workers of a cluster."""

from __future__ import annotations

from typing import Any

from ...arrays import Integers
from .features import DaskFeatures
from .rows import DaskRows


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

    def features(self, index: Integers | None = None) -> DaskFeatures:
        """Return the rows of X, which are all of them."""
        if index is not None:
            raise NotImplementedError("rows of a cluster are taken all together")
        return DaskFeatures(self.X)
