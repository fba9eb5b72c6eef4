"""LinearSVC agrees with LIBLINEAR, LIBSVM and the kernel machine; its attributes agree, too."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from tests.helpers.linear_svc import LOSSES, SOLVERS, TIGHT, TOL, N, cloud, made
from tests.helpers.storage import DATA, thin
from tests.helpers.svc import signs

# Other programs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_penalised_bias_agrees_with_liblinear(loss, C, fit_intercept):
    X, y = cloud()
    options = {"C": C, "loss": loss, "fit_intercept": fit_intercept}
    ours = made(tol=TIGHT, penalize_intercept=True, **options).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-10, max_iter=10**6, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_free_bias_agrees_with_libsvm(solver, C):
    X, y = cloud()
    ours = made(C=C, loss="hinge", tol=TIGHT, solver=solver).fit(X, y)
    theirs = svm.SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_agrees_with_the_kernel_machine(loss, multi_class):
    X, y = cloud(n_classes=3)
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    options = {"C": 2.0, "loss": loss, "multi_class": multi_class, "tol": TIGHT}
    ours = made(**options).fit(X, y, weights)
    kernel = mm.SVC(kernel="linear", **options).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, kernel.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, kernel.intercept_, atol=1e-4)
    for one, other in zip(ours.certificates_, kernel.certificates_, strict=True):
        assert one.dual == pytest.approx(other.dual, rel=1e-6)


@pytest.mark.parametrize("kind", DATA)
def test_data_of_every_kind_give_one_answer(kind):
    X, y = thin(N)
    plain = made(tol=TIGHT).fit(X, y)
    given = DATA[kind](X)
    for solver in SOLVERS:
        model = made(solver=solver, tol=TIGHT).fit(given, y)
        assert model.certificate_.holds(TIGHT)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-4)
    expected = plain.decision_function(X)
    np.testing.assert_allclose(plain.decision_function(given), expected, atol=1e-12)


def test_memory_mapped_rows(tmp_path):
    X, y = cloud()
    for dtype, order in ((np.float64, "C"), (np.float32, "C"), (np.float64, "F")):
        path = tmp_path / "rows"
        mapped = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
        mapped[:] = X
        mapped.flush()
        rows = np.memmap(path, dtype=dtype, mode="r", shape=X.shape, order=order)
        model = made(tol=TIGHT).fit(rows, y)
        expected = made(tol=TIGHT).fit(np.array(rows), y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
        assert model.certificate_.holds(TIGHT)


# Attributes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_support_vectors_make_the_planes(kind, n_classes, multi_class):
    X, y = thin(n_classes=n_classes)
    given = DATA[kind](X)
    model = made(loss="hinge", multi_class=multi_class, tol=TIGHT, C=0.5).fit(given, y)
    planes = model.dual_coef_ @ X[model.support_]
    np.testing.assert_allclose(planes, model.coef_, atol=1e-3)
    assert (np.diff(model.support_) > 0).all()
    assert 0 < model.support_.size < len(y)
    assert np.abs(model.dual_coef_).max() <= 0.5 * (1.0 + 1e-9)
    assert np.abs(model.dual_coef_).max(axis=0).min() > 0.0  # each is of use to some plane
    # Every sample with a slack is one of them.
    if n_classes == 2:
        slack = 1.0 - signs(y) * model.decision_function(given)
        assert set(np.flatnonzero(slack > 1e-3)) <= set(model.support_)
        np.testing.assert_allclose(model.dual_coef_.sum(), 0.0, atol=1e-9)


def test_the_plane_of_two_classes():
    X, y = cloud(d=2)
    model = made().fit(X, y)
    plane = model.hyperplane_
    np.testing.assert_array_equal(plane.w, model.coef_[0])
    assert plane.b == model.intercept_[0]
    np.testing.assert_allclose(X @ plane.w + plane.b, model.decision_function(X), atol=1e-12)
    many = made().fit(*cloud(n_classes=3))
    with pytest.raises(AttributeError, match="3 planes"):
        _ = many.hyperplane_


def test_attributes_do_not_exist_before_a_fit():
    model = mm.LinearSVC()
    for name in ("coef_", "dual_coef_", "classes_"):
        assert not hasattr(model, name)
    for use in (lambda: model.hyperplane_, lambda: model.predict([[0.0]])):
        with pytest.raises(NotFittedError):
            use()


def test_two_classes_are_one_plane_under_every_name():
    X, y = cloud()
    plain = made(loss="hinge", tol=TIGHT).fit(X, y)
    for multi_class in ("ovo", "crammer_singer"):
        other = made(loss="hinge", tol=TIGHT, multi_class=multi_class).fit(X, y)
        np.testing.assert_array_equal(other.coef_, plain.coef_)
        assert isinstance(other.certificate_, type(plain.certificate_))


def test_the_joint_machine_of_three_classes():
    X, y = cloud(n_classes=3)
    model = made(loss="hinge", multi_class="crammer_singer").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.certificate_.holds(TOL)
    assert len(model.certificates_) == 1
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize(
    ("options", "told"),
    [({"solver": "newton"}, "solver='newton'"), ({"C": np.inf}, "C=inf")],
    ids=["solver", "hard margin"],
)
def test_what_the_joint_machine_does_not_do_is_named(options, told):
    model = made(loss="hinge", multi_class="crammer_singer", **options)
    with pytest.raises(ValueError, match=told):
        model.fit(*cloud(n_classes=3))
    assert not hasattr(model, "classes_")
