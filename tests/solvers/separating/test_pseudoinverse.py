"""The pseudoinverse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import maxmargin as mm
from maxmargin.solvers.separating import pseudoinverse
from tests.helpers.algorithms import cloud, materialised, weights_of
from tests.helpers.separating import CLASSES, SOLVE


@pytest.mark.parametrize(
    ("n", "d", "rank"), [(40, 5, 5), (40, 5, 3), (6, 20, 20), (6, 20, 2), (3000, 4, 4)]
)
@CLASSES
def test_pseudoinverse_is_numpys(n, d, rank, n_classes):
    X, y = cloud(n, rank, n_classes, seed=25)
    X = (
        X @ np.random.default_rng(25).normal(size=(rank, d))
        if rank < d
        else cloud(n, d, seed=25)[0]
    )
    model = mm.Pseudoinverse(multi_class="kesler").fit(X, y)
    Z = materialised(X, y, n_classes)
    expected = np.linalg.pinv(Z, rcond=1e-12) @ np.ones(len(Z))
    np.testing.assert_allclose(weights_of(model), expected, rtol=0, atol=1e-8)
    assert model.certificate_.holds(1e-10)


@CLASSES
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("factor", ["qr", "lsmr"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_weights_ridge_and_margins(n_classes, ridge, factor, as_sparse, monkeypatch):
    if factor == "lsmr":
        never = pseudoinverse.Tuning(max_factorised_numbers=0)
        monkeypatch.setattr(pseudoinverse, "TUNING", never)
    X, y = cloud(50, 4, n_classes, seed=26)
    rng = np.random.default_rng(26)
    v, m = rng.uniform(0.2, 3, size=50), rng.uniform(0.5, 2, size=50)
    model = mm.Pseudoinverse(ridge=ridge, margins=m, multi_class="kesler")
    model.fit(sparse.csr_array(X) if as_sparse else X, y, v)
    Z = materialised(X, y, n_classes)
    V, M = np.repeat(v, n_classes - 1), np.repeat(m, n_classes - 1)
    normal = Z.T @ (V[:, np.newaxis] * Z) + ridge * np.eye(Z.shape[1])
    expected = np.linalg.pinv(normal, rcond=1e-12) @ (Z.T @ (V * M))
    np.testing.assert_allclose(weights_of(model), expected, rtol=0, atol=SOLVE)
    assert model.certificate_.holds(1e-10)
    assert (model.n_iter_ > 1) == (factor == "lsmr")


def test_ridge_with_a_constant_feature_is_certified():
    X, y = cloud(30, 3, seed=27)
    X[:, 1] = 5.0
    model = mm.Pseudoinverse(ridge=1.0).fit(X, y)
    assert model.coef_[0, 1] == 0.0
    assert model.certificate_.holds(1e-8), str(model.certificate_)


@pytest.mark.parametrize("seed", range(4))
def test_fishers_direction(seed):
    X, y = cloud(70, 4, seed=seed)
    X, y = X[20:], (X[20:, 0] > 0.8).astype(int)  # classes of different sizes
    w = mm.Pseudoinverse(margins="fisher").fit(X, y).coef_[0]
    within = sum(np.cov(X[y == k].T, ddof=0) * (y == k).sum() for k in (0, 1))
    expected = np.linalg.solve(within, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).coef_[0]
    for direction in (expected, theirs):
        cosine = w @ direction / np.linalg.norm(w) / np.linalg.norm(direction)
        assert cosine == pytest.approx(1.0, abs=1e-12)
    assert mm.Pseudoinverse(margins="fisher").fit(X, y).decision_function(
        X.mean(axis=0)[np.newaxis]
    ) == pytest.approx(0.0, abs=1e-12)  # DHS 5.8.2: the plane passes through the grand mean


SCALES = np.array([1e-8, 1e-4, 1.0, 1e4, 1e8])


@pytest.mark.parametrize("extra", ["nothing", "a constant column", "a column twice"])
def test_badly_scaled_columns_do_not_change_the_plane(extra):
    X, y = cloud(60, 5, seed=28)
    X[:, 0] += 2.0 * y  # the smallest column matters most
    columns = {
        "nothing": [],
        "a constant column": [np.full(60, 3.0)],
        "a column twice": [X[:, 2] * SCALES[2]],
    }[extra]
    model = mm.Pseudoinverse().fit(np.column_stack([X * SCALES, *columns]), y)
    expected = mm.Pseudoinverse().fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(np.column_stack([X * SCALES, *columns])),
        expected.decision_function(X),
        atol=1e-6,
    )
    assert model.certificate_.holds(1e-10)
