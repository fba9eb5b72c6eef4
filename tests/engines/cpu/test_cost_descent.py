"""The descent of the folds of a search: what it sees of its variables, and whose turn it is."""

import numpy as np
import pytest

from maxmargin.engines.cpu import cost_descent
from maxmargin.engines.cpu.smo import pair_steps
from maxmargin.runtime.row_access import compiled
from maxmargin.runtime.simd import aligned


@compiled
def surveyed(f, beta, low, up, kept):
    """Call the compiled part."""
    return cost_descent.survey(f, beta, low, up, kept)


@compiled
def whose_turn(kept):
    """Call the compiled part."""
    return cost_descent.turn(kept)


@compiled
def chosen_of(state, n, size, kept, by_pairs):
    """Call the compiled part."""
    return cost_descent.chosen(state, n, size, kept, by_pairs)


@compiled
def steps_of(K, curvature, beta, low, up, f, edges, stop):
    """Move pairs with all of K."""
    scratch = np.empty((2, f.size))
    return pair_steps(K, curvature, beta, low, up, f, scratch[0], scratch[1], edges, stop, 10**4)


@compiled
def steps_of_drawn(whole, members, memory, curvature, beta, low, up, f, edges, stop):
    """Move pairs with rows of K that are written when they are asked for."""
    scratch, is_there = np.empty((2, f.size)), np.zeros(members.size, dtype=np.bool_)
    rows = memory, is_there, whole, members
    made = pair_steps(rows, curvature, beta, low, up, f, scratch[0], scratch[1], edges, stop, 10**4)
    return made, is_there


def variables(n, size, seed):
    """Return f, β and its bounds of n variables, some at a bound, and others up to a size."""
    rng = np.random.default_rng(seed)
    f, beta, low, up = (np.zeros(size) for _ in range(4))
    f[:n], beta[:n] = rng.normal(size=n), rng.uniform(-1.0, 1.0, n)
    low[:n], up[:n] = beta[:n] - rng.integers(0, 2, n), beta[:n] + rng.integers(0, 2, n)
    return f, beta, low, up


@pytest.mark.parametrize("n", [3, 16, 61])
@pytest.mark.parametrize("seed", range(4))
def test_survey_is_that_of_plain_python(n, seed):
    f, beta, low, up = variables(n, 64, seed)
    kept = np.zeros(cost_descent.N_KEPT)
    top, least, mean = surveyed(f, beta, low, up, kept)
    free = (low < beta) & (beta < up)
    assert top == f[beta < up].max(initial=-np.inf)
    assert least == f[beta > low].min(initial=np.inf)
    assert kept[cost_descent.N_FREE] == free.sum()
    if free.any():
        assert mean == pytest.approx(f[free].mean())
        assert kept[cost_descent.SPREAD] == np.ptp(f[free])
    else:
        assert np.isnan(mean)


def test_folds_share_rounds_and_then_go_on_one_by_one():
    kept = np.zeros((4, cost_descent.N_KEPT))
    kept[:, cost_descent.SHARED] = 1.0
    kept[0, cost_descent.ENDED] = 1.0
    assert whose_turn(kept).tolist() == [False, True, True, True]
    kept[2, cost_descent.SHARED] = -1.0
    assert whose_turn(kept).tolist() == [False, True, False, True]
    kept[:, cost_descent.SHARED] = -1.0
    assert whose_turn(kept).tolist() == [False, True, False, False]
    kept[:, cost_descent.ENDED] = 1.0
    assert not whose_turn(kept).any()


def test_the_worst_pair_of_every_fold_is_in_the_working_set():
    n, n_folds = 200, 3
    state = np.zeros((cost_descent.N_STATE, n_folds, 208))
    kept, by_pairs = np.zeros((n_folds, cost_descent.N_KEPT)), np.array([True, False, True])
    for v in range(n_folds):
        f, beta, low, up = variables(n, 208, v)
        state[cost_descent.F, v], state[cost_descent.BETA, v] = f, beta
        state[cost_descent.LOW, v], state[cost_descent.UP, v] = low, up
        extremes = surveyed(f, beta, low, up, kept[v])
        kept[v, cost_descent.TOP], kept[v, cost_descent.LEAST] = extremes[:2]
    members = chosen_of(state, n, 32, kept, by_pairs)
    assert members.size <= 32
    assert np.unique(members).size == members.size
    for v in (0, 2):
        f, beta = state[cost_descent.F, v, :n], state[cost_descent.BETA, v, :n]
        low, up = state[cost_descent.LOW, v, :n], state[cost_descent.UP, v, :n]
        assert np.argmax(np.where(beta < up, f, -np.inf)) in members
        assert np.argmin(np.where(beta > low, f, np.inf)) in members


def test_rows_that_are_drawn_are_those_of_K():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), np.repeat([1.0, -1.0], 50)
    whole = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    members = np.sort(rng.permutation(100)[:48])
    y = y[members]
    K, edges = whole[np.ix_(members, members)].copy(), np.array([0, 48])
    answers = []
    for call in (steps_of, steps_of_drawn):
        beta, f = np.zeros(48), y.copy()
        low, up = np.minimum(y, 0.0), np.maximum(y, 0.0)
        memory = aligned((48, 48), np.float64)
        first = (K,) if call is steps_of else (whole, members, memory)
        found = call(*first, np.ones(48), beta, low, up, f, edges, 1e-6)
        answers.append((found if call is steps_of else found[0], beta))
    (made, expected), (steps, beta) = answers
    assert steps == made > 10
    np.testing.assert_array_equal(beta, expected)
    is_there = found[1]
    np.testing.assert_array_equal(memory[is_there], K[is_there])
    assert set(np.flatnonzero(beta)) <= set(np.flatnonzero(is_there))
