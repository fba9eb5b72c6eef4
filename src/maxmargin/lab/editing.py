"""Editing of points by the keyboard: fields to add, move and delete them."""

from __future__ import annotations

from typing import Any

from bokeh.layouts import column, row
from bokeh.models import NumericInput, Spinner

from .style import button

FIELD = 70


class PointEditor:
    """Fields for the number and the coordinates of a point.

    They change the data of ``lab.source``, like drawing with the mouse.
    """

    def __init__(self, lab: Any) -> None:
        self.lab, self.source = lab, lab.source
        self.number = Spinner(title="point", low=1, step=1, width=FIELD, name="edit-point")
        self.x = NumericInput(title="x", mode="float", width=FIELD, name="edit-x")
        self.y = NumericInput(title="y", mode="float", width=FIELD, name="edit-y")
        self.number.on_change("value", lambda attr, old, new: self._select(new))
        self.source.selected.on_change("indices", lambda attr, old, new: self._show(new))
        acts = (("add", self._add), ("move", self._move), ("delete", self._delete))
        self.widgets = column(
            row(self.number, self.x, self.y), row(*(button(name, act, FIELD) for name, act in acts))
        )

    @property
    def chosen(self) -> int | None:
        """The selected point."""
        indices = self.source.selected.indices
        return indices[0] if indices and indices[0] < self._size else None

    @property
    def _size(self) -> int:
        return len(self.source.data["x"])

    def _select(self, number: float | None) -> None:
        if number is None or number - 1 == self.chosen:  # also the first of several
            return
        if 1 <= number <= self._size:
            self.source.selected.indices = [int(number) - 1]
        else:
            self._complain(f"There are {self._size} points.")

    def _show(self, indices: list[int]) -> None:
        """Fill the fields with the point that was selected here, in the figure or in the table."""
        if self.chosen is not None:
            self.number.value = self.chosen + 1
            self.x.value = float(self.source.data["x"][self.chosen])
            self.y.value = float(self.source.data["y"][self.chosen])

    def _add(self) -> None:
        if self._are_given():
            label = str(self.lab.data.pen.active)
            new = {"x": self.x.value, "y": self.y.value, "label": label}
            self._put({key: [*values, new[key]] for key, values in self.source.data.items()})
            self.source.selected.indices = [self._size - 1]

    def _move(self) -> None:
        k = self._asked()
        if k is not None and self._are_given():
            data = {key: list(values) for key, values in self.source.data.items()}
            data["x"][k], data["y"][k] = self.x.value, self.y.value
            self._put(data)

    def _delete(self) -> None:
        if self._asked() is not None:
            gone = set(self.source.selected.indices)
            self.source.selected.indices = []
            left = [k for k in range(self._size) if k not in gone]
            self._put({key: [v[k] for k in left] for key, v in self.source.data.items()})

    def _put(self, data: dict[str, list[Any]]) -> None:
        self.source.data = data
        self.lab.follow()

    def _complain(self, text: str) -> None:
        self.lab.say(text, bad=True)

    def _asked(self) -> int | None:
        if self.chosen is None:
            self._complain("Select a point first: by its number, in the table or in the figure.")
        return self.chosen

    def _are_given(self) -> bool:
        given = self.x.value is not None and self.y.value is not None
        if not given:
            self._complain("Give both coordinates.")
        return given
