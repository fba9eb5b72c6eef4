"""The one-class support vector machine: where most samples are."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval

from .. import validation
from ..arrays import Floats, Integers, MatrixLike
from ..certificates import MarginCertificate
from ..engines.registry import host_array
from ..kernels import Kernel, Precomputed
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Callback
from ..solvers.dual.choice import Solver, WarmStart
from . import fitting
from .base import Constraints, Gamma, KernelLike, check_fitted, sparse_allowed, validated
from .by_blocks import by_blocks
from .device import answered
from .documentation import documented
from .fitting import Method
from .formulation import Formulation, machine_method
from .kernel_machine import KernelMachine
from .training import Training, without_classes

# Free support vectors lie on the border: scores as small as this, relative to ρ, are rounding.
BORDER = 1e-9
EPS = float(np.finfo(float).eps)


@documented
class OneClassSVM(OutlierMixin, KernelMachine):
    """The one-class support vector machine: a region that holds most samples.

    min ½‖w‖² − νρΣc_i + Σ c_i max(0, ρ − w·φ(x_i)), where c_i is the weight of a sample, solved in
    its dual min ½αᵀKα, 0 ≤ α_i ≤ c_i, Σα = νΣc_i. Samples with w·φ(x) < ρ are outliers; ν bounds
    their fraction from above and that of support vectors from below. Every fit is certified: after
    a converged one the worst violation of the KKT conditions is at most ``tol`` times ρ, and the
    relative duality gap at most 2·tol.

    Parameters
    ----------
    {{ kernel }}
        X may be a list of strings or other objects with a callable.
    {{ degree }}
    {{ gamma }}
    {{ coef0 }}
    tol : float, default=1e-3
        The largest violation of the KKT conditions, relative to ρ.
    nu : float, default=0.5
        ν, more than 0 and at most 1.
    {{ shrinking }}
    {{ cache_size }}
    {{ verbose }}
    {{ steps }}
    {{ dual_solver }}
    {{ time_limit }}
    {{ warm_alpha }}
    {{ n_jobs }}
    {{ callback }}
    {{ device }}

    Attributes
    ----------
    offset_ : ndarray of shape (1,)
        ρ: ``decision_function`` is ``score_samples`` less this.
    {{ regression_attributes }}
    {{ certified_attributes }}

    See Also
    --------
    sklearn.neighbors.LocalOutlierFactor : Outliers by the density of their neighbours.
    maxmargin.certificates.MarginCertificate : What is proved of a fit.

    Notes
    -----
    α is scaled as in LIBSVM. At ν = 1 all α are equal: with a Gaussian kernel ``score_samples`` is
    then n times the kernel density estimate, up to a constant factor.

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola, Williamson, *Neural Computation* 13 (2001); Chang, Lin,
    *LIBSVM* (2011).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> mm.OneClassSVM(gamma="auto").fit_predict(X)
    array([-1,  1,  1,  1, -1])
    """

    n_iter_: int

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
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
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.callback = callback
        self.device = device

    @validated
    def fit(self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the region that holds most samples, and certify the result.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            Training samples; the Gram matrix (n_samples, n_samples) for a precomputed kernel.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Weights. Samples of weight 0 or less do not count, as in scikit-learn.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        fitting.fit(self, self._method(), X, None, sample_weight)
        return self

    @by_blocks
    def predict(self, X: MatrixLike) -> Integers:
        """Return +1 for the rows inside of the region, and −1 for the others.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        labels : ndarray or dask.array of shape (n_samples,)
            −1 where the decision function is negative, else +1.
        """
        labels = np.where(host_array(self._distances(X)) < 0.0, -1, 1).astype(np.intp)
        return answered(labels, X)

    @by_blocks
    def decision_function(self, X: MatrixLike) -> Floats:
        """Return w·φ(x) − ρ of each row, which is negative for outliers.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        scores : ndarray or dask.array of shape (n_samples,)
            Positive inside of the region, and 0 where nothing but rounding tells a row from its
            border.
        """
        return answered(self._distances(X), X)

    def _distances(self, X: MatrixLike) -> Any:
        """Return w·φ(x) − ρ, on the device where it is computed."""
        scores = self._compute_scores(X)[:, 0]
        scores[abs(scores) <= self._rounding()] = 0.0
        return scores

    def _rounding(self) -> float:
        """Return what rounding may make of a score that is 0: where w = 0, all scores are that."""
        largest = 0.0
        if not isinstance(self.kernel_, Precomputed) and self.support_.size:
            largest = float(np.abs(self.kernel_.diagonal(self.support_vectors_)).max())
        n_terms, total = self.n_features_in_ + self.support_.size, float(abs(self.dual_coef_).sum())
        return border_rounding(float(self.intercept_[0]), n_terms, total, largest)

    @by_blocks
    def score_samples(self, X: MatrixLike) -> Floats:
        """Return w·φ(x) of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or Dask collection of shape (n_samples, n_features)
            New samples; kernel values (n_samples, n_training_samples) for a precomputed kernel.

        Returns
        -------
        scores : ndarray or dask.array of shape (n_samples,)
            At least ``offset_`` inside of the region.
        """
        return answered(self._distances(X) + float(self.offset_[0]), X)

    @property
    def offset_(self) -> Floats:
        """The level ρ of the scores at the border of the region."""
        check_fitted(self)
        return -self.intercept_

    def _check(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        accepted = sparse_allowed(self, X)
        X = validation.check_samples(self, X, reset=reset, accept_sparse=accepted)
        return without_classes(X, np.ones(X.shape[0]), sample_weight)

    def _formulation(self) -> Formulation:
        return Formulation(self._pose, lambda training: 1.0, may_centre=False)

    def _method(self) -> Method[DualProblem, WarmStart, MarginCertificate]:
        return machine_method(self, self._formulation())

    def _pose(self, kernel: Kernel, training: Training, task: Task) -> DualProblem:
        weights = training.weights[task.rows]
        return DualProblem.one_class(kernel, training.X, float(self.nu), weights, index=task.rows)


def border_rounding(b: float, n_terms: int, total: float, largest: float) -> float:
    """Return what rounding may make of a score that is 0.

    ``n_terms`` are the features and support vectors, ``total`` is Σα, and ``largest`` the largest
    K(x, x) of support vectors.
    """
    return max(BORDER * abs(b), n_terms * EPS * total * largest)
