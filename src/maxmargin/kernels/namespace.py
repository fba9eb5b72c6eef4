"""Element-wise formulas for any array library: NumPy, torch, CuPy, and others of the array API."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

__all__ = [
    "apply",
    "array_namespace",
    "as_numbers",
    "beside",
    "by_rows",
    "copied",
    "largest",
    "total",
]


# NumPy's arrays and numbers, and whether it has the array API itself.
NUMPY = (np.ndarray, np.generic)
HAS_ARRAY_API = hasattr(np, "astype")


def array_namespace(values: Any) -> Any:
    """Return the library of an array: of NumPy's arrays NumPy, if that has the array API."""
    is_numpy = HAS_ARRAY_API and isinstance(values, NUMPY)
    return np if is_numpy else array_api_compat.array_namespace(values)


def apply(name: str, values: Any, *arguments: Any) -> Any:
    """Replace ``values`` by the function of that name, in place, and return them."""
    if isinstance(values, np.ndarray):
        return getattr(np, name)(values, *arguments, out=values)
    in_place = getattr(values, f"{name}_", None)
    if in_place is not None:  # torch's way to say so
        return in_place(*arguments)
    values[...] = getattr(array_namespace(values), name)(values, *arguments)
    return values


def as_numbers(values: Any) -> Any:
    """Return 0 and 1 for False and True."""
    if isinstance(values, np.ndarray):
        return values.astype(np.int64)
    xp = array_namespace(values)
    return xp.astype(values, xp.int64)


def beside(matrix: Any, values: Any) -> Any:
    """Return a matrix of NumPy in the library and on the device of other values."""
    if isinstance(values, np.ndarray):
        return matrix
    return array_namespace(values).asarray(matrix, device=array_api_compat.device(values))


def copied(values: Any) -> Any:
    """Return a copy, of the same library and on the same device."""
    return array_namespace(values).asarray(values, copy=True)


def by_rows(of_rows: Any, like: Any) -> Any:
    """Return a number per row so that it multiplies rows of ``like``, which may be a matrix."""
    return of_rows if like.ndim == 1 else of_rows[:, None]


def largest(values: Any) -> float:
    """Return the largest value, 0 of none."""
    return float(array_namespace(values).max(values)) if values.shape[0] else 0.0


def total(values: Any) -> float:
    """Return the sum."""
    return float(array_namespace(values).sum(values))
