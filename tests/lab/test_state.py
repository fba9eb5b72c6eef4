"""Undo, redo and the address of the page, without a browser."""

import json

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.page import Lab
from maxmargin.lab.points import SAMPLES, checked
from maxmargin.lab.sharing import MOST_LETTERS, packed
from maxmargin.lab.state import UNDO_STEPS, Memory, State
from tests.helpers.lab import page_alone

POINTS = SAMPLES["AND"]()


def state_of(C=0.0, points=POINTS, **changes):
    return State(points, (("svc", {"C": C}), ("perceptron", {})), **changes)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


# The memory ---------------------------------------------------------------------------------------


def test_states_come_back_in_both_directions():
    memory = Memory(state_of(0))
    for C in (1, 2):
        memory.remember(state_of(C))
    assert [memory.back().chosen[0][1]["C"] for _ in range(2)] == [1, 0]
    assert memory.back() is None
    assert [memory.forward().chosen[0][1]["C"] for _ in range(2)] == [1, 2]
    assert memory.forward() is None
    memory.back()
    memory.remember(state_of(3))  # what was undone is gone
    assert memory.forward() is None
    assert memory.back().chosen[0][1]["C"] == 1


def test_what_changes_nothing_is_no_step():
    memory = Memory(state_of(0))
    memory.remember(state_of(0, tab="points", step=3, dark=True, met=(1,), done=("xor",)))
    assert memory.back() is None


@pytest.mark.parametrize(
    "change",
    [{"C": 1}, {"points": SAMPLES["XOR"]()}, {"compared": True}, {"sample": "AND"},
     {"lesson": "xor"}],
)  # fmt: skip
def test_every_change_is_a_step(change):
    memory = Memory(state_of())
    memory.remember(state_of(**change))
    assert memory.back() is not None


def test_changes_of_one_slider_that_follow_quickly_are_one_step():
    clock = Clock()
    memory = Memory(state_of(0), clock)
    for C in (1, 2, 3):
        clock.now += 0.5
        memory.remember(state_of(C), "C-A")
    clock.now += 0.5
    memory.remember(state_of(4), "gamma-A")
    clock.now += 2
    memory.remember(state_of(5), "gamma-A")
    memory.remember(state_of(6))
    memory.remember(state_of(7))
    seen = []
    while (state := memory.back()) is not None:
        seen.append(state.chosen[0][1]["C"])
    assert seen == [6, 5, 4, 3, 0]


def test_old_states_are_forgotten():
    memory = Memory(state_of(0))
    for C in range(1, 100):
        memory.remember(state_of(C))
    n = 0
    while memory.back() is not None:
        n += 1
    assert n == UNDO_STEPS


# The page -----------------------------------------------------------------------------------------


@pytest.fixture
def lab():
    with page_alone() as page:
        page.begin(page.document)
        yield page


def text_of(lab):
    """Return all of a page that undo covers."""
    state = lab.state()
    return (state.points.X.tolist(), state.points.codes.tolist(), state.chosen, state.compared,
            state.sample)  # fmt: skip


def slide(lab, name, value):
    slider = lab.panels[0].by_name[name]
    slider.value = value
    let_go(slider)


def let_go(slider):
    """Say what the browser says when a slider is let go."""
    slider.trigger("value_throttled", None, slider.value)


def upload(lab):
    lab.data.uploaded = None
    lab.data.on_upload("YSxiLGtpbmQKMCwwLHUKMSwyLHUKMywzLHYK")  # of a,b,kind


CHANGES = {
    "slider": lambda lab: slide(lab, "C", 2.0),
    "data set": lambda lab: setattr(lab.data.sample, "value", "XOR"),
    "algorithm": lambda lab: setattr(lab.panels[0].select, "value", "nusvc"),
    "choice": lambda lab: setattr(lab.panels[0].by_name["kernel"], "value", "rbf"),
    "comparison": lambda lab: setattr(lab.compare, "active", True),
    "second": lambda lab: setattr(lab.panels[1].select, "value", "pocket"),
    "points": lambda lab: setattr(lab.source, "data", {"x": [1.0], "y": [2.0], "label": ["0"]}),
    "clear": lambda lab: lab.data.drop_all(),
    "upload": upload,
}


@pytest.mark.parametrize("name", CHANGES)
def test_undo_and_redo_cover_everything(lab, name):
    before = text_of(lab)
    assert lab.data.undo.disabled
    CHANGES[name](lab)
    after = text_of(lab)
    assert after != before
    lab.undo()
    assert text_of(lab) == before
    assert lab.data.undo.disabled
    assert not lab.data.redo.disabled
    lab.redo()
    assert text_of(lab) == after
    assert lab.data.redo.disabled


def test_all_changes_are_taken_back_in_their_order(lab):
    seen = [text_of(lab)]
    for change in CHANGES.values():
        change(lab)
        seen.append(text_of(lab))
    for expected in reversed(seen[:-1]):
        lab.undo()
        assert text_of(lab) == expected
    for expected in seen[1:]:
        lab.redo()
        assert text_of(lab) == expected


def test_widgets_show_what_undo_returns_to(lab):
    CHANGES["algorithm"](lab)
    slide(lab, "nu", 0.5)
    lab.undo()
    assert lab.panels[0].by_name["nu"].value == 0.3
    assert lab.panels[0].by_name["nu"].title == "ν = 0.3"
    lab.undo()
    assert lab.panels[0].select.value == "svc"
    assert "C" in lab.panels[0].by_name
    CHANGES["comparison"](lab)
    lab.undo()
    assert not lab.panels[1].widgets.visible
    CHANGES["data set"](lab)
    assert lab.data.sample.title == "data set (XOR)"
    lab.undo()
    assert lab.data.sample.title == "data set (six points)"
    assert len(lab.source.data["x"]) == 6


def test_a_slider_that_is_dragged_is_one_step(lab):
    slider = lab.panels[0].by_name["C"]
    for value in (0.5, 1.0, 1.5):
        slider.value = value
    let_go(slider)
    assert lab.panels[0].request.values["C"] == 1.5
    lab.undo()
    assert slider.value == 0.0
    assert lab.panels[0].request.values["C"] == 0.0
    assert lab.data.undo.disabled


def test_undo_stays_in_the_tab_and_the_colours(lab):
    CHANGES["slider"](lab)
    lab.tabs.active = 2
    lab.dark.active = True
    lab.undo()
    assert lab.tabs.active == 2
    assert lab.dark.active


# The address --------------------------------------------------------------------------------------


def written(lab):
    """Return what the page tells the browser to write into the address."""
    lab.address.write()
    return json.loads(lab.address.out.value) if lab.address.out.value else None


def test_nothing_is_written_before_anything_changes(lab):
    assert written(lab) is None


@pytest.mark.parametrize(
    ("name", "push"),
    [("data set", True), ("algorithm", True), ("comparison", True), ("slider", False),
     ("points", False)],
)  # fmt: skip
def test_large_changes_are_entries_of_the_history(lab, name, push):
    CHANGES[name](lab)
    assert lab.address.waiting is not None  # to be written soon
    found = written(lab)
    assert found["push"] is push
    assert found["query"].startswith("?lab=")


def test_an_address_restores_the_page(lab):
    for name in ("data set", "algorithm", "comparison", "second"):
        CHANGES[name](lab)
    slide(lab, "nu", 0.5)
    lab.tabs.active = 2
    lab.dark.active = True
    query = written(lab)["query"]
    other = Lab(Document())
    other.roots()
    try:
        other.visit({"lab": query.removeprefix("?lab=")})
        assert text_of(other) == text_of(lab)
        assert other.tabs.tabs[other.tabs.active].title == "points"
        assert other.dark.active
        assert other.panels[1].widgets.visible
    finally:
        other.close()


def test_back_and_forward_restore_and_are_not_written_again(lab):
    CHANGES["data set"](lab)
    query = written(lab)["query"]
    lab.address.hear(json.dumps({"what": "visit", "text": "", "count": 1}))
    assert lab.data.sample_name == "six points"
    lab.address.out.value = ""
    assert written(lab) is None
    lab.address.hear(json.dumps({"what": "visit", "text": query, "count": 2}))
    assert lab.data.sample_name == "XOR"
    lab.address.hear(json.dumps({"what": "undo", "count": 3}))
    assert lab.data.sample_name == "six points"
    lab.address.hear(json.dumps({"what": "redo", "count": 4}))
    assert lab.data.sample_name == "XOR"


def test_too_many_points_are_kept_by_the_tab(lab):
    lab.load(SAMPLES["blobs, 2,000"](), sample="blobs, 2,000")
    found = written(lab)
    assert found["query"] == f"?kept={found['key']}"
    assert len(found["text"]) > MOST_LETTERS
    assert "this tab keeps them" in lab.data.note.text
    lab.load(POINTS)
    assert written(lab)["query"].startswith("?lab=")
    visit = json.dumps({"what": "visit", "text": "?lab=" + found["text"], "count": 1})
    lab.address.hear(visit)
    assert len(lab.points.X) == 2000
    lab.address.hear(json.dumps({"what": "lost", "count": 2}))
    assert "kept in the tab that drew them" in lab.data.note.text


@pytest.mark.parametrize(
    "message", ["", "x", "[]", "{}", "3", '{"what": "eval"}', "[" * 100_000, '{"what": ["undo"]}']
)
def test_messages_that_are_none_are_ignored(lab, message):
    before = text_of(lab)
    lab.address.hear(message)
    assert text_of(lab) == before


def test_a_damaged_address_shows_six_points_and_says_so(lab):
    lab.load(checked(np.zeros((1, 2)), [0]))
    lab.visit({"lab": "garbage"})
    assert len(lab.points.X) == 6
    assert "The link" in lab.data.note.text


def test_colours_that_the_system_prefers_are_not_written(lab):
    lab.address.hear(json.dumps({"what": "dark", "count": 1}))
    lab.dark.active = True
    assert lab.state().dark is None
    assert written(lab) is None
    lab.dark.active = False
    assert lab.state().dark is False


def test_a_step_is_restored_once_it_is_recorded(lab):
    from dataclasses import replace

    from tests.helpers.lab import fitted

    key = "perceptron"
    state = State(POINTS, ((key, ALGORITHMS[key].defaults()),), step=2)
    lab.visit({"lab": packed(state)})
    assert lab.state().step == 2
    outcome = fitted(key, lab.points)
    request = lab.panels[0].request
    lab.panels[0]._arrive(replace(outcome, request=request, frames=[], recorded=False))
    assert lab.state().step == 2
    lab.panels[0]._arrive(replace(outcome, request=request))
    assert lab.playback.step == 2
    lab.playback.go(3)
    assert lab.state().step == 3
    lab.playback.go(10**6)
    assert lab.state().step is None
