"""Legends: their entries, and where they are put."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation
from matplotlib.typing import LineStyleType

from .canvas import INK, as_text, colour, figure_of, marker, shortened
from .display import DisplayFigure


@dataclass(frozen=True)
class Room:
    """How large a legend may be."""

    # Classes in a legend.
    most_names: int = 20
    most_entries_per_column: int = 18
    # Fraction of the axes that a legend inside of them may cover.
    most_covered: float = 0.25
    # Columns, and height as a fraction of the axes, of a legend below them.
    most_columns: int = 4
    most_high: float = 0.45
    # Between the labels of the horizontal axis and a legend below them, in points.
    gap_points: float = 4.0


ROOM = Room()
SIZES = ("small", "x-small", "xx-small")


def set_legend(ax: Axes, handles: Sequence[Artist]) -> Legend | None:
    """Put a legend beside the axes of a figure of ours, below or inside those of the caller.

    A layout engine makes room beside or below; without one the legend is inside. On axes of the
    caller it is left out where it would take too much of them.
    """
    if not handles:
        return None
    if isinstance(figure_of(ax), DisplayFigure):
        columns = -(-len(handles) // ROOM.most_entries_per_column)
        return ax.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
            fontsize="small", frameon=False, ncols=columns,
        )  # fmt: skip
    below = figure_of(ax).get_layout_engine() is not None
    return _below(ax, handles) if below else _inside(ax, handles)


def legend_of_figure(ax: Axes, handles: Sequence[Artist]) -> Legend:
    """Put a legend below all axes of a figure of ours."""
    return figure_of(ax).legend(
        handles=handles, loc="outside lower center", ncols=ROOM.most_columns, fontsize="small",
        frameon=False,
    )  # fmt: skip


def _below(ax: Axes, handles: Sequence[Artist]) -> Legend | None:
    """Put the legend below the axes and their labels, in as many columns as there is room for."""
    figure, place = figure_of(ax), ax.get_position(original=True)
    wide, high = place.width * figure.bbox.width, place.height * figure.bbox.height
    labels = ax.xaxis.get_tightbbox()
    labelled = 0.0 if labels is None else max(ax.get_window_extent().y0 - labels.y0, 0.0)
    down = labelled / figure.dpi + ROOM.gap_points / 72.0
    at = ax.transAxes + ScaledTranslation(0.0, -down, figure.dpi_scale_trans)
    for size in SIZES:
        for columns in range(min(ROOM.most_columns, len(handles)), 0, -1):
            legend = ax.legend(
                handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=at,
                borderaxespad=0.0, fontsize=size, frameon=False, ncols=columns,
                columnspacing=1.0, handletextpad=0.4,
            )  # fmt: skip
            box = legend.get_window_extent()
            if box.width <= 1.1 * wide:
                break
        if box.width <= 1.1 * wide and box.height <= ROOM.most_high * high:
            return legend
    legend.remove()
    return None


def _inside(ax: Axes, handles: Sequence[Artist]) -> Legend | None:
    """Put the legend where it covers least of what is drawn."""
    columns = -(-len(handles) // ROOM.most_entries_per_column)
    ax.apply_aspect()
    for size in SIZES:
        legend = ax.legend(
            handles=handles, loc="best", fontsize=size, framealpha=0.9, ncols=columns
        )
        box, axes = legend.get_window_extent(), ax.get_window_extent()
        area = ROOM.most_covered * axes.width * axes.height
        if box.width * box.height <= area and box.width <= axes.width:
            return legend
    legend.remove()
    return None


def class_handles(names: Sequence[str]) -> list[Line2D]:
    """Return legend entries of the classes, of the first ones where there are many."""
    handles = [
        Line2D(
            [], [], linestyle="", marker=marker(code), color=colour(code), markersize=7,
            markeredgecolor="white", label=as_text(shortened(name)),
        )
        for code, name in enumerate(names[:ROOM.most_names])
    ]  # fmt: skip
    if len(names) > ROOM.most_names:
        handles.append(line_handle(f"… and {len(names) - ROOM.most_names:,} more", ""))
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
