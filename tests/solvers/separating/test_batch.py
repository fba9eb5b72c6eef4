"""Batch rules against their formulas written out in plain NumPy."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import blobs, cloud, integers, materialised, quiet, weights_of
from tests.helpers.separating import CLASSES, ROUNDING


@quiet
@CLASSES
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_batch_perceptron_is_the_textbooks(n_classes, steps):
    X, y = integers(30, 3, n_classes, seed=10)
    v = np.random.default_rng(10).integers(1, 4, size=30).astype(float)
    rate = mm.Harmonic(6.0, 1.0)
    model = mm.Perceptron(
        update="batch", learning_rate=rate, max_iter=steps, multi_class="kesler"
    ).fit(X, y, v)
    Z = materialised(X, y, n_classes)
    V = np.repeat(v, n_classes - 1)
    a = np.zeros(Z.shape[1])
    objectives = []
    for t in range(1, steps + 1):
        wrong = Z @ a <= 0
        objectives.append(-(V[wrong] * (Z @ a)[wrong]).sum())
        a += rate(t) * (V[wrong, np.newaxis] * Z[wrong]).sum(axis=0)
    np.testing.assert_allclose(weights_of(model), a, rtol=0, atol=ROUNDING * np.abs(a).max())
    np.testing.assert_allclose(model.trace_.objective, objectives, rtol=1e-10)


@quiet
@CLASSES
@pytest.mark.parametrize("beta", [0.01, 0.1])
def test_batch_relaxation_is_the_textbooks_while_it_descends(n_classes, beta):
    X, y = blobs(20, 3, n_classes, seed=11)
    model = mm.Relaxation(
        update="batch", relaxation=beta, margin=1.5, tol=0.0, max_iter=5, multi_class="kesler"
    ).fit(X, y)
    Z = materialised(X, y, n_classes)
    a = np.zeros(Z.shape[1])
    for _ in range(5):
        short = Z @ a <= 1.5
        steps = beta * (1.5 - Z @ a) / (Z**2).sum(axis=1)
        a += (steps[short, np.newaxis] * Z[short]).sum(axis=0)
    np.testing.assert_allclose(weights_of(model), a, rtol=1e-10, atol=ROUNDING)


@quiet
@CLASSES
def test_batch_lms_is_the_textbooks(n_classes):
    X, y = cloud(20, 3, n_classes, seed=12)
    model = mm.LMS(
        update="batch", learning_rate=0.005, tol=0.0, max_iter=7, multi_class="kesler"
    ).fit(X, y)
    Z = materialised(X, y, n_classes)
    a = np.zeros(Z.shape[1])
    for _ in range(7):
        a += 0.005 * Z.T @ (1.0 - Z @ a)
    np.testing.assert_allclose(weights_of(model), a, rtol=1e-10, atol=ROUNDING)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**20), beta=st.floats(0.05, 1.95))
def test_batch_relaxation_never_runs_away(seed, beta):
    X, y = cloud(30, 3, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mm.Relaxation(update="batch", relaxation=beta, max_iter=200).fit(X, y)
    assert model.status_ is not mm.Status.DIVERGED
    Z = materialised(X, y)
    highest = 0.5 * (1.0 / (Z**2).sum(axis=1)).sum()
    assert model.trace_.objective[-1] <= 4.1 * highest


@quiet
def test_batch_relaxation_stays_near_the_points():
    """Steps that divided by slopes of rounding once led to |w| of 1e15, called converged."""
    everything = itertools.combinations_with_replacement(range(-2, 3), 4)
    for points in itertools.islice(everything, None, None, 12):
        X = np.array(points, dtype=float)[:, np.newaxis]
        for y in ([-1, 1, 1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1], [-1, 1, 1, -1]):
            model = mm.Relaxation(update="batch", max_iter=300).fit(X, y)
            assert np.abs(weights_of(model)).max() < 100.0
            if model.status_ is mm.Status.CONVERGED:
                assert model.separates_
                assert (np.array(y) * model.decision_function(X)).min() >= 0.999


@quiet
@pytest.mark.parametrize("beta", [0.5, 1.0, 1.7])
def test_weights_of_batch_relaxation_are_repetitions(beta):
    for seed in range(10):
        X, y = cloud(20, 3, seed=seed)
        visits = np.random.default_rng(seed).integers(1, 4, size=20)
        model = mm.Relaxation(update="batch", relaxation=beta, max_iter=20).fit(X, y, visits)
        copies = mm.Relaxation(update="batch", relaxation=beta, max_iter=20)
        copies.fit(X.repeat(visits, axis=0), y.repeat(visits))
        np.testing.assert_allclose(weights_of(copies), weights_of(model), rtol=1e-6, atol=1e-9)
