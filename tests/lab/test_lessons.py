"""Lessons of the lab: what their goals notice, and what they do not take for it."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

import maxmargin as mm
from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.fitting import Request, answered, recorded
from maxmargin.lab.lessons import LESSONS, MOST_GOALS
from maxmargin.lab.observing import at_step, seen
from maxmargin.lab.points import SAMPLES, checked
from tests.helpers.lab import never

pytestmark = pytest.mark.filterwarnings("ignore")


def shown(points, key, values, step=None):
    """Return what the page shows of an algorithm, as lessons see it."""
    settled = ALGORITHMS[key].settled(ALGORITHMS[key].defaults() | values)
    request = Request(points, key, settled)
    two = points.n_classes == 2
    verdict = mm.separability(points.X, points.labels, maximum_margin=True) if two else None
    outcome = answered(request, never, verdict)
    if outcome.model is not None:
        outcome = replace(outcome, **recorded(request, never)._asdict(), recorded=True)
    found = seen(outcome)
    return at_step(found, outcome, len(outcome.frames) if step is None else step)


def start(key):
    """Return what is seen at the start of a lesson."""
    state = LESSONS[key].start()
    name, values = state.chosen[0]
    return shown(state.points, name, values)


def moved(points, k, place):
    X = points.X.copy()
    X[k] = place
    return checked(X, points.codes, points.names, points.axes)


@pytest.mark.parametrize("key", LESSONS)
def test_nothing_is_reached_at_the_start(key):
    lesson, first = LESSONS[key], start(key)
    assert 0 < len(lesson.goals) <= MOST_GOALS
    assert lesson.met([first]) == ()
    assert lesson.met([first, start(key)]) == ()
    assert lesson.reading(first)
    assert lesson.met([]) == ()


@pytest.mark.parametrize("key", LESSONS)
def test_cards_are_short_and_complete(key):
    lesson = LESSONS[key]
    assert lesson.sentences.count(". ") == 1
    assert lesson.sentences.endswith(".")
    assert lesson.question.endswith("?")
    assert lesson.answer.endswith(".")


def test_points_with_and_without_alpha_are_moved():
    lesson, first = LESSONS["six-points"], start("six-points")
    values = {"C": 5.0}
    free, held = np.flatnonzero(~first.support), np.flatnonzero(first.support)
    away = moved(first.points, free[0], first.points.X[free[0]] + [-0.5, 1.5])
    assert lesson.met([first, shown(away, "svc", values)]) == (0,)
    drawn = moved(first.points, held[0], first.points.X[held[0]] + [-1.0, 0.5])
    assert lesson.met([first, shown(drawn, "svc", values)]) == (1,)


def test_other_changes_are_not_moved_points():
    lesson, first = LESSONS["six-points"], start("six-points")
    k, values = int(np.flatnonzero(first.support)[0]), {"C": 5.0}
    place = first.points.X[k] + [-1.0, 0.5]
    by_C = shown(first.points, "svc", {"C": -2.0})
    nudged = shown(moved(first.points, k, first.points.X[k] + 0.01), "svc", values)
    two = moved(moved(first.points, k, place), (k + 1) % 6, [0.0, 0.0])
    removed = checked(first.points.X[1:], first.points.codes[1:])
    other = shown(moved(first.points, k, place), "svc", {"C": -2.0})
    for now in (by_C, nudged, shown(two, "svc", values), shown(removed, "svc", values), other):
        assert lesson.met([first, now]) == ()


def test_a_free_point_that_reaches_the_band_is_not_free():
    lesson, first = LESSONS["six-points"], start("six-points")
    k = int(np.flatnonzero(~first.support)[0])
    inside = moved(first.points, k, first.points.X.mean(axis=0))
    assert lesson.met([first, shown(inside, "svc", {"C": 5.0})]) == ()


def test_the_perceptron_is_followed_and_its_margin_halved():
    lesson, first = LESSONS["perceptron"], start("perceptron")
    assert lesson.met([first, shown(first.points, "perceptron", {}, step=0)]) == (0,)
    near = checked(first.points.X - np.outer(first.points.codes, [1.5, 1.5]), first.points.codes)
    now = shown(near, "perceptron", {})
    assert now.corrections <= now.bound
    assert now.bound > 2 * first.bound
    assert lesson.met([first, now]) == (1,)
    assert lesson.met([first, shown(near, "svc", {"C": 5.0})]) == ()
    mixed = moved(first.points, 0, first.points.X[-1] + 0.01)
    assert lesson.met([first, shown(mixed, "perceptron", {})]) == ()
    few = checked([[0.0, 0.0], [0.1, 0.1]], [0, 1])
    assert lesson.met([first, shown(few, "perceptron", {})]) == ()


def test_corrections_stay_below_their_bound():
    rng = np.random.default_rng(0)
    for shift in (3.0, 4.0, 6.0):
        codes = np.arange(30) % 2
        points = checked(rng.normal(size=(30, 2)) + shift * codes[:, np.newaxis], codes)
        for bias in ("plain", "radius"):
            now = shown(points, "perceptron", {"bias": bias, "max_iter": 1000})
            if now.proved:
                assert now.corrections <= now.bound < np.inf


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("svc", {"C": 5.0}, (0,)),
        ("svc", {}, (0,)),
        ("pseudoinverse", {}, (0,)),
        ("perceptron", {"learning_rate": 1.0}, ()),
        ("svc", {"kernel": "rbf"}, (1,)),
        ("svc", {"kernel": "poly", "C": 5.0}, (1,)),
        ("kernel-perceptron", {"kernel": "poly"}, (1,)),
        ("svc", {"kernel": "sigmoid"}, ()),
        ("svc", {"kernel": "poly", "degree": 1}, ()),
        ("kernel-perceptron", {"kernel": "sigmoid"}, ()),
    ],
)
def test_a_line_cannot_and_a_kernel_can(key, values, expected):
    assert LESSONS["xor"].met([start("xor"), shown(SAMPLES["XOR"](), key, values)]) == expected


def test_a_kernel_on_points_that_a_line_separates_is_no_answer():
    for points in (SAMPLES["AND"](), checked(SAMPLES["XOR"]().X[:3], SAMPLES["XOR"]().codes[:3])):
        now = shown(points, "svc", {"kernel": "rbf", "C": 5.0})
        assert now.errors == 0
        assert LESSONS["xor"].met([now]) == ()


def test_a_band_is_emptied_and_then_wide():
    lesson, first = LESSONS["c"], start("c")
    tight = shown(first.points, "svc", {"C": 2.0})
    wide = shown(first.points, "svc", {"C": -1.0})
    assert lesson.met([first, tight]) == (0,)
    assert lesson.met([first, wide]) == ()
    assert lesson.met([first, tight, wide]) == (1,)
    assert lesson.met([first, wide, tight]) == (0, 1)
    scaled = checked(3 * first.points.X, first.points.codes)  # wide because the points are
    assert lesson.met([first, tight, shown(scaled, "svc", {"C": -1.0})]) == ()
    assert lesson.met([first, tight, shown(first.points, "svc", {"C": 0.0})]) == ()
    assert lesson.met([first, shown(first.points, "svc", {"C": 2.0, "kernel": "rbf"})]) == ()


def test_a_machine_memorises_and_is_smooth():
    lesson, first = LESSONS["gamma"], start("gamma")

    def at(gamma, **values):
        return shown(first.points, "svc", {"C": 1.0, "kernel": "rbf", "gamma": gamma} | values)

    assert lesson.met([first, at(2.0)]) == (0,)
    assert lesson.met([first, at(0.3)]) == (1,)
    assert lesson.met([first, at(-3.0)]) == ()
    assert lesson.met([first, at(-3.0, C=-3.0)]) == ()  # all are support vectors, many are wrong
    six = shown(SAMPLES["six points"](), "svc", {"C": 1.0, "kernel": "rbf", "gamma": 2.0})
    assert lesson.met([first, six]) == ()


@pytest.mark.parametrize("name", ["six points", "blobs, 200"])
def test_lms_explodes_and_is_tamed(name):
    lesson, points = LESSONS["lms"], SAMPLES[name]()
    first = shown(points, "lms", {"learning_rate": -2.5})
    loud = shown(points, "lms", {"learning_rate": -1.2})
    for rate in (-1.0, 0.0):
        assert lesson.met([first, shown(points, "lms", {"learning_rate": rate})]) == (0,)
    assert lesson.met([first, loud]) == (0,)
    assert lesson.met([loud, shown(points, "lms", {"learning_rate": -2.1})]) == (1,)
    assert lesson.met([loud, shown(points, "lms", {"learning_rate": -4.0})]) == ()
    one_pass = shown(points, "lms", {"learning_rate": -2.1, "max_iter": 1})
    assert lesson.met([loud, one_pass]) == ()
    harmonic = shown(points, "lms", {"learning_rate": -1.2, "schedule": "harmonic"})
    assert lesson.met([loud, harmonic]) == ()


def test_an_outlier_and_the_pocket():
    lesson, first = LESSONS["outlier"], start("outlier")
    mixed = moved(first.points, 5, [6.5, 5.0])
    now = shown(mixed, "perceptron", {})
    assert lesson.met([first, now]) == (0,)
    pocket = shown(mixed, "pocket", {})
    worse = next(
        step
        for step in (shown(mixed, "perceptron", {}, step=k) for k in range(60))
        if step.errors > pocket.errors
    )
    assert lesson.met([first, now, pocket]) == ()
    assert lesson.met([first, now, pocket, worse]) == (0, 1)
    assert lesson.met([worse, pocket]) == (1,)
    assert lesson.met([first, shown(first.points, "pocket", {})]) == ()
    assert lesson.met([shown(first.points, "perceptron", {}, step=0), pocket]) == ()


@pytest.mark.parametrize("nu", np.arange(0.2, 1.0, 0.08).round(2).tolist())
def test_nu_is_between_the_shares(nu):
    lesson, first = LESSONS["nu"], start("nu")
    now = shown(first.points, "nusvc", {"nu": nu})
    assert now.proved
    assert now.share(now.n_inside) <= nu <= now.share(now.n_support)
    expected = (0,) if nu <= 0.25 else (1,) if nu >= 0.6 else ()
    assert lesson.met([first, now]) == expected
    assert " ≤ ν = " in lesson.reading(now)
    assert ">" not in lesson.reading(now)


def test_nothing_is_counted_where_there_is_no_plane():
    points = LESSONS["nu"].points()
    now = shown(points, "nusvc", {"nu": 0.02})  # w = 0
    assert not now.proved
    assert LESSONS["nu"].met([now]) == ()
    assert LESSONS["nu"].reading(now) == ""


@pytest.mark.parametrize("key", ["svr", "one-class"])
def test_lessons_are_about_two_classes(key):
    points = LESSONS["nu"].points()
    values = ALGORITHMS[key].defaults()
    assert seen(answered(Request(points, key, values), never)) is None
    three = SAMPLES["blobs"]()
    assert seen(answered(Request(three, "svc", ALGORITHMS["svc"].defaults()), never)) is None
