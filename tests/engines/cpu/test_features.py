"""Sums over the rows of X, of every kind, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.cpu import features as features_module
from maxmargin.engines.cpu.features import Features
from maxmargin.runtime import vectors
from tests.helpers.primal_solvers import KINDS, ROUNDING, cloud, dense


@pytest.fixture(params=KINDS)
def rows(request):
    """X of every kind, and the same as an array."""
    X = cloud(300, 7)[0]
    return KINDS[request.param](X), X


def numbers(n=300):
    """Return numbers for the rows, some of them 0."""
    rng = np.random.default_rng(2)
    return rng.uniform(0.1, 2.0, n) * (rng.random(n) < 0.6)


@pytest.mark.parametrize("part", [64, 1 << 19], ids=["parts", "whole"])
def test_sums_over_rows(rows, part, monkeypatch):
    tuning = features_module.Tuning(moments_multiplications=1e3 if part == 64 else 1e7)
    monkeypatch.setattr(features_module, "TUNING", tuning)
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=part))
    given, X = rows
    features, c = Features(given), numbers()
    w, b = np.linspace(-1.0, 2.0, 7), 0.25
    augmented = np.column_stack([X, np.ones(300)])
    close = {"rtol": ROUNDING, "atol": ROUNDING * 300}
    assert (features.n_rows, features.n_columns) == X.shape
    np.testing.assert_allclose(features.scores(w, b), X @ w + b, **close)
    np.testing.assert_allclose(features.scores(w), X @ w, **close)
    np.testing.assert_allclose(features.combine(c - 0.5), (c - 0.5) @ X, **close)
    moments = features.moments(c)
    np.testing.assert_allclose(moments, augmented.T @ (c[:, np.newaxis] * augmented), **close)
    np.testing.assert_array_equal(moments, moments.T)
    chosen = np.array([0, 1, 40, 299])
    some = augmented[chosen]
    for factors in (np.array([2.0]), np.array([1.0, 0.5, 3.0, 0.25])):
        expected = some.T @ (factors[:, np.newaxis] * some)
        np.testing.assert_allclose(features.moments(factors, chosen), expected, **close)
    np.testing.assert_allclose(features.squared_lengths(), (X**2).sum(axis=1), **close)
    np.testing.assert_allclose(features.squared_columns(c), c @ X**2, **close)
    for sums in (features.scores(w), features.combine(c), moments, features.squared_columns(c)):
        assert sums.dtype == np.float64


@pytest.mark.parametrize("chosen", [np.arange(0, 300, 7), np.array([0, 299]), np.arange(300)])
def test_some_rows(rows, chosen):
    given, X = rows
    some = Features(given).restrict(chosen)
    np.testing.assert_array_equal(dense(some.X), X[chosen])
    np.testing.assert_allclose(some.scores(np.arange(7.0)), X[chosen] @ np.arange(7.0), atol=1e-12)
    if not isinstance(given, mm.RowBlocks):
        assert some.X.dtype == given.dtype
        np.testing.assert_allclose(some.gram(), X[chosen] @ X[chosen].T, atol=1e-12)
        assert some.gram().dtype == np.float64


def test_what_features_say_of_themselves(rows):
    given, X = rows
    features = Features(given)
    is_sparse = sparse.issparse(given) or getattr(given, "sparse", False)
    assert features.is_dense == (not is_sparse)
    stored = np.count_nonzero(X) if is_sparse else X.size
    assert features.stored_per_row == pytest.approx(stored / 300)


def test_no_row_at_all():
    for X in (np.empty((0, 4)), sparse.csr_matrix((0, 4))):
        features = Features(X)
        assert features.scores(np.ones(4)).shape == (0,)
        np.testing.assert_array_equal(features.combine(np.empty(0)), np.zeros(4))
        np.testing.assert_array_equal(features.moments(np.empty(0)), np.zeros((5, 5)))
