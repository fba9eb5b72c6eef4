"""Cross-validated scores on the page: asked for, drawn, and chosen from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import Div, Select

from . import score_words as words
from .background import Background
from .score_figures import ScoreFigures
from .searching import Question, Scores, search
from .style import button

ASK, STOP = "compute scores", "stop"
CHOOSE = ("", "choose a candidate …")


class ScoreView:
    """The scores of the points of ``lab`` for the machine that is looked at.

    They are computed when they are asked for, and dropped when points or settings change.
    """

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.question: Question | None = None
        self.scores: Scores | None = None
        self.running = False
        self.quiet = False  # while the choice is changed by the program
        self.background = Background(self._search)
        self.figures = ScoreFigures(lab.look, self._choose_at)
        self.ask = button(ASK, self._on_ask, 120, "ask-scores")
        self.best = button("use the best", lambda: self._choose("best"), 110)
        self.simplest = button("use the simplest", lambda: self._choose("simplest"), 130)
        self.select = Select(title="candidate", options=[CHOOSE], value="", name="candidate",
                             sizing_mode="stretch_width")  # fmt: skip
        self.select.on_change("value", lambda attr, old, new: self._on_select(new))
        wide = {"sizing_mode": "stretch_width"}
        # A screen reader reads what is new in it; the sliders are read as they are moved.
        self.said = Div(name="score-words", html_attributes={"role": "status"}, **wide)
        self.here = Div(name="score-here", **wide)
        self.legend = Div(name="score-legend", **wide)
        self.choices = column(row(self.best, self.simplest), self.select, **wide)
        self.widgets = column(
            self.ask, self.figures.map, self.figures.curve, self.legend, self.said, self.here,
            self.choices, **wide,
        )  # fmt: skip

    def close(self) -> None:
        """Stop the thread."""
        self.background.close()
        self.scores = None

    def follow(self) -> None:
        """Show where the sliders are; drop scores of other points or settings."""
        question = Question.of(self.lab.points, *self.lab.looked_at().chosen)
        if question != self.question:
            self.background.drop()
            had_scores, self.scores = self.scores is not None, None
            self.question, self.running = question, False
            self._show_none("Points or settings have changed. " if had_scores else "")
        elif self.scores is not None:
            self._show_sliders(self.scores)

    # The search ----------------------------------------------------------------------------

    def _on_ask(self) -> None:
        """Begin a search, or stop the one that runs."""
        if self.question is None or self.question.refusal():
            return
        self.running = not self.running
        if self.running:
            self._show(Scores.none_of(self.question))
            self.background.ask(self.question)
        elif self.scores is not None:
            self.background.drop()
            self._show(self.scores)

    def _search(self, question: Question, is_dropped: Callable[[], bool]) -> None:
        search(question, is_dropped, self._tell, self._is_busy)

    def _is_busy(self) -> bool:
        """Say whether fits of the page are at work, which come first."""
        return any(panel.worker.is_busy for panel in self.lab.panels)

    def _tell(self, scores: Scores) -> None:
        """Pass scores from the thread to the event loop."""
        self.lab.document.add_next_tick_callback(partial(self._arrive, scores))

    def _arrive(self, scores: Scores) -> None:
        if scores.question is self.question and self.running:  # not dropped in the meantime
            self.running = not scores.is_over
            self._show(scores)

    # What is shown -------------------------------------------------------------------------

    def _show_none(self, begin: str) -> None:
        """Show what a search computes, or why there is none."""
        assert self.question is not None
        refusal = self.question.refusal()
        self.ask.label, self.ask.disabled = ASK, bool(refusal)
        self.figures.clear()
        self.legend.visible = self.choices.visible = False
        self.said.text = words.line("facts", refusal or begin + words.offer(self.question))
        self.here.text = ""

    def _show(self, scores: Scores) -> None:
        self.scores = scores
        self.ask.label = STOP if self.running else ASK
        labels = [words.label(scores, k) for k in range(scores.known.size)]
        self.figures.draw(scores, labels, words.title(scores), words.summary(scores))
        self.legend.visible, self.legend.text = scores.best is not None, words.legend(scores)
        self.choices.visible = scores.best is not None and not self.running
        self.said.text = (
            "" if self.running else "".join(words.line(*each) for each in words.said(scores))
        )
        if not self.running:
            self.select.options = [CHOOSE, *words.options(scores)]
        self._show_sliders(scores)

    def _show_sliders(self, scores: Scores) -> None:
        cost, gamma = self._sliders()
        self.figures.show_sliders(cost, gamma)
        if self.running or scores.best is None:
            self.here.text = ""
            return
        self.here.text = words.line(*words.said_of_sliders(scores, cost, gamma))
        k = scores.at(cost, gamma)
        is_candidate = k is not None and scores.known[k] and words.is_at(scores, k, cost, gamma)
        self.quiet = True
        self.select.value = str(k) if is_candidate else ""
        self.quiet = False

    def _sliders(self) -> tuple[float, float | None]:
        """Return where the sliders of C and γ are."""
        values = self.lab.looked_at().values
        has_gamma = self.question is not None and bool(self.question.gammas.size)
        return float(values["C"]), float(values["gamma"]) if has_gamma else None

    # Choices -------------------------------------------------------------------------------

    def _choose_at(self, cost: float, gamma: float | None) -> None:
        """Choose the cell that was clicked on."""
        if self.scores is not None:
            self._put(self.scores.at(cost, gamma))

    def _choose(self, which: str) -> None:
        if self.scores is not None:
            self._put(getattr(self.scores, which))

    def _on_select(self, value: str) -> None:
        if not self.quiet and value.isdecimal():
            self._put(int(value))

    def _put(self, candidate: int | None) -> None:
        """Move the sliders to a candidate."""
        if self.scores is None or candidate is None or candidate >= self.scores.known.size:
            return
        cost, gamma = self.scores.place(candidate)
        self.lab.looked_at().put({"C": cost} | ({} if gamma is None else {"gamma": gamma}))
