"""Block descent of joint kernel machines: answers, limits, starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from maxmargin.certificates import certify
from maxmargin.kernels import RBF, Linear, Precomputed
from maxmargin.problems import JointKernelProblem
from maxmargin.progress import Limits, Progress
from maxmargin.qp import QP
from maxmargin.qp import solve as solve_qp
from maxmargin.solution import Status
from maxmargin.solvers.joint.kernel import JointStart, KernelCrammerSinger, Tuning


def _data(n=60, c=3, seed=0):
    rng = np.random.RandomState(seed)
    labels = np.arange(n) % c
    X = rng.randn(n, 2) + 1.2 * np.column_stack([np.cos(labels), np.sin(labels)])
    return X, labels


def _problem(bias="free", kernel=None, C=2.0, n=60, c=3, X=None):
    rows, labels = _data(n, c)
    X = rows if X is None else X
    return JointKernelProblem(
        kernel or RBF(1.0), X, np.arange(n), labels, c, np.full(n, float(C)), bias
    )


def _solve(problem, tol=1e-6, start=None, limits=None, **tuning):
    solver = KernelCrammerSinger(tol, limits or Limits(), tuning=Tuning(**tuning))
    return solver.solve(problem, start, Progress())


def _program(problem) -> QP:
    """Return the dual as a program in α, class after class."""
    n, c = len(problem.labels), problem.n_classes
    K = problem.kernel(problem.X, problem.X)
    own = np.eye(c)[problem.labels].T.ravel()  # (c, n) flattened
    sums = np.tile(np.eye(n), c)  # Σ_k α_i^k
    if problem.bias == "free":
        sums = np.vstack([sums, np.kron(np.eye(c), np.ones(n))[:-1]])
    P = np.kron(np.eye(c), K) + 1e-12 * np.eye(n * c)
    return QP(
        P=P, q=1.0 - own, G=np.eye(n * c), h=own * np.tile(problem.cost, c), A=sums,
        b=np.zeros(len(sums)),
    )  # fmt: skip


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()])
def test_value_is_that_of_a_quadratic_program(bias, kernel):
    problem = _problem(bias, kernel, n=30)
    program = _program(problem)
    other = solve_qp(program)
    certificate = certify(problem, _solve(problem, 1e-8))
    value = -float(0.5 * other.x @ program.P @ other.x + program.q @ other.x)
    assert certificate.dual == pytest.approx(value, rel=1e-6)


def test_primal_value_is_that_of_a_smooth_minimiser():
    problem = _problem("free", Linear(), n=30)
    own = np.arange(30), problem.labels

    def primal(v):
        w, b = v[:6].reshape(3, 2), v[6:]
        values = problem.X @ w.T + b + 1.0
        values[own] -= 1.0
        return 0.5 * np.sum(w**2) + problem.cost @ (values.max(axis=1) - values[own])

    best = min(
        minimize(primal, np.random.RandomState(k).randn(9), method="Powell",
                 options={"xtol": 1e-10, "ftol": 1e-12, "maxiter": 10**5}).fun
        for k in range(2)
    )  # fmt: skip
    certificate = certify(problem, _solve(problem, 1e-8))
    assert certificate.primal <= best + 1e-8
    assert best <= certificate.primal * 1.05


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("c", [3, 5])
def test_certificate_holds(C, c):
    problem = _problem(C=C, c=c)
    solution = _solve(problem, 1e-5)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution).holds(1e-5)


def test_blocks_that_hold_some_samples_only():
    problem = _problem(n=300, c=4)
    whole = _solve(problem, 1e-6)
    parts = _solve(problem, 1e-6, single_block=0, block_samples=64, fresh_samples=32)
    assert certify(problem, parts).holds(1e-6)
    np.testing.assert_allclose(parts.alpha, whole.alpha, atol=1e-3)


def test_kernel_values_that_do_not_fit_the_memory():
    problem = _problem(n=300)
    solver = KernelCrammerSinger(
        1e-5, budget=1000.0, tuning=Tuning(single_block=0, block_samples=64, fresh_samples=32)
    )
    solution = solver.solve(problem, None, Progress())
    assert certify(problem, solution).holds(1e-5)


def test_precomputed_sparse_and_single_precision_agree():
    problem = _problem()
    K = problem.kernel(problem.X, problem.X)
    answers = [
        _solve(_problem(kernel=kernel, X=X)).alpha
        for kernel, X in [
            (RBF(1.0), problem.X),
            (Precomputed(), K),
            (RBF(1.0), sparse.csr_matrix(problem.X)),
        ]
    ]
    for alpha in answers[1:]:
        np.testing.assert_allclose(alpha, answers[0], atol=1e-5)
    single = _problem(X=problem.X.astype(np.float32))
    assert certify(single, _solve(single, 1e-5)).holds(1e-5)


def test_some_rows_of_x_only():
    X, labels = _data()
    rows = np.flatnonzero(np.arange(60) % 4)
    some = JointKernelProblem(RBF(1.0), X, rows, labels[rows], 3, np.full(45, 2.0))
    same = JointKernelProblem(RBF(1.0), X[rows], np.arange(45), labels[rows], 3, np.full(45, 2.0))
    np.testing.assert_array_equal(_solve(some).alpha, _solve(same).alpha)


def test_warm_start_takes_fewer_steps():
    problem = _problem()
    first = _solve(problem, 1e-4)
    again = _solve(problem, 1e-4, JointStart(first.alpha, first.b))
    assert again.n_iter < 0.2 * first.n_iter
    assert certify(problem, again).holds(1e-4)


def test_start_that_is_not_feasible():
    problem = _problem()
    rng = np.random.RandomState(0)
    solution = _solve(problem, 1e-4, JointStart(rng.randn(60, 3), rng.randn(3)))
    assert certify(problem, solution).holds(1e-4)


def test_limits():
    problem = _problem(C=100.0)
    few = _solve(problem, 1e-8, limits=Limits(20))
    assert few.status is Status.ITERATION_LIMIT
    assert few.n_iter == 20
    assert _solve(problem, 1e-12, limits=Limits(None, 0.0)).status is Status.TIME_LIMIT


def test_callback_sees_steps_and_stops():
    seen = []

    def callback(step):
        seen.append((step.primal, step.alpha()))
        return len(seen) == 3

    solution = KernelCrammerSinger(1e-10).solve(_problem(), None, Progress([callback]))
    assert solution.status is Status.STOPPED
    assert len(seen) == 3
    assert seen[0][1].shape == (60, 3)


def test_rows_of_zeros_and_rows_that_repeat():
    X = np.zeros((9, 2))
    labels = np.arange(9) % 3
    problem = JointKernelProblem(Linear(), X, np.arange(9), labels, 3, np.ones(9))
    solution = _solve(problem, 1e-3)
    assert np.isfinite(solution.b).all()
    assert certify(problem, solution).primal == pytest.approx(9.0, rel=2e-3)
    one = JointKernelProblem(RBF(1.0), np.ones((9, 2)), np.arange(9), labels, 3, np.ones(9))
    assert certify(one, _solve(one, 1e-3)).primal == pytest.approx(9.0, rel=2e-3)


def test_deterministic():
    problem = _problem()
    np.testing.assert_array_equal(_solve(problem).alpha, _solve(problem).alpha)


def test_steps_that_lead_nowhere_end():
    X, _ = _data()
    X[3] = 1e8
    solution = _solve(_problem(kernel=Linear(), X=X), patience_numbers=1e7, patience_passes=0.0)
    assert solution.status is Status.PATIENCE
    assert solution.n_iter * X.shape[0] * 3 <= 1e9
