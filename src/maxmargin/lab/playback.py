"""Playback: which step of the recordings is shown, and how fast the steps follow each other."""

from __future__ import annotations

from typing import Any

from bokeh.layouts import column, row
from bokeh.models import Slider, Toggle

from .style import button

RUN, PAUSE = "▶ run", "⏸ pause"
# Between two steps; browsers draw no faster.
LEAST_PAUSE_MILLISECONDS = 16


class Playback:
    """Buttons and sliders that choose the step that ``lab`` shows.

    After the last step comes the fitted model, at the end of the slider.
    """

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.running: Any = None
        self.scrubber = Slider(
            title="steps", start=0, end=1, value=1, step=1, name="scrubber", show_value=False,
            sizing_mode="stretch_width",
        )  # fmt: skip
        self.scrubber.on_change("value", lambda attr, old, new: lab.draw())
        self.back = button("|◀", lambda: self.go(0), 45, "restart")
        self.before = button("◀ step", lambda: self.go(self.step - 1), 70, "back")
        self.play = Toggle(label=RUN, width=80, name="run")
        self.play.on_change("active", lambda attr, old, new: self._on_play(new))
        self.next = button("step ▶", lambda: self.go(self.step + 1), 70, "step")
        self.last = button("▶|", lambda: self.go(self.end), 45, "end")
        self.speed = Slider(title="steps per second", start=1, end=60, value=8, step=1, width=120)
        self.speed.on_change("value_throttled", lambda attr, old, new: self._pace())
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

    def go(self, k: int) -> None:
        """Pause, and show a step."""
        self.stop()
        self.scrubber.value = min(max(k, 0), self.end)

    def to_end(self) -> None:
        """Pause, and move to the end without drawing it."""
        self.stop()
        self.lab.quiet = True
        self.scrubber.value = self.scrubber.end
        self.lab.quiet = False

    def cover(self, n_steps: int) -> None:
        """Take the number of steps of new recordings; keep the step unless it was the end."""
        at_end = self.step >= self.end
        self.lab.quiet = True
        self.scrubber.end = max(n_steps, 1)
        if at_end or self.step > self.end:
            self.scrubber.value = self.scrubber.end
        self.lab.quiet = False

    def stop(self) -> None:
        """Pause."""
        self.play.active = False
        self.play.label = RUN
        self._pace()

    def _on_play(self, active: bool) -> None:
        self.play.label = PAUSE if active else RUN
        if not active:
            self.stop()
            return
        if self.step >= self.end:
            self.scrubber.value = 0
        self._pace()

    def _pace(self) -> None:
        """Begin to step, or change the speed."""
        document = self.lab.document
        if self.running is not None:
            document.remove_periodic_callback(self.running)
            self.running = None
        if self.play.active:
            pause = max(int(1000 / self.speed.value), LEAST_PAUSE_MILLISECONDS)
            self.running = document.add_periodic_callback(self._tick, pause)

    def _tick(self) -> None:
        if self.step >= self.end:
            self.stop()
        else:
            self.scrubber.value += 1
