"""Data and models to draw; every figure is drawn without a screen."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import maxmargin as mm
from tests.helpers.figures import blobs

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _tidy():
    """No setting changes, and nothing warns in drawing."""
    before = mpl.rcParams.copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        yield
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    assert mpl.rcParams == before


@pytest.fixture(scope="module")
def six():
    return mm.datasets.load_six_points(return_X_y=True)


@pytest.fixture(scope="module")
def hard(six):
    return mm.SVC(C=np.inf, kernel="linear").fit(*six)


@pytest.fixture(scope="module")
def fruit():
    bunch = mm.datasets.load_fruit(as_frame=True)
    return bunch.data, bunch.target_names[bunch.target]


@pytest.fixture(scope="module")
def pair(fruit):
    """Apples and oranges, which overlap."""
    X, y = fruit
    rows = np.isin(y, ["apple", "orange"])
    return X[rows], y[rows]


@pytest.fixture(scope="module")
def flat(pair):
    return pair[0][["width_cm", "height_cm"]], pair[1]


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def overlap():
    return blobs(60, 2, 2, 1.2)
