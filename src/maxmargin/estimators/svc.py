"""Support vector machines with any kernel: SVC and NuSVC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import Floats, Matrix, MatrixLike
from ..certificates import MarginCertificate
from ..certificates.dual_tasks import best_rho, kkt_rho, least_rho, primal_value, squared_radii
from ..certificates.scores import kernel_scores, scores_of
from ..kernels import Kernel
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Callback
from ..solution import Solution, Status
from ..solvers.dual.choice import Solver, WarmStart
from ..solvers.dual.optimality import exactly_balanced
from .approximation import ApproximateMethod, is_approximated, scores
from .base import Constraints, Gamma, KernelLike, check_fitted
from .documentation import documented
from .feature_maps import Approximate, Landmarks
from .fitting import Check, Method, Outcome, Remark
from .formulation import Formulation, checked_kernel, growth_with_cost, machine_method
from .joint_machine import JointMethod
from .kernel_classifier import KernelClassifier
from .saved import APPROXIMATION, Saved
from .training import ClassWeight, RandomState, Training

EPS = float(np.finfo(float).eps)
# The relative error of scores that solvers claim.
CLAIMED = 1e-5


@documented
class SVC(KernelClassifier):
    """The support vector machine with soft margin, C = ∞ for the hard one.

    min ½‖w‖² + Σ C_i ξ_i (``loss="hinge"``) or Σ C_i ξ_i² (``"squared_hinge"``) subject to
    y_i (w·φ(x_i) + b) ≥ 1 − ξ_i, ξ_i ≥ 0, solved in its dual
    min ½αᵀ(Q + D)α − 1ᵀα, 0 ≤ α ≤ u, yᵀα = 0, Q_ij = y_i y_j K(x_i, x_j). Every fit is certified:
    after a converged one the worst violation of the KKT conditions is at most ``tol`` and the
    relative duality gap at most 2·tol.

    Parameters
    ----------
    {{ cost }}
    {{ kernel }}
        X may be a list of strings or other objects with a callable.
    {{ degree }}
    {{ gamma }}
    {{ coef0 }}
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Norm of the slack: ξ or ξ².
    {{ dual_solver }}
    {{ kkt_tol }}
    {{ cache_size }}
    {{ class_weight }}
    {{ steps }}
    {{ time_limit }}
    {{ warm_alpha_of_cost }}
    multi_class : {"ovo", "ovr", "crammer_singer"}, default="ovo"
        One machine per pair of classes, one per class against the rest, or all of them found
        jointly (Crammer and Singer): min ½Σ_k‖w_k‖² + Σ C_i ξ_i subject to
        (w_y − w_k)·φ(x_i) + b_y − b_k ≥ 1 − ξ_i for every class k other than y = y_i, with the
        hinge, a finite C and without probabilities; ``shrinking`` has no effect there. Two classes
        are one machine under every name.
    {{ decision_function_shape }}
    {{ break_ties }}
    {{ shrinking }}
    {{ n_jobs }}
    {{ fit_intercept }}
    {{ callback }}
    {{ verbose }}
    {{ fold_random_state }}
    {{ probability }}
    {{ device }}
    approximate : {"nystroem", "fourier"} or None, default=None
        Fit the linear machine to finite features of the kernel, for more rows than a kernel machine
        takes: time and memory grow with their number, and no matrix of kernel values is formed.
        "nystroem" projects on the span of landmarks, rows of X, with any kernel but a precomputed
        one; "fourier" has random frequencies, for the RBF kernel. What is certified is the optimum
        in the space of the features; ``kernel_error_`` estimates how far its kernel is from the
        one asked for. ``cache_size`` and ``shrinking`` have no effect then.
    n_components : int, default=300
        The number of landmarks or of frequencies.
    landmarks : {"kmeans++", "leverage"}, default="kmeans++"
        How landmarks are drawn from a sample of the rows: far from each other, or by their ridge
        leverage scores.

    Attributes
    ----------
    feature_coef_ : ndarray of shape (n_planes, n_features_of_the_kernel)
        w in the space of the features of the kernel, with ``approximate``. There are then no
        support vectors.
    kernel_error_ : ndarray of shape (2,)
        Root mean square and maximum of |K(x, z) − φ̂(x)·φ̂(z)| in a sample of rows, with
        ``approximate``.
    landmarks_ : array or CSR matrix of shape (n_landmarks, n_features)
        z of φ̂(x) = k(x, z)M, with ``approximate="nystroem"``.
    normalization_ : ndarray of shape (n_landmarks, n_features_of_the_kernel)
        M.
    frequencies_ : ndarray of shape (n_features, n_components)
        ω of φ̂(x) = √(2/D) cos(ω·x + β), with ``approximate="fourier"``.
    offsets_ : ndarray of shape (n_components,)
        β.
    {{ machine_attributes }}
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    NuSVC : The same with ν in place of C.
    LinearSVC : The linear machine for many samples or features.
    maxmargin.certificates.MarginCertificate : What is proved of a fit.

    Notes
    -----
    A drop-in for scikit-learn's SVC: samples of negative weight do not count, and a model of dense
    data refuses sparse ones.

    References
    ----------
    Cortes, Vapnik, *Machine Learning* 20 (1995); Chang, Lin, *LIBSVM* (2011); Crammer, Singer,
    *JMLR* 2 (2001).

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

    _fitted_with: float
    # With approximate: planes in the space of the features of the kernel, and the map to them.
    feature_coef_: Floats
    kernel_error_: Floats
    landmarks_: Matrix
    normalization_: Floats
    frequencies_: Floats
    offsets_: Floats

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovo", "ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "approximate": [StrOptions({"nystroem", "fourier"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "landmarks": [StrOptions({"kmeans++", "leverage"})],
    }
    _saved: ClassVar[Saved] = KernelClassifier._saved._replace(
        sometimes=(*KernelClassifier._saved.sometimes, *APPROXIMATION),
        added=(*KernelClassifier._saved.added, "approximate", "n_components", "landmarks"),
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        solver: Solver = "auto",
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: ClassWeight = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        multi_class: Literal["ovo", "ovr", "crammer_singer"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        callback: Callback | None = None,
        verbose: bool | int = False,
        random_state: RandomState = None,
        probability: bool | Literal["deprecated"] = False,
        device: str = "auto",
        approximate: Approximate | None = None,
        n_components: int = 300,
        landmarks: Landmarks = "kmeans++",
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
        self.probability = probability
        self.device = device
        self.approximate = approximate
        self.n_components = n_components
        self.landmarks = landmarks

    def _formulation(self) -> Formulation:
        return Formulation(
            self._pose,
            self._largest_cost,
            may_centre=self.fit_intercept and bool(np.isfinite(self.C)),
            multi_class=self.multi_class,
            growth=partial(growth_with_cost, self),
            attributes=lambda *_: {"_fitted_with": self.C},
        )

    def _method(self) -> Method[DualProblem, WarmStart, MarginCertificate]:
        method = machine_method(self, self._formulation())
        if self.approximate is not None:
            return ApproximateMethod(self, method).method()
        if self.multi_class == "crammer_singer":
            return JointMethod(self, method, partial(checked_kernel, self)).method()
        return method

    def _compute_scores(self, X: MatrixLike) -> Any:
        check_fitted(self)
        return scores(self, X) if is_approximated(self) else super()._compute_scores(X)

    def _pose(self, kernel: Kernel, training: Training, task: Task) -> DualProblem:
        n = task.rows.size
        hinge = self.loss == "hinge" or np.isinf(self.C)
        costs = np.full(n, np.inf) if np.isinf(self.C) else self.C * training.weights[task.rows]
        return DualProblem.classification(
            kernel,
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


@documented
class NuSVC(KernelClassifier):
    """The support vector machine with ν in place of C.

    min ½‖w‖² − νρ + Σ u_i ξ_i subject to y_i (w·φ(x_i) + b) ≥ ρ − ξ_i, ξ_i, ρ ≥ 0, u_i = 1/n (in
    proportion to the weights); its dual is min ½αᵀQα, 0 ≤ α ≤ u, yᵀα = 0, Σα ≥ ν. ν bounds the
    fraction of margin errors from above and that of support vectors from below. The fitted model is
    divided by ρ, so that its margin is 1: it is then the machine of C = 1/(nρ).

    Parameters
    ----------
    nu : float, default=0.5
        At most 2·min(n₊, n₋)/n of every pair of classes.
    {{ kernel }}
        X may be a list of strings or other objects with a callable.
    {{ degree }}
    {{ gamma }}
    {{ coef0 }}
    {{ dual_solver }}
    {{ kkt_tol }}
    {{ cache_size }}
    class_weight : dict, "balanced" or None, default=None
        Makes the u_i of a class larger, and others smaller as far as ν remains feasible.
    {{ steps }}
    {{ time_limit }}
    {{ warm_alpha }}
    {{ pairs }}
    {{ decision_function_shape }}
    {{ break_ties }}
    {{ shrinking }}
    {{ n_jobs }}
    {{ callback }}
    {{ verbose }}
    {{ fold_random_state }}
    {{ probability }}
    {{ device }}

    Attributes
    ----------
    {{ machine_attributes }}
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    SVC : The same with a cost C.

    Notes
    -----
    Where ν is too small for the overlap of the classes, the optimum is ρ = 0 with w = 0: there is
    no margin (nor one that ``tol`` can tell from 0). A UserWarning says so; the task then has no
    support vectors and a score of 0 everywhere: of two classes, or a pair of several, the second is
    predicted, as everywhere on a plane.

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

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        solver: Solver = "auto",
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: ClassWeight = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: bool | int = False,
        random_state: RandomState = None,
        probability: bool | Literal["deprecated"] = False,
        device: str = "auto",
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
        self.probability = probability
        self.device = device

    def _formulation(self) -> Formulation:
        formulation = Formulation(
            self._pose,
            lambda training: 1.0,
            may_centre=True,
            multi_class=self.multi_class,
            expand=self._expand,
            remarks=self._remarks,
        )
        of_some = replace(
            formulation,
            pose=partial(self._pose, lowered=True),
            expand=partial(self._expand, lowered=True),
        )
        return replace(formulation, of_some=of_some)

    def _method(self) -> Method[DualProblem, WarmStart, MarginCertificate]:
        method = machine_method(self, self._formulation())
        return replace(method, check=partial(_check_nu, method.check))

    def _pose(
        self, kernel: Kernel, training: Training, task: Task, *, lowered: bool = False
    ) -> DualProblem:
        """Pose the machine of a task; ``lowered`` takes the largest ν that is feasible, if need be.

        Folds do not have quite the shares of the classes that all samples have.
        """
        weights = training.sample_weights[task.rows]
        signs = [task.labels == sign for sign in (1.0, -1.0)]
        totals = [float(weights[of_sign].sum() / weights.sum()) for of_sign in signs]
        nu = min(float(self.nu), 2.0 * min(totals)) if lowered else float(self.nu)
        if nu > 2.0 * min(totals) * (1.0 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu}, but at most {2.0 * min(totals):g} for "
                f"'{task.name}', whose classes weigh {totals[0]:.3g} and {totals[1]:.3g} (2·min)."
            )
        upper = training.weights[task.rows]
        upper = upper / upper.sum()
        for of_sign in signs:
            # Weights of classes count as far as ν leaves room: each class has Σα = ν/2.
            upper[of_sign] *= max(1.0, 0.5 * nu / upper[of_sign].sum())
        return DualProblem.nu(kernel, training.X, task.labels, nu, index=task.rows, upper=upper)

    def _expand(
        self,
        kernel: Kernel,
        training: Training,
        task: Task,
        solution: Solution,
        *,
        lowered: bool = False,
    ) -> tuple[Floats, float]:
        """Return α y and b divided by ρ: of the machine whose margin is 1."""
        return with_unit_margin(self._pose(kernel, training, task, lowered=lowered), solution)

    def _remarks(self, outcome: Outcome[DualProblem, MarginCertificate]) -> list[Remark]:
        """Return a warning of the tasks without a margin."""
        without = [
            task.name
            for task, problem, solution in zip(
                outcome.tasks, outcome.problems, outcome.solutions, strict=True
            )
            if solution.status is Status.CONVERGED
            and not _has_margin(problem, solution, scores_of(problem, solution))
        ]
        if not without:
            return []
        return [
            Remark(
                f"NuSVC: nu={self.nu} leaves no margin in {len(without)} of {len(outcome.tasks)} "
                f"tasks ('{without[0]}'): no plane was found that is better than w = 0 with ρ = 0, "
                "which is the answer; its scores are 0, so that the second of two classes is "
                "predicted everywhere. Raise nu, use another kernel, or SVC."
            )
        ]


def _check_nu(
    check: Check, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
) -> Training:
    """Check data; of a single class no ν is feasible."""
    try:
        return check(X, y, sample_weight, reset=reset)
    except validation.OneClassError as error:
        raise ValueError(f"specified nu is infeasible: {error}") from None


def with_unit_margin(problem: DualProblem, solution: Solution) -> tuple[Floats, float]:
    """Return α y and b of a ν-machine divided by ρ; 0 where there is no margin."""
    assert solution.alpha is not None
    b, scores = float(solution.b[0]), scores_of(problem, solution)
    converged = solution.status is Status.CONVERGED
    if converged and not _has_margin(problem, solution, scores):
        return np.zeros_like(solution.alpha), 0.0
    margins = problem.signs * (scores + b)
    # The ρ of the KKT conditions, which are those of the certificate; of an unfinished α that
    # of the least P.
    kkt = kkt_rho(problem, solution.alpha, margins)
    rho = kkt if converged else best_rho(problem, margins)
    # Without a margin, as of an unfinished machine, there is nothing to divide by.
    if rho <= _rounding(problem):
        rho = 1.0
    # What rounding of α/ρ leaves of Σyα, times ‖x‖², is in the scores of rows far from the origin.
    sums = tuple(each / rho for each in problem.sums)
    scaled = replace(problem, upper=problem.upper / rho, sums=sums)
    return problem.signs * exactly_balanced(scaled, solution.alpha / rho), b / rho


def _has_margin(problem: DualProblem, solution: Solution, scores: Floats) -> bool:
    """Return whether the plane is better than w = b = ρ = 0, whose P is 0, with a ρ to speak of.

    ``scores`` are those of `scores_of`. At ρ = 0 the optimum is just that: any plane has P ≥ 0
    then, and its signs are those of rounding, or of what the tolerance has left.
    """
    assert solution.alpha is not None
    coefficients, b = solution.alpha * problem.signs, float(solution.b[0])
    rounding = problem.total * _rounding(problem)
    for exact in (False, True):
        if exact:
            scores, _ = kernel_scores(problem, coefficients)
        margins = problem.signs * (scores + b)
        primal = primal_value(problem, float(coefficients @ scores), margins)
        # Claims of a solver may be those of float32.
        if primal < -CLAIMED / EPS * rounding:
            break
    largest = float(squared_radii(problem.kernel, problem.X)[problem.index].max())
    rho = kkt_rho(problem, solution.alpha, margins)
    return primal < -rounding and rho > least_rho(problem, largest)


def _rounding(problem: DualProblem) -> float:
    """Return what rounding may make of a score that is 0: ‖w‖ max ‖φ(x)‖, times float64's.

    ‖w‖ is at most Σα times the largest distance from any origin, as Σ yα = 0.
    """
    # K(x, x) of an indefinite kernel may be negative.
    lengths, radii = (
        np.sqrt(np.abs(squares[problem.index]).max())
        for squares in (
            problem.kernel.diagonal(problem.X),
            squared_radii(problem.kernel, problem.X),
        )
    )
    n_terms = problem.X.shape[1] + 8
    largest = float(lengths * max(radii, n_terms * EPS * lengths))
    return n_terms * EPS * problem.total * largest
