"""Shared by all figures: colours and markers of the classes, axes, legends, rows to draw."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Integers

Bools: TypeAlias = NDArray[np.bool_]
# The axes of the caller, several of them in any sequence, or None for a new figure.
AxesLike: TypeAlias = Axes | Sequence[Axes] | NDArray[np.object_] | None
# Low and high end of both axes, (2, 2).
Limits: TypeAlias = tuple[tuple[float, float], tuple[float, float]] | Floats

# Okabe, Ito (2008): distinct for colour-blind readers; neighbours also differ in lightness.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "p", "h", "<", ">", "8")
INK = "#222222"
FAINT = "#8A8A8A"
WRONG = "#D55E00"
MOST_POINTS = 2000  # samples drawn


@dataclass(frozen=True)
class Layout:
    """Sizes of texts and legends."""

    # Height over width of data that are drawn in equal units.
    square_ratios: tuple[float, float] = (0.4, 1.6)
    # In letters of 10 points.
    characters_per_inch: float = 13.0
    # Of a title; narrower axes get smaller letters.
    least_line_characters: int = 24
    # Classes in a legend.
    most_names: int = 30
    # Of a legend.
    most_entries_per_column: int = 18
    # Fraction of the axes that a legend inside of them may cover.
    most_covered: float = 0.25


LAYOUT = Layout()


def colour(code: int) -> str:
    """Return the colour of a class, the same in every figure."""
    return PALETTE[code % len(PALETTE)]


def marker(code: int) -> str:
    """Return the marker of a class: it differs where the colours repeat."""
    return MARKERS[code % len(MARKERS)]


def pale(code: int, strength: float = 0.2) -> tuple[float, float, float]:
    """Return the colour of a class mixed with white, for regions under the samples."""
    r, g, b = (1.0 - strength * (1.0 - part) for part in to_rgb(colour(code)))
    return r, g, b


def one_axes(ax: Axes | None, height: float = 4.8) -> Axes:
    """Return the caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    _, made = plt.subplots(layout="constrained", figsize=(7.0, height))
    return made


def several_axes(
    axes: AxesLike, n: int, size: tuple[float, float], rows: bool = False
) -> list[Axes]:
    """Return n axes: the caller's, or those of a new figure, side by side or one below another."""
    if axes is None:
        shape = (n, 1) if rows else (1, n)
        _, made = plt.subplots(*shape, squeeze=False, layout="constrained", figsize=size)
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
        if room >= LAYOUT.least_line_characters and pad + 1.2 * size * len(large) <= 72.0 * high:
            break
    ax.set_title("\n".join(large), fontsize=size, pad=pad)
    if small:
        ax.text(
            0.5, 1.012, "\n".join(small), transform=ax.transAxes, ha="center", va="bottom",
            fontsize=0.833 * size, color="#555555",
        )  # fmt: skip


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text; a name and its number stay together.

    >>> wrapped("5 support vectors, R² 0.98", 22)
    ['5 support vectors,', 'R² 0.98']
    """
    kept = re.sub(r"(?<==) | (?==)|(?<=R²) ", "\N{NO-BREAK SPACE}", text)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in textwrap.wrap(kept, width)]


def size_for(ax: Axes, text: str) -> float:
    """Return the size of small letters, smaller where the axes are narrow."""
    small = 0.833 * plt.rcParams["font.size"]
    return float(
        min(small, 10.0 * LAYOUT.characters_per_inch * _room_above(ax)[0] / max(len(text), 1))
    )


def _room_above(ax: Axes) -> tuple[float, float]:
    """Return width and height in inches available for a title; a layout engine has no limit."""
    figure, place = figure_of(ax), ax.get_position()
    wide, high = figure.get_size_inches()
    if figure.get_layout_engine() is not None:
        return place.width * wide, np.inf
    others = [other.get_position() for other in figure.axes]
    above = [
        other.y0 for other in others
        if other.y0 >= place.y1 and other.x0 < place.x1 and place.x0 < other.x1
    ]  # fmt: skip
    return place.width * wide, (min(above, default=1.0) - place.y1) * high


def set_legend(ax: Axes, handles: Sequence[Artist]) -> Legend | None:
    """Put the legend beside the axes where a layout engine makes room, else inside of them.

    It is left out where it would cover too much of the axes.
    """
    if not handles:
        return None
    columns = -(-len(handles) // LAYOUT.most_entries_per_column)
    if figure_of(ax).get_layout_engine() is not None:
        return ax.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
            fontsize="small", frameon=False, ncols=columns,
        )  # fmt: skip
    ax.apply_aspect()
    for size in ("small", "x-small", "xx-small"):
        legend = ax.legend(
            handles=handles, loc="best", fontsize=size, framealpha=0.9, ncols=columns
        )
        box, axes = legend.get_window_extent(), ax.get_window_extent()
        area = LAYOUT.most_covered * axes.width * axes.height
        if box.width * box.height <= area and box.width <= axes.width:
            return legend
    legend.remove()
    return None


def size_of(n: int) -> float:
    """Return the area of a marker, smaller where there are many."""
    return float(np.clip(1500.0 / max(n, 1) ** 0.75, 9.0, 60.0))


def draw_classes(
    ax: Axes, points: Floats, codes: Integers, n_classes: int, sizes: ArrayLike | None = None
) -> list[PathCollection]:
    """Draw the samples, one collection per class, in its colour and marker."""
    area = np.full(len(points), size_of(len(points))) if sizes is None else np.asarray(sizes)
    drawn = []
    for code in range(n_classes):
        own = codes == code
        drawn.append(
            ax.scatter(
                points[own, 0], points[own, 1], s=area[own], c=colour(code), marker=marker(code),
                edgecolors="white", linewidths=0.5, zorder=3,
            )
        )  # fmt: skip
    return drawn


def class_handles(names: Sequence[str]) -> list[Line2D]:
    """Return legend entries of the classes, of the first ones where there are many."""
    handles = [
        Line2D(
            [], [], linestyle="", marker=marker(code), color=colour(code), markersize=7,
            markeredgecolor="white", label=name,
        )
        for code, name in enumerate(names[:LAYOUT.most_names])
    ]  # fmt: skip
    if len(names) > LAYOUT.most_names:
        handles.append(line_handle(f"… and {len(names) - LAYOUT.most_names:,} more", ""))
    return handles


def mark_handle(
    label: str,
    shape: str,
    ink: str = INK,
    size: float = 7.0,
    *,
    hollow: bool = False,
    edge: float = 1.0,
) -> Line2D:
    """Return a legend entry of a marker, filled or only its edge."""
    return Line2D(
        [], [], linestyle="", marker=shape, color=ink, markersize=size, markeredgewidth=edge,
        markerfacecolor="none" if hollow else ink, label=label,
    )  # fmt: skip


def line_handle(
    label: str, style: LineStyleType = "-", ink: str = INK, width: float = 1.5
) -> Line2D:
    """Return a legend entry of a line."""
    return Line2D([], [], linestyle=style, color=ink, linewidth=width, label=label)


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

    Up to ``most`` of those to ``keep`` are among them, more where there are not enough others.
    """
    if n <= limit:
        return np.arange(n)
    shuffled = np.random.RandomState(0).permutation(n)
    kept = np.zeros(n, dtype=bool)
    if keep is not None:
        kept[keep] = True
    first, others = shuffled[kept[shuffled]], shuffled[~kept[shuffled]]
    n_first = min(first.size, max(min(most, limit), limit - others.size))
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
        ax.set_yticks(range(len(strips)), list(strips))
    elif is_square(limits):
        ax.set_aspect("equal", adjustable="box")
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])


def number(n: int, of_what: str) -> str:
    """Return "1 error", "2 errors", "20,000 samples"."""
    return f"{n:,} {of_what}" if n == 1 else f"{n:,} {of_what}s"
