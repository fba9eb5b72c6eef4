"""Problems and solutions of a fitted model, made from its attributes and its training data."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, MatrixLike
from ..multiclass import Task
from ..problems import DualProblem
from ..progress import Progress
from ..solution import Solution
from .approximation import is_approximated, posed_again
from .expansion import Expansion
from .fitting import Work, limited_threads
from .kernel_machine import KernelMachine
from .kernel_perceptron import KernelPerceptron
from .linear import LinearClassifier, planes_of
from .linear_svc import LinearSVC
from .linear_svr import LinearSVR
from .training import Training

# α of a ν-classifier, relative to its bound, up to which it is at that bound.
SAME_BOUND = 1e-12


@dataclass(frozen=True)
class Recovered:
    """The tasks of a fit with their problems and answers.

    ``solved_again`` says that α is not that of the model, which has none, but was found anew.
    """

    training: Training
    tasks: list[Task]
    problems: list[Any]
    solutions: list[Solution]
    solved_again: bool = False


class OtherDataError(ValueError):
    """The data cannot be those of the fit."""


def recover(
    model: Any, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None = None
) -> Recovered:
    """Return what was asked and answered in the last fit of an estimator to these data.

    α, b and planes are those of the model, kernels have the parameters of the fit. Nothing is
    fitted, but for α of linear machines that do not have it.
    """
    if getattr(model, "_objects", None) is not None:
        raise OtherDataError("a machine of objects has no rows to compute from.")
    posing = copy(model)  # kernels with the parameters that were found from the data of the fit
    if hasattr(model, "kernel_"):
        posing.kernel = model.kernel_
    method = posing._method()
    training = method.check(X, y, sample_weight, reset=False)
    _check_same_data(model, training)
    tasks = method.tasks(training, getattr(model, "_reduced_by", None))
    with limited_threads(getattr(model, "n_jobs", None)):
        if is_approximated(model):
            work, planes = posed_again(model, training, tasks)
            problems = [work.pose(task) for task in tasks]
            return _of_linear_machine(model, work, Recovered(training, tasks, problems, planes))
        if isinstance(model, KernelMachine):
            return _of_machine(posing, training, tasks)
        work = method.begin(training, tasks)
        problems = [work.pose(task) for task in tasks]
        if isinstance(model, KernelPerceptron):
            return Recovered(training, tasks, problems, _of_expansion(model, training, tasks))
        found = Recovered(training, tasks, problems, _planes(model, training, tasks))
        if isinstance(model, LinearSVC | LinearSVR):
            return _of_linear_machine(model, work, found)
        return _with_multipliers(model, work, found)


def _check_same_data(model: Any, training: Training) -> None:
    """Raise where the data have other sizes or classes than those of the fit."""
    n, d = training.X.shape
    shape = getattr(model, "shape_fit_", (getattr(model, "_n_rows", n), d))
    if n != shape[0]:
        raise OtherDataError(f"the data have {n} rows, the model was fitted to {shape[0]}.")
    classes = getattr(model, "classes_", training.classes)
    if not np.array_equal(training.classes, classes):
        raise OtherDataError(
            f"the data have the classes {training.classes.tolist()!r:.100}, the model "
            f"{classes.tolist()!r:.100}."
        )


def _answer(model: Any, k: int, **parts: Any) -> Solution:
    return Solution(status=model.statuses_[min(k, len(model.statuses_) - 1)], **parts)


# Planes ------------------------------------------------------------------------------------------


def _planes(model: Any, training: Training, tasks: list[Task]) -> list[Solution]:
    """Return the planes of a linear model, with what else it keeps of its proofs."""
    if not isinstance(model, LinearClassifier):
        return [_answer(model, 0, w=model.coef_[np.newaxis], b=model.intercept_)]
    multipliers = getattr(model, "multipliers_", [None] * len(tasks))
    margins = getattr(model, "margins_", [None] * len(tasks))
    return [
        _answer(model, k, w=start.w, b=start.b, multipliers=multipliers[k], margins=margins[k])
        for k, start in enumerate(planes_of(model, training, tasks))
    ]


def _of_linear_machine(model: Any, work: Work[Any, Any, Any], found: Recovered) -> Recovered:
    """Return the planes with α of the model, or with one that is found anew.

    The proof is then as good: P is that of the plane, and no plane has less than any D(α).
    """
    if "dual_coef_" in vars(model) and not is_approximated(model):
        of_rows = np.zeros((model.dual_coef_.shape[0], found.training.X.shape[0]))
        of_rows[:, model.support_] = model.dual_coef_
        alphas, first = [], 0
        for task in found.tasks:
            signed = of_rows[first : first + task.n_vectors, task.rows]
            first += task.n_vectors
            is_signed = task.n_vectors == 1 and isinstance(model, LinearSVC)
            alphas.append(signed[0] * task.labels if is_signed else _squeezed(signed.T))
        return replace(found, solutions=_with_alpha(found.solutions, alphas))
    alphas = [work.solve(*_asked(model, problem)).alpha for problem in found.problems]
    return replace(found, solutions=_with_alpha(found.solutions, alphas), solved_again=True)


def _with_multipliers(model: Any, work: Work[Any, Any, Any], found: Recovered) -> Recovered:
    """Return planes with multipliers found anew where a file has left out those of a proof."""
    lacking = [
        getattr(claim, "refutes", False) and solution.multipliers is None
        for claim, solution in zip(model.certificates_, found.solutions, strict=False)
    ]
    if not any(lacking):
        return found
    solutions = [
        replace(solution, multipliers=work.solve(*_asked(model, problem)).multipliers)
        if lacks
        else solution
        for lacks, problem, solution in zip(lacking, found.problems, found.solutions, strict=True)
    ]
    return replace(found, solutions=solutions, solved_again=True)


def _asked(model: Any, problem: Any) -> tuple[Any, None, Progress, int]:
    return problem, None, Progress(), int(model.max_iter)


def _squeezed(alpha: Floats) -> Floats:
    return alpha[:, 0] if alpha.shape[1] == 1 else alpha


def _with_alpha(solutions: Sequence[Solution], alphas: Sequence[Any]) -> list[Solution]:
    return [replace(s, alpha=alpha) for s, alpha in zip(solutions, alphas, strict=True)]


# Sums over samples -------------------------------------------------------------------------------


def _of_rows(planes: Expansion, n: int) -> Floats:
    """Return the coefficients of every row in every plane, (n_planes, n)."""
    coefficients = planes.coefficients()
    of_rows = np.zeros((coefficients.shape[1], n))
    of_rows[:, planes.support] = coefficients.T
    return of_rows


def _of_expansion(model: KernelPerceptron, training: Training, tasks: list[Task]) -> list[Solution]:
    of_rows, none = _of_rows(model._expansion, training.X.shape[0]), np.empty((0, 0))
    return [
        _answer(
            model, k, w=none, b=model.intercept_[k : k + 1],
            alpha=of_rows[k, task.rows] * task.labels,
        )
        for k, task in enumerate(tasks)
    ]  # fmt: skip


def _of_machine(model: Any, training: Training, tasks: list[Task]) -> Recovered:
    """Return the duals of a kernel machine, and α and b as a solver has them."""
    of_rows, none = _of_rows(model._expansion, training.X.shape[0]), np.empty((0, 0))
    kernel = model.kernel_
    if tasks[0].n_vectors > 1:
        from .joint_machine import pose

        alpha = np.ascontiguousarray(of_rows[:, tasks[0].rows].T)
        joint = _answer(model, 0, w=none, b=model.intercept_, alpha=alpha)
        return Recovered(training, tasks, [pose(model, kernel, training, tasks[0])], [joint])
    formulation, problems, solutions, again = model._formulation(), [], [], False
    for k, task in enumerate(tasks):
        problem = formulation.pose(kernel, training, task)
        b = float(model.intercept_[k]) - formulation.centre(task)
        problems.append(problem)
        posed = _as_posed(problem, of_rows[k, task.rows], b)
        if posed is None:  # that there is no margin is shown by an optimum
            work, again = model._method().begin(training, tasks), True
            solutions.append(work.solve(problem, None, Progress(), int(model.max_iter)))
            continue
        alpha, b = posed
        solutions.append(_answer(model, k, w=none, b=np.array([b]), alpha=alpha))
    return Recovered(training, tasks, problems, solutions, again)


def _as_posed(problem: DualProblem, coefficients: Floats, b: float) -> tuple[Floats, float] | None:
    """Return α and b of a problem from the coefficients of its rows in w, as they are published.

    None for a ν-classifier without a margin, which has no α.
    """
    if problem.n_variables == 2 * coefficients.size:
        alpha = np.concatenate([np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0)])
        return (_filled(problem, alpha) if len(problem.groups) == 2 else alpha), b
    alpha = coefficients * problem.signs
    if len(problem.groups) < 2:
        return alpha, b
    # A ν-classifier is published with a margin of 1: Σα of either class says what it was.
    total = float(alpha[problem.groups[0]].sum())
    if not total > 0.0:
        return None
    rho = problem.sums[0] / total
    alpha = alpha * rho
    # The division by ρ was rounded: what is so near to its bound was there.
    at_bound = alpha >= problem.upper * (1.0 - SAME_BOUND)
    return np.where(at_bound, problem.upper, alpha), b * rho


def _filled(problem: DualProblem, alpha: Floats) -> Floats:
    """Return α, α* of a ν-regression whose sums are given, from those that are not both positive.

    Where no tube is needed (ε = 0), a row may have both: first those on the curve.
    """
    n = alpha.size // 2
    lacking = problem.sums[0] - float(alpha[:n].sum())
    largest, upper = np.maximum(alpha[:n], alpha[n:]), problem.upper[:n]
    room = upper - largest
    if lacking <= 1e-12 * problem.sums[0]:
        return alpha
    more = np.zeros(n)
    for rows in ((largest > 0.0) & (room > 0.0), largest == 0.0):
        available = float(room[rows].sum())
        share = min(1.0, lacking / available) if available > 0.0 else 0.0
        more[rows] = share * room[rows]
        lacking -= share * available
    return alpha + np.tile(more, 2)
