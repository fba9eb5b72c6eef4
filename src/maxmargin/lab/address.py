"""The state of the page in its address: for reloads, back and forward, and other servers."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import parse_qs

from bokeh.events import ConnectionLost, DocumentReady
from bokeh.layouts import row
from bokeh.models import CustomJS, TextInput

from .sharing import MOST_LETTERS, packed

# Browsers refuse more than a few changes of the address per second.
WRITE_MILLISECONDS = 400
LOST = (
    "The points of this address are kept in the tab that drew them: there are too many for an "
    "address."
)
KEPT = "Too many points for the address: this tab keeps them. Download them to share them."


class Address:
    """Writes the state of a ``lab`` into the address, and hears of what the browser returns to.

    States that are too long for an address are kept by the tab, under a key in the address.
    """

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.place: Any = None
        self.written: str | None = None
        self.waiting: Any = None
        self.warned = False
        # Two hidden fields: to the browser, and from it.
        self.out = TextInput(value="", visible=False, name="address")
        self.out.js_on_change("value", CustomJS(args={"out": self.out}, code=WRITE))
        self.told = TextInput(value="", visible=False, name="told")
        self.told.on_change("value", lambda attr, old, new: self.hear(new))
        self.widgets = row(self.out, self.told, visible=False)

    def attach(self, document: Any, dark: Any) -> None:
        """Listen to keys and to back and forward, and reload when a lost server is back."""
        args = {"told": self.told, "dark": dark, "given": self.lab.state().dark is not None}
        document.js_on_event(DocumentReady, CustomJS(args=args, code=HEAR))
        document.js_on_event(ConnectionLost, CustomJS(code=AWAY))
        # The page is loaded again with its address instead.
        document.config.reconnect_session = False
        document.config.notify_connection_status = False

    def settle(self) -> None:
        """Take the present state as that of the address."""
        state = self.lab.state()
        self.place, self.written = state.place, packed(state)

    def note(self) -> None:
        """Write the state into the address soon."""
        if self.waiting is None and self.written is not None:
            self.waiting = self.lab.document.add_timeout_callback(self.write, WRITE_MILLISECONDS)

    def write(self) -> None:
        """Write the state into the address; another place is a new entry of the history."""
        self.waiting = None
        state = self.lab.state()
        text = packed(state)
        if text == self.written:
            return
        short = len(text) <= MOST_LETTERS
        key = hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
        self.out.value = json.dumps(
            {
                "query": f"?lab={text}" if short else f"?kept={key}",
                "push": state.place != self.place,
                "key": "" if short else key,
                "text": "" if short else text,
            }
        )
        self.place, self.written = state.place, text
        if not short and not self.warned:
            self.lab.say(KEPT)
        self.warned = not short

    def hear(self, message: str) -> None:
        """Do what the browser asks for; anything else than its own messages is ignored."""
        try:
            told = json.loads(message)
            what, text = told["what"], str(told.get("text", ""))
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if what == "undo":
            self.lab.undo()
        elif what == "redo":
            self.lab.redo()
        elif what == "dark":
            self.lab.prefers_dark = True
        elif what == "visit":
            self.lab.visit(asked_for(text))
        elif what == "lost":
            self.lab.say(LOST, bad=True)


def asked_for(query: str) -> dict[str, str]:
    """Return the arguments of a query of the address.

    >>> asked_for("?lesson=xor")
    {'lesson': 'xor'}
    """
    return {name: values[-1] for name, values in parse_qs(query.removeprefix("?")).items()}


WRITE = """
if (out.value == '') { return }
const {query, push, key, text} = JSON.parse(out.value)
if (key != '') {
  // The last few are kept: a tab holds a few million letters.
  const keys = JSON.parse(sessionStorage.getItem('maxmargin') ?? '[]').filter((k) => k != key)
  keys.push(key)
  for (const old of keys.splice(0, Math.max(0, keys.length - 20))) {
    sessionStorage.removeItem('maxmargin ' + old)
  }
  sessionStorage.setItem('maxmargin', JSON.stringify(keys))
  sessionStorage.setItem('maxmargin ' + key, text)
}
window.history[push ? 'pushState' : 'replaceState'](null, '', query)
"""
HEAR = """
let count = 0
const tell = (what, text = '') => {
  count += 1
  told.value = JSON.stringify({what, text, count})
}
const theme = () => {
  document.documentElement.dataset.theme = dark.active ? 'dark' : 'light'
}
if (window.matchMedia('(prefers-color-scheme: dark)').matches) {
  tell('dark')
  if (!given) { dark.active = true }
}
theme()
const visit = () => {
  const key = new URLSearchParams(location.search).get('kept')
  const text = key == null ? null : sessionStorage.getItem('maxmargin ' + key)
  if (key == null) { tell('visit', location.search) }
  else if (text == null) { tell('lost') }
  else { tell('visit', '?lab=' + text) }
}
if (location.search.includes('kept=')) { visit() }
addEventListener('popstate', visit)
addEventListener('keydown', (event) => {
  const key = event.key.toLowerCase()
  const redo = key == 'y' || (key == 'z' && event.shiftKey)
  if (!(event.ctrlKey || event.metaKey) || event.altKey || !(key == 'z' || redo)) { return }
  const field = event.composedPath()[0]
  const written = 'input:not([type=button], [type=checkbox], [type=file], [type=range]), textarea'
  if (field.matches?.(written) || field.isContentEditable) { return }
  event.preventDefault()
  tell(redo ? 'redo' : 'undo')
})
"""
AWAY = """
const box = document.getElementById('away')
box.hidden = false
const look = async () => {
  const found = await fetch('static/js/bokeh.min.js', {method: 'HEAD', cache: 'no-store'})
    .catch(() => null)
  if (found?.ok) { location.reload() } else { setTimeout(look, 1000) }
}
setTimeout(look, 500)
"""
