"""Planes of all folds and classes at once, for X of not too many columns.

A pass over X serves all folds, which a loop over fits reads once for each of them, several times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers
from ..certificates import MarginCertificate
from ..certificates.hinge_grid import certify_hinges
from ..certificates.plane_grid import certify_planes
from ..certificates.primal import PlaneCertificate
from ..engines.planes import HingeFeatures, PassesForPlanes, PlaneTasks
from ..engines.registry import engine_for
from ..estimators.linear_machine import bias_of
from ..estimators.training import Training
from ..solvers.centring import Origin
from ..solvers.primal.hinge_grid import HingeGrid
from ..solvers.primal.plane_grid import PlaneGrid
from .folds import Fold, class_fold

# Columns up to which Hessians are small beside the passes over X.
MOST_COLUMNS = 512
# Steps that a caller must allow.
LEAST_STEPS = 100


class Solved(NamedTuple):
    """The planes of one fold at one cost.

    Parameters
    ----------
    cost, fold : int
        Their numbers.
    planes : ndarray of shape (n_tasks, d + 1)
        (w, b).
    proofs : list of certificates
        Of all planes; those that have not converged do not hold.
    seconds : float
        That the planes of a fold took, on average.
    """

    cost: int
    fold: int
    planes: Floats
    proofs: list[MarginCertificate]
    seconds: float


def folds_at_once(
    model: Any, training: Training, splits: Sequence[tuple[Integers, Integers]]
) -> list[Fold] | None:
    """Return the folds, with their weights; None where planes are better found one by one."""
    X, d = training.X, training.X.shape[1]
    two = len(training.classes) == 2
    is_table = isinstance(X, np.ndarray) and X.flags.c_contiguous
    is_csr = sparse.issparse(X) and X.format == "csr" and model.loss == "hinge"
    suits = (
        (is_table or is_csr)
        and X.dtype.kind == "f"
        and d <= min(MOST_COLUMNS, X.shape[0])
        and model.penalty == "l2"
        and (two or model.multi_class == "ovr")
        and model.solver in ("auto", "newton")
        and (model.max_iter == -1 or model.max_iter >= LEAST_STEPS)
        and (bias_of(model) != "penalised" or model.intercept_scaling == 1.0)
    )
    if not suits or (is_table and Origin.far_columns(X) is not None):
        return None
    return [class_fold(training, *split, model.class_weight, "ovr") for split in splits]


def planes_at_once(
    model: Any,
    training: Training,
    folds: Sequence[Fold],
    costs: Floats,
    stopped: Callable[[], bool],
) -> Iterator[Solved]:
    """Yield the planes of the folds that have all classes, for costs that ascend."""
    whole = [k for k, fold in enumerate(folds) if fold.classes.size == training.classes.size]
    if not whole:
        return
    n, n_classes = training.X.shape[0], training.classes.size
    weights = [np.bincount(folds[k].train, minlength=n) * folds[k].training.weights for k in whole]
    tasks = PlaneTasks(training.codes, 1 if n_classes == 2 else n_classes, np.array(weights))
    found = _hinges if model.loss == "hinge" else _squared_hinges
    started = time.perf_counter()
    for c, (planes, proofs) in enumerate(found(model, training.X, tasks, costs, stopped)):
        seconds = (time.perf_counter() - started) / len(whole)
        for place, k in enumerate(whole):
            mine = slice(place * tasks.n_tasks, (place + 1) * tasks.n_tasks)
            yield Solved(c, k, planes[mine], list(proofs[mine]), seconds)
        started = time.perf_counter()


def _squared_hinges(
    model: Any, X: Floats, tasks: PlaneTasks, costs: Floats, stopped: Callable[[], bool]
) -> Iterator[tuple[Floats, list[PlaneCertificate]]]:
    """Yield the planes of every cost, and their certificates."""
    features, bias = cast(PassesForPlanes, engine_for(X).features()), bias_of(model)
    solver = PlaneGrid(features, tasks, bias, model.tol)
    for c, planes in enumerate(solver.solve(costs, X.shape[1], stopped)):
        proofs = certify_planes(
            X, tasks.codes, tasks.positive, tasks.weights, tasks.fold_of, planes, float(costs[c]),
            bias,
        )  # fmt: skip
        yield planes, proofs


def _hinges(
    model: Any, X: Floats, tasks: PlaneTasks, costs: Floats, stopped: Callable[[], bool]
) -> Iterator[tuple[Floats, list[PlaneCertificate]]]:
    """Yield the planes of every cost, and their certificates."""
    features, bias = cast(HingeFeatures, engine_for(X).features()), bias_of(model)
    solver = HingeGrid(features, tasks, bias, model.tol)
    for c, answers in enumerate(solver.solve(costs, X.shape[1], stopped)):
        proofs = [
            certify_hinges(
                X, tasks.labels(task), tasks.weights, *answer, cost=float(costs[c]), bias=bias
            )
            for task, answer in enumerate(answers)
        ]
        planes = np.concatenate([answer.planes for answer in answers], axis=1)
        yield (
            planes.reshape(tasks.n_planes, -1),
            [proof for of_fold in zip(*proofs, strict=True) for proof in of_fold],
        )
