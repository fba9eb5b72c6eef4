"""Scores over C and γ on the page, without a browser."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.points import SAMPLES
from maxmargin.lab.searching import Scores
from tests.helpers.lab import page_alone


@pytest.fixture
def lab():
    with page_alone() as page:
        page.load(SAMPLES["moons"]())
        yield page


def begin(lab, **values):
    """Choose a support vector machine and ask for its scores, none of which are computed."""
    lab.panels[0].choose("svc", ALGORITHMS["svc"].defaults() | values)
    lab.changed()
    view = lab.scores
    view.background.ask = lambda question: None
    view._on_ask()
    return view


def made(question, best=30, **more):
    """Return scores that differ by fold, the largest of which is that of ``best``."""
    scores = Scores.none_of(question)
    scores.results.scores[:] = 0.5 + 0.001 * np.arange(question.n_folds)
    scores.results.scores[best] += 0.25
    scores.results.holds[:] = True
    return replace(scores, seconds=1.0, **({"is_over": True, "is_complete": True} | more))


def test_nothing_is_computed_before_it_is_asked_for(lab):
    view = lab.scores
    assert not view.background.is_busy
    assert not view.figures.map.visible
    assert not view.figures.curve.visible
    assert "5-fold cross-validation at 16 values of C" in view.said.text


def test_the_map_marks_best_simplest_sliders_and_what_is_not_certified(lab):
    view = begin(lab, kernel="rbf", C=5.0)
    assert view.ask.label == "stop"
    scores = made(view.question)
    scores.results.scores[7] = scores.results.scores[30] - 1e-6  # within one standard error
    scores.results.holds[7, 0] = False
    scores.results.scores[3, 1] = np.nan
    view._arrive(scores)
    figures = view.figures
    assert figures.map.visible
    assert not figures.curve.visible
    for name, k in (("best", 30), ("simplest", 7), ("open", 7)):
        cost, gamma = scores.place(k)
        assert figures.marks[name].data == {"x": [cost], "y": [gamma]}
    assert figures.marks["sliders"].data == {"x": [5.0], "y": [0.0]}
    assert "Best: C = 0.1, γ = 10: 0.752 ± 0.001." in view.said.text
    assert "C = 0.001, γ = 3.16: 0.752 ± 0.001, not certified." in view.said.text
    assert "87 candidates (1 left out, whose fits take long)" in view.said.text
    assert "1 of them not certified" in view.said.text
    assert "not certified" in view.legend.text
    assert "C = ∞ (hard margin), γ = 1: no score was computed there" in view.here.text
    assert view.select.value == ""
    assert [k for k, _ in view.select.options] == ["", *(str(k) for k in range(88) if k != 3)]
    assert figures.map.html_attributes["aria-label"].endswith(
        "Best: C = 0.1, γ = 10: 0.752 ± 0.001."
    )


def test_a_choice_moves_the_sliders_and_keeps_the_scores(lab):
    view, panel = begin(lab, kernel="rbf"), lab.panels[0]
    view._arrive(made(view.question))
    asked = panel.request
    view._choose_at(1.2, -0.6)
    assert (panel.values["C"], panel.values["gamma"]) == (1.0, -0.5)
    assert panel.by_name["gamma"].title == "γ = 0.316"
    assert panel.request is not asked
    assert view.scores is not None
    assert view.select.value == str(view.scores.at(1.0, -0.5))
    view.select.value = "30"
    assert (panel.values["C"], panel.values["gamma"]) == view.scores.place(30)
    panel.by_name["gamma"].value = 0.4
    assert view.select.value == ""
    assert "in the cell of C = 0.1, γ = 3.16" in view.here.text
    view._choose("best")
    assert view.select.value == "30"
    before = dict(panel.values)
    view._choose_at(5.0, 0.0)  # outside of all cells
    view.select.value = "99999"  # no candidate
    assert panel.values == before


def test_a_curve_has_standard_errors(lab):
    view = begin(lab, kernel="linear")
    scores = made(view.question, best=4)
    view._arrive(scores)
    assert view.figures.curve.visible
    assert not view.figures.map.visible
    drawn = view.figures.steps.data
    np.testing.assert_allclose(drawn["high"] - drawn["low"], 2.0 * scores.errors)
    assert view.figures.least.data["y"] == [pytest.approx(0.752 - scores.errors[4])]
    seen = view.figures.curve.y_range  # those far below the best are not
    assert 0.502 < seen.start < 0.752 - 10.0 * scores.errors[4] < 0.752 < seen.end
    view._choose("best")
    assert lab.panels[0].values["C"] == scores.place(4)[0] == -1.0
    assert "Sliders: C = 0.1: 0.752 ± 0.001." in view.here.text


@pytest.mark.parametrize("change", ["points", "kernel", "degree", "algorithm"])
def test_scores_are_dropped_when_points_or_settings_change(lab, change):
    view, panel = begin(lab, kernel="poly"), lab.panels[0]
    old = made(view.question)
    view._arrive(old)
    if change == "points":
        lab.load(SAMPLES["circles"]())
    elif change == "algorithm":
        panel.select.value = "perceptron"
    else:
        panel.by_name[change].value = {"kernel": "rbf", "degree": 3}[change]
    assert view.scores is None
    assert not view.figures.map.visible
    assert not view.choices.visible
    view._arrive(old)  # told before
    assert view.scores is None
    assert view.ask.disabled == (change == "algorithm")
    words = "Choose one of them" if change == "algorithm" else "Points or settings have changed."
    assert words in view.said.text


def test_a_search_is_followed_and_stopped(lab):
    view = begin(lab, kernel="rbf")
    some = made(view.question, is_over=False, is_complete=False)
    some.results.scores[40:] = np.nan
    view._arrive(some)
    assert view.running
    assert view.figures.map.title.text == "40 of 88 candidates"
    assert view.said.text == ""
    assert not view.choices.visible
    view._on_ask()
    assert not view.running
    assert view.ask.label == "compute scores"
    assert "the search was stopped with 40 of 88 candidates" in view.said.text
    assert view.choices.visible
    view._arrive(made(view.question))  # told before
    assert view.scores is some


def test_a_failure_and_the_limit_are_told(lab):
    view = begin(lab, kernel="rbf")
    view._arrive(replace(Scores.none_of(view.question), is_over=True, failure="<b>no fold</b>"))
    assert "&lt;b&gt;no fold" in view.said.text
    assert not view.choices.visible
    view._on_ask()
    view._arrive(replace(Scores.none_of(view.question), is_over=True, seconds=21.0))
    assert "No candidate has a score after 21.0 s." in view.said.text
    view._on_ask()
    view._arrive(made(view.question, is_complete=False))
    assert "stopped at its limit of 20 s with 88 of 88" in view.said.text


def test_equal_scores_have_a_range_of_colours(lab):
    view = begin(lab, kernel="rbf")
    scores = made(view.question)
    scores.results.scores[:] = 1.0
    view._arrive(scores)
    assert view.figures.colours.low < view.figures.colours.high == 1.0


def test_the_scores_are_those_of_the_machine_that_is_looked_at(lab):
    view = begin(lab, kernel="rbf")
    view._arrive(made(view.question))
    lab.compare.active = True
    assert view.scores is not None
    lab.subject.active = 1  # the perceptron
    assert view.scores is None
    assert view.ask.disabled


def test_the_figures_follow_light_and_dark(lab):
    lab.dark.active = True
    figures = lab.scores.figures
    assert figures.map.background_fill_color == lab.look.ground == figures.bar.background_fill_color
    assert figures.curve.yaxis.major_label_text_color == lab.look.ink
