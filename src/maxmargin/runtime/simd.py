"""Vectors as wide as a register, for loops that the compiler does not vectorise.

LLVM does not vectorise a search for the largest entry and its index, nor does it keep an array of
running sums in registers. In compiled code a value of type `Lanes` is 64 bytes of an array (16
float32 or 8 float64 numbers), or 32 where registers are narrower, with ``+ - *``::

    total = fill(x, 0.0)
    for k in range(0, x.size, count(x)):
        total = total + load(x, k) * load(z, k)

Nothing is checked: arrays must be contiguous and long enough.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core.datamodel import PrimitiveModel, register_default
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, overload
from numba.np.arrayobj import populate_array
from numpy.typing import DTypeLike, NDArray

from .compilation import PART

# There are 32 registers of 64 bytes, or 16 of 32: kernels keep up to 16 running sums in them.
VECTOR_BYTES = 64 if get_host_cpu_features().get("avx512f") else 32
LINE_BYTES = 64
# x·y + z with one rounding, as in all compiled kernels.
FUSED = ["contract"]


class Lanes(types.Type):
    """The numbers of one vector."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.count = VECTOR_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype} x {self.count})")


@register_default(Lanes)
class _Model(PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, _vector(lanes))


def _vector(lanes):
    number = ir.FloatType() if lanes.dtype.bitwidth == 32 else ir.DoubleType()
    return ir.VectorType(number, lanes.count)


def aligned(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros aligned to vectors, so that a load reads one cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + VECTOR_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % VECTOR_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)


def square(n: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an n × n array followed by 16 zeros: whole vectors may be read beyond its end."""
    memory = np.empty(n * n + 16, dtype=dtype)
    memory[n * n :] = 0.0
    return memory[: n * n].reshape(n, n)


@intrinsic
def vectors(context, n, size, like):
    """Return memory for n vectors of the type of ``like``, which begin at whole cache lines.

    As a sum of NumPy's functions it would take the compiler a third of a second.
    """
    matrix = types.Array(like.dtype, 2, "C")

    def codegen(context, builder, signature, args):
        words = [context.cast(builder, args[k], signature.args[k], types.intp) for k in (0, 1)]
        item = ir.IntType(64)(like.dtype.bitwidth // 8)
        row = builder.mul(words[1], item)
        memory = context.nrt.meminfo_alloc_aligned(builder, builder.mul(words[0], row), LINE_BYTES)
        out = context.make_array(matrix)(context, builder)
        data = builder.bitcast(context.nrt.meminfo_data(builder, memory), out.data.type)
        populate_array(out, data, words, [row, item], item, memory)
        return out._getvalue()

    return matrix(n, size, like), codegen


def count(array: NDArray[Any]) -> int:
    """Return how many numbers of the array's type a vector holds."""
    return VECTOR_BYTES // array.dtype.itemsize


@overload(count, jit_options=PART)
def _count(array):
    n = Lanes(array.dtype).count
    return lambda array: n


def _address(context, builder, array_type, args, vector):
    view = context.make_array(array_type)(context, builder, args[0])
    return builder.bitcast(builder.gep(view.data, [args[1]]), vector.as_pointer())


@intrinsic
def load(context, array, k):
    """Return array[k : k + count]."""
    lanes = Lanes(array.dtype)

    def codegen(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args, _vector(lanes))
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return lanes(array, k), codegen


@intrinsic
def store(context, array, k, value):
    """Do array[k : k + count] ← value."""

    def codegen(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args, args[2].type)
        builder.store(args[2], address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, k, value), codegen


@intrinsic
def fill(context, array, number):
    """Return a vector of the array's type with ``number`` in every position."""
    lanes = Lanes(array.dtype)

    def codegen(context, builder, signature, args):
        vector = _vector(lanes)
        empty = ir.Constant(vector, ir.Undefined)
        value = context.cast(builder, args[1], number, array.dtype)
        first = builder.insert_element(empty, value, ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
        return builder.shuffle_vector(first, empty, everywhere)

    return lanes(array, number), codegen


def _half(builder, vector, first):
    """Return half of a vector, from a place on."""
    n = vector.type.count // 2
    places = ir.Constant(ir.VectorType(ir.IntType(32), n), [first + k for k in range(n)])
    return builder.shuffle_vector(vector, vector, places)


@intrinsic
def largest(context, vector):
    """Return the largest number of a vector."""

    def codegen(context, builder, signature, args):
        values = args[0]
        while (n := values.type.count // 2) > 0:
            a, b = (_half(builder, values, first) for first in (0, n))
            values = builder.select(builder.fcmp_ordered(">", b, a), b, a)
        return builder.extract_element(values, ir.IntType(32)(0))

    return vector.dtype(vector), codegen


@intrinsic
def added(context, vector):
    """Return the sum of the numbers of a vector."""

    def codegen(context, builder, signature, args):
        values = args[0]
        while (n := values.type.count // 2) > 0:
            values = builder.fadd(_half(builder, values, 0), _half(builder, values, n))
        return builder.extract_element(values, ir.IntType(32)(0))

    return vector.dtype(vector), codegen


@intrinsic
def place_of_largest(context, vector, places):
    """Return the place of the largest number of a vector, of equals the last."""

    def codegen(context, builder, signature, args):
        values, at = args
        while (n := values.type.count // 2) > 0:
            (a, b), (i, j) = ([_half(builder, v, first) for first in (0, n)] for v in (values, at))
            tied = builder.and_(builder.fcmp_ordered("==", b, a), builder.fcmp_ordered(">", j, i))
            later = builder.or_(builder.fcmp_ordered(">", b, a), tied)
            values, at = builder.select(later, b, a), builder.select(later, j, i)
        return builder.extract_element(at, ir.IntType(32)(0))

    return vector.dtype(vector, places), codegen


@intrinsic
def where_greater(context, a, b, x, y):
    """Return x where a > b, else y."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return x(a, b, x, y), codegen


@intrinsic
def rough_reciprocal(context, a):
    """Return 1/a for a > 0 with an error of about 0.5 %, to compare candidates."""
    bits = a.dtype.bitwidth
    magic = 0x7EF311C3 if bits == 32 else 0x7FDE623822FC16E6

    def codegen(context, builder, signature, args):
        # The negated exponent and a linear fit of the mantissa, then one step of Newton's method.
        whole = ir.VectorType(ir.IntType(bits), a.count)
        opposite = builder.sub(
            ir.Constant(whole, [magic] * a.count), builder.bitcast(args[0], whole)
        )
        guess = builder.bitcast(opposite, args[0].type)
        two = ir.Constant(args[0].type, [2.0] * a.count)
        error = builder.fsub(two, builder.fmul(args[0], guess, flags=FUSED), flags=FUSED)
        return builder.fmul(guess, error)

    return a(a), codegen


@intrinsic
def places(context, array):
    """Return the vector (0, 1, 2, ...) of the array's type."""
    lanes = Lanes(array.dtype)

    def codegen(context, builder, signature, args):
        return ir.Constant(_vector(lanes), [float(k) for k in range(lanes.count)])

    return lanes(array), codegen


# Operators are typed and lowered by hand: as functions they would be compiled one by one.


class _Arithmetic(AbstractTemplate):
    def generic(self, args, kws):
        a, b = args
        return a(a, b) if isinstance(a, Lanes) and a == b else None


def _operate(symbol, instruction):
    infer_global(symbol)(type(f"_{instruction}", (_Arithmetic,), {}))

    @lower_builtin(symbol, Lanes, Lanes)
    def lower(context, builder, signature, args):
        return getattr(builder, instruction)(*args, flags=FUSED)


_operate(operator.add, "fadd")
_operate(operator.sub, "fsub")
_operate(operator.mul, "fmul")
