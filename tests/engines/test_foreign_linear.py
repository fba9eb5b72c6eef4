"""Newton's method and Crammer–Singer on an engine that is none of ours, and their certificates."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from maxmargin.certificates import certify
from maxmargin.problems import JointProblem, PrimalProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.joint import CrammerSinger, solver
from maxmargin.solvers.joint import directions as joint_directions
from maxmargin.solvers.joint import newton as joint_newton
from maxmargin.solvers.primal import direction, newton
from maxmargin.solvers.primal.newton import SemismoothNewton

from .plain_features import PlainFeatures
from .torch_features import torch_features

ENGINES = {"plain": PlainFeatures}
if find_spec("torch"):
    ENGINES["torch"] = torch_features
BIASES = ["free", "penalised", "none"]
KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
}
LIMITS = Limits(2000)
DIRECT = direction.Tuning(direct_multiplications=0.0)
NEWTON = {
    "whole": newton.Tuning(),
    "rows near the kink": newton.Tuning(whole_numbers=100, sample_factor=3, fewest_rows=80),
    "conjugate gradients": newton.Tuning(direction=DIRECT),
}
JOINT = {
    "whole": solver.Tuning(),
    "samples": solver.Tuning(sample_factor=3, fewest_rows=50),
    "blocks": solver.Tuning(
        newton=joint_newton.Tuning(directions=joint_directions.Tuning(whole_unknowns=0))
    ),
    "diagonal": solver.Tuning(
        newton=joint_newton.Tuning(
            directions=joint_directions.Tuning(whole_unknowns=0, block_numbers=0)
        )
    ),
}


def cloud(n, d, c=2):
    """Return X, exact in float32 and with some zeros, and labels 0 … c − 1 that overlap."""
    rng = np.random.default_rng(5)
    X = np.round(8 * rng.standard_normal((n, d))) / 8 * (rng.random((n, d)) < 0.7)
    return X, (X @ rng.standard_normal((d, c)) + rng.standard_normal((n, c))).argmax(axis=1)


def costs(n):
    return np.where(np.arange(n) % 5, np.random.default_rng(0).uniform(0.5, 2.0, n), 0.0)


def test_its_vectors_do_not_leave_the_device():
    features = PlainFeatures(np.ones((3, 2)))
    with pytest.raises(TypeError, match="another device"):
        np.asarray(features.A)


@pytest.mark.parametrize("way", NEWTON)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_newton_certifies(engine, kind, loss, bias, way):
    X, labels = cloud(400, 6)
    problem = PrimalProblem.of(KINDS[kind](X), 2.0 * labels - 1.0, costs(400), loss, bias)
    method = SemismoothNewton(ENGINES[engine](problem.X), 1e-7, LIMITS, NEWTON[way])
    found = method.solve(problem, None, Progress())
    assert found.status is Status.CONVERGED
    assert certify(problem, found).holds(2e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_newton_in_the_rows_on_the_kink(engine):
    """Where they are fewer than columns, a step is solved for them."""
    X, labels = cloud(40, 80)
    problem = PrimalProblem.of(X, 2.0 * labels - 1.0, 1.0)
    found = SemismoothNewton(ENGINES[engine](X), 1e-7, LIMITS).solve(problem, None, Progress())
    assert certify(problem, found).holds(2e-7)


@pytest.mark.parametrize("way", JOINT)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kind", KINDS)
def test_crammer_singer_certifies(kind, bias, way):
    X, labels = cloud(300, 5, 4)
    problem = JointProblem(KINDS[kind](X), labels, 4, costs(300), bias)
    method = CrammerSinger(PlainFeatures(problem.X), 1e-6, LIMITS, tuning=JOINT[way])
    found = method.solve(problem, None, Progress())
    assert found.status is Status.CONVERGED
    assert certify(problem, found).holds(1e-6)
    warm = method.solve(problem, found.alpha, Progress())
    assert certify(problem, warm).holds(1e-6)
