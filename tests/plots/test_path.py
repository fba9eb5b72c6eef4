"""The path of a fit, in the plane of the data and of the weights."""

import sys
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.solutions import solution_region
from tests.helpers.figures import blobs, texts, two, vertices


def test_the_path_of_the_perceptron_on_six_points(six):
    X, y = six
    model = mm.Perceptron(shuffle=False).fit(X, y)
    display = plots.path(model, X, y)
    np.testing.assert_array_equal(display.weights, [[0, 0], [1, 6], [-4, 4]])
    np.testing.assert_array_equal(display.weights[-1], model.coef_[0])
    np.testing.assert_array_equal(
        display.path_.get_segments(), [[[0, 0], [1, 6]], [[1, 6], [-4, 4]]]
    )
    assert display.everything_ is None
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
        assert "plane, last (outside)" in texts(display.legend_)
        return
    line = pd.DataFrame(vertices(display.planes_[-1]), columns=X.columns)
    scale = np.abs(clf.decision_function(X)).max()
    np.testing.assert_allclose(clf.decision_function(line) / scale, 0.0, atol=1e-6)
    assert len(display.planes_) <= 10


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
    assert "a w separates" in display.axes_[1].get_title().replace("\n", " ")
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
    assert "no w separates" in display.axes_[1].get_title().replace("\n", " ")


def test_the_title_of_a_path_counts_all_planes(flat, monkeypatch):
    X, y = flat
    model = mm.SVC(kernel="linear", solver="smo").fit(X, y)
    everything = plots.path(model, X, y, axes=two())
    path_module = sys.modules["maxmargin.plots.path"]
    monkeypatch.setattr(path_module, "TUNING", path_module.Tuning(most_moments=28))
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


def test_a_long_path_is_a_picture_of_some_of_its_steps(moons):
    X, y = moons
    model = mm.Perceptron(max_iter=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        display = plots.path(model, X, y)
    n = int(display.numbers[-1])
    assert n > 200
    assert display.title == f"Perceptron: {n:,} planes, one per update"
    assert display.colorbar_.ax.get_ylabel() == "plane, one per update"
    # Few planes, denser at the start, and few weight vectors over all of them.
    assert len(display.planes_) == len(display.shown) <= 10
    assert (display.shown[0], display.shown[-1]) == (1, n)
    assert display.shown[len(display.shown) // 2] < n / 5
    joined = np.vstack([display.path_.get_segments()[0][:1],
                        np.array(display.path_.get_segments())[:, 1]])  # fmt: skip
    assert len(joined) <= 50
    np.testing.assert_array_equal(joined[[0, -1]], display.weights[[0, -1]])
    np.testing.assert_array_equal(display.everything_.get_xydata(), display.weights)
    # Old steps are paler; the first plane is dashed, the last one is the strongest.
    lightness = [sum(line.get_color()[0][:3]) for line in display.planes_]
    assert lightness[0] > lightness[len(lightness) // 2] > lightness[-1]
    shades = display.path_.get_colors()[:, :3].sum(axis=1)
    assert shades[0] > shades[-1]
    dashes = [line.get_linestyle()[0][1] for line in display.planes_]
    assert dashes[0] is not None
    assert dashes[1:] == [None] * (len(dashes) - 1)
    assert {"plane, first", "plane, last", "w, first", "w, last", "w, all of them"} <= set(
        texts(display.legend_)
    )
    for _ in range(2):  # the layout settles
        display.figure_.canvas.draw()
    below = display.legend_.get_window_extent()
    assert all(below.y1 <= ax.get_tightbbox().y0 + 1 for ax in display.axes_)


def test_a_short_path_has_arrows_and_whole_numbers(six):
    display = plots.path(mm.LinearSVC(), *six)
    assert "one per step" in display.title
    assert display.everything_ is None
    ticks = [float(tick) for tick in display.colorbar_.get_ticks()]
    assert ticks == [round(tick) for tick in ticks]
    arrows = [text for text in display.axes_[1].texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) == len(display.path_.get_segments()) == len(display.weights) - 1
