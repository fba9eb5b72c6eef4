"""fit --approximate: features of a kernel on the command line."""

import json

import pytest

import maxmargin as mm
from tests.helpers.command_line import bad, call, good


@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_fit_verify_and_use_an_approximated_machine(here, kind):
    said = good(call("fit", "fruit.csv", "--target", "fruit", "--approximate", kind, "--components",
                     40, "--C", 10, "--test", 0.25, "--out", "m.mm"))  # fmt: skip
    assert "certified is the optimum in the space of these features" in said
    assert "root mean square" in said
    assert "support vectors" not in said
    assert mm.load("m.mm")[-1].n_components == 40
    record = json.loads(good(call("verify", "m.mm", "fruit.csv", "--json")))
    assert record["is_training_data"]
    assert record["solved_again"]
    assert "approximation" in good(call("inspect", "m.mm"))
    assert "pear" in good(call("evaluate", "m.mm", "fruit.csv"))
    good(call("plot", "m.mm", "fruit.csv", "--kind", "boundary", "--out", "b.png"))
    good(call("report", "m.mm", "fruit.csv", "--out", "r.html"))
    bad(call("convert", "m.mm", "--to", "libsvm", "--out", "m.libsvm"), "needs support vectors")


def test_options_without_effect_are_refused(here):
    fit = ["fit", "fruit.csv", "--target", "fruit"]
    bad(call(*fit, "--components", 40), "no effect without --approximate", code=2)
    linear = [*fit, "--model", "linear-svc", "--approximate", "fourier"]
    bad(call(*linear), "no parameter 'approximate'", code=2)
    assert "--approximate nystroem --components 500" in good(call("fit", "--help"))
