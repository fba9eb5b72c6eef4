"""Playback: which step of the recordings is shown, and how fast the steps follow each other."""

from __future__ import annotations

import math
import time
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import CustomJS, Slider, Toggle

from .style import button

RUN, PAUSE = "▶ run", "⏸ pause"
# How much the last picture counts in the mean time of one.
WEIGHT = 0.2
# How much longer than its time a picture may take before steps are skipped.
TOLERANCE = 1.05


class Playback:
    """Buttons and sliders that choose the step that ``lab`` shows.

    After the last step comes the fitted model, at the end of the slider. While steps follow each
    other, the next one is drawn when the browser has shown the one before: where pictures take
    longer than the chosen speed allows, steps are skipped evenly, and the page says so.
    """

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.waiting: Any = None  # for the time of the next step
        self.n_frames, self.n_starts = 0, 0
        self.run, self.stride, self.seconds, self.sent = 0, 1, 0.0, 0.0
        self.scrubber = Slider(
            title="steps", start=0, end=1, value=1, step=1, name="scrubber", show_value=False,
            sizing_mode="stretch_width",
        )  # fmt: skip
        self.scrubber.on_change("value", lambda attr, old, new: self._on_value())
        self.back = button("|◀", lambda: self.go(0), 45, "restart")
        self.before = button("◀ step", lambda: self.go(self.step - 1), 70, "back")
        self.play = Toggle(label=RUN, width=80, name="run")
        self.play.on_change("active", lambda attr, old, new: self._on_play(new))
        self.next = button("step ▶", lambda: self.go(self.step + 1), 70, "step")
        self.last = button("▶|", lambda: self.go(self.end), 45, "end")
        self.speed = Slider(
            title="steps per second", start=1, end=60, value=8, step=1, width=120, name="speed"
        )
        # The tags of the slider are the last picture that was sent, those of the button the last
        # one that was shown.
        self.scrubber.js_on_change("tags", CustomJS(args={"play": self.play}, code=SHOWN))
        self.play.on_change("tags", lambda attr, old, new: self._on_shown(new))
        self.widgets = column(
            row(self.back, self.before, self.play, self.next, self.last, self.speed,
                styles={"flex-wrap": "wrap"}),
            self.scrubber, name="playback", sizing_mode="stretch_width",
        )  # fmt: skip

    @property
    def step(self) -> int:
        """The step that is shown."""
        return int(self.scrubber.value)

    @property
    def end(self) -> int:
        """The step at which the fitted model is shown."""
        return int(self.scrubber.end)

    @property
    def is_running(self) -> bool:
        """Whether steps follow each other."""
        return bool(self.play.active)

    def go(self, k: int) -> None:
        """Pause, and show a step."""
        self.stop()
        self.scrubber.value = min(max(k, 0), self.end)

    def to_end(self) -> None:
        """Pause, and move to the end without drawing it."""
        self._move(self.end)

    def cover(self, n_frames: int, n_starts: int = 0) -> None:
        """Take the number of frames of new recordings; keep the step unless it was the end.

        ``n_starts`` of the frames are before the first step.
        """
        at_end = self.step >= self.end
        self.n_frames, self.n_starts = n_frames, n_starts
        self.scrubber.end = max(n_frames, 1)
        if at_end or self.step > self.end:
            self._move(self.end)
        self._say()

    def stop(self) -> None:
        """Pause."""
        self.play.active = False

    def _move(self, k: int) -> None:
        """Pause at a step without drawing it."""
        quiet, self.lab.quiet = self.lab.quiet, True
        self.stop()
        self.scrubber.value = k
        self.lab.quiet = quiet

    def _on_value(self) -> None:
        self._say()
        self.lab.draw()

    def _say(self) -> None:
        """Say which step is shown, and which ones are skipped."""
        n, k = self.n_frames - self.n_starts, max(self.step + 1 - self.n_starts, 0)
        where = "the answer" + (f", after {n} {'step' if n == 1 else 'steps'}" if n else "")
        if self.step < self.n_frames:
            where = f"step {k} of {n}"
        skipped = self.is_running and self.stride > 1
        self.scrubber.title = where + (f" (every {_ordinal(self.stride)} step)" if skipped else "")

    def _on_play(self, active: bool) -> None:
        self.play.label = PAUSE if active else RUN
        self.run += 1
        self._forget()
        if not active:
            self._on_value()  # also what is not drawn at every step
            return
        self.stride, self.seconds = 1, 0.0
        if self.step >= self.end:
            self.scrubber.value = 0
        self._send()

    def _send(self) -> None:
        """Ask the browser to answer when it has shown what was drawn."""
        self.sent = time.perf_counter()
        self.scrubber.tags = [self.run, self.step]

    def _on_shown(self, tags: Any) -> None:
        """Wait for the time of the next step."""
        if not self.is_running or tags != self.scrubber.tags or self.waiting is not None:
            return
        took = time.perf_counter() - self.sent
        self.seconds += (WEIGHT if self.seconds else 1.0) * (took - self.seconds)
        self.stride = max(1, math.ceil(self.speed.value * self.seconds / TOLERANCE))
        pause = max(self.stride / self.speed.value - took, 0.0)
        self.waiting = self.lab.document.add_timeout_callback(self._advance, int(1000 * pause))

    def _advance(self) -> None:
        self.waiting = None
        if self.step + self.stride >= self.end:
            self.go(self.end)
            return
        self.sent = time.perf_counter()
        self.scrubber.value = self.step + self.stride
        self.scrubber.tags = [self.run, self.step]

    def _forget(self) -> None:
        if self.waiting is not None:
            self.lab.document.remove_timeout_callback(self.waiting)
            self.waiting = None


def _ordinal(n: int) -> str:
    """Return 2nd, 3rd, 4th …

    >>> [_ordinal(n) for n in (2, 3, 11, 21)]
    ['2nd', '3rd', '11th', '21st']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}th" if n % 100 in (11, 12, 13) else f"{n}{ending}"


SHOWN = "requestAnimationFrame(() => setTimeout(() => { play.tags = cb_obj.tags }))"
