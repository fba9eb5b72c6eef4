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
from .data import NewRows, check_input, check_out, labels_of, load_model

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
@options.reading
@options.as_json
def predict(
    model_file: str, data: str, out: str, no_scores: bool, target: str | None, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Predict the labels of the rows of DATA by a saved MODEL.

    Columns are found by name, in any order; other columns, such as a known label, are ignored.
    Each line of the output has the label and its scores: g(x) for two classes, positive for the
    second, or one score per class.

    \b
    Examples:
      maxmargin predict fruit.mm new.csv --out labels.csv
      cat new.csv | maxmargin predict fruit.mm - --format csv --json
    """
    if out != "-":
        check_out(out, model_file, data)
    check_input(data)
    model, n = load_model(model_file), 0
    told: list[str] = []
    rows = NewRows(model, model_file, data, target, **given)
    with _writing(out) as stream, console.progress(f"predicting {data}") as bar:
        writer = csv.writer(stream, lineterminator="\n")
        for part in rows.parts(labelled=False):
            labels, scores = _answers(model, part.X, scored=not no_scores, told=told)
            if as_json:
                _write_json(stream, model, labels, scores, no_scores)
            else:
                if not n:
                    writer.writerow(_headings(model, no_scores))
                writer.writerows(labels[:, None].tolist() if no_scores else _joined(labels, scores))
            n += len(labels)
            bar.advance(f"{n} rows")
    for message in told:
        console.note(f"warning: {message}")
    if out != "-":
        click.echo(f"{n} rows labelled: {out}")


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
    """Return labels, and scores on request; warnings are appended to ``told``."""
    import numpy as np

    parts = []
    with console.collected_warnings() as warned:
        for rows in _suited(model, X):
            scores = np.asarray(model.decision_function(rows)) if scored else None
            # Two classes are decided by the scores; the votes of many may be equal.
            if scores is not None and scores.ndim == 1:
                labels = model.classes_[(scores >= 0).astype(int)]
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
    """Return the names of the scores: the classes, or their pairs."""
    from ..diagnostics.fitted_model import FittedModel

    fitted = FittedModel(model)
    return fitted.plane_names if fitted.shows_pairs else fitted.class_names


def _headings(model: ModelLike, no_scores: bool) -> list[str]:
    if no_scores:
        return ["label"]
    names = _score_names(model)
    return ["label", "score"] if len(names) == 2 else ["label", *(f"score {n}" for n in names)]


def _joined(labels: Any, scores: Any) -> list[list[Any]]:
    columns = scores.reshape(len(labels), -1).tolist()
    return [[label, *row] for label, row in zip(labels.tolist(), columns, strict=True)]


def _write_json(
    stream: IO[str], model: ModelLike, labels: Any, scores: Any, no_scores: bool
) -> None:
    import json

    names = _score_names(model)
    rows = [None] * len(labels) if no_scores else scores.tolist()
    for label, row in zip(labels.tolist(), rows, strict=True):
        record = {"label": label}
        if not no_scores:
            pair = isinstance(row, float)
            record |= {"score": row} if pair else {"scores": dict(zip(names, row, strict=True))}
        stream.write(json.dumps(console.plain(record), ensure_ascii=False) + "\n")


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@options.target
@options.reading
@options.as_json
def evaluate(model_file: str, data: str, target: str | None, as_json: bool, **given: Any) -> None:
    """Compare the predictions of MODEL for the rows of DATA with their labels.

    \b
    Examples:
      maxmargin evaluate fruit.mm test.csv
      maxmargin evaluate a9a.mm a9a.t.bz2 --json
    """
    check_input(data)
    model = load_model(model_file)
    from ..diagnostics.summary import confusion

    rows = NewRows(model, model_file, data, target, **given)
    told: list[str] = []
    record = confusion(model.classes_, _labelled(rows, told))
    for message in told:
        console.note(f"warning: {message}")
    if as_json:
        console.print_json(record)
        return
    console.print_facts(
        f"{Path(model_file).name} on {Path(data).name}",
        {"rows": record["rows"], "errors": record["errors"],
         "error": console.percent(record["error"])},
    )  # fmt: skip
    print_confusion(record)


def _labelled(rows: NewRows, told: list[str]) -> Iterator[Any]:
    """Yield true and predicted labels of the rows of a file."""
    with console.progress(f"evaluating {rows.data}") as bar:
        for part in rows.parts(labelled=True):
            given, _ = _answers(rows.model, part.X, scored=False, told=told)
            yield labels_of(rows.model, part.labels), given
            bar.advance(f"{len(part.labels)} rows")


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
