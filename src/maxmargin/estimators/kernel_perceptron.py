"""The kernel perceptron as a classifier."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .. import validation
from ..arrays import Floats, blocks_of
from ..engines.base import Precision
from ..kernels import KERNELS, Kernel, Linear, Precomputed, resolve
from ..multiclass import Task
from ..problems import KernelSeparationProblem
from ..progress import Callback, Progress
from ..solution import Solution
from .base import CertifiedClassifier, Training, with_kernel


class DualStart(NamedTuple):
    """α and b to begin with."""

    alpha: Floats
    b: float


class KernelPerceptron(CertifiedClassifier):
    """The perceptron in dual form, with any kernel.

    y_m (Σ_l α_l y_l K(x_l, x_m) + b) ≤ 0 ⇒ α_m += 1, b += η y_m R², R² = max K(x, x).
    α counts mistakes; with the linear kernel and η = 1 they are those of
    ``Perceptron(bias="radius")`` with the same ``shuffle`` and ``random_state``, in the same order.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a callable f(X, Z) that returns the
        matrix of values, or a `maxmargin.kernels` object.
    gamma : "scale", "auto" or float, default="scale"
        γ of rbf, poly and sigmoid: 1/(d·Var X), 1/d, or the number itself.
    sigma : float, optional
        Width of the Gaussian, γ = 1/2σ²: the other spelling of gamma.
    degree, coef0 : int, float
        p and r of (γ⟨x,z⟩ + r)^p, r also of the sigmoid.
    learning_rate : float, default=1.0
        η, what the bias moves by, in R².
    fit_intercept : bool, default=True
    multi_class : {"ovr", "ovo"}, default="ovr"
    shuffle, max_iter, class_weight, warm_start, random_state, callback, verbose
        As of `Perceptron`. A weight v is v visits in a row.

    Attributes
    ----------
    support_ : ndarray of int
        Rows of X on which some task made a mistake.
    support_vectors_ : array or CSR matrix
        Those rows (empty for a precomputed kernel).
    dual_coef_ : ndarray of shape (n_planes, n_support)
        α y of each task.
    intercept_ : ndarray of shape (n_planes,)
    kernel_ : Kernel
        The kernel with its parameters resolved.
    coef_ : ndarray of shape (n_planes, n_features)
        For the linear kernel only.

    References
    ----------
    Aizerman, Braverman, Rozonoer (1964); Cristianini, Shawe-Taylor (2000), section 2.1.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> model = mm.KernelPerceptron(kernel="poly", degree=2, coef0=1.0, gamma=1.0).fit(X, y)
    >>> print(model.separates_, model.predict(X))
    True [ 1 -1  1 -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(KERNELS.keys()), callable, Kernel],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "sigma": [Interval(Real, 0, None, closed="neither"), None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "shuffle": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        learning_rate: float = 1.0,
        fit_intercept: bool = True,
        multi_class: Literal["ovr", "ovo"] = "ovr",
        shuffle: bool = True,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = 0,
        callback: Callback | None = None,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @property
    def n_support_(self) -> int:
        """Number of support vectors."""
        return len(self.support_)

    @property
    def coef_(self) -> Floats:
        """The planes of a linear kernel."""
        check_is_fitted(self)
        if self._linear_coef is None:
            raise AttributeError("coef_ is only available with kernel='linear'.")
        return self._linear_coef

    def _begin(self, training: Training) -> None:
        from ..engines.registry import engine_for

        self.kernel_ = resolve(
            self.kernel, gamma=self.gamma, sigma=self.sigma, degree=self.degree,
            coef0=self.coef0, X=training.counted,
        )  # fmt: skip
        if isinstance(self.kernel_, Precomputed):
            validation.check_precomputed(training.X)
            validation.warn_if_indefinite(self.kernel_, training.X)
        precision: Precision = "fast" if training.X.dtype == np.float32 else "exact"
        self._gram = engine_for(training.X).gram(self.kernel_, precision=precision)

    def _end(self) -> None:
        del self._gram  # it may be as large as the memory allows

    def _pose(self, training: Training, task: Task) -> KernelSeparationProblem:
        diagonal = self._gram.diagonal()[task.rows]
        step = float(self.learning_rate * diagonal.max()) if self.fit_intercept else 0.0
        return KernelSeparationProblem(
            self.kernel_, training.X, task.labels, task.rows, training.weights[task.rows], step
        )

    def _answer(
        self,
        problem: KernelSeparationProblem,
        start: DualStart | None,
        progress: Progress,
        training: Training,
        max_iter: int,
    ) -> Solution:
        from ..solvers.separating.kernel_perceptron import DualPerceptron

        everything = problem.index.size == training.X.shape[0]
        gram = self._gram if everything else self._gram.restrict(problem.index)
        if gram.fits:
            gram.whole()
        solver = DualPerceptron(gram, max_iter, training.task_rng() if self.shuffle else None)
        n = problem.index.size
        alpha = np.zeros(n) if start is None else start.alpha[problem.index]
        return solver.solve(problem, alpha, 0.0 if start is None else start.b, progress)

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        if X.shape[0] != self._n_rows:
            raise ValueError(
                f"warm_start=True with {X.shape[0]} samples after {self._n_rows}: the dual "
                "variables belong to the samples. Use warm_start=False or the same samples."
            )
        starts = []
        for coefficients, b in zip(self.dual_coef_, self.intercept_, strict=True):
            alpha = np.zeros(X.shape[0])
            alpha[self.support_] = np.abs(coefficients)
            starts.append(DualStart(alpha, float(b)))
        return starts

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        X = training.X
        coefficients = np.zeros((len(tasks), X.shape[0]))
        for k, (task, solution) in enumerate(zip(tasks, solutions, strict=True)):
            coefficients[k, task.rows] = solution.alpha * task.labels
        support = np.flatnonzero(coefficients.any(axis=0))
        # By rows, as a file has them: sums of products are then the same to the last bit.
        dual = np.ascontiguousarray(coefficients[:, support])
        is_linear = isinstance(self.kernel_, Linear)
        return {
            "support_": support,
            "support_vectors_": X[support] if not isinstance(self.kernel_, Precomputed) else X[:0],
            "dual_coef_": dual,
            "intercept_": np.concatenate([solution.b for solution in solutions]),
            "_linear_coef": dual @ X[support] if is_linear else None,
            "_n_rows": X.shape[0],
        }

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validation.check_new_data(self, X)
        scores = np.empty((X.shape[0], len(self.intercept_)))
        for block in blocks_of(X.shape[0], max(len(self.support_), 1)):
            if isinstance(self.kernel_, Precomputed):
                K = X[block][:, self.support_]
            else:
                K = self.kernel_(X[block], self.support_vectors_)
            scores[block] = K @ self.dual_coef_.T + self.intercept_
        return scores

    def __sklearn_tags__(self) -> Any:
        return with_kernel(super().__sklearn_tags__(), self.kernel)
