"""Lattices of points over a picture, level lines on them, and the nearest points of lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from contourpy import contour_generator

from ..arrays import Floats, Integers
from .canvas import Limits


@dataclass(frozen=True, eq=False)
class Lattice:
    """Points of a picture in rows and columns.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
    """

    x: Floats
    y: Floats

    @classmethod
    def over(cls, limits: Limits, resolution: int) -> Self:
        """Return ``resolution``² points that span the limits of both axes."""
        return cls(*(np.linspace(low, high, resolution) for low, high in limits))

    @property
    def points(self) -> Floats:
        """All points, row by row, (n, 2)."""
        return np.column_stack([part.ravel() for part in np.meshgrid(self.x, self.y)])

    def contour(self, values: Floats, level: float) -> list[Floats]:
        """Return the polylines on which values at the points, (n,) or (rows, columns), cross."""
        z = values.reshape(self.y.size, self.x.size)
        found = contour_generator(self.x, self.y, z).lines(level)
        return [np.asarray(line, dtype=float) for line in found]


@dataclass(frozen=True, eq=False)
class Grid(Lattice):
    """g and the class on a lattice of points of the picture.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
    scores : ndarray of shape (n_planes, resolution, resolution)
    codes : ndarray of int of shape (resolution, resolution)
    """

    scores: Floats
    codes: Integers


def nearest_on(points: Floats, segments: Floats, scale: Floats) -> Floats:
    """Return for every point the nearest point of any of the segments (k, 2, 2)."""
    start, way = segments[:, 0] / scale, (segments[:, 1] - segments[:, 0]) / scale
    length = np.maximum((way**2).sum(axis=1), 1e-300)
    nearest = np.empty_like(points)
    for k, point in enumerate(points / scale):
        along = np.clip(((point - start) * way).sum(axis=1) / length, 0.0, 1.0)
        candidates = start + along[:, None] * way
        nearest[k] = candidates[((candidates - point) ** 2).sum(axis=1).argmin()]
    return nearest * scale
