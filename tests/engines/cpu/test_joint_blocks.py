"""Compiled descent on a block of a joint machine."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.arrays import Floats
from maxmargin.engines.cpu.joint_blocks import solve_joint_block

N, C_CLASSES = 14, 3


def _block() -> tuple[Floats, ...]:
    rng = np.random.RandomState(0)
    X = rng.randn(N, 4)
    labels = rng.randint(C_CLASSES, size=N)
    p = np.zeros((N, C_CLASSES))
    p[np.arange(N), labels] = 1.0
    values = np.ones((C_CLASSES, N))
    values[labels, np.arange(N)] = 0.0
    return X @ X.T + np.eye(N), labels, rng.rand(N) + 0.5, p, values


def test_block_ends_at_the_optimum_of_its_samples():
    K, labels, cost, p, values = _block()
    steps, worst = solve_joint_block(K, labels, cost, p, values, 1e-10, 0.3, 10**6)
    assert 0 < steps < 10**6
    assert worst <= 1e-10
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    assert (p >= 0.0).all()
    alpha = cost[:, np.newaxis] * (np.eye(C_CLASSES)[labels] - p)
    exact = (1.0 - np.eye(C_CLASSES)[labels]) + K @ alpha
    np.testing.assert_allclose(values.T, exact, atol=1e-12)
    least = np.where(p > 0.0, exact, np.inf).min(axis=1)
    assert (exact.max(axis=1) - least).max() <= 1e-9


def test_compiled_code_is_the_python_code():
    results = []
    for solve in (solve_joint_block, solve_joint_block.py_func):
        block = _block()
        with np.errstate(all="ignore"):
            steps, worst = solve(*block, 1e-6, 0.3, 10**6)
        results.append((steps, worst, block[3], block[4]))
    for compiled, plain in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, plain, atol=1e-9)


@pytest.mark.parametrize("most", [0, 1, 5])
def test_no_more_steps_than_allowed(most):
    steps, _ = solve_joint_block(*_block(), 1e-10, 0.3, most)
    assert steps == most
