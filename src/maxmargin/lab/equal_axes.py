"""Equal units along both axes, so that right angles and distances look as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import CustomJS, Toggle

from .points import Points

# Axes are equal by default unless the points spread so many times as far along one of them.
MOST_UNEQUAL = 10.0


class EqualAxes:
    """The button that makes the axes of figures equal; the browser knows their sizes.

    The ``tags`` of a figure are the part of the plane that it has to show, and a number.
    """

    def __init__(self, figures: list[Any]) -> None:
        self.button = Toggle(label="equal axes", width=90, name="equal-axes", active=True)
        for plot in figures:
            fit = CustomJS(args={"plot": plot, "button": self.button}, code=FIT)
            for name in ("tags", "inner_width", "inner_height"):
                plot.js_on_change(name, fit)
            for name in ("active", "visible"):
                self.button.js_on_change(name, fit)

    def suit(self, points: Points) -> None:
        """Choose what suits points: equal units of very unequal spreads would hide one of them."""
        spreads = np.ptp(points.X, axis=0) if len(points.X) else np.ones(2)
        self.button.active = bool(spreads.max() <= MOST_UNEQUAL * spreads.min())


# Show the wanted part of the plane, with equal units where asked. A view that the user has moved
# stays where it is when the figure changes its size.
FIT = """
const {x_range: x, y_range: y, inner_width: width, inner_height: height, tags} = plot
if (tags.length != 5 || !(width > 0 && height > 0)) { return }
const shown = () => [x.start, x.end, y.start, y.end].join()
const is_resized = cb_obj === plot && plot.fitted_tags === tags
if (is_resized && plot.fitted_view !== shown()) { return }
const [left, right, bottom, top] = tags
const equal = button.active && button.visible
const unit = Math.max((right - left) / width, (top - bottom) / height)
const across = equal ? (unit * width - (right - left)) / 2 : 0
const up = equal ? (unit * height - (top - bottom)) / 2 : 0
x.setv({start: left - across, end: right + across})
y.setv({start: bottom - up, end: top + up})
x.setv({reset_start: x.start, reset_end: x.end})
y.setv({reset_start: y.start, reset_end: y.end})
plot.fitted_tags = tags
plot.fitted_view = shown()
"""
