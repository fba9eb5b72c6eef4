"""Linear support vector regression at scale: LinearSVR."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions

from .. import validation
from ..arrays import Floats, Integers, MatrixLike, Partitioned, PartitionedVector, container, take
from ..certificates import MarginCertificate
from ..data.row_blocks import RowBlocks
from ..multiclass import Task
from ..problems import PrimalProblem
from ..problems.losses import TARGET_LOSSES
from ..progress import Callback, Progress
from ..solution import Solution
from ..solvers.linear import Primal, Solver, Start
from . import fitting
from .base import CertifiedEstimator, CertifiedRegressor, Constraints, check_fitted, validated
from .by_blocks import by_blocks
from .claims import Optimal, TimeLimit
from .device import DEVICE, answered
from .documentation import documented
from .fitting import Attributes, Method, Work, limited_threads, unchanged
from .linear import scores_of_planes, without_constant_features
from .linear_machine import (
    bias_of,
    costs_of,
    optimal,
    refuse_random_access,
    refuse_scaled_bias,
    streams,
    support_of_one,
)
from .saved import ESTIMATOR, SUPPORT, Saved
from .training import RandomState, Training, without_classes


@documented
class LinearSVR(CertifiedRegressor, CertifiedEstimator[MarginCertificate]):  # type: ignore[misc]
    """Linear support vector regression, for millions of rows or many features.

    min ½‖w‖² + Σ C_i ξ_i (``loss="epsilon_insensitive"``) or Σ C_i ξ_i²
    (``"squared_epsilon_insensitive"``), ξ_i = max(0, \\|y_i − w·x_i − b\\| − ε). The fit stops when
    the duality gap between (w, b) and the dual variables, relative to the objective, is at most
    ``tol``; the certificate recomputes both.

    Parameters
    ----------
    epsilon : float, default=0.0
        ε, half the width of the tube in which errors cost nothing, in units of y.
    tol : float, default=1e-4
        The relative duality gap.
    C : float, default=1.0
        Cost of a unit of slack, times the weight of the sample; finite.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Norm of the slack: ξ or ξ².
    {{ fit_intercept }}
    intercept_scaling : float, default=1.0
        Value s of the feature whose weight b/s is penalised; only with ``penalize_intercept``. X is
        copied where it is not 1.
    dual : "auto" or bool, default="auto"
        Present for compatibility with scikit-learn: the solver is chosen by ``solver``. What
        LIBLINEAR has no solver for ("epsilon_insensitive" with False) is an error.
    {{ verbose }}
    random_state : int, RandomState instance or None, default=None
        For the order in which coordinate descent visits samples.
    max_iter : int, default=1000
        Newton or interior-point steps, or passes of coordinate descent; −1 sets no limit.
    solver : {"auto", "interior-point", "newton", "coordinate-descent"}, default="auto"
        As of `LinearSVC`.
    penalize_intercept : bool, default=False
        Add ½(b/s)² to the objective, as LIBLINEAR does; s is ``intercept_scaling``.
    time_limit : float, optional
        Seconds; the model is then the best one so far.
    warm_start : bool, default=False
        Begin with (w, b) of the last fit, and with its dual variables where the samples are as
        many.
    {{ callback }}
    {{ n_jobs }}
    {{ device }}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w.
    intercept_ : ndarray of shape (1,)
        b.
    n_iter_ : int
        Passes or steps.
    support_ : ndarray of shape (n_support,)
        Rows of X with a dual variable other than 0: outside of the tube, or on its border. A fit to
        a Dask collection has neither these rows nor their variables, which stay on the workers.
    dual_coef_ : ndarray of shape (1, n_support)
        These variables: ``coef_`` is about ``dual_coef_[0] @ X[support_]``.
    shape_fit_ : tuple of int
        (n_samples, n_features) of the fit.
    {{ certified_attributes }}

    See Also
    --------
    LinearSVC : The linear machine for classes.
    maxmargin.RowBlocks : Data in blocks of rows, larger than the memory.
    maxmargin.certificates.PlaneCertificate : What is proved of a fit.

    Notes
    -----
    The bias is not penalised by default: scikit-learn's LinearSVR (LIBLINEAR) always
    penalises it, and moves predictions towards 0. Where ε is at least half the range of the
    targets, w = 0. The KKT violation of the certificate is relative to that half range.

    References
    ----------
    Ho, Lin, *JMLR* 13 (2012); Li, Sun, Toh, *SIAM J. Optim.* 28 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.arange(5.0)[:, np.newaxis]
    >>> model = mm.LinearSVR(C=10.0, epsilon=0.5, tol=1e-10).fit(X, [0.0, 2.0, 4.0, 6.0, 8.0])
    >>> print(model.coef_.round(6), model.intercept_.round(6))
    [1.75] [0.5]
    >>> model.certificate_.holds(1e-10)
    True
    """

    coef_: Floats
    intercept_: Floats
    n_iter_: int
    support_: Integers
    dual_coef_: Floats
    shape_fit_: tuple[int, int]
    _memory: Floats | None
    _fitted_with: float

    _ranked_by: ClassVar[str] = "relative_gap"
    _saved: ClassVar[Saved] = Saved(
        (*ESTIMATOR, "coef_", "shape_fit_", "_fitted_with"),
        ("n_iter_", "n_updates_", "feature_names_in_", *SUPPORT),
        ("_memory",),
        ("device",),
    )
    _parameter_constraints: ClassVar[Constraints] = {
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions(TARGET_LOSSES.keys())],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "dual": ["boolean", StrOptions({"auto"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "solver": [StrOptions({"auto", "interior-point", "newton", "coordinate-descent"})],
        "penalize_intercept": ["boolean"],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "n_jobs": [Integral, None],
        "device": DEVICE,
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | Literal["auto"] = "auto",
        verbose: bool | int = 0,
        random_state: RandomState = None,
        max_iter: int = 1000,
        solver: Solver = "auto",
        penalize_intercept: bool = False,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs
        self.device = device

    @validated
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find w and b, and certify the result.

        Parameters
        ----------
        X : array-like, CSR matrix, RowBlocks or Dask collection of shape (n_samples, n_features)
            Training samples. float32 and float64 are used as they are, without a copy. The rows of
            a Dask array or frame stay on the workers.
        y : array-like or Dask collection of shape (n_samples,)
            Targets: finite numbers.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Weights of at least 0, not all of them 0: a sample of weight 0 does not count.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        fitting.fit(self, self._method(), X, y, sample_weight)
        return self

    @by_blocks
    def predict(self, X: MatrixLike) -> Floats:
        """Return w·x + b of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        targets : ndarray or dask.array of shape (n_samples,)
            Predicted targets.
        """
        return answered(self._compute_scores(X)[:, 0], X)

    def _compute_scores(self, X: MatrixLike) -> Any:
        check_fitted(self)
        return scores_of_planes(self, X, self.coef_[np.newaxis], self.intercept_)

    def _method(self) -> Method[PrimalProblem, Start, MarginCertificate]:
        return Method(
            name="LinearSVR",
            check=self._check_training,
            multi_class=None,
            begin=partial(self._begin, TimeLimit(self.time_limit)),
            resume=self._last_plane,
            claims=self._claims(),
            max_iter=self.max_iter,
            warm_start=self.warm_start,
            callback=self.callback,
            verbose=self.verbose,
            threads=limited_threads(self.n_jobs),
            keeps_y_on_device=True,
            streams=streams(self),
        )

    def _check_training(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        if isinstance(X, RowBlocks):
            X, targets = validation.check_row_blocks(self, X, y, targets=True)
        else:
            X, targets = validation.check_targets(self, X, y, reset=reset)
        return without_classes(X, targets, sample_weight)

    def _begin(
        self, time_limit: TimeLimit, training: Training, tasks: list[Task]
    ) -> Work[PrimalProblem, Start, MarginCertificate]:
        self._check_combination()
        if not container(training.X).random_access:
            is_other = self.solver == "interior-point" and isinstance(training.X, Partitioned)
            if self.solver == "coordinate-descent" or is_other:
                refuse_random_access(f"solver={self.solver!r}", "solver='newton'")
            refuse_scaled_bias(self)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        machine = Primal.of(training.X, self.solver, self.tol, seed)

        def solve(
            problem: PrimalProblem, start: Start | None, progress: Progress, max_iter: int
        ) -> Solution:
            return machine.solve(problem, start, progress, time_limit.limits(max_iter))

        free = bias_of(self) == "free"
        return Work(
            partial(self._pose, training),
            solve,
            partial(self._attributes, training),
            # What a free bias can take over has no weight at the optimum.
            partial(without_constant_features, training) if free else unchanged,
        )

    def _check_combination(self) -> None:
        """Refuse what LIBLINEAR has no solver for."""
        if self.loss == "epsilon_insensitive" and self.dual is False:
            raise ValueError(
                "Unsupported set of arguments: The combination of penalty='l2' and "
                "loss='epsilon_insensitive' is not supported when dual=False, Parameters: "
                "penalty='l2', loss='epsilon_insensitive', dual=False"
            )

    def _pose(self, training: Training, task: Task) -> PrimalProblem:
        X, y, costs = training.X, task.labels, costs_of(self, training)
        if task.rows.size < X.shape[0]:
            if container(X).random_access:
                X, costs = take(X, task.rows), costs if costs.size == 1 else costs[task.rows]
            else:  # rows that do not count cost nothing: picking the others would read them all
                y = training.y
        return PrimalProblem.of(
            X, y, costs, self.loss, bias_of(self), float(self.intercept_scaling),
            float(self.epsilon),
        )  # fmt: skip

    def _last_plane(self, training: Training, tasks: list[Task]) -> list[Start | None]:
        """Return where a warm start begins."""
        from ..solvers.primal.ledger import Plane

        n_features = training.X.shape[1]
        if self.coef_.size != n_features:
            raise ValueError(
                f"warm_start=True with {n_features} features after {self.coef_.size}: "
                "use warm_start=False or the same features."
            )
        alpha, ratio = self._memory, self.C / self._fitted_with  # α scales with C
        n = tasks[0].rows.size if container(training.X).random_access else training.y.size
        if alpha is not None:
            alpha = ratio * alpha if alpha.size == n and np.isfinite(ratio) else None
        return [Plane(self.coef_, float(self.intercept_[0]), alpha)]

    def _attributes(
        self, training: Training, tasks: Sequence[Task], solutions: Sequence[Solution]
    ) -> Attributes:
        solution, rows = solutions[0], tasks[0].rows
        alpha = solution.alpha if solution.alpha is not None else np.zeros(rows.size)
        here = alpha if alpha.size == rows.size else alpha[rows]
        return {
            "coef_": solution.w[0],
            "intercept_": solution.b,
            **support_of_one(rows, here, None),
            "_memory": np.asarray(alpha)
            if self.warm_start and not isinstance(alpha, PartitionedVector)
            else None,
            "_fitted_with": self.C,
            "shape_fit_": tuple(training.X.shape),
        }

    def _claims(self) -> Optimal:
        return optimal(self, "Rounding leaves no finite objective: rescale y, or use a smaller C.")
