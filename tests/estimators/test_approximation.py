"""SVC on features of its kernel: Nyström and random Fourier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from maxmargin.estimators import approximation, feature_maps
from maxmargin.estimators.feature_maps import Fourier, Nystroem, map_of_model, transformed
from maxmargin.kernels import RBF

WAYS = [
    {"approximate": "nystroem"},
    {"approximate": "nystroem", "landmarks": "leverage"},
    {"approximate": "fourier"},
]


@parametrize_with_checks(
    [mm.SVC(n_components=20, random_state=0, **way) for way in (WAYS[0], WAYS[2])]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return make_moons(1500, noise=0.2, random_state=0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_answers_are_near_those_of_the_kernel_and_certified(moons, way, loss):
    X, y = moons
    exact = mm.SVC(loss=loss).fit(X, y)
    model = mm.SVC(loss=loss, random_state=0, **way).fit(X, y)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.99
    assert model.certificate_.holds(model.tol)
    assert model.certificate_.coverage == "complete"
    assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) >= 0) * 1])


def test_certificates_are_of_the_features(moons):
    X, y = moons
    model = mm.SVC(approximate="nystroem", n_components=50, random_state=0).fit(X, y)
    features = transformed(map_of_model(model), X)
    signs = np.where(y == 1, 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - signs * (features @ model.feature_coef_[0] + model.intercept_[0]))
    primal = 0.5 * np.sum(model.feature_coef_**2) + model.C * slack.sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert_allclose(features @ model.feature_coef_[0] + model.intercept_[0],
                    model.decision_function(X), rtol=1e-9, atol=1e-9)  # fmt: skip


def test_nystroem_with_all_rows_as_landmarks_is_the_kernel(moons):
    X, y = (each[:120] for each in moons)
    model = mm.SVC(approximate="nystroem", n_components=120, tol=1e-6).fit(X, y)
    assert model.kernel_error_.max() < 1e-3
    exact = mm.SVC(tol=1e-6).fit(X, y)
    assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("way", WAYS)
def test_errors_of_the_kernel_shrink_with_the_number_of_features(moons, way):
    X, y = moons
    few, many = (
        mm.SVC(n_components=n, random_state=0, **way).fit(X, y).kernel_error_ for n in (10, 300)
    )
    assert many[0] < 0.5 * few[0]
    assert few[0] <= few[1]
    assert many[0] <= many[1]


def test_maps_have_the_kernel_as_inner_products():
    rng = np.random.RandomState(0)
    X, kernel = rng.normal(size=(200, 3)), RBF(gamma=0.3)
    phi = Nystroem.of(kernel, X, 60, "kmeans++", rng, np.dtype(float))
    on_landmarks = transformed(phi, phi.landmarks)
    assert_allclose(on_landmarks @ on_landmarks.T, kernel(phi.landmarks), atol=1e-4)
    assert len(np.unique(phi.landmarks, axis=0)) == len(phi.landmarks)
    assert all((row == X).all(axis=1).any() for row in phi.landmarks)
    wide = Fourier.of(kernel, X, 20_000, rng, np.dtype(float))
    features = transformed(wide, X)
    assert_allclose(features @ features.T, kernel(X), atol=0.06)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "crammer_singer"])
@pytest.mark.parametrize("way", [WAYS[0], WAYS[2]])
def test_many_classes_are_saved_and_verified(tmp_path, multi_class, way):
    X, y = load_digits(return_X_y=True)
    X, names = X / 16.0, np.array(list("abcdefghij"))[y]
    model = mm.SVC(C=10.0, multi_class=multi_class, n_components=150, random_state=0, **way)
    model.fit(X[:700], names[:700])
    assert model.score(X[700:], names[700:]) > 0.9
    mm.save(model, tmp_path / "m.mm")
    loaded = mm.load(tmp_path / "m.mm")
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.get_params() == model.get_params()
    found = mm.verify(loaded, X[:700], names[:700])
    assert found.agrees
    assert found.solved_again
    loaded.feature_coef_ = loaded.feature_coef_ * 1.05
    assert not mm.verify(loaded, X[:700], names[:700]).agrees


def test_weights_count(moons):
    X, y = (each[:300] for each in moons)
    weights = np.arange(300) % 3
    options = {"approximate": "fourier", "n_components": 40, "gamma": 1.0, "random_state": 0}
    weighted = mm.SVC(**options, tol=1e-6).fit(X, y, weights)
    repeated = mm.SVC(**options, tol=1e-6).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("way", WAYS)
def test_sparse_rows_are_dense_rows(moons, kind, way):
    X, y = (each[:300] for each in moons)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    options = {**way, "n_components": 40, "random_state": 0}
    dense = mm.SVC(**options).fit(X, y)
    thin = mm.SVC(**options).fit(kind(X), y)
    assert_allclose(thin.decision_function(kind(X)), dense.decision_function(X), atol=1e-6)


def test_float32_and_blocks(moons, monkeypatch):
    X, y = moons
    options = {"approximate": "nystroem", "n_components": 40, "random_state": 0}
    whole = mm.SVC(**options).fit(X.astype(np.float32), y)
    assert whole.normalization_.dtype == np.float32
    monkeypatch.setattr(approximation, "bytes_to_keep", lambda: 0.0)
    blocks = mm.SVC(**options).fit(X.astype(np.float32), y)
    assert blocks.certificate_.holds(blocks.tol)
    assert blocks.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-3)
    monkeypatch.setattr(feature_maps, "TUNING", feature_maps.Tuning(float32_features=10))
    assert mm.SVC(**options).fit(X, y).normalization_.dtype == np.float32


def test_clone_and_another_fit(moons):
    X, y = moons
    model = mm.SVC(approximate="fourier", n_components=30, random_state=0).fit(X, y)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert_array_equal(again.fit(X, y).feature_coef_, model.feature_coef_)
    model.set_params(approximate=None).fit(X, y)
    assert not hasattr(model, "feature_coef_")
    assert not hasattr(model, "offsets_")
    assert_allclose(model.decision_function(X), mm.SVC().fit(X, y).decision_function(X))


def test_time_limits_end_a_fit(moons):
    X, y = moons
    model = mm.SVC(approximate="nystroem", max_iter=1, C=1e4, random_state=0)
    with pytest.warns(match="tasks not done"):
        model.fit(X, y)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"kernel": "poly", "approximate": "fourier"}, "for kernel='rbf'"),
        ({"kernel": "precomputed", "approximate": "nystroem"}, "precomputed"),
        ({"approximate": "nystroem", "probability": True}, "CalibratedClassifierCV"),
        ({"approximate": "nystroem", "warm_start": True}, "warm_start=False"),
        ({"approximate": "nystroem", "solver": "smo"}, "solver='auto'"),
        ({"approximate": "nystroem", "n_components": 0}, "n_components"),
        ({"approximate": "rff"}, "approximate"),
    ],
)
def test_what_is_not_offered_is_refused(moons, parameters, said):
    X, y = (each[:50] for each in moons)
    X = X @ X.T if parameters.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=said):
        mm.SVC(**parameters).fit(X, y)


def test_what_needs_support_vectors_says_so(moons, tmp_path):
    X, y = (each[:100] for each in moons)
    model = mm.SVC(approximate="nystroem", kernel="linear", random_state=0).fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(TypeError, match="needs support vectors"):
        mm.diagnostics.support_table(model, X, y)
    with pytest.raises(TypeError, match="needs support vectors"):
        mm.persistence.save_libsvm(model, tmp_path / "m")
    with pytest.raises(TypeError, match="needs support vectors"):
        mm.persistence.save_json(model, tmp_path / "m")
    with pytest.raises(ValueError, match="approximate=None"):
        mm.model_selection.leave_one_out(model, X, y)
