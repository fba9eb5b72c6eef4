"""What the page draws for a model or a step of its fit: regions, lines, rings."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import maxmargin as mm

from ..arrays import Floats
from ..diagnostics.fitted_model import FittedModel, ModelLike, SupportVectorMachine
from ..plots.separability import hull
from ..plots.solutions import solutions
from . import one_class, regression
from .fitting import Frame, Outcome, evaluated, state, weights
from .picture import (
    COLOURS,
    Picture,
    Window,
    contours,
    joined,
    lattice,
    sizes_of,
    to_line,
    window_of,
)
from .points import Points
from .step_words import before_step, best_so_far

# Weights that explode are drawn up to this size: products with them stay finite.
MOST_WEIGHT = 1e100


def picture_of(outcome: Outcome, k: int | None = None, window: Window | None = None) -> Picture:
    """Return the picture of the fitted model, or of step k, in a window that holds all points."""
    points, model = outcome.request.points, outcome.model
    picture = Picture(joined(window, window_of(points)))
    draw = {"regression": regression.draw, "one-class": one_class.draw}.get(
        outcome.request.recipe.family
    )
    if draw is not None:
        if model is not None:
            frames = outcome.frames
            draw(picture, outcome, None if k is None or k >= len(frames) else frames[k])
    elif model is None:
        _draw_verdict(picture, outcome)
    elif k is None or k >= len(outcome.frames):
        _draw_answer(picture, points, model)
        if FittedModel(model).is_linear:  # why there is no plane
            _draw_verdict(picture, outcome)
        if len(model.classes_) > 2 and not picture.flat:
            _draw_many(picture, outcome)
    elif len(model.classes_) == 2 or len(outcome.frames[k].w) > 1:
        _draw_step(picture, outcome, k)
        _draw_around(picture, outcome, k)
    else:
        _draw_pairs(picture, outcome, k)
        picture.corrected = outcome.frames[k].sample
    return picture


def _draw_answer(picture: Picture, points: Points, model: ModelLike) -> None:
    xs, ys, rows = lattice(picture.window)
    known = np.array([points.names.index(label) for label in model.classes_.tolist()])
    picture.flat = _is_constant(model, points)
    if picture.flat:
        _draw_support(picture, points, model)
        return
    if len(known) == 2:
        g, at = model.decision_function(rows), model.decision_function(points.X)
        places, own = (g >= 0).astype(int), (at >= 0).astype(int)
        signs = np.where(points.labels == model.classes_[1], 1.0, -1.0)
        banded = isinstance(model, SupportVectorMachine)
        linear = isinstance(getattr(model, "kernel_", mm.kernels.Linear()), mm.kernels.Linear)
        w = model.coef_[0] if linear else None
        _draw_levels(picture, points, xs, ys, g, at, signs, banded, w)
    else:
        places, own = (np.searchsorted(model.classes_, model.predict(X)) for X in (rows, points.X))
    picture.regions = known[places].reshape(len(ys), len(xs))
    picture.wrong = known[own] != points.codes
    _draw_support(picture, points, model)


def is_flat(outcome: Outcome) -> bool:
    """Say whether w = 0 to rounding, so that there is no plane and no region to show.

    A constant is an answer of a regression.
    """
    family = outcome.request.recipe.family
    if family == "one-class":
        return one_class.is_flat(outcome)
    return family != "regression" and _is_constant(outcome.model, outcome.request.points)


def _is_constant(model: ModelLike, points: Points) -> bool:
    """Say whether w of all planes of a classifier is 0 to rounding."""
    fitted = FittedModel(model)
    # The points may be one point, or too close to one another for g to differ.
    rows = np.vstack([points.X, lattice(window_of(points), 2)[2]])
    return fitted.is_constant(rows, fitted.scores(rows))


def _is_constant_step(frame: Frame, model: ModelLike, X: Floats, g: Floats) -> bool:
    """Say whether w of a step is 0 to rounding; g is that of the points and of others."""
    terms: Any = np.abs(g).max(axis=0)
    if frame.alpha is not None and frame.alpha.ndim == 1 and not len(frame.w):
        terms = np.abs(frame.alpha).sum() * np.abs(model.kernel_.diagonal(X)).max()
    return FittedModel(model).are_equal(g, terms)


def _draw_support(picture: Picture, points: Points, model: ModelLike) -> None:
    fitted = FittedModel(model)
    if fitted.support is not None:
        picture.support = np.zeros(len(points.X), dtype=bool)
        picture.support[fitted.support] = True
        picture.alpha = fitted.alpha(len(points.X))
        picture.sizes = sizes_of(picture.alpha)


def _draw_step(picture: Picture, outcome: Outcome, k: int) -> None:
    """Draw a step of two classes, or of a linear machine of many."""
    points, model, frame = outcome.request.points, outcome.model, outcome.frames[k]
    xs, ys, rows = lattice(picture.window)
    g = evaluated(frame, model, points.X, rows)
    at = evaluated(frame, model, points.X, points.X)
    picture.corrected = frame.sample
    picture.flat = _is_constant_step(frame, model, points.X, np.vstack([at, g]))
    if frame.alpha is not None and frame.alpha.ndim == 1:
        picture.alpha = np.zeros(len(points.X))
        picture.alpha[frame.rows] = frame.alpha
        picture.support = picture.alpha > 0
        picture.sizes = sizes_of(picture.alpha)
    if picture.flat:
        return
    if g.shape[1] > 1:
        codes = {label: c for c, label in enumerate(points.names)}
        known = np.array([codes[label] for label in model.classes_.tolist()])
        picture.regions = known[g.argmax(axis=1)].reshape(len(ys), len(xs))
        _mark_wrong(picture, known[at.argmax(axis=1)] != points.codes)
        return
    second = points.labels == model.classes_[1]
    codes_of = [points.names.index(label) for label in model.classes_.tolist()]
    picture.regions = np.where(g[:, 0] >= 0, codes_of[1], codes_of[0]).reshape(len(ys), len(xs))
    _mark_wrong(picture, (at[:, 0] >= 0) != second)
    # α of a step of the ν-machine is not divided by ρ yet: there is no band of ±1.
    banded = isinstance(model, (mm.SVC, mm.LinearSVC))
    signs = np.where(second, 1.0, -1.0)
    linear = isinstance(getattr(model, "kernel_", mm.kernels.Linear()), mm.kernels.Linear)
    w = weights(frame, points.X)[0] if linear else None
    _draw_levels(picture, points, xs, ys, g[:, 0], at[:, 0], signs, banded, w)


def _draw_around(picture: Picture, outcome: Outcome, k: int) -> None:
    """Draw the plane before step k, and the one in the pocket."""
    frame, before, best = outcome.frames[k], before_step(outcome, k), best_so_far(outcome, k)
    xs, ys, rows = lattice(picture.window)
    if before is not None and not frame.is_start and len(frame.w) < 2:
        X = outcome.request.points.X
        g = evaluated(before, outcome.model, X, rows)[:, 0]
        if not np.array_equal(before.w, frame.w) or before.alpha is not None:
            picture.previous = contours(xs, ys, g, 0.0)
    if best is not None:
        picture.best = contours(xs, ys, rows @ best[0] + best[1], 0.0)


def _mark_wrong(picture: Picture, wrong: Any) -> None:
    picture.wrong, picture.remark = wrong, f"{int(wrong.sum())} points misclassified"


def _draw_pairs(picture: Picture, outcome: Outcome, k: int) -> None:
    """Draw the line of every task of many classes at a step, in the colour of its class."""
    points, model = outcome.request.points, outcome.model
    xs, ys, rows = lattice(picture.window)
    for frame in state(outcome.frames, k).values():
        if len(frame.w) > 1:
            continue
        g = evaluated(frame, model, points.X, rows)[:, 0]
        positive = points.codes[frame.rows[np.asarray(frame.labels) > 0]]
        lines = contours(xs, ys, g, 0.0)
        picture.planes += lines
        picture.colours += [COLOURS[int(positive[0])] if positive.size else "#222222"] * len(lines)


def _draw_many(picture: Picture, outcome: Outcome) -> None:
    """Draw the lines of a model of many classes: its planes, or the last of its recorded curves.

    For joint models, and incomplete recordings, these are the borders of the regions.
    """
    model, (xs, ys, rows) = outcome.model, lattice(picture.window)
    joint = model.multi_class in ("kesler", "crammer_singer")
    coef = None if joint else getattr(model, "coef_", None)
    if coef is None and not joint and outcome.complete:
        _draw_pairs(picture, outcome, len(outcome.frames) - 1)
        return
    if coef is not None:
        names = [outcome.request.points.names.index(label) for label in model.classes_.tolist()]
        first = [i for i, _ in combinations(names, 2)] if model.multi_class == "ovo" else names
        drawn = [
            (code, rows @ w + b) for code, w, b in zip(first, coef, model.intercept_, strict=True)
        ]
    else:
        codes = np.unique(picture.regions).tolist()
        drawn = [(code, np.where(picture.regions == code, 1.0, -1.0).ravel()) for code in codes]
    for code, g in drawn:
        lines = contours(xs, ys, g, 0.0)
        picture.planes += lines
        picture.colours += [COLOURS[code]] * len(lines)


def _draw_levels(
    picture: Picture, points: Points, xs: Floats, ys: Floats, g: Floats, at: Floats, signs: Floats,
    banded: bool, w: Floats | None,
) -> None:  # fmt: skip
    """Draw g = 0, the band g = ±1, and the slack of the samples inside of it.

    ``w`` is that of a linear model: the slack of its samples leads to edges out of sight, too.
    """
    picture.planes = contours(xs, ys, g, 0.0)
    picture.colours = [""] * len(picture.planes)
    picture.margins = signs * at
    if not banded:
        return
    edges = {sign: contours(xs, ys, g, sign) for sign in (1.0, -1.0)}
    picture.band = [*edges[1.0], *edges[-1.0]]
    slack = 1.0 - picture.margins
    for k in np.flatnonzero(slack > 1e-3)[:300]:
        if w is not None:
            foot = points.X[k] + slack[k] * signs[k] / (w @ w) * w
            picture.slack.append(_within(picture.window, points.X[k], foot))
        elif edges[signs[k]]:
            picture.slack.append(to_line(points.X[k], edges[signs[k]]))


def _within(window: Window, start: Floats, end: Floats) -> Floats:
    """Return the part of a segment from a point of the window that is inside of it."""
    left, right, bottom, top = window
    way = end - start
    room = np.where(way > 0.0, (right, top), (left, bottom)) - start
    share = np.divide(room, way, out=np.ones(2), where=np.abs(room) < np.abs(way))
    return np.vstack([start, start + share.min() * way])


def _draw_verdict(picture: Picture, outcome: Outcome) -> None:
    """Draw the hulls of two classes and their common point."""
    verdict, points = outcome.verdict, outcome.request.points
    if verdict is None or verdict.common_point is None:
        return
    present = np.unique(points.codes)
    picture.hulls = [hull(points.X[points.codes == code]) for code in present]
    picture.common_point = verdict.common_point


def weight_space(outcome: Outcome, k: int) -> tuple[Floats, Floats] | None:
    """Return the path of w up to step k, and the region of solutions at its b.

    The path ends at the fitted w, which may differ from that of the last step: for the pocket, or
    an incomplete recording. None for kernels that are not linear, and for many classes.
    """
    frames, points = outcome.frames, outcome.request.points
    if not frames or not outcome.is_linear or points.n_classes != 2:
        return None
    answer = np.asarray(outcome.model.coef_, dtype=float)
    every = np.vstack([np.zeros((1, 2)), *[weights(frame, points.X) for frame in frames], answer])
    every = np.clip(every, -MOST_WEIGHT, MOST_WEIGHT)
    low, high = every.min(axis=0), every.max(axis=0)
    room = 0.3 * np.maximum(high - low, 1e-3 + 0.1 * np.abs(every).max())
    window = np.column_stack([low - room, high + room])
    b = float(frames[k].b[0] if k < len(frames) else outcome.model.intercept_[0])
    b = min(max(b, -MOST_WEIGHT), MOST_WEIGHT)
    _, region, _ = solutions(points.X, outcome.signs, b, every[-1], window)
    return every[: k + 2], region
