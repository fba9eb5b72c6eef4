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

    def random_sums(self, seed: int) -> Floats:
        """Return Σ r_i x_i, r being standard normal numbers."""

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

    def columns(
        self, columns: Integers, slopes: Floats, *, bias: bool, free: bool
    ) -> Quadratic | None:
        """Return the quadratic of some columns of the rows inside; None where it cannot be had.

        With ``bias`` the column of ones comes after the others; with ``free`` its coefficient is
        at its optimum whatever the others are. ``slopes`` are Σ α_i y_i x_ij: the columns may be
        rounded.
        """

    def keep(self, factor: float) -> None:
        """Remember the α that was measured last, multiplied by a factor."""

    def alpha(self) -> Floats:
        """Bring the α that was remembered to the host."""


class Quadratic(Protocol):
    """The loss of the rows inside as a quadratic of some coefficients u, about where they are.

    Its slopes are q − Hu, H = Σ c_i x_i x_iᵀ over some columns; a bias that is free is at its best
    for every u. Coefficients are moved by the quadratic itself, so that it knows its slopes.
    """

    @property
    def shift(self) -> float:
        """The change of a free bias that belongs to the coefficients now."""

    def descend(self, u: Floats, penalties: Floats, enough: float, passes: int) -> float:
        """Move one coefficient at a time to its minimum with the penalty λ_j |u_j|, in place.

        Returns the largest change of a slope in the last pass: ``passes`` are over, or it is at
        most ``enough``.
        """

    def direction(
        self, some: Integers, penalties: Floats, enough: float, passes: int
    ) -> Floats | None:
        """Return p with H_SS p = slopes_S − λ_S, about; None where that cannot be had.

        ``enough`` is the error that may be left, ``passes`` the time that it may take.
        """

    def change(self, some: Integers, step: Floats) -> float:
        """Return by how much a step of some coefficients would change the quadratic."""

    def move(self, some: Integers, step: Floats) -> None:
        """Go a step of some coefficients."""
