"""Separating planes and least squares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Floats, Integers
from ..data.normalised_samples import Samples
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
        What each sample counts in a criterion, all 1 by default; strictly positive.
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


@dataclass(frozen=True)
class LeastSquaresProblem(SeparationProblem):
    """Minimise Σ_i v_i (z_i·a − m_i)² + ε‖a‖²; of several minimisers the one of least norm.

    ``weights`` holds the v_i and ``ridge`` the ε ≥ 0. The features named in ``excluded`` keep
    weight 0: constant ones, which are the bias's business.
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
        Labels −1 and +1 of the rows named by ``index``.
    index : ndarray of int of shape (n,)
        Rows of X that take part.
    weights : ndarray of shape (n,)
        Visits in a row that each sample stands for.
    bias_step : float
        What b moves by when α moves by 1: ηR² in Novikoff's convention, 0 without a bias.
    """

    kernel: Kernel
    X: Any
    y: Floats
    index: Integers
    weights: Floats
    bias_step: float
