"""Small tasks at several costs, and what a grid of costs leaves to other solvers."""

import numpy as np
import pytest

from maxmargin.certificates import certify
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solvers.dual.choice import Dual
from maxmargin.solvers.dual.cost_grid import at_cost, completed, solve_small_costs

TOL = 1e-3
NOTHING = np.empty(0, dtype=np.intp)


def samples(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0), rng


def grid_of(kernel, problem, costs):
    dual = Dual.of(kernel, problem.X, "auto", TOL)
    grid = solve_small_costs(dual, [problem], costs, [NOTHING], Limits())
    return dual, grid


def holds(problem, solution):
    return certify(problem, solution).holds(TOL)


@pytest.mark.parametrize("n", [24, 90])
def test_few_variables_are_left_to_other_solvers_after_few_steps(n):
    X, y, rng = samples(n)
    weights = 10.0 ** rng.uniform(-12.0, 12.0, n)
    problem = DualProblem.hinge(Linear(), 100.0 * X, y, weights)
    dual, grid = grid_of(problem.kernel, problem, np.array([1.0, 1e3]))
    assert not grid.converged.all()
    assert grid.steps.max() <= dual.tuning.steps_per_variable * n


def test_what_a_grid_left_begins_with_the_answer_at_the_cost_before():
    X, y, _ = samples(80)
    kernel, costs = RBF(0.1), np.array([1e5, 1.1e5])
    problem = DualProblem.hinge(kernel, X, y, 1.0)
    dual, grid = grid_of(kernel, problem, costs)
    grid.converged[:], grid.alpha[:] = False, 0.0
    first, second = (completed(dual, [problem], costs, grid, Limits())[c, 0] for c in (0, 1))
    fresh = dual.solve(at_cost(problem, costs[1]), None, Progress(), Limits())
    assert holds(at_cost(problem, costs[0]), first)
    assert holds(at_cost(problem, costs[1]), second)
    assert 4 * second.n_iter < fresh.n_iter
