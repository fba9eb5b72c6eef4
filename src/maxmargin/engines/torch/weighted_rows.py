"""Systems with the Hessian of a loss, on a device: rows with weights, and matrices of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...arrays import Floats
from ..linear import ColumnSystem
from .device_vector import fetch

if TYPE_CHECKING:
    from .features import TorchFeatures

Tensor = Any
# Curvature that is added to every unknown's own, relative to it, as on the host.
LIFT = float(np.finfo(float).eps)


class TorchWeightedRows:
    """Some rows on a device, each with a weight."""

    def __init__(self, features: TorchFeatures, weights: Tensor) -> None:
        self.features, self.weights = features, weights
        self.n_rows = features.n_rows

    def squares(self) -> Floats:
        """Return Σ c_i (x_i∘x_i, 1)."""
        squares = self.features.products.squared_columns(self.weights)
        return fetch(squares, self.weights.sum())

    def product(self, p: Floats) -> Floats:
        """Return Σ c_i (x_i, 1) (x_i, 1)·p."""
        c = self._scores(p[:-1], float(p[-1]))
        c *= self.weights
        return fetch(self.features.products.combine(c), c.sum())

    def gram(self, factors: Floats | None = None) -> Floats:
        """Return XXᵀ + diag(1/c), columns multiplied by factors."""
        X = self.features.products.float64_rows(slice(0, self.n_rows))
        if factors is not None:
            X = X * self.features.place_vector(factors)
        K = X @ X.T
        K.diagonal().add_(1.0 / self.weights)
        return K.cpu().numpy()

    def scores(self, w: Floats) -> Floats:
        """Return Xw."""
        return fetch(self._scores(w, 0.0))

    def combine(self, q: Floats) -> Floats:
        """Return Xᵀq."""
        return fetch(self.features.products.combine(self.features.place_vector(q)))

    def _scores(self, w: Floats, b: float) -> Tensor:
        out = self.features.zeros()
        self.features.scores(w, b, out)
        return out


def solve_columns(H: Tensor, system: ColumnSystem, gradient: Tensor) -> Floats:
    """Return −(M + H)⁻¹g; H has the matrix M already where it is given."""
    if system.M is None:
        H.diagonal()[:-1] += 1.0
        H[-1, -1] += system.penalty
    H[-1, -1] = H[-1, -1].clamp(min=system.damping)
    if not system.has_bias:
        H[-1], H[:, -1] = 0.0, 0.0
        H[-1, -1] = 1.0
    scale = H.diagonal().clamp(min=float(np.finfo(float).tiny)).rsqrt()
    H = H * scale[:, None] * scale
    lift = LIFT
    while lift <= 1.0:
        H.diagonal().fill_(1.0 + lift)
        factor, info = torch.linalg.cholesky_ex(H)
        step = -scale * torch.cholesky_solve((scale * gradient)[:, None], factor)[:, 0]
        *found, failed = fetch(step, info.double())
        if not failed and np.isfinite(found).all():
            return np.array(found)
        lift = max(10.0 * lift, 1e-14)
    # Not a number of it can be relied on: the diagonal, then, and short steps.
    return fetch(-scale * scale * gradient)
