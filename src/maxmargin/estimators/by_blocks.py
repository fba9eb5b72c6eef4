"""What fitted models do with Dask collections: lazy answers, and scores summed on the workers."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from textwrap import indent
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted

from ..arrays import Floats, Labels, MatrixLike
from ..caller import warn_caller
from ..engines.registry import example_rows, is_partitioned, lazy_answers, reduced_partitions
from .saved import PROOFS, SUPPORT

Function = TypeVar("Function", bound=Callable[..., Any])

# Fitted attributes that no prediction reads; some are as long as the training data.
_NOT_SENT = (
    *PROOFS, "fit_report_", "margins_", "multipliers_", "_memory", "_fitted_on", "_skl_callbacks",
)  # fmt: skip
# Parameters that are for the process of the caller.
_NEUTRAL = {"callback": None, "n_jobs": None, "verbose": False}

_NOTES = """

Notes
-----
For a Dask array or frame the answer is a dask.array, of which nothing is computed yet: one chunk
per block of rows, of known size where that of the block is. The names and the number of the columns
are checked at once. ``frame.assign(answer=...)`` makes it a column of the frame.
"""


def by_blocks(method: Function) -> Function:
    """Let a method of new rows X take Dask collections, whose answers are a lazy dask.array.

    The names and the number of the columns are checked before anything is computed: by the method
    itself, on some rows of that kind.
    """

    @wraps(method)
    def answered(self: Any, X: MatrixLike) -> Any:
        if not is_partitioned(X):
            return method(self, X)
        example = _example(self, method, X)
        return lazy_answers(for_prediction(self, X), method.__name__, X, example)

    if method.__doc__ is not None:  # python -OO has none
        answered.__doc__ = method.__doc__.rstrip() + indent(_NOTES, " " * 8)
    return cast(Function, answered)


def _example(model: Any, method: Callable[..., Any], X: Any) -> Any:
    """Return what a method answers for some rows like those of X; raise where it refuses them."""
    check_is_fitted(model)
    here = copy(model)
    if hasattr(here, "device"):  # that of the workers may not be here
        here.device = "cpu"
    return method(here, example_rows(X))


def for_prediction(model: Any, X: MatrixLike) -> Any:
    """Return a copy of a fitted model with what predictions for a collection need.

    A later fit of the model does not change it.
    """
    sent = copy(model)
    fitted = vars(sent)
    # Planes need no support vectors, sums over them do.
    for name in _NOT_SENT + (SUPPORT if "coef_" in fitted else ()):
        fitted.pop(name, None)
    fitted.update({name: value for name, value in _NEUTRAL.items() if name in fitted})
    if not hasattr(X, "columns"):  # the caller is told once, and not by every block
        fitted.pop("feature_names_in_", None)
    return sent


# Scores -------------------------------------------------------------------------------------------


class Correct(NamedTuple):
    """Rows, their weight, and the weight of those whose class is the predicted one."""

    n: int = 0
    total: float = 0.0
    right: float = 0.0


def accuracy(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> float:
    """Return the accuracy on a collection, from one pair of numbers per partition."""
    _example(model, type(model).predict, X)
    sent = for_prediction(model, X)
    found = reduced_partitions(sent, _correct, _sum, X, y, sample_weight)
    _refuse_nothing(found.n, found.total)
    return found.right / found.total


def _refuse_nothing(n_rows: int, total: float) -> None:
    """Refuse collections without rows and weights that are all zero, as scikit-learn does."""
    if not n_rows:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    if not total:
        raise ValueError("Sample weights must contain at least one non-zero number.")


def _correct(model: Any, X: MatrixLike, y: Labels, weights: Floats | None) -> Correct:
    n = X.shape[0]
    check_consistent_length(X, y, weights)
    if not n:
        return Correct()
    if weights is None:
        return Correct(n, float(n), float(np.rint(model.score(X, y) * n)))
    total = float(weights.sum())
    return Correct(n, total, model.score(X, y, weights) * total if total else 0.0)


def _sum(parts: list[Correct]) -> Correct:
    return Correct(*map(sum, zip(*parts, strict=True)))


class Deviations(NamedTuple):
    """Squared deviations of targets: from their weighted mean, and from the predicted ones."""

    n: int = 0
    total: float = 0.0
    mean: float = 0.0
    about_mean: float = 0.0
    about_predicted: float = 0.0


def determination(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> float:
    """Return R² on a collection, from five numbers per partition."""
    _example(model, type(model).predict, X)
    sent = for_prediction(model, X)
    found = reduced_partitions(sent, _deviations, _merged, X, y, sample_weight)
    _refuse_nothing(found.n, found.total)
    if found.n < 2:
        from sklearn.exceptions import UndefinedMetricWarning

        text = "R^2 score is not well-defined with less than two samples."
        warn_caller(text, UndefinedMetricWarning)
        return float("nan")
    if not found.about_mean:
        return float(not found.about_predicted)
    return 1.0 - found.about_predicted / found.about_mean


def _deviations(model: Any, X: MatrixLike, y: Labels, weights: Floats | None) -> Deviations:
    n = X.shape[0]
    check_consistent_length(X, y, weights)
    shares = np.ones(n) if weights is None else weights.astype(np.float64)
    total = float(shares.sum())
    if not total:
        return Deviations(n)
    targets = np.asarray(y, dtype=np.float64).reshape(n)
    assert_all_finite(targets, input_name="y")
    mean = float(shares @ targets) / total
    return Deviations(
        n, total, mean, float(shares @ (targets - mean) ** 2),
        float(shares @ (targets - model.predict(X)) ** 2),
    )  # fmt: skip


def _merged(parts: list[Deviations]) -> Deviations:
    """Return the deviations of all rows (Chan, Golub, LeVeque, 1983)."""
    total = sum(part.total for part in parts)
    n = sum(part.n for part in parts)
    if not total:
        return Deviations(n)
    mean = sum(part.total * part.mean for part in parts) / total
    between = sum(part.total * (part.mean - mean) ** 2 for part in parts)
    return Deviations(
        n, total, mean, between + sum(part.about_mean for part in parts),
        sum(part.about_predicted for part in parts),
    )  # fmt: skip
