"""The rows of Z without storing them: signed samples, and Kesler's construction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import arrays
from maxmargin.data.normalised_samples import KeslerSamples, SignedSamples
from tests.helpers.algorithms import cloud, integers, materialised, quiet

pytestmark = quiet


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_implicit_rows_are_the_materialised(n_classes, as_sparse, subset, dtype, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 40)  # several blocks
    X, y = integers(50, 4, n_classes, seed=1)
    index = np.random.default_rng(1).permutation(50)[:31] if subset else None
    chosen = slice(None) if index is None else index
    stored = sparse.csr_array(X.astype(dtype)) if as_sparse else X.astype(dtype)
    if n_classes == 2:
        Z = SignedSamples(stored, 2.0 * y[chosen] - 1, index=index)
    else:
        Z = KeslerSamples(stored, y[chosen], n_classes=n_classes, index=index)
    dense = materialised(X[chosen], y[chosen], n_classes)
    rng = np.random.default_rng(2)
    a, u = rng.normal(size=dense.shape[1]), rng.normal(size=dense.shape[0])
    assert Z.shape == dense.shape
    np.testing.assert_allclose(Z.dot(a), dense @ a, atol=1e-11)
    np.testing.assert_allclose(Z.adjoint(u), dense.T @ u, atol=1e-11)
    some = rng.choice(len(dense), size=9)
    np.testing.assert_array_equal(Z.take(some), dense[some])
    np.testing.assert_allclose(Z.squared_norms(), (dense**2).sum(axis=1))
    np.testing.assert_array_equal(Z.pack(*Z.unpack(a)), a)
    assert Z.norm(a) == pytest.approx(np.linalg.norm(a))
    per_sample = Z.dot(a).reshape(Z.n_samples, -1).min(axis=1)
    np.testing.assert_array_equal(Z.worst_of_each(Z.dot(a)), per_sample)


@pytest.mark.parametrize("bias_step", [0.0, 2.5])
def test_bias_step_scales_what_the_bias_moves_by(bias_step):
    X, y = cloud(20, 3, 3, seed=3)
    Z = KeslerSamples(X, y, n_classes=3, bias_step=bias_step)
    dense = materialised(X, y, 3)
    u = np.random.default_rng(3).normal(size=40)
    expected = (dense.T @ u).reshape(3, 4) * [1.0, 1.0, 1.0, bias_step]
    np.testing.assert_allclose(Z.adjoint(u), expected.ravel(), atol=1e-12)
    np.testing.assert_allclose(
        Z.squared_norms(), np.repeat(2 * ((X**2).sum(axis=1) + bias_step), 2)
    )
