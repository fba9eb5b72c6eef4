"""Rows that tasks have in common, each once per group."""

import numpy as np
import pytest

from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.problems.shared_rows import SharedRows


def task(rows):
    ones = np.ones(len(rows))
    labels = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    X = np.arange(20.0).reshape(10, 2)
    return DualProblem.classification(
        RBF(1.0), X, labels, ones, 0.0 * ones, index=np.array(rows, dtype=np.intp)
    )


def test_every_variable_is_at_its_row():
    rows = [[4, 2, 7], [1, 3], [2, 7, 9], [3, 0]]
    shared = SharedRows.of([task(each) for each in rows], ["a", "b", "a", "b"])
    np.testing.assert_array_equal(shared.rows, [2, 4, 7, 9, 0, 1, 3])
    np.testing.assert_array_equal(shared.starts, [0, 4, 7])
    np.testing.assert_array_equal(shared.rows[shared.places], np.concatenate(rows))
    np.testing.assert_array_equal(shared.numbers, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(shared.members, [0, 2, 1, 3])
    np.testing.assert_array_equal(shared.firsts, [0, 2, 4])


@pytest.mark.parametrize(("second", "expected"), [([1, 2], False), ([1, 1], True)])
def test_repeats_are_found_within_a_task(second, expected):
    shared = SharedRows.of([task([0, 1]), task(second)], ["a", "a"])
    assert shared.has_repeats == expected
