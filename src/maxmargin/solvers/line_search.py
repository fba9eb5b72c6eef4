"""A line search along a direction of descent of a convex function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Evaluations of the slope, at most.
MOST_POINTS = 60


def line_search(slope: Callable[[float], float], first: float, farthest: float = 1e12) -> float:
    """Return the t last evaluated: a convex function has descended, to half its slope or less.

    ``first`` is the slope at 0; where rounding has left none that descends, the answer is 0. The
    interval where the slope changes sign is found by growing t, and narrowed down by the secant
    rule with a guard; where that ends without a sufficient t, the answer is the last one that is
    known to descend, or 0.
    """
    if not first < 0.0:  # rounding: there is no descent along it
        return 0.0
    low, high, at_low, at_high, t = 0.0, np.inf, first, np.inf, 1.0
    for _ in range(MOST_POINTS):
        at = slope(t)
        if 0.5 * first <= at <= -1e-3 * first:
            return t
        if at < 0.0:
            low, at_low = t, at
        else:
            high, at_high = t, at
        if np.isinf(high):
            if t >= farthest:
                return t
            t *= 4.0
        else:
            share = at_low / (at_low - at_high)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    slope(low)
    return low


def search_several(
    slopes: Callable[[list[float]], list[float]], first: float, at_once: int,
    farthest: float = 1e12, *, whole_first: bool = False,
) -> float:  # fmt: skip
    """Return a t as `line_search` does, from the slopes at several points at once.

    With ``whole_first`` t = 1 is tried alone before.
    """
    if not first < 0.0:
        return 0.0
    low, high, at_low, at_high = 0.0, np.inf, first, np.inf
    points = [1.0, *(4.0 ** (1 - k) for k in range(at_once) if k != 1)][:at_once]
    if whole_first:
        points = [1.0]
    for _ in range(MOST_POINTS):
        found = sorted(zip(points, slopes(points), strict=True))
        enough = [(t != 1.0, abs(at), t) for t, at in found if 0.5 * first <= at <= -1e-3 * first]
        if enough:  # a whole step, or the one nearest to the minimum
            return min(enough)[2]
        for t, at in found:
            if at < 0.0:
                low, at_low = max((low, at_low), (t, at))
            elif not t >= high:
                high, at_high = t, at
        if np.isinf(high):
            if low >= farthest:
                return low
            points = [max(low, 1.0) * 4.0 ** (k + 1) for k in range(at_once)]
        elif points == [1.0]:
            points = [(k + 1) / at_once for k in range(at_once - 1)]
        else:
            share = min(max(at_low / (at_low - at_high), 0.02), 0.98)
            between = [share, *((k + 1) / at_once for k in range(at_once - 1))]
            points = [low + (high - low) * each for each in sorted(set(between))]
    return low
