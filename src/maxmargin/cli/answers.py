"""Predictions of a model for the rows of a file, some at a time: written, or counted."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from . import console
from .data import NewRows, labels_of, targets_of

if TYPE_CHECKING:
    from ..arrays import Matrix
    from ..diagnostics.answers import Answers
    from ..diagnostics.fitted_model import ModelLike
    from ..diagnostics.metrics import AnyTally
    from .held_out import HeldOut

# Rows that are made dense at a time.
DENSE_ROWS = 4096


@dataclass(frozen=True)
class Predictions:
    """What is written of the predictions of a model.

    Parameters
    ----------
    heading : str
        The name of the predictions.
    names : list of str
        The names of the scores; none where scores are not written.
    as_json : bool
        JSON, a record per line, instead of CSV.
    """

    heading: str
    names: list[str]
    as_json: bool

    def write(self, stream: IO[str], rows: NewRows, told: list[str]) -> Iterator[int]:
        """Write the predictions of some rows at a time, and yield their number."""
        writer, n, names = csv.writer(stream, lineterminator="\n"), 0, self.names
        for part in rows.parts(labelled=False):
            answers, scores = _answers(rows.model, part.X, scored=bool(names), told=told)
            if self.as_json:
                _write_json(stream, self.heading, names, answers, scores)
            else:
                if not n:
                    writer.writerow([self.heading, *_score_headings(names)])
                writer.writerows(_joined(answers, scores) if names else answers[:, None].tolist())
            n += len(answers)
            yield len(answers)


def tally_rows(
    rows: NewRows,
    told: list[str],
    bar: console.Progress | None = None,
    held_out: HeldOut | None = None,
) -> AnyTally:
    """Compare the predictions for the rows of a file with their labels or numbers, and count.

    Rows that were held out of the fit, and the others, are also counted apart.
    """
    from ..diagnostics.fitted_model import FittedModel
    from ..diagnostics.metrics import merged_tallies, tally_of

    classes, targets = FittedModel(rows.model).classes.tolist(), targets_of(rows.model)
    baseline = baseline_of(rows)

    def tallies() -> Iterator[Any]:
        for part in rows.parts(labelled=True):
            given = _all_answers(rows.model, part.X, told)
            y = labels_of(classes, part.y) if classes and part.y is not None else part.y
            if held_out is not None:
                is_held = held_out.mask(part.X, y)
                for key in {*is_held.tolist()}:
                    chosen = is_held == key
                    truth = None if y is None else y[chosen]
                    some = tally_of(targets, truth, given.of(chosen), classes, baseline)
                    held_out.tallies[key].append(some)
            yield tally_of(targets, y, given, classes, baseline)
            if bar is not None:
                bar.advance(f"{len(given.labels)} rows")

    return merged_tallies(tallies())


def baseline_of(rows: NewRows) -> Any:
    """Return the mean of the training targets, or their most frequent class, where it is known."""
    targets = targets_of(rows.model)
    if targets == "numbers":
        return rows.learnt.get("targets", {}).get("mean")
    counts = rows.learnt.get("classes") if targets == "classes" else None
    # Facts of other programs may be anything.
    return max(counts, key=counts.__getitem__) if isinstance(counts, dict) and counts else None


@contextmanager
def writing(out: str) -> Iterator[IO[str]]:
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


def _all_answers(model: ModelLike, X: Matrix, told: list[str]) -> Answers:
    """Return the answers for rows, with scores; warnings are appended to ``told``."""
    from ..diagnostics.answers import answers, joined

    with console.collected_warnings() as warned:
        parts = [answers(model, rows) for rows in _suited(model, X)]
    _tell_once(told, warned)
    return joined(parts)


def _tell_once(told: list[str], warned: list[str]) -> None:
    told += [m for m in warned if m not in told and "valid feature names" not in m]


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
    _tell_once(told, warned)
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


def score_names(model: ModelLike) -> list[str]:
    """Return the names of the scores: the classes, or their pairs; none of a regression."""
    from ..diagnostics.fitted_model import FittedModel

    fitted = FittedModel(model)
    return fitted.plane_names if fitted.shows_pairs else fitted.class_names


def heading(model: ModelLike) -> str:
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
