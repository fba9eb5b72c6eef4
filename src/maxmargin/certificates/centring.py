"""Where the rows of X are taken from: planes do not depend on it, rounding does."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Floats
from ..data.row_blocks import RowBlocks
from ..kernels import squared_norms
from ..kernels.products import far_columns, shifted
from .compensated import Doubled, product
from .scores import UNIT

# Rows on which the origin is chosen.
SOME = 4096


class Origin:
    """The mean of the columns that are farther from 0 than they are wide; 0 of all others.

    With y·α = 0 both w = Σ αyx and the planes w·x + b are the same about any origin, but sums of
    numbers around 10⁷ lose the digits that count. Where the bias is not free the origin is 0.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks
    is_free : bool
        Whether the origin may be chosen.
    """

    def __init__(self, X: Any, is_free: bool) -> None:
        self.centre: Floats = np.zeros(X.shape[1])
        self.order: Any = slice(None)
        if not is_free:
            return
        first = next(iter(X)) if isinstance(X, RowBlocks) else X
        some = first[:: max(1, first.shape[0] // SOME)]
        self.centre = far_columns(some.astype(np.float64))
        far = self.centre != 0.0
        if sparse.issparse(first) and far.any():  # where `shifted` puts them
            self.order = np.concatenate([np.flatnonzero(~far), np.flatnonzero(far)])

    def rows(self, x: Any) -> Any:
        """Return float64 rows about the origin, columns in `order`."""
        return shifted(x, self.centre) if self.centre.any() else x

    def bias(self, w: Floats, b: float) -> float:
        """Return b + w·c: the bias about the origin, rounded once."""
        if not self.centre.any():
            return b
        return float(product(self.centre[np.newaxis], Doubled(w, np.zeros(w.size)), b)[0])


def frobenius(x: Any) -> float:
    """Return ‖x‖_F of float64 rows: no row is longer."""
    values = x.data if sparse.issparse(x) else x.reshape(-1)
    return float(np.sqrt(values @ values)) * (1.0 + 1e-6)


def row_norms(x: Any) -> Floats:
    """Return ‖x_i‖ of float64 rows, rounded up."""
    return np.sqrt(squared_norms(x)) * (1.0 + 1e-6)


def score_error(x_norm: Any, w_norm: float, b: float, terms: int) -> Any:
    """Return a bound of the rounding errors of w·x + b, for rows of at most such a length."""
    return (terms + 4) * UNIT * (x_norm * w_norm + abs(b))


def sum_error(x_norm: float, coefficients: Floats, terms: int) -> float:
    """Return a bound of the length of the rounding errors of Σ c_i x_i."""
    return (terms + 2) * UNIT * x_norm * float(np.linalg.norm(coefficients))
