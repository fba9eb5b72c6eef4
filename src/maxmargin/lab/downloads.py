"""What can be taken away: points, model, code, picture, recording, link."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from bokeh.layouts import column, row
from bokeh.models import Button, CustomJS, NumericInput, PreText, Select, TextInput

import maxmargin as mm

from .background import Background
from .fitting import Outcome
from .recording import recording_of
from .sharing import code_of, link_of
from .still import KINDS, LEAST_SIZE, MOST_SIZE, USUAL_HEIGHT, USUAL_WIDTH, still_of
from .style import button

# Name, type and content.
File: TypeAlias = tuple[str, str, bytes]


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
        size = {"low": LEAST_SIZE, "high": MOST_SIZE, "mode": "int", "width": 90}
        self.width = NumericInput(title="width (pixels)", value=USUAL_WIDTH, **size)
        self.height = NumericInput(title="height (pixels)", value=USUAL_HEIGHT, **size)
        self.kind = Select(title="format", value="PNG", options=list(KINDS), width=80)
        self.copy = Button(label=COPY, width=100, name="copy-code")
        parts = {"code": self.code, "button": self.copy, "note": lab.data.note}
        self.copy.js_on_click(CustomJS(args=parts, code=COPIED))
        self.maker = Background(self._make)
        wrapped = {"styles": {"flex-wrap": "wrap"}, "sizing_mode": "stretch_width"}
        self.widgets = column(
            row(
                button("model ↓", self.send_model, 90),
                button("recording ↓", self.record, 110),
                button("link", self.make_link, 60, "make-link"),
                **wrapped,
            ),
            self.link,
            row(
                self.kind, self.width, self.height,
                button("picture ↓", self.send_picture, 100), **wrapped,
            ),
            row(button("code ↓", self.send_code, 80), self.copy, **wrapped),
            self.code, self.parcel, sizing_mode="stretch_width",
        )  # fmt: skip

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
        self.maker.ask(partial(self._recording, outcomes))

    def send_picture(self) -> None:
        """Send the picture of the model in the chosen size, once it is drawn."""
        outcome, width, height = self.lab.looked_at().outcome, self.width.value, self.height.value
        if outcome is None or outcome.model is None:
            self.lab.say("There is no model yet.", bad=True)
        elif width is None or height is None:
            self.lab.say("Give the width and the height of the picture.", bad=True)
        else:
            self.lab.say("The picture is being drawn.")
            self.maker.ask(partial(self._picture, outcome, self.kind.value, width, height))

    def _recording(self, outcomes: list[Outcome]) -> File:
        return "recording.html", "text/html", recording_of(outcomes).encode("utf-8")

    def _picture(self, outcome: Outcome, kind: str, width: int, height: int) -> File:
        content = still_of(outcome, kind, width, height)
        return f"picture.{kind.lower()}", KINDS[kind], content

    def _make(self, make: Callable[[], File], is_dropped: Callable[[], bool]) -> None:
        """Make a file outside of the event loop, and send it."""
        file, refusal = None, ""
        try:
            file = make()
        except ValueError as error:
            refusal = str(error)
        if not is_dropped():
            self.lab.document.add_next_tick_callback(partial(self._arrive, file, refusal))

    def _arrive(self, file: File | None, refusal: str) -> None:
        self.lab.say(refusal, bad=bool(refusal))
        if file is not None:
            self._send(*file)

    def close(self) -> None:
        """Stop the thread."""
        self.maker.close()

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


COPY = "copy code"
# The clipboard of a page that was not served by this computer is closed: its selection is copied.
COPIED = """
const text = code.text
const done = () => {
  note.text = '<span>The code was copied.</span>'
  button.label = 'copied ✓'
  setTimeout(() => { button.label = 'copy code' }, 2000)
}
const select = () => {
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const copied = document.execCommand('copy')
  area.remove()
  if (copied) {
    done()
  } else {
    note.text = "<span class='bad'>The code cannot be copied: download it.</span>"
  }
}
if (navigator.clipboard) {
  navigator.clipboard.writeText(text).then(done, select)
} else {
  select()
}
"""
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
