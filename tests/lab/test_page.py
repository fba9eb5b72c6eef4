"""The page of the lab without a browser, and its server."""

import base64
import builtins
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.models import ColumnDataSource

from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.figures import Look, SceneFigure
from maxmargin.lab.fitting import Outcome, answered, weights
from maxmargin.lab.picture import COLOURS
from maxmargin.lab.points import MOST_POINTS, SAMPLES, checked
from maxmargin.lab.words import words_of
from tests.helpers.lab import fitted, page_alone

pytestmark = pytest.mark.filterwarnings("ignore")


# The page, without a browser ----------------------------------------------------------------------


@pytest.fixture
def lab():
    with page_alone() as page:
        yield page


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
    assert "points misclassified" in panel.proof.text
    assert panel.proof.css_classes == []


def test_points_are_added_moved_and_deleted_without_a_mouse(lab):
    before, editor = lab.points, lab.editor
    lab.load(before)
    editor._add()
    assert "both coordinates" in lab.data.note.text
    editor._delete()
    assert "Select a point first" in lab.data.note.text
    editor.number.value = 7
    assert "6 points" in lab.data.note.text
    lab.data.pen.active, editor.x.value, editor.y.value = 2, 9.0, 90.0
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
        lab.undo()
    np.testing.assert_array_equal(lab.points.X, before.X)


def test_errors_are_those_of_whole_passes(lab):
    """A step of a single sample counts that sample only."""
    points = SAMPLES["AND"]()
    lab.load(points)
    lab.panels[0].choose("perceptron", ALGORITHMS["perceptron"].defaults())
    lab.changed()
    outcome = replace(fitted("perceptron", points), request=lab.panels[0].request)
    lab.panels[0]._arrive(outcome)
    passes = [k for k, frame in enumerate(outcome.frames) if frame.sample is None]
    assert 0 < len(passes) < len(outcome.frames)
    assert passes.pop(0) == 0  # the start
    for name in ("errors", "criterion"):
        assert lab.beside.curves[name].data["x"] == passes
    expected = [outcome.frames[k].errors for k in passes]
    assert lab.beside.curves["errors"].data["y"] == expected
    assert expected[-1] == 0
    lab.playback.go(0)
    assert lab.panels[0].scene.figure.title.text.startswith("step 0 of")
    assert lab.panels[0].picture.flat
    lab.playback.go(1)
    sample = outcome.frames[1].sample
    assert lab.panels[0].scene.figure.title.text.endswith(f"pass 1, for point {sample + 1}")


def test_either_of_two_algorithms_can_be_looked_at(lab):
    assert not lab.subject.visible
    lab.compare.active = True
    assert lab.subject.visible
    for panel in lab.panels:
        panel._arrive(replace(fitted(panel.select.value, lab.points), request=panel.request))
    assert lab.subject.labels == ["Support vector machine", "Perceptron"]
    assert "SVC(" in lab.downloads.code.text
    assert np.isfinite(lab.table.rows.data["alpha"]).all()
    lab.subject.active = 1
    assert "Perceptron(" in lab.downloads.code.text
    assert np.isnan(lab.table.rows.data["alpha"]).all()
    lab.downloads.send_code()
    assert lab.downloads.parcel.value.startswith("model.py")
    lab.downloads.send_model()
    content = base64.b64decode(lab.downloads.parcel.value.split("|")[2])
    assert b"Perceptron" in content
    lab.compare.active = False
    lab.draw()
    assert "SVC(" in lab.downloads.code.text


def test_what_is_sent_to_a_person_reaches_the_page(lab):
    assert lab.downloads.parcel.document is lab.document


def test_a_click_too_many_is_refused(lab):
    lab.load(checked(np.zeros((MOST_POINTS, 2)), np.zeros(MOST_POINTS)))
    n = MOST_POINTS + 1
    lab.source.data = {"x": [0.0] * n, "y": [0.0] * n, "label": ["0"] * n}
    assert len(lab.points.X) == MOST_POINTS
    assert "at most 2000" in lab.data.note.text
    lab.source.data = {"x": [0.0], "y": ["<b>"], "label": ["0"]}
    assert len(lab.points.X) == MOST_POINTS


def test_undo_goes_back_far_enough_and_no_further(lab):
    for k in range(60):
        lab.load(checked([[k, k]], [0]))
    for _ in range(100):
        lab.undo()
    assert lab.points.X.tolist() == [[9.0, 9.0]]


def arrived(lab, key, points, **changes):
    """Load points, choose an algorithm, and hand over what comes of it."""
    lab.load(points)
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
        lab.playback.go(k)
        if not weights(frame, points.X).any():
            assert panel.picture.regions is None
            assert panel.picture.planes == []


@pytest.mark.parametrize("key", ["svr", "nu-svr", "linear-svr", "one-class"])
def test_what_has_no_meaning_is_hidden(lab, key, tmp_path):
    """Classes, errors and the space of weights are those of classifiers."""
    lab.load(SAMPLES["sinc"]())
    assert "two classes" in fit_error(lab)
    lab.tabs.active = 2
    lab.panels[0].select.value = key
    assert not lab.data.pen.visible
    assert not lab.beside.errors.visible
    titles = [tab.title for tab in lab.tabs.tabs]
    assert titles == ["convergence", "points", "scores", "take away"]
    assert lab.tabs.active == 1  # still the points
    scene = lab.panels[0].scene
    assert (
        len(set(scene.colours.transform.palette)) == len(set(scene.markers.transform.markers)) == 1
    )
    outcome = arrived(lab, key, SAMPLES["sinc"]())
    assert "class='good'" in lab.panels[0].proof.text
    picture = lab.panels[0].picture
    assert picture.hulls == []
    fields = [column.field for column in lab.table.grid.columns]
    assert "class" not in fields
    shown = {name: lab.table.rows.data[name] for name in fields}
    assert all(len(values) == 80 for values in shown.values())
    assert sum(value > 0 for value in shown["alpha"]) == len(outcome.model.support_)
    lab.playback.go(0)
    first = 0 if outcome.frames[0].is_start else 1
    assert lab.panels[0].proof.text.startswith(f"<p class='step'>Step {first} of")
    lab.downloads.send_model()
    path = tmp_path / "model.mm"
    path.write_bytes(base64.b64decode(lab.downloads.parcel.value.split("|")[2]))
    X, _ = lab.points.training(ALGORITHMS[key].family)
    np.testing.assert_array_equal(mm.load(path).predict(X), outcome.model.predict(X))

    lab.panels[0].select.value = "svc"
    assert lab.data.pen.visible
    assert lab.beside.errors.visible
    assert lab.tabs.tabs[1].title == "weight space"
    assert lab.tabs.active == 2
    assert len(set(scene.colours.transform.palette)) == 4
    arrived(lab, "svc", SAMPLES["six points"]())
    assert [column.field for column in lab.table.grid.columns][1] == "class"


def fit_error(lab):
    """Return why panel A has no answer."""
    found = answered(lab.panels[0].request, lambda step=None: False)
    return words_of(found, 0, "")


def test_a_regression_beside_a_classifier_keeps_its_classes(lab):
    lab.panels[1].select.value = "svr"
    lab.compare.active = True
    assert lab.data.pen.visible
    assert len(lab.tabs.tabs) == 5
    for panel in lab.panels:
        panel._arrive(replace(fitted(panel.select.value, lab.points), request=panel.request))
    lab.subject.active = 1
    assert len(lab.tabs.tabs) == 4
    assert lab.data.pen.visible
    lab.panels[0].select.value = "one-class"
    assert not lab.data.pen.visible


def test_files_without_classes_are_points_of_a_regression(lab):
    lab.panels[0].select.value = "svr"
    content = b"a,b\n0,0\n1,2\n3,3\n"
    lab.data.on_upload(base64.b64encode(content).decode())
    assert lab.points.axes == ("a", "b")
    assert [select.visible for select in lab.data.columns] == [True, True, False]
    lab.downloads.send_csv()
    name, _, sent = lab.downloads.parcel.value.split("|")
    assert name == "points.csv"
    assert base64.b64decode(sent).decode().splitlines() == ["a,b", "0.0,0.0", "1.0,2.0", "3.0,3.0"]

    content = b"a,b,kind\n0,0,u\n1,2,u\n3,3,v\n"
    lab.data.on_upload(base64.b64encode(content).decode())
    assert lab.points.n_classes == 1
    lab.panels[0].select.value = "svc"  # now the classes of the file count
    assert lab.data.columns[2].visible
    assert lab.points.labels.tolist() == ["u", "u", "v"]


def test_a_file_without_classes_does_not_make_a_classifier(lab):
    lab.panels[0].select.value = "svr"
    lab.data.on_upload(base64.b64encode(b"a,b\n0,0\n1,2\n3,3\n").decode())
    lab.panels[0].select.value = "svc"
    assert "three different columns" in lab.data.note.text
    assert "two classes" in fit_error(lab)


def test_words_are_those_of_the_step_that_is_shown(lab):
    outcome = arrived(lab, "svc", SAMPLES["six points"]())
    panel = lab.panels[0]
    end = panel.proof.text
    assert end.startswith("<p class='good'>Separated. The band is 5.14 wide")
    lab.playback.go(1)
    frame = outcome.frames[1]
    assert panel.proof.text.startswith("<p class='step'>Step 1 of")
    shown, _, later = panel.proof.text.partition("<details>")
    assert f"primal = {frame.primal:.6g}" in shown
    assert "5.14" not in shown
    assert "the end of the fit, not this step" in later
    # A newer answer does not change what is said of the step.
    panel._arrive(replace(outcome, request=panel.request))
    assert panel.proof.text.startswith("<p class='step'>Step 1 of")
    lab.playback.go(len(outcome.frames))
    assert panel.proof.text == end


def test_a_proof_that_is_unfolded_stays_so(lab):
    arrived(lab, "svc", SAMPLES["six points"]())
    proof = lab.panels[0].proof
    assert "<details><summary>proof</summary>" in proof.text
    lab.panels[0].unfolded.data = {"open": [True]}  # from the browser
    arrived(lab, "svc", SAMPLES["AND"]())
    assert "<details open><summary>proof</summary>" in proof.text


def test_a_kernel_may_separate_what_no_plane_does():
    points = SAMPLES["XOR"]()
    outcome = fitted("svc", points, kernel="rbf")
    known = replace(outcome, verdict=mm.separability(points.X, points.labels))
    proof = words_of(known, len(known.frames), "")
    assert "Separated by a curve" in proof
    assert "No line separates these points" in proof
    assert "No plane separates these points; the curve of this kernel does" in proof
    assert "not linearly separable" in proof
    assert "not separable" not in proof


def test_warnings_are_on_the_page(lab):
    outcome = arrived(lab, "lms", SAMPLES["moons"](), learning_rate=0.0)
    assert any("smaller rate" in text for text in outcome.warnings)
    assert "Warning: LMS" in lab.panels[0].proof.text
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
    assert lab.beside.errors.title.text == "Pocket: mistakes met, not errors of one plane"
    arrived(lab, "svc", SAMPLES["six points"]())
    assert lab.beside.errors.title.text == "Support vector machine: errors"


def test_curves_of_several_tasks_are_not_joined(lab):
    outcome = arrived(lab, "svc", SAMPLES["four blobs"]())
    tasks = [frame.task for frame in outcome.frames]
    x = np.array(lab.beside.curves["dual"].data["x"])
    assert np.isnan(x).sum() == len(set(tasks)) - 1 == 5
    lab.playback.go(1)
    assert "A against B, round 1" in lab.panels[0].scene.figure.title.text


def test_steps_that_were_not_all_kept_say_so(lab):
    outcome = arrived(lab, "perceptron", SAMPLES["moons"]())
    n = len(outcome.steps)
    assert not outcome.complete
    title = lab.panels[0].scene.figure.title
    assert title.text == f"the answer (its first {n} steps were kept)"
    lab.playback.go(n)
    assert title.text.startswith(f"step {n} of the first {n}: pass")
    # The curves are those of the whole run.
    assert lab.beside.curves["errors"].data["x"][-1] > n
    assert lab.beside.curves["errors"].data["y"][-1] == outcome.curve[-1].errors
    assert arrived(lab, "perceptron", SAMPLES["AND"]()).complete
    assert title.text == "the answer"


def test_steps_that_run_away_are_not_kept():
    outcome = fitted("lms", SAMPLES["six points"](), learning_rate=0.0)  # 10⁰
    assert all(np.isfinite(frame.w).all() for frame in outcome.frames)


def test_what_comes_into_sight_is_drawn(lab):
    arrived(lab, "perceptron", SAMPLES["AND"]())
    panel = lab.panels[0]
    panel.scene.figure.x_range.update(start=-9.0, end=9.0)
    panel.scene.figure.y_range.update(start=-8.0, end=8.0)
    panel._redraw()
    assert panel.picture.window == (-9.0, 9.0, -8.0, 8.0)
    assert panel.redrawing is None


def test_an_upload_is_forgotten_with_its_points(lab):
    content = b"a,b,c\n0,0,u\n1,0,u\n3,3,v\n"
    lab.data.on_upload(base64.b64encode(content).decode())
    assert lab.data.columns[0].visible
    assert lab.data.sample.title == "data set"
    lab.data.on_upload(base64.b64encode(b"nothing").decode())
    assert "3 columns or more" in lab.data.note.text
    lab.data.columns[0].value, lab.data.columns[1].value = "b", "a"  # of the file that was taken
    assert lab.points.axes == ("b", "a")
    lab.data.sample.value = "AND"
    assert lab.data.sample.title == "data set (AND)"
    assert not lab.data.columns[0].visible
    lab.data.columns[0].value = "b"
    assert len(lab.points.X) == 4
    lab.data.drop_all()
    assert lab.data.sample.title == "data set"


def test_a_link_to_what_was_before_goes(lab):
    lab.load(SAMPLES["AND"]())
    lab.downloads.make_link()
    assert lab.downloads.link.value
    lab.changed()
    assert lab.downloads.link.value == ""


def test_one_point_too_many_is_refused_not_swapped(lab):
    assert all(panel.scene.pen.num_objects > MOST_POINTS for panel in lab.panels)


def test_sums_of_steps_are_rounded():
    nu = next(c for c in ALGORITHMS["nusvc"].controls if c.name == "nu")
    assert nu.number(0.9400000000000001) == 0.94


# The server ---------------------------------------------------------------------------------------


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
    assert "[::1]:5017" in _origins("::1", 5017)
    assert "[fe80::1]:5017" in _origins("fe80::1", 5017)
    assert _origins("192.0.2.1", 5017) == ["192.0.2.1:5017"]
    assert "localhost:5017" in _origins("0.0.0.0", 5017)


def test_widgets_that_are_replaced_are_freed(lab):
    def visited():
        for key in ALGORITHMS:
            lab.panels[0].select.value = key
        return len(list(lab.document.models))

    n_models = visited()
    for _ in range(7):  # 100 changes
        assert visited() <= n_models
    for value in range(100):
        lab.panels[0].by_name["nu"].value = 0.02 + 0.008 * value
    assert len(list(lab.document.models)) <= n_models


def test_names_are_not_typeset_as_formulas(lab):
    from maxmargin.lab.style import without_formulas

    for text in (r"$$\href{javascript:alert(1)}{x}$$", r"\(x\)", r"\[x\]"):
        plain = without_formulas(text)
        assert plain.replace("\u200b", "") == text
        assert not any(mark in plain for mark in ("$$", r"\(", r"\["))
        lab.load(checked([[0, 0], [1, 1]], [0, 1], [text, "b"], [text, "y"]))
        assert lab.panels[0].scene.figure.xaxis.axis_label == plain


def _luminance(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("dark", [False, True])
def test_lines_contrast_with_the_ground_and_the_regions(dark):
    """At least 3, as the guidelines for accessible content ask for marks."""
    scene = SceneFigure(Look(dark), ColumnDataSource({"x": [], "y": [], "label": []}), "A")
    pixels = scene._painted(np.array([[0, 1, 2, 3, -1]])).view(np.uint8).reshape(-1, 4)
    regions = ["#" + "".join(f"{part:02x}" for part in pixel[:3]) for pixel in pixels]
    for line in (scene.look.ink, *(scene.look.stroke(colour) for colour in COLOURS)):
        for region in regions:
            low, high = sorted(map(_luminance, (line, region)))
            assert (high + 0.05) / (low + 0.05) >= 3.0, (line, region)
