"""The table of points: α, margin, slack and KKT state of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    DataTable,
    ScientificFormatter,
    Select,
    StringFormatter,
    TableColumn,
)  # fmt: skip

import maxmargin as mm

from ..diagnostics.fitted_model import FittedModel, SupportVectorMachine
from ..estimators.registry import Family
from . import one_class, regression
from .fitting import Outcome
from .picture import Picture

# Titles, and widths in pixels that hold the longest number: -1.2346e-05.
COLUMNS = {
    "row": ("point", 38), "class": ("class", 48), "alpha": ("α", 75), "margin": ("y·g", 75),
    "slack": ("ξ", 75), "state": ("state", 80),
}  # fmt: skip
OF_REGRESSION = {
    "row": ("point", 38), "target": ("target", 66), "predicted": ("prediction", 70),
    "residual": ("residual", 72), "alpha": ("|α|", 66), "state": ("state", 72),
}  # fmt: skip
OF_ONE_CLASS = {
    "row": ("point", 38), "alpha": ("α", 75), "margin": ("g", 75), "slack": ("ξ", 75),
    "state": ("state", 105),
}  # fmt: skip
ALL_COLUMNS = COLUMNS | OF_REGRESSION | OF_ONE_CLASS
# Margins and slacks below this are 0.
ROUNDING = 1e-9
TEXT_COLUMNS = ("row", "class", "state")


class PointTable:
    """One row for each of the ``points``; selections are linked."""

    def __init__(self, points: ColumnDataSource) -> None:
        self.shown: tuple[Outcome, Picture, bool] | None = None
        self.columns = COLUMNS
        self.rows = ColumnDataSource(data={name: [] for name in ALL_COLUMNS}, name="rows")
        self.grid = DataTable(
            source=self.rows, columns=_headed(COLUMNS),
            index_position=None, height=320, sizing_mode="stretch_width", name="kkt",
            html_attributes={"data-name": "points"},
            autosize_mode="none",  # fitted columns would truncate numbers
        )  # fmt: skip
        # Bokeh redraws the cells for other rows, but not for other numbers.
        again = CustomJS(args={"grid": self.grid}, code="grid.view.change.emit()")
        self.rows.js_on_change("data", again)
        for one, other in ((points, self.rows), (self.rows, points)):
            link = CustomJS(args={"other": other.selected}, code=SELECT)
            one.selected.js_on_change("indices", link)
        self.task = Select(title="pair", options=[], visible=False, width=200)
        self.task.on_change("value", lambda attr, old, new: self._fill())

    def draw(self, outcome: Outcome, picture: Picture, *, at_end: bool) -> None:
        """Show the points of a picture; for the fitted model, its support table."""
        self.shown = None  # the pair is set below
        pairs = _pairs(outcome)
        if self.task.options != pairs:
            self.task.options, self.task.value = pairs, pairs[0] if pairs else ""
            self.task.visible = bool(pairs)
        self.shown = outcome, picture, at_end
        self._fill()

    def _fill(self) -> None:
        if self.shown is None:
            return
        outcome, picture, at_end = self.shown
        names = outcome.request.points.labels.tolist()
        columns = _known(outcome, picture, self.task.value, at_end=at_end)
        blank = {
            name: ([""] if name in TEXT_COLUMNS else [float("nan")]) * len(names)
            for name in ALL_COLUMNS
        }
        rows = list(range(1, len(names) + 1))
        self.rows.data = blank | {"row": rows, "class": names} | _rounded(columns)
        self._show_columns(outcome.request.recipe.family)

    def _show_columns(self, family: Family) -> None:
        """Show the columns that algorithms of a family have."""
        columns = {"regression": OF_REGRESSION, "one-class": OF_ONE_CLASS}.get(family, COLUMNS)
        if columns is not self.columns:
            self.columns, self.grid.columns = columns, _headed(columns)


def _headed(columns: dict[str, tuple[str, int]]) -> list[TableColumn]:
    """Return columns with their titles and widths."""
    number = ScientificFormatter(precision=4, power_limit_low=-4, power_limit_high=5)
    return [
        TableColumn(field=name, title=title, width=width,
                    formatter=StringFormatter() if name in TEXT_COLUMNS else number)
        for name, (title, width) in columns.items()
    ]  # fmt: skip


def _known(outcome: Outcome, picture: Picture, pair: str, *, at_end: bool) -> dict[str, Any]:
    """Return the columns that are known of a step, or of the fitted model."""
    family = outcome.request.recipe.family
    if family == "regression":
        return regression.columns(outcome, picture)
    if family == "one-class":
        return one_class.columns(outcome, picture)
    table = _table(outcome, pair) if at_end else None
    if table is None:
        return _of_picture(picture)
    return _of_table(table, len(outcome.request.points.X))


def _rounded(columns: dict[str, Any]) -> dict[str, Any]:
    """Return margins and slacks as 0 where they are 0 to rounding."""
    for name in ("margin", "slack"):
        if "slack" in columns:
            values = np.asarray(columns[name], dtype=float)
            columns[name] = np.where(np.abs(values) <= ROUNDING, 0.0, values).tolist()
    return columns


def _of_table(table: Any, n: int) -> dict[str, Any]:
    """Return the columns of a table of some of the points."""
    columns = {}
    for name in ("alpha", "margin", "slack", "state"):
        values = np.full(n, "" if name == "state" else np.nan, dtype=object)
        values[table.index] = getattr(table, name)
        columns[name] = values.tolist()
    return columns


def _of_picture(picture: Picture) -> dict[str, Any]:
    """Return the columns that are known of a step."""
    columns: dict[str, Any] = {}
    if picture.alpha is not None:
        columns["alpha"] = picture.alpha.tolist()
    if picture.margins is not None:
        columns["margin"] = picture.margins.tolist()
        columns["state"] = ["wrong side" if m <= 0 else "" for m in picture.margins]
        if picture.band:
            columns["slack"] = np.maximum(1.0 - picture.margins, 0.0).tolist()
    return columns


def _table(outcome: Outcome, pair: str) -> Any:
    """Return the support table of a support vector machine, None for another model."""
    model, points = outcome.model, outcome.request.points
    if not isinstance(model, SupportVectorMachine):
        return None
    pairs = _pairs(outcome)
    task = pairs.index(pair) if pair in pairs else None
    try:
        return mm.diagnostics.support_table(model, points.X, points.labels, task=task)
    except (ValueError, TypeError):  # joint models, and fits that were stopped
        return None


def _pairs(outcome: Outcome) -> list[str]:
    """Return the names of the tasks of a model of many classes."""
    if outcome.model is None or not outcome.request.recipe.has_classes:
        return []
    if len(outcome.model.classes_) == 2:
        return []
    return FittedModel(outcome.model).plane_names


SELECT = "if (other.indices.join() != cb_obj.indices.join()) { other.indices = cb_obj.indices }"
