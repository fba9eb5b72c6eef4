"""Linear support vector machines, in their primal form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..arrays import Floats


@dataclass(frozen=True)
class PrimalProblem:
    """The linear support vector machine, in its primal form.

        min ½‖w‖² + Σ h_i(1 − y_i (w·x_i + b)),   h_i(z) = max {αz − ½D_i α² : 0 ≤ α ≤ u_i}

    is that of the hinge C_i z₊ (u = C, D = 0), of the squared hinge C_i z₊² (u = ∞, D = 1/(2C_i))
    and of the hard margin (u = ∞, D = 0). Its dual is that of a `DualProblem` with the linear
    kernel; a penalised bias adds ½b², as if every sample had one more feature of value 1.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n, n_features)
    y : ndarray of shape (n,)
        Labels −1 and +1.
    upper, ridge : ndarray of shape (n,) or (1,)
        u and D, of each sample or of all; a sample of u = 0, or D = ∞, does not count.
    bias : {"free", "penalised", "none"}
    """

    X: Any
    y: Floats
    upper: Floats
    ridge: Floats
    bias: Literal["free", "penalised", "none"] = "free"

    @classmethod
    def of(
        cls, X: Any, y: Floats, C: Floats | float, loss: str = "hinge", bias: Any = "free"
    ) -> PrimalProblem:
        """Pose it for a cost C, a number or one a sample, and loss "hinge" or "squared_hinge"."""
        costs = np.atleast_1d(np.asarray(C, dtype=np.float64))
        if loss == "hinge":
            return cls(X, y, costs, np.zeros(1), bias)
        with np.errstate(divide="ignore"):
            return cls(X, y, np.full(1, np.inf), 0.5 / costs, bias)

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
