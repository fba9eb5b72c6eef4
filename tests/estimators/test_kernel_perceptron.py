"""Kernels of the kernel perceptron: Gram matrices, callables, indefinite ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import cloud
from tests.helpers.bad_input import BAD_KERNELS, X, Y, assert_finite


def test_precomputed_kernels():
    K = X @ X.T
    model = mm.KernelPerceptron(kernel="precomputed")
    with pytest.raises(ValueError, match=r"square.*\(20, 19\)"):
        model.fit(K[:, :-1], Y)
    lopsided = K.copy()
    lopsided[3, 4] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric.*1"):
        model.fit(lopsided, Y)
    model.fit(K, Y)
    linear = mm.KernelPerceptron(kernel="linear").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(K), linear.decision_function(X))
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :-1])


def test_an_indefinite_gram_matrix_is_warned_of():
    K = X @ X.T
    K -= 5.0 * np.eye(20)
    smallest = np.linalg.eigvalsh(K)[0]
    with pytest.warns(UserWarning, match="eigenvalue") as caught:
        model = mm.KernelPerceptron(kernel="precomputed", max_iter=50).fit(K, Y)
    assert any(f"{smallest:.2g}"[:4] in str(w.message) for w in caught)
    assert model.n_iter_ <= 50


def test_an_indefinite_gram_matrix_terminates():
    K = X @ X.T - 1000.0 * np.eye(20)  # even the diagonal is negative
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.KernelPerceptron(kernel="precomputed", max_iter=50).fit(K, Y)
    assert_finite(model)
    assert np.isfinite(model.certificate_.radius)


@pytest.mark.parametrize("kind", BAD_KERNELS)
def test_bad_callable_kernels(kind):
    with pytest.raises(ValueError, match=r"(?i)lambda|shape|nan"):
        mm.KernelPerceptron(kernel=BAD_KERNELS[kind]).fit(X, Y)


@pytest.mark.parametrize("coef0", [-5.0, -1.0, 0.0, 2.0])
def test_an_indefinite_sigmoid_terminates(coef0):
    rows, y = cloud(40, 3, seed=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model = mm.KernelPerceptron(kernel="sigmoid", gamma=1.0, coef0=coef0, max_iter=40).fit(
            rows, y
        )
    assert model.n_iter_ <= 40
    assert_finite(model)
    assert np.isfinite(model.certificate_.radius)
    right = (model.predict(rows) == y).sum()
    assert model.certificate_.n_errors == 40 - right
    assert model.separates_ == (right == 40)
