"""``predict`` and ``evaluate``: saved models on new rows, some at a time."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from . import console, options
from .data import (
    NewRows,
    check_input,
    check_out,
    facts_of,
    labels_of,
    load_model,
    targets_of,
    training_of,
)

if TYPE_CHECKING:
    from ..arrays import Matrix
    from ..diagnostics.fitted_model import ModelLike

# Rows that are made dense at a time.
DENSE_ROWS = 4096


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--out", default="-", show_default=True, help="A CSV file; - is standard output.")
@click.option("--no-scores", is_flag=True, help="Write labels only.")
@options.target
@options.device
@options.reading
@options.as_json
def predict(
    model_file: str, data: str, out: str, no_scores: bool, target: str | None, device: str | None,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Predict the labels or numbers of the rows of DATA by a saved MODEL.

    Columns are found by name, in any order; other columns, such as a known label, are ignored.
    Each line of the output has the label and its scores: g(x) for two classes, positive for the
    second, or one score per class. A one-class model gives -1 to outliers and 1 to others, with its
    score, negative for outliers; a regression gives one number. A model that was fitted on a GPU
    predicts there if there is one, unless --device says otherwise.

    \b
    Examples:
      maxmargin predict fruit.mm new.csv --out labels.csv
      maxmargin predict houses.mm new.csv --out prices.csv
      cat new.csv | maxmargin predict fruit.mm - --format csv --json
    """
    if out != "-":
        check_out(out, model_file, data)
    check_input(data)
    model, n = load_model(model_file), 0
    options.use_device(model, device)
    names = _score_names(model)
    if not names:
        options.forbid(("no_scores",), f"has no effect: {model_file} predicts numbers.")
    names = [] if no_scores else names
    told: list[str] = []
    rows = NewRows(model, model_file, data, target, **given)
    with _writing(out) as stream, console.progress(f"predicting {data}") as bar:
        writer = csv.writer(stream, lineterminator="\n")
        for part in rows.parts(labelled=False):
            answers, scores = _answers(model, part.X, scored=bool(names), told=told)
            if as_json:
                _write_json(stream, _heading(model), names, answers, scores)
            else:
                if not n:
                    writer.writerow([_heading(model), *_score_headings(names)])
                writer.writerows(_joined(answers, scores) if names else answers[:, None].tolist())
            n += len(answers)
            bar.advance(f"{n} rows")
    for message in told:
        console.note(f"warning: {message}")
    if out != "-":
        done = "predicted" if targets_of(model) == "numbers" else "labelled"
        click.echo(f"{n} rows {done}: {out}")


@contextmanager
def _writing(out: str) -> Iterator[IO[str]]:
    """Yield a stream; a file is created when the output is complete."""
    if out == "-":
        yield sys.stdout
        return
    if Path(out).exists() and not Path(out).is_file():  # a pipe, or /dev/stdout
        with open(out, "w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    from ..persistence.writing import replacing

    with replacing(out) as part, open(part, "w", encoding="utf-8", newline="") as stream:
        yield stream


def _answers(model: ModelLike, X: Matrix, *, scored: bool, told: list[str]) -> tuple[Any, Any]:
    """Return predictions, and scores on request; warnings are appended to ``told``."""
    import numpy as np

    from ..diagnostics.fitted_model import FittedModel

    parts, classes = [], FittedModel(model).classes
    with console.collected_warnings() as warned:
        for rows in _suited(model, X):
            scores = np.asarray(model.decision_function(rows)) if scored else None
            # Two classes are decided by the scores; the votes of many may be equal.
            if scores is not None and scores.ndim == 1:
                labels = classes[(scores >= 0).astype(int)]
            else:
                labels = np.asarray(model.predict(rows))
            parts.append((labels, scores))
    told += [m for m in warned if m not in told and "valid feature names" not in m]
    labels = np.concatenate([part[0] for part in parts])
    return labels, np.concatenate([part[1] for part in parts]) if scored else None


def _suited(model: ModelLike, X: Matrix) -> Iterator[Any]:
    """Yield rows for a model: without names if it has none, dense if its vectors are."""
    from scipy import sparse

    if hasattr(X, "columns") and getattr(model, "feature_names_in_", None) is None:
        X = X.to_numpy()
    vectors = getattr(model, "support_vectors_", None)
    if sparse.issparse(X) and vectors is not None and not sparse.issparse(vectors):
        for start in range(0, X.shape[0], DENSE_ROWS):
            yield X[start : start + DENSE_ROWS].toarray()
    else:
        yield X


def _score_names(model: ModelLike) -> list[str]:
    """Return the names of the scores: the classes, or their pairs; none of a regression."""
    from ..diagnostics.fitted_model import FittedModel

    fitted = FittedModel(model)
    return fitted.plane_names if fitted.shows_pairs else fitted.class_names


def _heading(model: ModelLike) -> str:
    """Return the name of the predictions."""
    return "prediction" if targets_of(model) == "numbers" else "label"


def _score_headings(names: list[str]) -> list[str]:
    """Return the columns of the scores: one of two classes, else one per name."""
    return ["score"] if len(names) == 2 else [f"score {name}" for name in names]


def _joined(labels: Any, scores: Any) -> list[list[Any]]:
    columns = scores.reshape(len(labels), -1).tolist()
    return [[label, *row] for label, row in zip(labels.tolist(), columns, strict=True)]


def _write_json(stream: IO[str], heading: str, names: list[str], answers: Any, scores: Any) -> None:
    import json

    rows = scores.tolist() if names else [None] * len(answers)
    for answer, row in zip(answers.tolist(), rows, strict=True):
        record = {heading: answer}
        if names:
            pair = isinstance(row, float)
            record |= {"score": row} if pair else {"scores": dict(zip(names, row, strict=True))}
        stream.write(json.dumps(console.plain(record), ensure_ascii=False) + "\n")


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@options.target
@options.device
@options.reading
@options.as_json
def evaluate(
    model_file: str, data: str, target: str | None, device: str | None, as_json: bool, **given: Any
) -> None:
    """Compare the predictions of MODEL for the rows of DATA with their labels or numbers.

    A regression is compared with the mean of its training targets. A one-class model needs no
    labels: the outliers are counted, for each label where DATA has labels.

    \b
    Examples:
      maxmargin evaluate fruit.mm test.csv
      maxmargin evaluate a9a.mm a9a.t.bz2 --json
      maxmargin evaluate houses.mm new.csv --target price
      maxmargin evaluate sensors.mm new.csv --target label
    """
    check_input(data)
    model = load_model(model_file)
    options.use_device(model, device)
    told: list[str] = []
    record = _measured(NewRows(model, model_file, data, target, **given), told)
    for message in told:
        console.note(f"warning: {message}")
    if as_json:
        console.print_json(record)
        return
    title = f"{Path(model_file).name} on {Path(data).name}"
    {"classes": _print_classes, "numbers": _print_numbers, "none": _print_outliers}[
        targets_of(model)
    ](title, record)


def _measured(rows: NewRows, told: list[str]) -> dict[str, Any]:
    """Return the measures of the predictions for the rows of a file."""
    from ..diagnostics.fitted_model import FittedModel
    from ..diagnostics.metrics import confusion, outlier_counts, regression_errors
    from ..diagnostics.summary import outlier_bound

    fitted, pairs = FittedModel(rows.model), _pairs(rows, told)
    if fitted.has_classes:
        return confusion(fitted.classes, pairs)
    if fitted.has_targets:
        learnt = training_of(facts_of(rows.model_file)).get("targets", {})
        return regression_errors(pairs, learnt.get("mean"))
    return outlier_counts(pairs) | {"nu": outlier_bound(fitted)}


def _pairs(rows: NewRows, told: list[str]) -> Iterator[Any]:
    """Yield true and predicted labels or numbers of the rows of a file."""
    from ..diagnostics.fitted_model import FittedModel

    classes = FittedModel(rows.model).classes.tolist()
    with console.progress(f"evaluating {rows.data}") as bar:
        for part in rows.parts(labelled=True):
            given, _ = _answers(rows.model, part.X, scored=False, told=told)
            yield labels_of(classes, part.y) if classes and part.y is not None else part.y, given
            bar.advance(f"{len(given)} rows")


def _print_classes(title: str, record: dict[str, Any]) -> None:
    console.print_facts(
        title,
        {"rows": record["rows"], "errors": record["errors"],
         "error": console.percent(record["error"])},
    )  # fmt: skip
    print_confusion(record)


def _print_numbers(title: str, record: dict[str, Any]) -> None:
    from ..diagnostics.metrics import in_words

    baseline = record.get("baseline")
    facts = {
        "rows": record["rows"],
        "measures": in_words(record),
        "the mean instead": baseline and in_words(baseline),
    }
    console.print_facts(title, facts)


def _print_outliers(title: str, record: dict[str, Any]) -> None:
    share = console.percent(record["outlier_share"])
    share += "" if record["nu"] is None else f" (ν = {record['nu']:g})"
    console.print_facts(
        title,
        {"rows": record["rows"], "outliers": record["outliers"], "share of outliers": share},
    )
    if record["labels"]:
        rows = [
            [label or "(none)", of["rows"], of["outliers"],
             console.percent(of["outliers"] / of["rows"])]
            for label, of in record["labels"].items()
        ]  # fmt: skip
        console.print_table(["label", "rows", "called outliers", "share"], rows)


def print_confusion(record: dict[str, Any]) -> None:
    """Print the table of true and predicted labels, with the recall of every class."""
    rows = []
    for label, counts in zip(
        [*record["classes"], *record["unknown_classes"]], record["confusion"], strict=True
    ):
        known = label in record["classes"] and sum(counts)
        right = counts[record["classes"].index(label)] / sum(counts) if known else None
        rows.append([label, *counts, console.percent(right)])
    console.print_table(["true \\ predicted", *record["classes"], "recall"], rows)


COMMANDS = [predict, evaluate]
