"""The set of weight vectors that separate all samples at a given b."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from .canvas import span
from .grid import nearest_on

# Factor by which a window of w may grow to show solutions, and that in which they are searched.
MOST_WIDENING, SEARCH_WIDENING = 20.0, 1e6


def solution_region(X: Floats, signs: Floats, b: float, window: Floats) -> Floats:
    """Return the corners of {w in window : y_i(w·x_i + b) > 0 for every i}, none if it is empty.

    The window, one row of two limits per axis, is clipped by one half-plane after another
    (Sutherland, Hodgman, 1974).

    >>> window = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    >>> solution_region(np.array([[1.0, 0.0]]), np.array([1.0]), 0.0, window).tolist()
    [[0.0, -1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 1.0]]
    """
    (left, right), (bottom, top) = window
    corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    for normal, offset in zip(signs[:, None] * X, signs * b, strict=True):
        if not len(corners):
            break
        corners = _cut(corners, normal, float(offset))
    return corners


def _cut(corners: Floats, normal: Floats, offset: float) -> Floats:
    """Return the part of a convex polygon where normal·w + offset ≥ 0."""
    height = corners @ normal + offset
    kept = []
    for k in range(len(corners)):
        before, here = height[k - 1], height[k]
        if before * here < 0:
            share = before / (before - here)
            kept.append(corners[k - 1] + share * (corners[k] - corners[k - 1]))
        if here >= 0:
            kept.append(corners[k])
    return np.array(kept).reshape(-1, 2)


def solutions(
    X: Floats, signs: Floats, b: float, w: Floats, window: Floats
) -> tuple[Floats, Floats, bool]:
    """Return a window that shows solutions if possible, those in it, and whether there are any.

    The line of a sample has the distance \\|b\\|/‖x‖ from 0 in weight space: a window many times as
    large shows whether the half-planes intersect.
    """
    corners = solution_region(X, signs, b, window)
    if len(corners) > 2:
        return window, corners, True
    length = np.linalg.norm(X, axis=1)
    far = np.abs(b) / length[(length > 0) & (signs * b <= 0)]
    reach = SEARCH_WIDENING * max(float(np.abs(window).max()), float(far.max(initial=0.0)))
    corners = solution_region(X, signs, b, np.array([[-reach, reach], [-reach, reach]]))
    # An empty intersection that rounding left corners of has no interior.
    if len(corners) < 3 or not (signs * (X @ corners.mean(axis=0) + b) > 0).all():
        return window, np.empty((0, 2)), False
    edges = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
    nearest = nearest_on(w[None], edges, np.ptp(window, axis=1))[0]
    window = _widened(window, nearest)
    return window, solution_region(X, signs, b, window), True


def _widened(window: Floats, point: Floats) -> Floats:
    """Return the window widened to hold a point; unchanged where the point is far away."""
    wide = np.array([span(np.append(window[k], point[k]), 0.2) for k in (0, 1)])
    too_far = (np.ptp(wide, axis=1) > MOST_WIDENING * np.ptp(window, axis=1)).any()
    return window if too_far else wide
