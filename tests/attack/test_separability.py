"""Verdicts on separability agree with exact arithmetic, or are "undecided" where that is due."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

from . import checks, oracles
from .generators import (
    SHAPES,
    categories,
    cloud,
    labels_of_both,
    seeds,
    separated,
    sets_on_a_line,
)

few = settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))


def verdict(X, y, **options):
    """Return the verdict, its proof checked in rational numbers; None is "undecided"."""
    answer = checks.WORKER.ask("separability", X=X, y=y, **options)
    assert "hang" not in answer, answer
    assert "crash" not in answer, answer
    assert "error" not in answer, answer
    rows = oracles.rational(oracles.dense(X))
    signs = np.where(y == np.unique(y)[1], 1, -1).tolist()
    if answer["separable"]:
        w, b = oracles.rational(answer["w"]), Fraction(answer["b"])
        assert oracles.separates(rows, signs, w, b), answer["text"]
        margin = Fraction(answer["margin"])
        assert margin**2 <= oracles.squared_margin(rows, signs, w, b) * (1 + Fraction(1, 10**6))
    elif answer["separable"] is False:
        used = np.flatnonzero(answer["multipliers"])
        chosen = [rows[i] for i in used]
        assert not oracles.separable(chosen, [signs[i] for i in used]), answer["text"]
    else:
        assert "undecided" in answer["text"]
    return answer["separable"]


def truth(X, y):
    signs = np.where(y == np.unique(y)[1], 1, -1).tolist()
    return oracles.separable(oracles.rational(oracles.dense(X)), signs)


def test_all_small_sets_on_a_line_are_decided():
    wrong = [
        (X.ravel().tolist(), y.tolist())
        for X, y in sets_on_a_line()
        if verdict(X, y) is not truth(X, y)
    ]
    assert not wrong, f"{len(wrong)} sets, such as {wrong[:5]}"


@pytest.mark.parametrize("shape", sorted(SHAPES))
@few
@given(seed=seeds, n=st.integers(2, 24), d=st.integers(1, 4))
def test_verdicts_are_never_wrong(shape, seed, n, d):
    X, y = SHAPES[shape](np.random.default_rng(seed), n, d)
    y = labels_of_both(y)
    for form in (np.asarray, sparse.csr_matrix):
        said = verdict(form(X), y)
        assert said is None or said is truth(X, y)


@pytest.mark.parametrize("shape", ["integers", "duplicates", "categories", "dependent", "cloud"])
@few
@given(seed=seeds, n=st.integers(2, 24), d=st.integers(1, 4))
def test_ordinary_tables_are_decided(shape, seed, n, d):
    X, y = SHAPES[shape](np.random.default_rng(seed), n, d)
    y = labels_of_both(y)
    assert verdict(X, y) is truth(X, y)


@few
@given(seed=seeds, n=st.integers(2, 24), d=st.integers(1, 4), exponent=st.integers(1, 9))
def test_clear_margins_are_found(seed, n, d, exponent):
    X, y = separated(np.random.default_rng(seed), n, d, 10.0**-exponent)
    assert verdict(X, y) is truth(X, y)
    assert verdict(X, y, maximum_margin=True) is truth(X, y)


@few
@given(seed=seeds, exponent=st.integers(10, 17))
def test_tiny_margins_are_found_or_undecided(seed, exponent):
    X, y = separated(np.random.default_rng(seed), 12, 2, 10.0**-exponent)
    assert verdict(X, y) in (None, truth(X, y))


@few
@given(seed=seeds, d=st.integers(1, 12))
def test_the_same_row_with_both_labels_decides(seed, d):
    rng = np.random.default_rng(seed)
    X, y = categories(rng, 120, d)
    X, y = X * 10.0 ** rng.uniform(-5, 5, X.shape[1]), y.copy()
    X[7], y[7] = X[90], -y[90]
    assert verdict(X, y) is False


@settings(few, max_examples=3)
@given(seed=seeds)
def test_tables_of_a_few_hundred_rows_are_decided(seed):
    # Like the credit data: amounts, ages, categories as numbers and one-hot, months of delay.
    rng = np.random.default_rng(seed)
    n = 500
    amounts = np.round(rng.lognormal(9, 1.5, (n, 8)))
    months = rng.integers(-2, 9, (n, 6)).astype(float)
    one_hot = np.hstack([np.eye(k)[rng.integers(k, size=n)] for k in (2, 4, 3)])
    X = np.hstack([amounts, months, one_hot, rng.integers(21, 75, (n, 1)).astype(float)])
    noisy = np.where(months[:, 0] + 3 * rng.normal(size=n) > 3, 1, -1)
    clean = np.where(months[:, 0] * 7 - X[:, -1] > -30, 1, -1)
    assert verdict(X, labels_of_both(noisy)) is False
    assert verdict(X, labels_of_both(clean)) is True


@few
@given(seed=seeds, exponent=st.integers(3, 8))
def test_an_offset_changes_no_verdict(seed, exponent):
    rng = np.random.default_rng(seed)
    X, y = cloud(rng, 16, 2, noise=float(rng.choice([0.0, 1.0])))
    X = np.round(X, 2) + 10.0**exponent
    assert verdict(X, y) in (None, truth(X, y))
    if exponent <= 6:
        assert verdict(X, y) is truth(X, y)


def test_the_oracle_knows_and_and_xor():
    square = oracles.rational(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    assert oracles.separable(square, [-1, -1, -1, 1])
    assert not oracles.separable(square, [-1, 1, 1, -1])
    assert oracles.separable(oracles.monomials(square, 2, homogeneous=False), [-1, 1, 1, -1])
    assert not oracles.separable(oracles.rational([[0.0], [1.0], [2.0]]), [1, -1, 1])
    assert not oracles.separable(oracles.rational([[0.0], [0.0]]), [1, -1])
    # Hulls that touch share a point.
    assert not oracles.separable(oracles.rational([[0.0], [1.0], [1.0], [2.0]]), [1, 1, -1, -1])
