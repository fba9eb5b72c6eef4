"""Regression on a line: the curve with its tube, and what is outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np

import maxmargin as mm

from ..arrays import Floats
from ..diagnostics.fitted_model import FittedModel, ModelLike
from ..diagnostics.targets import (
    TUBE_STATES,
    TargetErrors,
    edge_tolerance,
    target_errors,
    tube_states,
)
from ..estimators.svr import KernelRegressor, centre_of
from ..plots.canvas import PALETTE
from .fitting import Frame, Outcome, evaluated
from .picture import Picture, sizes_of

# Points of a curve.
CURVE_POINTS = 500
ABOVE, BELOW = PALETTE[5], PALETTE[0]
# Segments of slack that are drawn.
MOST_SLACK = 300


def draw(picture: Picture, outcome: Outcome, frame: Frame | None) -> None:
    """Draw the fitted curve, or that of a step, with its tube, slack and support vectors."""
    model, (X, y) = outcome.model, outcome.request.training
    xs = np.linspace(*picture.window[:2], CURVE_POINTS)
    beta = np.zeros(len(y))
    if frame is None:
        curve, picture.predicted = model.predict(xs[:, np.newaxis]), model.predict(X)
        picture.tube = FittedModel(model).epsilon
        beta[model.support_] = np.ravel(model.dual_coef_)
    else:
        curve, picture.predicted = (_predicted(frame, model, X, x) for x in (xs[:, np.newaxis], X))
        # ε of a step of the ν-machine is not known.
        picture.tube = None if isinstance(model, mm.NuSVR) else FittedModel(model).epsilon
        beta[frame.rows] = _betas(frame)
    picture.planes, picture.colours = [np.column_stack([xs, curve])], [""]
    _draw_support(picture, beta)
    if picture.tube is not None:
        _draw_tube(picture, xs, curve, outcome)


def _predicted(frame: Frame, model: ModelLike, X: Floats, rows: Floats) -> Floats:
    """Return the targets of rows by a step; kernel machines fit targets about their centre."""
    centre = centre_of(frame.labels) if isinstance(model, KernelRegressor) else 0.0
    return np.asarray(evaluated(frame, model, X, rows)[:, 0] + centre)


def _betas(frame: Frame) -> Floats:
    """Return α − α* of every row; a linear machine has one variable per row."""
    if frame.alpha is None:
        return np.zeros(frame.rows.size)
    return frame.alpha if frame.alpha.size == frame.rows.size else frame.coefficients


def _draw_support(picture: Picture, beta: Floats) -> None:
    """Draw rings as large as |α − α*|, of one colour above the curve and of another below."""
    picture.alpha, picture.support = np.abs(beta), beta != 0.0
    picture.sizes = sizes_of(picture.alpha)
    picture.rings = [ABOVE if each > 0.0 else BELOW for each in beta[picture.support]]


def _draw_tube(picture: Picture, xs: Floats, curve: Floats, outcome: Outcome) -> None:
    """Draw the edges of the tube, and the slack of the targets outside of it."""
    assert picture.tube is not None
    picture.band = [np.column_stack([xs, curve + side * picture.tube]) for side in (1.0, -1.0)]
    points, states = outcome.request.points.X, states_of(outcome, picture)
    outside = np.isin(states, TUBE_STATES[2:])
    for k in np.flatnonzero(outside)[:MOST_SLACK]:
        x, side = points[k, 0], 1.0 if states[k] == "above" else -1.0
        edge = (x, picture.predicted[k] + side * picture.tube)
        picture.slack.append(np.array([points[k], edge]))
    picture.remark = f"{int(outside.sum())} targets outside of the tube"


def states_of(outcome: Outcome, picture: Picture) -> Any:
    """Return the state of each target about the tube."""
    assert picture.tube is not None
    y = outcome.request.training[1]
    tol = edge_tolerance(FittedModel(outcome.model), y)
    return tube_states(y - picture.predicted, picture.tube, tol)


def columns(outcome: Outcome, picture: Picture) -> dict[str, Any]:
    """Return the columns of the table of points."""
    if picture.predicted is None:
        return {}
    y = outcome.request.training[1]
    known = {
        "target": y.tolist(), "predicted": picture.predicted.tolist(),
        "residual": (y - picture.predicted).tolist(), "alpha": picture.alpha.tolist(),
    }  # fmt: skip
    if picture.tube is None:
        return known
    return known | {"state": states_of(outcome, picture).tolist()}


def errors_of(outcome: Outcome) -> TargetErrors:
    """Return how well the targets are predicted, and how many are outside of the tube."""
    model, (X, y) = FittedModel(outcome.model), outcome.request.training
    assert model.epsilon is not None
    return target_errors(y, outcome.model.predict(X), model.epsilon, edge_tolerance(model, y))


def facts(outcome: Outcome) -> list[str]:
    """Return the width of the tube, how well it fits, and how many targets are outside of it."""
    found = errors_of(outcome)
    # Equal targets have no variance to explain.
    fits = [f"R² {found.r2:.4g}"] if np.isfinite(found.r2) else []
    return [
        f"ε {found.epsilon:.6g}",
        *fits,
        f"RMSE {found.rmse:.4g}",
        f"{found.n_above + found.n_below} of {found.n_samples} targets outside of the tube: "
        f"{found.n_above} above (orange), {found.n_below} below (blue)",
    ]
