"""`inspect` and `separable`."""

import csv
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from tests.helpers.command_line import FRUIT, bad, call, good, records, two_fruits

# inspect ------------------------------------------------------------------------------------------


def test_inspect(models):
    text = good(call("inspect", "two.mm"))
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
    lines = records(good(call("separable", "fruit.csv", "--target", "fruit", "--json")))
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
    done = call(*args, "orange")
    assert done.code == 3
    assert "not separable" in done.out
    assert done.err == ""
    assert good(call(*args, "lemon"))
    bad(call(*args, "stone"), "no class 'stone'", code=2)
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


# report -------------------------------------------------------------------------------------------


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
