"""A page of the lab in a real browser, and the server behind it."""

import base64
import json
import re
import select
import shutil
import socket
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# Seconds after which what is waited for does not happen, on however slow a machine.
PATIENCE = 120
# Three points of each class, which a plane separates.
SIX = (
    [(-3.0, 3.0), (-2.0, 1.0), (-3.0, -2.0)],
    [(2.0, 2.0), (3.0, 0.0), (1.0, -3.0)],
)
# Bokeh keeps widgets that were replaced: what has a name is what is on the page.
NAMED = """(name) => {
  const found = [...Bokeh.documents[0]._all_models.values()].filter((m) => m.name == name)
  return found.find((m) => Bokeh.index.find_one_by_id(m.id) != null) ?? found[found.length - 1]
}"""
# No panel waits for its answer, or for the steps to it.
IDLE = """() => ['A', 'B'].every((name) => !model('scene-' + name).visible || (
  !model('proof-' + name).css_classes.includes('stale')
  && !model('scene-' + name).title.text.includes('being recorded')))"""
# Bokeh's server works on messages in their order: its reply comes after all that came of the
# ones before.
ROUNDTRIP = """
const Socket = window.WebSocket
window.WebSocket = class extends Socket {
  constructor(...given) { super(...given); window.socket = this }
}
window.roundtrip = () => new Promise((resolve) => {
  const msgid = 'test-' + Math.random()
  const hear = ({data}) => {
    if (typeof data == 'string' && data.includes(msgid)) {
      socket.removeEventListener('message', hear)
      requestAnimationFrame(() => requestAnimationFrame(resolve))  // drawn, too
    }
  }
  socket.addEventListener('message', hear)
  for (const part of [{msgid, msgtype: 'SERVER-INFO-REQ'}, {}, {}]) {
    socket.send(JSON.stringify(part))
  }
})"""


def start_lab(log=subprocess.DEVNULL):
    """Start a lab in a process of its own; return the process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "maxmargin", "lab", "--port", port, "--no-browser"],
        stdout=subprocess.PIPE, stderr=log, text=True,
    )  # fmt: skip
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    line = process.stdout.readline() if ready else ""
    found = re.search(r"http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)", line)
    if found is None:
        process.kill()
        raise AssertionError(f"the lab did not start: {line!r}")
    return process, int(found[1])


def ended(process, how):
    """Send a signal and return how the process ended."""
    process.send_signal(how)
    try:
        return process.wait(timeout=PATIENCE)
    finally:
        process.kill()
        process.stdout.close()


class Page:
    """A page of the lab: what a person does there, and what they see."""

    def __init__(self, browser, address, width=1366, height=768, query=""):
        self.context = browser.new_context(viewport={"width": width, "height": height})
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.errors = []
        self.dialogs = []
        self.foreign = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.page.on("dialog", self._on_dialog)
        self.page.on(
            "request",
            lambda request: (
                None if request.url.startswith((address, "data:", "blob:"))
                else self.foreign.append(request.url)
            ),
        )  # fmt: skip
        self.page.add_init_script(f"window.model = {NAMED}; window.drawn = 0; {ROUNDTRIP}")
        self.page.goto(address + query)
        self.page.wait_for_function("() => window.Bokeh && Bokeh.documents.length && model('rows')")
        self.page.evaluate(
            "() => model('rows').properties.data.change.connect(() => { window.drawn += 1 })"
        )
        self.settle()

    def begin_anew(self):
        """Bring a page that was used back to six points and the support vector machine."""
        self.errors.clear(), self.dialogs.clear(), self.foreign.clear()
        # The message that a step back in the browser sends.
        self.page.evaluate(
            "() => { model('told').value = JSON.stringify({what: 'visit', at: Math.random()}) }"
        )
        self.settle()

    def _on_dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    # What is there

    def model(self, name, attribute):
        return self.page.evaluate(f"(name) => model(name).{attribute}", name)

    def data(self, name):
        return self.page.evaluate(
            "(name) => Object.fromEntries(Object.entries(model(name).data).map("
            "([key, values]) => [key, Array.from(values)]))",
            name,
        )

    def points(self):
        data = self.data("points")
        return np.column_stack([data["x"], data["y"]]), [int(label) for label in data["label"]]

    def title(self, name="A"):
        return self.model(f"scene-{name}", "title.text")

    def proof(self, name="A"):
        """Return the certificate, as the page shows it."""
        model_id = self.model(f"proof-{name}", "id")
        return self.page.evaluate(
            "(id) => Bokeh.index.find_one_by_id(id).el.shadowRoot.textContent", model_id
        )

    def note(self):
        model_id = self.model("note", "id")
        return self.page.evaluate(
            "(id) => [...Bokeh.index.find_one_by_id(id).el.shadowRoot"
            ".querySelectorAll('.bk-clearfix')].map((e) => e.textContent).join('')",
            model_id,
        )

    def table(self):
        """Return the rows of the table of points, as the page shows them."""
        rows = self.page.locator(".slick-row")
        return [
            [cell.strip() for cell in row.locator(".slick-cell").all_inner_texts()]
            for row in rows.all()
        ]

    # Actions of the user

    def settle(self):
        """Wait until the server has heard of everything, and the page of all that came of it."""
        self.page.evaluate("roundtrip()")
        self.page.wait_for_function(IDLE)
        self.page.evaluate("roundtrip()")

    def act(self, do):
        """Do something and wait for what the solvers say to it."""
        self.settle()
        before = self.page.evaluate("drawn")
        do()
        self.page.wait_for_function("(n) => drawn > n", arg=before)
        self.settle()

    def until(self, condition, arg=None):
        self.page.wait_for_function(condition, arg=arg)

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, name):
        self.act(lambda: self.button(name).click())

    def sample(self, name):
        self.act(lambda: self.page.get_by_label("data set").select_option(label=name))

    def algorithm(self, name, nth=0):
        self.act(lambda: self.page.get_by_label("algorithm").nth(nth).select_option(label=name))

    def choose(self, label, value, nth=0):
        choice = self.page.get_by_label(label).nth(nth)
        self.act(lambda: choice.select_option(label=value))

    def tab(self, name):
        self.page.get_by_text(name, exact=True).last.click()
        self.page.wait_for_timeout(300)

    def slide(self, name, *keys):
        """Move a slider with the keyboard."""
        self.page.evaluate(
            "(id) => Bokeh.index.find_one_by_id(id).el.shadowRoot"
            ".querySelector('.noUi-handle').focus()",
            self.model(name, "id"),
        )
        for key in keys:
            self.page.keyboard.press(key)

    def place(self, x, y, name="scene-A"):
        """Return where a point of a figure is on the screen."""
        return self.page.evaluate(
            """([id, x, y]) => {
              const view = Bokeh.index.find_one_by_id(id)
              const box = view.el.getBoundingClientRect()
              const frame = view.frame
              return [box.x + frame.x_scale.compute(x), box.y + frame.y_scale.compute(y)]
            }""",
            [self.model(name, "id"), float(x), float(y)],
        )

    def click(self, x, y, name="scene-A"):
        self.page.mouse.click(*self.place(x, y, name))
        self.page.wait_for_timeout(460)  # another click would be the second of a double one

    def draw_six(self):
        """Clear, and draw three points of each of two classes."""
        self.press("clear")
        for name, points in zip("AB", SIX, strict=True):
            self.button(name).click()
            for point in points:
                self.click(*point)
        self.until("() => model('points').data.x.length == 6")
        self.settle()

    def compute_scores(self):
        """Compute the scores over C and γ, in their tab."""
        self.button("compute scores").click()
        self.until(
            "() => model('score-words').text.includes('folds;')"
            " && model('ask-scores').label == 'compute scores'"
        )
        self.settle()

    def upload(self, content, name="points.csv"):
        self.page.locator("input[type=file]").set_input_files(
            {"name": name, "mimeType": "text/csv", "buffer": content}
        )

    def refused(self, content, words):
        """Upload what is refused with words in the note."""
        self.upload(content)
        self.page.get_by_text(words).first.wait_for()

    def download(self, label, folder):
        with self.page.expect_download() as info:
            self.button(label).click()
        path = Path(folder) / info.value.suggested_filename
        info.value.save_as(path)
        return path

    def link(self):
        self.tab("take away")
        self.button("link").click()
        self.until("() => model('link').value.startsWith('http')")
        return self.model("link", "value")


def csv_of(rows, header="x,y,class"):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]).encode() + b"\n"


GOOD = [(0, 0, 5, "no"), (1, 0, 6, "no"), (3, 3, 7, "yes"), (4, 3, 8, "yes")]


def forged(**changes):
    """Return a link that was made by hand."""
    record = {
        "points": [[0, 0], [1, 0], [3, 3], [4, 3]], "codes": [0, 0, 1, 1],
        "names": ["A", "B", "C", "D"], "axes": ["x", "y"], "algorithms": [["svc", {}]],
    }  # fmt: skip
    return packed(json.dumps(record | changes).encode())


def packed(content):
    return "?lab=" + base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")
