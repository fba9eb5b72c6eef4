"""What searches share: their parameters, and what becomes of their results."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats, MatrixLike
from ..estimators.base import Constraints
from ..estimators.fitting import is_fitted
from .grid import Grid
from .results import Results
from .search_progress import Tell

# The default grid of costs: powers of 2 between these.
COSTS = (-5.0, 15.0)


class ModelSearch:
    """A machine that chooses its parameters by cross-validation.

    After a fit it is the machine of the best candidate.
    """

    Cs: Any
    cv: Any
    scoring: Any
    refit: bool
    one_standard_error: bool
    error_score: Any
    time_limit: float | None
    n_jobs: int | None
    verbose: bool | int

    C_: float
    cv_results_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_params_: dict[str, Any]
    best_estimator_: Any
    n_splits_: int
    is_complete_: bool

    _searched: ClassVar[Constraints] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "one_standard_error": ["boolean"],
        "error_score": [StrOptions({"raise"}), Real],
    }
    # Parameters of the machine that a search leaves alone.
    warm_start: bool = False
    callback: Any = None
    # Told of progress, as (n, best) of `SearchProgress`; "callback" in its name outlasts `_forget`.
    _progress_callback: Tell | None = None

    # The class of the machine, and its parameters that candidates have.
    _machine: ClassVar[Any]
    _chosen_names: ClassVar[tuple[str, ...]] = ("C",)

    def __sklearn_is_fitted__(self) -> bool:
        return is_fitted(self)

    @property
    def C(self) -> float:
        """The chosen C, as the parameter of the fitted machine."""
        check_is_fitted(self, "C_")
        return self.C_

    def _template(self) -> Any:
        """Return the machine of all candidates, with C = 1."""
        every = self._machine._get_param_names()
        given = {name: getattr(self, name) for name in every if name not in self._chosen_names}
        return self._machine(C=1.0, **given)

    def _forget(self) -> None:
        """Remove the attributes of an earlier fit."""
        parameters = type(self)._get_param_names()  # type: ignore[attr-defined]
        for name in set(vars(self)) - set(parameters):
            if "callback" not in name:  # which scikit-learn needs until the end
                delattr(self, name)

    def _keep(self, results: Results, grid: Grid, *, is_complete: bool) -> None:
        """Keep the results of a search, which need not be complete."""
        self.cv_results_, self.n_splits_ = results.table(), results.n_folds
        self.is_complete_ = is_complete
        best = results.best()
        if best is None and not is_complete:  # a search that goes fold by fold
            results = results.on_complete_folds()
            best = results.best() if results.n_folds else None
        if best is not None and self.one_standard_error:
            best = results.simplest(grid.from_simple())
        if best is None:
            if is_complete:
                raise ValueError(
                    "No candidate has a score on all folds: every fit or scoring failed. Use "
                    "error_score='raise' to see the first error."
                )
            return
        self.best_index_, self.best_params_ = best, results.candidates[best]
        self.best_score_ = float(results.means()[best])
        self.C_ = float(self.best_params_["C"])

    def fit_best(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the best candidate of the search to all samples.

        `fit` does it at its end with ``refit=True``. After an interrupted search it fits the best
        of those candidates that were scored on all folds, or, without any, the best on the folds on
        which all were.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples; the Gram matrix (n_samples, n_samples) for a precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C.

        Returns
        -------
        self : object
            The machine of the best candidate.
        """
        check_is_fitted(self, "best_params_")
        best = self._template().set_params(**self.best_params_).fit(X, y, sample_weight)
        self.best_estimator_ = best
        parameters = set(best._get_param_names())
        for name, value in vars(best).items():
            if name not in parameters:
                setattr(self, name, value)
        return self


def costs_of(Cs: Any) -> Floats:
    """Return the costs of a search, as they were given."""
    if isinstance(Cs, Integral):
        return np.logspace(*COSTS, int(Cs), base=2.0)
    costs = np.asarray(Cs, dtype=float).ravel()
    if not costs.size or not (np.isfinite(costs).all() and (costs > 0.0).all()):
        raise ValueError(f"Cs must hold positive finite numbers, one at least, got {Cs!r}.")
    return costs
