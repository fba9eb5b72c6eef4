"""Rows of X about another origin.

Where a bias is free and the signed sum of α is 0, x ↦ x − c changes neither α nor w, but b by w·c.
Products of rows far from the origin have no digits left for the differences between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Floats, OnDevice, container
from ..certificates.compensated import two_products
from ..data.normalised_samples import SignedSamples
from ..kernels.products import far_columns

# Numbers up to which sums are correctly rounded: half a second.
CAREFUL_NUMBERS = 2_000_000


@dataclass(frozen=True)
class Origin:
    """A point c about which rows are taken.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
    """

    centre: Floats

    @property
    def distance(self) -> float:
        """‖c‖."""
        return float(np.linalg.norm(self.centre))

    def rows(self, X: Any) -> Any:
        """Return x − c for every row, in float64."""
        return (X.toarray() if sparse.issparse(X) else X) - self.centre

    def moved(self, X: Any) -> Any:
        """Return x − c for every row, in the type of X and where X is."""
        if container(X).on_device:
            return X.less(self.centre)
        return self.rows(X).astype(X.dtype, copy=False)

    def bias(self, w: Floats, b: float) -> float:
        """Return b − w·c, the bias of the rows where they are, for the bias b about c.

        It is rounded once.
        """
        products, errors = two_products(w, -self.centre)
        return math.fsum([b, *products, *errors])

    @classmethod
    def far_mean(cls, X: Any, ratio: float = 100.0, least_density: float = 0.5) -> Origin | None:
        """Return the mean of the rows where it is ``ratio`` times as long as their spread.

        None elsewhere, and where centred rows would outgrow X: of sparse data with many zeros.
        """
        held = container(X)
        if held.sparse and held.stored() < least_density * np.prod(X.shape):
            return None
        mean, length = _means(X)
        square = float(mean @ mean)
        return cls(mean) if square > ratio**2 * (length - square) else None

    @classmethod
    def far_columns(cls, X: Floats, ratio: float = 100.0) -> Origin | None:
        """Return the means of the columns that are ``ratio`` times as far from 0 as they are wide.

        The others are 0. Means are rounded to the type of X. None where there is no such column.
        """
        centre = far_columns(X, 1.0 - ratio**-2).astype(X.dtype).astype(np.float64)
        return cls(centre) if centre.any() else None

    @classmethod
    def middle(cls, Z: SignedSamples) -> tuple[Origin, float]:
        """Return the middle of dense rows with a bias, else 0, and the largest ‖x − c‖²."""
        if sparse.issparse(Z.X) or not Z.bias_step:
            return cls(np.zeros(Z.X.shape[1])), float(Z.squared_rows.max())
        rows = Z.X[Z.index].astype(np.float64)
        centre = middle_of(rows)
        rows -= centre
        return cls(centre), float(np.einsum("ij,ij->i", rows, rows).max())


def _means(X: Any) -> tuple[Floats, float]:
    """Return the mean of the rows, and that of ‖x‖²."""
    if isinstance(X, OnDevice):
        mean, squares = X.column_means()
        return mean, float(squares.sum())
    from ..engines.registry import engine_for

    features, n = engine_for(X).features(), X.shape[0]
    return features.combine(np.ones(n)) / n, float(features.squared_lengths().mean())


def middle_of(rows: Floats) -> Floats:
    """Return the middle between the least and the largest number of each column."""
    low = rows.min(axis=0)
    middle: Floats = low + 0.5 * (rows.max(axis=0) - low)
    return middle


def combined(c: Floats, rows: Floats) -> Floats:
    """Return Σ c_i x_i, each number correctly rounded unless that takes long.

    Terms may be 1e16 times as large as their sum: of support vectors far from the origin.
    """
    if rows.size > CAREFUL_NUMBERS:
        return c @ rows
    pairs = (two_products(c, column) for column in rows.T)
    return np.array([math.fsum([*products, *errors]) for products, errors in pairs])
