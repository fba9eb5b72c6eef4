"""The page: points, algorithms, their steps and certificates."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.events import DocumentReady
from bokeh.layouts import column, row
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    Div,
    RadioButtonGroup,
    TabPanel,
    Tabs,
    Toggle,
)  # fmt: skip

from .address import Address
from .card import Card
from .data_view import DataView
from .downloads import Downloads
from .dragging import Dragging
from .editing import PointEditor
from .equal_axes import EqualAxes
from .figures import BesideFigures, Look
from .lesson_view import LessonView
from .lessons import LESSONS
from .panel import Panel
from .picture import joined, window_of
from .playback import Playback
from .points import SAMPLES, Points, checked
from .score_view import ScoreView
from .sharing import MOST_KEPT, restored
from .state import Memory, State
from .table import PointTable


class Lab:
    """The state of one session; nothing is shared between sessions."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.look = Look()
        self.points = SAMPLES["six points"]()
        self.quiet = False  # while widgets are changed by the program
        self.source = ColumnDataSource(data={"x": [], "y": [], "label": []}, name="points")
        self.panels = [Panel(self, "svc", "A"), Panel(self, "perceptron", "B")]
        self.beside = BesideFigures(self.look)
        self.data = DataView(self)
        self.dragging = Dragging(self)
        self.playback = Playback(self)
        self._make_switches()
        self._make_insight()
        self.address = Address(self)
        self.lessons = LessonView(self)
        self.source.on_change("data", self._on_drawn)
        self.prefers_dark = False
        self.wanted_step: int | None = None  # of an address, once it is recorded
        self.first = self.state()
        self.memory = Memory(self.first)

    # Widgets -------------------------------------------------------------------------------

    def _make_switches(self) -> None:
        self.compare = Toggle(label="compare with a second algorithm", width=250, name="compare")
        self.compare.on_change("active", self._on_compare)
        self.dark = Toggle(label="dark", width=70, name="dark")
        self.dark.on_change("active", self._on_dark)
        self.dark.js_on_change("active", CustomJS(code=DARK))
        self.equal = EqualAxes([panel.scene.figure for panel in self.panels])

        # What a screen reader reads when there is an answer, and not at every step.
        self.heard = Div(
            name="heard", css_classes=["unseen"], html_attributes={"role": "status"}, width=1
        )

    def _make_insight(self) -> None:
        self.table = PointTable(self.source)
        self.card = Card(self)
        self.editor = PointEditor(self)
        self.subject = RadioButtonGroup(
            labels=["A", "B"], active=0, visible=False, name="subject",
            html_attributes={"data-name": "algorithm that is looked at"},
        )  # fmt: skip
        self.subject.on_change("active", lambda attr, old, new: self.draw())
        self.downloads = Downloads(self)
        self.scores = ScoreView(self)
        self.weight_space = TabPanel(title="weight space", child=column(
            self.beside.note, self.beside.weights, sizing_mode="stretch_width"))  # fmt: skip
        self.points_tab = TabPanel(title="points", child=column(
            self.table.task, self.table.grid, self.editor.widgets,
            sizing_mode="stretch_width"))  # fmt: skip
        self.tabs = Tabs(
            tabs=[
                TabPanel(title="convergence", child=column(
                    self.beside.objective, self.beside.gap, self.beside.errors,
                    sizing_mode="stretch_width")),
                self.weight_space,
                self.points_tab,
                TabPanel(title="scores", child=self.scores.widgets),
                TabPanel(title="take away", child=self.downloads.widgets),
            ],
            sizing_mode="stretch_width",
            # By default a grid column is as wide as its contents.
            stylesheets=[":host { grid-template-columns: minmax(0, 1fr) !important; }"],
        )  # fmt: skip
        # A hidden table is not redrawn when its data change.
        redraw = "setTimeout(() => table.view.change.emit(), 60)"
        again = CustomJS(args={"table": self.table.grid}, code=redraw)
        self.tabs.js_on_change("active", again)
        self.tabs.on_change("active", lambda attr, old, new: self.address.note())

    def roots(self) -> list[Any]:
        """Return the roots that the template places by name."""
        first, second = self.panels
        controls = column(first.widgets, self.compare, second.widgets, name="controls", width=260)
        self.scenes = row(
            first.scene.figure, second.scene.figure, name="scenes", sizing_mode="stretch_both",
            css_classes=["beside"],
        )  # fmt: skip
        proofs = row(first.proof, second.proof, name="proofs", sizing_mode="stretch_width",
                     css_classes=["texts"])  # fmt: skip
        insight = column(
            self.subject, self.card.text, self.tabs, name="insight", sizing_mode="stretch_width"
        )
        top = row(
            self.address.widgets, self.heard, self.lessons.choice, self.equal.button, self.dark,
            name="top", styles={"flex-wrap": "wrap"},
        )  # fmt: skip
        data, lesson, playback = self.data.widgets, self.lessons.widgets, self.playback.widgets
        return [top, lesson, data, controls, self.scenes, playback, proofs, insight]

    # Beginning and end ---------------------------------------------------------------------

    def begin(self, document: Any) -> None:
        """Show what the address asks for."""
        request = document.session_context.request if document.session_context else None
        arguments = request.arguments if request else {}
        self.visit({name: values[-1].decode("utf-8", "replace")
                    for name, values in arguments.items()})  # fmt: skip
        self.memory = Memory(self.state())
        self._show_memory()
        self.address.attach(document, self.dark)
        for panel in self.panels:
            document.js_on_event(DocumentReady, panel.listen)
        document.js_on_event(DocumentReady, self.data.check_files())

    def close(self) -> None:
        """Stop the threads and release the recordings."""
        self.playback.stop()
        for panel in self.panels:
            panel.close()
        self.scores.close()
        self.downloads.close()

    def say(self, text: str, *, bad: bool = False) -> None:
        """Show a note."""
        self.data.say(text, bad=bad)

    # State ---------------------------------------------------------------------------------

    def state(self) -> State:
        """Return what the page shows."""
        step = self.wanted_step if self.playback.step >= self.playback.end else self.playback.step
        dark = bool(self.dark.active)
        return State(
            self.points,
            tuple(panel.chosen for panel in self.panels),
            compared=self.compare.active,
            sample=self.data.sample_name,
            lesson=self.lessons.key,
            met=self.lessons.met,
            done=self.lessons.done,
            tab=self.tabs.tabs[self.tabs.active].title,
            subject=self.subject.active or 0,
            step=step,
            dark=None if dark == self.prefers_dark else dark,
        )

    def show(self, state: State) -> None:
        """Show a state, and fit again."""
        same_points = state.points is self.points
        self.quiet = True
        self.points = state.points
        for panel, (key, values) in zip(self.panels, state.chosen, strict=False):
            panel.choose(key, dict(values))
        self.compare.active = state.compared
        self.subject.active = state.subject
        self.dark.active = self.prefers_dark if state.dark is None else state.dark
        self._show_second()
        self.lessons.resume(state.lesson, state.met, state.done)
        titles = [tab.title for tab in self.tabs.tabs]
        if state.tab in titles:
            self.tabs.active = titles.index(state.tab)
        self.quiet = False
        self.data.named(state.sample)
        if not same_points:
            self.data.forget_upload()
            self._show_points()
        self._ask()
        self.wanted_step = state.step

    def visit(self, asked: Mapping[str, str]) -> None:
        """Show what the arguments of an address ask for: a state, a lesson, or six points."""
        refused = ""
        try:
            state = self._asked_for(asked)
        except ValueError as error:
            state, refused = self.first, str(error)
        self.show(state)
        self._show_points()
        self.say(refused, bad=True)
        self.memory.remember(self.state())
        self.address.settle()
        self._show_memory()

    def _asked_for(self, asked: Mapping[str, str]) -> State:
        if "lab" in asked:
            return restored(asked["lab"], MOST_KEPT)
        key = asked.get("lesson", "")
        if key and key not in LESSONS:
            raise ValueError(f"The lessons are {', '.join(LESSONS)}; got {key!r}.")
        return LESSONS[key].start() if key else self.first

    def remember(self, gesture: str = "") -> None:
        """Make a step of undo of what was changed, and note it in the address.

        Call it after the change; changes of the same ``gesture`` that follow each other quickly are
        one step. While a change is in progress, call ``address.note()`` alone.
        """
        self.memory.remember(self.state(), gesture)
        self.address.note()
        self._show_memory()

    def undo(self) -> None:
        """Return to the state before the last change."""
        self._return_to(self.memory.back())

    def redo(self) -> None:
        """Return to the state before the last undo."""
        self._return_to(self.memory.forward())

    def _return_to(self, state: State | None) -> None:
        if state is not None:
            self.say("")
            self.show(state.viewed_like(self.state()))
            self.address.note()
        self._show_memory()

    def _show_memory(self) -> None:
        self.data.undo.disabled = not self.memory.past
        self.data.redo.disabled = not self.memory.future

    # Points --------------------------------------------------------------------------------

    def load(self, points: Points, *, sample: str = "") -> None:
        """Show and fit other points; ``sample`` names a data set of the list."""
        self.points = points
        self.data.named(sample)
        self.say("")
        self._show_points()
        self._ask()
        self.remember()

    def _show_points(self) -> None:
        self.quiet = True
        self.source.data = {
            "x": self.points.X[:, 0].tolist(),
            "y": self.points.X[:, 1].tolist(),
            "label": [str(code) for code in self.points.codes.tolist()],
        }
        self.source.selected.indices = []
        self.data.pen.labels = list(self.points.names)
        self.quiet = False
        self.equal.suit(self.points)
        for panel in self.panels:
            panel.scene.frame(self.points)

    def _on_drawn(self, attr: str, old: Any, new: Any) -> None:
        """Apply points that were drawn, moved or deleted in the browser."""
        if self.quiet:
            return
        try:
            codes = [int(label) for label in new["label"]]
            X = np.column_stack([new["x"], new["y"]]) if codes else np.empty((0, 2))
            points = checked(X, codes, self.points.names, self.points.axes)
        except (ValueError, TypeError) as error:
            self.say(str(error), bad=True)
            self._show_points()
            return
        self.points = points
        self.say(f"{len(points.X)} points")
        self._ask()
        self.remember()

    def follow(self) -> None:
        """Show more of the plane where a point is outside of it."""
        window = self.panels[0].scene.window
        if joined(window, window_of(self.points)) != window:
            for panel in self.panels:
                panel.scene.frame(self.points)

    # Fits and steps ------------------------------------------------------------------------

    def changed(self, *, in_progress: bool = False) -> None:
        """Fit again after a control was changed, or while it is moved."""
        self._show_what_has_meaning()
        # Points of a file that was read without classes.
        if self.has_classes and self.points.n_classes < 2:
            self.data.choose_columns()
        self._ask()
        if in_progress:
            self.address.note()
        else:
            self.remember()

    @property
    def has_classes(self) -> bool:
        """Whether one of the algorithms tells classes apart."""
        return any(panel.algorithm.has_classes for panel in self.shown())

    def _show_what_has_meaning(self) -> None:
        """Hide classes from algorithms that have none, and the space of their weights."""
        self.data.show_classes(self.has_classes)
        algorithm = self.looked_at().algorithm
        self.equal.button.visible = algorithm.family != "regression"  # y has another unit there
        self.beside.show(algorithm)
        now = self.tabs.tabs[self.tabs.active]
        tabs = [tab for tab in self.tabs.tabs if tab is not self.weight_space]
        if algorithm.has_classes:
            tabs.insert(1, self.weight_space)
        if len(tabs) != len(self.tabs.tabs):
            self.tabs.tabs, self.tabs.active = tabs, tabs.index(now) if now in tabs else 0

    def _ask(self) -> None:
        self.downloads.link.value = ""
        self.ask(self.points)
        self.scores.follow()

    def ask(self, points: Points) -> None:
        """Fit to points that are being moved; those of the page do not change yet."""
        self.playback.to_end()
        self.wanted_step = None
        for panel in self.shown():
            panel.ask(points)

    def shown(self) -> list[Panel]:
        """Return the visible panels."""
        return self.panels if self.compare.active else self.panels[:1]

    def looked_at(self) -> Panel:
        """Return the panel that curves, weights, table, code and downloads refer to."""
        return self.panels[self.subject.active or 0] if self.compare.active else self.panels[0]

    def arrived(self, panel: Panel) -> None:
        """Draw the result of a worker."""
        if panel not in self.shown():  # hidden before its answer
            return
        outcomes = [p.outcome for p in self.shown() if p.outcome is not None]
        longest = max(outcomes, key=lambda outcome: len(outcome.frames))
        self.playback.cover(len(longest.frames), len(longest.frames) - len(longest.steps))
        if self.wanted_step is not None and all(p.has_steps for p in self.shown()):
            step, self.wanted_step = self.wanted_step, None
            self.playback.go(step)
        self.draw()
        if panel.outcome is not None and not panel.outcome.live:
            self.heard.text = html.escape(panel.described)

    def draw(self) -> None:
        """Draw the step that is shown, or the fitted models."""
        if self.quiet:
            return
        self.address.note()
        k = self.playback.step
        for panel in self.shown():
            panel.draw(k)
        if any(panel.outcome is not None and panel.outcome.live for panel in self.shown()):
            self.dragging.answered()
            return
        if not self.playback.is_running:
            self.subject.labels = [panel.algorithm.title for panel in self.panels]
            self._show_what_has_meaning()
            self.scores.follow()
            self.downloads.draw()
        self.lessons.look()
        self._draw_insight(k)

    def _draw_insight(self, k: int) -> None:
        """Draw the curves and the table; while steps follow each other, what is in sight."""
        outcome, picture = self.looked_at().outcome, self.looked_at().picture
        if outcome is None or picture is None:
            return
        running = self.playback.is_running
        in_sight = self.tabs.tabs[self.tabs.active]
        if not running:
            others = [panel.outcome for panel in self.shown() if panel is not self.looked_at()]
            self.beside.draw(outcome, k, others[0] if others else None)
        elif in_sight is self.weight_space:
            self.beside.draw_weights(outcome, k)
        else:
            self.beside.mark(outcome, k)
        if not running or in_sight is self.points_tab:
            self.table.draw(outcome, picture, at_end=k >= len(outcome.frames))
        self.card.draw(outcome, picture, k)

    def _on_compare(self, attr: str, old: Any, new: bool) -> None:
        if not self.quiet:
            self._show_second()
            self._ask()
            self.remember()

    def _show_second(self) -> None:
        """Show or hide the second algorithm."""
        self.panels[1].show(self.compare.active)
        self.scenes.css_classes = ["beside", "two"] if self.compare.active else ["beside"]
        self.subject.visible = self.compare.active
        self._show_what_has_meaning()

    def _on_dark(self, attr: str, old: Any, new: bool) -> None:
        self.look.set(dark=new)
        for panel in self.panels:
            panel.scene.dress()
        self.beside.dress()
        self.scores.figures.dress()
        self.draw()


# Run in the browser, since the next click may come before an answer of the server.
DARK = "document.documentElement.dataset.theme = cb_obj.active ? 'dark' : 'light'"
