"""Pictures of the lab."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.drawing import lattice, picture_of, weight_space, window_of
from maxmargin.lab.fitting import weights
from maxmargin.lab.picture import to_line
from maxmargin.lab.points import SAMPLES, checked
from maxmargin.lab.step_words import best_so_far
from tests.helpers.lab import KEYS, fitted, points_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("key", KEYS)
def test_regions_are_what_the_model_predicts(key, n_classes):
    points = points_of(n_classes)
    outcome = fitted(key, points)
    picture = picture_of(outcome)
    predicted = outcome.model.predict(lattice(picture.window)[2])
    np.testing.assert_array_equal(np.array(points.names)[picture.regions].ravel(), predicted)
    np.testing.assert_array_equal(picture.wrong, outcome.model.predict(points.X) != points.labels)
    for k in (0, len(outcome.frames) // 2):
        step = picture_of(outcome, k)
        assert step.regions is None or set(np.unique(step.regions)) <= set(range(n_classes))


def test_regions_have_the_colours_of_their_points():
    points = checked([[0, 0], [1, 0], [3, 3], [4, 3]], [0, 0, 1, 1], ("B", "C"))
    picture = picture_of(fitted("svc", points))
    assert set(np.unique(picture.regions)) == {0, 1}


def test_lines_of_six_points_lie_on_the_plane_and_its_margins():
    points = SAMPLES["six points"]()
    outcome = fitted("svc", points, C=5)
    picture, model = picture_of(outcome), outcome.model
    assert len(picture.planes) == 1
    np.testing.assert_allclose(model.decision_function(picture.planes[0]), 0, atol=1e-8)
    assert len(picture.band) == 2
    for line in picture.band:
        np.testing.assert_allclose(np.abs(model.decision_function(line)), 1, atol=1e-8)
    assert picture.slack == []
    np.testing.assert_array_equal(np.flatnonzero(picture.support), np.sort(model.support_))
    assert (picture.margins > 1 - 1e-6).all()


def test_slack_goes_from_points_to_their_edge():
    points = SAMPLES["blobs, 200"]()
    outcome = fitted("svc", points)
    picture, model = picture_of(outcome), outcome.model
    signs = np.where(points.labels == model.classes_[1], 1.0, -1.0)
    slack = 1 - signs * model.decision_function(points.X)
    assert len(picture.slack) == (slack > 1e-3).sum()
    w = np.linalg.norm(model.coef_)
    lengths = [np.linalg.norm(line[1] - line[0]) for line in picture.slack]
    np.testing.assert_allclose(lengths, slack[slack > 1e-3] / w, rtol=1e-6)


def test_slack_ends_at_the_nearest_point_of_a_line():
    line = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]])
    segment = to_line(np.array([3.3, 2.0]), [line])
    np.testing.assert_allclose(segment, [[3.3, 2.0], [3.3, 0.0]])
    np.testing.assert_allclose(to_line(np.array([-3.0, 4.0]), [line])[1], [0.0, 0.0])


@pytest.mark.parametrize("key", ["svc", "linear-svc", "perceptron", "pocket", "pseudoinverse"])
def test_hulls_show_why_no_line_separates(key):
    points = SAMPLES["moons"]()
    verdict = mm.separability(points.X, points.labels)
    outcome = replace(fitted(key, points), verdict=verdict)
    picture = picture_of(outcome)
    assert len(picture.hulls) == 2
    np.testing.assert_array_equal(picture.common_point, verdict.common_point)
    if key == "svc":
        curved = replace(fitted(key, points, kernel="rbf"), verdict=verdict)
        assert picture_of(curved).hulls == []


def test_a_step_shows_the_plane_before_and_the_pocket():
    outcome = fitted("pocket", SAMPLES["moons"]())
    assert picture_of(outcome, 0).previous == []
    picture, before = picture_of(outcome, 2), outcome.frames[1]
    (line,) = picture.previous
    np.testing.assert_allclose(line @ before.w[0] + before.b[0], 0.0, atol=1e-8)
    w, b, _ = best_so_far(outcome, 2)
    (line,) = picture.best
    np.testing.assert_allclose(line @ w + b, 0.0, atol=1e-8)
    assert picture_of(outcome).best == picture_of(outcome).previous == []


@pytest.mark.parametrize("k", [None, 1])
def test_slack_leads_straight_to_edges_that_are_out_of_sight(k):
    outcome = fitted("svc", SAMPLES["blobs, 200"](), C=-3.0)
    picture = picture_of(outcome, k)
    X = outcome.request.points.X
    w = outcome.model.coef_[0] if k is None else weights(outcome.frames[k], X)
    ways = np.array([line[1] - line[0] for line in picture.slack])
    assert len(ways) > 100
    across = ways @ np.array([-np.ravel(w)[1], np.ravel(w)[0]])
    np.testing.assert_allclose(across, 0, atol=1e-9 * np.linalg.norm(w) * np.abs(ways).max())
    left, right, bottom, top = picture.window
    ends = np.array([line[1] for line in picture.slack])
    assert ((ends >= (left - 1e-9, bottom - 1e-9)) & (ends <= (right + 1e-9, top + 1e-9))).all()


@pytest.mark.filterwarnings("error:overflow", "error:invalid value")
def test_weights_that_explode_have_a_finite_space():
    outcome = fitted("lms", SAMPLES["six points"](), learning_rate=-1.0)
    assert max(np.abs(frame.w).max() for frame in outcome.frames) > 1e200
    way, _ = weight_space(outcome, len(outcome.frames) - 1)
    assert np.isfinite(way).all()


@pytest.mark.parametrize(
    "key",
    ["perceptron", "relaxation", "linear-svc",
     "svc"],
)  # fmt: skip
def test_the_region_of_weights_separates(key):
    points = SAMPLES["six points"]()
    outcome = fitted(key, points)
    found = weight_space(outcome, len(outcome.frames) - 1)
    assert found is not None
    way, region = found
    np.testing.assert_array_equal(way[0], 0)
    np.testing.assert_allclose(way[-1], outcome.model.coef_[0], rtol=0.05)
    signs = np.where(points.labels == outcome.model.classes_[1], 1.0, -1.0)
    b = float(outcome.frames[-1].b[0])
    assert len(region) >= 3
    assert (signs * (region @ points.X.T + b) >= -1e-6).all()


def test_windows_hold_their_points():
    for points in (checked(np.empty((0, 2)), []), checked([[5, 5]], [0]), SAMPLES["moons"]()):
        left, right, bottom, top = window_of(points)
        assert right > left
        assert top > bottom
        assert ((left, bottom) <= points.X).all()
        assert ((right, top) >= points.X).all()


def test_w_is_said_to_be_zero_only_where_it_is():
    one_place = checked(np.full((8, 2), 3.0), np.arange(8) % 2)
    outcome = fitted("relaxation", one_place)
    assert all(frame.w.any() for frame in outcome.steps)
    assert [picture_of(outcome, k).flat for k in range(4)] == [True, False, False, False]
    assert not outcome.model.coef_.any()
    assert picture_of(outcome).flat


def test_steps_that_run_away_are_left_out_before_they_overflow():
    points = points_of(2)
    outcome = fitted("lms", checked(1e6 * points.X, points.codes))
    assert not outcome.complete
    assert np.abs(outcome.steps[-1].w).max() > 1e100
    for k in (1, len(outcome.frames) - 1):
        picture = picture_of(outcome, k)
        assert not picture.flat
        assert np.isfinite(picture.margins).all()
