"""The runs of the lab as recordings."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.path import Path as Outline

pytest.importorskip("bokeh", reason="bokeh is not installed")

import maxmargin as mm
from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.fitting import Request, answered
from maxmargin.lab.points import SAMPLES
from maxmargin.lab.recording import MOST_STEPS, recording_of
from tests.helpers.lab import ALL_KEYS, KEYS, fitted, never, points_of
from tests.helpers.recordings import Places, corners, data_of, states_of

pytestmark = pytest.mark.filterwarnings("ignore")


def scene_of(outcome):
    (scene,) = data_of(recording_of([outcome]))["scenes"]
    return scene


@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_algorithm_is_recorded_with_its_certificate(key):
    outcome = fitted(key, points_of(2))
    scene = scene_of(outcome)
    n = min(len(outcome.steps), MOST_STEPS)
    assert len(scene["shots"]) == n + 2
    assert [shot["heading"] for shot in scene["shots"][:: n + 1]] == ["Start", "The answer"]
    last = scene["shots"][-1]
    certificate = outcome.model.certificate_
    assert str(certificate) in last["text"]
    proved = all(each.holds(getattr(outcome.model, "tol", 1e-6))
                 for each in outcome.model.certificates_)  # fmt: skip
    assert last["proved"] is bool(proved)
    assert ("Not proved" in last["text"]) is not proved
    assert last["lines"]
    has_classes = ALGORITHMS[key].has_classes
    assert [name for _, name, _ in scene["classes"]] == (["A", "B"] if has_classes else [])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("key", KEYS)
def test_regions_of_a_recording_are_those_of_the_model(key, n_classes):
    outcome = fitted(key, points_of(n_classes))
    points, model = outcome.request.points, outcome.model
    scene = scene_of(outcome)
    units = np.reshape(scene["points"], (-1, 2))
    right = model.predict(points.X) == points.labels
    # Points whose neighbourhood of two cells is of one class are well inside a region.
    step = 2.0 / 89 * np.ptp(points.X, axis=0)
    around = [model.predict(points.X + step * way) for way in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
    clear = (np.array(around) == model.predict(points.X)).all(axis=0)
    assert clear.sum() > 10
    for code, path in scene["shots"][-1]["regions"]:
        crossed = sum(Outline(line).contains_points(units).astype(int) for line in corners(path))
        inside = crossed % 2 == 1
        expected = model.predict(points.X) == points.names[code]
        np.testing.assert_array_equal(inside[clear], expected[clear])
    np.testing.assert_array_equal(states_of(scene)[-1][1], ~right)


def test_steps_are_the_frames_of_the_lab():
    outcome = fitted("perceptron", SAMPLES["six points"]())
    scene = scene_of(outcome)
    places = Places(scene)
    assert scene["axes"][0]["label"] == "x₁"
    drawn = 0
    for frame, shot in zip(outcome.steps, scene["shots"][1:-1], strict=True):
        assert shot.get("moved", []) == ([] if frame.sample is None else [frame.sample])
        for _, path in shot.get("lines", []):
            drawn += 1
            (line,) = map(places, corners(path))
            off = np.abs(line @ frame.w[0] + frame.b[0])
            assert (off <= 1.01 * np.abs(frame.w[0]) @ places.unit).all()
        if frame.sample is not None:
            assert f"Point {frame.sample + 1} " in shot["text"]
    assert drawn


def test_regression_has_a_curve_and_a_tube():
    outcome = fitted("svr", SAMPLES["noisy sine"]())
    scene = scene_of(outcome)
    places, model = Places(scene), outcome.model
    last = scene["shots"][-1]
    (curve,) = map(places, corners(last["lines"][0][1]))
    tol = 3 * places.unit[1] * (1 + np.abs(np.gradient(curve[:, 1], curve[:, 0])).max())
    np.testing.assert_allclose(curve[:, 1], model.predict(curve[:, :1]), atol=tol)
    edges = [places(line) for line in corners(last["band"])]
    assert len(edges) == 2
    for side, edge in zip((1.0, -1.0), edges, strict=True):
        expected = model.predict(edge[:, :1]) + side * model.epsilon
        np.testing.assert_allclose(edge[:, 1], expected, atol=tol)
    assert set(scene["codes"]) == {-1}
    beta = np.zeros(len(scene["codes"]))
    beta[model.support_] = np.abs(np.ravel(model.dual_coef_))
    np.testing.assert_array_equal(states_of(scene)[-1][0] > 0, beta > 0)


def test_many_classes_have_lines_in_their_colours():
    scene = scene_of(fitted("svc", points_of(3)))
    last = scene["shots"][-1]
    assert {code for code, _ in last["lines"]} <= {0, 1, 2}
    assert len(last["lines"]) >= 2
    assert "A against B" in scene["shots"][1]["text"]


def test_inseparable_points_show_their_hulls_and_are_not_proved_separated():
    outcome = fitted("perceptron", SAMPLES["XOR"](), max_iter=5)
    verdict = mm.separability(outcome.request.points.X, outcome.request.points.labels)
    last = scene_of(replace(outcome, verdict=verdict))["shots"][-1]
    assert len(last["hulls"]) == 2
    assert last["star"]
    assert last["proved"] is False
    assert "Not linearly separable" in last["text"]


def test_a_failure_is_an_ending_of_its_own():
    (C,) = (control for control in ALGORITHMS["svc"].controls if control.name == "C")
    values = ALGORITHMS["svc"].defaults() | {"C": C.high}  # the hard margin
    outcome = answered(Request(SAMPLES["XOR"](), "svc", values), never)
    assert outcome.failure
    shots = scene_of(outcome)["shots"]
    assert [shot["heading"] for shot in shots] == ["Start", "No answer"]
    assert shots[-1]["text"] == outcome.failure
    assert shots[-1]["proved"] is False


def test_two_fits_are_side_by_side():
    points = SAMPLES["six points"]()
    outcomes = [fitted("perceptron", points), fitted("svc", points)]
    text = recording_of(outcomes)
    scenes = data_of(text)["scenes"]
    assert [scene["name"] for scene in scenes] == ["Perceptron", "Support vector machine"]
    assert "<title>Perceptron and Support vector machine</title>" in text


def test_long_runs_are_thinned_and_cut_ones_say_so():
    outcome = fitted("lms", SAMPLES["XOR"]())
    assert len(outcome.steps) > MOST_STEPS
    scene = scene_of(replace(outcome, complete=False))
    assert len(scene["shots"]) == MOST_STEPS + 2
    n = len(outcome.steps)
    assert scene["note"].startswith(f"the first {n:,} steps of the fit; 100 of {n:,} steps shown")
