"""Sums, products and positive multiples of kernels (Schölkopf, Smola, section 13.1).

>>> from maxmargin.kernels import RBF, Linear
>>> Linear() + 2 * RBF(1.0) == Sum((Linear(), Scaled(2.0, RBF(1.0))))
True
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from ..arrays import Floats, blocks_of
from .base import UNIT, Kernel, positive
from .namespace import array_namespace, copied, largest, total
from .products import finite, products

# Rounding errors of a kernel value above this many units of roundoff are visible.
VISIBLE_UNITS = 1e4


class _Composition(Kernel):
    """Kernels joined by one operation on their values."""

    parts: tuple[Kernel, ...]

    @abstractmethod
    def _join(self, values: Iterator[Floats]) -> Floats:
        """Return the values of this kernel from those of its parts."""

    @property
    def elementwise(self) -> bool:
        return all(part.elementwise for part in self.parts)

    @property
    def shift_invariant(self) -> bool:
        return all(part.shift_invariant for part in self.parts)

    @property
    def positive_semidefinite(self) -> bool:
        return all(part.positive_semidefinite for part in self.parts)

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        for block in blocks_of(dot.shape[0], math.prod(dot.shape[1:])):  # copied for each part
            x, z = x_sq[block, ...], z_sq if dot.ndim == 2 else z_sq[block, ...]
            values = (part.from_products(copied(dot[block, ...]), x, z) for part in self.parts)
            dot[block, ...] = self._join(values)
        return dot

    def _gram(self, X: Any, Z: Any) -> Floats:
        if self.elementwise:
            parts = products(X, Z, self.shift_invariant)
            unit = 0.5 * float(np.finfo(parts.dot.dtype).eps)
            x_sq, z_sq = (np.array([sq.max(initial=0.0)]) for sq in (parts.x_sq, parts.z_sq))
            if not self.blurred(x_sq, z_sq, parts.terms, unit):
                return self.from_products(parts.dot, parts.x_sq, parts.z_sq)
            del parts
        # Let each part choose its own origin.
        return self._join(part._gram(X, Z) for part in self.parts)

    def blurred(self, x_sq: Floats, z_sq: Floats, terms: int, unit: float) -> bool:
        """Return whether a shift-invariant part loses visible digits at this origin."""
        return any(
            part.blurred(x_sq, z_sq, terms, unit)
            if isinstance(part, _Composition)
            else part.shift_invariant
            and float(part.rounding(x_sq, z_sq, np.ones(1), terms, unit)[0]) > VISIBLE_UNITS * unit
            for part in self.parts
        )

    def bounded(self, X: Any, Z: Any, weights: Floats) -> tuple[Floats, Floats, Floats]:
        parts = [part.bounded(X, Z, weights) for part in self.parts]
        K = finite(self._join(values for values, _, _ in parts), self)
        xp = array_namespace(K)
        sizes = [largest(xp.abs(values)) if values.shape[1] else 0.0 for values, _, _ in parts]
        size: Floats = xp.abs(K) @ weights
        error = self._join_errors([error for _, error, _ in parts], sizes)
        return K, error + len(parts) * UNIT * size, size

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        errors = [part.rounding(x_sq, z_sq, weights, terms, unit) for part in self.parts]
        sizes = [part._largest(x_sq, z_sq) for part in self.parts]
        own = len(self.parts) * unit * self._largest(x_sq, z_sq) * total(weights)
        return self._join_errors(errors, sizes) + own

    @abstractmethod
    def _join_errors(self, errors: list[Floats], largest: list[float]) -> Floats:
        """Return the error of this kernel from those of its parts and their largest values."""

    def _diagonal(self, X: Any) -> Floats:
        return self._join(part._diagonal(X) for part in self.parts)


@dataclass(frozen=True, repr=False)
class _Several(_Composition):
    parts: tuple[Kernel, ...]
    symbol: ClassVar[str]

    def __repr__(self) -> str:
        return self.symbol.join(map(_operand, self.parts))


@dataclass(frozen=True, repr=False)
class Sum(_Several):
    """The sum of kernels K(x, z) = Σ_k K_k(x, z), written ``K1 + K2``.

    Parameters
    ----------
    parts : tuple of Kernel
        The K_k.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> Linear() + RBF(1.0)
    Linear() + RBF(gamma=1.0)
    """

    symbol = " + "

    def _join(self, values: Iterator[Floats]) -> Floats:
        return reduce(operator.add, values)

    def _join_errors(self, errors: list[Floats], largest: list[float]) -> Floats:
        return reduce(operator.add, errors)

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        return sum(part._largest(x_sq, z_sq) for part in self.parts)


@dataclass(frozen=True, repr=False)
class Product(_Several):
    """The product of kernels K(x, z) = Π_k K_k(x, z), written ``K1 * K2``.

    Parameters
    ----------
    parts : tuple of Kernel
        The K_k.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> Linear() * RBF(1.0)
    Linear() * RBF(gamma=1.0)
    """

    symbol = " * "

    def _join(self, values: Iterator[Floats]) -> Floats:
        return reduce(operator.mul, values)

    def _join_errors(self, errors: list[Floats], largest: list[float]) -> Floats:
        # |ΔΠ| ≤ Σ_k |ΔK_k| Π_{l≠k} |K_l|, but for products of errors.
        product = math.prod(largest)
        terms = (
            error * (product / most if most else 0.0)
            for error, most in zip(errors, largest, strict=True)
        )
        return 1.01 * reduce(operator.add, terms)

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        return math.prod(part._largest(x_sq, z_sq) for part in self.parts)


@dataclass(frozen=True, repr=False)
class Scaled(_Composition):
    """A positive multiple c·K(x, z) of a kernel, written ``c * K``.

    Parameters
    ----------
    factor : float
        c > 0.
    kernel : Kernel
        K.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> 2.0 * Linear()
    2.0 * Linear()
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", positive("factor", self.factor))
        object.__setattr__(self, "parts", (self.kernel,))

    def _join(self, values: Iterator[Floats]) -> Floats:
        return self.factor * next(values)

    def _join_errors(self, errors: list[Floats], largest: list[float]) -> Floats:
        return self.factor * errors[0]

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        return self.factor * self.kernel._largest(x_sq, z_sq)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_operand(self.kernel)}"


def _operand(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, _Composition) else repr(kernel)
