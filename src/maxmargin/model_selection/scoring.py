"""Scorers of scikit-learn on machines of which only the scores of held-out rows are known."""

from __future__ import annotations

import time
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import FitFailedWarning

from ..arrays import Floats, Integers, MatrixLike
from ..caller import warn_caller
from ..estimators.svc import SVC
from ..estimators.svr import SVR


class _Known:
    """A fitted machine that answers for the rows of one fold, whose scores it was given."""

    _rows: Any
    _values: Floats

    def _compute_scores(self, X: MatrixLike) -> Any:
        if X is not self._rows:
            raise ValueError(
                "A scorer of a search is given machines that answer for the held-out rows alone, "
                "which it must pass as they are: use GridSearchCV for a scorer that needs others."
            )
        return self._values


class KnownSVC(_Known, SVC):
    """A classifier that answers for the rows of one fold."""


class KnownSVR(_Known, SVR):
    """A regressor that answers for the rows of one fold."""


def known_classifier(model: SVC, classes: Any, X: Any, n_planes: int) -> KnownSVC:
    """Return a classifier without scores yet."""
    known = KnownSVC(**model.get_params(deep=False))
    known._reduced_by = model.multi_class
    return _filled(known, X, n_planes, classes_=classes)


def known_regressor(model: SVR, X: Any) -> KnownSVR:
    """Return a regressor without scores yet."""
    return _filled(KnownSVR(**model.get_params(deep=False)), X, 1)


def _filled(known: Any, X: Any, n_planes: int, **attributes: Any) -> Any:
    known._rows, known.intercept_ = X, np.zeros(n_planes)
    known.n_features_in_ = X.shape[1] if hasattr(X, "shape") else 0
    for name, value in attributes.items():
        setattr(known, name, value)
    return known


def takes_weights(scorer: Any) -> bool:
    """Return whether a scorer takes weights of samples, where scikit-learn's searches pass them."""
    asked = getattr(scorer, "_accept_sample_weight", None)
    if asked is not None:
        return bool(asked())
    return callable(scorer) and "sample_weight" in signature(scorer).parameters


class HeldOut(NamedTuple):
    """The held-out rows of a fold, a machine that answers for them, and what else scorers take.

    Where a scorer asks for accuracy alone, ``numbers`` are those of their classes in the fold, −1
    of a class that it lacks.
    """

    known: Any
    X: Any
    y: Any
    options: dict[str, Any]
    numbers: Integers | None = None


def asks_for_accuracy(scorer: Any, model: Any, options: dict[str, Any]) -> bool:
    """Return whether a scorer is `score` of a classifier without weights, which cannot fail."""
    is_own = type(scorer).__name__ == "_PassthroughScorer" and isinstance(model, SVC)
    may_fail = is_own and model.break_ties and model.decision_function_shape == "ovo"
    return is_own and not may_fail and not options


def scored(held_out: HeldOut, scorer: Any, scores: Floats, error_score: Any) -> tuple[float, float]:
    """Return what a scorer says of a machine with these scores, and the seconds that it took."""
    started = time.perf_counter()
    if held_out.numbers is not None:
        value = float((held_out.known._chosen(scores) == held_out.numbers).mean())
    else:
        held_out.known._values = scores
        value = score_of(held_out, scorer, error_score)
    return value, time.perf_counter() - started


def score_of(held_out: HeldOut, scorer: Any, error_score: Any) -> float:
    """Return what a scorer says of a machine, or the score of those that fail, with a warning."""
    try:
        value = scorer(held_out.known, held_out.X, held_out.y, **held_out.options)
    except Exception as error:  # as GridSearchCV does it
        if isinstance(error_score, str):
            raise
        warn_caller(
            "Scoring failed. The score on this train-test partition for these parameters will be "
            f"set to {error_score}. Details: {type(error).__name__}: {error}",
            UserWarning,
        )
        value = error_score
    if not np.isscalar(value) and np.ndim(value) != 0:
        raise ValueError(f"scoring must return a number, got {value!r}.")
    return float(value)


def failed(error: Exception, error_score: Any) -> float:
    """Return the score of a fold to which nothing can be fitted, or raise its error."""
    if isinstance(error_score, str):
        raise error
    warn_caller(
        f"A fold cannot be fitted, and its scores are set to {error_score}: {error}",
        FitFailedWarning,
    )
    return float(error_score)
