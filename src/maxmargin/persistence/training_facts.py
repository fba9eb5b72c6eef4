"""The facts that were saved with a model, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..diagnostics.metrics import CALLED, in_words, scorer_in_words
from .files import ADDED_KEYS


def training_facts(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what a model file says about its training, in words.

    Facts that were not written by the command line are listed as they are.
    """
    try:
        return _facts_of_fit(about)
    except (KeyError, TypeError, ValueError, AttributeError):
        return {str(name): str(fact) for name, fact in about.items() if name not in ADDED_KEYS}


def _facts_of_fit(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts that the command line writes, in words."""
    data = about["data"]
    rows, classes = about.get("training_rows", data["rows"]), data.get("classes")
    facts = {
        "trained on": f"{data['source']}: {rows} of {data['rows']} rows, {data['columns']} columns",
    }
    if data["target"] or classes is not None or "targets" in data:
        facts["target"] = str(data["target"] or "first on each line")
    if classes is not None:
        facts["rows per class"] = _some([f"{label} ({count})" for label, count in classes.items()])
    # Versions before 0.2 wrote the training error alone.
    training = about.get("training") or {"error": about["training_error"]}
    called = next(name for key, name in CALLED.items() if key in training)
    facts[called.format("training")] = in_words(training)
    if "test" in about:
        test = about["test"]
        facts[called.format("test")] = f"{in_words(test)} ({test['rows']} rows)"
    if "cv" in about:
        facts["cross-validation"] = in_words(about["cv"])
    if "search" in about:
        facts["cross-validation"] = search_in_words(about["search"])
    if "seconds" in about:
        facts["time"] = f"{about['seconds']:.3g} s"
    if "date" in about:
        facts["date"] = str(about["date"])
    if "maxmargin_version" in about:
        facts["written by"] = f"maxmargin {about['maxmargin_version']}"
    return facts


def search_in_words(search: Mapping[str, Any]) -> str:
    """Return how good the parameters are that a search has chosen.

    >>> chosen = {"score": 0.95, "standard_error": 0.01}
    >>> search_in_words({"chosen": chosen, "scoring": "accuracy", "folds": 5, "candidates": 49})
    'accuracy 0.9500 ± 0.0100 in 5 folds, chosen from 49 candidates'
    """
    score, folds = scorer_in_words(search["scoring"]), search["folds"]
    n, spread = search["candidates"], "one fold" if folds == 1 else f"{folds} folds"
    within = f"in {spread}, chosen from {n} candidates" if n > 1 else f"in {spread}"
    return f"{score} {score_in_words(search['chosen'])} {within}"


def score_in_words(candidate: Mapping[str, Any]) -> str:
    """Return the mean score of a candidate and its standard error, where it is known."""
    score, error = candidate["score"], candidate["standard_error"]
    # Shares and R² have four decimals; errors in the unit of the targets are of any size.
    form = ".4f" if score == 0.0 or 0.01 <= abs(score) < 10.0 else ".5g"
    spread = "" if error is None or math.isnan(error) else f" ± {error:{form.replace('5', '2')}}"
    return f"{score:{form}}{spread}"


def _some(words: list[str]) -> str:
    return ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
