"""`convert`: models of LIBSVM, ONNX graphs and JSON."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from tests.helpers.command_line import bad, call, good, score_of, table


def scores_of(model, data, *more):
    rows = table(good(call("predict", model, data, *more)))
    return [row["label"] for row in rows], [score_of(row) for row in rows]


def test_libsvm_there_and_back(here, signs):
    good(call("fit", "d.svm", "--no-scale", "--gamma", 0.01, "--C", 5, "--out", "d.mm"))
    done = call("convert", "d.mm", "--to", "libsvm")
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
    assert_allclose([score_of(row) for row in table(good(done))], expected[1])


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
    good(call("convert", "fruit.mm", "--to", "onnx"))
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
    bad(call("convert", "k.mm", "--to", "libsvm"), "LIBSVM", "KernelPerceptron")
    assert not (models / "k.model").exists()
    (models / "k.json").write_text("mine")
    bad(call("convert", "k.mm", "--to", "json"), "k.json exists already", code=2)
    assert (models / "k.json").read_text() == "mine"
    bad(
        call("convert", "fruit.mm", "--to", "maxmargin"), "would replace the input fruit.mm", code=2
    )
    bad(call("convert", "fruit.mm", "--to", "maxmargin", "--out", "./fruit.mm"), code=2)
    bad(call("convert", "fruit.csv", "--to", "json"), "fruit.csv")
    bad(call("convert", "fruit.mm", "--to", "pickle"), "pickle", code=2)
