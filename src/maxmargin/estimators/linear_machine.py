"""What LinearSVC and LinearSVR share: costs, the bias, claims and support vectors."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from ..arrays import Floats, Integers, PartitionedVector, VectorOnDevice
from ..runtime.vectors import in_slices, is_one_number, nonzero
from ..solution import Status
from ..solvers.linear import Solver
from .claims import Optimal
from .fitting import Attributes
from .training import Training

Bias = Literal["free", "penalised", "none"]


class LinearMachine(Protocol):
    """The parameters that both have."""

    C: float
    tol: float
    fit_intercept: bool
    penalize_intercept: bool
    intercept_scaling: float
    time_limit: float | None
    solver: Solver


def bias_of(model: LinearMachine) -> Bias:
    """Return what the bias is to the problem."""
    if not model.fit_intercept:
        return "none"
    return "penalised" if model.penalize_intercept else "free"


def costs_of(model: LinearMachine, training: Training) -> Floats:
    """Return C_i of every sample, or one number where weights are equal."""
    if isinstance(training.weights, PartitionedVector):
        given, ends = training.weights, training.weights.ends
        bounds = None if ends is None else (_cost(np.array(ends), model.C)[0], model.C * ends[1])
        return given.combined(_cost, given, float(model.C), ends=bounds)
    equal = is_one_number(training.weights) or np.ptp(training.weights) == 0.0
    weights = training.weights[: 1 if equal else None]
    return _cost(weights, model.C)


def _cost(weights: Floats, C: float) -> Floats:
    costs: Floats = np.where(weights > 0.0, C, 0.0) * np.where(weights > 0.0, weights, 1.0)
    return costs


def streams(model: LinearMachine) -> bool:
    """Whether X may pass through a device in blocks: where Newton's method reads it as it is."""
    scaled = bias_of(model) == "penalised" and model.intercept_scaling != 1.0
    return model.solver in ("auto", "newton") and bool(np.isfinite(model.C)) and not scaled


def refuse_random_access(asked: str, instead: str) -> None:
    """Refuse what RowBlocks and collections of Dask cannot do."""
    raise ValueError(
        f"{asked} visits rows in any order, which RowBlocks and Dask collections do not allow: use "
        f"{instead}, or an array (np.memmap too)."
    )


def refuse_scaled_bias(model: LinearMachine) -> None:
    """Refuse a bias feature that is not 1, of RowBlocks and collections of Dask."""
    if bias_of(model) == "penalised" and model.intercept_scaling != 1.0:
        raise ValueError(
            f"intercept_scaling={model.intercept_scaling} needs a copy of X with one more "
            "feature, which RowBlocks and Dask collections do not allow: use 1, or an array."
        )


def optimal(model: LinearMachine, undecided: str) -> Optimal:
    """Return what is claimed of a fit, and what to do where it falls short."""
    return Optimal(
        model.tol,
        {
            Status.TIME_LIMIT: f"Raise time_limit={model.time_limit}, or go on with "
            "warm_start=True.",
            Status.PATIENCE: "Rounding allows no smaller gap: raise tol, or scale the features.",
        },
        "Raise max_iter, or scale the features; warm_start=True goes on from here.",
        undecided=undecided,
    )


def support_of_one(rows: Integers, alpha: Floats, signs: Floats | None) -> Attributes:
    """Return the rows whose α is not 0 of a single task, and their α, times signs if given.

    Those of rows in partitions stay where they are: they may be millions.
    """
    if isinstance(alpha, PartitionedVector):
        return {}
    if isinstance(alpha, VectorOnDevice) and isinstance(rows, VectorOnDevice):  # of all rows
        places, values = alpha.nonzero(signs)
        return {"support_": places, "dual_coef_": values[np.newaxis]}
    chosen = nonzero(alpha)
    support, dual = np.empty(chosen.size, dtype=np.int32), np.empty((1, chosen.size))

    def fill(some: slice) -> None:
        places = chosen[some]
        support[some] = rows[places]
        dual[0, some] = alpha[places]
        if signs is not None:
            dual[0, some] *= signs[places]

    in_slices(fill, chosen.size)
    return {"support_": support, "dual_coef_": dual}
