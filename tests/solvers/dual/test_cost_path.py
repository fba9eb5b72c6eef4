"""Compiled steps along the path over C, against plain Python and exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.certificates import certify
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution, Status
from maxmargin.solvers.dual.cost_path import CostWalk, Pause, events, walk

RNG = np.random.default_rng(1)
X = RNG.normal(size=(20, 2))
Y = np.repeat([1.0, -1.0], 10)
X[:, 0] += 0.8 * Y


def followed(kernel, C_max=50.0):
    """Return all breakpoints from C = 0.001, where every α of two equal classes is at its bound."""
    path = CostWalk(kernel(X), Y, np.ones(20))
    path.start(np.full(20, 1e-3), 1e-3)
    legs = [path.here()]
    while legs[-1].pause is Pause.FULL:
        legs.append(path.leg(C_max))
    assert legs[-1].pause is Pause.ARRIVED
    return np.concatenate([leg.numbers for leg in legs]), np.concatenate([leg.a for leg in legs])


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear()], ids=str)
def test_breakpoints_are_optimal(kernel):
    numbers, a = followed(kernel)
    assert len(numbers) > 10
    for (C, b, square, errors), share in zip(numbers, a, strict=True):
        problem = DualProblem.hinge(kernel, X, Y, C)
        alpha = C * share
        answer = Solution(np.empty((0, 0)), np.array([b]), Status.CONVERGED, alpha=alpha)
        assert certify(problem, answer).holds(1e-9)
        w = alpha * Y
        scores = kernel(X) @ w + b
        assert square == pytest.approx(w @ kernel(X) @ w)
        assert errors == np.count_nonzero((scores >= 0.0) != (Y > 0.0))


def test_compiled_steps_are_those_of_python(monkeypatch):
    expected, shares = followed(RBF(0.5))
    compiled = ("drop_column", "solve_transposed", "solve_upper", "enter", "record", "middle")
    for name in compiled:
        monkeypatch.setattr(events, name, getattr(events, name).py_func)
    monkeypatch.setattr(walk, "advance", events.advance.py_func)
    monkeypatch.setattr(walk, "enter", events.enter)
    numbers, a = followed(RBF(0.5))
    np.testing.assert_allclose(numbers, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a, shares, atol=1e-10)


def test_matrices_that_are_not_positive_semidefinite_end_the_walk():
    K = RBF(0.5)(X) - 0.9 * np.eye(20)
    path = CostWalk(K, Y, np.ones(20))
    path.start(np.full(20, 1e-3), 1e-3)
    for _ in range(1000):
        leg = path.leg(1e4)
        if leg.pause is not Pause.FULL:
            break
    assert leg.pause in (Pause.INDEFINITE, Pause.STALLED, Pause.ARRIVED)
    assert np.isfinite(leg.numbers).all()
