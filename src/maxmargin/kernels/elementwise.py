"""Kernels that are a formula of inner products: linear, polynomial, Gaussian, sigmoid."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from numbers import Integral

import numpy as np

from .base import Kernel, positive, real
from .products import Floats, Rows, as_rows, blocks, dense, finite

_LARGEST_MAP = 10_000_000  # numbers in an explicit feature map


@dataclass(frozen=True)
class Linear(Kernel):
    """K(x, z) = ⟨x, z⟩ (Schölkopf, Smola, section 2.1).

    >>> print(Linear()([[1, 2]], [[3, 4]]))
    [[11.]]
    """

    @property
    def positive_semidefinite(self) -> bool:
        return True

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        return dot


@dataclass(frozen=True)
class Polynomial(Kernel):
    """K(x, z) = (γ⟨x, z⟩ + r)^p, p ≥ 1, γ > 0 (Schölkopf, Smola, sections 2.1 and 2.3).

    r = 0 is the homogeneous kernel, r = 1 the textbook's; with r < 0 it is in general not
    positive semidefinite.

    >>> print(Polynomial(2, coef0=1.0)([[1, 2]], [[3, 4]]))
    [[144.]]
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        p = self.degree
        if isinstance(p, bool) or not isinstance(p, Integral) or p < 1:
            raise ValueError(f"degree={p!r} is no power: pass an int of at least 1.")
        object.__setattr__(self, "degree", int(p))
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", real("coef0", self.coef0))

    @property
    def positive_semidefinite(self) -> bool:
        return self.coef0 >= 0.0

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        dot *= self.gamma
        dot += self.coef0
        for block in blocks(dot.shape[0], math.prod(dot.shape[1:])):
            _raise_to(dot[block], self.degree)
        return dot

    def feature_map(self, X: Rows) -> Floats:
        """Return φ(X) with ⟨φ(x), φ(z)⟩ = K(x, z), of shape (n, C(d+p, p)).

        The coordinate of x₁^k₁…x_d^k_d is √(p!/(k₀!k₁!…k_d!) γ^(p−k₀) r^k₀) x₁^k₁…x_d^k_d with
        k₀ = p − Σk_j. They come by total degree, then largest exponent, then x₁ before x₂. Where
        r = 0 only the C(d+p−1, p) of degree p are left.

        >>> print(Polynomial(2, coef0=1.0).feature_map([[1, 3]]).round(4))
        [[1.     1.4142 4.2426 4.2426 1.     9.    ]]
        """
        if self.coef0 < 0:
            raise ValueError(f"coef0={self.coef0} < 0 has no real feature map: pass coef0 >= 0.")
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
    """K(x, z) = exp(−γ‖x − z‖²), γ = 1/2σ² (Schölkopf, Smola, section 2.3).

    Exactly one of γ > 0 and σ > 0 is given; both can be read.

    >>> RBF(sigma=2.0), RBF(gamma=0.125).sigma
    (RBF(gamma=0.125), 2.0)
    """

    gamma: float

    def __init__(self, gamma: float | None = None, sigma: float | None = None) -> None:
        if (gamma is None) == (sigma is None):
            raise ValueError(f"gamma={gamma!r}, sigma={sigma!r}: pass exactly one of the two.")
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
        dot -= (0.5 * x_sq).astype(dot.dtype)[..., :, None]
        dot -= (0.5 * z_sq).astype(dot.dtype)[..., None, :]
        np.minimum(dot, 0.0, out=dot)
        dot *= 2.0 * self.gamma
        return np.exp(dot, out=dot)


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """K(x, z) = tanh(γ⟨x, z⟩ + r), γ > 0: the neural network's (Schölkopf, Smola, section 2.3).

    Not positive semidefinite in general.

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
        return np.tanh(dot, out=dot)


def _raise_to(values: Floats, p: int) -> None:
    """Do values ← values^p by squaring: several times faster than pow."""
    base = values.copy()
    for bit in bin(p)[3:]:
        values *= values
        if bit == "1":
            values *= base


def _largest_exponent(indices: tuple[int, ...]) -> int:
    return max(Counter(indices).values(), default=0)


def _root_multinomial(indices: tuple[int, ...]) -> float:
    repeats = math.prod(map(math.factorial, Counter(indices).values()))
    return math.sqrt(math.factorial(len(indices)) // repeats)
