"""What SVCCV and SVRCV share: the parameters of a search, and its results."""

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
from ..kernels import resolve
from .search import Grid, Search, results_kept

# Default grids: costs, and γ in units of gamma="scale", are powers of 2 between these.
COSTS, GAMMAS = (-5.0, 15.0), (-8.0, 6.0)


class KernelSearch:
    """A kernel machine that chooses C and its kernel by cross-validation.

    After a fit it is the machine of the best candidate.
    """

    Cs: Any
    gammas: Any
    kernel: Any
    cv: Any
    scoring: Any
    refit: bool
    one_standard_error: bool
    strategy: str
    error_score: Any
    time_limit: float | None
    n_jobs: int | None
    verbose: bool | int

    C_: float
    gamma_: Any
    cv_results_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_params_: dict[str, Any]
    best_estimator_: Any
    n_splits_: int
    is_complete_: bool

    _searched: ClassVar[Constraints] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "gammas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "one_standard_error": ["boolean"],
        "strategy": [StrOptions({"all", "bounded", "halving"})],
        "error_score": [StrOptions({"raise"}), Real],
    }
    # Parameters of the machine that a search leaves alone.
    solver: Any = "auto"
    warm_start: bool = False
    callback: Any = None

    _machine: ClassVar[Any]

    def __sklearn_is_fitted__(self) -> bool:
        return is_fitted(self)

    @property
    def C(self) -> float:
        """The chosen C, as the parameter of the fitted machine."""
        check_is_fitted(self, "C_")
        return self.C_

    @property
    def gamma(self) -> Any:
        """The chosen γ, as the parameter of the fitted machine."""
        return getattr(self, "gamma_", "scale")

    def _template(self) -> Any:
        """Return the machine of all candidates, with C = 1."""
        names = [name for name in self._machine._get_param_names() if name not in ("C", "gamma")]
        given = {name: getattr(self, name) for name in names}
        if _is_list(self.kernel):
            given["kernel"] = self.kernel[0]
        return self._machine(C=1.0, **given)

    def _searched_by(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> None:
        """Search, and become the machine of the best candidate."""
        parameters = type(self)._get_param_names()  # type: ignore[attr-defined]
        for name in set(vars(self)) - set(parameters):
            if "callback" not in name:  # which scikit-learn needs until the end
                delattr(self, name)
        template = self._template()
        search = Search(
            template, self._grid(template, X), X, y, sample_weight, groups, cv=self.cv,
            scoring=self.scoring, error_score=self.error_score, strategy=self.strategy,
            time_limit=self.time_limit, n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip
        with results_kept(search, lambda: self._keep(search)):
            search.run()
        self._keep(search)
        if self.refit and hasattr(self, "best_params_"):
            self.fit_best(X, y, sample_weight)

    def _grid(self, template: Any, X: Any) -> Grid:
        costs = _costs(self.Cs)
        if _is_list(self.kernel):
            return Grid(costs, "kernel", list(self.kernel))
        if not _has_gamma(template):
            return Grid(costs, "kernel", [self.kernel])
        gammas = self.gammas
        if isinstance(gammas, Integral):
            scale = resolve(
                template.kernel, gamma="scale", degree=template.degree, coef0=template.coef0, X=X
            )
            gammas = scale.gamma * np.logspace(*GAMMAS, int(gammas), base=2.0)  # type: ignore[attr-defined]
        values = [each if isinstance(each, str) else float(each) for each in gammas]
        if not values:
            raise ValueError("gammas must hold one value at least, got none.")
        return Grid(costs, "gamma", values)

    def _keep(self, search: Search) -> None:
        """Keep the results of a search, which need not be complete."""
        results = search.results
        self.cv_results_, self.n_splits_ = results.table(), len(search.folds)
        self.is_complete_ = search.is_complete
        best = results.best()
        if best is not None and self.one_standard_error:
            best = results.simplest(search.grid.from_simple())
        if best is None:
            if search.is_complete:
                raise ValueError(
                    "No candidate has a score on all folds: every fit or scoring failed. Use "
                    "error_score='raise' to see the first error."
                )
            return
        self.best_index_, self.best_params_ = best, results.candidates[best]
        self.best_score_ = float(results.means()[best])
        self.C_ = float(self.best_params_["C"])
        if "gamma" in self.best_params_:
            self.gamma_ = self.best_params_["gamma"]

    def fit_best(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the best candidate of the search to all samples.

        `fit` does it at its end with ``refit=True``. After an interrupted search it fits the best
        of those candidates that were scored on all folds.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

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
        if "gamma" in self.best_params_ and hasattr(best.kernel_, "gamma"):
            self.gamma_ = best.kernel_.gamma
        return self


def _is_list(kernel: Any) -> bool:
    return isinstance(kernel, (list, tuple))


def _has_gamma(template: Any) -> bool:
    """Return whether the kernel of a machine is named, and takes γ."""
    return isinstance(template.kernel, str) and template.kernel not in ("linear", "precomputed")


def _costs(Cs: Any) -> Floats:
    """Return the costs of a search, as they were given."""
    if isinstance(Cs, Integral):
        return np.logspace(*COSTS, int(Cs), base=2.0)
    costs = np.asarray(Cs, dtype=float).ravel()
    if not costs.size or not (np.isfinite(costs).all() and (costs > 0.0).all()):
        raise ValueError(f"Cs must hold positive finite numbers, one at least, got {Cs!r}.")
    return costs
