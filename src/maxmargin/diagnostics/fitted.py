"""What was fitted, task by task, as the machine whose margin is 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, linear_scores
from ..certificates.scores import kernel_scores
from ..data.row_blocks import RowBlocks
from ..estimators.base import Training
from ..estimators.linear_svc import LinearSVC
from ..estimators.svc import SVC, NuSVC
from ..kernels import Kernel, Linear, Polynomial
from ..multiclass import OneVsOne, Task
from ..problems import DualProblem, PrimalProblem
from ..solution import Solution

Machine: TypeAlias = SVC | NuSVC | LinearSVC
KernelMachine: TypeAlias = SVC | NuSVC

# Numerical zero of ‖w‖² next to (Σα)² max K(x, x), the most that it can be.
NO_MARGIN = 1e-12


@dataclass(frozen=True, eq=False)
class MeasuredTask:
    """One task as the machine whose margin is 1, with what was recomputed of it.

    The problem is the dual one, that of a `LinearSVC` too. ``square`` is ‖w‖²; ``rho`` is that of a
    ν-machine, ``magnitude`` what no Σ \\|α K\\| of a sample exceeds, to which rounding is relative.
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


def measured(clf: Machine, training: Training, number: int, task: Task) -> MeasuredTask:
    """Return a task of the fit on its training data."""
    if isinstance(clf, LinearSVC):
        return _plane(clf, training, number, task)
    coefficients = np.zeros(training.X.shape[0])
    coefficients[clf.support_] = _coefficients(clf, dense(clf.dual_coef_), number)
    problem = clf._pose(training, task)
    return _expansion(clf, number, task.name, problem, coefficients[task.rows])


def supported(clf: Machine) -> Iterator[MeasuredTask]:
    """Yield the tasks of the fit without its data: their costs nobody knows."""
    names = [str(name) for name in clf.classes_]
    if isinstance(clf, LinearSVC):
        codes = np.arange(len(names))
        for number, task in enumerate(clf._reduction().tasks(codes, codes, names)):
            yield _plane_alone(clf, number, task.name)
        return
    codes, dual = support_codes(clf), dense(clf.dual_coef_)
    for number, task in enumerate(clf._reduction().tasks(codes, np.arange(codes.size), names)):
        unknown = np.full(task.rows.size, np.nan)
        problem = DualProblem.classification(
            clf.kernel_, clf.support_vectors_, task.labels, unknown, unknown, index=task.rows
        )
        coefficients = _coefficients(clf, dual, number)[task.rows]
        yield _expansion(clf, number, task.name, problem, coefficients)


def support_codes(clf: KernelMachine) -> Integers:
    """Return the class number of every support vector: they come class by class."""
    return np.repeat(np.arange(len(clf.classes_)), clf.n_support_)


def diagonal(problem: DualProblem) -> Floats:
    """Return K(x, x) of the samples of a task."""
    X, kernel = problem.X, problem.kernel
    if isinstance(X, RowBlocks):
        return np.concatenate([kernel.diagonal(block) for block in X])[problem.index]
    return kernel.diagonal(X)[problem.index]


def dense(matrix: Any) -> Floats:
    """Return an array of float64."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


# A kernel's expansion ------------------------------------------------------------------------


def _expansion(
    clf: KernelMachine, number: int, name: str, problem: DualProblem, coefficients: Floats
) -> MeasuredTask:
    alpha, b = np.abs(coefficients), float(clf.intercept_[number])
    scores: Floats = np.empty(0)
    magnitude = 0.0
    if problem.index.size:  # a solver that diverged may leave no support vector
        scores, _ = kernel_scores(problem, coefficients, b=b)
        lengths = np.sqrt(np.abs(diagonal(problem)))
        magnitude = float(alpha @ lengths) * float(lengths.max())
    square = float(coefficients @ scores) - b * float(coefficients.sum())
    margins = problem.signs * scores
    machine = MeasuredTask(number, name, problem, alpha, margins, square, magnitude)
    if not isinstance(clf, NuSVC):
        return machine
    largest = float(diagonal(problem).max(initial=0.0))
    # w = 0 has the primal value 0: what is not better has no margin, and was not divided by it.
    none = clf.certificates_[number].primal >= 0.0
    if none or square <= NO_MARGIN * float(alpha.sum()) ** 2 * largest:
        return replace(machine, rho=0.0)
    # Σα = ν before α was divided by ρ > 0.
    rho = float(clf.nu / alpha.sum())
    hinge = DualProblem.classification(
        problem.kernel, problem.X, problem.signs, problem.upper / rho, problem.ridge,
        index=problem.index,
    )  # fmt: skip
    return replace(machine, problem=hinge, rho=rho)


def _coefficients(clf: KernelMachine, dual: Floats, number: int) -> Floats:
    """Return α y of one task for every support vector, from LIBSVM's layout for pairs."""
    if not isinstance(clf._reduction(), OneVsOne):
        return dual[number]
    i, j = OneVsOne.pairs(len(clf.classes_))[number]
    codes = support_codes(clf)
    return np.select([codes == i, codes == j], [dual[j - 1], dual[i]], 0.0)


# A plane -------------------------------------------------------------------------------------


def signed(clf: LinearSVC, number: int, n_samples: int) -> Floats:
    """Return α y of one task for every row of X."""
    coefficients = np.zeros(n_samples)
    coefficients[clf.support_] = clf.dual_coef_[number]
    return coefficients


def posed(
    clf: LinearSVC, training: Training, number: int, task: Task
) -> tuple[PrimalProblem, Solution]:
    """Return the problem of the fit, and its answer; α y has the signs of the labels."""
    problem = clf._pose(training, task)
    coefficients = signed(clf, number, training.X.shape[0])
    if len(problem.y) < coefficients.size:
        coefficients = coefficients[task.rows]
    w, b = dense(clf.coef_)[[number]], clf.intercept_[[number]]
    return problem, Solution(w, b, clf.statuses_[number], alpha=np.abs(coefficients))


def _plane(clf: LinearSVC, training: Training, number: int, task: Task) -> MeasuredTask:
    problem, answer = posed(clf, training, number, task)
    # All rows of RowBlocks are there, those that take no part with a cost of 0.
    here = slice(None) if len(problem.y) == task.rows.size else task.rows
    upper, ridge = (
        np.broadcast_to(values, problem.y.shape)[here] for values in (problem.upper, problem.ridge)
    )
    # With a penalised bias every sample has one more feature, of value 1.
    penalised = problem.bias == "penalised"
    kernel: Kernel = Polynomial(1, coef0=1.0) if penalised else Linear()
    dual = DualProblem.classification(
        kernel, training.X, task.labels, upper, ridge, index=task.rows, bias=problem.bias == "free"
    )
    w, b = answer.w, float(answer.b[0])
    blocks = training.X if isinstance(training.X, RowBlocks) else [training.X]
    scores = np.concatenate([linear_scores(block, w)[:, 0] for block in blocks])[task.rows]
    assert answer.alpha is not None
    alpha, margins = answer.alpha[here], task.labels * (scores + b)
    return MeasuredTask(number, task.name, dual, alpha, margins, float(w[0] @ w[0]))


def _plane_alone(clf: LinearSVC, number: int, name: str) -> MeasuredTask:
    w, coefficients = dense(clf.coef_)[number], clf.dual_coef_[number]
    unknown = np.full(coefficients.size, np.nan)
    problem = DualProblem.classification(
        Linear(), None, np.sign(coefficients), unknown, unknown, index=clf.support_
    )
    return MeasuredTask(number, name, problem, np.abs(coefficients), unknown, float(w @ w))
