"""Probabilities of classes: a sigmoid of every plane's scores, and pairs of classes coupled.

The score f of a plane becomes 1/(1 + exp(Af + B)), the probability of its positive class, with A
and B of the largest likelihood on scores that were computed without the sample itself: those of
fits on four fifths of a task's samples (Platt, 1999; Lin, Lin, Weng, 2007). Where there is a plane
for every pair of more than two classes, p minimises Σ_{i<j} (r_ji p_i − r_ij p_j)² subject to
Σp = 1, r_ij being the probability of i against j (Wu, Lin, Weng, 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..arrays import Floats, Integers, OnDevice, take
from ..certificates import MarginCertificate
from ..kernels import Kernel, Precomputed
from ..multiclass import OneVsOne, Task
from ..problems import DualProblem
from ..runtime.threads import in_parallel
from ..solvers.dual.sizes import SMALL_SAMPLES
from .expansion import expanded
from .fitting import Attributes, Outcome
from .training import Training

N_FOLDS = 5
# No pair of classes decides with more certainty than this, so that none rules out all others.
LEAST = 1e-7
# Rows that are coupled at a time, for systems of equations of this many numbers in all.
NUMBERS_AT_A_TIME = 1 << 22

# (training, tasks) ↦ coefficients of the rows in w, and b, of a machine fitted to each task.
Fit = Callable[[Training, list[Task]], list[tuple[Floats, float]]]


def asks_for_probabilities(parameter: object) -> bool:
    """Whether ``probability`` is True, NumPy's included; "deprecated" stands for False."""
    return parameter is True or (isinstance(parameter, np.bool_) and bool(parameter))


def sigmoids(fit: Fit, outcome: Outcome[DualProblem, MarginCertificate]) -> Attributes:
    """Return A and B of every task. The first class of a pair is the positive one, as in LIBSVM."""
    training, tasks = outcome.training, outcome.tasks
    kernel = outcome.problems[0].kernel
    sign = -1.0 if len(training.classes) == 2 else 1.0
    folds = [fold_numbers(task.labels, training.task_rng()) for task in tasks]

    def one(k: int, stop: Event) -> tuple[float, float]:
        part, task = _part(kernel, training, tasks[k])
        scores = unseen_scores(fit, kernel, part, task, folds[k])
        return platt(sign * scores, sign * np.asarray(task.labels) > 0.0)

    side_by_side = kernel.elementwise and max(task.rows.size for task in tasks) <= SMALL_SAMPLES
    found = in_parallel(one, range(len(tasks)), alone=not side_by_side)
    A, B = np.array(found).T
    return {"probA_": A, "probB_": B}


def fold_numbers(labels: Floats, rng: np.random.RandomState) -> Integers:
    """Return the fold of every sample: as many of each class in every fold, but for one."""
    folds = np.empty(labels.size, dtype=np.intp)
    begun = 0
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        folds[members] = (begun + np.arange(members.size)) % N_FOLDS
        begun += members.size
    return folds


def _part(kernel: Kernel, training: Training, task: Task) -> tuple[Training, Task]:
    """Return the samples of a task alone, and the task on them."""
    rows = task.rows
    X = training.X
    if isinstance(kernel, Precomputed):
        X = X.take(rows, rows) if isinstance(X, OnDevice) else X[np.ix_(rows, rows)]
    elif rows.size < X.shape[0] or (rows[1:] < rows[:-1]).any():
        X = take(X, rows)
    part = replace(
        training, X=X, y=training.y[rows], codes=training.codes[rows], objects=None,
        sample_weights=training.sample_weights[rows], weights=training.weights[rows],
    )  # fmt: skip
    return part, replace(task, rows=np.arange(rows.size))


def unseen_scores(
    fit: Fit, kernel: Kernel, training: Training, task: Task, folds: Integers
) -> Floats:
    """Return the score of every sample on the plane that was fitted without its fold."""
    scores, labels = np.zeros(folds.size), np.asarray(task.labels)
    tests, tasks = [], []
    for fold in np.unique(folds):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if np.unique(labels[train]).size == 2:
            tests.append(test)
            tasks.append(replace(task, rows=train, labels=labels[train]))
        elif train.size:
            scores[test] = labels[train[0]]
    planes_of = fit(training, tasks) if tasks else []
    for test, seen, (coefficients, b) in zip(tests, tasks, planes_of, strict=True):
        planes = expanded(kernel, training, [seen], [coefficients], of_pairs=False)
        scores[test] = planes.scores(training.X[test])[:, 0] + b
    return scores


def platt(scores: Floats, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Return A and B of the largest likelihood of 1/(1 + exp(Af + B)), by Newton's method.

    The targets are (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) in place of 1 and 0, so that separated classes
    do not drive A to −∞ (Platt, 1999).
    """
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    targets = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    # A multiple of the scores changes A alone, and scores of any size are as good as those near 1.
    unit = float(np.abs(scores).max()) or 1.0
    f = scores / unit
    A, B = 0.0, float(np.log((n_negative + 1.0) / (n_positive + 1.0)))
    value = _negative_likelihood(f, targets, A, B)
    for _ in range(100):
        p = expit(-(A * f + B))
        error, curvature = targets - p, p * (1.0 - p)
        slope = np.array([f @ error, error.sum()])
        if np.abs(slope).max() < 1e-10 * positive.size:
            break
        mixed = float(f @ curvature)
        H = np.array([[(f * f) @ curvature, mixed], [mixed, curvature.sum()]])
        step = np.linalg.solve(H + 1e-12 * np.eye(2), -slope)
        size = 1.0
        while size >= 1e-10:
            now = _negative_likelihood(f, targets, A + size * step[0], B + size * step[1])
            if now < value + 1e-4 * size * float(slope @ step):
                break
            size *= 0.5
        else:
            break
        A, B, value = A + size * step[0], B + size * step[1], now
    # Finite, so that A·0 is 0.
    most = float(np.finfo(float).max)
    return float(np.clip(A, -most * unit, most * unit) / unit), float(B)


def _negative_likelihood(f: Floats, targets: Floats, A: float, B: float) -> float:
    z = A * f + B
    # log(1 + e^z) − (1 − t)z, written so that e^z does not overflow
    return float((np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))) - (1.0 - targets) * z).sum())


def probabilities(scores: Floats, A: Floats, B: Floats, n_classes: int, of_pairs: bool) -> Floats:
    """Return the probability of every class, (n, n_classes), from the scores of all planes."""
    sign = -1.0 if n_classes == 2 else 1.0
    of_first = np.clip(expit(-(A * (sign * scores) + B)), LEAST, 1.0 - LEAST)
    if n_classes == 2:
        return np.column_stack([of_first[:, 0], 1.0 - of_first[:, 0]])
    if not of_pairs:
        return of_first / of_first.sum(axis=1, keepdims=True)
    result = np.empty((len(scores), n_classes))
    step = max(1, NUMBERS_AT_A_TIME // (n_classes + 1) ** 2)
    for start in range(0, len(scores), step):
        some = slice(start, start + step)
        result[some] = coupled(of_first[some], n_classes)
    return result


def coupled(of_first: Floats, n_classes: int) -> Floats:
    """Return p of every row from the probabilities of the first class of each pair."""
    i, j = np.array(OneVsOne.pairs(n_classes)).T
    r = np.zeros((len(of_first), n_classes, n_classes))
    r[:, i, j], r[:, j, i] = of_first, 1.0 - of_first
    # Q_ii = Σ_j r_ji², Q_ij = −r_ji r_ij; Qp is one number in all classes, and Σp = 1.
    system = np.zeros((len(of_first), n_classes + 1, n_classes + 1))
    system[:, :-1, :-1] = -r * r.transpose(0, 2, 1)
    of_class = np.arange(n_classes)
    system[:, of_class, of_class] = (r**2).sum(axis=1)
    system[:, :-1, -1] = system[:, -1, :-1] = 1.0
    right = np.zeros((len(of_first), n_classes + 1, 1))
    right[:, -1] = 1.0
    p: Floats = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)  # < 0 by rounding
    return p / p.sum(axis=1, keepdims=True)
