"""Support vector regression with any kernel: SVR and NuSVR."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats, MatrixLike
from ..certificates import MarginCertificate
from ..certificates.dual_tasks import kkt_rho
from ..certificates.scores import scores_of
from ..kernels import Kernel
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Callback
from ..solution import Solution
from ..solvers.dual.choice import Solver, WarmStart
from . import fitting
from .base import CertifiedRegressor, Constraints, Gamma, KernelLike, sparse_allowed, validated
from .by_blocks import by_blocks
from .device import answered
from .documentation import documented
from .fitting import Attributes, Method
from .formulation import Formulation, growth_with_cost, machine_method, no_centre
from .kernel_machine import KernelMachine
from .saved import REGRESSOR, Saved
from .training import Training, without_classes

# What to do where C = ∞ and no solver finds a function.
NO_TUBE = (
    "No function was found within epsilon of every target, as C = inf demands, and there may be "
    "none: use a finite C, or raise epsilon."
)


class KernelRegressor(CertifiedRegressor, KernelMachine):
    """What SVR and NuSVR share: targets, costs and predictions."""

    C: float
    n_iter_: int
    _fitted_with: float

    _saved: ClassVar[Saved] = REGRESSOR
    _parameter_constraints: ClassVar[Constraints] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    @validated
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the function w·φ(x) + b, and certify the result.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            Training samples; the Gram matrix (n_samples, n_samples) for a precomputed kernel.
        y : array-like or Dask collection of shape (n_samples,)
            Targets: finite numbers.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Factors of C. Samples of weight 0 or less do not count, as in scikit-learn.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        fitting.fit(self, self._method(), X, y, sample_weight)
        return self

    @by_blocks
    def predict(self, X: MatrixLike) -> Floats:
        """Return w·φ(x) + b of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        targets : ndarray or dask.array of shape (n_samples,)
            Predicted targets.
        """
        return answered(self._compute_scores(X)[:, 0], X)

    def _check(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        accepted = sparse_allowed(self, X)
        X, targets = validation.check_targets(self, X, y, reset=reset, accept_sparse=accepted)
        return without_classes(X, targets, sample_weight)

    def _costs(self, training: Training, task: Task) -> Floats | float:
        """Return C_i of the rows of the task; all are ∞ where C is."""
        return np.inf if np.isinf(self.C) else self.C * training.weights[task.rows]

    def _largest_cost(self, training: Training) -> float:
        """Return C in units of half the range of the targets, 1 where that is not finite."""
        half = 0.5 * float(np.ptp(training.y[training.rows]))
        cost = float(self.C * training.weights.max())
        return cost / half if np.isfinite(cost) and half > 0.0 else 1.0

    def _attributes(
        self, kernel: Kernel, training: Training, task: Task, solution: Solution
    ) -> Attributes:
        """Return fitted attributes that only regressions have."""
        return {"_fitted_with": self.C}


def centre_of(targets: Floats) -> float:
    """Return the middle of the range of targets, which b takes up.

    Targets far from 0 would leave float32 few digits of their differences.
    """
    return 0.5 * (float(targets.min()) + float(targets.max()))


def _centre_of_task(task: Task) -> float:
    return centre_of(task.labels)


def _expand(
    kernel: Kernel, training: Training, task: Task, solution: Solution
) -> tuple[Floats, float]:
    """Return α − α* and b."""
    assert solution.alpha is not None
    alpha, starred = np.split(solution.alpha, 2)
    return alpha - starred, float(solution.b[0])


def _expand_about_centre(
    kernel: Kernel, training: Training, task: Task, solution: Solution
) -> tuple[Floats, float]:
    """Return α − α*, and b of the targets as they are; no function but b where these are equal."""
    if np.ptp(task.labels) == 0.0:  # what is left of α − α* is rounding
        return np.zeros(task.rows.size), float(task.labels[0])
    beta, b = _expand(kernel, training, task, solution)
    return beta, b + _centre_of_task(task)


@documented
class SVR(KernelRegressor):
    """Support vector regression: a function within a tube of width ε around most targets.

    min ½‖w‖² + Σ C_i ξ_i (``loss="epsilon_insensitive"``) or Σ C_i ξ_i²
    (``"squared_epsilon_insensitive"``) with ξ_i = max(0, \\|y_i − w·φ(x_i) − b\\| − ε), solved in
    its dual min ½βᵀ(K + D)β − yᵀβ + ε Σ(α_i + α*_i), β = α − α*, 0 ≤ α, α* ≤ u, Σβ = 0. Every fit
    is certified: after a converged one the worst violation of the KKT conditions is at most ``tol``
    times half the range of the targets, and the relative duality gap at most 2·tol.

    Parameters
    ----------
    {{ kernel }}
        X may be a list of strings or other objects with a callable.
    {{ degree }}
    {{ gamma }}
    {{ coef0 }}
    {{ regression_tol }}
    {{ regression_cost }}
    epsilon : float, default=0.1
        ε, half the width of the tube in which errors cost nothing, in units of y.
    {{ shrinking }}
    {{ cache_size }}
    {{ verbose }}
    {{ steps }}
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Norm of the slack: ξ or ξ².
    {{ dual_solver }}
    {{ time_limit }}
    {{ warm_alpha_of_cost }}
    {{ n_jobs }}
    {{ fit_intercept }}
    {{ callback }}
    {{ device }}

    Attributes
    ----------
    {{ regression_attributes }}
    {{ certified_attributes }}

    See Also
    --------
    NuSVR : The same with a fraction ν of support vectors in place of ε.
    maxmargin.certificates.MarginCertificate : What is proved of a fit.

    Notes
    -----
    Where ε is at least half the range of the targets, w = 0 and there are no support vectors.
    As ε → 0 and C → ∞ the function interpolates the targets, if the kernel allows it.

    References
    ----------
    Vapnik, *The Nature of Statistical Learning Theory* (1995), chapter 6; Smola, Schölkopf,
    *Statistics and Computing* 14 (2004); Chang, Lin, *LIBSVM* (2011).

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.arange(5.0)[:, np.newaxis]
    >>> model = mm.SVR(kernel="linear", C=10.0, epsilon=0.5).fit(X, [0.0, 2.0, 4.0, 6.0, 8.0])
    >>> print(model.coef_.round(6), model.intercept_.round(6))
    [[1.75]] [0.5]
    >>> model.certificate_.holds(1e-10)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelRegressor._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: Literal["auto"] | float = "auto",
        verbose: bool | int = False,
        max_iter: int = -1,
        loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = (
            "epsilon_insensitive"
        ),
        solver: Solver = "auto",
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        callback: Callback | None = None,
        device: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.loss = loss
        self.solver = solver
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.callback = callback
        self.device = device

    def _formulation(self) -> Formulation:
        return Formulation(
            self._pose,
            self._largest_cost,
            may_centre=self.fit_intercept and bool(np.isfinite(self.C)),
            expand=_expand_about_centre if self.fit_intercept else _expand,
            centre=_centre_of_task if self.fit_intercept else no_centre,
            variables_per_row=2,
            growth=partial(growth_with_cost, self),
            attributes=self._attributes,
            remedy=NO_TUBE if np.isinf(self.C) else None,
        )

    def _method(self) -> Method[DualProblem, WarmStart, MarginCertificate]:
        return machine_method(self, self._formulation())

    def _pose(self, kernel: Kernel, training: Training, task: Task) -> DualProblem:
        centre = centre_of(task.labels) if self.fit_intercept else 0.0
        return DualProblem.regression(
            kernel,
            training.X,
            task.labels - centre,
            self._costs(training, task),
            float(self.epsilon),
            index=task.rows,
            squared=self.loss == "squared_epsilon_insensitive" and bool(np.isfinite(self.C)),
            bias=self.fit_intercept,
        )


@documented
class NuSVR(KernelRegressor):
    """Support vector regression with ν in place of the width of the tube, which is found.

    min ½‖w‖² + νεΣC_i + Σ C_i max(0, \\|y_i − w·φ(x_i) − b\\| − ε) over w, b and ε ≥ 0; its dual is
    min ½βᵀKβ − yᵀβ, β = α − α*, 0 ≤ α, α* ≤ C, Σα = Σα* = ½νΣC_i. ν bounds the fraction of samples
    outside the tube from above and that of support vectors from below. Every fit is certified, as
    of `SVR`.

    Parameters
    ----------
    nu : float, default=0.5
        ν, more than 0 and at most 1.
    C : float, default=1.0
        Cost of a unit of slack, times the weight of the sample; finite.
    {{ kernel }}
        X may be a list of strings or other objects with a callable.
    {{ degree }}
    {{ gamma }}
    {{ coef0 }}
    {{ shrinking }}
    {{ regression_tol }}
    {{ cache_size }}
    {{ verbose }}
    {{ steps }}
    {{ dual_solver }}
    {{ time_limit }}
    {{ warm_alpha_of_cost }}
    {{ n_jobs }}
    {{ callback }}
    {{ device }}

    Attributes
    ----------
    epsilon_ : float
        ε that was found, half the width of the tube.
    {{ regression_attributes }}
    {{ certified_attributes }}

    See Also
    --------
    SVR : The same with a given ε.

    Notes
    -----
    C is the cost of one sample, as in LIBSVM, and not that of all samples divided by n. An optimum
    may need no tube: ε is then 0, and ν has no effect beyond.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett, *Neural Computation* 12 (2000); Chang, Lin, *LIBSVM*
    (2011).

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.arange(5.0)[:, np.newaxis]
    >>> model = mm.NuSVR(nu=0.4, kernel="linear", C=10.0).fit(X, [0.0, 2.0, 4.0, 6.0, 8.0])
    >>> model.predict([[10.0]]).round(6)
    array([20.])
    """

    epsilon_: float

    _saved: ClassVar[Saved] = REGRESSOR._replace(sometimes=(*REGRESSOR.sometimes, "epsilon_"))
    _parameter_constraints: ClassVar[Constraints] = {
        **KernelRegressor._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        verbose: bool | int = False,
        max_iter: int = -1,
        solver: Solver = "auto",
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        device: str = "auto",
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.callback = callback
        self.device = device

    def _formulation(self) -> Formulation:
        return Formulation(
            self._pose,
            self._largest_cost,
            may_centre=True,
            expand=_expand_about_centre,
            centre=_centre_of_task,
            variables_per_row=2,
            growth=partial(growth_with_cost, self),
            attributes=self._attributes,
        )

    def _method(self) -> Method[DualProblem, WarmStart, MarginCertificate]:
        return machine_method(self, self._formulation())

    def _pose(self, kernel: Kernel, training: Training, task: Task) -> DualProblem:
        return DualProblem.nu_regression(
            kernel,
            training.X,
            task.labels - centre_of(task.labels),
            self._costs(training, task),
            float(self.nu),
            index=task.rows,
        )

    def _attributes(
        self, kernel: Kernel, training: Training, task: Task, solution: Solution
    ) -> Attributes:
        assert solution.alpha is not None
        problem = self._pose(kernel, training, task)
        margins = problem.signs * (scores_of(problem, solution) + float(solution.b[0]))
        epsilon = -kkt_rho(problem, solution.alpha, margins)
        width = 0.0 if np.ptp(task.labels) == 0.0 else max(epsilon, 0.0)
        return {"_fitted_with": self.C, "epsilon_": width}
