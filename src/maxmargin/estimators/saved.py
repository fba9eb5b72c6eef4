"""Which fitted attributes of an estimator a file keeps."""

from __future__ import annotations

from typing import NamedTuple


class Saved(NamedTuple):
    """Fitted attributes of an estimator: in every file, in some, and in none but set to None."""

    always: tuple[str, ...]
    sometimes: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


PROOFS = ("certificates_", "statuses_", "traces_")
COUNTS = ("n_iter_", "n_updates_", "separates_", "feature_names_in_")
CLASSIFIER = ("n_features_in_", "classes_", "_reduced_by", "intercept_", *PROOFS)
PLANES = Saved((*CLASSIFIER, "coef_", "_updates_of_tasks"), COUNTS)
EXPANSION = (*CLASSIFIER, "kernel_", "support_", "support_vectors_", "dual_coef_")
