"""Batch corrections a ← a + Zᵀu(a), which perceptron, relaxation and LMS share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

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


class Evaluation(NamedTuple):
    """What a batch rule says at a.

    Attributes
    ----------
    step : ndarray of shape (n_columns of Z,) or None
        The correction Zᵀu; None if no row needs one.
    objective : float
        The criterion at a.
    errors : int
        Samples with z·a ≤ 0.
    """

    step: Floats | None
    objective: float
    errors: int


def evaluated(
    problem: SeparationProblem,
    a: Floats,
    correct: Callable[[SeparationProblem, Floats], Correction],
) -> Evaluation:
    """Return what the rule ``correct(problem, Za)`` says at a."""
    margins = problem.Z.dot(a)
    errors = int((problem.Z.worst_of_each(margins) <= 0).sum())
    correction = correct(problem, margins)
    step = None if correction.finished else problem.Z.adjoint(correction.u)
    return Evaluation(step, correction.objective, errors)


def merged_evaluations(found: list[Evaluation]) -> Evaluation:
    """Add up what partitions say."""
    steps = [each.step for each in found if each.step is not None]
    return Evaluation(
        np.sum(steps, axis=0) if steps else None,
        sum(each.objective for each in found),
        sum(each.errors for each in found),
    )


def run_batch(
    problem: SeparationProblem,
    a: Floats,
    evaluate: Callable[[Floats, int], Evaluation],
    *,
    max_iter: int,
    progress: Progress,
    shortest: float = 0.0,
) -> Solution:
    """Iterate a ← a + Zᵀu with the Zᵀu of evaluate(a, t).

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
        step, objective, errors = evaluate(a, t)
        length = 0.0 if step is None else float(np.linalg.norm(step))
        if not np.isfinite(length) or not np.isfinite(objective):
            a[:] = best
            status = Status.DIVERGED
            break
        if objective < lowest:
            best[:], lowest = a, objective
        if step is not None:
            a += step
            updates += 1
        stop = progress.iteration(objective, errors, length, show)
        if step is None or length < shortest:
            status = Status.CONVERGED
            break
        if stop:
            status = Status.STOPPED
            break
    return snapshot(Z, a, status, progress, n_updates=updates)
