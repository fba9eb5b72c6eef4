"""The answer of a solver: Status, Trace, Solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats


class Status(StrEnum):
    """Which rule ended a solver."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    PATIENCE = "patience ran out"
    STOPPED = "stopped by a callback"
    INSEPARABLE = "proved inseparable"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Trace:
    """Objective, errors, violation and time after every iteration, as arrays of one length.

    ``primal`` and ``dual`` are the two sides of the duality gap, as of `Step`: all NaN where they
    are not given. An algorithm that looks at all samples after an iteration only knows them here,
    not yet in its step.

    ``exact`` says where ``errors`` is the number of samples that the plane of the iteration
    misclassifies; elsewhere it counts the mistakes met, as of `Step`. ``unit`` is what an iteration
    is: a "pass" over the samples, a "step" that moves all weights at once, a "round" of many steps
    on part of the samples, or an "iteration" where a solver mixes them.
    """

    iteration: NDArray[np.int64]
    objective: Floats
    errors: NDArray[np.int64]
    violation: Floats
    seconds: Floats
    primal: Floats = None  # type: ignore[assignment]
    dual: Floats = None  # type: ignore[assignment]
    exact: NDArray[np.bool_] = None  # type: ignore[assignment]
    unit: str = "step"

    def __post_init__(self) -> None:
        if self.exact is None:
            object.__setattr__(self, "exact", np.zeros(len(self), dtype=bool))
        for name in ("primal", "dual"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(len(self), np.nan))

    def __len__(self) -> int:
        return self.iteration.size


@dataclass(frozen=True)
class Solution:
    """The answer of a solver, in the space of X.

    Parameters
    ----------
    w : ndarray of shape (n_vectors, n_features)
        One weight vector for two classes, one per class for a linear machine; empty for a kernel.
    b : ndarray of shape (n_vectors,)
    status : Status
        Which rule ended the solver.
    alpha : ndarray of shape (n,), optional
        Dual variables of a dual algorithm.
    multipliers : ndarray of shape (n_rows of Z,), optional
        u ≥ 0 with Zᵀu = 0: the proof that no plane separates (Gordan's alternative).
    margins : ndarray of shape (n_rows of Z,), optional
        m of an algorithm that chooses its margins too.
    scores : ndarray of shape (n,), optional
        Σ_l α_l y_l K(x_l, x_m) as a kernel solver has them: a claim that a certificate may check
        on some samples instead of computing all of them anew.
    score_bounds : ndarray of shape (n,), optional
        By how much rounding may have made each of the scores wrong, at most.
    """

    w: Floats
    b: Floats
    status: Status
    n_iter: int = 0
    n_updates: int = 0
    seconds: float = 0.0
    alpha: Floats | None = None
    multipliers: Floats | None = None
    margins: Floats | None = None
    scores: Floats | None = field(default=None, repr=False)
    score_bounds: Floats | None = field(default=None, repr=False)
    trace: Trace | None = field(default=None, repr=False)
