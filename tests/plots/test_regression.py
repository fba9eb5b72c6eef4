"""Curves, surfaces and predictions of regressions, with their tubes."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.kernels import RBF
from tests.helpers.figures import one, texts, two

REGRESSIONS = [
    mm.SVR(C=2.0, epsilon=0.15),
    mm.SVR(C=2.0, epsilon=0.15, loss="squared_epsilon_insensitive"),
    mm.NuSVR(C=2.0, nu=0.3),
    mm.LinearSVR(epsilon=0.15),
]
regressions = pytest.mark.parametrize("model", REGRESSIONS, ids=lambda model: type(model).__name__)


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0.0, 6.0, 60))[:, np.newaxis]
    return X, np.sin(X[:, 0]) + 0.15 * rng.normal(size=60)


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(200, noise=1.0, random_state=0)


@regressions
def test_the_curve_the_tube_and_what_lies_outside(model, wave):
    X, y = wave
    model.fit(X, y)
    display = plots.regression(model, X, y)
    epsilon = getattr(model, "epsilon_", getattr(model, "epsilon", None))
    assert display.kind == "curve"
    assert display.epsilon == pytest.approx(epsilon)
    np.testing.assert_allclose(display.g, model.predict(display.x[:, np.newaxis]))
    residual = y - model.predict(X)
    np.testing.assert_allclose(display.residuals, residual)
    for state, outside in (
        ("above", residual > epsilon + 0.02),
        ("below", residual < -epsilon - 0.02),
    ):
        assert (display.states[outside] == state).all()
    assert (display.states[np.abs(residual) < epsilon - 0.02] == "in the tube").all()
    assert display.errors.r2 == pytest.approx(r2_score(y, model.predict(X)))
    assert sum(len(drawn.get_offsets()) for drawn in display.points_.values()) == 60
    assert texts(display.legend_)[:2] == ["g(x)", f"tube, ± {epsilon:.4g}"]
    assert "not optimal" not in display.title


@regressions
def test_rings_are_the_support_vectors_by_their_size(model, wave):
    X, y = wave
    model.fit(X, y)
    display = plots.regression(model, X, y, ax=one())
    alpha = np.zeros(60)
    alpha[model.support_] = np.abs(np.ravel(model.dual_coef_))
    np.testing.assert_allclose(display.weights, alpha / alpha.max(), atol=1e-6)
    assert len(display.support_.get_offsets()) == np.count_nonzero(display.weights)
    order = np.argsort(display.weights[display.weights > 0])
    assert (np.diff(display.support_.get_sizes()[order]) >= 0).all()
    other = plots.regression(model, 1.1 * X, y, ax=one())
    assert other.support_ is None
    assert not other.weights.any()


def test_slack_ends_on_the_tube(wave):
    X, y = wave
    model = mm.SVR(C=2.0, epsilon=0.15).fit(X, y)
    display = plots.regression(model, X, y, ax=one())
    start, end = display.slacks[:, 0], display.slacks[:, 1]
    assert len(start) == np.isin(display.states, ("above", "below")).sum() > 0
    np.testing.assert_array_equal(start[:, 0], end[:, 0])
    np.testing.assert_allclose(np.abs(end[:, 1] - model.predict(end[:, :1])), 0.15)
    assert "slack" in texts(display.legend_)


def test_two_features_are_a_surface():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2.0, 2.0, (80, 2))
    y = X[:, 0] ** 2 - X[:, 1]
    model = mm.SVR(epsilon=0.1).fit(X, y)
    display = plots.regression(
        model, X, y, feature_names=["hour", "day"], target_name="load", resolution=20
    )
    assert display.kind == "surface"
    np.testing.assert_allclose(display.g.ravel(), model.predict(display.x.points))
    assert display.ax_.get_xlabel() == "hour"
    assert display.colorbar_.ax.get_xlabel() == "prediction of load"
    assert not len(display.slacks)
    np.testing.assert_allclose(display.points, X, atol=1e-12)


def test_more_features_are_targets_over_predictions(friedman):
    X, y = friedman
    model = mm.SVR(C=10.0, epsilon=1.0).fit(X, y)
    display = plots.regression(model, X, y)
    assert display.kind == "targets"
    np.testing.assert_allclose(display.points, np.column_stack([model.predict(X), y]))
    np.testing.assert_array_equal(display.x, display.g)
    np.testing.assert_allclose(np.abs(display.slacks[:, 1] @ [1.0, -1.0]), 1.0)
    K = RBF(gamma=0.5)(X)
    given = plots.regression(mm.SVR(kernel="precomputed").fit(K, y), K, y, ax=one())
    assert given.kind == "targets"
    assert given.support_ is not None
    with pytest.raises(ValueError, match="has no features to draw"):
        plots.regression(mm.SVR(kernel="precomputed").fit(K, y), K, y, features=0)


@pytest.mark.parametrize(("features", "kind"), [(3, "curve"), ([3, 0], "surface")])
def test_a_slice_says_so(friedman, features, kind):
    X, y = friedman
    model = mm.LinearSVR(epsilon=1.0).fit(X, y)
    display = plots.regression(model, X, y, features=features, ax=one(), resolution=15)
    assert display.kind == kind
    assert display.note.startswith("slice: the other")
    assert not len(display.slacks)


def test_a_pipeline_is_drawn_in_the_space_of_x(wave):
    X, y = wave
    pipeline = make_pipeline(StandardScaler(), mm.SVR(epsilon=0.15))
    search = GridSearchCV(pipeline, {"svr__C": [1.0, 10.0]}, cv=3).fit(X, y)
    display = plots.regression(search, X, y, ax=one())
    np.testing.assert_allclose(display.g, search.predict(display.x[:, np.newaxis]))
    assert display.support_ is not None


def test_titles_follow_the_certificate(friedman):
    X, y = friedman
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mm.SVR(C=100.0, max_iter=5).fit(X, y)
    assert "not optimal: gap" in plots.regression(model, X, y, ax=one()).title


def test_a_tube_that_holds_everything(wave):
    X, y = wave
    model = mm.SVR(epsilon=10.0).fit(X, y)
    display = plots.regression(model, X, y, ax=one())
    assert display.support_ is None
    assert np.ptp(display.g) == 0.0
    assert texts(display.legend_) == ["g(x)", "tube, ± 10", "in the tube"]
    constant = plots.regression(mm.SVR().fit(X, np.full(60, 3.0)), X, np.full(60, 3.0), ax=one())
    assert constant.title.endswith("R² –")


def test_many_samples_are_thinned(friedman):
    X, y = friedman
    model = mm.SVR(C=10.0).fit(X, y)
    display = plots.regression(model, X, y, max_points=50, ax=one())
    assert len(display.points) == 50
    assert display.note == "50 of 200 samples shown"
    assert display.errors.n_samples == 200


def test_drawing_again_and_without_a_legend(wave):
    X, y = wave
    display = plots.regression(mm.SVR().fit(X, y), X, y, ax=one(), legend=False)
    assert display.legend_ is None
    assert display.plot(Figure().subplots()).legend_ is not None


def test_bad_input_is_named(wave, six, hard):
    X, y = wave
    model = mm.SVR().fit(X, y)
    for bad, words in (
        (y[:5], "y has 5 targets, X 60 rows"),
        (["a"] * 60, "y must hold numbers"),
        (np.full(60, np.nan), "y must hold finite numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            plots.regression(model, X, bad)
    with pytest.raises(ValueError, match="resolution must be at least 2, got 1"):
        plots.regression(model, X, y, resolution=1)
    standardised = TransformedTargetRegressor(mm.SVR(), transformer=StandardScaler()).fit(X, y)
    with pytest.raises(TypeError, match="got TransformedTargetRegressor: pass its regressor_"):
        plots.regression(standardised, X, y)
    with pytest.raises(TypeError, match=r"SVR, NuSVR or LinearSVR, got SVC: plots\.boundary"):
        plots.regression(hard, *six)


def test_a_tube_of_no_width_is_not_in_the_legend(wave):
    X, y = wave
    display = plots.regression(mm.LinearSVR(epsilon=0.0).fit(X, y), X, y)
    assert texts(display.legend_)[0] == "g(x)"
    assert not any("±" in text for text in texts(display.legend_))


def test_convergence_has_no_errors(friedman):
    X, y = friedman
    display = plots.convergence(mm.SVR().fit(X, y), mm.LinearSVR().fit(X, y))
    assert [ax.get_ylabel() for ax in display.axes_] == ["objective", "relative gap"]
    assert display.errors_ == []
    beside = plots.convergence(mm.LinearSVR().fit(X, y), mm.SVC().fit(X, y > y.mean()))
    assert [ax.get_ylabel() for ax in beside.axes_] == ["objective", "relative gap", "errors"]


def test_gram_is_ordered_by_targets(friedman):
    X, y = friedman
    display = plots.gram(mm.SVR().fit(X, y), X, y, axes=two())
    assert (np.diff(y[display.rows]) >= 0).all()
    assert display.blocks == []
    assert display.note == "ordered by their targets"


@pytest.mark.parametrize("draw", [plots.boundary, plots.margins, plots.animate, plots.path])
def test_figures_of_classes_name_what_can_be_drawn(draw, wave):
    X, y = wave
    with pytest.raises(TypeError, match=r"SVR.*plots\.regression"):
        draw(mm.SVR().fit(X, y), X, y)


def test_rings_of_a_regression_thin_out_and_the_legend_counts_them():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, (900, 1))
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=900)
    display = plots.regression(mm.SVR(epsilon=0.1).fit(x, y), x, y, ax=one(), resolution=30)
    drawn = len(display.support_.get_offsets())
    assert 50 < drawn <= 300 < display.n_support == (display.weights > 0).sum()
    assert f"support vectors\n({drawn} of {display.n_support} drawn)" in texts(display.legend_)
