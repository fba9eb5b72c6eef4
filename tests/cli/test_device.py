"""``--device``: on torch's CPU device in the place of a card, and without a card."""

from __future__ import annotations

import pytest

import maxmargin as mm
from tests.helpers.command_line import bad, call, good, records

pytest.importorskip("torch")

from tests.helpers.devices import pretend_card, pretend_no_card


def test_fit_predict_and_evaluate_on_a_device(models, monkeypatch):
    with monkeypatch.context() as patched:
        pretend_card(patched)
        good(call("fit", "fruit.csv", "--target", "fruit", "--device", "cuda", "--out", "card.mm"))
        there = good(call("predict", "card.mm", "fruit.csv", "--no-scores"))
    pretend_no_card(monkeypatch)
    assert mm.load("card.mm")[-1].device == "cuda"
    done = call("predict", "card.mm", "fruit.csv", "--no-scores")
    assert good(done) == there
    assert done.err.count("predicting on the CPU") == 1
    chosen = call("predict", "card.mm", "fruit.csv", "--no-scores", "--device", "cpu")
    assert good(chosen) == there
    assert "CPU" not in chosen.err
    (record,) = records(good(call("evaluate", "card.mm", "fruit.csv", "--device", "cpu", "--json")))
    assert record["rows"] == 150


def test_compare_on_a_device(models, monkeypatch):
    pretend_card(monkeypatch)
    done = call(
        "compare", "fruit.csv", "--target", "fruit", "--model", "svc", "--model", "perceptron",
        "--device", "cuda", "--picture", "c.png", "--json",
    )  # fmt: skip
    (record,) = records(good(done))
    assert [row["algorithm"] for row in record["rows"]] == ["svc", "perceptron"]


FIT = ("fit", "fruit.csv", "--target", "fruit")


@pytest.mark.usefixtures("models")
def test_no_card(monkeypatch):
    pretend_no_card(monkeypatch)
    bad(call(*FIT, "--device", "cuda"), "device='cuda' needs", 'use device="cpu"')
    bad(call("predict", "fruit.mm", "fruit.csv", "--device", "cuda:1"), "device='cuda:1' needs")


@pytest.mark.usefixtures("here")
def test_names_that_are_refused():
    bad(call(*FIT, "--device", "gpu"), "'device' parameter of SVC must be", code=2)
    lms = (*FIT, "--model", "lms")
    bad(call(*lms, "--device", "cpu"), "has no parameter 'device'", code=2)
    good(call(*lms, "--out", "lms.mm"))
    refused = call("evaluate", "lms.mm", "fruit.csv", "--device", "cpu")
    bad(refused, "--device is not for LMS", code=2)
