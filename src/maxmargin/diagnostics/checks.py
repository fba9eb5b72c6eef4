"""Checks that a model is a support vector machine, and that data are those of its fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..arrays import MatrixLike
from ..certificates import certify
from ..certificates.dual import TUNING
from ..certificates.dual_tasks import primal_value
from ..estimators.linear_svc import LinearSVC
from ..estimators.svc import NuSVC
from ..estimators.training import Training
from ..kernels import Precomputed
from ..multiclass import OneVsOne, Task
from .fitted_model import AnyMachine, FittedModel
from .measured_task import AT_BOUND, MeasuredTask, measured, posed, signed

# Relative gap up to which ρ of a ν-machine is known from Σα = ν.
KNOWN_RHO_GAP = 1e-2
# Relative error of P and D of a plane when the terms are summed in another order.
VALUE_ROUNDING = 1e-9
REMEDY = "pass the X, y and sample_weight of the fit, in the same order."


def checked_model(clf: object) -> FittedModel:
    """Return a fitted support vector machine whose tasks are binary; raise for anything else."""
    if not isinstance(clf, AnyMachine):
        names = [each.__name__ for each in get_args(AnyMachine)]
        raise TypeError(
            f"clf must be {', '.join(names[:-1])} or {names[-1]}, got {type(clf).__name__}: pass "
            "the last step of a pipeline, pipe[-1], or of a search, best_estimator_, with its own "
            "X."
        )
    model = FittedModel(clf)
    model.refuse_approximation("this")
    if not hasattr(clf, "certificate_"):
        raise ValueError(
            f"the {model.name} was trained by another program, whose file does not hold the "
            "parameters of the fit: fit it with maxmargin."
        )
    if model.support is None:
        raise ValueError(
            f"the {model.name} has no α, which these diagnostics need: it was fitted to a Dask "
            "collection, whose α was left on the workers, or its file has none of so many rows. "
            "Fit to an array, and save with keep_dual=True (fit --keep-dual); certificate_ has the "
            "gap of this model."
        )
    if hasattr(clf, "C") and clf._fitted_with != clf.C:
        raise ValueError(
            f"C={clf.C:g} was set after the fit, which had C={clf._fitted_with:g}: fit again."
        )
    if model.scheme == "joint":
        raise TypeError(
            f"multi_class='crammer_singer' finds {len(model.classes)} weight vectors jointly: a "
            "sample has one slack and an α per class, and there is no binary task with y = ±1. "
            "Diagnostics need multi_class='ovr' or 'ovo'; certificate_ has the gap of this model."
        )
    return model


def margin_tolerance(model: FittedModel) -> float:
    """Return the accuracy of y g(x) of the fit, within which 1 is on the margin."""
    tol = float(model.classifier.tol)
    # tol of a LinearSVC is a gap, and ½‖w − w*‖² is at most the gap.
    return min(float(np.sqrt(tol)), 0.5) if isinstance(model.classifier, LinearSVC) else tol


def check_tolerance(model: FittedModel, tol: float | None) -> float:
    """Return the distance from 1 within which y g(x) is on the margin."""
    level = margin_tolerance(model) if tol is None else float(tol)
    if not 0.0 <= level < 1.0:
        raise ValueError(f"tol must be a number in [0, 1), got {tol}.")
    return level


def task_number(model: FittedModel, task: object) -> int:
    """Return the number of a task given by number or by the labels of its classes."""
    classes, names = model.classes.tolist(), model.task_names
    n_tasks = len(names)
    if task is None and n_tasks == 1:
        return 0
    known: Sequence[Sequence[int]] = [(0, 1)]
    if n_tasks > 1:
        pairs = model.scheme == "ovo"
        known = OneVsOne.pairs(len(classes)) if pairs else [(k,) for k in range(len(classes))]
    example = tuple(classes[k] for k in known[0])
    remedy = f"pass task=0 to {n_tasks - 1}, or labels such as task={example!r}."
    if task is None:
        raise ValueError(f"{len(classes)} classes make {n_tasks} tasks, a table each: {remedy}")
    if isinstance(task, (int, np.integer)) and not isinstance(task, bool):
        if 0 <= task < n_tasks:
            return int(task)
        raise ValueError(f"there is no task={task}: {remedy}")
    labels = list(task) if isinstance(task, Iterable) and not isinstance(task, str) else [task]
    for label in labels:
        if label not in classes:
            raise ValueError(f"task={task!r} names {label!r}, no class of {classes}: {remedy}")
    wanted = {classes.index(label) for label in labels}
    for number, codes in enumerate(known):
        if wanted == set(codes):
            return number
    raise ValueError(f"there is no task={task!r}: {remedy}")


def check_data(
    model: FittedModel, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> Training:
    """Return the training data with the weights of the fit; raise where the fit had other data."""
    clf = model.classifier
    if y is None and model.scheme != "one-class":
        raise ValueError(f"y must hold the {_called(model)} of the fit, got None.")
    # A copy, so that validation does not change the model.
    training = copy(clf)._method().check(X, y, sample_weight, reset=False)
    shape = (training.X.shape[0], clf.n_features_in_) if model.is_plane else tuple(clf.shape_fit_)
    if training.X.shape != shape:
        raise ValueError(
            f"X has shape {training.X.shape}, the model was fitted on {shape}: {REMEDY}"
        )
    if model.has_classes and not np.array_equal(training.classes, clf.classes_):
        raise ValueError(
            f"y holds the classes {training.classes.tolist()}, the model was fitted on "
            f"{clf.classes_.tolist()}: {REMEDY}"
        )
    if model.is_plane:
        _check_count(model, training)
    else:
        _check_vectors(model, training)
        if model.has_classes:
            training = replace(
                training, weights=training.sample_weights * clf.class_weight_[training.codes]
            )
    absent = np.flatnonzero(training.weights[clf.support_] == 0.0)
    if absent.size:
        raise ValueError(
            f"sample_weight[{clf.support_[absent[0]]}] is 0, but the sample is a support vector: "
            f"{REMEDY}"
        )
    return training


def trained(
    model: FittedModel, training: Training, numbers: Iterable[int]
) -> Iterator[MeasuredTask]:
    """Yield tasks of the fit on its training data; raise where the fit had other data."""
    clf, tasks = model.classifier, _tasks(model, training)
    for number in numbers:
        rows, labels = tasks[number].rows, tasks[number].labels
        order = np.argsort(rows)
        task = replace(tasks[number], rows=rows[order], labels=labels[order])
        if model.is_plane and model.has_classes:
            _check_signs(model, training, number, task)
        machine = measured(model, training, number, task)
        if model.is_plane:
            _check_bounds(machine)
            _check_values(model, training, number, task)
        # Σα = ν, which gives ρ of a ν-machine, holds near its optimum only.
        elif machine.rho is None or (
            machine.rho > 0.0 and clf.certificates_[number].relative_gap < KNOWN_RHO_GAP
        ):
            _check_bounds(machine)
            _check_primal(model, machine)
        yield machine


def _tasks(model: FittedModel, training: Training) -> list[Task]:
    """Return the tasks of the fit."""
    clf = model.classifier
    tasks: list[Task] = clf._method().tasks(training, getattr(clf, "_reduced_by", None))
    return tasks


def _called(model: FittedModel) -> str:
    return "targets" if model.has_targets else "labels"


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


def _check_vectors(model: FittedModel, training: Training) -> None:
    """Raise where a support vector has another class or other features."""
    clf = model.classifier
    if model.has_classes:
        codes = model.support_codes
        others = np.flatnonzero(training.codes[clf.support_] != codes)
        if others.size:
            k = others[0]
            raise ValueError(
                f"y[{clf.support_[k]}] is {training.y[clf.support_[k]]!r}, a support vector of "
                f"class {clf.classes_[codes[k]]!r} in the fit: {REMEDY}"
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


def _check_primal(model: FittedModel, machine: MeasuredTask) -> None:
    """Raise where the primal value differs from that of the fit.

    The value decreases in the margins, whose accuracy in the fit bounds the difference.
    """
    clf = model.classifier
    problem, certificate = machine.problem, clf.certificates_[machine.number]
    claimed = certificate.primal
    if isinstance(clf, NuSVC) and machine.rho:
        # ½‖w‖² − νρ + Σ u_i ξ_i of the ν-machine is ρ² times that of margin 1, less νρ.
        claimed = (claimed + clf.nu * machine.rho) / machine.rho**2
    hard = np.isinf(problem.upper).all() and not problem.ridge.any()
    if not np.isfinite(claimed) or (hard and not problem.has_unit_margin):
        return
    known = 1e-12 * machine.magnitude
    if problem.groups and machine.alpha.any():  # the certificate repairs the sums
        rest = abs(problem.signs @ machine.alpha - sum(problem.sums))
        known += 2.0 * rest / machine.alpha.sum() * machine.magnitude
    if certificate.n_checked < machine.alpha.size:
        # Other scores are the solver's, with an error of up to the doubtful one.
        known += TUNING.doubtful_error * max(1.0, float(np.abs(machine.margins).max()))
    # P of a ν-machine is that of its best ρ, known to tol from the KKT conditions.
    relative = max(1e-6, 4.0 * clf.tol) if isinstance(clf, NuSVC) else 1e-6
    slack = relative * abs(claimed) + known * float(machine.alpha.sum())
    lowest, highest = (
        primal_value(problem, machine.square, machine.margins + shift, machine.b)
        for shift in (known, -known)
    )
    if not lowest - slack <= claimed <= highest + slack:
        now = primal_value(problem, machine.square, machine.margins, machine.b)
        raise ValueError(
            f"'{machine.name}' has the primal value {now:.8g} on these data, {claimed:.8g} in the "
            f"fit: {REMEDY}"
        )


# Of a plane ----------------------------------------------------------------------------------


def _check_count(model: FittedModel, training: Training) -> None:
    """Raise where a task has more or fewer samples than in the fit."""
    clf = model.classifier
    for task, certificate in zip(_tasks(model, training), clf.certificates_, strict=True):
        # A problem on RowBlocks has all rows, with a cost of 0 for those outside the task.
        if certificate.n_checked not in (task.rows.size, training.X.shape[0]):
            raise ValueError(
                f"'{task.name}' has {task.rows.size} samples here, {certificate.n_checked} in the "
                f"fit: {REMEDY}"
            )
    beyond = clf.support_.max(initial=0)
    if beyond >= training.X.shape[0]:
        raise ValueError(
            f"X has {training.X.shape[0]} rows, but row {beyond} is a support vector: {REMEDY}"
        )


def _check_signs(model: FittedModel, training: Training, number: int, task: Task) -> None:
    """Raise where the label of a support vector has another sign than in the fit."""
    coefficients = signed(model, number, training.X.shape[0])
    side = np.zeros(coefficients.size)
    side[task.rows] = task.labels
    others = np.flatnonzero((coefficients != 0.0) & (np.sign(coefficients) != side))
    if others.size:
        k = others[0]
        raise ValueError(
            f"y[{k}] is {training.y[k]!r}, but '{task.name}' has this support vector on another "
            f"side in the fit: {REMEDY}"
        )


def _check_values(model: FittedModel, training: Training, number: int, task: Task) -> None:
    """Raise where the certificate has other values than in the fit.

    Another row changes P or D, unless it has neither slack nor α in both data sets.
    """
    then = model.classifier.certificates_[number]
    now = certify(*posed(model, training, number, task))
    for side in ("primal", "dual"):
        claimed, found = getattr(then, side), getattr(now, side)
        size = max(abs(value) for value in (then.dual, claimed) if np.isfinite(value))
        if claimed != found and not abs(claimed - found) <= VALUE_ROUNDING * size:
            raise ValueError(
                f"'{task.name}' has the {side} value {found:.8g} on these data, {claimed:.8g} in "
                f"the fit: {REMEDY}"
            )
