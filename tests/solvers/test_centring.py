"""Rows about another origin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from maxmargin.data.normalised_samples import SignedSamples
from maxmargin.solvers.centring import Origin, combined


def test_the_bias_is_rounded_once():
    rng = np.random.default_rng(0)
    w, centre, b = rng.normal(size=8), 1e12 * rng.normal(size=8), 1e12 * rng.normal()
    exact = Fraction(b) - sum(map(lambda x, c: Fraction(x) * Fraction(c), w, centre))
    assert Origin(centre).bias(w, b) == float(exact)


def test_combinations_are_rounded_once():
    rng = np.random.default_rng(1)
    c, rows = rng.normal(size=30), rng.normal(size=(30, 3)) + 1e9
    c -= c.mean()
    exact = [sum(Fraction(a) * Fraction(x) for a, x in zip(c, column, strict=True))
             for column in rows.T]  # fmt: skip
    np.testing.assert_array_equal(combined(c, rows), [float(value) for value in exact])


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_matrix])
def test_far_rows_are_centred_and_near_ones_are_not(of):
    rows = np.random.default_rng(2).normal(size=(50, 3)) + 1.0
    assert Origin.far_mean(of(rows)) is None
    origin = Origin.far_mean(of(rows + 1e4))
    np.testing.assert_allclose(origin.rows(of(rows + 1e4)).mean(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_far_columns_are_moved(dtype):
    rows = np.random.default_rng(3).normal(size=(50, 3)).astype(dtype)
    assert Origin.far_columns(rows) is None
    rows[:, 1] += 1e4
    origin = Origin.far_columns(rows)
    assert np.count_nonzero(origin.centre) == 1
    np.testing.assert_array_equal(origin.centre.astype(dtype), origin.centre)
    np.testing.assert_array_equal(origin.rows(rows)[:, [0, 2]], rows[:, [0, 2]])


def test_the_middle_takes_a_bias():
    rows = np.array([[1.0, 4.0], [3.0, 0.0]])
    y = np.array([1.0, -1.0])
    origin, square = Origin.middle(SignedSamples(rows, y))
    np.testing.assert_array_equal(origin.centre, [2.0, 2.0])
    assert square == 5.0
    origin, square = Origin.middle(SignedSamples(rows, y, bias_step=0.0))
    assert not origin.centre.any()
    assert square == 17.0
