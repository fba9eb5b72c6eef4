"""Rows of K of one small task; those of two classes when the solver first asks for them.

SMO reads the rows of the variables that it moves, some hundred of a thousand: the others are not
copied. The variables of a pair of classes are in two parts, and each begins at a whole vector.

Numbers are copied one by one: an assignment to a slice would have the compiler spend seconds on the
message of a shape that does not fit.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import overload

from ...arrays import Floats
from ...runtime.row_access import PART, compiled_part
from ...runtime.simd import vectors

# Numbers in a vector of float32: the parts of a task begin at whole vectors.
VECTOR = 16
# Rows that are written when they are asked for are a tuple: their memory, which of them are there,
# and K with the variables whose part of it they are,
DRAWN = ("memory", "is_there", "whole", "members")
# or the curvature, K within two classes and between them, and the transpose of that.
JOINED = (*DRAWN[:2], "curvature", "first", "second", "between", "across")


def stored(K: Any) -> Floats:
    """Return the memory of the rows of K, an array or a tuple."""
    return K


def fetch(K: Any, i: Any) -> None:
    """Write row i of K into its memory, unless it is there."""


@overload(stored, jit_options=PART)
def _stored(K):
    return (lambda K: K) if isinstance(K, types.Array) else (lambda K: K[0])


@overload(fetch, jit_options=PART)
def _fetch(K, i):
    # Nothing is returned: references to a row that comes from one of two places would be counted.
    if isinstance(K, types.Array):
        return lambda K, i: None
    if len(K) == len(DRAWN):

        def drawn(K, i):
            if not K[1][i]:
                draw_row(K[2][K[3][i]], K[3], K[0][i])
                K[1][i] = True

        return drawn

    def joined(K, i):
        if not K[1][i]:
            write_row(i, K[2], K[3], K[4], K[5], K[6], K[0][i])
            K[1][i] = True

    return joined


@compiled_part
def draw_row(row, members, out):
    """Write the numbers of a row that belong to some variables, and 0 up to a whole vector."""
    m = members.size
    for j in range(m):
        out[j] = row[members[j]]
    for j in range(m, m + -m % VECTOR):
        out[j] = 0.0


@compiled_part
def write_row(i, curvature, first, second, between, across, out):
    """Write row i of K + D."""
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
