"""Rows of K of one small task, put together when the solver first asks for them.

SMO reads the rows of the variables that it moves, some hundred of a thousand: the others are not
copied. A task's variables are in two parts, the rows of its first class and the others; each part
begins at a whole vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ...arrays import Floats
from ...runtime.row_access import compiled
from ...runtime.simd import VECTOR_BYTES

# Numbers in a vector of float32: the parts of a task begin at whole vectors.
VECTOR = 16


def kernel_row(K: Any, i: int) -> Floats:
    """Return row i of K, an array or the tuple that `lazy_rows` returns."""
    return K[i]


@overload(kernel_row)
def _kernel_row(K, i):
    if isinstance(K, types.Array):
        return lambda K, i: K[i]

    def lazy(K, i):
        memory, slots = K[0], K[1]
        if slots[i] < 0:
            slots[i] = slots[-1]  # the number of rows so far
            slots[-1] += 1
            write_row(K, i, memory[slots[i]])
        return memory[slots[i]]

    return lazy


@compiled
def lazy_rows(n_first, curvature, whole, index, first, second, between, across):
    """Return the rows of K + D of a task, of which none is there yet.

    They are taken from ``whole``[index, index] where ``index`` is not empty, else put together from
    K within the two classes, between them, and its transpose.
    """
    size = curvature.size
    n_rows = index.size if index.size else first.shape[0] + second.shape[0]
    memory = vectors(n_rows + 1, size, curvature)
    slots = np.full(size + 1, -1)
    slots[-1] = 0
    return (
        memory, slots, n_first, curvature, whole, index, first, second, between, across,
    )  # fmt: skip


@compiled
def write_row(rows, i, out):
    """Write row i of K + D."""
    _, _, n_first, curvature, whole, index, first, second, between, across = rows
    start = n_first + -n_first % VECTOR
    out[:] = 0.0
    if index.size:
        row = whole[index[i if i < start else i - start + n_first]]
        for k in range(n_first):
            out[k] = row[index[k]]
        for k in range(n_first, index.size):
            out[start + k - n_first] = row[index[k]]
    elif i < start:
        out[:n_first] = first[i]
        out[start : start + second.shape[0]] = between[i]
    else:
        out[:n_first] = across[i - start]
        out[start : start + second.shape[0]] = second[i - start]
    out[i] = curvature[i]


@compiled
def vectors(n, size, like):
    """Return memory for n vectors of the type of ``like``, which begin at whole cache lines."""
    memory = np.empty(n * size + VECTOR_BYTES // like.itemsize, dtype=like.dtype)
    first = (-memory.ctypes.data % VECTOR_BYTES) // like.itemsize
    return memory[first : first + n * size].reshape(n, size)
