"""Hinges of the planes of one task in all folds: sums over all rows, and steps on a few of them."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.engines.cpu.features import Features
from maxmargin.engines.planes import GOING, MET
from maxmargin.problems import PrimalProblem
from maxmargin.problems.best_bias import best_biases

COST = 2.0


def posed(kind, n=700, d=3):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((n, d)), rng.integers(0, 3, (2, n)).astype(float)
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(n))
    return X, y, weights, Features(kind(X)).hinges(y, weights, has_bias=True)


def slack(X, y, planes):
    return 1.0 - y * (planes[:, :-1] @ X.T + planes[:, -1:])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix])
def test_sums_of_rows_held_are_those_of_their_lines(kind):
    X, y, weights, hinges = posed(kind)
    planes = np.array([[1.0, 0.0, 0.2, 0.1], [1.2, 0.1, 0.0, 0.0]])
    losses = np.sum(weights * np.maximum(slack(X, y, planes), 0.0), axis=1)
    np.testing.assert_allclose(hinges.place(planes), losses)
    hinges.begin(np.ones(2))
    ahead = 1.1 * planes
    hinges.place(ahead)
    further = planes + 2.0 * (ahead - planes)  # where scores go on to
    near = hinges.near(COST, 1.0, 0.2)
    z = slack(X, y, further)
    distance = np.abs(z).min(axis=0)
    rows = np.flatnonzero(distance <= near.reach)
    np.testing.assert_array_equal(near.rows, rows)
    assert near.n_rows == pytest.approx(0.2 * y.size, rel=0.05)
    alpha = COST * weights * (z > 0.0)
    alpha[:, rows] = 0.0
    table = np.column_stack([X, np.ones(y.size)])
    np.testing.assert_allclose(near.held, (alpha * y) @ table)
    np.testing.assert_allclose(near.constants, alpha.sum(axis=1))
    np.testing.assert_array_equal(near.table, table[rows])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix])
def test_rows_held_that_meet_the_kink_are_near_it_afterwards(kind):
    X, y, weights, hinges = posed(kind)
    planes = np.array([[1.0, 0.0, 0.2, 0.1], [1.2, 0.1, 0.0, 0.0]])
    hinges.place(planes)
    first = hinges.near(COST, 0.0, 0.1)
    hinges.place(0.5 * planes)
    met = (slack(X, y, planes) > 0.0) != (slack(X, y, 0.5 * planes) > 0.0)
    met = np.flatnonzero(np.any(met & (weights > 0.0), axis=0))
    met = np.setdiff1d(met, first.rows)
    assert met.size
    assert np.isin(met, hinges.near(COST, 0.0, 0.01).rows).all()
    hinges.begin(np.ones(2))  # at the next cost, too
    assert np.isin(met, hinges.near(COST, 0.0, 0.01).rows).all()
    hinges.begin(np.ones(2))
    assert not np.isin(met, hinges.near(COST, 0.0, 0.01).rows).all()


def test_steps_on_all_rows_end_at_the_minimum_they_claim():
    X, y, weights, hinges = posed(np.array)
    near, planes = hinges.near(COST, 0.0, 1.0), np.zeros((2, 4))
    ends, penalty = np.full(2, GOING), np.array([1.0, 1.0, 1.0, 0.0])
    while (ends == GOING).any():
        assert near.minimise(planes, np.full(2, 0.5), penalty, 1e-7, ends, 50) > 0
    assert (ends == MET).all()
    value, gap = near.measured()
    near.publish()
    alpha = COST * weights * hinges.shares
    primal = 0.5 * np.sum(planes[:, :-1] ** 2, axis=1) + COST * hinges.place(planes)
    dual = alpha.sum(axis=1) - 0.5 * np.sum(((alpha * y) @ X) ** 2, axis=1)
    np.testing.assert_allclose(value, primal)
    assert (gap <= 1e-7 * value).all()
    assert (np.abs((alpha * y).sum(axis=1)) <= gap).all()
    np.testing.assert_allclose(dual, primal, rtol=2e-7)


def test_a_sample_stands_for_all_rows():
    _, _, weights, hinges = posed(np.array)
    some = hinges.sample(COST, 350)
    assert some.n_rows == 350
    np.testing.assert_allclose(some.upper, 2.0 * COST * weights[:, some.rows])


@pytest.mark.parametrize("far", [0.0, 0.3, 5.0])
def test_the_bias_is_in_the_middle_of_the_best(far):
    X, y, weights, hinges = posed(np.array, n=60)
    planes = np.array([[1.0, 0.0, 0.2, far], [1.2, 0.1, 0.0, -far]])
    hinges.place(planes)
    shifts = hinges.centre()
    planes[:, -1] += shifts
    z = slack(X, y, planes)
    np.testing.assert_allclose(1.0 - y * hinges.scores, z, atol=1e-12)
    for k, shift in enumerate(shifts):
        problem = PrimalProblem.of(X, y, weights[k], "hinge", "free")
        scores = y * (1.0 - z[k]) - shift
        assert shift == pytest.approx(np.mean(best_biases(problem, scores)), abs=1e-12)
