"""Flows between classes: α of a joint machine with a free bias must circulate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats

# An imbalance, relative to all that flows, that may be rounding.
BALANCED = 1e-13


def circulation(F: Floats) -> Floats:
    """Return 0 ≤ F' ≤ F whose rows and columns have the same sums.

    A flow consists of cycles, and of paths from classes that more flows out of than into to others
    of which the opposite is true. Taking away the paths leaves a circulation, which is almost all
    of F where it is nearly balanced. Every path ends a class's excess or an edge.
    Reference: Ahuja, Magnanti, Orlin, *Network Flows* (1993), section 3.5.
    """
    F = F.copy()
    excess = F.sum(axis=1) - F.sum(axis=0)
    negligible = BALANCED * float(F.sum())
    while excess.max() > negligible:
        start = int(excess.argmax())
        path = _path(F, start, excess < 0.0)
        if path is None:  # rounding has hidden it; nothing at all circulates too
            return np.zeros_like(F)
        edges = path[:-1], path[1:]
        amount = min(float(excess[start]), -float(excess[path[-1]]), float(F[edges].min()))
        F[edges] -= amount
        excess[start] -= amount
        excess[path[-1]] += amount
    return F


def _path(F: Floats, start: int, ends: NDArray[np.bool_]) -> list[int] | None:
    """Return one of the shortest paths along F > 0 to one of the ends, by broad edges."""
    before = np.full(len(F), -1)
    before[start] = start
    frontier = np.array([start])
    while frontier.size:
        found = np.flatnonzero((before < 0) & (F[frontier] > 0.0).any(axis=0))
        broad = F[np.ix_(frontier, found)]
        before[found] = frontier[broad.argmax(axis=0)]
        if ends[found].any():
            reached = np.where(ends[found], broad.max(axis=0), 0.0)
            path = [int(found[reached.argmax()])]
            while path[0] != start:
                path.insert(0, int(before[path[0]]))
            return path
        frontier = found
    return None
