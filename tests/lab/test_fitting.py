"""Algorithms of the lab, and their fits."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab import fitting
from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.drawing import picture_of
from maxmargin.lab.fitting import Request, Worker, answered, evaluated, state
from maxmargin.lab.points import SAMPLES, checked
from maxmargin.runtime.compilation import compiled
from tests.helpers.lab import ALL_KEYS, KEYS, extremes, fitted, never, points_of

pytestmark = pytest.mark.filterwarnings("ignore")
WITHOUT_CLASSES = [key for key in ALL_KEYS if key not in KEYS]
FOREIGN = [None, [], {}, True, "x", 1e99, float("nan"), -1e99, "__class__"]


# Algorithms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [(key, c.name, v) for key in ALL_KEYS for c in ALGORITHMS[key].controls for v in extremes(c)],
)
def test_every_end_of_a_control_makes_an_estimator_that_answers(key, name, value):
    algorithm = ALGORITHMS[key]
    control = {c.name: c for c in algorithm.controls}[name]
    values = algorithm.defaults() | {name: value}
    if control.when:  # make it matter
        values[control.when[0]] = control.when[1][-1]
    if name == "learning_rate" and value == control.high:
        values["max_iter"] = 3  # it may diverge
    assert algorithm.settled(values) == values
    parameters = algorithm.parameters(values)
    assert ("schedule" in parameters) is False
    estimator = algorithm.build(values)
    assert estimator.get_params().keys() >= parameters.keys()
    outcome = answered(Request(SAMPLES["AND"](), key, values), never)
    assert (outcome.model is None) != (outcome.failure is None)
    if outcome.failure is not None:
        assert "parameter" not in outcome.failure, outcome.failure


def test_every_estimator_of_the_library_is_there():
    assert {algorithm.estimator for algorithm in ALGORITHMS.values()} == {
        "Perceptron", "Pocket", "KernelPerceptron", "Relaxation", "LMS", "Pseudoinverse",
        "HoKashyap", "SVC", "NuSVC", "LinearSVC", "SVR", "NuSVR", "LinearSVR", "OneClassSVM",
    }  # fmt: skip
    for key, algorithm in ALGORITHMS.items():
        assert key == algorithm.key
        assert algorithm.sentence.endswith(".")
        assert algorithm.equation


@pytest.mark.parametrize("key", ALL_KEYS)
@pytest.mark.parametrize("foreign", FOREIGN)
def test_foreign_values_are_replaced(key, foreign):
    algorithm = ALGORITHMS[key]
    values = dict.fromkeys(algorithm.defaults(), foreign) | {"callback": "print", "__class__": 1}
    assert algorithm.settled(values) == algorithm.defaults()


def test_the_end_of_C_is_the_hard_margin():
    svc = ALGORITHMS["svc"]
    assert np.inf == svc.build(svc.defaults() | {"C": 5}).C
    assert pytest.approx(89100) == svc.build(svc.defaults() | {"C": 4.95}).C
    assert svc.build(svc.defaults()).C == 1.0


# Fitting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_the_last_step_is_the_model(key):
    """Planes and α of the last frame decide as the model does, or are a multiple of it."""
    points = points_of()
    outcome = fitted(key, points)
    frames, model = outcome.frames, outcome.model
    at = model.decision_function(points.X)
    found = evaluated(frames[-1], model, points.X, points.X)[:, 0]
    scale = (found @ at) / (at @ at)
    assert scale > 0
    if key != "nusvc":  # whose α are divided by ρ in the end
        assert scale == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(found, scale * at, atol=0.02 * np.abs(scale * at).max())


@pytest.mark.parametrize("key", KEYS)
def test_the_last_steps_of_every_task_are_the_model(key):
    rng = np.random.default_rng(1)
    codes = np.arange(30) % 3
    centres = np.array([(0.0, 0.0), (9.0, 1.0), (1.0, 9.0)])
    points = checked(centres[codes] + rng.normal(0, 0.5, (30, 2)), codes)
    outcome = fitted(key, points, multi_class="ovr", max_iter=8)  # all of which is recorded
    last = state(outcome.frames, len(outcome.frames) - 1)
    assert sorted(last) == [0, 1, 2]
    at = np.asarray(outcome.model.decision_function(points.X))
    for task, frame in last.items():
        found = evaluated(frame, outcome.model, points.X, points.X)[:, 0]
        scale = (found @ at[:, task]) / (at[:, task] @ at[:, task])
        assert scale == pytest.approx(1, abs=0.05) or key == "nusvc"
        np.testing.assert_allclose(
            found, scale * at[:, task], atol=0.02 * np.abs(scale * at[:, task]).max()
        )


def test_the_lines_of_the_answer_are_the_lines_of_the_model():
    """Also where the recording ended before the solver did."""
    outcome = fitted("perceptron", points_of(3), max_iter=1000)
    picture, model = picture_of(outcome), outcome.model
    assert picture.planes
    for line in picture.planes:
        g = np.abs(np.asarray(model.decision_function(line)))
        assert g.max(axis=0).min() < 1e-6


def test_the_pocket_shows_where_it_ends():
    outcome = fitted("pocket", SAMPLES["XOR"](), max_iter=20)
    picture, step = picture_of(outcome), picture_of(outcome, len(outcome.frames) - 1)
    np.testing.assert_array_equal(picture.regions, step.regions)


@pytest.mark.parametrize("key", KEYS)
def test_what_cannot_be_is_said(key):
    values = ALGORITHMS[key].defaults()
    for points in (checked(np.empty((0, 2)), []), checked([[0, 0], [1, 1]], [0, 0])):
        outcome = answered(Request(points, key, values), never)
        assert outcome.model is None
        assert "two classes" in outcome.failure


@pytest.mark.parametrize("key", WITHOUT_CLASSES)
def test_one_point_is_enough_without_classes(key):
    values = ALGORITHMS[key].defaults()
    none = answered(Request(checked(np.empty((0, 2)), []), key, values), never)
    assert "Draw a point" in none.failure
    outcome = fitted(key, checked([[2.0, 3.0]], [0]))
    assert outcome.model.certificate_.holds(1e-3)
    assert picture_of(outcome).planes or key == "one-class"


@pytest.mark.parametrize("key", WITHOUT_CLASSES)
def test_the_last_step_of_a_machine_without_classes_is_the_model(key):
    """α of a step, b of targets about their centre, w of a linear machine."""
    points = checked(SAMPLES["noisy sine"]().X + np.array([0.0, 50.0]), np.zeros(100))
    outcome = fitted(key, points)
    assert outcome.complete
    end, step = picture_of(outcome), picture_of(outcome, len(outcome.frames) - 1)
    name = "margins" if key == "one-class" else "predicted"
    found, expected = getattr(step, name), getattr(end, name)
    np.testing.assert_allclose(found, expected, atol=0.02 * np.ptp(expected))
    np.testing.assert_allclose(step.alpha, end.alpha, atol=0.1 * end.alpha.max())


def test_no_plane_is_a_text_and_a_verdict():
    points = SAMPLES["XOR"]()
    told = []
    worker = Worker(told.append)
    worker.ask(Request(points, "svc", ALGORITHMS["svc"].defaults() | {"C": 5}))
    _wait(lambda: len(told) == 2)
    worker.close()
    assert all("No plane separates" in outcome.failure for outcome in told)
    assert [outcome.verdict is None for outcome in told] == [True, False]
    assert told[1].verdict.common_point is not None
    picture = picture_of(told[1])
    assert len(picture.hulls) == 2
    np.testing.assert_allclose(picture.common_point, points.X.mean(axis=0), atol=1e-6)


def test_a_worker_answers_then_records():
    told = []
    worker = Worker(told.append)
    worker.ask(Request(points_of(), "perceptron", ALGORITHMS["perceptron"].defaults()))
    _wait(lambda: len(told) == 3)
    assert [outcome.live for outcome in told] == [True, False, False]
    assert [outcome.verdict is None for outcome in told] == [True, False, False]
    assert [outcome.recorded for outcome in told] == [False, False, True]
    assert [len(outcome.frames) > 0 for outcome in told] == [False, False, True]
    # The verdict on the same points is known already.
    worker.ask(Request(told[0].request.points, "pocket", ALGORITHMS["pocket"].defaults()))
    _wait(lambda: len(told) == 4)
    assert told[3].live
    assert told[3].verdict is told[1].verdict
    worker.close()


def test_positions_that_follow_each_other_are_only_fitted(monkeypatch):
    """Steps are recorded, and separability is decided, after a pause."""
    monkeypatch.setattr(fitting, "LIMITS", replace(fitting.LIMITS, pause_seconds=2.0))
    told = []
    worker = Worker(told.append)
    for k in range(3):
        worker.ask(Request(points_of(seed=k), "svc", ALGORITHMS["svc"].defaults()))
        _wait(lambda k=k: len(told) == k + 1)
    assert all(outcome.live and outcome.model is not None for outcome in told)
    assert worker.judged is None
    _wait(lambda: len(told) == 5)
    assert told[4].recorded
    worker.close()


def test_a_newer_request_cancels_an_older():
    told = []
    worker = Worker(told.append)
    slow = Request(
        SAMPLES["blobs, 2,000"](), "kernel-perceptron",
        ALGORITHMS["kernel-perceptron"].defaults() | {"kernel": "rbf", "max_iter": 1000},
    )  # fmt: skip
    fast = Request(SAMPLES["AND"](), "svc", ALGORITHMS["svc"].defaults())
    worker.ask(slow)
    _wait(lambda: worker.is_busy)
    for _ in range(20):
        worker.ask(slow)
    worker.ask(fast)
    _wait(lambda: any(outcome.request is fast and outcome.recorded for outcome in told))
    assert all(outcome.request is fast for outcome in told)
    worker.close()


def test_a_closed_worker_lets_its_thread_go():
    worker = Worker(lambda outcome: None)
    worker.ask(Request(SAMPLES["AND"](), "svc", ALGORITHMS["svc"].defaults()))
    worker.close()
    _wait(lambda: not any(t.name.startswith("maxmargin-lab") for t in threading.enumerate()))


@pytest.mark.parametrize("names", [("A", "A"), ("a" * 60, "a" * 61)])
def test_a_worker_says_something_about_any_points(names):
    """Also where two classes are called the same."""
    told = []
    worker = Worker(told.append)
    points = checked([[0, 0], [1, 0], [3, 3], [4, 3]], [0, 0, 1, 1], names)
    worker.ask(Request(points, "svc", ALGORITHMS["svc"].defaults()))
    _wait(lambda: told)
    worker.close()


def _wait(condition):
    end = time.perf_counter() + 120.0
    while not condition():
        assert time.perf_counter() < end, "waited in vain"
        time.sleep(0.01)


def test_the_time_of_a_fit_does_not_include_that_of_the_compiler(monkeypatch):
    """The first fit of a process reads functions from disk, or compiles them."""
    request = Request(points_of(), "svc", ALGORITHMS["svc"].defaults())
    timed, times, told = fitting._timed, [], []

    def prepare(model, request):
        namespace = {}
        if not times:
            exec("def doubled(x):\n    return 2 * x", namespace)
            compiled(namespace["doubled"])(2.0)
        times.append(timed(model, request))
        return times[-1]

    monkeypatch.setattr(fitting, "_timed", prepare)
    outcome = answered(request, never, tell_compiling=lambda: told.append(True))
    assert told
    assert len(times) == 2
    assert outcome.seconds == times[1]
    assert answered(request, never).seconds == times[2]
    assert len(times) == 3
