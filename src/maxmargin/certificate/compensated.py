"""Sums of products in twice the digits of float64, from error-free transformations.

A number is the unevaluated sum of two float64, high + low with \\|low\\| at most half a unit in the
last place of high. References: Dekker, *Numer. Math.* 18 (1971); Ogita, Rump, Oishi, *SIAM J. Sci.
Comput.* 26 (2005).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from ..samples import Floats

# 2²⁷ + 1 splits a float64 into two halves of 26 bits.
SPLITTER = 134217729.0


class Doubled(NamedTuple):
    """high + low, element by element."""

    high: Floats
    low: Floats

    @classmethod
    def zeros(cls, size: int) -> Self:
        """Return zeros."""
        return cls(np.zeros(size), np.zeros(size))


def combine(start: Doubled, rows: Floats, coefficients: Floats) -> Doubled:
    """Return start + Σ_l c_l x_l."""
    total = start
    for row, c in zip(rows, coefficients, strict=True):
        total = _add(total, _two_products(row, np.float64(c)))
    return total


def product(rows: Floats, w: Doubled, b: float) -> Floats:
    """Return w·x + b for every row, rounded once."""
    total = Doubled(np.full(len(rows), b), np.zeros(len(rows)))
    for column, high, low in zip(rows.T, *w, strict=True):
        term = _two_products(column, high)
        total = _add(total, Doubled(term.high, term.low + column * low))
    return total.high + total.low


def _two_sums(a: Floats, b: Floats) -> Doubled:
    """Return a + b with its error (Knuth)."""
    total = a + b
    part = total - a
    return Doubled(total, (a - (total - part)) + (b - part))


def _two_products(a: Floats, b: np.float64 | float) -> Doubled:
    """Return a·b with its error (Dekker, Veltkamp)."""
    total = a * b
    a_high = SPLITTER * a - (SPLITTER * a - a)
    b_high = SPLITTER * b - (SPLITTER * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((total - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return Doubled(total, error)


def _add(a: Doubled, b: Doubled) -> Doubled:
    high, low = _two_sums(a.high, b.high)
    low = low + (a.low + b.low)
    total = high + low
    return Doubled(total, low - (total - high))
