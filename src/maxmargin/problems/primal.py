"""Linear support vector machines, in their primal form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from ..arrays import Floats
from ..runtime.vectors import in_slices
from .losses import LOSSES


@dataclass(frozen=True)
class PrimalProblem:
    """The linear support vector machine, in its primal form.

        min ½‖w‖² + Σ h_i(1 − y_i (w·x_i + b)),   h_i(z) = max {αz − ½D_i α² : 0 ≤ α ≤ u_i}

    is that of the hinge C_i z₊ (u = C, D = 0), of the squared hinge C_i z₊² (u = ∞, D = 1/(2C_i))
    and of the hard margin (u = ∞, D = 0). Its dual is that of a `DualProblem` with the linear
    kernel; a penalised bias adds ½(b/s)², as if every sample had one more feature of value s.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n, n_features)
    y : ndarray of shape (n,)
        Labels −1 and +1.
    upper, ridge : ndarray of shape (n,) or (1,)
        u and D, of each sample or of all; a sample of u = 0, or D = ∞, does not count.
    bias : {"free", "penalised", "none"}
    intercept_scaling : float, default=1.0
        s, of a penalised bias.
    """

    X: Any
    y: Floats
    upper: Floats
    ridge: Floats
    bias: Literal["free", "penalised", "none"] = "free"
    intercept_scaling: float = 1.0

    @classmethod
    def of(
        cls, X: Any, y: Floats, C: Floats | float, loss: str = "hinge", bias: Any = "free",
        intercept_scaling: float = 1.0,
    ) -> Self:  # fmt: skip
        """Pose it for costs C, one number or one per sample, and a loss named in `LOSSES`."""
        return cls(X, y, *LOSSES[loss].bounds(C), bias, intercept_scaling)

    @property
    def box(self) -> Floats:
        """What α is at most: u, and 0 of a sample that does not count."""
        if np.isfinite(self.ridge).all():
            return self.upper
        return np.where(np.isfinite(self.ridge), self.upper, 0.0)

    @property
    def hard(self) -> bool:
        """Whether some α has nothing that keeps it from growing."""
        return bool((np.isinf(self.upper) & (self.ridge == 0.0)).any())

    @property
    def curved(self) -> bool:
        """Whether the loss of some sample grows like a square, u = ∞."""
        return bool(np.isinf(self.upper).any())

    def class_costs(self) -> tuple[float, float]:
        """Return Σ u, or Σ 1/D where u = ∞, of the classes +1 and −1."""
        costs = self.upper
        if self.curved:
            costs = np.where(np.isinf(costs), 1.0 / self.ridge, costs)
        if costs.size == 1:
            n_positive = sum(in_slices(lambda k: np.count_nonzero(self.y[k] > 0), self.y.size))
            cost = float(costs[0])
            return cost * n_positive, cost * (self.y.size - n_positive)
        sums = in_slices(lambda k: (costs[k] @ (self.y[k] > 0), costs[k].sum()), self.y.size)
        positive, total = (float(sum(each)) for each in zip(*sums, strict=True))
        return positive, total - positive

    @property
    def turns(self) -> Floats:
        """z = uD, where the parabola of a loss turns into a line; 0 of a sample without weight."""
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(self.upper * self.ridge, nan=0.0, posinf=np.inf)
