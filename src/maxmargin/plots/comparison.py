"""Errors and times of several algorithms on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ..arrays import Floats
from .canvas import FAINT, PALETTE, AxesLike, figure_of, set_title, several_axes
from .display import Display


class ComparisonDisplay(Display):
    """Errors and times of algorithms, one per row; what `comparison` returns.

    Parameters
    ----------
    rows : sequence of mappings
        One per algorithm, as for `comparison`.
    title : str, default=""
        Title of the first panel.

    Attributes
    ----------
    axes_ : list of Axes
        The panels of errors and times.
    figure_ : Figure
        Their figure.
    error_dots_ : dict of str to PathCollection
        The dots of training and test errors.
    time_bars_ : BarContainer
        The bars of times.

    Examples
    --------
    >>> import maxmargin as mm
    >>> row = {"algorithm": "svc", "training_error": 0.1, "test_error": 0.2, "seconds": 0.01}
    >>> len(mm.plots.comparison([row | {"outcome": "optimal"}]).time_bars_)
    1
    """

    def __init__(self, rows: Sequence[Mapping[str, object]], title: str = "") -> None:
        self.rows = [row for row in rows if "seconds" in row]
        self.title = title

    @classmethod
    def from_rows(
        cls, rows: Sequence[Mapping[str, object]], *, title: str = "", axes: AxesLike = None
    ) -> Self:
        """Draw the errors and times of several algorithms on the same data.

        Parameters
        ----------
        rows : sequence of mappings
            Each with ``algorithm``, ``training_error``, ``test_error``, ``seconds`` and
            ``outcome``; those without ``seconds``, which could not be fitted, are left out.
        title : str, default=""
            Title of the first panel.
        axes : two matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.

        Returns
        -------
        ComparisonDisplay
            The numbers drawn, and the artists.

        Examples
        --------
        >>> import maxmargin as mm
        >>> row = {"algorithm": "svc", "training_error": 0.1, "test_error": 0.2, "seconds": 0.01}
        >>> mm.plots.comparison([row | {"outcome": "optimal"}]).axes_[0].get_xlabel()
        'error, %'
        """
        return cls(rows, title).plot(axes)

    def plot(self, axes: AxesLike = None) -> Self:
        """Draw on two axes, or on a new figure.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.

        Returns
        -------
        ComparisonDisplay
            The display itself, with its artists.
        """
        height = 1.3 + 0.34 * len(self.rows)
        self.axes_: list[Axes] = several_axes(axes, 2, (9.0, height))
        self.figure_: Figure = figure_of(self.axes_[0])
        self._draw_errors(self.axes_[0])
        self._draw_times(self.axes_[1])
        return self

    def _draw_errors(self, ax: Axes) -> None:
        places = np.arange(len(self.rows))
        of = {key: self._column(key) for key in ("training_error", "test_error")}
        for place, pair in enumerate(zip(*of.values(), strict=True)):
            ax.plot(pair, [place, place], color=FAINT, linewidth=1.0, zorder=1)
        self.error_dots_ = {}
        # The larger dot is a ring around the other where both errors are equal.
        for key, name, fill, area in (
            ("training_error", "training", "white", 110),
            ("test_error", "test", PALETTE[0], 42),
        ):
            self.error_dots_[key] = ax.scatter(
                of[key], places, s=area, color=fill, edgecolor=PALETTE[0], label=name, zorder=2
            )
        ax.set_yticks(places, [str(row["algorithm"]) for row in self.rows])
        ax.set_ylim(len(self.rows) - 0.5, -0.5)
        ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
        ax.set_xlabel("error, %")
        ax.grid(axis="x", color="#DDDDDD")
        ax.set_axisbelow(True)
        ax.legend(loc="best", frameon=True)
        set_title(ax, self.title)

    def _draw_times(self, ax: Axes) -> None:
        seconds = np.array([row["seconds"] for row in self.rows])
        colours = [PALETTE[2] if _proved(row) else PALETTE[1] for row in self.rows]
        self.time_bars_ = ax.barh(
            np.arange(len(seconds)), 1000 * seconds, color=colours, height=0.6
        )
        if self.rows:
            _set_log(ax, 1000 * seconds)
        ax.set_yticks(np.arange(len(seconds)), [str(row["outcome"]) for row in self.rows])
        ax.yaxis.tick_right()
        ax.set_ylim(len(self.rows) - 0.5, -0.5)
        ax.set_xlabel("time, ms")
        ax.grid(axis="x", color="#DDDDDD")
        ax.set_axisbelow(True)
        set_title(ax, "time, and the outcome")

    def _column(self, key: str) -> Floats:
        return 100.0 * np.array([row.get(key, np.nan) for row in self.rows], dtype=float)


def _set_log(ax: Axes, values: Floats) -> None:
    """Give the axis a log scale from the power of 10 below all values, with few labels."""
    low = 10.0 ** (np.ceil(np.log10(values.min())) - 1.0)
    ax.set_xscale("log")
    ax.set_xlim(left=low)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if values.max() <= 100 * low else (1,)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _proved(row: Mapping[str, object]) -> bool:
    return not str(row["outcome"]).startswith("not")


comparison = ComparisonDisplay.from_rows
