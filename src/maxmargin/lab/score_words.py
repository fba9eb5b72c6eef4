"""Scores in words: for the page, the choice of a candidate, and screen readers."""

from __future__ import annotations

import html

import numpy as np

from .score_figures import BEST_COLOUR
from .searching import LIMITS, Question, Scores, slide_of


def offer(question: Question) -> str:
    """Return what a search computes."""
    n_costs, n_gammas = question.costs.size, question.gammas.size
    where = f"{n_costs} × {n_gammas} values of C and γ" if n_gammas else f"{n_costs} values of C"
    return (
        f"The mean {question.score} of {question.n_folds}-fold cross-validation at {where}, with "
        "the other settings as they are."
    )


def title(scores: Scores) -> str:
    """Return the title of the figure: what the scores are, or how far the search is."""
    if scores.is_over:
        return f"mean {scores.question.score} of {scores.question.n_folds} folds"
    return f"{int(scores.known.sum())} of {scores.known.size} candidates"


def summary(scores: Scores) -> str:
    """Return a description of the figure."""
    over = "Map over C and γ" if scores.question.gammas.size else "Curve over C"
    text = f"{over} of the mean {scores.question.score}."
    return text if scores.best is None else f"{text} Best: {label(scores, scores.best)}."


def said(scores: Scores) -> list[tuple[str, str]]:
    """Return what has been found, as lines with the kind of each."""
    if scores.failure:
        return [("bad", scores.failure)]
    best, simplest = scores.best, scores.simplest
    if best is None or simplest is None:
        return [("bad", f"No candidate has a score after {scores.seconds:.1f} s.")]
    kind = "good" if scores.certified[best] else "open"
    if simplest == best:
        other = "It is also the simplest within one standard error: the least C, then the least γ."
    else:
        other = f"Simplest within one standard error, by C and then γ: {label(scores, simplest)}."
    if not scores.question.gammas.size:
        other = other.replace(", by C and then γ", "").replace(
            ": the least C, then the least γ", ""
        )
    return [(kind, f"Best: {label(scores, best)}."), ("facts", other), ("facts", _account(scores))]


def said_of_sliders(scores: Scores, cost: float, gamma: float | None) -> tuple[str, str]:
    """Return the score at the sliders."""
    recipe = scores.question.recipe
    names = [slide_of(recipe, "C").title_at(cost)]
    if gamma is not None:
        names.append(slide_of(recipe, "gamma").title_at(gamma))
    here, begin = scores.at(cost, gamma), f"Sliders: {', '.join(names)}"
    if here is None:
        return "step", f"{begin}: no score was computed there."
    if is_at(scores, here, cost, gamma):
        return "step", f"{begin}: {_score(scores, here)}."
    return "step", f"{begin}; in the cell of {label(scores, here)}."


def is_at(scores: Scores, candidate: int, cost: float, gamma: float | None) -> bool:
    """Say whether the sliders have the numbers of a candidate."""
    c, g = scores.place(candidate)
    return bool(np.isclose(c, cost) and (g is None or (gamma is not None and np.isclose(g, gamma))))


def label(scores: Scores, candidate: int) -> str:
    """Return a candidate and its score."""
    symbols = {"C": "C", "gamma": "γ"}
    numbers = scores.results.candidates[candidate].items()
    where = ", ".join(f"{symbols[name]} = {value:g}" for name, value in numbers)
    return f"{where}: {_score(scores, candidate)}"


def options(scores: Scores) -> list[tuple[str, str]]:
    """Return the candidates to choose from, with the remarks that the figure shows as marks."""
    found = []
    for k in np.flatnonzero(scores.known).tolist():
        remarks = [
            word for word, at in (("best", scores.best), ("simplest", scores.simplest)) if at == k
        ]
        found.append((str(k), ", ".join([label(scores, k), *remarks])))
    return found


def legend(scores: Scores) -> str:
    """Return the marks of the figure and their meanings as HTML, which words repeat."""
    sliders = "▢ sliders" if scores.question.gammas.size else "┆ sliders"
    marks = [
        f"<span style='color: {BEST_COLOUR}'>★</span> best",
        "◯ simplest within one standard error",
        sliders,
        *(["✕ not certified"] if (scores.known & ~scores.certified).any() else []),
    ]
    items = "".join(f"<span style='white-space: nowrap'>{mark}</span>" for mark in marks)
    style = "display: flex; flex-wrap: wrap; column-gap: 12px"
    return f"<div class='facts' aria-hidden='true' style='{style}'>{items}</div>"


def line(kind: str, text: str) -> str:
    """Return a line of the page, its text escaped."""
    return f"<p class='{kind}'>{html.escape(text)}</p>"


def _score(scores: Scores, candidate: int) -> str:
    if not scores.known[candidate]:
        return "no score"
    mean, error = scores.results.means()[candidate], scores.errors[candidate]
    doubt = "" if scores.certified[candidate] else ", not certified"
    return f"{_number(mean)} ± {_number(error)}{doubt}"


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100.0 else f"{value:.3g}"


def _account(scores: Scores) -> str:
    """Return how many candidates have been scored, in which time, and how many are certified."""
    n, n_known = scores.known.size, int(scores.known.sum())
    n_open = int((scores.known & ~scores.certified).sum())
    question = scores.question
    parts = [f"Mean {question.score} ± standard error of {question.n_folds} folds"]
    if scores.is_complete:
        left = f" ({n - n_known} left out, whose fits take long)" if n_known < n else ""
        parts.append(f"{n_known} candidates{left} in {scores.seconds:.1f} s")
    else:
        limit = f" at its limit of {LIMITS.seconds:g} s" if scores.is_over else ""
        parts.append(f"the search was stopped{limit} with {n_known} of {n} candidates")
    parts.append(f"{n_open} of them not certified" if n_open else "all certified")
    return "; ".join(parts) + "."
