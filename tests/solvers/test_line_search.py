"""The line search along a direction of descent."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.solvers.line_search import line_search


@pytest.mark.parametrize("seed", range(20))
def test_line_search_descends_to_half_the_slope(seed):
    """Along a random convex function whose slope is piecewise linear."""
    rng = np.random.default_rng(seed)
    kinks, rises = rng.exponential(10.0 ** rng.uniform(-3, 3), 12), rng.exponential(1.0, 12)
    curvature = 10.0 ** rng.uniform(-4, 2)
    first = -float(rises.sum()) * rng.uniform(0.1, 1.0)

    def slope(t):
        return first + curvature * t + float(rises[kinks < t].sum())

    def value(t):
        return first * t + 0.5 * curvature * t * t + float(rises @ np.maximum(t - kinks, 0.0))

    t = line_search(slope, first)
    assert t > 0.0
    assert value(t) < 0.0
    # No further on is less than a small part of what could be gained.
    grid = np.concatenate([np.linspace(0.0, 4.0 * t, 2001), kinks])
    assert value(t) <= 0.25 * min(value(s) for s in grid)


def test_line_search_takes_the_whole_step_of_a_parabola():
    assert line_search(lambda t: t - 1.0, -1.0) == 1.0


@pytest.mark.parametrize("slope", [lambda t: -1.0, lambda t: -1e-300, lambda t: 1.0])
def test_line_search_ends_for_any_slope(slope):
    """A slope that never rises, and one that rounding has the sign of."""
    assert 0.0 <= line_search(slope, -1.0) < np.inf


def test_line_search_ends_where_there_is_no_descent():
    calls = []

    def slope(t):
        calls.append(t)
        return 0.0

    assert np.isfinite(line_search(slope, 0.0))
    assert len(calls) <= 60
