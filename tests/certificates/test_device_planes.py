"""Certificates of linear machines with X on a device, against those of X on the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maxmargin.certificates import certify, device_planes
from maxmargin.problems import PrimalProblem
from maxmargin.solution import Solution, Status

pytest.importorskip("torch")

LOSSES = ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"]
BIASES = ["free", "penalised", "none"]
KINDS = {"equal costs": lambda n: 1.0, "costs": lambda n: np.linspace(0.0, 2.0, n)}


def uploaded(X):
    from maxmargin.engines.torch.device_rows import DeviceRows

    return DeviceRows.upload(X, "cpu")


def claimed(loss, bias, costs, far):
    """Return a problem, its rows far from 0 on request, and a plane and α far from optimal."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1300, 4)).astype(np.float32)
    y = X[:, 0] + 0.5 * rng.standard_normal(len(X))
    X[:, 1] += far
    targets = loss not in ("hinge", "squared_hinge")
    if not targets:
        y = np.where(y > 0, 1.0, -1.0)
    problem = PrimalProblem.of(
        X, y, KINDS[costs](len(X)), loss, bias, epsilon=0.1 if targets else 0.0
    )
    alpha = rng.uniform(-1.0 if targets else 0.0, 1.2, len(X)) * (rng.random(len(X)) < 0.7)
    w = np.array([[0.8, 0.01, -0.1, 0.0]])
    b = np.array([0.0 if bias == "none" else 0.1 - 0.01 * far])
    return problem, Solution(w, b, Status.CONVERGED, alpha=alpha)


@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("costs", KINDS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_numbers_are_those_of_the_host(loss, bias, costs, far, monkeypatch):
    monkeypatch.setattr(device_planes, "BLOCK_NUMBERS", 2048)  # several blocks
    problem, solution = claimed(loss, bias, costs, far)
    expected = certify(problem, solution)
    found = certify(replace(problem, X=uploaded(problem.X)), solution)
    for name in ("primal", "dual", "violation", "balance", "box"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-7), name
    assert found.rounding == pytest.approx(expected.rounding, rel=1e-3)
    assert (found.n_checked, found.n_samples) == (len(problem.y), len(problem.y))


def test_a_hard_margin():
    X = np.array([[0.0, 0.0], [0.5, -1.0], [2.0, 0.0], [3.0, 1.0]])
    problem = PrimalProblem.of(X, np.array([-1.0, -1.0, 1.0, 1.0]), np.inf)
    plane = Solution(
        np.array([[1.0, 0.0]]), np.array([-1.0]), Status.CONVERGED,
        alpha=np.array([0.5, 0.0, 0.5, 0.0]),
    )  # fmt: skip
    expected, found = (certify(p, plane) for p in (problem, replace(problem, X=uploaded(X))))
    assert found.primal == pytest.approx(expected.primal)
    assert found.relative_gap == pytest.approx(expected.relative_gap, abs=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_proves_nothing(value):
    problem, solution = claimed("hinge", "free", "costs", 0.0)
    on_device = replace(problem, X=uploaded(problem.X))
    alpha = solution.alpha.copy()
    alpha[3] = value
    for bad in (replace(solution, alpha=alpha), replace(solution, b=np.array([value]))):
        assert not certify(on_device, bad).holds(1e3)


def test_sparse_rows_are_certified_on_the_host():
    from scipy import sparse

    problem, solution = claimed("hinge", "free", "costs", 0.0)
    expected = certify(problem, solution)
    found = certify(replace(problem, X=uploaded(sparse.csr_matrix(problem.X))), solution)
    assert found.primal == pytest.approx(expected.primal)
