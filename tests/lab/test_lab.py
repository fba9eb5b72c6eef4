"""The lab without a browser: points, algorithms, fits, pictures, links, and its server."""

import base64
import builtins
import json
import threading
import time
import zlib
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.events import RangesUpdate

from maxmargin.lab.algorithms import ALGORITHMS, Choice
from maxmargin.lab.drawing import lattice, picture_of, weight_space, window_of
from maxmargin.lab.fitting import (
    Outcome,
    Request,
    Worker,
    answered,
    evaluated,
    recorded,
    state,
    weights,
)
from maxmargin.lab.page import Lab
from maxmargin.lab.panel import proof_of
from maxmargin.lab.points import (  # fmt: skip
    MOST_BYTES,
    MOST_POINTS,
    SAMPLES,
    checked,
    chosen_columns,
    read_upload,
)
from maxmargin.lab.sharing import code_of, link_of, restored

KEYS = list(ALGORITHMS)
FOREIGN = [None, [], {}, True, "x", 1e99, float("nan"), -1e99, "__class__"]
pytestmark = pytest.mark.filterwarnings("ignore")


def never(step=None):
    return False


def points_of(n_classes=2, seed=0):
    """Return a few points of classes that overlap a little."""
    rng = np.random.default_rng(seed)
    codes = np.arange(12 * n_classes) % n_classes
    centres = np.array([(0.0, 0.0), (3.0, 1.0), (0.5, 3.5), (4.0, 4.0)])
    return checked((centres[codes] + rng.normal(0, 0.9, (codes.size, 2))).round(3), codes)


def fitted(key, points, **values):
    values = ALGORITHMS[key].settled(ALGORITHMS[key].defaults() | values)
    request = Request(points, key, values)
    found = answered(request, never)
    assert found.failure is None, found.failure
    frames, complete = recorded(request, never)
    return replace(found, frames=frames, recorded=True, complete=complete)


def packed(record):
    content = record if isinstance(record, bytes) else json.dumps(record).encode()
    return base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")


RECORD = {
    "points": [[0, 0], [1, 0], [3, 3], [4, 3]], "codes": [0, 0, 1, 1],
    "names": ["A", "B"], "axes": ["x", "y"], "algorithms": [["svc", {}]],
}  # fmt: skip


# Points ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SAMPLES))
def test_samples_load_and_travel_as_csv(name):
    points = SAMPLES[name]()
    assert 2 <= points.n_classes <= 4
    assert 0 < len(points.X) <= MOST_POINTS
    assert len(set(points.names[: points.n_classes])) == points.n_classes
    table = read_upload(points.to_csv().encode())
    back = chosen_columns(table, *table[0])
    np.testing.assert_array_equal(back.X, points.X)
    assert back.labels.tolist() == points.labels.tolist()
    assert back.axes == points.axes


def test_plus_one_is_the_positive_class():
    points = SAMPLES["six points"]()
    model = mm.SVC(kernel="linear").fit(points.X, points.labels)
    positive = model.decision_function(points.X) > 0
    np.testing.assert_array_equal(points.labels == "1", positive)


@pytest.mark.parametrize(
    ("X", "codes", "words"),
    [
        ([[0, 0]], [0, 1], "one class a point"),
        (np.zeros((MOST_POINTS + 1, 2)), np.zeros(MOST_POINTS + 1), "at most 2000"),
        ([[0, np.nan]], [0], "not finite"),
        ([[0, 1e10]], [0], "1e9"),
        ([[0, 0]], [4], "0 to 3"),
        ([[0, 0]], [-1], "0 to 3"),
    ],
)
def test_points_beyond_the_limits_are_refused(X, codes, words):
    with pytest.raises(ValueError, match=words):
        checked(X, codes)


def test_names_of_classes_differ():
    """Classes that a file calls C and D leave other names for what is drawn besides."""
    assert len(set(checked([[0, 0], [1, 1]], [0, 1], ("C", "D")).names)) == 4


def test_long_names_of_classes_differ():
    long = "a" * 50
    table = read_upload(f"x,y,c\n0,0,{long}1\n1,1,{long}2\n2,2,{long}2\n".encode())
    points = chosen_columns(table, "x", "y", "c")
    assert len(set(points.labels.tolist())) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no header"),
        (b"x,y,c\n1,2,A\n", "no header and two rows"),
        (b"x,y,c\n1,2,A\n3,B\n", "Line 3 has 2 fields"),
        (b"x,c\n1,A\n2,B\n", "2 columns"),
        (b"x,y,c\n" * (MOST_POINTS + 3), "2002 rows"),
        (b"a" * (MOST_BYTES + 1), "bytes"),
        (b"\xff\xfex\x00,\x00", "UTF-8"),
        ("x,y,c\n1,2,A\n3,4,ä\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_bad_uploads_are_refused(content, words):
    with pytest.raises(ValueError, match=words):
        read_upload(content)


def test_a_field_without_end_is_refused():
    with pytest.raises(ValueError, match="field"):
        read_upload(b'x,y,c\n1,2,"' + b"a\n" * 100_000)


def test_the_line_of_a_file_is_told_as_an_editor_counts_it():
    with pytest.raises(ValueError, match="Line 5"):
        read_upload(b"x,y,c\n1,2,A\n\n3,4,B\n5,B\n")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_uploads_are_separated_by_what_they_use(separator):
    lines = ["\ufeffx,y,c", "1,2,A", "3,4,B", ""]
    table = read_upload("\r\n".join(lines).replace(",", separator).encode())
    assert table == [["x", "y", "c"], ["1", "2", "A"], ["3", "4", "B"]]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (("x", "x", "c"), "three different"),
        (("x", "z", "c"), "no column 'z'"),
        (("x", "t", "c"), "Line 3: 'two' in column 't' is no number"),
        (("x", "y", "one"), "1 classes"),
        (("x", "y", "many"), "5 classes"),
    ],
)
def test_bad_columns_are_refused(chosen, words):
    table = [["x", "y", "c", "t", "one", "many"]]
    table += [[str(k), "2", "AB"[k % 2], "1" if k == 0 else "two", "A", str(k)] for k in range(5)]
    with pytest.raises(ValueError, match=words):
        chosen_columns(table, *chosen)


# Algorithms --------------------------------------------------------------------------------


def extremes(control):
    return control.options if isinstance(control, Choice) else (control.low, control.high)


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [(key, c.name, v) for key in KEYS for c in ALGORITHMS[key].controls for v in extremes(c)],
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
        "HoKashyap", "SVC", "NuSVC", "LinearSVC",
    }  # fmt: skip
    for key, algorithm in ALGORITHMS.items():
        assert key == algorithm.key
        assert algorithm.sentence.endswith(".")
        assert algorithm.equation


@pytest.mark.parametrize("key", KEYS)
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


# Fitting -----------------------------------------------------------------------------------


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


def test_no_plane_is_a_text_and_a_verdict():
    points = SAMPLES["XOR"]()
    told = []
    worker = Worker(told.append)
    worker.ask(Request(points, "svc", ALGORITHMS["svc"].defaults() | {"C": 5}))
    _wait(lambda: told)
    worker.close()
    assert "No plane separates" in told[0].failure
    assert told[0].verdict.common_point is not None
    picture = picture_of(told[0])
    assert len(picture.hulls) == 2
    np.testing.assert_allclose(picture.common_point, points.X.mean(axis=0), atol=1e-6)


def test_a_worker_answers_then_records():
    told = []
    worker = Worker(told.append)
    worker.ask(Request(points_of(), "perceptron", ALGORITHMS["perceptron"].defaults()))
    _wait(lambda: len(told) == 2)
    assert [outcome.recorded for outcome in told] == [False, True]
    assert told[0].frames == []
    assert told[1].frames
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
    time.sleep(0.3)
    for _ in range(20):
        worker.ask(slow)
    started = time.perf_counter()
    worker.ask(fast)
    _wait(lambda: any(outcome.request is fast and outcome.recorded for outcome in told))
    assert time.perf_counter() - started < 5
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
    _wait(lambda: told, seconds=3)
    worker.close()


def _wait(condition, seconds=20):
    end = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < end, "waited in vain"
        time.sleep(0.01)


# The page, without a browser ---------------------------------------------------------------


@pytest.fixture
def lab():
    from bokeh.document import Document

    document = Document()
    page = Lab(document)
    for root in page.roots():
        document.add_root(root)
    yield page
    page.close()


def test_an_answer_that_comes_late_does_not_hide_its_steps(lab):
    """Bokeh runs the callbacks from before a session in any order."""
    points = lab.points
    recorded_one = fitted("svc", points)
    first = Outcome(recorded_one.request, recorded_one.model)
    panel = lab.panels[0]
    panel.request = recorded_one.request
    panel._arrive(recorded_one)
    panel._arrive(first)
    assert panel.outcome.recorded


def test_an_answer_to_what_was_asked_before_is_not_shown(lab):
    """A certificate pales until the one of the new settings is there."""
    old = fitted("svc", lab.points)
    panel = lab.panels[0]
    panel.ask(lab.points)
    assert panel.proof.css_classes == ["stale"]
    panel._arrive(old)
    assert panel.outcome is None
    assert panel.proof.css_classes == ["stale"]
    panel._arrive(replace(old, request=panel.request))
    assert "points wrong" in panel.proof.text
    assert panel.proof.css_classes == []


def test_points_are_added_moved_and_deleted_without_a_mouse(lab):
    before, editor = lab.points, lab.editor
    lab._load(before, remember=False)
    editor._add()
    assert "both coordinates" in lab.note.text
    editor._delete()
    assert "Select a point first" in lab.note.text
    editor.number.value = 7
    assert "6 points" in lab.note.text
    lab.pen.active, editor.x.value, editor.y.value = 2, 9.0, 90.0
    editor._add()
    assert lab.points.X[6].tolist() == [9.0, 90.0]
    assert lab.points.codes[6] == 2
    assert lab.panels[1].scene.window[3] > 90  # it is in sight
    assert lab.source.selected.indices == [6]
    editor.x.value, editor.y.value = -1.0, 1.5
    editor._move()
    assert lab.points.X[6].tolist() == [-1.0, 1.5]
    lab.source.selected.indices = [2]
    assert (editor.number.value, editor.x.value, editor.y.value) == (3, *before.X[2])
    lab.source.selected.indices = [6, 0]
    editor._delete()
    np.testing.assert_array_equal(lab.points.X, before.X[1:])
    np.testing.assert_array_equal(lab.points.codes, before.codes[1:])
    assert lab.source.selected.indices == []
    for _ in range(3):
        lab._undo()
    np.testing.assert_array_equal(lab.points.X, before.X)


def test_errors_are_those_of_whole_passes(lab):
    """A step of a single sample counts that sample only."""
    points = SAMPLES["AND"]()
    lab._load(points)
    lab.panels[0].choose("perceptron", ALGORITHMS["perceptron"].defaults())
    lab.changed()
    outcome = replace(fitted("perceptron", points), request=lab.panels[0].request)
    lab.panels[0]._arrive(outcome)
    passes = [k for k, frame in enumerate(outcome.frames) if frame.sample is None]
    assert 0 < len(passes) < len(outcome.frames)
    for name in ("errors", "criterion"):
        assert lab.beside.curves[name].data["x"] == [k + 1 for k in passes]
    expected = [outcome.frames[k].errors for k in passes]
    assert lab.beside.curves["errors"].data["y"] == expected
    assert expected[-1] == 0
    lab._go(0)
    sample = outcome.frames[0].sample
    assert lab.panels[0].scene.figure.title.text.endswith(f"pass 1, for point {sample + 1}")


def test_either_of_two_algorithms_can_be_looked_at(lab):
    assert not lab.subject.visible
    lab.compare.active = True
    assert lab.subject.visible
    for panel in lab.panels:
        panel._arrive(replace(fitted(panel.select.value, lab.points), request=panel.request))
    assert lab.subject.labels == ["Support vector machine", "Perceptron"]
    assert "SVC(" in lab.taking.code.text
    assert np.isfinite(lab.table.rows.data["alpha"]).all()
    lab.subject.active = 1
    assert "Perceptron(" in lab.taking.code.text
    assert np.isnan(lab.table.rows.data["alpha"]).all()
    lab.taking.send_code()
    assert lab.taking.parcel.value.startswith("model.py")
    lab.taking.send_model()
    content = base64.b64decode(lab.taking.parcel.value.split("|")[2])
    assert b"Perceptron" in content
    lab.compare.active = False
    lab._draw()
    assert "SVC(" in lab.taking.code.text


def test_what_is_sent_to_a_person_reaches_the_page(lab):
    assert lab.taking.parcel.document is lab.document


def test_a_click_too_many_is_refused(lab):
    lab._load(checked(np.zeros((MOST_POINTS, 2)), np.zeros(MOST_POINTS)))
    n = MOST_POINTS + 1
    lab.source.data = {"x": [0.0] * n, "y": [0.0] * n, "label": ["0"] * n}
    assert len(lab.points.X) == MOST_POINTS
    assert "at most 2000" in lab.note.text
    lab.source.data = {"x": [0.0], "y": ["<b>"], "label": ["0"]}
    assert len(lab.points.X) == MOST_POINTS


def test_undo_goes_back_far_enough_and_no_further(lab):
    for k in range(60):
        lab._load(checked([[k, k]], [0]))
    for _ in range(100):
        lab._undo()
    assert lab.points.X.tolist() == [[9.0, 9.0]]


def arrived(lab, key, points, **changes):
    """Load points, choose an algorithm, and hand over what comes of it."""
    lab._load(points)
    lab.panels[0].choose(key, ALGORITHMS[key].defaults() | changes)
    lab.changed()
    outcome = fitted(key, points, **changes)
    lab.panels[0]._arrive(replace(outcome, request=lab.panels[0].request))
    return outcome


def test_no_plane_is_drawn_where_w_is_zero(lab):
    """g of the machine is rounding there, and so would be its regions and its margin."""
    for key, points in (("nusvc", SAMPLES["moons"]()), ("svc", SAMPLES["XOR"]())):
        arrived(lab, key, points)
        proof, picture = lab.panels[0].proof.text, lab.panels[0].picture
        assert "w = 0 is optimal: there is no plane" in proof
        assert "margin" not in proof.replace("leaves no margin", "")
        assert "wrong" not in proof
        assert picture.regions is None
        assert picture.planes == []
        assert picture.support.any() == (key == "svc")  # of a ν-machine w = 0 has none
    arrived(lab, "svc", SAMPLES["six points"]())
    assert "w = 0" not in lab.panels[0].proof.text


@pytest.mark.parametrize("key", ["linear-svc", "kernel-perceptron", "perceptron"])
def test_no_region_is_painted_where_w_is_zero(lab, key):
    """Two points at one place: every plane through weights of 0 gives one class to all."""
    points = checked([[1.0, 1.0], [1.0, 1.0]], [0, 1])
    outcome = (
        arrived(lab, key, points, max_iter=2) if key != "linear-svc" else arrived(lab, key, points)
    )
    panel = lab.panels[0]
    if key == "linear-svc":
        assert np.abs(outcome.model.coef_).max() < 1e-12
        assert "class='good'" not in panel.proof.text
        assert panel.picture.regions is None
        assert "w = 0: no plane" in panel.scene.figure.title.text
    for k, frame in enumerate(outcome.frames):
        lab._go(k)
        if not weights(frame, points.X).any():
            assert panel.picture.regions is None
            assert panel.picture.planes == []


def test_a_step_is_said_to_be_one(lab):
    outcome = arrived(lab, "svc", SAMPLES["six points"]())
    panel = lab.panels[0]
    assert "shown" not in panel.proof.text
    end = panel.proof.text
    lab._go(0)
    frame = outcome.frames[0]
    assert panel.proof.text.startswith("<p class='step'>shown: step 1 of")
    assert f"primal {frame.primal:.6g}" in panel.proof.text.split("below: the end")[0]
    assert panel.proof.text.endswith(end)
    lab._go(len(outcome.frames))
    assert panel.proof.text == end


def test_a_kernel_may_separate_what_no_plane_does():
    points = SAMPLES["XOR"]()
    outcome = fitted("svc", points, kernel="rbf")
    proof = proof_of(replace(outcome, verdict=mm.separability(points.X, points.labels)))
    assert "No plane separates these points; the curve of this kernel does" in proof
    assert "not linearly separable" in proof
    assert "not separable" not in proof


def test_warnings_are_on_the_page(lab):
    outcome = arrived(lab, "lms", SAMPLES["moons"](), learning_rate=0.0)
    assert any("smaller rate" in text for text in outcome.warnings)
    assert "warning: LMS" in lab.panels[0].proof.text
    # A second time, too: they are not told once only.
    again = fitted("lms", SAMPLES["moons"](), learning_rate=0.0)
    assert again.warnings == outcome.warnings
    assert arrived(lab, "svc", SAMPLES["six points"]()).warnings == ()


def test_slack_that_is_rounding_is_0(lab):
    rng = np.random.default_rng(0)
    points = checked(rng.normal(size=(30, 2)) + np.repeat([[0.0, 0.0], [6.0, 0.3]], 15, axis=0),
                     [0] * 15 + [1] * 15)  # fmt: skip
    arrived(lab, "svc", points, C=5.0)
    slack = np.array(lab.table.rows.data["slack"])
    assert (slack == 0.0).sum() >= 28
    assert not ((slack > 0) & (slack < 1e-9)).any()


def test_the_way_of_w_ends_at_the_answer(lab):
    outcome = arrived(lab, "pocket", SAMPLES["moons"]())
    np.testing.assert_array_equal(
        [lab.beside.tip.data["x"][0], lab.beside.tip.data["y"][0]], outcome.model.coef_[0]
    )
    assert lab.beside.errors.title.text == "mistakes met, not errors of one plane"
    arrived(lab, "svc", SAMPLES["six points"]())
    assert lab.beside.errors.title.text == "errors"


def test_curves_of_several_tasks_are_not_joined(lab):
    outcome = arrived(lab, "svc", SAMPLES["four blobs"]())
    tasks = [frame.task for frame in outcome.frames]
    x = np.array(lab.beside.curves["dual"].data["x"])
    assert np.isnan(x).sum() == len(set(tasks)) - 1 == 5
    lab._go(0)
    assert "A against B, round 1" in lab.panels[0].scene.figure.title.text


def test_steps_that_were_not_all_kept_say_so(lab):
    outcome = arrived(lab, "perceptron", SAMPLES["moons"]())
    n = len(outcome.frames)
    assert not outcome.complete
    title = lab.panels[0].scene.figure.title
    assert title.text == f"the answer (its first {n} steps were kept)"
    lab._go(n - 1)
    wrong = int(lab.panels[0].picture.wrong.sum())
    assert title.text.startswith(f"step {n} of the first {n}: pass")
    assert title.text.endswith(f"{wrong} points wrong")
    assert arrived(lab, "perceptron", SAMPLES["AND"]()).complete
    assert title.text == "the answer"


def test_steps_that_run_away_are_not_kept():
    outcome = fitted("lms", SAMPLES["six points"](), learning_rate=0.0)  # 10⁰
    assert all(np.isfinite(frame.w).all() for frame in outcome.frames)


def test_what_comes_into_sight_is_drawn(lab):
    arrived(lab, "perceptron", SAMPLES["AND"]())
    panel = lab.panels[0]
    panel._on_ranges(RangesUpdate(panel.scene.figure, x0=-9.0, x1=9.0, y0=-8.0, y1=8.0))
    panel._redraw()
    assert panel.picture.window == (-9.0, 9.0, -8.0, 8.0)
    assert panel.redrawing is None


def test_an_upload_is_forgotten_with_its_points(lab):
    content = b"a,b,c\n0,0,u\n1,0,u\n3,3,v\n"
    lab._on_upload("value", "", base64.b64encode(content).decode())
    assert lab.columns[0].visible
    assert lab.sample.title == "samples"
    lab._on_upload("value", "", base64.b64encode(b"nothing").decode())
    assert "no header" in lab.note.text
    lab.columns[0].value, lab.columns[1].value = "b", "a"  # of the file that was taken
    assert lab.points.axes == ("b", "a")
    lab.sample.value = "AND"
    assert lab.sample.title == "samples (AND)"
    assert not lab.columns[0].visible
    lab.columns[0].value = "b"
    assert len(lab.points.X) == 4
    lab._clear()
    assert lab.sample.title == "samples"


def test_a_link_to_what_was_before_goes(lab):
    lab._load(SAMPLES["AND"]())
    lab.taking.make_link()
    assert lab.taking.link.value
    lab.changed()
    assert lab.taking.link.value == ""


def test_one_point_too_many_is_refused_not_swapped(lab):
    assert all(panel.scene.pen.num_objects > MOST_POINTS for panel in lab.panels)


def test_lines_of_an_upload_are_counted_with_blank_ones():
    table = read_upload(b"x,y,class\n\n1,2,a\nzz,4,b\n")
    with pytest.raises(ValueError, match="Line 4: 'zz'"):
        chosen_columns(table, "x", "y", "class")
    table = read_upload(b"x,y,class\n\n1,2,a\n3,4,b\n")
    assert chosen_columns(table, "x", "y", "class").X.tolist() == [[1, 2], [3, 4]]


def test_sums_of_steps_are_rounded():
    nu = next(c for c in ALGORITHMS["nusvc"].controls if c.name == "nu")
    assert nu.number(0.9400000000000001) == 0.94


# Drawing -----------------------------------------------------------------------------------


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
    left, right, bottom, top = picture.window
    step = max(right - left, top - bottom) / 89
    np.testing.assert_allclose(lengths, slack[slack > 1e-3] / w, atol=step)


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


# Sharing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_links_restore_everything(key):
    algorithm = ALGORITHMS[key]
    values = {c.name: extremes(c)[-1] for c in algorithm.controls}
    points = SAMPLES["fruit: apple, pear"]()
    link = link_of(points, [(key, values), ("lms", ALGORITHMS["lms"].defaults())])
    assert link.startswith("?lab=")
    back, chosen = restored(link.removeprefix("?lab="))
    np.testing.assert_array_equal(back.X, points.X)
    np.testing.assert_array_equal(back.codes, points.codes)
    assert (back.names, back.axes) == (points.names, points.axes)
    assert chosen == [(key, values), ("lms", ALGORITHMS["lms"].defaults())]


def test_links_restore_small_numbers():
    points = checked([[1e-8, 0], [3e-8, 1e-8]], [0, 1])
    back, _ = restored(link_of(points, [("svc", {})]).removeprefix("?lab="))
    np.testing.assert_allclose(back.X, points.X, rtol=1e-6)


def test_two_hundred_points_fit_a_link_and_two_thousand_say_no():
    chosen = [("svc", ALGORITHMS["svc"].defaults())]
    assert len(link_of(SAMPLES["blobs, 200"](), chosen)) < 8000
    with pytest.raises(ValueError, match="CSV"):
        link_of(SAMPLES["blobs, 2,000"](), chosen)


@pytest.mark.parametrize(
    "text",
    [
        "", "garbage", "A" * 20_000, "%3Cscript%3E", packed(b""), packed(b"{}"), packed(b"[]"),
        packed(b" " * 5_000_000), packed(b"null"), packed(RECORD)[:-10],
        *(packed(RECORD | change) for change in (
            {"algorithms": []}, {"algorithms": [["eval", {}]]}, {"algorithms": [[["svc"], {}]]},
            {"algorithms": "svc"}, {"algorithms": [["svc", 3]]}, {"codes": [0, 0, 1]},
            {"codes": [0, 0, 1, 9]}, {"codes": [0, 0, 1, "x"]}, {"points": [[0, 0]] * 3000},
            {"points": [[0, 0], [1, 0], [3, 3], [4, 1e300]]}, {"points": "abcd"},
            {"points": [[0, 0], [1, 0], [3, 3], [4, None]]}, {"axes": ["x"]}, {"names": None},
        )),
    ],
)  # fmt: skip
def test_forged_links_are_refused(text):
    with pytest.raises(ValueError, match="link"):
        restored(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(packed(RECORD | {"codes": [0, 0, 1, 10**30]}), id="huge-class"),
        pytest.param(packed(RECORD | {"points": [[0, 0], [1, 0], [3, 3], [4, 10**400]]}),
                     id="huge-point"),
        pytest.param(packed(b"[" * 200_000), id="deep"),
    ],
)  # fmt: skip
def test_links_that_break_the_reader_are_refused(text):
    with pytest.raises(ValueError, match="link"):
        restored(text)


def test_foreign_settings_of_a_link_are_replaced():
    change = {"algorithms": [["svc", {"C": "1e9", "kernel": "os.system", "callback": "print"}]] * 5}
    _, chosen = restored(packed(RECORD | change))
    assert chosen == [("svc", ALGORITHMS["svc"].defaults())] * 2


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("key", KEYS)
def test_the_code_makes_the_same_model(key, n_classes):
    points = points_of(n_classes)
    values = ALGORITHMS[key].defaults()
    model = answered(Request(points, key, values), never).model
    space = {}
    exec(code_of(points, key, values), space)
    np.testing.assert_allclose(
        space["model"].decision_function(points.X), model.decision_function(points.X), rtol=1e-9
    )


@pytest.mark.parametrize("key", KEYS)
def test_the_code_of_the_last_of_every_control_runs(key):
    algorithm = ALGORITHMS[key]
    values = {c.name: extremes(c)[-1] for c in algorithm.controls}
    points = SAMPLES["six points"]()
    outcome = answered(Request(points, key, values), never)
    space = {}
    program = code_of(points, key, values)
    if outcome.model is None:
        with pytest.raises(ValueError, match=r".+"):
            exec(program, space)
    else:
        exec(program, space)
        np.testing.assert_array_equal(
            space["model"].decision_function(points.X), outcome.model.decision_function(points.X)
        )


def test_names_in_code_are_only_names():
    bad = '"]); raise SystemExit("run") #'
    points = checked([[0, 0], [1, 1]], [0, 1], (bad, "B\n\\"))
    space = {}
    exec(code_of(points, "svc", ALGORITHMS["svc"].defaults()), space)
    assert set(space["y"].tolist()) == {bad, "B\n\\"}


def test_the_code_of_no_points_is_a_program():
    compile(
        code_of(checked(np.empty((0, 2)), []), "svc", ALGORITHMS["svc"].defaults()), "x", "exec"
    )


# The server --------------------------------------------------------------------------------


def test_without_bokeh_the_extra_is_named(monkeypatch):
    from maxmargin.lab.server import make_server

    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] == "bokeh":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[lab\]"'):
        make_server()


def test_origins_are_those_of_the_page():
    from maxmargin.lab.server import _origins

    assert "127.0.0.1:5017" in _origins("127.0.0.1", 5017)
    assert "localhost:5017" in _origins("127.0.0.1", 5017)
    assert not any("*" in origin for origin in _origins("127.0.0.1", 5017))
