"""Measures of classes against scikit-learn: in pieces, of very many rows, undefined."""

import json
import math
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import (
    balanced_accuracy_score,
    classification_report,
    confusion_matrix,
    f1_score,
    log_loss,
    roc_auc_score,
)

import maxmargin as mm
from maxmargin.diagnostics import ranking
from maxmargin.diagnostics.answers import Answers, answers
from maxmargin.diagnostics.class_metrics import LabelTally, majority_of
from maxmargin.diagnostics.metrics import measure, merged_tallies
from maxmargin.diagnostics.ranking import Bins, RankTally


@pytest.fixture(scope="module")
def named():
    """Rows of five classes with names, and a model with probabilities."""
    X, y = make_blobs(300, centers=5, cluster_std=3.0, random_state=0)
    y = np.array(["apple", "fig", "kiwi", "lime", "pear"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.SVC(probability=True, random_state=0).fit(X[:200], y[:200])
    return model, X, y


def _in_pieces(model, X, y, cuts):
    tallies = []
    for rows in np.split(np.arange(len(y)), cuts):
        tallies.append(LabelTally.of(y[rows], *answers(model, X[rows]), model.classes_))
    return merged_tallies(tallies)


def test_many_classes_against_scikit_learn(named):
    model, X, y = named
    given, classes = model.predict(X), model.classes_
    found = _in_pieces(model, X, y, [1, 50, 51, 200]).record(classes, "fig")
    assert found["confusion"] == confusion_matrix(y, given).tolist()
    assert found["error"] == pytest.approx(np.mean(given != y))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, given))
    assert found["macro_f1"] == pytest.approx(f1_score(y, given, average="macro"))
    scores, proba = model.decision_function(X), model.predict_proba(X)
    areas = [roc_auc_score(y == label, scores[:, k]) for k, label in enumerate(classes)]
    assert found["auc"] == pytest.approx(np.mean(areas))
    assert "auc_bound" not in found
    assert found["log_loss"] == pytest.approx(log_loss(y, proba, labels=classes))
    expected = classification_report(y, given, output_dict=True)
    for k, label in enumerate(classes):
        each = found["per_class"][label]
        assert each["auc"] == pytest.approx(areas[k])
        for key, theirs in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score"),
                            ("support", "support")):  # fmt: skip
            assert each[key] == pytest.approx(expected[label][theirs])
    always = np.full(len(y), "fig")
    assert found["baseline"] == {
        "prediction": "fig",
        "error": pytest.approx(np.mean(y != "fig")),
        "balanced_accuracy": pytest.approx(balanced_accuracy_score(y, always)),
    }
    assert majority_of(y) == LabelTally.of(y, given).record(classes)["baseline"]["prediction"]
    json.dumps(found, allow_nan=False)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(), mm.SVC(decision_function_shape="ovo"), mm.SVC(break_ties=True),
        mm.SVC(multi_class="ovr"), mm.LinearSVC(), mm.LinearSVC(multi_class="crammer_singer"),
        mm.KernelPerceptron(max_iter=5), mm.Pseudoinverse(),
    ],
)  # fmt: skip
def test_answers_are_those_of_the_model(named, model):
    _, X, y = named
    model.fit(X, y)
    given = answers(model, X)
    assert (given.labels == model.predict(X)).all()
    assert given.probabilities is None
    if getattr(model, "decision_function_shape", "ovr") == "ovr":
        np.testing.assert_allclose(given.scores, model.decision_function(X))
    assert given.scores.shape == (300, 5)
    two = y < "kiwi"
    model.fit(X[two], y[two])
    np.testing.assert_allclose(answers(model, X).scores, model.decision_function(X))
    assert (answers(model, X).labels == model.predict(X)).all()


def test_answers_without_classes(named):
    _, X, _ = named
    for model in (mm.SVR().fit(X, X[:, 0]), mm.OneClassSVM().fit(X)):
        given = answers(model, X)
        assert (given.labels == model.predict(X)).all()
        assert given.scores is given.probabilities is None


# The area under the ROC curve ---------------------------------------------------------------------


@pytest.mark.parametrize("rounded", [False, True])
def test_area_beyond_the_scores_that_are_kept(monkeypatch, rounded):
    monkeypatch.setattr(ranking, "KEPT_SCORES", 5000)
    monkeypatch.setattr(ranking, "MOST_BINS", 2000)
    monkeypatch.setattr(ranking, "LEAST_BINS", 500)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 60_000)
    scores = rng.normal(size=(codes.size, 3)) + 1.5 * np.eye(3)[codes]
    scores = np.round(scores, 1) if rounded else scores
    exact = [roc_auc_score(codes == k, scores[:, k]) for k in range(3)]
    parts = np.split(np.arange(codes.size), range(1000, codes.size, 1000))
    tallies = [RankTally.of(scores[rows], codes[rows]) for rows in parts]
    one_by_one = merged_tallies(tallies)
    halves = merged_tallies([merged_tallies(tallies[:25]), merged_tallies(tallies[25:])])
    for tally in (one_by_one, halves):
        kept = sum(part.size for part in tally.scores) + sum(b.low.size for b in tally.bins)
        assert kept <= 5000 + 3 * 2 * 666
        for found, true in zip(tally.areas(), exact, strict=True):
            assert 0.0 < found.bound < 0.02
            assert abs(found.area - true) <= found.bound + 1e-12


def test_area_with_equal_scores():
    rng = np.random.default_rng(1)
    scores, codes = rng.integers(0, 5, 400).astype(float), rng.integers(0, 2, 400)
    (found,) = RankTally.of(scores, codes).areas()
    assert found.area == pytest.approx(roc_auc_score(codes, scores))
    assert found.bound == pytest.approx(0.0, abs=1e-15)
    # Bins of one score each lose nothing.
    joined = Bins.of(scores, codes == 1).joined(100).area()
    assert joined.bound <= 0.02
    assert abs(joined.area - found.area) <= joined.bound + 1e-12


# What is undefined --------------------------------------------------------------------------------


def test_rows_of_one_class_and_unknown_labels(named):
    model, X, y = named
    one = y == "fig"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measure("classes", y[one], answers(model, X[one]), model.classes_, "apple")
        other = np.where(one, "plum", y)
        unknown = measure("classes", other, answers(model, X), model.classes_)
    assert found["auc"] is None
    assert found["undefined"] == {"auc": "all rows are of one class"}
    assert found["per_class"]["kiwi"]["recall"] is None
    assert found["baseline"] == {"prediction": "apple", "error": 1.0, "balanced_accuracy": 0.0}
    assert found["balanced_accuracy"] == pytest.approx(1 - found["error"])
    assert unknown["auc"] is unknown["log_loss"] is None
    assert set(unknown["undefined"]) == {"auc", "log_loss"}
    assert unknown["per_class"]["plum"]["recall"] == 0.0
    assert unknown["balanced_accuracy"] == pytest.approx(
        np.mean([0.0, *(v["recall"] for k, v in unknown["per_class"].items()
                        if k not in ("plum", "fig"))])
    )  # fmt: skip


def test_a_class_that_is_never_predicted():
    truth, given = np.array([1, 1, 2, 3]), np.array([1, 1, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measure("classes", truth, Answers(given), [1, 2, 3, 4])
    assert found["per_class"]["2"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    assert found["per_class"]["4"] == {"precision": None, "recall": None, "f1": None, "support": 0}
    assert found["macro_f1"] == pytest.approx(f1_score(truth, given, average="macro"))
    assert "auc" not in found
    assert math.isclose(found["balanced_accuracy"], 1 / 3)
