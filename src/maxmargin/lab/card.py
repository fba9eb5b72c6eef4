"""A card of g(x) and ‖w‖, and of the point that is pointed at or selected, with its reason."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJS, Div, HoverTool

from ..diagnostics.fitted_model import FittedModel, ModelLike, SupportVectorMachine
from ..diagnostics.summary import summarize
from .fitting import Outcome, planes
from .notation import affine, number, vector
from .picture import Picture
from .reasons import reason_of

# The planes of many classes that are listed.
MOST_PLANES = 6
CONSTANT = "w = 0: g is the same everywhere."
# Of the lines of a plane and a point: what is below does not move.
CARD_HEIGHT = "100px"


class Card:
    """What the ``lab`` says of g and of one point; ``table`` gives the pair of many classes."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.shown: tuple[Outcome, Picture, int] | None = None
        self.text = Div(
            text="", name="card", sizing_mode="stretch_width", styles={"min-height": CARD_HEIGHT}
        )
        # The number of the point under the pointer, from the browser.
        self.pointed = ColumnDataSource(data={"k": []}, name="pointed")
        self.pointed.on_change("data", lambda attr, old, new: self._fill())
        lab.source.selected.on_change("indices", lambda attr, old, new: self._fill())
        for panel in lab.panels:
            scene = panel.scene
            tool = HoverTool(renderers=[scene.dots], tooltips=None, visible=False)
            tool.callback = CustomJS(args={"pointed": self.pointed}, code=POINTED)
            scene.figure.add_tools(tool)

    def draw(self, outcome: Outcome, picture: Picture, k: int) -> None:
        """Show g of step k, or of the answer."""
        self.shown = outcome, picture, k
        self._fill()

    def _fill(self) -> None:
        if self.shown is None:
            return
        outcome, picture, k = self.shown
        lines = []
        if outcome.model is not None:
            lines = [CONSTANT] if picture.flat else plane_words(outcome, k)
        point = self._point(len(outcome.request.points.X))
        if point is not None:
            lines += [*point_words(outcome, picture, k, point, self.lab.table.task.value)]
        elif lines:
            lines.append("Point at a point, or select one, to see its numbers.")
        self.text.text = "".join(f"<p>{html.escape(line)}</p>" for line in lines)

    def _point(self, n: int) -> int | None:
        """Return the number of the point under the pointer, else of the selected one."""
        pointed, selected = self.pointed.data.get("k", []), self.lab.source.selected.indices
        for k in [*pointed, *selected]:
            if isinstance(k, int) and 0 <= k < n:
                return k
        return None


def plane_words(outcome: Outcome, k: int) -> list[str]:
    """Return g(x), ‖w‖ and the width of the band of step k or of the answer."""
    model, points = outcome.model, outcome.request.points
    names = points.axes[:1] if outcome.request.recipe.family == "regression" else points.axes
    if not outcome.is_linear:
        return _expansion(outcome, k)
    w, b = planes(outcome, k)
    labels = FittedModel(model).plane_names if len(w) > 1 else [""]
    lines = [
        f"{f'{label}: ' if label else ''}g(x) = {affine(row, float(bias), names)}"
        for label, row, bias in zip(labels, w[:MOST_PLANES], b, strict=False)
    ]
    if len(w) > 1:
        return lines
    length = float(np.linalg.norm(w[0]))
    return [*lines, f"‖w‖ = {number(length)}{_width(model, length)}"]


def _width(model: ModelLike, length: float) -> str:
    if not isinstance(model, SupportVectorMachine) or length == 0.0:
        return ""
    return f", the band is 2/‖w‖ = {number(2.0 / length)} wide"


def _expansion(outcome: Outcome, k: int) -> list[str]:
    """Return g as a sum over the support vectors of a kernel."""
    model = outcome.model
    if k < len(outcome.frames):
        frame = outcome.frames[k]
        n, b = int(np.count_nonzero(frame.coefficients)), float(frame.b[0])
        over = f"over {n:,} points with α ≠ 0"
        return [f"g(x) = Σ α y K(x, xᵢ) {_bias(b)} {over}, {_kernel(outcome)}"]
    intercepts = np.ravel(model.intercept_)
    n = len(model.support_)
    if len(intercepts) > 1:
        return [f"{len(intercepts)} functions g over {n:,} support vectors, {_kernel(outcome)}"]
    lines = [
        f"g(x) = Σ α y K(x, xᵢ) {_bias(float(intercepts[0]))} over {n:,} support vectors, "
        f"{_kernel(outcome)}"
    ]
    margin = summarize(model).margin if isinstance(model, SupportVectorMachine) else None
    if margin:
        lines.append(f"‖w‖ = {number(1.0 / margin)} in the space of the kernel")
    return lines


def _bias(b: float) -> str:
    return f"+ b, b = {number(b)},"


def _kernel(outcome: Outcome) -> str:
    """Return the formula of the kernel."""
    values = outcome.request.recipe.parameters(outcome.request.values)
    gamma, r = number(values.get("gamma", 1.0)), number(values.get("coef0", 0.0))
    formulas = {
        "rbf": f"exp(−{gamma} ‖x − z‖²)",
        "poly": f"({gamma} x·z + {r})^{values.get('degree', 2)}",
        "sigmoid": f"tanh({gamma} x·z + {r})",
    }
    return f"K(x, z) = {formulas.get(str(values.get('kernel')), 'x·z')}"


def point_words(outcome: Outcome, picture: Picture, k: int, point: int, pair: str) -> list[str]:
    """Return a point's coordinates and class, and its numbers with their reason."""
    points = outcome.request.points
    where = f"Point {point + 1:,} = {vector(points.X[point])}"
    if outcome.request.recipe.has_classes:
        where += f", class {points.names[points.codes[point]]}"
    if outcome.model is None:
        return [where]
    return [where, *reason_of(outcome, picture, k, point, pair)]


# Sent when the point under the pointer is another one.
POINTED = """
const k = cb_data.index.indices.slice(0, 1)
if (k.join() != [...pointed.data.k].join()) { pointed.data = {k} }
"""
