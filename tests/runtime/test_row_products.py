"""Products of consecutive rows with several vectors, against NumPy."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.runtime.row_access import compiled, rows_of
from maxmargin.runtime.row_products import add_combinations, in_float64, products


@compiled
def both(rows, first, n, w, c, sums):
    block = np.empty((n, w.shape[1]))
    found = products(rows, first, n, w, block)
    add_combinations(rows, first, c, block, sums)
    return found


@pytest.mark.parametrize("call", [both, both.py_func])
@pytest.mark.parametrize("kind", [np.array, np.float32, np.asfortranarray, sparse.csr_matrix])
def test_they_are_those_of_numpy(kind, call):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (30, 4)).astype(float)
    w, c = rng.standard_normal((3, 4)), rng.standard_normal((3, 20))
    c[:, ::3] = 0.0
    sums = np.ones((3, 4))
    expected = sums + c @ X[5:25]
    rows = rows_of(X.astype(np.float32) if kind is np.float32 else kind(X))
    np.testing.assert_allclose(call(rows, 5, 20, w, c, sums), w @ X[5:25].T)
    np.testing.assert_allclose(sums, expected)


def test_rows_in_float64_are_not_copied():
    X, block = np.arange(12.0).reshape(6, 2), np.zeros((3, 2))

    @compiled
    def total(rows, block):
        return in_float64(rows, 1, 3, block).sum()

    assert total((X,), block) == X[1:4].sum()
    assert not block.any()
    assert total((X.astype(np.float32),), block) == X[1:4].sum()
    np.testing.assert_array_equal(block, X[1:4])
