"""The best bias of given scores, and multipliers that balance."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.problems import PrimalProblem
from maxmargin.problems.best_bias import balanced, best_biases
from tests.helpers.primal_solvers import LOSSES, ROUNDING, WEIGHTS, loss_value, posed, weights


@pytest.mark.parametrize("seed", range(10))
def test_balancing_keeps_the_box_and_takes_only(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(30) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    upper = rng.uniform(0.0, 2.0, 30)
    problem = PrimalProblem(np.zeros((30, 1)), y, upper, np.zeros(1))
    alpha = np.clip(rng.uniform(-1.0, 3.0, 30), 0.0, upper)
    before = alpha.copy()
    after = balanced(problem, alpha)
    np.testing.assert_array_equal(alpha, before)
    assert abs(y @ after) <= ROUNDING * 30
    assert (after >= 0.0).all()
    assert (after <= before + ROUNDING).all()
    # The lighter class keeps what it has.
    heavier = np.sign(y @ before)
    np.testing.assert_array_equal(after[y != heavier], before[y != heavier])
    np.testing.assert_allclose(balanced(problem, after), after, atol=ROUNDING)


def test_balancing_one_class_leaves_nothing():
    problem = PrimalProblem(np.zeros((3, 1)), np.ones(3), np.ones(1), np.zeros(1))
    np.testing.assert_array_equal(balanced(problem, np.ones(3)), np.zeros(3))


@pytest.mark.parametrize("tied", [False, True], ids=["apart", "tied"])
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_best_bias_is_that_of_a_grid(loss, name, tied, seed):
    rng = np.random.default_rng(seed)
    n = 40 if name != "equal" else 41
    scores = rng.standard_normal(n) * 2.0
    scores = np.round(scores) if tied else scores
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    problem = posed(np.zeros((n, 1)), y, weights(name, n), loss)
    low, high = best_biases(problem, scores)
    assert low <= high

    def total(t):
        return loss_value(problem, 1.0 - y * (scores + t))

    least = min(total(t) for t in np.concatenate([np.linspace(-9, 9, 2000), y - scores]))
    for t in (low, high, 0.5 * (low + high)):
        assert total(t) <= least + 1e-9 * abs(least)
    for t in (low - 1e-3, high + 1e-3):
        assert total(t) > total(low)
