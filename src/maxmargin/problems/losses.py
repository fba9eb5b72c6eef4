"""The losses of the linear machine: one family, and one line for each of its members.

A sample of slack z and cost C costs

    h(z) = max {αz − ½Dα² : 0 ≤ α ≤ u},   u = C u₁,   D = D₁/C,

so a loss is the pair (u₁, D₁) of a unit cost. h is 0 for z ≤ 0, the parabola z²/2D up to z = uD,
and a line of slope u from there on; the α that attains the maximum is its derivative.

With r = y − g(x) the slack is yr = 1 − y g(x) of a label y = ±1, and |r| − ε of a target: a loss of
two sides. w is the sum of β_i x_i, where β = yα of a label and β = α sign r of a target: then

    h = max {βr − ε|β| − ½Dβ²},   β between 0 and yu, or −u ≤ β ≤ u,

with ε = 0 for labels.

To add a loss, add a line to `LOSSES` or `TARGET_LOSSES`: every solver of the linear machine, its
certificate and `LinearSVC(loss=...)` or `LinearSVR(loss=...)` take it from there. The functions of
one number below are the formulas that engines compile or vectorise; certificates have their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats, VectorOnDevice


@dataclass(frozen=True)
class Loss:
    """A loss of the family, by its u and D at a unit cost.

    Parameters
    ----------
    upper : float
        u₁, the steepest slope of the loss; infinite where it grows like a square.
    ridge : float
        D₁, the inverse of its curvature; 0 for a kink.
    """

    upper: float
    ridge: float

    def bounds(self, C: Floats | float) -> tuple[Floats, Floats]:
        """Return u and D for costs C, one per sample or one for all."""
        costs: Any = C
        if not isinstance(C, VectorOnDevice):
            costs = np.atleast_1d(np.asarray(C, dtype=np.float64))
        with np.errstate(divide="ignore"):
            upper = costs * self.upper if np.isfinite(self.upper) else np.full(1, np.inf)
            ridge = self.ridge / costs if self.ridge > 0.0 else np.zeros(1)
        return upper, ridge


# Of labels.
LOSSES: dict[str, Loss] = {
    "hinge": Loss(upper=1.0, ridge=0.0),
    "squared_hinge": Loss(upper=np.inf, ridge=0.5),
}
# Of targets.
TARGET_LOSSES: dict[str, Loss] = {
    "epsilon_insensitive": Loss(upper=1.0, ridge=0.0),
    "squared_epsilon_insensitive": Loss(upper=np.inf, ridge=0.5),
}


def slack(r: float, y: float, two_sided: bool, epsilon: float) -> float:
    """Return z of a sample with r = y − g(x)."""
    return abs(r) - epsilon if two_sided else y * r


def loss_value(z: float, u: float, D: float) -> float:
    """Return h(z)."""
    z = max(z, 0.0)
    return u * (z - 0.5 * D * u) if u * D <= z else 0.5 * (z / D) * z


def proximal_beta(
    r: float, y: float, two_sided: bool, epsilon: float, before: float, u: float, D: float,
    delta: float,
) -> float:  # fmt: skip
    """Return the β that maximises βr − ε|β| − ½Dβ² − (δ/2u)(β − β⁰)² in its bounds.

    At δ = 0 that is the derivative of h, for D > 0.
    """
    if u == 0.0:  # a sample that does not count
        return 0.0
    pull, bend, threshold = r, D, epsilon
    if u < np.inf:
        pull, bend, threshold = u * r + delta * before, u * D + delta, u * epsilon
    side = y
    if two_sided:
        side = 1.0 if pull > 0.0 else -1.0
    alpha = max(side * pull - threshold, 0.0) / bend
    return side * min(alpha, u)
