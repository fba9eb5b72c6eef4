"""Which fitted attributes of an estimator a file keeps."""

from __future__ import annotations

from typing import NamedTuple


class Saved(NamedTuple):
    """Fitted attributes of an estimator: in every file, in some, and in none but set to None.

    ``added`` are parameters that files of earlier versions do not have: their defaults are meant.
    """

    always: tuple[str, ...]
    sometimes: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


PROOFS = ("certificates_", "statuses_", "traces_")
# Of a linear machine; a fit to a Dask collection leaves α on the workers.
SUPPORT = ("support_", "dual_coef_")
# Of a machine on features of its kernel.
APPROXIMATION = (
    "feature_coef_", "kernel_error_", "landmarks_", "normalization_", "frequencies_", "offsets_",
)  # fmt: skip
COUNTS = ("n_iter_", "n_updates_", "separates_", "feature_names_in_")
ESTIMATOR = ("n_features_in_", "intercept_", *PROOFS)
CLASSES = ("classes_", "_reduced_by")
PLANES = Saved((*ESTIMATOR, *CLASSES, "coef_", "_updates_of_tasks"), COUNTS)
EXPANSION = (*ESTIMATOR, "kernel_", "support_", "support_vectors_", "dual_coef_")
MACHINE = Saved(
    (*EXPANSION, "n_support_", "shape_fit_"),
    ("n_iter_", "n_updates_", "feature_names_in_", "fit_status_", "_fitted_with"),
    ("_memory", "_fitted_on", "_objects"),
    ("device",),
)
# LIBSVM's models may have a distribution of errors.
REGRESSOR = MACHINE._replace(sometimes=(*MACHINE.sometimes, "probA_"))
