"""How the joint machine of several classes is fitted with a kernel (Crammer and Singer)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .. import solvers
from ..arrays import Floats
from ..certificates import MarginCertificate
from ..kernels import Kernel
from ..multiclass import Task
from ..problems import JointKernelProblem
from ..progress import Progress
from ..runtime.loading import load
from ..solution import Solution, Status
from .claims import TimeLimit
from .expansion import Expansion, expanded
from .fitting import Attributes, Method, Outcome, Work
from .probability import asks_for_probabilities
from .training import Training


@dataclass(frozen=True)
class JointMethod:
    """The method of a classifier that fits more than two classes jointly, two as before.

    Parameters
    ----------
    model : SVC
    binary : Method
        That of two classes.
    resolve : callable
        training ↦ the kernel, checked and with its parameters resolved.
    """

    model: Any
    binary: Method[Any, Any, MarginCertificate]
    resolve: Callable[[Training], Kernel]

    def method(self) -> Method[Any, Any, MarginCertificate]:
        """Return the method of the fit."""
        time_limit = TimeLimit(self.model.time_limit)
        return replace(
            self.binary,
            begin=partial(self._begin, time_limit),
            resume=self._resume,
            afterwards=self._afterwards,
        )

    def _begin(
        self, time_limit: TimeLimit, training: Training, tasks: list[Task]
    ) -> Work[Any, Any, MarginCertificate]:
        if tasks[0].n_vectors == 1:
            return self.binary.begin(training, tasks)
        _check_parameters(self.model)
        load("joint.kernel", package=solvers.__name__)
        from ..solvers.joint.kernel import JointStart, KernelCrammerSinger

        kernel, model = self.resolve(training), self.model
        budget = None if model.cache_size == "auto" else float(model.cache_size) * 2**20

        def solve(
            problem: JointKernelProblem,
            start: JointStart | None,
            progress: Progress,
            max_iter: int,
        ) -> Solution:
            solver = KernelCrammerSinger(model.tol, time_limit.limits(max_iter), budget)
            return solver.solve(problem, start, progress)

        return Work(
            partial(pose, model, kernel, training),
            solve,
            partial(_attributes, model, kernel, training),
        )

    def _resume(self, training: Training, tasks: list[Task]) -> Sequence[Any]:
        if tasks[0].n_vectors == 1:
            return self.binary.resume(training, tasks)
        from ..solvers.joint.kernel import JointStart

        model = self.model
        if model._memory is None:  # the last fit did not keep α
            return [None]
        ((alpha, *_),) = model._memory
        if training.X.shape[0] != model.shape_fit_[0] or len(alpha) != tasks[0].rows.size:
            raise ValueError(
                f"warm_start=True with {training.X.shape[0]} samples after {model.shape_fit_[0]}, "
                "or others of positive weight: the dual variables belong to the samples. Use "
                "warm_start=False or the same samples."
            )
        return [JointStart(alpha * (model.C / model._fitted_with), model.intercept_)]

    def _afterwards(self, outcome: Outcome[Any, MarginCertificate]) -> Attributes:
        if outcome.tasks[0].n_vectors == 1:
            return self.binary.afterwards(outcome)
        for name in ("probA_", "probB_"):  # of an earlier fit
            if hasattr(self.model, name):
                delattr(self.model, name)
        return {}


def _check_parameters(model: Any) -> None:
    """Refuse what the joint machine does not offer."""
    joint = "multi_class='crammer_singer'"
    if asks_for_probabilities(model.probability):
        raise ValueError(
            f"probability=True with {joint}: its scores are compared with each other, and no "
            "sigmoid belongs to one of them. Use multi_class='ovo' or 'ovr', or "
            "CalibratedClassifierCV."
        )
    if model.loss != "hinge":
        raise ValueError(f"loss={model.loss!r} with {joint}: its loss is 'hinge'.")
    if np.isinf(model.C):
        raise ValueError(
            f"C=inf with {joint}: there is no joint hard margin here. Use a large finite C, or "
            "multi_class='ovo'."
        )
    if model.solver != "auto":
        raise ValueError(
            f"solver={model.solver!r} is for planes found one by one: {joint} has its own, use "
            "solver='auto'."
        )


def pose(model: Any, kernel: Kernel, training: Training, task: Task) -> JointKernelProblem:
    """Return the joint problem of a task of several classes."""
    return JointKernelProblem(
        kernel,
        training.X,
        task.rows,
        task.labels,
        task.n_vectors,
        model.C * training.weights[task.rows],
        "free" if model.fit_intercept else "none",
    )


def _attributes(
    model: Any,
    kernel: Kernel,
    training: Training,
    tasks: Sequence[Task],
    solutions: Sequence[Solution],
) -> Attributes:
    (task,), (solution,) = tasks, solutions
    alpha = solution.alpha
    assert alpha is not None
    planes: Expansion = expanded(
        kernel, training, [task] * task.n_vectors, list(alpha.T), of_pairs=False
    )
    memory: list[tuple[Floats, None, None]] = [(alpha, None, None)]
    return {
        "kernel_": kernel,
        "support_": planes.support,
        "support_vectors_": planes.vectors,
        "n_support_": planes.counts,
        "dual_coef_": planes.dual,
        "intercept_": solution.b,
        "fit_status_": int(solution.status is not Status.CONVERGED),
        "shape_fit_": training.X.shape,
        "n_iter_": np.array([solution.n_iter], dtype=np.int32),
        "class_weight_": training.class_weights,
        "_memory": memory if model.warm_start else None,
        "_fitted_on": None,
        "_objects": training.objects,
        "_fitted_with": model.C,
    }
