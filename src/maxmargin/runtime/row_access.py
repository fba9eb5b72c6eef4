"""Compiled access to one row of X, dense or CSR: kernels do not distinguish the two.

A kernel receives X as ``rows``, a tuple of arrays: ``(X,)`` when dense, ``(data, indices, indptr)``
when CSR. `row_dot`, `row_add` and `row_square` are resolved by that tuple's length when a kernel is
compiled, so every kernel is written once. They are also plain Python functions, so that
``kernel.py_func`` runs without a compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import Floats, Matrix, by_rows
from .compilation import PART as PART
from .compilation import compiled as compiled
from .compilation import compiled_part as compiled_part

StoredRows = tuple[Any, ...]


class _Unlocked:
    """The memory of an array that may not be written, as if it might be."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array  # kept alive
        self.__array_interface__ = array.__array_interface__
        self.__array_interface__["data"] = (self.__array_interface__["data"][0], False)


def readable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is only read, as one type whether or not it may be written.

    Kernels are compiled once for both: joblib hands arrays to its workers that may not be written.
    """
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


def rows_of(X: Matrix) -> StoredRows:
    """Return X as the tuple of arrays that kernels take, which only read it."""
    X = by_rows(X)
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return tuple(map(readable, arrays))


def row_dot(rows: StoredRows, i: int, w: Floats) -> float:
    """Return x_i·w."""
    return float(_dense_row(rows, i, w.size) @ w)


def row_add(rows: StoredRows, i: int, w: Floats, step: float) -> None:
    """Do w ← w + step x_i."""
    w += step * _dense_row(rows, i, w.size)


def row_square(rows: StoredRows, i: int) -> float:
    """Return ‖x_i‖²."""
    x = rows[0][i] if len(rows) == 1 else rows[0][rows[2][i] : rows[2][i + 1]]
    x = np.asarray(x, dtype=np.float64)
    return float(x @ x)


def row_prefetch(rows: StoredRows, i: int) -> None:
    """Prefetch row i, which shortens shuffled passes."""


def prefetch(array: NDArray[Any], k: int) -> None:
    """Prefetch array[k]."""


def _dense_row(rows: StoredRows, i: int, size: int) -> Floats:
    if len(rows) == 1:
        return np.asarray(rows[0][i], dtype=np.float64)
    data, indices, indptr = rows
    x = np.zeros(size)
    np.add.at(x, indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]])
    return x


@overload(row_dot, jit_options=PART)
def _row_dot(rows, i, w):
    if len(rows) == 1:

        def dense(rows, i, w):
            x = rows[0][i]
            total = 0.0
            for j in range(w.size):
                total += x[j] * w[j]
            return total

        return dense

    def csr(rows, i, w):
        x = rows[0][rows[2][i] : rows[2][i + 1]]
        columns = rows[1][rows[2][i] : rows[2][i + 1]]
        total = 0.0
        for k in range(x.size):
            # With an unsigned index numba omits the test for negative (wrap-around) ones.
            total += x[k] * w[np.uint32(columns[k])]
        return total

    return csr


@overload(row_add, jit_options=PART)
def _row_add(rows, i, w, step):
    if len(rows) == 1:

        def dense(rows, i, w, step):
            x = rows[0][i]
            for j in range(w.size):
                w[j] += step * x[j]

        return dense

    def csr(rows, i, w, step):
        x = rows[0][rows[2][i] : rows[2][i + 1]]
        columns = rows[1][rows[2][i] : rows[2][i + 1]]
        for k in range(x.size):
            w[np.uint32(columns[k])] += step * x[k]

    return csr


@overload(row_square, jit_options=PART)
def _row_square(rows, i):
    is_dense = len(rows) == 1

    def square(rows, i):
        x = rows[0][i] if is_dense else rows[0][rows[2][i] : rows[2][i + 1]]
        total = 0.0
        for j in range(x.size):
            value = np.float64(x[j])
            total += value * value
        return total

    return square


@overload(row_prefetch, jit_options=PART)
def _row_prefetch(rows, i):
    if len(rows) == 1:
        if rows[0].layout != "C":
            return lambda rows, i: None

        numbers = 512 // rows[0].dtype.bitwidth  # per cache line

        def dense(rows, i):
            x = rows[0][i]
            for j in range(0, x.size, numbers):
                _prefetch(x, j)

        return dense

    def csr(rows, i):
        for k in range(rows[2][i], rows[2][i + 1], 16):
            _prefetch(rows[0], k)
            _prefetch(rows[1], k)

    return csr


@overload(prefetch, jit_options=PART)
def _prefetch_one(array, k):
    return lambda array, k: _prefetch(array, k)


@intrinsic
def _prefetch(context, array, k):
    """Emit LLVM's prefetch of the address of array[k] (for reading, into every cache level)."""

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(view.data, [args[1]])
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        )
        builder.call(function, [builder.bitcast(address, byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, k), codegen
