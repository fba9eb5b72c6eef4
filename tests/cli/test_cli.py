"""The command line, end to end: real processes on real files, and every way to go wrong."""

import bz2
import csv
import ctypes
import gzip
import io
import json
import os
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

import maxmargin as mm
from maxmargin.cli import main, options
from maxmargin.estimators.registry import MODELS
from maxmargin.files import reading

FRUIT = Path(str(mm.datasets.fruit_file()))


# Ways to run ------------------------------------------------------------------------------------


def run(*args, cwd, stdin=None, env=None, timeout=100, **more):
    """Run the command line as a process of its own."""
    binary = isinstance(stdin, bytes)
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", *map(str, args)], cwd=cwd, capture_output=True,
        input=stdin if binary else (stdin or "").encode(), timeout=timeout,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})}, **more,
    )  # fmt: skip
    return SimpleNamespace(
        code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), args=args
    )


def call(*args, stdin=None):
    """Run it in this process, in the current folder: where a process of its own adds nothing."""
    done = CliRunner().invoke(main, list(map(str, args)), input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"a traceback: {done.exception!r}") from done.exception
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr, args=args)


def good(done):
    assert done.code == 0, f"{done.args}: {done.code}\n{done.out}\n{done.err}"
    assert "Traceback" not in done.err
    return done.out


def bad(done, *said, code=1):
    """Assert a failure that is told in one line, and return it."""
    assert done.code == code, f"{done.args}: {done.code}\n{done.out}\n{done.err}"
    assert "Traceback" not in done.err + done.out
    lines = done.err.strip().splitlines()
    assert lines[-1].startswith("Error: "), done.err
    if code == 1:
        assert len(lines) == 1, done.err
    else:
        assert lines[0].startswith("Usage: ")
    for words in said:
        assert str(words) in lines[-1], f"{words!r} is not in {lines[-1]!r}"
    return lines[-1]


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def is_picture(path, form="PNG"):
    with Image.open(path) as image:
        assert image.format == form
        assert min(image.size) > 200
        assert len(image.convert("RGB").getcolors(1 << 24)) > 8  # something is drawn
        return image.size


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with the fruit."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(FRUIT, tmp_path / "fruit.csv")
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Models fitted once by processes of their own, and what they printed."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(FRUIT, folder / "fruit.csv")
    rows = FRUIT.read_text().splitlines()
    two = [rows[0], *(row for row in rows if row.endswith((",apple", ",lemon")))]
    (folder / "two.csv").write_text("\n".join(two) + "\n")
    fit = run("fit", "fruit.csv", "--target", "fruit", "--C", 10, "--test", 0.2, "--json", "--out",
              "fruit.mm", cwd=folder)  # fmt: skip
    line = run("fit", "two.csv", "--target", "-1", "--kernel", "linear", "--C", "inf", "--no-scale",
               "--out", "two.mm", cwd=folder)  # fmt: skip
    return SimpleNamespace(folder=folder, fit=fit, line=line)


@pytest.fixture
def models(made, here):
    """The fitted models, in the folder of the test."""
    for name in ("fruit.mm", "two.mm", "two.csv"):
        shutil.copy(made.folder / name, here / name)
    return here


# The whole ----------------------------------------------------------------------------------------


def test_names_are_those_of_the_rooms_below():
    assert tuple(options.MODEL_NAMES) == tuple(MODELS)
    assert tuple(options.FORMATS) == tuple(reading.FORMATS)


def test_version_by_the_installed_script(tmp_path):
    script = Path(sys.executable).with_name("maxmargin")
    done = subprocess.run(
        [script, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    versions = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert versions["maxmargin"] == mm.__version__
    assert versions["numpy"] == np.__version__
    assert {"python", "scipy", "scikit-learn", "numba", "polars", "skl2onnx"} <= set(versions)


def test_help_imports_nothing_heavy(tmp_path):
    for args in (["--help"], ["fit", "--help"]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "maxmargin", *args], cwd=tmp_path,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0
        imported = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
        assert "click" in imported
        heavy = {"numpy", "scipy", "sklearn", "numba", "matplotlib", "polars", "pandas", "jinja2"}
        assert not heavy & imported


def test_help_is_quick(tmp_path):
    times = []
    for _ in range(3):
        started = time.perf_counter()
        good(run("--help", cwd=tmp_path))
        times.append(time.perf_counter() - started)
    assert min(times) < 0.5


COMMANDS = [
    "demo", "fit", "compare", "predict", "evaluate", "inspect", "separable", "plot", "report",
    "lab", "convert", "warmup",
]  # fmt: skip


def test_help_lists_every_command():
    text = good(call("--help"))
    assert [line.split()[0] for line in text.split("Commands:")[1].splitlines() if line] == COMMANDS
    assert good(call("-h")) == text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_in_the_help_can_be_typed(name):
    text = good(call(name, "--help"))
    examples = text.split("Example")[1].split("Options:")[0].replace("\\\n", " ")
    lines = [line.strip() for line in examples.splitlines() if "maxmargin " in line]
    assert lines
    for line in lines:
        words = shlex.split(re.split(r"[|>]\s", line[line.index("maxmargin ") :])[0])
        assert words[1] == name
        main.commands[name].make_context(name, words[2:])


def test_usage(here):
    bad(call("fitt"), "No such command", code=2)
    bad(call("fit"), "Missing argument 'DATA'", code=2)
    bad(call("fit", "fruit.csv", "--colour", "red"), "--colour", code=2)
    bad(call("fit", "fruit.csv", "--model", "forest"), "forest", code=2)
    done = call("convert", "m.mm")
    assert done.code == 2
    assert "--to" in done.err
    bad(run("predict", "m.mm", cwd=here), "Missing argument 'DATA'", code=2)


# demo ---------------------------------------------------------------------------------------------


def test_demo(tmp_path):
    done = run("demo", "--out", "pictures", cwd=tmp_path)
    text = good(done)
    named = re.findall(r"^picture: (.+)$", text, re.M)
    assert len(named) >= 9
    for name in named:
        is_picture(tmp_path / name)
    assert sorted(p.name for p in (tmp_path / "pictures").iterdir()) == sorted(
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
    bad(run("demo", "--pair", "apple", "stone", cwd=here), "'stone'", "apple, banana", code=2)
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
                  "training error   0.00 %", "certificate", "two.mm"):  # fmt: skip
        assert words in text
    # Half the width of the widest band, in the units of the file.
    verdict = mm.separability(*two_fruits(), maximum_margin=True)
    assert f"margin           {verdict.margin:.4g}" in text


def two_fruits():
    fruit = mm.datasets.load_fruit()
    y = fruit.target_names[fruit.target]
    chosen = np.isin(y, ("apple", "lemon"))
    return fruit.data[chosen], y[chosen]


@pytest.mark.parametrize("name", options.MODEL_NAMES)
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
    assert_allclose([[float(row[f"score {c}"]) for c in model.classes_] for row in rows], scores)
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


def test_cross_validation(here):
    args = ["fit", "fruit.csv", "--target", "fruit", "--model", "linear-svc", "--cv", 5]
    record = json.loads(good(call(*args, "--json")))
    assert record["cv"]["folds"] == len(record["cv"]["errors"]) == 5
    assert record["cv"]["error"] == pytest.approx(np.mean(record["cv"]["errors"]))
    assert 0 < record["cv"]["error"] < 0.5
    assert record["training_rows"] == 150
    assert re.search(r"cross-validation +\d+\.\d\d % ± \d+\.\d\d %, 5 parts", good(call(*args)))


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
    bad(run(*fit, "--nu", 0.3, cwd=here), "svc has no parameter 'nu'; it has C", code=2)
    bad(call(*fit, "--model", "perceptron", "--C", 1), "perceptron has no parameter 'C'", code=2)
    bad(call(*fit, "--set", "colour=1"), "no parameter 'colour'", code=2)
    bad(call(*fit, "--set", "callback=1"), "no parameter 'callback'", code=2)
    bad(call(*fit, "--set", "C"), "write NAME=VALUE", code=2)
    bad(call(*fit, "--C", "much"), "--C", code=2)
    bad(call(*fit, "--test", 1), "--test", code=2)
    bad(call(*fit, "--cv", 1), "--cv", code=2)
    bad(call(*fit, "--cv", 151), "150 rows", code=2)
    bad(call(*fit, "--cv", 5, "--test", 0.2), "choose one", code=2)
    bad(call(*fit, "--out", "nowhere/m.mm"), "no such folder", code=2)
    bad(call(*fit, "--out", "."), "directory", code=2)
    bad(call(*fit, "--C", -1), "'C' parameter", "-1.0", code=2)
    bad(call(*fit, "--gamma", "wide"), "'gamma' parameter", "'wide'", code=2)
    bad(call(*fit, "--model", "nusvc", "--nu", 2), "'nu' parameter", code=2)
    bad(call(*fit, "--C", 3, "--set", "C=5"), "C is given twice", code=2)
    bad(call(*fit, "--kernel", "linear", "--gamma", 5), "--gamma is of kernel rbf", code=2)
    bad(call(*fit, "--degree", 2), "--degree is of kernel poly, not rbf", code=2)
    bad(call(*fit, "--words", "fruit"), "--words fruit", code=2)
    bad(call(*fit, "--words", "mass_g", "--drop", "mass_g"), "--words mass_g", code=2)
    bad(call(*fit, "--out", "-"), "standard output", code=2)
    assert not Path("-").exists()


def test_strict(here):
    (here / "xor.csv").write_text("a,b,y\n1,1,u\n1,-1,v\n-1,-1,u\n-1,1,v\n")
    fit = ["fit", "xor.csv", "--target", "y", "--model", "perceptron", "--max-iter", 50]
    done = run(*fit, "--strict", "--json", "--out", "x.mm", cwd=here)
    assert done.code == 3
    record = json.loads(done.out)
    assert record["holds"] is False
    assert "not separated" in record["certificate"]
    assert done.err.startswith("warning: ")
    assert "Traceback" not in done.err
    assert (here / "x.mm").exists()
    assert good(call(*fit))
    assert good(call("fit", "xor.csv", "--target", "y", "--strict"))


def test_a_hard_margin_that_is_none(here):
    fit = ["fit", "fruit.csv", "--target", "fruit", "--kernel", "linear", "--C", "inf"]
    done = run(*fit, "--out", "m.mm", cwd=here)
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


def svmlight(X, y):
    lines = []
    for row, label in zip(X, y, strict=True):
        pairs = " ".join(f"{k}:{v!r}" for k, v in enumerate(row.tolist(), 1) if v)
        lines.append(f"{label} {pairs}\n")
    return "".join(lines).encode()


def test_svmlight_packed(here):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 6)) < 0.5, rng.normal(size=(80, 6)).round(3), 0)
    y = np.where(X[:, 0] - X[:, 1] > 0, 1, -1)
    (here / "a.bz2").write_bytes(bz2.compress(svmlight(X, y)))
    (here / "a.svm.gz").write_bytes(gzip.compress(svmlight(X, y), mtime=0))
    done = run("fit", "a.bz2", "--model", "linear-svc", "--out", "m.mm", "--json", cwd=here)
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
    assert_allclose([float(row["score"]) for row in rows], expected)


def test_standard_input(here):
    text = FRUIT.read_bytes()
    done = run("fit", "-", "--target", "fruit", "--model", "fisher", "--out", "m.mm", "--json",
               cwd=here, stdin=text)  # fmt: skip
    assert json.loads(good(done))["data"]["source"] == "standard input"
    piped = run("predict", "m.mm", "-", "--format", "csv", cwd=here, stdin=text)
    assert good(piped) == good(call("predict", "m.mm", "fruit.csv"))
    bad(call("fit", "-", "--target", "fruit", stdin=""), "standard input: is empty")


def test_a_named_pipe_is_read_or_refused_with_the_remedy(here):
    command = f"{shlex.quote(sys.executable)} -m maxmargin fit <(cat fruit.csv) --target fruit"
    done = subprocess.run(
        ["bash", "-c", command + " --model fisher"], cwd=here, capture_output=True, text=True,
        timeout=60,
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
    bad(call(*fit, "--drop", "colour"), "fruit.csv: no dropped column 'colour'")


def test_columns_that_cannot_be_dropped_are_not_kept_silently(here):
    (here / "a.svm").write_text("1 1:1 2:1\n-1 1:-1 2:-1\n")
    done = call("fit", "a.svm", "--drop", "1", "--model", "fisher", "--json")
    assert done.code != 0 or json.loads(done.out)["features"] == 1


WORDS = "size,colour,y\n" + "1,red,u\n2,red,u\n1.5,green,u\n5,blue,v\n6,blue,v\n5.5,green,v\n" * 4


def test_words_become_columns(here):
    (here / "w.csv").write_text(WORDS)
    done = run("fit", "w.csv", "--target", "y", "--model", "linear-svc", "--out", "w.mm", cwd=here)
    assert "24 rows, 2 columns → 4 features" in good(done)
    model = mm.load("w.mm")
    names = model[:-1].get_feature_names_out().tolist()
    assert names == ["size", "colour=blue", "colour=green", "colour=red"]
    (here / "new.csv").write_text("colour,size\nred,1\nviolet,1\nblue,6\n")
    rows = table(good(call("predict", "w.mm", "new.csv")))
    frame = pd.DataFrame({"size": [1.0, 1, 6], "colour": ["red", "violet", "blue"]})
    assert_allclose([float(row["score"]) for row in rows], model.decision_function(frame))
    assert rows[0]["score"] != rows[1]["score"]
    for more in (["--test", "0.25"], ["--cv", "3"], ["--float32"]):
        good(call("fit", "w.csv", "--target", "y", "--model", "linear-svc", *more))


def test_words_that_look_like_numbers_stay_words(here):
    (here / "z.csv").write_text("a,zip,y\n1,007,p\n2,007,p\n3,A12,q\n4,B13,q\n2,C1,q\n")
    good(call("fit", "z.csv", "--target", "y", "--out", "z.mm"))
    together = table(good(call("predict", "z.mm", "z.csv")))
    (here / "part.csv").write_text("a,zip\n1,007\n2,007\n")  # the same two rows alone
    assert table(good(call("predict", "z.mm", "part.csv"))) == together[:2]


def test_missing_values(here):
    (here / "gaps.csv").write_text(WORDS.replace("2,red", ",red").replace("5,blue", "5,NA"))
    fit = ["fit", "gaps.csv", "--target", "y", "--model", "linear-svc"]
    done = run(*fit, cwd=here)
    bad(done, "gaps.csv: 8 missing values (4 in size, 4 in colour)", "--impute")
    text = good(call(*fit, "--impute", "--out", "m.mm"))
    assert "4 features" in text
    (here / "new.csv").write_text("size,colour\n,red\n1,\n")
    rows = table(good(call("predict", "m.mm", "new.csv")))
    model = mm.load("m.mm")
    assert model[0].fill_ == [3.25, "green"] or model[0].impute
    frame = pd.DataFrame({"size": [np.nan, 1], "colour": ["red", None]})
    assert_allclose([float(row["score"]) for row in rows], model.decision_function(frame))
    (here / "w.csv").write_text(WORDS)
    good(call("fit", "w.csv", "--target", "y", "--model", "linear-svc", "--out", "w.mm"))
    bad(call("predict", "w.mm", "new.csv"), "new.csv: 2 missing values (1 in size, 1 in colour)")


def test_missing_values_in_predict_name_the_file(here):
    (here / "w.csv").write_text(WORDS)
    good(call("fit", "w.csv", "--target", "y", "--model", "linear-svc", "--out", "w.mm"))
    (here / "new.csv").write_text("size,colour\n,red\n1,blue\n")
    bad(call("predict", "w.mm", "new.csv"), "new.csv", "--impute")


# Files that are bad (row 28) ----------------------------------------------------------------------

LATE = "a,b,y\n" + "1,2,u\n3,4,v\n" * 11_000

BAD_CSV = {
    "empty": ("", "is empty"),
    "header": ("a,b,y\n", "has a header, but no rows"),
    "target": ("a,b,z\n1,2,u\n3,4,v\n", "no target column 'y'; it has a, b, z"),
    "long": ("a,b,y\n1,2,u\n3,4,v,9\n", "line 3 has 4 fields"),
    "short": ("a,b,y\n1,2,u\n3,4\n", "line 3 has 2 fields"),
    "text": ("a,b,y\n1,2,u\n3,oops,v\n5,6,u\n", "line 3: 'oops' is not a number", "column 'b'"),
    "late": (LATE + "1,oops,u\n", "line 22002: 'oops' is not a number", "column 'b'"),
    "missing": ("a,b,y\n1,,u\n3,4,v\n", "1 missing values (1 in b)"),
    "class": ("a,b,y\n1,2,u\n3,4,u\n", "column 'y'", "got 1 class"),
    "label": ("a,b,y\n1,2,u\n3,4,\n5,6,v\n", "column 'y' lacks 1 values"),
    "twice": ("a,a,y\n1,2,u\n3,4,v\n", "line 1 names the column 'a' twice"),
    "measured": ("a,y\n1,1.5\n2,2.5\n", "column 'y' holds 1.5, a measurement"),
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
    bad(run("fit", "bad.svm", cwd=here), "bad.svm: line 2: 'one:2'")
    (here / "bad.csv.gz").write_bytes(gzip.compress(FRUIT.read_bytes(), mtime=0)[:-300])
    bad(call("fit", "bad.csv.gz", "--target", "fruit"), "bad.csv.gz: cannot be unpacked")
    (here / "bad.parquet").write_bytes(fruit_in("parquet")[0][:-30])
    bad(call("fit", "bad.parquet", "--target", "fruit"), "bad.parquet: is no usable Parquet file")
    (here / "bad.npz").write_bytes(fruit_in("npz")[0][:-30])
    bad(call("fit", "bad.npz", "--target", "fruit"), "bad.npz")
    bad(call("fit", "nowhere.csv", "--target", "y"), "nowhere.csv: no such file")
    bad(call("fit", ".", "--target", "y"), "is a folder")
    bad(call("fit", "fruit.csv"), "fruit.csv: name the column of labels")
    bad(call("fit", "fruit.csv", "--target", "friut"), "Did you mean 'fruit'?")
    (here / "words").write_text("just some words\n")
    bad(call("fit", "words", "--target", "y"), "words: ", "format")


@pytest.mark.parametrize("name", ["damaged.csv.gz", "latin.csv"])
def test_bad_files_without_a_traceback(here, name):
    long = "a,b,fruit\n" + "".join(f"{k},{k * k % 97},{'uv'[k % 2]}\n" for k in range(5000))
    content = bytearray(gzip.compress(long.encode(), mtime=0))
    content[len(content) // 2 : len(content) // 2 + 50] = b"\xff" * 50
    (here / "damaged.csv.gz").write_bytes(content)
    (here / "latin.csv").write_bytes("a,fruit\n1,Äpfel\n2,Birne\n".encode("latin-1"))
    bad(call("fit", name, "--target", "fruit"), name)


def test_a_binary_file_is_not_printed(here):
    (here / "photo.csv").write_bytes(b"\x89PNG\r\x1b[31m\x00\xff\xfe" * 500)
    message = bad(call("fit", "photo.csv", "--target", "fruit"), "photo.csv")
    assert len(message) < 500
    assert message.isprintable()


# predict ------------------------------------------------------------------------------------------


def test_predict_to_a_file(models):
    done = run("predict", "fruit.mm", "fruit.csv", "--out", "labels.csv", cwd=models)
    assert good(done) == "150 rows labelled: labels.csv\n"
    rows = table((models / "labels.csv").read_text())
    model = mm.load("fruit.mm")
    assert list(rows[0]) == ["label", *(f"score {c}" for c in model.classes_)]
    data = mm.datasets.load_fruit(as_frame=True).data
    assert [row["label"] for row in rows] == model.predict(data).tolist()
    scores = [[float(row[f"score {c}"]) for c in model.classes_] for row in rows]
    assert_allclose(scores, model.decision_function(data))
    assert good(call("predict", "fruit.mm", "fruit.csv")) == (models / "labels.csv").read_text()


def test_predict_of_two_classes_and_json(models):
    model = mm.load("two.mm")
    data = mm.datasets.load_fruit(as_frame=True).data
    expected = model.decision_function(data)
    rows = table(good(call("predict", "two.mm", "fruit.csv")))
    assert list(rows[0]) == ["label", "score"]
    assert_allclose([float(row["score"]) for row in rows], expected)
    assert all((row["label"] == "lemon") == (float(row["score"]) > 0) for row in rows)
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
    done = run("predict", "fruit.mm", "other.csv", "--out", "o.csv", cwd=models)
    bad(done, "other.csv: lacks 'mass_g'", "it has mass,")
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
    assert len(lines[0]) == len(lines[1])


def test_the_reader_of_our_output_goes_away(models):
    command = f"{shlex.quote(sys.executable)} -m maxmargin predict fruit.mm big.csv | head -1"
    header, rows = FRUIT.read_text().split("\n", 1)
    (models / "big.csv").write_text(header + "\n" + rows * 50)
    done = subprocess.run(
        ["bash", "-c", command], cwd=models, capture_output=True, text=True, timeout=60
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


# evaluate -----------------------------------------------------------------------------------------


def test_evaluate(models):
    fruit = mm.datasets.load_fruit(as_frame=True)
    y = mm.datasets.load_fruit().target_names[mm.datasets.load_fruit().target]
    model = mm.load("fruit.mm")
    expected = confusion_matrix(y, model.predict(fruit.data))
    record = json.loads(good(run("evaluate", "fruit.mm", "fruit.csv", "--json", cwd=models)))
    assert record["confusion"] == expected.tolist()
    assert record["classes"] == model.classes_.tolist()
    assert record["rows"] == 150
    assert record["errors"] == 150 - np.trace(expected)
    assert record["error"] == pytest.approx(record["errors"] / 150)
    assert record["unknown_classes"] == []
    text = good(call("evaluate", "fruit.mm", "fruit.csv"))
    assert f"errors  {record['errors']}" in text
    for label, counts in zip(model.classes_, expected, strict=True):
        assert re.search(rf"{label}\W+" + r"\W+".join(map(str, counts)), text)


def test_evaluate_with_other_labels(models):
    record = json.loads(good(call("evaluate", "two.mm", "fruit.csv", "--json")))
    assert record["unknown_classes"] == ["banana", "orange", "pear"]
    assert record["errors"] == 90
    assert np.sum(record["confusion"]) == 150
    good(call("evaluate", "two.mm", "fruit.csv"))
    bad(run("evaluate", "fruit.mm", "fruit.csv", "--target", "kind", cwd=models), "column 'kind'")
    pl.read_csv(FRUIT).drop("fruit").write_csv(models / "bare.csv")
    bad(call("evaluate", "fruit.mm", "bare.csv"), "bare.csv: no target column 'fruit'")


def test_labels_of_numbers_and_words_mean_the_same_in_every_file(here):
    (here / "a.csv").write_text("a,y\n1,01\n2,01\n8,02\n9,02\n20,x\n21,x\n")
    good(call("fit", "a.csv", "--target", "y", "--C", 100, "--out", "m.mm"))
    assert json.loads(good(call("evaluate", "m.mm", "a.csv", "--json")))["errors"] == 0
    (here / "b.csv").write_text("a,y\n1,01\n2,01\n")
    assert json.loads(good(call("evaluate", "m.mm", "b.csv", "--json")))["errors"] == 0


# Models that are bad (row 27) ---------------------------------------------------------------------


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
    bad(run("inspect", "bad.mm", cwd=models), "bad.mm", "pickle")
    assert not (models / "trapped").exists()
    bad(run("evaluate", "nowhere.mm", "fruit.csv", cwd=models), "nowhere.mm: no such file")
    bad(call("inspect", "."), "is a folder")
    bad(call("predict", ".", "fruit.csv"), "is a folder")


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
        bad(call(command, "six.mm", "six.csv"), "name the column of labels")
    good(call(command, "six.mm", *data))


@pytest.mark.parametrize("name", ["encoder", "unfitted"])
def test_saved_things_that_do_not_predict(here, six, name):
    thing = mm.ColumnEncoder().fit(six[0]) if name == "encoder" else mm.SVC()
    mm.save(thing, "thing.mm")
    for command in ("inspect", "predict"):
        bad(call(command, "thing.mm", *(["six.csv"] if command == "predict" else [])))


# inspect ------------------------------------------------------------------------------------------


def test_inspect(models):
    text = good(run("inspect", "two.mm", cwd=models))
    model = mm.load("two.mm")
    for words in ("two.mm", "SVC", "C=inf", "apple, lemon", "mass_g, width_cm, height_cm",
                  "lemon against apple", "two.csv: 60 of 60 rows",
                  f"maxmargin {mm.__version__}", str(model[-1].certificate_),
                  *(f"{v:.6g}" for v in model[-1].coef_[0])):  # fmt: skip
        assert words in text
    assert re.search(r"target +fruit\n", text)
    record = json.loads(good(call("inspect", "two.mm", "--json")))
    assert_allclose(record["w"], model[-1].coef_)
    assert_allclose(record["b"], model[-1].intercept_)
    assert record["classes"] == ["apple", "lemon"]
    assert record["about"]["data"]["classes"] == {"apple": 30, "lemon": 30}
    assert record["holds"] is True
    record = json.loads(good(call("inspect", "fruit.mm", "--json")))
    assert len(record["planes"]) == 10
    assert "w" not in record
    assert record["about"]["test"]["rows"] == 30
    assert good(call("inspect", "two.mm", "--weights", 1)).count("_cm ") <= 2


# separable ----------------------------------------------------------------------------------------


def test_separable_pairs(here):
    lines = records(good(run("separable", "fruit.csv", "--target", "fruit", "--json", cwd=here)))
    found = {"-".join(line["pair"]) for line in lines if line["separable"]}
    assert found == {"apple-banana", "apple-lemon", "banana-lemon", "banana-orange", "banana-pear",
                     "lemon-orange"}  # fmt: skip
    assert len(lines) == 10


def test_separable_planes_separate(here):
    line = json.loads(good(call("separable", "fruit.csv", "--target", "fruit", "--pair", "apple",
                                "lemon", "--widest", "--json")))  # fmt: skip
    X, y = two_fruits()
    w, b = np.array(line["w"]), line["b"]
    distances = (X @ w + b) * np.where(y == "lemon", 1, -1) / np.linalg.norm(w)
    assert line["margin"] == pytest.approx(distances.min())
    assert line["margin"] == pytest.approx(line["margin_bound"])
    text = good(call("separable", "fruit.csv", "--target", "fruit", "--pair", "apple", "lemon"))
    assert "separable: a plane has margin" in text
    assert "> 0 for lemon, < 0 for apple" in text


def test_proofs_of_inseparability_can_be_checked_by_hand(here):
    args = [
        "separable",
        "fruit.csv",
        "--target",
        "fruit",
        "--pair",
        "apple",
        "orange",
    ]
    line = json.loads(good(call(*args, "--proof", "--json")))
    rows = list(csv.reader(FRUIT.open()))[1:]
    u = np.array(line["multipliers"])
    chosen = [rows[k - 1] for k in line["rows"]]
    x = np.array([[float(v) for v in row[:3]] + [1.0] for row in chosen])
    y = np.array([{"apple": -1, "orange": 1}[row[3]] for row in chosen])
    assert (u >= 0).all()
    assert u.sum() == pytest.approx(1)
    assert_allclose((u * y) @ x, 0, atol=1e-10)
    point = (u * (y > 0)) @ x[:, :3] / u[y > 0].sum()
    assert_allclose(list(line["common_point"].values()), point)
    text = good(call(*args, "--proof"))
    assert "not separable" in text
    assert "Σ u y (x, 1) = 0" in text
    for k in line["rows"]:
        assert re.search(rf"│ {k} ", text)


def test_separable_exit_code(here):
    args = ["separable", "fruit.csv", "--target", "fruit", "--exit-code", "--pair", "apple"]
    done = run(*args, "orange", cwd=here)
    assert done.code == 3
    assert "not separable" in done.out
    assert done.err == ""
    assert good(call(*args, "lemon"))
    bad(run(*args, "stone", cwd=here), "no class 'stone'", code=2)
    bad(call(*args, "apple"), "different", code=2)


def test_separable_in_the_units_of_the_file(here):
    """A plane of few terms is one line; its weights are those of the columns as they are."""
    (here / "far.csv").write_text("x,y,c\n1000,5,a\n1001,5,a\n1004,5,b\n1006,7,b\n")
    line = json.loads(good(call("separable", "far.csv", "--target", "c", "--widest", "--json")))
    assert_allclose(line["w"], [2 / 3, 0], atol=1e-9)
    assert_allclose(line["b"], -1002.5 * 2 / 3)
    assert line["margin"] == pytest.approx(1.5)
    text = good(call("separable", "far.csv", "--target", "c", "--widest"))
    assert "-668.333 > 0 for b, < 0 for a" in text
    bad(call("separable", "far.csv", "--target", "c", "--no-scale"), "no-scale", code=2)


def test_separable_shows_the_whole_plane_or_says_that_it_does_not(here):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30))
    rows = [",".join(f"{v:.3f}" for v in row) + f",{'ab'[k % 2]}" for k, row in enumerate(X)]
    names = ",".join(f"c{k}" for k in range(30))
    (here / "wide.csv").write_text(names + ",label\n" + "\n".join(rows) + "\n")
    text = good(call("separable", "wide.csv", "--target", "label"))
    assert "the largest 20 of 30 weights: the plane needs all of them" in text
    whole = good(call("separable", "wide.csv", "--target", "label", "--weights", "30"))
    assert "of 30 weights" not in whole
    assert all(re.search(rf"\bc{k}\b", whole) for k in range(30))


def test_separable_sums_up_many_pairs(here):
    text = good(call("separable", "fruit.csv", "--target", "fruit"))
    assert "10 pairs: 6 separable, 4 not separable; --pair A B shows" in text
    assert len(text.splitlines()) < 20
    assert "Σ u y (x, 1) = 0" in good(
        call("separable", "fruit.csv", "--target", "fruit", "--proof")
    )


# compare ------------------------------------------------------------------------------------------


def test_compare(here):
    done = run(
        "compare", "fruit.csv", "--target", "fruit", "--json", "--picture", "c.png", cwd=here
    )
    record = json.loads(good(done))
    assert [row["algorithm"] for row in record["rows"]] == list(options.MODEL_NAMES)
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


def test_compare_for_people(here):
    text = good(call("compare", "fruit.csv", "--target", "fruit", "--test", "0.5"))
    assert "75 rows to learn, 75 to test" in text
    for name in options.MODEL_NAMES:
        assert re.search(rf"│ {name} .* %", text)
    assert "picture: comparison.png" in text
    is_picture(here / "comparison.png")
    bad(run("compare", "fruit.csv", "--target", "kind", cwd=here), "no target column 'kind'")


# plot ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["boundary", "margins", "convergence", "support"])
def test_plots_of_models(models, kind):
    pair = ["--pair", "apple", "lemon"] if kind == "support" else []
    assert good(call("plot", "two.mm", "two.csv", "--kind", kind, "--out", "a.png"))
    small = is_picture(models / "a.png")
    if kind == "support":  # of the rows that it was fitted to
        good(call("fit", "fruit.csv", "--target", "fruit", "--out", "fruit.mm"))
    assert good(call("plot", "fruit.mm", "fruit.csv", "--kind", kind, "--out", "b.png", *pair))
    is_picture(models / "b.png")
    good(call("plot", "two.mm", "two.csv", "--kind", kind, "--out", "c.png", "--dpi", 300))
    assert is_picture(models / "c.png")[0] == pytest.approx(2 * small[0], abs=2)


TWO = ["fruit.csv", "--target", "fruit", "--pair", "apple", "lemon"]


@pytest.mark.parametrize("kind", ["separability", "gram", "boundary", "margins", "support"])
def test_plots_of_data(here, kind):
    more = ["--model", "linear-svc"] if kind in ("boundary", "margins") else []
    assert good(call("plot", *TWO, "--kind", kind, *more)) == f"{kind}: {kind}.png\n"
    is_picture(here / f"{kind}.png")


@pytest.mark.parametrize("name", ["perceptron", "relaxation", "svc"])
def test_paths(here, name):
    more = ["--kernel", "linear"] if name == "svc" else []
    good(call("plot", *TWO, "--features", "mass_g", "width_cm", "--kind", "path", "--model", name,
              *more))  # fmt: skip
    is_picture(here / "path.png")


def test_animations(here):
    args = [*TWO, "--features", "mass_g", "width_cm", "--kind", "animation", "--max-iter", 5]
    good(run("plot", *args, "--out", "a.gif", cwd=here))
    with Image.open(here / "a.gif") as film:
        assert film.n_frames > 1
    good(call("plot", *args, "--out", "a.html"))
    assert "<img" in (here / "a.html").read_text() or "<video" in (here / "a.html").read_text()


def test_plots_as_other_files(models):
    good(run("plot", "fruit.mm", "fruit.csv", "--features", "mass_g", "width_cm", "--out", "a.svg",
             cwd=models))  # fmt: skip
    text = (models / "a.svg").read_text()
    assert "<svg" in text
    good(call("plot", "fruit.mm", "fruit.csv", "--out", "a.pdf"))
    assert (models / "a.pdf").read_bytes().startswith(b"%PDF")


def test_plots_that_cannot_be(models):
    bad(run("plot", "fruit.mm", cwd=models), "needs the data too", code=2)
    bad(call("plot", "fruit.mm", "fruit.csv", "--kind", "gram"), "is a model", code=2)
    bad(call("plot", "fruit.mm", "fruit.csv", "--model", "svc"), "is a model already", code=2)
    bad(call("plot", "fruit.csv", "two.csv", "--target", "fruit"), "is data", code=2)
    bad(call("plot", "fruit.csv", "--target", "fruit"), "--pair A B", code=2)
    bad(call("plot", *TWO, "--kind", "path"), "--features A B", code=2)
    bad(call("plot", "fruit.csv", "--target", "fruit", "--pair", "apple", "stone"), "pear", code=2)
    bad(call("plot", "fruit.mm", "fruit.csv", "--features", "mass_g", "colour"), "'colour'")
    bad(call("plot", "fruit.mm", "fruit.csv", "--out", "a.xyz"), "no ending of a picture", code=2)
    bad(call("plot", "nowhere.mm", "fruit.csv"), "nowhere.mm", code=2)
    assert not list(models.glob("*.png"))


def test_a_pair_of_a_model_is_drawn_or_refused(models):
    done = call("plot", "fruit.mm", "fruit.csv", "--pair", "apple", "no such class")
    assert done.code != 0


def test_features_of_a_separability_figure(here):
    args = ["plot", *TWO, "--kind", "separability"]
    good(call(*args, "--features", "width_cm", "height_cm", "--out", "two.png"))
    good(call(*args, "--out", "all.png"))
    assert (here / "two.png").read_bytes() != (here / "all.png").read_bytes()


# report -------------------------------------------------------------------------------------------


def test_report(models):
    assert good(run("report", "fruit.mm", "fruit.csv", cwd=models)) == "report: report.html\n"
    text = (models / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", text)
    assert set(re.findall(r'src="([^,]*),', text)) == {"data:image/png;base64"}
    assert text.count("<figure>") >= 3
    model = mm.load("fruit.mm")
    assert str(model[-1].certificate_) in text
    record = json.loads(good(call("evaluate", "fruit.mm", "fruit.csv", "--json")))
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>.*?</tr>", text)]
    for label, counts in zip(record["classes"], record["confusion"], strict=True):
        assert [label, *map(str, counts)] in cells
    assert "test error" in text
    assert "120" in text


def test_reports_escape_what_files_say(here):
    evil = "<script>alert(1)</script>"
    lines = ["a&<b>,c,y"]
    lines += [f"{k},{k % 3},{evil}" for k in range(9)] + [f"{k + 9},{k % 2},b" for k in range(9)]
    (here / "evil <b>.csv").write_text("\n".join(lines) + "\n")
    fit = ["fit", "evil <b>.csv", "--target", "y", "--model", "linear-svc", "--out", "evil.mm"]
    good(call(*fit))
    good(call("report", "evil.mm", "evil <b>.csv", "--out", "evil.html"))
    text = (here / "evil.html").read_text()
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "a&amp;&lt;b&gt;" in text


MARKUP = "[red]a[/red],c,y\n1,2,[bold]u[/]\n2,2,[/bold]\n1,3,[bold]u[/]\n"


def test_names_of_features_are_no_markup(here):
    (here / "rich.csv").write_text(MARKUP.replace("[/bold]", "v").replace("[bold]u[/]", "u"))
    good(call("fit", "rich.csv", "--target", "y", "--model", "linear-svc", "--out", "rich.mm"))
    assert "[red]a[/red]" in good(call("inspect", "rich.mm"))


@pytest.mark.parametrize("command", [["inspect"], ["evaluate", "rich.csv"]])
def test_labels_are_no_markup(here, command):
    (here / "rich.csv").write_text(MARKUP)
    good(call("fit", "rich.csv", "--target", "y", "--model", "linear-svc", "--out", "rich.mm"))
    name, *data = command
    text = good(call(name, "rich.mm", *data))
    assert "[bold]u[/]" in text
    assert "[/bold]" in text


def test_reports_that_cannot_be(models):
    bad(run("report", "fruit.mm", "nowhere.csv", cwd=models), "nowhere.csv: no such file")
    bad(call("report", "two.mm", "fruit.csv"), "'banana', no class of the model: apple, lemon")
    pl.read_csv(FRUIT).drop("mass_g").write_csv(models / "less.csv")
    bad(call("report", "fruit.mm", "less.csv"), "less.csv: lacks 'mass_g'")
    assert not (models / "report.html").exists()


# convert ------------------------------------------------------------------------------------------


def scores_of(model, data, *more):
    rows = table(good(call("predict", model, data, *more)))
    return [row["label"] for row in rows], [float(row["score"]) for row in rows]


@pytest.fixture
def signs(here):
    """Two fruits as svmlight and as CSV, with labels that LIBSVM knows."""
    X, y = two_fruits()
    y = np.where(y == "lemon", 1, -1)
    (here / "d.svm").write_bytes(svmlight(X, y))
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    (here / "d.csv").write_text("mass,width,height\n" + "\n".join(lines) + "\n")
    return X, y


def test_libsvm_there_and_back(here, signs):
    good(call("fit", "d.svm", "--no-scale", "--gamma", 0.01, "--C", 5, "--out", "d.mm"))
    done = run("convert", "d.mm", "--to", "libsvm", cwd=here)
    assert "d.model" in good(done)
    assert (here / "d.model").read_text().startswith("svm_type c_svc\n")
    good(call("convert", "d.model", "--to", "maxmargin", "--out", "again.mm"))
    expected = scores_of("d.mm", "d.csv")
    for name in ("d.model", "again.mm"):
        found = scores_of(name, "d.csv")
        assert found[0] == expected[0]
        assert_allclose(found[1], expected[1], rtol=1e-9)
        assert "trained by another program" in good(call("inspect", name))
        record = json.loads(good(call("inspect", name, "--json")))
        assert record["certificate"] is None
        assert record["n_support"] == len(mm.load("d.mm")[-1].support_)


@pytest.mark.parametrize("command", ["predict", "evaluate", "report"])
def test_models_of_libsvm_on_the_data_of_libsvm(here, signs, command):
    good(call("fit", "d.svm", "--no-scale", "--gamma", 0.01, "--C", 5, "--out", "d.mm"))
    good(call("convert", "d.mm", "--to", "libsvm"))
    good(call(command, "d.model", "d.svm"))


@pytest.mark.parametrize("name", ["perceptron", "linear-svc", "kernel-perceptron", "svc"])
def test_models_of_dense_rows_on_svmlight(here, signs, name):
    lines = (here / "d.csv").read_text().splitlines()
    labels = ["y", *map(str, signs[1])]
    rows = [f"{line},{label}" for line, label in zip(lines, labels, strict=True)]
    (here / "t.csv").write_text("\n".join(rows) + "\n")
    good(call("fit", "t.csv", "--target", "y", "--model", name, "--out", "m.mm"))
    expected = scores_of("m.mm", "t.csv")
    done = call("predict", "m.mm", "d.svm")
    if done.code:  # a refusal that says why would do
        assert "d.svm" in done.err
        return
    assert_allclose([float(row["score"]) for row in table(good(done))], expected[1])


@pytest.mark.parametrize("name", ["perceptron", "linear-svc", "kernel-perceptron", "svc"])
def test_models_of_svmlight_on_dense_rows(here, signs, name):
    good(call("fit", "d.svm", "--model", name, "--out", "m.mm"))
    expected = scores_of("m.mm", "d.svm")
    found = scores_of("m.mm", "d.csv")
    assert found[0] == expected[0]
    assert_allclose(found[1], expected[1], rtol=1e-9)


def test_libsvm_with_the_scaling_beside(here, signs):
    X, y = signs
    np.savez(here / "d.npz", X=X, y=y)
    good(call("fit", "d.npz", "--C", 5, "--out", "d.mm"))
    done = call("convert", "d.mm", "--to", "libsvm", "--out", "d.model")
    good(done)
    assert "svm-scale -r d.model.range" in done.err
    lines = (here / "d.model.range").read_text().split("\n")
    assert lines[0] == "x"
    lower, upper = map(float, lines[1].split())
    low, high = np.array([list(map(float, line.split()))[1:] for line in lines[2:5]]).T
    scaled = lower + (upper - lower) * (X - low) / (high - low)
    np.savez(here / "scaled.npz", X=scaled, y=y)
    assert_allclose(scores_of("d.model", "scaled.npz")[1], scores_of("d.mm", "d.npz")[1], rtol=1e-6)


def test_libsvm_itself_agrees(here, signs):
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, labels = signs
    # Scaling goes into w of a linear machine.
    good(call("fit", "d.svm", "--kernel", "linear", "--out", "d.mm"))
    good(call("convert", "d.mm", "--to", "libsvm", "--out", "d.model"))
    theirs = svmutil.svm_load_model("d.model")
    rows = [dict(enumerate(row, 1)) for row in X.tolist()]
    given, _, values = svmutil.svm_predict(labels.tolist(), rows, theirs, "-q")
    sign = 1 if theirs.get_labels()[0] == 1 else -1
    expected = scores_of("d.mm", "d.svm")
    assert [int(v) for v in given] == [int(v) for v in expected[0]]
    assert_allclose(sign * np.ravel(values), expected[1], atol=1e-6)


def test_onnx(models):
    onnxruntime = pytest.importorskip("onnxruntime")
    good(run("convert", "fruit.mm", "--to", "onnx", cwd=models))
    session = onnxruntime.InferenceSession("fruit.onnx", providers=["CPUExecutionProvider"])
    X = mm.datasets.load_fruit().data
    label, scores = session.run(None, {session.get_inputs()[0].name: X})
    model = mm.load("fruit.mm")
    frame = mm.datasets.load_fruit(as_frame=True).data
    assert label.tolist() == model.predict(frame).tolist()
    assert_allclose(scores, model.decision_function(frame), atol=1e-6)


def test_json(models):
    good(call("convert", "two.mm", "--to", "json", "--out", "w.json"))
    record = json.loads((models / "w.json").read_text())
    assert record["classes"] == ["apple", "lemon"]
    assert record["feature_names"] == ["mass_g", "width_cm", "height_cm"]


def test_conversions_that_cannot_be(models):
    good(call("fit", "fruit.csv", "--target", "fruit", "--model", "kernel-perceptron", "--out",
              "k.mm"))  # fmt: skip
    bad(run("convert", "k.mm", "--to", "libsvm", cwd=models), "LIBSVM", "KernelPerceptron")
    assert not (models / "k.model").exists()
    (models / "k.json").write_text("mine")
    bad(call("convert", "k.mm", "--to", "json"), "k.json is there already", code=2)
    assert (models / "k.json").read_text() == "mine"
    bad(call("convert", "fruit.mm", "--to", "maxmargin"), "would replace fruit.mm", code=2)
    bad(call("convert", "fruit.mm", "--to", "maxmargin", "--out", "./fruit.mm"), code=2)
    bad(call("convert", "fruit.csv", "--to", "json"), "fruit.csv")
    bad(call("convert", "fruit.mm", "--to", "pickle"), "pickle", code=2)


# What is not there --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("absent", "remedy", "args"),
    [
        ("polars", 'pip install "polars>=1.34"', ["fit", "fruit.csv", "--target", "fruit"]),
        ("skl2onnx", 'pip install "maxmargin[onnx]"', ["convert", "fruit.mm", "--to", "onnx"]),
    ],
)
def test_libraries_that_are_not_installed(models, absent, remedy, args):
    (models / "without").mkdir()
    hide = f"import sys; sys.modules[{absent!r}] = None\n"
    (models / "without" / "sitecustomize.py").write_text(hide)
    done = run(*args, cwd=models, env={"PYTHONPATH": str(models / "without")})
    bad(done, remedy)


def test_svmlight_and_npz_need_no_polars(here):
    (here / "without").mkdir()
    (here / "without" / "sitecustomize.py").write_text("import sys; sys.modules['polars'] = None\n")
    X, y = two_fruits()
    (here / "d.svm").write_bytes(svmlight(X, np.where(y == "lemon", 1, -1)))
    done = run("fit", "d.svm", "--model", "fisher", cwd=here,
               env={"PYTHONPATH": str(here / "without")})  # fmt: skip
    good(done)


PROBE = "import maxmargin as m; print(m.__file__); open(m.__file__ + 'x', 'w')"


def weaken():
    """Take from root what lets it write where permissions do not."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for capability in (1, 2):  # DAC_OVERRIDE, DAC_READ_SEARCH, out of the bounding set
        if prctl(24, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.mark.skipif(sys.platform != "linux", reason="takes capabilities from root")
def test_a_read_only_install_without_a_home(here):
    installed = here / "site" / "maxmargin"
    shutil.copytree(Path(mm.__file__).parent, installed,
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    folders = [p for p in (here / "site").rglob("*") if p.is_dir()]
    for folder in [*folders, here / "site"]:
        folder.chmod(0o555)
    try:
        env = {"PYTHONPATH": str(here / "site"), "HOME": "/proc/nowhere",
               "NUMBA_CACHE_DIR": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}  # fmt: skip
        first = weaken if os.geteuid() == 0 else None
        probe = subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, **env}, preexec_fn=first, capture_output=True, text=True,
        )  # fmt: skip
        if "PermissionError" not in probe.stderr:
            pytest.skip("cannot make a folder read-only here")
        assert probe.stdout.strip() == str(installed / "__init__.py")
        fit = ["fit", "fruit.csv", "--target", "fruit", "--model", "perceptron", "--max-iter", 20]
        done = run(*fit, "--out", "m.mm", cwd=here, env=env, preexec_fn=first)  # fmt: skip
        assert "Perceptron on fruit.csv" in good(done)
        assert (here / "m.mm").exists()
        assert not list(installed.rglob("__pycache__"))
    finally:
        for folder in [here / "site", *folders]:
            folder.chmod(0o755)


def test_a_terminal_that_cannot_write_arrows(here):
    # What Python uses for a pipe or a file on many a Windows.
    done = run("fit", "fruit.csv", "--target", "fruit", "--model", "fisher", cwd=here,
               env={"PYTHONIOENCODING": "cp1252"})  # fmt: skip
    good(done)


# Interruption -------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupting_a_fit(here):
    rng = np.random.default_rng(0)
    np.savez(here / "long.npz", X=rng.normal(size=(20_000, 20)), y=rng.integers(0, 2, 20_000))
    process = subprocess.Popen(
        [sys.executable, "-m", "maxmargin", "fit", "long.npz", "--C", "1000", "--out", "m.mm"],
        cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        time.sleep(5.0)
        assert process.poll() is None, process.communicate()
        started = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        seconds = time.perf_counter() - started
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Abort" in err
    assert out == ""
    assert seconds < 2.0
    assert sorted(p.name for p in here.iterdir()) == ["fruit.csv", "long.npz"]


@pytest.mark.skipif(os.name != "posix", reason="opens a pseudo-terminal")
def test_progress_on_a_terminal(models):
    import pty

    for args, shown in (
        (["fit", "fruit.csv", "--target", "fruit", "--cv", "3"], ["cross-validating", "round "]),
        (["predict", "fruit.mm", "fruit.csv", "--out", "l.csv"], ["predicting", "150 rows"]),
    ):
        master, slave = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "maxmargin", *args], cwd=models, stdout=subprocess.PIPE,
            stderr=slave, text=True, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        ) as process:  # fmt: skip
            os.close(slave)
            text = b""
            while True:
                try:
                    part = os.read(master, 65536)
                except OSError:  # the other side is closed
                    break
                if not part:
                    break
                text += part
            out = process.stdout.read()
        os.close(master)
        assert process.returncode == 0, text
        assert "\x1b[" not in out  # a pipe gets no colours
        for words in shown:
            assert words in text.decode()


# warmup -------------------------------------------------------------------------------------------


def test_warmup(tmp_path):
    record = json.loads(good(run("warmup", "--json", cwd=tmp_path, timeout=300)))
    assert list(record["seconds"]) == list(options.MODEL_NAMES)
    assert record["total"] == pytest.approx(sum(record["seconds"].values()))
    bad(run("warmup", "everything", cwd=tmp_path), "everything", code=2)


# Options and columns that would change nothing ----------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fruit.mm", "fruit.csv", "--C", 10], "--C is for data"),
        (["fruit.mm", "fruit.csv", "--impute"], "--impute is for data"),
        (["fruit.mm", "fruit.csv", "--model", "svc"], "--model is for data"),
        (["fruit.mm", "fruit.csv", "--kind", "margins", "--features", "mass_g", "width_cm"],
         "--features is not for margins"),
        (["fruit.csv", "--target", "fruit", "--kind", "gram", "--C", 3], "--C is for figures of a"),
    ],
)  # fmt: skip
def test_plot_refuses_options_that_change_nothing(models, arguments, said):
    bad(call("plot", *arguments), said, code=2)


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


def test_more_options_that_change_nothing(models):
    model = ("plot", "fruit.mm", "--kind", "convergence")
    bad(call(*model, "--target", "fruit"), "--target is for data", code=2)
    bad(call(*model, "--no-header"), "--no-header is for data", code=2)
    data = ("plot", "fruit.csv", "--target", "fruit")
    bad(call(*data, "--kind", "gram", "--seed", 3), "--seed is for figures", code=2)
    bad(call(*data, "--kind", "animation", "--dpi", 50), "--dpi is not for", code=2)


def test_options_of_svmlight_and_of_others(here):
    (here / "d.svm").write_text("1 1:2 2:1\n-1 1:3\n1 2:4\n-1 1:1\n")
    bad(call("fit", "d.svm", "--target", "y"), "--target: d.svm has its labels in front", code=2)
    fruit = ("fit", "fruit.csv", "--target", "fruit")
    bad(call(*fruit, "--first-index", 0), "--first-index is of svmlight text", code=2)
    good(call("fit", "d.svm", "--model", "fisher", "--out", "d.mm"))
    given = ("evaluate", "d.mm", "d.svm")
    bad(call(*given, "--target", "y"), "--target: d.svm has its labels in front", code=2)
    good(call(*given, "--first-index", 1))


def test_nothing_is_trained_for_a_picture_that_cannot_be(here):
    done = call("compare", "fruit.csv", "--target", "fruit", "--picture", "out.xyz")
    bad(done, "out.xyz: no ending of a picture", code=2)
    for limit in (0, -1):
        done = call("compare", "fruit.csv", "--target", "fruit", "--time-limit", limit)
        bad(done, "--time-limit", code=2)


def test_negative_numbers_of_weights(models):
    bad(call("inspect", "fruit.mm", "--weights", -1), "--weights", code=2)


# Labels ------------------------------------------------------------------------------------------


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


# What a model file says of its training --------------------------------------------------------


@pytest.mark.parametrize(
    "about",
    [
        {"data": {"source": "a", "target": "y", "classes": [0, 1], "rows": 3, "columns": 2}},
        {"data": {"source": "a", "target": "y", "classes": {"u": 1}, "rows": 3, "columns": 2}},
        {"data": "words", "date": None},
    ],
)
def test_facts_that_others_wrote(here, about):
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


# Features counted from 0 -------------------------------------------------------------------------


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


# Where answers go ------------------------------------------------------------------------------


def test_answers_go_to_a_device(models):
    done = run("predict", "fruit.mm", "fruit.csv", "--out", "/dev/stdout", cwd=models)
    assert good(done).startswith("label,")
    assert "150 rows labelled" in done.out


# Models of LIBSVM ------------------------------------------------------------------------------


def test_figures_of_models_that_another_program_trained(here, signs):
    good(call("fit", "d.svm", "--no-scale", "--gamma", 0.01, "--C", 5, "--out", "d.mm"))
    good(call("convert", "d.mm", "--to", "libsvm"))
    for kind in ("boundary", "margins"):
        good(call("plot", "d.model", "d.svm", "--kind", kind))
        assert (here / f"{kind}.png").exists()
    for kind in ("convergence", "support"):
        bad(call("plot", "d.model", "d.svm", "--kind", kind), "trained by another program")
    good(call("report", "d.model", "d.svm"))
    page = (here / "report.html").read_text()
    assert page.count("<img") == 2
    assert page.count("Not drawn: ") == page.count("trained by another program, wh") == 2
