"""Warm starts of SVC and NuSVC."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.engines.cpu import dual_state
from tests.helpers.svc import LOSSES, N, assert_certified, cloud, distance_bound, signs


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_a_path_of_costs(loss, n_classes):
    X, y = cloud(400, n_classes=n_classes)
    warm = LOSSES[loss](warm_start=True)
    warm_steps = cold_steps = 0
    for C in (1.0, 1.3, 1.6, 2.0, 2.5, 2.0, 1.0):
        cold = LOSSES[loss]().set_params(C=C).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert_certified(warm, X, y)
        near = sum(distance_bound(model, X, y, warm.kernel_) for model in (warm, cold))
        if n_classes == 2:
            np.testing.assert_allclose(
                warm.decision_function(X), cold.decision_function(X), atol=near
            )
        if C != 1.0:
            warm_steps += warm.n_iter_.sum()
            cold_steps += cold.n_iter_.sum()
    assert warm_steps < cold_steps


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "smo", "active-set"])
def test_the_same_fit_again_takes_no_steps(loss, solver):
    X, y = cloud(400)
    model = LOSSES[loss](warm_start=True, solver=solver).fit(X, y)
    first, steps = model.decision_function(X), model.n_iter_[0]
    model.fit(X, y)
    assert model.n_iter_[0] <= max(3, 0.05 * steps)
    assert_certified(model, X, y)
    near = 2 * distance_bound(model, X, y, model.kernel_)
    np.testing.assert_allclose(model.decision_function(X), first, atol=near)


def test_a_warm_start_from_a_cold_fit():
    X, y = cloud()
    model = mm.SVC().fit(X, y)
    model.set_params(warm_start=True, C=2.0).fit(X, y)
    assert_certified(model, X, y)


def test_other_samples_are_refused():
    X, y = cloud(n_classes=3)
    model = mm.SVC(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start.*samples"):
        model.fit(X[1:], y[1:])
    with pytest.raises(ValueError, match=r"warm_start.*classes"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match=r"warm_start.*multi_class"):
        model.set_params(multi_class="ovr").fit(X, y)


@pytest.mark.parametrize("change", ["labels", "weights"])
def test_a_start_for_other_tasks_is_refused_or_made_to_fit(change):
    X, y = cloud(n_classes=3)
    model = mm.SVC(warm_start=True).fit(X, y)
    weights = np.ones(N)
    if change == "labels":
        y = np.where(np.arange(N) < 10, 0, y)
    else:
        weights[:10] = 0.0
    message = ""
    try:
        model.fit(X, y, weights)
    except ValueError as error:
        message = str(error)
    if message:
        assert "warm_start" in message
    else:
        rows = weights > 0
        fresh = mm.SVC().fit(X, y, weights)
        assert (model.predict(X[rows]) == fresh.predict(X[rows])).mean() > 0.99


@pytest.mark.parametrize("change", ["gamma", "all rows", "one row"])
def test_a_start_from_another_problem_is_only_a_start(change):
    """What the last scores say of a changed sample is no longer true."""
    X, y = cloud(6000, 4)
    model = mm.SVC(warm_start=True, gamma=0.3).fit(X, y)
    X = X.copy()
    if change == "gamma":
        model.set_params(gamma=0.3001)
    elif change == "all rows":
        X += 1e-3
    else:
        # A sample far on its side, of no consequence so far, goes deep into the other class.
        margins = signs(y) * model.decision_function(X)
        watched = np.linspace(0, len(y) - 1, dual_state.TUNING.n_checked_claims).astype(int)
        margins[np.append(watched, model.support_)] = -np.inf
        moved = np.argmax(margins)
        others = np.flatnonzero(y != y[moved])
        X[moved] = X[others[np.argmax(margins[others])]]
    model.fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("limit", [{"max_iter": 20}, {"time_limit": 1e-9}])
def test_a_warm_start_continues_an_interrupted_fit(limit, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = mm.SVC(warm_start=True, **limit)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    before = model.certificate_.gap
    model.set_params(max_iter=-1, time_limit=None).fit(X, y)
    assert_certified(model, X, y)
    assert model.certificate_.gap < before


def test_repeated_interrupted_fits_converge():
    X, y = cloud()
    model = mm.SVC(C=100.0, warm_start=True, max_iter=100)
    gaps = []
    for _ in range(200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        gaps.append(model.certificate_.gap)
        if model.status_ is mm.Status.CONVERGED:
            break
    assert_certified(model, X, y)
    assert 1 < len(gaps) < 200
    assert gaps[-1] < gaps[0]
