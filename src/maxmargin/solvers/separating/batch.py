"""Batch corrections a ← a + Zᵀu(a), which perceptron, relaxation and LMS share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arrays import Floats
from ...problems import SeparationProblem
from ...progress import Progress
from ...solution import Solution, Status
from .online import snapshot


@dataclass(frozen=True)
class Correction:
    """The answer of a batch rule to the margins Za.

    Attributes
    ----------
    u : ndarray of shape (n_rows of Z,)
        The coefficients of the correction Zᵀu.
    objective : float
        The criterion at a.
    finished : bool, default=False
        Whether no row needs a correction.
    """

    u: Floats
    objective: float
    finished: bool = False


def run_batch(
    problem: SeparationProblem,
    a: Floats,
    correct: Callable[[Floats, int], Correction],
    *,
    max_iter: int,
    progress: Progress,
    shortest: float = 0.0,
) -> Solution:
    """Iterate a ← a + Zᵀu with the u of correct(Za, t).

    Ends when the rule is finished, when a step is shorter than ``shortest``, after ``max_iter``
    steps, when a callback stops it, or when a would overflow: then the a of the least criterion is
    restored.
    """
    Z = problem.Z
    show = partial(snapshot, Z, a)
    status = Status.ITERATION_LIMIT
    updates = 0
    best, lowest = a.copy(), np.inf
    for t in range(1, max_iter + 1):
        margins = Z.dot(a)
        errors = int((Z.worst_of_each(margins) <= 0).sum())
        correction = correct(margins, t)
        step = None if correction.finished else Z.adjoint(correction.u)
        length = 0.0 if step is None else float(np.linalg.norm(step))
        if not np.isfinite(length) or not np.isfinite(correction.objective):
            a[:] = best
            status = Status.DIVERGED
            break
        if correction.objective < lowest:
            best[:], lowest = a, correction.objective
        if step is not None:
            a += step
            updates += 1
        stop = progress.iteration(correction.objective, errors, length, show)
        if step is None or length < shortest:
            status = Status.CONVERGED
            break
        if stop:
            status = Status.STOPPED
            break
    return snapshot(Z, a, status, progress, n_updates=updates)
