"""K of pairs of classes, put together from blocks that many pairs share."""

from __future__ import annotations

import numpy as np

from ...arrays import Floats, Integers
from ...runtime.row_access import compiled
from ...runtime.simd import square
from .gram import Gram, GramView


class ClassBlocks:
    """K within each class, computed once for all pairs.

    Parameters
    ----------
    source : Gram
        K of all rows.
    codes : ndarray of int
        The class of every row.
    """

    def __init__(self, source: Gram, codes: Integers) -> None:
        self.source, self.codes = source, codes
        self._within: dict[int, tuple[Integers, Floats]] = {}

    def whole(self, index: Integers) -> Floats:
        """Return K of the rows of one class followed by others."""
        differs = self.codes[index] != self.codes[index[0]]
        n_first = int(differs.argmax()) if differs.any() else index.size
        first, second = index[:n_first], index[n_first:]
        between = np.ascontiguousarray(self.source.block(first, second))
        K: Floats = square(index.size, self.source.dtype)
        assemble(self._block(first), between, self._block(second), K)
        return K

    def _block(self, rows: Integers) -> Floats:
        """Return K of rows; that of a whole class is kept, for every pair needs it."""
        label = int(self.codes[rows[0]]) if rows.size else -1
        if label in self._within and np.array_equal(self._within[label][0], rows):
            return self._within[label][1]
        K: Floats = np.ascontiguousarray(self.source.block(rows))
        if rows.size and (self.codes[rows] == label).all():
            self._within[label] = rows, K
        return K


class PairGram(Gram):
    """K of some rows of a source, in classes: all of it is put together from blocks."""

    def __init__(self, blocks: ClassBlocks, index: Integers) -> None:
        source = blocks.source
        super().__init__(source.kernel, source.X, index, source.budget, source.dtype)
        self._blocks = blocks

    def whole(self) -> Floats:
        """Return all of K, and keep it."""
        if self._whole is None:
            self._whole, self._padded = self._blocks.whole(self.index), True
        return self._whole

    def bound(self, rows: Integers | slice, columns: Integers, v: Floats) -> Floats:
        """Return a bound of the rounding errors of K[rows, columns] v, as of the source."""
        if self._whole is None:
            return super().bound(rows, columns, v)
        return GramView(self._blocks.source, self.index).bound(rows, columns, v)


@compiled
def assemble(first, between, second, K):
    """Do K ← [first, between; betweenᵀ, second], in squares."""
    n, m = between.shape
    for i in range(n):
        row, own, other = K[i], first[i], between[i]
        for j in range(n):
            row[j] = own[j]
        for j in range(m):
            row[n + j] = other[j]
    for j in range(m):
        row, own = K[n + j], second[j]
        for i in range(m):
            row[n + i] = own[i]
    for top in range(0, n, 32):
        bottom = min(top + 32, n)
        for left in range(0, m, 32):
            for j in range(left, min(left + 32, m)):
                for i in range(top, bottom):
                    K[n + j, i] = between[i, j]
