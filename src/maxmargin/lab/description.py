"""A picture in words, for those who do not see it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..progress import counted
from .fitting import Outcome, planes
from .notation import affine
from .picture import Picture
from .points import Points

# Numbers of points that are read out.
MOST_NAMED = 8


def described(outcome: Outcome, picture: Picture, k: int, title: str) -> str:
    """Return what a picture with a ``title`` shows of step k, or of the fitted model."""
    points = outcome.request.points
    parts = [title, _about_points(points, classes=outcome.request.recipe.has_classes)]
    if outcome.model is not None and not picture.flat:
        parts.append(_about_plane(outcome, picture, k))
    if picture.support is not None:
        parts.append(_numbered(picture.support, "support vector"))
    if picture.wrong is not None and outcome.request.recipe.has_classes:
        parts.append(_numbered(picture.wrong, "misclassified point"))
    if picture.common_point is not None:
        parts.append("The convex hulls of the classes overlap")
    return "".join(f"{part}. " for part in parts if part).rstrip()


def _about_points(points: Points, *, classes: bool) -> str:
    n = len(points.X)
    if not classes or not n:
        return counted(n, "point")
    present, counts = np.unique(points.codes, return_counts=True)
    each = (f"{count} of {points.names[code]}" for code, count in zip(present, counts, strict=True))
    return f"{counted(n, 'point')} in {counted(present.size, 'class')}: {', '.join(each)}"


def _about_plane(outcome: Outcome, picture: Picture, k: int) -> str:
    """Return the line of two classes, or what else is drawn."""
    if outcome.request.recipe.family == "regression":
        return "A curve through the targets" + (" with its tube" if picture.band else "")
    if outcome.request.recipe.family == "one-class":
        return "The region of the points and its border" if picture.planes else ""
    equation = _line(outcome, k)
    if equation:
        return f"The line {equation} = 0" + (" with the band g = ±1" if picture.band else "")
    return f"Regions of {counted(outcome.request.points.n_classes, 'class')}"


def _line(outcome: Outcome, k: int) -> str:
    """Return g of the line of two classes, "" for another kernel or more classes."""
    points = outcome.request.points
    if points.n_classes != 2 or not outcome.is_linear:
        return ""
    w, b = planes(outcome, k)
    return affine(w[0], float(b[0]), points.axes)


def _numbered(chosen: Any, name: str) -> str:
    """Return how many points are chosen, and which if these are few."""
    which = (np.flatnonzero(chosen) + 1).tolist()
    count = counted(len(which), name)
    if 0 < len(which) <= MOST_NAMED:
        return f"{count}: {', '.join(map(str, which))}"
    return count
