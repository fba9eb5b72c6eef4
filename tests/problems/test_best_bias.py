"""The best bias of given scores, and multipliers that balance."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.problems import PrimalProblem
from maxmargin.problems.best_bias import balanced, best_biases
from maxmargin.problems.losses import TARGET_LOSSES
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

    grid = np.concatenate([np.linspace(-9, 9, 2000), y - scores])
    least = total(grid[:, np.newaxis]).min()
    for t in (low, high, 0.5 * (low + high)):
        assert total(t) <= least + 1e-9 * abs(least)
    for t in (low - 1e-3, high + 1e-3):
        assert total(t) > total(low)


@pytest.mark.parametrize("kappa", [0.0, 1.0], ids=["free", "penalised"])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("loss", TARGET_LOSSES)
def test_the_best_bias_of_targets_is_that_of_a_grid(loss, name, epsilon, kappa):
    rng = np.random.default_rng(3)
    n, b = 41, 0.7
    y, scores = 2.0 * rng.standard_normal(n), rng.standard_normal(n)
    bias = "penalised" if kappa else "free"
    problem = PrimalProblem.of(None, y, weights(name, n), loss, bias, epsilon=epsilon)
    low, high = best_biases(problem, scores, b)
    assert low <= high

    def total(t):
        z = np.abs(y - scores - t) - epsilon
        return loss_value(problem, z) + 0.5 * kappa * np.ravel(b + t) ** 2

    least = total(np.linspace(-9, 9, 20_001)[:, np.newaxis]).min()
    for t in (low, high, 0.5 * (low + high)):
        assert total(t) <= least + 1e-9 * least
    for t in (low - 1e-2, high + 1e-2):
        assert total(t) > total(low)


@pytest.mark.parametrize("seed", range(5))
def test_balancing_the_dual_variables_of_targets(seed):
    rng = np.random.default_rng(seed)
    upper = rng.uniform(0.0, 2.0, 30)
    y = rng.standard_normal(30)
    problem = PrimalProblem(None, y, upper, np.zeros(1), two_sided=True)
    before = np.clip(rng.uniform(-3.0, 2.0, 30), -upper, upper)
    after = balanced(problem, before)
    assert abs(after.sum()) <= ROUNDING * 30
    assert (np.abs(after) <= np.abs(before) + ROUNDING).all()
    lighter = before * before.sum() < 0.0
    np.testing.assert_array_equal(after[lighter], before[lighter])


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
@pytest.mark.parametrize("name", WEIGHTS)
def test_the_best_bias_of_many_targets_is_found_among_those_nearby(name, epsilon):
    rng = np.random.default_rng(4)
    n = 50_000
    y, scores = rng.standard_normal(n), 0.1 * rng.standard_normal(n)
    options = {"loss": "epsilon_insensitive", "epsilon": epsilon}
    problem = PrimalProblem.of(None, y, weights(name, n), **options)

    def total(t):
        return loss_value(problem, np.abs(y - scores - t) - epsilon)

    low, high = best_biases(problem, scores)
    assert total(low) == pytest.approx(total(high), rel=1e-12)
    assert total(low) <= min(total(low - 1e-3), total(high + 1e-3))
    for t in (0.3, 50.0):  # far from 0, and beyond all targets: the same
        np.testing.assert_allclose(best_biases(problem, scores - t), [low + t, high + t], rtol=1e-9)
