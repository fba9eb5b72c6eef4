"""Mercer's condition on a sample: is the Gram matrix symmetric and positive semidefinite?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Kernel
from .products import Rows, as_rows

_MOST_ROWS = 10_000  # 0.8 GB a matrix, minutes for its eigenvalues


@dataclass(frozen=True)
class MercerReport:
    """What `mercer` found: symmetry and extreme eigenvalues of a Gram matrix."""

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


def mercer(kernel: Kernel, X: Rows, tol: float | None = None) -> MercerReport:
    """Check K = Kᵀ and vᵀKv ≥ 0 for every v (Schölkopf, Smola, section 2.2).

    Reports max|K − Kᵀ| and the extreme eigenvalues of (K + Kᵀ)/2. ``tol`` is the rounding
    allowed, relative to the largest |eigenvalue|: 10·max(n, d)·2⁻⁵² by default.

    >>> from maxmargin.kernels import Precomputed
    >>> print(mercer(Precomputed(), [[1.0, 2.0], [2.0, 1.0]]))
    NOT a Mercer kernel on 2 rows: eigenvalues -1 to 3, asymmetry 0
    """
    rows = as_rows(X)
    n, d = rows.shape
    if not 1 <= n <= _MOST_ROWS:
        raise ValueError(f"X has {n} rows: pass a subset of between 1 and {_MOST_ROWS} rows.")
    K = kernel(rows.astype(np.float64, copy=False))
    asymmetry = float((K - K.T).max())
    spectrum = np.linalg.eigvalsh((K + K.T) / 2)
    smallest, largest = float(spectrum[0]), float(spectrum[-1])
    relative = 10 * max(n, d) * float(np.finfo(np.float64).eps) if tol is None else tol
    allowed = relative * max(-smallest, largest)
    fine = smallest >= -allowed and asymmetry <= allowed
    return MercerReport(asymmetry, smallest, largest, fine, n)
