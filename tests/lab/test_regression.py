"""Regression on a line: curve, tube, rings, table and words."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.diagnostics.targets import TUBE_STATES
from maxmargin.lab.drawing import picture_of, weight_space
from maxmargin.lab.points import OF_A_LINE, SAMPLES, checked
from maxmargin.lab.regression import ABOVE, BELOW, columns
from maxmargin.lab.words import words_of
from tests.helpers.lab import fitted

pytestmark = pytest.mark.filterwarnings("ignore")
KEYS = ("svr", "nu-svr", "linear-svr")


@pytest.mark.parametrize("name", OF_A_LINE)
@pytest.mark.parametrize("key", KEYS)
def test_the_curve_and_its_tube_are_the_model(key, name):
    points = SAMPLES[name]()
    outcome = fitted(key, points)
    picture, model = picture_of(outcome), outcome.model
    assert model.certificate_.holds(model.tol)
    (curve,) = picture.planes
    np.testing.assert_allclose(curve[:, 1], model.predict(curve[:, :1]))
    epsilon = model.epsilon_ if key == "nu-svr" else model.epsilon
    for line, side in zip(picture.band, (1, -1), strict=True):
        np.testing.assert_allclose(line[:, 1], curve[:, 1] + side * epsilon)
    assert picture.regions is None
    assert picture.wrong is None
    assert weight_space(outcome, 0) is None


@pytest.mark.parametrize("key", KEYS)
def test_rings_slack_and_table_agree_with_the_model(key):
    points = SAMPLES["line with outliers"]()
    outcome = fitted(key, points)
    picture, model = picture_of(outcome), outcome.model
    x, y = points.X.T
    residual = y - model.predict(x[:, np.newaxis])
    np.testing.assert_array_equal(np.flatnonzero(picture.support), np.sort(model.support_))
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_.ravel()
    expected = [ABOVE if each > 0 else BELOW for each in beta[picture.support]]
    assert picture.rings == expected
    assert {ABOVE, BELOW} == set(expected)

    table = columns(outcome, picture)
    np.testing.assert_array_equal(table["target"], y)
    np.testing.assert_allclose(table["residual"], residual)
    np.testing.assert_array_equal(table["alpha"], np.abs(beta))
    states = np.array(table["state"])
    assert set(states) <= set(TUBE_STATES)
    outside = np.abs(residual) > picture.tube + 0.02
    assert (states[outside & (residual > 0)] == "above").all()
    assert (states[outside & (residual < 0)] == "below").all()
    # Complementary slackness: α = 0 inside of the tube, α = C outside of it.
    inner = states == "in the tube"
    np.testing.assert_allclose(beta[inner], 0, atol=1e-6)
    np.testing.assert_allclose(np.abs(beta[outside]), model.C, rtol=1e-3)

    for line in picture.slack:
        assert line[0, 0] == line[1, 0]
        gap = abs(line[1, 1] - model.predict(line[1:, :1])[0])
        assert gap == pytest.approx(picture.tube)
    assert len(picture.slack) == np.isin(states, ("above", "below")).sum()
    assert f"{len(picture.slack)} of 40 targets outside of the tube" in words_of(
        outcome, len(outcome.frames), ""
    )


def test_nu_bounds_what_is_outside_and_what_supports():
    points = SAMPLES["noisy sine"]()
    for nu in (0.1, 0.5):
        outcome = fitted("nu-svr", points, nu=nu)
        assert len(picture_of(outcome).slack) <= nu * 100 <= len(outcome.model.support_)


def test_the_tube_of_a_step_is_known_where_epsilon_is_given():
    points = SAMPLES["sinc"]()
    given, found = fitted("svr", points), fitted("nu-svr", points)
    assert len(picture_of(given, 0).band) == 2
    assert picture_of(given, 0).remark.endswith("targets outside of the tube")
    step = picture_of(found, 0)
    assert step.band == []
    assert step.remark == ""
    assert "state" not in columns(found, step)
    assert "predicted" in columns(found, step)


def test_equal_targets_and_one_wide_tube_are_a_constant():
    for points, epsilon in ((checked([[0, 3], [1, 3], [2, 3]], [0, 0, 1]), 0.1),
                            (checked([[0, 1], [1, 2], [2, 0]], [0, 0, 0]), 2.0)):  # fmt: skip
        for key in ("svr", "linear-svr"):
            outcome = fitted(key, points, epsilon=epsilon)
            picture = picture_of(outcome)
            assert np.ptp(picture.planes[0][:, 1]) == pytest.approx(0, abs=1e-9)
            assert not picture.support.any()
            assert "0 support vectors" in words_of(outcome, len(outcome.frames), "")
            assert "nan" not in words_of(outcome, len(outcome.frames), "")
            assert ("R²" in words_of(outcome, len(outcome.frames), "")) == (epsilon == 2.0)


def test_a_hard_tube_that_nothing_fits_is_said():
    points = checked([[0, 0], [0, 5], [1, 1]], [0, 0, 0])
    outcome = fitted("svr", points, C=5, epsilon=0.1)
    assert "class='good'" not in words_of(outcome, len(outcome.frames), "")
    assert "No function was found within epsilon" in words_of(outcome, len(outcome.frames), "")
