"""Weights of samples and classes of SVC and NuSVC."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone

import maxmargin as mm
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from tests.helpers.svc import LOSSES, MODELS, TOL, N, certified, cloud, machines, signs


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 10.0}, {1: 0.2}, "balanced"])
def test_class_weights_agree_with_scikit_learn(class_weight):
    X, y = cloud()
    y = np.where(np.arange(N) % 5 == 0, y, 0)  # ten to one
    options = {"class_weight": class_weight, "tol": 1e-7, "gamma": 0.3}
    ours, theirs = mm.SVC(**options).fit(X, y), svm.SVC(**options).fit(X, y)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 3.0}, "balanced"])
def test_class_weights_are_weights_of_samples(make, class_weight):
    X, y = cloud()
    y = np.where(np.arange(N) % 3 == 0, y, 0)  # five to one
    share = {0: N / (2 * (y == 0).sum()), 1: N / (2 * (y == 1).sum())}
    of_class = share if class_weight == "balanced" else class_weight
    model = make(0.2, gamma=0.3, class_weight=class_weight, tol=1e-8).fit(X, y)
    plain = make(0.2, gamma=0.3, tol=1e-8).fit(X, y, np.array([of_class[k] for k in y]))
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-5)


def test_weights_of_the_nu_machine_agree_with_scikit_learn():
    X, y = cloud()
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    ours = mm.NuSVC(0.4, tol=1e-8, gamma=0.3).fit(X, y, weights)
    theirs = svm.NuSVC(nu=0.4, tol=1e-8, gamma=0.3).fit(X, y, weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_weights_are_costs():
    X, y = cloud()
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    model = mm.SVC(C=2.0, gamma=0.3, class_weight={0: 1.0, 1: 2.0}).fit(X, y, weights)
    upper = 2.0 * weights * np.where(y == 1, 2.0, 1.0)
    problem = DualProblem.hinge(RBF(gamma=0.3), X, signs(y), upper)
    (_, _, beta, b), = machines(model, y)  # fmt: skip
    assert certified(problem, beta * signs(y), b).holds(TOL)
    theirs = svm.SVC(C=2.0, gamma=0.3, class_weight={0: 1.0, 1: 2.0}).fit(X, y, weights)
    np.testing.assert_allclose(
        model.decision_function(X), theirs.decision_function(X), atol=10 * TOL
    )


@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_2_is_the_same_sample_twice(loss, n_classes, gamma):
    X, y = cloud(n_classes=n_classes)
    twice = np.arange(N) % 3 == 0
    model = LOSSES[loss](gamma=gamma, tol=1e-8).fit(X, y, np.where(twice, 2.0, 1.0))
    copies = clone(model).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    np.testing.assert_allclose(copies.decision_function(X), model.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_samples_of_negative_weight_are_left_out(name):
    """As scikit-learn has it; all other estimators refuse them."""
    X, y = cloud()
    weights = np.where(np.arange(N) % 4 == 1, -1.0, 1.0)
    model = getattr(mm, name)(gamma=0.3, tol=1e-7).fit(X, y, weights)
    theirs = getattr(svm, name)(gamma=0.3, tol=1e-7).fit(X, y, weights)
    assert (weights[model.support_] > 0).all()
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("loss", LOSSES)
def test_samples_of_weight_0_are_left_out(loss, kernel, gamma):
    X, y = cloud(n_classes=3)
    absent = np.arange(N) % 4 == 1
    labels = np.where(absent, 77, y)  # not even their class is seen
    model = LOSSES[loss](kernel=kernel, gamma=gamma, tol=1e-8)
    rest, n_rest = np.flatnonzero(~absent), (~absent).sum()
    if kernel == "precomputed":
        K = RBF(gamma=0.3)(X)
        model.fit(K, labels, (~absent).astype(float))
        without = clone(model).fit(K[np.ix_(rest, rest)], y[rest])
        found, expected = model.decision_function(K), without.decision_function(K[:, rest])
    else:
        model.fit(X, labels, (~absent).astype(float))
        without = clone(model).fit(X[rest], y[rest])
        found, expected = model.decision_function(X), without.decision_function(X)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not absent[model.support_].any()
    assert without.shape_fit_[0] == n_rest
