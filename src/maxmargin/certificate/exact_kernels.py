"""Polynomial kernels in exact arithmetic: proofs of inseparability in their feature spaces."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import Kernel, Linear, Polynomial, Product, Scaled, Sum
from ..problem import MarginProblem
from ..samples import Floats
from .exact import Deadline, Exact, exact_solution

# Multipliers relative to the largest that are rounding, and how many of them are looked at.
DUST, LARGEST = 1e-9, 400
SECONDS = 2.0


def refutes_exactly(problem: MarginProblem, u: Floats) -> bool:
    """Return whether some u ≥ 0 near the one given has Σ u_i y_i φ(x_i) = 0, and yᵀu = 0.

    For positive semidefinite kernels the first is K(u∘y) = 0. Float64 values of K show no more
    than that the sum is small: only kernels that are polynomials, whose values on float64 numbers
    are rational, can be decided here. The answer for all others is False.
    """
    support = np.flatnonzero(u > DUST * u.max())
    if not problem.kernel.positive_semidefinite or support.size > LARGEST:
        return False
    rows = problem.X[problem.index[support]]
    rows = rows.toarray() if sparse.issparse(rows) else rows
    y = problem.y[support].astype(int).astype(object)
    K = exact_gram(problem.kernel, np.asarray(rows, dtype=np.float64))
    if K is None:
        return False
    signed = _whole(K) * y[:, np.newaxis]
    if problem.balanced:
        signed = np.column_stack([signed, y])
    return exact_solution(signed, u[support], Deadline(SECONDS)) is not None


def exact_gram(kernel: Kernel, rows: Floats) -> Exact | None:
    """Return K(x_i, x_j) as rational numbers, or None where it has others."""
    if isinstance(kernel, Linear | Polynomial):
        dyadic = np.array([[Fraction(v) for v in row] for row in rows.tolist()], dtype=object)
        products: Any = dyadic @ dyadic.T
        if isinstance(kernel, Linear):
            return products
        return (Fraction(kernel.gamma) * products + Fraction(kernel.coef0)) ** kernel.degree
    if isinstance(kernel, Scaled):
        K = exact_gram(kernel.kernel, rows)
        return None if K is None else Fraction(kernel.factor) * K
    if isinstance(kernel, Sum | Product):
        parts = [exact_gram(part, rows) for part in kernel.parts]
        if any(part is None for part in parts):
            return None
        combine = np.add if isinstance(kernel, Sum) else np.multiply
        return combine.reduce(parts)
    return None


def _whole(K: Exact) -> Exact:
    """Return K times the least number that makes it integers."""
    common = math.lcm(*(value.denominator for value in K.ravel()))
    return np.array([[int(value * common) for value in row] for row in K], dtype=object)
