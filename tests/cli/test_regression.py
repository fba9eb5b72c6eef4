"""Regressions and one-class models on the command line, end to end."""

import json
import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

import maxmargin as mm
from maxmargin.estimators.registry import MODELS
from tests.helpers.command_line import bad, call, good, is_picture, on_terminal, records, table

REGRESSIONS = [name for name, variant in MODELS.items() if variant.targets == "numbers"]
CLASSES = ["-1", "1"]


@pytest.fixture
def friedman(here):
    """Numbers as targets, a column of categories, and whole numbers."""
    X, y = make_friedman1(120, 5, noise=0.5, random_state=0)
    frame = pl.DataFrame(X, schema=[f"x{k}" for k in range(5)])
    frame = frame.with_columns(
        town=pl.Series(["Ulm", "Bonn", "Kiel"] * 40), y=y + 3.0 * (np.arange(120) % 3),
        whole=pl.Series(np.round(y).astype(int)),
    )  # fmt: skip
    frame.write_csv(here / "f.csv")
    return frame


@pytest.fixture
def sensors(here):
    """Rows of one class, with some outliers that a column names."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(90, 2)), rng.normal(size=(10, 2)) * 6.0])
    label = pl.Series(["+1"] * 90 + ["-1"] * 10)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": label})
    frame.write_csv(here / "s.csv")
    return frame


def fitted(*args):
    return json.loads(good(call("fit", *args, "--json")))


# fit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGRESSIONS)
def test_every_regression_fits_saves_predicts_and_evaluates(friedman, name):
    record = fitted("f.csv", "--target", "y", "--drop", "whole", "--model", name, "--out", "m.mm")
    model = mm.load("m.mm")
    assert type(model[-1]) is MODELS[name].type
    X, y = friedman.drop("y", "whole"), friedman["y"].to_numpy()
    expected = model.predict(X)
    assert record["model"] == type(model[-1]).__name__
    assert record["holds"] is True
    assert record["data"]["targets"] == pytest.approx(
        {"mean": y.mean(), "std": y.std(), "min": y.min(), "max": y.max()}
    )
    assert record["training"]["r2"] == pytest.approx(r2_score(y, expected))
    assert record["training"]["mae"] == pytest.approx(mean_absolute_error(y, expected))
    assert record["training"]["rmse"] == pytest.approx(root_mean_squared_error(y, expected))
    assert record["training"]["baseline"]["rmse"] == pytest.approx(y.std())
    rows = table(good(call("predict", "m.mm", "f.csv")))
    assert list(rows[0]) == ["prediction"]
    assert_allclose([float(row["prediction"]) for row in rows], expected)
    lines = records(good(call("predict", "m.mm", "f.csv", "--json")))
    assert_allclose([line["prediction"] for line in lines], expected)
    found = json.loads(good(call("evaluate", "m.mm", "f.csv", "--json")))
    assert found == {"rows": 120, **record["training"]}
    seen = json.loads(good(call("inspect", "m.mm", "--json")))
    assert seen["certificate"] == record["certificate"]
    text = good(call("inspect", "m.mm"))
    assert f"R² {record['training']['r2']:.4g}" in text
    assert "classes" not in text
    assert "planes" not in text


def test_what_is_printed(friedman):
    fit = ["fit", "f.csv", "--target", "y", "--model", "svr", "--C", 10]
    text = good(call(*fit, "--test", 0.25, "--out", "m.mm"))
    for words in ("SVR on f.csv", "90 training rows", "town (3)", "targets ", "tube ",
                  "errors up to 0.1 cost nothing", "optimal to a relative gap"):  # fmt: skip
        assert words in text
    assert re.search(r"^training +R² 0\.\d+, MAE \S+, RMSE \S+$", text, re.M)
    assert re.search(r"^test +R² 0\.\d+, MAE \S+, RMSE \S+ \(30 rows\)$", text, re.M)
    assert re.search(r"^the mean instead +R² \S+, MAE \S+, RMSE \S+$", text, re.M)
    assert "error " not in text
    text = good(call("evaluate", "m.mm", "f.csv"))
    assert re.search(r"^measures +R² 0\.\d+, MAE \S+, RMSE \S+$", text, re.M)
    assert "the mean instead" in text


def test_test_rows_are_compared_with_the_mean_of_the_training_rows(friedman):
    record = fitted("f.csv", "--target", "y", "--model", "svr", "--test", 0.25, "--out", "m.mm")
    test, mean = record["test"], record["data"]["targets"]["mean"]
    assert test["rows"] == 30
    assert test["baseline"]["prediction"] == record["training"]["baseline"]["prediction"] == mean
    assert test["r2"] > test["baseline"]["r2"]
    assert mean != pytest.approx(friedman["y"].mean())
    assert mm.persistence.about("m.mm")["data"]["targets"]["mean"] == mean


def test_cross_validation_with_standard_errors(friedman):
    fit = ["f.csv", "--target", "y", "--model", "linear-svr", "--cv", 5]
    cv = fitted(*fit)["cv"]
    assert cv["folds"] == 5
    for key in ("r2", "mae", "rmse"):
        values = cv["by_fold"][key]
        assert len(values) == 5
        assert cv[key] == pytest.approx(np.mean(values))
        assert cv["standard_errors"][key] == pytest.approx(np.std(values, ddof=1) / np.sqrt(5))
    assert cv["baseline"]["rmse"] > cv["rmse"]
    text = good(call("fit", *fit))
    assert re.search(r"R² \S+ ± \S+, MAE \S+ ± \S+, RMSE \S+ ± \S+ \(standard errors of 5", text)


def test_whole_numbers_are_numbers(friedman):
    record = fitted("f.csv", "--target", "whole", "--drop", "y", "--model", "svr", "--C", 10)
    assert "classes" not in record["data"]
    assert record["training"]["r2"] > 0.8
    (lines := [f"{k},{k % 3 + 1}" for k in range(30)]).insert(0, "a,y")
    with open("w.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    assert fitted("w.csv", "--target", "y", "--model", "svr")["data"]["targets"]["max"] == 3.0


def test_targets_that_are_not_numbers(friedman, here):
    fit = ["fit", "f.csv", "--model", "svr", "--target"]
    bad(call(*fit, "town"), "f.csv: line 2, column 'town'", "got 'Ulm'")
    bad(call("fit", "f.csv", "--target", "y"), "--model svr")
    (here / "m.csv").write_text("a,y\n1,2\n2,\n3,4\n")
    for command in ("fit", "compare"):
        bad(call(command, "m.csv", "--target", "y", "--model", "svr"),
            "m.csv: line 3, column 'y': the target is missing")  # fmt: skip
    bad(call("fit", "f.csv", "--model", "svr"), "f.csv: pass the column of labels")


def test_constant_targets_and_few_rows(here):
    (here / "c.csv").write_text("a,y\n1,7\n2,7\n3,7\n")
    record = fitted("c.csv", "--target", "y", "--model", "svr", "--out", "c.mm")
    assert record["training"]["rmse"] <= 0.1
    assert record["training"]["r2"] is None
    assert "R² –" in good(call("evaluate", "c.mm", "c.csv"))
    (here / "one.csv").write_text("a,y\n1,7\n")
    assert fitted("one.csv", "--target", "y", "--model", "linear-svr")["training"]["mae"] < 1e-6
    bad(call("fit", "one.csv", "--target", "y", "--model", "svr", "--test", 0.5), "too few rows")


def test_many_whole_numbers_as_classes_are_warned_of(here):
    rows = "".join(f"{k},{k % 60}\n" for k in range(300))
    (here / "m.csv").write_text("a,y\n" + rows)
    done = call("fit", "m.csv", "--target", "y", "--model", "pseudoinverse")
    good(done)
    assert "60 different whole numbers are 60 classes here: use --model svr" in done.err


def test_options_of_regressions(friedman):
    fit = ["f.csv", "--target", "y"]
    record = fitted(*fit, "--model", "svr", "--epsilon", 0.5, "--kernel", "poly", "--degree", 2,
                    "--coef0", 1, "--loss", "squared_epsilon_insensitive")  # fmt: skip
    assert record["parameters"]["epsilon"] == record["epsilon"] == 0.5
    assert record["parameters"]["loss"] == "squared_epsilon_insensitive"
    record = fitted(*fit, "--model", "nu-svr", "--nu", 0.2, "--gamma", 0.1)
    assert record["parameters"]["nu"] == 0.2
    assert record["epsilon"] > 0
    assert fitted(*fit, "--model", "linear-svr", "--solver", "newton")["epsilon"] == 0.0
    for name, wrong in (("svr", ["--nu", 0.2]), ("nu-svr", ["--epsilon", 1]),
                        ("linear-svr", ["--kernel", "rbf"]), ("one-class", ["--C", 1]),
                        ("svr", ["--class-weight", "balanced"]), ("svc", ["--epsilon", 1]),
                        ("svr", ["--multi-class", "ovr"])):  # fmt: skip
        said = f"{name} has no parameter '{wrong[0][2:].replace('-', '_')}'"
        bad(call("fit", *fit, "--model", name, *wrong), said, code=2)
    bad(call("fit", *fit, "--model", "svr", "--epsilon", -1), "'epsilon' parameter", code=2)
    bad(call("fit", *fit, "--model", "svr", "--loss", "hinge"), "'loss' parameter", code=2)
    bad(call("fit", *fit, "--model", "svc", "--loss", "epsilon_insensitive"), "'loss'", code=2)
    bad(call("fit", *fit, "--model", "nu-svr", "--nu", 2), "'nu' parameter", code=2)


def test_strict_follows_the_certificate(friedman):
    fit = ["fit", "f.csv", "--target", "y", "--model", "svr", "--C", 100, "--strict", "--json"]
    assert json.loads(good(call(*fit)))["holds"] is True
    done = call(*fit, "--max-iter", 3)
    assert done.code == 3
    assert json.loads(done.out)["holds"] is False


@pytest.mark.parametrize("kind", ["parquet", "npz", "svm"])
def test_other_formats(here, kind):
    X, y = make_friedman1(80, 5, random_state=0)
    if kind == "parquet":
        frame = pl.DataFrame(X, schema=[f"x{k}" for k in range(5)])
        frame.with_columns(y=y).write_parquet(here / "d.parquet")
    elif kind == "npz":
        np.savez(here / "d.npz", X=X, y=y)
    else:
        lines = [f"{t!r} " + " ".join(f"{k}:{v!r}" for k, v in enumerate(row, 1))
                 for row, t in zip(X.tolist(), y.tolist(), strict=True)]  # fmt: skip
        (here / "d.svm").write_text("\n".join(lines) + "\n")
    target = [] if kind == "svm" else ["--target", "y"]
    record = fitted(f"d.{kind}", *target, "--model", "svr", "--out", "m.mm")
    found = json.loads(good(call("evaluate", "m.mm", f"d.{kind}", "--json")))
    assert found["r2"] == pytest.approx(record["training"]["r2"])
    one = fitted(f"d.{kind}", "--model", "one-class", "--out", "o.mm")
    found = json.loads(good(call("evaluate", "o.mm", f"d.{kind}", "--json")))
    assert found["outlier_share"] == one["training"]["outlier_share"]


# One-class ----------------------------------------------------------------------------------------


def test_one_class(sensors):
    record = fitted("s.csv", "--target", "label", "--model", "one-class", "--nu", 0.1, "--out",
                    "o.mm")  # fmt: skip
    assert record["data"] | {"columns": 2, "target": "label"} == record["data"]
    assert record["holds"] is True
    model, X = mm.load("o.mm"), sensors.drop("label")
    expected = model.predict(X)
    assert record["training"] == {"outlier_share": np.mean(expected < 0)}
    rows = table(good(call("predict", "o.mm", "s.csv")))
    assert list(rows[0]) == ["label", "score"]
    assert [int(row["label"]) for row in rows] == expected.tolist()
    assert_allclose([float(row["score"]) for row in rows], model.decision_function(X))
    rows = table(good(call("predict", "o.mm", "s.csv", "--no-scores")))
    assert [row["label"] for row in rows] == [str(label) for label in expected]
    lines = records(good(call("predict", "o.mm", "s.csv", "--json")))
    assert [line["label"] for line in lines] == expected.tolist()


def test_one_class_without_labels(sensors, here):
    sensors.drop("label").write_csv(here / "bare.csv")
    fit = ["--model", "one-class", "--nu", 0.1]
    given = fitted("s.csv", "--target", "label", *fit, "--out", "o.mm")
    bare = fitted("bare.csv", *fit)
    assert bare["training"] == given["training"]
    assert bare["data"]["target"] is None
    found = json.loads(good(call("evaluate", "o.mm", "bare.csv", "--json")))
    assert found["labels"] is None
    assert found["rows"] == 100


def test_outliers_are_counted_by_label(sensors):
    good(call("fit", "s.csv", "--target", "label", "--model", "one-class", "--nu", 0.1, "--out",
              "o.mm"))  # fmt: skip
    found = json.loads(good(call("evaluate", "o.mm", "s.csv", "--json")))
    outside = mm.load("o.mm").predict(sensors.drop("label")) < 0
    true = sensors["label"].to_numpy() == "-1"
    assert found["labels"] == {
        "-1": {"rows": 10, "outliers": int((outside & true).sum())},
        "1": {"rows": 90, "outliers": int((outside & ~true).sum())},
    }
    assert found["outliers"] == outside.sum()
    assert found["nu"] == 0.1
    text = good(call("evaluate", "o.mm", "s.csv"))
    assert "(ν = 0.1)" in text
    for label in CLASSES:
        of = found["labels"][label]
        assert re.search(rf"│ {label} +│ +{of['rows']} │ +{of['outliers']} │", text)
    bad(call("evaluate", "o.mm", "s.csv", "--target", "kind"), "no target column 'kind'")


def test_one_class_measures_on_other_rows(sensors):
    fit = ["s.csv", "--target", "label", "--model", "one-class"]
    record = fitted(*fit, "--test", 0.25)
    assert record["training_rows"] == 75
    assert record["test"]["rows"] == 25
    assert 0 < record["test"]["outlier_share"] < 1
    cv = fitted(*fit, "--cv", 4)["cv"]
    assert len(cv["by_fold"]["outlier_share"]) == 4
    text = good(call("fit", *fit, "--cv", 4))
    assert re.search(r"training outliers +\S+ % \(ν = 0\.5\)", text)
    assert re.search(
        r"cross-validation +\S+ % ± \S+ % outliers \(standard errors of 4 folds\)", text
    )


def test_labels_of_npz_have_no_effect_on_a_one_class_fit(here):
    np.savez(here / "d.npz", X=np.random.default_rng(0).normal(size=(50, 2)), y=np.ones(50))
    fit = ["fit", "d.npz", "--model", "one-class", "--out", "o.mm"]
    bad(call(*fit, "--target", "y"), "--target has no effect", code=2)
    good(call(*fit))
    assert (
        json.loads(good(call("evaluate", "o.mm", "d.npz", "--json")))["labels"]["1"]["rows"] == 50
    )


# compare, plot, report, convert -------------------------------------------------------------------


def test_compare_regressions(friedman, here):
    chosen = [word for name in REGRESSIONS for word in ("--model", name)]
    compare = ["compare", "f.csv", "--target", "y", "--drop", "whole", *chosen]
    record = json.loads(good(call(*compare, "--json")))
    assert [row["algorithm"] for row in record["rows"]] == REGRESSIONS
    assert "picture" not in record
    for row in record["rows"]:
        assert row["outcome"] == "optimal"
        assert row["test_baseline"]["rmse"] > row["test_rmse"] > 0
        assert row["training_r2"] > 0.5
    text = good(call(*compare))
    assert "90 training rows, 30 test rows" in text
    for words in ("test R²", "test MAE", "test RMSE", "│ the mean "):
        assert words in text
    assert sorted(p.name for p in here.iterdir()) == ["f.csv", "fruit.csv"]
    bad(call(*compare, "--picture", "c.png"), "--picture is for classifiers", code=2)
    bad(call(*compare, "--model", "svc"), "svr (a regression) and svc (a classifier)", code=2)
    bad(call(*compare, "--model", "one-class"), "one-class (a one-class model)", code=2)


def test_compare_chosen_classifiers(here):
    compare = ["compare", "fruit.csv", "--target", "fruit", "--model", "svc", "--model", "fisher"]
    record = json.loads(good(call(*compare, "--json")))
    assert [row["algorithm"] for row in record["rows"]] == ["svc", "fisher"]
    is_picture(here / "comparison.png")


def test_pictures_and_reports(friedman, sensors, here):
    good(call("fit", "f.csv", "--target", "y", "--model", "svr", "--out", "m.mm"))
    good(call("fit", "s.csv", "--target", "label", "--model", "one-class", "--out", "o.mm"))
    assert good(call("plot", "m.mm", "f.csv")) == "regression: regression.png\n"
    assert good(call("plot", "o.mm", "s.csv")) == "boundary: boundary.png\n"
    good(call("plot", "m.mm", "--kind", "convergence", "--out", "c.png"))
    good(call("plot", "f.csv", "--target", "y", "--model", "linear-svr", "--out", "d.png"))
    good(call("plot", "f.csv", "--target", "y", "--kind", "regression", "--out", "e.png"))
    good(call("plot", "m.mm", "f.csv", "--kind", "support", "--out", "g.png"))
    good(call("plot", "o.mm", "s.csv", "--kind", "support", "--out", "h.png"))
    for name in ("regression", "boundary", "c", "d", "e", "g", "h"):
        is_picture(here / f"{name}.png")
    for args, said in (
        (["m.mm", "f.csv", "--kind", "boundary"], "not for m.mm, a regression: pass regression or"),
        (["m.mm", "f.csv", "--kind", "path"], "not for m.mm, a regression"),
        (["o.mm", "s.csv", "--kind", "regression"], "not for o.mm, a one-class model"),
        (["f.csv", "--target", "y", "--model", "svr", "--kind", "animation"], "--model svr"),
        (["f.csv", "--target", "y", "--model", "svr", "--pair", "1", "2"], "--pair is for classes"),
        (["m.mm", "f.csv", "--kind", "support", "--pair", "1", "2"], "--pair is for classes"),
    ):
        bad(call("plot", *args), said, code=2)
    good(call("report", "m.mm", "f.csv", "--out", "m.html"))
    assert (
        "always answering the mean of the training targets, off by" in (here / "m.html").read_text()
    )
    good(call("report", "o.mm", "s.csv", "--out", "o.html"))
    assert "rows are outliers" in (here / "o.html").read_text()


def test_models_are_copied(friedman):
    good(call("fit", "f.csv", "--target", "y", "--model", "svr", "--out", "m.mm"))
    expected = good(call("predict", "m.mm", "f.csv"))
    done = good(call("convert", "m.mm", "--to", "maxmargin", "--out", "n.mm"))
    assert done == "SVR written as maxmargin: n.mm\n"
    assert good(call("predict", "n.mm", "f.csv")) == expected
    assert good(call("predict", "m.mm", "f.csv", "--out", "p.csv")) == "120 rows predicted: p.csv\n"
    bad(call("predict", "m.mm", "f.csv", "--no-scores"), "--no-scores has no effect", code=2)


def test_models_that_the_library_saved(friedman):
    X, y = friedman.select(f"x{k}" for k in range(5)).to_numpy(), friedman["y"].to_numpy()
    model = mm.SVR().fit(X, y)
    mm.save(model, "m.mm")
    np.savez("d.npz", X=X, y=y)
    found = json.loads(good(call("evaluate", "m.mm", "d.npz", "--json")))
    assert found["r2"] == pytest.approx(model.score(X, y))
    assert "baseline" not in found
    assert "SVR" in good(call("inspect", "m.mm"))


def test_models_of_libsvm_have_no_nu_and_no_tube(friedman, sensors):
    X, y = friedman.select(f"x{k}" for k in range(5)).to_numpy(), friedman["y"].to_numpy()
    np.savez("d.npz", X=X, y=y)
    for name in ("svr", "nu-svr", "one-class"):
        model = MODELS[name]().fit(X, y)
        mm.persistence.save_libsvm(model, "m.model")
        text = good(call("inspect", "m.model"))
        assert "tube" not in text
        assert "none: trained by another program" in text
        found = json.loads(good(call("evaluate", "m.model", "d.npz", "--json")))
        if name == "one-class":
            assert found["nu"] is None
            assert found["outliers"] == (model.predict(X) < 0).sum()
            assert "ν" not in good(call("evaluate", "m.model", "d.npz"))
        else:
            assert found["r2"] == pytest.approx(model.score(X, y))
            drawn = call("plot", "m.model", "d.npz", "--out", "m.png")
            bad(drawn, "does not hold the width of its tube")


@pytest.mark.parametrize(("name", "target"), [("svr", "y"), ("one-class", "label")])
def test_a_feature_of_the_model_is_no_target(friedman, sensors, name, target):
    file, feature = ("f.csv", "x0") if target == "y" else ("s.csv", "a")
    good(call("fit", file, "--target", target, "--model", name, "--out", "m.mm"))
    done = call("evaluate", "m.mm", file, "--target", feature)
    bad(done, f"column {feature!r} is a feature of the model and cannot be its target")


def test_a_cost_far_below_the_unit_of_the_target_is_told(friedman):
    friedman.with_columns(y=friedman["y"] * 1e5).write_csv("big.csv")
    fit = ["big.csv", "--target", "y", "--model", "svr"]
    done = call("fit", *fit)
    good(done)
    assert "warning: C = 1 is only 2e-06 standard deviations of y" in done.err
    assert len(fitted(*fit)["advice"]) == 1
    assert fitted(*fit, "--C", 1e6)["advice"] == []
    assert "ε = 1e+07 is at least half the range" in call("fit", *fit, "--epsilon", 1e7).err


def test_compare_warns_in_a_line_of_unseen_categories(here):
    rows = "x,town,y\n1,Ulm,1\n2,Bonn,2\n"
    (here / "two.csv").write_text(rows)
    done = call("compare", "two.csv", "--target", "y", "--model", "svr", "--test", "0.5")
    good(done)
    assert "warning: Categories that the fit has not seen: 1 in column 'town'." in done.err
    assert "UserWarning" not in done.err


def test_progress_of_a_regression(here):
    X, y = make_friedman1(3000, 5, noise=1.0, random_state=0)
    np.savez(here / "d.npz", X=X, y=y)
    done = on_terminal("fit", "d.npz", "--model", "svr", "--C", "10", cwd=here)
    assert done.code == 0, done.err
    assert "violation" in done.err
    assert "mistakes" not in done.err
