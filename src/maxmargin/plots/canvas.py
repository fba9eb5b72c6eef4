"""What all figures share: colours and markers of the classes, axes, legends, which rows to draw."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ..samples import Floats, Integers

Bools: TypeAlias = NDArray[np.bool_]

# Okabe, Ito (2008): told apart by colour-blind readers; neighbours differ in lightness as well.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "p", "h", "<", ">", "8")
INK = "#222222"
FAINT = "#8A8A8A"
WRONG = "#D55E00"

MOST_POINTS = 2000  # samples drawn: more only hide each other
WIDTH = 72  # characters of a title's line on a figure of the usual width


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


def several_axes(axes: Any, n: int, size: tuple[float, float], rows: bool = False) -> list[Axes]:
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


def set_title(ax: Axes, title: str, note: str = "", width: int = WIDTH) -> None:
    """Write the title, and below it, smaller, what the reader has to know."""
    ax.set_title("\n".join(textwrap.wrap(title, width)), fontsize="medium", pad=20 if note else 6)
    if note:
        ax.text(
            0.5, 1.012, "\n".join(textwrap.wrap(note, width + 14)), transform=ax.transAxes,
            ha="center", va="bottom", fontsize="small", color="#555555",
        )  # fmt: skip


def set_legend(ax: Axes, handles: Sequence[Any], columns: int = 1) -> Any:
    """Put the legend beside the axes where the layout makes room for it, else where it is free."""
    if not handles:
        return None
    if figure_of(ax).get_layout_engine() is None:
        return ax.legend(handles=handles, loc="best", fontsize="small", framealpha=0.9)
    return ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
        fontsize="small", frameon=False, ncols=columns,
    )  # fmt: skip


def size_of(n: int) -> float:
    """Return the area of a marker, smaller where there are many."""
    return float(np.clip(1500.0 / max(n, 1) ** 0.75, 9.0, 60.0))


def draw_classes(
    ax: Axes, points: Floats, codes: Integers, n_classes: int, sizes: Any = None
) -> list[PathCollection]:
    """Draw the samples, one collection a class, in its colour and marker."""
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


def class_handles(names: Sequence[str], counts: Sequence[int] | None = None) -> list[Line2D]:
    """Return legend entries of the classes."""
    texts = (
        list(names)
        if counts is None
        else [f"{a} ({n:,})" for a, n in zip(names, counts, strict=True)]
    )
    return [
        Line2D(
            [], [], linestyle="", marker=marker(code), color=colour(code), markersize=7,
            markeredgecolor="white", label=text,
        )
        for code, text in enumerate(names)
    ]  # fmt: skip


def line_handle(label: str, style: str = "-", ink: str = INK, width: float = 1.5) -> Line2D:
    """Return a legend entry of a line."""
    return Line2D([], [], linestyle=style, color=ink, linewidth=width, label=label)


def lines(
    ax: Axes,
    pieces: Sequence[Any],
    ink: Any = INK,
    style: Any = "-",
    width: float = 1.5,
    **place: Any,
) -> LineCollection:
    """Draw polylines as one artist, which leaves the limits alone."""
    drawn = LineCollection(
        list(pieces), colors=ink, linestyles=style, linewidths=width, capstyle="butt", **place
    )
    ax.add_collection(drawn, autolim=False)
    return drawn


def some_rows(n: int, limit: int, keep: Integers | None = None, most: int = 0) -> Integers:
    """Return at most ``limit`` of n rows, in order, the same every time.

    Of those to ``keep`` come up to ``most``, but more where there are not enough others.
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
    """Return limits around the finite values, of some width where they are all the same."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    width = high - low
    if width <= 1e-12 * max(abs(low), abs(high)):
        width = max(abs(low), 1.0)
    return low - padding * width, high + padding * width


def number(n: int, of_what: str) -> str:
    """Return "1 error", "2 errors", "20,000 samples"."""
    return f"{n:,} {of_what}" if n == 1 else f"{n:,} {of_what}s"
