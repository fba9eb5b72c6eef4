"""The folds of a search: which rows train, which are held out, and the tasks of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _num_samples

from .. import validation
from ..arrays import Integers, Labels
from ..estimators.training import Training
from ..multiclass import Task, reduction_for


@dataclass(frozen=True)
class Fold:
    """One split of the samples.

    Parameters
    ----------
    train, test : ndarray of int
        Rows of X.
    training : Training
        All rows, with the class numbers and weights that the rows of ``train`` make.
    tasks : list of Task
        Those of ``train``.
    error : Exception or None
        Why no machine can be fitted to it.
    """

    train: Integers
    test: Integers
    training: Training
    tasks: list[Task]
    error: Exception | None = None

    @property
    def classes(self) -> Labels:
        """The classes of its training rows."""
        return self.training.classes


def splits_of(cv: Any, X: Any, y: Any, groups: Any, *, is_classifier: bool) -> list[Any]:
    """Return (train, test) of every fold, as scikit-learn makes them."""
    splitter = check_cv(cv, y, classifier=is_classifier)
    n = _num_samples(X)
    splits = [(_as_rows(a, n), _as_rows(b, n)) for a, b in splitter.split(X, y, groups)]
    if not splits:
        raise ValueError(f"No fits were performed: cv={cv!r} yields no split of the samples.")
    return splits


def class_fold(
    training: Training, train: Integers, test: Integers, class_weight: Any, multi_class: str
) -> Fold:
    """Return a fold of samples of several classes, of which it may lack some."""
    counted = train[training.sample_weights[train] > 0.0]
    present = np.unique(training.codes[counted])
    if present.size < 2:
        names = ", ".join(str(name) for name in training.classes[present])
        error = ValueError(
            "The number of classes has to be greater than one; the training rows of this split "
            f"have {present.size} class ({names})."
        )
        return Fold(train, test, training, [], error)
    codes = np.searchsorted(present, training.codes).clip(max=present.size - 1)
    classes, weights = training.classes[present], training.sample_weights
    of_class = validation.class_weights(
        weights[counted], class_weight, classes, training.y[counted], codes[counted]
    )
    own = replace(
        training, classes=classes, codes=codes, class_weights=of_class,
        weights=weights * of_class[codes],
    )  # fmt: skip
    names_of = [str(name) for name in classes]
    rows = counted[own.weights[counted] > 0.0]
    tasks = reduction_for(multi_class, present.size).tasks(codes, rows, names_of, by_class=True)
    return Fold(train, test, own, tasks)


def target_fold(training: Training, train: Integers, test: Integers) -> Fold:
    """Return a fold of samples with targets."""
    rows = train[training.weights[train] > 0.0]
    if not rows.size:
        error = ValueError("No sample of positive weight is among the training rows of this split.")
        return Fold(train, test, training, [], error)
    return Fold(train, test, training, [Task(rows, training.y[rows], "all samples")])


def _as_rows(given: Any, n: int) -> Integers:
    """Return the numbers of rows of a mask, or those given, of which negative ones count back."""
    rows = np.asarray(given)
    return np.arange(n)[rows if rows.dtype == bool else rows.astype(np.intp)]
