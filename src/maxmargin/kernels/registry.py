"""Kernels by scikit-learn's names, and its rules for γ."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ..arrays import OnDevice, Partitioned, blocks_of
from .base import Kernel
from .elementwise import RBF, Linear, Polynomial, Sigmoid
from .opaque import Custom, Precomputed
from .products import RowsLike, as_rows

# Estimators, saved models and the command line look names up here when they are used.
KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "rbf": RBF,
    "sigmoid": Sigmoid,
    "precomputed": Precomputed,
}


def resolve(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: float | Literal["scale", "auto"] = "scale",
    sigma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
    X: RowsLike | None = None,
) -> Kernel:
    """Turn scikit-learn's spelling of a kernel into a `Kernel`.

    As in scikit-learn, parameters that the named kernel does not have are ignored.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name in ``KERNELS``; a `Kernel` is returned unchanged, any other callable as `Custom`.
    gamma : float, "scale" or "auto", default="scale"
        γ; "scale" is 1/(d·Var X), or 1 where the variance is 0, and "auto" is 1/d. Both need X.
    sigma : float, optional
        The width of kernel="rbf", instead of ``gamma``.
    degree : int, default=3
        Of kernel="poly".
    coef0 : float, default=0.0
        Of kernel="poly" and "sigmoid".
    X : array-like or sparse matrix of shape (n, d), optional
        The data that "scale" and "auto" depend on.

    Returns
    -------
    Kernel
        The kernel with these parameters.

    Examples
    --------
    >>> from maxmargin.kernels import resolve
    >>> resolve("rbf", gamma="auto", X=[[0.0, 1.0]])
    RBF(gamma=0.5)
    """
    if sigma is not None:
        if kernel != "rbf":
            raise ValueError(f'sigma must be None unless kernel="rbf", got {sigma!r}.')
        return RBF(None if isinstance(gamma, str) else gamma, sigma)
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return Custom(kernel)
    if kernel not in KERNELS:
        known = ", ".join(map(repr, KERNELS))
        raise ValueError(f"kernel must be {known}, a Kernel or a callable, got {kernel!r}.")
    options: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}
    options = {name: options[name] for name in _taken(KERNELS[kernel]) if name in options}
    if isinstance(options.get("gamma"), str):
        options["gamma"] = _gamma(options["gamma"], X)
    return KERNELS[kernel](**options)


@cache
def _taken(kind: type[Kernel]) -> tuple[str, ...]:
    """Return the names of the parameters of a class of kernels."""
    return tuple(signature(kind).parameters)


def _gamma(rule: str, X: RowsLike | None) -> float:
    if rule not in ("scale", "auto"):
        raise ValueError(f'gamma must be "scale", "auto" or a number > 0, got {rule!r}.')
    if X is None:
        raise ValueError(f"gamma={rule!r} depends on the data: pass X, or a number as gamma.")
    rows = X if isinstance(X, (OnDevice, Partitioned)) else as_rows(X)
    if 0 in rows.shape:
        raise ValueError(f"X has shape {rows.shape}: gamma={rule!r} needs at least one number.")
    variance = _variance(rows) if rule == "scale" else 1.0
    if not math.isfinite(variance):
        raise ValueError(f'Var X={variance} gives no gamma="scale": remove NaN or rescale X.')
    return 1.0 / (rows.shape[1] * variance) if variance else 1.0


def _variance(rows: Any) -> float:
    """Variance of all entries, the zeros of a sparse X included, summed in float64 by blocks."""
    if isinstance(rows, (OnDevice, Partitioned)):
        return rows.variance()
    stored = rows.data[:, None] if sp.issparse(rows) else rows
    size = rows.shape[0] * rows.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = stored.sum(dtype=np.float64) / size
        total = (size - stored.size) * mean**2
        for block in blocks_of(*stored.shape):
            total += np.square(stored[block].astype(np.float64) - mean).sum()
    return float(total / size)
