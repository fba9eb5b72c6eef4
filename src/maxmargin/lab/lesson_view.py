"""The card of a lesson: its question, its goals, and what was reached."""

from __future__ import annotations

import html
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import Div, Select

from .lessons import LESSONS, Lesson
from .observing import Seen, at_step, seen
from .style import button

CHOOSE = "lessons …"
# What is kept of what was seen since a lesson began.
MOST_SEEN = 200


class LessonView:
    """Opens the lessons of a ``lab``, and follows what is done in the one that is open."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.key = ""
        self.met: tuple[int, ...] = ()
        self.done: tuple[str, ...] = ()
        self.history: list[Seen] = []
        self.known: dict[int, Any] = {}  # per panel: the outcome that was seen last, and its step
        self.choice = Select(
            value="", options=[], width=140, name="lesson",
            html_attributes={"data-name": "lesson"},
        )  # fmt: skip
        self.choice.on_change("value", lambda attr, old, new: self.start(new))
        self.card = Div(text="", name="card", sizing_mode="stretch_width")
        self.heard = Div(
            name="lesson-heard", css_classes=["unseen"], html_attributes={"role": "status"}, width=1
        )
        self.before = button("◀ previous", lambda: self._turn(-1), 85, "previous-lesson")
        self.next = button("next ▶", lambda: self._turn(1), 65, "next-lesson")
        self.anew = button("start again", lambda: self.start(self.key), 85, "restart-lesson")
        self.close = button("close", lambda: self.start(""), 55, "close-lesson")
        self.widgets = column(
            self.card, row(self.before, self.next, self.anew, self.close, spacing=2), self.heard,
            name="card-of-lesson", visible=False, sizing_mode="stretch_width",
            styles={"background": "var(--panel)", "border-radius": "6px", "padding": "6px",
                    "margin-bottom": "0.6rem"},
        )  # fmt: skip
        self._show()

    @property
    def lesson(self) -> Lesson | None:
        """The lesson that is open."""
        return LESSONS.get(self.key)

    def start(self, key: str) -> None:
        """Open a lesson at its start, or close the one that is open for ""."""
        if self.lab.quiet:
            return
        if key in LESSONS:
            self.lab.show(LESSONS[key].start().viewed_like(self.lab.state()))
            self.met, self.history, self.known = (), [], {}
            self._show()
        else:
            self.resume("", (), ())
        self.lab.remember()

    def resume(self, key: str, met: tuple[int, ...], done: tuple[str, ...]) -> None:
        """Show a lesson with what was reached in it."""
        if key != self.key:
            self.history, self.known = [], {}
        self.key, self.met = key, met
        self.done = tuple(each for each in LESSONS if each in (*self.done, *done))
        self._show()

    def look(self) -> None:
        """Judge what the page shows."""
        if self.lesson is None:
            return
        for place, panel in enumerate(self.lab.shown()):
            if panel.has_steps:
                self._see(place, panel.outcome, self.lab.playback.step)
        self._show()

    def _see(self, place: int, outcome: Any, k: int) -> None:
        """Add what a panel shows to what was seen, and note the goals that it reaches."""
        k = min(k, len(outcome.frames))
        last, step, found = self.known.get(place, (None, None, None))
        if last is not outcome:
            found = seen(outcome)
        elif step == k:
            return
        self.known[place] = outcome, k, found
        if found is None or self.lesson is None:
            return
        self.history = [*self.history[-MOST_SEEN:], at_step(found, outcome, k)]
        now = {*self.met, *self.lesson.met(self.history)}
        if now != set(self.met):
            self._reach(tuple(sorted(now)))

    def _reach(self, met: tuple[int, ...]) -> None:
        assert self.lesson is not None
        words = [self.lesson.goals[k].words for k in met if k not in self.met]
        said = f"Reached: {' '.join(words)}"
        self.met = met
        if len(met) == len(self.lesson.goals):
            self.done = tuple(each for each in LESSONS if each in (*self.done, self.key))
            said += f" The lesson is done. {self.lesson.answer}"
        self.heard.text = html.escape(said)
        self.lab.address.note()

    def _turn(self, by: int) -> None:
        keys = list(LESSONS)
        self.start(keys[(keys.index(self.key) + by) % len(keys)])

    def _show(self) -> None:
        self.choice.options = [
            ("", CHOOSE),
            *((key, f"{'✓ ' if key in self.done else ''}{each.title}")
              for key, each in LESSONS.items()),
        ]  # fmt: skip
        was, self.lab.quiet = self.lab.quiet, True
        self.choice.value = self.key
        self.lab.quiet = was
        self.widgets.visible = self.lesson is not None
        if self.lesson is not None:
            self.card.text = card_of(self.lesson, self.met, self.history[-1:])


def card_of(lesson: Lesson, met: tuple[int, ...], now: list[Seen]) -> str:
    """Return the card of a lesson as escaped HTML."""
    number = list(LESSONS).index(lesson.key) + 1
    parts = [
        f"<h3>Lesson {number} of {len(LESSONS)}: {html.escape(lesson.title)}</h3>",
        _paragraph(lesson.sentences),
        _paragraph(lesson.question, "question"),
        "<ul class='goals'>",
    ]
    for k, goal in enumerate(lesson.goals):
        kind, mark, word = ("reached", "✓", "reached") if k in met else ("left", "○", "to do")
        parts.append(
            f"<li class='{kind}'><span aria-hidden='true'>{mark}</span> {html.escape(goal.words)} "
            f"<span class='word'>({word})</span></li>"
        )
    parts.append("</ul>")
    if now:
        parts.append(_paragraph(lesson.reading(now[0]), "facts"))
    if len(met) == len(lesson.goals):
        parts.append(f"<p class='good'>✓ Done. {html.escape(lesson.answer)}</p>")
    return "".join(parts)


def _paragraph(text: str, kind: str = "") -> str:
    return f"<p class='{kind}'>{html.escape(text)}</p>" if text else ""
