"""How SVC is fitted to finite features of its kernel: the linear machine, certified there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Floats, Matrix, MatrixLike, Partitioned, on_host
from ..certificates import MarginCertificate
from ..data.row_blocks import RowBlocks
from ..engines.registry import host_array
from ..kernels import Kernel, Precomputed
from ..multiclass import Task
from ..runtime.memory import bytes_to_keep
from ..runtime.threads import at_most, single_threaded_blas
from ..solution import Solution, Status
from .claims import TimeLimit
from .feature_maps import (
    FeatureMap,
    Fourier,
    Nystroem,
    feature_blocks,
    kernel_errors,
    map_of_model,
    scores_of,
    transformed,
    type_of_features,
)
from .fitting import Attributes, Method, Work
from .formulation import checked_kernel
from .linear_svc import LinearSVC
from .probability import asks_for_probabilities
from .training import Training

# The relative gap of the linear machine, relative to tol of the kernel machine, which is one of KKT
# conditions: their violations are larger.
TOL_SHARE = 0.1


def is_approximated(model: Any) -> bool:
    """Return whether the last fit of a model was one to features of its kernel."""
    return "feature_coef_" in vars(model)


@dataclass(frozen=True)
class ApproximateMethod:
    """The method of a kernel machine on features of its kernel.

    Parameters
    ----------
    model : SVC
    exact : Method
        That of the kernel itself, whose checks of the data are kept.
    """

    model: Any
    exact: Method[Any, Any, MarginCertificate]

    def method(self) -> Method[Any, Any, MarginCertificate]:
        """Return the method of the fit."""
        _check_parameters(self.model)
        return replace(
            self.exact,
            begin=partial(self._begin, TimeLimit(self.model.time_limit)),
            claims=self._machine()._claims(),
            by_class=False,
            afterwards=_no_probabilities,
        )

    def _machine(self) -> LinearSVC:
        """Return the linear machine with the parameters of the model."""
        model = self.model
        return LinearSVC(
            loss=model.loss,
            tol=TOL_SHARE * model.tol,
            C=model.C,
            multi_class=model.multi_class,
            fit_intercept=model.fit_intercept,
            max_iter=model.max_iter,
            time_limit=model.time_limit,
            n_jobs=model.n_jobs,
            device="cpu",
        )

    def _begin(
        self, time_limit: TimeLimit, training: Training, tasks: list[Task]
    ) -> Work[Any, Any, MarginCertificate]:
        model, X = self.model, training.X
        if isinstance(X, Partitioned):
            raise TypeError(
                "SVC(approximate=…) takes arrays and CSR matrices in the memory of this process, "
                "got a Dask collection: use LinearSVC, or SVC without approximate."
            )
        X = on_host(X)
        kernel, rng = checked_kernel(model, training), training.task_rng()
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "approximate must be None for kernel='precomputed', whose values are given."
            )
        phi = _map_of(model, kernel, X, rng)
        errors = kernel_errors(kernel, phi, X, rng)
        on_features = replace(training, X=features_of(phi, X))
        work = self._machine()._begin(time_limit, on_features, tasks)
        attributes = partial(_attributes, model, kernel, training, phi, errors, work.attributes)
        return replace(work, attributes=attributes)


def _check_parameters(model: Any) -> None:
    """Refuse what a machine on features does not offer."""
    given = f"approximate={model.approximate!r}"
    if asks_for_probabilities(model.probability):
        raise ValueError(f"probability=True with {given}: use CalibratedClassifierCV.")
    if model.warm_start:
        raise ValueError(f"warm_start=True with {given}: use warm_start=False.")
    if model.solver != "auto":
        raise ValueError(
            f"solver={model.solver!r} with {given}: its solver is that of the linear machine, use "
            "solver='auto'."
        )
    if model.device not in ("auto", "cpu"):
        raise ValueError(f"device={model.device!r} with {given}: use device='cpu'.")


def _no_probabilities(outcome: Any) -> Attributes:
    return {}


def _map_of(model: Any, kernel: Kernel, X: Matrix, rng: np.random.RandomState) -> FeatureMap:
    n = int(model.n_components)
    dtype = type_of_features(X, n)
    if model.approximate == "fourier":
        return Fourier.of(kernel, X, n, rng, dtype)
    return Nystroem.of(kernel, X, n, model.landmarks, rng, dtype)


def features_of(phi: FeatureMap, X: Matrix) -> Any:
    """Return the features of all rows, or blocks that are computed anew where memory is short."""
    n_bytes = X.shape[0] * phi.n_features * phi.dtype.itemsize
    # They replace X in every pass: half of what is free may be theirs.
    if n_bytes <= 2.0 * bytes_to_keep():
        return transformed(phi, X)
    return RowBlocks(partial(feature_blocks, phi, X))


def scores(model: Any, X: MatrixLike) -> Floats:
    """Return the scores of new data, (n, n_planes)."""
    with at_most(model.n_jobs), single_threaded_blas():
        rows = on_host(model._check_new_data(host_array(X)))
        return scores_of(map_of_model(model), rows, model.feature_coef_) + model.intercept_


def posed_again(model: Any, training: Training, tasks: list[Task]) -> tuple[Any, list[Solution]]:
    """Return the work of a fit to the features of a fitted model, and its planes."""
    features = features_of(map_of_model(model), on_host(training.X))
    machine = ApproximateMethod(model, None)._machine()  # type: ignore[arg-type]
    work = machine._begin(TimeLimit(None), replace(training, X=features), tasks)
    planes, first = [], 0
    for task, status in zip(tasks, model.statuses_, strict=True):
        some = slice(first, first + task.n_vectors)
        planes.append(Solution(model.feature_coef_[some], model.intercept_[some], status))
        first = some.stop
    return work, planes


def _attributes(
    model: Any,
    kernel: Kernel,
    training: Training,
    phi: FeatureMap,
    errors: tuple[float, float],
    of_planes: Any,
    tasks: Sequence[Task],
    solutions: Sequence[Solution],
) -> Attributes:
    """Return planes in the space of the features, and no support vectors: all rows made them."""
    planes = of_planes(tasks, solutions)
    W, X = planes["coef_"], on_host(training.X)
    n_classes = len(training.classes)
    is_pairs = len(W) == n_classes * (n_classes - 1) // 2 and model.multi_class == "ovo"
    none = np.zeros((n_classes - 1 if is_pairs else len(W), 0))
    return {
        "kernel_": kernel,
        "feature_coef_": W,
        "intercept_": planes["intercept_"],
        "kernel_error_": np.array(errors),
        **phi.attributes(),
        "support_": np.empty(0, dtype=np.int32),
        "support_vectors_": X[:0],
        "n_support_": np.zeros(n_classes, dtype=np.int32),
        "dual_coef_": sparse.csr_matrix(none) if sparse.issparse(X) else none,
        "fit_status_": int(any(each.status is not Status.CONVERGED for each in solutions)),
        "shape_fit_": X.shape,
        "n_iter_": np.array([each.n_iter for each in solutions], dtype=np.int32),
        "class_weight_": training.class_weights,
        "_memory": None,
        "_fitted_on": None,
        "_objects": None,
        "_fitted_with": model.C,
    }
