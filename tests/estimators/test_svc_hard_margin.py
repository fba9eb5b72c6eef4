"""SVC with C=inf: the maximum margin, or the proof that no plane separates."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Polynomial
from tests.helpers.svc import SECONDS, TOL, assert_certified, cloud, signs

HARD_SOLVERS = ["auto", "active-set", "decomposition", "smo"]


@pytest.mark.parametrize("solver", HARD_SOLVERS)
def test_six_points(solver):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(C=np.inf, kernel="linear", solver=solver, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[-1 / 3, 1 / 5]], atol=1e-10)
    assert model.intercept_[0] == pytest.approx(2 / 15, abs=1e-10)
    np.testing.assert_array_equal(np.sort(model.support_), [0, 2, 4])
    np.testing.assert_array_equal(model.support_, [4, 0, 2])  # class by class
    np.testing.assert_allclose(model.dual_coef_, [[-17 / 225, 8 / 225, 1 / 25]], atol=1e-10)
    assert model.certificate_.holds(1e-10)
    assert model.hyperplane_.margin_width() == pytest.approx(5.144957554, rel=1e-9)


@pytest.mark.parametrize("solver", HARD_SOLVERS)
@pytest.mark.parametrize("sign", [1, -1])
def test_xor_in_feature_space(solver, sign):
    X, y = mm.datasets.load_xor(return_X_y=True)
    kernel = Polynomial(2, coef0=1.0)
    model = mm.SVC(C=np.inf, kernel=kernel, solver=solver, tol=1e-10).fit(X, sign * y)
    np.testing.assert_allclose(np.abs(model.dual_coef_), 1 / 8, atol=1e-10)
    assert model.certificate_.dual == pytest.approx(1 / 4, abs=1e-10)
    some = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    np.testing.assert_array_equal(y, X[:, 0] * X[:, 1])
    np.testing.assert_allclose(
        model.decision_function(some), sign * some[:, 0] * some[:, 1], atol=1e-9
    )
    assert model.score(X, sign * y) == 1.0


def inseparable(n):
    """Yield hard margins of n samples that do not exist."""
    X, y = cloud(n, 2)
    yield "linear", {"kernel": "linear"}, X, y
    twins = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    yield "twins", {"gamma": 2.0}, *twins


@pytest.mark.parametrize("solver", HARD_SOLVERS)
@pytest.mark.parametrize("case", list(inseparable(60)), ids=lambda case: case[0])
def test_no_plane_is_an_error_with_its_proof(solver, case):
    _, options, X, y = case
    model = mm.SVC(C=np.inf, solver=solver, time_limit=SECONDS, **options)
    with pytest.raises(mm.NotSeparableError, match="finite C") as caught:
        model.fit(X, y)
    u = caught.value.proof.multipliers
    assert u.min() >= 0.0
    assert u.sum() == pytest.approx(1.0)
    assert signs(y) @ u == pytest.approx(0.0, abs=1e-12)
    kernel = Linear() if options.get("kernel") else RBF(gamma=2.0)
    K = kernel(X)
    beta = signs(y) * u
    assert np.sqrt(abs(beta @ K @ beta) / K.max()) < 1e-7  # √ of rounding
    assert caught.value.proof.distance < 1e-7
    assert not hasattr(model, "classes_")
    soft = mm.SVC(C=10.0, **options).fit(X, y)
    assert soft.certificate_.holds(TOL)


def test_xor_has_no_plane():
    X, y = mm.datasets.load_xor(return_X_y=True)
    with pytest.raises(mm.NotSeparableError) as caught:
        mm.SVC(C=np.inf, kernel="linear").fit(X, y)
    u = caught.value.proof.multipliers
    np.testing.assert_allclose((u * y) @ X, 0.0, atol=1e-14)


@pytest.mark.parametrize("case", list(inseparable(2500)), ids=lambda case: case[0])
def test_many_samples_without_a_plane(case):
    _, options, X, y = case
    with pytest.raises(mm.NotSeparableError):
        mm.SVC(C=np.inf, time_limit=60.0, **options).fit(X, y)


def test_hard_margin_of_many_classes():
    X, y = cloud(150, n_classes=3, seed=2)
    model = mm.SVC(C=np.inf, gamma=5.0).fit(X, y)
    assert_certified(model, X, y)
    assert model.score(X, y) == 1.0


def test_two_samples_are_bisected():
    X = np.array([[1.0, 2.0], [4.0, -2.0]])
    for C in (np.inf, 100.0):
        model = mm.SVC(C=C, kernel="linear").fit(X, [0, 1])
        assert model.hyperplane_.same_plane(mm.Hyperplane([3.0, -4.0], -7.5), tol=1e-9)
        np.testing.assert_allclose(model.decision_function(X), [-1.0, 1.0], atol=1e-9)
    nu = mm.NuSVC(nu=1.0, kernel="linear").fit(X, [0, 1])
    assert nu.hyperplane_.same_plane(mm.Hyperplane([3.0, -4.0], -7.5), tol=1e-9)
