"""Polynomial kernels in exact arithmetic: proofs of inseparability in their feature spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from scipy import sparse

from ..arrays import Floats
from ..kernels import Kernel, Linear, Polynomial, Product, Scaled, Sum
from ..problems import DualProblem
from .exact import Deadline, Exact, exact_solution, integer_columns


@dataclass(frozen=True)
class Tuning:
    """Limits of proofs in exact arithmetic."""

    # Multipliers relative to the largest up to which they count as rounding errors.
    zero_multiplier: float = 1e-9
    max_support: int = 400
    max_seconds: float = 2.0


TUNING = Tuning()


def feature_space_proof(problem: DualProblem, u: Floats) -> Floats | None:
    """Return u ≥ 0 near the one given with Σ u_i y_i φ(x_i) = 0 and, with a bias, yᵀu = 0.

    For positive semidefinite kernels the first is K(u∘y) = 0. Float64 values of K show only that
    the sum is small: this needs kernels that are polynomials, whose values on float64 numbers are
    rational. Returns an exact solution, rounded; None if there is none, and for all other kernels.
    """
    support = np.flatnonzero(u > TUNING.zero_multiplier * u.max())
    if not problem.kernel.positive_semidefinite or support.size > TUNING.max_support:
        return None
    rows = problem.X[problem.index[support]]
    rows = rows.toarray() if sparse.issparse(rows) else rows
    y = problem.signs[support].astype(int).astype(object)
    K = exact_gram(problem.kernel, np.asarray(rows, dtype=np.float64))
    if K is None:
        return None
    signed = _whole(K) * y[:, np.newaxis]
    if problem.groups:
        signed = np.column_stack([signed, y])
    v = exact_solution(signed, u[support], Deadline(TUNING.max_seconds))
    if v is None:
        return None
    total, exact = sum(v), np.zeros_like(u)
    exact[support] = [float(Fraction(share, total)) for share in v]
    return exact


def exact_gram(kernel: Kernel, rows: Floats) -> Exact | None:
    """Return K(x_i, x_j) as rational numbers, or None if they are not rational."""
    if isinstance(kernel, Linear | Polynomial):
        products = _exact_products(rows)
        if isinstance(kernel, Linear):
            return products
        return (Fraction(kernel.gamma) * products + Fraction(kernel.coef0)) ** kernel.degree
    if isinstance(kernel, Scaled):
        K = exact_gram(kernel.kernel, rows)
        return None if K is None else Fraction(kernel.factor) * K
    if isinstance(kernel, Sum | Product):
        found = [exact_gram(part, rows) for part in kernel.parts]
        parts = [part for part in found if part is not None]
        combine = np.add if isinstance(kernel, Sum) else np.multiply
        return reduce(combine, parts) if len(parts) == len(found) else None
    return None


def _exact_products(rows: Floats) -> Exact:
    """Return ⟨x_i, x_j⟩ as rational numbers: integers over one power of two."""
    flat = rows.ravel()
    whole = integer_columns(flat[:, np.newaxis])[:, 0]
    largest = int(np.abs(flat).argmax())
    unit = Fraction(float(flat[largest])) / whole[largest] if flat.any() else Fraction(1)
    numbers = whole.reshape(rows.shape)
    return unit * unit * (numbers @ numbers.T)


def _whole(K: Exact) -> Exact:
    """Return K times the least common denominator, as integers."""
    common = math.lcm(*(value.denominator for value in K.ravel()))
    return np.array([[int(value * common) for value in row] for row in K], dtype=object)
