"""What a path is computed from: the model, its checked data, and the machine of C = 1."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import validation
from ..arrays import Floats, Matrix, MatrixLike
from ..engines.registry import host_array, received
from ..estimators.expansion import Expansion, expanded
from ..estimators.formulation import checked_kernel
from ..estimators.svc import SVC
from ..estimators.training import Training
from ..kernels import Kernel, Precomputed
from ..kernels.mercer import mercer
from ..multiclass import Task
from ..runtime.memory import free_memory
from ..solvers.dual.choice import Dual
from .breakpoints import PathMachine

# Rows on which a kernel that is not known to be positive semidefinite is checked.
MOST_MERCER_ROWS = 2000


@dataclass(frozen=True, eq=False)
class PathSource:
    """What a path was computed from: a model that is not fitted, and its checked data."""

    model: SVC
    training: Training
    task: Task
    machine: PathMachine

    @property
    def kernel(self) -> Kernel:
        """The kernel, with its parameters resolved."""
        return self.machine.problem.kernel

    def checked(self, X: MatrixLike) -> Matrix:
        """Return new samples, checked against those of the path."""
        X = received(X)
        if self.training.objects is not None:
            X = self.model.kernel(X, self.training.objects)  # type: ignore[operator]
        X = validation.check_new_data(self.model, X)
        if isinstance(self.kernel, Precomputed) and X.shape[1] != self.training.X.shape[0]:
            raise ValueError(
                f"X must have one column per sample of the path, {self.training.X.shape[0]}, got "
                f"{X.shape[1]}: pass kernel values of new samples and those of the path."
            )
        return X

    def planes(self, alpha: Floats) -> Expansion:
        """Return the planes of several α."""
        rows = self.task.rows
        signed = alpha[:, rows] * self.task.labels
        return expanded(
            self.kernel, self.training, [self.task] * len(alpha), list(signed), of_pairs=False
        )


def path_source(
    model: SVC, C_max: float, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> PathSource:
    """Return checked data of two classes, and the machine that they and the kernel make."""
    method = model._method()
    training = method.check(received(X), host_array(y), host_array(sample_weight), reset=True)
    if len(training.classes) != 2:
        raise ValueError(
            f"y must hold two classes, got {len(training.classes)}: compute one path per pair of "
            "classes, or per class against the rest."
        )
    (task,) = method.tasks(training)
    needed, free = 16.0 * task.rows.size**2, free_memory()
    if needed > free:
        raise MemoryError(
            f"the path of {task.rows.size} samples keeps {needed / 2**30:.1f} GiB of kernel "
            f"values, {free / 2**30:.1f} GiB are free: pass a sample of the rows."
        )
    kernel = checked_kernel(model, training)
    _refuse_indefinite(kernel, training, task)
    unit = copy(model)
    unit.C = 1.0
    problem = unit._pose(kernel, training, task)
    largest = C_max * float(problem.upper.max())
    dual = Dual.of(kernel, training.X, "auto", model.tol, may_centre=True, largest=largest)
    return PathSource(model, training, task, PathMachine(problem, dual))


def _refuse_indefinite(kernel: Kernel, training: Training, task: Task) -> None:
    if kernel.positive_semidefinite:
        return
    some = task.rows[np.linspace(0, task.rows.size - 1, MOST_MERCER_ROWS).astype(int)]
    some = task.rows if task.rows.size <= MOST_MERCER_ROWS else some
    given = isinstance(kernel, Precomputed)
    rows = training.X[np.ix_(some, some)] if given else training.X[some]
    tol = 10.0 * some.size * float(np.finfo(rows.dtype).eps)
    report = mercer(kernel, rows, tol)
    if not report.positive_semidefinite:
        raise ValueError(
            "kernel must be positive semidefinite, for the optimum to be piecewise linear in C; "
            f"its smallest eigenvalue is {report.smallest_eigenvalue:.3g} on {some.size} rows: add "
            "a multiple of the identity, or use another kernel."
        )
