"""Probabilities of SVC and NuSVC: Platt's sigmoid, coupled pairs, and scikit-learn's contract."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.estimators.claims import TimeLimit
from maxmargin.estimators.probability import coupled, fold_numbers, platt, probabilities
from maxmargin.progress import Limits


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# The sigmoid -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_sigmoid_has_the_largest_likelihood(scale):
    rng = np.random.default_rng(0)
    positive = rng.random(300) < 0.3
    scores = np.where(positive, 1.0, -1.0) + 1.5 * rng.normal(size=300)
    targets = np.where(positive, (positive.sum() + 1) / (positive.sum() + 2), 0.0)
    targets[~positive] = 1.0 / ((~positive).sum() + 2)

    def negative_likelihood(ab):
        p = expit(-(ab[0] * scores + ab[1]))
        return -(targets * np.log(p) + (1 - targets) * np.log(1 - p)).sum()

    best = minimize(negative_likelihood, [0.0, 0.0], tol=1e-12).x
    A, B = platt(scores * scale, positive)
    assert_allclose([A * scale, B], best, rtol=1e-4, atol=1e-5)


def test_separated_scores_leave_finite_numbers():
    A, B = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    assert np.isfinite([A, B]).all()
    assert A < 0.0


def test_scores_without_any_information_give_the_shares_of_the_classes():
    positive = np.arange(100) < 25
    _, B = platt(np.zeros(100), positive)
    target = (25 * 26 / 27 + 75 * 1 / 77) / 100  # the mean of the smoothed targets
    assert_allclose(expit(-B), target, atol=1e-6)


def test_folds_hold_as_many_of_each_class():
    labels = np.repeat([1.0, -1.0], [13, 40])
    folds = fold_numbers(labels, np.random.RandomState(0))
    for label, least in ((1.0, 2), (-1.0, 8)):
        counts = np.bincount(folds[labels == label], minlength=5)
        assert counts.min() == least
        assert counts.max() <= least + 1


# Coupled pairs -----------------------------------------------------------------------------------


def test_consistent_pairs_give_back_their_probabilities():
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    first, second = [0, 0, 1], [1, 2, 2]
    r = p[:, first] / (p[:, first] + p[:, second])
    assert_allclose(coupled(r, 3), p, atol=1e-12)


def test_coupling_is_a_least_squares_problem():
    rng = np.random.default_rng(1)
    r = rng.uniform(0.05, 0.95, size=6)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]

    def value(p):
        return sum(((1 - r[k]) * p[i] - r[k] * p[j]) ** 2 for k, (i, j) in enumerate(pairs))

    [p] = coupled(r[np.newaxis], 4)
    assert_allclose(p.sum(), 1.0)
    for other in rng.dirichlet(np.ones(4), size=500):
        assert value(p) <= value(other) + 1e-12


def test_certain_pairs_do_not_overflow():
    scores = np.array([[1e6, -1e6, 1e6], [0.0, 0.0, 0.0]])
    p = probabilities(scores, np.full(3, -50.0), np.zeros(3), 3, of_pairs=True)
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.isfinite(p).all()
    assert_allclose(p[1], 1 / 3)


# The machines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_probabilities_are_about_those_of_scikit_learn(data):
    X, y = data(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = mm.SVC(probability=True, random_state=0).fit(X, y)
    with pytest.warns(FutureWarning, match="probability"):
        theirs = sklearn.svm.SVC(probability=True, random_state=0).fit(X, y)
    # The folds are not the same ones.
    assert np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).mean() < 0.01
    assert_allclose(ours.probA_, theirs._probA, rtol=0.35)
    assert_array_equal(np.sign(ours.probA_), -1.0)


@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(probability=True, random_state=0),
        mm.SVC(kernel="linear", C=10.0, probability=True, multi_class="ovr", random_state=0),
        mm.NuSVC(nu=0.3, probability=True, random_state=0),
        mm.SVC(loss="squared_hinge", probability=True, fit_intercept=False, random_state=0),
    ],
)
def test_rows_sum_to_one_and_agree_with_the_labels(iris, model):
    X, y = iris
    model = clone(model).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (150, 3)
    assert_allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()
    assert np.mean(model.classes_[p.argmax(axis=1)] == model.predict(X)) > 0.95
    assert_allclose(model.predict_log_proba(X), np.log(p))
    again = clone(model).fit(X, y)
    assert_array_equal(again.probA_, model.probA_)


def test_the_fit_itself_is_the_same(iris):
    plain, with_probabilities = (
        mm.SVC(probability=wanted, random_state=0).fit(*iris) for wanted in (False, True)
    )
    assert_array_equal(plain.dual_coef_, with_probabilities.dual_coef_)
    assert_array_equal(plain.intercept_, with_probabilities.intercept_)


def test_rows_of_any_kind_give_the_same_probabilities(iris):
    X, y = iris
    model = mm.SVC(gamma=0.5, probability=True, random_state=0)
    expected = clone(model).fit(X, y).predict_proba(X)
    rows = sparse.csr_matrix(X)
    assert_allclose(clone(model).fit(rows, y).predict_proba(rows), expected, atol=1e-4)
    K = mm.kernels.RBF(gamma=0.5)(X, X)
    given = clone(model).set_params(kernel="precomputed").fit(K, y)
    assert_allclose(given.predict_proba(K), expected, atol=1e-4)
    called = clone(model).set_params(kernel=lambda A, B: mm.kernels.RBF(gamma=0.5)(A, B))
    assert_allclose(called.fit(X, y).predict_proba(X), expected, atol=1e-4)


def test_samples_of_weight_zero_do_not_count(iris):
    X, y = iris
    weights = np.ones(150)
    weights[::7] = 0.0
    weighted = mm.SVC(gamma=0.3, probability=True, random_state=0).fit(X, y, weights)
    without = mm.SVC(gamma=0.3, probability=True, random_state=0).fit(
        X[weights > 0], y[weights > 0]
    )
    assert_allclose(weighted.probA_, without.probA_, rtol=1e-6)


def test_nu_at_the_limit_of_what_is_feasible():
    X, y = make_blobs([7, 70], centers=[[0, 0], [1, 1]], random_state=0)
    model = mm.NuSVC(nu=2 * 7 / 77, probability=True, random_state=0).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_fewer_samples_than_folds():
    model = mm.SVC(kernel="linear", probability=True, random_state=0)
    model.fit([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    assert_allclose(model.predict_proba([[0.0], [2.0]]).sum(axis=1), 1.0)
    assert mm.SVC(probability=True).fit([[0.0], [1.0]], [0, 1]).predict_proba([[0.5]]).shape == (
        1,
        2,
    )


def test_not_available_unless_asked_for(iris):
    model = mm.SVC().fit(*iris)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(iris[0])
    model.probability = True
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        model.predict_proba(iris[0])
    model.fit(*iris).probability = False
    model.fit(*iris)
    assert not hasattr(model, "probA_")
    assert not hasattr(mm.SVC(probability="deprecated"), "predict_proba")
    with pytest.raises(NotFittedError):
        mm.SVC(probability=True).predict_proba(iris[0])
    with pytest.raises(ValueError, match="probability"):
        mm.SVC(probability="yes").fit(*iris)


def test_pickles_and_files_keep_them(iris, tmp_path):
    model = mm.SVC(probability=True, random_state=0).fit(*iris)
    mm.save(model, tmp_path / "model.mm")
    for copy in (pickle.loads(pickle.dumps(model)), mm.load(tmp_path / "model.mm")):
        assert_array_equal(copy.predict_proba(iris[0]), model.predict_proba(iris[0]))


def test_true_of_numpy_is_true():
    X, y = load_iris(return_X_y=True)
    model = mm.SVC(probability=np.bool_(True)).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert not hasattr(mm.SVC(probability=np.bool_(False)).fit(X, y), "predict_proba")


def test_sigmoid_of_scores_near_the_least_number_is_finite():
    scores = np.array([-2e-320, -1e-320, 1e-320, 2e-320])
    A, B = platt(scores, scores > 0.0)
    assert np.isfinite([A, B]).all()


def test_folds_share_what_a_time_limit_leaves():
    limit = TimeLimit(10.0, started=time.perf_counter())
    assert limit.shortened(0.3).seconds == 3.0
    whole, half = limit.limits(-1), limit.limits(-1, 0.5)
    assert half.seconds == pytest.approx(0.5 * whole.seconds, rel=0.2)
    assert TimeLimit(None).shortened(0.3).limits(7, 0.5) == Limits(7, None)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_time_limit_that_is_over_leaves_probabilities():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 5)), rng.integers(0, 2, size=3000)
    model = mm.SVC(C=100.0, probability=True, time_limit=1e-3).fit(X, y)
    assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1.0)
