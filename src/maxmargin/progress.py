"""How a fit goes: Step, Limits, Recorder, and Progress, the one hook of callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite, nan
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats, Integers
from .geometry import Hyperplane
from .solution import Solution, Status, Trace


@dataclass(frozen=True)
class Step:
    """Where a solver stands: handed to callbacks between the slices of its work.

    Parameters
    ----------
    iteration : int
        Passes, steps or rounds so far, from 1: see ``unit`` of `Trace`.
    objective : float
        The criterion that the algorithm descends.
    errors : int
        Samples on the wrong side. If ``exact``, of the plane that ``snapshot`` returns; otherwise
        each as it was when last visited, by a plane that has moved since: the mistakes met during
        a pass, which may be many more or far fewer than the errors of any one plane.
        Regressions and one-class machines make none: what is counted there is of no use.
    violation : float
        How far the worst condition is from holding; 0 at a solution.
    seconds : float
        Since the solver started.
    task : int
        Which of the binary tasks of a many-class fit.
    sample : int or None
        Row of X being corrected, for callbacks that take every update.
    primal, dual : float
        P of the current plane and D of the current α of a support vector machine, those that
        ``snapshot`` returns, in the units of its certificate: P ≥ D, and P = D at the optimum.
        NaN where the algorithm does not compute them: separating rules, steps on some samples.
    exact : bool
        Whether ``errors`` counts what the plane of this step misclassifies.
    unit : str
        What an iteration is, as of `Trace`.
    rows, labels : ndarray of shape (n,) or None
        The rows of X that the task is about, in the order of α, and their y = ±1 (class numbers in
        a joint task, targets of a regression, which has two α per row).
    snapshot : callable
        Returns the current answer as a `Solution`, in copies of its own.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> recorder = mm.Recorder()
    >>> model = mm.Perceptron(shuffle=False, callback=recorder).fit(X, y)
    >>> last = recorder.steps[-1]
    >>> last.unit, last.errors, last.plane().same_plane(model.hyperplane_)
    ('pass', 0, True)
    """

    iteration: int
    objective: float
    errors: int
    violation: float
    seconds: float
    task: int = 0
    sample: int | None = None
    primal: float = np.nan
    dual: float = np.nan
    exact: bool = False
    unit: str = "step"
    rows: Integers | None = field(default=None, repr=False, compare=False)
    labels: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    snapshot: Callable[[], Solution] = field(repr=False, compare=False, kw_only=True)

    def planes(self) -> tuple[Floats, Floats]:
        """Return copies of the current w (n_vectors, d) and b (n_vectors,).

        Returns
        -------
        w : ndarray of shape (n_vectors, n_features)
            Weight vectors.
        b : ndarray of shape (n_vectors,)
            Biases.
        """
        solution = self.snapshot()
        return solution.w, solution.b

    def plane(self) -> Hyperplane:
        """Return the current plane of a two-class task.

        Returns
        -------
        plane : Hyperplane
            The plane.
        """
        w, b = self.planes()
        if len(w) != 1:
            raise ValueError(f"{len(w)} weight vectors, not one plane: use planes().")
        return Hyperplane(w[0], float(b[0]))

    def alpha(self) -> Floats | None:
        """Return a copy of the current α of a dual algorithm, None of a primal one.

        Returns
        -------
        alpha : ndarray of shape (n,) or None
            One number per row of the task.
        """
        return self.snapshot().alpha


Callback = Callable[[Step], Any]


class Report(NamedTuple):
    """What a solver reports at the end of an iteration; the names are those of `Step`."""

    objective: float
    errors: int
    violation: float
    snapshot: Callable[[], Solution]
    primal: float = np.nan
    dual: float = np.nan
    exact: bool | None = None


# What an iteration of a trace may be.
UNITS = ("step", "pass", "round", "iteration")


def counted(n: int, unit: str) -> str:
    """Return a number of iterations in words.

    >>> counted(1, "pass"), counted(2439, "step"), counted(3, "pass")
    ('1 pass', '2,439 steps', '3 passes')
    """
    ending = "" if n == 1 else "es" if unit.endswith("s") else "s"
    return f"{n:,} {unit}{ending}"


@dataclass(frozen=True)
class Limits:
    """When a solver gives up: after so many iterations or seconds; None sets no limit."""

    iterations: int | None = None
    seconds: float | None = None

    def after(self, seconds: float) -> Limits:
        """Return what is left of the time after so many seconds."""
        left = None if self.seconds is None else max(self.seconds - seconds, 0.0)
        return replace(self, seconds=left)

    def reached(self, n_iter: int, progress: Progress) -> Status | None:
        """Return which limit has been reached, if one has."""
        if self.iterations is not None and n_iter >= self.iterations:
            return Status.ITERATION_LIMIT
        if self.seconds is not None and progress.expected_seconds >= self.seconds:
            return Status.TIME_LIMIT
        return None


class Progress:
    """Clock, trace and callbacks of one solver run: the single hook that everyone listens to.

    Parameters
    ----------
    callbacks : sequence of callables
        Each is given a `Step`; a true answer stops the solver, which then returns what it has.
        A callback with a true attribute ``every_update`` is called after every correction of the
        online rules as well, and makes rounds of one pair of α.
    task : int, default=0
        Which task of a many-class fit this is.
    rows, labels : ndarray, optional
        What the task is about.
    stop : Event, optional
        Stops the solver, as a callback does, once it is set.

    Attributes
    ----------
    unit : str
        What an iteration is, as of `Trace`; set by the solver.
    """

    unit = "step"

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        task: int = 0,
        rows: Integers | None = None,
        labels: NDArray[Any] | None = None,
        stop: Event | None = None,
    ) -> None:
        self.callbacks, self.stop = list(callbacks), stop
        self.watchers = [c for c in callbacks if getattr(c, "every_update", False)]
        self.task, self.rows, self.labels = task, rows, labels
        self.started = time.perf_counter()
        self.history: list[tuple[int, float, int, float, float]] = []
        self.bounds: list[tuple[float, float]] = []
        self.exact: list[bool] = []

    @property
    def seconds(self) -> float:
        """Time since the solver started."""
        return time.perf_counter() - self.started

    @property
    def expected_seconds(self) -> float:
        """Time since the solver started in the middle of the next iteration, if it is as the last.

        One that would end beyond a limit by more than it lies before it is not begun.
        """
        times = [record[-1] for record in self.history[-2:]]
        return self.seconds + (0.5 * (times[1] - times[0]) if len(times) == 2 else 0.0)

    def iteration(
        self,
        objective: float,
        errors: int,
        violation: float,
        snapshot: Callable[[], Solution],
        *,
        primal: float = np.nan,
        dual: float = np.nan,
        exact: bool | None = None,
    ) -> bool:
        """Record the end of an iteration; return whether a callback stops the fit.

        ``primal`` and ``dual`` are those of `Step`; one that is infinite says nothing. ``exact`` is
        that of `Step`; by default errors are exact where P is known, which takes the scores of all
        samples.
        """
        report = Report(objective, errors, violation, snapshot, primal, dual, exact)
        return self.record(report)

    def record(self, report: Report) -> bool:
        """Record a report; return whether the fit is to stop."""
        number, violation = len(self.history) + 1, float(report.violation)
        record = (number, float(report.objective), int(report.errors), violation, self.seconds)
        self.history.append(record)
        primal = float(report.primal) if isfinite(report.primal) else nan
        dual = float(report.dual) if isfinite(report.dual) else nan
        self.bounds.append((primal, dual))
        self.exact.append(isfinite(primal) if report.exact is None else report.exact)
        if not self.callbacks:
            return self.stop is not None and self.stop.is_set()
        step = Step(
            *record, self.task, primal=primal, dual=dual, exact=self.exact[-1], unit=self.unit,
            rows=self.rows, labels=self.labels, snapshot=report.snapshot,
        )  # fmt: skip
        return self._tell(self.callbacks, step)

    def passed(self, reports: Sequence[Sequence[float]]) -> None:
        """Record iterations that nobody listened to: objective, errors and violation of each."""
        number, seconds = len(self.history), self.seconds
        self.history += [
            (number + k, objective, int(errors), violation, seconds)
            for k, (objective, errors, violation) in enumerate(reports, start=1)
        ]
        self.bounds += [(nan, nan)] * len(reports)
        self.exact += [False] * len(reports)

    def measured(self, primal: float, dual: float) -> None:
        """Enter into the trace what has become known after the last iteration, if there was one."""
        if self.bounds:
            before = self.bounds[-1]
            self.bounds[-1] = (
                float(primal) if isfinite(primal) else before[0],
                float(dual) if isfinite(dual) else before[1],
            )

    def update(self, objective: float, sample: int, snapshot: Callable[[], Solution]) -> bool:
        """Call the callbacks that take every update; return whether one of them stops the fit."""
        number = len(self.history) + 1
        step = Step(
            number, objective, 1, np.nan, self.seconds, self.task, sample, unit=self.unit,
            rows=self.rows, labels=self.labels, snapshot=snapshot,
        )  # fmt: skip
        return self._tell(self.watchers, step)

    def trace(self) -> Trace:
        """Return the recorded iterations as arrays."""
        columns = list(zip(*self.history, strict=True)) or [()] * 5
        iteration, errors = (np.array(columns[k], dtype=np.int64) for k in (0, 2))
        objective, violation, seconds = (np.array(columns[k], dtype=float) for k in (1, 3, 4))
        primal, dual = np.array(self.bounds, dtype=float).reshape(-1, 2).T.copy()
        exact = np.array(self.exact, dtype=bool)
        return Trace(
            iteration, objective, errors, violation, seconds, primal, dual, exact, self.unit
        )

    @staticmethod
    def _tell(callbacks: Sequence[Callback], step: Step) -> bool:
        # Everyone hears of the step, also after one of them has asked to stop.
        answers = [bool(callback(step)) for callback in callbacks]
        return any(answers)


class Recorder:
    """A callback that keeps the steps of a fit, with the planes or α they went through.

    Parameters
    ----------
    every_update : bool, default=False
        Keep every correction of an online rule, and every pair of α that SMO moves, and not only
        the end of every pass or round.

    Attributes
    ----------
    steps : list of Step
        Each returns the plane or α of its own time.

    Examples
    --------
    >>> import maxmargin as mm
    >>> recorder = mm.Recorder(every_update=True)
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> model = mm.Perceptron(callback=recorder).fit(X, y)
    >>> sum(step.sample is not None for step in recorder.steps) == model.n_updates_
    True
    """

    def __init__(self, *, every_update: bool = False) -> None:
        self.every_update = every_update
        self.steps: list[Step] = []

    def __call__(self, step: Step) -> None:
        # The solver works on after this call: what it shows now has to be kept now.
        self.steps.append(replace(step, snapshot=partial(copy, step.snapshot())))
