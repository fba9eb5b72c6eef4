"""Which samples a picture of regions shows, and what the model says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Integers
from .canvas import Bools, number, some_rows
from .model import FigureModel
from .rings import MOST_RINGS
from .titles import described, outliers_in_words
from .view import FigureData


@dataclass(frozen=True, eq=False)
class Shown:
    """The samples in the picture.

    Parameters
    ----------
    rows : ndarray of int of shape (m,)
        Their rows of X.
    answers : ndarray of int of shape (m,)
        The class numbers that the model answers.
    margins : ndarray of shape (m,)
    is_support : ndarray of bool of shape (m,)
    n_support : int
        Support vectors among all rows.
    is_flat : bool
        Whether w = 0, so that there is no plane.
    title : str
        The model, and the outliers and errors among all rows where these are known.
    """

    rows: Integers
    answers: Integers
    margins: Floats
    is_support: Bools
    n_support: int
    is_flat: bool
    title: str


def shown_of(model: FigureModel, data: FigureData, codes: Integers, most: int) -> Shown:
    """Return at most so many samples; where all scores take seconds, all are counted."""
    n = data.n_samples
    everything = n <= most or model.affordable(n)
    is_support = model.support_rows(n, take=data.take)
    held = np.flatnonzero(is_support)
    rows = np.arange(n) if everything else some_rows(n, most, held, MOST_RINGS)
    whole = data.X if everything else data.take(rows)
    scores = model.scores(whole)
    answers = model.answers(whole, scores)
    margins = model.margins(scores, codes[rows])
    is_flat = model.has_no_plane(whole, scores)
    counted = ""
    if everything:
        is_support &= model.support_rows(n, margins)
        counted = "" if is_flat else _counted(model, answers, codes)
        rows = some_rows(n, most, np.flatnonzero(is_support), MOST_RINGS)
        answers, margins = answers[rows], margins[rows]
    return Shown(
        rows=rows, answers=answers, margins=margins, is_support=is_support[rows],
        n_support=int(is_support.sum()), is_flat=is_flat,
        title=_title(model, data, is_flat) + counted,
    )  # fmt: skip


def _counted(model: FigureModel, answers: Integers, codes: Integers) -> str:
    """Return outliers and errors in words; the certificate of a separating rule counts them."""
    text = "" if model.has_classes else f", {outliers_in_words(answers == 0)}"
    wrong = int((answers != codes).sum())
    counts_itself = model.is_binary and not model.is_any_machine
    return f"{text}, {number(wrong, 'error')}" if wrong and not counts_itself else text


def _title(model: FigureModel, data: FigureData, is_flat: bool) -> str:
    width = None
    if is_flat:
        return f"{described(model)}, w = 0: no plane"
    if model.is_binary and model.is_support_vector_machine and not data.constant:
        planes = model.affine(data.mean, data.fill)
        norm = 0.0 if planes is None else float(np.linalg.norm(planes[0][0]))
        # A ν-machine without a margin has w = 0 to rounding.
        far = 1e9 * max(1.0, float(abs(data.numbers).max()))
        width = 2.0 / norm if norm * far > 2.0 else None
    return described(model, width)
