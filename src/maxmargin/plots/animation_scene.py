"""The scene of an animation, for the page that plays it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats
from ..diagnostics.fitted_model import SCORE_ROUNDING
from .captions import thinned_in_words
from .recording import NO_CLASS, Caption, Scene, Shot, region_above

if TYPE_CHECKING:
    from .animation import AnimationDisplay, Frame


def scene_of(display: AnimationDisplay) -> Scene:
    """Return the start, the steps and the answer of an animation as a scene."""
    grid, frames = display.grid, display.frames
    start, *steps, answer = display.captions
    alphas = [frame.moment.alpha for frame in frames if frame.moment.alpha is not None]
    largest = max((float(alpha.max(initial=0.0)) for alpha in alphas), default=0.0)
    # The last frame is the answer; that of the last step may be the same.
    shots = [_shot(display, *pair, largest) for pair in zip(frames, steps, strict=False)]
    last = replace(_shot(display, frames[-1], answer, largest), moved=np.empty(0, dtype=np.int64))
    return Scene(
        name=display.name, points=display.points, codes=display.codes, class_names=display.names,
        labels=display.labels, limits=((grid.x[0], grid.x[-1]), (grid.y[0], grid.y[-1])),
        shots=[Shot(start), *shots, last], legend=_legend(display), note=_note(display),
        strips=display.names if display.is_strip else (),
    )  # fmt: skip


def _shot(display: AnimationDisplay, frame: Frame, caption: Caption, largest: float) -> Shot:
    """Return a frame; ``largest`` is the largest α of all frames."""
    grid, g, alpha = display.grid, frame.g, frame.moment.alpha
    weights = alpha / largest if alpha is not None and largest > 0.0 else None
    common: dict[str, Any] = {
        "caption": caption, "moved": frame.moved, "weights": weights,
        "wrong": None if frame.is_flat else frame.wrong,
    }  # fmt: skip
    if frame.is_flat or _is_constant(g):
        return Shot(**common)
    levels = (-1.0, 1.0) if display.has_band else ()
    return Shot(
        lines=[(NO_CLASS, line) for line in grid.contour(g, 0.0)],
        band=[line for level in levels for line in grid.contour(g, level)],
        regions=[(0, region_above(grid, -g)), (1, region_above(grid, g))],
        **common,
    )


def _is_constant(g: Floats) -> bool:
    """Say whether nothing changes in the picture, so that it has no line."""
    return bool(np.ptp(g) <= SCORE_ROUNDING * np.abs(g).max())


def _legend(display: AnimationDisplay) -> list[tuple[str, str]]:
    """Return what is drawn, and its meaning."""
    entries = [("line", "g(x) = 0"), ("before", "the one before")]
    if display.has_band:
        entries.append(("band", "g(x) = ±1"))
    if any(frame.moment.alpha is not None for frame in display.frames):
        entries.append(("ring", "α > 0, the larger the wider"))
    if any(frame.moved.size for frame in display.frames):
        entries.append(("moved", "being corrected"))
    if any(frame.wrong.any() for frame in display.frames):
        entries.append(("wrong", "not on its side"))
    return entries


def _note(display: AnimationDisplay) -> str:
    """Return what a projection and thinning leave out, and what is to be known of the steps."""
    parts = [text for text in (display.note, display.run_note) if text]
    shown = len(display.captions) - 2
    answers = len(display.frames) - shown
    return "; ".join([*parts, *thinned_in_words(shown, display.n_steps - answers)])
