"""Fits off the event loop: first the answer, then how the solver came to it, step by step."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import maxmargin as mm

from ..arrays import Floats, Integers
from .algorithms import ALGORITHMS
from .points import Points

# Steps that are kept of a fit: more cannot be told apart on a slider.
MOST_STEPS = 2000
MOST_NUMBERS = 1_000_000
# Seconds after which a fit has to say what it has.
PATIENCE = 20.0
# Points of which the widest band is found before every fit.
FEW = 300


@dataclass(frozen=True, eq=False)
class Frame:
    """Where the solver of a task stood: its planes, or its α.

    ``exact`` and ``unit`` are those of `maxmargin.Step`.
    """

    task: int
    iteration: int
    sample: int | None
    errors: int
    objective: float
    primal: float
    dual: float
    w: Floats
    b: Floats
    alpha: Floats | None
    rows: Integers
    labels: Any
    exact: bool
    unit: str

    @classmethod
    def of(cls, step: mm.Step) -> Frame:
        """Keep what a step shows now; the solver works on."""
        now = step.snapshot()
        assert step.rows is not None
        return cls(
            step.task, step.iteration, step.sample, step.errors, step.objective, step.primal,
            step.dual, now.w.copy(), now.b.copy(), None if now.alpha is None else now.alpha.copy(),
            step.rows, step.labels, step.exact, step.unit,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be fitted, on what."""

    points: Points
    algorithm: str
    values: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out: a model, or what was wrong; then its steps.

    ``warnings`` are what the fit warned of, each once; ``overdue`` says that it was stopped after
    `PATIENCE` seconds.
    """

    request: Request
    model: Any = None
    failure: str | None = None
    seconds: float = 0.0
    verdict: mm.Separability | None = None
    frames: list[Frame] = field(default_factory=list)
    recorded: bool = False
    complete: bool = False
    warnings: tuple[str, ...] = ()
    overdue: bool = False


class Worker:
    """One thread that works on what was asked for last, and drops everything else.

    Parameters
    ----------
    tell : callable
        Called from the thread with an `Outcome` when there is an answer, and again with its steps.
    """

    def __init__(self, tell: Callable[[Outcome], None]) -> None:
        self.tell = tell
        self.wanted = 0
        self.judged: tuple[Points, mm.Separability | None] | None = None
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="maxmargin-lab")

    def ask(self, request: Request) -> None:
        """Fit this next; what is at work stops at its next step."""
        self.wanted += 1
        self.pool.submit(self._work, request, self.wanted)

    def _verdict(self, points: Points) -> mm.Separability | None:
        """Decide whether a plane exists at all; the same points are decided once."""
        if self.judged is None or self.judged[0] is not points:
            two = np.unique(points.labels).size == 2
            # The widest band takes longer to find; of few points it is what the machines find.
            few = len(points.X) <= FEW
            report = mm.separability(points.X, points.labels, maximum_margin=few) if two else None
            self.judged = points, report
        return self.judged[1]

    def close(self) -> None:
        """Stop, and let go of the thread."""
        self.wanted += 1
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _work(self, request: Request, number: int) -> None:
        if number != self.wanted:
            return
        end = time.perf_counter() + PATIENCE

        def is_over(step: Any = None) -> bool:
            return number != self.wanted or time.perf_counter() > end

        outcome = answered(request, is_over, self._verdict(request.points))
        outcome = replace(outcome, overdue=time.perf_counter() > end)
        if number == self.wanted:
            self.tell(outcome)
        if outcome.model is None:
            return
        frames, complete = ([], False) if is_over() else recorded(request, is_over)
        outcome = replace(outcome, frames=frames, recorded=True, complete=complete)
        if number == self.wanted:
            self.tell(outcome)


def answered(
    request: Request, is_over: Callable[[Any], bool], verdict: mm.Separability | None = None
) -> Outcome:
    """Fit; what goes wrong is said, not raised."""
    X, y = request.points.X, request.points.labels
    if np.unique(y).size < 2:
        return Outcome(request, failure="Draw points of two classes at least.")
    model = ALGORITHMS[request.algorithm].build(request.values, callback=is_over)
    started = time.perf_counter()
    with heard() as said:
        try:
            model.fit(X, y)
        except mm.NotSeparableError as error:
            what = "No plane separates" if _is_linear(model) else "The kernel does not separate"
            return Outcome(request, failure=f"{what}: {error}", verdict=verdict)
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            return Outcome(request, failure=str(error), verdict=verdict)
    seconds = time.perf_counter() - started
    model.set_params(callback=None)
    return Outcome(request, model, None, seconds, verdict, warnings=tuple(dict.fromkeys(said)))


def _is_linear(model: Any) -> bool:
    return getattr(model, "kernel", "linear") == "linear"


_listening = threading.local()


@contextmanager
def heard() -> Iterator[list[str]]:
    """Yield a list that gathers the warnings of this thread.

    `warnings.catch_warnings` changes what all threads do, and two fits may be at work: here one
    function tells by the thread whose warning it is.
    """
    if warnings.showwarning is not _hear:
        _listening_before.append(warnings.showwarning)
        warnings.showwarning = _hear
    for category in (UserWarning, RuntimeWarning):  # each time, not once per place in the code
        warnings.simplefilter("always", category)
    _listening.said = []
    try:
        yield _listening.said
    finally:
        _listening.said = None


_listening_before: list[Any] = []


def _hear(
    message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    said = getattr(_listening, "said", None)
    if said is None:
        _listening_before[-1](message, category, filename, lineno, file, line)
    elif issubclass(category, (UserWarning, RuntimeWarning)):
        said.append(str(message))


def recorded(request: Request, is_over: Callable[[Any], bool]) -> tuple[list[Frame], bool]:
    """Fit again with somebody watching every step: the same way, for the seed is the same.

    Return the steps, and whether they lead to the end of every task.
    """
    n_tasks = 1 if request.points.n_classes == 2 else 6
    # Each step holds a number a point.
    most = min(MOST_STEPS // n_tasks, max(50, MOST_NUMBERS // len(request.points.X)))
    watcher = _Watcher(most, is_over)
    model = ALGORITHMS[request.algorithm].build(request.values, callback=watcher)
    with heard():  # the first fit has said it
        model.fit(request.points.X, request.points.labels)
    return watcher.frames, bool(watcher.frames) and not watcher.cut


class _Watcher:
    """Keeps the first steps of every task, and then stops it."""

    every_update = True

    def __init__(self, most: int, is_over: Callable[[Any], bool]) -> None:
        self.most, self.is_over = most, is_over
        self.frames: list[Frame] = []
        self.counts: dict[int, int] = {}
        self.cut = False

    def __call__(self, step: Any) -> bool:
        seen = self.counts[step.task] = self.counts.get(step.task, 0) + 1
        frame = Frame.of(step)
        runs_away = not (np.isfinite(frame.w).all() and np.isfinite(frame.b).all())
        if not runs_away:
            self.frames.append(frame)
        stop = seen >= self.most or runs_away or self.is_over(step)
        self.cut = self.cut or stop
        return stop


def weights(frame: Frame, X: Floats) -> Floats:
    """Return w (n_vectors, 2) of a frame, from α of a linear kernel."""
    if len(frame.w):
        return frame.w
    return np.atleast_2d((frame.alpha * frame.labels) @ X[frame.rows])


def state(frames: list[Frame], k: int) -> dict[int, Frame]:
    """Return the last frame of every task up to the k-th of all."""
    return {frame.task: frame for frame in frames[: k + 1]}


def evaluated(frame: Frame, model: Any, X: Floats, rows: Floats) -> Floats:
    """Return g of rows by the planes or the α of a frame: (n, n_vectors)."""
    if len(frame.w):
        return rows @ frame.w.T + frame.b
    assert frame.alpha is not None
    K = model.kernel_(rows, X[frame.rows])
    return np.asarray((K @ (frame.alpha * frame.labels) + frame.b[0])[:, np.newaxis])
