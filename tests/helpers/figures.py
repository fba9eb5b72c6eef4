"""Axes to draw on, and the reading of what was drawn."""

import numpy as np
from matplotlib.figure import Figure

import maxmargin as mm


def one():
    return Figure(layout="constrained").subplots()


def two(*shape):
    return Figure(layout="constrained").subplots(*shape or (1, 2))


def blobs(n, d, c, spread, seed=3):
    """Normal clouds around c centres, class after class in turn."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(c, d)) * spread
    y = np.arange(n) % c
    return centres[y] + rng.normal(size=(n, d)), y


def vertices(collection):
    return np.concatenate([path.vertices for path in collection.get_paths()])


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def six_of():
    return mm.datasets.load_six_points(return_X_y=True)


def overlap(one, other):
    """Say whether two boxes have more than a border of a pixel in common."""
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return min(wide, high) > 1.0
