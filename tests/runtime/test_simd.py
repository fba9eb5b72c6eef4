"""Vectors as wide as a register: every operation in its own compiled function."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from maxmargin.runtime.simd import (
    VECTOR_BYTES,
    aligned,
    count,
    fill,
    largest,
    load,
    place_of_largest,
    places,
    rough_reciprocal,
    square,
    store,
    where_greater,
)

# What `rough_reciprocal` promises, twice over.
ROUGH = 0.01


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def numbers(dtype, n_vectors=3, seed=0):
    n = n_vectors * VECTOR_BYTES // np.dtype(dtype).itemsize
    return np.random.default_rng(seed).standard_normal(n).astype(dtype)


@numba.njit
def copy_from(x, start, out):
    for k in range(0, out.size, count(out)):
        store(out, k, load(x, start + k))


@numba.njit
def combine(x, y, z, out):
    """out ← (x + y)·z − y."""
    for k in range(0, x.size, count(x)):
        store(out, k, (load(x, k) + load(y, k)) * load(z, k) - load(y, k))


@numba.njit
def choose(a, b, x, y, out):
    for k in range(0, a.size, count(a)):
        store(out, k, where_greater(load(a, k), load(b, k), load(x, k), load(y, k)))


@numba.njit
def invert(x, out):
    for k in range(0, x.size, count(x)):
        store(out, k, rough_reciprocal(load(x, k)))


@numba.njit
def spread(x, number, out):
    store(out, 0, fill(x, number))


@numba.njit
def greatest(x, places):
    return largest(load(x, 0)), place_of_largest(load(x, 0), load(places, 0))


@numba.njit
def width_of(x):
    return count(x)


def test_a_vector_is_a_register(dtype):
    x = numbers(dtype)
    assert width_of(x) == count(x) == VECTOR_BYTES // x.itemsize


@pytest.mark.parametrize("start", [0, 1, 5, 16])
def test_load_and_store_begin_anywhere(dtype, start):
    x = numbers(dtype, 5)
    out = np.zeros(count(x), dtype)
    copy_from(x, start, out)
    np.testing.assert_array_equal(out, x[start : start + count(x)])


def test_store_leaves_the_neighbours_alone(dtype):
    x, memory = numbers(dtype, 2), np.full(4 * 64, -1.0, dtype)
    copy_from(x, 0, memory[3 : 3 + x.size])
    np.testing.assert_array_equal(memory[3 : 3 + x.size], x)
    assert (np.delete(memory, np.s_[3 : 3 + x.size]) == -1.0).all()


def test_arithmetic(dtype):
    x, y, z = (numbers(dtype, seed=seed) for seed in range(3))
    out = np.empty_like(x)
    combine(x, y, z, out)
    # The product and the difference may be one rounding or two.
    exact = (x.astype(float) + y) * z - y
    size = (np.abs(x) + np.abs(y)) * np.abs(z) + np.abs(y)
    assert (np.abs(out - exact) <= 3 * np.finfo(dtype).eps * size).all()


def test_arithmetic_on_whole_numbers_is_exact(dtype):
    x, y, z = (np.round(8 * numbers(dtype, seed=seed)) for seed in range(3))
    out = np.empty_like(x)
    combine(x, y, z, out)
    np.testing.assert_array_equal(out, (x + y) * z - y)


def test_where_greater(dtype):
    a, b, x, y = (numbers(dtype, seed=seed) for seed in range(4))
    a[::5] = b[::5]  # of equals the second
    out = np.empty_like(a)
    choose(a, b, x, y, out)
    np.testing.assert_array_equal(out, np.where(a > b, x, y))
    np.testing.assert_array_equal(out[::5], y[::5])


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_number_is_not_greater(dtype, place):
    sides = [numbers(dtype, seed=seed) for seed in range(2)]
    sides[place][:] = np.nan
    x, y = numbers(dtype, seed=2), numbers(dtype, seed=3)
    out = np.empty_like(x)
    choose(*sides, x, y, out)
    np.testing.assert_array_equal(out, y)


def test_infinity_is_greater(dtype):
    x, y = numbers(dtype, seed=2), numbers(dtype, seed=3)
    out = np.empty_like(x)
    choose(np.full_like(x, np.inf), np.full_like(x, np.finfo(dtype).max), x, y, out)
    np.testing.assert_array_equal(out, x)


def test_rough_reciprocal(dtype):
    decades = 30 if dtype is np.float32 else 300
    x = np.logspace(-decades, decades, 512 * 16).astype(dtype)
    out = np.empty_like(x)
    invert(x, out)
    np.testing.assert_allclose(out, 1.0 / x, rtol=ROUGH)


def test_rough_reciprocal_within_one_octave(dtype):
    """The error depends on the mantissa alone: every part of an octave is tried."""
    x = np.linspace(1.0, 2.0, 4096).astype(dtype)
    out = np.empty_like(x)
    invert(x, out)
    np.testing.assert_allclose(out, 1.0 / x, rtol=ROUGH)


@pytest.mark.parametrize("number", [3, -1.5, np.float32(0.25), np.float64(1e-3)])
def test_fill_casts_its_number(dtype, number):
    x = numbers(dtype, 1)
    out = np.zeros_like(x)
    spread(x, number, out)
    assert (out == dtype(number)).all()


def test_the_largest_number_of_a_vector_and_its_place(dtype):
    x = numbers(dtype, 1)
    places = np.arange(x.size).astype(dtype)
    for _ in range(x.size):
        x = np.roll(x, 1)
        assert greatest(x, places) == (x.max(), x.argmax())
    x[[1, 3, x.size // 2]] = x.max()  # of equals the last
    assert greatest(x, places) == (x.max(), np.flatnonzero(x == x.max())[-1])


@pytest.mark.parametrize("shape", [7, (3, 5), (2, 33, 16), (0, 4)])
def test_aligned_begins_at_a_whole_vector(dtype, shape):
    arrays = [aligned(shape, dtype) for _ in range(8)]
    for array in arrays:
        assert array.ctypes.data % VECTOR_BYTES == 0 or array.size == 0
        assert array.shape == np.empty(shape).shape
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert not array.any()
    if arrays[0].size:
        arrays[0][:] = 1.0
        assert not arrays[1].any()


@pytest.mark.parametrize("n", [1, 3, 16, 61])
def test_square_may_be_read_beyond_its_end(dtype, n):
    K = square(n, dtype)
    assert K.shape == (n, n)
    assert K.dtype == dtype
    assert K.flags.c_contiguous
    K[:] = np.arange(n * n).reshape(n, n)
    memory = K
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    assert memory.nbytes >= K.nbytes + VECTOR_BYTES
    # What lies there is added to numbers and must be one.
    beyond = np.empty(count(K), dtype)
    copy_from(K[-1], n, beyond)
    assert np.isfinite(beyond).all()
    copy_from(K[-1], n - 1, beyond)
    assert beyond[0] == K[-1, -1]


@numba.njit
def count_up(x):
    for k in range(0, x.size, count(x)):
        store(x, k, places(x) + fill(x, k))


def test_places_are_counted_from_zero(dtype):
    x = numbers(dtype)
    count_up(x)
    np.testing.assert_array_equal(x, np.arange(x.size))
