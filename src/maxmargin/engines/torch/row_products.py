"""Products with the rows of X on a device, in float64 whatever the type of X.

A dense X in float32 is converted block by block; of a CSR matrix the products of stored numbers are
added up segment by segment. Sums have the same order every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from . import row_kernels
from .triton_kernels import has_triton

Tensor = Any


@dataclass(frozen=True)
class Tuning:
    """Sizes of blocks."""

    block_numbers: int = 1 << 25  # of X, in float64 at a time


TUNING = Tuning()


class Products(Protocol):
    """Products with some rows of X; vectors are float64 tensors on the device of X."""

    n_rows: int
    n_columns: int
    stored: int

    def scores(self, plane: Tensor, out: Tensor) -> None:
        """Fill in w·x_i + b of every row; ``plane`` is (w, b)."""

    def combine(self, c: Tensor) -> Tensor:
        """Return Xᵀc."""

    def squared_columns(self, c: Tensor) -> Tensor:
        """Return Σ c_i x_ij² of every column j."""

    def moments(self, c: Any, rows: Tensor) -> Tensor:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over some rows, for one c per row or for all."""

    def take(self, rows: Tensor) -> Products:
        """Return some of the rows: a copy."""

    def float64_rows(self, rows: Tensor | slice) -> Tensor:
        """Return some rows as a dense float64 array."""

    def augmented(self, rows: Tensor, root: Tensor | None) -> Tensor:
        """Return r_i (x_i, 1) of some rows in float64, for one r per row; 1 by default."""


def products_of(tensor: Tensor) -> Products:
    """Return the products with a tensor, dense or CSR."""
    if tensor.layout is not torch.sparse_csr:
        return DenseProducts(tensor)
    parts = tensor.crow_indices().long(), tensor.col_indices(), tensor.values()
    return CsrProducts(*parts, int(tensor.shape[1]))


def moments_of(rows: Products, c: Any, chosen: Tensor) -> Tensor:
    """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ, block by block."""
    size = rows.n_columns + 1
    is_one = isinstance(c, float) or c.numel() == 1
    root = None if is_one else c.sqrt()
    total: Tensor | None = None
    for some in blocks(int(chosen.numel()), size):
        A = rows.augmented(chosen[some], None if root is None else root[some])
        total = A.T @ A if total is None else total.addmm_(A.T, A)
    if total is None:
        total = torch.zeros(size, size, dtype=torch.float64, device=chosen.device)
    return total.mul_(c) if is_one else total


def with_ones(x: Tensor, root: Tensor | None) -> Tensor:
    """Return r_i (x_i, 1)."""
    A = torch.cat([x, x.new_ones(x.shape[0], 1)], dim=1)
    return A if root is None else A * root[:, None]


def blocks(n_rows: int, per_row: float) -> Iterator[slice]:
    """Yield slices of rows that hold about ``block_numbers`` numbers."""
    step = max(1, int(TUNING.block_numbers / max(per_row, 1.0)))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


class DenseProducts:
    """A dense X."""

    def __init__(self, X: Tensor) -> None:
        self.X = X
        self.n_rows, self.n_columns = (int(size) for size in X.shape)
        self.stored = self.n_rows * self.n_columns
        self._has_kernels = has_triton(X) and X.is_contiguous()

    def scores(self, plane: Tensor, out: Tensor) -> None:
        """Fill in w·x_i + b of every row; ``plane`` is (w, b)."""
        if self._has_kernels:
            row_kernels.row_scores(self.X, plane, out)
            return
        for some in self._blocks():
            torch.mv(self.X[some].double(), plane[:-1], out=out[some])
        out += plane[-1]

    def combine(self, c: Tensor) -> Tensor:
        """Return Xᵀc."""
        if self._has_kernels:
            return row_kernels.column_sums(self.X, c)
        total = c.new_zeros(self.n_columns)
        for some in self._blocks():
            total += self.X[some].double().T @ c[some]
        return total

    def squared_columns(self, c: Tensor) -> Tensor:
        """Return Σ c_i x_ij² of every column j."""
        total = c.new_zeros(self.n_columns)
        for some in self._blocks():
            total += self.X[some].double().square().T @ c[some]
        return total

    def moments(self, c: Any, rows: Tensor) -> Tensor:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over some rows."""
        return moments_of(self, c, rows)

    def take(self, rows: Tensor) -> DenseProducts:
        """Return some of the rows: a copy."""
        return DenseProducts(self.X.index_select(0, rows))

    def float64_rows(self, rows: Tensor | slice) -> Tensor:
        """Return some rows in float64."""
        X = self.X[rows] if isinstance(rows, slice) else self.X.index_select(0, rows)
        return X.double()

    def augmented(self, rows: Tensor, root: Tensor | None) -> Tensor:
        """Return r_i (x_i, 1) of some rows in float64."""
        if self._has_kernels:
            return row_kernels.gathered(self.X, rows, root)
        return with_ones(self.float64_rows(rows), root)

    def _blocks(self) -> Iterator[slice]:
        return blocks(self.n_rows, self.n_columns)


class CsrProducts:
    """A CSR matrix; Xᵀc is a sum over the columns, for which the same numbers are sorted once."""

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor, n_columns: int) -> None:
        self.n_rows, self.n_columns = int(starts.numel()) - 1, n_columns
        self.starts, self.columns, self.values = starts, columns, values
        self.stored = int(values.numel())
        self._by_column: tuple[Tensor, Tensor, Tensor] | None = None

    @classmethod
    def joined(cls, parts: list[CsrProducts]) -> CsrProducts:
        """Return the rows of several matrices as one."""
        offsets = np.cumsum([0, *(part.stored for part in parts)])
        starts = [part.starts[:-1] + int(k) for part, k in zip(parts, offsets, strict=False)]
        end = parts[0].starts.new_full((1,), int(offsets[-1]))
        columns = torch.cat([part.columns for part in parts])
        values = torch.cat([part.values for part in parts])
        return cls(torch.cat([*starts, end]), columns, values, parts[0].n_columns)

    def scores(self, plane: Tensor, out: Tensor) -> None:
        """Fill in w·x_i + b of every row; ``plane`` is (w, b)."""
        out.copy_(_segment_sums(self.values, self.columns, plane, self.starts))
        out += plane[-1]

    def combine(self, c: Tensor) -> Tensor:
        """Return Xᵀc."""
        values, rows, starts = self._sorted()
        return _segment_sums(values, rows, c, starts)

    def squared_columns(self, c: Tensor) -> Tensor:
        """Return Σ c_i x_ij² of every column j."""
        values, rows, starts = self._sorted()
        return _segment_sums(values, rows, c, starts, squared=True)

    def moments(self, c: Any, rows: Tensor) -> Tensor:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over some rows."""
        return moments_of(self, c, rows)

    def take(self, rows: Tensor) -> CsrProducts:
        """Return some of the rows: a copy."""
        starts, places = self._places(rows)
        return CsrProducts(starts, self.columns[places], self.values[places], self.n_columns)

    def float64_rows(self, rows: Tensor | slice) -> Tensor:
        """Return some rows as a dense float64 array."""
        if isinstance(rows, slice):
            rows = torch.arange(rows.start, rows.stop, device=self.values.device)
        starts, places = self._places(rows)
        n = int(rows.numel())
        of_rows = torch.repeat_interleave(
            torch.arange(n, device=rows.device), starts.diff(), output_size=int(places.numel())
        )
        out = torch.zeros(n, self.n_columns, dtype=torch.float64, device=rows.device)
        out[of_rows, self.columns[places].long()] = self.values[places].double()
        return out

    def augmented(self, rows: Tensor, root: Tensor | None) -> Tensor:
        """Return r_i (x_i, 1) of some rows in float64."""
        return with_ones(self.float64_rows(rows), root)

    def _places(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return where each of some rows begins among their numbers, and where these are stored."""
        first = self.starts[rows]
        sizes = self.starts[rows + 1] - first
        starts = torch.zeros(rows.numel() + 1, dtype=torch.int64, device=rows.device)
        torch.cumsum(sizes, 0, out=starts[1:])
        n = int(starts[-1])
        offset = torch.repeat_interleave(first - starts[:-1], sizes, output_size=n)
        return starts, offset + torch.arange(n, device=rows.device)

    def _sorted(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the values column by column, the row of each, and where columns begin."""
        if self._by_column is None:
            rows = torch.repeat_interleave(
                torch.arange(self.n_rows, device=self.values.device, dtype=self.columns.dtype),
                self.starts.diff(),
                output_size=self.stored,
            )
            order = torch.argsort(self.columns, stable=True)
            counts = torch.bincount(self.columns, minlength=self.n_columns)
            starts = torch.zeros(self.n_columns + 1, dtype=torch.int64, device=order.device)
            torch.cumsum(counts, 0, out=starts[1:])
            self._by_column = self.values[order], rows[order], starts
        return self._by_column


def _segment_sums(
    values: Tensor, places: Tensor, factors: Tensor, starts: Tensor, *, squared: bool = False
) -> Tensor:
    """Return Σ values · factors[places] of every segment of the stored numbers."""
    numbers = values.double()
    products = (numbers * numbers if squared else numbers) * factors[places]
    if not products.numel():
        return factors.new_zeros(starts.numel() - 1)
    return torch.segment_reduce(products, "sum", offsets=starts, initial=0.0)
