"""What SVCCV and SVRCV share: candidates are costs and kernels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from ..arrays import MatrixLike
from ..estimators.base import Constraints
from ..kernels import resolve
from .grid import Grid
from .model_search import ModelSearch, costs_of
from .search import Search

# The default grid of γ: gamma="scale" times powers of 2 between these.
GAMMAS = (-8.0, 6.0)


class KernelSearch(ModelSearch):
    """A kernel machine that chooses C and its kernel by cross-validation."""

    gammas: Any
    kernel: Any
    strategy: str
    gamma_: Any

    _searched: ClassVar[Constraints] = {
        **ModelSearch._searched,
        "gammas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "strategy": [StrOptions({"all", "bounded", "halving"})],
    }
    _chosen_names: ClassVar[tuple[str, ...]] = ("C", "gamma")
    solver: Any = "auto"

    @property
    def gamma(self) -> Any:
        """The chosen γ, as the parameter of the fitted machine."""
        return getattr(self, "gamma_", "scale")

    def _template(self) -> Any:
        """Return the machine of all candidates, with C = 1."""
        template = super()._template()
        return template.set_params(kernel=self.kernel[0]) if _is_list(self.kernel) else template

    def _search(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> None:
        """Search, and become the machine of the best candidate."""
        self._forget()
        template = self._template()
        search = Search(
            template, self._grid(template, X), X, y, sample_weight, groups, cv=self.cv,
            scoring=self.scoring, error_score=self.error_score, strategy=self.strategy,
            time_limit=self.time_limit, n_jobs=self.n_jobs, verbose=self.verbose,
            tell=self._progress_callback,
        )  # fmt: skip
        try:
            search.run()
        finally:  # what was found before Ctrl-C is kept
            if np.isfinite(search.results.scores).any() or search.is_complete:
                self._keep(search.results, search.grid, is_complete=search.is_complete)
        if not hasattr(self, "cv_results_"):
            self._keep(search.results, search.grid, is_complete=False)
        if "gamma" in getattr(self, "best_params_", {}):
            self.gamma_ = self.best_params_["gamma"]
        if self.refit and hasattr(self, "best_params_"):
            self.fit_best(X, y, sample_weight)

    def fit_best(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        super().fit_best(X, y, sample_weight)
        if "gamma" in self.best_params_:  # a number also where that is "scale"
            self.gamma_ = self.best_estimator_.kernel_.gamma
        return self

    fit_best.__doc__ = ModelSearch.fit_best.__doc__

    def _grid(self, template: Any, X: Any) -> Grid:
        costs = costs_of(self.Cs)
        if _is_list(self.kernel):
            return Grid(costs, "kernel", list(self.kernel))
        if not isinstance(self.kernel, str) or self.kernel in ("linear", "precomputed"):
            return Grid(costs, "kernel", [self.kernel])
        gammas = self.gammas
        if isinstance(gammas, Integral):
            scale: Any = resolve(
                template.kernel, gamma="scale", degree=template.degree, coef0=template.coef0, X=X
            )
            gammas = scale.gamma * np.logspace(*GAMMAS, int(gammas), base=2.0)
        values = [each if isinstance(each, str) else float(each) for each in gammas]
        if not values:
            raise ValueError("gammas must hold one value at least, got none.")
        return Grid(costs, "gamma", values)


def _is_list(kernel: Any) -> bool:
    return isinstance(kernel, (list, tuple))
