"""Scores of many tasks with a Gaussian kernel: those of each task on its own, within the bounds."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.certificates.scores import kernel_scores, scores_of_tasks
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem


def tasks(rng, X, gamma, n_tasks=3, n=700):
    problems = []
    for _ in range(n_tasks):
        index = rng.permutation(X.shape[0])[:n]
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        problems.append(
            DualProblem.classification(RBF(gamma), X, y, np.ones(n), np.zeros(n), index=index)
        )
    coefficients = [rng.normal(size=n) * (rng.random(n) < 0.6) for _ in problems]
    return problems, coefficients, rng.normal(size=n_tasks).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 50.0])
def test_scores_agree_with_those_of_single_tasks(gamma, form, dtype):
    rng = np.random.RandomState(0)
    X = form((rng.normal(size=(900, 5)) + 3.0).astype(dtype))
    problems, coefficients, b = tasks(rng, X, gamma)
    found = scores_of_tasks(problems, coefficients, b)
    for k, (scores, errors) in enumerate(found):
        alone, blur = kernel_scores(problems[k], coefficients[k], b=b[k])
        assert np.all(np.abs(scores - alone) <= errors + blur)
        assert errors.max() < 1e-10


def test_a_task_without_support_vectors_has_its_bias():
    rng = np.random.RandomState(0)
    problems, coefficients, b = tasks(rng, rng.normal(size=(900, 3)), 1.0)
    coefficients[1][:] = 0.0
    scores, errors = scores_of_tasks(problems, coefficients, b)[1]
    np.testing.assert_array_equal(scores, b[1])
    assert errors.max() < 1e-15


def test_bounds_hold_where_rows_are_far_apart():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(900, 3))
    X[0] = 1e7
    problems, coefficients, b = tasks(rng, X, 1.0)
    for k, (scores, errors) in enumerate(scores_of_tasks(problems, coefficients, b)):
        rows = X[problems[k].index].astype(np.longdouble)
        squares = ((rows[:50, None] - rows[None]) ** 2).sum(axis=2)
        exact = np.exp(-squares) @ coefficients[k].astype(np.longdouble) + b[k]
        assert np.all(np.abs(scores[:50] - exact) <= errors[:50])
