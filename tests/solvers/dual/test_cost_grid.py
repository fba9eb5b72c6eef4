"""Small tasks at several costs, and weights so far apart that rounding of a margin is costly."""

import numpy as np
import pytest

from maxmargin.certificates import certify
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import DualProblem
from maxmargin.problems.held_out_rows import HeldOutRows
from maxmargin.problems.shared_rows import SharedRows
from maxmargin.progress import Limits, Progress
from maxmargin.solvers.dual.choice import Dual
from maxmargin.solvers.dual.cost_grid import GridTasks, at_cost, completed, solve_small_costs

TOL = 1e-3
NOTHING = np.empty(0, dtype=np.intp)


def samples(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0), rng


def grid_of(kernel, problem, costs):
    dual = Dual.of(kernel, problem.X, "auto", TOL)
    shared, held_out = SharedRows.of([problem], ["a"]), HeldOutRows.of([problem], [NOTHING], [1])
    recalled = np.zeros((costs.size, problem.n_variables))
    tasks = GridTasks.of([problem], shared, held_out)
    grid = solve_small_costs(dual, tasks, costs, recalled, Limits(), lambda: False)
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


@pytest.mark.parametrize("heavy", [1e12, 1e15])
@pytest.mark.parametrize("pose", ["classification", "regression"])
def test_rounding_of_margins_of_heavy_samples_is_no_part_of_the_loss(pose, heavy, monkeypatch):
    tried, interior = [], Dual._interior
    monkeypatch.setattr(Dual, "_interior", lambda *each: tried.append(each) or interior(*each))
    X, y, rng = samples(36)
    weights, kernel = rng.choice([1e-12, heavy], y.size), RBF(1.0)
    if pose == "regression":
        problem = DualProblem.regression(kernel, X, y + 0.1 * X[:, 0], weights, 0.1)
    else:
        problem = DualProblem.hinge(kernel, X, y, weights)
    solution = Dual.of(kernel, X, "auto", TOL).solve(problem, None, Progress(), Limits())
    assert holds(problem, solution)
    assert not tried  # the active set takes few samples to their end


@pytest.mark.parametrize("gamma", [1.76, 19.9])
def test_rounding_of_margins_of_large_costs_is_no_part_of_the_loss(gamma):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((36, 3))
    y = np.where(X[:, 0] + rng.standard_normal(36) > 0.0, 1.0, -1.0)
    problem = DualProblem.hinge(RBF(gamma), X, y, 1e10)
    solution = Dual.of(problem.kernel, X, "auto", TOL).solve(problem, None, Progress(), Limits())
    assert holds(problem, solution)
