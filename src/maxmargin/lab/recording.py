"""The runs on the page as a recording: one HTML page that plays them without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..diagnostics.fitted_model import FittedModel
from ..diagnostics.summary import linear_verdict, summarize
from ..plots.canvas import Bools
from ..plots.captions import bounds, captions_of, proved_in_words, thinned_in_words
from ..plots.grid import Lattice
from ..plots.model import FigureModel
from ..plots.recording import NO_CLASS, Caption, Scene, Shot, page_of, regions_of
from ..plots.steps import Moment, Run, predecessors, thinned
from ..progress import counted
from .drawing import picture_of
from .fitting import Frame, Outcome
from .picture import COLOURS, Picture
from .words import warnings_of

# Steps of a run that are shown, evenly spaced where there are more.
MOST_STEPS = 100
# Points up to which the slack of every step is drawn.
MOST_SLACK_POINTS = 200
FPS = 4.0


def recording_of(outcomes: Sequence[Outcome]) -> str:
    """Return the page that plays the recorded steps of fits, side by side.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Fits with their steps.
    """
    scenes = [_scene(outcome) for outcome in outcomes]
    return page_of(" and ".join(scene.name for scene in scenes), scenes, FPS)


def _scene(outcome: Outcome) -> Scene:
    points, recipe = outcome.request.points, outcome.request.recipe
    outcome = replace(outcome, frames=outcome.steps)  # the player has a start of its own
    chosen = thinned(range(len(outcome.frames)), MOST_STEPS)
    pictures = [*(picture_of(outcome, k) for k in chosen), picture_of(outcome)]
    start, *captions = _captions(outcome, chosen, pictures)
    largest = max(map(_largest_alpha, pictures))
    shots = [
        _shot(outcome, picture, caption, largest)
        for picture, caption in zip(pictures, captions, strict=True)
    ]
    left, right, bottom, top = pictures[-1].window
    return Scene(
        name=recipe.title, points=points.X,
        codes=points.codes if recipe.has_classes else np.full(len(points.X), NO_CLASS),
        class_names=points.names, labels=points.axes, limits=((left, right), (bottom, top)),
        shots=[Shot(start), *shots], legend=_legend(outcome, shots),
        note=_note(outcome, len(chosen)), is_free=recipe.family == "regression",
    )  # fmt: skip


def _largest_alpha(picture: Picture) -> float:
    return 0.0 if picture.alpha is None else float(picture.alpha.max(initial=0.0))


def _shot(outcome: Outcome, picture: Picture, caption: Caption, largest: float) -> Shot:
    """Return a picture; ``largest`` is the largest α of all pictures of the run."""
    points = outcome.request.points
    codes = [COLOURS.index(each) if each in COLOURS else NO_CLASS for each in picture.colours]
    (left, right, bottom, top), grid = picture.window, picture.regions
    limits = (left, right), (bottom, top)
    moved = [] if picture.corrected is None else [picture.corrected]
    return Shot(
        caption=caption,
        lines=list(zip(codes, picture.planes, strict=True)),
        band=picture.band,
        slack=picture.slack if len(points.X) <= MOST_SLACK_POINTS else [],
        regions=[] if grid is None else regions_of(Lattice.over(limits, len(grid)), grid),
        hulls=list(zip(np.unique(points.codes).tolist(), picture.hulls, strict=False)),
        common_point=picture.common_point,
        moved=np.array(moved, dtype=np.int64),
        wrong=_wrong(outcome, picture),
        weights=picture.alpha / largest if picture.alpha is not None and largest > 0.0 else None,
    )


def _legend(outcome: Outcome, shots: Sequence[Shot]) -> list[tuple[str, str]]:
    """Return what is drawn in any of the shots, and its meaning."""
    family, two = outcome.request.recipe.family, _has_two(outcome)
    regression, region = family == "regression", family == "one-class"
    meanings = {
        "line": "g(x)" if regression else "g(x) = 0" if two or region else "g = 0, or equal scores",
        "before": "the one before",
        "band": "edge of the tube" if regression else "g(x) = ±1",
        "slack": "slack",
        "ring": "|α − α*| > 0, the larger the wider" if regression else
                "α > 0, the larger the wider",
        "moved": "being corrected",
        "wrong": "outlier" if region else "not on its side" if two else "misclassified",
        "hull": "convex hull",
        "star": "a point of both hulls",
    }  # fmt: skip
    found = {
        "line": any(shot.lines for shot in shots),
        "before": any(shot.lines for shot in shots[:-2]),
        "band": any(shot.band for shot in shots),
        "slack": any(shot.slack for shot in shots),
        "ring": any(shot.weights is not None for shot in shots),
        "moved": any(shot.moved.size for shot in shots),
        "wrong": any(shot.wrong is not None and shot.wrong.any() for shot in shots),
        "hull": any(shot.hulls for shot in shots),
        "star": any(shot.common_point is not None for shot in shots),
    }
    return [(kind, text) for kind, text in meanings.items() if found[kind]]


def _note(outcome: Outcome, shown: int) -> str:
    """Return which steps are left out."""
    n = len(outcome.frames)
    parts = []
    if n and not outcome.complete:
        parts.append(f"the first {counted(n, 'step')} of the fit")
    return "; ".join([*parts, *thinned_in_words(shown, n)])


# Words ---------------------------------------------------------------------------------------


def _captions(outcome: Outcome, chosen: list[int], pictures: list[Picture]) -> list[Caption]:
    """Return what is said of the start, of the chosen steps and of the answer."""
    if _has_two(outcome) and chosen:
        run = _run(outcome, chosen)
        told = captions_of(run, [_errors(outcome, picture) for picture in pictures])
        return [*told[:-1], _answer(outcome, pictures[-1])]
    n = len(outcome.request.points.X)
    steps = [_step(outcome, k, picture) for k, picture in zip(chosen, pictures, strict=False)]
    start = Caption("Start", f"{counted(n, 'point')}, before the first step.")
    return [start, *steps, _answer(outcome, pictures[-1])]


def _has_two(outcome: Outcome) -> bool:
    """Say whether the fit tells two classes apart."""
    return outcome.model is not None and len(getattr(outcome.model, "classes_", ())) == 2


def _wrong(outcome: Outcome, picture: Picture) -> Bools | None:
    """Return which points are not on their side: of two classes, those with y g(x) ≤ 0."""
    if _has_two(outcome) and picture.margins is not None:
        return np.asarray(~(picture.margins > 0.0))
    return picture.wrong


def _errors(outcome: Outcome, picture: Picture) -> int | None:
    wrong = _wrong(outcome, picture)
    return None if wrong is None else int(wrong.sum())


def _run(outcome: Outcome, chosen: list[int]) -> Run:
    """Return the chosen steps of a fit of two classes, and its end."""
    points, model = outcome.request.points, FigureModel(outcome.model)
    signs = outcome.signs
    moments = [_moment(frame, len(signs)) for frame in outcome.frames]
    run = Run(model, points.X, signs, moments)
    kept = [*chosen, len(moments) - 1]
    run.moments = [moments[k] for k in kept]
    before = predecessors(moments)
    run.before = [before[k] for k in kept]
    run.numbers = np.array(kept) + 1
    run.n_moments, run.ends_with_step = len(moments) + 1, False
    return run


def _moment(frame: Frame, n: int) -> Moment:
    alpha = None
    if frame.alpha is not None:
        alpha = np.zeros(n)
        alpha[frame.rows] = frame.alpha
    w = frame.w[0] if len(frame.w) else None
    return Moment(
        frame.iteration, frame.objective, frame.sample, w, float(frame.b[0]), alpha, frame.unit,
        frame.primal, frame.dual,
    )  # fmt: skip


def _step(outcome: Outcome, k: int, picture: Picture) -> Caption:
    """Return what is said of a step of many classes, of targets or of one class."""
    frame, n = outcome.frames[k], len(outcome.frames)
    names = FittedModel(outcome.model).task_names if outcome.frames[-1].task else []
    parts = [names[frame.task]] if frame.task < len(names) else []
    parts.append(f"{frame.unit} {frame.iteration:,}")
    if frame.sample is not None:
        parts.append(f"point {frame.sample + 1:,} is corrected")
    if picture.flat:
        parts.append("w = 0")
    text = ", ".join([*parts, *([picture.remark] if picture.remark else [])])
    facts = " · ".join(bounds(frame.primal, frame.dual))
    return Caption(f"Step {k + 1:,} of {n:,}", f"{text[:1].upper()}{text[1:]}.", facts)


def _answer(outcome: Outcome, picture: Picture) -> Caption:
    """Return how a fit ended, with what its certificate proves, and its warnings."""
    if outcome.model is None:
        return Caption("No answer", f"{outcome.failure}", is_proved=False)
    found = summarize(outcome.model)
    sentences = [proved_in_words(found)]
    if picture.flat:
        sentences.append("w = 0: there is no plane and no region.")
    if outcome.verdict is not None:
        verdict = linear_verdict(outcome.verdict)
        sentences.append(f"{verdict[:1].upper()}{verdict[1:]}.")
    is_proved = found.is_proved and not picture.flat
    facts = [*([picture.remark] if picture.remark else []), *warnings_of(outcome)]
    return Caption("The answer", " ".join(sentences), " · ".join(facts), is_proved)
