"""Measures of `fit`, `evaluate`, `compare` and `tune`: against scikit-learn, and as files."""

import json
import math
import re

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)

import maxmargin as mm
from tests.helpers.command_line import FRUIT, bad, call, good


def strict(text):
    """Return strict JSON: no NaN, no infinity."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def measures(path):
    return strict(path.read_text(encoding="utf-8"))


# evaluate -----------------------------------------------------------------------------------------


def test_evaluate_of_many_classes(models):
    text = good(call("evaluate", "fruit.mm", "fruit.csv", "--metrics-out", "m.json", "--json"))
    record, found = strict(text), measures(models / "m.json")
    assert found.items() >= record.items()
    assert found["command"] == "evaluate"
    assert found["maxmargin_version"] == mm.__version__
    assert found["data"] == ["fruit.csv"]
    model, frame = mm.load("fruit.mm"), pl.read_csv(FRUIT)
    X, y = frame.drop("fruit"), frame["fruit"].to_numpy()
    given, scores = model.predict(X), model.decision_function(X)
    assert record["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, given))
    assert record["macro_f1"] == pytest.approx(f1_score(y, given, average="macro"))
    areas = [roc_auc_score(y == c, scores[:, k]) for k, c in enumerate(model.classes_)]
    assert record["auc"] == pytest.approx(np.mean(areas))
    assert "log_loss" not in record
    columns = precision_recall_fscore_support(y, given)
    for k, label in enumerate(model.classes_):
        of = record["per_class"][label]
        theirs = [column[k] for column in columns]
        assert list(of.values()) == pytest.approx([*theirs, areas[k]])
    # The majority of the training rows, of which each class has as many, on these rows.
    assert record["baseline"] == pytest.approx(
        {"prediction": "apple", "error": 0.8, "balanced_accuracy": 0.2}
    )
    shown = good(call("evaluate", "fruit.mm", "fruit.csv"))
    held = record["held_out"]
    assert f"balanced accuracy {100 * held['balanced_accuracy']:.2f} %, macro F1" in shown
    assert "80.00 %, balanced accuracy 20.00 % (always 'apple')" in shown
    of = held["per_class"]["pear"]
    cells = [f"{100 * of['precision']:.2f} %", f"{100 * of['recall']:.2f} %", f"{of['f1']:.4f}"]
    assert re.search(r"pear\W+" + r"\W+".join(map(re.escape, cells)), shown)


def test_evaluate_with_probabilities_in_pieces(here, monkeypatch):
    """Two classes of numbers with probabilities, read in one piece and in many."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 2)) + y[:, None]
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame[:100].write_csv(here / "a.csv")
    frame[100:].write_csv(here / "b.csv")
    good(call("fit", "a.csv", "--target", "y", "--set", "probability=true", "--out", "m.mm"))
    args = ["evaluate", "m.mm", "b.csv", "--json"]
    whole = strict(good(call(*args)))
    monkeypatch.setattr("maxmargin.files.tabular.PIECE_VALUES", 60)
    pieces = strict(good(call(*args)))
    assert pieces.keys() == whole.keys()
    for key, value in whole.items():
        assert pieces[key] == (pytest.approx(value) if isinstance(value, float) else value)
    model, held = mm.load("m.mm"), frame[100:]
    proba = model.predict_proba(held.drop("y"))
    assert whole["log_loss"] == pytest.approx(log_loss(y[100:], proba))
    area = roc_auc_score(y[100:], model.decision_function(held.drop("y")))
    assert whole["auc"] == pytest.approx(area)
    assert "auc" not in whole["per_class"]["0"]
    assert whole["baseline"]["prediction"] == str(np.bincount(y[:100]).argmax())
    assert ", log loss 0." in good(call("evaluate", "m.mm", "b.csv"))
    frame.filter(pl.col("y") == 1).write_csv(here / "one.csv")
    done = call("evaluate", "m.mm", "one.csv", "--metrics-out", "one.json")
    text = good(done)
    assert done.err == ""
    assert "AUC –" in text
    assert "AUC: all rows are of one class" in text
    found = measures(here / "one.json")
    assert found["auc"] is None
    assert found["undefined"] == {"auc": "all rows are of one class"}
    assert found["per_class"]["0"]["recall"] is None
    assert math.isfinite(found["log_loss"])


def test_labels_that_are_never_predicted_or_unknown(models):
    rows = [*FRUIT.read_text().splitlines()[:30], "120,6,7,plum"]
    (models / "some.csv").write_text("\n".join(rows) + "\n")
    done = call("evaluate", "fruit.mm", "some.csv", "--json")
    found = strict(good(done))
    assert done.err == ""
    assert found["unknown_classes"] == ["plum"]
    assert found["auc"] is None
    assert found["undefined"]["auc"] == "some labels are not classes of the model"
    assert found["per_class"]["plum"] == {
        "precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1,
    }  # fmt: skip
    assert "AUC –" in good(call("evaluate", "fruit.mm", "some.csv"))


def test_tables_of_many_classes_are_shown_on_request(here):
    y = [f"c{k}" for k in range(22)]
    rows = [f"{k}.{j},{label}" for k, label in enumerate(y) for j in range(4)]
    (here / "many.csv").write_text("a,y\n" + "\n".join(rows) + "\n")
    fit = ["fit", "many.csv", "--target", "y", "--model", "fisher", "--out", "m.mm", "--test", 0.3]
    assert "22 classes: -v shows the measures of each" in good(call(*fit))
    text = good(call("evaluate", "m.mm", "many.csv"))
    assert "true \\ predicted" not in text
    assert "precision" not in text
    text = good(call("evaluate", "m.mm", "many.csv", "-v"))
    assert "true \\ predicted" in text
    assert len(re.findall(r"^│ c21 ", text, re.M)) == 4  # two tables of held-out and training rows
    bad(call("evaluate", "m.mm", "many.csv", "-v", "-q"), "either --quiet or --verbose", code=2)


# fit and compare ----------------------------------------------------------------------------------


def test_quiet_fit_with_measures_in_a_file(here):
    args = ["fit", "fruit.csv", "--target", "fruit", "--test", 0.2, "--cv", 3]
    done = call(*args, "--metrics-out", "m.json", "--quiet")
    assert good(done) == done.err == ""
    found = measures(here / "m.json")
    assert found["command"] == "fit"
    assert found["training_rows"] == 120
    assert found["test"]["rows"] == 30
    assert {"auc", "confusion", "per_class", "balanced_accuracy"} <= found["test"].keys()
    assert "auc" not in found["training"]  # of the labels alone
    record = json.loads(good(call(*args, "--json", "-q")))
    assert {key: record[key] for key in ("test", "training", "cv")} == {
        key: found[key] for key in ("test", "training", "cv")
    }
    before = (here / "fruit.csv").read_bytes()
    bad(call(*args, "--metrics-out", "fruit.csv"), "would replace the input", code=2)
    bad(call(*args, "--metrics-out", "nowhere/m.json"), "the folder does not exist", code=2)
    assert (here / "fruit.csv").read_bytes() == before
    assert sorted(p.name for p in here.iterdir()) == ["fruit.csv", "m.json"]


def test_compare_has_a_baseline(here):
    args = ["compare", "fruit.csv", "--target", "fruit", "--model", "svc", "--model", "fisher"]
    text = good(call(*args, "--metrics-out", "c.json"))
    heading = text.splitlines()[2]
    for column in ("training error", "test error", "test balanced accuracy", "test AUC"):
        assert column in heading
    assert re.search(r"always 'apple' +│ +79.46 % │ +81.58 % │ +20.00 % │ +– ", text)
    found = measures(here / "c.json")
    for row in found["rows"]:
        assert np.trace(row["test_confusion"]) == round(38 * (1 - row["test_error"]))
        shown = rf"{row['algorithm']} .* {100 * row['test_balanced_accuracy']:.2f} % .* "
        assert re.search(shown + f"{row['test_auc']:.4g}", text)


def test_tune_writes_the_search_and_the_test(here):
    args = [
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
    good(call(*args, "--test", 0.2, "--metrics-out", "t.json", "-q"))
    found = measures(here / "t.json")
    assert found["command"] == "tune"
    assert found["search"]["folds"] == 3
    assert found["test"]["balanced_accuracy"] > 0.5
    assert found["holds"] is True


@pytest.mark.parametrize(("model", "own"), [("svr", {"r2", "mae", "rmse"}),
                                            ("one-class", {"outlier_share"})])  # fmt: skip
def test_models_without_classes_have_no_measures_of_classes(here, model, own):
    frame = pl.read_csv(FRUIT)
    frame.drop("fruit").write_csv(here / "n.csv")
    target = ["--target", "mass_g"] if model == "svr" else []
    fit = ["fit", "n.csv", *target, "--model", model, "--test", 0.2, "--cv", 3, "--out", "m.mm"]
    text = good(call(*fit, "--metrics-out", "m.json"))
    text += good(call("evaluate", "m.mm", "n.csv", "--metrics-out", "e.json"))
    for words in ("balanced", "AUC", "F1", "recall", "log loss"):
        assert words not in text
    found = measures(here / "m.json")
    classes = {"error", "balanced_accuracy", "macro_f1", "auc", "per_class", "confusion"}
    for part in (found["training"], found["test"], found["cv"], measures(here / "e.json")):
        assert own <= part.keys()
        assert not classes & part.keys()
