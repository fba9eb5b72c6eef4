"""PᵀP of a panel of rows that fits a core's cache, added up without BLAS and its threads."""

from __future__ import annotations

from ...runtime.row_access import compiled, compiled_part
from ...runtime.simd import VECTOR_BYTES, fill, load, store

# Columns of a tile, in two vectors of float64: panels have a multiple of that.
TILE = 2 * VECTOR_BYTES // 8


@compiled
def add_products(panel, total):
    """Add PᵀP to the lower triangle of a total: four rows of a tile are kept in registers."""
    side = panel.shape[1]
    zero = fill(total[0], 0.0)
    for left in range(0, side, TILE):
        right = left + TILE // 2
        for top in range(left, side, 4):
            a, b, c, d, e, f, g, h = zero, zero, zero, zero, zero, zero, zero, zero
            for k in range(panel.shape[0]):
                x = panel[k]
                u, v = load(x, left), load(x, right)
                p, q = fill(x, x[top]), fill(x, x[top + 1])
                r, s = fill(x, x[top + 2]), fill(x, x[top + 3])
                a, b, c, d = a + p * u, b + p * v, c + q * u, d + q * v
                e, f, g, h = e + r * u, f + r * v, g + s * u, h + s * v
            _add_line(total[top], left, a, b)
            _add_line(total[top + 1], left, c, d)
            _add_line(total[top + 2], left, e, f)
            _add_line(total[top + 3], left, g, h)


@compiled_part
def _add_line(line, left, u, v):
    right = left + TILE // 2
    store(line, left, load(line, left) + u)
    store(line, right, load(line, right) + v)
