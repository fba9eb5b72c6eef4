"""Lessons on the page of the lab, without a browser: opened, followed, taken back, kept."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

import maxmargin as mm
from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.lessons import LESSONS
from maxmargin.lab.page import Lab
from maxmargin.lab.sharing import packed
from tests.helpers.lab import fitted, page_alone

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def lab():
    with page_alone() as page:
        page.begin(page.document)
        yield page


def answer(lab, place=0):
    """Hand over what comes of the request of a panel."""
    panel = lab.panels[place]
    key, values = panel.chosen
    outcome = fitted(key, lab.points, **values)
    X, y = lab.points.X, lab.points.labels
    verdict = mm.separability(X, y, maximum_margin=True)
    panel._arrive(replace(outcome, request=panel.request, verdict=verdict))


def choose(lab, key, **values):
    lab.panels[0].choose(key, ALGORITHMS[key].defaults() | values)
    lab.changed()
    answer(lab)


def do_xor(lab):
    """Do all that the lesson on XOR asks for."""
    lab.lessons.start("xor")
    answer(lab)
    choose(lab, "pseudoinverse")
    choose(lab, "svc", kernel="rbf")


def test_a_lesson_is_opened_followed_and_done(lab):
    view = lab.lessons
    assert not view.widgets.visible
    view.choice.value = "xor"
    assert view.widgets.visible
    assert len(lab.points.X) == 4
    assert lab.panels[0].select.value == "perceptron"
    answer(lab)
    assert LESSONS["xor"].question in view.card.text
    assert "0 of 4 points are strictly on their side" in view.card.text
    assert view.met == ()
    choose(lab, "pseudoinverse")
    assert view.met == (0,)
    assert view.card.text.count("✓") == 1
    assert LESSONS["xor"].goals[0].words in view.heard.text  # a screen reader says it
    assert LESSONS["xor"].answer not in view.card.text
    choose(lab, "svc", kernel="rbf")
    assert view.done == ("xor",)
    assert "✓ Done" in view.card.text
    assert LESSONS["xor"].answer in view.card.text
    assert "The lesson is done" in view.heard.text
    assert ("xor", f"✓ {LESSONS['xor'].title}") in view.choice.options


def test_what_was_reached_stays_reached(lab):
    do_xor(lab)
    choose(lab, "perceptron")
    assert lab.lessons.met == (0, 1)
    lab.undo()
    assert lab.lessons.met == (0, 1)
    lab.lessons.start("xor")
    assert lab.lessons.met == ()
    assert lab.lessons.done == ("xor",)


def test_undo_returns_from_a_lesson_and_redo_to_it(lab):
    before = lab.points
    lab.lessons.start("nu")
    assert lab.panels[0].select.value == "nusvc"
    lab.undo()
    assert lab.points is before
    assert lab.panels[0].select.value == "svc"
    assert not lab.lessons.widgets.visible
    lab.redo()
    assert lab.lessons.key == "nu"
    assert len(lab.points.X) == 200


def test_lessons_follow_each_other_and_close(lab):
    lab.lessons.start("six-points")
    seen = [lab.lessons.key]
    for _ in LESSONS:
        lab.lessons._turn(1)
        seen.append(lab.lessons.key)
    assert seen == [*LESSONS, "six-points"]
    lab.lessons._turn(-1)
    assert lab.lessons.key == list(LESSONS)[-1]
    points = lab.points
    lab.lessons.start("")
    assert not lab.lessons.widgets.visible
    assert lab.points is points  # what one has made of it stays
    assert lab.lessons.choice.value == ""


def test_the_address_keeps_lessons_and_what_was_reached(lab):
    do_xor(lab)
    lab.lessons.start("six-points")
    answer(lab)
    text = packed(lab.state())
    other = Lab(Document())
    other.roots()
    try:
        other.visit({"lab": text})
        assert other.lessons.key == "six-points"
        assert other.lessons.done == ("xor",)
        assert other.lessons.choice.value == "six-points"
        # A point moves after the reload: what was seen begins anew, and is enough.
        answer(other)
        k = int(np.flatnonzero(other.panels[0].picture.support)[0])
        data = {name: list(values) for name, values in other.source.data.items()}
        data["x"][k] -= 1.0
        other.source.data = data
        answer(other)
        assert other.lessons.met == (1,)
    finally:
        other.close()


def test_addresses_open_lessons(lab):
    lab.visit({"lesson": "gamma"})
    assert lab.lessons.key == "gamma"
    assert lab.panels[0].by_name["kernel"].value == "rbf"
    lab.visit({"lesson": "<b>"})
    assert lab.lessons.key == ""
    assert "The lessons are six-points, perceptron" in lab.data.note.text
    assert "<b>" not in lab.data.note.text


def test_a_comparison_is_followed_in_both_panels(lab):
    lab.lessons.start("outlier")
    answer(lab)
    data = {name: list(values) for name, values in lab.source.data.items()}
    data["x"][5], data["y"][5] = 6.5, 5.0
    lab.source.data = data
    lab.panels[1].select.value = "pocket"
    lab.compare.active = True
    answer(lab)
    answer(lab, 1)
    assert lab.lessons.met == (0,)
    for k in range(60):
        lab.playback.go(k)
    assert lab.lessons.met == (0, 1)


def test_no_lesson_is_open_without_being_asked_for(lab):
    answer(lab)
    assert lab.lessons.history == []
    assert not lab.lessons.widgets.visible
