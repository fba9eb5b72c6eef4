"""Support vector machines with any kernel: SVC and NuSVC."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats
from ..certificates.dual import best_rho, kkt_rho, least_rho, primal_value
from ..certificates.scores import kernel_scores
from ..kernels import Kernel
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Callback
from ..solution import Solution, Status
from ..solvers.dual.choice import Solver
from .base import Training
from .kernel_machine import KernelMachine as KernelMachine

EPS = float(np.finfo(float).eps)
# The relative error of scores that solvers claim.
CLAIMED = 1e-5


class SVC(KernelMachine):
    """The support vector machine with soft margin, C = ∞ for the hard one.

    min ½‖w‖² + Σ C_i ξ_i (``loss="hinge"``) or Σ C_i ξ_i² (``"squared_hinge"``) subject to
    y_i (w·φ(x_i) + b) ≥ 1 − ξ_i, ξ_i ≥ 0, solved in its dual
    min ½αᵀ(Q + D)α − 1ᵀα, 0 ≤ α ≤ u, yᵀα = 0, Q_ij = y_i y_j K(x_i, x_j). Every fit is certified:
    after a converged one the worst violation of the KKT conditions is at most ``tol`` and the
    relative duality gap at most 2·tol.

    A drop-in for scikit-learn's SVC: samples of negative weight do not count, and a model of dense
    data refuses sparse ones. ``probability`` is not offered: use
    `sklearn.calibration.CalibratedClassifierCV`.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack, times the weight of the sample and of its class. ``np.inf`` is the
        hard margin, which raises `NotSeparableError` with a verified proof where no plane
        separates. Where float64 shows neither a plane nor such a proof, a ConvergenceWarning says
        that the question is undecided, and the certificate's primal value is ∞.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a callable f(X, Z) that returns the
        matrix of values (X may then be a list of strings or other objects), or a
        `maxmargin.kernels` object.
    gamma : "scale", "auto" or float, default="scale"
        γ of rbf, poly and sigmoid: 1/(d·Var X), rows weighted, 1/d, or the number itself.
    degree, coef0 : int, float
        p and r of (γ⟨x,z⟩ + r)^p, r also of the sigmoid.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    solver : {"auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"}
        "auto" solves a linear kernel with more samples than features as the linear machine, takes
        "active-set" for small hard margins, and else "decomposition"; where that creeps on up to
        some thousand samples, an interior point goes on, and where samples are few "active-set"
        takes the answer to the last digit. "smo", "active-set", "coordinate-ascent" (with
        ``fit_intercept=False``) and "qp" (a QP library, ``pip install "maxmargin[qp]"``) are for
        small problems and for learners; with up to 3000 samples they give up after some seconds.
    tol : float, default=1e-3
        The largest violation of the KKT conditions.
    cache_size : "auto" or float, default="auto"
        Megabytes for kernel values that are kept; a quarter of the free memory at most by default.
    class_weight : dict, "balanced" or None
    max_iter : int, default=-1
        Steps (moves of a pair of α) a task; −1 sets no limit.
    time_limit : float, optional
        Seconds for all tasks together, the proof included; the model is then the best one seen,
        and never worse than w = 0.
    warm_start : bool, default=False
        Begin with the α of the last fit, scaled by the change of C; on the same samples.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of many classes: one confidence a class, or the score of every pair.
    break_ties : bool, default=False
        Whether equal votes are decided by the confidences.
    shrinking : bool, default=True
        Leave samples alone for a while that are far from the margin; the answer is the same.
    n_jobs : int, optional
        Cores to use, all by default.
    fit_intercept : bool, default=True
        Whether there is a bias.
    callback : callable, optional
        Called with a `Step` after every round; a true answer stops the fit.
    verbose : bool, default=False
    random_state : int, RandomState instance or None
        Unused: the fit has no randomness. There for scikit-learn's sake.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Rows of X that are support vectors, class by class.
    support_vectors_ : array or CSR matrix (empty for a precomputed kernel)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes − 1, n_support), (n_classes, n_support) for "ovr"
        α y, in LIBSVM's order; CSR where X is.
    intercept_ : ndarray of shape (n_planes,)
    coef_ : ndarray of shape (n_planes, n_features)
        Of a linear kernel.
    fit_status_ : int
        0 where every task converged.
    n_iter_ : ndarray of shape (n_planes,)
        Steps made.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    certificates_, certificate_, statuses_, status_, traces_, trace_
        As of every estimator; see `MarginCertificate`.

    References
    ----------
    Cortes, Vapnik, *Machine Learning* 20 (1995); Chang, Lin, *LIBSVM* (2011).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> print(model.coef_.round(6), model.intercept_.round(6))
    [[-0.333333  0.2     ]] [0.133333]
    >>> model.certificate_.holds(1e-10)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        solver: Solver = "auto",
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: Any = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        callback: Callback | None = None,
        verbose: Any = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _pose(self, training: Training, task: Task) -> DualProblem:
        n = task.rows.size
        hinge = self.loss == "hinge" or np.isinf(self.C)
        costs = np.full(n, np.inf) if np.isinf(self.C) else self.C * training.weights[task.rows]
        return DualProblem.classification(
            self.kernel_,
            training.X,
            task.labels,
            upper=costs if hinge else np.full(n, np.inf),
            ridge=np.zeros(n) if hinge else 0.5 / costs,
            index=task.rows,
            bias=self.fit_intercept,
        )

    def _largest_cost(self, training: Training) -> float:
        cost = float(self.C * training.weights.max())
        return cost if np.isfinite(cost) else 1.0  # hard margins have bounds of their own

    def _rescale(self) -> float:
        ratio = self.C / self._fitted_with
        return float(ratio) if np.isfinite(ratio) and ratio > 0.0 else 1.0

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        return {**super()._attributes(training, tasks, solutions), "_fitted_with": self.C}


class NuSVC(KernelMachine):
    """The support vector machine with ν in place of C.

    min ½‖w‖² − νρ + Σ u_i ξ_i subject to y_i (w·φ(x_i) + b) ≥ ρ − ξ_i, ξ_i, ρ ≥ 0, u_i = 1/n (in
    proportion to the weights); its dual is min ½αᵀQα, 0 ≤ α ≤ u, yᵀα = 0, Σα ≥ ν. ν bounds the
    fraction of margin errors from above and that of support vectors from below. The fitted model is
    divided by ρ, so that its margin is 1: it is then the machine of C = 1/(nρ).

    Where ν is too small for the overlap of the classes, the optimum is ρ = 0 with w = 0: there is
    no margin (nor one that ``tol`` can tell from 0). A UserWarning says so; the task then has no
    support vectors and a score of 0 everywhere: of two classes, or a pair of many, the second is
    predicted, as everywhere on a plane.

    Parameters
    ----------
    nu : float, default=0.5
        At most 2·min(n₊, n₋)/n of every pair of classes.
    class_weight : dict, "balanced" or None
        Makes the u_i of a class larger, and others smaller as far as ν remains feasible.
    kernel, degree, gamma, coef0, solver, tol, cache_size, max_iter, time_limit
        As of `SVC`, and so are all others.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett, *Neural Computation* 12 (2000).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> mm.NuSVC(nu=0.5, kernel="linear").fit(X, y).predict(X)
    array([ 1,  1,  1, -1, -1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        solver: Solver = "auto",
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: Any = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: Any = False,
        random_state: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _check_training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        try:
            return super()._check_training(X, y, sample_weight, reset=reset)
        except validation.OneClassError as error:
            raise ValueError(f"specified nu is infeasible: {error}") from None

    def _pose(self, training: Training, task: Task) -> DualProblem:
        weights = training.sample_weights[task.rows]
        signs = [task.labels == sign for sign in (1.0, -1.0)]
        totals = [float(weights[of_sign].sum() / weights.sum()) for of_sign in signs]
        if self.nu > 2.0 * min(totals) * (1.0 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu}, but at most {2.0 * min(totals):g} for "
                f"'{task.name}', whose classes weigh {totals[0]:.3g} and {totals[1]:.3g} (2·min)."
            )
        upper = training.weights[task.rows]
        upper = upper / upper.sum()
        for of_sign in signs:
            # Weights of classes count as far as ν leaves room: each class has Σα = ν/2.
            upper[of_sign] *= max(1.0, 0.5 * self.nu / upper[of_sign].sum())
        return DualProblem.nu(
            self.kernel_, training.X, task.labels, float(self.nu), index=task.rows, upper=upper
        )

    def _scaled(self, training: Training, task: Task, solution: Solution) -> tuple[Floats, float]:
        assert solution.alpha is not None
        problem, b = self._pose(training, task), float(solution.b[0])
        if solution.status is Status.CONVERGED and not _has_margin(problem, solution):
            return np.zeros_like(solution.alpha), 0.0
        margins = task.labels * (_scores_of(problem, solution) + b)
        # The ρ of the KKT conditions, which are those of the certificate; of an unfinished α that
        # of the least P.
        converged = solution.status is Status.CONVERGED
        kkt = kkt_rho(problem, solution.alpha, margins)
        rho = kkt if converged else best_rho(problem, margins)
        # Of a machine in the making: without a margin there is nothing to divide by.
        return (solution.alpha / rho, b / rho) if rho > _rounding(problem) else (solution.alpha, b)

    def _publish(
        self,
        training: Training,
        tasks: list[Task],
        problems: list[Any],
        solutions: list[Solution],
    ) -> None:
        super()._publish(training, tasks, problems, solutions)
        without = [
            task.name
            for task, problem, solution, status in zip(
                tasks, problems, solutions, self.statuses_, strict=True
            )
            if status is Status.CONVERGED and not _has_margin(problem, solution)
        ]
        if without:
            warnings.warn(
                f"NuSVC: nu={self.nu} leaves no margin in {len(without)} of {len(tasks)} tasks "
                f"('{without[0]}'): no plane was found that is better than w = 0 with ρ = 0, which "
                "is the answer; its scores are 0, so that the second of two classes is predicted "
                "everywhere. Raise nu, use another kernel, or SVC.",
                UserWarning,
                stacklevel=self._frames,
            )


def _has_margin(problem: DualProblem, solution: Solution) -> bool:
    """Return whether the plane is better than w = b = ρ = 0, whose P is 0, with a ρ to speak of.

    At ρ = 0 the optimum is just that: any plane has P ≥ 0 then, and its signs are those of
    rounding, or of what the tolerance has left.
    """
    assert solution.alpha is not None
    coefficients, b = solution.alpha * problem.signs, float(solution.b[0])
    scores, rounding = _scores_of(problem, solution), problem.total * _rounding(problem)
    for exact in (False, True):
        if exact:
            scores, _ = kernel_scores(problem, coefficients)
        margins = problem.signs * (scores + b)
        primal = primal_value(problem, float(coefficients @ scores), margins)
        # Claims of a solver may be those of float32.
        if primal < -CLAIMED / EPS * rounding:
            break
    largest = float(problem.kernel.diagonal(problem.X)[problem.index].max())
    rho = kkt_rho(problem, solution.alpha, margins)
    return primal < -rounding and rho > least_rho(problem, largest)


def _scores_of(problem: DualProblem, solution: Solution) -> Floats:
    """Return the scores that the solver claims, or else compute them."""
    assert solution.alpha is not None
    if solution.scores is not None:
        return solution.scores
    return kernel_scores(problem, solution.alpha * problem.signs)[0]


def _rounding(problem: DualProblem) -> float:
    """Return what rounding may make of a score that is 0: Σα max K, times float64's."""
    largest = problem.total * float(problem.kernel.diagonal(problem.X)[problem.index].max())
    return (problem.X.shape[1] + 8) * EPS * largest
