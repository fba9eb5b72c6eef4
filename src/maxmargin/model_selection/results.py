"""What a search has found: one line per candidate, as scikit-learn's searches have it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from ..arrays import Floats

Parameters = dict[str, Any]


@dataclass
class Results:
    """Scores of candidates on the folds; NaN where a candidate was not fitted, or failed.

    Parameters
    ----------
    candidates : list of dict
        The parameters of each.
    n_folds : int

    Attributes
    ----------
    scores, gaps, fit_seconds, score_seconds : ndarray of shape (n_candidates, n_folds)
    holds : ndarray of bool of shape (n_candidates, n_folds)
        Whether the certificates of a machine hold.
    """

    candidates: list[Parameters]
    n_folds: int
    scores: Floats = field(init=False)
    gaps: Floats = field(init=False)
    fit_seconds: Floats = field(init=False)
    score_seconds: Floats = field(init=False)
    holds: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        shape = (len(self.candidates), self.n_folds)
        self.scores, self.gaps = np.full(shape, np.nan), np.full(shape, np.nan)
        self.fit_seconds, self.score_seconds = np.full(shape, np.nan), np.full(shape, np.nan)
        self.holds = np.zeros(shape, dtype=bool)

    @classmethod
    def of(cls, candidates: list[Parameters], scores: ArrayLike) -> Results:
        """Return results of which the scores alone are known."""
        values = np.array(scores, dtype=float)  # None of JSON is NaN
        found = cls(candidates, values.shape[1])
        found.scores = values
        return found

    def means(self) -> Floats:
        """Return the mean score of every candidate; NaN where a fold is missing."""
        return self.scores.mean(axis=1)

    def best(self) -> int | None:
        """Return the candidate of the largest mean score, the first of several; None without."""
        means = self.means()
        return None if np.isnan(means).all() else int(np.nanargmax(means))

    def on_complete_folds(self) -> Results:
        """Return the results of the folds on which all candidates have scores."""
        kept = ~np.isnan(self.scores).any(axis=0)
        found = Results(self.candidates, int(kept.sum()))
        for name in ("scores", "gaps", "fit_seconds", "score_seconds", "holds"):
            setattr(found, name, getattr(self, name)[:, kept])
        return found

    def simplest(self, order: list[int]) -> int | None:
        """Return the first candidate of an order within one standard error of the best one."""
        best = self.best()
        if best is None:
            return None
        means = self.means()
        error = self.scores[best].std(ddof=1) / np.sqrt(self.n_folds) if self.n_folds > 1 else 0.0
        return next(k for k in order if means[k] >= means[best] - error)

    def table(self) -> dict[str, Any]:
        """Return the columns that `GridSearchCV.cv_results_` has, and those of certificates."""
        found: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a number
            for name, seconds in (("fit", self.fit_seconds), ("score", self.score_seconds)):
                found[f"mean_{name}_time"] = np.nanmean(seconds, axis=1)
                found[f"std_{name}_time"] = np.nanstd(seconds, axis=1)
        for name in self.candidates[0]:
            found[f"param_{name}"] = _column([each[name] for each in self.candidates])
        found["params"] = list(self.candidates)
        for k in range(self.n_folds):
            found[f"split{k}_test_score"] = self.scores[:, k].copy()
        means = self.means()
        found["mean_test_score"], found["std_test_score"] = means, self.scores.std(axis=1)
        # As in scikit-learn: NaN comes last, and equal scores have the least rank of them.
        worst = np.nanmin(means) - 1.0 if not np.isnan(means).all() else 0.0
        filled = np.where(np.isnan(means), worst, means)
        found["rank_test_score"] = rankdata(-filled, method="min").astype(np.int32)
        found["certified"] = self.holds.all(axis=1)
        found["worst_gap"] = self.gaps.max(axis=1)
        return found


def _column(values: list[Any]) -> MaskedArray[Any, Any]:
    """Return the values of a parameter as scikit-learn has them."""
    numbers = all(isinstance(value, (int, float, np.number)) for value in values)
    column = np.array(values, dtype=float) if numbers else np.empty(len(values), dtype=object)
    if not numbers:
        column[:] = values
    return MaskedArray(column, mask=False)
