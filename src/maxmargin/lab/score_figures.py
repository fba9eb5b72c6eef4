"""The figures of scores: a map over C and γ, a curve over C."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.events import Tap
from bokeh.models import (
    BasicTicker,
    ColorBar,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    LinearColorMapper,
    Range1d,
)  # fmt: skip
from bokeh.palettes import Cividis256
from bokeh.plotting import figure

from ..plots.cells import lowest_shown
from .algorithms import ALGORITHMS, Slide
from .figures import Look
from .picture import COLOURS
from .searching import Scores, slide_of

# Marks lie around each other, so that all of them are seen in one cell; pixels.
BEST_SIZE, SIMPLEST_SIZE, SLIDERS_SIZE, CROSS_SIZE = 16, 18, 25, 8
BEST_COLOUR = "#D55E00"
# Dark with a light rim, to be seen on cells of every colour.
RIM, MARK = "#ffffff", "#14191f"
HEIGHT = 330
# Room above and below the curve, as a part of its range.
ROOM = 0.08
TOOLTIPS = [("", "@words")]
CELL = ("x", "y", "mean", "words")
CURVE = (*CELL, "low", "high")
MARKS = ("best", "simplest", "open", "sliders")


class ScoreFigures:
    """A map and a curve, of which one is visible; ``choose`` is called with a place clicked on."""

    def __init__(self, look: Look, choose: Callable[[float, float | None], None]) -> None:
        self.look = look
        self.cells = ColumnDataSource({name: [] for name in CELL}, name="cells")
        self.steps = ColumnDataSource({name: [] for name in CURVE}, name="score-curve")
        self.marks = {
            name: ColumnDataSource({"x": [], "y": []}, name=f"score-{name}") for name in MARKS
        }
        self.colours = LinearColorMapper(
            palette=Cividis256, low=0.0, high=1.0, nan_color="rgba(0, 0, 0, 0)"
        )
        self.map, self.bar = self._make_map(), ColorBar(
            color_mapper=self.colours, width=10, padding=4, ticker=BasicTicker(desired_num_ticks=5)
        )  # fmt: skip
        self.map.add_layout(self.bar, "right")
        self.curve = self._make_curve()
        self.map.on_event(Tap, lambda event: choose(event.x, event.y))
        self.curve.on_event(Tap, lambda event: choose(event.x, None))
        self.dress()

    def _make_map(self) -> Any:
        plot = _blank("score-map", y_axis_label="γ")
        gamma = _slide("gamma")
        plot.y_range = Range1d(gamma.low - 0.25, gamma.high + 0.25)
        _set_powers(plot.yaxis[0], gamma)
        plot.grid.visible = False
        cells = plot.rect(
            "x", "y", 1.0, 0.5, source=self.cells, line_color=None,
            fill_color={"field": "mean", "transform": self.colours},
        )  # fmt: skip
        for ink, width in ((RIM, 5.0), (MARK, 2.0)):
            style = {"fill_alpha": 0.0, "line_color": ink, "line_width": width}
            plot.scatter("x", "y", source=self.marks["sliders"], marker="square",
                         size=SLIDERS_SIZE, **style)  # fmt: skip
        self._add_marks(plot)
        plot.add_tools(HoverTool(renderers=[cells], tooltips=TOOLTIPS))
        return plot

    def _make_curve(self) -> Any:
        plot = _blank("score-curve-figure")
        plot.y_range = Range1d(0.0, 1.0)
        plot.xgrid.visible = False
        plot.segment("x", "low", "x", "high", source=self.steps, color=COLOURS[0], line_width=1.5)
        plot.line("x", "mean", source=self.steps, color=COLOURS[0], line_width=2.0)
        dots = plot.scatter("x", "mean", source=self.steps, color=COLOURS[0], size=6)
        self.least = ColumnDataSource({"y": []})
        self.lines = [
            plot.hspan("y", source=self.least, line_dash="dotted", line_width=1.5),
            plot.vspan("x", source=self.marks["sliders"], line_dash="dashed", line_width=2.0),
        ]
        self._add_marks(plot)
        plot.add_tools(HoverTool(renderers=[dots], tooltips=TOOLTIPS))
        return plot

    def _add_marks(self, plot: Any) -> None:
        for ink, width in ((RIM, 5.0), (MARK, 2.0)):
            style = {"fill_alpha": 0.0, "line_color": ink, "line_width": width}
            plot.scatter("x", "y", source=self.marks["simplest"], size=SIMPLEST_SIZE, **style)
        plot.scatter("x", "y", source=self.marks["best"], marker="star", size=BEST_SIZE,
                     fill_color=BEST_COLOUR, line_color=RIM)  # fmt: skip
        for ink, width in ((RIM, 4.0), (MARK, 1.5)):
            plot.scatter("x", "y", source=self.marks["open"], marker="x", size=CROSS_SIZE,
                         line_color=ink, line_width=width)  # fmt: skip

    def dress(self) -> None:
        """Apply the colours of the look."""
        for plot in (self.map, self.curve):
            self.look.dress(plot)
        self.bar.background_fill_color = self.look.ground
        self.bar.major_label_text_color = self.look.ink
        for each in self.lines:
            each.glyph.line_color = self.look.ink

    def clear(self) -> None:
        """Show nothing."""
        self.map.visible = self.curve.visible = False

    def draw(self, scores: Scores, words: list[str], title: str, description: str) -> None:
        """Draw the scores; ``words`` describe each candidate, ``description`` the figure."""
        is_map = bool(scores.question.gammas.size)
        places = np.array([scores.place(k) for k in range(len(words))], dtype=float)
        means = scores.results.means()
        columns = {"x": places[:, 0], "mean": means, "words": words}
        y = places[:, 1] if is_map else means
        if is_map:
            self.cells.data = columns | {"y": y}
        else:
            errors = scores.errors
            self.steps.data = columns | {"y": y, "low": means - errors, "high": means + errors}
        self._mark(scores, places[:, 0], y)
        self._set_range(scores, is_map=is_map)
        plot = self.map if is_map else self.curve
        plot.title.text = title
        plot.html_attributes = {"role": "img", "aria-label": description}
        self.curve.yaxis.axis_label = scores.question.score
        self.map.visible, self.curve.visible = is_map, not is_map

    def show_sliders(self, cost: float, gamma: float | None) -> None:
        """Mark where the sliders of C and γ are."""
        self.marks["sliders"].data = {"x": [cost], "y": [0.0 if gamma is None else gamma]}

    def _mark(self, scores: Scores, x: Any, y: Any) -> None:
        chosen = {
            "best": scores.best, "simplest": scores.simplest,
            "open": np.flatnonzero(scores.known & ~scores.certified),
        }  # fmt: skip
        for name, at in chosen.items():
            k = np.empty(0, dtype=int) if at is None else np.atleast_1d(at)
            self.marks[name].data = {"x": x[k].tolist(), "y": y[k].tolist()}

    def _set_range(self, scores: Scores, *, is_map: bool) -> None:
        """Fit the range of colours, or of the curve, to the good candidates."""
        if scores.best is None:
            self.least.data = {"y": []}
            return
        means, errors = scores.results.means(), scores.errors
        best, lowest = float(means[scores.best]), float(np.nanmin(means - (not is_map) * errors))
        least = best - float(errors[scores.best])
        low = lowest_shown(lowest, best, least)
        if is_map:
            # All scores may be the same.
            self.colours.update(low=low if low < best else best - 1.0, high=best)
            return
        self.least.data = {"y": [least]}
        low, high = min(low, least), float(np.nanmax(means + errors))
        room = ROOM * (high - low) if high > low else 1.0
        self.curve.y_range.update(start=low - room, end=high + room)


def _blank(name: str, **options: Any) -> Any:
    """Return a figure over C, as far as its slider goes."""
    cost = _slide("C")
    plot = figure(
        name=name, title=" ", x_axis_label="C", height=HEIGHT, sizing_mode="stretch_width",
        tools=[], toolbar_location=None, visible=False,
        x_range=Range1d(cost.low - 0.5, cost.high + 0.3), **options,
    )  # fmt: skip
    _set_powers(plot.xaxis[0], cost)
    return plot


def _set_powers(axis: Any, slide: Slide) -> None:
    """Label an axis of positions of a logarithmic slider with powers of ten."""
    at = np.arange(slide.low, slide.high + 0.5).astype(int).tolist()
    axis.ticker = FixedTicker(ticks=at)
    axis.major_label_overrides = {
        each: "∞" if math.isinf(slide.number(each)) else _power(each) for each in at
    }


def _power(exponent: int) -> str:
    """Return a power of ten, short enough for a narrow page."""
    if exponent in (0, 1):
        return str(10**exponent)
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _slide(name: str) -> Slide:
    """Return the slider of C or γ, which all machines with scores share."""
    return slide_of(ALGORITHMS["svc"], name)
