"""Rings around support vectors, of as many as leave the data visible."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from scipy.spatial import cKDTree

from ..arrays import Floats, Integers
from .canvas import INK, Limits, inner_size, is_square
from .legends import mark_handle

# Most rings, and fewest that are worth drawing.
MOST_RINGS, LEAST_RINGS = 300, 12
# Other rings that a ring may overlap on average, and how many more, divided by their number.
MOST_OVERLAPS, OVERLAPS_OF_FEW = 1.2, 150.0


def draw_rings(
    ax: Axes, points: Floats, limits: Limits, area: float, sizes: Floats | None = None
) -> PathCollection | None:
    """Draw rings of this area, in square points, around points; around some of them if crowded.

    ``sizes`` are factors of the area of each ring.
    """
    chosen = ringed(places(ax, points, limits), float(np.sqrt(area)))
    if not chosen.size:
        return None
    n = chosen.size
    return ax.scatter(
        points[chosen, 0], points[chosen, 1], facecolors="none", edgecolors=INK, zorder=4,
        s=area if sizes is None else area * sizes[chosen],
        linewidths=1.2 if n <= 30 else 0.8 if n <= 100 else 0.5, alpha=1.0 if n <= 100 else 0.7,
    )  # fmt: skip


def ringed(points: Floats, diameter: float) -> Integers:
    """Return which points get a ring: all, or a random but always the same sample of them.

    The sample is as large as the rings overlap little, and empty where that would be few.
    """
    n = len(points)
    order = np.random.RandomState(0).permutation(n)[:MOST_RINGS]
    if n <= LEAST_RINGS:
        return np.arange(n)
    tree = cKDTree(points[order])
    overlaps = tree.count_neighbors(tree, diameter) / order.size - 1.0
    most = MOST_OVERLAPS + OVERLAPS_OF_FEW / order.size
    if overlaps > most:
        # Overlaps are proportional to the size of the sample.
        order = order[: int(order.size * most / overlaps)]
    return np.sort(order) if order.size >= LEAST_RINGS else order[:0]


def places(ax: Axes, points: Floats, limits: Limits) -> Floats:
    """Return the places of points on the axes, in points of 1/72 inch."""
    (left, right), (bottom, top) = limits
    scale = 72.0 * np.array(inner_size(ax)) / (right - left, top - bottom)
    if is_square(limits):
        scale[:] = scale.min()
    return points * scale


def ring_handle(drawn: int, n: int) -> Line2D:
    """Return the legend entry of rings around so many of n support vectors."""
    text = "support vector" if drawn == n else f"support vectors\n({drawn:,} of {n:,} drawn)"
    text = text if drawn else f"support vectors\n(none of {n:,} drawn)"
    return mark_handle(text, "o", size=9, hollow=True, edge=1.0 if drawn <= 100 else 0.7)
