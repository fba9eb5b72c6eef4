"""How a fit went: primal and dual, the gap between them, errors pass by pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..samples import Floats, Integers
from .canvas import INK, colour, figure_of, marker, set_legend, set_title, several_axes
from .canvas import number as count
from .model import Model, cost_in_words, kernel_in_words

Against = Literal["iteration", "seconds"]
LEAST_GAP = 1e-16  # a gap that rounding made 0 or less is drawn there
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":")
UNLIKE = 20  # so many times as long a fit hides the shorter one on a linear axis


@dataclass(frozen=True, eq=False)
class Course:
    """What one fit reports of itself after every iteration, as arrays of one length."""

    name: str
    iteration: Integers
    seconds: Floats
    objective: Floats
    errors: Integers
    primal: Floats
    dual: Floats

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least P and the largest D so far: each bounds the optimum whenever it was found."""
        primal, dual = (
            np.where(np.isfinite(each), each, np.nan) for each in (self.primal, self.dual)
        )
        return np.fmin.accumulate(primal), np.fmax.accumulate(dual)

    @property
    def knows_gap(self) -> bool:
        """Whether primal and dual were known at some time."""
        return bool(np.isfinite(self.gap).any())

    @property
    def gap(self) -> Floats:
        """(P − D)/\\|P\\| of the bounds so far, nan before they are known."""
        primal, dual = self.bounds
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = (primal - dual) / np.abs(primal)
        return np.where(np.isfinite(relative), np.maximum(relative, LEAST_GAP), np.nan)


@dataclass(eq=False)
class ConvergenceDisplay:
    """Traces of one or several fits side by side; made by `from_estimator`.

    Parameters
    ----------
    courses : list of Course
        One a model.
    against : {"iteration", "seconds"}
        The horizontal axis.

    Attributes
    ----------
    axes_ : list of Axes
        Objective, gap (where a model knows it), errors.
    ax_, figure_
        The first of them, and their figure.
    primal_, dual_, objective_, gap_, errors_ : list of Line2D
        In the order of the models that have them.
    legend_ : Legend or None
    """

    courses: list[Course]
    against: Against = "iteration"
    axes_: list[Axes] = field(init=False)
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    primal_: list[Line2D] = field(init=False, default_factory=list)
    dual_: list[Line2D] = field(init=False, default_factory=list)
    objective_: list[Line2D] = field(init=False, default_factory=list)
    gap_: list[Line2D] = field(init=False, default_factory=list)
    errors_: list[Line2D] = field(init=False, default_factory=list)
    legend_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        *others: Any,
        labels: Sequence[str] | None = None,
        x: Against = "iteration",
        axes: Any = None,
        legend: bool = True,
    ) -> ConvergenceDisplay:
        """Read the traces of fitted classifiers and draw them; see `convergence`."""
        if x not in ("iteration", "seconds"):
            raise ValueError(f"x={x!r} is none: pass 'iteration' or 'seconds'.")
        models, names = _models(clf, others, labels)
        courses = [_course(model, name) for model, name in zip(models, names, strict=True)]
        return cls(courses, x).plot(axes, legend=legend)

    @property
    def knows_gap(self) -> bool:
        """Whether some model knows its primal and dual values."""
        return any(course.knows_gap for course in self.courses)

    def plot(self, axes: Any = None, *, legend: bool = True) -> ConvergenceDisplay:
        """Draw on ``axes``, three with a gap and two without, or on a new figure; return self."""
        panels = 3 if self.knows_gap else 2
        self.axes_ = several_axes(axes, panels, (7.5, 2.1 * panels + 0.6), rows=True)
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        for number, course in enumerate(self.courses):
            self._draw(number, course)
        self._frame()
        if legend:
            self.legend_ = set_legend(self.ax_, self._handles())
        return self

    def _draw(self, number: int, course: Course) -> None:
        at = course.iteration if self.against == "iteration" else course.seconds
        # The first of several are wider: equal courses do not hide each other.
        width = max(1.2, 2.8 - 0.8 * number) if len(self.courses) > 1 else 1.6
        style: dict[str, Any] = {
            "color": colour(number), "marker": marker(number), "linewidth": width,
            "markersize": 3.5 + width if at.size <= 40 else 0.0, "markeredgecolor": "white",
            "markeredgewidth": 0.4,
        }  # fmt: skip
        top, errors = self.axes_[0], self.axes_[-1]
        if course.knows_gap:
            primal, dual = course.bounds
            self.primal_ += top.plot(at, primal, "-", **style)
            self.dual_ += top.plot(at, dual, "--", **style)
            top.fill_between(at, dual, primal, color=colour(number), alpha=0.15, linewidth=0.0)
            self.gap_ += self.axes_[1].plot(at, course.gap, STYLES[number % 4], **style)
        elif not self.knows_gap:
            self.objective_ += top.plot(at, course.objective, STYLES[number % 4], **style)
        self.errors_ += errors.plot(at, course.errors, STYLES[number % 4], **style)

    def _frame(self) -> None:
        top, bottom = self.axes_[0], self.axes_[-1]
        top.set_ylabel("objective" if self.knows_gap else "criterion")
        if not self.knows_gap:
            _spread(top, self.courses)
        else:
            _close_in(top, self.courses)
            middle = self.axes_[1]
            middle.set_yscale("log")
            middle.set_ylabel("relative gap")
            middle.grid(axis="y", color="#E5E5E5")
        set_title(top, self._words())
        bottom.set_ylabel("errors")
        low, high = bottom.get_ylim()
        bottom.set_ylim(min(0.0, low), max(1.0, high))
        bottom.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        bottom.set_xlabel("iteration" if self.against == "iteration" else "seconds")
        for ax in self.axes_:
            if self.against == "iteration":
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            if ax is not bottom:
                ax.tick_params(labelbottom=False)
        self._frame_time()

    def _frame_time(self) -> None:
        """Give all panels the same axis of time: a log one where fits are of unlike lengths."""
        lengths = [len(course.iteration) for course in self.courses]
        if self.against == "iteration" and max(lengths) > UNLIKE * min(lengths):
            for ax in self.axes_:
                ax.set_xscale("log")
        left = min(ax.get_xlim()[0] for ax in self.axes_)
        right = max(ax.get_xlim()[1] for ax in self.axes_)
        if self.against == "iteration" and max(lengths) == 1:
            left, right = 0.5, 1.5
        for ax in self.axes_:
            ax.set_xlim(left, right)
            if ax.get_yscale() == "linear":
                ax.ticklabel_format(axis="y", useOffset=False)

    def _words(self) -> str:
        if len(self.courses) > 1:
            return "the dual rises to the primal" if self.knows_gap else "criterion and errors"
        (course,) = self.courses
        passes = count(len(course.iteration), "iteration")
        if not course.knows_gap:
            return f"{course.name}: {passes}, {count(int(course.errors[-1]), 'error')} in the last"
        return f"{course.name}: relative gap {course.gap[-1]:.1e} after {passes}"

    def _handles(self) -> list[Line2D]:
        handles = [
            Line2D(
                [], [], color=colour(k), marker=marker(k), markersize=5, label=course.name,
                linestyle="" if self.knows_gap else STYLES[k % 4],
            )
            for k, course in enumerate(self.courses)
        ]  # fmt: skip
        if self.knows_gap:
            handles.append(Line2D([], [], color=INK, linestyle="-", label="primal"))
            handles.append(Line2D([], [], color=INK, linestyle="--", label="dual"))
        return handles


def convergence(
    clf: Any,
    *others: Any,
    labels: Sequence[str] | None = None,
    x: Against = "iteration",
    axes: Any = None,
    legend: bool = True,
) -> ConvergenceDisplay:
    """Draw how fits went: primal P and dual D closing in, the gap (P − D)/P, errors a pass.

    P(w, b) ≥ D(α) for every plane and every feasible α, so the optimum lies between: drawn are the
    least P and the largest D so far. Algorithms
    without a dual (the perceptron's family) show the criterion that they descend instead; beside
    models that know their gap they show their errors only. Of many classes it is the task that took
    longest.

    Parameters
    ----------
    clf : fitted classifier, pipeline or search; or a list of them; or a dict name → classifier
    *others : more of them
    labels : sequence of str, optional
        What to call them.
    x : {"iteration", "seconds"}, default="iteration"
    axes : sequence of matplotlib Axes, optional
        Three where some model knows its gap, else two; a new figure by default.
    legend : bool, default=True

    Returns
    -------
    ConvergenceDisplay

    References
    ----------
    Boyd, Vandenberghe, *Convex Optimization* (2004), section 5.5.1.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.Perceptron().fit(X, y)
    >>> display = convergence(model, axes=Figure().subplots(2))
    >>> print(display.errors_[0].get_ydata())
    [2 0]
    """
    return ConvergenceDisplay.from_estimator(
        clf, *others, labels=labels, x=x, axes=axes, legend=legend
    )


def _models(
    clf: Any, others: Sequence[Any], labels: Sequence[str] | None
) -> tuple[list[Model], list[str]]:
    """Return the models and what they are called."""
    if isinstance(clf, Mapping):
        if labels is not None:
            raise ValueError("a dict has its labels: leave out labels.")
        labels, first = [str(name) for name in clf], list(clf.values())
    else:
        first = list(clf) if isinstance(clf, (list, tuple)) else [clf]
    models = [Model(each) for each in [*first, *others]]
    if not models:
        raise ValueError("no model was passed: pass at least one.")
    if labels is None:
        return models, _names(models)
    names = [str(label) for label in labels]
    if len(names) != len(models):
        raise ValueError(
            f"labels holds {len(names)} names for {len(models)} models: pass one each."
        )
    return models, names


def _names(models: Sequence[Model]) -> list[str]:
    """Return names that tell the models apart: by class, then by what differs, last by number."""
    names = [type(model.machine).__name__ for model in models]
    for more in (_solver, lambda model: kernel_in_words(model.kernel), cost_in_words):
        texts = [more(model) for model in models]
        if len(set(names)) < len(names) and len(set(texts)) > 1:
            names = [
                f"{name}, {text}" if text else name for name, text in zip(names, texts, strict=True)
            ]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({k})" for k, name in enumerate(names, start=1)]


def _solver(model: Model) -> str:
    return str(getattr(model.machine, "solver", getattr(model.machine, "update", "")))


def _course(model: Model, name: str) -> Course:
    trace = getattr(model.machine, "trace_", None)
    if trace is None:
        raise ValueError(
            f"{name} was trained by another program, which did not tell its steps: fit it again."
        )
    return Course(
        name=name,
        iteration=trace.iteration,
        seconds=trace.seconds,
        objective=trace.objective,
        errors=trace.errors,
        primal=trace.primal,
        dual=trace.dual,
    )


def _close_in(ax: Axes, courses: Sequence[Course]) -> None:
    """Show where the values end up: what is far off at the start would flatten all of it."""
    seen = []
    for course in courses:
        for values in course.bounds:
            finite = values[np.isfinite(values)]
            seen += [finite[-1], finite[finite.size // 4]] if finite.size else []
    low, high = min(seen), max(seen)
    room = max(high - low, 1e-3 * max(abs(high), abs(low), 1e-300))
    bottom, top = ax.get_ylim()
    ax.set_ylim(max(bottom, low - 0.5 * room), min(top, high + 0.5 * room))


def _spread(ax: Axes, courses: Sequence[Course]) -> None:
    """Use a log axis, with room for 0, where criteria of different size are compared."""
    values = np.concatenate([course.objective for course in courses])
    values = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if values.size and values.max() > 200.0 * values.min():
        ax.set_yscale("symlog", linthresh=max(float(values.min()), 1e-12 * float(values.max())))
