"""Lines from samples that violate the margin to the nearest point of their margin."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, Integers
from .canvas import Bools, is_square
from .grid import Grid, nearest_on
from .model import FigureModel
from .view import FigureData, View, grid_of

MOST_SLACK_LINES = 300
# Widths of the picture to each side in which a curved margin is looked for.
SEARCH_WIDTHS = 2.0


def slack_lines(
    model: FigureModel,
    data: FigureData,
    view: View,
    grid: Grid,
    points: Floats,
    codes: Integers,
    margins: Floats,
) -> Floats:
    """Return lines from violators to the nearest point of their margin, (k, 2, 2).

    Those whose margin is not found because it lies far outside are left out.
    """
    violators = np.flatnonzero(margins < 1.0 - 1e-6)
    if not view.exact or view.is_strip or not 0 < violators.size <= MOST_SLACK_LINES:
        return np.empty((0, 2, 2))
    start, y = points[violators], np.where(codes[violators] == 1, 1.0, -1.0)
    planes = model.affine(view.origin, data.fill)
    if planes is not None:
        heights = y * (margins[violators] - 1.0)
        ends = _ends_on_plane(start, heights, planes[0][0] @ view.basis, grid)
    else:
        ends = _ends_on_curve(grid, start, y)
        lost = np.isnan(ends[:, 0])
        if lost.any():
            left, right = (
                (axis[0] - SEARCH_WIDTHS * np.ptp(axis), axis[-1] + SEARCH_WIDTHS * np.ptp(axis))
                for axis in (grid.x, grid.y)
            )
            wide = grid_of(model, data, view, (left, right), grid.x.size)
            ends[lost] = _ends_on_curve(wide, start[lost], y[lost])
    found = np.isfinite(ends[:, 0])
    return np.stack([start[found], ends[found]], axis=1)


def tube_slacks(points: Floats, residuals: Floats, is_outside: Bools, epsilon: float) -> Floats:
    """Return vertical lines from samples outside of the tube to its edge, (k, 2, 2)."""
    outside = np.flatnonzero(is_outside)
    if outside.size > MOST_SLACK_LINES:
        return np.empty((0, 2, 2))
    start, r = points[outside], residuals[outside]
    end = start - np.column_stack([np.zeros(r.size), r - np.sign(r) * epsilon])
    return np.stack([start, end], axis=1)


def _ends_on_plane(points: Floats, heights: Floats, w: Floats, grid: Grid) -> Floats:
    """Return p − h w/‖w‖² in the units of the picture; nan where g is constant in it."""
    if np.ptp(grid.scores[0]) <= 1e-9:
        return np.full_like(points, np.nan)
    scale = _scale(grid)
    return points - np.outer(heights / ((scale * w) ** 2).sum(), scale**2 * w)


def _ends_on_curve(grid: Grid, points: Floats, y: Floats) -> Floats:
    """Return the nearest points where g = y; nan where one beyond the lattice may be nearer."""
    scale = _scale(grid)
    edges = np.array([[grid.x[0], grid.y[0]], [grid.x[-1], grid.y[-1]]])
    room = (np.abs(points - edges[:, None]) / scale).min(axis=(0, 2))
    ends = np.full_like(points, np.nan)
    for level in (-1.0, 1.0):
        own = np.flatnonzero(y == level)
        pieces = grid.contour(grid.scores[0], level)
        segments = [np.stack([line[:-1], line[1:]], axis=1) for line in pieces if len(line) > 1]
        if own.size and segments:
            nearest = nearest_on(points[own], np.concatenate(segments), scale)
            distance = np.linalg.norm((nearest - points[own]) / scale, axis=1)
            ends[own] = np.where((distance <= room[own])[:, None], nearest, np.nan)
    return ends


def _scale(grid: Grid) -> Floats:
    """Return the units of distances: those of the data where the axes have equal units."""
    wide = np.array([np.ptp(grid.x), np.ptp(grid.y)])
    return np.ones(2) if is_square(((0.0, wide[0]), (0.0, wide[1]))) else wide
