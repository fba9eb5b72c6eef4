"""Where points come from: data sets, the pen, files; and how they are taken back."""

from __future__ import annotations

import base64
import html
from typing import Any
from urllib.parse import quote

import numpy as np
from bokeh.layouts import column, row
from bokeh.models import CustomJS, Div, FileInput, RadioButtonGroup, Select

from .picture import COLOURS
from .points import MOST_BYTES, OF_A_LINE, OF_CLASSES, OF_ONE_CLASS, SAMPLES, checked
from .style import button
from .uploads import Table, chosen_columns, read_upload

CHOOSE = "load a data set …"


class DataView:
    """Widgets that load and clear the points of a ``lab``, and a note on what happened."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.uploaded: Table | None = None
        self.quiet = False  # while the columns of another file are shown
        options = {
            "": [CHOOSE], "classes": list(OF_CLASSES), "regression on a line": list(OF_A_LINE),
            "one class": list(OF_ONE_CLASS),
        }  # fmt: skip
        self.sample = Select(title="data set", value=CHOOSE, options=options, width=250)
        self.named("six points")
        self.sample.on_change("value", lambda attr, old, new: self._load_sample(new))
        self.pen = RadioButtonGroup(
            labels=["A", "B", "C", "D"], active=0, width=250, name="pen",
            html_attributes={"data-name": "class of new points"}, stylesheets=[_marks()],
        )  # fmt: skip
        pens = [panel.scene.pen for panel in lab.panels]
        self.pen.js_on_change("active", CustomJS(args={"pens": pens}, code=PEN))
        self.undo = button("undo", lab.undo, 54)
        self.redo = button("redo", lab.redo, 54)
        self.clear = button("clear", self.drop_all, 54)
        self.csv = button("CSV ↓", lambda: lab.downloads.send_csv(), 58)
        self.upload = FileInput(accept=".csv,.tsv,.txt", title="upload a CSV file", width=250)
        self.upload.on_change("value", lambda attr, old, new: self.on_upload(new))
        choose = {"options": [], "width": 78, "visible": False}
        self.columns = [Select(title=name, **choose) for name in ("across", "up", "class")]
        for select in self.columns:
            select.on_change("value", lambda attr, old, new: self.choose_columns())
        self.note = Div(text="", width=250, name="note", html_attributes={"role": "status"})
        buttons = row(self.undo, self.redo, self.clear, self.csv)
        self.widgets = column(
            self.sample, self.pen, buttons, self.upload, row(*self.columns), self.note,
            name="data", width=260,
        )  # fmt: skip

    def check_files(self) -> CustomJS:
        """Return what makes the page refuse files before they are sent to the server.

        The server ends the connection on a message that is too large.
        """
        args = {"upload": self.upload, "note": self.note, "most": MOST_BYTES}
        return CustomJS(args=args, code=CHECK)

    def say(self, text: str, *, bad: bool = False) -> None:
        """Show a note, as text and not as markup."""
        colour = " class='bad'" if bad else ""
        self.note.text = f"<span{colour}>{html.escape(text)}</span>" if text else ""

    def named(self, sample: str) -> None:
        """Say which data set is shown; "" is another one."""
        self.sample_name = sample
        self.sample.title = f"data set ({sample})" if sample else "data set"

    def show_classes(self, shown: bool) -> None:
        """Show or hide what chooses classes."""
        self.pen.visible = shown
        self.columns[2].visible = shown and self.uploaded is not None

    def _load_sample(self, name: str) -> None:
        """Load a data set; the same one can then be chosen again."""
        if name in SAMPLES:
            self.forget_upload()
            self.lab.load(SAMPLES[name](), sample=name)
            self.sample.value = CHOOSE

    def drop_all(self) -> None:
        """Delete all points."""
        self.forget_upload()
        self.lab.load(checked(np.empty((0, 2)), []))

    def forget_upload(self) -> None:
        """Hide the columns of a file that is no longer shown."""
        self.uploaded = None
        for select in self.columns:
            select.visible = False

    def on_upload(self, content: str) -> None:
        """Read a file, of which bokeh sends the bytes in base 64."""
        if not content:
            return
        self.upload.clear()  # so that the same file can be uploaded again
        try:
            table = read_upload(base64.b64decode(content), classes=self.lab.has_classes)
        except ValueError as error:  # the previous file is kept
            self.say(str(error), bad=True)
            return
        self.uploaded = table
        self.quiet = True
        for select, value in zip(self.columns, table.guessed(), strict=True):
            select.options, select.value, select.visible = list(table.header), value, True
        self.quiet = False
        self.show_classes(self.lab.has_classes)
        self.choose_columns()

    def choose_columns(self) -> None:
        """Load the chosen columns of the file, if there is one."""
        if self.quiet or self.uploaded is None:
            return
        try:
            chosen = [select.value for select in self.columns if select.visible]
            points = chosen_columns(self.uploaded, *chosen)
        except ValueError as error:
            self.say(str(error), bad=True)
            return
        self.lab.load(points)


# Run in the browser, since the next click may come before an answer of the server.
PEN = "for (const pen of pens) { pen.default_overrides = {label: String(cb_obj.active)} }"
# The listener is called before that of bokeh, which would send the file.
CHECK = """
const view = Bokeh.index.find_one_by_id(upload.id)
const refusal = async (file) => {
  if (file.size == 0) { return 'The file is empty.' }
  if (file.size > most) {
    return `The file must have at most ${most} bytes, got ${file.size}.`
  }
  const bytes = await file.arrayBuffer()
  try {
    const text = new TextDecoder('utf-8', {fatal: true}).decode(bytes)
    return text.includes('\\0') ? 'The file must be text, and holds bytes of 0.' : ''
  } catch (error) {
    return 'The file must be UTF-8 text.'
  }
}
const checked = new WeakSet()
view.shadow_el.addEventListener('change', async (event) => {
  const input = event.target
  const file = input.files?.[0]
  if (file == null || checked.has(file)) { return }
  event.stopImmediatePropagation()
  const words = await refusal(file).catch(() => 'The file cannot be read.')
  if (words) {
    note.text = `<span class='bad'>${words}</span>`
    input.value = ''
  } else {
    checked.add(file)
    input.dispatchEvent(new Event('change'))
  }
}, {capture: true})
"""


def _marks() -> str:
    """Return a style sheet that gives each button the colour and the marker of its class."""
    shapes = (
        "circle cx='6' cy='6' r='5'", "rect x='1' y='1' width='10' height='10'",
        "polygon points='6,1 11,11 1,11'", "polygon points='6,0 12,6 6,12 0,6'",
    )  # fmt: skip
    rules = [".bk-btn { padding-left: 22px; background-repeat: no-repeat; "
             "background-position: 6px center; background-size: 12px; }"]  # fmt: skip
    for k, (shape, colour) in enumerate(zip(shapes, COLOURS, strict=True), start=1):
        drawn = (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 12 12'>"
            f"<{shape} fill='{colour}' stroke='white'/></svg>"
        )
        image = f'url("data:image/svg+xml,{quote(drawn)}")'
        rules.append(f".bk-btn:nth-child({k}) {{ background-image: {image}; }}")
    return "\n".join(rules)
