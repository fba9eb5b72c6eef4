"""Compiled products of consecutive rows of X with several vectors: pieces of regions.

``rows`` is a tuple of arrays as in `row_access`; ``block`` has room for as many dense rows.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from ..arrays import Floats
from .row_access import PART, StoredRows, compiled_part, row_add, row_dot


def in_float64(rows: StoredRows, first: int, n: int, block: Floats) -> Floats:
    """Return dense rows in float64: those of X where it is, or a copy in the block."""
    block[:n] = rows[0][first : first + n]
    return block[:n]


@overload(in_float64, jit_options=PART)
def _in_float64(rows, first, n, block):
    if rows[0].dtype == types.float64 and rows[0].layout == "C":
        return lambda rows, first, n, block: rows[0][first : first + n]

    def copied(rows, first, n, block):
        for r in range(n):
            x, line = rows[0][first + r], block[r]
            for j in range(line.size):
                line[j] = x[j]
        return block[:n]

    return copied


@compiled_part
def products(rows, first, n, w, block):
    """Return w_k·x of n rows, in lines of the vectors."""
    if len(rows) == 1:
        return np.dot(w, in_float64(rows, first, n, block).T)
    out = np.empty((w.shape[0], n))
    for r in range(n):
        for k in range(w.shape[0]):
            out[k, r] = row_dot(rows, first + r, w[k])
    return out


@compiled_part
def add_combinations(rows, first, c, block, sums):
    """Do sums_k ← sums_k + Σ c_kr x_r over rows from ``first`` on; c is overwritten.

    Dense rows whose coefficients are all 0 are not read.
    """
    n_vectors, n = c.shape
    if len(rows) == 1:
        m = 0
        for r in range(n):
            is_used = False
            for k in range(n_vectors):
                is_used |= c[k, r] != 0.0
            if is_used:
                x, line = rows[0][first + r], block[m]
                for j in range(line.size):
                    line[j] = x[j]
                for k in range(n_vectors):
                    c[k, m] = c[k, r]
                m += 1
        sums += np.dot(np.ascontiguousarray(c[:, :m]), block[:m])
    else:
        for r in range(n):
            for k in range(n_vectors):
                if c[k, r] != 0.0:
                    row_add(rows, first + r, sums[k], c[k, r])
