"""What was shown on the page, as the goals of lessons judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import maxmargin as mm

from ..arrays import Floats
from ..diagnostics.fitted_model import FittedModel
from ..diagnostics.summary import summarize
from .drawing import is_flat
from .fitting import Outcome, evaluated, weights
from .points import Points
from .step_words import mistake_bound

# How far inside of the band a point counts as inside: fits end at a gap of about 1e-3.
INSIDE = 0.01


@dataclass(frozen=True, eq=False)
class Seen:
    """A fit of two classes, or a step of it.

    Parameters
    ----------
    points : Points
    algorithm : str
    parameters : mapping
        Those of the estimator.
    step : int or None
        The step that is shown, from 0; None for the fitted model.
    proved : bool
        Whether the certificate of the fitted model holds, and w is not 0.
    failed : bool
        Whether there is no model.
    linear : bool
        Whether its boundary is a line.
    separable : bool or None
        Whether a line separates the points, None if that is not known.
    widest : float
        The margin of the widest band that separates them, 0 without one.
    margins : ndarray
        y g(x) of the fitted model, which is ±1 at the band of a support vector machine.
    errors : int
        Points that are not strictly on their side of what is shown.
    width : float
        Of the band of a support vector machine, in the space of its kernel; 0 of other models.
    support : ndarray of bool
    corrections : int
        Of a perceptron.
    bound : float
        On their number, after Novikoff; ∞ without one.
    largest : float
        The largest weight that the fit met.
    """

    points: Points
    algorithm: str
    parameters: Mapping[str, Any]
    step: int | None = None
    proved: bool = False
    failed: bool = False
    linear: bool = True
    separable: bool | None = None
    widest: float = 0.0
    margins: Floats | None = None
    errors: int = 0
    width: float = 0.0
    support: Any = None
    corrections: int = 0
    bound: float = np.inf
    largest: float = 0.0

    @property
    def n_inside(self) -> int:
        """Number of points inside of the band, or beyond it."""
        return 0 if self.margins is None else int((self.margins < 1.0 - INSIDE).sum())

    @property
    def n_support(self) -> int:
        """Number of support vectors."""
        return 0 if self.support is None else int(self.support.sum())

    def share(self, count: int) -> float:
        """Return a count as a share of the points."""
        return count / len(self.points.X)


def seen(outcome: Outcome) -> Seen | None:
    """Return what a result is about; None where it is not one of two classes."""
    request, model = outcome.request, outcome.model
    points, recipe = request.points, request.recipe
    if not recipe.has_classes or points.n_classes != 2:
        return None
    verdict = outcome.verdict
    found = Seen(
        points, request.algorithm, recipe.parameters(request.values),
        failed=model is None,
        linear=request.values.get("kernel", "linear") == "linear",
        separable=None if verdict is None else verdict.separable,
        widest=verdict.margin if verdict is not None and verdict.separable else 0.0,
        errors=len(points.X),
    )  # fmt: skip
    if model is None:
        return found
    bound = mistake_bound(outcome)
    summary, fitted, flat = summarize(model), FittedModel(model), is_flat(outcome)
    margins = outcome.signs * model.decision_function(points.X)
    support = np.zeros(len(points.X), dtype=bool)
    if fitted.support is not None:
        support[fitted.support] = True
    of_band = isinstance(model, mm.SVC | mm.NuSVC | mm.LinearSVC) and not flat
    return replace(
        found,
        proved=summary.is_proved and not flat and bool(np.isfinite(margins).all()),
        linear=outcome.is_linear,
        margins=margins,
        errors=len(margins) if flat else int((margins <= 0).sum()),
        width=2.0 * summary.margin if of_band and summary.margin else 0.0,
        support=support,
        corrections=int(model.n_updates_) if isinstance(model, mm.Perceptron) else 0,
        bound=np.inf if bound is None else bound[0],
        largest=_largest(outcome),
    )


def at_step(found: Seen, outcome: Outcome, k: int) -> Seen:
    """Return the same with step k shown; after the last one comes the fitted model."""
    if k >= len(outcome.frames):
        return found
    X = found.points.X
    g = evaluated(outcome.frames[k], outcome.model, X, X)[:, 0]
    return replace(found, step=k, errors=int((outcome.signs * g <= 0).sum()))


def _largest(outcome: Outcome) -> float:
    """Return the largest weight of a linear model, and of the steps to it."""
    coef = getattr(outcome.model, "coef_", None)
    if coef is None:
        return 0.0
    X = outcome.request.points.X
    steps = [np.abs(weights(frame, X)).max() for frame in outcome.frames]
    return float(max([np.abs(coef).max(), *steps]))
