"""The one-class machine in the plane: region, outliers, table and words."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.drawing import lattice, picture_of
from maxmargin.lab.figures import Look, SceneFigure
from maxmargin.lab.one_class import columns
from maxmargin.lab.points import OF_ONE_CLASS, SAMPLES, checked
from maxmargin.lab.words import words_of
from tests.helpers.lab import fitted

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", OF_ONE_CLASS)
def test_the_region_is_where_the_model_predicts_one(name):
    points = SAMPLES[name]()
    outcome = fitted("one-class", points, nu=0.2)
    picture, model = picture_of(outcome), outcome.model
    predicted = model.predict(lattice(picture.window)[2])
    np.testing.assert_array_equal(picture.regions.ravel(), np.where(predicted > 0, 0, -1))
    np.testing.assert_array_equal(picture.wrong, model.predict(points.X) < 0)
    scale = np.ptp(model.decision_function(points.X))
    for line in picture.planes:
        np.testing.assert_allclose(model.decision_function(line), 0, atol=0.02 * scale)
    n_outliers = int(picture.wrong.sum())
    assert n_outliers <= 0.2 * len(points.X) <= len(model.support_)
    assert f"{n_outliers} of {len(points.X)} points are outliers" in words_of(
        outcome, len(outcome.frames), ""
    )
    assert len(picture.slack) == n_outliers
    table = columns(outcome, picture)
    assert table["state"].count("outlier") == n_outliers
    np.testing.assert_array_equal(np.flatnonzero(table["alpha"]), np.sort(model.support_))
    alpha, states = np.array(table["alpha"]), np.array(table["state"])
    np.testing.assert_allclose(alpha[states == "inside"], 0)
    np.testing.assert_allclose(alpha[states == "outlier"], 1)


def test_what_is_outside_has_the_colour_of_the_ground():
    from bokeh.models import ColumnDataSource

    outcome = fitted("one-class", SAMPLES["ring"]())
    picture = picture_of(outcome)
    scene = SceneFigure(Look(), ColumnDataSource({"x": [], "y": [], "label": []}), "A")
    pixels = scene._painted(picture.regions).view(np.uint8).reshape(*picture.regions.shape, 4)
    assert (pixels[picture.regions == -1] == 255).all()
    assert len(np.unique(pixels[picture.regions == 0], axis=0)) == 1


def test_no_region_is_drawn_where_w_is_zero():
    points = checked([[1, 0], [-1, 0], [0, 1], [0, -1]], [0, 0, 1, 1])
    outcome = fitted("one-class", points, kernel="linear")
    picture = picture_of(outcome)
    assert picture.flat
    assert picture.regions is None
    assert "w = 0 is optimal: there is no region" in words_of(outcome, len(outcome.frames), "")
    assert "class='good'" not in words_of(outcome, len(outcome.frames), "")
    one = picture_of(fitted("one-class", checked([[1, 1]], [0])))
    assert not one.flat
    assert not one.wrong.any()
