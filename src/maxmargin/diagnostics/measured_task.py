"""The tasks of a fitted support vector machine, those of classes scaled to a margin of 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, container, linear_scores
from ..certificates.scores import kernel_scores
from ..estimators.svc import NuSVC
from ..estimators.svr import centre_of
from ..estimators.training import Training
from ..kernels import Kernel, Linear, Polynomial
from ..multiclass import Task
from ..problems import DualProblem, PrimalProblem
from ..solution import Solution
from .fitted_model import FittedModel

# Relative distance of α from its bound that counts as 0: QP libraries stop short of the bound.
AT_BOUND = 1e-6
# ‖w‖² below this is 0, relative to (Σα)² max K(x, x), which it cannot exceed.
ZERO_NORM = 1e-12


@dataclass(frozen=True, eq=False)
class MeasuredTask:
    """One task, of classes scaled to a margin of 1, with what was recomputed of it.

    Parameters
    ----------
    number, name
        Of the task.
    problem : DualProblem
        The dual problem, also of a plane.
    alpha, margins : ndarray of shape (n_variables,)
        α and s(w·φ(x) + b): y g(x) of classes.
    square : float
        ‖w‖².
    magnitude : float
        An upper bound of Σ \\|α K\\| over the samples, to which rounding is relative.
    rho : float or None
        ρ of a ν-machine of classes.
    b : float
        The bias of the problem.
    centre : float
        What the targets of the problem lack of those of the fit: g(x) is more by that, too.
    """

    number: int
    name: str
    problem: DualProblem
    alpha: Floats
    margins: Floats
    square: float
    magnitude: float = np.nan
    rho: float | None = None
    b: float = 0.0
    centre: float = 0.0

    @property
    def slack(self) -> Floats:
        """ξ = max(0, 1 − y g(x)) of classes."""
        return np.maximum(1.0 - self.margins, 0.0)

    @property
    def predictions(self) -> Floats:
        """g(x) of the samples of a regression or of one class, whose first variables have s = 1."""
        n = self.problem.n_variables // (2 if self.problem.signs[-1] < 0.0 else 1)
        return self.margins[:n] + self.centre

    @property
    def n_bound(self) -> int:
        """The number of α at their upper bound."""
        return int(np.count_nonzero(self.alpha >= self.problem.upper * (1.0 - AT_BOUND)))


def measured(model: FittedModel, training: Training, number: int, task: Task) -> MeasuredTask:
    """Return a task of the fit on its training data."""
    clf = model.classifier
    if model.is_plane:
        return _plane(model, training, number, task)
    coefficients = signed(model, number, training.X.shape[0])[task.rows]
    problem = clf._pose(clf.kernel_, training, task)
    name, centre = model.task_names[number], 0.0
    if model.has_targets:
        # α of targets above the tube, then α* of those below it.
        coefficients = np.concatenate(
            [np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)]
        )
        centre = centre_of(task.labels) if getattr(clf, "fit_intercept", True) else 0.0
    return _expansion(model, number, name, problem, coefficients, centre)


def supported(model: FittedModel) -> Iterator[MeasuredTask]:
    """Yield the tasks of the fit without its data: costs and other samples are unknown."""
    clf = model.classifier
    if model.is_plane:
        for number, name in enumerate(model.task_names):
            yield _plane_alone(model, number, name)
        return
    if not model.has_classes:
        (name,), (coefficients,) = model.task_names, model.coefficients
        problem = DualProblem.one_class(clf.kernel_, clf.support_vectors_, 1.0)
        yield _expansion(model, 0, name, problem, coefficients)
        return
    codes, coefficients = model.support_codes, model.coefficients
    tasks = model.reduction.tasks(codes, np.arange(codes.size), model.class_names)
    for number, task in enumerate(tasks):
        unknown = np.full(task.rows.size, np.nan)
        problem = DualProblem.classification(
            clf.kernel_, clf.support_vectors_, task.labels, unknown, unknown, index=task.rows
        )
        yield _expansion(model, number, task.name, problem, coefficients[number][task.rows])


def diagonal(problem: DualProblem) -> Floats:
    """Return K(x, x) of the samples of a task."""
    X, kernel = problem.X, problem.kernel
    pieces = [kernel.diagonal(piece) for _, piece in container(X).pieces()]
    return np.concatenate(pieces)[problem.index]


def signed(model: FittedModel, number: int, n_samples: int) -> Floats:
    """Return α y of one task for every row of X."""
    coefficients = np.zeros(n_samples)
    coefficients[model.support] = model.coefficients[number]
    return coefficients


# A kernel's expansion ------------------------------------------------------------------------


def _expansion(
    model: FittedModel,
    number: int,
    name: str,
    problem: DualProblem,
    coefficients: Floats,
    centre: float = 0.0,
) -> MeasuredTask:
    clf = model.classifier
    alpha, b = np.abs(coefficients), float(clf.intercept_[number]) - centre
    scores: Floats = np.empty(0)
    magnitude = 0.0
    if problem.index.size:  # there is no support vector where a solver diverged
        scores, _ = kernel_scores(problem, coefficients, b=b)
        lengths = np.sqrt(np.abs(diagonal(problem)))
        magnitude = float(alpha @ lengths) * float(lengths.max())
    square = float(coefficients @ scores) - b * float(coefficients.sum())
    margins = problem.signs * scores
    task = MeasuredTask(
        number, name, problem, alpha, margins, square, magnitude, b=b, centre=centre
    )
    if not isinstance(clf, NuSVC):
        return task
    largest = float(diagonal(problem).max(initial=0.0))
    # w = 0 has the primal value 0. A ν-machine that is not better was not divided by ρ.
    none = clf.certificates_[number].primal >= 0.0
    if none or square <= ZERO_NORM * float(alpha.sum()) ** 2 * largest:
        return replace(task, rho=0.0)
    # Σα = ν before α was divided by ρ > 0.
    rho = float(clf.nu / alpha.sum())
    hinge = DualProblem.classification(
        problem.kernel, problem.X, problem.signs, problem.upper / rho, problem.ridge,
        index=problem.index,
    )  # fmt: skip
    return replace(task, problem=hinge, rho=rho)


# A plane -------------------------------------------------------------------------------------


def posed(
    model: FittedModel, training: Training, number: int, task: Task
) -> tuple[PrimalProblem, Solution]:
    """Return the problem of a fitted plane and its solution."""
    clf = model.classifier
    problem: PrimalProblem = clf._pose(training, task)
    coefficients = signed(model, number, training.X.shape[0])
    if len(problem.y) < coefficients.size:
        coefficients = coefficients[task.rows]
    w, b = model.W[[number]], clf.intercept_[[number]]
    alpha = coefficients if problem.two_sided else np.abs(coefficients)
    return problem, Solution(w, b, clf.statuses_[number], alpha=alpha)


def _plane(model: FittedModel, training: Training, number: int, task: Task) -> MeasuredTask:
    problem, answer = posed(model, training, number, task)
    # A problem on RowBlocks has all rows, with a cost of 0 for those outside the task.
    here = slice(None) if len(problem.y) == task.rows.size else task.rows
    upper, ridge = (
        np.broadcast_to(values, problem.y.shape)[here] for values in (problem.upper, problem.ridge)
    )
    # With a penalised bias every sample has one more feature.
    penalised = problem.bias == "penalised"
    square = problem.intercept_scaling**2
    kernel: Kernel = Polynomial(1, coef0=square) if penalised else Linear()
    w, b = answer.w, float(answer.b[0])
    scores = linear_scores(training.X, w)[task.rows, 0] + b
    assert answer.alpha is not None
    alpha, bias = answer.alpha[here], problem.bias == "free"
    if problem.two_sided:
        with np.errstate(divide="ignore"):
            costs = np.where(ridge > 0.0, 0.5 / ridge, upper)
        dual = DualProblem.regression(
            kernel, training.X, task.labels, costs, problem.epsilon, index=task.rows,
            squared=bool(ridge.any()), bias=bias,
        )  # fmt: skip
        alpha = np.concatenate([np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)])
        scores = np.tile(scores, 2)
    else:
        dual = DualProblem.classification(
            kernel, training.X, task.labels, upper, ridge, index=task.rows, bias=bias
        )
    name, margins = model.task_names[number], dual.signs * scores
    return MeasuredTask(number, name, dual, alpha, margins, float(w[0] @ w[0]), b=b)


def _plane_alone(model: FittedModel, number: int, name: str) -> MeasuredTask:
    clf = model.classifier
    w, coefficients = model.W[number], clf.dual_coef_[number]
    unknown = np.full(coefficients.size, np.nan)
    problem = DualProblem.classification(
        Linear(), None, np.sign(coefficients), unknown, unknown, index=clf.support_
    )
    return MeasuredTask(number, name, problem, np.abs(coefficients), unknown, float(w @ w))
