"""Some rows, and what a model answers for them: computed once for all parts of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Integers, Labels, MatrixLike
from ..diagnostics.answers import Answers, answers, joined
from ..diagnostics.fitted_model import FittedModel, ModelLike
from ..multiclass import OneVsOne
from ..plots.model import FigureModel

# Rows that are answered at a time.
BLOCK_ROWS = 1 << 14
# What parts of the rows are called: those that are measured first, and those of the fit.
HELD_OUT, TRAINING = "held-out rows", "training rows"


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows, true values, and what a model answers.

    Parameters
    ----------
    model : estimator, Pipeline or search
    X : matrix or frame of shape (n, n_columns)
        The rows as the caller has them.
    y : ndarray of shape (n,) or None
        Labels or targets; None for a one-class machine.
    given : Answers
        What the model answers.
    margins : ndarray of shape (n,)
        y g of two classes; of more the score of the own class less that of its best rival, of
        pairs the least of its pairs. The residual y − g of targets, g of a one-class machine. NaN
        where the label is not a class of the model.
    parts : dict of str to ndarray of bool
        Rows that are measured apart.
    training : ndarray of int or None
        The rows that the model was fitted to, in the order of the fit; None where that is unknown.
    about : dict
        Facts that were stored with the model.
    """

    model: ModelLike
    X: Any
    y: Labels | None
    given: Answers
    margins: Floats
    parts: Mapping[str, NDArray[np.bool_]]
    training: Integers | None
    about: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        model: ModelLike,
        X: MatrixLike,
        y: ArrayLike | None,
        parts: Mapping[str, ArrayLike],
        training: ArrayLike | None,
        about: Mapping[str, Any],
    ) -> CheckedRows:
        """Answer all rows, some at a time."""
        fitted = FittedModel(model)
        rows: Any = X if hasattr(X, "shape") else np.asarray(X)
        labels = None if y is None else np.asarray(y)
        pieces, margins = [], []
        for some in _blocks(rows.shape[0]):
            block = take(rows, some)
            pieces.append(answers(model, block))
            margins.append(_margins(fitted, block, None if labels is None else labels[some]))
        found = training
        if found is None and not parts:
            found = _own_rows(model, rows)
        return cls(
            model, rows, labels, joined(pieces), np.concatenate(margins),
            {name: np.asarray(mask, dtype=bool) for name, mask in parts.items()},
            None if found is None else np.asarray(found, dtype=np.intp), about,
        )  # fmt: skip

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def fitted(self) -> FittedModel:
        """The adapter of the model."""
        return FittedModel(self.model)

    @property
    def facts(self) -> dict[str, Any]:
        """What the command line noted of the training data; facts of one's own are not read."""
        data = self.about.get("data")
        return data if isinstance(data, dict) else {}

    @cached_property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Which labels differ from the true ones."""
        assert self.y is not None
        return np.array(list(map(str, self.given.labels.tolist()))) != np.array(
            list(map(str, self.y.tolist()))
        )

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names = getattr(self.X, "columns", None)
        if names is None:
            names = getattr(self.model, "feature_names_in_", None)
        if names is None or len(names) != self.X.shape[1]:
            names = [f"x{k}" for k in range(self.X.shape[1])]
        return [str(name) for name in names]

    def part_of(self, row: int) -> str:
        """Return what a row is: held out, of the training, or another one."""
        for name, mask in self.parts.items():
            if mask[row]:
                return name.removesuffix(" rows")
        return ""

    def some(self, name: str) -> tuple[Any, Labels | None, str]:
        """Return the rows of a part, or all rows where there is no such part, and in words."""
        if name == TRAINING and self.training is not None:
            rows = self.training
        elif name in self.parts:
            rows = np.flatnonzero(self.parts[name])
        else:
            return self.X, self.y, f"all {len(self):,} rows"
        y = None if self.y is None else self.y[rows]
        return take(self.X, rows), y, f"{len(rows):,} {name}"


def take(X: Any, rows: Any) -> Any:
    """Return some rows of X, given by a slice or by numbers, in its own type."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, max(n, 1), BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, n))


def _own_rows(model: ModelLike, X: Any) -> Integers | None:
    """Return all rows where the model was fitted to them, which its support vectors show."""
    figure = FigureModel(model)
    n = X.shape[0]
    is_own = figure.support_rows(n, take=lambda rows: take(X, rows)).any()
    return np.arange(n) if is_own else None


def _margins(fitted: FittedModel, X: Any, y: Labels | None) -> Floats:
    scores = fitted.scores(X)
    if not fitted.has_classes:
        g: Floats = scores[:, 0]
        return g if y is None or not fitted.has_targets else np.asarray(y, dtype=float) - g
    assert y is not None
    order = {name: code for code, name in enumerate(fitted.class_names)}
    codes = np.array([order.get(str(label), -1) for label in y.tolist()], dtype=np.intp)
    margins = _of_classes(fitted, scores, np.maximum(codes, 0))
    return np.where(codes >= 0, margins, np.nan)


def _of_classes(fitted: FittedModel, scores: Floats, codes: Integers) -> Floats:
    if fitted.is_binary:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])
    rows = np.arange(len(codes))
    if fitted.scheme == "ovo":
        least = np.full((len(codes), len(fitted.classes)), np.inf)
        for k, (i, j) in enumerate(OneVsOne.pairs(len(fitted.classes))):
            least[:, i] = np.minimum(least[:, i], scores[:, k])
            least[:, j] = np.minimum(least[:, j], -scores[:, k])
        found: Floats = least[rows, codes]
        return found
    rivals = scores.copy()
    rivals[rows, codes] = -np.inf
    ahead: Floats = scores[rows, codes] - rivals.max(axis=1)
    return ahead
