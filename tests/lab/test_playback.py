"""Playback without a browser: which steps are sent, and what is said of those that are not."""

import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

from maxmargin.lab.playback import PAUSE, RUN, Playback


class Clock:
    """A lab that counts what it draws, and a time that pictures take."""

    def __init__(self, monkeypatch):
        self.document, self.quiet, self.drawn, self.now = Document(), False, [], 0.0
        self.playback = Playback(self)
        monkeypatch.setattr("maxmargin.lab.playback.time.perf_counter", lambda: self.now)
        self.pauses = []
        monkeypatch.setattr(self.document, "add_timeout_callback", self.wait)
        monkeypatch.setattr(self.document, "remove_timeout_callback", lambda callback: None)

    def wait(self, callback, milliseconds):
        self.pauses.append(milliseconds)
        return callback

    def draw(self):
        if not self.quiet:
            self.drawn.append(self.playback.step)

    def shown(self, seconds):
        """The browser answers after some seconds, and the time of the next step comes."""
        self.now += seconds
        self.playback.play.tags = list(self.playback.scrubber.tags)
        if self.playback.waiting is not None:
            self.now += self.pauses[-1] / 1000
            self.playback.waiting()


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def begun(clock, n_steps, speed):
    clock.playback.cover(n_steps)
    clock.playback.speed.value = speed
    clock.playback.play.active = True
    clock.drawn.clear()


def test_every_step_is_drawn_where_pictures_are_fast(clock):
    begun(clock, 40, 20)
    for _ in range(39):
        clock.shown(0.01)
    assert clock.drawn == list(range(1, 40))
    assert clock.now == pytest.approx(39 / 20, abs=0.1)
    assert "every" not in clock.playback.scrubber.title
    clock.shown(0.01)
    assert clock.playback.step == clock.playback.end == 40
    assert not clock.playback.is_running
    assert clock.playback.scrubber.title == "the answer, after 40 steps"


def test_steps_are_skipped_evenly_where_pictures_are_slow(clock):
    begun(clock, 1000, 60)
    for _ in range(40):
        clock.shown(0.05)
    assert clock.drawn == list(range(3, 121, 3))
    assert clock.playback.step / clock.now == pytest.approx(60, rel=0.05)
    assert clock.playback.scrubber.title == "step 121 of 1000 (every 3rd step)"


def test_answers_to_pictures_of_before_do_not_count(clock):
    begun(clock, 10, 60)
    before = list(clock.playback.scrubber.tags)
    clock.playback.stop()
    assert clock.playback.play.label == RUN
    clock.playback.play.active = True
    assert clock.playback.play.label == PAUSE
    clock.playback.play.tags = before
    assert clock.playback.waiting is None


def test_a_step_that_is_looked_at_stays_when_steps_are_added(clock):
    clock.playback.cover(10)
    assert clock.playback.step == 10
    clock.playback.go(4)
    clock.playback.cover(20)
    assert (clock.playback.step, clock.playback.end) == (4, 20)
    clock.playback.cover(3)
    assert clock.playback.step == 3


def test_the_start_is_step_0(clock):
    clock.playback.cover(4, 1)
    assert clock.playback.scrubber.title == "the answer, after 3 steps"
    for k, words in enumerate(("step 0 of 3", "step 1 of 3", "step 2 of 3", "step 3 of 3")):
        clock.playback.go(k)
        assert clock.playback.scrubber.title == words
    clock.playback.go(clock.playback.end)
    clock.playback.cover(1)
    assert clock.playback.scrubber.title == "the answer, after 1 step"
    clock.playback.cover(0)
    assert clock.playback.scrubber.title == "the answer"
