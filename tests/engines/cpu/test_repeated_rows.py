"""K of rows that are named more than once is that of the rows, computed once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.engines.cpu.repeated_rows import RepeatedGram
from maxmargin.engines.registry import engine_for
from maxmargin.kernels import RBF, Linear, Precomputed

RNG = np.random.default_rng(0)
N = 60
X = RNG.standard_normal((N, 4))
# Two variables of most rows, one or three of some, none of others.
INDEX = np.concatenate([np.arange(N - 5), np.arange(3, N - 2), np.full(3, 7)])
COLUMNS = RNG.permutation(INDEX.size)[:70]
V = RNG.standard_normal(COLUMNS.size)
KERNELS = {"rbf": RBF(0.3), "linear": Linear(), "precomputed": Precomputed()}


def rows_for(name, storage):
    return X @ X.T if name == "precomputed" else storage(X)


@pytest.mark.parametrize("precision", ["fast", "exact"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", KERNELS)
def test_products_are_those_of_the_whole_matrix(name, storage, keep, precision):
    if name == "precomputed" and precision == "fast":
        pytest.skip("given values are used as they are")
    kernel, rows = KERNELS[name], rows_for(name, storage)
    gram = engine_for(rows).gram(kernel, INDEX, precision, keep=keep)
    assert isinstance(gram, RepeatedGram)
    K = (X @ X.T if name == "precomputed" else kernel(X))[np.ix_(INDEX, INDEX)]
    near = {"atol": 1e-4 if precision == "fast" else 1e-12}
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(K), **near)
    np.testing.assert_allclose(gram.whole(), K, **near)
    np.testing.assert_allclose(gram.block(COLUMNS), K[np.ix_(COLUMNS, COLUMNS)], **near)
    some, error = np.arange(0, INDEX.size, 3), np.zeros(INDEX.size)
    np.testing.assert_allclose(gram.block(some, COLUMNS), K[np.ix_(some, COLUMNS)], **near)
    kept = RNG.random(COLUMNS.size) < 0.5
    for _ in range(2):  # computed, then kept
        found = gram.dot(COLUMNS, V, kept, error)
        exact = K[:, COLUMNS] @ V
        np.testing.assert_allclose(found, exact, **near)
    assert (np.abs(found - exact) <= error + 1e-12).all()
    np.testing.assert_allclose(gram.product(some, COLUMNS, V), exact[some], **near)
    bound = gram.bound(some, COLUMNS, V)
    assert (np.abs(gram.product(some, COLUMNS, V) - exact[some]) <= bound + 1e-12).all()


@pytest.mark.parametrize("some", [np.arange(20), np.array([4, 60, 2, 61, 3]), np.arange(1, 113, 2)])
def test_parts_are_those_of_the_whole_matrix(some):
    gram = engine_for(X).gram(RBF(0.3), INDEX)
    part, K = gram.restrict(some), RBF(0.3)(X[INDEX[some]])
    v = np.arange(1.0, 1.0 + some.size)
    np.testing.assert_allclose(part.dot(np.arange(some.size), v), K @ v, rtol=1e-9)
    np.testing.assert_allclose(part.whole(), K, atol=1e-12)


def test_opposite_coefficients_of_a_row_cancel():
    gram = engine_for(X).gram(RBF(0.3), np.tile(np.arange(N), 2))
    v = np.concatenate([X[:, 0], -X[:, 0]])
    assert not gram.dot(np.arange(2 * N), v).any()


def test_values_are_computed_once_per_row():
    engine = engine_for(X, reuse=True)
    gram = engine.gram(RBF(0.3), np.tile(np.arange(N), 2))
    gram.dot(np.arange(2 * N), np.ones(2 * N))
    assert sum(engine.n_computed.values()) <= N * N
