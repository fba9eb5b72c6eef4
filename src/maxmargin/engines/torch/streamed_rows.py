"""X in the memory of the host or on disk, which passes through a device block by block.

While the device works on one block, the next is copied to it: from pinned memory, in a stream of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse

from ...arrays import Container, Floats, Matrix, container
from .device_rows import DeviceRows, as_tensor
from .device_vector import fetch, on_device
from .memory import bytes_to_use
from .row_products import CsrProducts, DenseProducts, Products, products_of

Tensor = Any


@dataclass(frozen=True)
class Tuning:
    """Sizes of what is copied at a time."""

    block_bytes: int = 1 << 28
    # The share of the memory that may be used up to which X is held whole: vectors, and the rows
    # near the kink, need some as well.
    whole_share: float = 0.7


TUNING = Tuning()


class StreamedRows:
    """X of the host, for a fit on a device that has no room for it.

    Parameters
    ----------
    source : RowBlocks, array or CSR matrix
    device : torch.device
    """

    random_access = False
    on_device = True

    def __init__(self, source: Matrix, device: Any) -> None:
        self.host, self.device = source, device
        self.shape: tuple[int, int] = tuple(source.shape)
        self.sparse = container(source).sparse

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Matrix:
        """Return some rows in the memory of the host; a slice is one of the first block."""
        if isinstance(rows, slice):
            return next(self.pieces())[1][rows]
        return self.host[rows]

    def pieces(self) -> Iterator[tuple[int, Matrix]]:
        """Yield blocks in the memory of the host."""
        return container(self.host).pieces()

    def stored(self) -> int:
        """Return how many numbers are stored."""
        return container(self.host).stored()

    def vector(self, values: Any) -> Tensor:
        """Return a number per row, or one for all, as a float64 tensor on the device."""
        return on_device(values, self.device)

    def fetch(self, *tensors: Tensor) -> Floats:
        """Return the numbers of tensors as one vector in the memory of the host."""
        return fetch(*tensors)

    def device_blocks(self) -> Iterator[tuple[int, Tensor]]:
        """Yield blocks on the device, each with the place of its first row.

        A block is overwritten soon after the next one was asked for.
        """
        if self.sparse:
            for start, piece in self._parts():
                yield start, DeviceRows.upload(piece, self.device).tensor
        elif self.device.type != "cuda":
            for start, piece in self._parts():
                yield start, as_tensor(piece).to(self.device)
        else:
            yield from self._copied_ahead()

    def _parts(self) -> Iterator[tuple[int, Matrix]]:
        """Yield consecutive rows of at most so many bytes."""
        for start, piece in self.pieces():
            data = piece.data if sparse.issparse(piece) else piece
            per_row = max(1, data.nbytes // max(piece.shape[0], 1))
            step = max(1, TUNING.block_bytes // per_row)
            for first in range(0, piece.shape[0], step):
                yield start + first, piece[first : first + step]

    def _copied_ahead(self) -> Iterator[tuple[int, Tensor]]:
        copies, work = torch.cuda.Stream(self.device), torch.cuda.current_stream(self.device)
        slots = [_Slot(self.device), _Slot(self.device)]
        ready: tuple[int, Tensor, _Slot] | None = None
        for k, (start, piece) in enumerate(self._parts()):
            block = slots[k % 2].load(piece, copies)
            if ready is not None:
                yield from self._handed_over(ready, work)
            ready = start, block, slots[k % 2]
        if ready is not None:
            yield from self._handed_over(ready, work)
        work.wait_stream(copies)

    def _handed_over(
        self, ready: tuple[int, Tensor, _Slot], work: Any
    ) -> Iterator[tuple[int, Tensor]]:
        start, block, slot = ready
        work.wait_event(slot.copied)
        yield start, block
        slot.used.record(work)


class _Slot:
    """A pinned buffer, its copy on the device, and when either may be overwritten."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.pinned: Tensor | None = None
        self.room: Tensor | None = None
        self.copied, self.used = torch.cuda.Event(), torch.cuda.Event()

    def load(self, piece: Floats, copies: Any) -> Tensor:
        """Begin to copy rows to the device; return where they will be."""
        values = as_tensor(piece)
        size = values.numel()
        self.copied.synchronize()
        if self.pinned is None or self.pinned.numel() < size or self.pinned.dtype != values.dtype:
            self.pinned = torch.empty(size, dtype=values.dtype, pin_memory=True)
            # What was there may still be read.
            self.used.synchronize()
            self.room = torch.empty(size, dtype=values.dtype, device=self.device)
        assert self.room is not None
        self.pinned[:size].view(values.shape).copy_(values)
        with torch.cuda.stream(copies):
            copies.wait_event(self.used)
            self.room[:size].copy_(self.pinned[:size], non_blocking=True)
            self.copied.record(copies)
        return self.room[:size].view(values.shape)


@container.register
def _(X: StreamedRows) -> Container:
    return X


def fits(X: Matrix, device: Any) -> bool:
    """Return whether an array or a CSR matrix is to be held whole in the memory of a device."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return sum(part.nbytes for part in parts) <= TUNING.whole_share * bytes_to_use(device)


class StreamedProducts:
    """Products with rows that pass through the device."""

    def __init__(self, X: StreamedRows) -> None:
        self.X, self.stored = X, X.stored()
        self.n_rows, self.n_columns = X.shape

    def scores(self, plane: Tensor, out: Tensor) -> None:
        """Fill in w·x_i + b of every row; ``plane`` is (w, b)."""
        for some, rows in self._blocks():
            rows.scores(plane, out[some])

    def combine(self, c: Tensor) -> Tensor:
        """Return Xᵀc."""
        return self._sum(lambda some, rows: rows.combine(c[some]), c.new_zeros(self.n_columns))

    def squared_columns(self, c: Tensor) -> Tensor:
        """Return Σ c_i x_ij² of every column j."""
        total = c.new_zeros(self.n_columns)
        return self._sum(lambda some, rows: rows.squared_columns(c[some]), total)

    def moments(self, c: Any, rows: Tensor) -> Tensor:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over some rows."""
        size, is_one = self.n_columns + 1, isinstance(c, float) or c.numel() == 1
        total = torch.zeros(size, size, dtype=torch.float64, device=self.X.device)
        for chosen, places, block in self._chosen(rows):
            total += block.moments(c if is_one else c[chosen], places)
        return total

    def take(self, rows: Tensor) -> Products:
        """Return some of the rows: a copy that stays on the device."""
        parts = [block.take(places) for _, places, block in self._chosen(rows)]
        if not self.X.sparse:
            nothing = rows.new_empty(0, self.n_columns, dtype=torch.float64)
            blocks = [part.X for part in parts if isinstance(part, DenseProducts)]
            return DenseProducts(torch.cat(blocks) if blocks else nothing)
        if parts:
            return CsrProducts.joined([part for part in parts if isinstance(part, CsrProducts)])
        starts, values = rows.new_zeros(1), rows.new_empty(0, dtype=torch.float64)
        return CsrProducts(starts, rows.new_empty(0), values, self.n_columns)

    def float64_rows(self, rows: Tensor | slice) -> Tensor:
        """Return some rows as a dense float64 array."""
        if isinstance(rows, slice):
            rows = torch.arange(rows.start, rows.stop, device=self.X.device)
        return self.take(rows).float64_rows(slice(0, int(rows.numel())))

    def augmented(self, rows: Tensor, root: Tensor | None) -> Tensor:
        """Return r_i (x_i, 1) of some rows in float64."""
        everything = torch.arange(rows.numel(), device=self.X.device)
        return self.take(rows).augmented(everything, root)

    def _blocks(self) -> Iterator[tuple[slice, Products]]:
        for start, block in self.X.device_blocks():
            yield slice(start, start + block.shape[0]), products_of(block)

    def _sum(self, part: Any, total: Tensor) -> Tensor:
        for some, rows in self._blocks():
            total += part(some, rows)
        return total

    def _chosen(self, rows: Tensor) -> Iterator[tuple[slice, Tensor, Products]]:
        """Yield which of some rows a block has, in increasing order, and their places in it."""
        host = rows.cpu().numpy()
        for some, block in self._blocks():
            low, high = np.searchsorted(host, [some.start, some.stop])
            if high > low:
                chosen = slice(int(low), int(high))
                yield chosen, rows[chosen] - some.start, block
