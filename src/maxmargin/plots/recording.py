"""Recorded runs as one HTML page without a server: the data of the player, and the page.

The page holds the data as JSON, a script and a style sheet, and needs nothing else. All coordinates
are whole numbers of `UNITS` per width of a picture; lines are paths of SVG.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from contourpy import contour_generator
from markupsafe import Markup
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator

from ..arrays import Floats, Integers
from ..templates import rendered
from .canvas import MOST_POINTS, Bools, Limits, colour, is_square, marker, size_of, some_rows
from .grid import Lattice

# Of the width of a picture; a line may be drawn beside its place by half of one.
UNITS = 2000
# How far, in units, a line with fewer corners may be from the line.
TOLERANCE = 1.0
# Sizes of rings.
MOST_SIZE = 99
# Height over width where the axes have different units.
FREE_RATIO = 0.72
MOST_TICKS = 7
PIXELS_PER_POINT = 4.0 / 3.0
# Class number of what belongs to no class.
NO_CLASS = -1
# What JSON may hold and a script in a page may not.
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Caption:
    """What is said of a state of a run.

    Parameters
    ----------
    heading : str
        Which state it is: "Step 3 of 8".
    text : str
        What happened.
    facts : str, default=""
        Numbers.
    is_proved : bool, optional
        Of the answer: whether its certificate proves it; None for a step.
    """

    heading: str
    text: str
    facts: str = ""
    is_proved: bool | None = None


@dataclass(frozen=True, eq=False)
class Shot:
    """A state of a run in a picture.

    Parameters
    ----------
    caption : Caption
    lines : list of (int, ndarray of shape (m, 2))
        Borders with the class that they belong to, `NO_CLASS` for g(x) = 0 of two classes.
    band : list of ndarray of shape (m, 2)
        Edges of the band or the tube.
    regions : list of (int, list of ndarray)
        Closed outlines of the regions of the classes, those of holes among them.
    slack : list of ndarray of shape (2, 2)
        Lines from samples to their margin.
    hulls : list of (int, ndarray of shape (m, 2))
        Convex hulls of the classes.
    common_point : ndarray of shape (2,), optional
        A point of two hulls.
    moved : ndarray of int
        Samples that are corrected.
    wrong : ndarray of bool of shape (n,), optional
        Samples that are not on their side.
    weights : ndarray of shape (n,), optional
        α relative to the largest one of the run.
    """

    caption: Caption
    lines: list[tuple[int, Floats]] = field(default_factory=list)
    band: list[Floats] = field(default_factory=list)
    regions: list[tuple[int, list[Floats]]] = field(default_factory=list)
    slack: list[Floats] = field(default_factory=list)
    hulls: list[tuple[int, Floats]] = field(default_factory=list)
    common_point: Floats | None = None
    moved: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    wrong: Bools | None = None
    weights: Floats | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """A run in a picture: samples, axes and states.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    points : ndarray of shape (n, 2)
        The samples.
    codes : ndarray of int of shape (n,)
        Their class numbers; `NO_CLASS` for samples without classes.
    class_names : sequence of str
    labels : tuple of str
        Labels of the axes.
    limits : tuple
        Low and high end of both axes.
    shots : list of Shot
        The states, first to last.
    legend : list of (str, str)
        What is drawn: "line", "before", "band", "slack", "ring", "moved", "wrong", "hull" or
        "star", and its meaning.
    note : str, default=""
        What the picture leaves out.
    strips : sequence of str, default=()
        The classes where the heights are strips.
    is_free : bool, default=False
        Whether the axes have different units, as those of a regression.
    """

    name: str
    points: Floats
    codes: Integers
    class_names: Sequence[str]
    labels: tuple[str, str]
    limits: Limits
    shots: list[Shot]
    legend: list[tuple[str, str]]
    note: str = ""
    strips: Sequence[str] = ()
    is_free: bool = False


def page_of(title: str, scenes: Sequence[Scene], fps: float) -> str:
    """Return the page that plays runs side by side.

    Parameters
    ----------
    title : str
        Title of the page.
    scenes : sequence of Scene
        The runs.
    fps : float
        States per second.
    """
    data = {"fps": fps, "scenes": [_scene(scene) for scene in scenes]}
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return rendered("player.html", title=title, data=Markup(text.translate(UNSAFE)))


def write_page(path: str | Path, title: str, scenes: Sequence[Scene], fps: float) -> Path:
    """Write the page that plays runs side by side, and return its file."""
    target = Path(path)
    target.write_text(page_of(title, scenes, fps), encoding="utf-8")
    return target


def region_above(lattice: Lattice, values: Floats) -> list[Floats]:
    """Return the closed outlines of the region in which values on a lattice are not negative.

    >>> lattice = Lattice(np.arange(3.0), np.arange(2.0))
    >>> (outline,) = region_above(lattice, np.array([[-1.0, 1.0, 3.0], [-1.0, 1.0, 3.0]]))
    >>> print(outline[:, 0].min(), outline[:, 0].max())
    0.5 2.0
    """
    z = np.asarray(values).reshape(lattice.y.size, lattice.x.size)
    top = float(z.max()) + 1.0
    if z.min() >= 0.0 or z.max() < 0.0:
        return [_frame(lattice)] if z.min() >= 0.0 else []
    filled = contour_generator(lattice.x, lattice.y, z, fill_type="OuterOffset").filled(0.0, top)
    return [
        np.asarray(outlines[first:last], dtype=float)
        for outlines, offsets in zip(*filled, strict=True)
        for first, last in pairwise(offsets)
    ]


def _frame(lattice: Lattice) -> Floats:
    (left, right), (low, high) = lattice.x[[0, -1]], lattice.y[[0, -1]]
    return np.array([[left, low], [right, low], [right, high], [left, high], [left, low]])


def regions_of(lattice: Lattice, codes: Integers) -> list[tuple[int, list[Floats]]]:
    """Return the outlines of the regions of class numbers on a lattice.

    Borders run half-way between the points of the lattice; the stairs are rounded off.
    """
    grid = np.asarray(codes).reshape(lattice.y.size, lattice.x.size)
    found = [int(code) for code in np.unique(grid) if code != NO_CLASS]
    return [
        (code, region_above(lattice, _smooth((grid == code).astype(float)) - 0.5)) for code in found
    ]


def _smooth(values: Floats) -> Floats:
    """Return the mean of every value and its neighbours, by binomial weights."""
    for axis in (0, 1):
        for _ in range(2):
            wide = np.pad(values, [(1, 1) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
            before, after = (np.roll(wide, side, axis) for side in (1, -1))
            inner = [slice(1, -1) if a == axis else slice(None) for a in (0, 1)]
            values = (0.25 * before + 0.5 * wide + 0.25 * after)[tuple(inner)]
    return values


def simplified(line: Floats, tolerance: float = TOLERANCE) -> Floats:
    """Return a polyline with fewer corners, at most so far from the line (Douglas, Peucker).

    >>> print(simplified(np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0], [2.0, 5.0]])))
    [[0. 0.]
     [2. 0.]
     [2. 5.]]
    """
    kept = np.zeros(len(line), dtype=bool)
    kept[[0, -1]] = True
    pieces = [(0, len(line) - 1)]
    while pieces:
        first, last = pieces.pop()
        if last - first < 2:
            continue
        away = _distances(line[first + 1 : last], line[first], line[last])
        farthest = int(away.argmax())
        if away[farthest] > tolerance:
            middle = first + 1 + farthest
            kept[middle] = True
            pieces += [(first, middle), (middle, last)]
    return line[kept]


def _distances(points: Floats, start: Floats, end: Floats) -> Floats:
    """Return the distances of points to a segment, which may be a point."""
    way = end - start
    along = np.clip((points - start) @ way / max(float(way @ way), 1e-300), 0.0, 1.0)
    return np.hypot(*(points - start - along[:, np.newaxis] * way).T)


class _Drawing:
    """From the coordinates of a scene to units of its picture, from the upper left corner."""

    def __init__(self, scene: Scene) -> None:
        (left, right), (bottom, top) = scene.limits
        wide, high = right - left, top - bottom
        self.corner = np.array([left, top])
        equal = not scene.is_free and not scene.strips and is_square(scene.limits)
        self.height = round(UNITS * (high / wide if equal else FREE_RATIO))
        self.scale = np.array([UNITS / wide, -self.height / high])

    def units(self, points: Floats) -> Floats:
        """Return points in units."""
        return (points - self.corner) * self.scale

    def place(self, point: Floats) -> list[int]:
        """Return a point in whole units."""
        return [round(value) for value in self.units(point).tolist()]

    def path(self, lines: Iterable[Floats], *, closed: bool = False) -> str:
        """Return polylines as a path of SVG: one absolute corner, then differences."""
        return "".join(self._piece(line, closed) for line in lines)

    def _piece(self, line: Floats, closed: bool) -> str:
        corners = simplified(self.units(line)).round().astype(np.int64)
        if closed and (corners[0] == corners[-1]).all():
            corners = corners[:-1]
        ways = np.diff(corners, axis=0).ravel()
        if not ways.any():
            return ""
        numbers = "".join(f"{k:d}" if k < 0 else f" {k:d}" for k in ways.tolist())
        return f"M{corners[0, 0]} {corners[0, 1]}l{numbers}{'z' if closed else ''}"


def _scene(scene: Scene) -> dict[str, Any]:
    """Return a scene as numbers and texts."""
    drawing, rows = _Drawing(scene), _drawn_rows(scene)
    present = sorted({int(code) for code in np.unique(scene.codes)} - {NO_CLASS})
    note = [scene.note] if scene.note else []
    if rows.size < len(scene.points):
        note.append(f"{rows.size:,} of {len(scene.points):,} samples shown")
    return {
        "name": scene.name,
        "note": "; ".join(note),
        "about": _description(scene),
        "size": [UNITS, drawing.height],
        "axes": _axes(scene, drawing),
        "colours": [colour(code) for code in range(len(scene.class_names))],
        "classes": [[code, str(scene.class_names[code]), _marker_path(code)] for code in present],
        "points": drawing.units(scene.points[rows]).round().astype(int).ravel().tolist(),
        "codes": scene.codes[rows].tolist(),
        "diameter": round(PIXELS_PER_POINT * float(np.sqrt(size_of(rows.size))), 1),
        "legend": [list(entry) for entry in scene.legend],
        "shots": _shots(scene, drawing, rows),
    }


def _drawn_rows(scene: Scene) -> Integers:
    """Return the samples that are drawn, those that are corrected among them."""
    moved = np.unique(np.concatenate([shot.moved for shot in scene.shots]))
    return some_rows(len(scene.points), MOST_POINTS, moved, MOST_POINTS // 2)


def _shots(scene: Scene, drawing: _Drawing, rows: Integers) -> list[dict[str, Any]]:
    """Return the states; of wrong samples and sizes of rings what changes from state to state."""
    found = []
    wrong, sizes = np.zeros(rows.size, dtype=bool), np.zeros(rows.size, dtype=np.int64)
    place = {row: k for k, row in enumerate(rows.tolist())}
    for shot in scene.shots:
        now_wrong = np.zeros_like(wrong) if shot.wrong is None else shot.wrong[rows]
        now_sizes = np.zeros_like(sizes) if shot.weights is None else _sizes(shot.weights[rows])
        changed = np.flatnonzero(now_sizes != sizes)
        entry = {
            "heading": shot.caption.heading,
            "text": shot.caption.text,
            "facts": shot.caption.facts,
            "proved": shot.caption.is_proved,
            "lines": [[code, drawing.path([line])] for code, line in shot.lines],
            "band": drawing.path(shot.band),
            "slack": drawing.path(shot.slack),
            "hulls": [[code, drawing.path([hull], closed=True)] for code, hull in shot.hulls],
            "star": [] if shot.common_point is None else drawing.place(shot.common_point),
            "regions": [
                [code, drawing.path(outlines, closed=True)] for code, outlines in shot.regions
            ],
            "moved": [place[row] for row in shot.moved.tolist() if row in place],
            "wrong": np.flatnonzero(now_wrong != wrong).tolist(),
            "sizes": np.column_stack([changed, now_sizes[changed]]).ravel().tolist(),
        }
        found.append({key: value for key, value in entry.items() if value not in ("", [], None)})
        wrong, sizes = now_wrong, now_sizes
    return found


def _sizes(weights: Floats) -> Integers:
    """Return whole sizes of rings; every α > 0 has a ring."""
    return np.ceil(MOST_SIZE * np.clip(weights, 0.0, 1.0)).astype(np.int64)


def _axes(scene: Scene, drawing: _Drawing) -> list[dict[str, Any]]:
    """Return the label of each axis, and its ticks: place in units, and text."""
    across = _ticks(*scene.limits[0])
    up = list(enumerate(scene.strips)) if scene.strips else _ticks(*scene.limits[1])
    return [
        {
            "label": str(label),
            "ticks": [[round(drawing.units(np.full(2, value))[k]), text] for value, text in ticks],
        }
        for k, (label, ticks) in enumerate(zip(scene.labels, (across, up), strict=True))
    ]


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers within an interval, and how they are written.

    >>> _ticks(-0.5, 1.1)
    [(-0.5, '−0.5'), (0.0, '0'), (0.5, '0.5'), (1.0, '1')]
    >>> [text for _, text in _ticks(1e10 - 1, 1e10 + 1)]
    ['9999999999', '9999999999.5', '10000000000', '10000000000.5', '10000000001']
    """
    values = MaxNLocator(MOST_TICKS, steps=[1, 2, 5, 10]).tick_values(low, high)
    inside = [float(value) for value in values if low <= value <= high]
    ways = np.diff(inside)
    size = float(np.abs(inside).max(initial=0.0) / ways.min()) if ways.size else 1.0
    digits = min(max(10, math.ceil(math.log10(max(size, 1.0))) + 2), 17)
    return [(value, written(value, digits)) for value in inside]


def written(value: float, digits: int = 4) -> str:
    """Return a number with so many significant digits and a minus sign.

    >>> written(-1 / 3)
    '−0.3333'
    """
    return f"{value + 0.0:.{digits}g}".replace("-", "−")


def _marker_path(code: int) -> str:
    """Return the marker of a class, of width 1, as a path of SVG."""
    style = MarkerStyle(marker(code))
    outline = style.get_path().transformed(style.get_transform())
    letters = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}
    found = []
    for corners, kind in outline.iter_segments(simplify=False):
        # The vertical axis of a page runs down.
        places = np.asarray(corners).reshape(-1, 2) * (1.0, -1.0)
        numbers = " ".join(f"{x + 0.0:g}" for x in places.ravel().round(3))
        found.append("Z" if kind == Outline.CLOSEPOLY else f"{letters[kind]}{numbers}")
    return "".join(found)


def _description(scene: Scene) -> str:
    """Return the picture in words, for those who do not see it."""
    n = len(scene.points)
    codes, counts = np.unique(scene.codes, return_counts=True)
    of = [
        f"{count:,} of class {scene.class_names[code]}"
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
        if code != NO_CLASS
    ]
    samples = f"{n:,} samples" + (f" ({', '.join(of)})" if of else "")
    across, up = scene.labels
    drawn = "".join(f"; {text}" for _, text in scene.legend)
    return f"{scene.name}: {samples}, {across} across and {up or 'classes'} up{drawn}"
