"""The facts that were saved with a model, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..diagnostics.metrics import CALLED, in_words
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
        facts[called.format("test")] = f"{in_words(test)} of {test['rows']} rows"
    if "cv" in about:
        facts["cross-validation"] = in_words(about["cv"])
    if "seconds" in about:
        facts["time"] = f"{about['seconds']:.3g} s"
    if "date" in about:
        facts["date"] = str(about["date"])
    if "maxmargin_version" in about:
        facts["written by"] = f"maxmargin {about['maxmargin_version']}"
    return facts


def _some(words: list[str]) -> str:
    return ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
