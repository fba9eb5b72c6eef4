"""The one-class machine in the plane: its region, its border and the outliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Floats
from ..diagnostics.fitted_model import SCORE_ROUNDING, FittedModel, ModelLike
from ..diagnostics.region import REGION_STATES, border_tolerance
from .fitting import Frame, Outcome, evaluated
from .picture import Picture, contours, lattice, sizes_of, to_line

# Segments of slack that are drawn.
MOST_SLACK = 300


def draw(picture: Picture, outcome: Outcome, frame: Frame | None) -> None:
    """Draw the region g ≥ 0 of the fitted model, or of a step, its outliers and their slack."""
    model, points = outcome.model, outcome.request.points
    xs, ys, rows = lattice(picture.window)
    picture.alpha = np.zeros(len(points.X))
    if frame is None:
        g, at = model.decision_function(rows), model.decision_function(points.X)
        picture.alpha[model.support_] = np.ravel(model.dual_coef_)
    else:
        g, at = (evaluated(frame, model, points.X, X)[:, 0] for X in (rows, points.X))
        picture.alpha[frame.rows] = frame.coefficients
    picture.support, picture.sizes = picture.alpha > 0.0, sizes_of(picture.alpha)
    picture.margins, picture.wrong = at, at < 0.0
    b = float(model.intercept_[0] if frame is None else frame.b[0])
    picture.flat = _is_constant(model, points.X, picture.alpha, at - b)
    if picture.flat:
        picture.wrong = None
        return
    picture.remark = f"{int(picture.wrong.sum())} outliers"
    picture.regions = np.where(g >= 0.0, 0, -1).reshape(len(ys), len(xs))
    picture.planes = contours(xs, ys, g, 0.0)
    picture.colours = [""] * len(picture.planes)
    if picture.planes:
        outliers = np.flatnonzero(picture.wrong)[:MOST_SLACK]
        picture.slack = [to_line(points.X[k], picture.planes) for k in outliers]


def _is_constant(model: ModelLike, X: Floats, alpha: Floats, scores: Floats) -> bool:
    """Say whether ‖w‖² = Σ α_i w·φ(x_i) is 0 to rounding: there is no region to show."""
    terms = float(alpha.sum()) ** 2 * np.abs(model.kernel_.diagonal(X)).max()
    return bool(alpha @ scores <= SCORE_ROUNDING * terms)


def columns(outcome: Outcome, picture: Picture) -> dict[str, Any]:
    """Return the columns of the table of points."""
    if picture.margins is None:
        return {}
    g, level = picture.margins, border_tolerance(FittedModel(outcome.model))
    state = np.select([g > level, g >= -level], REGION_STATES[:2], REGION_STATES[2])
    return {
        "alpha": picture.alpha.tolist(), "margin": g.tolist(),
        "slack": np.maximum(-g, 0.0).tolist(), "state": state.tolist(),
    }  # fmt: skip


def is_flat(outcome: Outcome) -> bool:
    """Say whether w of the fitted model is 0 to rounding."""
    model, X = outcome.model, outcome.model.support_vectors_
    scores = model.decision_function(X) - model.intercept_[0]
    return _is_constant(model, X, np.ravel(model.dual_coef_), scores)


def facts(outcome: Outcome) -> list[str]:
    """Return how many points are outliers."""
    X = outcome.request.points.X
    n = int((outcome.model.predict(X) < 0).sum())
    return [f"ρ {outcome.model.offset_[0]:.6g}", f"{n} of {len(X)} points are outliers"]
