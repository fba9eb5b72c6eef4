"""Cells of a map: edges around values, several grids over each other, borders of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from ..arrays import Floats
from .canvas import Bools

# Standard errors below the best score at which the range of colours ends.
MOST_ERRORS = 10.0


def edges_of(values: Floats, *, is_log: bool) -> Floats:
    """Return the edges of cells around values, half-way between neighbours."""
    points = np.unique(np.log(values) if is_log else values)
    steps = np.diff(points) if points.size > 1 else np.array([np.log(2.0) if is_log else 1.0])
    inner = (points[1:] + points[:-1]) / 2.0
    edges = np.concatenate([[points[0] - steps[0] / 2.0], inner, [points[-1] + steps[-1] / 2.0]])
    return np.exp(edges) if is_log else edges


def united(edges: list[Floats]) -> Floats:
    """Return the edges of all grids, those that rounding has made different once."""
    every = np.sort(np.concatenate(edges))
    apart = np.append(True, np.diff(every) > 1e-9 * np.abs(every[1:]))
    return every[apart]


def cell_of(values: Floats, at: Floats, *, is_log: bool) -> tuple[Floats, Any]:
    """Return the distinct values, and in whose cell each place is; −1 outside of all cells."""
    edges = edges_of(values, is_log=is_log)
    cell = np.searchsorted(edges, at, side="right") - 1
    return np.unique(values), np.where((at < edges[0]) | (at >= edges[-1]), -1, cell)


def border_of(across: Floats, up: Floats, inside: Bools) -> list[Floats]:
    """Return the sides of cells between the inside and the outside of a region."""
    framed = np.pad(inside, 1)
    sides = []
    for row, column in zip(*np.nonzero(framed[1:, 1:-1] != framed[:-1, 1:-1]), strict=True):
        sides.append(np.array([[across[column], up[row]], [across[column + 1], up[row]]]))
    for row, column in zip(*np.nonzero(framed[1:-1, 1:] != framed[1:-1, :-1]), strict=True):
        sides.append(np.array([[across[column], up[row]], [across[column], up[row + 1]]]))
    return sides


def lowest_shown(lowest: float, best: float, least: float) -> float:
    """Return the score of the darkest colour; ``least`` is one standard error below the best.

    The range of colours is for the good candidates: those far below share the darkest.
    """
    low = max(lowest, best - MOST_ERRORS * (best - least))
    return low if low < best else lowest


def set_log(ax: Axes, axis: str, values: Floats) -> None:
    """Set a logarithmic axis with powers of 10, or of 2 if the values are no powers of 10."""
    tens = np.log10(values)
    base = 10.0 if np.allclose(2.0 * tens, np.round(2.0 * tens), atol=1e-6) else 2.0
    getattr(ax, f"set_{axis}scale")("log", base=base)
    of = getattr(ax, f"{axis}axis")
    of.set_major_locator(LogLocator(base=base, numticks=9))
    of.set_minor_locator(NullLocator())
    of.set_minor_formatter(NullFormatter())
