"""Compensated sums."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from maxmargin.certificates.compensated import Doubled, combine


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_sums_in_halves_have_twice_the_digits(n):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-8, 9, size=(n, 3))
    c = rng.normal(size=n)
    start = Doubled(np.ones(3), np.zeros(3))
    total = combine(start, rows, c)
    for j in range(3):
        terms = [Fraction(x) * Fraction(k) for x, k in zip(rows[:, j], c, strict=True)]
        exact, size = 1 + sum(terms), 1 + sum(map(abs, terms))
        found = Fraction(total.high[j]) + Fraction(total.low[j])
        assert abs(found - exact) <= Fraction(1e-29) * size
