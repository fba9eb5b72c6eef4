"""Data files on the command line: every format, words, missing values, and bad files."""

import bz2
import gzip
import io
import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import maxmargin as mm
from tests.helpers.command_line import FRUIT, bad, call, good, run, score_of, svmlight, table

# Files to fit -------------------------------------------------------------------------------------


def fruit_in(kind):
    frame = pl.read_csv(FRUIT)
    if kind == "tsv":
        return frame.write_csv(separator="\t").encode(), []
    if kind == "semicolons.csv":
        return frame.write_csv(separator=";").encode(), ["--separator", ";"]
    if kind == "bare.csv":
        return frame.write_csv(include_header=False).encode(), ["--no-header", "--target", "-1"]
    if kind == "parquet":
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        return buffer.getvalue(), []
    if kind == "npz":
        buffer = io.BytesIO()
        np.savez(buffer, X=frame[:, :3].to_numpy(), fruit=frame["fruit"].to_numpy().astype(str))
        return buffer.getvalue(), []
    text = frame.write_csv().encode()
    return {"csv.gz": gzip.compress(text, mtime=0), "csv.bz2": bz2.compress(text)}[kind], []


@pytest.mark.parametrize(
    "kind", ["tsv", "semicolons.csv", "bare.csv", "parquet", "npz", "csv.gz", "csv.bz2"]
)
def test_every_format_gives_the_same_model(here, kind):
    content, more = fruit_in(kind)
    (here / f"other.{kind}").write_bytes(content)
    fit = ["--model", "linear-svc", "--json"]
    expected = json.loads(good(call("fit", "fruit.csv", "--target", "fruit", *fit)))
    found = json.loads(
        good(call("fit", f"other.{kind}", "--target", "fruit", *more, *fit, "--out", "m.mm"))
    )
    for name in ("training_error", "margin", "features"):
        assert found[name] == pytest.approx(expected[name])
    labels = ["--separator", ";"] if "--separator" in more else more[:1]
    rows = table(good(call("predict", "m.mm", f"other.{kind}", *labels)))
    good(call("fit", "fruit.csv", "--target", "fruit", *fit, "--out", "e.mm"))
    others = table(good(call("predict", "e.mm", "fruit.csv")))
    assert [row["label"] for row in rows] == [row["label"] for row in others]
    scores = [[float(v) for name, v in row.items() if name != "label"] for row in rows]
    assert_allclose(
        scores, [[float(v) for v in list(row.values())[1:]] for row in others], rtol=1e-6
    )


def test_svmlight_packed(here):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 6)) < 0.5, rng.normal(size=(80, 6)).round(3), 0)
    y = np.where(X[:, 0] - X[:, 1] > 0, 1, -1)
    (here / "a.bz2").write_bytes(bz2.compress(svmlight(X, y)))
    (here / "a.svm.gz").write_bytes(gzip.compress(svmlight(X, y), mtime=0))
    done = call("fit", "a.bz2", "--model", "linear-svc", "--out", "m.mm", "--json")
    record = json.loads(good(done))
    assert record["data"]["rows"] == 80
    assert record["data"]["target"] is None
    assert record["data"]["classes"] == {"-1": int((y < 0).sum()), "1": int((y > 0).sum())}
    model = mm.load("m.mm")
    rows = table(good(call("predict", "m.mm", "a.svm.gz")))
    assert [int(row["label"]) for row in rows] == model.predict(X).tolist()
    seen = json.loads(good(call("evaluate", "m.mm", "a.bz2", "--json")))
    assert seen["error"] == pytest.approx(record["training_error"])
    (here / "wide.svm").write_text("1 1:1\n-1 7:1\n")
    bad(call("predict", "m.mm", "wide.svm"), "wide.svm: line 2", "the last feature of the model, 6")


def test_svmlight_that_counts_from_zero_keeps_its_columns(here):
    (here / "a.svm").write_text("1 0:1 2:1\n-1 0:-1 2:-1\n1 0:2 1:1\n-1 0:-2 1:1\n")
    good(call("fit", "a.svm", "--model", "linear-svc", "--out", "m.mm"))
    (here / "b.svm").write_text("1 1:5 2:1\n-1 1:5 2:-1\n")  # no row has the first column
    rows = table(good(call("predict", "m.mm", "b.svm")))
    expected = mm.load("m.mm").decision_function(np.array([[0, 5, 1], [0, 5, -1]]))
    assert_allclose([score_of(row) for row in rows], expected)


def test_standard_input(here):
    text = FRUIT.read_bytes()
    done = run("fit", "-", "--target", "fruit", "--model", "fisher", "--out", "m.mm", "--json",
               cwd=here, stdin=text)  # fmt: skip
    assert json.loads(good(done))["data"]["source"] == "standard input"
    piped = call("predict", "m.mm", "-", "--format", "csv", stdin=text)
    assert good(piped) == good(call("predict", "m.mm", "fruit.csv"))
    bad(call("fit", "-", "--target", "fruit", stdin=""), "standard input: the file is empty")


def test_a_named_pipe_is_read_or_refused_with_the_remedy(here):
    command = f"{shlex.quote(sys.executable)} -m maxmargin fit <(cat fruit.csv) --target fruit"
    done = subprocess.run(
        ["bash", "-c", command + " --model fisher"], cwd=here, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "150 rows" in done.stdout


def test_columns_to_drop_and_scales_to_keep(here):
    fit = ["fit", "fruit.csv", "--target", "fruit", "--model", "linear-svc", "--out", "m.mm"]
    record = json.loads(good(call(*fit, "--drop", "mass_g", "--drop", "1", "--json")))
    assert record["data"]["dropped"] == ["mass_g", "width_cm"]
    assert mm.load("m.mm").feature_names_in_.tolist() == ["height_cm"]
    good(call(*fit, "--no-scale"))
    assert_array_equal(mm.load("m.mm")[0].scale_, 1)
    good(call(*fit))
    assert_allclose(mm.load("m.mm")[0].mean_, mm.datasets.load_fruit().data.mean(axis=0))
    good(call(*fit, "--float32"))
    assert mm.load("m.mm")[-1].coef_.shape == (5, 3)
    bad(call(*fit, "--drop", "colour"), "fruit.csv: there is no dropped column 'colour'")


def test_columns_that_cannot_be_dropped_are_not_kept_silently(here):
    (here / "a.svm").write_text("1 1:1 2:1\n-1 1:-1 2:-1\n")
    done = call("fit", "a.svm", "--drop", "1", "--model", "fisher", "--json")
    assert done.code != 0 or json.loads(done.out)["features"] == 1


WORDS = "size,colour,y\n" + "1,red,u\n2,red,u\n1.5,green,u\n5,blue,v\n6,blue,v\n5.5,green,v\n" * 4


def test_words_become_columns(here):
    (here / "w.csv").write_text(WORDS)
    done = call("fit", "w.csv", "--target", "y", "--model", "linear-svc", "--out", "w.mm")
    assert "24 rows, 2 columns → 4 features" in good(done)
    model = mm.load("w.mm")
    names = model[:-1].get_feature_names_out().tolist()
    assert names == ["size", "colour=blue", "colour=green", "colour=red"]
    (here / "new.csv").write_text("colour,size\nred,1\nviolet,1\nblue,6\n")
    rows = table(good(call("predict", "w.mm", "new.csv")))
    frame = pd.DataFrame({"size": [1.0, 1, 6], "colour": ["red", "violet", "blue"]})
    assert_allclose([score_of(row) for row in rows], model.decision_function(frame))
    assert score_of(rows[0]) != score_of(rows[1])
    for more in (["--test", "0.25"], ["--cv", "3"], ["--float32"]):
        good(call("fit", "w.csv", "--target", "y", "--model", "linear-svc", *more))


def test_words_that_look_like_numbers_stay_words(here):
    (here / "z.csv").write_text("a,zip,y\n1,007,p\n2,007,p\n3,A12,q\n4,B13,q\n2,C1,q\n")
    good(call("fit", "z.csv", "--target", "y", "--out", "z.mm"))
    together = table(good(call("predict", "z.mm", "z.csv")))
    (here / "part.csv").write_text("a,zip\n1,007\n2,007\n")  # the same two rows alone
    alone = table(good(call("predict", "z.mm", "part.csv")))
    for one, other in zip(alone, together[:2], strict=True):
        assert one["label"] == other["label"]
        assert score_of(one) == pytest.approx(score_of(other), rel=1e-12)


def test_missing_values(here):
    (here / "gaps.csv").write_text(WORDS.replace("2,red", ",red").replace("5,blue", "5,NA"))
    fit = ["fit", "gaps.csv", "--target", "y", "--model", "linear-svc"]
    done = call(*fit)
    bad(done, "gaps.csv: 8 missing values (4 in size, 4 in colour)", "--impute")
    text = good(call(*fit, "--impute", "--out", "m.mm"))
    assert "4 features" in text
    (here / "new.csv").write_text("size,colour\n,red\n1,\n")
    rows = table(good(call("predict", "m.mm", "new.csv")))
    model = mm.load("m.mm")
    assert model[0].fill_ == [3.25, "green"] or model[0].impute
    frame = pd.DataFrame({"size": [np.nan, 1], "colour": ["red", None]})
    assert_allclose([score_of(row) for row in rows], model.decision_function(frame))
    (here / "w.csv").write_text(WORDS)
    good(call("fit", "w.csv", "--target", "y", "--model", "linear-svc", "--out", "w.mm"))
    bad(call("predict", "w.mm", "new.csv"), "new.csv: 2 missing values (1 in size, 1 in colour)")


def test_missing_values_in_predict_name_the_file(here):
    (here / "w.csv").write_text(WORDS)
    good(call("fit", "w.csv", "--target", "y", "--model", "linear-svc", "--out", "w.mm"))
    (here / "new.csv").write_text("size,colour\n,red\n1,blue\n")
    bad(call("predict", "w.mm", "new.csv"), "new.csv", "--impute")


# Bad files ----------------------------------------------------------------------------------------


LATE = "a,b,y\n" + "1,2,u\n3,4,v\n" * 11_000

BAD_CSV = {
    "empty": ("", "is empty"),
    "header": ("a,b,y\n", "has a header but no rows"),
    "target": ("a,b,z\n1,2,u\n3,4,v\n", "there is no target column 'y'; the file has a, b, z"),
    "long": ("a,b,y\n1,2,u\n3,4,v,9\n", "line 3 has 4 fields"),
    "short": ("a,b,y\n1,2,u\n3,4\n", "line 3 has 2 fields"),
    "text": ("a,b,y\n1,2,u\n3,oops,v\n5,6,u\n", "line 3: 'oops' is not a number", "column 'b'"),
    "late": (LATE + "1,oops,u\n", "line 22002: 'oops' is not a number", "column 'b'"),
    "missing": ("a,b,y\n1,,u\n3,4,v\n", "1 missing values (1 in b)"),
    "class": ("a,b,y\n1,2,u\n3,4,u\n", "column 'y'", "at least two classes"),
    "label": ("a,b,y\n1,2,u\n3,4,\n5,6,v\n", "column 'y' has 1 missing values"),
    "twice": ("a,a,y\n1,2,u\n3,4,v\n", "line 1 names the column 'a' twice"),
    "measured": ("a,y\n1,1.5\n2,2.5\n", "column 'y' must hold whole numbers or text, got 1.5"),
    "separator": ("a;b;y\n1;2;u\n", "';'"),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_bad_csv(here, name):
    content, *said = BAD_CSV[name]
    (here / "bad.csv").write_text(content)
    for command in ("fit", "separable", "compare"):
        bad(call(command, "bad.csv", "--target", "y"), "bad.csv", *said)
    assert sorted(p.name for p in here.iterdir()) == ["bad.csv", "fruit.csv"]


def test_infinite_values_are_named(here):
    (here / "bad.csv").write_text("a,b,y\n1,inf,u\n3,4,v\n")
    bad(call("fit", "bad.csv", "--target", "y"), "bad.csv: 1 infinite values (1 in b)")


def test_bad_csv_in_a_process(here):
    (here / "bad.csv").write_text(LATE + "1,oops,u\n")
    bad(run("fit", "bad.csv", "--target", "y", "--out", "m.mm", cwd=here), "bad.csv: line 22002")
    assert sorted(p.name for p in here.iterdir()) == ["bad.csv", "fruit.csv"]


def test_files_that_look_odd_and_are_good(here):
    plain = "a,b,y\n1,2,u\n3,5,v\n2,2,u\n"
    (here / "plain.csv").write_text(plain)
    fit = ["--target", "y", "--model", "fisher", "--json"]
    expected = json.loads(good(call("fit", "plain.csv", *fit)))["certificate"]
    for content in (
        "\ufeff" + plain, plain.replace("\n", "\r\n"), plain.replace("\n", "\n\n"),
        plain.replace("1,2,u", '"1","2","u"'), plain.rstrip("\n"), plain.replace(",", " , "),
    ):  # fmt: skip
        (here / "odd.csv").write_text(content.replace("a , b , y", "a,b,y"), newline="")
        assert json.loads(good(call("fit", "odd.csv", *fit)))["certificate"] == expected
    (here / "quoted.csv").write_text('"a, x",b,y\n1,2,"u\nv"\n3,5,"w, w"\n2,2,"u\nv"\n')
    assert json.loads(good(call("fit", "quoted.csv", *fit)))["data"]["classes"] == {
        "u\nv": 2, "w, w": 1
    }  # fmt: skip


def test_other_bad_files(here):
    (here / "bad.svm").write_text("1 1:2\n-1 one:2\n")
    bad(call("fit", "bad.svm"), "bad.svm: line 2: 'one:2'")
    (here / "bad.csv.gz").write_bytes(gzip.compress(FRUIT.read_bytes(), mtime=0)[:-300])
    bad(
        call("fit", "bad.csv.gz", "--target", "fruit"),
        "bad.csv.gz: the file cannot be decompressed",
    )
    (here / "bad.parquet").write_bytes(fruit_in("parquet")[0][:-30])
    bad(
        call("fit", "bad.parquet", "--target", "fruit"),
        "bad.parquet: the Parquet file cannot be read",
    )
    (here / "bad.npz").write_bytes(fruit_in("npz")[0][:-30])
    bad(call("fit", "bad.npz", "--target", "fruit"), "bad.npz")
    bad(call("fit", "nowhere.csv", "--target", "y"), "nowhere.csv: no such file")
    bad(call("fit", ".", "--target", "y"), "got a folder")
    bad(call("fit", "fruit.csv"), "fruit.csv: pass the column of labels")
    bad(call("fit", "fruit.csv", "--target", "friut"), "Did you mean 'fruit'?")
    (here / "words").write_text("just some words\n")
    bad(call("fit", "words", "--target", "y"), "words: ", "format")


@pytest.mark.parametrize("name", ["damaged.csv.gz", "mixed.csv"])
def test_bad_files_without_a_traceback(here, name):
    long = "a,b,fruit\n" + "".join(f"{k},{k * k % 97},{'uv'[k % 2]}\n" for k in range(5000))
    content = bytearray(gzip.compress(long.encode(), mtime=0))
    content[len(content) // 2 : len(content) // 2 + 50] = b"\xff" * 50
    (here / "damaged.csv.gz").write_bytes(content)
    (here / "mixed.csv").write_bytes("ä,fruit\n1,Äpfel\n2,B".encode() + b"\xfcrne\n")
    bad(call("fit", name, "--target", "fruit"), name)


def test_a_binary_file_is_not_printed(here):
    (here / "photo.csv").write_bytes(b"\x89PNG\r\x1b[31m\x00\xff\xfe" * 500)
    message = bad(call("fit", "photo.csv", "--target", "fruit"), "photo.csv")
    assert len(message) < 500
    assert message.isprintable()


# Options and columns that have no effect ----------------------------------------------------------


def test_text_among_numbers_is_not_imputed(here):
    rows = "".join(f"{k},{k % 7},{'uv'[k % 2]}\n" for k in range(40))
    (here / "d.csv").write_text(f"a,b,y\n{rows}")
    good(call("fit", "d.csv", "--target", "y", "--impute", "--out", "m.mm"))
    (here / "new.csv").write_text("a,b\n1,2\nabc,3\n,4\n")
    bad(call("predict", "m.mm", "new.csv"), "new.csv: line 3: 'abc' is not a number")
    (here / "gap.csv").write_text("a,b\n,2\n,3\n")
    assert len(table(good(call("predict", "m.mm", "gap.csv")))) == 2


def test_float32_goes_with_words(here):
    rows = "".join(f"{k / 7},{'rg'[k % 2]},{'uv'[k % 3 > 0]}\n" for k in range(40))
    (here / "d.csv").write_text(f"a,w,y\n{rows}")
    good(call("fit", "d.csv", "--target", "y", "--float32", "--out", "m.mm"))
    assert mm.load("m.mm")[-1].support_vectors_.dtype == np.float32


def test_options_of_svmlight_and_of_others(here):
    (here / "d.svm").write_text("1 1:2 2:1\n-1 1:3\n1 2:4\n-1 1:1\n")
    bad(call("fit", "d.svm", "--target", "y"), "--target has no effect on svmlight text", code=2)
    fruit = ("fit", "fruit.csv", "--target", "fruit")
    bad(call(*fruit, "--first-index", 0), "--first-index is for svmlight text", code=2)
    good(call("fit", "d.svm", "--model", "fisher", "--out", "d.mm"))
    given = ("evaluate", "d.mm", "d.svm")
    bad(call(*given, "--target", "y"), "--target has no effect on svmlight text", code=2)
    good(call(*given, "--first-index", 1))


# Labels -------------------------------------------------------------------------------------------


def test_labels_are_the_same_by_value(here):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    rows = "".join(f"{a},{b},{int(label)}\n" for (a, b), label in zip(X, y, strict=True))
    (here / "six.csv").write_text("a,b,y\n" + rows)
    mm.save(mm.SVC(kernel="linear", C=10).fit(X, y.astype(float)), "float.mm")
    record = json.loads(good(call("evaluate", "float.mm", "six.csv", "--target", "y", "--json")))
    assert record["errors"] == 0
    assert record["unknown_classes"] == []
    truths = y > 0
    mm.save(mm.SVC(kernel="linear", C=10).fit(X, truths), "bool.mm")
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": truths})
    frame.write_parquet(here / "six.parquet")
    frame.write_csv(here / "truths.csv")
    for name in ("six.parquet", "truths.csv"):
        record = json.loads(good(call("evaluate", "bool.mm", name, "--target", "y", "--json")))
        assert record["errors"] == 0, name


def test_labels_between_classes_are_no_classes(here):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    mm.save(mm.SVC(kernel="linear", C=10).fit(X, (y > 0).astype(int)), "m.mm")
    rows = "".join(f"{a},{b},{(v > 0) + 0.7}\n" for (a, b), v in zip(X, y, strict=True))
    (here / "between.csv").write_text("a,b,y\n" + rows)
    record = json.loads(good(call("evaluate", "m.mm", "between.csv", "--target", "y", "--json")))
    assert record["errors"] == 6
    assert record["unknown_classes"] == ["0.7", "1.7"]


# Features counted from 0 --------------------------------------------------------------------------


def test_features_counted_from_zero(here):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] > 0, 1, -1)

    def text(columns):
        lines = [
            f"{label} " + " ".join(f"{k}:{row[k]:.6f}" for k in columns)
            for row, label in zip(X, y, strict=True)
        ]
        return "\n".join(lines) + "\n"

    (here / "zero.svm").write_text(text([0, 1, 2]))
    (here / "new.svm").write_text(text([1, 2]))  # feature 0 happens to be absent
    good(call("fit", "zero.svm", "--model", "linear-svc", "--C", 100, "--out", "zero.mm"))
    good(call("convert", "zero.mm", "--to", "maxmargin", "--out", "again.mm"))
    wrong = [
        json.loads(good(call("evaluate", name, "new.svm", "--json")))["errors"]
        for name in ("zero.mm", "again.mm")
    ]
    assert wrong[0] == wrong[1] < 5
    assert mm.persistence.about("again.mm") == mm.persistence.about("zero.mm")
    done = call("convert", "zero.mm", "--to", "libsvm")
    assert "counted from 1" in done.err
    given = ("evaluate", "zero.model", "new.svm", "--json")
    assert json.loads(good(call(*given, "--first-index", 0)))["errors"] == wrong[0]
    assert json.loads(good(call(*given)))["errors"] > 5
