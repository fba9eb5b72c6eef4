"""The origin of the rows of X: planes do not depend on it, rounding errors do."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Matrix, Partitioned, container
from ..kernels import squared_norms
from ..kernels.products import far_columns, shifted
from .compensated import Doubled, product
from .scores import UNIT

# Rows from which the origin is computed, at most.
ORIGIN_ROWS = 4096


class Origin:
    """The mean of columns that is larger than their spread; 0 for all other columns.

    With y·α = 0, w = Σ αyx and the planes w·x + b are the same for any origin, but sums of numbers
    around 10⁷ lose significant digits. Where the bias is not free, the origin is 0.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks
    is_free : bool
        Whether the origin may be chosen.
    """

    def __init__(self, X: Matrix, is_free: bool) -> None:
        self.centre: Floats = np.zeros(X.shape[1])
        self.order: slice | Integers = slice(None)
        if not is_free:
            return
        # Of rows on a device only these come to the host.
        if isinstance(X, Partitioned):
            first = X.head(ORIGIN_ROWS)
        else:
            first = X if container(X).on_device else next(container(X).pieces())[1]
        some = first[:: max(1, first.shape[0] // ORIGIN_ROWS)]
        self.centre = far_columns(some.astype(np.float64))
        far = self.centre != 0.0
        if sparse.issparse(some) and far.any():  # the order of columns of `shifted`
            self.order = np.concatenate([np.flatnonzero(~far), np.flatnonzero(far)])

    def rows(self, x: Matrix) -> Matrix:
        """Return float64 rows relative to the origin, columns in `order`."""
        return shifted(x, self.centre) if self.centre.any() else x

    def bias(self, w: Floats, b: float) -> float:
        """Return b + w·c, the bias relative to the origin, rounded once."""
        if not self.centre.any():
            return b
        return float(product(self.centre[np.newaxis], Doubled(w, np.zeros(w.size)), b)[0])


def frobenius(x: Matrix) -> float:
    """Return ‖x‖_F of float64 rows, an upper bound of their norms."""
    values = x.data if sparse.issparse(x) else x.reshape(-1)
    return float(np.sqrt(values @ values)) * (1.0 + 1e-6)


def row_norms(x: Matrix) -> Floats:
    """Return ‖x_i‖ of float64 rows, rounded up."""
    return np.sqrt(squared_norms(x)) * (1.0 + 1e-6)


def score_error(x_norm: Floats | float, w_norm: float, b: float, terms: int) -> Floats:
    """Return a bound of the rounding errors of w·x + b, for rows of norm at most ``x_norm``."""
    return np.asarray((terms + 4) * UNIT * (x_norm * w_norm + abs(b)))


def sum_error(x_norm: float, coefficients: Floats, terms: int) -> float:
    """Return a bound of the norm of the rounding error of Σ c_i x_i."""
    return (terms + 2) * UNIT * x_norm * float(np.linalg.norm(coefficients))
