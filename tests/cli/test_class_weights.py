"""`--class-weight` with the labels of the file."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.svm import SVC

import maxmargin as mm
from tests.helpers.command_line import FRUIT, bad, call, good


def test_weights_by_label_are_those_of_scikit_learn(here):
    fit = ["fit", "fruit.csv", "--target", "fruit", "--no-scale", "--kernel", "linear"]
    record = json.loads(good(call(*fit, "--class-weight", "apple=5, pear=0.5", "--json", "--cv", 3,
                                  "--out", "m.mm")))  # fmt: skip
    weights = {"apple": 5.0, "pear": 0.5}
    assert record["parameters"]["class_weight"] == weights
    frame = pl.read_csv(FRUIT)
    X, y = frame.drop("fruit").to_numpy(), frame["fruit"].to_numpy()
    model, theirs = mm.load("m.mm")[-1], SVC(kernel="linear", class_weight=weights).fit(X, y)
    assert model.class_weight == weights
    np.testing.assert_allclose(model.class_weight_, theirs.class_weight_)
    assert np.mean(model.predict(X) == theirs.predict(X)) > 0.98
    balanced = json.loads(good(call(*fit, "--class-weight", "balanced", "--json")))
    assert balanced["parameters"]["class_weight"] == "balanced"


@pytest.mark.parametrize("text", ["1=5,-1=1", "+1=5,-1.0=1", "1=5"])
def test_labels_that_are_numbers(signs, text):
    fit = ["fit", "d.svm", "--model", "linear-svc", "--out", "m.mm"]
    good(call(*fit, "--class-weight", text))
    weights = mm.load("m.mm")[-1].class_weight
    assert {int(k): v for k, v in weights.items()} == ({-1: 1.0} if "-1" in text else {}) | {1: 5.0}
    heavy = json.loads(good(call("evaluate", "m.mm", "d.svm", "--json")))
    good(call(*fit, "--class-weight", "1=0.01"))
    light = json.loads(good(call("evaluate", "m.mm", "d.svm", "--json")))
    assert heavy["per_class"]["1"]["recall"] > light["per_class"]["1"]["recall"]


def test_tune_takes_weights(here):
    tune = [
        "tune",
        "fruit.csv",
        "--target",
        "fruit",
        "--Cs",
        "1,10",
        "--gammas",
        "scale",
        "--cv",
        3,
    ]
    record = json.loads(good(call(*tune, "--class-weight", "apple=5", "--json")))
    assert record["parameters"]["class_weight"] == {"apple": 5.0}
    bad(call(*tune, "--class-weight", "aple=5"), "no class 'aple'", "'apple'", code=2)


def test_weights_that_cannot_be_used(here):
    fit = ["fit", "fruit.csv", "--target", "fruit", "--class-weight"]
    bad(call(*fit, "aple=5"), "no class 'aple' in fruit.csv", "it has apple, banana, lemon",
        "Did you mean 'apple'?", code=2)  # fmt: skip
    bad(call(*fit, "much"), "balanced or LABEL=WEIGHT", code=2)
    bad(call(*fit, "apple=much"), "must be a number > 0", code=2)
    bad(call(*fit, "apple=0"), "must be a number > 0", code=2)
    bad(call(*fit, "apple=1,apple=2"), "two weights", code=2)
