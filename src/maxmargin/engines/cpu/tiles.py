"""Tiles of kernel values in compiled regions: products, the Gaussian, and what becomes of them.

The operands of a tile are tuples, which compiled functions tell apart by their lengths: on the
left ``(x, squares)`` for dense rows or ``(data, indices, starts, rows, squares)`` for sparse ones,
on the right ``(panels, squares)`` (`dense_panels`, `sparse_panels`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from ...arrays import Floats, Integers
from ...kernels import RBF, Kernel, Linear
from ...runtime.atomics import add
from ...runtime.row_access import PART, compiled_part
from ...runtime.team import parallel
from ...runtime.threads import n_cores, n_threads
from .dense_panels import dense_products
from .gaussian import gaussian
from .row_cache import STRIP_COLUMNS, keep_rows, strip_of
from .row_sums import add_rows, add_rows_and_sizes
from .sparse_panels import sparse_products
from .values import TILE_COLUMNS, TILE_ROWS

# Rows of a part where there are few rows in all: more parts than cores.
BLOCK_ROWS = 64
# Kernels that compiled code knows.
LINEAR, GAUSSIAN = 0, 1


def formula_of(kernel: Kernel) -> int | None:
    """Return the number of a kernel that compiled code knows."""
    return {RBF: GAUSSIAN, Linear: LINEAR}.get(type(kernel))


class Scratch:
    """Memory of a tile per thread, borrowed by the parts of regions.

    Memory from the system comes page by page, at the price of the values in it: it is kept.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._tiles: tuple[Floats, Integers] | None = None

    def tiles(self) -> tuple[Floats, Integers]:
        """Return the tiles, and which of them are taken."""
        # A worker that leaves a region late may hold one a little longer than its caller knows.
        # Others may ask who are limited to fewer cores than they share.
        count = max(n_threads(), n_cores()) + 1
        tiles = self._tiles
        if tiles is None or len(tiles[0]) < count:
            memory = np.empty((count, TILE_ROWS * TILE_COLUMNS), dtype=self.dtype)
            # A cache line each. The two change together: threads may ask at the same time.
            tiles = memory, np.zeros(8 * count, dtype=np.int64)
            self._tiles = tiles
        return tiles


@compiled_part
def borrow(taken):
    """Return the number of a tile that nobody uses."""
    k, n = 0, taken.size // 8
    while True:
        if add(taken.ctypes.data + 64 * k, 1) == 0:
            return k
        add(taken.ctypes.data + 64 * k, -1)
        k = k + 1 if k + 1 < n else 0


@compiled_part
def give_back(taken, k):
    """Let others use a tile."""
    add(taken.ctypes.data + 64 * k, -1)


# Tiles -------------------------------------------------------------------------------------------


def multiply(left: Any, right: Any, i: int, j: int, out: Floats) -> None:
    """Write inner products of rows from i on and columns from j on to ``out``."""
    raise NotImplementedError


@overload(multiply, jit_options=PART)
def _multiply(left, right, i, j, out):
    if len(left) == 2:

        def dense(left, right, i, j, out):
            panels = right[0]
            first, n = j // panels.shape[2], out.shape[1] // panels.shape[2]
            dense_products(left[0][i : i + out.shape[0]], panels[first : first + n], out)

        return dense

    def sparse(left, right, i, j, out):
        data, indices, starts, rows, _ = left
        panels = right[0]
        first, n = j // panels.shape[2], out.shape[1] // panels.shape[2]
        some = rows[i : i + out.shape[0]]
        sparse_products(data, indices, starts, some, panels[first : first + n], out)

    return sparse


@compiled_part
def tile_of(left, right, formula, gamma, i, height, j, width, memory):
    """Return kernel values of rows from i on and columns from j on, in whole panels."""
    n = -(-width // right[0].shape[2]) * right[0].shape[2]
    out = memory[: height * n].reshape(height, n)
    multiply(left, right, i, j, out)
    if formula == GAUSSIAN:
        gaussian(out, left[-1][i : i + height], right[-1][j : j + n], gamma)
    return out


# Regions -----------------------------------------------------------------------------------------


@parallel
def add_tiles(
    strip, left, right, formula, gamma, rows, own, v, weights, at, cache, capacity, total, sizes,
    tiles, taken,
):  # fmt: skip
    """Compute rows of K in a strip of columns, add them up, keep those that have a slot."""
    j = strip * TILE_COLUMNS
    sums, size = total[j : j + TILE_COLUMNS], sizes[j : j + TILE_COLUMNS]
    kept = strip_of(cache, capacity, total.size, j // STRIP_COLUMNS)
    places = np.arange(TILE_ROWS)
    k = borrow(taken)
    for i in range(0, rows.size, TILE_ROWS):
        height = min(TILE_ROWS, rows.size - i)
        tile = tile_of(left, right, formula, gamma, i, height, j, sums.size, tiles[k])
        for r in range(height):  # exactly the diagonal, not what rounding makes of it
            if j <= rows[i + r] < j + sums.size:
                tile[r, rows[i + r] - j] = own[i + r]
        part = slice(i, i + height)
        if weights.size > 0:
            add_rows_and_sizes(tile, places[:height], v[part], weights[part], 0, sums, size)
        else:
            add_rows(tile, places[:height], v[part], 0, sums)
        keep_rows(tile, at[part], j % STRIP_COLUMNS, kept)
    give_back(taken, k)


@parallel
def add_strips(strip, cache, capacity, at, v, weights, total, sizes):
    """Add up rows that are kept in strips of columns."""
    j, kept = strip * STRIP_COLUMNS, strip_of(cache, capacity, total.size, strip)
    sums, size = total[j : j + STRIP_COLUMNS], sizes[j : j + STRIP_COLUMNS]
    if weights.size > 0:
        add_rows_and_sizes(kept, at, v, weights, 0, sums, size)
    else:
        add_rows(kept, at, v, 0, sums)


@parallel
def add_columns(strip, K, rows, v, weights, total, sizes, width):
    """Add up rows of K in a strip of columns."""
    j = strip * width
    if weights.size > 0:
        size = sizes[j : j + width]
        add_rows_and_sizes(K, rows, v, weights, j, total[j : j + width], size)
    else:
        add_rows(K, rows, v, j, total[j : j + width])


@parallel
def multiply_rows(part, left, right, formula, gamma, height, v, total, tiles, taken):
    """Do total ← K v for some rows."""
    i, n = part * height, v.size
    height = min(height, total.size - i)
    total[i : i + height] = 0.0
    k = borrow(taken)
    for j in range(0, n, TILE_COLUMNS):
        width = min(TILE_COLUMNS, n - j)
        tile = tile_of(left, right, formula, gamma, i, height, j, width, tiles[k])
        for r in range(height):
            values, sum_of_row = tile[r], 0.0
            for c in range(width):
                sum_of_row += values[c] * v[j + c]
            total[i + r] += sum_of_row
    give_back(taken, k)


@parallel
def fill_block(part, left, right, formula, gamma, out, tiles, taken):
    """Write a tile of K to its place."""
    n_strips = -(-out.shape[1] // TILE_COLUMNS)
    i, j = part // n_strips * BLOCK_ROWS, part % n_strips * TILE_COLUMNS
    height, width = min(BLOCK_ROWS, out.shape[0] - i), min(TILE_COLUMNS, out.shape[1] - j)
    k = borrow(taken)
    tile = tile_of(left, right, formula, gamma, i, height, j, width, tiles[k])
    for r in range(height):
        row, values = out[i + r], tile[r]
        for c in range(width):
            row[j + c] = values[c]
    give_back(taken, k)


@parallel
def fill_square(part, left, right, formula, gamma, corners, K, tiles, taken):
    """Write a square tile on or above the diagonal of K to its place, and mirror it."""
    i, j = corners[part, 0], corners[part, 1]
    height, width = min(TILE_ROWS, K.shape[0] - i), min(TILE_ROWS, K.shape[0] - j)
    k = borrow(taken)
    tile = tile_of(left, right, formula, gamma, i, height, j, width, tiles[k])
    for r in range(height):
        row, values = K[i + r], tile[r]
        for c in range(width):
            row[j + c] = values[c]
    for top in range(0, height, 32):  # 32 rows of the tile stay in the cache
        for c in range(width):
            row = K[j + c]
            for r in range(top, min(top + 32, height)):
                row[i + r] = tile[r, c]
    give_back(taken, k)


@parallel
def fill_rows(strip, left, right, formula, gamma, rows, K, tiles, taken):
    """Write a strip of columns of some rows of K to their places."""
    j = strip * TILE_COLUMNS
    width = min(TILE_COLUMNS, K.shape[1] - j)
    k = borrow(taken)
    for i in range(0, rows.size, TILE_ROWS):
        height = min(TILE_ROWS, rows.size - i)
        tile = tile_of(left, right, formula, gamma, i, height, j, width, tiles[k])
        for r in range(height):
            row, values = K[rows[i + r]], tile[r]
            for c in range(width):
                row[j + c] = values[c]
    give_back(taken, k)


def n_parts(n: int, size: int) -> int:
    """Return the number of parts of a size that hold n."""
    return -(-n // size)
