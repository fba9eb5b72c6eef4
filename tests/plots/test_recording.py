"""Pages that play a recorded run: what they hold agrees with the fit."""

import gzip
import re
import warnings

import numpy as np
import pytest
from matplotlib.path import Path as Outline
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.grid import Lattice
from maxmargin.plots.recording import (
    MOST_SIZE,
    Caption,
    Scene,
    Shot,
    page_of,
    region_above,
    regions_of,
    simplified,
)
from tests.helpers.figures import blobs
from tests.helpers.recordings import Places, corners, data_of, states_of


@pytest.fixture
def scene_of(tmp_path):
    """Write the animation of a model, and return its scene as the page holds it."""

    def write(model, X, y, **options):
        plots.animate(model, X, y, tmp_path / "run.html", **options)
        (scene,) = data_of((tmp_path / "run.html").read_text(encoding="utf-8"))["scenes"]
        return scene

    return write


@pytest.fixture(autouse=True)
def _unfinished():
    """Fits may end at their limit."""
    warnings.simplefilter("ignore", ConvergenceWarning)


def updates_of(model, X, y):
    """Return the row, w and b of every update of a fit."""
    recorder = mm.Recorder(every_update=True)
    model.set_params(callback=recorder).fit(X, y)
    steps = [step for step in recorder.steps if step.sample is not None]
    return [(step.sample, *(part[0] for part in step.planes())) for step in steps]


def numbers_in(text):
    return [float(found) for found in re.findall(r"-?[\d.]*\d(?:e-?\d+)?", text.replace("−", "-"))]


@pytest.mark.parametrize(
    "model",
    [
        mm.Perceptron(shuffle=False, max_iter=4), mm.Perceptron(random_state=0, max_iter=4),
        mm.Relaxation(random_state=0, max_iter=4),
        mm.LMS(random_state=0, max_iter=4), mm.Pocket(random_state=0, max_iter=4),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_planes_and_captions_are_those_of_the_callback(model, overlap, scene_of):
    X, y = overlap
    updates = updates_of(model, X, y)[:40]
    scene = scene_of(model, X, y, max_frames=5000)
    places, signs = Places(scene), np.where(y == 1, 1.0, -1.0)
    pairs = zip(scene["shots"][1:-1], states_of(scene)[1:-1], strict=True)
    shots = [(shot, wrong) for shot, (_, wrong) in pairs if "moved" in shot][: len(updates)]
    assert len(shots) == len(updates) >= 2
    drawn = 0
    for (shot, wrong), (row, w, b) in zip(shots, updates, strict=True):
        assert shot["moved"] == [row]
        assert f"Point {row + 1} " in shot["text"]
        told = re.search(r"w(?: ←.*)? = \((.*?)\), b = (\S+?)\. ", shot["text"])
        np.testing.assert_allclose(numbers_in(told[1]), w, rtol=6e-4)
        np.testing.assert_allclose(numbers_in(told[2])[0], b, rtol=6e-4, atol=1e-12)
        is_wrong = signs * (X @ w + b) <= 0
        np.testing.assert_array_equal(wrong, is_wrong)
        n = int(is_wrong.sum())
        assert (f"{n} point" if n else "All points are on their sides") in shot["text"]
        for _, path in shot.get("lines", []):
            for line in map(places, corners(path)):
                assert (np.abs(line @ w + b) <= np.abs(w) @ places.unit).all()
                drawn += 1
    assert drawn


def test_the_rule_in_a_caption_gives_the_next_plane(six, scene_of):
    X, y = six
    scene = scene_of(mm.Relaxation(random_state=1, max_iter=3), X, y)
    w = np.zeros(2)
    for shot in scene["shots"][1:-1]:
        found = re.search(r"w ← w ([+−]) (\S* ?)y x = \((.*?)\)", shot["text"])
        rate = float(found[2] or 1.0) * (1.0 if found[1] == "+" else -1.0)
        (row,) = shot["moved"]
        w = w + rate * np.asarray(y)[row] * X[row]
        np.testing.assert_allclose(numbers_in(found[3]), w, rtol=2e-3)
        w = np.array(numbers_in(found[3]))


def test_captions_of_the_six_points(six, scene_of):
    texts = [shot["text"] for shot in scene_of(mm.Perceptron(shuffle=False), *six)["shots"]]
    assert texts == [
        "6 samples, before the first step; w = 0 and b = 0: there is no plane yet.",
        "Point 1 has y g(x) = 0: w ← w + y x = (1, 6), b = 1. 3 points are not on their sides.",
        "Point 4 is on the wrong side, y g(x) = −18: w ← w + y x = (−4, 4), b = 0. All points are "
        "on their sides.",
        "Converged after 2 passes. Proved: separates all 6 samples: smallest distance to the plane "
        "0.707107. All points are on their sides.",
    ]


@pytest.mark.parametrize(
    ("model", "load", "proved"),
    [
        (mm.SVC(), mm.datasets.load_six_points, True),
        (mm.SVC(max_iter=2), mm.datasets.load_six_points, False),
        (mm.Pocket(random_state=0, max_iter=3), mm.datasets.load_xor, False),
        (mm.HoKashyap(), mm.datasets.load_xor, True),
    ],
    ids=["optimal", "not optimal", "not separated", "refuted"],
)
def test_the_end_says_what_the_certificate_says(model, load, proved, scene_of):
    X, y = load(return_X_y=True)
    model.fit(X, y)
    last = scene_of(model, X, y)["shots"][-1]
    assert last["heading"] == "The answer"
    assert last["proved"] is proved
    verdict = "Proved" if proved else "Not proved"
    assert f". {verdict}: {model.certificate_}." in last["text"]
    assert "moved" not in last


def test_w_of_zero_has_no_plane(scene_of):
    last = scene_of(mm.HoKashyap(), *mm.datasets.load_xor(return_X_y=True))["shots"][-1]
    assert not {"lines", "band", "regions"} & set(last)
    assert "w = (0, 0)" in last["facts"]


def test_alpha_that_cancels_draws_no_line_of_rounding_errors(scene_of):
    X, y = np.full((30, 2), 3.0), np.arange(30) % 2
    shots = scene_of(mm.SVC(gamma=0.3), X, y)["shots"]
    assert len(shots) > 2
    for shot in shots[1:]:
        assert not {"lines", "band", "regions", "wrong"} & set(shot)
        assert "w = 0: there is no plane." in shot["text"]


def test_steps_end_before_the_numbers_overflow(six, scene_of):
    with pytest.warns(RuntimeWarning, match="learning_rate must be below"):
        scene = scene_of(mm.LMS(learning_rate=1e3, shuffle=False), *six, max_frames=1000)
    assert scene["note"] == "the steps end where the numbers overflow"
    *steps, last = scene["shots"][1:]
    assert len(steps) > 10
    assert all("regions" in shot for shot in steps)
    assert not any(word in str(scene["shots"]) for word in ("nan", "inf"))
    assert last["text"].startswith("Diverged after")
    assert last["text"].endswith("w = 0: there is no plane.")
    assert last["proved"] is False


class Stopping:
    """A callback that stops a fit after some calls."""

    def __init__(self, calls):
        self.left = calls

    def __call__(self, step):
        self.left -= 1
        return self.left == 0


def test_a_callback_stops_the_fit_that_is_recorded(overlap, scene_of):
    X, y = overlap
    scene = scene_of(mm.Perceptron(shuffle=False, callback=Stopping(2)), X, y, max_frames=9999)
    assert scene["shots"][-1]["text"].startswith("Stopped by a callback after 2 passes.")
    assert scene["note"] == ""


def test_steps_of_another_fit_are_said_to_be_of_another_fit(overlap, scene_of):
    X, y = overlap
    stopped = mm.Perceptron(shuffle=False, max_iter=9, callback=Stopping(2)).fit(X, y)
    note = scene_of(stopped, X, y, max_frames=9999)["note"]
    assert note == (
        "the steps are those of another fit with the same parameters, which ended elsewhere"
    )
    again = mm.Perceptron(shuffle=False, max_iter=9).fit(X, y)
    assert scene_of(again, X, y, max_frames=9999)["note"] == ""


def test_the_best_model_of_a_search_is_recorded(moons, scene_of):
    search = mm.SVCCV(Cs=[1.0], gammas=[2.0], cv=2)
    shots = scene_of(search, *moons, max_frames=5)["shots"]
    assert "Proved: optimal" in shots[-1]["text"]


def test_the_answer_of_a_kernel_has_its_curves_regions_and_rings(moons, scene_of):
    X, y = moons
    model = mm.SVC(gamma=2.0, solver="smo").fit(X, y)
    scene = scene_of(model, X, y, max_frames=8, resolution=120)
    places, last = Places(scene), scene["shots"][-1]
    for level, path in ((0.0, last["lines"][0][1]), (1.0, last["band"])):
        curve = np.vstack([places(line) for line in corners(path)])
        g = model.decision_function(curve)
        np.testing.assert_allclose(np.abs(g), level, atol=0.06)
    units = np.reshape(scene["points"], (-1, 2))
    np.testing.assert_allclose(places(units), X, atol=2 * places.unit.max())
    sizes, wrong = states_of(scene)[-1]
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_).ravel()
    np.testing.assert_array_equal(sizes, np.ceil(MOST_SIZE * alpha / alpha.max()))
    np.testing.assert_array_equal(wrong, model.predict(X) != y)
    clear = np.abs(model.decision_function(X)) > 0.1
    for code, path in last["regions"]:
        crossed = sum(Outline(line).contains_points(units).astype(int) for line in corners(path))
        np.testing.assert_array_equal((crossed % 2 == 1)[clear], (model.predict(X) == code)[clear])


def test_pages_are_small_and_always_the_same(six, moons, tmp_path):
    paths = [tmp_path / name for name in ("one.html", "two.html", "large.html")]
    for path in paths[:2]:
        plots.animate(mm.Perceptron(random_state=3), *six, path)
    one, two = (path.read_bytes() for path in paths[:2])
    assert one == two
    assert len(gzip.compress(one)) < 15_000
    plots.animate(mm.SVC(gamma=2.0, solver="smo"), *moons, paths[2])
    assert len(gzip.compress(paths[2].read_bytes())) < 80_000


def test_names_of_users_are_text(tmp_path):
    bad = ["</script><script>alert(1)</script>", "<!-- & \u2028 <img src=x onerror=alert(2)>"]
    X, y = mm.datasets.load_six_points(return_X_y=True)
    labels = np.array(bad)[(y > 0).astype(int)]
    target = tmp_path / "run.html"
    plots.animate(mm.Perceptron(), X, labels, target, feature_names=bad)
    text = target.read_text(encoding="utf-8")
    (scene,) = data_of(text)["scenes"]
    assert sorted(name for _, name, *_ in scene["classes"]) == sorted(bad)
    assert [axis["label"] for axis in scene["axes"]] == bad
    assert "alert(1)</script>" not in text
    assert "<img" not in text
    assert "\u2028" not in text
    titled = page_of(bad[1], [_plain()], 2.0)
    assert "<img" not in titled
    assert "&lt;img src=x onerror=alert(2)&gt;" in titled


def _plain():
    shot = Shot(Caption("Start", "Nothing."))
    return Scene("A", np.zeros((1, 2)), np.zeros(1, dtype=int), ["a"], ("x", "y"),
                 ((-1.0, 1.0), (-1.0, 1.0)), [shot], [])  # fmt: skip


def test_long_runs_are_thinned_evenly_and_say_so(scene_of):
    X, y = blobs(60, 2, 2, 0.6)
    model = mm.Perceptron(random_state=0, max_iter=20)
    n = len(scene_of(model, X, y, max_frames=10_000)["shots"]) - 2
    assert n > 100
    scene = scene_of(model, X, y, max_frames=11)
    steps = [shot["heading"] for shot in scene["shots"][1:-1]]
    numbers = [numbers_in(text.replace(",", ""))[0] for text in steps]
    assert (numbers[0], numbers[-1], len(numbers)) == (1, n, 11)
    assert np.ptp(np.diff(numbers)) <= 1
    assert scene["note"] == f"11 of {n:,} steps shown, about one in {n / 11:.2g}"
    # The rule is about the step itself, though the one before it is left out.
    assert all("w ← w" in shot["text"] for shot in scene["shots"][1:-1])
    # An answer of its own is no step.
    scene = scene_of(mm.SVC(kernel="linear", max_iter=30), X, y, max_frames=5)
    assert [shot["heading"] for shot in scene["shots"][1:-1:3]] == ["Step 1 of 30", "Step 23 of 30"]
    assert scene["note"] == "4 of 30 steps shown, about one in 7.5"


def test_updates_after_a_pass_change_the_perceptron_not_the_pocket(overlap, scene_of):
    X, y = overlap
    model = mm.Pocket(random_state=0, max_iter=4).fit(X, y)
    shots = scene_of(model, X, y, max_frames=1000)["shots"]
    kept = [shot["text"].startswith("After pass") for shot in shots[1:-1]]
    after = [shot["text"] for shot, was in zip(shots[2:-1], kept, strict=False) if was]
    assert 2 <= len(after) <= 4
    for text in after:
        assert "is on the wrong side" in text
        assert "w ← w + y x" in text
    assert all("the plane in the pocket" in s["text"] for s, is_end in
               zip(shots[1:-1], kept, strict=True) if is_end)  # fmt: skip


@pytest.mark.parametrize("options", [{"init": "random", "random_state": 1}, {"warm_start": True}])
def test_a_start_that_is_not_zero_is_not_said_to_be_zero(options, six, scene_of):
    first, then, *_ = scene_of(mm.Perceptron(**options), *six)["shots"]
    assert "no plane is drawn yet" in first["text"]
    assert "y g(x)" not in then["text"]
    assert "w ←" not in then["text"]


def test_many_samples_are_drawn_in_part_with_those_that_are_corrected(scene_of):
    X, y = blobs(5000, 2, 2, 1.5)
    model = mm.Perceptron(random_state=0, max_iter=1)
    scene = scene_of(model, X, y, max_frames=6, resolution=20)
    assert len(scene["codes"]) == 2000
    assert "2,000 of 5,000 samples shown" in scene["note"]
    places = Places(scene)
    for shot in scene["shots"][1:-1]:
        (k,) = shot["moved"]
        row = int(re.match(r"Point ([\d,]+) ", shot["text"])[1].replace(",", "")) - 1
        point = places(np.reshape(scene["points"], (-1, 2))[k])
        np.testing.assert_allclose(point, X[row], atol=2 * places.unit.max())


def test_pipelines_do_not_pass_off_scaled_weights(flat, scene_of):
    X, y = flat
    scene = scene_of(make_pipeline(StandardScaler(), mm.Perceptron(max_iter=2)), X, y)
    assert not any("w = (" in shot["text"] + shot.get("facts", "") for shot in scene["shots"])
    assert [axis["label"] for axis in scene["axes"]] == list(X.columns)


def test_one_feature_is_a_strip_for_each_class(pair, scene_of):
    X, y = pair
    scene = scene_of(mm.LinearSVC(), X[["mass_g"]], y, max_frames=3)
    assert [text for _, text in scene["axes"][1]["ticks"]] == ["apple", "orange"]


def test_class_numbers_on_a_lattice_become_regions_that_fill_it():
    lattice = Lattice.over(((0.0, 1.0), (0.0, 1.0)), 60)
    points = lattice.points
    codes = np.select([points[:, 0] + points[:, 1] < 0.8, points[:, 0] < 0.6], [0, 1], 2)
    found = regions_of(lattice, codes)
    assert [code for code, _ in found] == [0, 1, 2]
    area = sum(_area(outline) for _, outlines in found for outline in outlines)
    assert abs(area - 1.0) < 0.002
    borders = np.vstack(found[0][1])
    inner = borders[(borders > 0.05).all(axis=1)]
    np.testing.assert_allclose(inner.sum(axis=1), 0.8, atol=0.02)  # no stairs
    assert regions_of(lattice, np.full(3600, -1)) == []


def _area(outline):
    x, y = outline.T
    return abs(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2


def test_a_region_without_a_border_is_everything_or_nothing():
    lattice = Lattice.over(((0.0, 2.0), (0.0, 1.0)), 5)
    (whole,) = region_above(lattice, np.full(25, 3.0))
    assert _area(whole) == 2.0
    assert region_above(lattice, np.full(25, -3.0)) == []


def test_simplified_lines_stay_within_the_tolerance():
    t = np.linspace(0.0, 3.0, 400)
    line = 100.0 * np.column_stack([t, np.sin(t)])
    few = simplified(line, 0.5)
    assert len(few) < 40
    np.testing.assert_allclose(np.interp(line[:, 0], *few.T), line[:, 1], atol=1.0)
    closed = simplified(np.vstack([line, line[::-1] + 50.0, line[:1]]), 0.5)
    np.testing.assert_array_equal(closed[0], closed[-1])
    assert len(closed) > 20
