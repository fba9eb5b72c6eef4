"""Figures of machines of one class: their region, their scores, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from tests.helpers.figures import one, texts, two, vertices


@pytest.fixture(scope="module")
def moon():
    return make_moons(120, noise=0.1, random_state=0)[0]


@pytest.fixture(scope="module")
def region(moon):
    return mm.OneClassSVM(nu=0.1, gamma=2.0).fit(moon)


def test_the_border_the_levels_and_the_outliers(region, moon):
    display = plots.boundary(region, moon)
    assert display.is_region
    border = vertices(display.boundary_[0])
    assert np.abs(region.decision_function(border)).max() < 0.01 * region.offset_[0]
    assert 0.0 in display.regions_.levels
    np.testing.assert_array_equal(display.codes == 0, region.predict(moon)[display.rows] < 0)
    np.testing.assert_array_equal(display.rows[display.is_support], np.sort(region.support_))
    assert not display.is_wrong.any()
    assert texts(display.legend_) == ["outlier", "inside", "g(x) = 0", "support vector"]
    n_outliers = (region.predict(moon) < 0).sum()
    assert display.title.endswith(f"{n_outliers} of 120 samples are outliers")
    assert "not optimal" not in display.title


def test_labels_show_errors(region, moon):
    y = -region.predict(moon)
    display = plots.boundary(region, moon, y, ax=one(), resolution=20)
    assert display.is_wrong.all()
    assert display.title.endswith("120 errors")
    with pytest.raises(ValueError, match="y must hold classes of the model"):
        plots.boundary(region, moon, np.arange(120))


def test_pipelines_slices_strips_and_planes(moon):
    pipeline = make_pipeline(StandardScaler(), mm.OneClassSVM(nu=0.2)).fit(moon)
    display = plots.boundary(pipeline, moon, ax=one(), resolution=20)
    np.testing.assert_allclose(
        display.grid.scores[0].ravel(), pipeline.decision_function(display.grid.points), atol=1e-9
    )
    five = np.random.default_rng(0).normal(size=(80, 5))
    model = mm.OneClassSVM(nu=0.1).fit(five)
    assert plots.boundary(model, five, ax=one(), resolution=20).note.startswith("slice")
    strip = plots.boundary(model.fit(five[:, :1]), five[:, :1], ax=one(), resolution=20)
    assert strip.is_strip
    plane = mm.OneClassSVM(kernel="linear", nu=0.1).fit(moon + 3.0)
    assert plots.boundary(plane, moon + 3.0, ax=one(), resolution=20).boundaries[0][1]


def test_no_region_where_w_is_0():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X = np.vstack([X, -X])
    display = plots.boundary(mm.OneClassSVM(kernel="linear", nu=1.0).fit(X), X, ax=one())
    assert display.is_flat
    assert "w = 0" in display.title
    alone = plots.boundary(mm.OneClassSVM().fit(X[:1]), X[:1], ax=one(), resolution=20)
    assert not alone.is_flat


def test_scores_and_their_threshold(region, moon):
    display = plots.margins(region, moon, ax=one())
    np.testing.assert_allclose(display.margins, region.decision_function(moon), atol=1e-9)
    np.testing.assert_array_equal(display.errors, region.predict(moon) < 0)
    assert len(display.histograms_) == 1
    assert 0.0 in display.edges
    assert texts(display.legend_) == ["the border, g(x) = 0", "outliers"]
    both = plots.margins(region, moon, region.predict(moon), ax=one())
    assert [text.get_text() for text in both.ax_.get_yticklabels()] == ["y = -1", "y = 1"]
    np.testing.assert_allclose(both.margins, display.margins)


def test_convergence_counts_nothing(region):
    display = plots.convergence(region)
    assert [ax.get_ylabel() for ax in display.axes_] == ["objective", "relative gap"]


def test_gram_needs_no_labels(region, moon):
    assert plots.gram(region, moon, axes=two()).verdict.positive_semidefinite


@pytest.mark.parametrize("draw", [plots.animate, plots.path])
def test_steps_are_those_of_classifiers(draw, region, moon):
    words = r"must be a classifier, got OneClassSVM: plots\.convergence.*plots\.boundary"
    with pytest.raises(TypeError, match=words):
        draw(region, moon, np.ones(120))
    with pytest.raises(TypeError, match=words):
        draw(mm.OneClassSVM(), moon, np.ones(120))


def test_labels_of_classifiers_are_required(six, hard):
    for draw in (plots.boundary, plots.margins):
        with pytest.raises(ValueError, match="y must hold the labels"):
            draw(hard, six[0])
