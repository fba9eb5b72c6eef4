"""Sums, products and positive multiples of kernels (Schölkopf, Smola, section 13.1).

>>> from maxmargin.kernels import RBF, Linear
>>> Linear() + 2 * RBF(1.0) == Sum((Linear(), Scaled(2.0, RBF(1.0))))
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from .base import Kernel, positive
from .products import Floats, blocks


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
        for block in blocks(dot.shape[0], math.prod(dot.shape[1:])):  # copied for each part
            x, z = x_sq[block], z_sq if dot.ndim == 2 else z_sq[block]
            values = (part.from_products(dot[block].copy(), x, z) for part in self.parts)
            dot[block] = self._join(values)
        return dot

    def _gram(self, X: Any, Z: Any) -> Floats:
        if self.elementwise:
            return super()._gram(X, Z)  # one matrix product for all parts
        return self._join(part._gram(X, Z) for part in self.parts)

    def _diagonal(self, X: Any) -> Floats:
        return self._join(part._diagonal(X) for part in self.parts)


@dataclass(frozen=True, repr=False)
class _Several(_Composition):
    parts: tuple[Kernel, ...]
    operation: ClassVar[np.ufunc]
    symbol: ClassVar[str]

    def _join(self, values: Iterator[Floats]) -> Floats:
        return reduce(self.operation, values)

    def __repr__(self) -> str:
        return self.symbol.join(map(_operand, self.parts))


@dataclass(frozen=True, repr=False)
class Sum(_Several):
    """K(x, z) = Σ_k K_k(x, z)."""

    operation = np.add
    symbol = " + "


@dataclass(frozen=True, repr=False)
class Product(_Several):
    """K(x, z) = Π_k K_k(x, z)."""

    operation = np.multiply
    symbol = " * "


@dataclass(frozen=True, repr=False)
class Scaled(_Composition):
    """c·K(x, z) with c > 0."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", positive("factor", self.factor))
        object.__setattr__(self, "parts", (self.kernel,))

    def _join(self, values: Iterator[Floats]) -> Floats:
        return self.factor * next(values)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_operand(self.kernel)}"


def _operand(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, _Composition) else repr(kernel)
