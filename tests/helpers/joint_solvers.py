"""Crammer–Singer problems, and the ways in which their solver works."""

from __future__ import annotations

import numpy as np

from maxmargin.engines.cpu.features import Features
from maxmargin.problems import JointProblem
from maxmargin.progress import Progress
from maxmargin.solvers.joint import CrammerSinger, ascent, directions, newton, solver

BIASES = ["free", "penalised", "none"]


def tuned(steps=40.0, **direction):
    """Return a tuning with a budget of Newton steps, and ways to their directions."""
    how = directions.Tuning(**direction)
    return solver.Tuning(
        ascent=ascent.Tuning(newton_steps=steps, directions=how),
        newton=newton.Tuning(directions=how),
    )


# How much work comes before Newton steps, and how their systems are solved.
WAYS = {
    "sequential": tuned(1e6),
    "both": tuned(),
    "newton": tuned(0.0),
    "newton-blocks": tuned(0.0, whole_unknowns=0),
    "newton-diagonal": tuned(0.0, whole_unknowns=0, block_numbers=0),
}
# Even a few rows begin with samples of them.
FEW = solver.Tuning(sample_factor=4, fewest_rows=50)


def blobs(n, d, c, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, c, n)
    return rng.standard_normal((n, d)) + spread * rng.standard_normal((c, d))[labels], labels


def posed(X, labels, C=1.0, bias="free", n_classes=None):
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    return JointProblem(X, labels, n_classes, np.broadcast_to(C, len(labels)) * 1.0, bias)


def solved(problem, tol=1e-6, start=None, callbacks=(), **options):
    solver = CrammerSinger(Features(problem.X), tol, **options)
    return solver.solve(problem, start, Progress(callbacks))
