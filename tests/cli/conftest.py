"""Folders with data and models for the command line."""

import contextlib
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.command_line import FRUIT, call, run, svmlight, two_fruits


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with the fruit."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(FRUIT, tmp_path / "fruit.csv")
    return tmp_path


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Models fitted once, one by a process of its own, and what was printed."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(FRUIT, folder / "fruit.csv")
    rows = FRUIT.read_text().splitlines()
    two = [rows[0], *(row for row in rows if row.endswith((",apple", ",lemon")))]
    (folder / "two.csv").write_text("\n".join(two) + "\n")
    fit = run("fit", "fruit.csv", "--target", "fruit", "--C", 10, "--test", 0.2, "--json", "--out",
              "fruit.mm", cwd=folder)  # fmt: skip
    with contextlib.chdir(folder):
        line = call("fit", "two.csv", "--target", "-1", "--kernel", "linear", "--C", "inf",
                    "--no-scale", "--out", "two.mm")  # fmt: skip
    return SimpleNamespace(folder=folder, fit=fit, line=line)


@pytest.fixture
def models(made, here):
    """The fitted models, in the folder of the test."""
    for name in ("fruit.mm", "two.mm", "two.csv"):
        shutil.copy(made.folder / name, here / name)
    return here


@pytest.fixture
def signs(here):
    """Two fruits as svmlight and as CSV, with labels that LIBSVM knows."""
    X, y = two_fruits()
    y = np.where(y == "lemon", 1, -1)
    (here / "d.svm").write_bytes(svmlight(X, y))
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    (here / "d.csv").write_text("mass,width,height\n" + "\n".join(lines) + "\n")
    return X, y
