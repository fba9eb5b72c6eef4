"""The best bias of rows in partitions, from few breaks of the loss that come to the client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats
from ...problems.best_bias import flat_part
from ..cpu.features import Features
from . import linear_part as rounds

if TYPE_CHECKING:
    from .primal_state import DaskPrimalState


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    bins: int = 2048  # of the breaks of the loss as a function of the bias
    most_breaks: int = 20_000  # that may come to the client
    nearest_break: float = 1e-12  # the edges of bins nearest to 0, and farthest from it
    farthest_break: float = 1e6
    most_refinements: int = 6


TUNING = Tuning()


def flat_biases(state: DaskPrimalState) -> tuple[float, float]:
    """Return the least and the largest change of the bias that are best, of a loss of lines.

    Breaks of the loss near 0 come to the client: about as near as the sample says.
    """
    positive, negative = state.class_costs()
    before, rounding = -positive, 1e-12 * (positive + negative)
    high = _nearby(state)
    low = -high
    for _ in range(TUNING.most_refinements):
        found = _breaks(state, low, high)
        t, costs = np.concatenate(found.t), np.concatenate(found.costs)
        left, right = before + found.below, before + found.below + float(costs.sum())
        if left < -rounding and right > rounding and t.size <= TUNING.most_breaks:
            return flat_part(t, costs, left, rounding)
        low, high = _bracket(state, before, rounding)
    return 0.5 * (low + high), 0.5 * (low + high)


def _breaks(state: DaskPrimalState, low: float, high: float) -> rounds.Breaks:
    """Return the breaks between two changes of the bias."""
    found: rounds.Breaks = state.ask(
        rounds.breaks_between, rounds.Breaks.merged, 0.0, low, high, TUNING.most_breaks + 1,
        reads=False,
    )  # fmt: skip
    return found


def _nearby(state: DaskPrimalState) -> float:
    """Return how near to 0 about as many breaks are as may come to the client."""
    assert state.plane is not None
    X, problem = state.sampled
    scores = Features(X).scores(state.plane[:-1], float(state.plane[-1]))
    share = min(1.0, 0.25 * TUNING.most_breaks / state.features.n_rows)
    away = np.abs(problem.y - scores)
    if problem.two_sided:
        away = np.abs(away - problem.epsilon)
    return float(np.quantile(away, share)) * 2.0 or 1.0


def _bracket(state: DaskPrimalState, before: float, rounding: float) -> tuple[float, float]:
    """Return an interval with few breaks in which the slope of the loss changes its sign."""
    edges = _first_edges()
    while True:
        counts, costs = state.ask(rounds.breaks_in_bins, rounds.added, 0.0, edges, reads=False)
        slopes = before + np.cumsum(costs)
        last = min(int(np.searchsorted(slopes, rounding, side="right")), slopes.size - 1)
        first = min(int(np.searchsorted(slopes, -rounding)), last)
        low, high = np.append(-np.inf, edges)[first], np.append(edges, np.inf)[last]
        few = counts[first : last + 1].sum() <= TUNING.most_breaks
        narrow = not high - low > 1e-14 * max(abs(low), abs(high))
        if few or narrow or first < last or not np.isfinite(high - low):
            return float(low), float(high)
        edges = np.linspace(low, high, TUNING.bins)


def _first_edges() -> Floats:
    """Return edges of bins that are narrow about 0."""
    sizes = np.geomspace(TUNING.nearest_break, TUNING.farthest_break, TUNING.bins // 2)
    return np.concatenate([-sizes[::-1], [0.0], sizes])
