"""One algorithm on the page: its controls, its picture, its certificate."""

from __future__ import annotations

import html
from functools import partial
from typing import Any

from bokeh.layouts import column
from bokeh.models import ColumnDataSource, CustomJS, Div, Select, Slider

from .algorithms import ALGORITHMS, Algorithm, Choice, Slide
from .description import described
from .drawing import picture_of
from .figures import SceneFigure
from .fitting import Outcome, Request, Worker
from .picture import Picture
from .points import Points
from .style import describe
from .words import line_of, words_of

# Delay after which a figure that was moved is redrawn.
REDRAW_MILLISECONDS = 150
COMPILING = "Compiling, once per machine: the first fit of an algorithm takes seconds."


class Panel:
    """An algorithm with its settings and its result; ``lab`` is notified of new results."""

    def __init__(self, lab: Any, key: str, name: str) -> None:
        self.lab = lab
        self.name = name
        self.request: Request | None = None
        self.outcome: Outcome | None = None
        self.picture: Picture | None = None
        self.described = ""
        self.quiet = False
        self.values = ALGORITHMS[key].defaults()
        self.made: dict[Choice | Slide, Any] = {}
        self.select = Select(
            title="algorithm", value=key, options=_by_family(), width=250, name=f"algorithm-{name}"
        )
        self.select.on_change("value", lambda attr, old, new: self._on_algorithm(new))
        self.words = Div(width=250, name=f"words-{name}")
        self.controls = column(width=250)
        self.widgets = column(self.select, self.words, self.controls, width=260)
        self.scene = SceneFigure(lab.look, lab.source, name)
        for axis in (self.scene.figure.x_range, self.scene.figure.y_range):
            axis.on_change("start", self._on_moved)
            axis.on_change("end", self._on_moved)
        self.redrawing: Any = None
        self.proof = Div(text="", name=f"proof-{name}", sizing_mode="stretch_width")
        # Told by the browser; a change of the text itself would fold it again.
        self.unfolded = ColumnDataSource(data={"open": [False]}, name=f"unfolded-{name}")
        told = {"proof": self.proof, "unfolded": self.unfolded}
        self.listen = CustomJS(args=told, code=LISTEN)
        self.proof.js_on_change("text", self.listen)
        self.worker = Worker(self._tell, self._tell_compiling)
        self._show_controls()

    @property
    def chosen(self) -> tuple[str, dict[str, Any]]:
        """The algorithm and its settings."""
        return self.select.value, dict(self.values)

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm."""
        return ALGORITHMS[self.select.value]

    @property
    def has_steps(self) -> bool:
        """Whether the answer to the last request is there, and its steps."""
        if self.outcome is None or self.outcome.request is not self.request:
            return False
        return self.outcome.recorded or self.outcome.model is None

    def choose(self, key: str, values: dict[str, Any]) -> None:
        """Set an algorithm and its settings, without a fit."""
        self.quiet = True
        changed, self.select.value = key != self.select.value, key
        self.quiet = False
        self.values = values
        if changed:
            self._show_controls()
        else:
            self._set_widgets()
            self._show_those_that_matter()

    def put(self, values: dict[str, float]) -> None:
        """Move sliders, and fit once."""
        self.values |= values
        self._set_widgets()
        self.lab.changed()

    def show(self, visible: bool) -> None:
        """Show or hide the panel."""
        for part in (self.widgets, self.scene.figure, self.proof):
            part.visible = visible

    def ask(self, points: Points) -> None:
        """Fit to these points, outside of the event loop."""
        self.request = Request(points, *self.chosen)
        self.proof.css_classes = ["stale"]
        self.worker.ask(self.request)

    def close(self) -> None:
        """Stop working."""
        self.worker.close()
        self.outcome = None

    def _tell(self, outcome: Outcome) -> None:
        """Pass a result from the thread to the event loop."""
        self.lab.document.add_next_tick_callback(partial(self._arrive, outcome))

    def _tell_compiling(self) -> None:
        """Pass on from the thread that functions are being compiled."""
        self.lab.document.add_next_tick_callback(self._show_compiling)

    def _show_compiling(self) -> None:
        if "stale" in self.proof.css_classes:  # the answer may be there already
            self.proof.text, self.proof.css_classes = line_of("step", COMPILING), ["stale", "busy"]

    def _arrive(self, outcome: Outcome) -> None:
        if outcome.request is not self.request:  # there is a newer request
            return
        known = self.outcome
        if known and known.request is outcome.request and known.stage > outcome.stage:
            return  # callbacks may change places
        self.outcome = outcome
        self.proof.css_classes = []
        self.lab.arrived(self)

    def draw(self, k: int) -> None:
        """Draw step k, or the fitted model after the last step."""
        if self.outcome is not None:
            self.picture = picture_of(
                self.outcome, k if k < len(self.outcome.frames) else None, self.scene.window
            )
            self.scene.draw(self.picture, self.outcome, k)
            title = self.scene.figure.title.text
            if not (self.outcome.live or self.lab.playback.is_running):
                self.described = described(self.outcome, self.picture, k, title)
                describe(self.scene.figure, self.described, points=True)
            is_open = any(self.unfolded.data["open"])
            self.proof.text = words_of(self.outcome, k, title, is_open=is_open)

    def _on_moved(self, attr: str, old: float, new: float) -> None:
        """Redraw after the view was moved."""
        if not self.scene.follow_view():
            return
        if self.redrawing is not None:
            self.lab.document.remove_timeout_callback(self.redrawing)
        self.redrawing = self.lab.document.add_timeout_callback(self._redraw, REDRAW_MILLISECONDS)

    def _redraw(self) -> None:
        self.redrawing = None
        self.draw(self.lab.playback.step)

    # Controls ------------------------------------------------------------------------------

    def _on_algorithm(self, key: str) -> None:
        if self.quiet:
            return
        self.values = ALGORITHMS[key].defaults()
        self._show_controls()
        self.lab.changed()

    def _show_controls(self) -> None:
        algorithm = self.algorithm
        self.scene.show_classes(algorithm.has_classes)
        sentence, equation = map(html.escape, (algorithm.sentence, algorithm.equation))
        self.words.text = f"<p>{sentence}</p><code>{equation}</code>"
        self.by_name = {control.name: self._widget(control) for control in algorithm.controls}
        self._set_widgets()
        self.controls.children = list(self.by_name.values())
        self._show_those_that_matter()

    def _show_those_that_matter(self) -> None:
        for control in self.algorithm.controls:
            self.by_name[control.name].visible = self.algorithm.matters(control, self.values)

    def _widget(self, control: Choice | Slide) -> Any:
        """Return the widget of a control, which algorithms share: browsers keep replaced ones."""
        if control not in self.made:
            if isinstance(control, Choice):
                self.made[control] = self._select_of(control)
            else:
                self.made[control] = self._slider_of(control)
        return self.made[control]

    def _set_widgets(self) -> None:
        """Show the values of the algorithm in its widgets."""
        self.quiet = True
        for name, widget in self.by_name.items():
            widget.value = self.values[name]
        self.quiet = False

    def _select_of(self, control: Choice) -> Select:
        select = Select(
            title=control.title,
            value=control.default,
            options=list(control.options),
            width=120 if max(map(len, control.options)) < 11 else 240,
            name=f"{control.name}-{self.name}",
        )
        select.on_change("value", lambda attr, old, new: self._set(control, new))
        return select

    def _slider_of(self, control: Slide) -> Slider:
        slider = Slider(
            title=control.title_at(float(control.default)), start=control.low, end=control.high,
            step=control.step, value=control.default, show_value=False, width=240,
            name=f"{control.name}-{self.name}",
        )  # fmt: skip
        slider.on_change("value", lambda attr, old, new: self._slide(control, slider, new))
        slider.on_change("value_throttled", lambda attr, old, new: self.lab.remember(slider.name))
        return slider

    def _slide(self, control: Slide, slider: Slider, value: float) -> None:
        slider.title = control.title_at(value)
        self._set(control, int(value) if control.step == 1 else value, in_progress=True)

    def _set(self, control: Choice | Slide, value: Any, *, in_progress: bool = False) -> None:
        if control.accepts(value):
            self.values[control.name] = value
            self._show_those_that_matter()
            if not self.quiet:
                self.lab.changed(in_progress=in_progress)


def _by_family() -> dict[str, list[tuple[str, str]]]:
    """Return the algorithms under the headings of the choice."""
    headings = {"regression": "regression on a line", "one-class": "one class"}
    found: dict[str, list[tuple[str, str]]] = {}
    for key, algorithm in ALGORITHMS.items():
        heading = headings.get(algorithm.family, "classes")
        found.setdefault(heading, []).append((key, algorithm.title))
    return found


# The text of a proof is replaced with every answer, and stays unfolded.
LISTEN = """
const view = Bokeh.index.find_one_by_id(proof.id)
if (view != null && !view.shadow_el.is_heard) {
  view.shadow_el.is_heard = true
  const told = (event) => { unfolded.data = {open: [event.target.open]} }
  view.shadow_el.addEventListener('toggle', told, true)
}
"""
