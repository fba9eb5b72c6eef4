"""How good the answers are: a sentence, measures beside a baseline, confusions of classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnostics.fitted_model import FittedModel
from ..diagnostics.metrics import MEASURES, in_words, measure, rounded
from ..diagnostics.summary import outlier_bound
from ..files.targets import Targets
from .checked import HELD_OUT, TRAINING, CheckedRows

# Classes up to which the whole table is shown first, and above which it is left out.
FEW_CLASSES, MOST_CLASSES = 12, 60
# The largest confusions that are listed.
SHOWN_CONFUSIONS = 12


@dataclass(frozen=True)
class Cell:
    """A count of the confusion matrix, with its share of the true class for the colour."""

    count: int
    share: float
    is_right: bool


@dataclass(frozen=True)
class Confusion:
    """True labels by answers.

    Parameters
    ----------
    classes : list of str
        The columns.
    lines : list of (label, list of Cell, recall)
    largest : list of list of str
        True class, answer, rows, share of the true class: where there are many classes.
    per_class : list of list of str
        Class, recall, precision, F1, rows, the worst recall first.
    """

    classes: list[str]
    lines: list[tuple[str, list[Cell], str]]
    largest: list[list[str]]
    per_class: list[list[str]]

    @property
    def is_small(self) -> bool:
        """Whether all of it is shown at once."""
        return len(self.classes) <= FEW_CLASSES

    @property
    def is_shown(self) -> bool:
        """Whether the whole table is part of the page."""
        return len(self.classes) <= MOST_CLASSES


@dataclass(frozen=True)
class Part:
    """The measures of some rows.

    Parameters
    ----------
    name : str
        What the rows are called.
    sentence : str
    measures : list of (name, value, value of the baseline)
    baseline : str
        What the last column is; "" without one.
    confusion : Confusion or None
        None of models without classes.
    """

    name: str
    sentence: str
    measures: list[tuple[str, str, str]]
    baseline: str
    confusion: Confusion | None = None


def parts_of(checked: CheckedRows) -> list[Part]:
    """Return the measures of all parts of the rows, held-out rows first."""
    everything = {_all_rows(checked): np.ones(len(checked), dtype=bool)}
    return [_part(checked, *each) for each in (checked.parts or everything).items()]


def caution(checked: CheckedRows) -> str:
    """Return what is to be known about rows none of which were held out."""
    if HELD_OUT in checked.parts:
        return ""
    if _all_rows(checked) == TRAINING:
        what = "answers for new rows are usually worse"
        if not checked.fitted.has_classes and not checked.fitted.has_targets:
            what = "of new rows of the same kind, usually more are outliers"
        return (
            f"These are the rows that the model was fitted to: {what}. Hold rows out (maxmargin "
            "fit --test 0.25) to know by how much."
        )
    return "Whether the model was fitted to some of these rows is not known."


def _all_rows(checked: CheckedRows) -> str:
    is_own = checked.training is not None and len(checked.training) == len(checked)
    return TRAINING if is_own else "rows"


def _part(checked: CheckedRows, name: str, mask: Any) -> Part:
    fitted, y = checked.fitted, None if checked.y is None else checked.y[mask]
    targets: Targets = "classes"
    if not fitted.has_classes:
        targets = "numbers" if fitted.has_targets else "none"
        y = y.astype(float) if y is not None and targets == "numbers" else None
    baseline = _baseline(checked, targets)
    found = measure(targets, y, checked.given.of(mask), fitted.classes.tolist()
                    if fitted.has_classes else (), baseline)  # fmt: skip
    if targets == "none":
        return _outliers(fitted, name, found)
    beside = found.get("baseline", {})
    lines = [
        (called, in_words({key: found[key]}, named=False),
         in_words({key: beside[key]}, named=False) if key in beside else "–")
        for key, called in MEASURES[targets].items() if key in found
    ]  # fmt: skip
    lines = [(label, value.removeprefix(f"{label} "), other) for label, value, other in lines]
    if targets == "numbers":
        said = f"mean of the training targets, {rounded(beside['prediction'])}" if beside else ""
        return Part(name, _of_numbers(found, beside, name), lines, said)
    said = f"always “{beside['prediction']}”"
    return Part(name, _of_classes(found, name), lines, said, _confusion(found))


def _baseline(checked: CheckedRows, targets: Targets) -> Any:
    """Return the best constant answer by the training rows, where the model file has it."""
    if targets == "numbers":
        return (checked.facts.get("targets") or {}).get("mean")
    counts = checked.facts.get("classes") if targets == "classes" else None
    return max(counts, key=counts.__getitem__) if isinstance(counts, dict) and counts else None


def _of_classes(found: Mapping[str, Any], name: str) -> str:
    n, right = found["rows"], found["rows"] - found["errors"]
    beside = found["baseline"]
    sentence = (
        f"Of {n:,} {name}, the model puts {right:,} in the right class: {_percent(right / n)}. "
    )
    constant = 1.0 - beside["error"]
    if right / n > constant:
        return sentence + (
            f"Always answering “{beside['prediction']}” would be right for {_percent(constant)}."
        )
    return sentence + (
        f"That is no better than always answering “{beside['prediction']}”, which is right for "
        f"{_percent(constant)}."
    )


def _of_numbers(found: Mapping[str, Any], beside: Mapping[str, Any], name: str) -> str:
    sentence = (
        f"On {found['rows']:,} {name}, answers are off by {rounded(found['mae'])} on average "
        f"(R² {in_words({'r2': found['r2']}, named=False)}, where 1 is exact and 0 as good as the "
        "mean)."
    ).replace("R² R²", "R²")
    if not beside:
        return sentence
    constant = f"answering the mean of the training targets, off by {rounded(beside['mae'])}"
    if found["mae"] < beside["mae"]:
        return f"{sentence} That compares with always {constant}."
    return f"{sentence} That is no better than always {constant}."


def _outliers(fitted: FittedModel, name: str, found: Mapping[str, Any]) -> Part:
    share, nu = in_words({"outlier_share": found["outlier_share"]}), outlier_bound(fitted)
    sentence = f"{found['outliers']:,} of {found['rows']:,} {name} are outliers: {share}."
    beside = "–" if nu is None else _percent(nu)
    if nu is not None:
        sentence += f" ν = {nu:g} is the largest share that the fit allows of its training rows."
    return Part(name, sentence, [("outliers", share, beside)], "" if nu is None else "ν")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _confusion(found: Mapping[str, Any]) -> Confusion:
    classes, by_class = found["classes"], found["per_class"]
    labels = [*classes, *found["unknown_classes"]]
    lines = []
    for label, counts in zip(labels, found["confusion"], strict=True):
        n = max(sum(counts), 1)
        right = classes.index(label) if label in classes else -1
        cells = [Cell(count, count / n, k == right) for k, count in enumerate(counts)]
        lines.append((label, cells, _share(by_class[label]["recall"])))
    return Confusion(classes, lines, list(_largest(classes, lines)), _per_class(by_class))


def _largest(classes: list[str], lines: list[tuple[str, list[Cell], str]]) -> Iterator[list[str]]:
    """Yield the pairs of classes that are confused most often."""
    wrong = [
        (cell.count, cell.share, label, classes[k])
        for label, cells, _ in lines for k, cell in enumerate(cells)
        if cell.count and not cell.is_right
    ]  # fmt: skip
    for count, share, label, answer in sorted(wrong, key=lambda each: -each[0])[:SHOWN_CONFUSIONS]:
        yield [label, answer, f"{count:,}", _percent(share)]


def _per_class(by_class: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    recall = {name: of["recall"] for name, of in by_class.items()}
    order = sorted(by_class, key=lambda name: 2.0 if recall[name] is None else recall[name])
    return [
        [name, *(_share(by_class[name][key]) for key in ("recall", "precision", "f1")),
         f"{by_class[name]['support']:,}"]
        for name in order
    ]  # fmt: skip


def _share(value: float | None) -> str:
    return "–" if value is None else _percent(value)
