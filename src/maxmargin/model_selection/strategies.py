"""Which candidates of a search go on to the next fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats

# Functions of scorers that lie between 0 and 1, so that folds that are missing can be bounded.
BETWEEN_0_AND_1 = (
    "accuracy", "balanced_accuracy", "top_k_accuracy", "average_precision", "f1", "precision",
    "recall", "jaccard", "roc_auc",
)  # fmt: skip


def is_bounded(scorer: Any, *, is_classifier: bool) -> bool:
    """Return whether all scores are known to lie between 0 and 1."""
    function = getattr(scorer, "_score_func", None)
    if function is None:  # `score` of the estimator, or a function of which nothing is known
        return is_classifier and type(scorer).__name__ == "_PassthroughScorer"
    is_plain = getattr(scorer, "_sign", 1) == 1 and not getattr(scorer, "_kwargs", {}).get(
        "adjusted"
    )
    return is_plain and function.__name__.startswith(BETWEEN_0_AND_1)


def going_on(scores: Floats, strategy: str, n_missing: int, *, bounded: bool) -> NDArray[np.bool_]:
    """Return the candidates that go on after some folds.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Of the folds so far; NaN of candidates that were dropped, or failed.
    strategy : {"all", "bounded", "halving"}
        "bounded" drops those that cannot reach the best even with a score of 1 in all other folds,
        "halving" the worse half.
    n_missing : int
        Folds that are missing.
    bounded : bool
        Whether scores lie between 0 and 1.
    """
    scored = np.logical_not(np.isnan(scores).any(axis=1))
    if strategy == "all" or not scores.shape[1] or not scored.any():
        return np.ones(len(scores), dtype=bool)
    sums = np.where(scored, scores.sum(axis=1), -np.inf)
    if strategy == "halving":
        keep = -(-int(scored.sum()) // 2)
        scored &= sums >= np.sort(sums)[-keep]
        return scored
    if bounded:
        scored &= sums + n_missing >= sums.max()
    return scored
