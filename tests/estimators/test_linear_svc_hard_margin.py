"""LinearSVC with C=inf: the maximum margin, or the proof that no plane separates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.linear_svc import (
    BIASES,
    LOSSES,
    SOLVERS,
    TOL,
    apart,
    assert_certified,
    cloud,
    fitted_quietly,
    made,
)
from tests.helpers.storage import DATA
from tests.helpers.svc import signs


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("kind", ["float64", "csr", "blocks"])
def test_six_points(solver, kind):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    if kind == "blocks" and solver == "coordinate-descent":
        pytest.skip("visits rows in any order")
    given = mm.RowBlocks([X[:2], X[2:]]) if kind == "blocks" else DATA[kind](X)
    model = made(C=np.inf, solver=solver, tol=1e-10).fit(given, y)
    np.testing.assert_allclose(model.coef_, [[-1 / 3, 1 / 5]], atol=1e-6)
    assert model.intercept_[0] == pytest.approx(2 / 15, abs=1e-5)
    np.testing.assert_array_equal(model.support_, [0, 2, 4])
    np.testing.assert_allclose(model.dual_coef_, [[8 / 225, 1 / 25, -17 / 225]], atol=1e-6)
    assert model.certificate_.holds(1e-10)
    assert model.certificate_.dual == pytest.approx(17 / 225, rel=1e-9)
    assert model.hyperplane_.margin_width() == pytest.approx(5.144957554, rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_six_points_do_not_take_hundreds_of_steps(solver):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    assert made(C=np.inf, solver=solver, tol=1e-10).fit(X, y).n_iter_ <= 100


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", ["free", "penalised"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_and_is_separated(solver, bias, loss):
    X, y = mm.datasets.load_and(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = made(C=np.inf, solver=solver, loss=loss, tol=1e-8, **BIASES[bias]).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.holds(1e-8)
    margins = signs(y) * model.decision_function(X)
    assert margins.min() == pytest.approx(1.0, abs=1e-6)
    if bias == "free":
        np.testing.assert_allclose(model.coef_, [[2.0, 2.0]], atol=1e-6)
        assert model.intercept_[0] == pytest.approx(-3.0, abs=1e-6)


def inseparable():
    """Yield hard margins that do not exist."""
    X, y = mm.datasets.load_xor(return_X_y=True)
    yield "xor", X, y
    X, y = cloud(60, 2)
    yield "noise", X, y
    X, y = apart()
    yield "both labels", np.vstack([X, X[:1]]), np.append(y, 1 - y[0])


@pytest.mark.parametrize("kind", ["float64", "csr", "blocks"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", list(inseparable()), ids=lambda case: case[0])
def test_no_plane_is_an_error_with_its_proof(case, solver, bias, kind):
    _, X, y = case
    if kind == "blocks" and solver == "coordinate-descent":
        pytest.skip("visits rows in any order")
    given = mm.RowBlocks([X[:2], X[2:]]) if kind == "blocks" else DATA[kind](X)
    model = made(C=np.inf, solver=solver, **BIASES[bias])
    with pytest.raises(mm.NotSeparableError, match="finite C") as caught:
        model.fit(given, y)
    u = caught.value.proof.multipliers
    assert u.min() >= 0.0
    assert u.sum() > 0.0
    assert signs(y) @ u == pytest.approx(0.0, abs=1e-9 * u.sum())
    np.testing.assert_allclose((u * signs(y)) @ X, 0.0, atol=1e-9 * u.sum())
    assert not hasattr(model, "classes_")
    soft = made(C=10.0, solver=solver, **BIASES[bias]).fit(given, y)
    assert soft.certificate_.holds(TOL)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_plane_through_the_origin(solver):
    """Though one with a bias would do."""
    X, y = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(mm.NotSeparableError, match="finite C"):
        made(C=np.inf, fit_intercept=False, solver=solver).fit(X, y)
    assert made(C=np.inf, solver=solver).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_point_with_both_labels(solver, loss):
    X, y = apart()
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    model = made(solver=solver, loss=loss, tol=1e-8).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("n_jobs", [1, None])
def test_hard_margin_of_many_classes(multi_class, n_jobs):
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    X = 9.0 * np.eye(3)[y] + rng.uniform(-1, 1, (60, 3))
    model = made(C=np.inf, multi_class=multi_class, n_jobs=n_jobs).fit(X, y)
    assert model.score(X, y) == 1.0
    assert all(certificate.holds(TOL) for certificate in model.certificates_)
    X[0] = X[y == 1].mean(axis=0)  # in the midst of another class
    with pytest.raises(mm.NotSeparableError):
        made(C=np.inf, multi_class=multi_class, n_jobs=n_jobs).fit(X, y)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_hard_margins_of_any_scale(solver, scale):
    X, y = apart()
    exact = mm.SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    model = fitted_quietly(made(C=np.inf, solver=solver, tol=1e-6), scale * X, y)
    assert model.certificate_.holds(1e-6), str(model.certificate_)
    np.testing.assert_allclose(scale * model.coef_, exact.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_samples_are_bisected(solver):
    X = np.array([[1.0, 2.0], [4.0, -2.0]])
    for options in ({"C": np.inf}, {"C": 100.0, "loss": "hinge"}, {"C": 3.0}):
        model = made(solver=solver, tol=1e-10, **options).fit(X, [0, 1])
        assert model.hyperplane_.same_plane(mm.Hyperplane([3.0, -4.0], -7.5), tol=1e-5)
        g = model.decision_function(X)
        assert g[0] == pytest.approx(-g[1], abs=1e-5)
        if "loss" in options or np.isinf(options["C"]):
            np.testing.assert_allclose(g, [-1.0, 1.0], atol=1e-5)
