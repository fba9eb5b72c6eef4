"""Sums over the rows of X: those of certificates agree with those of the engine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import arrays
from maxmargin.data.normalised_samples import KeslerSamples, SignedSamples
from maxmargin.data.row_sums import BlockSums
from maxmargin.engines.registry import engine_for
from tests.helpers.algorithms import cloud


@pytest.mark.parametrize("n_vectors", [1, 4])
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_plain_sums_agree_with_the_engine(n_vectors, as_sparse, subset, dtype, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 100)  # several blocks
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 7)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0.0
    stored = sparse.csr_array(X) if as_sparse else X
    index = np.sort(rng.permutation(90)[:53]) if subset else None
    dense = X.astype(float) if index is None else X[index].astype(float)
    w, b = rng.normal(size=(n_vectors, 7)), rng.normal(size=n_vectors)
    c = rng.normal(size=(len(dense), n_vectors))
    for sums in (BlockSums(stored, index), engine_for(stored).sums(index)):
        np.testing.assert_allclose(sums.scores(w, b), dense @ w.T + b, atol=1e-12)
        np.testing.assert_allclose(sums.combine(c), c.T @ dense, atol=1e-12)
    plain = BlockSums(stored, index)
    np.testing.assert_allclose(plain.squared_lengths, (dense**2).sum(axis=1))
    np.testing.assert_allclose(plain.squared_columns(c[:, 0]), c[:, 0] @ dense**2, atol=1e-12)
    np.testing.assert_allclose(plain.magnitudes(w, b), np.abs(dense) @ np.abs(w.T) + np.abs(b))


class Counted:
    """Sums that count how often they are used."""

    def __init__(self, sums):
        self.sums, self.n_scores, self.n_combined = sums, 0, 0

    def scores(self, w, b):
        self.n_scores += 1
        return self.sums.scores(w, b)

    def combine(self, c):
        self.n_combined += 1
        return self.sums.combine(c)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_products_with_z_are_computed_by_the_sums_given(n_classes):
    X, y = cloud(30, 4, n_classes, seed=1)
    if n_classes == 2:
        Z = SignedSamples(X, 2.0 * y - 1)
    else:
        Z = KeslerSamples(X, y, n_classes=n_classes)
    counted = Counted(engine_for(X).sums())
    other = Z.computed_by(counted)
    rng = np.random.default_rng(1)
    a, u = rng.normal(size=Z.shape[1]), rng.normal(size=Z.shape[0])
    np.testing.assert_allclose(other.dot(a), Z.dot(a), atol=1e-12)
    np.testing.assert_allclose(other.adjoint(u), Z.adjoint(u), atol=1e-12)
    assert (counted.n_scores, counted.n_combined) == (1, 1)
    # Bounds of rounding errors and squared norms are those of the certificate.
    np.testing.assert_array_equal(other.magnitude(a), Z.magnitude(a))
    assert other.squared_rows is Z.squared_rows
    assert (counted.n_scores, counted.n_combined) == (1, 1)
