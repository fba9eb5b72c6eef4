"""SVC agrees with scikit-learn's: data of every kind, several classes, planes, ties, labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.multiclass import OneVsRestClassifier

import maxmargin as mm
from tests.helpers.bad_input import LABEL_TYPES
from tests.helpers.storage import DATA, thin
from tests.helpers.svc import (
    KERNELS,
    LOSSES,
    TIGHT,
    TOL,
    N,
    assert_agrees,
    assert_certified,
    cloud,
    dual_of,
)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("kind", DATA)
def test_data_of_every_kind_agree_with_scikit_learn(kind, kernel):
    X, y = thin()
    options = {**KERNELS[kernel], "C": 2.0, "tol": 1e-6}
    theirs = svm.SVC(**options).fit(X, y)
    given = DATA[kind](X)
    ours = mm.SVC(**options).fit(given, y)
    assert_certified(ours, X, y)
    assert_agrees(ours, theirs, X, y, given)
    assert sparse.issparse(ours.dual_coef_) == sparse.issparse(given)
    assert sparse.issparse(ours.support_vectors_) == sparse.issparse(given)
    vectors = ours.support_vectors_
    vectors = vectors.toarray() if sparse.issparse(vectors) else vectors
    np.testing.assert_array_equal(vectors, X[ours.support_])


def test_rows_to_predict_may_be_dense_or_sparse():
    X, y = thin()
    model = mm.SVC().fit(sparse.csr_matrix(X), y)
    expected = model.decision_function(sparse.csr_matrix(X))
    for other in DATA.values():
        np.testing.assert_allclose(model.decision_function(other(X)), expected, atol=1e-12)
    dense = mm.SVC().fit(X, y)
    np.testing.assert_allclose(dense.decision_function(X), expected, atol=10 * TOL)
    with pytest.raises(ValueError, match=r"sparse.*toarray"):  # as scikit-learn
        dense.predict(sparse.csr_matrix(X))


@pytest.mark.parametrize("default_tol", [False, True], ids=["tight", "default"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_classes_agree_with_scikit_learn(C, default_tol):
    X, y = cloud()
    tol = TOL if default_tol else TIGHT
    ours = mm.SVC(C=C, tol=tol).fit(X, y)
    theirs = svm.SVC(C=C, tol=tol).fit(X, y)
    assert_certified(ours, X, y)
    if default_tol:  # the gap of one in a thousand allows more than one may ask
        near = 5 * tol * max(1.0, C)
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=near
        )
        return
    assert_agrees(ours, theirs, X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=2e-4 * C)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4 * max(1.0, C))
    assert ours.shape_fit_ == theirs.shape_fit_
    for name in ("support_", "n_support_", "n_iter_", "dual_coef_", "intercept_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape), name


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_many_classes_agree_with_scikit_learn(n_classes, kind):
    X, y = thin(n_classes=n_classes)
    y = np.array(["fig", "apple", "date", "pear"])[y]
    given = DATA[kind](X)
    ours = mm.SVC(tol=TIGHT, gamma=0.3).fit(given, y)
    theirs = svm.SVC(tol=TIGHT, gamma=0.3).fit(given, y)
    assert_certified(ours, X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_.shape == (n_classes - 1, ours.support_.size)
    # LIBSVM's kernel values are float32.
    np.testing.assert_allclose(dual_of(ours), dual_of(theirs), atol=5e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-4)
    assert type(ours.dual_coef_) is type(theirs.dual_coef_)
    assert ours.predict(given).dtype == y.dtype
    np.testing.assert_array_equal(ours.predict(given), theirs.predict(given))


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
def test_decision_function_shapes(make, shape):
    X, y = cloud(n_classes=4)
    options = {"decision_function_shape": shape, "tol": 1e-6}
    ours = make(**options).fit(X, y)
    theirs = getattr(svm, make.__name__)(**options).fit(X, y)
    assert ours.decision_function(X).shape == (N, 4 if shape == "ovr" else 6)
    if make is mm.SVC:
        assert_agrees(ours, theirs, X, y)
    elif shape == "ovo":  # LIBSVM's tol is not relative to ρ
        near = 1e-3 * np.abs(theirs.decision_function(X)).max()
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=near
        )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_planes_of_a_linear_kernel(kind):
    X, y = thin(n_classes=3)
    given = DATA[kind](X)
    ours = mm.SVC(kernel="linear", tol=TIGHT).fit(given, y)
    theirs = svm.SVC(kernel="linear", tol=TIGHT).fit(given, y)
    mine, other = (model.coef_ for model in (ours, theirs))
    assert sparse.issparse(mine) == sparse.issparse(other)
    mine, other = (c.toarray() if sparse.issparse(c) else c for c in (mine, other))
    np.testing.assert_allclose(mine, other, atol=5e-4)
    scores = ours.set_params(decision_function_shape="ovo").decision_function(given)
    np.testing.assert_allclose(X @ mine.T + ours.intercept_, scores, atol=1e-10)
    with pytest.raises(ValueError, match="read-only"):
        (ours.coef_.data if kind == "csr" else ours.coef_)[:] = 0.0


def test_planes_are_of_linear_kernels_only():
    X, y = cloud()
    model = mm.SVC().fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = model.coef_


@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_hyperplane_of_two_classes(kind):
    X, y = thin()
    model = mm.SVC(kernel="linear").fit(DATA[kind](X), y)
    np.testing.assert_allclose(
        model.hyperplane_.decision(X), model.decision_function(X), atol=1e-10
    )


@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_equal_votes(break_ties, n_classes):
    X, y = cloud(n_classes=n_classes, d=2, seed=3)
    grid = np.random.default_rng(4).uniform(-4, 4, (2000, 2))
    options = {"gamma": 0.05, "tol": TIGHT, "break_ties": break_ties}
    ours, theirs = mm.SVC(**options).fit(X, y), svm.SVC(**options).fit(X, y)
    found, expected = ours.predict(grid), theirs.predict(grid)
    scores = theirs.set_params(decision_function_shape="ovo", break_ties=False)
    clear = np.abs(scores.decision_function(grid)).min(axis=1) > 1e-3
    np.testing.assert_array_equal(found[clear], expected[clear])
    if break_ties:
        np.testing.assert_array_equal(found, ours.decision_function(grid).argmax(axis=1))
    elif n_classes == 5:  # there are ties, and they are decided by the order of the classes
        ours.set_params(break_ties=True)
        assert (ours.predict(grid) != found).any()


def test_ties_of_pairwise_scores_cannot_be_broken():
    X, y = cloud(n_classes=3)
    model = mm.SVC(break_ties=True, decision_function_shape="ovo")
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.fit(X, y).predict(X)


@pytest.mark.parametrize("loss", ["hinge", "nu"])
def test_one_against_the_rest(loss):
    X, y = cloud(n_classes=4)
    model = LOSSES[loss](multi_class="ovr", tol=1e-6)
    binary = LOSSES[loss](tol=1e-6)
    if loss == "nu":
        model.set_params(nu=0.3)
        binary.set_params(nu=0.3)
    model.fit(X, y)
    parts = OneVsRestClassifier(binary).fit(X, y)
    assert model.dual_coef_.shape == (4, model.support_.size)
    # Machines of the same problems, stopped at the same tolerance; scores are about 1 in size.
    np.testing.assert_allclose(model.decision_function(X), parts.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize("kind", LABEL_TYPES)
def test_predictions_have_the_type_of_the_labels(kind):
    labels = LABEL_TYPES[kind]
    X, y = cloud()
    model = mm.SVC().fit(X, labels[y])
    expected = svm.SVC().fit(X, labels[y]).predict(X)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert (predicted == expected).mean() > 0.99
