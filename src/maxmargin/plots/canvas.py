"""Shared by all figures: colours and markers of the classes, axes, legends, rows to draw."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.typing import ColorType, LineStyleType, MarkerType
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Integers
from .display import DisplayFigure

Bools: TypeAlias = NDArray[np.bool_]
# The axes of the caller, several of them in any sequence, or None for a new figure.
AxesLike: TypeAlias = Axes | Sequence[Axes] | NDArray[np.object_] | None
# Low and high end of both axes, (2, 2).
Limits: TypeAlias = tuple[tuple[float, float], tuple[float, float]] | Floats

# Okabe, Ito (2008): distinct for colour-blind readers; neighbours also differ in lightness. Then
# those that are farthest from all before them, by CIEDE2000, as all readers see them: any two
# differ by 16 for full vision, by 9 without red or green receptors (Machado et al., 2009).
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#0000AA",
    "#860C0C", "#FFC2B6", "#6D556D", "#556149", "#00F3FF", "#550049", "#8679FF", "#AAB679",
    "#CE0092", "#CEB6CE", "#F31861", "#6D18FF",
)  # fmt: skip
MARKERS: tuple[MarkerType, ...] = (
    "o", "s", "^", "D", "v", "p", "h", "<", ">", "8", "P", "*", "d", (4, 1, 0), (5, 0, 180),
    (6, 1, 0), (3, 1, 0), (8, 1, 0), (4, 1, 45), (3, 1, 180),
)  # fmt: skip
INK = "#222222"
FAINT = "#8A8A8A"
WRONG = "#D55E00"
MOST_POINTS = 2000  # samples drawn
MOST_LETTERS = 24  # of the name of a class


@dataclass(frozen=True)
class Layout:
    """Sizes of texts and markers."""

    # Height over width of data that are drawn in equal units.
    square_ratios: tuple[float, float] = (0.4, 1.6)
    # In letters of 10 points.
    characters_per_inch: float = 12.0
    # Of a title; narrower axes get smaller letters.
    least_line_characters: int = 24
    # Of a title in letters that are not the smallest.
    most_lines: int = 2
    # Of the width and height of the caller's axes, what labels and legends leave.
    least_left: tuple[float, float] = (0.9, 0.6)
    # Area of axes in square inches from which on markers have their full size, and the least share.
    full_area: float = 16.0
    least_share: float = 0.4
    # Samples from which on markers let those below them through, and are drawn as pixels.
    translucent_from: int = 1000
    pixels_from: int = 5000


LAYOUT = Layout()


def colour(code: int) -> str:
    """Return the colour of a class, the same in every figure."""
    return PALETTE[code % len(PALETTE)]


def marker(code: int) -> MarkerType:
    """Return the marker of a class: no two of 20 classes share it, nor two of the same colour."""
    return MARKERS[(code + code // len(PALETTE)) % len(MARKERS)]


def pale(code: int, strength: float = 0.2) -> tuple[float, float, float]:
    """Return the colour of a class mixed with white, for regions under the samples."""
    r, g, b = (1.0 - strength * (1.0 - part) for part in to_rgb(colour(code)))
    return r, g, b


def one_axes(ax: Axes | None, height: float = 4.8) -> Axes:
    """Return the caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    _, made = plt.subplots(layout="constrained", figsize=(7.0, height), FigureClass=DisplayFigure)
    return made


def several_axes(
    axes: AxesLike, n: int, size: tuple[float, float], rows: bool = False
) -> list[Axes]:
    """Return n axes: the caller's, or those of a new figure, side by side or one below another."""
    if axes is None:
        shape = (n, 1) if rows else (1, n)
        _, made = plt.subplots(
            *shape, squeeze=False, layout="constrained", figsize=size, FigureClass=DisplayFigure
        )
        return list(made.ravel())
    given = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(given) != n:
        raise ValueError(f"axes holds {len(given)} axes, this figure has {n} panels: pass {n}.")
    return given


def figure_of(ax: Axes) -> Figure:
    """Return the figure that the axes belong to."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def set_title(ax: Axes, title: str, note: str = "") -> None:
    """Write the title and a smaller note below it, as large as fits."""
    wide, high = _room_above(ax)
    for share in (1.0, 0.9, 0.8, 0.7, 0.6):
        size = share * plt.rcParams["font.size"]
        room = max(int(10.0 * LAYOUT.characters_per_inch * wide / size), 1)
        large = [line for part in title.splitlines() for line in wrapped(part, room)]
        small = wrapped(note, int(1.2 * room))
        pad = 6.0 + 1.3 * size * len(small)
        fits = pad + 1.2 * size * len(large) <= 72.0 * high and len(large) <= LAYOUT.most_lines
        if room >= LAYOUT.least_line_characters and fits:
            break
    ax.set_title("\n".join(large), fontsize=size, pad=pad)
    if small:
        ax.text(
            0.5, 1.012, "\n".join(small), transform=ax.transAxes, ha="center", va="bottom",
            fontsize=0.833 * size, color="#555555",
        )  # fmt: skip


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken after commas where possible.

    >>> wrapped("SVC (linear, C = 1), 5 support vectors, R² 0.98", 28)
    ['SVC (linear, C = 1),', '5 support vectors, R² 0.98']
    """
    found = [""]
    for part in re.split(r"(?<=[,;:]) (?![^(]*\))", text):
        if len(found[-1]) + 1 + len(part) <= width:
            found[-1] = f"{found[-1]} {part}".strip()
            continue
        kept = re.sub(r"(?<==) | (?==)|(?<=R²) ", "\N{NO-BREAK SPACE}", part)
        lines = textwrap.wrap(kept, width)
        found += [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
    return [line for line in found if line]


def inner_size(ax: Axes) -> tuple[float, float]:
    """Return the width and height in inches that axes will have at least, after any layout."""
    figure = figure_of(ax)
    wide, high = ax.get_position(original=True).size * figure.get_size_inches()
    if figure.get_layout_engine() is None or isinstance(figure, DisplayFigure):
        return float(wide), float(high)
    return float(wide * LAYOUT.least_left[0]), float(high * LAYOUT.least_left[1])


def _room_above(ax: Axes) -> tuple[float, float]:
    """Return width and height in inches available for a title; a layout engine has no limit."""
    figure, place = figure_of(ax), ax.get_position()
    wide, high = figure.get_size_inches()
    if figure.get_layout_engine() is not None:
        return inner_size(ax)[0], np.inf
    others = [other.get_position() for other in figure.axes]
    above = [
        other.y0 for other in others
        if other.y0 >= place.y1 and other.x0 < place.x1 and place.x0 < other.x1
    ]  # fmt: skip
    return place.width * wide, (min(above, default=1.0) - place.y1) * high


def size_of(n: int, ax: Axes | None = None) -> float:
    """Return the area of a marker, smaller where there are many and on small axes."""
    share = 1.0
    if ax is not None:
        wide, high = ax.get_position(original=True).size * figure_of(ax).get_size_inches()
        share = float(np.clip(wide * high / LAYOUT.full_area, LAYOUT.least_share, 1.0))
    return share * float(np.clip(1500.0 / max(n, 1) ** 0.75, 1.5, 60.0))


def opacity_of(n: int) -> float:
    """Return the opacity of markers: where there are many, darker spots hold more of them."""
    return float(np.clip((LAYOUT.translucent_from / max(n, 1)) ** 0.35, 0.15, 1.0))


def draw_classes(
    ax: Axes,
    points: Floats,
    codes: Integers,
    n_classes: int,
    sizes: ArrayLike | None = None,
    answers: Integers | None = None,
) -> list[PathCollection]:
    """Draw the samples, one collection per class, in its colour and marker.

    Where the answers of a model are given they are the colours of the faces; the markers and, of
    wrong answers, the edges are those of the class.
    """
    n = len(points)
    area = np.full(n, size_of(n, ax)) if sizes is None else np.asarray(sizes)
    edge = 0.5 if area.max(initial=0.0) > 7.0 else 0.0
    faces = codes if answers is None else answers
    drawn = []
    for code in range(n_classes):
        own = codes == code
        look: dict[str, Any] = {"c": colour(code), "edgecolors": "white", "linewidths": edge}
        wrong = faces[own] != code
        if wrong.any():
            look = {
                "c": [colour(face) for face in faces[own]],
                "edgecolors": [colour(code) if is_wrong else "white" for is_wrong in wrong],
                "linewidths": np.where(wrong, 1.2, edge).tolist(),
            }
        drawn.append(
            ax.scatter(
                points[own, 0], points[own, 1], s=area[own], marker=marker(code), zorder=3,
                alpha=opacity_of(n), rasterized=n > LAYOUT.pixels_from, **look,
            )
        )  # fmt: skip
    return drawn


def lines(
    ax: Axes,
    pieces: Sequence[Floats],
    ink: ColorType = INK,
    style: LineStyleType = "-",
    width: float = 1.5,
    *,
    zorder: float = 2.0,
    alpha: float | None = None,
) -> LineCollection:
    """Draw polylines as one artist; the limits of the axes do not change."""
    drawn = LineCollection(
        list(pieces), colors=ink, linestyles=style, linewidths=width, zorder=zorder, alpha=alpha
    )
    ax.add_collection(drawn, autolim=False)
    return drawn


def some_rows(n: int, limit: int, keep: Integers | None = None, most: int = 0) -> Integers:
    """Return at most ``limit`` of n rows, in order; the choice is deterministic.

    Of those to ``keep`` their share is among them, and up to ``most`` where their share is less.
    """
    if n <= limit:
        return np.arange(n)
    shuffled = np.random.RandomState(0).permutation(n)
    kept = np.zeros(n, dtype=bool)
    if keep is not None:
        kept[keep] = True
    first, others = shuffled[kept[shuffled]], shuffled[~kept[shuffled]]
    share = round(limit * first.size / n) if most else 0
    n_first = min(first.size, max(share, min(most, limit), limit - others.size))
    return np.sort(np.concatenate([first[:n_first], others[: limit - n_first]]))


def span(values: Floats, padding: float = 0.08) -> tuple[float, float]:
    """Return limits around the finite values, which differ even where all values are equal."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    width = high - low
    if width <= 1e-12 * max(abs(low), abs(high)):
        width = max(abs(low), 1.0)
    return low - padding * width, high + padding * width


def limits_of(
    points: Floats, strip_of: int = 0, padding: float | None = None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the limits of both axes around points, with more room around few of them.

    ``strip_of`` is the number of classes where the heights are strips, one per class.
    """
    room = padding if padding is not None else (0.2 if len(points) <= 10 else 0.08)
    up = (-0.5, strip_of - 0.5) if strip_of else span(points[:, 1], room)
    return span(points[:, 0], room), up


def strip_heights(codes: Integers) -> Floats:
    """Return heights of samples of one feature, spread evenly in the strip of their class."""
    return codes + 0.5 * ((np.arange(len(codes)) * 0.6180339887498949) % 1.0 - 0.5)


def is_square(limits: Limits) -> bool:
    """Say whether equal units on both axes give a picture of reasonable proportions."""
    (left, right), (bottom, top) = limits
    return LAYOUT.square_ratios[0] <= (top - bottom) / (right - left) <= LAYOUT.square_ratios[1]


def set_frame(
    ax: Axes, limits: Limits, labels: tuple[str, str], strips: Sequence[str] = ()
) -> None:
    """Set limits and labels; ``strips`` are the classes where the heights are strips."""
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])
    if strips:
        ax.set_yticks(range(len(strips)), [as_text(name) for name in strips])
    elif is_square(limits):
        ax.set_aspect("equal", adjustable="box")
    set_labels(ax, *labels)


def set_labels(ax: Axes, across: str, up: str) -> None:
    """Label both axes, on several lines where they are short."""
    wide, high = inner_size(ax)
    ax.set_xlabel(_fitted(across, wide))
    ax.set_ylabel(_fitted(up, high))


def _fitted(text: str, inches: float) -> str:
    return as_text("\n".join(wrapped(text, max(int(LAYOUT.characters_per_inch * inches), 12))))


def as_text(name: str) -> str:
    """Return a name such that Matplotlib can draw it: as a formula where it is one, else as it is.

    >>> print(as_text("$x_1$"), as_text("5 $"), as_text("$$"))
    $x_1$ 5 $ \\$\\$
    """
    if not (plt.rcParams["text.parse_math"] and is_math_text(name)):
        return name
    try:
        MathTextParser("path").parse(name)
    except ValueError:
        return name.replace("$", r"\$")
    return name


def shortened(name: str, most: int = MOST_LETTERS) -> str:
    """Return a name of a class, cut to so many letters.

    >>> shortened("a very long name of a class")
    'a very long name of a c…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def number(n: int, of_what: str) -> str:
    """Return "1 error", "2 errors", "20,000 samples"."""
    return f"{n:,} {of_what}" if n == 1 else f"{n:,} {of_what}s"
