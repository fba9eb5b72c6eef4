"""Measures of predictions: as tables for people, and as a file of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from . import console

# Classes up to which tables by class are shown without --verbose.
SHOWN_CLASSES = 20
# Keys of a record of ``fit`` and ``tune`` that --metrics-out writes.
FIT_KEYS = (
    "model", "parameters", "data", "training_rows", "training", "test", "cv", "search",
    "support_vectors", "certificate", "holds", "seconds",
)  # fmt: skip

metrics_out = click.option(
    "--metrics-out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the measures to this file, as JSON.",
)


def write_metrics(path: str | None, command: str, record: Mapping[str, Any]) -> None:
    """Write measures as strict JSON, where a file is asked for: the whole file, or none.

    The keys are ``command``, ``maxmargin_version`` and those of ``record``; what is undefined or
    infinite is null.
    """
    if path is None:
        return
    from .. import __version__
    from ..persistence.writing import write_text

    whole = {"command": command, "maxmargin_version": __version__, **console.plain(record)}
    text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=2)
    write_text(path, iter([text, "\n"]))


def fit_metrics(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what --metrics-out writes of a fit."""
    return {key: record[key] for key in FIT_KEYS if key in record}


def baseline_in_words(baseline: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the measures of a constant answer, by what it is called."""
    from ..diagnostics.metrics import in_words
    from ..files.table import cut

    if not baseline:
        return {}
    if "r2" in baseline:
        return {"the mean instead": in_words(baseline)}
    return {"baseline": f"{in_words(baseline)} (always {cut(baseline.get('prediction', ''))})"}


def undefined_in_words(record: Mapping[str, Any]) -> dict[str, str]:
    """Return why measures have no value."""
    from ..diagnostics.metrics import NAMES

    reasons = record.get("undefined", {})
    return {"undefined": "; ".join(f"{NAMES[key]}: {why}" for key, why in reasons.items())}


def print_by_class(record: Mapping[str, Any], title: str | None = None) -> None:
    """Print precision, recall and F1 of every class; of many classes only if it is asked for."""
    by_class = record["per_class"]
    if len(by_class) > SHOWN_CLASSES and not console.is_verbose():
        click.echo(f"{len(by_class)} classes: -v shows the measures of each")
        return
    has_areas = any("auc" in of for of in by_class.values())
    rows = []
    for label, of in by_class.items():
        shares = [console.percent(of[key]) for key in ("precision", "recall")]
        areas = [_decimals(of.get("auc"))] if has_areas else []
        rows.append([label, *shares, _decimals(of["f1"]), *areas, of["support"]])
    columns = ["class", "precision", "recall", "F1", *(["AUC"] if has_areas else []), "rows"]
    console.print_table(columns, rows, title=title)


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def print_confusion(record: Mapping[str, Any]) -> None:
    """Print the table of true and predicted labels; of many classes only if it is asked for."""
    labels = [*record["classes"], *record["unknown_classes"]]
    if len(labels) > SHOWN_CLASSES and not console.is_verbose():
        return
    rows = [[label, *counts] for label, counts in zip(labels, record["confusion"], strict=True)]
    console.print_table(["true \\ predicted", *record["classes"]], rows)
