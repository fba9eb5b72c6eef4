"""The tasks of a fitted support vector machine, scaled to a margin of 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, container, dense, linear_scores
from ..certificates.scores import kernel_scores
from ..estimators.linear_svc import LinearSVC
from ..estimators.svc import NuSVC
from ..estimators.training import Training
from ..kernels import Kernel, Linear, Polynomial
from ..multiclass import Task
from ..problems import DualProblem, PrimalProblem
from ..solution import Solution
from .fitted_model import FittedModel

# ‖w‖² below this is 0, relative to (Σα)² max K(x, x), which it cannot exceed.
ZERO_NORM = 1e-12


@dataclass(frozen=True, eq=False)
class MeasuredTask:
    """One task scaled to a margin of 1, with what was recomputed of it.

    Parameters
    ----------
    number, name
        Of the task.
    problem : DualProblem
        The dual problem, also for a `LinearSVC`.
    alpha, margins : ndarray of shape (n,)
        α and y g(x).
    square : float
        ‖w‖².
    magnitude : float
        An upper bound of Σ \\|α K\\| over the samples, to which rounding is relative.
    rho : float or None
        ρ of a ν-machine.
    """

    number: int
    name: str
    problem: DualProblem
    alpha: Floats
    margins: Floats
    square: float
    magnitude: float = np.nan
    rho: float | None = None

    @property
    def slack(self) -> Floats:
        """ξ = max(0, 1 − y g(x))."""
        return np.maximum(1.0 - self.margins, 0.0)


def measured(model: FittedModel, training: Training, number: int, task: Task) -> MeasuredTask:
    """Return a task of the fit on its training data."""
    clf = model.classifier
    if isinstance(clf, LinearSVC):
        return _plane(model, training, number, task)
    coefficients = signed(model, number, training.X.shape[0])
    problem = clf._pose(clf.kernel_, training, task)
    return _expansion(model, number, task.name, problem, coefficients[task.rows])


def supported(model: FittedModel) -> Iterator[MeasuredTask]:
    """Yield the tasks of the fit without its data: costs and other samples are unknown."""
    clf = model.classifier
    if isinstance(clf, LinearSVC):
        for number, name in enumerate(model.task_names):
            yield _plane_alone(model, number, name)
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
    model: FittedModel, number: int, name: str, problem: DualProblem, coefficients: Floats
) -> MeasuredTask:
    clf = model.classifier
    alpha, b = np.abs(coefficients), float(clf.intercept_[number])
    scores: Floats = np.empty(0)
    magnitude = 0.0
    if problem.index.size:  # there is no support vector where a solver diverged
        scores, _ = kernel_scores(problem, coefficients, b=b)
        lengths = np.sqrt(np.abs(diagonal(problem)))
        magnitude = float(alpha @ lengths) * float(lengths.max())
    square = float(coefficients @ scores) - b * float(coefficients.sum())
    margins = problem.signs * scores
    task = MeasuredTask(number, name, problem, alpha, margins, square, magnitude)
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
    """Return the problem of a fitted `LinearSVC` and its solution."""
    clf = model.classifier
    problem: PrimalProblem = clf._pose(training, task)
    coefficients = signed(model, number, training.X.shape[0])
    if len(problem.y) < coefficients.size:
        coefficients = coefficients[task.rows]
    w, b = dense(clf.coef_)[[number]], clf.intercept_[[number]]
    return problem, Solution(w, b, clf.statuses_[number], alpha=np.abs(coefficients))


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
    dual = DualProblem.classification(
        kernel, training.X, task.labels, upper, ridge, index=task.rows, bias=problem.bias == "free"
    )
    w, b = answer.w, float(answer.b[0])
    scores = linear_scores(training.X, w)[task.rows, 0]
    assert answer.alpha is not None
    alpha, margins = answer.alpha[here], task.labels * (scores + b)
    return MeasuredTask(number, task.name, dual, alpha, margins, float(w[0] @ w[0]))


def _plane_alone(model: FittedModel, number: int, name: str) -> MeasuredTask:
    clf = model.classifier
    w, coefficients = dense(clf.coef_)[number], clf.dual_coef_[number]
    unknown = np.full(coefficients.size, np.nan)
    problem = DualProblem.classification(
        Linear(), None, np.sign(coefficients), unknown, unknown, index=clf.support_
    )
    return MeasuredTask(number, name, problem, np.abs(coefficients), unknown, float(w @ w))
