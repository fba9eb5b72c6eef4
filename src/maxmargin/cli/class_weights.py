"""``--class-weight``: weights of classes by the labels of the file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import click


class ClassWeight(click.ParamType):  # type: ignore[type-arg]
    """``balanced``, or labels with weights, such as ``pos=5,neg=1``."""

    name = "weights"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return "balanced", or a dict of weights by the texts of the labels."""
        if value == "balanced" or isinstance(value, dict):
            return value
        weights: dict[str, float] = {}
        for part in str(value).split(","):
            label, equals, weight = part.rpartition("=")
            label = label.strip()
            if not equals or not label:
                self.fail(f"must be balanced or LABEL=WEIGHT,…, got {value!r}.", param, ctx)
            if label in weights:
                self.fail(f"{label!r} has two weights in {value!r}.", param, ctx)
            try:
                weights[label] = float(weight)
            except ValueError:
                weights[label] = math.nan
            if not (math.isfinite(weights[label]) and weights[label] > 0):
                self.fail(f"a weight must be a number > 0, got {part.strip()!r}.", param, ctx)
        return weights


def use_labels(model: Any, classes: Iterable[object], source: str) -> None:
    """Let a model have the labels of a file in place of texts; raise for labels it has not.

    Classes that are not named keep the weight 1.
    """
    from difflib import get_close_matches

    from ..files.table import cut, listed
    from .data import label_meanings

    given = getattr(model, "class_weight", None)
    if not isinstance(given, dict):
        return
    known = list(classes)
    meant = label_meanings(known, given)
    for text, label in meant.items():
        if label not in known:
            close = get_close_matches(str(text), [str(each) for each in known], 1)
            hint = f" Did you mean {cut(close[0])}?" if close else ""
            raise click.UsageError(
                f"--class-weight: there is no class {cut(text)} in {source}; it has "
                f"{listed(known)}.{hint}"
            )
    weights = {label: given[text] for text, label in meant.items()}
    if len(weights) < len(given):
        raise click.UsageError("--class-weight: a label must have one weight, got two.")
    model.set_params(class_weight=weights)
