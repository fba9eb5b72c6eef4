"""Downloads: points, model, code, recording, link."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import CustomJS, PreText, TextInput

import maxmargin as mm

from .background import Background
from .fitting import Outcome
from .recording import recording_of
from .sharing import code_of, link_of
from .style import button


class Downloads:
    """Buttons and fields to export the contents of a ``lab``."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.code = PreText(
            text="", name="code", sizing_mode="stretch_width",
            html_attributes={"tabindex": "0", "role": "region", "aria-label": "code"},
            styles={"overflow": "auto", "max-height": "300px", "font-size": "12px"},
        )  # fmt: skip
        self.link = TextInput(title="link", value="", name="link", sizing_mode="stretch_width")
        self.link.js_on_change("value", CustomJS(args={"box": self.link}, code=LINK))
        # A hidden text field transfers files to the page: name, type and content.
        self.parcel = TextInput(value="", visible=False, name="parcel")
        self.parcel.js_on_change("value", CustomJS(args={"parcel": self.parcel}, code=DOWNLOAD))
        buttons = row(
            button("model ↓", self.send_model, 90),
            button("code ↓", self.send_code, 80),
            button("recording ↓", self.record, 110),
            button("link", self.make_link, 60, "make-link"),
            styles={"flex-wrap": "wrap"},
        )
        self.recorder = Background(self._record)
        self.widgets = column(
            buttons, self.link, self.code, self.parcel, sizing_mode="stretch_width"
        )

    def draw(self) -> None:
        """Show the program that fits the selected model."""
        self.code.text = code_of(self.lab.points, *self.lab.looked_at().chosen)

    def send_csv(self) -> None:
        """Send the points as CSV, with their classes where these are shown."""
        text = self.lab.points.to_csv(classes=self.lab.has_classes)
        self._send("points.csv", "text/csv", text.encode("utf-8"))

    def send_code(self) -> None:
        """Send the program."""
        self.draw()
        self._send("model.py", "text/x-python", self.code.text.encode("utf-8"))

    def send_model(self) -> None:
        """Send the model file, if there is a model."""
        outcome = self.lab.looked_at().outcome
        if outcome is None or outcome.model is None:
            self.lab.say("There is no model yet.", bad=True)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mm"
            mm.save(outcome.model, path, about={"made by": "the lab"})
            self._send("model.mm", "application/octet-stream", path.read_bytes())

    def record(self) -> None:
        """Send a page that plays the steps of the visible fits, once it is made."""
        outcomes = [panel.outcome for panel in self.lab.shown()]
        # A failure has no steps.
        if any(o is None or not (o.recorded or o.failure) for o in outcomes):
            self.lab.say("The steps are still being recorded.", bad=True)
            return
        self.lab.say("The recording is being made.")
        self.recorder.ask(outcomes)

    def _record(self, outcomes: list[Outcome], is_dropped: Callable[[], bool]) -> None:
        """Make the page, outside of the event loop."""
        page = recording_of(outcomes).encode("utf-8")
        if not is_dropped():
            self.lab.document.add_next_tick_callback(partial(self._send_recording, page))

    def _send_recording(self, page: bytes) -> None:
        self.lab.say("")
        self._send("recording.html", "text/html", page)

    def close(self) -> None:
        """Stop the thread."""
        self.recorder.close()

    def make_link(self) -> None:
        """Show the address that restores points and algorithms."""
        try:
            self.link.value = link_of(self.lab.state())
        except ValueError as error:
            self.lab.say(str(error), bad=True)

    def _send(self, name: str, kind: str, content: bytes) -> None:
        text = base64.b64encode(content).decode("ascii")
        self.parcel.value = ""  # so that the same file can be sent twice
        self.parcel.value = "|".join((name, kind, text))


LINK = """
if (box.value.startsWith('?lab=')) {
  const whole = window.location.origin + window.location.pathname + box.value
  window.history.replaceState(null, '', box.value)
  box.value = whole
  if (navigator.clipboard) { navigator.clipboard.writeText(whole).catch(() => {}) }
}
"""
DOWNLOAD = """
const [name, kind, content] = parcel.value.split('|')
if (content) {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([bytes], {type: kind}))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
"""
