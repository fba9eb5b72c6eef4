"""The command line as a whole: help, usage errors, interruption, and missing packages."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.cli import main, options
from maxmargin.estimators.registry import MODELS
from maxmargin.files import reading
from tests.helpers.command_line import bad, call, good, on_terminal, run, svmlight, two_fruits

# The program as a whole ---------------------------------------------------------------------------


def test_names_are_those_of_the_rooms_below():
    assert tuple(options.MODEL_NAMES) == tuple(MODELS)
    assert tuple(options.FORMATS) == tuple(reading.FORMATS)


def test_version_by_the_installed_script(tmp_path):
    script = Path(sys.executable).with_name("maxmargin")
    done = subprocess.run(
        [script, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=600
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
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0
        imported = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
        assert "click" in imported
        heavy = {"numpy", "scipy", "sklearn", "numba", "matplotlib", "polars", "pandas", "jinja2"}
        assert not heavy & imported


COMMANDS = [
    "demo", "fit", "tune", "compare", "predict", "evaluate", "inspect", "separable", "verify",
    "plot", "report", "lab", "convert", "warmup", "completion", "man",
]  # fmt: skip


def test_help_lists_every_command():
    text = good(call("--help"))
    assert [line.split()[0] for line in text.split("Commands:")[1].splitlines() if line] == COMMANDS
    assert good(call("-h")) == text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_in_the_help_can_be_typed(name, here):
    (here / "fruit.toml").write_text('data = "fruit.csv"\n')
    text = good(call(name, "--help"))
    examples = text.split("Example")[1].split("Options:")[0].replace("\\\n", " ")
    lines = [line.strip() for line in examples.splitlines() if "maxmargin " in line]
    assert lines
    for line in lines:
        words = shlex.split(re.split(r"[|>]\s", line[line.index("maxmargin ") :])[0])
        assert words[1] == name
        main.commands[name].make_context(name, words[2:])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("fit", "--cv --test --metrics-out --class-weight --config --save-config --quiet --verbose "
                "--keep-dual --approximate --components --device --scheduler --epsilon --impute"),
        ("tune", "--metrics-out --class-weight --config --quiet --plot --scoring --strategy "
                 "--one-standard-error --time-limit --impute"),
        ("compare", "--metrics-out --config --quiet --model --impute"),
        ("predict", "--keep --proba --quiet --scheduler"),
        ("evaluate", "--metrics-out --verbose --device --scheduler"),
        ("verify", "--full --json"),
        ("plot", "--kind --dpi --impute"),
    ],
)  # fmt: skip
def test_options_have_an_example_in_the_help(name, wanted):
    examples = good(call(name, "--help")).split("Examples:")[1].split("Options:")[0].split()
    assert set(wanted.split()) <= set(examples)


def test_usage(here):
    bad(call("fitt"), "No such command", code=2)
    bad(call("fit"), "Missing argument 'DATA'", code=2)
    bad(call("fit", "fruit.csv", "--colour", "red"), "--colour", code=2)
    bad(call("fit", "fruit.csv", "--model", "forest"), "forest", code=2)
    done = call("convert", "m.mm")
    assert done.code == 2
    assert "--to" in done.err
    bad(call("predict", "m.mm"), "Missing argument 'DATA'", code=2)


# Missing files and packages -----------------------------------------------------------------------


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


@pytest.mark.skipif(os.name != "posix", reason="opens a pseudo-terminal")
def test_interrupting_a_fit(here):
    rng = np.random.default_rng(0)
    np.savez(here / "long.npz", X=rng.normal(size=(20_000, 20)), y=rng.integers(0, 2, 20_000))
    done = on_terminal("fit", "long.npz", "--C", 1000, "--out", "m.mm", cwd=here,
                       interrupted_at="round ")  # fmt: skip
    assert done.code == 130
    assert "Traceback" not in done.err
    assert "Abort" in done.err
    assert done.out == ""
    assert sorted(p.name for p in here.iterdir()) == ["fruit.csv", "long.npz"]


@pytest.mark.skipif(os.name != "posix", reason="opens a pseudo-terminal")
def test_progress_on_a_terminal(models):
    for args, shown in (
        (["fit", "fruit.csv", "--target", "fruit", "--cv", "3"], ["cross-validating", "round "]),
        (["predict", "fruit.mm", "fruit.csv", "--out", "l.csv"], ["predicting", "150 rows"]),
    ):
        done = on_terminal(*args, cwd=models)
        assert done.code == 0, done.err
        assert "\x1b[" not in done.out  # a pipe gets no colours
        for words in shown:
            assert words in done.err
