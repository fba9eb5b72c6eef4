"""The package as a whole: what importing costs, what is public, the command line."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import maxmargin as mm
from maxmargin.cli import main


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_public_name_is_there_and_listed():
    assert set(dir(mm)) == set(mm.__all__)
    for name in mm.__all__:
        assert getattr(mm, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Perceptrom'"):
        _ = mm.Perceptrom


def test_modules_are_imported_when_they_are_used():
    code = "import maxmargin, sys; print('matplotlib' in sys.modules, maxmargin.report.render)"
    assert run(code).startswith("False <function render")


def test_only_separating_rules_say_whether_they_separate():
    from maxmargin.estimators.registry import MACHINES, SEPARATING

    X, y = mm.datasets.load_six_points(return_X_y=True)
    for make in SEPARATING.values():
        assert isinstance(make().fit(X, y).separates_, bool | np.bool_)
    for make in MACHINES.values():
        assert not hasattr(make().fit(X, y), "separates_")


def test_the_base_install_reads_tables():
    import tomllib
    from pathlib import Path

    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    assert any(name.startswith("polars") for name in project["dependencies"])
    known = {re.split(r"[><=\[]", name)[0] for name in project["dependencies"]}
    extras = set(project["optional-dependencies"])
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    assert 'pip install "maxmargin[' not in readme  # it is not published
    assert set(re.findall(r'"\.\[(\w+)\]"', readme)) <= extras
    # Examples need nothing else, but for the one of a cluster.
    of_extra = {"cluster.py": {"dask", "distributed"}}
    standard = sys.stdlib_module_names | known | {"sklearn", "maxmargin"}
    for example in (Path(__file__).parent.parent / "examples").glob("*.py"):
        used = re.findall(r"^(?:import|from) (\w+)", example.read_text(encoding="utf-8"), re.M)
        assert set(used) <= standard | of_extra.get(example.name, set()), example.name


def test_import_loads_neither_compiler_nor_scikit_learn():
    code = "import maxmargin, sys; print('numba' in sys.modules, 'sklearn' in sys.modules)"
    assert run(code) == "False False"


def test_constructing_an_estimator_does_not_load_the_compiler():
    code = "import maxmargin as mm, sys; mm.Perceptron(); print('numba' in sys.modules)"
    assert run(code) == "False"


def test_python_dash_m():
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == f"maxmargin {mm.__version__}"


def test_demo_tells_separable_and_inseparable_pairs_apart():
    answer = CliRunner().invoke(main, ["demo", "--json", "--no-pictures"])
    assert answer.exit_code == 0
    records = [json.loads(line) for line in answer.output.splitlines()]
    pairs = {tuple(record["pair"]) for record in records}
    assert len(pairs) == 10
    for record in records:
        separable = record["separability"].startswith("separable")
        if record["algorithm"] == "Ho–Kashyap":
            assert record["outcome"] == ("separated" if separable else "refuted")
        elif record["outcome"] == "separated":
            assert record["training_error"] == 0.0
            assert separable or "kernel" in record["algorithm"]
        assert np.isfinite(record["margin"])


def test_demo_prints_a_table():
    answer = CliRunner().invoke(main, ["demo", "--pair", "pear", "apple", "--no-pictures"])
    assert answer.exit_code == 0
    assert "apple against pear" in answer.output
    assert "refuted" in answer.output
    assert "share a point" in answer.output


@pytest.mark.parametrize("pair", [["apple", "stone"], ["apple", "apple"]])
def test_demo_refuses_unknown_pairs(pair):
    answer = CliRunner().invoke(main, ["demo", "--pair", *pair])
    assert answer.exit_code == 2
    assert "apple" in answer.output or "different" in answer.output
