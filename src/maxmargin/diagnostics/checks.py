"""Is this a machine, and are these the data that it was fitted on?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..certificates import certify
from ..certificates.dual import DOUBTFUL, primal_value
from ..estimators.base import Training
from ..estimators.linear_svc import LinearSVC
from ..estimators.svc import SVC, NuSVC
from ..kernels import Precomputed
from ..multiclass import Kesler, OneVsOne, Task
from .fitted import KernelMachine, Machine, MeasuredTask, measured, posed, signed, support_codes

# α within this of its bound, relative to it, is at the bound: a QP library stops short of it.
AT_BOUND = 1e-6
# Relative gap of a ν-machine that is near enough to its optimum.
KNOWN = 1e-2
# What adding up in another order makes of P and D of a plane.
ROUNDING = 1e-9
REMEDY = "pass the X, y and sample_weight of the fit, in the same order."


def check_machine(clf: Any) -> None:
    """Refuse what is no fitted machine of planes told one by one."""
    if not isinstance(clf, (SVC, NuSVC, LinearSVC)):
        raise TypeError(
            f"diagnostics are of SVC, NuSVC and LinearSVC, got {type(clf).__name__}: pass the "
            "machine itself, which a pipeline or a search holds in [-1] or best_estimator_, with "
            "its own X."
        )
    check_is_fitted(clf)
    if not hasattr(clf, "certificate_"):
        raise ValueError(
            f"the {type(clf).__name__} was trained by another program, whose file does not say "
            "what it was fitted with: fit it again."
        )
    if not isinstance(clf, NuSVC) and clf._fitted_with != clf.C:
        raise ValueError(
            f"C={clf.C:g} was set after the fit, which had C={clf._fitted_with:g}: fit again."
        )
    if isinstance(clf._reduction(), Kesler):
        raise TypeError(
            f"multi_class='crammer_singer' finds {len(clf.classes_)} weight vectors jointly: a "
            "sample has one slack and an α for every class, and no machine tells one class from "
            "others with y = ±1. Diagnostics are of multi_class='ovr' and 'ovo'; here "
            "certificate_ says how near the optimum is."
        )


def margin_tolerance(clf: Machine) -> float:
    """Return how near to 1 y g(x) is on the margin, as far as the fit knows it."""
    # ½‖w − w*‖² is at most the gap, which is what tol is of a plane.
    return min(float(np.sqrt(clf.tol)), 0.5) if isinstance(clf, LinearSVC) else float(clf.tol)


def check_tolerance(clf: Machine, tol: float | None) -> float:
    """Return how near to 1 y g(x) is to be on the margin."""
    level = margin_tolerance(clf) if tol is None else float(tol)
    if not 0.0 <= level < 1.0:
        raise ValueError(f"tol={tol} is no distance from the margin: pass a number in [0, 1).")
    return level


def task_number(clf: Machine, task: Any) -> int:
    """Return the number of a task that was named in one way or another."""
    n_tasks, classes = len(clf.intercept_), clf.classes_.tolist()
    if task is None and n_tasks == 1:
        return 0
    known: Sequence[Sequence[int]] = [(0, 1)]
    if n_tasks > 1:
        pairs = isinstance(clf._reduction(), OneVsOne)
        known = OneVsOne.pairs(len(classes)) if pairs else [(k,) for k in range(len(classes))]
    example = tuple(classes[k] for k in known[0])
    remedy = f"pass task=0 to {n_tasks - 1}, or labels such as task={example!r}."
    if task is None:
        raise ValueError(f"{len(classes)} classes make {n_tasks} tasks, a table each: {remedy}")
    if isinstance(task, (int, np.integer)) and not isinstance(task, bool):
        if 0 <= task < n_tasks:
            return int(task)
        raise ValueError(f"task={task} is not there: {remedy}")
    labels = list(task) if isinstance(task, Iterable) and not isinstance(task, str) else [task]
    for label in labels:
        if label not in classes:
            raise ValueError(f"task={task!r} names {label!r}, no class of {classes}: {remedy}")
    wanted = {classes.index(label) for label in labels}
    for number, codes in enumerate(known):
        if wanted == set(codes):
            return number
    raise ValueError(f"task={task!r} is not there: {remedy}")


def check_data(clf: Machine, X: Any, y: Any, sample_weight: Any) -> Training:
    """Return the training data with the weights of the fit, if the model was fitted on them."""
    # A copy, so that the model stays as it is whatever is passed.
    training = copy(clf)._check_training(X, y, sample_weight, reset=False)
    plane = isinstance(clf, LinearSVC)
    shape = (training.X.shape[0], clf.n_features_in_) if plane else tuple(clf.shape_fit_)
    if training.X.shape != shape:
        raise ValueError(
            f"X has shape {training.X.shape}, the model was fitted on {shape}: {REMEDY}"
        )
    if not np.array_equal(training.classes, clf.classes_):
        raise ValueError(
            f"y holds the classes {training.classes.tolist()}, the model was fitted on "
            f"{clf.classes_.tolist()}: {REMEDY}"
        )
    if isinstance(clf, LinearSVC):
        _check_count(clf, training)
    else:
        _check_vectors(clf, training)
        training = replace(
            training, weights=training.sample_weights * clf.class_weight_[training.codes]
        )
    absent = np.flatnonzero(training.weights[clf.support_] == 0.0)
    if absent.size:
        raise ValueError(
            f"sample_weight[{clf.support_[absent[0]]}] is 0, yet the sample is a support vector: "
            f"{REMEDY}"
        )
    return training


def trained(clf: Machine, training: Training, numbers: Iterable[int]) -> Iterator[MeasuredTask]:
    """Yield tasks of the fit on its training data, which they are verified to come from."""
    tasks = clf._tasks(training)
    for number in numbers:
        rows, labels = tasks[number].rows, tasks[number].labels
        order = np.argsort(rows)
        task = replace(tasks[number], rows=rows[order], labels=labels[order])
        if isinstance(clf, LinearSVC):
            _check_signs(clf, training, number, task)
        machine = measured(clf, training, number, task)
        if isinstance(clf, LinearSVC):
            _check_bounds(machine)
            _check_values(clf, training, number, task)
        # What ρ was is known of a ν-machine near its optimum only, where Σα = ν.
        elif machine.rho is None or (
            machine.rho > 0.0 and clf.certificates_[number].relative_gap < KNOWN
        ):
            _check_bounds(machine)
            _check_primal(clf, machine)
        yield machine


def _check_bounds(machine: MeasuredTask) -> None:
    excess = machine.alpha - machine.problem.upper * (1.0 + AT_BOUND)
    worst = int(np.argmax(excess))
    if excess[worst] > 0.0:
        raise ValueError(
            f"α of row {machine.problem.index[worst]} is {machine.alpha[worst]:.6g}, above its "
            f"bound C_i = {machine.problem.upper[worst]:.6g}: the fit had other weights or "
            "parameters. Pass the sample_weight of the fit, or fit again."
        )


# Of a kernel machine -------------------------------------------------------------------------


def _check_vectors(clf: KernelMachine, training: Training) -> None:
    """Refuse data in which a support vector has another class, or is another."""
    codes = support_codes(clf)
    others = np.flatnonzero(training.codes[clf.support_] != codes)
    if others.size:
        k = others[0]
        raise ValueError(
            f"y[{clf.support_[k]}] is {training.y[clf.support_[k]]!r}, a support vector of class "
            f"{clf.classes_[codes[k]]!r} in the fit: {REMEDY}"
        )
    if isinstance(clf.kernel_, Precomputed):
        return
    given, fitted = training.X[clf.support_], clf.support_vectors_
    if sparse.issparse(given) or sparse.issparse(fitted):
        unequal = (sparse.csr_matrix(given) != sparse.csr_matrix(fitted)).sum(axis=1)
    else:
        unequal = (given != fitted).sum(axis=1)
    others = np.flatnonzero(np.asarray(unequal).ravel())
    if others.size:
        raise ValueError(
            f"row {clf.support_[others[0]]} of X differs from the support vector that it was in "
            f"the fit: {REMEDY}"
        )


def _check_primal(clf: KernelMachine, machine: MeasuredTask) -> None:
    """Refuse data on which the model has another primal value than it had in the fit.

    The value falls as margins grow, and those of the fit are known to some accuracy only.
    """
    problem, certificate = machine.problem, clf.certificates_[machine.number]
    claimed = certificate.primal
    if isinstance(clf, NuSVC) and machine.rho:
        # ½‖w‖² − νρ + Σ u_i ξ_i of the ν-machine is ρ² times that of margin 1, less νρ.
        claimed = (claimed + clf.nu * machine.rho) / machine.rho**2
    if not np.isfinite(claimed):
        return
    known = 1e-12 * machine.magnitude
    if problem.groups and machine.alpha.any():  # the certificate repairs yᵀα = 0
        known += 2.0 * abs(problem.signs @ machine.alpha) / machine.alpha.sum() * machine.magnitude
    if certificate.n_checked < machine.alpha.size:
        # The others' scores are the solver's, which may be so far off before they are refused.
        known += DOUBTFUL * max(1.0, float(np.abs(machine.margins).max()))
    # P of a ν-machine is that of its best ρ, which the KKT conditions know to tol.
    relative = max(1e-6, 4.0 * clf.tol) if isinstance(clf, NuSVC) else 1e-6
    slack = relative * abs(claimed) + known * float(machine.alpha.sum())
    lowest, highest = (
        primal_value(problem, machine.square, machine.margins + shift) for shift in (known, -known)
    )
    if not lowest - slack <= claimed <= highest + slack:
        now = primal_value(problem, machine.square, machine.margins)
        raise ValueError(
            f"'{machine.name}' has the primal value {now:.8g} on these data, {claimed:.8g} in the "
            f"fit: {REMEDY}"
        )


# Of a plane ----------------------------------------------------------------------------------


def _check_count(clf: LinearSVC, training: Training) -> None:
    """Refuse more or fewer samples than each task of the fit had."""
    for task, certificate in zip(clf._tasks(training), clf.certificates_, strict=True):
        # Of RowBlocks all rows are there, those that take no part with a cost of 0.
        if certificate.n_checked not in (task.rows.size, training.X.shape[0]):
            raise ValueError(
                f"'{task.name}' has {task.rows.size} samples here, {certificate.n_checked} in the "
                f"fit: {REMEDY}"
            )
    beyond = clf.support_.max(initial=0)
    if beyond >= training.X.shape[0]:
        raise ValueError(
            f"X has {training.X.shape[0]} rows, yet row {beyond} is a support vector: {REMEDY}"
        )


def _check_signs(clf: LinearSVC, training: Training, number: int, task: Task) -> None:
    """Refuse labels by which a support vector is not on the side where it was."""
    coefficients = signed(clf, number, training.X.shape[0])
    side = np.zeros(coefficients.size)
    side[task.rows] = task.labels
    others = np.flatnonzero((coefficients != 0.0) & (np.sign(coefficients) != side))
    if others.size:
        k = others[0]
        raise ValueError(
            f"y[{k}] is {training.y[k]!r}, but '{task.name}' has this support vector on another "
            f"side in the fit: {REMEDY}"
        )


def _check_values(clf: LinearSVC, training: Training, number: int, task: Task) -> None:
    """Refuse data on which the certificate does not come out again.

    P is that of the plane, D that of α: any other row changes one of them, unless it has neither
    slack nor α here and there.
    """
    then, now = clf.certificates_[number], certify(*posed(clf, training, number, task))
    for side in ("primal", "dual"):
        claimed, found = getattr(then, side), getattr(now, side)
        near = ROUNDING * max(abs(value) for value in (then.dual, claimed) if np.isfinite(value))
        if claimed != found and not abs(claimed - found) <= near:
            raise ValueError(
                f"'{task.name}' has the {side} value {found:.8g} on these data, {claimed:.8g} in "
                f"the fit: {REMEDY}"
            )
