"""Linear support vector machines, in their primal form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, container
from ..runtime.vectors import in_slices
from .losses import LOSSES, TARGET_LOSSES


@dataclass(frozen=True)
class PrimalProblem:
    """The linear support vector machine, in its primal form.

        min ½‖w‖² + Σ h_i(1 − y_i (w·x_i + b)),   h_i(z) = max {αz − ½D_i α² : 0 ≤ α ≤ u_i}

    is that of the hinge C_i z₊ (u = C, D = 0), of the squared hinge C_i z₊² (u = ∞, D = 1/(2C_i))
    and of the hard margin (u = ∞, D = 0). Its dual is that of a `DualProblem` with the linear
    kernel; a penalised bias adds ½(b/s)², as if every sample had one more feature of value s.

    Of targets the slack is z = |y_i − w·x_i − b| − ε, and the dual

        max Σ y_i β_i − ε Σ |β_i| − ½Σ D_i β_i² − ½‖Σ β_i x_i‖²   subject to   |β_i| ≤ u_i

    and Σ β_i = 0 where the bias is free; solutions have β in the place of α.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n, n_features)
    y : ndarray of shape (n,)
        Labels −1 and +1, or targets.
    upper, ridge : ndarray of shape (n,) or (1,)
        u and D, of each sample or of all; a sample of u = 0, or D = ∞, does not count.
    bias : {"free", "penalised", "none"}
    intercept_scaling : float, default=1.0
        s, of a penalised bias.
    two_sided : bool, default=False
        Whether y are targets.
    epsilon : float, default=0.0
        ε, of targets.
    """

    X: Any
    y: Floats
    upper: Floats
    ridge: Floats
    bias: Literal["free", "penalised", "none"] = "free"
    intercept_scaling: float = 1.0
    two_sided: bool = False
    epsilon: float = 0.0

    @classmethod
    def of(
        cls, X: Any, y: Floats, C: Floats | float, loss: str = "hinge", bias: Any = "free",
        intercept_scaling: float = 1.0, epsilon: float = 0.0,
    ) -> Self:  # fmt: skip
        """Pose it for costs C, one number or one per sample, and a loss by its name."""
        two_sided = loss in TARGET_LOSSES
        bounds = (TARGET_LOSSES if two_sided else LOSSES)[loss].bounds(C)
        return cls(X, y, *bounds, bias, intercept_scaling, two_sided, epsilon)

    def on_host(self) -> Self:
        """Return the same problem with all of its arrays in the memory of the host."""
        return self.gathered() if container(self.X).on_device else self

    def gathered(self) -> Self:
        """Return a problem on a device or in partitions with copies of its arrays on the host."""
        y, upper, ridge = (np.asarray(each) for each in (self.y, self.upper, self.ridge))
        return replace(self, X=self.X.host, y=y, upper=upper, ridge=ridge)

    @property
    def box(self) -> Floats:
        """What α is at most: u, and 0 of a sample that does not count."""
        if np.isfinite(self.ridge).all():
            return self.upper
        return np.where(np.isfinite(self.ridge), self.upper, 0.0)

    def slacks(self, scores: Floats, rows: slice = slice(None)) -> Floats:
        """Return z of some rows with these scores."""
        r: Floats = self.y[rows] - scores
        return np.abs(r) - self.epsilon if self.two_sided else self.y[rows] * r

    def errors(self, scores: Floats) -> NDArray[np.bool_]:
        """Return which samples are on the wrong side of a plane, or outside of the tube."""
        z = self.slacks(scores)
        return z > (0.0 if self.two_sided else 1.0)

    def beta(self, alpha: Floats) -> Floats:
        """Return β of a solution's α, put into its bounds."""
        if self.two_sided:
            return np.clip(alpha, -self.box, self.box)
        return np.clip(alpha, 0.0, self.box) * self.y

    @property
    def hard(self) -> bool:
        """Whether some α has nothing that keeps it from growing."""
        return bool((np.isinf(self.upper) & (self.ridge == 0.0)).any())

    @property
    def curved(self) -> bool:
        """Whether the loss of some sample grows like a square, u = ∞."""
        return bool(np.isinf(self.upper).any())

    @property
    def quadratic(self) -> bool:
        """Whether every loss is one parabola: squares of targets without a tube."""
        return self.two_sided and not self.epsilon and bool(np.isinf(self.upper).all())

    def class_costs(self) -> tuple[float, float]:
        """Return Σ u, or Σ 1/D where u = ∞, of the classes +1 and −1; targets count in both."""
        costs = self.upper
        if self.curved:
            costs = np.where(np.isinf(costs), 1.0 / self.ridge, costs)
        if self.two_sided:
            total = float(np.sum(costs)) * (self.y.size if costs.size == 1 else 1)
            return total, total
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
