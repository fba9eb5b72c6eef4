"""Fits outside of the event loop: first the result, then the steps of the solver."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm

from ..arrays import Floats, Integers
from ..diagnostics.fitted_model import ModelLike
from ..kernels import Linear
from .algorithms import ALGORITHMS, Algorithm
from .background import Background, Dropped
from .points import Points

# Of w and b; with coordinates of up to 10⁹ larger ones may overflow.
MOST_WEIGHT = 1e290


@dataclass(frozen=True)
class Limits:
    """Limits of the fits of the page."""

    # Steps that are kept of a fit, and numbers that they hold.
    most_steps: int = 2000
    most_numbers: int = 1_000_000
    # After which a fit is stopped.
    seconds: float = 20.0
    # Points up to which the widest band is found after every fit.
    most_band_points: int = 300
    # Without a newer request for so long, steps and separability are computed, too: while a point
    # or a slider is being moved, each position is only fitted.
    pause_seconds: float = 0.15
    # Points of a curve of convergence, of which twice as many are collected before thinning.
    most_curve_points: int = 400


LIMITS = Limits()
# How failures of a hard margin begin.
NO_PLANE, NO_KERNEL = "No plane separates", "The kernel does not separate"


@dataclass(frozen=True, eq=False)
class Frame:
    """The state of the solver of a task: its planes, or its α.

    ``exact`` and ``unit`` are those of `maxmargin.Step`; ``number`` counts the steps of all tasks,
    and is 0 before the first one.
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
    number: int

    @classmethod
    def of(cls, step: mm.Step, number: int) -> Frame:
        """Copy the state of a step, which the solver changes."""
        now = step.snapshot()
        assert step.rows is not None
        return cls(
            step.task, step.iteration, step.sample, step.errors, step.objective, step.primal,
            step.dual, now.w.copy(), now.b.copy(), None if now.alpha is None else now.alpha.copy(),
            step.rows, step.labels, step.exact, step.unit, number,
        )  # fmt: skip

    @classmethod
    def start_of(cls, first: Frame) -> Frame:
        """Return the state before the first step of a rule that starts from zero."""
        alpha = None if first.alpha is None else np.zeros_like(first.alpha)
        return replace(
            first, iteration=0, sample=None, errors=0, objective=np.nan, primal=np.nan, dual=np.nan,
            w=np.zeros_like(first.w), b=np.zeros_like(first.b), alpha=alpha, exact=False, number=0,
        )  # fmt: skip

    @property
    def is_start(self) -> bool:
        """Whether no step has been made."""
        return self.number == 0

    @property
    def coefficients(self) -> Floats:
        """What every row adds to w: α y of a class, α − α* of a target."""
        assert self.alpha is not None
        if self.alpha.size == 2 * self.rows.size:
            alpha, starred = np.split(self.alpha, 2)
            return alpha - starred
        return self.alpha * self.labels


@dataclass(frozen=True)
class CurvePoint:
    """The criterion, both sides of the gap and the errors after so many steps of all tasks."""

    number: int
    task: int
    objective: float
    primal: float
    dual: float
    errors: int
    exact: bool


@dataclass(frozen=True, eq=False)
class Request:
    """What to fit, and on which points."""

    points: Points
    algorithm: str
    values: Mapping[str, Any]

    @property
    def recipe(self) -> Algorithm:
        """The algorithm with its controls."""
        return ALGORITHMS[self.algorithm]

    @property
    def training(self) -> tuple[Floats, Any]:
        """X and y of the fit."""
        return self.points.training(self.recipe.family)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a fit: a model or a failure, and its steps.

    ``warnings`` are the distinct warnings of the fit; ``overdue`` says that it was stopped after
    `LIMITS.seconds`, ``live`` that a newer request may follow at once: there is no verdict on
    points that were moved, and there are no steps yet.
    """

    request: Request
    model: ModelLike = None
    failure: str | None = None
    seconds: float = 0.0
    verdict: mm.Separability | None = None
    frames: list[Frame] = field(default_factory=list)
    curve: list[CurvePoint] = field(default_factory=list)
    recorded: bool = False
    complete: bool = False
    warnings: tuple[str, ...] = ()
    overdue: bool = False
    live: bool = False

    @property
    def signs(self) -> Floats:
        """y = ±1 of the points of two classes."""
        return np.where(self.request.points.labels == self.model.classes_[1], 1.0, -1.0)

    @property
    def is_linear(self) -> bool:
        """Whether the model has planes in the space of the points."""
        return isinstance(getattr(self.model, "kernel_", Linear()), Linear)

    @property
    def steps(self) -> list[Frame]:
        """The recorded steps, without the start."""
        return [frame for frame in self.frames if not frame.is_start]

    @property
    def stage(self) -> int:
        """How much of the result is known: the fit, the verdict too, the steps too."""
        return 2 if self.recorded else 0 if self.live else 1


class Worker:
    """One thread that works on the last request, and drops earlier ones.

    Parameters
    ----------
    tell : callable
        Called from the thread with an `Outcome` when there is a result, after a pause with the
        verdict on the points, and then with its steps.
    tell_compiling : callable, optional
        Called from the thread when a function has to be compiled first, which takes seconds.
    """

    def __init__(
        self,
        tell: Callable[[Outcome], None],
        tell_compiling: Callable[[], None] = lambda: None,
    ) -> None:
        self.tell, self.tell_compiling = tell, tell_compiling
        self.judged: tuple[Points, mm.Separability | None] | None = None
        self.background = Background(self._work)

    @property
    def is_busy(self) -> bool:
        """Whether a fit is waiting or at work."""
        return self.background.is_busy

    def ask(self, request: Request) -> None:
        """Fit this next; a running fit stops at its next step."""
        self.background.ask(request)

    def close(self) -> None:
        """Stop the thread."""
        self.background.close()

    def _verdict(self, points: Points) -> mm.Separability | None:
        """Decide whether a plane separates; the decision is cached for the same points."""
        if self.judged is None or self.judged[0] is not points:
            two = np.unique(points.labels).size == 2
            # The widest band takes longer, and is computed for few points only.
            few = len(points.X) <= LIMITS.most_band_points
            report = mm.separability(points.X, points.labels, maximum_margin=few) if two else None
            self.judged = points, report
        return self.judged[1]

    def _work(self, request: Request, is_dropped: Dropped) -> None:
        end = time.perf_counter() + LIMITS.seconds

        def is_over(step: Any = None) -> bool:
            return is_dropped() or time.perf_counter() > end

        known = self.judged[1] if self.judged and self.judged[0] is request.points else None
        known = known if request.recipe.has_classes else None
        outcome = answered(request, is_over, known, self.tell_compiling)
        outcome = replace(outcome, overdue=time.perf_counter() > end)
        if is_dropped():
            return
        self.tell(replace(outcome, live=True))
        if is_dropped.within(LIMITS.pause_seconds):
            return
        end += LIMITS.pause_seconds
        if request.recipe.has_classes:
            outcome = replace(outcome, verdict=self._verdict(request.points))
        if not is_dropped():
            self.tell(outcome)
        if outcome.model is None:
            return
        if not is_over():
            found = recorded(request, is_over)
            outcome = replace(outcome, **found._asdict())
        outcome = replace(outcome, recorded=True)
        if not is_dropped():
            self.tell(outcome)


def answered(
    request: Request,
    is_over: Callable[[Any], bool],
    verdict: mm.Separability | None = None,
    tell_compiling: Callable[[], None] = lambda: None,
) -> Outcome:
    """Fit; return errors as a failure."""
    from ..runtime.compilation import watched  # which loads the compiler

    missing = _missing(request)
    if missing:
        return Outcome(request, failure=missing)
    model = request.recipe.build(request.values, callback=is_over)
    with heard() as said, watched(tell_compiling) as prepared:
        try:
            seconds = _timed(model, request)
            if prepared.n_functions and not is_over(None):
                # Functions were compiled, or read from disk: that is no part of a fit.
                seconds = _timed(model, request)
        except mm.NotSeparableError as error:
            what = NO_PLANE if _is_linear(model) else NO_KERNEL
            failure = f"{what}: {error}" if request.recipe.has_classes else str(error)
            return Outcome(request, failure=failure, verdict=verdict)
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            return Outcome(request, failure=str(error), verdict=verdict)
    model.set_params(callback=None)
    return Outcome(request, model, None, seconds, verdict, warnings=tuple(dict.fromkeys(said)))


def _timed(model: ModelLike, request: Request) -> float:
    """Fit, and return the seconds that it took."""
    started = time.perf_counter()
    model.fit(*request.training)
    return time.perf_counter() - started


def _missing(request: Request) -> str:
    """Return which points have to be drawn before a fit."""
    if not request.recipe.has_classes:
        return "" if len(request.points.X) else "Draw a point at least."
    if request.points.n_classes >= 2:
        return ""
    return "Draw points of two classes at least, or choose a regression or the one-class machine."


def _is_linear(model: ModelLike) -> bool:
    return getattr(model, "kernel", "linear") == "linear"


_listening = threading.local()


@contextmanager
def heard() -> Iterator[list[str]]:
    """Yield a list that collects the warnings of this thread.

    `warnings.catch_warnings` affects all threads, and two fits may run at once: here one function
    assigns warnings to threads.
    """
    if warnings.showwarning is not _hear:
        _listening_before.append(warnings.showwarning)
        warnings.showwarning = _hear
    for category in (UserWarning, RuntimeWarning):  # every time, not once per line of code
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


class Recording(NamedTuple):
    """The steps of a fit that were kept, whether these are all, and the curve of the whole run."""

    frames: list[Frame]
    complete: bool
    curve: list[CurvePoint]


def recorded(request: Request, is_over: Callable[[Any], bool]) -> Recording:
    """Fit again, with the same seed, and record every step."""
    one_task = request.points.n_classes == 2 or not request.recipe.has_classes
    # Each step holds one number per point, two of a regression.
    numbers = len(request.points.X) * (2 if request.recipe.family == "regression" else 1)
    most = min(LIMITS.most_steps // (1 if one_task else 6), max(50, LIMITS.most_numbers // numbers))
    watcher = _Watcher(most, is_over)
    model = request.recipe.build(request.values, callback=watcher)
    with heard():  # the first fit has warned already
        model.fit(*request.training)
    frames = watcher.frames
    complete = bool(frames) and not watcher.cut
    if frames and starts_from_zero(request):
        frames = [Frame.start_of(frames[0]), *frames]
    return Recording(frames, complete, watcher.curve)


# Rules that start from w = 0 and b = 0, and solvers that start from α = 0.
FROM_ZERO = (
    "perceptron", "pocket", "relaxation", "lms", "kernel-perceptron", "svc", "svr",
)  # fmt: skip


def starts_from_zero(request: Request) -> bool:
    """Say whether the state before the first step is known: w = 0 and b = 0, or α = 0."""
    by_columns = request.values.get("solver") == "coordinate-descent"
    return request.algorithm in FROM_ZERO or by_columns


class _Watcher:
    """Record the first steps of every task, and the curve of all of them."""

    every_update = True

    def __init__(self, most: int, is_over: Callable[[Any], bool]) -> None:
        self.most, self.is_over = most, is_over
        self.frames: list[Frame] = []
        self.curve: list[CurvePoint] = []
        self.counts: dict[int, int] = {}
        self.number = 0
        self.stride, self.ends = 1, 0
        self.cut = False

    def __call__(self, step: Any) -> bool:
        self.number += 1
        seen = self.counts[step.task] = self.counts.get(step.task, 0) + 1
        runs_away = False
        if seen <= self.most:
            frame = Frame.of(step, self.number)
            runs_away = not (np.abs(np.append(frame.w, frame.b)) < MOST_WEIGHT).all()
            if not runs_away:
                self.frames.append(frame)
        stop = runs_away or self.is_over(step)
        self.cut = self.cut or stop or seen > self.most
        if step.sample is None:  # all samples are counted
            self._extend(step)
        return stop

    def _extend(self, step: Any) -> None:
        """Add to the curve, of which every second point goes when it is too long."""
        if self.ends % self.stride == 0:
            self.curve.append(
                CurvePoint(self.number, step.task, step.objective, step.primal, step.dual,
                           step.errors, step.exact)
            )  # fmt: skip
        self.ends += 1
        if len(self.curve) >= 2 * LIMITS.most_curve_points:
            del self.curve[1::2]
            self.stride *= 2


def weights(frame: Frame, X: Floats) -> Floats:
    """Return w (n_vectors, 2) of a frame, from α of a linear kernel."""
    if len(frame.w):
        return frame.w
    return np.atleast_2d(frame.coefficients @ X[frame.rows])


def planes(outcome: Outcome, k: int) -> tuple[Floats, Floats]:
    """Return w (n_planes, 2) and b (n_planes,) of step k, or of the answer of a linear model."""
    if k < len(outcome.frames):
        frame = outcome.frames[k]
        return weights(frame, outcome.request.training[0]), np.ravel(frame.b)
    return np.atleast_2d(outcome.model.coef_), np.ravel(outcome.model.intercept_)


def state(frames: list[Frame], k: int) -> dict[int, Frame]:
    """Return the last frame of every task up to the k-th of all."""
    return {frame.task: frame for frame in frames[: k + 1]}


def evaluated(frame: Frame, model: ModelLike, X: Floats, rows: Floats) -> Floats:
    """Return g of rows by the planes or the α of a frame: (n, n_vectors)."""
    if len(frame.w):
        return rows @ frame.w.T + frame.b
    coefficients = frame.coefficients
    support = np.flatnonzero(coefficients)
    K = model.kernel_(rows, X[frame.rows[support]])
    return np.asarray((K @ coefficients[support] + frame.b[0])[:, np.newaxis])
