"""The linear support vector machine that chooses its C by cross-validation."""

from __future__ import annotations

import time
import warnings
from numbers import Integral
from threading import Event
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, indexable

from ..arrays import MatrixLike, container
from ..caller import warn_caller
from ..estimators.base import Constraints, validated
from ..estimators.claims import TimeLimit
from ..estimators.documentation import documented
from ..estimators.fitting import limited_threads
from ..estimators.linear_svc import LinearSVC
from ..estimators.training import ClassWeight, RandomState
from ..runtime.threads import in_parallel
from ..solvers.linear import Solver
from .folds import splits_of
from .grid import Grid
from .linear_grid import folds_at_once, planes_at_once
from .model_search import ModelSearch, costs_of
from .results import Results
from .scoring import HeldOut, failed, score_of, takes_weights
from .search_progress import SearchProgress

# The default grid of costs: powers of 10 between these.
COSTS = (-4.0, 4.0)
# Stored numbers of X up to which folds are fitted side by side: larger fits use all cores.
SIDE_BY_SIDE_NUMBERS = 1 << 22
# Weights of the rows in folds, and classes, that are solved at once: each has several numbers.
FOLD_NUMBERS = 1 << 24


@documented
class LinearSVCCV(ModelSearch, LinearSVC):  # type: ignore[misc, override]
    """The linear support vector machine whose C is chosen by cross-validation.

    What GridSearchCV finds with `LinearSVC`, but every C begins with the planes of those before,
    and where X has up to 512 columns, all folds and classes are solved at once, by passes over X
    that they share (squared hinges of arrays, hinges of CSR matrices too). Every fit is certified.
    After ``fit`` it is a `LinearSVC`, fitted to all samples with the chosen C.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        Costs, or how many powers of 10 between 10⁻⁴ and 10⁴.
    penalty : {"l2", "l1"}, default="l2"
        "l1" gives planes of few features.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Norm of the slack: ξ² or ξ.
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn; None means 5 stratified ones.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn; None is the accuracy.
    refit : bool, default=True
        Fit the best candidate to all samples.
    one_standard_error : bool, default=False
        Choose the least C whose mean score is within one standard error of the best.
    error_score : "raise" or float, default=nan
        The score of folds that cannot be fitted or scored, with a warning.
    tol : float, default=1e-4
        The relative duality gap.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        As in `LinearSVC`.
    {{ fit_intercept }}
    intercept_scaling : float, default=1.0
        As in `LinearSVC`.
    {{ class_weight }}
    {{ verbose }}
    random_state : int, RandomState instance or None, default=None
        For the order in which coordinate descent visits samples.
    max_iter : int, default=1000
        Steps of a fit, per task; −1 sets no limit.
    solver : {"auto", "interior-point", "newton", "coordinate-descent"}, default="auto"
        As in `LinearSVC`.
    penalize_intercept : bool, default=False
        As in `LinearSVC`.
    time_limit : float, optional
        Seconds after which the search ends with what it has found; the fit to all samples has no
        limit.
    {{ n_jobs }}
    {{ device }}

    Attributes
    ----------
    C_ : float
        The chosen C.
    cv_results_ : dict
        As of GridSearchCV, and for every candidate ``certified``, whether the certificates of all
        its fits hold to tol, and ``worst_gap``, the largest certified relative gap of them.
    best_index_, best_score_, best_params_, best_estimator_, n_splits_
        As of GridSearchCV.
    is_complete_ : bool
        Whether the search came to its end.
    {{ plane_attributes }}
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    LinearSVC : The same with a given C.
    SVCCV : The machine with any kernel.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_fruit(return_X_y=True)
    >>> model = mm.LinearSVCCV(Cs=[0.01, 1.0], cv=3).fit(X, y)
    >>> bool(model.cv_results_["certified"].all())
    True
    """

    _machine: ClassVar[Any] = LinearSVC
    _parameter_constraints: ClassVar[Constraints] = {
        **{k: v for k, v in LinearSVC._parameter_constraints.items() if k not in ("C", "dual")},
        **ModelSearch._searched,
    }
    dual: Any = "auto"

    def __init__(
        self,
        Cs: Any = 10,
        *,
        penalty: Literal["l2", "l1"] = "l2",
        loss: str = "squared_hinge",
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        one_standard_error: bool = False,
        error_score: float | Literal["raise"] = np.nan,
        tol: float = 1e-4,
        multi_class: Literal["ovr", "ovo", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        verbose: bool | int = False,
        random_state: RandomState = None,
        max_iter: int = 1000,
        solver: Solver = "auto",
        penalize_intercept: bool = False,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.Cs = Cs
        self.penalty = penalty
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.one_standard_error = one_standard_error
        self.error_score = error_score
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.device = device

    @validated
    def fit(  # type: ignore[override]
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Search, and fit the best candidate to all samples.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in fits; passed to scorers that take them, as in GridSearchCV.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.

        Returns
        -------
        self : object
            The machine of the best candidate.
        """
        self._forget()
        given = self.Cs
        costs = np.logspace(*COSTS, given) if isinstance(given, Integral) else costs_of(given)
        paths = _Paths(self, self._template(), Grid(costs, "", [None]), X, y, sample_weight, groups)
        try:
            paths.run()
        finally:  # what was found before Ctrl-C is kept
            self._keep(paths.results, paths.grid, is_complete=paths.is_complete)
        if self.refit and hasattr(self, "best_params_"):
            self.fit_best(X, y, sample_weight)
        return self


class _Paths:
    """The planes of all costs: of all folds at once, or fold by fold, each from the one before."""

    def __init__(
        self, model: LinearSVCCV, template: LinearSVC, grid: Grid, X: Any, y: Any,
        sample_weight: Any, groups: Any,
    ) -> None:  # fmt: skip
        X, y, sample_weight, groups = indexable(X, y, sample_weight, groups)
        self.model, self.grid, self.X, self.y, self.weights = model, grid, X, y, sample_weight
        self.template = template.set_params(warm_start=True, time_limit=None, verbose=False)
        self.scorer = check_scoring(template, scoring=model.scoring)
        self.checked = clone(template)
        self.training = self.checked._method().check(X, y, sample_weight, reset=True)
        self.is_small = container(self.training.X).stored() <= SIDE_BY_SIDE_NUMBERS
        self.splits = splits_of(model.cv, X, y, groups, is_classifier=True)
        self.results = Results(grid.candidates(), len(self.splits))
        self.time_limit = TimeLimit(model.time_limit)
        self.progress, self.is_complete = (
            SearchProgress(self.results, model._progress_callback),
            False,
        )

    def run(self) -> None:
        """Fit and score all folds, or as many as the time limit leaves."""
        self.order = np.argsort(self.grid.costs, kind="stable")
        with limited_threads(self.model.n_jobs):
            at_once = max(1, FOLD_NUMBERS // (self.training.X.shape[0] * self._kept_tasks()))
            for first in range(0, len(self.splits), at_once):
                if not self._together(range(first, min(first + at_once, len(self.splits)))):
                    break
            with warnings.catch_warnings():  # not in the threads of _fold, which share the filters
                warnings.simplefilter("ignore", ConvergenceWarning)  # certificates tell
                in_parallel(self._fold, range(len(self.splits)), alone=not self.is_small)
        if self._is_late() and np.isnan(self.results.fit_seconds).any():
            warn_caller(self.progress.ended_at(self.time_limit.seconds), ConvergenceWarning)
            return
        self.is_complete = True

    def _kept_tasks(self) -> int:
        """Return of how many tasks of a fold all scores are kept: those of hinges."""
        n_classes = len(self.training.classes)
        return n_classes if self.template.loss == "hinge" and n_classes > 2 else 1

    def _together(self, chosen: range) -> bool:
        """Find and score the planes of some folds at once, where that suits; keep those proved."""
        training, results = self.training, self.results
        folds = folds_at_once(self.template, training, [self.splits[k] for k in chosen])
        if folds is None or any(fold.error is not None for fold in folds):
            return False
        plane, places = self.checked, [self._held_out(k, self.checked) for k in chosen]
        plane.classes_, plane._reduced_by = training.classes, "ovr"
        costs = self.grid.costs[self.order]
        for solved in planes_at_once(plane, training, folds, costs, self._is_late):
            if not all(proof.holds(self.model.tol) for proof in solved.proofs):
                continue
            c, k, started = int(self.order[solved.cost]), chosen[solved.fold], time.perf_counter()
            plane.coef_, plane.intercept_ = solved.planes[:, :-1], solved.planes[:, -1]
            plane.C, plane.certificates_ = float(self.grid.costs[c]), solved.proofs
            try:
                results.scores[c, k] = score_of(places[solved.fold], self.scorer, "raise")
            except Exception:  # which may ask for attributes of a whole fit, as those of _fold have
                return False
            results.gaps[c, k] = max(proof.relative_gap for proof in solved.proofs)
            results.holds[c, k] = True
            results.score_seconds[c, k] = time.perf_counter() - started
            results.fit_seconds[c, k] = solved.seconds
            self.progress.advance(1)
        if self.model.verbose:
            print(self.progress.in_words(), flush=True)
        return not self._is_late()

    def _is_late(self) -> bool:
        return self.time_limit.left(1.0) == 0.0

    def _held_out(self, k: int, plane: LinearSVC) -> HeldOut:
        """Return the held-out rows of a fold, and the machine that answers for them."""
        rows, labels, weights = self._some(self.splits[k][1])
        is_weighted = weights is not None and takes_weights(self.scorer)
        return HeldOut(plane, rows, labels, {"sample_weight": weights} if is_weighted else {})

    def _fold(self, k: int, stop: Event) -> None:
        """Fit and score what is not known of a fold."""
        missing = self.order[np.isnan(self.results.fit_seconds[self.order, k])]
        if not missing.size:
            return
        X, y, weights = self._some(self.splits[k][0])
        plane, results = clone(self.template), self.results
        fold = self._held_out(k, plane)
        for c in missing.tolist():
            if stop.is_set() or self._is_late():
                return
            started = time.perf_counter()
            plane.C = float(self.grid.costs[c])
            try:
                plane.fit(X, y, weights)
            except ValueError as error:  # such as one class alone
                results.scores[:, k] = failed(error, self.model.error_score)
                results.fit_seconds[:, k] = 0.0
                return
            fitted = time.perf_counter()
            results.scores[c, k] = score_of(fold, self.scorer, self.model.error_score)
            proofs = plane.certificates_
            results.gaps[c, k] = max(each.relative_gap for each in proofs)
            results.holds[c, k] = all(each.holds(self.model.tol) for each in proofs)
            results.score_seconds[c, k] = time.perf_counter() - fitted
            results.fit_seconds[c, k] = fitted - started
            self.progress.advance(1)
        if self.model.verbose:
            print(self.progress.in_words(), flush=True)

    def _some(self, rows: Any) -> tuple[Any, Any, Any]:
        weights = None if self.weights is None else _safe_indexing(self.weights, rows)
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), weights
