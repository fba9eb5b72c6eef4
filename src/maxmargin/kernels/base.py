"""What every kernel is: a comparable, hashable value that can be evaluated, added, multiplied."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .products import Floats, Rows, as_rows, finite, products, squared_norms

# The unit roundoff of float64.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


class Kernel(ABC):
    """K(x, z) = φ(x)·φ(z), a formula of (⟨x,z⟩, ‖x‖², ‖z‖²) unless it says otherwise.

    ``K1 + K2``, ``K1 * K2`` and ``2 * K1`` are kernels too (Schölkopf, Smola, section 13.1).
    A new kernel is a frozen dataclass with `from_products`.

    >>> from maxmargin.kernels import Polynomial
    >>> print(Polynomial(2)([[1, 2], [3, 4]]))
    [[ 25. 121.]
     [121. 625.]]
    """

    @property
    def elementwise(self) -> bool:
        """Whether `from_products` defines this kernel."""
        return True

    @property
    def shift_invariant(self) -> bool:
        """Whether K(x − c, z − c) = K(x, z), so that rows may be centred for accuracy."""
        return False

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix of this kernel is known to be positive semidefinite."""
        return False

    @abstractmethod
    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        """Return K from inner products, in the dtype and the memory of ``dot``.

        ``dot``, the ⟨x,z⟩ of shape (..., n, m), is given away by the caller. ``x_sq`` and ``z_sq``
        are ‖x‖² and ‖z‖² of shapes (..., n) and (..., m); where X = Z, passing the diagonal of
        ``dot`` makes that of an RBF exactly 1.
        """

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        """Return Σ_j weights_j |Δ_ij| for every row i, Δ_ij the rounding error of K(x_i, z_j).

        The error is that of `from_products` in arithmetic of unit roundoff ``unit``, on inner
        products of ``terms`` terms and rows rounded to it (Higham, 2002, section 3.1). A kernel
        that does not say is not known to have a bound: ∞.
        """
        return np.full(x_sq.shape, np.inf)

    def blurred(self, x_sq: Floats, z_sq: Floats, terms: int, unit: float) -> bool:
        """Return whether `from_products` is seen to lose digits that the kernel itself does not."""
        return False

    def bounded(self, X: Any, Z: Any, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return K(x_i, z_j) of float64 rows with a bound of its rounding errors.

        Returns
        -------
        K : ndarray of shape (n, m)
        error : ndarray of shape (n,)
            Σ_j weights_j |Δ_ij|, at least; ``weights`` ≥ 0.
        size : ndarray of shape (n,)
            Σ_j weights_j |K_ij|.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            dot, x_sq, z_sq, terms = products(X, Z, self.shift_invariant)
            error = self.rounding(x_sq, z_sq, weights, terms, UNIT)
            K = finite(self.from_products(dot, x_sq, z_sq), repr(self))
        return K, error, np.abs(K) @ weights

    def __call__(self, X: Rows, Z: Rows | None = None) -> Floats:
        """Return the Gram block K(x_i, z_j), Z = X by default.

        X of shape (n, d) and Z of shape (m, d) give (n, m), float32 where both are, else float64.
        """
        rows = as_rows(X)
        others = rows if Z is None else as_rows(Z, "Z")
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(self._gram(rows, others), repr(self))

    def diagonal(self, X: Rows) -> NDArray[np.float64]:
        """Return K(x_i, x_i) for every row, shape (n,), in float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(self._diagonal(as_rows(X)), repr(self)).astype(np.float64)

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        """Return what no |K(x, z)| exceeds, of rows of these squared lengths: ∞ if not known."""
        return np.inf

    def _gram(self, X: Any, Z: Any) -> Floats:
        dot, x_sq, z_sq, _ = products(X, Z, self.shift_invariant)
        return self.from_products(dot, x_sq, z_sq)

    def _diagonal(self, X: Any) -> Floats:
        squares = squared_norms(X)[:, None]  # of n Gram matrices of one row each
        return self.from_products(squares[:, :, None].copy(), squares, squares).reshape(-1)

    def __add__(self, other: Kernel) -> Kernel:
        from .composition import Sum

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from .composition import Product, Scaled

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scaled(other, self) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def real(name: str, value: object) -> float:
    """Return the parameter ``name`` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r} is not a finite number: pass a float.")
    return float(value)


def positive(name: str, value: object) -> float:
    """Return the parameter ``name`` as a finite float > 0."""
    if (number := real(name, value)) <= 0:
        raise ValueError(f"{name}={value!r} is not positive: pass a number > 0.")
    return number
