"""verify: claims of a saved model beside what its training data give."""

import json

import numpy as np
import polars as pl
import pytest

import maxmargin as mm
from maxmargin.cli.data import own_facts
from tests.helpers.command_line import FRUIT, bad, call, good, svmlight


def fit(*options, target="fruit", out="m.mm"):
    named = [] if target is None else ["--target", target]
    good(call("fit", "fruit.csv", *named, *options, "--out", out))


def verified(*options, model="m.mm", data="fruit.csv"):
    return json.loads(good(call("verify", model, data, "--json", *options)))


def tamper(change, path="m.mm"):
    model, about = mm.load(path), own_facts(mm.persistence.about(path))
    change(model[-1])
    mm.save(model, path, about=about)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("fruit", ["--C", "10", "--test", "0.25"]),
        ("fruit", ["--model", "linear-svc", "--test", "0.2", "--seed", "3", "--float32"]),
        ("fruit", ["--multi-class", "crammer_singer", "--class-weight", "balanced"]),
        ("fruit", ["--model", "nusvc", "--nu", "0.1"]),
        ("fruit", ["--model", "perceptron", "--max-iter", "20"]),
        ("fruit", ["--model", "kernel-perceptron"]),
        ("fruit", ["--model", "ho-kashyap"]),
        ("fruit", ["--model", "fisher"]),
        ("mass_g", ["--model", "svr", "--C", "100"]),
        ("mass_g", ["--model", "nu-svr", "--C", "100", "--test", "0.3"]),
        ("mass_g", ["--model", "linear-svr"]),
        (None, ["--model", "one-class", "--float32"]),
    ],
)
def test_models_verify_on_their_training_rows(here, target, options):
    fit(*options, target=target)
    record = verified()
    assert record["agrees"]
    assert record["is_training_data"]
    assert not record["is_sample"]
    about = mm.persistence.about("m.mm")
    assert about["fingerprint"]["rows"] == about["training_rows"]
    for task in record["tasks"]:
        assert all(each["agrees"] for each in task["compared"])


def test_claim_and_finding_are_printed_side_by_side(here):
    fit("--C", "10", "--test", "0.25")
    said = good(call("verify", "m.mm", "fruit.csv"))
    claim = mm.load("m.mm")[-1].certificate_
    row = next(line for line in said.splitlines() if "primal objective" in line)
    assert row.count(f"{claim.primal:.9g}") == 2
    assert "112 of 150 rows" in said
    assert "verified: what the model claims was found again, on all rows" in said


def test_another_format_of_the_same_rows_is_the_training_data(here):
    fit("--C", "10", "--test", "0.25")
    frame = pl.read_csv(FRUIT)
    frame.select("fruit", "height_cm", "mass_g", "width_cm").write_parquet(here / "other.parquet")
    assert verified(data="other.parquet")["is_training_data"]


def test_sparse_text_verifies(here):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 6)) < 0.5, rng.normal(size=(80, 6)).round(3), 0)
    y = np.where(X[:, 0] - X[:, 1] > 0, 1, -1)
    (here / "a.svm").write_bytes(svmlight(X, y))
    good(call("fit", "a.svm", "--out", "m.mm"))
    assert verified(data="a.svm")["is_training_data"]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ([], lambda model: model.intercept_.__setitem__(0, model.intercept_[0] + 0.1)),
        ([], lambda model: model.dual_coef_.__imul__(0.9)),
        ([], lambda model: model.support_vectors_.__iadd__(0.01)),
        (["--model", "linear-svc"], lambda model: model.coef_.__imul__(1.01)),
        (["--model", "perceptron"], lambda model: model.intercept_.__iadd__(1.0)),
    ],
)
def test_a_changed_model_is_found_out(here, options, change):
    fit(*options)
    tamper(change)
    done = call("verify", "m.mm", "fruit.csv")
    assert done.code == 3
    assert "not verified" in done.out
    assert not json.loads(call("verify", "m.mm", "fruit.csv", "--json").out)["agrees"]


def test_changed_claims_are_found_out(here):
    from dataclasses import replace

    fit("--model", "linear-svc")

    def boast(model):
        model.certificates_ = [
            replace(each, primal=each.primal * 1.001) for each in model.certificates_
        ]

    tamper(boast)
    done = call("verify", "m.mm", "fruit.csv")
    assert done.code == 3
    assert "primal objective" in done.out
    assert "differs" in done.out


def test_other_data_are_named(here):
    fit("--C", "10")
    lines = (here / "fruit.csv").read_text().splitlines()
    (here / "fewer.csv").write_text("\n".join(lines[:100]) + "\n")
    done = call("verify", "m.mm", "fewer.csv")
    assert done.code == 3
    assert "not the training data" in done.out
    assert "the data have" in done.out
    (here / "shuffled.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    done = call("verify", "m.mm", "shuffled.csv")
    assert done.code == 3
    assert "warning: shuffled.csv: not the training data" in done.err
    renamed = [line.replace("apple", "quince") for line in lines]
    (here / "renamed.csv").write_text("\n".join(renamed) + "\n")
    done = call("verify", "m.mm", "renamed.csv")
    assert done.code == 3
    assert "'quince' is not a class of the model" in done.out


def test_a_model_without_a_fingerprint_or_certificate(here):
    X, y = mm.datasets.load_fruit(return_X_y=True)
    two = y < 2
    labels = np.where(y[two] == y[two][0], 1, -1)
    model = mm.SVC().fit(X[two], labels)
    (here / "two.svm").write_bytes(svmlight(X[two], labels))
    mm.save(model, "bare.mm")
    record = verified(model="bare.mm", data="two.svm")
    assert record["is_training_data"] is None
    mm.persistence.save_libsvm(model, "two.libsvm")
    bad(call("verify", "two.libsvm", "two.svm"), "must have certificates")


def test_tuned_models_verify(here):
    good(call("tune", "fruit.csv", "--target", "fruit", "--Cs", "1,10", "--gammas", "0.1,1",
              "--test", "0.2", "--out", "m.mm"))  # fmt: skip
    assert verified()["is_training_data"]


def test_help_has_examples():
    said = good(call("verify", "--help"))
    assert "maxmargin verify a9a.mm a9a.bz2 --full" in said
