"""Newton's method for small dense machines of a squared loss."""

import numpy as np
import pytest

from maxmargin import certify
from maxmargin.problems import PrimalProblem
from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status
from maxmargin.solvers.primal.dense_newton import DenseNewton
from maxmargin.solvers.primal.ledger import Plane


def cloud(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0.7, 1.0, -1.0)


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [None, 0.0, 0.3], ids=["labels", "targets", "tube"])
def test_the_gap_is_closed(bias, cost, weighted, epsilon):
    X, y = cloud()
    costs = cost * np.arange(80.0) if weighted else cost  # the first sample does not count
    problem = PrimalProblem.of(X, y, costs, "squared_hinge", bias)
    if epsilon is not None:
        y, loss = y + X[:, 1], "squared_epsilon_insensitive"
        problem = PrimalProblem.of(X, y, costs, loss, bias, epsilon=epsilon)
    newton = DenseNewton(1e-8)
    assert newton.suits(problem)
    solution = newton.solve(problem, None, Progress())
    assert solution.status is Status.CONVERGED
    certificate = certify(problem, solution)
    assert certificate.holds(1e-8)
    assert certificate.violation < 1e-6
    assert len(solution.trace) == solution.n_iter
    assert (np.diff(solution.trace.primal) <= 1e-12 * solution.trace.primal[0]).all()


def test_a_start_at_the_answer_takes_no_step():
    X, y = cloud()
    problem = PrimalProblem.of(X, y, 1.0, "squared_hinge")
    first = DenseNewton(1e-6).solve(problem, None, Progress())
    plane = Plane(first.w[0], float(first.b[0]))
    assert DenseNewton(1e-6).solve(problem, plane, Progress()).n_iter == 0


def test_limits_and_callbacks_end_it():
    X, y = cloud()
    problem = PrimalProblem.of(X, y, 1.0, "squared_hinge")
    limited = DenseNewton(1e-12, Limits(1)).solve(problem, None, Progress())
    assert (limited.status, limited.n_iter) == (Status.ITERATION_LIMIT, 1)
    stopped = DenseNewton(1e-12).solve(problem, None, Progress([lambda step: True]))
    assert (stopped.status, stopped.n_iter) == (Status.STOPPED, 1)


def test_other_problems_do_not_suit():
    X, y = cloud()
    assert not DenseNewton().suits(PrimalProblem.of(X, y, 1.0, "hinge"))
    assert not DenseNewton().suits(PrimalProblem.of(np.ones((80, 300)), y, 1.0, "squared_hinge"))


def test_rounding_that_leaves_no_descent_is_told():
    X, y = cloud()
    problem = PrimalProblem.of(1e60 * X, y, 1e60, "squared_hinge")
    assert DenseNewton(1e-300).solve(problem, None, Progress()) is None
