"""The best biases of scores on a device: the breaks near 0 are sorted, all others are counted."""

from __future__ import annotations

from typing import Any

import torch

from .primal_passes import Terms

Tensor = Any

# Of many breaks, this share near 0 first; it is estimated from so many of them.
NEAR_SHARE, QUANTILE_BREAKS = 0.02, 10_000


def flat_biases(terms: Terms, scores: Tensor) -> tuple[float, float] | None:
    """Return the least and the largest t of least loss for losses of straight lines.

    The slope of the loss in t grows by u at every break t = y − s, or ±ε from there. None where
    it does not change its sign between the breaks near 0.
    """
    breaks, costs = terms.y - scores, terms.upper
    if terms.two_sided:
        breaks = torch.cat([breaks - terms.epsilon, breaks + terms.epsilon])
        costs = costs if costs.numel() == 1 else costs.repeat(2)
    n = breaks.numel()
    before = _slope_before(terms)
    reach = torch.quantile(breaks[:: max(1, n // QUANTILE_BREAKS)].abs(), NEAR_SHARE)
    costs = costs.expand(n)
    left, inside = breaks < -reach, breaks.abs() <= reach
    sums = [before, (costs * left).sum(), (costs * inside).sum(), costs.sum(), inside.sum()]
    first, to_left, near, total, count = torch.stack([each.double() for each in sums]).tolist()
    rounding = 1e-12 * total
    start = first + to_left
    if not (start < -rounding and start + near > rounding):
        return None
    chosen = torch.nonzero_static(inside, size=int(count))[:, 0]
    t, order = breaks[chosen].sort()
    slopes = start + costs[chosen][order].cumsum(0)
    low = (slopes < -rounding).sum().clamp(max=t.numel() - 1)
    high = (slopes <= rounding).sum().clamp(max=t.numel() - 1)
    least, most = t[torch.stack([low, high])].tolist()
    return least, most


def _slope_before(terms: Terms) -> Tensor:
    """Return the slope left of all breaks."""
    if terms.two_sided:
        return -terms.upper.expand(terms.y.numel()).sum()
    return -(terms.upper * (terms.y > 0.0)).sum()
