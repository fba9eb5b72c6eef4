"""The picture of a model as a file: PNG or SVG of a chosen size."""

from __future__ import annotations

import io
import re
import threading
from typing import Any

import maxmargin as mm

from .fitting import Outcome

KINDS = {"PNG": "image/png", "SVG": "image/svg+xml"}
# Pixels.
LEAST_SIZE, MOST_SIZE = 200, 4000
# Pixels of a picture whose texts are of their usual size; those of larger ones grow with it.
USUAL_WIDTH, USUAL_HEIGHT = 800, 600
PIXELS_PER_INCH = 96.0
_one_at_a_time = threading.Lock()


def still_of(outcome: Outcome, kind: str, width: int, height: int) -> bytes:
    """Return the picture of a fitted model as a file; raise ValueError for an invalid size."""
    for name, value in (("width", width), ("height", height)):
        if not LEAST_SIZE <= value <= MOST_SIZE:
            raise ValueError(f"The {name} must be {LEAST_SIZE} to {MOST_SIZE} pixels, got {value}.")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    scale = max(1.0, min(width / USUAL_WIDTH, height / USUAL_HEIGHT))
    dpi = PIXELS_PER_INCH * scale
    content = io.BytesIO()
    # Names of columns and classes are no formulas; the setting is that of the process.
    with _one_at_a_time, rc_context({"text.parse_math": False}):
        figure = Figure((width / dpi, height / dpi), dpi=dpi, layout="constrained")
        _draw(outcome, figure.subplots())
        figure.savefig(content, format=kind.lower(), dpi=dpi)
    return _sized(content.getvalue(), width, height) if kind == "SVG" else content.getvalue()


def _draw(outcome: Outcome, ax: Any) -> None:
    points, (X, y) = outcome.request.points, outcome.request.training
    across, up = points.axes
    if outcome.request.recipe.family == "regression":
        mm.plots.regression(outcome.model, X, y, ax=ax, feature_names=[across], target_name=up)
    else:
        mm.plots.boundary(outcome.model, X, y, ax=ax, feature_names=[across, up])


def _sized(content: bytes, width: int, height: int) -> bytes:
    """Return an SVG file with its size in pixels: matplotlib writes points."""
    size = rb'width="[0-9.]+pt" height="[0-9.]+pt"'
    return re.sub(size, f'width="{width}" height="{height}"'.encode(), content, count=1)
