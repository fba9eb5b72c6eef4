"""SVC with a linear kernel is solved as a linear machine, whatever the scale of its features."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.solution import Status
from tests.helpers.fits import TOL, assert_proved, noisy, quiet_fit


def separable(n=6000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += y
    return X, y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
def test_linear_kernel_is_solved_whatever_its_scale(loss, scale, fit_intercept, C):
    X, y = noisy(300, 2)
    model = mm.SVC(C=C, kernel="linear", loss=loss, fit_intercept=fit_intercept)
    model, warned = quiet_fit(model, scale * X, y)
    # Rounding of α alone changes y g(x) by about ε Σ α ‖x‖².
    if 2e-16 * 300 * C * scale**2 < 0.1 * TOL:
        assert_proved(model)
    else:
        assert warned or model.certificate_.holds(TOL)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5])
def test_separable_classes_have_their_gap_at_any_scale(scale):
    X, y = separable()
    model = mm.SVC(kernel="linear").fit(scale * X, y)
    assert_proved(model)
    assert model.certificate_.primal * scale**2 == pytest.approx(0.498419, rel=1e-3)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_kernel_agrees_with_the_linear_machine(make, dtype):
    X, y = noisy(4000, 6)
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(dtype)
    model = mm.SVC(kernel="linear").fit(make(X), y)
    assert_proved(model)
    plane = mm.LinearSVC(loss="hinge", tol=1e-8).fit(X.astype(np.float64), y)
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    assert np.allclose(coef, plane.coef_, atol=1e-4)
    assert np.allclose(model.intercept_, plane.intercept_, atol=1e-4)


def test_linear_kernel_with_weights_and_many_classes():
    X, _ = noisy(1500, 4)
    rng = np.random.default_rng(1)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=1500), [-1.0, 0.0, 1.0])
    weights = rng.uniform(0.0, 3.0, size=1500)
    weights[::7] = 0.0
    for multi_class in ("ovo", "ovr"):
        model = mm.SVC(kernel="linear", class_weight={0: 50.0}, multi_class=multi_class)
        model.fit(X, y, sample_weight=weights)
        assert all(status is Status.CONVERGED for status in model.statuses_)
        assert all(c.holds(TOL) and c.relative_gap <= 2 * TOL for c in model.certificates_)


def test_linear_kernel_keeps_callbacks_limits_and_warm_starts():
    X, y = noisy(4000, 3)
    steps = []
    model = mm.SVC(kernel="linear", callback=steps.append).fit(X, y)
    assert model.n_iter_[0] == len(steps) == len(model.trace_) > 1
    assert np.all(np.diff(model.trace_.primal) <= 0.0)  # the best so far is shown
    stopped, warned = quiet_fit(mm.SVC(kernel="linear", callback=lambda step: True), X, y)
    assert stopped.status_ is Status.STOPPED
    assert not warned
    limited, warned = quiet_fit(mm.SVC(kernel="linear", max_iter=2), X, y)
    assert limited.status_ is Status.ITERATION_LIMIT
    assert warned
    again = mm.SVC(kernel="linear", warm_start=True).fit(X, y)
    first = again.n_iter_[0]
    assert again.fit(X, y).n_iter_[0] <= first
    assert_proved(again)


def exact_violation(model, X, y):
    """Return the worst violation of the KKT conditions of a hinge machine, in rationals."""
    signs = np.where(y == model.classes_[1], 1, -1)
    beta = dict(zip(model.support_, map(Fraction, model.dual_coef_[0]), strict=True))
    rows = [[Fraction(value) for value in row] for row in X]
    w = [sum(c * rows[i][j] for i, c in beta.items()) for j in range(X.shape[1])]
    b, C, worst = Fraction(model.intercept_[0]), Fraction(model.C), Fraction(0)
    for i, row in enumerate(rows):
        margin = signs[i] * (sum(p * q for p, q in zip(w, row, strict=True)) + b)
        alpha = abs(beta.get(i, Fraction(0)))
        worst = max(worst, 1 - margin if alpha < C else 0, margin - 1 if alpha > 0 else 0)
    return float(worst)


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("solver", ["auto", "smo", "decomposition", "active-set", "qp"])
def test_a_shift_of_all_rows_changes_nothing_but_b(offset, solver):
    if solver == "qp":
        pytest.importorskip("piqp")
    X, y = noisy(40, 3)
    plain = mm.SVC(kernel="linear").fit(X, y)
    model, _ = quiet_fit(mm.SVC(kernel="linear", solver=solver), X + offset, y)
    assert exact_violation(model, X + offset, y) <= TOL
    assert np.allclose(model.coef_, plain.coef_, atol=2e-3)
