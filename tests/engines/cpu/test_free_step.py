"""A Newton step of free variables, against a quadratic program; and f after the last SMO step."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from maxmargin.engines.cpu.free_step import free_step, solve_by_root
from maxmargin.engines.cpu.smo import pair_steps
from maxmargin.runtime.row_access import compiled
from maxmargin.runtime.simd import vectors


@compiled
def step_of(A, f, low, high):
    """Call the compiled part."""
    return free_step(A, f, low, high)


@compiled
def solution_of(root, x):
    """Call the compiled part."""
    solve_by_root(root, x)


@compiled
def padded(n_rows, n_columns, like):
    """Return rows whose length is a multiple of a vector's."""
    return vectors(n_rows, n_columns, like)


def gaussian(n, seed, gamma=0.5):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def gain(A, f, change):
    return f @ change - 0.5 * change @ A @ change


def best_change(A, f, low, high):
    """Return the change of the largest gain by a general method."""
    n = f.size
    found = minimize(
        lambda c: -gain(A, f, c), np.zeros(n), jac=lambda c: A @ c - f, method="trust-constr",
        hess=lambda _: A, bounds=list(zip(low, high, strict=True)),
        constraints=LinearConstraint(np.ones((1, n)), 0, 0),
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 3000},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize("seed", range(5))
def test_single_precision_gives_nearly_the_same_step(seed):
    A, f = gaussian(12, seed, gamma=2.0), np.random.default_rng(seed).normal(size=12)
    bound = np.full(12, 2.0)
    change, gains = step_of(A, f, -bound, bound)
    nearly, gains_too = step_of(A.astype(np.float32), f, -bound, bound)
    assert gains
    assert gains_too
    assert gain(A, f, nearly) >= 0.999 * gain(A, f, change)
    assert (np.abs(nearly) <= bound).all()


@pytest.mark.parametrize("seed", range(5))
def test_without_bounds_the_step_solves_the_equations(seed):
    A, f = gaussian(12, seed), np.random.default_rng(seed).normal(size=12)
    wide = np.full(12, 1e9)
    change, gains = step_of(A, f, -wide, wide)
    assert gains
    assert change.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(change).max())
    left = f - A @ change  # equal for all
    assert np.ptp(left) <= 1e-6 * np.ptp(f)


@pytest.mark.parametrize("seed", range(8))
def test_a_step_within_bounds_gains_and_never_leaves_them(seed):
    A, rng = gaussian(10, seed), np.random.default_rng(seed)
    f, low, high = rng.normal(size=10), -rng.uniform(0.05, 2.0, 10), rng.uniform(0.05, 2.0, 10)
    change, gains = step_of(A, f, low, high)
    if not gains:  # every round met a bound: the caller goes on by SMO
        return
    assert np.all((low <= change) & (change <= high))
    assert change.sum() == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < gain(A, f, change) <= gain(A, f, best_change(A, f, low, high)) + 1e-6


def test_most_steps_within_bounds_gain():
    found = []
    for seed in range(20):
        A, rng = gaussian(10, seed), np.random.default_rng(seed)
        f, room = rng.normal(size=10), rng.uniform(0.05, 2.0, 10)
        found.append(step_of(A, f, -room, room)[1])
    assert np.mean(found) > 0.5


def test_equal_rows_do_not_stop_it():
    A = np.ones((4, 4))
    change, gains = step_of(A, np.array([1.0, -1.0, 0.5, 0.0]), np.full(4, -1.0), np.full(4, 1.0))
    assert np.all(np.isfinite(change))
    if gains:
        assert np.array([1.0, -1.0, 0.5, 0.0]) @ change > 0.0


def test_no_step_of_an_indefinite_matrix_or_a_single_variable():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    wide = np.full(2, 10.0)
    assert not step_of(indefinite, np.array([1.0, -1.0]), -wide, wide)[1]
    assert not step_of(np.eye(1), np.ones(1), -wide[:1], wide[:1])[1]


def test_solution_by_a_root():
    A, x = gaussian(9, 0) + np.eye(9), np.arange(9.0)
    z = x.copy()
    solution_of(np.linalg.cholesky(A), z)
    np.testing.assert_allclose(A @ z, x, atol=1e-10)


@pytest.mark.parametrize("max_steps", [0, 1, 3, 17])
def test_f_is_that_of_beta_where_the_steps_are_used_up(max_steps):
    n, n_like = 24, np.empty((1, 1))
    values = gaussian(n, 1)
    memory = padded(n + 2, n, n_like)
    width = memory.shape[1]
    memory[:n, :n], memory[:n, n:] = values, 0.0
    s = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    beta, low, up, f, curvature = np.zeros((5, width))
    low[:n], up[:n], f[:n], curvature[:n] = np.minimum(s, 0.0), np.maximum(s, 0.0), s, 1.0
    made = pair_steps(
        memory, curvature, beta, low, up, f, memory[n], memory[n + 1], np.array([0, width]), 1e-9,
        max_steps,
    )  # fmt: skip
    assert made == max_steps
    np.testing.assert_allclose(f[:n], s - values @ beta[:n], atol=1e-12)
