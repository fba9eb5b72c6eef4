"""More than two classes: Kesler's implicit rows, one against one, one against the rest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

import maxmargin as mm
from maxmargin.multiclass import OneVsOne
from tests.helpers.algorithms import (
    ALGORITHMS,
    LINEAR,
    blobs,
    cloud,
    integers,
    materialised,
    over,
    ovo_pairs,
    quiet,
    weights_of,
)

pytestmark = quiet


# Kesler -------------------------------------------------------------------------------------------


@over([a for a in LINEAR if "shuffled" not in a.name and "radius" not in a.name
       and a.name not in ("lms", "lms-batch", "pocket")])  # fmt: skip
@pytest.mark.parametrize("n_classes", [3, 4])
def test_kesler_is_the_two_class_algorithm_on_materialised_rows(algorithm, n_classes):
    """Feed η_ij to the same estimator as ready-made samples: class 1 is η, class 0 is −η."""
    # Where there is a plane Ho-Kashyap goes on, else it may find its proof earlier or later.
    make = blobs if algorithm.name == "ho-kashyap" else integers
    X, y = make(24, 4, n_classes, seed=4)
    rows = materialised(X, y, n_classes)
    labels = np.arange(len(rows)) % 2
    options = {"max_iter": 4} if algorithm.name != "pseudoinverse" else {}
    joint = algorithm.make(multi_class="kesler", **options).fit(X, y)
    plain = algorithm.make(fit_intercept=False, **options).fit(
        np.where(labels[:, np.newaxis] == 1, rows, -rows), labels
    )
    expected = plain.coef_[0]
    np.testing.assert_allclose(
        weights_of(joint), expected, rtol=0, atol=1e-8 * np.abs(expected).max()
    )
    assert joint.n_updates_ == plain.n_updates_
    assert joint.n_iter_ == plain.n_iter_


@over([a for a in LINEAR if a.guaranteed])
def test_linear_machine_of_three_clouds(algorithm):
    X, y = blobs(90, 3, 3, seed=5)
    model = algorithm.make(multi_class="kesler", max_iter=5000).fit(X, y)
    assert model.separates_
    assert model.status_ is mm.Status.CONVERGED
    assert (model.predict(X) == y).all()
    assert len(model.certificates_) == 1
    assert (materialised(X, y, 3) @ weights_of(model) > 0).all()


def test_a_linear_machine_separates_what_one_against_the_rest_cannot():
    """Three classes on a line: the middle one is not separable from the rest."""
    X = np.array([[-3.0], [-2.0], [-0.5], [0.5], [2.0], [3.0]])
    y = np.array([0, 0, 1, 1, 2, 2])
    joint = mm.Perceptron(multi_class="kesler").fit(X, y)
    rest = mm.Perceptron(multi_class="ovr", max_iter=200).fit(X, y)
    assert joint.separates_
    assert joint.score(X, y) == 1.0
    assert not rest.separates_
    assert [c.separates for c in rest.certificates_] == [True, False, True]


def test_many_classes_need_no_materialised_rows():
    """30 classes × 2000 samples × 40 features: Kesler's rows would take 570 MB."""
    import tracemalloc

    X, y = blobs(2000, 40, 30, seed=6)
    mm.Perceptron(multi_class="kesler", max_iter=1).fit(X, y)
    tracemalloc.start()
    model = mm.Perceptron(multi_class="kesler", max_iter=200).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.separates_
    assert peak < 20e6


# One against one, one against the rest ------------------------------------------------------------


@over(ALGORITHMS)
def test_planes_of_one_against_one_are_those_of_the_pairs(algorithm):
    X, y = cloud(60, 3, 4, seed=7)
    options = {"max_iter": 5} if algorithm.name != "pseudoinverse" else {}
    options["random_state"] = 0
    options = {k: v for k, v in options.items() if k in algorithm.make().get_params()}
    if "init" in algorithm.options:
        options |= {"init": "zeros", "shuffle": False}
    model = algorithm.make(multi_class="ovo", **options).fit(X, y)
    scores = model._scores(X)
    for k, (i, j) in enumerate(ovo_pairs(4)):
        pair = np.isin(y, (i, j))
        alone = algorithm.make(**options).fit(X[pair], y[pair])
        np.testing.assert_allclose(scores[:, k], -alone.decision_function(X), rtol=1e-8, atol=1e-8)


@over(ALGORITHMS)
def test_planes_of_one_against_the_rest_are_those_alone(algorithm):
    X, y = cloud(60, 3, 3, seed=8)
    options = {"max_iter": 5} if algorithm.name != "pseudoinverse" else {}
    if "init" in algorithm.options:
        options |= {"init": "zeros", "shuffle": False}
    model = algorithm.make(multi_class="ovr", **options).fit(X, y)
    for k in range(3):
        alone = algorithm.make(**options).fit(X, y == k)
        np.testing.assert_allclose(
            model.decision_function(X)[:, k], alone.decision_function(X), rtol=1e-8, atol=1e-8
        )


@pytest.mark.parametrize("n_classes", [3, 4, 6])
def test_votes_are_scikit_learns(n_classes):
    rng = np.random.default_rng(9)
    scores = rng.normal(size=(300, n_classes * (n_classes - 1) // 2))
    scores[rng.random(scores.shape) < 0.1] = 0.0
    scores[0] = 0.0
    expected = _ovr_decision_function(scores < 0, -scores, n_classes)  # as SVC calls it
    ours = OneVsOne().confidences(scores, n_classes)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(ours.argmax(1), expected.argmax(1))


def test_a_vote_outweighs_any_score():
    scores = np.array([[1e-9, 1e-9, -1e9]])  # 0 beats 1 and 2 by a hair, 2 beats 1 by far
    assert OneVsOne().confidences(scores, 3).argmax() == 0


def test_tied_votes_are_decided_by_scores():
    scores = np.array([[1.0, -2.0, 0.5]])  # 0 beats 1, 2 beats 0, 1 beats 2
    assert OneVsOne().confidences(scores, 3).argmax() == 2


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_every_reduction_is_the_same_for_two_classes(multi_class):
    X, y = cloud(50, 3, seed=10)
    for algorithm in LINEAR:
        one = algorithm.make(multi_class=multi_class, max_iter=3).fit(X, y)
        other = algorithm.make(max_iter=3).fit(X, y)
        np.testing.assert_array_equal(weights_of(one), weights_of(other))
        assert one.coef_.shape == (1, 3)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_class_weights(multi_class):
    X, y = cloud(60, 3, 3, seed=11)
    weight = np.array([1.0, 3.0, 0.5])
    by_class = mm.Pseudoinverse(multi_class=multi_class, class_weight=dict(enumerate(weight))).fit(
        X, y
    )
    by_sample = mm.Pseudoinverse(multi_class=multi_class).fit(X, y, weight[y])
    np.testing.assert_allclose(weights_of(by_class), weights_of(by_sample), rtol=1e-9, atol=1e-12)
    balanced = mm.Pseudoinverse(multi_class=multi_class, class_weight="balanced")
    counts = np.bincount(y[:50], minlength=3)
    expected = mm.Pseudoinverse(multi_class=multi_class).fit(
        X[:50], y[:50], (50 / 3 / counts)[y[:50]]
    )
    np.testing.assert_allclose(
        weights_of(balanced.fit(X[:50], y[:50])), weights_of(expected), rtol=1e-9, atol=1e-12
    )


def test_names_of_tasks_are_reported(capsys):
    X, _ = blobs(60, 3, 3, seed=12)
    y = np.array(["apple", "lemon", "pear"])[blobs(60, 3, 3, seed=12)[1]]
    mm.Perceptron(multi_class="ovo", verbose=1).fit(X, y)
    assert "[apple against pear]" in capsys.readouterr().out
    mm.Perceptron(multi_class="kesler", verbose=1).fit(X, y)
    assert "[linear machine]" in capsys.readouterr().out
