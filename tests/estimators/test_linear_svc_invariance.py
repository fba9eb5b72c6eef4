"""What LinearSVC's answers do not depend on, and what a fit leaves unchanged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from maxmargin.runtime import threads, vectors
from tests.helpers.linear_svc import LOSSES, SOLVERS, N, cloud, made, near
from tests.helpers.storage import DATA, thin, unchanged
from tests.helpers.svc import assert_pickles_and_clones, signs


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_bits_on_any_number_of_cores(solver, n_classes, monkeypatch):
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=1 << 9))
    X, y = cloud(800, 6, n_classes)
    models = [
        made(solver=solver, random_state=3, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 1, 2, 2)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)


def test_the_random_state_is_the_order_of_descent():
    X, y = cloud()
    one, same, other = (
        made(solver="coordinate-descent", random_state=seed).fit(X, y) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert not np.array_equal(one.trace_.objective, other.trace_.objective)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=near(one, X))
    state = np.random.RandomState(1)
    again = made(solver="coordinate-descent", random_state=state).fit(X, y)
    np.testing.assert_array_equal(again.coef_, one.coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_n_jobs_1_starts_no_thread(started_threads, n_classes, monkeypatch):
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=1 << 9))
    X, y = cloud(900, n_classes=n_classes)
    made(loss="hinge", n_jobs=1).fit(X, y).predict(X)
    assert not started_threads
    made(loss="hinge", n_jobs=2).fit(X, y)
    assert started_threads  # the case under test occurred


@pytest.mark.parametrize("kind", DATA)
def test_input_is_not_changed(kind):
    X, y = thin(N)
    given, labels, weights = DATA[kind](X), y.copy(), np.ones(N)
    weights[3] = 0.0
    with unchanged(given, labels, weights):
        for solver in SOLVERS:
            made(solver=solver).fit(given, labels, weights).predict(given)


@pytest.mark.parametrize("warm_start", [False, True])
def test_pickles_and_clones(warm_start):
    X, y = cloud(n_classes=3)
    model = made(warm_start=warm_start).fit(X, y)
    again = assert_pickles_and_clones(model, X)
    if warm_start:
        assert again.fit(X, y).n_iter_ <= 3


def test_a_fit_leaves_no_work_behind():
    X, y = cloud(2000)
    model = made()
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    # Planes, α of the support, a trace: not X.
    assert len(pickle.dumps(model)) < 12 * model.support_.size + 20_000


few = settings(max_examples=5, deadline=None)

seeds = st.integers(0, 2**20)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
@few
@given(seed=seeds)
def test_symmetries(solver, loss, seed):
    X, y = cloud(60, 3, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(60)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    model = made(solver=solver, loss=loss, tol=1e-10).fit(X, y)
    expected = model.decision_function(X)
    close = {"rtol": 0, "atol": 1e-3 * np.abs(expected).max()}
    shuffled = clone(model).fit(X[order], y[order])
    flipped = clone(model).fit(X, 1 - y)
    turned = clone(model).fit(X @ turn, y)
    moved = clone(model).fit(X + 10.0, y)
    # w of a problem in other units is other units' w: C ‖x‖² is what counts.
    scaled = clone(model).set_params(C=1.0 / 4.0).fit(2.0 * X, y)
    np.testing.assert_allclose(shuffled.decision_function(X), expected, **close)
    np.testing.assert_allclose(-flipped.decision_function(X), expected, **close)
    np.testing.assert_allclose(turned.decision_function(X @ turn), expected, **close)
    np.testing.assert_allclose(moved.decision_function(X + 10.0), expected, **close)
    np.testing.assert_allclose(scaled.decision_function(2.0 * X), expected, **close)
    assert scaled.certificate_.primal == pytest.approx(model.certificate_.primal / 4.0, rel=1e-6)


@few
@given(seed=seeds)
def test_more_costs_leave_less_slack(seed):
    X, y = cloud(60, 3, seed=seed)
    for loss in LOSSES:
        slacks = []
        for C in (0.01, 0.1, 1.0, 10.0):
            model = made(C=C, loss=loss, tol=1e-8).fit(X, y)
            slack = np.maximum(1.0 - signs(y) * model.decision_function(X), 0.0)
            slacks.append(np.sum(slack if loss == "hinge" else slack**2))
        assert (np.diff(slacks) <= 1e-4 * slacks[0]).all()
