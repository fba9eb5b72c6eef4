"""What a page of the lab shows, as a record: for undo, addresses and lessons."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .points import Points

# An algorithm and its settings.
Chosen: TypeAlias = tuple[str, Mapping[str, Any]]
UNDO_STEPS = 50
# Seconds within which changes of one slider by the keyboard are one step of undo.
ONE_GESTURE = 1.0


@dataclass(frozen=True, eq=False)
class State:
    """The contents of a page.

    Parameters
    ----------
    points : Points
    chosen : tuple of (str, mapping)
        The algorithms of both panels and their settings.
    compared : bool
        Whether the second one is shown.
    sample : str
        The name of the data set; "" where the points are others.
    lesson : str
        The key of the lesson that is open, "" for none.
    met : tuple of int
        The goals of this lesson that have been reached.
    done : tuple of str
        The lessons that have been completed.
    tab : str
        The title of the tab that is shown.
    subject : int
        The panel that tabs refer to.
    step : int or None
        The step that is shown, None for the end.
    dark : bool or None
        None for what the system prefers.
    """

    points: Points
    chosen: tuple[Chosen, ...]
    compared: bool = False
    sample: str = ""
    lesson: str = ""
    met: tuple[int, ...] = ()
    done: tuple[str, ...] = ()
    tab: str = ""
    subject: int = 0
    step: int | None = None
    dark: bool | None = None

    @property
    def shown(self) -> tuple[Chosen, ...]:
        """The algorithms that are shown."""
        return self.chosen if self.compared else self.chosen[:1]

    @property
    def place(self) -> tuple[str, str, tuple[str, ...]]:
        """What a step back in the browser returns to: data set, lesson and algorithms."""
        return self.sample, self.lesson, tuple(key for key, _ in self.shown)

    def is_like(self, other: State) -> bool:
        """Say whether undo would change nothing."""
        mine, others = ((s.points, s.chosen, s.compared, s.sample, s.lesson) for s in (self, other))
        return mine == others

    def viewed_like(self, other: State) -> State:
        """Return this state in the tab and the colours of another, and with what it achieved."""
        met = other.met if self.lesson == other.lesson else self.met
        return replace(
            self, met=met, done=other.done, tab=other.tab, subject=other.subject, step=None,
            dark=other.dark,
        )  # fmt: skip


class Memory:
    """The states before and after the present one, for undo and redo.

    Parameters
    ----------
    now : State
    clock : callable
        Returns seconds.
    """

    def __init__(self, now: State, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.past: list[State] = []
        self.future: list[State] = []
        self._clock = clock
        self._gesture, self._at = "", -ONE_GESTURE

    def remember(self, state: State, gesture: str = "") -> None:
        """Make a changed state the present one.

        Changes of one ``gesture`` that follow each other quickly are one step.
        """
        if state.is_like(self.now):
            return
        at = self._clock()
        continued = bool(gesture) and gesture == self._gesture and at - self._at < ONE_GESTURE
        if not continued:
            self.past = [*self.past[-UNDO_STEPS + 1 :], self.now]
        self.now, self.future = state, []
        self._gesture, self._at = gesture, at

    def back(self) -> State | None:
        """Return to the state before, if there is one."""
        return self._travel(self.past, self.future)

    def forward(self) -> State | None:
        """Return to the state that was undone last, if there is one."""
        return self._travel(self.future, self.past)

    def _travel(self, source: list[State], other: list[State]) -> State | None:
        if not source:
            return None
        other.append(self.now)
        self.now, self._gesture = source.pop(), ""
        return self.now
