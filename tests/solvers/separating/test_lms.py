"""Least mean squares."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import cloud, quiet, weights_of
from tests.helpers.separating import CLASSES


def test_lms_names_the_bound_of_a_constant_rate():
    X, y = cloud(50, 3, seed=22)
    R = np.column_stack([X, np.ones(50)])
    bound = 2.0 / np.trace(R.T @ R / 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(RuntimeWarning, match=rf"2/trace\(R\) = {bound:.4g}"):
            mm.LMS(learning_rate=1.01 * bound, max_iter=2).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            mm.LMS(learning_rate=0.99 * bound, max_iter=2).fit(X, y)
            mm.LMS(learning_rate=mm.Harmonic(1.01 * bound), max_iter=2).fit(X, y)


@quiet
@CLASSES
@pytest.mark.parametrize("options", [
    {"update": "batch", "tol": 1e-10, "max_iter": 50_000},
    {"update": "batch", "tol": 1e-10, "max_iter": 50_000, "learning_rate": 0.005},
    {"learning_rate": mm.Harmonic(5.0, 100.0), "shuffle": True, "random_state": 0,
     "max_iter": 3000},
], ids=["batch", "batch-rate", "robbins-monro"])  # fmt: skip
def test_lms_approaches_the_least_squares_plane(n_classes, options):
    X, y = cloud(40, 3, n_classes, seed=23)
    lms = mm.LMS(multi_class="kesler", **options).fit(X, y)
    exact = mm.Pseudoinverse(multi_class="kesler").fit(X, y)
    tol = 1e-6 if lms.update == "batch" else 0.02
    np.testing.assert_allclose(
        lms.decision_function(X), exact.decision_function(X), rtol=0, atol=tol
    )


@quiet
@pytest.mark.parametrize("rate", [1.0, 10.0, 1e5])
@pytest.mark.parametrize("update", ["single", "batch"])
@pytest.mark.parametrize("n", [40, 2000])
def test_divergence_leaves_a_finite_model(rate, update, n):
    X, y = cloud(n, 3, seed=24)
    model = mm.LMS(learning_rate=rate, update=update).fit(X, y)
    assert model.status_ is mm.Status.DIVERGED
    assert np.isfinite(weights_of(model)).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.certificate_.margin)
    assert np.abs(weights_of(model)).max() < 1e6  # it went back to where it was best


@quiet
@pytest.mark.parametrize("n", [40, 4000])
def test_default_rate_of_batch_lms_is_stable_on_a_balanced_design(n):
    """Zᵀ1 is all but orthogonal to the direction of the largest eigenvalue of ZᵀZ."""
    X = np.tile([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]], (n // 4, 1))
    y = np.tile([1, 1, 0, 0], n // 4)
    X[0, 0] += 1e-3
    model = mm.LMS(update="batch", tol=1e-9).fit(X, y)
    assert model.status_ is mm.Status.CONVERGED
    exact = mm.Pseudoinverse().fit(X, y)
    np.testing.assert_allclose(weights_of(model), weights_of(exact), atol=1e-6)
