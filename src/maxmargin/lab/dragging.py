"""Answers while points are being dragged: the browser pushes positions, the page only fits them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from bokeh.events import Pan
from bokeh.models import ColumnDataSource, CustomJS

from .points import MOST_COORDINATE, Points


class Dragging:
    """Fits of the ``lab`` to positions of points that the mouse has not released yet.

    Bokeh's tool sends the points when the drag ends. Until then the browser sends the numbers and
    coordinates of the dragged points, one message after the answer to the one before.
    """

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.moved = ColumnDataSource(data={"k": [], "x": [], "y": []}, name="moved")
        # Changed with every answer: the browser may send the next positions.
        self.moved.tags = [0]
        self.moved.on_change("data", lambda attr, old, new: self._on_moved(new))
        parts = {"source": lab.source, "moved": self.moved}
        self.moved.js_on_change("tags", CustomJS(args=parts, code=ANSWERED))
        for panel in lab.panels:
            panel.scene.figure.js_on_event(Pan, CustomJS(args=parts, code=MOVED))

    def _on_moved(self, data: dict[str, Any]) -> None:
        points = with_moved(self.lab.points, data)
        if points is None:
            self.answered()
        else:
            self.lab.ask(points)

    def answered(self) -> None:
        """Ask the browser for the next positions, after an answer was drawn."""
        self.moved.tags = [self.moved.tags[0] + 1]


def with_moved(points: Points, data: dict[str, Any]) -> Points | None:
    """Return points of which some were moved, None where what the browser sends is not valid."""
    try:
        k = np.array(data["k"], dtype=int)
        places = np.column_stack([data["x"], data["y"]]).astype(float)
    except (KeyError, TypeError, ValueError):
        return None
    known = k.size and k.min() >= 0 and k.max() < len(points.X)
    if not known or len(places) != k.size or not (np.abs(places) <= MOST_COORDINATE).all():
        return None
    X = points.X.copy()
    X[k] = places
    return replace(points, X=X)


# A position is sent when the answer to the one before is drawn, or does not come.
PUSH = """
const push = () => {
  const k = [...source.selected.indices], {x, y} = source.data
  const data = {k, x: k.map((i) => x[i]), y: k.map((i) => y[i])}
  const sent = JSON.stringify(data)
  moved.is_waiting = k.length > 0 && sent != moved.sent
  if (moved.is_waiting) {
    moved.sent = sent
    moved.data = data
    clearTimeout(moved.timer)
    moved.timer = setTimeout(() => { moved.is_waiting = false }, 500)
  }
}
"""
MOVED = PUSH + "if (!moved.is_waiting) { push() }"
ANSWERED = PUSH + "if (moved.is_waiting) { requestAnimationFrame(push) }"
