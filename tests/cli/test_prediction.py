"""`predict`, `evaluate` and the model files that they read."""

import csv
import io
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

import maxmargin as mm
from tests.helpers.command_line import FRUIT, bad, call, good, records, run, table

# predict ------------------------------------------------------------------------------------------


def test_predict_to_a_file(models):
    done = run("predict", "fruit.mm", "fruit.csv", "--out", "labels.csv", cwd=models)
    assert good(done) == "150 rows labelled: labels.csv\n"
    rows = table((models / "labels.csv").read_text())
    model = mm.load("fruit.mm")
    assert list(rows[0]) == ["label", *(f"score_{c}" for c in model.classes_)]
    data = mm.datasets.load_fruit(as_frame=True).data
    assert [row["label"] for row in rows] == model.predict(data).tolist()
    scores = [[float(row[f"score_{c}"]) for c in model.classes_] for row in rows]
    assert_allclose(scores, model.decision_function(data))
    assert good(call("predict", "fruit.mm", "fruit.csv")) == (models / "labels.csv").read_text()


def test_predict_of_two_classes_and_json(models):
    model = mm.load("two.mm")
    data = mm.datasets.load_fruit(as_frame=True).data
    expected = model.decision_function(data)
    rows = table(good(call("predict", "two.mm", "fruit.csv")))
    assert list(rows[0]) == ["label", "score_lemon"]
    assert_allclose([float(row["score_lemon"]) for row in rows], expected)
    assert all((row["label"] == "lemon") == (float(row["score_lemon"]) > 0) for row in rows)
    lines = records(good(call("predict", "two.mm", "fruit.csv", "--json")))
    assert_allclose([line["score"] for line in lines], expected)
    lines = records(good(call("predict", "fruit.mm", "fruit.csv", "--json")))
    assert list(lines[0]["scores"]) == mm.load("fruit.mm").classes_.tolist()
    assert good(call("predict", "two.mm", "fruit.csv", "--no-scores")).splitlines()[0] == "label"
    lines = records(good(call("predict", "two.mm", "fruit.csv", "--no-scores", "--json")))
    assert lines[0] == {"label": model.predict(data)[0]}


def test_columns_are_found_by_name(models):
    frame = pl.read_csv(FRUIT)
    expected = good(call("predict", "fruit.mm", "fruit.csv"))
    turned = frame.select("height_cm", "fruit", "mass_g", "width_cm").with_columns(note=pl.lit("?"))
    turned.write_csv(models / "turned.csv")
    assert good(call("predict", "fruit.mm", "turned.csv")) == expected
    turned.write_parquet(models / "turned.parquet")
    assert good(call("predict", "fruit.mm", "turned.parquet")) == expected
    frame.rename({"mass_g": "mass"}).write_csv(models / "other.csv")
    done = call("predict", "fruit.mm", "other.csv", "--out", "o.csv")
    bad(done, "other.csv: the columns 'mass_g', on which", "the file has mass,")
    assert not (models / "o.csv").exists()


@pytest.mark.parametrize("old", [None, "the labels of yesterday\n"])
def test_a_failed_predict_leaves_no_part_of_a_file(models, old):
    text = FRUIT.read_text()
    header, rows = text.split("\n", 1)
    (models / "new.csv").write_text(f"{header}\n{rows * 150}1.0,oops,2.0,apple\n")
    if old:
        (models / "labels.csv").write_text(old)
    before = sorted(p.name for p in models.iterdir())
    bad(call("predict", "fruit.mm", "new.csv", "--out", "labels.csv"), "line 22502: 'oops'")
    assert sorted(p.name for p in models.iterdir()) == before
    if old:
        assert (models / "labels.csv").read_text() == old


def test_predict_where_nothing_can_be_written(models):
    done = call("predict", "fruit.mm", "fruit.csv", "--out", "nowhere/labels.csv")
    bad(done, "nowhere", code=2)


@pytest.mark.parametrize("command", ["predict", "report"])
def test_the_folder_that_is_not_there_is_named(models, command):
    done = call(command, "fruit.mm", "fruit.csv", "--out", "nowhere/file.html")
    assert ".tmp" not in bad(done, "nowhere", code=2)


def test_scores_of_pairs_have_their_names(here):
    good(call("fit", "fruit.csv", "--target", "fruit", "--set", "decision_function_shape=ovo",
              "--out", "m.mm"))  # fmt: skip
    lines = list(csv.reader(io.StringIO(good(call("predict", "m.mm", "fruit.csv")))))
    pairs = [f"score_{a}_vs_{b}" for a, b in combinations(mm.load("m.mm").classes_, 2)]
    assert lines[0] == ["label", *pairs]
    scores = mm.load("m.mm").decision_function(pl.read_csv("fruit.csv").drop("fruit"))
    assert_allclose(np.array(lines[1:])[:, 1:].astype(float), scores)


def test_the_reader_of_our_output_goes_away(models):
    command = f"{shlex.quote(sys.executable)} -m maxmargin predict fruit.mm big.csv | head -1"
    header, rows = FRUIT.read_text().split("\n", 1)
    (models / "big.csv").write_text(header + "\n" + rows * 50)
    done = subprocess.run(
        ["bash", "-c", command], cwd=models, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.startswith("label,")
    assert done.stderr == ""


def test_wrong_order_or_names_in_the_library(models):
    model = mm.load("fruit.mm")
    data = mm.datasets.load_fruit(as_frame=True).data
    for frame in (data, pl.from_pandas(data)):
        turned = frame[["width_cm", "mass_g", "height_cm"]]
        with pytest.raises(ValueError, match="must be in the same order"):
            model.predict(turned)
        renamed = turned.rename(columns=str.upper) if frame is data else turned.rename(str.upper)
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(renamed)


# Other columns, and other files ------------------------------------------------------------------


@pytest.fixture
def numbered(models):
    """New rows with columns that the model does not use, and one that it uses."""
    frame = pl.read_csv(FRUIT)
    n = len(frame)
    frame = frame.with_columns(
        id=pl.arange(1, n + 1), code=pl.format("{}", pl.arange(1001, n + 1001)).str.tail(3),
        note=pl.lit('a "word", and more'), weight=pl.col("mass_g"),
    )  # fmt: skip
    frame.write_csv(models / "new.csv")
    frame.write_parquet(models / "new.parquet")
    return frame


@pytest.mark.parametrize("source", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.parquet", "p.feather", "p.jsonl"])
def test_kept_columns_in_every_format(models, numbered, monkeypatch, source, name):
    monkeypatch.setattr("maxmargin.files.tabular.PIECE_VALUES", 9000)  # 1000 rows, the least
    args = ["predict", "fruit.mm", source, "--keep", "id,code", "--keep", "note", "--keep",
            "mass_g", "--out", name]  # fmt: skip
    as_json = ["--json"] if name.endswith("jsonl") else []
    good(call(*args, *as_json))
    if as_json:
        lines = records((models / name).read_text())
        rows = pl.DataFrame([{k: v for k, v in line.items() if k != "scores"} for line in lines])
        assert list(lines[0]["scores"]) == mm.load("fruit.mm").classes_.tolist()
    else:
        text = {"infer_schema_length": None, "schema_overrides": {"code": pl.String}}
        read = {"csv": lambda p: pl.read_csv(p, **text), "parquet": pl.read_parquet,
                "tsv": lambda p: pl.read_csv(p, separator="\t", **text),
                "feather": pl.read_ipc}[name.split(".")[1]]  # fmt: skip
        rows = read(models / name)
        scores = [f"score_{c}" for c in mm.load("fruit.mm").classes_]
        assert rows.columns == ["id", "code", "note", "mass_g", "label", *scores]
        assert rows[scores].dtypes == [pl.Float64] * 5
        expected = mm.load("fruit.mm").decision_function(numbered[["mass_g", "width_cm",
                                                                   "height_cm"]])  # fmt: skip
        assert_allclose(rows[scores].to_numpy(), expected)
    for column in ("id", "code", "note", "mass_g"):
        given = rows[column]
        if as_json and source == "new.csv":  # text, as it is in the file
            assert given.dtype == pl.String
            given = given.cast(numbered[column].dtype)
        assert given.to_list() == numbered[column].to_list()
    labels = table(good(call("predict", "fruit.mm", source, "--no-scores")))
    assert rows["label"].to_list() == [row["label"] for row in labels]


def test_many_pieces_of_other_types_make_one_file(here, monkeypatch):
    monkeypatch.setattr("maxmargin.files.tabular.PIECE_VALUES", 1)  # 1000 rows
    rows = [f"{k % 7},{'A' if k > 2000 else ''}{k},{k % 2}" for k in range(2500)]
    (here / "d.csv").write_text("a,id,y\n" + "\n".join(rows) + "\n")
    good(
        call("fit", "d.csv", "--target", "y", "--drop", "id", "--model", "fisher", "--out", "m.mm")
    )
    good(call("predict", "m.mm", "d.csv", "--keep", "id,a", "--out", "p.parquet"))
    found = pl.read_parquet(here / "p.parquet")
    assert found.columns == ["id", "a", "label", "score_1"]
    assert found["id"].to_list() == [row.split(",")[1] for row in rows]
    assert found["a"].dtype == pl.Int64
    assert found["label"].dtype == pl.Int64


def test_all_columns_are_kept_beside_a_label(models, numbered):
    frame = numbered.with_columns(label=pl.lit("mine"), score_apple=pl.lit(1))
    frame.write_csv(models / "again.csv")
    rows = pl.read_csv(good(call("predict", "fruit.mm", "again.csv", "--keep", "all")).encode())
    assert rows.columns[: len(frame.columns)] == frame.columns
    assert rows.columns[len(frame.columns) :][:3] == [
        "predicted_label", "predicted_score_apple", "score_banana",
    ]  # fmt: skip
    rows.write_csv(models / "twice.csv")
    done = call("predict", "fruit.mm", "twice.csv", "--keep", "all", "--out", "o.csv")
    bad(done, "--keep predicted_label", "a column of this name", code=2)
    assert not (models / "o.csv").exists()
    bad(call("predict", "fruit.mm", "new.csv", "--keep", "idd"), "no kept column 'idd'", "'id'")
    np.savez(models / "bare.npz", X=np.ones((2, 3)))
    bad(call("predict", "fruit.mm", "bare.npz", "--keep", "id"), "keep needs names of columns")
    bad(call("predict", "fruit.mm", "new.csv", "--out", "p.csv.gz"), "such as .csv", code=2)
    bad(call("predict", "fruit.mm", "new.csv", "--out", "p.parquet", "--json"), ".jsonl", code=2)
    assert good(call("predict", "fruit.mm", "new.csv", "--out", "p.csv", "-q")) == ""


def test_probabilities(here):
    good(
        call("fit", "fruit.csv", "--target", "fruit", "--set", "probability=true", "--out", "m.mm")
    )
    model, X = mm.load("m.mm"), pl.read_csv(FRUIT).drop("fruit")
    rows = pl.read_csv(
        good(call("predict", "m.mm", "fruit.csv", "--proba", "--no-scores")).encode()
    )
    assert rows.columns == ["label", *(f"probability_{c}" for c in model.classes_)]
    assert_allclose(rows.drop("label").to_numpy(), model.predict_proba(X))
    line = records(good(call("predict", "m.mm", "fruit.csv", "--proba", "--json")))[0]
    assert list(line) == ["label", "scores", "probabilities"]
    assert sum(line["probabilities"].values()) == pytest.approx(1.0)


def test_models_without_probabilities(models):
    done = call("predict", "two.mm", "fruit.csv", "--proba")
    bad(done, "two.mm has no probabilities", "--set probability=true", code=2)


# evaluate -----------------------------------------------------------------------------------------


def test_evaluate(models):
    fruit = mm.datasets.load_fruit(as_frame=True)
    y = mm.datasets.load_fruit().target_names[mm.datasets.load_fruit().target]
    model = mm.load("fruit.mm")
    expected = confusion_matrix(y, model.predict(fruit.data))
    record = json.loads(good(call("evaluate", "fruit.mm", "fruit.csv", "--json")))
    assert record["confusion"] == expected.tolist()
    assert record["classes"] == model.classes_.tolist()
    assert record["rows"] == 150
    assert record["errors"] == 150 - np.trace(expected)
    assert record["error"] == pytest.approx(record["errors"] / 150)
    assert record["unknown_classes"] == []
    text = good(call("evaluate", "fruit.mm", "fruit.csv"))
    parts = [record["held_out"], record["training"]]
    assert sum(part["errors"] for part in parts) == record["errors"]
    assert (np.sum([part["confusion"] for part in parts], axis=0) == expected).all()
    for part in parts:
        assert re.search(rf"^errors +{part['errors']}$", text, re.M)
        for label, counts in zip(model.classes_, part["confusion"], strict=True):
            assert re.search(rf"{label}\W+" + r"\W+".join(map(str, counts)), text)


def test_evaluate_with_other_labels(models):
    record = json.loads(good(call("evaluate", "two.mm", "fruit.csv", "--json")))
    assert record["unknown_classes"] == ["banana", "orange", "pear"]
    assert record["errors"] == 90
    assert np.sum(record["confusion"]) == 150
    good(call("evaluate", "two.mm", "fruit.csv"))
    bad(call("evaluate", "fruit.mm", "fruit.csv", "--target", "kind"), "column 'kind'")
    pl.read_csv(FRUIT).drop("fruit").write_csv(models / "bare.csv")
    bad(call("evaluate", "fruit.mm", "bare.csv"), "bare.csv: there is no target column 'fruit'")


def test_labels_of_numbers_and_words_mean_the_same_in_every_file(here):
    (here / "a.csv").write_text("a,y\n1,01\n2,01\n8,02\n9,02\n20,x\n21,x\n")
    good(call("fit", "a.csv", "--target", "y", "--C", 100, "--out", "m.mm"))
    assert json.loads(good(call("evaluate", "m.mm", "a.csv", "--json")))["errors"] == 0
    (here / "b.csv").write_text("a,y\n1,01\n2,01\n")
    assert json.loads(good(call("evaluate", "m.mm", "b.csv", "--json")))["errors"] == 0


# Bad models ---------------------------------------------------------------------------------------


class Trap:
    def __reduce__(self):
        return os.system, ("touch trapped",)


BAD_MODELS = {
    "truncated": lambda model: model[: len(model) // 2],
    "cut": lambda model: model[:100],
    "longer": lambda model: model + b"more",
    "changed": lambda model: model[:-9] + bytes([model[-9] ^ 1]) + model[-8:],
    "pickle": lambda model: pickle.dumps(Trap()),
    "text": lambda model: FRUIT.read_bytes(),
    "empty": lambda model: b"",
    "json": lambda model: b'{"model": 1}',
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_bad_models(models, name):
    (models / "bad.mm").write_bytes(BAD_MODELS[name]((models / "fruit.mm").read_bytes()))
    for command in (["predict", "bad.mm", "fruit.csv"], ["inspect", "bad.mm"],
                    ["evaluate", "bad.mm", "fruit.csv"], ["report", "bad.mm", "fruit.csv"],
                    ["convert", "bad.mm", "--to", "json"]):  # fmt: skip
        bad(call(*command), "bad.mm")
    assert not (models / "trapped").exists()
    assert not (models / "bad.json").exists()


def test_bad_models_in_processes(models):
    (models / "bad.mm").write_bytes(pickle.dumps(Trap()))
    bad(call("inspect", "bad.mm"), "bad.mm", "pickle")
    assert not (models / "trapped").exists()
    bad(call("evaluate", "nowhere.mm", "fruit.csv"), "nowhere.mm: no such file")
    bad(call("inspect", "."), "got a folder")
    bad(call("predict", ".", "fruit.csv"), "got a folder")


@pytest.fixture
def six(here):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    lines = [f"{a:g},{b:g},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (here / "six.csv").write_text("x1,x2,y\n" + "\n".join(lines) + "\n")
    return X, y


def test_models_that_the_library_saved(here, six):
    mm.save(mm.SVC(kernel="linear", C=100).fit(*six), "six.mm")
    rows = table(good(call("predict", "six.mm", "six.csv", "--target", "y")))
    assert [int(row["label"]) for row in rows] == six[1].tolist()
    assert (
        json.loads(good(call("evaluate", "six.mm", "six.csv", "--target", "y", "--json")))["errors"]
        == 0
    )
    text = good(call("inspect", "six.mm"))
    assert "-0.333333" in text
    assert "0.2" in text
    assert "0.133333" in text
    bad(call("predict", "six.mm", "six.csv"), "3 features", "expecting 2")


@pytest.mark.parametrize("command", ["inspect", "evaluate", "report", "plot"])
def test_facts_of_ones_own(here, six, command):
    # As the docstring of save shows it.
    mm.save(mm.SVC(kernel="linear", C=100).fit(*six), "six.mm", about={"data": "six points"})
    data = [] if command == "inspect" else ["six.csv", "--target", "y"]
    if command in ("evaluate", "plot"):
        bad(call(command, "six.mm", "six.csv"), "pass the column of labels")
    good(call(command, "six.mm", *data))


@pytest.mark.parametrize("name", ["encoder", "unfitted"])
def test_saved_things_that_do_not_predict(here, six, name):
    thing = mm.ColumnEncoder().fit(six[0]) if name == "encoder" else mm.SVC()
    mm.save(thing, "thing.mm")
    for command in ("inspect", "predict"):
        bad(call(command, "thing.mm", *(["six.csv"] if command == "predict" else [])))


# Facts about training in model files --------------------------------------------------------------


@pytest.mark.parametrize(
    "about",
    [
        {"data": {"source": "a", "target": "y", "classes": [0, 1], "rows": 3, "columns": 2}},
        {"data": {"source": "a", "target": "y", "classes": {"u": 1}, "rows": 3, "columns": 2}},
        {"data": "words", "date": None},
    ],
)
def test_facts_of_other_programs(here, about):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(kernel="linear", C=10).fit(X, y)
    mm.save(model, "m.mm", about=about)
    assert "data" in good(call("inspect", "m.mm"))
    rows = "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y, strict=True))
    (here / "six.csv").write_text("a,b,y\n" + rows)
    good(call("report", "m.mm", "six.csv", "--target", "y"))


def test_a_step_that_does_nothing(here):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = Pipeline([("same", "passthrough"), ("model", mm.SVC(kernel="linear", C=10))])
    mm.save(model.fit(X, y), "m.mm")
    np.savez(here / "six.npz", X=X)
    labels = [row["label"] for row in table(good(call("predict", "m.mm", "six.npz")))]
    assert labels == [str(label) for label in y]


# Output -------------------------------------------------------------------------------------------


def test_answers_go_to_a_device(models):
    done = run("predict", "fruit.mm", "fruit.csv", "--out", "/dev/stdout", cwd=models)
    assert good(done).startswith("label,")
    assert "150 rows labelled" in done.out
