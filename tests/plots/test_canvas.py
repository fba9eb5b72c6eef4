"""What all figures share: sampling of rows, projections, titles, legends; and comparisons."""

import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.canvas import INK, PALETTE, colour, marker, some_rows, span
from maxmargin.plots.grid import nearest_on
from maxmargin.plots.view import FigureData, principal
from tests.helpers.figures import blobs, one, texts

# Comparison ---------------------------------------------------------------------------------------


def test_a_comparison_tells_its_dots_and_its_numbers_apart():
    rows = [
        {
            "algorithm": name,
            "training_error": 0.1,
            "test_error": 0.1,
            "seconds": seconds,
            "outcome": "optimal",
        }
        for name, seconds in (("perceptron", 0.002), ("svc", 0.004), ("lms", 0.003))
    ]
    title = (
        "a title of many words on many rows, 70 % for training and the rest for the test, seed 0"
    )
    display = plots.comparison(rows, title=title)
    display.figure_.canvas.draw()
    training, test = (display.error_dots_[key] for key in ("training_error", "test_error"))
    assert training.get_sizes()[0] > 2 * test.get_sizes()[0]
    left, right = (ax.title.get_window_extent() for ax in display.axes_)
    assert left.x1 < right.x0
    assert display.axes_[0].get_title().replace("\n", " ") == title
    for longest in (0.004, 90.0):
        rows[1]["seconds"] = longest
        ax = plots.comparison(rows).axes_[1]
        ax.figure.canvas.draw()
        low, high = ax.get_xlim()
        shown = [
            label
            for label in ax.get_xticklabels(which="both")
            if label.get_text() and low <= label.get_position()[0] <= high
        ]
        boxes = [label.get_window_extent() for label in shown]
        assert len(boxes) >= 2
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
        assert all(float(label.get_text()) == label.get_position()[0] for label in shown)


# Shared by all figures ----------------------------------------------------------------------------


def test_rows_are_left_out_evenly_and_always_the_same():
    kept = some_rows(100, 10, np.arange(50, 60), 5)
    assert kept.size == 10
    assert ((kept >= 50) & (kept < 60)).sum() == 5
    # A class of rows that are most of all is not thinned out more than the others.
    assert (some_rows(1000, 100, np.arange(700), 10) < 700).sum() == 70
    np.testing.assert_array_equal(kept, some_rows(100, 10, np.arange(50, 60), 5))
    assert some_rows(10, 20).tolist() == list(range(10))
    assert some_rows(10, 6, np.arange(8), 2).size == 6
    low, high = span(np.full(3, 5.0))
    assert low < 5 < high
    assert span(np.array([np.nan])) == (-1.0, 1.0)


def test_principal_directions_of_many_features_are_those_of_few():
    rng = np.random.RandomState(0)
    X = rng.randn(80, 500) * np.linspace(5.0, 1.0, 500)
    given = np.eye(500)[:, [0]]
    by_iteration = principal(X, 2, given)
    by_svd = np.linalg.svd((X - X.mean(axis=0)) * (np.arange(500) > 0), full_matrices=False)[2][
        :2
    ].T
    np.testing.assert_allclose(np.abs((by_iteration * by_svd).sum(axis=0)), 1.0, atol=1e-6)
    np.testing.assert_allclose(by_iteration[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(principal(sparse.csr_array(X), 2, given), by_iteration, atol=1e-6)
    same = principal(np.ones((3, 4)), 2)
    np.testing.assert_allclose(same.T @ same, np.eye(2))


def test_the_nearest_point_of_a_polyline():
    segments = np.array([[[0.0, 0.0], [2.0, 0.0]], [[2.0, 0.0], [2.0, 2.0]]])
    feet = nearest_on(np.array([[1.0, -3.0], [5.0, 1.0], [9.0, 9.0]]), segments, np.ones(2))
    np.testing.assert_allclose(feet, [[1.0, 0.0], [2.0, 1.0], [2.0, 2.0]])


def test_tables_refuse_what_is_no_matrix():
    with pytest.raises(ValueError, match="matrix of numbers"):
        FigureData(np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="must have a numeric column"):
        FigureData(pd.DataFrame({"a": ["x"]}))


def test_importing_the_plots_leaves_the_backend_alone():
    import subprocess

    code = (
        "import sys, matplotlib, maxmargin.plots;"
        "assert matplotlib.rcParams._get_backend_or_none() is None, 'chosen';"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_missing_values_are_drawn_at_the_mean(pair):
    X, y = pair
    holes = X.copy()
    holes.iloc[[0, 5], 1] = np.nan
    clf = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), mm.LinearSVC())
    clf.fit(holes, y)
    display = plots.boundary(clf, holes, y, ax=one(), features=(0, 1), resolution=20)
    assert "2 missing values at the mean" in display.note
    assert np.isfinite(display.points).all()
    assert len(plots.boundary(clf, holes, y, ax=one(), resolution=20).points) == 60


def test_titles_are_wrapped_to_the_width_of_their_axes(flat):
    X, y = flat
    model = mm.SVC(kernel="linear").fit(X, y)
    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    display = plots.boundary(model, X, y, ax=figure.subplots(1, 2)[0], resolution=20)
    assert display.ax_.get_title().count("\n") >= 1
    figure.canvas.draw()


@pytest.mark.parametrize("c", [30, 50])
def test_the_legend_of_many_classes_leaves_room_for_the_picture(c):
    X, y = blobs(4 * c, 2, c, 4.0)
    display = plots.boundary(mm.LinearSVC(C=0.01).fit(X, y), X, y, resolution=20)
    display.figure_.canvas.draw()
    box, figure = display.legend_.get_window_extent(), display.figure_.bbox
    assert box.y0 >= 0
    assert box.x1 <= figure.x1
    assert display.ax_.get_window_extent().width > 0.35 * figure.width
    entries = texts(display.legend_)
    assert entries[:21] == [*map(str, range(20)), f"… and {c - 20} more"]


def test_edges_of_many_regions_are_not_called_equal_scores():
    X, y = blobs(80, 2, 8, 3.0)
    display = plots.boundary(mm.SVC().fit(X, y), X, y, ax=one(), resolution=20)
    assert "edge of a region" in texts(display.legend_)
    assert "equal scores" not in texts(display.legend_)


def test_small_axes_without_a_layout_stay_readable(overlap):
    X, y = overlap
    model = mm.SVC(kernel="linear").fit(X, y)
    figure, axes = plt.subplots(2, 3)
    first = plots.boundary(model, X, y, ax=axes[0, 0], resolution=20)
    second = plots.margins(model, X, y, ax=axes[0, 1])
    third = plots.support(model, X, y, ax=axes[0, 2])
    figure.canvas.draw()
    for display in (first, second, third):
        room = display.ax_.get_window_extent()
        if display.legend_ is not None:
            box = display.legend_.get_window_extent()
            assert box.width * box.height <= 0.3 * room.width * room.height
        assert display.ax_.title.get_window_extent().y1 <= figure.bbox.y1
        assert display.ax_.title.get_window_extent().width <= 1.15 * room.width
    assert third.legend_ is None
    large = plots.support(model, X, y, ax=Figure().subplots())
    assert large.legend_ is not None


def test_too_many_kernel_values_are_refused(moons):
    X, y = moons
    with pytest.raises(ValueError, match="lower resolution"):
        plots.animate(mm.KernelPerceptron(gamma=10.0).fit(X, y), X, y, resolution=1000)


# Colours and markers ------------------------------------------------------------------------------

# Without receptors for green and for red (Machado, Oliveira, Fernandes, 2009), in linear RGB.
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
)
PROTANOPIA = np.array(
    [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
)
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def cielab(colours, sight=None):
    """Return CIELAB coordinates of sRGB colours, as seen by readers of some sight."""
    rgb = np.array([to_rgb(each) for each in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = linear if sight is None else np.clip(linear @ sight.T, 0.0, 1.0)
    xyz = seen @ TO_XYZ.T / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    )


def closest(lab):
    """Return the least distance of two colours; 2.3 is just noticeable."""
    apart = np.linalg.norm(lab[:, None] - lab, axis=2)
    return apart[~np.eye(len(lab), dtype=bool)].min()


@pytest.mark.parametrize(("sight", "least"), [(None, 20), (DEUTERANOPIA, 9), (PROTANOPIA, 9)])
def test_twenty_classes_have_colours_that_differ_for_all_readers(sight, least):
    assert len(PALETTE) == 20
    assert closest(cielab(PALETTE, sight)) > least
    assert closest(cielab([*PALETTE[:2], "#FFFFFF", INK], sight)) > 25
    # All of them are seen on white.
    assert (cielab(PALETTE, sight)[:, 0] < 92).all()


def test_no_two_classes_look_the_same():
    looks = [(colour(code), marker(code)) for code in range(400)]
    assert len(set(looks)) == 400
    assert len({shape for _, shape in looks[:20]}) == 20


def test_long_names_of_classes_are_cut_in_legends(overlap):
    X, y = overlap
    names = np.array(["short", "a name of a class that would fill the whole picture"])[y]
    display = plots.boundary(mm.SVC(kernel="linear").fit(X, names), X, names, resolution=10)
    assert "a name of a class that …" in texts(display.legend_)
