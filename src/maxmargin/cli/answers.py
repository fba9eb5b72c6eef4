"""Predictions of a model for the rows of a file, some at a time: written, or counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from . import console
from .data import NewRows, labels_of, targets_of
from .output import output

if TYPE_CHECKING:
    from ..arrays import Matrix
    from ..diagnostics.answers import Answers
    from ..diagnostics.fitted_model import ModelLike
    from ..diagnostics.metrics import AnyTally
    from ..files import DataTable
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
    scores, probabilities : list of str
        What the scores and probabilities are of; none where they are not written.
    form : str
        The format of the output.
    """

    heading: str
    scores: list[str]
    probabilities: list[str]
    form: str

    def write(self, out: str, rows: NewRows, told: list[str]) -> Iterator[int]:
        """Write the predictions of some rows at a time, and yield their number."""
        with output(out, self.form) as file:
            for part in rows.parts(labelled=False):
                columns = self._columns(rows.model, part, told)
                file.write(columns)
                yield part.X.shape[0]

    def _columns(self, model: ModelLike, part: DataTable, told: list[str]) -> dict[str, Any]:
        """Return the columns of the output: those that are kept, then what the model answers."""
        answers = _answers(model, part.X, self, told)
        own: dict[str, Any] = {self.heading: answers.labels}
        for what, names, values in (
            ("score", self.scores, answers.scores),
            ("probability", self.probabilities, answers.probabilities),
        ):
            if names:
                own |= self._named(what, names, values)
        kept = {} if part.kept is None else {str(c): part.kept[c] for c in part.kept.columns}
        own = {f"predicted_{name}" if name in kept else name: of for name, of in own.items()}
        for name in kept.keys() & own.keys():
            raise click.UsageError(
                f"--keep {name}: the output has a column of this name: keep others, or rename it."
            )
        return kept | own

    def _named(self, what: str, names: list[str], values: Any) -> dict[str, Any]:
        """Return scores or probabilities as columns; JSON has a record of several."""
        columns = values.reshape(len(values), -1)
        if self.form != "json":
            return {
                f"{what}_{name}" if name else what: columns[:, k] for k, name in enumerate(names)
            }
        if len(names) == 1:
            return {what: columns[:, 0]}
        of = Records(names, columns)
        return {"scores" if what == "score" else "probabilities": of}


@dataclass(frozen=True)
class Records:
    """A column of records: values by name."""

    names: list[str]
    values: Any

    def tolist(self) -> list[dict[str, float]]:
        """Return one record per row."""
        return [dict(zip(self.names, row, strict=True)) for row in self.values.tolist()]


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


def _all_answers(model: ModelLike, X: Matrix, told: list[str]) -> Answers:
    """Return the answers for rows, with scores; warnings are appended to ``told``."""
    from ..diagnostics.answers import answers, joined

    with console.collected_warnings() as warned:
        parts = [answers(model, rows) for rows in _suited(model, X)]
    _tell_once(told, warned)
    return joined(parts)


def _tell_once(told: list[str], warned: list[str]) -> None:
    told += [m for m in warned if m not in told and "valid feature names" not in m]


def _answers(model: ModelLike, X: Matrix, wanted: Predictions, told: list[str]) -> Answers:
    """Return the answers that are written; warnings are appended to ``told``."""
    import numpy as np

    from ..diagnostics.answers import Answers, joined
    from ..diagnostics.fitted_model import FittedModel

    parts, classes = [], FittedModel(model).classes
    with console.collected_warnings() as warned:
        for rows in _suited(model, X):
            scores = np.asarray(model.decision_function(rows)) if wanted.scores else None
            # Two classes are decided by the scores; the votes of many may be equal.
            if scores is not None and scores.ndim == 1:
                labels = classes[(scores >= 0).astype(int)]
            else:
                labels = np.asarray(model.predict(rows))
            proba = np.asarray(model.predict_proba(rows)) if wanted.probabilities else None
            parts.append(Answers(labels, scores, proba))
    _tell_once(told, warned)
    return joined(parts)


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
    """Return what the scores are of: classes, or pairs of them; "" of a one-class machine.

    The one score of two classes is that of the second, for which it is positive.
    """
    from ..diagnostics.fitted_model import FittedModel
    from ..multiclass import OneVsOne

    fitted = FittedModel(model)
    names = fitted.class_names
    if fitted.shows_pairs:
        return [f"{names[i]}_vs_{names[j]}" for i, j in OneVsOne.pairs(len(names))]
    if fitted.has_targets:
        return []
    return ([names[1]] if fitted.has_classes else [""]) if fitted.is_binary else names


def heading(model: ModelLike) -> str:
    """Return the name of the predictions."""
    return "prediction" if targets_of(model) == "numbers" else "label"
