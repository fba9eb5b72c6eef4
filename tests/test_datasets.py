"""The bundled data sets: how they are loaded, their exact values, and the source of the fruit."""

from __future__ import annotations

import builtins
import itertools
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_iris

from maxmargin import datasets
from maxmargin.geometry import Hyperplane

TOOL = Path(__file__).resolve().parents[1] / "tools" / "make_fruit.py"
LOADERS = [
    datasets.load_six_points,
    datasets.load_xor,
    datasets.load_and,
    datasets.load_fruit,
]
SEPARABLE = {
    ("apple", "banana"),
    ("apple", "lemon"),
    ("banana", "lemon"),
    ("banana", "orange"),
    ("banana", "pear"),
    ("lemon", "orange"),
}


def largest_margin(X, y):
    """Return max t subject to y(w·x + b) ≥ t, |w_j| ≤ 1: positive iff a plane separates."""
    n, d = X.shape
    answer = linprog(
        np.r_[np.zeros(d + 1), -1.0],
        A_ub=np.c_[-y[:, None] * X, -y, np.ones(n)],
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, None)] * 2,
    )
    assert answer.status == 0
    return -answer.fun


@pytest.mark.parametrize("load", LOADERS)
def test_loads_as_scikit_learn_does(load):
    bunch, iris = load(), load_iris()
    assert list(bunch) == ["data", "target", "frame", "feature_names", "target_names", "DESCR"]
    for name in ("data", "target", "frame", "feature_names", "target_names", "DESCR"):
        assert type(bunch[name]) is type(iris[name])
    assert bunch.data.dtype == np.float64
    assert bunch.target.dtype.kind == "i"
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))
    X, y = load(return_X_y=True)
    assert np.array_equal(X, bunch.data)
    assert np.array_equal(y, bunch.target)
    with pytest.raises(TypeError):
        load(True)


@pytest.mark.parametrize("load", LOADERS)
def test_frames(load):
    pd = pytest.importorskip("pandas")
    plain, bunch = load(), load(as_frame=True)
    assert list(bunch.frame.columns) == [*plain.feature_names, "target"]
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert bunch.target.name == "target"
    X, y = load(return_X_y=True, as_frame=True)
    assert np.array_equal(X.to_numpy(), plain.data)
    assert np.array_equal(y.to_numpy(), plain.target)


@pytest.mark.parametrize("load", LOADERS)
def test_each_load_is_fresh(load):
    load().data[:] = 0
    assert load().data.any()


def test_frames_without_pandas(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert datasets.load_fruit().data.shape == (150, 3)
    with pytest.raises(ImportError, match="pip install pandas"):
        datasets.load_fruit(as_frame=True)


def test_six_points():
    X, y = datasets.load_six_points(return_X_y=True)
    assert X.tolist() == [[1, 6], [1, 10], [4, 11], [5, 2], [7, 6], [10, 4]]
    H = np.outer(y, y) * (X @ X.T)
    assert H[0].tolist() == [37, 61, 70, -17, -43, -34]
    alpha = np.array([8 / 225, 0, 1 / 25, 0, 17 / 225, 0])
    np.testing.assert_allclose((alpha * y) @ X, [-1 / 3, 1 / 5], rtol=1e-14)
    assert abs(alpha @ y) < 1e-16
    margins = Hyperplane([-1 / 3, 1 / 5], 2 / 15).margins(X, y)
    assert np.flatnonzero(margins < 1 + 1e-12).tolist() == [0, 2, 4]


def test_xor_and_and():
    X, y = datasets.load_xor(return_X_y=True)
    assert X.tolist() == [[1, 1], [1, -1], [-1, -1], [-1, 1]]
    assert y.tolist() == [1, -1, 1, -1]
    assert largest_margin(X, y) < 1e-9
    X, y = datasets.load_and(return_X_y=True)
    assert y.tolist() == [2 * int(a and b) - 1 for a, b in X]
    assert Hyperplane([2, 2], -3).geometric_margin(X, y) > 0


def test_fruit_table():
    fruit = datasets.load_fruit()
    assert fruit.feature_names == ["mass_g", "width_cm", "height_cm"]
    assert np.bincount(fruit.target).tolist() == [30] * 5
    assert fruit.target_names.tolist() == ["apple", "banana", "lemon", "orange", "pear"]
    assert (fruit.data > 0).all()
    assert "synthetic" in fruit.DESCR
    assert "tools/make_fruit.py" in fruit.DESCR


def test_fruit_pairs_are_as_described():
    fruit = datasets.load_fruit()
    X = (fruit.data - fruit.data.mean(axis=0)) / fruit.data.std(axis=0)
    names = fruit.target_names[fruit.target]
    for a, b in itertools.combinations(fruit.target_names.tolist(), 2):
        pair = np.isin(names, [a, b])
        margin = largest_margin(X[pair], np.where(names[pair] == a, 1.0, -1.0))
        assert (margin > 0.1) if (a, b) in SEPARABLE else (margin < 1e-9), (a, b, margin)
        text = fruit.DESCR.replace("\n", " ")
        assert f"{a}-{b}" in text.split("The pairs")[(a, b) not in SEPARABLE]


def test_the_tool_makes_the_committed_table(tmp_path):
    made = tmp_path / "fruit.csv"
    subprocess.run([sys.executable, str(TOOL), str(made)], check=True)
    committed = resources.files("maxmargin") / "data" / "fruit.csv"
    assert made.read_bytes() == committed.read_bytes()
