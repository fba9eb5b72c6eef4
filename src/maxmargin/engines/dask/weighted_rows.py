"""The rows on the kink of a linear machine in partitions, each with its curvature."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats
from ..cpu.features import Features
from ..cpu.primal_state import WeightedRows
from . import linear_part as rounds
from .rows import stacked

if TYPE_CHECKING:
    from .primal_state import DaskPrimalState


class DaskWeightedRows:
    """The rows on the kink where they are: every product is a round.

    `gram`, `scores` and `combine` are for few rows: those come to this process.
    """

    def __init__(self, state: DaskPrimalState, delta: float, n_rows: int) -> None:
        self._state, self._delta, self.n_rows = state, delta, n_rows

    def squares(self) -> Floats:
        """Return Σ c_i (x_i∘x_i, 1)."""
        found: Floats = self._state.ask(rounds.kink_product, rounds.added, self._delta, None)
        return found

    def product(self, p: Floats) -> Floats:
        """Return Σ c_i (x_i, 1) (x_i, 1)·p."""
        found: Floats = self._state.ask(rounds.kink_product, rounds.added, self._delta, p)
        return found

    def gram(self, factors: Floats | None = None) -> Floats:
        """Return XXᵀ + diag(1/c), columns multiplied by factors."""
        return self._here.gram(factors)

    def scores(self, w: Floats) -> Floats:
        """Return Xw."""
        return self._here.scores(w)

    def combine(self, q: Floats) -> Floats:
        """Return Xᵀq."""
        return self._here.combine(q)

    @cached_property
    def _here(self) -> WeightedRows:
        rows, weights = self._state.ask(rounds.kink_rows, rounds.joined, self._delta)
        return WeightedRows(Features(stacked(rows)), np.concatenate(weights))
