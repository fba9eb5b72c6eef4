"""How a fit went: primal and dual, the gap between them, errors or mistakes met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import LineStyleType

from ..arrays import Floats, Integers
from ..diagnostics.checks import task_number
from ..diagnostics.fitted_model import ModelLike
from ..progress import counted
from ..solution import Trace
from .canvas import (
    AxesLike,
    Bools,
    colour,
    figure_of,
    marker,
    number,
    set_title,
    several_axes,
    wrapped,
)
from .display import Display
from .legends import line_handle, set_legend
from .model import FigureModel
from .titles import cost_in_words, kernel_in_words

Against = Literal["iteration", "seconds"]
LEAST_GAP = 1e-16  # where a gap is drawn that is 0 or less by rounding
STYLES: tuple[LineStyleType, ...] = ("-", "--", "-.")  # dotted lines are mistakes met
LOG_RATIO = 20  # ratio of lengths of fits above which the horizontal axis is logarithmic


@dataclass(frozen=True, eq=False)
class Course:
    """What one task of a fit reports after every iteration, as arrays of one length.

    Parameters
    ----------
    name : str
        Name of the model, and of its task where there are several.
    iteration, seconds, objective, errors, primal, dual, exact : ndarray of shape (n,)
        As in `maxmargin.solution.Trace`.
    unit : str
        What an iteration is, as in `maxmargin.solution.Trace`.
    steps : int
        Steps of a fit that iterates in rounds; the number of iterations of other fits.
    final : str
        How many samples the fitted plane of a separating rule has on the wrong side, in words.
    certified : float
        The relative gap of the certificate, NaN without one.
    has_classes : bool
        Whether there are errors to count.
    """

    name: str
    iteration: Integers
    seconds: Floats
    objective: Floats
    errors: Integers
    primal: Floats
    dual: Floats
    exact: Bools
    unit: str
    steps: int
    final: str = ""
    certified: float = np.nan
    has_classes: bool = True

    @property
    def knows_errors(self) -> bool:
        """Whether errors of a plane were counted, not only mistakes met."""
        return bool(self.has_classes and self.exact.any())

    @property
    def knows_mistakes(self) -> bool:
        """Whether mistakes met were counted, but no errors."""
        return bool(self.has_classes and not self.exact.any())

    @property
    def length(self) -> str:
        """The length of the fit in words: passes, steps, or rounds with their steps."""
        text = counted(len(self.iteration), self.unit)
        return f"{text} ({counted(self.steps, 'step')})" if self.unit == "round" else text

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least P and the largest D so far, which bound the optimum."""
        primal, dual = (
            np.where(np.isfinite(each), each, np.nan) for each in (self.primal, self.dual)
        )
        return np.fmin.accumulate(primal), np.fmax.accumulate(dual)

    @property
    def knows_gap(self) -> bool:
        """Whether primal and dual were known at some iteration."""
        return bool(np.isfinite(self.gap).any())

    @property
    def gap(self) -> Floats:
        """(P − D)/\\|P\\| of the bounds so far, nan before they are known."""
        primal, dual = self.bounds
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = (primal - dual) / np.abs(primal)
        return np.where(np.isfinite(relative), np.maximum(relative, LEAST_GAP), np.nan)


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """Traces of one or several fits; what `convergence` returns.

    Parameters
    ----------
    courses : list of Course
        One per model.
    against : {"iteration", "seconds"}, default="iteration"
        The horizontal axis.

    Attributes
    ----------
    axes_ : list of Axes
        Objective, gap (where a model has one), errors (where a model has classes).
    ax_, figure_ : Axes, Figure
        The first of them, and their figure.
    mistakes_ax_ : Axes or None
        Where mistakes met are drawn: the last of ``axes_``, or a second vertical axis of it
        where other models have errors.
    primal_, dual_, objective_, gap_ : list of Line2D
        In the order of the models that have them.
    errors_ : list of Line2D
        One per model: errors of its planes, or mistakes met (dotted).
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(kernel="linear").fit(X, y)
    >>> mm.plots.convergence(model, axes=Figure().subplots(3)).knows_gap
    True
    """

    courses: list[Course]
    against: Against = "iteration"
    axes_: list[Axes] = field(init=False)
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    mistakes_ax_: Axes | None = field(init=False, default=None)
    primal_: list[Line2D] = field(init=False, default_factory=list)
    dual_: list[Line2D] = field(init=False, default_factory=list)
    objective_: list[Line2D] = field(init=False, default_factory=list)
    gap_: list[Line2D] = field(init=False, default_factory=list)
    errors_: list[Line2D] = field(init=False, default_factory=list)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        clf: ModelLike,
        *others: ModelLike,
        labels: Sequence[str] | None = None,
        task: object = None,
        x: Against = "iteration",
        axes: AxesLike = None,
        legend: bool = True,
    ) -> ConvergenceDisplay:
        """Draw how fits went: primal P and dual D, the gap (P − D)/P, errors.

        P(w, b) ≥ D(α) for every plane and every feasible α, so that the optimum lies between them.
        Drawn are the least P and the largest D so far. For algorithms without a dual (the
        perceptron and its variants) the criterion that they minimise is drawn instead; next to
        models with a gap only the last panel shows them.

        The last panel shows errors of classifiers: the samples that the plane of an iteration
        misclassifies. Rules that move the plane while they visit the samples do not know that
        number. For these the mistakes met are drawn, dotted and on a second axis: samples found on
        the wrong side when they were visited. The title then gives the errors of the fitted model.
        It also gives the gap of the certificate where that differs, since solvers may improve the
        last iterate.

        Parameters
        ----------
        clf : fitted model, Pipeline or search; or a list of them; or a dict name → model
            The model or models.
        *others : fitted models, Pipelines or searches
            More models.
        labels : sequence of str, optional
            Names of the models.
        task : int, or labels, optional
            The task of a model of many classes: a number from 0, the label of a class ("ovr") or
            two labels ("ovo"). By default the one with the most iterations; the title names it.
        x : {"iteration", "seconds"}, default="iteration"
            The horizontal axis. Iterations are passes over the samples, steps, or rounds of many
            steps, as the axis and the title say.
        axes : sequence of matplotlib Axes, optional
            Where to draw: three where a model has a gap, else two, and one less where none has
            classes; by default a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        ConvergenceDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Boyd, Vandenberghe, *Convex Optimization* (2004), section 5.5.1.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> model = mm.Perceptron(shuffle=False).fit(X, y)
        >>> display = mm.plots.convergence(model, axes=Figure().subplots(2))
        >>> print(display.errors_[0].get_ydata())
        [2 0]
        """
        if x not in ("iteration", "seconds"):
            raise ValueError(f"x must be 'iteration' or 'seconds', got {x!r}.")
        models, names = _models(clf, others, labels)
        courses = [_course(model, name, task) for model, name in zip(models, names, strict=True)]
        return cls(courses, x).plot(axes, legend=legend)

    @property
    def knows_gap(self) -> bool:
        """Whether some model has primal and dual values."""
        return any(course.knows_gap for course in self.courses)

    @property
    def has_classes(self) -> bool:
        """Whether some model has errors to count."""
        return any(course.has_classes for course in self.courses)

    def plot(self, axes: AxesLike = None, *, legend: bool = True) -> ConvergenceDisplay:
        """Draw on several axes, or on a new figure.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Where to draw, as many as `convergence` takes; by default those of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        ConvergenceDisplay
            The display itself, with its artists.
        """
        panels = 1 + self.knows_gap + self.has_classes
        self.axes_ = several_axes(axes, panels, (7.5, 2.1 * panels + 0.6), rows=True)
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        self.mistakes_ax_ = self._mistakes_axis()
        for k, course in enumerate(self.courses):
            self._draw(k, course)
        self._frame()
        if legend:
            self.legend_ = set_legend(self.ax_, self._handles())
        return self

    def _mistakes_axis(self) -> Axes | None:
        """Return the axes of mistakes met, which do not share an axis with errors."""
        if not any(course.knows_mistakes for course in self.courses):
            return None
        bottom = self.axes_[-1]
        return bottom.twinx() if any(c.knows_errors for c in self.courses) else bottom

    def _draw(self, k: int, course: Course) -> None:
        at = course.iteration if self.against == "iteration" else course.seconds
        # The first lines are wider, so that equal ones do not hide each other.
        width = max(1.2, 2.8 - 0.8 * k) if len(self.courses) > 1 else 1.6
        style: dict[str, Any] = {
            "color": colour(k), "marker": marker(k), "linewidth": width,
            "markersize": 3.5 + width if at.size <= 40 else 0.0, "markeredgecolor": "white",
            "markeredgewidth": 0.4,
        }  # fmt: skip
        top, errors = self.axes_[0], self.axes_[-1]
        if course.knows_gap:
            primal, dual = course.bounds
            self.primal_ += top.plot(at, primal, "-", **style)
            self.dual_ += top.plot(at, dual, "--", **style)
            top.fill_between(at, dual, primal, color=colour(k), alpha=0.15, linewidth=0.0)
            self.gap_ += self.axes_[1].plot(at, course.gap, STYLES[k % 3], **style)
        elif not self.knows_gap:
            self.objective_ += top.plot(at, course.objective, STYLES[k % 3], **style)
        if course.knows_errors:
            some = course.exact
            self.errors_ += errors.plot(at[some], course.errors[some], STYLES[k % 3], **style)
        elif course.knows_mistakes:
            assert self.mistakes_ax_ is not None
            self.errors_ += self.mistakes_ax_.plot(at, course.errors, ":", **style)

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
        set_title(top, self._words(), self._final())
        if self.has_classes:
            self._frame_errors(bottom)
        units = {course.unit for course in self.courses}
        unit = units.pop() if len(units) == 1 else "iteration"
        bottom.set_xlabel(unit if self.against == "iteration" else "seconds")
        for ax in self.axes_:
            if self.against == "iteration":
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            if self.against == "iteration" and all(len(c.iteration) == 1 for c in self.courses):
                ax.set_xticks([1])
            if ax is not bottom:
                ax.tick_params(labelbottom=False)
        self._frame_time()

    def _frame_errors(self, bottom: Axes) -> None:
        """Label what is counted; the axes begin at 0."""
        bottom.set_ylabel("errors")
        if self.mistakes_ax_ is not None:
            self.mistakes_ax_.set_ylabel("mistakes met")
        for ax in {bottom, self.mistakes_ax_ or bottom}:
            most = max((float(np.max(line.get_ydata())) for line in ax.get_lines()), default=0.0)
            ax.set_ylim(-0.05 * max(most, 1.0), 1.06 * most if most else 1.0)
            ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))

    def _frame_time(self) -> None:
        """Give all panels the same horizontal axis, logarithmic for fits of very unequal length."""
        lengths = [len(course.iteration) for course in self.courses]
        if self.against == "iteration" and max(lengths) > LOG_RATIO * min(lengths):
            for ax in self.axes_:
                ax.set_xscale("log")
        left = min(ax.get_xlim()[0] for ax in self.axes_)
        right = max(ax.get_xlim()[1] for ax in self.axes_)
        if self.against == "iteration":  # also iterations without known values
            left, right = (0.5, 1.5) if max(lengths) == 1 else (min(left, 1.0), right)
        for ax in self.axes_:
            ax.set_xlim(left, right)
            if ax.get_yscale() == "linear":
                ax.ticklabel_format(axis="y", useOffset=False)

    def _words(self) -> str:
        if len(self.courses) > 1:
            counts = "errors" if self.mistakes_ax_ is None else "errors or mistakes met"
            top = "least primal and largest dual so far" if self.knows_gap else "criterion"
            return f"{top}; {counts}" if self.has_classes else top
        (course,) = self.courses
        if course.knows_gap:
            last, proved = f"{course.gap[-1]:.1e}", f"{course.certified:.1e}"
            text = f"{course.name}: relative gap {last} after {course.length}"
            return text if last == proved else f"{text}, {proved} by the certificate"
        last = number(int(course.errors[-1]), "error")
        if not course.knows_errors:
            last = f"{number(int(course.errors[-1]), 'mistake')} met in the last"
        return f"{course.name}: {course.length}, {last}"

    def _final(self) -> str:
        """Return the errors of the fitted planes, where the curves do not show them."""
        known = [course for course in self.courses if course.final and not course.knows_errors]
        if len(self.courses) == 1:
            return "".join(course.final for course in known)
        return "; ".join(f"{course.name}: {course.final}" for course in known)

    def _handles(self) -> list[Line2D]:
        handles = [
            Line2D(
                [], [], color=colour(k), marker=marker(k), markersize=5,
                label="\n".join(wrapped(course.name, 28)),
                linestyle="" if self.knows_gap or course.knows_mistakes else STYLES[k % 3],
            )
            for k, course in enumerate(self.courses)
        ]  # fmt: skip
        if self.knows_gap:
            handles += [line_handle("primal"), line_handle("dual", "--")]
        if self.mistakes_ax_ is not None:
            handles.append(line_handle("mistakes met", ":"))
        return handles


convergence = ConvergenceDisplay.from_estimator


def _models(
    clf: ModelLike, others: Sequence[ModelLike], labels: Sequence[str] | None
) -> tuple[list[FigureModel], list[str]]:
    """Return the models and their names."""
    if isinstance(clf, Mapping):
        if labels is not None:
            raise ValueError("the keys of a dict are its labels: leave out labels.")
        labels, first = [str(name) for name in clf], list(clf.values())
    else:
        first = list(clf) if isinstance(clf, (list, tuple)) else [clf]
    models = [FigureModel(each) for each in [*first, *others]]
    if not models:
        raise ValueError("pass at least one model.")
    if labels is None:
        return models, _names(models)
    names = [str(label) for label in labels]
    if len(names) != len(models):
        raise ValueError(f"labels must hold {len(models)} names, one per model; got {len(names)}.")
    return models, names


def _names(models: Sequence[FigureModel]) -> list[str]:
    """Return distinct names of the models: by class, then by what differs, last by number."""
    names = [model.name for model in models]
    for more in (_solver, lambda model: kernel_in_words(model.kernel), cost_in_words):
        texts = [more(model) for model in models]
        if len(set(names)) < len(names) and len(set(texts)) > 1:
            names = [
                f"{name}, {text}" if text else name for name, text in zip(names, texts, strict=True)
            ]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({k})" for k, name in enumerate(names, start=1)]


def _solver(model: FigureModel) -> str:
    return str(getattr(model.classifier, "solver", getattr(model.classifier, "update", "")))


def _course(model: FigureModel, name: str, task: object) -> Course:
    machine = model.classifier
    traces = getattr(machine, "traces_", None)
    if not isinstance(traces, list):
        raise ValueError(
            f"{name} was trained by another program, whose file holds no steps: fit it with "
            "maxmargin."
        )
    k = _chosen(model, traces, task)
    trace = traces[k]
    if trace is None or not len(trace):
        raise ValueError(f"{name} recorded no iterations: fit it again, without warm_start.")
    n_iter = np.ravel(machine.n_iter_)
    of = "" if len(traces) == 1 else f", {model.task_names[k]} (1 of {len(traces)} tasks)"
    return Course(
        name=f"{name}{of}",
        iteration=trace.iteration,
        seconds=trace.seconds,
        objective=trace.objective,
        errors=trace.errors,
        primal=trace.primal,
        dual=trace.dual,
        exact=trace.exact,
        unit=trace.unit,
        steps=int(n_iter[k] if n_iter.size == len(traces) else n_iter.max()),
        final=_final_errors(machine.certificates_[k]),
        certified=max(float(getattr(machine.certificates_[k], "relative_gap", np.nan)), 0.0),
        has_classes=model.has_classes,
    )


def _chosen(model: FigureModel, traces: list[Trace | None], task: object) -> int:
    """Return the number of the task to draw, by default the longest."""
    if task is not None and len(traces) > 1:
        return task_number(model, task)
    if task not in (None, 0):
        raise ValueError(f"the model has one task only: leave out task={task!r}.")
    return max(range(len(traces)), key=lambda k: len(traces[k] or ()))


def _final_errors(certificate: Any) -> str:
    wrong = getattr(certificate, "n_errors", None)
    if wrong is None:
        return ""
    of = number(certificate.n_samples, "sample")
    return f"the fitted model has {wrong:,} of {of} not strictly on their side"


def _close_in(ax: Axes, courses: Sequence[Course]) -> None:
    """Limit the vertical axis to the later values; the first ones may be far off."""
    seen = []
    for course in courses:
        for values in course.bounds:
            finite = values[np.isfinite(values)]
            seen += [finite[-1], finite[finite.size // 4]] if finite.size else []
    low, high = min(seen), max(seen)
    room = max(high - low, 1e-3 * max(abs(high), abs(low), 1e-300))
    bottom, top = ax.get_ylim()
    if top - bottom < room:  # equal to many digits, which the ticks would need to show
        bottom, top = -np.inf, np.inf
    ax.set_ylim(max(bottom, low - 0.5 * room), min(top, high + 0.5 * room))


def _spread(ax: Axes, courses: Sequence[Course]) -> None:
    """Use a symmetric log axis where criteria of very different size are compared."""
    values = np.concatenate([course.objective for course in courses])
    values = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if values.size and values.max() > 200.0 * values.min():
        ax.set_yscale("symlog", linthresh=max(float(values.min()), 1e-12 * float(values.max())))
