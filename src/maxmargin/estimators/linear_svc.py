"""The linear support vector machine at scale: LinearSVC."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import Interval, Options, StrOptions

from .. import validation
from ..arrays import (
    Floats,
    Integers,
    MatrixLike,
    Partitioned,
    PartitionedVector,
    VectorOnDevice,
    container,
    take,
)
from ..certificates import MarginCertificate
from ..data.row_blocks import RowBlocks
from ..multiclass import Task
from ..problems import JointProblem, L1Problem, PrimalProblem
from ..problems.losses import LOSSES
from ..progress import Callback, Progress
from ..solution import Solution
from ..solvers.linear import LinearProblem, Primal, Solver, Start
from .base import Constraints, check_training
from .claims import Optimal, TimeLimit
from .device import DEVICE
from .documentation import documented
from .fitting import Attributes, Method, Work, limited_threads, unchanged
from .linear import LinearClassifier, plane_attributes, planes_of, without_constant_features
from .linear_machine import (
    Bias,
    bias_of,
    costs_of,
    optimal,
    refuse_random_access,
    refuse_scaled_bias,
    streams,
    support_of_one,
)
from .saved import PLANES, SUPPORT, Saved
from .training import ClassWeight, RandomState, Training, weighted

# Stored numbers of X from which tasks of many classes are worth a thread, and up to which they are
# solved side by side.
THREAD_NUMBERS, SIDE_BY_SIDE_NUMBERS = 1 << 15, 1 << 22


@documented
class LinearSVC(SparseCoefMixin, LinearClassifier[MarginCertificate]):  # type: ignore[misc]
    """The linear support vector machine, for millions of rows or many features.

    min ½‖w‖² + Σ C_i ξ_i² (``loss="squared_hinge"``) or Σ C_i ξ_i (``"hinge"``) subject to
    y_i (w·x_i + b) ≥ 1 − ξ_i, ξ_i ≥ 0, or ‖w‖₁ in place of ½‖w‖² (``penalty="l1"``). The fit stops
    when the duality gap between the plane and the dual variables, relative to the objective, is at
    most ``tol``; the certificate recomputes both.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        "l1" gives planes of few features, by Newton steps on working sets of them, with the squared
        hinge and a finite C only; `maxmargin.l1_min_c` is the C up to which it takes none.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Norm of the slack: ξ² or ξ.
    dual : "auto" or bool, default="auto"
        Present for compatibility with scikit-learn: the solver is chosen by ``solver``. What
        LIBLINEAR has no solver for (the hinge with False, "l1" with True) is an error.
    tol : float, default=1e-4
        The relative duality gap.
    {{ cost }}
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        One plane per class against the rest, one per pair of classes, or one per class found
        jointly (Crammer and Singer; whatever ``loss``, ``penalty`` and ``dual`` say, the loss is
        then the hinge and the penalty "l2"). Two classes are one plane under every name.
    {{ fit_intercept }}
    intercept_scaling : float, default=1.0
        Value s of the feature whose weight b/s is penalised; only with ``penalize_intercept``. X is
        copied where it is not 1, unless the penalty is "l1".
    {{ class_weight }}
    {{ verbose }}
    random_state : int, RandomState instance or None, default=None
        For the order in which coordinate descent visits samples.
    max_iter : int, default=1000
        Newton or interior-point steps, or passes of coordinate descent, per task; −1 sets no limit.
    solver : {"auto", "interior-point", "newton", "coordinate-descent"}, default="auto"
        "newton" (semismooth, on the augmented Lagrangian) and "interior-point" suit n ≫ d,
        "coordinate-descent" on the dual sparse data and d > n, from where Newton steps on the free
        variables go on. Where rounding ends Newton steps early (huge costs or values), and
        features are at most 1000, "interior-point" is tried as well. With ``penalty="l1"`` every
        step is Newton's; "newton" forms the matrix of its features, which suits n ≫ d, and
        "coordinate-descent" goes over their columns. "auto" chooses.
    penalize_intercept : bool, default=False
        Add ½(b/s)² to the objective, or |b|/s with "l1", as LIBLINEAR does; s is
        ``intercept_scaling``.
    time_limit : float, optional
        Seconds for all tasks together; the model is then the best one so far.
    warm_start : bool, default=False
        Begin with the planes of the last fit, and with its α where the samples are as many.
    {{ callback }}
    {{ n_jobs }}
    {{ device }}

    Attributes
    ----------
    {{ plane_attributes }}
    support_ : ndarray of shape (n_support,)
        Rows of X whose α is positive in some task. A fit to a Dask collection has neither these
        rows nor ``dual_coef_``: α stays on the workers.
    dual_coef_ : ndarray of shape (n_planes, n_support)
        α y: ``coef_`` is about ``dual_coef_ @ X[support_]``; with ``penalty="l1"`` no feature has
        there more than 1 in absolute value, and those that ``coef_`` takes have ±1.
    shape_fit_ : tuple of int
        (n_samples, n_features) of the fit.
    {{ classes }}
    {{ certified_attributes }}

    See Also
    --------
    SVC : The machine with any kernel.
    maxmargin.RowBlocks : Data in blocks of rows, larger than the memory.
    maxmargin.certificates.PlaneCertificate : What is proved of a fit.

    Notes
    -----
    The bias is not penalised by default: scikit-learn's LinearSVC (LIBLINEAR) always
    penalises it, and moves the plane towards the origin.

    References
    ----------
    Fan, Chang, Hsieh, Wang, Lin, *JMLR* 9 (2008); Li, Sun, Toh, *SIAM J. Optim.* 28 (2018);
    Crammer, Singer, *JMLR* 2 (2001); Yuan, Ho, Lin, *JMLR* 13 (2012).

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

    support_: Integers
    dual_coef_: Floats
    shape_fit_: tuple[int, int]
    _memory: list[Floats | None] | None
    _fitted_with: float

    _ranked_by: ClassVar[str] = "relative_gap"
    _saved: ClassVar[Saved] = Saved(
        (*PLANES.always, "shape_fit_", "_fitted_with"),
        (*PLANES.sometimes, *SUPPORT),
        ("_memory",),
        ("penalty", "dual", "intercept_scaling", "device"),
    )
    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "penalty": [StrOptions({"l2", "l1"})],
        "loss": [StrOptions(LOSSES.keys())],
        "dual": ["boolean", StrOptions({"auto"})],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "solver": [StrOptions({"auto", "interior-point", "newton", "coordinate-descent"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "penalize_intercept": ["boolean"],
        "multi_class": [StrOptions({"ovr", "ovo", "crammer_singer"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "device": DEVICE,
    }

    def __init__(
        self,
        penalty: Literal["l2", "l1"] = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
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
        warm_start: bool = False,
        callback: Callback | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
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
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs
        self.device = device

    def _method(self) -> Method[LinearProblem, Start, MarginCertificate]:
        return Method(
            name="LinearSVC",
            check=self._check_training,
            multi_class=self.multi_class,
            begin=partial(self._begin, TimeLimit(self.time_limit)),
            resume=self._last_planes,
            claims=self._claims(),
            max_iter=self.max_iter,
            warm_start=self.warm_start,
            callback=self.callback,
            verbose=self.verbose,
            threads=limited_threads(self.n_jobs),
            keeps_y_on_device=True,
            streams=self._norm == "l2" and self.multi_class != "crammer_singer" and streams(self),
        )

    def _check_training(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Training:
        if isinstance(X, RowBlocks):
            X, labels = validation.check_row_blocks(self, X, y)
            return weighted(X, labels, sample_weight, self.class_weight, self.random_state)
        return check_training(
            self,
            X,
            y,
            sample_weight,
            reset=reset,
            class_weight=self.class_weight,
            random_state=self.random_state,
        )

    def _begin(
        self, time_limit: TimeLimit, training: Training, tasks: list[Task]
    ) -> Work[LinearProblem, Start, MarginCertificate]:
        X, joint = training.X, tasks[0].n_vectors > 1
        held = container(X)
        self._check_combination()
        if not held.random_access:
            self._check_blocks(joint)
        if isinstance(X, Partitioned):
            self._check_partitions()
        if joint:
            self._check_joint()
        machine = Primal.of(X, self.solver, self.tol, int(training.rng.randint(2**31 - 1)))

        def solve(
            problem: LinearProblem, start: Start | None, progress: Progress, max_iter: int
        ) -> Solution:
            return machine.solve(problem, start, progress, time_limit.limits(max_iter))

        # What a free bias can take over has no weight at the optimum.
        free = self._bias == "free"
        return Work(
            partial(self._pose, training),
            solve,
            partial(self._attributes, training),
            partial(without_constant_features, training) if free else unchanged,
            side_by_side=held.random_access
            and not held.on_device
            and THREAD_NUMBERS <= held.stored() <= SIDE_BY_SIDE_NUMBERS,
        )

    def _check_blocks(self, joint: bool) -> None:
        if joint or self.solver == "coordinate-descent":
            asked = "multi_class='crammer_singer'" if joint else f"solver={self.solver!r}"
            refuse_random_access(asked, "solver='newton' with multi_class='ovr' or 'ovo'")
        if self._norm == "l2":
            refuse_scaled_bias(self)

    def _check_partitions(self) -> None:
        if self.penalty == "l1" or self.solver == "interior-point":
            asked = "penalty='l1'" if self.penalty == "l1" else f"solver={self.solver!r}"
            raise ValueError(
                f"{asked} is not offered for Dask collections: use penalty='l2' with "
                "solver='auto' or 'newton', or an array."
            )

    def _check_combination(self) -> None:
        """Refuse what LIBLINEAR has no solver for, and what is not offered with an ℓ1 penalty."""
        if self.multi_class == "crammer_singer":
            return
        if self.penalty == "l1" and self.loss != "squared_hinge":
            why = f"The combination of penalty='l1' and loss={self.loss!r} is not supported"
        elif (self.penalty, self.dual) == ("l1", True) or (self.loss, self.dual) == (
            "hinge",
            False,
        ):
            why = (
                f"The combination of penalty={self.penalty!r} and loss={self.loss!r} is not "
                f"supported when dual={self.dual}"
            )
        else:
            self._check_sparse()
            return
        raise ValueError(
            f"Unsupported set of arguments: {why}, Parameters: penalty={self.penalty!r}, "
            f"loss={self.loss!r}, dual={self.dual!r}"
        )

    def _check_sparse(self) -> None:
        if self.penalty == "l1" and self.solver == "interior-point":
            raise ValueError(
                "solver='interior-point' is for penalty='l2': use 'auto', 'newton' or "
                "'coordinate-descent'."
            )
        if self.penalty == "l1" and np.isinf(self.C):
            raise ValueError(
                "C=inf with penalty='l1': there is no hard margin for planes of few features here. "
                "Use a large finite C."
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

    @property
    def _bias(self) -> Bias:
        return bias_of(self)

    @property
    def _norm(self) -> Literal["l2", "l1"]:
        return "l2" if self.multi_class == "crammer_singer" else self.penalty

    def _pose(self, training: Training, task: Task) -> LinearProblem:
        X, labels, rows = training.X, task.labels, task.rows
        costs = costs_of(self, training)
        is_pair = self.multi_class == "ovo" and len(training.classes) > 2
        if isinstance(labels, PartitionedVector) and is_pair:
            ends = (0.0, float(costs.max()))
            costs = labels.combined(_cost_of_pair, labels, costs, ends=ends)
            labels = labels.combined(_or_positive, labels)
        if rows.size < X.shape[0] and not container(X).random_access:
            # Rows that do not take part cost nothing: picking the others would read them all.
            everything = np.zeros(X.shape[0])
            everything[rows] = costs if costs.size == 1 else costs[rows]
            signs = np.ones(X.shape[0], dtype=labels.dtype)
            signs[rows] = labels
            costs, labels = everything, signs
        elif rows.size < X.shape[0]:
            X, costs = take(X, rows), costs if costs.size == 1 else costs[rows]
        if task.n_vectors > 1:
            costs = np.broadcast_to(costs, labels.shape)
            return JointProblem(
                X, labels, task.n_vectors, costs, self._bias, float(self.intercept_scaling)
            )
        loss = "hinge" if np.isinf(self.C) else self.loss
        kind = L1Problem if self._norm == "l1" else PrimalProblem
        return kind.of(X, labels, costs, loss, self._bias, float(self.intercept_scaling))

    def _last_planes(self, training: Training, tasks: list[Task]) -> list[Start | None]:
        """Return where a warm start begins."""
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
        starts = planes_of(self, training, tasks)
        return [
            Plane(start.w[0], float(start.b[0]), alpha)
            for start, alpha in zip(starts, alphas, strict=True)
        ]

    def _attributes(
        self, training: Training, tasks: Sequence[Task], solutions: Sequence[Solution]
    ) -> Attributes:
        return {
            **plane_attributes(tasks, solutions),
            **_support(training, tasks, solutions),
            "_memory": [_on_host(s.alpha) for s in solutions]
            if self.warm_start and not isinstance(training.X, Partitioned)
            else None,
            "_fitted_with": self.C,
            "shape_fit_": tuple(training.X.shape),
        }

    def _claims(self) -> Optimal:
        return optimal(
            self,
            "Neither a margin nor a proof that there is none stands out of rounding, or the limits "
            "came first: use a finite C, raise the limits, or ask maxmargin.separability(X, y).",
        )


def _support(
    training: Training, tasks: Sequence[Task], solutions: Sequence[Solution]
) -> Attributes:
    """Return the samples with α > 0, and their α y; nothing of those in partitions."""
    if isinstance(training.X, Partitioned):
        return {}
    if len(tasks) == 1 and tasks[0].n_vectors == 1:
        task, alpha = tasks[0], solutions[0].alpha
        if not isinstance(task.rows, VectorOnDevice) or alpha is None:
            alpha = _alpha(task, solutions[0])[:, 0]
        return support_of_one(task.rows, alpha, task.labels)
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


def _cost_of_pair(labels: Floats, costs: Floats) -> Floats:
    return np.where(labels == 0.0, 0.0, costs)


def _or_positive(labels: Floats) -> Floats:
    return np.where(labels == 0.0, 1.0, labels)


def _on_host(alpha: Floats | None) -> Floats | None:
    return None if alpha is None else np.asarray(alpha)


def _alpha(task: Task, solution: Solution) -> Floats:
    """Return α of the rows of a task, one column per weight vector of a joint one."""
    if solution.alpha is None:  # of a step that is not final
        return np.zeros((task.rows.size, task.n_vectors))
    alpha = solution.alpha.reshape(len(solution.alpha), -1)
    return alpha if len(alpha) == task.rows.size else alpha[task.rows]
