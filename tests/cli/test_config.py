"""`--config` and `--save-config`: options in TOML files."""

import json
import tomllib

import pytest

from maxmargin.cli import main
from maxmargin.cli.config import key_of
from tests.helpers.command_line import bad, call, good


def outcome(text):
    """Return what a fit printed as JSON, but for its time."""
    return {key: value for key, value in json.loads(text).items() if key != "seconds"}


def test_a_saved_run_is_repeated(here):
    args = ["fit", "fruit.csv", "--target", "fruit", "--C", "inf", "--kernel", "rbf", "--gamma",
            "2", "--test", 0.25, "--missing", 'x,"y"', "--missing", "z", "--no-scale", "--json",
            "--class-weight", "apple=2,pear=0.5", "--set", "shrinking=false", "--seed", 7,
            "--set", "cache_size=100", "--max-iter", 500, "--metrics-out", "m.json"]  # fmt: skip
    first = call(*args, "--save-config", "run.toml")
    found = tomllib.loads((here / "run.toml").read_text())
    assert found == {
        "data": ["fruit.csv"], "target": "fruit", "model": "svc", "C": float("inf"),
        "kernel": "rbf", "gamma": "2", "test": 0.25, "missing": ["x", '"y"', "z"],
        "class-weight": "apple=2.0,pear=0.5", "set": ["shrinking=false", "cache_size=100"],
        "no-scale": True, "json": True, "seed": 7, "max-iter": 500, "metrics-out": "m.json",
    }  # fmt: skip
    again = call("fit", "--config", "run.toml")
    assert outcome(good(again)) == outcome(good(first))
    other = outcome(good(call("fit", "--config", "run.toml", "--seed", 8, "--C", 3)))
    assert other["parameters"]["C"] == 3
    assert other["parameters"]["random_state"] == 8
    assert other["parameters"]["max_iter"] == 500
    assert (here / "m.json").exists()


def test_files_for_several_commands(models):
    (models / "all.toml").write_text(
        'separator = ","\n[predict]\nno-scores = true\nkeep = "mass_g"\n[fit]\nC = 3\n'
    )
    text = good(call("predict", "fruit.mm", "fruit.csv", "--config", "all.toml"))
    assert text.splitlines()[0] == "mass_g,label"
    record = json.loads(good(call("fit", "fruit.csv", "--target", "fruit", "--config", "all.toml",
                                  "--json", "--model", "linear-svc")))  # fmt: skip
    assert record["model"] == "LinearSVC"
    assert record["parameters"]["C"] == 3


def test_files_that_cannot_be_used(here):
    fit = ["fit", "fruit.csv", "--target", "fruit"]
    for text, *said in (
        ('modle = "svc"', "fit has no option 'modle'", "the nearest is 'model'"),
        ("c = 1", "fit has no option 'c'", "the nearest is 'C'"),
        ("[fitt]\nC = 1", "there is no command 'fitt'", "the nearest is 'fit'"),
        ("C =", "not valid TOML"),
        ("C = [1, 2]", "C must be one value"),
        ("C = true", "C must be a value"),
        ("strict = 1", "strict must be true or false"),
        ('config = "other.toml"', "no option 'config'"),
        ("C = 'much'", "Invalid value for '--C'"),
        ("cv = 2.5", "--cv"),
    ):
        (here / "c.toml").write_text(text + "\n")
        bad(call(*fit, "--config", "c.toml"), *said, code=2)
    bad(call(*fit, "--config", "none.toml"), "none.toml: no such file", code=2)
    (here / "c.toml").write_text('picture = "p.png"\n')
    compare = ["compare", "fruit.csv", "--target", "mass_g", "--model", "svr"]
    bad(call(*compare, "--config", "c.toml"), "--picture is for classifiers", code=2)
    bad(call(*fit, "--save-config", "fruit.csv"), "would replace the input", code=2)


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_takes_a_file_with_every_option(name):
    params = main.commands[name].params
    assert "config" in {param.name for param in params}
    keys = [key_of(param) for param in params]
    assert len(set(keys)) == len(keys)
