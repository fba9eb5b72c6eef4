"""Products with dense rows on a card, in Triton: X is read once, and converted tile by tile.

Every function takes tensors on a card; `row_products` has the same for other devices.
"""

from __future__ import annotations

from typing import Any

import torch

from .launching import launch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for the CPU comes without it
    triton = None

# Numbers of a tile, its columns at most, and parts of the rows with a sum each.
TILE, TILE_COLUMNS, PARTS = 2048, 128, 1024


def parts_of(n_rows: int, n_blocks: int = 1) -> int:
    """Return in how many parts rows are added up, each of which has a line of sums."""
    return max(1, min(PARTS // n_blocks, -(-n_rows // 256)))


def row_scores(X: Any, plane: Any, out: Any) -> None:
    """Fill in w·x_i + b of every row; ``plane`` is (w, b)."""
    n, d = X.shape
    columns, rows = _tile(d)
    launch(_scores, (triton.cdiv(n, rows),))(X, plane, out, n, d, rows, columns)


def column_sums(X: Any, c: Any) -> Any:
    """Return Σ c_i x_i; every part of the rows has a line of sums."""
    n, d = X.shape
    columns, rows = _tile(d)
    n_blocks = triton.cdiv(d, columns)
    n_parts = parts_of(n, n_blocks)
    step = triton.cdiv(triton.cdiv(n, n_parts), rows) * rows
    lines = torch.empty(n_parts, d, dtype=torch.float64, device=X.device)
    launch(_column_sums, (n_parts, n_blocks))(X, c, lines, n, d, step, rows, columns)
    return lines.sum(0)


def gathered(X: Any, chosen: Any, root: Any | None) -> Any:
    """Return the rows r(x, 1) of some x in float64, for one r per row; 1 by default."""
    n, d = chosen.shape[0], X.shape[1]
    out = torch.empty(n, d + 1, dtype=torch.float64, device=X.device)
    if n:
        columns, rows = _tile(d + 1)
        grid = (triton.cdiv(n, rows), triton.cdiv(d + 1, columns))
        launch(_gather, grid)(
            X, chosen, out if root is None else root, out, n, d, root is not None, rows, columns
        )
    return out


def _tile(d: int) -> tuple[int, int]:
    """Return the columns and rows of a tile."""
    columns = min(TILE_COLUMNS, triton.next_power_of_2(d))
    return columns, max(TILE // columns, 1)


if triton is not None:

    @triton.jit(do_not_specialize=["n"])
    def _scores(X, plane, out, n, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        here = row < n
        total = tl.zeros([ROWS], dtype=tl.float64)
        for first in range(0, d, COLUMNS):
            column = first + tl.arange(0, COLUMNS)
            inside = column < d
            w = tl.load(plane + column, mask=inside, other=0.0)
            x = tl.load(
                X + row[:, None] * d + column[None, :],
                mask=here[:, None] & inside[None, :],
                other=0.0,
            )
            total += tl.sum(x.to(tl.float64) * w[None, :], axis=1)
        tl.store(out + row, total + tl.load(plane + d), mask=here)

    @triton.jit(do_not_specialize=["n", "step"])
    def _column_sums(X, c, lines, n, d, step, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        part = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = column < d
        total = tl.zeros([COLUMNS], dtype=tl.float64)
        for k in range(0, step, ROWS):
            row = part * step + k + tl.arange(0, ROWS)
            factor = tl.load(c + row, mask=row < n, other=0.0)
            # Rows of c = 0 are not read.
            x = tl.load(
                X + row[:, None] * d + column[None, :],
                mask=(factor != 0.0)[:, None] & inside[None, :],
                other=0.0,
            )
            total += tl.sum(x.to(tl.float64) * factor[:, None], axis=0)
        tl.store(lines + part * d + column, total, mask=inside)

    @triton.jit(do_not_specialize=["n"])
    def _gather(
        X, chosen, root, out, n, d, SCALED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        here = row < n
        place = tl.load(chosen + row, mask=here, other=0)
        x = tl.load(
            X + place[:, None] * d + column[None, :],
            mask=here[:, None] & (column < d)[None, :],
            other=1.0,
        )
        x = x.to(tl.float64)
        if SCALED:
            x *= tl.load(root + row, mask=here, other=0.0)[:, None]
        tl.store(
            out + row[:, None] * (d + 1) + column[None, :],
            x,
            mask=here[:, None] & (column <= d)[None, :],
        )
