"""Kernels of SVC and NuSVC: names, objects, callables, Gram matrices, indefinite ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Polynomial, Precomputed
from tests.helpers.bad_input import BAD_KERNELS
from tests.helpers.svc import LOSSES, MODELS, SECONDS, TOL, N, cloud, plain_kernel


@pytest.mark.filterwarnings("ignore:The precomputed kernel")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_kernel_in_four_spellings(n_classes):
    X, y = cloud(n_classes=n_classes)
    new = cloud(seed=9)[0]
    kernel = Polynomial(2, gamma=1.0, coef0=1.0)
    options = {"tol": 1e-7}
    named = mm.SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, **options).fit(X, y)
    expected = named.decision_function(new)
    for model, train, rows in [
        (mm.SVC(kernel=kernel, **options), X, new),
        (mm.SVC(kernel=plain_kernel, **options), X, new),
        (mm.SVC(kernel="precomputed", **options), kernel(X), kernel(new, X)),
        (mm.SVC(kernel=Precomputed(), **options), kernel(X).astype(np.float32), kernel(new, X)),
    ]:
        model.fit(train, y)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-4 * scale)
    assert named.kernel_ == kernel


def test_precomputed_models_hold_no_rows():
    X, y = cloud()
    K = RBF(gamma=0.3)(X)
    model = mm.SVC(kernel="precomputed").fit(K, y)
    assert model.support_vectors_.shape[0] == 0
    assert model.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :-1])


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_gamma_is_scikit_learns(kernel, gamma):
    X, y = cloud()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = mm.SVC(kernel=kernel, gamma=gamma, coef0=0.5, max_iter=1).fit(X, y)
        theirs = svm.SVC(kernel=kernel, gamma=gamma, coef0=0.5, max_iter=1).fit(X, y)
    assert model.kernel_.gamma == pytest.approx(theirs._gamma, rel=1e-12)


@pytest.mark.parametrize("make", MODELS)
def test_precomputed_kernels(make):
    X, y = cloud(40)
    K = X @ X.T
    model = make(0.3, kernel="precomputed")
    with pytest.raises(ValueError, match=r"square.*\(40, 39\)"):
        model.fit(K[:, :-1], y)
    lopsided = K.copy()
    lopsided[3, 4] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric.*1"):
        model.fit(lopsided, y)
    linear = make(0.3, kernel="linear", tol=1e-8).fit(X, y)
    model.set_params(tol=1e-8).fit(K, y)
    np.testing.assert_allclose(model.decision_function(K), linear.decision_function(X), atol=1e-5)


def indefinite(kind):
    X, y = cloud(80, seed=7)
    if kind == "sigmoid":
        kernel = {"kernel": "sigmoid", "gamma": 2.0, "coef0": -1.0}
        return X, y, kernel, np.linalg.eigvalsh(np.tanh(2.0 * X @ X.T - 1.0))[0]
    K = X @ X.T
    K -= (5.0 if kind == "shifted" else 1000.0) * np.eye(80)
    return K, y, {"kernel": "precomputed"}, np.linalg.eigvalsh(K)[0]


@pytest.mark.parametrize(
    ("loss", "kind", "solver"),
    [
        (loss, kind, solver)
        for loss in LOSSES
        for kind in ("sigmoid", "shifted", "negative")
        for solver in ("auto", "smo", "active-set")
    ],
)  # fmt: skip
def test_indefinite_kernels_end_and_are_warned_of(loss, kind, solver):
    X, y, kernel, smallest = indefinite(kind)
    assert smallest < -0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match="eigenvalue") as caught:
            model = LOSSES[loss](solver=solver, time_limit=SECONDS, **kernel).fit(X, y)
    told = [str(w.message) for w in caught if "eigenvalue" in str(w.message)]
    assert len(told) == 1
    assert f"{smallest:.3g}" in told[0]
    # Without an upper bound on α an indefinite problem has no least value.
    endless = {mm.Status.DIVERGED} if loss == "squared" else set()
    assert model.status_ in {mm.Status.CONVERGED, mm.Status.PATIENCE} | endless
    assert np.isfinite(model.decision_function(X)).all()
    if model.status_ is mm.Status.CONVERGED:
        assert model.certificate_.holds(TOL)  # a point that satisfies the KKT conditions


def test_the_warning_points_at_the_callers_line():
    X, y, kernel, _ = indefinite("sigmoid")
    with pytest.warns(UserWarning, match="eigenvalue") as caught:
        mm.SVC(**kernel).fit(X, y)
    assert caught[0].filename == __file__


def test_a_positive_definite_kernel_is_not_warned_of():
    X, y = cloud(80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = mm.SVC(kernel="precomputed").fit(RBF(gamma=0.3)(X), y)
        own = mm.SVC(kernel=plain_kernel).fit(X, y)
    assert given.certificate_.holds(TOL)
    assert own.certificate_.holds(TOL)


@pytest.mark.parametrize("kernel", [RBF(gamma=0.3), Linear()], ids=["rbf", "linear"])
def test_rounding_is_not_warned_of(kernel):
    X, y = cloud()
    K = kernel(X).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mm.SVC(kernel="precomputed").fit(np.maximum(K, K.T), y)
    assert model.certificate_.holds(TOL)


@pytest.mark.parametrize("kind", BAD_KERNELS)
@pytest.mark.parametrize("n", [20, N])
def test_bad_callable_kernels(kind, n):
    with pytest.raises(ValueError, match=r"(?i)lambda|shape|nan"):
        mm.SVC(kernel=BAD_KERNELS[kind]).fit(*cloud(n))


def test_a_callable_kernel_that_fails():
    def broken(A, B):
        raise ZeroDivisionError("mine")

    model = mm.SVC(kernel=broken)
    with pytest.raises(ZeroDivisionError, match="mine"):
        model.fit(*cloud(20))
    assert not hasattr(model, "classes_")
