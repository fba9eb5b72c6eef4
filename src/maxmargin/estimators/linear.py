"""What linear classifiers share: planes as attributes, as starts and in predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from .. import validation
from ..arrays import (
    Floats,
    Integers,
    Matrix,
    MatrixLike,
    OnDevice,
    Partitioned,
    PartitionedVector,
    blocks_of,
    container,
    on_host,
    row_block,
    row_length,
)
from ..data.columns import constant_features
from ..data.normalised_samples import KeslerSamples, Samples, SignedSamples
from ..data.partitioned_samples import PartitionedSamples
from ..engines.registry import host_array, plane_scores, received
from ..multiclass import Task
from ..problems import LeastSquaresProblem, SeparationProblem
from ..progress import Callback, Progress
from ..runtime.threads import at_most, blas_for
from ..runtime.vectors import in_slices
from ..schedules import Constant, Function, Harmonic, Schedule
from ..solution import Solution, Status
from . import fitting
from .base import (
    CertifiedClassifier,
    CertifiedEstimator,
    Constraints,
    available,
    check_fitted,
    check_training,
    validated,
)
from .claims import Claims, Proof
from .device import device_for_prediction
from .fitting import Attributes, Method, Work
from .saved import PLANES, Saved
from .training import ClassWeight, RandomState, Training

LearningRate = float | Schedule | Callable[[int], float]
RATE: list[Any] = [
    Interval(Real, 0, None, closed="neither"),
    Constant,
    Harmonic,
    Function,
    callable,
]
MultiClass = Literal["ovr", "ovo", "kesler"]
Bias = Literal["plain", "radius"]
Init = Literal["zeros", "random"]
Posed = TypeVar("Posed", bound=SeparationProblem)


class PlaneStart(NamedTuple):
    """Planes to begin with, and the updates that made them."""

    w: Floats
    b: Floats
    updates: int = 0


class LinearClassifier(CertifiedClassifier[Proof]):
    """What the linear estimators share: parameters, planes and predictions."""

    fit_intercept: bool
    multi_class: Any
    max_iter: int
    class_weight: ClassWeight
    callback: Callback | None
    verbose: bool | int

    coef_: Floats
    intercept_: Floats
    n_iter_: int
    _updates_of_tasks: list[int]

    _saved: ClassVar[Saved] = PLANES
    _parameter_constraints: ClassVar[Constraints] = {
        "multi_class": [StrOptions({"ovr", "ovo", "kesler"})],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    def _compute_scores(self, X: MatrixLike) -> Any:
        check_fitted(self)
        return scores_of_planes(self, X, _dense_planes(self), self.intercept_)


def scores_of_planes(model: CertifiedEstimator[Any], X: MatrixLike, w: Floats, b: Floats) -> Any:
    """Return w_k·x_i + b_k of new data in float64, checked against the features of the fit."""
    device = device_for_prediction(model)
    X = received(X, device)
    pieces = [X] if isinstance(X, OnDevice) else (piece for _, piece in container(X).pieces())

    def scores_of(piece: MatrixLike) -> Any:
        rows = validation.check_new_data(model, piece)
        scores = plane_scores(rows, w, b, device)
        return _plane_scores(on_host(rows), w, b) if scores is None else scores

    with at_most(getattr(model, "n_jobs", None)):
        parts = [scores_of(piece) for piece in pieces]
        return parts[0] if len(parts) == 1 else np.concatenate([host_array(each) for each in parts])


def _plane_scores(X: Matrix, w: Floats, b: Floats) -> Floats:
    """Return w_k·x_i + b_k in float64."""
    scores = np.empty((X.shape[0], len(w)))

    def write(some: slice) -> None:
        for block in blocks_of(some.stop - some.start, row_length(X)):
            here = slice(some.start + block.start, some.start + block.stop)
            np.add(row_block(X, here) @ w.T, b, out=scores[here])

    with blas_for(X.shape[0] * w.size):
        in_slices(write, X.shape[0], float(row_length(X)))
    return scores


def _dense_planes(model: LinearClassifier[Proof]) -> Floats:
    """Return w of all planes; the caller may have made them sparse."""
    coef: Any = model.coef_
    return coef.toarray() if sparse.issparse(coef) else coef


def plane_attributes(tasks: Sequence[Task], solutions: Sequence[Solution]) -> Attributes:
    """Return the fitted attributes of planes."""
    return {
        "coef_": np.vstack([solution.w for solution in solutions]),
        "intercept_": np.concatenate([solution.b for solution in solutions]),
        "_updates_of_tasks": [solution.n_updates for solution in solutions],
    }


def planes_of(
    model: LinearClassifier[Proof], training: Training, tasks: list[Task]
) -> list[PlaneStart]:
    """Return the planes of a fitted model, task by task."""
    n_features = training.X.shape[1]
    if model.coef_.shape[1] != n_features:
        raise ValueError(
            f"warm_start=True with {n_features} features after {model.coef_.shape[1]}: "
            "use warm_start=False or the same features."
        )
    starts, first, coef = [], 0, _dense_planes(model)
    for task in tasks:
        planes = slice(first, first + task.n_vectors)
        starts.append(PlaneStart(coef[planes], model.intercept_[planes]))
        first = planes.stop
    return starts


def without_constant_features(training: Training, solutions: list[Solution]) -> list[Solution]:
    """Leave constant features to the bias: w_j c_j goes into b, and w_j becomes 0."""
    columns, values = constant_features(training.counted)
    if not columns.size:
        return solutions
    return [_folded(solution, columns, values) for solution in solutions]


def _folded(solution: Solution, columns: Integers, values: Floats) -> Solution:
    w = solution.w.copy()
    b = solution.b + w[:, columns] @ values
    w[:, columns] = 0.0
    return replace(solution, w=w, b=b)


# Rules on normalised samples -------------------------------------------------------------------


class PlaneSolver(Protocol):
    """A solver of separation problems."""

    def solve(self, problem: Any, a: Floats, progress: Progress, /) -> Solution:
        """Return the plane that was reached from a."""


def bias_step(training: Training, task: Task, fit_intercept: bool, bias: Bias = "plain") -> float:
    """Return what b moves by when w moves by x: 0, 1, or Novikoff's R² = max‖x‖²."""
    if not fit_intercept:
        return 0.0
    if bias == "plain":
        return 1.0
    return normalised(training, task, 0.0).largest_square or 1.0


def normalised(training: Training, task: Task, step: float) -> Samples:
    """Return the samples of a task as rows of Z."""
    X, labels = training.X, task.labels
    if isinstance(X, Partitioned):
        assert isinstance(labels, PartitionedVector)
        if isinstance(training.weights, PartitionedVector):
            labels = labels.combined(_counted, labels, training.weights)
        return PartitionedSamples(X, labels, bias_step=step)
    rows = None if task.rows.size == X.shape[0] else task.rows
    if task.n_vectors == 1:
        return SignedSamples(X, labels, index=rows, bias_step=step)
    return KeslerSamples(X, labels, n_classes=task.n_vectors, index=rows, bias_step=step)


def _counted(labels: Floats, weights: Floats) -> Floats:
    """Return the labels of rows of positive weight, and 0 of others, which do not take part."""
    return np.where(weights > 0.0, labels, 0.0)


def weights_of_task(training: Training, task: Task, weights: Floats) -> Floats | None:
    """Return the weights of the rows of a task, None where all are 1 in partitions."""
    if not isinstance(training.X, Partitioned):
        return weights[task.rows]
    return weights if isinstance(weights, PartitionedVector) else None


def separation(
    training: Training, task: Task, step: float, margins: Floats | None = None
) -> SeparationProblem:
    """Return the problem of separating the classes of a task."""
    return SeparationProblem(
        normalised(training, task, step), margins,
        weights_of_task(training, task, training.weights),
    )  # fmt: skip


def least_squares(
    training: Training, task: Task, step: float, margins: Floats | None = None
) -> LeastSquaresProblem:
    """Return the problem of least squares of a task."""
    return LeastSquaresProblem(
        normalised(training, task, step), margins,
        weights_of_task(training, task, training.weights),
    )  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """How a rule moves planes: its solver, and where it starts.

    Parameters
    ----------
    solver : callable
        (max_iter, rng or None, updates made before) ↦ the solver.
    shuffle : bool
        Whether samples are visited in random order.
    init : {"zeros", "random"}
        Where a starts.
    random_state : int, RandomState or None
    """

    solver: Callable[[int, np.random.RandomState | None, int], PlaneSolver]
    shuffle: bool
    init: Init
    random_state: RandomState

    def solve(
        self,
        training: Training,
        problem: SeparationProblem,
        start: PlaneStart | None,
        progress: Progress,
        max_iter: int,
    ) -> Solution:
        """Move the planes of a task, from a warm start or from the initial point."""
        rng = training.task_rng()
        a = self._initial(problem.Z, start, rng)
        updates = start.updates if start else 0
        solver = self.solver(max_iter, rng if self.shuffle else None, updates)
        return solver.solve(problem, a, progress)

    def _initial(self, Z: Samples, start: PlaneStart | None, rng: np.random.RandomState) -> Floats:
        if start is not None:
            return Z.pack(start.w, start.b)
        if self.init == "random":
            return Z.pack(*Z.unpack(rng.standard_normal(Z.shape[1])))
        return np.zeros(Z.shape[1])


def rule_method(
    model: RuleClassifier[Proof],
    rule: Rule,
    pose: Callable[[Training, Task], Posed],
    claims: Claims[Proof],
) -> Method[Posed, PlaneStart, Proof]:
    """Return the method of an estimator that is a rule on normalised samples."""

    def begin(training: Training, tasks: list[Task]) -> Work[Posed, PlaneStart, Proof]:
        return Work(
            partial(pose, training),
            partial(rule.solve, training),
            plane_attributes,
            partial(without_constant_features, training)
            if model.fit_intercept
            else fitting.unchanged,
        )

    return Method(
        name=type(model).__name__,
        check=partial(
            check_training,
            model,
            class_weight=model.class_weight,
            random_state=rule.random_state,
        ),
        multi_class=model.multi_class,
        begin=begin,
        resume=partial(planes_of, model),
        claims=claims,
        max_iter=model.max_iter,
        warm_start=model.warm_start,
        callback=model.callback,
        verbose=model.verbose,
    )


class RuleClassifier(LinearClassifier[Proof]):
    """An estimator whose rule visits samples, in order or shuffled."""

    shuffle: bool
    init: Init
    warm_start: bool
    random_state: RandomState
    separates_: bool

    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "init": [StrOptions({"zeros", "random"})],
        "shuffle": ["boolean"],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
    }


def _visits_single_samples(estimator: Any) -> bool:
    if estimator.update != "single":
        raise AttributeError("partial_fit is for update='single'.")
    return True


class OnlineClassifier(RuleClassifier[Proof]):
    """An estimator whose rule can go on with new data."""

    update: Literal["single", "batch"]

    _parameter_constraints: ClassVar[Constraints] = {
        **RuleClassifier._parameter_constraints,
        "update": [StrOptions({"single", "batch"})],
    }

    @available(_visits_single_samples)
    @validated
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Pass once over new samples, going on from the current planes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like, optional
            All labels that will ever occur; needed by the first call only.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        self : object
            The estimator. Its certificates are about the samples of this call, one for each task
            that has any.
        """
        fitting.partial_fit(
            self,
            replace(self._method(), resume=partial(_states, self)),
            X,
            y,
            sample_weight,
            classes=classes,
            class_weight=self.class_weight,
            random_state=self.random_state,
            kept=partial(_kept, self),
        )
        return self


def _states(
    model: OnlineClassifier[Proof], training: Training, tasks: list[Task]
) -> list[PlaneStart]:
    """Return the planes of a fitted model with the updates that made them."""
    starts, updates = planes_of(model, training, tasks), model._updates_of_tasks
    return [start._replace(updates=n) for start, n in zip(starts, updates, strict=True)]


def _kept(model: OnlineClassifier[Proof], training: Training, tasks: list[Task]) -> list[Solution]:
    """Return the planes so far, of 0 before the first call, as solutions."""
    d = training.X.shape[1]
    if not hasattr(model, "coef_"):
        zeros = [(np.zeros((task.n_vectors, d)), np.zeros(task.n_vectors)) for task in tasks]
        return [Solution(w, b, Status.CONVERGED) for w, b in zeros]
    return [
        Solution(start.w, start.b, Status.CONVERGED, n_updates=start.updates)
        for start in _states(model, training, tasks)
    ]
