"""Figures by content: what was drawn, where, in which words."""

import matplotlib as mpl

mpl.use("Agg")

import sys
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_moons
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.boundary import nearest_on
from maxmargin.plots.canvas import PALETTE, some_rows, span
from maxmargin.plots.path import solution_region
from maxmargin.plots.separability import hull
from maxmargin.plots.view import Table, principal


@pytest.fixture(autouse=True)
def _tidy():
    """No setting changes, nothing warns in drawing, and every figure is closed afterwards."""
    before = mpl.rcParams.copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        yield
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    assert mpl.rcParams == before
    plt.close("all")


def one():
    return Figure(layout="constrained").subplots()


def two(*shape):
    return Figure(layout="constrained").subplots(*shape or (1, 2))


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


def blobs(n, d, c, spread, seed=3):
    """Normal clouds around c centres, class after class in turn."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(c, d)) * spread
    y = np.arange(n) % c
    return centres[y] + rng.normal(size=(n, d)), y


@pytest.fixture(scope="module")
def overlap():
    return blobs(60, 2, 2, 1.2)


def vertices(collection):
    return np.concatenate([path.vertices for path in collection.get_paths()])


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


# The boundary ------------------------------------------------------------------------------------


def test_six_points_have_their_plane_band_and_support_vectors(six, hard):
    X, y = six
    display = plots.boundary(hard, X, y)
    w, b = np.array([-1 / 3, 1 / 5]), 2 / 15
    np.testing.assert_allclose(vertices(display.boundary_[0]) @ w + b, 0.0, atol=1e-9)
    np.testing.assert_allclose(np.abs(vertices(display.band_) @ w + b), 1.0, atol=1e-9)
    assert len(display.band) == 2
    rings = np.asarray(display.support_.get_offsets())
    np.testing.assert_array_equal(rings, X[[0, 2, 4]])
    assert display.wrong_ is None
    assert display.slack_ is None
    assert display.ax_.get_title() == "hard margin, width 5.145, 3 support vectors"
    assert {"-1", "1", "g(x) = 0", "g(x) = ±1", "support vector"} == set(texts(display.legend_))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "feature 1")


def test_regions_are_what_the_model_predicts(moons):
    X, y = moons
    model = mm.SVC(gamma=2.0).fit(X, y)
    display = plots.boundary(model, X, y, ax=one(), resolution=150)
    across, up = np.meshgrid(display.grid.x[::7], display.grid.y[::7])
    points = np.column_stack([across.ravel(), up.ravel()])
    np.testing.assert_array_equal(display.grid.class_at(points), model.predict(points))
    drawn = np.asarray(display.regions_.get_array()).reshape(150, 150)
    np.testing.assert_array_equal(drawn, display.grid.codes)
    levels = np.abs(model.decision_function(vertices(display.band_)))
    np.testing.assert_allclose(levels, 1.0, atol=0.02)
    np.testing.assert_allclose(
        model.decision_function(vertices(display.boundary_[0])), 0, atol=0.02
    )


def test_violators_have_slack_lines_to_their_own_margin(flat):
    X, y = flat
    model = mm.SVC(C=1.0, kernel="linear").fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    sign = np.where(y == "orange", 1.0, -1.0)
    g = model.decision_function(X)
    violators = sign * g < 1 - 1e-6
    assert len(display.slacks) == violators.sum() == len(display.slack_.get_segments())
    ends = pd.DataFrame(display.slacks[:, 1], columns=X.columns)
    np.testing.assert_allclose(np.abs(model.decision_function(ends)), 1.0, atol=1e-6)
    # Along w: the way to the margin is the shortest.
    way = display.slacks[:, 1] - display.slacks[:, 0]
    w = model.coef_[0]
    np.testing.assert_allclose(way @ np.array([-w[1], w[0]]) / np.linalg.norm(w), 0.0, atol=1e-9)
    wrong = int((model.predict(X) != y).sum())
    assert len(display.wrong_.get_offsets()) == wrong == 19
    assert display.ax_.get_title().endswith("19 errors")
    assert {"slack", "misclassified"} <= set(texts(display.legend_))


def test_slack_lines_go_on_to_a_margin_outside(overlap):
    X, y = overlap
    model = mm.SVC(kernel="linear", C=0.003).fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    w, sign = model.coef_[0], np.where(y == 1, 1.0, -1.0)
    g = model.decision_function(X)
    violators = sign * g < 1 - 1e-6
    feet = X - np.outer((g - sign) / (w @ w), w)
    frame = [display.grid.x[[0, -1]], display.grid.y[[0, -1]]]
    outside = [
        (feet[violators, k] < frame[k][0]) | (feet[violators, k] > frame[k][1]) for k in (0, 1)
    ]
    assert np.any(outside)
    np.testing.assert_allclose(display.slacks[:, 0], X[violators], atol=1e-12)
    np.testing.assert_allclose(display.slacks[:, 1], feet[violators], atol=1e-9)
    # The same plane, but not known to be one.
    same = mm.SVC(kernel="poly", degree=1, gamma=1.0, coef0=0.0, C=0.003).fit(X, y)
    curved = plots.boundary(same, X, y, ax=one())
    np.testing.assert_allclose(curved.slacks, display.slacks, atol=1e-3)


def test_slack_of_a_curved_margin_outside_is_the_shortest_way(overlap):
    X, y = overlap
    model = mm.SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.2, C=0.003).fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    start, end = display.slacks[:, 0], display.slacks[:, 1]
    violators = np.where(y == 1, 1.0, -1.0) * model.decision_function(X) < 1 - 1e-6
    assert len(end) == violators.sum()
    assert (end[:, 0] > display.grid.x[-1]).any()
    sign = np.sign(model.decision_function(end))
    np.testing.assert_allclose(sign * model.decision_function(end), 1.0, atol=0.01)
    # On a circle through the foot, or nearly, nobody has reached the margin yet.
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    for point, foot, own in zip(start, end, sign, strict=True):
        around = point + 0.99 * np.linalg.norm(foot - point) * circle
        assert (own * model.decision_function(around) < 1.0).all()


def test_a_band_outside_is_said_to_be_there(overlap):
    X, y = overlap
    wide = plots.boundary(mm.SVC(kernel="linear", C=1e-3).fit(X, y), X, y, ax=one())
    assert wide.band_ is None
    assert "g(x) = ±1 (outside)" in texts(wide.legend_)
    assert len(wide.slacks) == 60
    none = plots.boundary(mm.Perceptron(max_iter=500).fit(*six_of()), *six_of(), ax=one())
    assert not any("±1" in text for text in texts(none.legend_))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_many_classes_have_their_planes(fruit, multi_class):
    X, y = fruit[0][["width_cm", "height_cm"]], fruit[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.Perceptron(multi_class=multi_class, max_iter=30).fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    n_planes = {"ovr": 5, "ovo": 10, "kesler": 1}[multi_class]
    assert len(display.boundary_) == n_planes
    assert display.band_ is None
    assert display.support_ is None
    lattice = pd.DataFrame(
        np.column_stack([part.ravel() for part in np.meshgrid(display.grid.x, display.grid.y)]),
        columns=X.columns,
    )
    np.testing.assert_array_equal(
        display.grid.codes.ravel(), np.searchsorted(model.classes_, model.predict(lattice))
    )
    if multi_class == "kesler":
        return
    for (name, _), drawn, k in zip(display.boundaries, display.boundary_, range(10), strict=False):
        line = vertices(drawn) if len(drawn.get_paths()) else np.empty((0, 2))
        g = line @ model.coef_[k] + model.intercept_[k]
        np.testing.assert_allclose(g, 0.0, atol=1e-6 * max(1.0, np.abs(model.coef_[k]).max()))
        assert name.split(" – ")[0] in model.classes_


def test_planes_of_a_pair_have_both_colours(fruit):
    X, y = fruit[0][["width_cm", "height_cm"]], fruit[1]
    model = mm.SVC(C=10.0, kernel="linear").fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    assert display.boundaries[0][0] == "apple – banana"
    assert to_hex(display.boundary_[0].get_color()[0]) == PALETTE[1].lower()
    assert [len(points.get_offsets()) for points in display.points_] == [30] * 5
    assert len({points.get_paths()[0].vertices.shape for points in display.points_}) > 1
    wrong = (model.predict(X) != y).sum()
    assert len(display.wrong_.get_offsets()) == wrong
    assert texts(display.legend_)[:5] == ["apple", "banana", "lemon", "orange", "pear"]


def test_a_linear_machine_has_lines_between_its_regions_only(fruit):
    X, y = fruit[0][["width_cm", "height_cm"]], fruit[1]
    model = mm.LinearSVC(C=10.0, multi_class="crammer_singer").fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    line = vertices(display.boundary_[0])
    scores = np.sort(line @ model.coef_.T + model.intercept_, axis=1)
    step = np.ptp(display.grid.x) / 199 + np.ptp(display.grid.y) / 199
    slope = np.abs(model.coef_).max()
    assert (scores[:, -1] - scores[:, -2] < 6 * step * slope).all()


def test_a_perceptron_has_no_band_and_no_rings(six):
    X, y = six
    display = plots.boundary(mm.Perceptron().fit(X, y), X, y, ax=one())
    assert display.band_ is None
    assert display.support_ is None
    assert "separates all 6 samples" in display.title


def test_three_features_are_projected_along_w(pair):
    X, y = pair
    model = mm.SVC(C=1.0, kernel="linear").fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    distance = model.decision_function(X) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(display.points[:, 0], distance, atol=1e-9)
    np.testing.assert_allclose(vertices(display.boundary_[0])[:, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(
        np.abs(vertices(display.band_)[:, 0]), 1 / np.linalg.norm(model.coef_), rtol=1e-6
    )
    assert "projection of 3 features" in display.note
    sign = np.where(y == "orange", 1.0, -1.0)
    assert len(display.slacks) == (sign * model.decision_function(X) < 1 - 1e-6).sum()


def test_two_chosen_features_are_a_slice_and_say_so(pair):
    X, y = pair
    model = mm.SVC(C=1.0, kernel="linear").fit(X, y)
    display = plots.boundary(model, X, y, ax=one(), features=("mass_g", "height_cm"))
    np.testing.assert_array_equal(display.points, X[["mass_g", "height_cm"]].to_numpy())
    assert display.labels == ("mass_g", "height_cm")
    assert display.note == f"slice: width_cm at its mean, {X.width_cm.mean():.4g}"
    line = vertices(display.boundary_[0])
    rows = pd.DataFrame(
        {"mass_g": line[:, 0], "width_cm": X.width_cm.mean(), "height_cm": line[:, 1]}
    )
    np.testing.assert_allclose(model.decision_function(rows), 0.0, atol=1e-6)
    assert not len(display.slacks)
    by_number = plots.boundary(model, X, y, ax=one(), features=(0, 2))
    np.testing.assert_array_equal(by_number.points, display.points)
    for alone in (2, "height_cm", ["height_cm"]):
        strip = plots.boundary(model, X, y, ax=one(), features=alone, resolution=10)
        assert strip.is_strip
        np.testing.assert_array_equal(strip.points[:, 0], X["height_cm"])


def test_a_kernel_machine_of_many_features_is_a_slice_through_the_mean(pair):
    X, y = pair
    clf = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    display = plots.boundary(clf, X, y, ax=one(), resolution=40)
    assert "slice through the mean of 3 features" in display.note
    pca = plots.boundary(clf, X, y, ax=one(), projection="pca", resolution=40)
    assert pca.labels == ("first principal direction", "second principal direction")
    directions = np.eye(3)[:, [2, 0]]
    given = plots.boundary(clf, X, y, ax=one(), projection=directions, resolution=40)
    np.testing.assert_allclose(given.points, X.to_numpy()[:, [2, 0]], atol=1e-9)
    mean = X.mean().to_numpy()
    corner = pd.DataFrame([[given.grid.y[0], mean[1], given.grid.x[0]]], columns=X.columns)
    assert clf.classes_[given.grid.codes[0, 0]] == clf.predict(corner)[0]


def test_a_pipeline_is_drawn_in_the_space_of_its_input(flat):
    X, y = flat
    clf = make_pipeline(StandardScaler(), mm.LinearSVC(C=1.0)).fit(X, y)
    display = plots.boundary(clf, X, y, ax=one())
    np.testing.assert_array_equal(display.points, X.to_numpy())
    line = pd.DataFrame(vertices(display.boundary_[0]), columns=X.columns)
    np.testing.assert_allclose(clf.decision_function(line), 0.0, atol=1e-8)
    rings = np.asarray(display.support_.get_offsets())
    np.testing.assert_array_equal(rings, X.to_numpy()[np.sort(clf[-1].support_)])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width_cm", "height_cm")


def test_a_pipeline_that_bends_space_has_a_curved_boundary(moons):
    X, y = moons
    clf = make_pipeline(PolynomialFeatures(3), StandardScaler(), mm.LinearSVC(C=10.0)).fit(X, y)
    display = plots.boundary(clf, X, y, ax=one())
    line = vertices(display.boundary_[0])
    np.testing.assert_allclose(clf.decision_function(line), 0.0, atol=0.05)
    assert np.linalg.svd(line - line.mean(axis=0))[1][1] > 0.5  # no straight line


def test_a_search_is_drawn_by_its_best_estimator(flat):
    X, y = flat
    search = GridSearchCV(mm.SVC(kernel="linear"), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    display = plots.boundary(search, X, y, ax=one())
    assert f"C = {search.best_params_['C']:g}" in display.title


def test_columns_of_text_are_held_at_their_most_frequent_value(pair):
    X, y = pair
    frame = X.assign(colour=np.where(np.arange(len(X)) % 3 == 0, "red", "green"))
    numeric = ["mass_g", "width_cm", "height_cm"]
    clf = make_pipeline(
        make_column_transformer((StandardScaler(), numeric), (OneHotEncoder(), ["colour"])),
        mm.SVC(kernel="linear"),
    ).fit(frame, y)
    display = plots.boundary(clf, frame, y, ax=one(), resolution=30)
    assert "colour = green" in display.note
    assert plots.margins(clf, frame, y, ax=one()).margins.shape == (60,)


@pytest.mark.parametrize("kind", [np.asarray, pl.DataFrame, lambda X: X.to_numpy("float32")])
def test_arrays_and_frames_of_any_kind(flat, kind):
    X, y = flat
    given = (
        pl.DataFrame({name: X[name].to_numpy() for name in X}) if kind is pl.DataFrame else kind(X)
    )
    model = mm.SVC(kernel="linear").fit(given, y)
    display = plots.boundary(model, given, y, ax=one(), resolution=30, feature_names=["a", "b"])
    assert display.labels == ("a", "b")
    np.testing.assert_allclose(display.points, X.to_numpy(), rtol=1e-6)


def test_names_come_from_the_frame_of_the_fit(flat):
    X, y = flat
    model = mm.SVC(kernel="linear").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        display = plots.boundary(model, X.to_numpy(), y, ax=one(), resolution=20)
    assert display.labels == ("width_cm", "height_cm")


def test_sparse_rows_stay_sparse_but_for_those_drawn():
    X, y = make_classification(300, 1200, n_informative=20, random_state=0)
    X[np.abs(X) < 1.5] = 0.0
    rows = sparse.csr_array(X)
    model = mm.LinearSVC(C=0.01).fit(rows, y)
    display = plots.boundary(model, rows, y, ax=one(), resolution=30)
    dense = plots.boundary(model, X, y, ax=one(), resolution=30)
    np.testing.assert_allclose(display.points[:, 0], dense.points[:, 0], atol=1e-8)
    distance = model.decision_function(rows) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(display.points[:, 0], distance, atol=1e-8)
    kernel = mm.SVC(C=1.0, gamma=0.1).fit(rows[:60], y[:60])
    assert plots.boundary(kernel, rows[:60], y[:60], ax=one(), resolution=10).grid.x.size == 10


def test_one_feature_is_a_strip_a_class(pair):
    X, y = pair[0][["mass_g"]], pair[1]
    model = mm.SVC(kernel="linear").fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    np.testing.assert_array_equal(display.points[:, 0], X["mass_g"])
    assert (np.abs(display.points[:, 1] - display.codes) <= 0.25).all()
    line = vertices(display.boundary_[0])
    np.testing.assert_allclose(line[:, 0], -model.intercept_[0] / model.coef_[0, 0], rtol=1e-9)
    ticks = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert ticks == ["apple", "orange"]


def test_fifty_features():
    X, y = make_classification(200, 50, random_state=0)
    for model in (mm.LinearSVC(C=0.1), mm.SVC(), mm.Perceptron(max_iter=20)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model.fit(X, y)
        display = plots.boundary(fitted, X, y, ax=one(), resolution=25)
        assert "50 features" in display.note


def test_of_twenty_thousand_samples_some_are_drawn_and_all_are_counted():
    X, y = make_moons(20_000, noise=0.25, random_state=0)
    model = mm.SVC(gamma=1.0).fit(X, y)
    display = plots.boundary(model, X, y, ax=one(), resolution=60)
    assert len(display.points) == 2000
    assert display.note == "2,000 of 20,000 samples shown"
    assert display.is_support.sum() == 300
    wrong = int((model.predict(X) != y).sum())
    assert display.title.endswith(f"{wrong:,} errors")
    again = plots.boundary(model, X, y, ax=one(), resolution=10)
    np.testing.assert_array_equal(display.rows, again.rows)
    few = plots.boundary(model, X, y, ax=one(), resolution=10, max_points=50)
    assert len(few.points) == 50


def test_other_rows_than_those_of_the_fit_have_no_rings(moons):
    X, y = moons
    model = mm.SVC(gamma=2.0).fit(X[:80], y[:80])
    assert plots.boundary(model, X, y, ax=one(), resolution=10).support_ is None
    linear = mm.LinearSVC().fit(X[:80], y[:80])
    assert plots.boundary(linear, 9.0 * X, y, ax=one(), resolution=10).support_ is None


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        sparse.csr_array,
        lambda X: pd.DataFrame(X, columns=["a", "b"]),
        lambda X: pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}),
    ],
)
@pytest.mark.parametrize(
    "clf",
    [
        mm.SVC(),
        mm.LinearSVC(C=0.001),
        mm.LinearSVC(loss="hinge", solver="coordinate-descent", random_state=0),
        mm.LinearSVC(multi_class="crammer_singer"),
        make_pipeline(StandardScaler(with_mean=False), mm.SVC()),
    ],
)
def test_as_many_other_rows_have_no_rings(kind, clf):
    X, y = blobs(120, 2, 3, 0.6)
    model = clone(clf).fit(kind(X[:60]), y[:60])
    own = plots.boundary(model, kind(X[:60]), y[:60], ax=one(), resolution=10)
    assert own.is_support.sum() >= 50
    other = plots.boundary(model, kind(X[60:]), y[60:], ax=one(), resolution=10)
    assert other.support_ is None


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0, 2.0], [1.0, 2.0]]),  # w = 0
        np.array([[1.0, 5.0], [3.0, 5.0]]),  # a constant feature
        np.array([[0.0, 0.0], [1e-9, 0.0]]),
        np.array([[1e6, 1.0], [1e6 + 1.0, 1.0]]),
    ],
)
def test_degenerate_data_are_drawn(X):
    y = [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [mm.SVC(kernel="linear").fit(X, y), mm.SVC(gamma=1.0).fit(X, y)]
        models += [mm.Perceptron(max_iter=5).fit(X, y), mm.LinearSVC().fit(X, y)]
    for model in models:
        display = plots.boundary(model, X, y, ax=one(), resolution=12)
        assert len(display.points) == 2
        assert plots.margins(model, X, y, ax=one()).margins.shape == (2,)


def test_a_machine_without_a_margin_claims_no_width(flat):
    X, y = flat
    with pytest.warns(UserWarning, match="leaves no margin"):
        model = mm.NuSVC(nu=0.3, kernel="linear").fit(X, y)
    display = plots.boundary(model, X, y, ax=one())
    assert "width" not in display.title


def test_one_point_and_a_plane_out_of_sight(six, hard):
    X, y = six
    display = plots.boundary(hard, X[:1], y[:1], ax=one(), resolution=10)
    assert len(display.points) == 1
    far = plots.boundary(hard, X[:2], y[:2], ax=one(), resolution=10)
    assert "g(x) = 0 (outside)" in texts(far.legend_)
    flat = mm.SVC(kernel="linear").fit(X, y)
    flat.dual_coef_ = np.zeros_like(flat.dual_coef_)
    assert plots.boundary(flat, X, y, ax=one(), resolution=10).boundaries[0][1] == []
    wide = np.hstack([X, X])
    nothing = mm.Perceptron().fit(wide, y)
    nothing.coef_ = np.zeros_like(nothing.coef_)
    assert plots.boundary(nothing, wide, y, ax=one(), resolution=10).points.shape == (6, 2)


def test_the_axes_are_honoured_and_the_input_is_left_alone(flat):
    X, y = flat
    model = mm.SVC(kernel="linear").fit(X, y)
    frame, labels = X.copy(), y.copy()
    before = plt.get_fignums()
    figure = Figure()
    _, ax = figure.subplots(1, 2)
    display = plots.boundary(model, X, y, ax=ax, legend=False)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.legend_ is None
    assert plt.get_fignums() == before
    again = display.plot()  # on a figure of its own, which pyplot knows
    assert again.ax_ is not ax
    assert plt.get_fignums() == [1]
    pd.testing.assert_frame_equal(X, frame)
    np.testing.assert_array_equal(y, labels)
    tight = plots.boundary(model, X, y, ax=Figure().subplots())
    assert tight.legend_._get_loc() == 0  # where it hides least, for nothing makes room outside


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": (0, 7)}, "which is not there"),
        ({"features": (0, 0)}, "different features"),
        ({"features": (0, 1), "projection": "pca"}, "two ways"),
        ({"projection": "tsne"}, "'w', 'pca'"),
        ({"projection": np.ones((3, 2))}, "independent"),
        ({"feature_names": ["a"]}, "one a feature"),
        ({"resolution": 1}, "at least 2"),
    ],
)
def test_wrong_options_are_refused(pair, change, message):
    X, y = pair
    model = mm.LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match=message):
        plots.boundary(model, X, y, ax=one(), **change)


def test_wrong_models_and_labels_are_refused(six, hard):
    X, y = six
    with pytest.raises(TypeError, match="maxmargin's classifiers"):
        plots.boundary(StandardScaler().fit(X), X, y)
    with pytest.raises(ValueError, match="the model knows"):
        plots.boundary(hard, X, ["a"] * 6)
    with pytest.raises(ValueError, match="5 labels"):
        plots.boundary(hard, X, y[:5])
    given = mm.SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="no feature space"):
        plots.boundary(given, X @ X.T, y)
    assert plots.margins(given, X @ X.T, y, ax=one()).margins.shape == (6,)
    with pytest.raises(TypeError):
        plots.boundary(hard, X, y, resolutoin=10)
    assert plt.get_fignums() == []


# Margins -----------------------------------------------------------------------------------------


def test_margins_are_those_of_the_plane(pair):
    X, y = pair
    model = mm.SVC(C=1.0, kernel="linear").fit(X, y)
    display = plots.margins(model, X, y)
    sign = np.where(y == "orange", 1.0, -1.0)
    found = sign * model.decision_function(X)
    np.testing.assert_allclose(display.margins, found)
    for code, name in enumerate(("apple", "orange")):
        own = found[y == name]
        text = display.counts_[code].get_text()
        assert text.startswith(f"30 samples, {(own < 1 - 1e-6).sum()} with slack")
        assert f"{(own < 0).sum()} error" in text
        heights = np.abs(display.histograms_[code].get_data().values - (code + 0.95))
        share = np.histogram(own + 1e-9, display.edges)[0]
        np.testing.assert_allclose(heights / heights.max(), share / share.max())
    assert display.band_ is not None
    assert 0.0 in display.edges.round(9)
    assert 1.0 in display.edges.round(9)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["apple", "orange"]
    assert "wrong side" in texts(display.legend_)


def test_margins_of_many_classes_are_against_the_best_rival(fruit):
    X, y = fruit
    model = mm.LinearSVC(C=10.0, multi_class="crammer_singer").fit(X, y)
    display = plots.margins(model, X, y, ax=one())
    scores = model.decision_function(X)
    codes = np.searchsorted(model.classes_, y)
    own = scores[np.arange(150), codes]
    rival = np.where(np.arange(5) == codes[:, None], -np.inf, scores).max(axis=1)
    np.testing.assert_allclose(display.margins, own - rival)
    assert display.errors.sum() == (model.predict(X) != y).sum()
    assert display.has_band
    assert len(display.histograms_) == 5
    votes = plots.margins(mm.SVC().fit(X, y), X, y, ax=one())
    assert votes.ax_.get_xlabel().startswith("votes")
    assert votes.band_ is None


def test_margins_count_the_errors_of_predict():
    X, y = mm.datasets.load_xor(return_X_y=True)
    nowhere = plots.margins(mm.SVC(kernel="linear").fit(X, y), X, y, ax=one())
    np.testing.assert_allclose(nowhere.margins, 0.0, atol=1e-9)
    assert nowhere.title.endswith("2 errors")
    assert [text.get_text().split(", ")[-1].strip() for text in nowhere.counts_] == [
        "2 errors",
        "0 errors",
    ]
    X, y = blobs(60, 2, 3, 1.2)
    model = mm.LinearSVC(multi_class="crammer_singer").fit(X, y)
    model.coef_, model.intercept_ = np.zeros((3, 2)), np.zeros(3)
    ties = plots.margins(model, X, y, ax=one())
    np.testing.assert_array_equal(ties.errors, model.predict(X) != y)
    assert ties.title == plots.boundary(model, X, y, ax=one(), resolution=10).title
    assert ties.title.endswith("40 errors")


def test_margins_need_a_label_a_row(six, hard):
    X, y = six
    with pytest.raises(ValueError, match="y has 5 labels, X 6 rows"):
        plots.margins(hard, X, y[:5])


def test_margins_of_a_perceptron_are_distances(six):
    X, y = six
    model = mm.Perceptron().fit(X, y)
    display = plots.margins(model, X, y, ax=one())
    assert display.margins.min() == pytest.approx(model.certificate_.geometric_margin)
    assert display.band_ is None
    assert "‖w‖" in display.label
    with pytest.raises(ValueError, match="bins=0"):
        plots.margins(model, X, y, bins=0)


def test_far_outliers_do_not_squeeze_the_others(six, hard):
    X, y = six
    many = np.vstack([np.tile(X, (100, 1)), [[1e4, 4.0]]])
    display = plots.margins(hard, many, np.append(np.tile(y, 100), -1), ax=one())
    assert display.margins.max() > 1000
    assert display.edges[-1] < 10
    last = display.histograms_[0].get_data().values[-1]
    assert last != pytest.approx(0.95)  # it is in the last bar


# Convergence -------------------------------------------------------------------------------------


def test_convergence_shows_bounds_gap_and_errors(pair):
    X, y = pair
    model = mm.LinearSVC(solver="newton", loss="hinge").fit(X, y)
    display = plots.convergence(model)
    trace = model.trace_
    assert len(display.axes_) == 3
    np.testing.assert_array_equal(display.errors_[0].get_ydata(), trace.errors)
    primal, dual = display.primal_[0].get_ydata(), display.dual_[0].get_ydata()
    np.testing.assert_allclose(primal, np.fmin.accumulate(trace.primal))
    np.testing.assert_allclose(dual, np.fmax.accumulate(trace.dual))
    gap = display.gap_[0].get_ydata()
    known = np.isfinite(gap)
    np.testing.assert_allclose(gap[known], ((primal - dual) / np.abs(primal))[known])
    assert (np.diff(gap[known]) <= 1e-12).all()
    assert display.axes_[1].get_yscale() == "log"
    assert display.axes_[2].get_xlabel() == "step"
    assert trace.exact.all()
    seconds = plots.convergence(model, x="seconds", axes=two(3))
    np.testing.assert_array_equal(seconds.errors_[0].get_xdata(), trace.seconds)


def test_several_models_are_told_apart(pair):
    X, y = pair
    machines = {s: mm.SVC(kernel="linear", solver=s).fit(X, y) for s in ("smo", "active-set")}
    by_name = plots.convergence(machines, axes=two(3))
    assert texts(by_name.legend_)[:2] == ["smo", "active-set"]
    listed = plots.convergence(list(machines.values()), axes=two(3))
    assert [course.name for course in listed.courses] == ["SVC, smo", "SVC, active-set"]
    others = plots.convergence(*machines.values(), labels=["a", "b"], axes=two(3))
    assert [course.name for course in others.courses] == ["a", "b"]
    same = plots.convergence(machines["smo"], machines["smo"], axes=two(3))
    assert [course.name for course in same.courses] == ["SVC (1)", "SVC (2)"]
    costs = [mm.SVC(C=C).fit(X, y) for C in (0.1, 1.0)]
    named = [course.name for course in plots.convergence(costs, axes=two(3)).courses]
    assert named == ["SVC, C = 0.1", "SVC, C = 1"]
    shares = [mm.NuSVC(nu=nu).fit(X, y) for nu in (0.5, 0.8)]
    named = [course.name for course in plots.convergence(shares, axes=two(3)).courses]
    assert named == ["NuSVC, ν = 0.5", "NuSVC, ν = 0.8"]
    piped = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    mixed = plots.convergence(piped, mm.Perceptron(max_iter=500).fit(*six_of()), axes=two(3))
    assert len(mixed.errors_) == 2
    assert len(mixed.primal_) == 1


def six_of():
    return mm.datasets.load_six_points(return_X_y=True)


def test_the_perceptrons_family_has_its_criterion(six):
    model = mm.Perceptron(shuffle=False).fit(*six)
    display = plots.convergence(model, axes=two(2))
    np.testing.assert_array_equal(display.objective_[0].get_ydata(), model.trace_.objective)
    np.testing.assert_array_equal(display.errors_[0].get_ydata(), [2, 0])
    assert display.axes_[0].get_ylabel() == "criterion"
    assert display.axes_[0].get_title() == "Perceptron: 2 passes, 0 mistakes met in the last"
    assert display.axes_[-1].get_ylabel() == "mistakes met"
    assert display.axes_[-1].get_xlabel() == "pass"
    assert len(plots.convergence(model, mm.LMS().fit(*six), axes=two(2)).objective_) == 2


def test_convergence_refuses_what_it_cannot_draw(six):
    model = mm.Perceptron().fit(*six)
    with pytest.raises(ValueError, match="2 panels"):
        plots.convergence(model, axes=two(3))
    with pytest.raises(ValueError, match="'iteration' or 'seconds'"):
        plots.convergence(model, x="epoch")
    with pytest.raises(ValueError, match="names"):
        plots.convergence(model, labels=["a", "b"])
    with pytest.raises(ValueError, match="at least one"):
        plots.convergence([])
    with pytest.raises(ValueError, match="leave out labels"):
        plots.convergence({"a": model}, labels=["b"])


def test_no_errors_are_the_bottom_of_their_axis(pair):
    X, y = blobs(60, 2, 2, 4.0)
    bottom = plots.convergence(mm.SVC().fit(X, y), axes=two(3)).axes_[-1]
    low, high = bottom.get_ylim()
    assert -0.1 < low <= 0.0
    assert high == 1.0
    many = plots.convergence(mm.LinearSVC(solver="newton").fit(*pair), axes=two(3))
    assert many.axes_[-1].get_ylim()[1] >= many.errors_[0].get_ydata().max()


def counted_by(model, X, y):
    """Errors of the planes that the steps of a binary linear fit hand out."""
    recorder = mm.Recorder()
    model.set_params(callback=recorder).fit(X, y)
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    planes = [step.plane() for step in recorder.steps]
    return [int((signs * (np.asarray(X) @ p.w + p.b) <= 0).sum()) for p in planes]


def test_errors_are_those_of_the_planes_and_mistakes_met_have_their_own_axis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=600) > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        online = mm.Perceptron(max_iter=10)
        truth = counted_by(online, X, y)
    newton = mm.LinearSVC(solver="newton", loss="hinge")
    np.testing.assert_array_equal(counted_by(newton, X, y), newton.trace_.errors)
    display = plots.convergence({"newton": newton, "online": online})
    exact, met = display.errors_
    np.testing.assert_array_equal(exact.get_ydata(), newton.trace_.errors)
    # During a pass other planes were met than the one at its end.
    assert (met.get_ydata() != truth).any()
    assert met.axes is display.mistakes_ax_ is not exact.axes
    assert display.mistakes_ax_.get_ylabel() == "mistakes met"
    assert display.axes_[-1].get_ylabel() == "errors"
    assert "mistakes met" in texts(display.legend_)
    alone = plots.convergence(online, axes=two(2))
    words = " ".join(text.get_text() for text in alone.ax_.texts)
    wrong = int((online.predict(X) != y).sum())
    assert f"{wrong} of 600 samples" in " ".join(words.split())


def test_convergence_names_the_task_and_what_it_counts():
    X, y = blobs(40, 2, 4, 1.5)
    model = mm.SVC().fit(X, y)
    display = plots.convergence(model, axes=two(3))
    (course,) = display.courses
    assert "1 of 6 tasks" in course.name
    assert course.unit == "round"
    title = " ".join(display.ax_.get_title().split())
    k = max(range(6), key=lambda k: len(model.traces_[k]))
    assert f"({model.n_iter_[k]} step" in title
    labels = model.classes_.tolist()
    chosen = plots.convergence(model, task=(labels[3], labels[1]), axes=two(3))
    assert chosen.courses[0].name.startswith(f"SVC, {labels[1]} against {labels[3]} ")
    np.testing.assert_array_equal(
        chosen.errors_[0].get_ydata(), model.traces_[4].errors[model.traces_[4].exact]
    )
    assert plots.convergence(model, task=2, axes=two(3)).courses[0].steps == model.n_iter_[2]
    with pytest.raises(ValueError, match="task=9"):
        plots.convergence(model, task=9)
    with pytest.raises(ValueError, match="one task"):
        plots.convergence(mm.SVC().fit(*blobs(40, 2, 2, 1.5)), task=1)


@pytest.mark.parametrize("make", [mm.LinearSVC, lambda: mm.SVC(kernel="linear")])
def test_a_picture_of_w_0_shows_no_plane(make):
    X, y = mm.datasets.load_xor(return_X_y=True)
    display = plots.boundary(make().fit(X, y), X, y)
    assert display.is_flat
    assert display.title.endswith("w = 0: no plane")
    assert not any("g(x)" in text for text in texts(display.legend_))
    assert not display.band
    assert all(not pieces for _, pieces in display.boundaries)
    assert "w = 0: no plane" in plots.margins(make().fit(X, y), X, y).title
    six = plots.boundary(make().fit(*six_of()), *six_of())
    assert not six.is_flat


def test_tasks_that_are_not_optimal_are_counted_in_the_title():
    X, y = blobs(60, 2, 3, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.SVC(C=1e4, max_iter=5).fit(X, y)
    left = sum(not proof.holds(model.tol) for proof in model.certificates_)
    assert left > 0
    assert plots.boundary(model, X, y).title.count(f"{left} of 3 tasks not optimal") == 1


# The path ----------------------------------------------------------------------------------------


def test_the_path_of_the_perceptron_on_six_points(six):
    X, y = six
    model = mm.Perceptron(shuffle=False).fit(X, y)
    display = plots.path(model, X, y)
    np.testing.assert_array_equal(display.weights, [[0, 0], [1, 6], [-4, 4]])
    np.testing.assert_array_equal(display.weights[-1], model.coef_[0])
    np.testing.assert_array_equal(display.path_.get_xydata(), display.weights)
    last = vertices(display.planes_[-1])
    np.testing.assert_allclose(last @ model.coef_[0] + model.intercept_[0], 0.0, atol=1e-9)
    # Inside of the polygon every sample is right, outside of it one is not.
    corners = display.solutions
    sign = np.asarray(y, dtype=float)
    inside = corners.mean(axis=0)
    assert (sign * (X @ inside + model.intercept_[0]) > 0).all()
    assert (sign * (X @ corners.T + model.intercept_[0]).T >= -1e-9).all()
    assert not (sign * (X @ -inside + model.intercept_[0]) > 0).all()
    np.testing.assert_array_equal(display.start_.get_offsets(), [[0, 0]])
    np.testing.assert_array_equal(display.end_.get_offsets(), [[-4, 4]])
    foot, tip = display.normal
    assert foot @ model.coef_[0] + model.intercept_[0] == pytest.approx(0.0)
    assert (tip - foot) @ model.coef_[0] > 0


def test_the_path_reads_the_recorder_of_the_fit(six):
    X, y = six
    recorder = mm.Recorder(every_update=True)
    model = mm.Perceptron(callback=recorder, shuffle=True, random_state=3)
    model.fit(X[::-1], y[::-1])
    model.fit(X, y)  # the recorder has seen both
    display = plots.path(model, X, y, axes=two())
    np.testing.assert_array_equal(display.weights[-1], model.coef_[0])
    assert len(display.weights) == model.n_updates_ + 1
    assert len(recorder.steps) > 0
    assert model.callback is recorder


@pytest.mark.parametrize(
    "clf",
    [
        mm.SVC(kernel="linear"),
        mm.SVC(kernel="linear", solver="active-set"),
        mm.NuSVC(nu=0.9, kernel="linear"),
        mm.LinearSVC(solver="coordinate-descent", random_state=0),
        mm.LinearSVC(solver="newton", loss="hinge"),
        mm.LMS(),
        mm.HoKashyap(),
        mm.Pseudoinverse(),
        mm.Pocket(patience=20),
        mm.Relaxation(max_iter=20),
        mm.KernelPerceptron(kernel="linear", max_iter=50),
        make_pipeline(StandardScaler(), mm.LinearSVC(random_state=0)),
    ],
    ids=lambda clf: type(clf).__name__,
)
def test_every_linear_algorithm_has_a_path_to_its_answer(flat, clf):
    X, y = flat
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, y)
        display = plots.path(clf, X, y, axes=two())
    machine = clf[-1] if hasattr(clf, "steps") else clf
    np.testing.assert_allclose(display.weights[-1], machine.coef_[0], rtol=1e-6, atol=1e-9)
    assert display.biases[-1] == pytest.approx(machine.intercept_[0], rel=1e-6)
    if not display.planes[-1]:
        assert "plane, at the end (outside)" in texts(display.legend_)
        return
    line = pd.DataFrame(vertices(display.planes_[-1]), columns=X.columns)
    scale = np.abs(clf.decision_function(X)).max()
    np.testing.assert_allclose(clf.decision_function(line) / scale, 0.0, atol=1e-6)
    assert len(display.planes_) <= 25


def test_pairs_of_alpha_are_looked_at_one_by_one(flat):
    X, y = flat
    model = mm.SVC(kernel="linear", solver="smo").fit(X, y)
    display = plots.path(model, X, y, axes=two())
    assert len(display.weights) >= int(model.n_iter_[0]) - 1


def test_path_refuses_more_than_a_picture_holds(pair, fruit, moons):
    with pytest.raises(ValueError, match="3 features"):
        plots.path(mm.LinearSVC().fit(*pair), *pair)
    with pytest.raises(ValueError, match="kernel's feature space"):
        plots.path(mm.SVC().fit(*moons), *moons)
    X, y = fruit[0][["width_cm", "height_cm"]], fruit[1]
    with pytest.raises(ValueError, match="5 classes"):
        plots.path(mm.LinearSVC().fit(X, y), X, y)


def test_path_refuses_a_pipeline_to_more_features(moons):
    X, y = moons
    clf = make_pipeline(PolynomialFeatures(2), mm.Pseudoinverse()).fit(X, y)
    with pytest.raises(ValueError, match=r"drawn in the plane.*6 features after the pipeline"):
        plots.path(clf, X, y)


def test_planes_that_a_pipeline_bends_are_drawn_bent():
    X, y = blobs(60, 2, 2, 2.0, seed=0)
    X = np.exp(X)
    scaler = QuantileTransformer(n_quantiles=30, output_distribution="normal")
    clf = make_pipeline(scaler, mm.Pseudoinverse()).fit(X, y)
    display = plots.path(clf, X, y, axes=two())
    line = vertices(display.planes_[-1])
    within = ((line > X.min(axis=0)) & (line < X.max(axis=0))).all(axis=1)
    g = clf.decision_function(line[within])
    assert within.sum() > 20
    assert np.abs(g).mean() < 0.05 * np.abs(clf.decision_function(X)).max()
    assert np.linalg.svd(line - line.mean(axis=0))[1][1] > 0.5  # no straight line


def test_the_window_of_w_is_widened_to_show_solutions():
    rng = np.random.default_rng(3)
    y = np.repeat([1.0, -1.0, 1.0], [10, 10, 1])
    X = np.vstack([rng.normal(size=(20, 2)), [[38.0, 3.0]]]) + np.outer(y, [2.0, 0.0])
    model = mm.Pseudoinverse().fit(X, y)
    assert (model.predict(X) != y).any()
    display = plots.path(model, X, y, axes=two())
    middle = display.solutions_.get_xy().mean(axis=0)
    assert (y * (X @ middle + model.intercept_[0]) > 0).all()
    assert "some w has all samples right" in display.axes_[1].get_title().replace("\n", " ")
    (left, right), (low, high) = display.window
    inside = display.solutions
    assert (inside >= [left - 1e-9, low - 1e-9]).all()
    assert (inside <= [right + 1e-9, high + 1e-9]).all()
    np.testing.assert_array_equal(display.axes_[1].get_xlim(), display.window[0])


def test_solutions_too_far_off_lie_outside_and_none_are_none():
    X, y = np.array([[1.0, 0.0], [1e-3, 0.0], [-1.0, 0.0]]), np.array([1, 1, -1])
    model = mm.Pseudoinverse().fit(X, y)
    model.coef_, model.intercept_ = np.array([[1.0, 0.01]]), np.array([-0.5])
    display = plots.path(model, X, y, axes=two())
    assert display.is_solvable
    assert display.solutions_ is None
    assert "solutions lie outside" in display.axes_[1].get_title().replace("\n", " ")
    X, y = mm.datasets.load_xor(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        display = plots.path(mm.Perceptron(max_iter=20).fit(X, y), X, y, axes=two())
    assert not display.is_solvable
    assert "no w has all samples right" in display.axes_[1].get_title().replace("\n", " ")


def test_the_title_of_a_path_counts_all_planes(flat, monkeypatch):
    X, y = flat
    model = mm.SVC(kernel="linear", solver="smo").fit(X, y)
    everything = plots.path(model, X, y, axes=two())
    monkeypatch.setattr(sys.modules["maxmargin.plots.path"], "MOST_MOMENTS", 28)
    some = plots.path(model, X, y, axes=two())
    assert len(some.weights) == 28 < len(everything.weights)
    assert some.title == everything.title


def test_the_solution_region_is_empty_or_the_window():
    window = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    opposite = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert not len(solution_region(opposite, np.ones(2), -0.5, window))
    assert len(solution_region(np.zeros((0, 2)), np.zeros(0), 0.0, window)) == 4
    rng = np.random.RandomState(0)
    X, truth = rng.randn(40, 2), np.array([0.5, -0.3])
    signs = np.sign(X @ truth + 0.1)
    corners = solution_region(X, signs, 0.1, window)
    assert len(corners) >= 3
    grid = np.stack(np.meshgrid(*[np.linspace(-0.99, 0.99, 60)] * 2), axis=-1).reshape(-1, 2)
    right = (signs * (grid @ X.T + 0.1) > 0).all(axis=1)
    np.testing.assert_array_equal(mpl.path.Path(corners).contains_points(grid), right)


# Gram and support --------------------------------------------------------------------------------


def test_gram_orders_by_class_and_knows_its_spectrum(fruit):
    X, y = StandardScaler().fit_transform(fruit[0]), fruit[1]
    shuffled = np.random.RandomState(0).permutation(150)
    display = plots.gram("rbf", X[shuffled], y[shuffled])
    assert (np.diff(np.searchsorted(np.unique(y), y[shuffled][display.rows])) >= 0).all()
    K = mm.kernels.RBF(1 / 3)(X[shuffled][display.rows])
    np.testing.assert_allclose(display.K, K)
    np.testing.assert_allclose(display.image_.get_array(), K)
    np.testing.assert_allclose(display.spectrum, np.linalg.eigvalsh(K)[::-1], atol=1e-12)
    drawn = display.positive_.get_ydata()
    np.testing.assert_allclose(drawn, display.spectrum[: len(drawn)])
    assert display.verdict.positive_semidefinite
    assert "Mercer's condition holds" in display.axes_[1].get_title().replace("\n", " ")
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == list(np.unique(y))


def test_gram_marks_negative_eigenvalues(pair):
    X, y = StandardScaler().fit_transform(pair[0]), pair[1]
    display = plots.gram(mm.kernels.Sigmoid(1.0, -1.0), X, y, axes=two())
    below = display.spectrum < 0
    assert below.any()
    np.testing.assert_allclose(
        np.sort(display.negative_.get_ydata()), np.sort(-display.spectrum[below])
    )
    title = display.axes_[1].get_title().replace("\n", " ")
    assert title == f"not a Mercer kernel: {below.sum()} negative eigenvalues"


def test_gram_does_not_count_rounding_as_negative():
    X, y = blobs(60, 2, 2, 2.0, seed=0)
    display = plots.gram("precomputed", X @ np.diag([1.0, -0.01]) @ X.T, y)
    assert (display.spectrum < 0).sum() > 1
    assert len(display.negative_.get_ydata()) == 1
    assert display.axes_[1].get_title() == "not a Mercer kernel: 1 negative eigenvalue"


def test_gram_has_its_words_below_the_eigenvalues_and_short_names(fruit):
    X = StandardScaler().fit_transform(fruit[0])
    names = np.where(fruit[1] == "pear", "a pear that has got a long name", fruit[1])
    display = plots.gram("rbf", X, names)
    display.figure_.canvas.draw()
    top = display.rounding_.get_window_extent().y1
    drawn = display.axes_[1].transData.transform(display.positive_.get_xydata())
    assert (drawn[:, 1] > top).all()
    assert display.rounding_.get_window_extent().y0 > display.axes_[1].get_window_extent().y0
    for ticks in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [tick.get_text() for tick in ticks][:2] == ["a pear that has…", "apple"]


def test_gram_keeps_its_numbers_to_itself_where_nothing_makes_room(pair):
    X, y = StandardScaler().fit_transform(pair[0]), pair[1]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4))
    room = axes[0].get_window_extent().frozen()
    plots.gram(mm.kernels.Sigmoid(1.0, -1.0), X, y, axes=axes[:2])
    figure.canvas.draw()
    bar = figure.axes[-1]
    assert max(tick.get_window_extent().x1 for tick in bar.get_yticklabels()) <= room.x1
    assert bar.get_title(loc="left") == "K(x, z)"
    for ax in axes[:2]:
        assert ax.title.get_window_extent().y1 <= figure.bbox.y1


def test_gram_of_a_fitted_machine_a_pipeline_and_given_values(pair):
    X, y = pair
    clf = make_pipeline(StandardScaler(), mm.SVC(gamma=0.7)).fit(X, y)
    display = plots.gram(clf, X, y, axes=two())
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(display.K, mm.kernels.RBF(0.7)(scaled)[np.ix_(*[display.rows] * 2)])
    given = plots.gram("precomputed", scaled @ scaled.T, y, axes=two(), max_rows=20)
    assert given.K.shape == (20, 20)
    assert given.note == "20 of 60 rows"
    np.testing.assert_allclose(given.K, (scaled @ scaled.T)[np.ix_(given.rows, given.rows)])
    assert plots.gram("linear", X.to_numpy(), axes=two()).blocks == []
    assert plots.gram("linear", sparse.csr_array(X.to_numpy()), y, axes=two()).K.shape == (60, 60)
    zero = plots.gram("linear", np.zeros((4, 2)), axes=two())
    assert (zero.spectrum == 0).all()
    with pytest.raises(ValueError, match="has no kernel"):
        plots.gram(mm.LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="59 labels"):
        plots.gram("rbf", X, y[:59])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_support_draws_every_sample_by_its_state(pair, loss):
    X, y = pair
    model = mm.SVC(kernel="linear", loss=loss).fit(X, y)
    display = plots.support(model, X, y)
    table = mm.diagnostics.support_table(model, X, y)
    for state, drawn in display.points_.items():
        own = table.state == state
        np.testing.assert_allclose(
            drawn.get_offsets(), np.column_stack([table.margin[own], table.alpha[own]])
        )
    corner = display.corner_.get_xydata()
    if loss == "hinge":
        assert corner[1:3].tolist() == [[1.0, 0.0], [1.0, 1.0]]
        assert display.bound_.get_ydata()[0] == 1.0
    else:
        np.testing.assert_allclose(corner[2, 1], 2.0 * (1.0 - corner[2, 0]))
        assert display.bound_ is None
    assert f"{len(model.support_)} support vectors of 60 samples" in display.ax_.get_title()


def test_support_of_hard_weighted_and_many(six, hard, pair, fruit):
    X, y = six
    display = plots.support(hard, X, y, ax=one())
    assert display.bound_ is None
    np.testing.assert_allclose(np.sort(225 * display.heights)[-3:], [8, 9, 17], rtol=1e-6)
    X, y = pair
    weighted = mm.SVC(class_weight={"apple": 2.0}).fit(X, y)
    display = plots.support(weighted, X, y, ax=one())
    assert display.heights.max() == pytest.approx(1.0)
    assert display.ax_.get_ylabel() == "α/C of the sample"
    linear = plots.support(mm.LinearSVC(loss="hinge", tol=1e-9).fit(X, y), X, y, ax=one())
    assert linear.bound_.get_ydata()[0] == 1.0
    clf = make_pipeline(StandardScaler(), mm.SVC()).fit(*fruit)
    chosen = plots.support(clf, *fruit, task=("apple", "pear"), ax=one())
    assert chosen.ax_.get_title().startswith("apple against pear")
    with pytest.raises(ValueError, match="tasks"):
        plots.support(clf, *fruit, ax=one())


# Separability ------------------------------------------------------------------------------------


def test_xor_has_a_common_point():
    X, y = mm.datasets.load_xor(return_X_y=True)
    report = mm.separability(X, y)
    display = plots.separability(report, X, y)
    np.testing.assert_allclose(np.asarray(display.common_.get_offsets()), [[0.0, 0.0]], atol=1e-12)
    assert [len(corners) for corners in display.hulls] == [2, 2]
    assert len(display.combination_.get_segments()) == np.count_nonzero(report.multipliers)
    assert display.plane_ is None
    assert display.title.startswith("not separable")


def test_six_points_have_the_widest_band(six):
    X, y = six
    report = mm.separability(X, y, maximum_margin=True)
    display = plots.separability(report, X, y, ax=one())
    w, b = np.array([-1 / 3, 1 / 5]), 2 / 15
    np.testing.assert_allclose(vertices(display.plane_) @ w + b, 0.0, atol=1e-7)
    np.testing.assert_allclose(np.abs(vertices(display.band_) @ w + b), 1.0, atol=1e-7)
    assert display.title == "separable: the widest band is 5.145 wide"
    for code, label in enumerate((-1, 1)):
        corners = {tuple(corner) for corner in display.hulls_[code].get_xy()}
        assert corners == {tuple(row) for row in X[y == label]}
    some = plots.separability(mm.separability(X, y), X, y, ax=one())
    assert "this plane has margin" in some.title


def test_separability_in_other_dimensions(pair):
    X, y = pair
    report = mm.separability(X, y)
    display = plots.separability(report, X, y, ax=one())
    assert "projection of 3 features" in display.note
    for corners in display.hulls:
        assert mpl.path.Path(corners).contains_point(display.common, radius=1e-9) or (
            mpl.path.Path(corners[::-1]).contains_point(display.common, radius=1e-9)
        )
    rng = np.random.RandomState(0)
    labels = np.repeat([0, 1], 30)
    apart = rng.randn(60, 3) + np.outer(labels, [7.0, 0.0, 0.0])
    found = mm.separability(apart, labels, maximum_margin=True)
    drawn = plots.separability(found, apart, labels, ax=one())
    np.testing.assert_allclose(
        drawn.points[:, 0], found.hyperplane.signed_distance(apart), atol=1e-9
    )
    np.testing.assert_allclose(np.abs(vertices(drawn.band_)[:, 0]), found.margin, rtol=1e-6)
    line = X[["mass_g"]]
    strip = plots.separability(mm.separability(line, y), line, y, ax=one())
    assert strip.hulls[0][:, 0].min() == line[y == "apple"].min().item()
    with pytest.raises(ValueError, match="the report is on"):
        plots.separability(report, X[:-1], y[:-1])
    with pytest.raises(ValueError, match="two classes"):
        plots.separability(report, X, np.arange(60))


def test_hulls_of_few_and_of_aligned_points():
    assert hull(np.ones((3, 2))).tolist() == [[1.0, 1.0]]
    assert len(hull(np.array([[0.0, 0.0], [1.0, 2.0]]))) == 2
    upright = np.array([[1.0, 0.0], [1.0, 5.0], [1.0, 2.0]])
    assert sorted(hull(upright).tolist()) == [[1.0, 0.0], [1.0, 5.0]]
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]], dtype=float)
    assert len(hull(square)) == 4


def test_undecided_says_so(six):
    X, y = six
    report = mm.separability(X, y, tol=0.99)
    display = plots.separability(report, X, y, ax=one())
    assert display.title.startswith("undecided")
    assert display.plane_ is None


# Animation ---------------------------------------------------------------------------------------


def test_a_gif_has_a_frame_a_step(six, tmp_path):
    X, y = six
    model = mm.SVC(C=np.inf, kernel="linear").fit(X, y)
    target = tmp_path / "six.gif"
    display = plots.animate(model, X, y, target, fps=5)
    with Image.open(target) as picture:
        assert picture.n_frames == len(display) >= 4
        assert picture.info["duration"] == 200
    assert plt.get_fignums() == []
    display.draw(len(display) - 1)
    line = vertices(display.boundary_)
    np.testing.assert_allclose(line @ [-1 / 3, 1 / 5] + 2 / 15, 0.0, atol=1e-9)
    band = vertices(display.band_)
    np.testing.assert_allclose(np.abs(band @ [-1 / 3, 1 / 5] + 2 / 15), 1.0, atol=1e-9)
    assert "the answer" in display.title_.get_text()
    sizes = [drawn.get_sizes() for drawn in display.points_]
    assert np.argsort(sizes[0]).tolist()[-1] == 1  # α = 17/225 of the second of its class
    assert (np.diff(sizes[1][[1, 0, 2]]) > 0).all()


def test_the_sample_being_corrected_is_ringed(six):
    X, y = six
    display = plots.animate(mm.Perceptron(shuffle=False).fit(X, y), X, y)
    assert [frame.moment.sample for frame in display.frames] == [0, 3]
    for k, row in enumerate((0, 3)):
        display.draw(k)
        np.testing.assert_array_equal(display.sample_.get_offsets(), X[[row]])
        moment = display.frames[k].moment
        wrong = np.asarray(y) * (X @ moment.w + moment.b) <= 0
        np.testing.assert_array_equal(np.asarray(display.wrong_.get_offsets()), X[wrong])
        assert f"step {k + 1} of 2" in display.title_.get_text()


def test_a_kernel_at_work_has_a_curved_boundary(moons, tmp_path):
    X, y = moons
    model = mm.SVC(gamma=2.0, solver="smo").fit(X, y)
    display = plots.animate(model, X, y, max_frames=6, resolution=60)
    assert 2 <= len(display) <= 7
    display.draw(len(display) - 1)
    g = model.decision_function(vertices(display.boundary_))
    np.testing.assert_allclose(g, 0.0, atol=0.1)
    perceptron = mm.KernelPerceptron(gamma=10.0).fit(X, y)
    page = tmp_path / "page.html"
    shown = plots.animate(perceptron, X, y, page, max_frames=3, resolution=20)
    text = page.read_text()
    assert text.count("data:image/png;base64") == len(shown) == 3
    assert "<img" in text


def test_animations_of_pipelines_strips_and_nu_machines(pair, flat):
    X, y = flat
    clf = make_pipeline(StandardScaler(), mm.LinearSVC(random_state=0)).fit(X, y)
    display = plots.animate(clf, X, y, resolution=20)
    display.draw(len(display) - 1)
    line = pd.DataFrame(vertices(display.boundary_), columns=X.columns)
    np.testing.assert_allclose(clf.decision_function(line), 0.0, atol=1e-8)
    nu = mm.NuSVC(nu=0.9, kernel="linear").fit(X, y)
    assert len(plots.animate(nu, X, y, resolution=20, max_frames=5)) <= 5
    line = pair[0][["mass_g"]]
    strip = plots.animate(mm.LinearSVC().fit(line, y), line, y, resolution=20)
    assert strip.is_strip
    many = plots.animate(mm.LinearSVC().fit(*pair), *pair, resolution=20)
    assert "3 features" in many.note


def test_the_title_of_an_animation_stays_in_the_picture():
    X, y = blobs(100, 10, 2, 0.8, seed=2)
    display = plots.animate(mm.SVC(), X, y, max_frames=4, resolution=20)
    (note,) = display.ax_.texts
    assert note.get_text().replace("\n", " ") == display.note != ""
    for k in range(len(display)):
        display.draw(k)
        display.figure_.canvas.draw()
        for text in (display.title_, note):
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= display.figure_.bbox.x1
            assert box.y1 <= display.figure_.bbox.y1
        assert not note.get_window_extent().overlaps(display.title_.get_window_extent())


def test_animate_refuses_before_it_works(six, fruit, tmp_path):
    X, y = six
    model = mm.Perceptron().fit(X, y)
    with pytest.raises(ValueError, match=r"\.gif or \.html"):
        plots.animate(model, X, y, tmp_path / "film.mp4")
    with pytest.raises(ValueError, match="at least 2 frames"):
        plots.animate(model, X, y, max_frames=1)
    with pytest.raises(ValueError, match="5 classes"):
        plots.animate(mm.LinearSVC().fit(*fruit), *fruit)


# Comparison --------------------------------------------------------------------------------------


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


# What they share ---------------------------------------------------------------------------------


def test_rows_are_left_out_evenly_and_always_the_same():
    kept = some_rows(100, 10, np.arange(50, 60), 5)
    assert kept.size == 10
    assert ((kept >= 50) & (kept < 60)).sum() == 5
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
        Table(np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="no numeric column"):
        Table(pd.DataFrame({"a": ["x"]}))


def test_importing_the_plots_leaves_the_backend_alone():
    import subprocess

    code = (
        "import sys, matplotlib, maxmargin.plots;"
        "assert matplotlib.rcParams._get_backend_or_none() is None, 'chosen';"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


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
    assert entries[:30] == [str(k) for k in range(30)]
    assert (entries[30] == "… and 20 more") == (c == 50)


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
    assert all(text.get_window_extent().width < room.width for text in second.counts_)
    large = plots.support(model, X, y, ax=Figure().subplots())
    assert large.legend_ is not None


def test_too_many_kernel_values_are_refused(moons):
    X, y = moons
    with pytest.raises(ValueError, match="lower resolution"):
        plots.animate(mm.KernelPerceptron(gamma=10.0).fit(X, y), X, y, resolution=1000)
