"""NuSVC: what ν bounds, which ν is feasible, and machines without a margin."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import svm

import maxmargin as mm
from maxmargin import persistence
from maxmargin.solution import Status
from tests.helpers.svc import TIGHT, TOL, N, assert_certified, cloud, signs


@pytest.mark.parametrize("nu", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nu_bounds_margin_errors_and_support_vectors(nu, kernel):
    X, y = cloud()
    model = mm.NuSVC(nu=nu, kernel=kernel, tol=1e-6).fit(X, y)
    assert_certified(model, X, y)
    margins = signs(y) * model.decision_function(X)
    assert (margins < 1.0 - 1e-5).mean() <= nu
    assert model.support_.size / N >= nu


def test_nu_machine_is_the_machine_of_some_cost():
    X, y = cloud()
    nu = mm.NuSVC(nu=0.4, tol=1e-8).fit(X, y)
    C = np.abs(nu.dual_coef_).max()  # 1/(nρ), for some α is at its bound
    soft = mm.SVC(C=C, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), soft.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("nu", [0.3, 0.6])
def test_nu_machine_agrees_with_scikit_learn(nu):
    X, y = cloud()
    ours = mm.NuSVC(nu=nu, tol=TIGHT).fit(X, y)
    theirs = svm.NuSVC(nu=nu, tol=TIGHT).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    scale = np.abs(theirs.dual_coef_).max()
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3 * scale)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_infeasible_nu():
    X, y = cloud(100)
    y = np.where(np.arange(100) < 20, 1, 0)
    with pytest.raises(ValueError, match=r"nu=0\.5.*at most 0\.4") as caught:
        mm.NuSVC(nu=0.5).fit(X, y)
    assert "infeasible" in str(caught.value)  # scikit-learn's word
    model = mm.NuSVC(nu=0.4).fit(X, y)  # the largest there is
    assert model.certificate_.holds(TOL)
    assert set(model.support_) >= set(np.flatnonzero(y == 1))
    with pytest.raises(ValueError, match=r"at most 0\.2"):
        mm.NuSVC(nu=0.4).fit(X, y, np.where(y == 1, 4 / 9, 1.0))
    names = np.array(["fig", "pear", "plum"])[np.minimum(np.arange(100) // 5, 2)]
    with pytest.raises(ValueError, match="plum"):
        mm.NuSVC(nu=0.5).fit(X, names)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nu_without_a_margin_is_w_0(n_classes, kernel, storage, tmp_path):
    """Every point is in every class, and every format gives the documented label."""
    X = np.repeat(np.random.default_rng(0).normal(size=(15, 2)), n_classes, axis=0)
    y = np.tile(np.arange(n_classes), 15) + 5
    model = mm.NuSVC(nu=0.5, kernel=kernel, gamma=1.0, degree=2)
    with pytest.warns(UserWarning, match="nu=0.5 leaves no margin.*Raise nu") as caught:
        model.fit(storage(X), y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.certificate_.holds(TOL)
    assert model.status_ is mm.Status.CONVERGED
    assert model.n_support_.sum() == 0
    assert not model.intercept_.any()
    new = storage(np.random.default_rng(1).normal(size=(20, 2)))
    assert (model.predict(new) == y.max()).all()
    if n_classes == 2:
        assert not model.decision_function(new).any()
    persistence.save(model, tmp_path / "a.safetensors")
    persistence.save_libsvm(model, tmp_path / "a.model")
    others = [
        persistence.load(tmp_path / "a.safetensors"),
        persistence.load_libsvm(tmp_path / "a.model", n_features=2),
    ]
    for other in others:
        rows = new if sparse.issparse(other.support_vectors_) else np.asarray(new @ np.eye(2))
        assert (other.predict(rows) == y.max()).all()


def test_nu_at_the_edge_of_a_margin():
    """Labels that mean nothing: a small nu has no margin, a large one has; P decides."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    margins = []
    for nu in np.linspace(0.05, 1.0, 20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = mm.NuSVC(nu=nu, kernel="linear").fit(X, y)
        found = model.certificate_.primal < -1e-12
        margins.append(found)
        assert bool(model.coef_.any()) == found
        assert bool(caught) != found
    assert margins == sorted(margins)
    assert set(margins) == {False, True}


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6, 1e8])
def test_linear_kernel_far_from_the_origin(offset):
    rng = np.random.RandomState(0)
    X = rng.randn(200, 3)
    y = (X[:, 0] + 0.5 * rng.randn(200) > 0).astype(int)
    here = mm.NuSVC(nu=0.5, kernel="linear").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = mm.NuSVC(nu=0.5, kernel="linear").fit(X + offset, y)
    assert_allclose(there.coef_, here.coef_, rtol=1e-3)
    assert (there.predict(X + offset) == here.predict(X)).mean() > 0.98
    proof = there.certificate_
    # The gap is relative to P and ρ themselves, not to the length of the rows.
    assert proof.relative_gap >= 0.1 * proof.gap / abs(proof.primal)
    assert proof.holds(1e-3)


@pytest.mark.parametrize("value", [1.0, 1e4 * np.pi, 1e8 * np.pi])
def test_equal_rows_have_no_margin(value):
    with pytest.warns(UserWarning, match="leaves no margin"):
        model = mm.NuSVC(kernel="linear").fit(np.full((20, 3), value), np.arange(20) % 2)
    assert model.status_ is Status.CONVERGED


def test_kernel_values_that_leave_the_interior_point_method_nowhere_to_go():
    rng = np.random.RandomState(147)
    for size in ([2, 3, 8, 30, 100, 513, 700], [1, 2, 5, 30], [2, 2, 2, 3, 5]):
        rng.choice(size)
    X = rng.randn(700, 1) + 1e8
    y = (rng.rand(700) > 0.3).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.NuSVC(nu=0.3, gamma="auto").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_equal_rows_whose_kernel_values_are_negative():
    X = np.ones((2, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = mm.NuSVC(nu=1.0, kernel="poly", degree=25, gamma=1e-9, coef0=-1.0).fit(X, [0, 1])
    assert np.isfinite(model.decision_function(X)).all()
