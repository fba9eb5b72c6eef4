"""How good the labels of a classifier are: counts of rows that add up, and what follows from them.

Error, balanced accuracy, precision, recall and F1 follow from the confusion matrix, the area under
the ROC curve from the scores of all rows, the log loss from a sum over them. The definitions are
those of scikit-learn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats, Labels
from .ranking import RankTally

# Why a measure is undefined.
ONE_CLASS = "all rows are of one class"
UNKNOWN = "some labels are not classes of the model"


class LogLoss(NamedTuple):
    """The sum of −log p of the true classes; ``unknown`` rows have no such class."""

    total: float
    unknown: int

    def merged(self, other: LogLoss) -> LogLoss:
        """Return the sum of both."""
        return LogLoss(self.total + other.total, self.unknown + other.unknown)


class LabelTally(NamedTuple):
    """Rows by (true label, predicted label), and what was added up of their scores.

    Parameters
    ----------
    counts : Counter
    ranks : RankTally, optional
        None where there were no scores.
    log_loss : LogLoss, optional
        None where there were no probabilities.
    """

    counts: Counter[tuple[str, str]]
    ranks: RankTally | None = None
    log_loss: LogLoss | None = None

    @classmethod
    def of(
        cls,
        truth: Labels,
        given: Labels,
        scores: Floats | None = None,
        probabilities: Floats | None = None,
        classes: Iterable[object] = (),
    ) -> LabelTally:
        """Count true and predicted labels.

        ``scores`` and ``probabilities``, if any, have one column per class, in the order of
        ``classes``; the scores of two classes are one column, large for the second.
        """
        names = list(map(str, truth.tolist()))
        counts = Counter(zip(names, map(str, given.tolist()), strict=True))
        if scores is None and probabilities is None:
            return cls(counts)
        order = {str(label): code for code, label in enumerate(classes)}
        codes = np.array([order.get(name, -1) for name in names], dtype=np.int64)
        known = codes >= 0
        ranks = None if scores is None else RankTally.of(scores[known], codes[known])
        if probabilities is None:
            return cls(counts, ranks)
        true = probabilities[known, codes[known]]
        surprise = -np.log(np.clip(true, np.finfo(true.dtype).eps, 1.0))
        return cls(counts, ranks, LogLoss(float(surprise.sum()), int((~known).sum())))

    def merged(self, other: LabelTally) -> LabelTally:
        """Return the counts of both."""
        ranks, loss = None, None
        if self.ranks is not None and other.ranks is not None:
            ranks = self.ranks.merged(other.ranks)
        if self.log_loss is not None and other.log_loss is not None:
            loss = self.log_loss.merged(other.log_loss)
        return LabelTally(self.counts + other.counts, ranks, loss)

    def record(self, classes: Iterable[object], majority: str | None = None) -> dict[str, Any]:
        """Return the measures, the table of counts, and what a constant answer would reach.

        ``majority`` is that answer: the most frequent class of the training rows, or by default of
        these rows.
        """
        counts, known = self.counts, [str(label) for label in classes]
        unknown = sorted({truth for truth, _ in counts} - set(known))
        matrix = [[counts[truth, given] for given in known] for truth in [*known, *unknown]]
        table = _Table.of(np.array(matrix, dtype=np.int64).reshape(-1, len(known)))
        n = sum(counts.values())
        errors = n - int(table.right.sum())
        found: dict[str, Any] = {"rows": n, "errors": errors, "error": errors / n}
        found |= {"balanced_accuracy": table.balanced_accuracy, "macro_f1": table.macro_f1}
        by_class, reasons = table.by_class([*known, *unknown]), dict[str, str]()
        if self.ranks is not None:
            found |= _ranked(self.ranks, known, unknown, by_class, reasons)
        if self.log_loss is not None:
            found["log_loss"] = None if unknown else self.log_loss.total / n
            reasons |= {"log_loss": UNKNOWN} if unknown else {}
        return found | {
            "classes": known, "unknown_classes": unknown, "confusion": matrix,
            "per_class": by_class, "baseline": table.baseline([*known, *unknown], majority),
            **({"undefined": reasons} if reasons else {}),
        }  # fmt: skip


def _ranked(
    ranks: RankTally, known: list[str], unknown: list[str],
    by_class: dict[str, dict[str, Any]], reasons: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    """Return the area under the ROC curve, the mean over the classes that have rows."""
    areas = ranks.areas()
    if len(known) > 2:
        for name, each in zip(known, areas, strict=True):
            by_class[name]["auc"] = None if each is None or unknown else each.area
    defined = [each for each in areas if each is not None]
    if unknown or not defined:
        reasons["auc"] = UNKNOWN if unknown else ONE_CLASS
        return {"auc": None}
    bound = float(np.mean([each.bound for each in defined]))
    area = float(np.mean([each.area for each in defined]))
    # A bound of rounding errors only is none.
    return {"auc": area} | ({"auc_bound": bound} if bound > 1e-12 else {})


class _Table(NamedTuple):
    """Rows of each true label, rows given each class, and rows where both agree."""

    true: Labels
    given: Labels
    right: Labels

    @classmethod
    def of(cls, matrix: Labels) -> _Table:
        """Return the sums of a confusion matrix, whose rows may be more than its columns."""
        n_labels, n_classes = matrix.shape
        given, right = np.zeros(n_labels, dtype=np.int64), np.zeros(n_labels, dtype=np.int64)
        given[:n_classes], right[:n_classes] = matrix.sum(axis=0), matrix.diagonal()
        return cls(matrix.sum(axis=1), given, right)

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the labels that have rows."""
        present = self.true > 0
        return float(np.mean(self.right[present] / self.true[present]))

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that are true or predicted somewhere."""
        sums = self.true + self.given
        return float(np.mean(2.0 * self.right[sums > 0] / sums[sums > 0]))

    def by_class(self, labels: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return precision, recall, F1 and rows of every label.

        The precision of a class that has rows but is never predicted is 0; what has neither is
        undefined, None.
        """
        found = {}
        columns = (part.tolist() for part in self)
        for label, true, given, right in zip(labels, *columns, strict=True):
            precision = right / given if given else 0.0 if true else None
            found[label] = {
                "precision": precision,
                "recall": right / true if true else None,
                "f1": 2.0 * right / (true + given) if true + given else None,
                "support": true,
            }
        return found

    def baseline(self, labels: Sequence[str], majority: str | None) -> dict[str, Any]:
        """Return the measures of one class as the answer to everything."""
        if majority is None:
            majority = labels[int(self.true.argmax())]
        rows = dict(zip(labels, self.true.tolist(), strict=True)).get(majority, 0)
        return {
            "prediction": majority,
            "error": 1.0 - rows / int(self.true.sum()),
            "balanced_accuracy": (1.0 if rows else 0.0) / int((self.true > 0).sum()),
        }


def of_all_rows(tallies: Sequence[LabelTally]) -> dict[str, Any]:
    """Return the confusion matrix and the measures by class of folds, each row counted once."""
    counts = sum((tally.counts for tally in tallies), Counter[tuple[str, str]]())
    # Of a class with fewer rows than there are folds, a fold may have all.
    found = LabelTally(counts).record(sorted({label for pair in counts for label in pair}))
    return {key: found[key] for key in ("classes", "confusion", "per_class")}


def majority_of(y: Labels) -> str:
    """Return the most frequent label, the first of several.

    >>> majority_of(np.array(["b", "a", "b"]))
    'b'
    """
    labels, counts = np.unique(y, return_counts=True)
    return str(labels[counts.argmax()])
