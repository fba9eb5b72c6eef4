"""The state of a linear machine on the CPU: some rows that count several times."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.engines.cpu.features import Features
from tests.helpers.primal_solvers import LOSSES, D, N, cloud, loss_value, posed, weights


def test_some_rows_that_count_several_times():
    X, y = cloud()
    for loss in LOSSES:
        problem = posed(X, y, weights("unequal"), loss)
        chosen = np.arange(0, N, 3)
        some = Features(X).primal_state(problem).sample(chosen, 3.0)
        w = np.linspace(-1, 1, D)
        expected = 3.0 * loss_value(
            posed(X[chosen], y[chosen], weights("unequal")[chosen], loss),
            1.0 - y[chosen] * (X[chosen] @ w),
        )
        some.place(w, 0.0)
        assert some.loss() == pytest.approx(expected)
        equal = Features(X).primal_state(posed(X, y, 2.0, loss)).sample(chosen, 1.0)
        assert equal.problem.upper.size == equal.problem.ridge.size == 1
        one_class = np.flatnonzero(y > 0)
        assert Features(X).primal_state(problem).sample(one_class, 1.0) is None
