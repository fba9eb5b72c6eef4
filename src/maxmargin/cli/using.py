"""``predict`` and ``evaluate``: models on new rows, some at a time."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from . import console, options
from .tables import facts_of, labels_of, load_model


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--out", default="-", show_default=True, help="A CSV file; -: standard output.")
@click.option("--no-scores", is_flag=True, help="Labels only.")
@options.target
@options.reading
@options.as_json
def predict(
    model_file: str, data: str, out: str, no_scores: bool, target: str | None, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Label the rows of DATA by a saved MODEL.

    Columns are found by their names, in any order; others, such as an old label, are ignored.
    Each line of the answer has the label and its scores: g(x) of two classes, which is positive
    for the second, or one for each class.

    \b
    Examples:
      maxmargin predict fruit.mm new.csv --out labels.csv
      cat new.csv | maxmargin predict fruit.mm - --format csv --json
    """
    model = load_model(model_file)
    n = 0
    with _writing(out) as stream, console.progress(f"predicting {data}") as bar:
        writer = csv.writer(stream, lineterminator="\n")
        for part in _parts(model, data, target, given):
            labels, scores = _answers(model, part.X)
            if as_json:
                _write_json(stream, model, labels, scores, no_scores)
            else:
                if not n:
                    writer.writerow(_headings(model, no_scores))
                rows = labels[:, None].tolist() if no_scores else _joined(labels, scores)
                writer.writerows(rows)
            n += len(labels)
            bar.advance(f"{n} rows")
    if out != "-":
        click.echo(f"{n} rows labelled: {out}")


@contextmanager
def _writing(out: str) -> Iterator[IO[str]]:
    """Yield a stream; a file appears under its name only when it is complete."""
    if out == "-":
        yield sys.stdout
        return
    from ..persistence.writing import replacing

    with replacing(out) as part, open(part, "w", encoding="utf-8", newline="") as stream:
        yield stream


def _parts(
    model: Any, data: str, target: str | None, given: dict[str, Any], *, labelled: bool = False
) -> Iterator[Any]:
    """Yield the rows of a file as the model wants them."""
    from .. import files

    names = getattr(model, "feature_names_in_", None)
    yield from files.batches(
        data,
        None if names is None else [str(name) for name in names],
        target=target,
        labelled=labelled,
        format=given["format"],
        separator=given["separator"],
        header=not given["no_header"],
        n_features=int(model.n_features_in_),
    )


def _answers(model: Any, X: Any) -> tuple[Any, Any]:
    import numpy as np

    with console.collected_warnings():  # an array has no names to compare
        if hasattr(X, "columns") and getattr(model, "feature_names_in_", None) is None:
            X = X.to_numpy()  # names mean nothing to a model that was fitted without
        scores = np.asarray(model.decision_function(X))
        return np.asarray(model.predict(X)), scores


def _headings(model: Any, no_scores: bool) -> list[str]:
    classes = [str(label) for label in model.classes_]
    if no_scores:
        return ["label"]
    return ["label", "score"] if len(classes) == 2 else ["label", *(f"score {c}" for c in classes)]


def _joined(labels: Any, scores: Any) -> list[list[Any]]:
    columns = scores.reshape(len(labels), -1).tolist()
    return [[label, *row] for label, row in zip(labels.tolist(), columns, strict=True)]


def _write_json(stream: IO[str], model: Any, labels: Any, scores: Any, no_scores: bool) -> None:
    import json

    classes = [str(label) for label in model.classes_]
    for label, row in zip(labels.tolist(), scores.tolist(), strict=True):
        record = {"label": label}
        if not no_scores:
            pair = isinstance(row, float)
            record |= {"score": row} if pair else {"scores": dict(zip(classes, row, strict=False))}
        stream.write(json.dumps(console.plain(record), ensure_ascii=False) + "\n")


@click.command()
@click.argument("model_file", metavar="MODEL")
@click.argument("data", metavar="DATA")
@options.target
@options.reading
@options.as_json
def evaluate(model_file: str, data: str, target: str | None, as_json: bool, **given: Any) -> None:
    """Compare the labels that MODEL gives to the rows of DATA with those that they have.

    \b
    Examples:
      maxmargin evaluate fruit.mm test.csv
      maxmargin evaluate a9a.mm a9a.t.bz2 --json
    """
    model = load_model(model_file)
    target = target or facts_of(model_file).get("data", {}).get("target")
    record = confusion(model, _labelled(model, data, target, given))
    if as_json:
        console.print_json(record)
        return
    console.print_facts(
        f"{Path(model_file).name} on {Path(data).name}",
        {"rows": record["rows"], "errors": record["errors"],
         "error": console.percent(record["error"])},
    )  # fmt: skip
    print_confusion(record)


def _labelled(model: Any, data: str, target: str | None, given: dict[str, Any]) -> Iterator[Any]:
    """Yield true and predicted labels of the rows of a file."""
    with console.progress(f"evaluating {data}") as bar:
        for part in _parts(model, data, target, given, labelled=True):
            yield labels_of(model, part.y), _answers(model, part.X)[0]
            bar.advance(f"{len(part.y)} rows")


def confusion(model: Any, pairs: Iterator[tuple[Any, Any]]) -> dict[str, Any]:
    """Count what true labels (rows) were taken for (columns)."""
    from collections import Counter

    counts: Counter[tuple[str, str]] = Counter()
    for truth, given in pairs:
        counts.update(zip(map(str, truth.tolist()), map(str, given.tolist()), strict=True))
    classes = [str(label) for label in model.classes_]
    unknown = sorted({truth for truth, _ in counts} - set(classes))
    n = sum(counts.values())
    errors = sum(count for (truth, given), count in counts.items() if truth != given)
    matrix = [[counts[truth, given] for given in classes] for truth in [*classes, *unknown]]
    return {"rows": n, "errors": errors, "error": errors / n, "classes": classes,
            "unknown_classes": unknown, "confusion": matrix}  # fmt: skip


def print_confusion(record: dict[str, Any]) -> None:
    """Print the table of true against given labels, with the recall of every class."""
    rows = []
    for label, counts in zip(
        [*record["classes"], *record["unknown_classes"]], record["confusion"], strict=True
    ):
        known = label in record["classes"] and sum(counts)
        right = counts[record["classes"].index(label)] / sum(counts) if known else None
        rows.append([label, *counts, console.percent(right)])
    console.print_table(["true \\ given", *record["classes"], "found"], rows)


COMMANDS = [predict, evaluate]
