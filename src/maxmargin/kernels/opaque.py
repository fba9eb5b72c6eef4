"""Kernels that are not formulas of inner products: precomputed values and callables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, OnDevice
from .base import Kernel
from .products import RowsLike, as_rows, dense


class _Opaque(Kernel):
    @property
    def elementwise(self) -> bool:
        return False

    def from_products(self, dot: Floats, x_sq: Floats, z_sq: Floats) -> Floats:
        raise TypeError(
            f"{self!r} is not a function of inner products: call it on the rows instead."
        )

    def bounded(self, X: Any, Z: Any, weights: Floats) -> tuple[Floats, Floats, Floats]:
        # The returned values define the kernel, so they have no error.
        K = self(X, Z).astype(np.float64, copy=False)
        return K, np.zeros((K.shape[0], *weights.shape[1:])), np.abs(K) @ weights


@dataclass(frozen=True)
class Precomputed(_Opaque):
    """Kernel values that the caller has computed: X holds K(x_i, z_j) for the training rows z_j.

    Examples
    --------
    >>> from maxmargin.kernels import Precomputed
    >>> print(Precomputed()([[2.0, 1.0], [1.0, 2.0]]))
    [[2. 1.]
     [1. 2.]]
    """

    def _gram(self, X: Any, Z: Any) -> Floats:
        if X.shape[1] != Z.shape[0]:
            raise ValueError(
                f"X has shape {X.shape} for {Z.shape[0]} training rows: pass kernel values of "
                "shape (n_samples, n_training_rows), square where X holds the training rows."
            )
        return dense(X)

    def diagonal(self, X: RowsLike) -> NDArray[np.float64]:
        if isinstance(X, OnDevice):
            return X.diagonal().astype(np.float64, copy=False)
        return super().diagonal(X)

    def _diagonal(self, X: Any) -> Floats:
        return self._gram(X, X).diagonal()


@dataclass(frozen=True, repr=False)
class Custom(_Opaque):
    """A kernel computed by a callable, whose result is checked.

    Parameters
    ----------
    function : callable
        f(X, Z) with two 2-D arrays (CSR where the data are), which returns an array of shape
        (n, m).

    Examples
    --------
    >>> from maxmargin.kernels import Custom
    >>> print(Custom(lambda X, Z: X @ Z.T)([[1.0, 2.0]], [[3.0, 4.0]]))
    [[11.]]
    """

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise ValueError(
                f"kernel must be a Kernel or a callable f(X, Z), got {self.function!r}."
            )

    def __repr__(self) -> str:
        return f"Custom({getattr(self.function, '__qualname__', repr(self.function))})"

    def _gram(self, X: Any, Z: Any) -> Floats:
        value = self.function(X, Z)
        expected = (X.shape[0], Z.shape[0])
        if np.shape(value) != expected:
            raise ValueError(f"{self!r} returned shape {np.shape(value)}: return {expected}.")
        return dense(as_rows(value, repr(self)))

    def _diagonal(self, X: Any) -> Floats:
        values = np.empty(X.shape[0])
        for start in range(0, X.shape[0], 64):  # only the diagonal of each small block is kept
            rows = X[start : start + 64]
            values[start : start + 64] = self._gram(rows, rows).diagonal()
        return values
