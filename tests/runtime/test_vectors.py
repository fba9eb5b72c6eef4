"""Operations on long vectors do what NumPy's do, in parts and on any number of cores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from maxmargin.runtime import threads, vectors
from maxmargin.runtime.threads import at_most


@pytest.fixture(params=[1, 2], ids=["one core", "two cores"])
def in_parts(request, monkeypatch):
    """Parts so small that there are many of them."""
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64, most_parts=8))
    with at_most(request.param):
        yield


SIZES = [0, 1, 16, 17, 1000]


@pytest.mark.parametrize("n", SIZES)
def test_parts_cover_all_rows_once(n, in_parts):
    parts = vectors.in_slices(lambda some: np.arange(n)[some], n)
    assert_array_equal(np.concatenate(parts), np.arange(n))
    assert len(parts) <= 8
    step = vectors.part_rows(n)
    assert vectors.part_count(n, step) == max(1, -(-n // step))


def test_parts_do_not_depend_on_the_cores(monkeypatch):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))
    found = []
    for n_jobs in (1, 2, 3):
        with at_most(n_jobs):
            found.append(vectors.in_slices(lambda some: (some.start, some.stop), 1000))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 3


@pytest.mark.parametrize("n", SIZES)
def test_vectors_are_those_of_numpy(n, in_parts):
    rng = np.random.default_rng(0)
    values = rng.standard_normal(n) * (rng.random(n) < 0.4)
    table = rng.standard_normal((n, 3)).astype(np.float32)
    rows = np.flatnonzero(rng.random(n) < 0.5)
    assert_array_equal(vectors.counting(n), np.arange(n))
    assert_array_equal(vectors.nonzero(values), np.flatnonzero(values))
    assert_array_equal(vectors.nonzero(values > 0.0), np.flatnonzero(values > 0.0))
    for array in (values, table):
        copy = vectors.copied(array)
        assert_array_equal(copy, array)
        assert copy.dtype == array.dtype
        assert not np.shares_memory(copy, array)
        assert_array_equal(vectors.taken(array, rows), array[rows])
        assert vectors.taken(array, rows).dtype == array.dtype


def test_one_number_seen_many_times():
    assert vectors.is_one_number(np.broadcast_to(2.0, 5))
    assert not vectors.is_one_number(np.full(5, 2.0))
    assert not vectors.is_one_number(np.broadcast_to(2.0, 0))
