"""How good predictions are: measures of classes, of numbers, and shares of outliers.

Those of classes are in `class_metrics`. Every measure takes pairs of arrays, true and predicted
values of some rows at a time, so that files of any size can be measured in pieces.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Labels
from .answers import Answers
from .class_metrics import LabelTally, majority_of

if TYPE_CHECKING:
    from ..files.targets import Targets

# Names of the measures, by the kind of target.
MEASURES: dict[str, dict[str, str]] = {
    "classes": {
        "error": "error", "balanced_accuracy": "balanced accuracy", "macro_f1": "macro F1",
        "auc": "AUC", "log_loss": "log loss",
    },
    "numbers": {"r2": "R²", "mae": "MAE", "rmse": "RMSE"},
    "none": {"outlier_share": "outliers"},
}  # fmt: skip
# What the measures of some rows are called, by the first of them.
CALLED = {"error": "{} error", "r2": "{}", "outlier_share": "{} outliers"}
NAMES = {key: name for names in MEASURES.values() for key, name in names.items()}
SHARES = ("error", "outlier_share")
PERCENT = (*SHARES, "balanced_accuracy")
# Targets that differ by less than this, relative to the largest, are equal.
ROUNDING = 1e-15
# Distinct labels of the rows of a one-class machine that are counted by themselves; classes whose
# confusion matrix is saved with a model.
MOST_LABELS = 50


def measure(
    targets: Targets,
    truth: Labels | None,
    given: Answers,
    classes: Iterable[object] = (),
    baseline: Any = None,
) -> dict[str, Any]:
    """Return the measures of the answers for some rows, by the kind of the target.

    ``classes`` are those of the model, by default the true and predicted labels; ``baseline`` is
    that of `baseline_of`.

    >>> found = measure("classes", np.array(["a", "b"]), Answers(np.array(["a", "a"])))
    >>> found["error"], found["balanced_accuracy"], found["baseline"]["prediction"]
    (0.5, 0.5, 'a')
    >>> measure("none", None, Answers(np.array([1, 1, 1, -1])))["outlier_share"]
    0.25
    """
    if targets == "classes" and not [*classes]:
        assert truth is not None
        classes = sorted({*truth.tolist(), *given.labels.tolist()}, key=str)
    tally = tally_of(targets, truth, given, classes, baseline)
    return tally_record(tally, classes, baseline)


def baseline_of(y: Labels | None, targets: Targets) -> Any:
    """Return the best constant answer: the mean of targets, the most frequent class, or None."""
    if y is None or targets == "none":
        return None
    return float(y.mean()) if targets == "numbers" else majority_of(y)


def regression_errors(
    pairs: Iterable[tuple[Labels, Labels]], baseline: float | None = None
) -> dict[str, Any]:
    """Return R², the mean absolute error and the root of the mean squared error.

    ``baseline`` is a constant to compare with, the mean of the training targets: its measures are
    returned as "baseline". R² is NaN where all true values are equal.

    >>> found = regression_errors([(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))])
    >>> found["rows"], round(found["r2"], 6), round(found["mae"], 6), round(found["rmse"], 6)
    (3, 0.5, 0.333333, 0.57735)
    """
    return merged_tallies(RegressionTally.of(*pair, baseline) for pair in pairs).record(baseline)


class RegressionTally(NamedTuple):
    """Sums over some rows of a regression: of the targets, of the errors, of those of a constant.

    Parameters
    ----------
    n : int
        Rows.
    mean, spread : float
        Mean of the targets, and the sum of squares about it.
    largest : float
        The largest size of a target.
    sums, constant : ndarray of shape (2,)
        Sizes and squares of the errors of the predictions, and of the constant.
    """

    n: int
    mean: float
    spread: float
    largest: float
    sums: Labels
    constant: Labels

    @classmethod
    def of(cls, truth: Labels, given: Labels, baseline: float | None = None) -> RegressionTally:
        """Return the sums of true and predicted values."""
        centre = float(truth.mean())
        return cls(
            truth.size, centre, float(np.sum((truth - centre) ** 2)), float(np.abs(truth).max()),
            _sums(truth - given), _sums(truth - (baseline or 0.0)),
        )  # fmt: skip

    def merged(self, other: RegressionTally) -> RegressionTally:
        """Return the sums over both, squares about the common mean (Chan, Golub, LeVeque 1983)."""
        n, step = self.n + other.n, other.mean - self.mean
        between = step * step * self.n * other.n / n
        return RegressionTally(
            n, self.mean + step * other.n / n, self.spread + other.spread + between,
            max(self.largest, other.largest), self.sums + other.sums,
            self.constant + other.constant,
        )  # fmt: skip

    def record(self, baseline: float | None = None) -> dict[str, Any]:
        """Return the measures."""
        spread = self.spread if self.spread > self.n * (ROUNDING * self.largest) ** 2 else 0.0
        found: dict[str, Any] = {"rows": self.n} | _errors(self.sums, self.n, spread)
        if baseline is not None:
            found["baseline"] = {"prediction": baseline} | _errors(self.constant, self.n, spread)
        return found


def _sums(residuals: Labels) -> Labels:
    """Return the sums of sizes and of squares."""
    return np.array([np.abs(residuals).sum(), np.sum(residuals**2)])


def _errors(sums: Labels, n: int, spread: float) -> dict[str, float]:
    absolute, squares = sums.tolist()
    r2 = 1.0 - squares / spread if spread > 0.0 else math.nan
    return {"r2": r2, "mae": absolute / n, "rmse": math.sqrt(squares / n)}


def outlier_counts(pairs: Iterable[tuple[Labels | None, Labels]]) -> dict[str, Any]:
    """Count the rows that a one-class machine calls outliers, −1, by their labels if they have any.

    "labels" is None where rows have no labels, or more than fifty different ones.

    >>> found = outlier_counts([(np.array(["1", "-1"]), np.array([1, -1]))])
    >>> found["outlier_share"], found["labels"]
    (0.5, {'-1': {'rows': 1, 'outliers': 1}, '1': {'rows': 1, 'outliers': 0}})
    """
    return merged_tallies(OutlierTally.of(*pair) for pair in pairs).record()


class OutlierTally(NamedTuple):
    """Rows, outliers, and rows by (label, whether it is an outlier); None without labels."""

    n: int
    outliers: int
    counts: Counter[tuple[str, bool]] | None

    @classmethod
    def of(cls, labels: Labels | None, given: Labels) -> OutlierTally:
        """Count rows with labels, or none, and predictions."""
        outside = given < 0
        counts = None
        if labels is not None:
            counts = Counter(zip(map(str, labels.tolist()), outside.tolist(), strict=True))
        return cls(given.size, int(outside.sum()), counts)._bounded()

    def merged(self, other: OutlierTally) -> OutlierTally:
        """Return the counts of both."""
        is_known = self.counts is not None and other.counts is not None
        counts = self.counts + other.counts if is_known else None  # type: ignore[operator]
        return OutlierTally(self.n + other.n, self.outliers + other.outliers, counts)._bounded()

    def _bounded(self) -> OutlierTally:
        is_many = self.counts is not None and len(self.counts) > 2 * MOST_LABELS
        return self._replace(counts=None) if is_many else self

    def record(self) -> dict[str, Any]:
        """Return the counts with the share of outliers."""
        by_label, counts = None, self.counts
        if counts is not None:
            by_label = {
                label: {"rows": counts[label, False] + counts[label, True],
                        "outliers": counts[label, True]}
                for label in sorted({label for label, _ in counts})
            }  # fmt: skip
            by_label = by_label if len(by_label) <= MOST_LABELS else None
        return {"rows": self.n, "outliers": self.outliers,
                "outlier_share": self.outliers / self.n, "labels": by_label}  # fmt: skip


def confusion(classes: Iterable[object], pairs: Iterable[tuple[Labels, Labels]]) -> dict[str, Any]:
    """Count true labels (rows) by predicted labels (columns), over pairs of arrays of labels.

    True labels that are not classes of the model have rows after those of its classes.

    >>> found = confusion(["a", "b"], [(np.array(["a", "b", "c"]), np.array(["a", "a", "b"]))])
    >>> found["confusion"], found["errors"], found["unknown_classes"]
    ([[1, 0], [1, 0], [0, 1]], 2, ['c'])
    """
    return merged_tallies(LabelTally.of(*pair) for pair in pairs).record(classes)


AnyTally = RegressionTally | OutlierTally | LabelTally
Tally = TypeVar("Tally", RegressionTally, OutlierTally, LabelTally)


def tally_of(
    targets: Targets,
    truth: Labels | None,
    given: Answers,
    classes: Iterable[object] = (),
    baseline: Any = None,
) -> AnyTally:
    """Count or sum the answers for some rows; ``merged_tallies`` adds the tallies of more rows."""
    if targets == "none":
        return OutlierTally.of(truth, given.labels)
    assert truth is not None
    if targets == "numbers":
        return RegressionTally.of(truth, given.labels, baseline)
    return LabelTally.of(truth, given.labels, given.scores, given.probabilities, classes)


def tally_record(
    tally: AnyTally, classes: Iterable[object] = (), baseline: Any = None
) -> dict[str, Any]:
    """Return the measures of a tally; classes are those of the model, if it has any."""
    if isinstance(tally, LabelTally):
        return tally.record(classes, baseline)
    return tally.record(baseline) if isinstance(tally, RegressionTally) else tally.record()


def merged_tallies(tallies: Iterable[Tally]) -> Tally:
    """Return the counts or sums of all rows, of which there must be some."""
    return reduce(lambda one, other: one.merged(other), tallies)  # type: ignore[arg-type]


def of_folds(folds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of measures over folds, with their standard errors.

    >>> found = of_folds([{"mae": 1.0}, {"mae": 3.0}])
    >>> found["mae"], found["standard_errors"], found["by_fold"]
    (2.0, {'mae': 1.0}, {'mae': [1.0, 3.0]})
    """
    by_fold = {key: [_or_nan(fold[key]) for fold in folds] for key in folds[0] if key in NAMES}
    means = {key: float(np.mean(values)) for key, values in by_fold.items()}
    errors = {
        key: float(np.std(values, ddof=1) / math.sqrt(len(values)))
        for key, values in by_fold.items()
    }
    return {"folds": len(folds)} | means | {"standard_errors": errors, "by_fold": by_fold}


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def alone(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measures of a record, and those of its baseline, without counts and tables."""
    return {key: record[key] for key in (*NAMES, "baseline") if key in record}


def scorer_in_words(scoring: str) -> str:
    """Return what a scorer of scikit-learn is called.

    >>> scorer_in_words("r2"), scorer_in_words("neg_mean_absolute_error")
    ('R²', 'negative mean absolute error')
    """
    if scoring in MEASURES["numbers"]:
        return MEASURES["numbers"][scoring]
    sign = "negative " if scoring.startswith("neg_") else ""
    return sign + scoring.removeprefix("neg_").replace("_", " ")


def in_words(
    measures: Mapping[str, Any], spread: Mapping[str, float] | None = None, *, named: bool = True
) -> str:
    """Return measures in words; ``spread`` are their standard errors.

    >>> in_words({"r2": 0.5, "mae": 1.0, "rmse": 2.0}, {"r2": 0.1, "mae": 0.25, "rmse": 0.5})
    'R² 0.5 ± 0.1, MAE 1 ± 0.25, RMSE 2 ± 0.5'
    >>> in_words({"error": 0.125, "balanced_accuracy": 0.85, "auc": None})
    '12.50 %, balanced accuracy 85.00 %, AUC –'
    """
    words = []
    for key in (key for key in NAMES if key in measures):
        shown = _number(key, measures[key])
        if spread is not None and key in spread and shown != "–":
            shown += f" ± {_number(key, spread[key], 2)}"
        words.append(f"{NAMES[key]} {shown}" if named and key not in SHARES else shown)
    return ", ".join(words)


def _number(key: str, value: float | None, digits: int = 4) -> str:
    """Return a share in percent, another measure with some digits, a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.2f} %" if key in PERCENT else rounded(value, digits)


def rounded(value: float, digits: int = 4) -> str:
    """Return a number with some digits, or all digits before the point.

    >>> rounded(0.123456), rounded(123456.7), rounded(1.5e12), rounded(376.2, 2)
    ('0.1235', '123457', '1.5e+12', '376')
    """
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e9 else f"{value:.{digits}g}"
