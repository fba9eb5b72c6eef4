"""The lines of planes in a picture, and those between the regions of classes."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..arrays import Floats
from ..multiclass import OneVsOne
from .canvas import Bools
from .grid import Grid
from .model import FigureModel

# Lines of pairs; more would hide everything else. Curves are longer.
MOST_LINES, MOST_CURVES = 15, 3


def region_lines(
    model: FigureModel, grid: Grid
) -> tuple[list[tuple[str, list[Floats]]], list[tuple[int, int]]]:
    """Return named lines of g = 0, and the pairs of classes that they separate for "ovo"."""
    names = model.class_names
    if model.is_binary:
        return [("g(x) = 0", grid.contour(grid.scores[0], 0.0))], []
    most = MOST_LINES if model.is_linear else MOST_CURVES
    if model.scheme == "ovo" and len(grid.scores) > most:
        steps = [grid.contour(np.where(grid.codes == k, 1.0, -1.0), 0.0) for k in range(len(names))]
        return [("edge of a region", [line for lines in steps for line in lines])], []
    if model.scheme == "ovo":
        pairs = OneVsOne.pairs(len(names))
        named = [f"{names[i]} – {names[j]}" for i, j in pairs]
        found = [grid.contour(g, 0.0) for g in grid.scores]
        return list(zip(named, found, strict=True)), pairs
    if model.scheme != "joint":
        return [
            (name, grid.contour(g, 0.0)) for name, g in zip(names, grid.scores, strict=True)
        ], []
    borders: list[Floats] = []
    for i, j in combinations(range(len(names)), 2):
        others = np.delete(grid.scores, [i, j], axis=0).max(axis=0)
        pair = grid.scores[i] - grid.scores[j]
        # Their line is a boundary only where both scores exceed all others.
        ahead = np.maximum(grid.scores[i], grid.scores[j]) >= others - 1e-12
        borders += [part for line in grid.contour(pair, 0.0) for part in _parts(line, grid, ahead)]
    return [("equal scores", borders)], []


def _parts(line: Floats, grid: Grid, inside: Bools) -> list[Floats]:
    """Return the pieces of a polyline in cells that are inside."""
    column = np.clip(np.searchsorted(grid.x, line[:, 0]), 1, grid.x.size - 1)
    row = np.clip(np.searchsorted(grid.y, line[:, 1]), 1, grid.y.size - 1)
    near = inside[row, column] | inside[row - 1, column] | inside[row, column - 1]
    kept = near | inside[row - 1, column - 1]
    cuts = np.flatnonzero(np.diff(kept.astype(int))) + 1
    pieces = zip(np.split(line, cuts), np.split(kept, cuts), strict=True)
    return [piece for piece, keep in pieces if keep.any() and len(piece) > 1]
