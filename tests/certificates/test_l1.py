"""Certificates of machines with an ℓ1 penalty: true by their definition, whatever is claimed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.problems import L1Problem
from maxmargin.solution import Solution, Status
from tests.helpers.primal_solvers import BIASES, KINDS, WEIGHTS, cloud, dense, weights

ROUNDING = 1e-12
S = 3.0


def claimed(problem, w, b, alpha):
    answer = Solution(np.atleast_2d(w), np.array([b]), Status.CONVERGED, alpha=alpha)
    return mm.certify(problem, answer)


def by_hand(problem, w, b, alpha):
    """Return P and D from their definitions, α being made feasible as the certificate says."""
    X, y = dense(problem.X), problem.y
    C = np.broadcast_to(0.5 / problem.ridge, y.shape)
    primal = np.abs(w).sum() + np.sum(C * np.maximum(1.0 - y * (X @ w + b), 0.0) ** 2)
    alpha = np.where(C > 0.0, np.maximum(alpha, 0.0), 0.0)
    v = [(alpha * y) @ X]
    if problem.bias == "penalised":
        primal += abs(b) / problem.intercept_scaling
        v.append([problem.intercept_scaling * (alpha @ y)])
    if problem.bias == "free":
        up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
        alpha = alpha * min(up, down) / np.where(y > 0, up, down)
        v = [(alpha * y) @ X]
    alpha = alpha / max(1.0, np.abs(np.concatenate(v)).max())
    costs = np.where(C > 0.0, C, 1.0)
    return primal, alpha.sum() - np.sum(alpha**2 / (4.0 * costs))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_definition(kind, name, bias):
    X, y = cloud()
    rng = np.random.default_rng(3)
    problem = L1Problem.of(KINDS[kind](X), y, weights(name), "squared_hinge", bias, S)
    w, alpha = rng.standard_normal(X.shape[1]), rng.uniform(-0.1, 1.0, y.size)
    b = 0.0 if bias == "none" else 0.4
    found = claimed(problem, w, b, alpha)
    primal, dual = by_hand(problem, w, b, alpha)
    assert found.primal == pytest.approx(primal, rel=ROUNDING)
    assert found.dual == pytest.approx(dual, rel=1e-9)
    assert found.primal >= primal * (1 - ROUNDING)
    assert not found.holds(1e-3)


@pytest.mark.parametrize("bias", BIASES)
def test_no_claim_beats_the_optimum(bias):
    """P is at least, and D at most, that of the optimum, for any plane and any α."""
    X, y = cloud()
    problem = L1Problem.of(X, y, 0.5, "squared_hinge", bias, S)
    options = {"free": {}, "penalised": {"penalize_intercept": True}, "none": {}}[bias]
    model = mm.LinearSVC(
        "l1", C=0.5, tol=1e-10, fit_intercept=bias != "none", intercept_scaling=S, **options
    ).fit(X, y)
    best = model.certificate_.primal
    w, b, alpha = model.coef_[0], float(model.intercept_[0]), np.zeros(y.size)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    rng = np.random.default_rng(0)
    for size in (1e-9, 1e-6, 1e-3, 1.0, 1e3):
        for _ in range(20):
            moved = alpha * (1.0 + size * rng.standard_normal(alpha.size))
            moved += size * rng.random(alpha.size) * rng.integers(0, 2, alpha.size)
            found = claimed(
                problem, w + size * rng.standard_normal(w.size), b if bias == "none" else b + size,
                moved,
            )  # fmt: skip
            assert found.primal >= best * (1 - 1e-9)
            assert found.dual <= best
            assert found.gap >= 0.0


def test_violation_is_that_of_the_subgradients():
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.array([1.0, -1, 1, -1])
    # C = 1: w_j = 1 − 1/4 by the closed form, ξ = 1/4, α = 1/2.
    problem = L1Problem.of(X, y, 1.0, "squared_hinge", "none")
    exact = claimed(problem, [0.75, 0.75], 0.0, np.full(4, 0.5))
    assert exact.holds(1e-12)
    assert exact.violation <= 1e-12
    assert exact.primal == pytest.approx(1.5 + 4 / 16)
    wrong = claimed(problem, [0.75, 0.75], 0.0, np.array([0.5, 0.5, 0.4, 0.5]))
    assert wrong.violation == pytest.approx(0.1)  # |0.9 − 1|; 0.4/2 + 0.75 is 0.05 from 1
    unused = claimed(problem, [0.75, 0.0], 0.0, np.array([0.5, 0.5, 0.8, 0.8]))
    assert unused.violation == pytest.approx(0.6)


def test_a_bias_that_there_must_not_be():
    X, y = cloud()
    problem = L1Problem.of(X, y, 1.0, "squared_hinge", "none")
    assert claimed(problem, np.zeros(5), 0.5, np.zeros(y.size)).box >= 0.5


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("offset", [0.0, 1e5, 1e8])
def test_gap_against_rational_numbers(kind, offset):
    """The gap claimed is at least the one that rational numbers have."""
    rng = np.random.default_rng(5)
    X = np.round(rng.standard_normal((12, 2)) * 1024) / 1024 + np.array([offset, 0.0])
    y = np.where(np.arange(12) % 3 > 0, 1.0, -1.0)
    w = np.array([0.375, -0.25])
    b = -0.375 * offset + 0.125
    alpha = np.round(rng.random(12) * 64) / 512
    problem = L1Problem.of(kind(X), y, 0.5, "squared_hinge", "free")
    found = claimed(problem, w, b, alpha)
    exact = [[Fraction(value) for value in row] for row in X.tolist()]
    scores = [x[0] * Fraction(w[0]) + x[1] * Fraction(w[1]) + Fraction(b) for x in exact]
    slacks = [max(1 - int(k) * s, 0) for k, s in zip(y, scores, strict=True)]
    primal = Fraction(5, 8) + Fraction(1, 2) * sum(z * z for z in slacks)
    a = [Fraction(value) for value in alpha.tolist()]
    up = sum(v for v, k in zip(a, y, strict=True) if k > 0)
    down = sum(v for v, k in zip(a, y, strict=True) if k < 0)
    a = [v * min(up, down) / (up if k > 0 else down) for v, k in zip(a, y, strict=True)]
    most = max(
        abs(sum(v * int(k) * x[j] for v, k, x in zip(a, y, exact, strict=True))) for j in (0, 1)
    )
    a = [v / max(most, 1) for v in a]
    dual = sum(a) - sum(v * v for v in a) / 2
    assert found.primal >= float(primal) * (1 - 1e-15)
    assert found.dual <= float(dual) * (1 + 1e-15)
    assert found.gap >= float(primal - dual) * (1 - 1e-15)
    assert found.primal == pytest.approx(float(primal), rel=1e-6)


@pytest.mark.parametrize("cost", [1e-300, 1e-200, 1e-160, 1e-150])
def test_costs_whose_squares_underflow_raise_no_dual(cost):
    X, y = cloud()
    n = y.size
    problem = L1Problem(dense(X), y, np.full(1, np.inf), np.full(1, 0.5 / cost), bias="free")
    certificate = claimed(problem, np.zeros(X.shape[1]), 0.0, np.full(n, 2.0 * cost))
    least = Fraction(cost) * 4 * min(int(np.sum(y > 0)), int(np.sum(y < 0)))
    assert Fraction(certificate.dual) <= least
    assert certificate.relative_gap >= 0.0
