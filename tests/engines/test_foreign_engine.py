"""Solvers run unchanged on an engine that shares nothing with the CPU engine, and on torch."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.decomposition import Decomposition, Tuning
from maxmargin.solvers.dual.optimality import Optimality

from ..helpers.devices import marked, torch_engines
from .plain_engine import PlainEngine


def blobs(n, d, seed, noise=0.7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)


def curve(n):
    rng = np.random.default_rng(6)
    X = rng.uniform(-3.0, 3.0, (n, 1))
    return X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(n)


def hard():
    X, y = blobs(60, 3, 4, 0.0)
    return DualProblem.hard(Linear(), X + 0.2 * y[:, None] * [1.0, 0.0, 0.0], y)


PROBLEMS = {
    "hinge": lambda: DualProblem.hinge(RBF(gamma=0.5), *blobs(150, 3, 0), 2.0),
    "weighted": lambda: DualProblem.hinge(
        RBF(gamma=0.5), *blobs(120, 3, 1), np.random.default_rng(1).uniform(0.2, 5.0, 120)
    ),
    "squared": lambda: DualProblem.squared_hinge(RBF(gamma=0.5), *blobs(90, 2, 2), 2.0),
    "nu": lambda: DualProblem.nu(RBF(gamma=0.5), *blobs(100, 3, 3), 0.4),
    "no bias": lambda: DualProblem.hinge(Linear(), *blobs(80, 3, 4), 1.0, bias=False),
    "regression": lambda: DualProblem.regression(RBF(gamma=0.5), *curve(60), 5.0, 0.1),
    "squared regression": lambda: DualProblem.regression(
        RBF(gamma=0.5), *curve(60), 5.0, 0.1, squared=True
    ),
    "nu regression": lambda: DualProblem.nu_regression(RBF(gamma=0.5), *curve(60), 1.0, 0.3),
    "one class": lambda: DualProblem.one_class(RBF(gamma=0.5), blobs(80, 2, 5)[0], 0.2),
    "hard": hard,
}
# All variables in the working set; a few of them; and parts of those that are near.
OPTIONS = {
    "whole": {},
    "working set": {"working_set": 24},
    "near": {
        "working_set": 24,
        "tuning": Tuning(restrict_from=20, restricted_share=0.9, fresh_variables=12),
    },
}
ENGINES = {"plain": PlainEngine, **torch_engines()}


@pytest.mark.parametrize("engine_name", marked(ENGINES))
@pytest.mark.parametrize("precision", ["fast", "exact"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_decomposition(name, options, precision, engine_name):
    problem = PROBLEMS[name]()
    engine = ENGINES[engine_name](problem.X)
    gram = engine.gram(problem.kernel, problem.index, precision)
    exact = engine.gram(problem.kernel, problem.index) if precision == "fast" else None
    solver = Decomposition(gram, exact, 1e-4, Limits(20_000), **OPTIONS[options])
    solution = solver.solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    rows = problem.X[problem.index]
    scores = problem.kernel(rows) @ (problem.signs * solution.alpha)
    largest = float(problem.kernel.diagonal(problem.X).max())
    judged = Optimality.of(problem, solution.alpha, scores, largest, float(solution.b[0]))
    assert judged.share(2e-4) <= 1.0
    assert mm.certify(problem, solution).holds(2e-4)


def test_its_vectors_stay_where_they_are():
    state = PlainEngine(np.eye(3)).gram(Linear()).dual_state(
        DualProblem.hinge(Linear(), np.eye(3), np.array([1.0, -1.0, 1.0]), 1.0), np.zeros(3)
    )  # fmt: skip
    with pytest.raises(TypeError, match="another device"):
        np.asarray(state.v)
