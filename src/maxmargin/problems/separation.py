"""Separating planes and least squares."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ..arrays import Floats, Integers, Matrix
from ..data.normalised_samples import Samples
from ..data.row_sums import RowSums
from ..kernels import Kernel


@dataclass(frozen=True)
class SeparationProblem:
    """Find a with Za > 0, or Za ≥ m for given margins m > 0.

    Parameters
    ----------
    Z : Samples
        The normalised samples.
    margins : ndarray of shape (n_rows of Z,), optional
        m, all 1 by default.
    weights : ndarray of shape (n_samples,), optional
        The weight of each sample in a criterion, all 1 by default; strictly positive.
    """

    Z: Samples
    margins: Any = None
    weights: Any = None

    def __post_init__(self) -> None:
        if self.margins is None:
            object.__setattr__(self, "margins", np.ones(self.Z.shape[0]))
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(self.Z.n_samples))

    @property
    def row_weights(self) -> Floats:
        """The weight of each row of Z."""
        return self.Z.to_rows(self.weights)

    def restrict(self, a: Floats) -> Floats:
        """Return a with 0 for the features that are not used: here, all of them are."""
        return np.ravel(a)

    def computed_by(self, sums: RowSums) -> Self:
        """Return the problem with the sums over rows of an engine's features, for its solver."""
        return replace(self, Z=self.Z.computed_by(sums))


@dataclass(frozen=True)
class LeastSquaresProblem(SeparationProblem):
    """Minimise Σ_i v_i (z_i·a − m_i)² + ε‖a‖²; of several minimisers the one of least norm.

    ``weights`` holds the v_i and ``ridge`` the ε ≥ 0. The features in ``excluded`` have weight 0:
    those that are constant, which the bias represents.
    """

    ridge: float = 0.0
    excluded: Integers = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def restrict(self, a: Floats) -> Floats:
        """Return a with 0 for the excluded features."""
        a = np.array(a).reshape(self.Z.n_vectors, -1)
        a[:, self.excluded] = 0.0
        return a.ravel()


@dataclass(frozen=True)
class KernelSeparationProblem:
    """Find α ≥ 0 and b with y_m (Σ_l α_l y_l K(x_l, x_m) + b) > 0 for every sample m.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n_samples, n_features)
        For a precomputed kernel the square Gram matrix.
    y : ndarray of shape (n,)
        Labels −1 and +1, aligned with ``index``.
    index : ndarray of int of shape (n,)
        The rows of X to use.
    weights : ndarray of shape (n,)
        The number of consecutive visits that each sample represents.
    bias_step : float
        The change of b when some α_m grows by 1: ηR² in Novikoff's convention, 0 without a bias.
    """

    kernel: Kernel
    X: Matrix
    y: Floats
    index: Integers
    weights: Floats
    bias_step: float
