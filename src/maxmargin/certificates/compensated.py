"""Sums of products in twice the precision of float64, by error-free transformations.

A number is the unevaluated sum of two float64, high + low with \\|low\\| at most half a unit in the
last place of high. References: Dekker, *Numer. Math.* 18 (1971); Ogita, Rump, Oishi, *SIAM J. Sci.
Comput.* 26 (2005).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from ..arrays import Floats

# 2²⁷ + 1 splits a float64 into two halves of 26 bits.
SPLITTER = 134217729.0
# Up to this size the halves do not overflow.
LARGEST = 1e290
EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)


class Doubled(NamedTuple):
    """high + low, element by element."""

    high: Floats
    low: Floats

    @classmethod
    def zeros(cls, size: int) -> Self:
        """Return zeros."""
        return cls(np.zeros(size), np.zeros(size))


def combine(start: Doubled, rows: Floats, coefficients: Floats) -> Doubled:
    """Return start + Σ_l c_l x_l by pairwise summation: half of the rows are added at once."""
    terms = two_products(rows, coefficients[:, np.newaxis])
    while (n := len(terms.high)) > 1:
        half = n // 2
        first, second, last = (
            Doubled(terms.high[part], terms.low[part])
            for part in (slice(half), slice(half, 2 * half), slice(2 * half, n))
        )
        sums = _add(first, second)
        terms = Doubled(*(np.concatenate(parts) for parts in zip(sums, last, strict=True)))
    return _add(start, Doubled(terms.high.sum(axis=0), terms.low.sum(axis=0)))


def product(rows: Floats, w: Doubled, b: float) -> Floats:
    """Return w·x + b for every row, rounded once."""
    total = Doubled(np.full(len(rows), b), np.zeros(len(rows)))
    for column, high, low in zip(rows.T, *w, strict=True):
        term = two_products(column, high)
        total = _add(total, Doubled(term.high, term.low + column * low))
    return total.high + total.low


def compensated_dot(rows: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return rows·v of shape (n,) as if summed in twice the precision, and bounds of the errors.

    Ogita, Rump, Oishi, algorithm 5.3 (Dot2). If numbers are so large that the errors of products
    overflow, the bound is ∞.
    """
    total: Floats = np.zeros(rows.shape[0])
    error, magnitude = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for x, coefficient in zip(rows.T, v, strict=True):
            product, lost = two_products(x, coefficient)
            total, more = two_sums(total, product)
            error += lost + more
            magnitude += np.abs(product)
        value = total + error
        terms = rows.shape[1] + 2
        bound = EPSILON * np.abs(value) + 2.0 * (terms * EPSILON) ** 2 * magnitude + terms * TINY
    sizes = np.maximum(np.abs(rows).max(axis=1, initial=0.0), np.abs(v).max(initial=0.0))
    safe = (sizes < LARGEST) & (magnitude < LARGEST)
    return np.where(safe, value, 0.0), np.where(safe, bound, np.inf)


def exact_dot(row: Floats, v: Floats) -> Fraction:
    """Return row·v as a rational number: float64 are dyadic."""
    pairs = zip(row.tolist(), v.tolist(), strict=True)
    return sum((Fraction(x) * Fraction(c) for x, c in pairs if x and c), Fraction(0))


def two_sums(a: Floats, b: Floats) -> Doubled:
    """Return a + b with its error (Knuth)."""
    total = a + b
    part = total - a
    return Doubled(total, (a - (total - part)) + (b - part))


def two_products(a: Floats, b: Floats | np.float64 | float) -> Doubled:
    """Return a·b with its error (Dekker, Veltkamp)."""
    total = a * b
    a_high = SPLITTER * a - (SPLITTER * a - a)
    b_high = SPLITTER * b - (SPLITTER * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((total - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return Doubled(total, error)


def _add(a: Doubled, b: Doubled) -> Doubled:
    high, low = two_sums(a.high, b.high)
    low = low + (a.low + b.low)
    total = high + low
    return Doubled(total, low - (total - high))
