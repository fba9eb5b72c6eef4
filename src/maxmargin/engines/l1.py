"""The engine contract for machines of few features (`problems.L1Problem`).

The rule is that of `engines.base`: vectors of length n belong to the engine. A solver sees w and b,
sums over rows of the size of w, and the curvature of some columns: as a matrix, or as the columns
themselves, which an engine with random access descends on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..arrays import Floats, Integers
from .linear import Features

if TYPE_CHECKING:
    from ..problems import L1Problem


class L1Features(Features, Protocol):
    """`Features` of an engine that has the operations of machines of few features."""

    def l1_state(self, problem: L1Problem) -> L1State:
        """Return the state at w = 0 and b = 0."""


class SlackSums(NamedTuple):
    """Sums over all rows, ξ_i = max(0, 1 − y_i s_i) and α_i = 2C_i ξ_i being of the scores."""

    loss: float  # Σ C_i ξ_i²
    total: float  # Σ α_i
    balance: float  # Σ α_i y_i
    errors: int  # rows on the wrong side
    n_inside: int  # rows of ξ_i > 0


class L1State(Protocol):
    """Scores s_i = w·x_i + b of one machine; ξ_i and α_i are those of the scores.

    Rows inside are those of ξ_i > 0: the loss is a parabola there, of curvature c_i = 2C_i.
    """

    @property
    def features(self) -> Features:
        """The rows."""

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane."""

    def settle(self) -> float:
        """Move the bias to the best one for these scores; return by how much."""

    def measure(self) -> SlackSums:
        """Find α of the scores; return sums of it."""

    def correlations(self) -> Floats:
        """Return Σ α_i y_i x_i of the α that was measured last."""

    def aim(self, step: Floats, shift: float) -> None:
        """Compute the scores of a step of w and of b, for `slope` and `advance`."""

    def slope(self, t: float) -> float:
        """Return Σ α_i y_i p_i after t steps, p being the scores of the step."""

    def advance(self, t: float) -> None:
        """Go t steps."""

    def stored(self, columns: Integers) -> float:
        """Return about how many numbers of some columns lie in rows inside."""

    def curvature(self, columns: Integers) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows inside, of some columns and of the 1."""

    def columns(self, columns: Integers, *, bias: bool, free: bool) -> Columns | None:
        """Return some columns of the rows inside; None where they cannot be had.

        With ``bias`` the column of ones comes after the others; with ``free`` its coefficient is
        at its optimum whatever the others are.
        """

    def keep(self, factor: float) -> None:
        """Remember the α that was measured last, multiplied by a factor."""

    def alpha(self) -> Floats:
        """Bring the α that was remembered to the host."""


class Columns(Protocol):
    """Columns of the rows inside: the curvature Σ c_i x_i x_iᵀ of the loss, not formed."""

    @property
    def shift(self) -> float:
        """The best change of a free bias, after the coefficients have moved."""

    def descend(self, u: Floats, penalties: Floats, enough: float, passes: int) -> float:
        """Minimise ½ Σ c_i (e_i − x_i·(u − w))² + Σ λ_j |u_j| by coordinates, u being w at first.

        e_i = y_i − s_i are the residuals of the rows inside. Returns the largest change of a slope
        in the last pass, which is at most ``enough`` or the last of ``passes``.
        """
