"""The figures of the page, in light and dark colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import (
    ColumnDataSource,
    CrosshairTool,
    DataRange1d,
    Div,
    Legend,
    LegendItem,
    PanTool,
    PointDrawTool,
    Range1d,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)  # fmt: skip
from bokeh.plotting import figure
from bokeh.transform import factor_cmap, factor_mark

from ..arrays import MatrixLike
from ..diagnostics.fitted_model import FittedModel
from .algorithms import Algorithm
from .drawing import weight_space
from .fitting import LIMITS, CurvePoint, Outcome
from .picture import COLOURS, Picture, window_of
from .points import MOST_POINTS, Points
from .style import without_formulas

FACTORS = ["0", "1", "2", "3"]
MARKERS = ["circle", "square", "triangle", "diamond"]
# Pixels of a point, and points up to which they are drawn in full size.
DOT, FULL_SIZE_POINTS = 9, 250
# Colours of lines, in light (False) and in dark: contrasts of at least 3 with grounds and regions.
STROKES = {
    False: ("#0072b2", "#8a5a00", "#00694c", "#a3457d"),
    True: ("#5cb3ea", "#f0b429", "#2dc79a", "#e39ac6"),
}
ALL_STROKES = STROKES[False] + STROKES[True]
# Points without classes.
ALIKE = "#7a8794"
# Pixels.
CURVE_HEIGHT = 200
# Lines of convergence and their dashes; those of a legend of one algorithm.
CURVES = {
    "primal": "solid", "dual": "dashed", "criterion": "solid", "gap": "solid", "errors": "solid",
}  # fmt: skip
SIDES = ("primal", "dual", "criterion")


@dataclass
class Look:
    """Colours of the figures, to which the style sheet of the page does not apply."""

    dark: bool = False

    def set(self, *, dark: bool) -> None:
        """Choose light or dark."""
        self.dark = dark

    @property
    def ground(self) -> str:
        """The background."""
        return "#151b21" if self.dark else "#ffffff"

    @property
    def ink(self) -> str:
        """Lines and text."""
        return "#e6ebf0" if self.dark else "#1d2733"

    @property
    def faint(self) -> str:
        """Grids and frames."""
        return "#3b4753" if self.dark else "#dfe5ea"

    def stroke(self, colour: str) -> str:
        """Return a class's colour for lines, which contrast with the ground and all regions."""
        for code, of_class in enumerate(COLOURS):
            if colour in (of_class, STROKES[False][code], STROKES[True][code]):
                return STROKES[self.dark][code]
        return colour or self.ink

    def dress(self, plot: Any) -> None:
        """Apply these colours to a figure."""
        for renderer in plot.renderers:
            line_colour = getattr(getattr(renderer, "glyph", None), "line_color", None)
            if isinstance(line_colour, str) and line_colour in (*COLOURS, *ALL_STROKES):
                renderer.glyph.line_color = self.stroke(line_colour)
        plot.background_fill_color = plot.border_fill_color = self.ground
        plot.outline_line_color = self.faint
        plot.title.text_color = self.ink
        for axis in plot.axis:
            axis.axis_line_color = axis.major_tick_line_color = self.ink
            axis.minor_tick_line_color = None
            axis.axis_label_text_color = axis.major_label_text_color = self.ink
        for grid in plot.grid:
            grid.grid_line_color = self.faint
        for legend in plot.legend:
            legend.background_fill_color = self.ground
            legend.label_text_color = self.ink
            legend.border_line_color = self.faint


class SceneFigure:
    """The points and the plane, where points are drawn."""

    def __init__(self, look: Look, points: ColumnDataSource, name: str) -> None:
        self.look = look
        self.figure = plot = figure(
            x_range=Range1d(-5, 5), y_range=Range1d(-5, 5), sizing_mode="stretch_both",
            min_width=280, min_height=280, tools=[], name=f"scene-{name}", title=" ",
            active_drag=None,
        )  # fmt: skip
        self.image = ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
        plot.image_rgba("image", "x", "y", "dw", "dh", source=self.image, level="image")
        self.hulls = _lines(plot, "patches", fill_alpha=0.12, line_alpha=0.6, line_dash="dotted")
        self.slack = _lines(plot, "multi_line", line_alpha=0.6, line_width=1)
        self.band = _lines(plot, "multi_line", line_dash="dashed", line_width=1.5)
        self.previous = _lines(plot, "multi_line", line_width=2, line_alpha=0.35)
        self.best = _lines(plot, "multi_line", line_width=2.5, line_dash="dotdash")
        self.planes = _lines(plot, "multi_line", line_width=3)
        self.planes.name = f"planes-{name}"
        self.halos = ColumnDataSource({"x": [], "y": [], "size": [], "colour": []})
        self.rings = plot.scatter(
            "x", "y", size="size", source=self.halos, fill_alpha=0.0, line_color="colour"
        )
        self.colours = factor_cmap("label", COLOURS, FACTORS)
        self.markers = factor_mark("label", MARKERS, FACTORS)
        dots = plot.scatter(
            "x", "y", source=points, fill_color=self.colours, marker=self.markers,
            selection_fill_alpha=1.0, nonselection_fill_alpha=0.9,
        )  # fmt: skip
        self.dots = dots
        self.crosses = ColumnDataSource({"x": [], "y": []})
        self.wrong = plot.scatter("x", "y", size=9, marker="x", source=self.crosses, line_width=2)
        self.target = ColumnDataSource({"x": [], "y": []})
        plot.scatter(
            "x", "y", size=26, source=self.target, fill_alpha=0, line_color="#D55E00", line_width=4
        )
        self.star = ColumnDataSource({"x": [], "y": []})
        plot.scatter("x", "y", size=18, marker="star", source=self.star, fill_color="#CC79A7",
                     line_color="black")  # fmt: skip
        # Names of the classes, each with the mark of its first point.
        self.names = [LegendItem(renderers=[dots], visible=False) for _ in FACTORS]
        pocket = plot.select_one({"data_source": self.best})
        self.pocket = LegendItem(
            label=value("the pocket's best plane"), renderers=[pocket], visible=False
        )
        plot.add_layout(Legend(items=[*self.names, self.pocket], orientation="horizontal",
                               padding=0, spacing=12, margin=2, label_text_font_size="12px",
                               border_line_alpha=0.0), "above")  # fmt: skip
        self.pen = PointDrawTool(
            renderers=[self.dots],
            default_overrides={"label": "0"},
            num_objects=MOST_POINTS + 1,  # one more is rejected; the tool would drop the first
            description="draw",
        )
        plot.add_tools(self.pen, PanTool(), WheelZoomTool(), ResetTool(), SaveTool(), CrosshairTool(
            line_alpha=0.15))  # fmt: skip
        plot.toolbar.active_tap = self.pen
        plot.toolbar.logo = None
        self.window = (-5.0, 5.0, -5.0, 5.0)
        self.is_framing, self.n_framed = False, 0  # ranges are set here, and how often
        self.has_classes = True
        self.dress()

    def dress(self) -> None:
        """Apply the colours of the look."""
        self.look.dress(self.figure)
        self.wrong.glyph.line_color = self.look.ink
        # Colours of classes alone would not stand out from those of their regions.
        for glyph in self._dot_glyphs():
            glyph.line_color = self.look.ink

    def _dot_glyphs(self) -> tuple[Any, ...]:
        dots = self.dots
        return dots.glyph, dots.selection_glyph, dots.nonselection_glyph

    def show_classes(self, shown: bool) -> None:
        """Draw the points of each class in a colour of its own, or all of them alike."""
        self.has_classes = shown
        self.colours.transform.palette = list(COLOURS) if shown else [ALIKE] * len(COLOURS)
        self.markers.transform.markers = MARKERS if shown else MARKERS[:1] * len(MARKERS)

    def frame(self, points: Points) -> None:
        """Show the part of the plane that holds the points."""
        self.window = left, right, bottom, top = window_of(points)
        plot, self.is_framing = self.figure, True
        plot.x_range.update(start=left, end=right, reset_start=left, reset_end=right)
        plot.y_range.update(start=bottom, end=top, reset_start=bottom, reset_end=top)
        self.is_framing, self.n_framed = False, self.n_framed + 1
        plot.tags = [*self.window, self.n_framed]  # `EqualAxes` changes the ranges
        small = smallness(len(points.X))
        for glyph in self._dot_glyphs():
            glyph.update(size=DOT * small, line_width=small, fill_alpha=0.5 + 0.4 * small)
        self.dots.selection_glyph.update(line_width=3, fill_alpha=1.0)
        self.wrong.glyph.size = DOT * small
        self.rings.glyph.update(line_width=2 * small, line_alpha=small)
        plot.xaxis.axis_label, plot.yaxis.axis_label = map(without_formulas, points.axes)

    def follow_view(self) -> bool:
        """Take over the part of the plane that the browser shows; return whether it has changed."""
        x, y = self.figure.x_range, self.figure.y_range
        window = (x.start, x.end, y.start, y.end)
        if self.is_framing or window == self.window:
            return False
        self.window = window
        return True

    def _name_classes(self, points: Points) -> None:
        present, first = np.unique(points.codes, return_index=True)
        shown = self.has_classes
        places = dict(zip(present.tolist(), first.tolist(), strict=True))
        for code, item in enumerate(self.names):
            item.visible = shown and code in places
            if item.visible:
                item.update(label=value(without_formulas(points.names[code])), index=places[code])

    def draw(self, picture: Picture, outcome: Outcome, k: int) -> None:
        """Draw a picture."""
        points = outcome.request.points
        self._name_classes(points)
        left, right, bottom, top = picture.window
        image = [] if picture.regions is None else [self._painted(picture.regions)]
        here = {"x": [left], "y": [bottom], "dw": [right - left], "dh": [top - bottom]}
        _put(self.image, {"image": image} | (here if image else {key: [] for key in here}))
        colours = [self.look.stroke(colour) for colour in picture.colours]
        _fill(self.planes, picture.planes, colours)
        _fill(self.band, picture.band, [self.look.ink] * len(picture.band))
        _fill(self.previous, picture.previous, [self.look.ink] * len(picture.previous))
        pocket = self.look.stroke(COLOURS[2])
        _fill(self.best, picture.best, [pocket] * len(picture.best))
        self.pocket.visible = bool(picture.best)
        _fill(self.slack, picture.slack, [self.look.ink] * len(picture.slack))
        present = np.unique(points.codes).tolist()
        strokes = [self.look.stroke(COLOURS[c]) for c in present]
        _fill(self.hulls, picture.hulls, strokes[: len(picture.hulls)])
        _put(self.halos, _halos(points, picture, self.look.ink))
        wrong = points.X[picture.wrong] if picture.wrong is not None else points.X[:0]
        _put(self.crosses, _dots(wrong))
        sample = picture.corrected
        _put(self.target, _dots(points.X[:0] if sample is None else points.X[[sample]]))
        star = picture.common_point
        _put(self.star, _dots(points.X[:0] if star is None else star[np.newaxis]))
        self.figure.title.text = without_formulas(_title(outcome, k, picture))

    def _painted(self, regions: Any) -> Any:
        """Return class numbers as pixels in light colours."""
        strength = 0.35 if self.look.dark else 0.22
        ground = _rgb(self.look.ground)
        palette = [(1 - strength) * ground + strength * _rgb(colour) for colour in COLOURS]
        palette.append(ground)  # of −1
        pixels = np.empty((*regions.shape, 4), dtype=np.uint8)
        pixels[..., :3] = np.array(palette).round().astype(np.uint8)[regions]
        pixels[..., 3] = 255
        return pixels.view(np.uint32).reshape(regions.shape)


class BesideFigures:
    """Curves of primal, dual and errors, and the space of weights."""

    def __init__(self, look: Look) -> None:
        self.look = look
        size = {"height": CURVE_HEIGHT, "sizing_mode": "stretch_width", "toolbar_location": None}
        self.objective = figure(title="primal and dual", x_axis_label="step", **size)
        self.gap = figure(title="gap", x_axis_label="step", y_axis_type="log", **size)
        self.errors = figure(
            title="errors",
            x_axis_label="step",
            y_range=DataRange1d(start=0, min_interval=4),
            **size,
        )
        plots = {"gap": self.gap, "errors": self.errors}
        # Those of the first algorithm, and of the one beside it.
        self.curves, self.others = (
            {name: ColumnDataSource({"x": [], "y": []}) for name in CURVES} for _ in range(2)
        )
        self.entries = {}
        for sources, colour in ((self.curves, COLOURS[0]), (self.others, COLOURS[1])):
            for name, dash in CURVES.items():
                line = plots.get(name, self.objective).line(
                    "x", "y", source=sources[name], line_dash=dash, line_width=2.5, color=colour
                )
                item = LegendItem(label=value(name), renderers=[line])
                self.entries[sources is self.others, name] = item
        for plot, names in (
            (self.objective, ("primal", "dual", "criterion")), (self.gap, ("gap",)),
            (self.errors, ("errors",)),
        ):  # fmt: skip
            items = [self.entries[which, name] for which in (False, True) for name in names]
            plot.add_layout(Legend(items=items, orientation="horizontal", ncols=2, padding=2,
                                   label_text_font_size="11px"), "above")  # fmt: skip
        self.marks = ColumnDataSource({"x": []})
        for plot in (self.objective, self.gap, self.errors):
            plot.vspan("x", source=self.marks, line_alpha=0.5, line_width=2, line_color="#888888")
        self.note = Div(text="", name="weight-note")
        self.weights = figure(
            title="weights w, and those that separate", x_axis_label="w₁", y_axis_label="w₂",
            height=380, sizing_mode="stretch_width", toolbar_location=None,
        )  # fmt: skip
        self.region = ColumnDataSource({"x": [], "y": []})
        self.weights.patch("x", "y", source=self.region, fill_color=COLOURS[2], fill_alpha=0.25,
                           line_color=COLOURS[2])  # fmt: skip
        self.way = ColumnDataSource({"x": [], "y": []})
        self.weights.line("x", "y", source=self.way, line_width=2, color=COLOURS[0])
        self.tip = ColumnDataSource({"x": [], "y": []})
        self.weights.scatter("x", "y", source=self.tip, size=12, color="#D55E00")
        self.dress()

    def dress(self) -> None:
        """Apply the colours of the look."""
        for plot in (self.objective, self.gap, self.errors, self.weights):
            self.look.dress(plot)

    def show(self, algorithm: Algorithm) -> None:
        """Show the figures that an algorithm has: errors are those of classes."""
        self.errors.visible = algorithm.has_classes

    def draw(self, outcome: Outcome, k: int, beside: Outcome | None = None) -> None:
        """Draw the curves of a fit, and of the one ``beside`` it, and the current step."""
        self._draw_curves(outcome, beside)
        self.mark(outcome, k)
        if outcome.request.recipe.has_classes:
            self.draw_weights(outcome, k)

    def mark(self, outcome: Outcome, k: int) -> None:
        """Mark the current step on the curves."""
        frames, last = outcome.frames, outcome.curve[-1].number if outcome.curve else 0
        _put(self.marks, {"x": [frames[k].number if k < len(frames) else last] if frames else []})

    def draw_weights(self, outcome: Outcome, k: int) -> None:
        """Draw the space of weights, and the way to those of the current step."""
        found = weight_space(outcome, k) if outcome.frames else None
        way, region = found if found is not None else (np.empty((0, 2)), np.empty((0, 2)))
        self.region.data, self.way.data = _dots(region), _dots(way)
        self.tip.data = _dots(way[-1:])
        why = "Weights are drawn for linear algorithms and two classes."
        why = why if outcome.frames else "There are no steps."
        self.note.text = "" if found else why

    def _draw_curves(self, outcome: Outcome, beside: Outcome | None) -> None:
        shown = {False: outcome, True: beside}
        for which, sources in ((False, self.curves), (True, self.others)):
            found = shown[which]
            curves = curves_of(found.curve) if found is not None else {}
            for name, source in sources.items():
                _put(source, curves.get(name, {"x": [], "y": []}))
                entry = self.entries[which, name]
                entry.visible = bool(len(source.data["x"])) and (
                    name in SIDES or beside is not None
                )
                title = found.request.recipe.title if found is not None else ""
                entry.label = value(f"{title}: {name}" if beside is not None else name)
        self.gap.visible = any(len(part["gap"].data["x"]) for part in (self.curves, self.others))
        self._name(outcome, beside)

    def _name(self, outcome: Outcome, beside: Outcome | None) -> None:
        """Name the plots after the algorithms."""
        both = [each for each in (outcome, beside) if each is not None]
        who = outcome.request.recipe.title
        machine = [bool(curves_of(each.curve)["gap"]["x"]) for each in both]
        what = "primal and dual" if all(machine) else "criterion"
        what = what if len(set(machine)) == 1 else "primal and dual, criterion"
        exact = all(point.exact for each in both for point in each.curve)
        errors = "errors" if exact else "mistakes met, not errors of one plane"
        if not outcome.frames and outcome.recorded:
            what = errors = "no steps were recorded"
        named = {self.objective: what, self.gap: "gap, primal − dual", self.errors: errors}
        for plot, title in named.items():
            # The legend names two algorithms.
            plot.title.text = title if beside is not None else f"{who}: {title}"


def curves_of(points: list[CurvePoint]) -> dict[str, dict[str, list[float]]]:
    """Return the lines of a run: primal, dual and their gap, or the criterion, and errors."""
    chosen = np.linspace(0, len(points) - 1, min(LIMITS.most_curve_points, len(points)))
    points = [points[k] for k in chosen.astype(int)]
    primal, dual, objective, errors = (
        np.array([getattr(point, name) for point in points], dtype=float)
        for name in ("primal", "dual", "objective", "errors")
    )
    machine = bool(np.isfinite(dual).any())
    gap = np.where(primal > dual, primal - dual, np.nan)
    lines = {
        "primal": primal, "dual": dual, "errors": errors, "gap": gap,
        "criterion": np.full(len(points), np.nan) if machine else objective,
    }  # fmt: skip
    return {name: _curve(points, values) for name, values in lines.items()}


def _curve(points: list[CurvePoint], values: Any) -> dict[str, list[float]]:
    """Return a line through the known values, interrupted between tasks."""
    known = np.flatnonzero(np.isfinite(values))
    tasks = np.array([points[k].task for k in known], dtype=int)
    steps = np.array([points[k].number for k in known], dtype=float)
    breaks = np.flatnonzero(np.diff(tasks)) + 1
    return {
        "x": np.insert(steps, breaks, np.nan).tolist(),
        "y": np.insert(values[known], breaks, np.nan).tolist(),
    }


def _lines(plot: Any, kind: str, **style: Any) -> ColumnDataSource:
    source = ColumnDataSource({"xs": [], "ys": [], "colour": []})
    colours = {"line_color": "colour"} | ({"fill_color": "colour"} if kind == "patches" else {})
    getattr(plot, kind)("xs", "ys", source=source, **colours, **style)
    return source


def _fill(source: ColumnDataSource, lines: list[Any], colours: list[str]) -> None:
    xs, ys = ([line[:, axis].tolist() for line in lines] for axis in (0, 1))
    _put(source, {"xs": xs, "ys": ys, "colour": colours})


def _put(source: ColumnDataSource, data: dict[str, list[Any]]) -> None:
    """Replace the data unless both are empty: every message takes time."""
    if any(map(len, source.data.values())) or any(map(len, data.values())):
        source.data = data


def _dots(X: MatrixLike) -> dict[str, list[float]]:
    return {"x": X[:, 0].tolist(), "y": X[:, 1].tolist()}


def _halos(points: Points, picture: Picture, ink: str) -> dict[str, list[Any]]:
    """Return rings around support vectors, sized by α."""
    if picture.support is None:
        return {"x": [], "y": [], "size": [], "colour": []}
    chosen = picture.support
    sizes = (smallness(len(points.X)) * (picture.sizes[chosen] + 4.0)).tolist()
    return _dots(points.X[chosen]) | {"size": sizes, "colour": picture.rings or [ink] * len(sizes)}


def smallness(n: int) -> float:
    """Return how much smaller, thinner and paler marks of many points are than those of few."""
    return max(0.4, min(1.0, (FULL_SIZE_POINTS / max(n, 1)) ** 0.5))


def _rgb(colour: str) -> Any:
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)], dtype=float)


def _title(outcome: Outcome, k: int, picture: Picture) -> str:
    """Return the title of a picture: the step, and whether the recording is complete."""
    if outcome.model is None:
        return "no answer"
    n, kept = len(outcome.steps), "" if outcome.complete else "the first "
    one_class = outcome.request.recipe.family == "one-class"
    flat = f" (w = 0: no {'region' if one_class else 'plane'})" if picture.flat else ""
    if k >= len(outcome.frames):
        if not outcome.recorded:
            return f"the answer{flat} (steps are being recorded)"
        return f"the answer{flat}" + (f" (its first {n} steps were kept)" if kept and n else "")
    frame = outcome.frames[k]
    if frame.is_start:
        return f"step 0 of {kept}{n}{flat}: the start"
    many = len(getattr(outcome.model, "classes_", ())) > 2
    names = FittedModel(outcome.model).task_names if many else []
    task = f"{names[frame.task]}, " if outcome.frames[-1].task and frame.task < len(names) else ""
    done = k + 1 + n - len(outcome.frames)
    begin = f"step {done} of {kept}{n}{flat}: {task}{frame.unit} {frame.iteration}"
    if frame.sample is not None:
        return f"{begin}, for point {frame.sample + 1}"
    return f"{begin}, {picture.remark}" if picture.remark else begin
