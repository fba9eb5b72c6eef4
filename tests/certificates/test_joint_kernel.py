"""Certificates of joint kernel machines: true, and not to be deceived."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin.certificates import certify
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import JointKernelProblem
from maxmargin.progress import Progress
from maxmargin.solution import Solution
from maxmargin.solvers.joint.kernel import KernelCrammerSinger


def _problem(bias="free", kernel=None, far=0.0) -> JointKernelProblem:
    rng = np.random.RandomState(1)
    X = rng.randn(45, 3) + far
    labels = rng.randint(3, size=45)
    X[:, 0] += labels
    cost = rng.rand(45) + 0.5
    return JointKernelProblem(kernel or RBF(0.5), X, np.arange(45), labels, 3, cost, bias)


def _solved(problem, tol=1e-7) -> Solution:
    return KernelCrammerSinger(tol).solve(problem, None, Progress())


def _primal(problem, alpha, b) -> tuple[float, float]:
    """Return P and D by their formulas, for α with Σ_i α_i = 0 or without a bias."""
    X = problem.X[problem.index]
    K = problem.kernel(X, X)
    scores = K @ alpha + b
    own = np.arange(len(alpha)), problem.labels
    values = scores + 1.0
    values[own] -= 1.0
    square = float(np.sum(alpha * (K @ alpha)))
    primal = 0.5 * square + float(problem.cost @ (values.max(axis=1) - values[own]))
    return primal, float(alpha[own].sum()) - 0.5 * square


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Polynomial(degree=2, gamma=0.3, coef0=1.0)])
def test_values_are_those_of_the_formulas(bias, kernel):
    problem = _problem(bias, kernel)
    solution = _solved(problem)
    certificate = certify(problem, solution)
    primal, dual = _primal(problem, solution.alpha, solution.b)
    assert certificate.holds(1e-7)
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    assert certificate.dual == pytest.approx(dual, rel=1e-6)
    assert certificate.dual <= dual * (1.0 + 1e-12)
    assert primal - dual <= certificate.gap


def test_rows_that_lie_far_from_the_origin():
    problem = _problem(kernel=Linear(), far=1e5)
    assert certify(problem, _solved(problem, 1e-4)).holds(1e-4)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_wrong_answers_do_not_hold(bias):
    problem = _problem(bias)
    good = _solved(problem)
    rng = np.random.RandomState(0)
    wrong = {
        "half": replace(good, alpha=0.5 * good.alpha),
        "double": replace(good, alpha=2.0 * good.alpha),
        "nothing": replace(good, alpha=np.zeros_like(good.alpha)),
        "negative": replace(good, alpha=-good.alpha),
        "noise": replace(good, alpha=good.alpha + 0.01 * rng.randn(*good.alpha.shape)),
        "classes": replace(good, alpha=good.alpha[:, ::-1]),
        "samples": replace(good, alpha=good.alpha[::-1]),
        "b": replace(good, b=good.b + np.array([0.1, 0.0, 0.0])),
    }
    for name, answer in wrong.items():
        certificate = certify(problem, answer)
        assert not certificate.holds(1e-4), name
        assert certificate.gap >= certificate.primal - certificate.dual - 1e-9, name


def test_no_answer_is_claimed_to_be_better_than_the_optimum():
    problem = _problem()
    best = certify(problem, _solved(problem, 1e-9))
    rng = np.random.RandomState(0)
    for _ in range(30):
        alpha = rng.randn(45, 3)
        claim = certify(problem, replace(_solved(problem, 0.5), alpha=alpha, b=rng.randn(3)))
        assert claim.dual <= best.primal
        assert claim.primal >= best.dual


def test_sums_that_are_not_zero_count():
    problem = _problem()
    solution = _solved(problem)
    alpha = solution.alpha.copy()
    alpha[problem.labels == 0] *= 0.9
    certificate = certify(problem, replace(solution, alpha=alpha))
    assert certificate.balance > 1e-3
    assert not certificate.holds(1e-3)


def test_sparse_rows_and_single_precision():
    problem = _problem()
    solution = _solved(problem, 1e-4)
    rows = replace(problem, X=sparse.csr_matrix(problem.X))
    assert certify(rows, solution).gap == pytest.approx(certify(problem, solution).gap, rel=1e-6)
    single = replace(problem, X=problem.X.astype(np.float32))
    assert certify(single, _solved(single, 1e-4)).holds(1e-4)


def test_indefinite_sizes_give_no_claim():
    problem = _problem()
    solution = _solved(problem, 1e-3)
    certificate = certify(problem, replace(solution, alpha=solution.alpha * np.nan))
    assert not certificate.holds(0.1)
