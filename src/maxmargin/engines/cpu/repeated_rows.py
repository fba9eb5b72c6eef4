"""K of rows that are named more than once: each value is computed and kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats, Integers
from .gram import Gram, GramView

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RepeatedGram(GramView):
    """K of rows some of which repeat, on the Gram matrix of the different ones.

    A regression has two variables per row of X. Products add up the coefficients of a row first,
    and are then the same for all of its variables.

    Parameters
    ----------
    gram : Gram or GramView
        Of different rows.
    index : ndarray of int of shape (n,)
        The row of ``gram`` of each variable.
    """

    @property
    def cheap(self) -> bool:
        """Whether values may as well be computed anew for rows of another length."""
        return self.gram.cheap

    def product(
        self, rows: Integers, columns: Integers, v: Floats, error: Floats | None = None
    ) -> Floats:
        """Return K[rows, columns] v, and add a bound of its rounding errors to ``error``."""
        different, places = np.unique(self.index[rows], return_inverse=True)
        own, total, _ = self._of_rows(columns, v)
        if error is None:
            return self.gram.product(different, own, total)[places]
        of_rows = np.zeros(different.size)
        sums = self.gram.product(different, own, total, of_rows)
        error += of_rows[places]
        return sums[places]

    def dot(
        self,
        rows: Integers,
        v: Floats,
        keep: NDArray[np.bool_] | None = None,
        error: Floats | None = None,
    ) -> Floats:
        """Return K[:, rows] v, and add a bound of its rounding errors to ``error``."""
        own, total, places = self._of_rows(rows, v)
        kept = None if keep is None else np.bincount(places, keep) > 0
        if error is None:
            return self.gram.dot(own, total, kept)[self.index]
        of_rows = np.zeros(self.gram.n_samples)
        sums = self.gram.dot(own, total, kept, of_rows)
        error += of_rows[self.index]
        return sums[self.index]

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v."""
        own, total, _ = self._of_rows(columns, v)
        return self.gram.bound(self.index[rows], own, total)

    def restrict(self, rows: Integers) -> Gram | GramView:
        """Return some of these rows, none of them repeated where that is so."""
        different, places = np.unique(self.index[rows], return_inverse=True)
        if different.size == rows.size:
            return self.gram.restrict(self.index[rows])
        return RepeatedGram(self.gram.restrict(different), places)

    def _of_rows(self, columns: Integers, v: Floats) -> tuple[Integers, Floats, Integers]:
        """Return different rows, the sum of the coefficients of each, and where columns went."""
        own, places = np.unique(self.index[columns], return_inverse=True)
        return own, np.bincount(places, v).astype(np.float64, copy=False), places
