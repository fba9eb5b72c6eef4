"""The active set method: degenerate problems, chunks, its factor and its limits."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF, Linear, Polynomial, Sigmoid
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.dual.active_set import ActiveSet, Tuning
from maxmargin.solvers.dual.active_set import factor as factors
from tests.helpers.dual_solvers import METHODS, answer, blobs
from tests.helpers.fits import noisy


def test_active_set_gives_up_after_so_much_work():
    X, y = noisy(300)
    problem = DualProblem.hinge(RBF(0.3), X, y, 1e6)
    solution = ActiveSet(Gram(problem.kernel, X), work=1e7).solve(problem, None, Progress())
    assert solution.status is Status.PATIENCE
    assert solution.n_iter <= 51


@pytest.mark.parametrize("seed", range(8))
def test_degenerate_grids(seed):
    """Integer samples: ties, duplicates, no curvature, several optima."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (40, 2)).astype(float)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for problem in (
        DualProblem.hinge(Linear(), X, y, 1.0),
        DualProblem.hinge(Polynomial(2, coef0=1.0), X, y, rng.choice([0.1, 1.0, 10.0], 40)),
        DualProblem.nu(RBF(gamma=0.5), X, y, 0.5),
        DualProblem.hinge(RBF(gamma=1e-4), X, y, 100.0, bias=False),
    ):
        solution = answer(METHODS[0], problem, tol=1e-10)
        assert solution.status is Status.CONVERGED
        # Without a margin violations, and rounding, are relative to a millionth of K.
        assert mm.certify(problem, solution).holds(1e-6 if problem.total else 1e-9)


def test_active_set_beyond_one_chunk():
    X, y = blobs(700, 4, 10)
    order = np.argsort(y, kind="stable")  # the first few hundred are of one class
    X, y = X[order], y[order]
    assert 2 * Tuning.violators_per_chunk < 700
    for problem in (
        DualProblem.hinge(RBF(gamma=0.3), X, y, 3.0),
        DualProblem.nu(RBF(gamma=0.3), X, y, 0.6),
    ):
        solution = answer(METHODS[0], problem)
        assert mm.certify(problem, solution).holds(1e-9)
        free = (solution.alpha > 0) & (solution.alpha < problem.upper)
        nearly = solution.alpha * np.where(free, 1 + 1e-7 * X[:, 0], 1.0)
        polished = answer(METHODS[0], problem, nearly)
        assert mm.certify(problem, polished).holds(1e-9)
        assert polished.n_iter < 5


def test_active_set_needs_no_positive_margin_to_end():
    """Samples so close that their kernel values hardly tell the classes apart."""
    X = np.linspace(0.0, 0.03, 14)[:, np.newaxis]
    y = np.where(np.arange(14) % 3, 1.0, -1.0)
    problem = DualProblem.hard(RBF(gamma=0.5), X, y)
    solution = answer(METHODS[0], problem, limits=Limits(iterations=5000))
    assert solution.status in (Status.INSEPARABLE, Status.PATIENCE)
    if solution.status is Status.INSEPARABLE:
        u = solution.multipliers * y
        assert abs(u @ problem.kernel(X) @ u) < 1e-13


def test_active_set_ends_on_an_indefinite_kernel():
    X, y = blobs(60, 3, 11)
    kernel = Sigmoid(gamma=2.0, coef0=-1.0)
    soft = answer(METHODS[0], DualProblem.hinge(kernel, X, y, 1.0))
    assert soft.status in (Status.CONVERGED, Status.PATIENCE)
    assert abs(y @ soft.alpha) < 1e-10
    hard = answer(METHODS[0], DualProblem.hard(kernel, X, y))
    assert hard.status is not Status.CONVERGED


@pytest.mark.parametrize("compiled", [True, False])
def test_factor_follows_its_matrix(compiled, monkeypatch):
    if not compiled:
        for name in ("solve_transposed", "solve_upper", "drop_column", "add_rows"):
            monkeypatch.setattr(factors, name, getattr(factors, name).py_func)
    rng = np.random.default_rng(12)
    B = rng.standard_normal((12, 12))
    M = B @ B.T + np.eye(12)
    factor, rows = factors.Factor(), []
    for j in range(12):
        assert factor.append(M[rows, j], M[j, j], np.sqrt(M.diagonal()[[*rows, j]]), 1e-14)[0]
        rows.append(j)
    for k in (11, 0, 4):
        factor.drop(k)
        del rows[k]
        R = factor.R[: factor.size, : factor.size]
        np.testing.assert_allclose(np.triu(R).T @ np.triu(R), M[np.ix_(rows, rows)], atol=1e-12)
    b = rng.standard_normal(9)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(M[np.ix_(rows, rows)], b))
    total = np.ones(12)
    factors.add_rows(M, np.array([3, 5]), np.array([2.0, -1.0]), total)
    np.testing.assert_allclose(total, 1.0 + 2.0 * M[3] - M[5])
    twin = M[rows, rows[0]]
    independent, x = factor.append(
        twin, M[rows[0], rows[0]], np.sqrt(M.diagonal()[[*rows, 1]]), 1e-14
    )
    assert not independent
    np.testing.assert_allclose(x, np.eye(9)[0], atol=1e-12)
