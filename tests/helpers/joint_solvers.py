"""Crammer–Singer problems, and the ways in which their solver works."""

from __future__ import annotations

import numpy as np

from maxmargin.problems import JointProblem
from maxmargin.progress import Progress
from maxmargin.solvers.joint import CrammerSinger, ascent, directions

BIASES = ["free", "penalised", "none"]

# How much work comes before Newton steps, and how their systems are solved.
NEWTON, BLOCKS = (ascent, "STEPS", 0.0), (directions, "WHOLE", 0)

WAYS = {
    "sequential": [(ascent, "STEPS", 1e6)],
    "both": [],
    "newton": [NEWTON],
    "newton-blocks": [NEWTON, BLOCKS],
    "newton-diagonal": [NEWTON, BLOCKS, (directions, "BLOCKS", 0)],
}


def blobs(n, d, c, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, c, n)
    return rng.standard_normal((n, d)) + spread * rng.standard_normal((c, d))[labels], labels


def posed(X, labels, C=1.0, bias="free", n_classes=None):
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    return JointProblem(X, labels, n_classes, np.broadcast_to(C, len(labels)) * 1.0, bias)


def solved(problem, tol=1e-6, start=None, callbacks=(), **options):
    return CrammerSinger(tol, **options).solve(problem, start, Progress(callbacks))
