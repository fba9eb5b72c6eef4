"""`fit`, `compare` and `demo`, end to end: models, parameters, cross-validation."""

import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from maxmargin.estimators.registry import MODELS
from tests.helpers.command_line import bad, call, good, is_picture, records, table, two_fruits

CLASSIFIERS = [name for name, variant in MODELS.items() if variant.targets == "classes"]

# demo ---------------------------------------------------------------------------------------------


def test_demo(here):
    text = good(call("demo", "--out", "pictures"))
    named = re.findall(r"^picture: (.+)$", text, re.M)
    assert len(named) >= 9
    for name in named:
        is_picture(here / name)
    assert sorted(p.name for p in (here / "pictures").iterdir()) == sorted(
        Path(name).name for name in named
    )
    assert text.count(" against ") >= 10
    assert "apple against lemon" in text
    assert "not linearly separable: the convex hulls of the classes share a point" in text
    assert "separable: a plane has margin" in text


def test_demo_as_json_of_one_pair(here):
    done = call("demo", "--pair", "lemon", "apple", "--json", "--out", "p")
    rows = records(good(done))
    assert {tuple(row["pair"]) for row in rows} == {("apple", "lemon")}
    assert len({row["algorithm"] for row in rows}) == len(rows) >= 16
    # No plane has its nearest sample farther than the widest of all.
    widest = float(re.search(r"none has more than (\S+)", rows[0]["separability"])[1])
    planes = [row for row in rows if row["kernel"] in (None, "Linear()")]
    assert len(planes) >= 12
    assert max(row["margin"] for row in planes) <= widest * (1 + 1e-6)
    assert all(row["separability"].startswith("separable") for row in rows)
    assert all(row["seconds"] > 0 for row in rows)
    named = re.findall(r"^picture: (.+)$", done.err, re.M)
    assert [Path(name).is_file() for name in named] == [True] * len(named)
    assert len(named) == 4


def test_demo_without_pictures(here):
    good(call("demo", "--no-pictures", "--pair", "apple", "orange"))
    assert sorted(p.name for p in here.iterdir()) == ["fruit.csv"]


def test_demo_of_a_bad_pair(here):
    bad(call("demo", "--pair", "apple", "stone"), "'stone'", "apple, banana", code=2)
    bad(call("demo", "--pair", "apple", "apple"), "different", code=2)
    bad(call("demo", "--out", "fruit.csv"), "fruit.csv", code=2)


# fit ----------------------------------------------------------------------------------------------


def test_fit_says_what_came_out(made):
    record = json.loads(good(made.fit))
    assert record["data"] == {
        "source": "fruit.csv", "rows": 150, "columns": 3, "target": "fruit", "dropped": [],
        "first_index": None,
        "classes": {"apple": 24, "banana": 24, "lemon": 24, "orange": 24, "pear": 24},
    }  # fmt: skip
    assert record["training_rows"] == 120
    assert record["test"]["rows"] == 30
    assert 0 <= record["test"]["error"] < 0.4
    assert record["model"] == "SVC"
    assert record["parameters"]["C"] == 10
    assert record["holds"] is True
    assert record["status"] == "converged"
    assert record["saved"] == "fruit.mm"
    assert 0 < record["support_vectors"] <= 120
    assert abs(record["proof"]["relative_gap"]) < 1e-3


def test_fit_prints_for_people(made):
    text = good(made.line)
    for words in ("SVC on two.csv", "60 rows, 3 columns", "apple (30), lemon (30)", "C=inf",
                  "certificate", "two.mm"):  # fmt: skip
        assert words in text
    assert re.search(r"training error +0.00 %, balanced accuracy 100.00 %, macro F1 1\n", text)
    assert re.search(r"baseline +50.00 %, balanced accuracy 50.00 % \(always 'apple'\)\n", text)
    # Half the width of the widest band, in the units of the file.
    verdict = mm.separability(*two_fruits(), maximum_margin=True)
    assert re.search(rf"margin +{verdict.margin:.4g}", text)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_model_fits_saves_and_predicts(here, name):
    record = json.loads(
        good(
            call(
                "fit", "fruit.csv", "--target", "fruit", "--model", name, "--out", "m.mm", "--json"
            )
        )
    )
    model = mm.load("m.mm")
    assert type(model[-1]) is type(MODELS[name]())
    assert record["model"] == type(model[-1]).__name__
    fruit = mm.datasets.load_fruit(as_frame=True)
    expected = model.predict(fruit.data)
    names = mm.datasets.load_fruit().target_names[mm.datasets.load_fruit().target]
    assert record["training_error"] == pytest.approx(np.mean(expected != names))
    rows = table(good(call("predict", "m.mm", "fruit.csv")))
    assert [row["label"] for row in rows] == expected.tolist()
    scores = model.decision_function(fruit.data)
    assert_allclose([[float(row[f"score_{c}"]) for c in model.classes_] for row in rows], scores)
    seen = json.loads(good(call("inspect", "m.mm", "--json")))
    assert seen["name"] == record["model"]
    assert seen["certificate"] == record["certificate"]


def test_fits_are_repeated_by_their_seed(here):
    def fitted(seed):
        args = ["fit", "fruit.csv", "--target", "fruit", "--model", "pocket", "--test", "0.3"]
        record = json.loads(good(call(*args, "--max-iter", 20, "--seed", seed, "--json")))
        return {k: v for k, v in record.items() if k != "seconds"}

    assert fitted(1) == fitted(1)
    assert fitted(1) != fitted(2)


def test_cross_validation_and_a_test(here):
    args = ["fit", "fruit.csv", "--target", "fruit", "--model", "linear-svc", "--cv", 5]
    alone, both = (call(*args, *more, "--json") for more in ([], ["--test", 0.2]))
    for record, n, ending in ((json.loads(good(alone)), 150, "150"),
                              (json.loads(good(both)), 120, "120")):  # fmt: skip
        cv = record["cv"]
        assert record["training_rows"] == n == int(ending)
        assert cv["folds"] == len(cv["by_fold"]["error"]) == 5
        assert 0 < cv["error"] < 0.5
        for key in ("error", "balanced_accuracy", "macro_f1", "auc"):
            values = cv["by_fold"][key]
            assert cv[key] == pytest.approx(np.mean(values))
            spread = np.std(values, ddof=1) / math.sqrt(5)
            assert cv["standard_errors"][key] == pytest.approx(spread)
        assert cv["baseline"]["error"] == pytest.approx(0.8, abs=0.05)
        assert sum(map(sum, cv["confusion"])) == n  # every row once
        assert np.trace(cv["confusion"]) == pytest.approx(n * (1 - cv["error"]), abs=0.5)
    assert record["test"]["rows"] == 30
    text = good(call(*args, "--test", 0.2))
    spread = r"\d+\.\d\d % ± \S+ %, balanced accuracy \d+\.\d\d % ± \S+ %, "
    assert re.search(rf"^cross-validation +{spread}.*\(standard errors of 5 folds\)$", text, re.M)
    assert re.search(r"^test error +\d+\.\d\d %, .*AUC 0\.\d+ \(30 rows\)$", text, re.M)
    # The test rows have no part in the folds.
    with_out = json.loads(good(call(*args[:-2], "--test", 0.2, "--json")))
    assert with_out["test"] == record["test"]


def test_parameters(here):
    fit = ["fit", "fruit.csv", "--target", "fruit", "--json"]
    record = json.loads(good(call(*fit, "--kernel", "poly", "--degree", 2, "--gamma", 0.5,
                                  "--coef0", 1, "--set", "shrinking=false")))  # fmt: skip
    assert record["parameters"] | {"degree": 2, "gamma": 0.5} == record["parameters"]
    assert record["parameters"]["shrinking"] is False
    assert "Polynomial(" in record["kernel"]
    record = json.loads(good(call(*fit, "--gamma", "auto")))
    assert record["parameters"]["gamma"] == "auto"
    record = json.loads(good(call(*fit, "--model", "linear-svc", "--loss", "hinge",
                                  "--multi-class", "crammer_singer", "--tol", 1e-6)))  # fmt: skip
    assert record["parameters"]["multi_class"] == "crammer_singer"
    record = json.loads(good(call(*fit, "--model", "nusvc", "--nu", 0.3)))
    assert record["parameters"] == {"nu": 0.3, "random_state": 0} or "nu" in record["parameters"]


def test_wrong_parameters(here):
    fit = ["fit", "fruit.csv", "--target", "fruit"]
    bad(call(*fit, "--nu", 0.3), "svc has no parameter 'nu'; it has C", code=2)
    bad(call(*fit, "--model", "perceptron", "--C", 1), "perceptron has no parameter 'C'", code=2)
    bad(call(*fit, "--set", "colour=1"), "no parameter 'colour'", code=2)
    bad(call(*fit, "--set", "callback=1"), "no parameter 'callback'", code=2)
    bad(call(*fit, "--set", "C"), "must be NAME=VALUE", code=2)
    bad(call(*fit, "--C", "much"), "--C", code=2)
    bad(call(*fit, "--test", 1), "--test", code=2)
    bad(call(*fit, "--cv", 1), "--cv", code=2)
    bad(call(*fit, "--cv", 151), "the number of rows, 150", code=2)
    bad(call(*fit, "--cv", 121, "--test", 0.2), "the number of rows, 120", code=2)
    bad(call(*fit, "--out", "nowhere/m.mm"), "the folder does not exist", code=2)
    bad(call(*fit, "--out", "."), "directory", code=2)
    bad(call(*fit, "--C", -1), "'C' parameter", "-1.0", code=2)
    bad(call(*fit, "--gamma", "wide"), "'gamma' parameter", "'wide'", code=2)
    bad(call(*fit, "--model", "nusvc", "--nu", 2), "'nu' parameter", code=2)
    bad(call(*fit, "--C", 3, "--set", "C=5"), "C is given twice", code=2)
    bad(call(*fit, "--kernel", "linear", "--gamma", 5), "--gamma needs kernel poly or rbf", code=2)
    bad(call(*fit, "--degree", 2), "--degree needs kernel poly, got rbf", code=2)
    bad(call(*fit, "--words", "fruit"), "--words fruit", code=2)
    bad(call(*fit, "--words", "mass_g", "--drop", "mass_g"), "--words mass_g", code=2)
    bad(call(*fit, "--out", "-"), "standard output", code=2)
    assert not Path("-").exists()


def test_strict(here):
    (here / "xor.csv").write_text("a,b,y\n1,1,u\n1,-1,v\n-1,-1,u\n-1,1,v\n")
    fit = ["fit", "xor.csv", "--target", "y", "--model", "perceptron", "--max-iter", 50]
    done = call(*fit, "--strict", "--json", "--out", "x.mm")
    assert done.code == 3
    record = json.loads(done.out)
    assert record["holds"] is False
    assert "not separated" in record["certificate"]
    assert done.err.startswith("warning: ")
    assert "Traceback" not in done.err
    assert (here / "x.mm").exists()
    assert good(call(*fit))
    assert good(call("fit", "xor.csv", "--target", "y", "--strict"))


def test_a_hard_margin_of_inseparable_classes(here):
    fit = ["fit", "fruit.csv", "--target", "fruit", "--kernel", "linear", "--C", "inf"]
    done = call(*fit, "--out", "m.mm")
    bad(done, "no plane separates", "convex hulls", "finite C")
    assert not (here / "m.mm").exists()


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_models_have_the_permissions_of_any_new_file(here, umask):
    before = os.umask(umask)
    try:
        good(call("fit", "fruit.csv", "--target", "fruit", "--model", "fisher", "--out", "m.mm"))
        (here / "other").touch()
    finally:
        os.umask(before)
    assert (here / "m.mm").stat().st_mode == (here / "other").stat().st_mode


def test_data_is_not_overwritten_by_the_model(here):
    before = (here / "fruit.csv").read_bytes()
    done = call("fit", "fruit.csv", "--target", "fruit", "--model", "fisher", "--out", "fruit.csv")
    assert done.code != 0
    assert (here / "fruit.csv").read_bytes() == before


def test_a_model_is_not_overwritten_by_labels(models):
    before = (models / "fruit.mm").read_bytes()
    call("predict", "fruit.mm", "fruit.csv", "--out", "fruit.mm")
    assert (models / "fruit.mm").read_bytes() == before


# compare ------------------------------------------------------------------------------------------


def test_compare(here):
    done = call("compare", "fruit.csv", "--target", "fruit", "--json", "--picture", "c.png")
    record = json.loads(good(done))
    assert [row["algorithm"] for row in record["rows"]] == CLASSIFIERS
    assert record["test_rows"] == 38
    assert record["data"]["rows"] == 112
    for row in record["rows"]:
        assert 0 <= row["training_error"] < 0.7
        assert 0 <= row["test_error"] < 0.7
        assert row["seconds"] > 0
        assert row["certificate"]
    outcomes = {row["algorithm"]: row["outcome"] for row in record["rows"]}
    assert outcomes["svc"].startswith("optimal")
    assert outcomes["linear-svc"].startswith("optimal")
    is_picture(here / "c.png")


def test_compare_as_text(here):
    text = good(call("compare", "fruit.csv", "--target", "fruit", "--test", "0.5"))
    assert "75 training rows, 75 test rows" in text
    for name in CLASSIFIERS:
        assert re.search(rf"│ {name} .* %", text)
    assert "picture: comparison.png" in text
    is_picture(here / "comparison.png")
    bad(call("compare", "fruit.csv", "--target", "kind"), "no target column 'kind'")
