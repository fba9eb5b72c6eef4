"""The way to kernel values that suits the kernel, the data and the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Integers
from ...kernels import RBF, Kernel, Precomputed, squared_norms
from ...kernels.products import far_columns
from .dense_products import DenseProducts
from .far_rows import FarRows
from .few_rows import FewRows
from .products import Products
from .sparse_products import SparseProducts, WideProducts
from .values import UNIT, Given, Opaque, Values


@dataclass(frozen=True)
class Tuning:
    """Which data are multiplied in which way."""

    # The share of non-zeros up to which they are multiplied one by one. It takes 0.6 to 0.7 of them
    # until dense rows are faster, but the others need less memory.
    sparse_density: float = 0.5
    # Dense float64 rows, and numbers in them, up to which NumPy computes all values.
    few_rows: int = 512
    few_numbers: int = 1 << 20
    # The share of the mean ‖x‖² that the square of the mean has where rows are centred.
    off_centre_share: float = 0.9


TUNING = Tuning()


def values_of(kernel: Kernel, X: Any, index: Integers | None, dtype: Any, budget: float) -> Values:
    """Return the way to kernel values that suits the kernel, the data and the memory."""
    if isinstance(kernel, Precomputed):
        return Given(kernel, X, index, dtype)
    if not kernel.elementwise or _blurred(kernel, X):
        return Opaque(kernel, X, index, dtype)
    values = _products_of(kernel, X, index, dtype, budget)
    return FarRows.where_needed(values) if type(kernel) is RBF else values


def _products_of(
    kernel: Kernel, X: Any, index: Integers | None, dtype: Any, budget: float
) -> Products:
    if is_few(X) and np.dtype(dtype) == np.float64:
        return FewRows(kernel, X, index, dtype)
    if kernel.shift_invariant and not sparse.issparse(X) and _off_centre(X):
        return DenseProducts(kernel, X, index, dtype)
    if _density(X) > TUNING.sparse_density:
        return DenseProducts(kernel, X, index, dtype)
    if fits_dense(X, dtype, budget):
        return SparseProducts(kernel, X, index, dtype)
    return WideProducts(kernel, X, index, dtype)


def fits_dense(X: Any, dtype: Any, budget: float) -> bool:
    """Return whether X as a dense array takes so many bytes at most."""
    return bool(X.shape[0] * X.shape[1] * np.dtype(dtype).itemsize <= budget)


def is_few(X: Any) -> bool:
    """Return whether NumPy computes all values of these rows."""
    n, d = X.shape
    return not sparse.issparse(X) and n <= TUNING.few_rows and n * d <= TUNING.few_numbers


def _blurred(kernel: Kernel, X: Any) -> bool:
    """Whether the kernel, a composed one, is better computed part by part."""
    if not hasattr(kernel, "parts"):
        return False
    farthest = np.array([squared_norms(X).max(initial=0.0)])
    return kernel.blurred(farthest, farthest, X.shape[1], UNIT)


def _off_centre(X: Any) -> bool:
    """Whether rows are much farther from 0 than from their mean, as seen on some of them."""
    some = X[:: max(1, X.shape[0] // 512)]
    centre = far_columns(some)
    power = float(np.einsum("ij,ij->", some, some, dtype=np.float64)) / some.shape[0]
    return float(centre @ centre) > TUNING.off_centre_share * power


def _density(X: Any) -> float:
    """The share of non-zeros, seen on some rows where X is dense."""
    if sparse.issparse(X):
        return X.nnz / max(1, X.shape[0] * X.shape[1])
    some = X[:: max(1, X.shape[0] // 256)]
    return np.count_nonzero(some) / max(1, some.size)
