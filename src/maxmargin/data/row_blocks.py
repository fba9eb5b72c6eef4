"""Rows of X that come in blocks: data larger than the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse


class RowBlocks:
    """X as blocks of consecutive rows, of which one is in memory at a time.

    A fit goes over the blocks several times. It keeps a few numbers a row, and copies of the rows
    near the margin.

    Parameters
    ----------
    source : sequence of blocks, or callable that returns an iterator over them
        Blocks are arrays (memory-mapped ones too) or CSR matrices, all of them of one kind and of
        the same number of columns. A generator cannot be gone over twice: pass the function that
        makes it.

    Attributes
    ----------
    shape : tuple of int
        Rows of all blocks, and columns.

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

    def __init__(self, source: Sequence[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(source) and iter(source) is iter(source):
            raise TypeError(
                "RowBlocks goes over its blocks more than once: pass a sequence, or the function "
                "that makes the iterator instead of the iterator."
            )
        self._source = source
        kinds = {(sparse.issparse(block), block.shape[1]) for block in self._raw()}
        if len(kinds) != 1:
            found = sorted(f"{'CSR' if is_sparse else 'dense'} × {d}" for is_sparse, d in kinds)
            raise ValueError(
                f"RowBlocks needs blocks of one kind and width, got {found or 'no block'}."
            )
        ((self.sparse, d),) = kinds
        self.sizes = [int(block.shape[0]) for block in self._raw()]
        self.shape = sum(self.sizes), int(d)

    def __iter__(self) -> Iterator[Any]:
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
        raise ValueError(f"Blocks changed between passes: no longer {self.shape} in all.")

    def __getitem__(self, rows: Any) -> Any:
        """Return the named rows, in increasing order, as one array or CSR matrix."""
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

    def _raw(self) -> Iterator[Any]:
        blocks = self._source() if callable(self._source) else self._source
        for block in blocks:
            rows = block if sparse.issparse(block) else np.asarray(block)
            if rows.ndim != 2:
                raise ValueError(
                    f"A block of shape {rows.shape}: blocks are rows of X, of two dimensions."
                )
            yield rows


def _as_numbers(block: Any) -> Any:
    if block.dtype not in (np.float32, np.float64):
        block = block.astype(np.float64)
    if sparse.issparse(block):
        block = block.tocsr()
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
    return block
