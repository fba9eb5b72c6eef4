"""Rows of K of one small task; those of two classes when the solver first asks for them.

SMO reads the rows of the variables that it moves, some hundred of a thousand: the others are not
copied. The variables of a pair of classes are in two parts, and each begins at a whole vector.

Numbers are copied one by one: an assignment to a slice would have the compiler spend seconds on the
message of a shape that does not fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ...arrays import Floats
from ...runtime.row_access import PART, compiled_part
from ...runtime.simd import vectors

# Numbers in a vector of float32: the parts of a task begin at whole vectors.
VECTOR = 16


def kernel_row(K: Any, i: int) -> Floats:
    """Return row i of K, an array or the tuple that `lazy_rows` returns."""
    return K[i]


@overload(kernel_row, jit_options=PART)
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


@compiled_part
def lazy_rows(curvature, first, second, between, across):
    """Return the rows of K + D of two classes, of which none is there yet.

    They are put together from K within the classes, between them, and its transpose.
    """
    size = curvature.size
    memory = vectors(first.shape[0] + second.shape[0] + 1, size, curvature)
    slots = np.empty(size + 1, dtype=np.intp)
    for k in range(size):
        slots[k] = -1
    slots[size] = 0
    return memory, slots, curvature, first, second, between, across


@compiled_part
def write_row(rows, i, out):
    """Write row i of K + D."""
    _, _, curvature, first, second, between, across = rows
    n = first.shape[0]
    start = n + -n % VECTOR
    end = start + second.shape[0]
    copy(first[i] if i < start else across[i - start], out[:n])
    copy(between[i] if i < start else second[i - start], out[start:end])
    for k in range(n, start):
        out[k] = 0.0
    for k in range(end, out.size):
        out[k] = 0.0
    out[i] = curvature[i]


@compiled_part
def gathered_rows(whole, start, n_first, index, places, curvature, is_ridged):
    """Return K + D of rows of ``whole``, listed from ``start`` on: itself where it is that.

    Rows and columns are put where the variables have their places.
    """
    n, size = places.size, curvature.size
    gap = places[n - 1] - (n - 1)
    same = not is_ridged and n == whole.shape[0] and gap == 0
    for k in range(n):
        same &= index[start + k] == k
    if same:
        return whole
    K = vectors(n + gap, size, whole)
    for i in range(n):
        row, out = whole[index[start + i]], K[places[i]]
        for k in range(n_first):
            out[k] = row[index[start + k]]
        for k in range(n_first, n_first + gap):
            out[k] = 0.0
        for k in range(n_first, n):
            out[k + gap] = row[index[start + k]]
        for k in range(n + gap, size):
            out[k] = 0.0
        out[places[i]] = curvature[places[i]]
    return K


@compiled_part
def copy(values, out):
    """Do out ← values."""
    for k in range(out.size):
        out[k] = values[k]
