"""Dual coordinate descent: its order, its slices, and how it ends."""

from __future__ import annotations

import numpy as np

from maxmargin.engines.cpu import descent_state
from maxmargin.engines.cpu.features import Features
from maxmargin.progress import Progress
from maxmargin.solvers.primal.coordinate_descent import CoordinateDescent
from tests.helpers.primal_solvers import (
    BIASES,
    LIMITS,
    LOSSES,
    METHODS,
    assert_solves,
    cloud,
    posed,
)


def test_slow_descent_is_finished_by_newtons_method(watched):
    polished = watched(CoordinateDescent, "_polished")
    X, y = cloud(200, 4)
    for loss in LOSSES:
        for bias in BIASES:
            found, _ = assert_solves(METHODS[2], posed(X, y, 1e4, loss, bias), 1e-8)
            assert found.n_iter == len(found.trace)
    assert polished


def test_descent_in_slices(monkeypatch):
    """Between two of them a fit can be interrupted."""
    monkeypatch.setattr(descent_state, "TUNING", descent_state.Tuning(slice_numbers=64))
    for bias in BIASES:
        assert_solves(METHODS[2], posed(*cloud(300), 1.0, "hinge", bias), 1e-4)


def test_samples_left_out_do_not_change_the_plane():
    """The plane is that of a solver which leaves none out."""
    for seed in range(3):
        X, y = cloud(400, 3, noise=0.2, seed=seed)
        for bias in BIASES:
            problem = posed(X, y, 1.0, "hinge", bias)
            exact, _ = assert_solves(METHODS[1], problem, 1e-10)
            found, _ = assert_solves(METHODS[2], problem, 1e-10)
            np.testing.assert_allclose(found.w, exact.w, atol=1e-4)


def test_the_order_of_descent_is_that_of_the_seed():
    problem = posed(*cloud(), 1.0)
    one, same, other = (
        CoordinateDescent(Features(problem.X), 1e-4, LIMITS, seed).solve(problem, None, Progress())
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one.alpha, same.alpha)
    assert not np.array_equal(one.alpha, other.alpha)
