"""The linear support vector machine at scale: LinearSVC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import Interval, Options, StrOptions

from .. import validation
from ..arrays import Floats, container
from ..certificates import certify
from ..certificates.compensated import Doubled, product
from ..kernels.products import far_columns
from ..multiclass import Task
from ..problems import JointProblem, PrimalProblem
from ..problems.losses import LOSSES
from ..progress import Callback, Limits, Progress
from ..runtime.threads import at_most, single_threaded_blas
from ..solution import Solution, Status
from ..solvers.best_seen import BestSeen
from ..solvers.dual.hard_margin import LinearHardMargin, refuse, refuse_contradiction, softened
from .base import ClaimsOptimality, Training
from .linear import LinearClassifier

if TYPE_CHECKING:
    from ..solvers.primal.choice import Choice

Solver = Literal["auto", "interior-point", "newton", "coordinate-descent"]
# What a solver aims at, relative to tol: the certificate adds up in another order.
AIM = 0.99
# Stored numbers of X up to which tasks of many classes are solved side by side.
SMALL = 1 << 22
# The gap that a hard margin is solved to: α of samples off the margin are then 0.
TIGHT = 1e-6


class LinearSVC(SparseCoefMixin, ClaimsOptimality, LinearClassifier):
    """The linear support vector machine, for millions of rows or many features.

    min ½‖w‖² + Σ C_i ξ_i² (``loss="squared_hinge"``) or Σ C_i ξ_i (``"hinge"``) subject to
    y_i (w·x_i + b) ≥ 1 − ξ_i, ξ_i ≥ 0. The fit stops when the duality gap between the plane and the
    dual variables, relative to the objective, is at most ``tol``; the certificate recomputes both.

    The bias is not penalised, unless asked for: scikit-learn's LinearSVC (LIBLINEAR) always
    penalises it, and moves the plane towards the origin.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack, times the weight of the sample and of its class. ``np.inf`` is the
        hard margin, which raises `NotSeparableError` with a verified proof where no plane
        separates. Where float64 shows neither a plane nor such a proof, a ConvergenceWarning says
        that the question is undecided, and the certificate's primal value is ∞.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    solver : {"auto", "interior-point", "newton", "coordinate-descent"}
        "newton" (semismooth, on the augmented Lagrangian) and "interior-point" suit n ≫ d,
        "coordinate-descent" on the dual sparse data and d > n, from where Newton steps on the free
        variables go on. Where rounding ends Newton steps early (huge costs or values), and
        features are at most 1000, "interior-point" is tried as well. "auto" chooses.
    tol : float, default=1e-4
        The relative duality gap.
    fit_intercept : bool, default=True
        Whether there is a bias.
    penalize_intercept : bool, default=False
        Add ½b² to the objective, as LIBLINEAR does.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        One plane a class against the rest, one a pair of classes, or one a class found jointly
        (`JointProblem`; its loss is the hinge, whatever ``loss`` says). Two classes are one
        plane under every name.
    class_weight : dict, "balanced" or None
    max_iter : int, default=1000
        Newton or interior-point steps, or passes of coordinate descent, a task; −1 sets no limit.
    time_limit : float, optional
        Seconds for all tasks together; the model is then the best one so far.
    warm_start : bool, default=False
        Begin with the planes of the last fit, and with its α where the samples are as many.
    callback : callable, optional
        Called with a `Step` after every step or pass; a true answer stops the fit.
    verbose : bool, default=False
    random_state : int, RandomState instance or None
        For the order in which coordinate descent visits samples.
    n_jobs : int, optional
        Cores to use, all by default.

    Attributes
    ----------
    coef_ : ndarray of shape (n_planes, n_features)
    intercept_ : ndarray of shape (n_planes,)
    support_ : ndarray of shape (n_support,)
        Rows of X whose α is positive in some task.
    dual_coef_ : ndarray of shape (n_planes, n_support)
        α y: ``coef_`` is about ``dual_coef_ @ X[support_]``.
    shape_fit_ : tuple of int
        (n_samples, n_features) of the fit.
    n_iter_ : int
        Steps of the longest task.
    hyperplane_ : Hyperplane
        Of two classes.
    certificates_, certificate_, statuses_, status_, traces_, trace_
        As of every estimator; see `PlaneCertificate`.

    References
    ----------
    Fan, Chang, Hsieh, Wang, Lin, *JMLR* 9 (2008); Li, Sun, Toh, *SIAM J. Optim.* 28 (2018).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.LinearSVC(C=float("inf"), tol=1e-10).fit(X, y)
    >>> print(model.coef_.round(6), model.intercept_.round(6))
    [[-0.333333  0.2     ]] [0.133333]
    >>> model.certificate_.holds(1e-10)
    True
    """

    _frames = 6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions(LOSSES.keys())],
        "solver": [StrOptions({"auto", "interior-point", "newton", "coordinate-descent"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "penalize_intercept": ["boolean"],
        "multi_class": [StrOptions({"ovr", "ovo", "crammer_singer"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        solver: Solver = "auto",
        tol: float = 1e-4,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        multi_class: Literal["ovr", "ovo", "crammer_singer"] = "ovr",
        class_weight: Any = None,
        max_iter: int = 1000,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: Any = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Fitting -------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        with at_most(self.n_jobs), single_threaded_blas(), self._timed():
            super()._fit(X, y, sample_weight)

    def _begin(self, training: Training) -> None:
        joint = self.multi_class == "crammer_singer" and len(training.classes) > 2
        if not container(training.X).random_access:
            self._check_blocks(joint)
        if joint:
            self._check_joint()
        self._seed = int(training.rng.randint(2**31 - 1))

    def _check_blocks(self, joint: bool) -> None:
        if joint or self.solver == "coordinate-descent":
            asked = "multi_class='crammer_singer'" if joint else f"solver={self.solver!r}"
            raise ValueError(
                f"{asked} visits rows in any order, which RowBlocks do not allow: use "
                "solver='newton' with multi_class='ovr' or 'ovo', or an array (np.memmap too)."
            )

    def _check_joint(self) -> None:
        if self.solver != "auto":
            raise ValueError(
                f"solver={self.solver!r} is for planes found one by one: "
                "multi_class='crammer_singer' has its own, use solver='auto'."
            )
        if np.isinf(self.C):
            raise ValueError(
                "C=inf with multi_class='crammer_singer': there is no hard margin for a linear "
                "machine here. Use a large finite C, or multi_class='ovr'."
            )

    def _end(self) -> None:
        del self._seed

    def _side_by_side(self, training: Training, tasks: list[Task]) -> bool:
        held = container(training.X)
        return held.random_access and held.stored() <= SMALL

    @property
    def _bias(self) -> Literal["free", "penalised", "none"]:
        if not self.fit_intercept:
            return "none"
        return "penalised" if self.penalize_intercept else "free"

    def _check_training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        if not container(X).random_access:
            X, y = validation.check_row_blocks(self, X, y)
            return self._weighted(X, y, sample_weight)
        return super()._check_training(X, y, sample_weight, reset=reset)

    def _pose(self, training: Training, task: Task) -> Any:
        X, labels, rows = training.X, task.labels, task.rows
        # Equal weights are one number.
        weights = training.weights[: 1 if np.ptp(training.weights) == 0.0 else None]
        costs = np.where(weights > 0.0, self.C, 0.0) * np.where(weights > 0.0, weights, 1.0)
        if rows.size < X.shape[0] and not container(X).random_access:
            # Rows that do not take part cost nothing: picking the others would read them all.
            everything = np.zeros(X.shape[0])
            everything[rows] = costs if costs.size == 1 else costs[rows]
            signs = np.ones(X.shape[0], dtype=labels.dtype)
            signs[rows] = labels
            costs, labels = everything, signs
        elif rows.size < X.shape[0]:
            X, costs = X[rows], costs if costs.size == 1 else costs[rows]
        if task.n_vectors > 1:
            costs = np.broadcast_to(costs, labels.shape)
            return JointProblem(X, labels, task.n_vectors, costs, self._bias)
        loss = "hinge" if np.isinf(self.C) else self.loss
        return PrimalProblem.of(X, labels, costs, loss, self._bias)

    def _answer(
        self, problem: Any, start: Any, progress: Progress, training: Training, max_iter: int
    ) -> Solution:
        limits = self._limits(max_iter)
        if isinstance(problem, PrimalProblem) and problem.hard:
            return self._hard(problem, start, progress, limits)
        centre = far_centre(problem)
        if centre is None:
            return self._soft(problem, start, progress, limits)
        # About their mean rows far from the origin have digits left for their differences.
        back = partial(_moved_back, centre)
        moved = replace(problem, X=problem.X - centre.astype(problem.X.dtype))
        if isinstance(problem, PrimalProblem) and start is not None:
            start = replace(start, b=start.b + float(start.w @ centre))
        return back(self._soft(moved, start, BestSeen(progress, back), limits))

    def _soft(self, problem: Any, start: Any, progress: Progress, limits: Limits) -> Solution:
        from ..engines.cpu.features import Features
        from ..solvers.joint import CrammerSinger

        tol = AIM * self.tol
        if isinstance(problem, PrimalProblem):
            return self._choice(problem, limits, tol).solve(problem, start, progress)
        solver = CrammerSinger(Features(problem.X), tol, limits, self._seed)
        return solver.solve(problem, start, progress)

    def _choice(self, problem: PrimalProblem, limits: Limits, tol: float) -> Choice:
        """Return the solver that was asked for, or the one that suits."""
        from ..engines.cpu.features import Features
        from ..solvers.primal.choice import Choice

        return Choice(Features(problem.X), self.solver, tol, limits, self._seed)

    def _hard(
        self, problem: PrimalProblem, start: Any, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve the hard margin as a soft one that is costly enough for no α to meet its bound.

        Where that ends with no proof of optimality, the question is first whether any plane
        separates; if one does, the nearest points of the hulls give the widest.
        """
        hard = LinearHardMargin.of(problem) if container(problem.X).random_access else None
        if hard is not None:
            refuse_contradiction(hard)
        solution = self._costly(problem, hard, start, progress, limits)
        if solution.status in (Status.STOPPED, Status.TIME_LIMIT):
            return solution
        if certify(problem, solution).holds(self.tol):
            return solution
        hard = hard or LinearHardMargin.of(problem)
        report = hard.verdict()
        refuse(report)
        if report.separable is None:
            return replace(solution, status=Status.PATIENCE)
        widest = hard.solve(report, progress, limits)
        alpha = np.zeros(len(problem.y))
        alpha[np.broadcast_to(problem.upper > 0, alpha.shape)] = widest.alpha
        return replace(widest, alpha=alpha)

    def _costly(
        self, problem: PrimalProblem, hard: LinearHardMargin | None, start: Any,
        progress: Progress, limits: Limits,
    ) -> Solution:  # fmt: skip
        """Solve the machine of a large finite cost, by the solver that was asked for."""
        soft, centre = softened(problem, hard)
        solver = self._choice(soft, limits, min(AIM * self.tol, TIGHT)).solver(soft)
        solution: Solution = solver.solve(soft, None if centre.any() else start, progress)
        return replace(solution, b=solution.b - solution.w @ centre)

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        from ..solvers.primal.ledger import Plane

        ratio = self.C / self._fitted_with  # α scales with C
        memory = self._memory if self._memory is not None else [None] * len(tasks)
        alphas = [
            ratio * alpha
            if alpha is not None and len(alpha) == task.rows.size and np.isfinite(ratio)
            else None
            for alpha, task in zip(memory, tasks, strict=True)
        ]
        if tasks[0].n_vectors > 1:
            return alphas
        starts = super()._restart(X, tasks)
        return [
            Plane(start.w[0], float(start.b[0]), alpha)
            for start, alpha in zip(starts, alphas, strict=True)
        ]

    def _finish(self, training: Training, solutions: list[Solution]) -> list[Solution]:
        # What a free bias can take over has no weight at the optimum.
        return super()._finish(training, solutions) if self._bias == "free" else solutions

    @property
    def _worst(self) -> int:
        return int(np.argmax([certificate.relative_gap for certificate in self.certificates_]))

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        return {
            **super()._attributes(training, tasks, solutions),
            **_support(training, tasks, solutions),
            "_memory": [s.alpha for s in solutions] if self.warm_start else None,
            "_fitted_with": self.C,
            "shape_fit_": tuple(training.X.shape),
        }

    def _remedy(self, status: Status) -> str:
        if status is Status.TIME_LIMIT:
            return f"Raise time_limit={self.time_limit}, or go on with warm_start=True."
        if status is Status.PATIENCE:
            return "Rounding allows no smaller gap: raise tol, or scale the features."
        return "Raise max_iter, or scale the features; warm_start=True goes on from here."


def far_centre(problem: PrimalProblem | JointProblem) -> Floats | None:
    """Return the mean of the columns that are a hundred times as far from 0 as they are wide.

    None where there are none, where the bias cannot take the shift up, and where a centred copy of
    X would be large.
    """
    X, held = problem.X, container(problem.X)
    if held.sparse or not held.random_access or problem.bias != "free" or held.stored() > SMALL:
        return None
    centre = far_columns(X, 1.0 - 1e-4)
    return centre if centre.any() else None


def _moved_back(centre: Floats, solution: Solution) -> Solution:
    """Return the planes found about ``centre`` as those of the rows themselves."""
    shifts = [
        product(centre[np.newaxis], Doubled(-w, np.zeros(w.size)), float(b))
        for w, b in zip(solution.w, solution.b, strict=True)
    ]
    return replace(solution, b=np.concatenate(shifts))


def _support(training: Training, tasks: list[Task], solutions: list[Solution]) -> dict[str, Any]:
    """Return the samples with α > 0, and their α y."""
    used = np.zeros(training.X.shape[0], dtype=bool)
    alphas = [_alpha(task, solution) for task, solution in zip(tasks, solutions, strict=True)]
    for task, alpha in zip(tasks, alphas, strict=True):
        used[task.rows[alpha.any(axis=1)]] = True
    support = np.flatnonzero(used)
    place = np.cumsum(used) - 1
    dual = []
    for task, alpha in zip(tasks, alphas, strict=True):
        chosen = used[task.rows]
        signed = alpha if task.n_vectors > 1 else alpha * task.labels[:, np.newaxis]
        dual.append(np.zeros((task.n_vectors, support.size)))
        dual[-1][:, place[task.rows[chosen]]] = signed[chosen].T
    return {"support_": support.astype(np.int32), "dual_coef_": np.vstack(dual)}


def _alpha(task: Task, solution: Solution) -> Floats:
    """Return α of the rows of a task, one column a weight vector of a joint one."""
    if solution.alpha is None:  # of a step that is not final
        return np.zeros((task.rows.size, task.n_vectors))
    alpha = solution.alpha.reshape(len(solution.alpha), -1)
    return alpha if len(alpha) == task.rows.size else alpha[task.rows]
