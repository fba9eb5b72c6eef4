"""What SVC's answers do not depend on, and what a fit leaves unchanged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm
from maxmargin.kernels import RBF
from tests.helpers.storage import DATA, thin, unchanged
from tests.helpers.svc import KERNELS, LOSSES, N, assert_pickles_and_clones, cloud, rows_for


@pytest.mark.parametrize(
    ("n", "n_classes"), [(N, 2), (1500, 5), (6000, 2)], ids=["small", "classes", "large"]
)
def test_the_same_bits_on_any_number_of_cores(n, n_classes):
    X, y = cloud(n, 6, n_classes)
    models = [mm.SVC(C=3.0, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 1, 2, 2)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.support_, models[0].support_)
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)


@pytest.mark.parametrize(("n", "n_classes"), [(4500, 2), (900, 3)])
def test_n_jobs_1_starts_no_thread(started_threads, n, n_classes):
    X, y = cloud(n, n_classes=n_classes)
    mm.SVC(n_jobs=1).fit(X, y)
    assert not started_threads
    mm.SVC(n_jobs=2).fit(X, y)
    assert started_threads  # the case under test occurred


def test_n_jobs_1_starts_no_thread_in_prediction(started_threads):
    X, y = cloud(2000)
    model = mm.SVC(n_jobs=1).fit(X, y)
    model.predict(X)
    assert not started_threads


@pytest.mark.parametrize("kind", DATA)
def test_input_is_not_changed(kind):
    X, y = thin()
    given, labels, weights = DATA[kind](X), y.copy(), np.ones(N)
    with unchanged(given, labels, weights):
        mm.SVC().fit(given, labels, weights).predict(given)
        mm.NuSVC(0.2, kernel="linear").fit(given, labels)


def test_a_precomputed_matrix_is_not_changed():
    X, y = cloud(n_classes=3)
    K = RBF(gamma=0.3)(X)
    before = K.copy()
    K.flags.writeable = False
    for options in ({}, {"loss": "squared_hinge"}, {"solver": "smo"}, {"solver": "active-set"}):
        mm.SVC(kernel="precomputed", **options).fit(K, y)
        np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
@pytest.mark.parametrize("warm_start", [False, True])
def test_pickles_and_clones(make, warm_start):
    X, y = cloud(n_classes=3)
    model = make(kernel=RBF(gamma=0.4), warm_start=warm_start).fit(X, y)
    again = assert_pickles_and_clones(model, X)
    if warm_start:
        assert again.fit(X, y).n_iter_.max() <= 3


def test_a_model_is_no_larger_than_its_support_vectors():
    X, y = cloud(2000)
    model = mm.SVC().fit(X, y)
    # Rows, coefficients, a trace: not the Gram matrix, not X.
    assert len(pickle.dumps(model)) < 2 * X[model.support_].nbytes + 20_000


def test_parameters_are_left_alone():
    X, y = cloud()
    model = mm.SVC(gamma="scale", C=2, kernel="rbf", tol=1e-2)
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before


def test_column_names_of_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = cloud()
    frame = pandas.DataFrame(X, columns=["mass", "width", "height"])
    labels = pandas.Series(np.where(y == 1, "apple", "pear"))
    model = mm.SVC().fit(frame, labels, pandas.Series(np.ones(N)))
    assert model.feature_names_in_.tolist() == ["mass", "width", "height"]
    assert model.n_features_in_ == 3
    plain = mm.SVC().fit(X, labels.to_numpy())
    np.testing.assert_allclose(  # a frame lies in memory column by column
        model.decision_function(frame), plain.decision_function(X), atol=1e-12
    )
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["width", "mass", "height"]])
    with pytest.raises(ValueError, match="2 features"):
        plain.predict(X[:, :2])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "callable", "precomputed"])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_scores_of_a_batch_are_those_of_single_rows(kernel, kind):
    X, y = thin(700, n_classes=3)
    if kernel == "precomputed" and kind == "csr":
        pytest.skip("a Gram matrix is dense")
    options = KERNELS[kernel]
    given = DATA[kind](rows_for(kernel, X))
    model = mm.SVC(decision_function_shape="ovo", **options).fit(given, y)
    together = model.decision_function(given)
    alone = np.vstack([model.decision_function(given[[i]]) for i in range(0, 700, 70)])
    # Sums of α K in another order: α is at most C, and there are fewer than 700.
    largest = 700 * model.kernel_.diagonal(given).max()
    near = np.finfo(float).eps * largest * 10
    np.testing.assert_allclose(alone, together[::70], atol=near)
    np.testing.assert_array_equal(
        [model.predict(given[[i]])[0] for i in range(0, 700, 70)], model.predict(given)[::70]
    )


def rotation(d):
    return np.linalg.qr(np.random.default_rng(12).standard_normal((d, d)))[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_symmetries(loss):
    X, y = cloud(d=4)
    order, turn = np.random.default_rng(13).permutation(N), rotation(4)
    model = LOSSES[loss](gamma=0.3, tol=1e-8).fit(X, y)
    expected = model.decision_function(X)
    shuffled = clone(model).fit(X[order], y[order])
    flipped = clone(model).fit(X, 1 - y)
    turned = clone(model).fit(X @ turn, y)
    moved = clone(model).fit(X + 10.0, y)
    scaled = clone(model).set_params(gamma=0.3 / 4).fit(2.0 * X, y)
    near = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(shuffled.decision_function(X), expected, atol=near)
    np.testing.assert_allclose(-flipped.decision_function(X), expected, atol=near)
    np.testing.assert_allclose(turned.decision_function(X @ turn), expected, atol=near)
    np.testing.assert_allclose(moved.decision_function(X + 10.0), expected, atol=near)
    np.testing.assert_allclose(scaled.decision_function(2.0 * X), expected, atol=near)
    if loss != "nu":  # C K is what counts
        dearer = clone(model).set_params(kernel=0.5 * RBF(gamma=0.3), C=4.0).fit(X, y)
        np.testing.assert_allclose(dearer.decision_function(X), expected, atol=near)
