"""The base class of kernels: comparable, hashable values with a formula."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, OnDevice, Partitioned
from .namespace import array_namespace, by_rows, copied
from .products import RowsLike, as_rows, finite, products, squared_norms

# The unit roundoff of float64.
UNIT = 0.5 * float(np.finfo(np.float64).eps)


class Kernel(ABC):
    """The base class of kernels K(x, z) = φ(x)·φ(z).

    Most kernels are formulas of (⟨x,z⟩, ‖x‖², ‖z‖²). ``K1 + K2``, ``K1 * K2`` and ``2 * K1`` are
    kernels as well. A new kernel is a frozen dataclass with the method `from_products`.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), chapters 2 and 13.

    Examples
    --------
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

        Arrays may be of any library with the array API (NumPy, torch, CuPy).

        Parameters
        ----------
        dot : array of shape (..., n, m)
            ⟨x,z⟩. Its contents are overwritten.
        x_sq : array of shape (..., n)
            ‖x‖².
        z_sq : array of shape (..., m)
            ‖z‖². Where X = Z, passing the diagonal of ``dot`` makes the diagonal of an RBF
            exactly 1.

        Returns
        -------
        array of shape (..., n, m)
            K(x, z).
        """

    def rounding(
        self, x_sq: Floats, z_sq: Floats, weights: Floats, terms: int, unit: float
    ) -> Floats:
        """Return Σ_j weights_j |Δ_ij| for every row i, Δ_ij the rounding error of K(x_i, z_j).

        A kernel without this method has no known bound, and the answer is ∞: its fits are
        certified by recomputing every score in float64, and these values count as exact.

        Parameters
        ----------
        x_sq, z_sq : array of shape (n,) and (m,)
            ‖x_i‖² and ‖z_j‖².
        weights : array of shape (m,)
            Non-negative weights.
        terms : int
            Terms in an inner product.
        unit : float
            The unit roundoff of the arithmetic in which rows are stored and `from_products` is
            computed.

        Returns
        -------
        array of shape (n,)
            An upper bound of the weighted sum of errors.

        References
        ----------
        Higham, *Accuracy and Stability of Numerical Algorithms* (2002), section 3.1.
        """
        return x_sq * 0.0 + math.inf

    def blurred(self, x_sq: Floats, z_sq: Floats, terms: int, unit: float) -> bool:
        """Return whether `from_products` loses visible digits that another origin would keep."""
        return False

    def bounded(self, X: Any, Z: Any, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return K(x_i, z_j) of float64 rows with a bound of its rounding errors.

        Parameters
        ----------
        X, Z : array or CSR matrix of shape (n, d) and (m, d)
            Rows in float64. Arrays may be of any library with the array API.
        weights : array of shape (m,) or (m, k)
            Non-negative weights, or several columns of them.

        Returns
        -------
        K : array of shape (n, m)
            Kernel values.
        error : array of shape (n,) or (n, k)
            An upper bound of Σ_j weights_j |Δ_ij|.
        size : array of shape (n,) or (n, k)
            Σ_j weights_j |K_ij|.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            dot, x_sq, z_sq, terms = products(X, Z, self.shift_invariant)
            xp = array_namespace(dot)
            if type(self).rounding is Kernel.rounding:
                # Without a bound the float64 values define the kernel, as those of a callable do.
                error = by_rows(xp.zeros_like(x_sq), weights)
            elif weights.ndim == 1:
                error = self.rounding(x_sq, z_sq, weights, terms, UNIT)
            else:
                columns = (weights[:, k] for k in range(weights.shape[1]))
                errors = [self.rounding(x_sq, z_sq, each, terms, UNIT) for each in columns]
                error = xp.stack(errors, axis=1)
            K = finite(self.from_products(dot, x_sq, z_sq), self)
        return K, error, xp.abs(K) @ weights

    def __call__(self, X: RowsLike, Z: RowsLike | None = None) -> Floats:
        """Return the Gram block K(x_i, z_j), with Z = X by default.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows x_i.
        Z : array-like or sparse matrix of shape (m, d), optional
            The rows z_j.

        Returns
        -------
        ndarray of shape (n, m)
            In float32 where X and Z are, else in float64.
        """
        rows = as_rows(X)
        others = rows if Z is None else as_rows(Z, "Z")
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(self._gram(rows, others), self)

    def diagonal(self, X: RowsLike) -> NDArray[np.float64]:
        """Return K(x_i, x_i) for every row, in float64.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows x_i.

        Returns
        -------
        ndarray of shape (n,)
            The diagonal of the Gram matrix.
        """
        if isinstance(X, Partitioned):
            return self._diagonal_of_partitions(X)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = X if isinstance(X, OnDevice) and self.elementwise else as_rows(X)
            return finite(self._diagonal(rows), self).astype(np.float64)

    def _diagonal_of_partitions(self, X: Partitioned) -> NDArray[np.float64]:
        if self.shift_invariant:  # K(x, x) is the same for all x
            return np.full(X.shape[0], self.diagonal(np.zeros((1, X.shape[1])))[0])
        return np.asarray(X.map(_diagonal_of, common=(self,)))

    def _largest(self, x_sq: Floats, z_sq: Floats) -> float:
        """Return an upper bound of |K(x, z)| for rows of these squared norms, ∞ if unknown."""
        return np.inf

    def _gram(self, X: Any, Z: Any) -> Floats:
        dot, x_sq, z_sq, _ = products(X, Z, self.shift_invariant)
        return self.from_products(dot, x_sq, z_sq)

    def _diagonal(self, X: Any) -> Floats:
        squares = squared_norms(X)[:, None]  # n Gram matrices of shape (1, 1)
        return self.from_products(copied(squares[:, :, None]), squares, squares).reshape(-1)

    def __add__(self, other: Kernel) -> Kernel:
        from .composition import Sum

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from .composition import Product, Scaled

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scaled(other, self) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def _diagonal_of(rows: Any, kernel: Kernel) -> NDArray[np.float64]:
    return kernel.diagonal(rows)


def real(name: str, value: object) -> float:
    """Return the parameter ``name`` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def positive(name: str, value: object) -> float:
    """Return the parameter ``name`` as a finite float > 0."""
    if (number := real(name, value)) <= 0:
        raise ValueError(f"{name} must be > 0, got {value!r}.")
    return number
