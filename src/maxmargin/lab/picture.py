"""What a picture holds, and what all of them are made of: windows, lattices, contours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..arrays import Floats
from ..plots.canvas import PALETTE
from ..plots.grid import Lattice
from .points import Points

# Points of the lattice along each axis.
RESOLUTION = 90
COLOURS = PALETTE[:4]
# Left, right, bottom, top.
Window: TypeAlias = tuple[float, float, float, float]


@dataclass
class Picture:
    """The contents of a figure, as lists.

    ``regions`` are class numbers on a lattice, −1 where there is none; lines are arrays of
    coordinates. ``flat`` says that w = 0, so that there is no plane. ``margins`` are y g(x) of the
    points, g(x) of one class, and ``predicted`` the targets that a regression predicts, within a
    ``tube`` of half the width ε where it is known. ``remark`` describes a step, ``previous`` is its
    plane before, and ``best`` the plane in the pocket.
    """

    window: Window
    regions: Any = None
    planes: list[Floats] = field(default_factory=list)
    colours: list[str] = field(default_factory=list)
    band: list[Floats] = field(default_factory=list)
    slack: list[Floats] = field(default_factory=list)
    hulls: list[Floats] = field(default_factory=list)
    common_point: Floats | None = None
    support: Any = None
    sizes: Any = None
    rings: list[str] = field(default_factory=list)
    wrong: Any = None
    corrected: int | None = None
    margins: Any = None
    alpha: Any = None
    predicted: Any = None
    tube: float | None = None
    flat: bool = False
    remark: str = ""
    previous: list[Floats] = field(default_factory=list)
    best: list[Floats] = field(default_factory=list)


def window_of(points: Points) -> Window:
    """Return the part of the plane that is shown: left, right, bottom, top."""
    if not len(points.X):
        return (-5.0, 5.0, -5.0, 5.0)
    low, high = points.X.min(axis=0), points.X.max(axis=0)
    room = np.maximum(0.15 * (high - low), 0.05 * np.abs(high) + 0.5)
    left, right, bottom, top = np.ravel([low - room, high + room], order="F").tolist()
    return left, right, bottom, top


def joined(one: Window | None, other: Window) -> Window:
    """Return the smallest window that holds two."""
    if one is None:
        return other
    low, high = np.minimum(one, other), np.maximum(one, other)
    return float(low[0]), float(high[1]), float(low[2]), float(high[3])


def lattice(window: Window, n: int = RESOLUTION) -> tuple[Floats, Floats, Floats]:
    """Return the coordinates along the axes, and all points as rows."""
    xs, ys = np.linspace(*window[:2], n), np.linspace(*window[2:], n)
    return xs, ys, np.column_stack([part.ravel() for part in np.meshgrid(xs, ys)])


def contours(xs: Floats, ys: Floats, g: Floats, level: float) -> list[Floats]:
    """Return the lines on which g, given on a lattice, has a level."""
    z = g.reshape(len(ys), len(xs))
    if not np.isfinite(z).all() or z.min() == z.max():
        return []
    return Lattice(xs, ys).contour(z, level)


def sizes_of(alpha: Floats) -> Floats:
    """Return the sizes of rings around points by their α."""
    largest = alpha.max(initial=0.0)
    return 9.0 + 8.0 * np.sqrt(alpha / largest) if largest > 0 else np.full(alpha.size, 9.0)


def to_line(point: Floats, lines: list[Floats]) -> Floats:
    """Return the segment from a point to the nearest point of lines through corners."""
    starts, ends = (np.vstack([line[part] for line in lines])
                    for part in (slice(None, -1), slice(1, None)))  # fmt: skip
    along = ends - starts
    square = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    share = np.clip(((point - starts) * along).sum(axis=1) / square, 0.0, 1.0)
    feet = starts + share[:, np.newaxis] * along
    return np.vstack([point, feet[np.argmin(((feet - point) ** 2).sum(axis=1))]])
