"""Rows of X in blocks, for data larger than the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from scipy import sparse

from ..arrays import Container, Integers, Matrix, MatrixLike, container


class RowBlocks:
    """X as blocks of consecutive rows, of which one is in memory at a time.

    A fit reads the blocks several times. It stores a few numbers per row, and copies of the rows
    near the margin.

    Parameters
    ----------
    source : sequence of blocks, or callable that returns an iterator over them
        Blocks are arrays (memory-mapped ones too) or CSR matrices, all of them of one kind and of
        the same number of columns. A generator can be read only once: pass the function that
        makes it.

    Attributes
    ----------
    shape : tuple of int
        The number of rows of all blocks, and of columns.
    sizes : list of int
        The number of rows of each block.
    sparse : bool
        Whether the blocks are CSR matrices.

    See Also
    --------
    LinearSVC : A linear machine that can be fitted to row blocks.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> blocks = mm.RowBlocks([X[:4], X[4:]])
    >>> blocks.shape
    (6, 2)
    >>> mm.LinearSVC(C=10.0, loss="hinge").fit(blocks, y).coef_.round(4)
    array([[-0.3333,  0.2   ]])
    """

    random_access = False
    on_device = False

    def __init__(self, source: Sequence[MatrixLike] | Callable[[], Iterable[MatrixLike]]) -> None:
        if not callable(source) and iter(source) is iter(source):
            raise TypeError(
                "source must be a sequence or a function that returns an iterator, as blocks are "
                f"read more than once, got {type(source).__name__}: pass the function that makes "
                "the iterator."
            )
        self._source = source
        kinds = {(sparse.issparse(block), block.shape[1]) for block in self._raw()}
        if len(kinds) != 1:
            found = sorted(f"{'CSR' if is_sparse else 'dense'} × {d}" for is_sparse, d in kinds)
            raise ValueError(f"Blocks must be of one kind and width, got {found or 'no block'}.")
        ((self.sparse, d),) = kinds
        self.sizes = [int(block.shape[0]) for block in self._raw()]
        self.shape = sum(self.sizes), int(d)

    def __iter__(self) -> Iterator[Matrix]:
        """Yield the blocks as float32 or float64 arrays, or canonical CSR matrices."""
        found = 0
        for block in self._raw():
            found += block.shape[0]
            if block.shape[1] != self.shape[1] or found > self.shape[0]:
                break
            yield _as_numbers(block)
        else:
            if found == self.shape[0]:
                return
        raise ValueError(
            f"Blocks must be the same in every pass, of shape {self.shape} in all, got others. "
            "A callable must return the same blocks each time."
        )

    def __getitem__(self, rows: Integers) -> Matrix:
        """Return the rows of some indices, in increasing order, as one array or CSR matrix."""
        parts, start = [], 0
        for block in self:
            stop = start + block.shape[0]
            low, high = np.searchsorted(rows, [start, stop])
            if high > low:
                parts.append(block[rows[low:high] - start])
            start = stop
        if not parts:
            return (
                sparse.csr_matrix((0, self.shape[1]))
                if self.sparse
                else np.empty((0, self.shape[1]))
            )
        return sparse.vstack(parts, format="csr") if self.sparse else np.concatenate(parts)

    def __len__(self) -> int:
        return self.shape[0]

    def pieces(self) -> Iterator[tuple[int, Matrix]]:
        """Yield the blocks, each with the place of its first row.

        Yields
        ------
        start : int
            Place of the first row.
        block : array or CSR matrix
            Consecutive rows.
        """
        start = 0
        for block in self:
            yield start, block
            start += block.shape[0]

    def stored(self) -> int:
        """Return how many numbers are stored in all blocks.

        Returns
        -------
        count : int
            Stored numbers.
        """
        if not self.sparse:
            return self.shape[0] * self.shape[1]
        return sum(int(block.nnz) for block in self)

    def _raw(self) -> Iterator[Matrix]:
        blocks = self._source() if callable(self._source) else self._source
        for block in blocks:
            rows = block if sparse.issparse(block) else np.asarray(block)
            if rows.ndim != 2:
                raise ValueError(
                    f"Blocks must have two dimensions, rows and columns, got shape {rows.shape}."
                )
            yield rows


@container.register
def _(X: RowBlocks) -> Container:
    return X


def _as_numbers(block: Matrix) -> Matrix:
    if block.dtype not in (np.float32, np.float64):
        block = block.astype(np.float64)
    if sparse.issparse(block):
        block = block.tocsr()
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
    return block
