"""Kernels that are formulas of inner products: linear, polynomial, Gaussian, sigmoid."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..arrays import Floats, blocks_of
from .base import UNIT, Kernel, positive, real
from .namespace import apply, array_namespace, by_rows, copied, largest, total
from .products import Products, RowsLike, as_rows, dense, finite, products, row_squares

_LARGEST_MAP = 10_000_000  # numbers in an explicit feature map
# Where −γ‖x − z‖² may have a rounding error above VISIBLE_ERROR, pairs with ‖x − z‖² below
# CANCELLED_SHARE of ‖x‖² + ‖z‖² are computed from the differences x − z.
VISIBLE_ERROR = 1e-12
CANCELLED_SHARE = 1e-3
# Rows x up to which all ‖x − z‖² are computed from differences: centring the z takes longer.
FEW_ROWS = 2


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel K(x, z) = ⟨x, z⟩.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), section 2.1.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> print(Linear()([[1, 2]], [[3, 4]]))
    [[11.]]
    """

    @property
    def positive_semidefinite(self) -> bool:
        return True

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        return dot

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        return (terms + 4) * unit * x_sq**0.5 * float(weights @ z_sq**0.5)

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        return _largest_product(x_sq, z_sq)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel K(x, z) = (γ⟨x, z⟩ + r)^p.

    Parameters
    ----------
    degree : int, default=3
        p ≥ 1.
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=0.0
        r. With r = 0 the kernel is homogeneous; with r < 0 it is in general not positive
        semidefinite.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), sections 2.1 and 2.3.

    Examples
    --------
    >>> from maxmargin.kernels import Polynomial
    >>> print(Polynomial(2, coef0=1.0)([[1, 2]], [[3, 4]]))
    [[144.]]
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        p = self.degree
        if isinstance(p, bool) or not isinstance(p, Integral) or p < 1:
            raise ValueError(f"degree must be an int of at least 1, got {p!r}.")
        object.__setattr__(self, "degree", int(p))
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", real("coef0", self.coef0))

    @property
    def positive_semidefinite(self) -> bool:
        return self.coef0 >= 0.0

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        dot *= self.gamma
        dot += self.coef0
        for block in blocks_of(dot.shape[0], math.prod(dot.shape[1:])):
            _raise_to(dot[block, ...], self.degree)
        return dot

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        # γ‖x‖‖z‖ + |r| ≤ √(γ‖x‖² + |r|) √(γ‖z‖² + |r|); each of p factors has the error of γ⟨x,z⟩.
        x, z = (
            (self.gamma * squares + abs(self.coef0)) ** (0.5 * self.degree)
            for squares in (x_sq, z_sq)
        )
        return self.degree * (terms + 8) * unit * x * float(weights @ z)

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        base = self.gamma * _largest_product(x_sq, z_sq) + abs(self.coef0)
        return float(base**self.degree)

    def feature_map(self, X: RowsLike) -> Floats:
        """Return the explicit feature map φ with ⟨φ(x), φ(z)⟩ = K(x, z).

        The coordinate of x₁^k₁…x_d^k_d is √(p!/(k₀!k₁!…k_d!) γ^(p−k₀) r^k₀) x₁^k₁…x_d^k_d with
        k₀ = p − Σk_j. Coordinates are ordered by total degree, then by largest exponent, then x₁
        before x₂.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows to map.

        Returns
        -------
        ndarray of shape (n, C(d+p, p))
            φ(X); with r = 0 only the C(d+p−1, p) coordinates of degree p.

        Examples
        --------
        >>> print(Polynomial(2, coef0=1.0).feature_map([[1, 3]]).round(4))
        [[1.     1.4142 4.2426 4.2426 1.     9.    ]]
        """
        if self.coef0 < 0:
            raise ValueError(f"coef0 must be >= 0 for a real feature map, got {self.coef0}.")
        rows = as_rows(X)
        # (γ⟨x,z⟩ + r)^p is the homogeneous kernel of the rows (√γ x, √r).
        constant = np.full((rows.shape[0], 1), math.sqrt(self.coef0), dtype=rows.dtype)
        table = self._monomials(*rows.shape)
        augmented = np.hstack([dense(rows) * math.sqrt(self.gamma), constant])
        phi = np.empty((rows.shape[0], len(table)), dtype=rows.dtype)
        phi[:] = [_root_multinomial(indices) for indices in table]
        with np.errstate(over="ignore", invalid="ignore"):
            for column in np.array(table, dtype=np.intp).T:
                phi *= augmented[:, column]
        return finite(phi, f"the feature map of {self!r}")

    def _monomials(self, n: int, d: int) -> list[tuple[int, ...]]:
        """Each coordinate as p sorted indices into (x, √r): x₀x₀x₁r is (0, 0, 1, d)."""
        p = self.degree
        size = n * (math.comb(d + p, p) if self.coef0 else math.comb(d + p - 1, p))
        if size > _LARGEST_MAP:
            raise ValueError(
                f"the feature map of {self!r} on {n} rows of {d} features takes {size} numbers, "
                f"more than {_LARGEST_MAP}: use the kernel itself or a lower degree."
            )
        return [
            indices + (d,) * (p - k)
            for k in range(0 if self.coef0 else p, p + 1)
            for indices in sorted(combinations_with_replacement(range(d), k), key=_largest_exponent)
        ]


@dataclass(frozen=True, init=False)
class RBF(Kernel):
    """The Gaussian kernel K(x, z) = exp(−γ‖x − z‖²) with γ = 1/(2σ²).

    Parameters
    ----------
    gamma : float, optional
        γ > 0. Exactly one of ``gamma`` and ``sigma`` must be given; both can be read.
    sigma : float, optional
        σ > 0, the width.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), section 2.3.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> RBF(sigma=2.0), RBF(gamma=0.125).sigma
    (RBF(gamma=0.125), 2.0)
    """

    gamma: float

    def __init__(self, gamma: float | None = None, sigma: float | None = None) -> None:
        if (gamma is None) == (sigma is None):
            raise ValueError(f"pass exactly one of gamma and sigma, got {gamma!r} and {sigma!r}.")
        if sigma is not None:
            width = positive("sigma", sigma)
            gamma = 0.5 / width / width
        object.__setattr__(self, "gamma", positive("gamma", gamma))

    @property
    def sigma(self) -> float:
        """σ = 1/√(2γ)."""
        return math.sqrt(0.5 / self.gamma)

    @property
    def shift_invariant(self) -> bool:
        return True

    @property
    def positive_semidefinite(self) -> bool:
        return True

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        # −½‖x − z‖² = ⟨x,z⟩ − ½‖x‖² − ½‖z‖²: exactly 0 where the three products are equal.
        xp = array_namespace(dot)
        dot -= xp.astype(0.5 * x_sq, dot.dtype)[..., :, None]
        dot -= xp.astype(0.5 * z_sq, dot.dtype)[..., None, :]
        dot = apply("clip", dot, None, 0.0)
        dot *= 2.0 * self.gamma
        return apply("exp", dot)

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        farthest = largest(z_sq)
        return self.relative_rounding(x_sq, farthest, terms, unit) * total(weights)

    def relative_rounding(self, x_sq: Floats, z_sq: float, terms: float, unit: float) -> Floats:
        """Return a bound of \\|ΔK(x, z)\\|/K(x, z) for every x and all z with ‖z‖² ≤ ``z_sq``.

        ‖x‖² + ‖z‖² − 2⟨x,z⟩ has an error of at most (terms + 8) unit (‖x‖ + ‖z‖)², whose half is
        due to the inner product; the exponential adds some units of its own.
        """
        xp = array_namespace(x_sq)
        squares = 2.0 * (xp.astype(x_sq, xp.float64) + z_sq)
        error = xp.clip(self.gamma * (terms + 8) * unit * squares, None, 700.0)
        return xp.expm1(error) + 6.0 * unit

    def bounded(self, X: Any, Z: Any, weights: Floats) -> tuple[Floats, Floats, Floats]:
        with np.errstate(over="ignore", invalid="ignore"):
            parts = products(X, Z, True)
            _, x_sq, z_sq, terms = parts
            error = self.relative_rounding(x_sq, largest(z_sq), terms, UNIT)
            error, cancels = by_rows(error, weights), self._cancels(parts)
            K = self._from_rows(X, Z, parts, cancels)
            size = K @ weights
            if not cancels:
                return K, error * size, size
            # Weighting by K keeps far rows from widening the bound of the others; pairs that cancel
            # are computed from differences and add no error.
            xp, unit = array_namespace(K), self.gamma * (terms + 8) * UNIT
            own = by_rows(x_sq, weights) * size + K @ (by_rows(z_sq, weights) * weights)
            near = 2.0 * unit * own * (1.0 + error)
            anywhere = (terms + 8) * UNIT / CANCELLED_SHARE * xp.sum(weights, axis=0)
        return K, xp.fmin(near, anywhere) + 6.0 * UNIT * size, size

    def _gram(self, X: Any, Z: Any) -> Floats:
        if X.shape[0] <= FEW_ROWS and X is not Z and _same_dense_columns(X, Z):
            from scipy.spatial.distance import cdist

            squares = cdist(X, Z, "sqeuclidean")
            if np.isfinite(squares).all():
                return np.exp(-self.gamma * squares).astype(np.result_type(X, Z), copy=False)
        parts = products(X, Z, True)
        return self._from_rows(X, Z, parts, self._cancels(parts))

    def _diagonal(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def _from_rows(self, X: Any, Z: Any, parts: Products, cancels: bool) -> Floats:
        """Return K, with ‖x − z‖² computed from differences where the products cancel."""
        dot, x_sq, z_sq, terms = parts
        if not cancels:
            return self.from_products(dot, x_sq, z_sq)
        xp = array_namespace(dot)
        squares = x_sq[:, None] + z_sq[None, :]
        rows, columns = xp.nonzero(squares - 2.0 * dot < CANCELLED_SHARE * squares)
        K = self.from_products(dot, x_sq, z_sq)
        for block in blocks_of(rows.shape[0], terms):
            i, j = rows[block], columns[block]
            K[i, j] = xp.exp(-self.gamma * row_squares(X[i] - Z[j]))
        return K

    def _cancels(self, parts: Products) -> bool:
        """Return whether the rounding of ‖x‖² + ‖z‖² − 2⟨x,z⟩ may be visible in K."""
        farthest = largest(parts.x_sq) + largest(parts.z_sq)
        seen = self.gamma * (parts.terms + 8) * UNIT * farthest > VISIBLE_ERROR
        return seen and parts.dot.dtype.itemsize == 8

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        return 1.0


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """The sigmoid kernel K(x, z) = tanh(γ⟨x, z⟩ + r), not positive semidefinite in general.

    Parameters
    ----------
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=0.0
        r.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), section 2.3.

    Examples
    --------
    >>> from maxmargin.kernels import Sigmoid
    >>> print(Sigmoid()([[0.0, 0.0]]))
    [[0.]]
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", real("coef0", self.coef0))

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        dot *= self.gamma
        dot += self.coef0
        return apply("tanh", dot)

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        # tanh is nowhere steeper than 1.
        product = x_sq**0.5 * float(weights @ z_sq**0.5)
        constant = (2.0 * abs(self.coef0) + 6.0) * total(weights)
        return unit * (self.gamma * (terms + 6) * product + constant)

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        return 1.0


def _raise_to(values: Floats, p: int) -> None:
    """Replace values by values^p, by repeated squaring: several times faster than pow."""
    base = copied(values)
    for bit in bin(p)[3:]:
        values *= values
        if bit == "1":
            values *= base


def _same_dense_columns(X: Any, Z: Any) -> bool:
    return not issparse(X) and not issparse(Z) and bool(X.shape[1] == Z.shape[1])


def _largest_product(x_sq: Floats, z_sq: Floats) -> float:
    return math.sqrt(largest(x_sq) * largest(z_sq))


def _largest_exponent(indices: tuple[int, ...]) -> int:
    return max(Counter(indices).values(), default=0)


def _root_multinomial(indices: tuple[int, ...]) -> float:
    repeats = math.prod(map(math.factorial, Counter(indices).values()))
    return math.sqrt(math.factorial(len(indices)) // repeats)
