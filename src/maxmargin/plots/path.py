"""The steps of an algorithm: its planes, and the path of w through weight space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import LineStyleType
from numpy.typing import ArrayLike

from ..arrays import Floats, Integers, MatrixLike
from ..diagnostics.fitted_model import ModelLike
from .canvas import (
    INK,
    PALETTE,
    WRONG,
    AxesLike,
    draw_classes,
    figure_of,
    limits_of,
    lines,
    number,
    set_frame,
    set_title,
    several_axes,
    span,
)
from .display import Display
from .grid import Lattice
from .legends import class_handles, legend_of_figure, line_handle, mark_handle, set_legend
from .model import FigureModel
from .solutions import solutions
from .steps import Evaluate, Moment, Run, early, early_and_even, fitted_classifier, run_of
from .view import FigureData

SOLUTIONS = PALETTE[2]
# From pale, early, to strong, late; in none of the colours of two classes.
TIME = LinearSegmentedColormap.from_list("time", ["#C3AEDF", "#8C6BB1", "#3F007D"])


@dataclass(frozen=True)
class Tuning:
    """Limits of the figure."""

    most_moments: int = 5000
    # Planes in the first panel, and weight vectors that are joined in the second one.
    most_planes: int = 10
    most_joined: int = 50
    most_arrows: int = 30
    # Planes from which on colours are on a logarithmic scale.
    log_from: int = 30
    # Points of the lattice along each axis for planes that a pipeline bends.
    bent_resolution: int = 100


TUNING = Tuning()


@dataclass(eq=False)
class PathDisplay(Display):
    """The planes and weight vectors of the steps of a fit; what `path` returns.

    Parameters
    ----------
    planes : list of list of ndarray
        Polylines of g = 0 of some steps, first to last, in the space of X.
    shown : ndarray of int
        The numbers of these planes, from 1.
    points : ndarray of shape (n, 2)
        The samples.
    codes : ndarray of int of shape (n,)
        Their class numbers.
    limits : ndarray of shape (2, 2)
        Limits of the first panel, one row per axis.
    weights : ndarray of shape (m, 2)
        w of every step, from the start.
    numbers : ndarray of int of shape (m,)
        The numbers of their planes; 0 at the start.
    unit : str
        What there is one plane of: "update", "pass", "round" or "step".
    biases : ndarray of shape (m,)
        b of every step.
    solutions : ndarray of shape (k, 2)
        Corners of {w : y_i(w·x_i + b) > 0 for every i} at the last b, clipped at the edge of the
        picture; empty where there is none, or where it is far outside.
    is_solvable : bool
        Whether there is such a w, in the picture or not.
    window : ndarray of shape (2, 2)
        Limits of the second panel.
    normal : ndarray of shape (2, 2) or None
        Arrow from a point of the last plane along its w.
    names : list of str
        Names of the classes.
    labels, weight_labels : tuple of str
        Labels of the axes of the two panels.
    title : str
        Title of the first panel.

    Attributes
    ----------
    axes_ : list of Axes
        The panels of the planes and of w.
    ax_, figure_ : Axes, Figure
        The first panel and its figure.
    planes_ : list of LineCollection
        One per plane.
    points_ : list of PathCollection
        One per class.
    path_ : LineCollection
        The path of w, some of it where there are very many steps, in the colours of time.
    everything_ : Line2D or None
        All of it, faint, where the path leaves out steps.
    colorbar_ : Colorbar or None
        The scale of the colours: numbers of planes.
    solutions_ : Polygon or None
        The set of solutions.
    start_, end_ : PathCollection
        The first and the last w.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.Perceptron(shuffle=False).fit(X, y)
    >>> mm.plots.path(model, X, y, axes=Figure().subplots(1, 2)).is_solvable
    True
    """

    planes: list[list[Floats]]
    shown: Integers
    points: Floats
    codes: Integers
    limits: Floats
    weights: Floats
    numbers: Integers
    unit: str
    biases: Floats
    solutions: Floats
    is_solvable: bool
    window: Floats
    normal: Floats | None
    names: list[str]
    labels: tuple[str, str]
    weight_labels: tuple[str, str]
    title: str
    axes_: list[Axes] = field(init=False)
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    planes_: list[LineCollection] = field(init=False)
    points_: list[PathCollection] = field(init=False)
    path_: LineCollection = field(init=False)
    everything_: Line2D | None = field(init=False, default=None)
    colorbar_: Colorbar | None = field(init=False, default=None)
    solutions_: Polygon | None = field(init=False, default=None)
    start_: PathCollection = field(init=False)
    end_: PathCollection = field(init=False)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        clf: ModelLike,
        X: MatrixLike,
        y: ArrayLike,
        *,
        axes: AxesLike = None,
        feature_names: Sequence[str] | None = None,
        legend: bool = True,
    ) -> PathDisplay:
        """Draw the planes of the steps of a fit, and the path of w to the solutions.

        First the planes in the space of X, at most ten of them, pale to strong by their number;
        the first is dashed, the last black, with w. Then w in weight space, in the same colours:
        of very many steps some are joined, denser at the start, with all of them faint below.
        There every sample allows one half-plane y(w·x + b) > 0 at the last b: their
        intersection, a cone if b = 0, is the set of solutions.

        The steps are those of ``clf.callback`` where that is a `Recorder`. Otherwise a model with
        the same parameters is fitted to X and y with one; with ``random_state=None`` and random
        choices its steps differ.

        Parameters
        ----------
        clf : linear classifier of two classes, or a Pipeline that ends in one
            The model, also one with a linear kernel. Of a pipeline the planes are drawn in the
            space of X, w in that of the last step. One that is not fitted is fitted to X and y.
        X : array-like or frame of shape (n_samples, 2)
            Samples of the fit.
        y : array-like of shape (n_samples,)
            Labels.
        axes : two matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        feature_names : sequence of str, optional
            Names of the features; by default those of the frame X, or of the frame of the fit.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        PathDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Duda, Hart, Stork, *Pattern Classification*, section 5.4.1 (solution region), figure 5.8.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> model = mm.Perceptron(shuffle=False).fit(X, y)
        >>> print(mm.plots.path(model, X, y, axes=Figure().subplots(1, 2)).weights)
        [[ 0. 0.]
         [ 1. 6.]
         [-4. 4.]]
        """
        model = fitted_classifier(clf, X, y)
        data = FigureData(X, feature_names, model.model)
        seen = model.classifier.n_features_in_
        if data.n_features != 2 or not model.is_linear or seen != 2:
            what = f"{data.n_features} features" if model.is_linear else "a kernel's feature space"
            if data.n_features == 2 and model.is_linear:
                what = f"{seen} features after the pipeline"
            raise ValueError(
                f"the path of w is drawn in the plane, this model has {what}: fit it on two "
                "features without a kernel, or use plots.animate or plots.convergence."
            )
        run = run_of(model, X, y, TUNING.most_moments)
        return _compute(cls, model, data, run, model.codes(y)).plot(axes, legend=legend)

    def plot(self, axes: AxesLike = None, *, legend: bool = True) -> PathDisplay:
        """Draw on several axes, or on a new figure.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Where to draw, two axes; by default those of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        PathDisplay
            The display itself, with its artists.
        """
        self.axes_ = several_axes(axes, 2, (11.0, 5.2))
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        last = int(self.numbers[-1])
        scale = LogNorm if last >= TUNING.log_from else Normalize
        colours = ScalarMappable(scale(1, max(last, 2)), TIME)
        self._draw_planes(self.axes_[0], colours)
        self._draw_weights(self.axes_[1], colours)
        if len(self.planes) > 2:
            self._draw_scale(self.axes_[1], colours)
        if legend:
            draw = set_legend if axes is not None else legend_of_figure
            self.legend_ = draw(self.axes_[1], self._handles())
        return self

    def _draw_planes(self, ax: Axes, colours: ScalarMappable) -> None:
        shades = colours.to_rgba(np.asarray(self.shown, dtype=float))
        self.planes_ = []
        for k, pieces in enumerate(self.planes[:-1]):
            style: LineStyleType = "-" if k else (0, (4, 3))
            self.planes_.append(lines(ax, pieces, to_hex(shades[k]), style, 1.3, zorder=1))
        self.planes_.append(lines(ax, self.planes[-1], INK, "-", 2.2, zorder=2))
        if self.normal is not None:
            foot, tip = self.normal
            ax.annotate(
                "", tip, foot, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.8}, zorder=4
            )
            ax.annotate("w", tip, xytext=(5, 3), textcoords="offset points", style="italic")
        self.points_ = draw_classes(ax, self.points, self.codes, 2)
        set_frame(ax, self.limits, self.labels)
        set_title(ax, self.title)

    def _draw_weights(self, ax: Axes, colours: ScalarMappable) -> None:
        if len(self.solutions) > 2:
            self.solutions_ = Polygon(
                self.solutions, facecolor=(SOLUTIONS, 0.2), edgecolor=SOLUTIONS, linewidth=1.0
            )
            ax.add_patch(self.solutions_)
        self._draw_path(ax, colours)
        ax.axhline(0.0, color="#CCCCCC", linewidth=0.8, zorder=0)
        ax.axvline(0.0, color="#CCCCCC", linewidth=0.8, zorder=0)
        first, last = self.weights[0], self.weights[-1]
        self.start_ = ax.scatter(
            first[0], first[1], s=60, facecolors="white", edgecolors=INK, linewidths=1.5, zorder=4
        )
        self.end_ = ax.scatter(
            last[0],
            last[1],
            s=170,
            marker="*",
            c=WRONG,
            edgecolors="white",
            linewidths=0.8,
            zorder=5,
        )
        set_frame(ax, self.window, self.weight_labels)
        ax.locator_params(nbins=6)
        found = "a w separates" if self.is_solvable else "no w separates"
        if self.is_solvable and len(self.solutions) < 3:
            found = "solutions lie outside"
        set_title(ax, f"weight space, b = {self.biases[-1]:.4g}: {found}")

    def _draw_path(self, ax: Axes, colours: ScalarMappable) -> None:
        joined = early_and_even(self.numbers, TUNING.most_joined)
        w, n = self.weights[joined], joined.size
        if n < len(self.weights):
            (self.everything_,) = ax.plot(
                *self.weights.T, "-", color="#E6E6E6", linewidth=0.5, zorder=1.5, rasterized=True
            )
        shades = colours.to_rgba(np.maximum(self.numbers[joined[1:]], 1))
        self.path_ = LineCollection(
            list(np.stack([w[:-1], w[1:]], axis=1)), colors=shades, linewidths=1.4, zorder=2
        )
        ax.add_collection(self.path_, autolim=False)
        if not 2 <= n <= TUNING.most_arrows:
            return
        # Heads halfway, so that those of short steps do not overlap at the ends.
        for start, end, shade in zip(w[:-1], w[1:], shades, strict=True):
            look = {"arrowstyle": "-|>", "color": shade, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
            halfway = start + 0.55 * (end - start)
            ax.annotate("", halfway, start, arrowprops=look, zorder=3)

    def _draw_scale(self, ax: Axes, colours: ScalarMappable) -> None:
        last = int(self.numbers[-1])
        bar = self.colorbar_ = self.figure_.colorbar(
            colours, ax=ax, pad=0.02, label=f"plane, one per {self.unit}"
        )
        if last < TUNING.log_from:
            bar.locator = MaxNLocator(5, integer=True)
        else:  # powers of 10, the first and the last
            tens = 10 ** np.arange(int(np.log10(last / 3.0)) + 1)
            bar.set_ticks([*tens, last], labels=[f"{k:,}" for k in [*tens, last]])
            bar.minorticks_off()

    def _handles(self) -> list[Artist]:
        handles: list[Artist] = [*class_handles(self.names)]
        if len(self.planes) > 1:
            handles.append(line_handle("plane, first", (0, (4, 3)), to_hex(TIME(0.15))))
        if len(self.planes) > 2:
            between = number(len(self.planes) - 2, "more plane")
            of = int(self.numbers[-1]) - 2
            text = between if of == len(self.planes) - 2 else f"{between} of {of:,}"
            handles.append(line_handle(text, "-", to_hex(TIME(0.5))))
        where = " (outside)" if self.weights[-1].any() else " (none: w = 0)"
        last = "plane, last" + ("" if self.planes[-1] else where)
        handles.append(line_handle(last, width=2.2))
        handles.append(mark_handle("w, first", "o", hollow=True, edge=1.5))
        handles.append(mark_handle("w, last", "*", WRONG, 11))
        if self.everything_ is not None:
            joined = len(self.path_.get_segments()) + 1
            n, kept = int(self.numbers[-1] - self.numbers[0]) + 1, len(self.weights)
            handles.append(line_handle(f"w, {joined} of {n:,}", "-", to_hex(TIME(0.5))))
            every = "w, all of them" if kept == n else f"w, {kept:,} of {n:,}"
            handles.append(line_handle(every, "-", "#DDDDDD", 2.0))
        if self.solutions_ is not None:
            text = "separating w"
            handles.append(Patch(facecolor=(SOLUTIONS, 0.2), edgecolor=SOLUTIONS, label=text))
        return handles


path = PathDisplay.from_estimator


def _compute(
    cls: type[PathDisplay], model: FigureModel, data: FigureData, run: Run, codes: Integers
) -> PathDisplay:
    points = data.rows(np.arange(data.n_samples))
    limits = np.array(limits_of(points))
    lattice, evaluate = _lattice(model, data, run, limits)
    chosen = early(run.numbers, TUNING.most_planes)
    planes = [lattice.contour(evaluate(run.moments[k]), 0.0) for k in chosen]
    weights, biases, numbers = _weights(run)
    window = np.array([span(np.append(weights[:, k], 0.0), 0.2) for k in (0, 1)])
    seen = run.X.toarray() if hasattr(run.X, "toarray") else run.X
    window, cone, is_solvable = solutions(seen, run.signs, float(biases[-1]), weights[-1], window)
    names = list(data.names)
    scaled = " after the pipeline" if model.steps else ""
    return cls(
        planes=planes, shown=run.numbers[chosen], points=points, codes=codes, limits=limits,
        weights=weights, numbers=numbers, unit=run.unit, biases=biases,
        solutions=cone, is_solvable=is_solvable, window=window,
        normal=_normal(model, data, points, limits), names=model.class_names,
        labels=(names[0], names[1]),
        weight_labels=(f"w of {names[0]}{scaled}", f"w of {names[1]}{scaled}"),
        title=f"{model.name}: {number(run.n_moments, 'plane')}, one per {run.unit}",
    )  # fmt: skip


def _lattice(
    model: FigureModel, data: FigureData, run: Run, limits: Floats
) -> tuple[Lattice, Evaluate]:
    """Return points of the picture and what gives g of a moment there.

    The corners are enough for lines; a pipeline that bends the plane needs a finer lattice.
    """
    resolution = TUNING.bent_resolution if model.affine(data.mean, data.fill) is None else 2
    lattice = Lattice.over(limits, resolution)
    return lattice, run.evaluator(model.transform(data.fill(lattice.points)))


def _weights(run: Run) -> tuple[Floats, Floats, Integers]:
    """Return w, b and numbers of all moments, from 0 where the algorithm starts there."""
    moments: list[Moment] = run.moments
    weights = np.array([run.weights(moment) for moment in moments])
    biases = np.array([moment.b for moment in moments])
    machine, numbers = run.model.classifier, run.numbers
    if getattr(machine, "init", "") == "zeros" and not getattr(machine, "warm_start", False):
        weights, biases = np.vstack([np.zeros(2), weights]), np.append(0.0, biases)
        numbers = np.append(0, numbers)
    return weights, biases, numbers


def _normal(model: FigureModel, data: FigureData, points: Floats, limits: Floats) -> Floats | None:
    """Return an arrow along w from the point of the last plane that is nearest to the middle."""
    planes = model.affine(data.mean, data.fill)
    if planes is None or not np.abs(planes[0][0]).any():
        return None
    w, b = planes[0][0], float(planes[1][0])
    middle = limits.mean(axis=1)
    foot = middle - (w @ middle + b) / (w @ w) * w
    width = np.diff(limits, axis=1).ravel()
    if (foot < limits[:, 0]).any() or (foot > limits[:, 1]).any():
        return None
    # The same length in the picture for all units.
    return np.array([foot, foot + 0.14 * w / np.linalg.norm(w / width)])
