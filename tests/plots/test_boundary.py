"""Decision boundaries: what is drawn, where, and with which labels."""

import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.canvas import PALETTE, colour
from maxmargin.plots.model import FigureModel
from maxmargin.plots.rings import ringed
from maxmargin.plots.view import resolution_for
from tests.helpers.figures import blobs, one, six_of, texts, vertices


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
    np.testing.assert_array_equal(display.grid.codes[::7, ::7].ravel(), model.predict(points))
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
    # On a circle through the foot, or nearly, no sample has reached the margin yet.
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
    assert display.note.startswith(f"slice: width_cm at its mean, {X.width_cm.mean():.4g}; ")
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
    wide = plots.boundary(model, X, y, ax=one(), resolution=10, max_points=10_000)
    assert wide.is_support.sum() == round(10_000 * len(model.support_) / 20_000) > 300
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
        ({"features": (0, 7)}, "features must be numbers below 3"),
        ({"features": (0, 0)}, "different features"),
        ({"features": (0, 1), "projection": "pca"}, "either features or projection"),
        ({"projection": "tsne"}, "'w', 'pca'"),
        ({"projection": np.ones((3, 2))}, "independent"),
        ({"feature_names": ["a"]}, "one per feature"),
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
    with pytest.raises(TypeError, match="estimator of maxmargin"):
        plots.boundary(StandardScaler().fit(X), X, y)
    with pytest.raises(ValueError, match="must hold classes of the model"):
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


# Many samples, many features ----------------------------------------------------------------------


@pytest.mark.parametrize(("n", "spread"), [(30, 3.0), (400, 0.0), (6000, 1.0)])
def test_rings_thin_out_where_they_would_cover_the_data(n, spread):
    points = spread * np.random.default_rng(0).normal(size=(n, 2))
    chosen = ringed(100.0 * points, 5.0)
    np.testing.assert_array_equal(chosen, ringed(100.0 * points, 5.0))
    assert chosen.size == {30: 30, 400: 0, 6000: 300}[n]
    crowded = ringed(30.0 * points, 5.0)
    assert crowded.size <= chosen.size
    if n == 6000:  # a sample of all of them: not only of one part
        assert 100 < crowded.size < 300
        assert (points[crowded] > 0).mean() == pytest.approx(0.5, abs=0.1)


def test_the_legend_says_how_many_support_vectors_are_ringed():
    X, y = make_moons(1500, noise=0.4, random_state=0)
    model = mm.SVC(gamma=1.0).fit(X, y)
    display = plots.boundary(model, X, y, ax=one(), resolution=20)
    drawn, held = len(display.support_.get_offsets()), len(model.support_)
    assert drawn < held == display.n_support == display.is_support.sum()
    assert f"support vectors\n({drawn} of {held} drawn)" in texts(display.legend_)
    rings = {tuple(place) for place in np.round(display.support_.get_offsets(), 9)}
    assert rings <= {tuple(place) for place in X[model.support_].round(9)}
    tiny = Figure(figsize=(1.0, 1.0), layout="constrained").subplots()
    crowd = plots.boundary(model, X, y, ax=tiny, resolution=20)
    assert crowd.support_ is None or len(crowd.support_.get_offsets()) < drawn


def test_points_are_smaller_and_translucent_where_there_are_many():
    X, y = make_moons(20_000, noise=0.4, random_state=0)
    model = mm.LinearSVC().fit(X, y)
    looks = []
    for most in (200, 2000, 20_000):
        started = time.perf_counter()
        display = plots.boundary(model, X, y, ax=one(), resolution=20, max_points=most)
        display.figure_.draw_without_rendering()
        assert time.perf_counter() - started < 10.0
        assert sum(len(each.get_offsets()) for each in display.points_) == most
        looks.append((display.points_[0].get_sizes()[0], display.points_[0].get_alpha()))
    sizes, strengths = zip(*looks, strict=True)
    assert sizes[0] > 4 * sizes[1] > 8 * sizes[2] > 0
    assert strengths[0] == 1.0 > strengths[1] > 1.5 * strengths[2]
    small = Figure(figsize=(3.0, 3.0)).subplots()
    less = plots.boundary(model, X, y, ax=small, resolution=20, max_points=200)
    assert less.points_[0].get_sizes()[0] < sizes[0]


def test_the_colours_are_the_answers_and_the_markers_the_classes_in_a_slice(fruit):
    X, y = fruit
    clf = make_pipeline(StandardScaler(), mm.SVC(C=10.0)).fit(X, y)
    display = plots.boundary(clf, X, y, features=(0, 1), resolution=60)
    given, codes = clf.predict(X), np.searchsorted(clf.classes_, y)
    np.testing.assert_array_equal(display.answers, np.searchsorted(clf.classes_, given))
    on_slice = X.assign(height_cm=X.height_cm.mean())
    elsewhere = clf.predict(on_slice) != given
    np.testing.assert_array_equal(display.is_elsewhere, elsewhere)
    said = f"{elsewhere.sum()} of 150 samples lie in a region that is not the model's answer"
    assert said in display.note
    assert said in display.ax_.texts[0].get_text()
    for code, drawn in enumerate(display.points_):
        own = display.codes == code
        faces, edges = (
            [to_hex(c) for c in part] for part in (drawn.get_facecolors(), drawn.get_edgecolors())
        )
        wanted = [colour(k).lower() for k in display.answers[own]]
        assert (faces if len(faces) > 1 else faces * own.sum()) == wanted
        wrong = display.answers[own] != code
        assert [edge for edge, is_wrong in zip(edges, wrong, strict=False) if is_wrong] == [
            colour(code).lower()
        ] * wrong.sum()
    assert (codes != display.answers).sum() == display.is_wrong.sum() > 0
    assert "colour: the model's answer\nmarker, edge: the true class" in texts(display.legend_)
    exact = plots.boundary(mm.SVC(kernel="linear").fit(X.iloc[:60], y[:60]), X.iloc[:60], y[:60])
    assert exact.answers is None
    assert not exact.is_elsewhere.any()


@pytest.mark.parametrize(
    "clf",
    [
        mm.SVC(gamma=0.3),
        mm.SVC(gamma=0.3, break_ties=True, decision_function_shape="ovr"),
        mm.LinearSVC(),
        mm.LinearSVC(multi_class="crammer_singer"),
        mm.Perceptron(multi_class="ovo", max_iter=20),
        mm.OneClassSVM(nu=0.3),
    ],
)
def test_the_answers_of_pictures_are_those_of_predict(clf):
    X, y = blobs(200, 2, 6, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FigureModel(clf.fit(X, y))
    np.testing.assert_array_equal(model.answers(X, model.scores(X)), model.predict(X))


def test_directions_of_a_slice_do_not_depend_on_the_units(fruit):
    X, y = fruit
    clf = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    large = X.assign(mass_g=1000.0 * X.mass_g)
    again = make_pipeline(StandardScaler(), mm.SVC()).fit(large, y)
    one_of, other = (
        plots.boundary(model, data, y, ax=one(), resolution=20)
        for model, data in ((clf, X), (again, large))
    )
    np.testing.assert_allclose(one_of.points, other.points, rtol=1e-6)
    np.testing.assert_array_equal(one_of.grid.codes, other.grid.codes)


def test_a_slice_passes_through_the_samples_where_two_directions_hold_them():
    rng = np.random.default_rng(0)
    places = rng.standard_normal((80, 2))
    X = places @ rng.standard_normal((2, 5))  # all rows lie in one plane
    y = places[:, 0] ** 2 + places[:, 1] > 0.5
    shown = plots.boundary(mm.SVC(C=10.0, gamma=0.5).fit(X, y), X, y, ax=one(), resolution=150)
    assert "0 of 80" in shown.note or "region" not in shown.note


def test_the_lattice_is_coarser_for_very_many_support_vectors():
    X, y = make_moons(60, noise=0.4, random_state=0)
    model = FigureModel(mm.SVC().fit(X, y))
    assert resolution_for(model) == 200
    model.classifier.support_ = np.arange(40_000)
    assert resolution_for(model) == 100
    assert plots.boundary(mm.SVC().fit(X, y), X, y, ax=one()).grid.x.size == 200
