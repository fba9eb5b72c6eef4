"""Rows that folds hold out, and the classes that their tasks have in common."""

import numpy as np

from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.problems.held_out_rows import HeldOutRows


def task(first, second):
    rows = np.array([*first, *second])
    labels = np.repeat([1.0, -1.0], [len(first), len(second)])
    X, ones = np.arange(20.0).reshape(10, 2), np.ones(rows.size)
    return DualProblem.classification(RBF(1.0), X, labels, ones, 0.0 * ones, index=rows)


def test_classes_are_listed_once_in_every_fold():
    problems = [task([0, 1], [2]), task([0, 1], [4, 5]), task([2], [4, 5]), task([3], [6])]
    tests = [np.array([7, 8]), np.array([0])]
    held_out = HeldOutRows.of(problems, tests, [3, 1])
    np.testing.assert_array_equal(held_out.rows, [7, 8, 0])
    np.testing.assert_array_equal(held_out.ends, [0, 2, 3])
    np.testing.assert_array_equal(held_out.tasks, [0, 3, 4])
    # A fold of one task shares nothing.
    np.testing.assert_array_equal(held_out.classes, [[0, 2, 0], [2, 1, 2], [5, 2, 4], [10, 2, 6]])
    np.testing.assert_array_equal(held_out.firsts, [0, 3, 4])
    users = [[0, 0], [1, 3], [0, 2], [2, 7], [1, 5], [2, 8], [3, 10], [4, 12]]
    np.testing.assert_array_equal(held_out.users, users)
    np.testing.assert_array_equal(held_out.ends_of_tasks, [0, 2, 4, 6, 7])
    np.testing.assert_array_equal(held_out.rows_of_tasks(), [7, 8, 7, 8, 7, 8, 0])
