"""Mercer's condition on a sample: is the Gram matrix symmetric and positive semidefinite?

Fits refuse given kernel values that are not symmetric, and warn of kernels that are indefinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Matrix, OnDevice, blocks_of
from ..caller import warn_caller
from .base import Kernel
from .opaque import Precomputed
from .products import RowsLike, as_rows

# 0.8 GB per matrix, and minutes for its eigenvalues.
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class MercerReport:
    """The result of `mercer`: symmetry and extreme eigenvalues of a Gram matrix.

    Parameters
    ----------
    asymmetry : float
        max |K − Kᵀ|.
    smallest_eigenvalue, largest_eigenvalue : float
        Of (K + Kᵀ)/2.
    positive_semidefinite : bool
        Whether K is symmetric and positive semidefinite up to rounding.
    n_samples : int
        Rows of K.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, mercer
    >>> mercer(RBF(1.0), [[0.0], [1.0]]).positive_semidefinite
    True
    """

    asymmetry: float
    smallest_eigenvalue: float
    largest_eigenvalue: float
    positive_semidefinite: bool
    n_samples: int

    def __str__(self) -> str:
        verdict = "positive semidefinite" if self.positive_semidefinite else "NOT a Mercer kernel"
        return (
            f"{verdict} on {self.n_samples} rows: eigenvalues {self.smallest_eigenvalue:.6g} to "
            f"{self.largest_eigenvalue:.6g}, asymmetry {self.asymmetry:.3g}"
        )


def mercer(kernel: Kernel, X: RowsLike, tol: float | None = None) -> MercerReport:
    """Check Mercer's condition on some rows: K = Kᵀ, and vᵀKv ≥ 0 for every v.

    Parameters
    ----------
    kernel : Kernel
        The kernel to check.
    X : array-like or sparse matrix of shape (n, d)
        At most 10,000 rows.
    tol : float, optional
        The rounding allowed, relative to the largest |eigenvalue|; 10·max(n, d)·2⁻⁵² by default.

    Returns
    -------
    MercerReport
        Symmetry, extreme eigenvalues and verdict.

    References
    ----------
    Schölkopf, Smola, *Learning with Kernels* (2002), section 2.2.

    Examples
    --------
    >>> from maxmargin.kernels import Precomputed, mercer
    >>> print(mercer(Precomputed(), [[1.0, 2.0], [2.0, 1.0]]))
    NOT a Mercer kernel on 2 rows: eigenvalues -1 to 3, asymmetry 0
    """
    rows = as_rows(X)
    n, d = rows.shape
    if not 1 <= n <= _MOST_ROWS:
        raise ValueError(f"X must have between 1 and {_MOST_ROWS} rows, got {n}: pass a subset.")
    K = kernel(rows.astype(np.float64, copy=False))
    asymmetry = float((K - K.T).max())
    spectrum = np.linalg.eigvalsh((K + K.T) / 2)
    smallest, largest = float(spectrum[0]), float(spectrum[-1])
    relative = 10 * max(n, d) * float(np.finfo(np.float64).eps) if tol is None else tol
    allowed = relative * max(-smallest, largest)
    fine = smallest >= -allowed and asymmetry <= allowed
    return MercerReport(asymmetry, smallest, largest, fine, n)


def check_precomputed(K: Matrix) -> None:
    """Refuse a Gram matrix that is not square or not symmetric."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be square: X has shape {K.shape}, "
            "pass K(x_i, x_j) of the training rows."
        )
    worst, largest = K.asymmetry() if isinstance(K, OnDevice) else _asymmetry(K)
    if worst > 1e-6 * largest:
        raise ValueError(
            f"Precomputed matrix is not symmetric: entries differ by up to {worst:.3g}. "
            "Pass (K + K.T)/2 if that is rounding."
        )


def _asymmetry(K: Matrix) -> tuple[float, float]:
    """Return max |K − Kᵀ| and max |K|."""
    worst = largest = 0.0
    for block in blocks_of(K.shape[0], K.shape[1]):
        worst = max(worst, float(np.abs(K[block] - K[:, block].T).max()))
        largest = max(largest, float(np.abs(K[block]).max()))
    return worst, largest


def warn_if_indefinite(kernel: Kernel, X: Matrix, at_most: int = 500) -> None:
    """Warn of a kernel that is not positive semidefinite, seen on up to ``at_most`` rows."""
    if kernel.positive_semidefinite:
        return
    some = np.linspace(0, X.shape[0] - 1, min(at_most, X.shape[0])).astype(int)
    given = isinstance(kernel, Precomputed)
    # Values that were given are as good as their type.
    tol = 10.0 * some.size * float(np.finfo(X.dtype).eps) if given else None
    report = mercer(kernel, X[np.ix_(some, some)] if given else X[some], tol)
    if not report.positive_semidefinite:
        name = "precomputed kernel" if given else f"kernel {kernel!r}"
        warn_caller(
            f"The {name} is not positive semidefinite: smallest eigenvalue "
            f"{report.smallest_eigenvalue:.3g} on {some.size} rows. There is no plane in a feature "
            "space to converge to, and an optimum found may be a local one. Add a multiple of the "
            "identity, or use another kernel."
        )
