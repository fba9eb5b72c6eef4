"""Orders of visits: NumPy's own permutations, several at a time."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.solvers.separating import visiting_orders
from maxmargin.solvers.separating.visiting_orders import VisitingOrders


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 65, 700])
@pytest.mark.parametrize("make", [np.random.MT19937, np.random.PCG64], ids=["twister", "another"])
def test_orders_are_numpys_permutations(n, make):
    ours, theirs = (np.random.RandomState(make(n)) for _ in range(2))
    ours.random_sample(3), theirs.random_sample(3)
    orders = VisitingOrders(n, ours)
    for count in (1, 4, 2):
        for order in orders.several(count):
            assert order.tolist() == theirs.permutation(n).tolist()
    assert next(orders).tolist() == theirs.permutation(n).tolist()


def test_orders_without_a_generator_increase():
    orders = VisitingOrders(4, None)
    assert orders.several(2).tolist() == [[0, 1, 2, 3]] * 2
    assert next(orders).tolist() == [0, 1, 2, 3]


def test_compiled_permutations_equal_their_python():
    written = []
    for permute in (visiting_orders.permute, visiting_orders.permute.py_func):
        key = np.random.RandomState(1).get_state()[1].copy()
        following, orders = np.full(1, 620), np.empty((3, 9), dtype=np.int64)
        permute(key, following, orders)
        written.append((orders.tolist(), following.tolist()))
    assert written[0] == written[1]
