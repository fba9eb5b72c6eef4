"""The data of a page that plays a recording, read back."""

import json
import re

import numpy as np


def data_of(text):
    """Return the data that a page holds."""
    found = re.search(r'<script type="application/json" id="recording">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def states_of(scene):
    """Return the sizes of the rings and which samples are wrong, of every state."""
    n = len(scene["codes"])
    sizes, wrong, found = np.zeros(n, dtype=int), np.zeros(n, dtype=bool), []
    for shot in scene["shots"]:
        changes = np.reshape(shot.get("sizes", []), (-1, 2)).astype(int)
        sizes, wrong = sizes.copy(), wrong.copy()
        sizes[changes[:, 0]] = changes[:, 1]
        wrong[shot.get("wrong", [])] ^= True
        found.append((sizes, wrong))
    return found


def corners(path):
    """Return the polylines of a path of SVG, in units."""
    found = []
    for piece in filter(None, path.replace("z", "").split("M")):
        start, _, ways = piece.partition("l")
        steps = np.reshape([int(k) for k in re.findall(r"-?\d+", ways)], (-1, 2))
        found.append(np.vstack([np.array(start.split(), dtype=int), steps]).cumsum(axis=0))
    return found


class Places:
    """From units to the coordinates of the axes, by the ticks."""

    def __init__(self, scene):
        self.lines = []
        for axis in scene["axes"]:
            (u, low), *_, (v, high) = axis["ticks"]
            low, high = (float(text.replace("−", "-")) for text in (low, high))
            slope = (high - low) / (v - u)
            self.lines.append((low - slope * u, slope))

    @property
    def unit(self):
        """One unit along each axis."""
        return np.abs([slope for _, slope in self.lines])

    def __call__(self, units):
        (a, c), (b, d) = self.lines
        return np.asarray(units) * (c, d) + (a, b)
