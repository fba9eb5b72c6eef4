"""Weights of samples and classes of LinearSVC, and a bias that is not unique."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm
from tests.helpers.linear_svc import (
    LOSSES,
    SOLVERS,
    TIGHT,
    N,
    apart,
    certificates,
    cloud,
    made,
)
from tests.helpers.svc import signs


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_weight_2_is_the_same_sample_twice(solver, n_classes, loss):
    X, y = cloud(n_classes=n_classes)
    twice = np.arange(N) % 3 == 0
    model = made(solver=solver, loss=loss, tol=TIGHT).fit(X, y, np.where(twice, 2.0, 1.0))
    copies = clone(model).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    np.testing.assert_allclose(copies.coef_, model.coef_, atol=2e-4)
    np.testing.assert_allclose(copies.intercept_, model.intercept_, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_whole_weights_are_repetitions_and_the_kernel_machine_agrees(solver, loss):
    """The bias too, which few samples of a hinge leave undecided within an interval."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d, C = int(rng.integers(4, 14)), int(rng.integers(1, 4)), 10.0 ** rng.uniform(-3, 1)
        X, weights = rng.standard_normal((n, d)), rng.integers(1, 4, n)
        y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1, -1)
        y[:2] = 1, -1
        model = made(C=C, solver=solver, loss=loss, tol=1e-11).fit(X, y, weights)
        copies = clone(model).fit(X.repeat(weights, axis=0), y.repeat(weights))
        kernel = mm.SVC(C=C, kernel="linear", loss=loss, tol=1e-9).fit(X, y, weights)
        for other in (copies, kernel):
            np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-5)
            np.testing.assert_allclose(other.intercept_, model.intercept_, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("x", "y", "C", "middle"),
    [
        ([-1.0, 1.0], [0, 1], 0.1, 0.0),
        ([-1.0, 3.0], [0, 1], 0.1, -0.4),
        ([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1], 0.01, -0.03),
    ],
)
def test_a_bias_that_is_not_unique_is_the_middle_of_its_interval(solver, x, y, C, middle):
    """Every α is C: w = C Σ yx, and slopes of P in b are 0 between two breaks y − wx."""
    X = np.array(x)[:, np.newaxis]
    model = made(C=C, loss="hinge", solver=solver, tol=1e-10).fit(X, y)
    assert np.abs(model.dual_coef_) == pytest.approx(C, rel=1e-6)
    breaks = np.sort(signs(np.array(y)) - model.coef_[0, 0] * np.array(x))
    half = len(x) // 2
    assert model.intercept_[0] == pytest.approx(breaks[half - 1 : half + 1].mean(), abs=1e-6)
    assert model.intercept_[0] == pytest.approx(middle, abs=1e-6)


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_samples_of_weight_0_are_left_out(solver, multi_class, C):
    X, y = cloud(n_classes=3) if C == 1.0 else apart()
    absent = np.arange(len(y)) % 4 == 1
    labels = np.where(absent, 77, y)  # not even their class is seen
    model = made(C=C, solver=solver, multi_class=multi_class, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, labels, (~absent).astype(float))
        without = clone(model).fit(X[~absent], y[~absent])
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-3)
    assert not absent[model.support_].any()


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0}], ids=["balanced", "dict"])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_classes_are_costs(loss, class_weight):
    X, y = cloud()
    y = np.where(np.arange(N) < 150, 0, y)
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    model = made(loss=loss, class_weight=class_weight, tol=1e-8).fit(X, y, weights)
    of_class = {0: 1.0, 1: 3.0}
    if class_weight == "balanced":
        of_class = {k: weights.sum() / (2 * weights[y == k].sum()) for k in (0, 1)}
    combined = weights * np.where(y == 1, of_class[1], of_class[0])
    plain = made(loss=loss, tol=1e-8).fit(X, y, combined)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    for certificate in certificates(model, X, y, combined):
        assert certificate.holds(1.001e-8)
