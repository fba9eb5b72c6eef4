"""Warm starts of LinearSVC."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.linear_svc import (
    LOSSES,
    SECONDS,
    SOLVERS,
    TOL,
    N,
    apart,
    assert_certified,
    cloud,
    made,
)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["newton", "coordinate-descent"])
def test_a_path_of_costs(solver, loss, n_classes):
    X, y = cloud(400, n_classes=n_classes)
    options = {"solver": solver, "loss": loss, "random_state": 0, "tol": 1e-5}
    warm = made(warm_start=True, **options)
    warm_steps = cold_steps = 0
    for C in (1.0, 1.3, 1.6, 2.0, 2.5, 2.0, 1.0):
        cold = made(C=C, **options).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert_certified(warm, X, y)
        for one, other in zip(warm.certificates_, cold.certificates_, strict=True):
            assert one.primal == pytest.approx(other.primal, rel=1e-4)
        warm_steps += warm.n_iter_
        cold_steps += cold.n_iter_
    assert warm_steps < cold_steps


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["newton", "coordinate-descent"])
def test_the_same_fit_again_takes_few_steps(solver, loss):
    X, y = cloud()
    model = made(warm_start=True, solver=solver, loss=loss).fit(X, y)
    first, steps = model.certificate_.primal, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= max(3, steps // 3)
    assert_certified(model, X, y)
    assert model.certificate_.primal <= first * (1.0 + TOL)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warm_start_on_other_rows(solver, multi_class):
    X, y = cloud(n_classes=3)
    model = made(warm_start=True, solver=solver, multi_class=multi_class).fit(X, y)
    for rows in (np.arange(150), np.arange(N)[::-1]):
        model.fit(X[rows], y[rows])
        assert_certified(model, X[rows], y[rows])
    labels = np.where(np.arange(N) < 10, 0, y)  # as many rows, of other classes
    model.fit(X, labels)
    assert_certified(model, X, labels)
    weights = (np.arange(N) >= 10).astype(float)
    model.fit(X, y, weights)
    assert_certified(model, X, y, weights)


def test_a_warm_start_across_everything_else():
    X, y = cloud()
    model = made(warm_start=True).fit(X, y)
    for change in (
        {"loss": "hinge"}, {"penalize_intercept": True}, {"fit_intercept": False}, {"C": 1e3},
        {"C": 1e-3}, {"solver": "coordinate-descent"}, {"solver": "interior-point"},
    ):  # fmt: skip
        model.set_params(**change).fit(X, y)
        assert_certified(model, X, y)


def test_a_warm_start_from_a_cold_fit():
    X, y = cloud()
    model = made().fit(X, y)
    model.set_params(warm_start=True, C=2.0).fit(X, y)
    assert_certified(model, X, y)


def test_a_warm_start_to_and_from_the_hard_margin():
    X, y = apart()
    model = made(C=1.0, warm_start=True).fit(X, y)
    for C in (np.inf, np.inf, 2.0):
        model.set_params(C=C).fit(X, y)
        assert model.certificate_.holds(TOL)


def test_invalid_warm_starts_are_refused():
    X, y = cloud(n_classes=3)
    model = made(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start.*classes"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match=r"warm_start.*features"):
        model.fit(X[:, :2], y)
    with pytest.raises(ValueError, match=r"warm_start.*multi_class"):
        model.set_params(multi_class="ovo").fit(X, y)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


@pytest.mark.parametrize("limit", [{"max_iter": 2}, {"time_limit": 1e-9}])
@pytest.mark.parametrize("solver", ["newton", "coordinate-descent"])
def test_a_warm_start_continues_an_interrupted_fit(solver, limit):
    X, y = cloud()
    model = mm.LinearSVC(C=10.0, loss="hinge", warm_start=True, solver=solver, **limit)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    before = model.certificate_.gap
    model.set_params(max_iter=1000, time_limit=SECONDS).fit(X, y)
    assert_certified(model, X, y)
    assert model.certificate_.gap < before
