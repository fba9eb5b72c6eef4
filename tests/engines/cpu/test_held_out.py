"""Scores of held-out rows, against products of single tasks."""

import numpy as np
import pytest

from maxmargin.engines.base import TaskArrays
from maxmargin.engines.cpu.held_out import held_out_scores
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.problems.held_out_rows import HeldOutRows


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n", [40, 700])
def test_they_are_products_with_the_coefficients(n, n_classes):
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_normal((n, 3)), RBF(0.3)
    codes = np.sort(rng.integers(0, n_classes, n))
    problems, tests = [], []
    for k in range(2):
        tests.append(np.flatnonzero(np.arange(n) % 2 == k))
        train = np.flatnonzero(np.arange(n) % 2 != k)
        for i in range(n_classes):
            for j in range(i + 1, n_classes):
                rows = train[np.isin(codes[train], (i, j))]
                y, ones = np.where(codes[rows] == i, 1.0, -1.0), np.ones(rows.size)
                problems.append(DualProblem.classification(kernel, X, y, ones, ones, index=rows))
    n_tasks = len(problems) // 2
    tasks = TaskArrays.of(problems)
    alpha, b = rng.random((3, tasks.index.size)), rng.standard_normal((3, len(problems)))
    held_out = HeldOutRows.of(problems, tests, [n_tasks, n_tasks])
    found = held_out_scores(kernel(X, X), tasks, alpha, b, held_out)
    for t, problem in enumerate(problems):
        k, own = t // n_tasks, alpha[:, tasks.starts[t] : tasks.starts[t + 1]] * problem.signs
        expected = own @ kernel(X[problem.index], X[tests[k]]) + b[:, [t]]
        np.testing.assert_allclose(found[k][:, :, t % n_tasks], expected, rtol=0, atol=1e-11)
