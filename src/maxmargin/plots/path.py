"""The steps of an algorithm: its planes, and the path of w through weight space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon
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
from .grid import Lattice, nearest_on
from .legends import class_handles, line_handle, mark_handle, set_legend
from .model import FigureModel
from .steps import Evaluate, Moment, Run, fitted_classifier, run_of, thinned
from .view import FigureData

SOLUTIONS = PALETTE[2]


@dataclass(frozen=True)
class Tuning:
    """Limits of the figure."""

    most_moments: int = 5000
    # Lines in the first panel.
    most_planes: int = 25
    most_arrows: int = 60
    # Factor by which the window of w may grow to show solutions.
    most_widening: float = 20.0
    # Factor of the window of w in which solutions are searched.
    search_widening: float = 1e6
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
    points : ndarray of shape (n, 2)
        The samples.
    codes : ndarray of int of shape (n,)
        Their class numbers.
    limits : ndarray of shape (2, 2)
        Limits of the first panel, one row per axis.
    weights : ndarray of shape (m, 2)
        w of every step, from the start.
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
    path_ : Line2D
        The path of w.
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
    points: Floats
    codes: Integers
    limits: Floats
    weights: Floats
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
    path_: Line2D = field(init=False)
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

        First the planes in the space of X, faint to strong, with w at the last one. Then w in
        weight space, where every sample allows one half-plane y(w·x + b) > 0 at the last b: their
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
        self.axes_ = several_axes(axes, 2, (11.0, 4.8))
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        self._draw_planes(self.axes_[0])
        self._draw_weights(self.axes_[1])
        if legend:
            self.legend_ = set_legend(self.axes_[1], self._handles())
        return self

    def _draw_planes(self, ax: Axes) -> None:
        shades = _shades(len(self.planes))
        self.planes_ = [
            lines(ax, pieces, shade, "-", 1.1, zorder=1)
            for pieces, shade in zip(self.planes[:-1], shades[:-1], strict=True)
        ]
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

    def _draw_weights(self, ax: Axes) -> None:
        if len(self.solutions) > 2:
            self.solutions_ = Polygon(
                self.solutions, facecolor=(SOLUTIONS, 0.2), edgecolor=SOLUTIONS, linewidth=1.0
            )
            ax.add_patch(self.solutions_)
        w = self.weights
        (self.path_,) = ax.plot(w[:, 0], w[:, 1], "-", color="#9A9A9A", linewidth=1.0, zorder=2)
        self._draw_arrows(ax)
        ax.axhline(0.0, color="#CCCCCC", linewidth=0.8, zorder=0)
        ax.axvline(0.0, color="#CCCCCC", linewidth=0.8, zorder=0)
        self.start_ = ax.scatter(
            w[0, 0], w[0, 1], s=60, facecolors="white", edgecolors=INK, linewidths=1.5, zorder=4
        )
        self.end_ = ax.scatter(
            w[-1, 0],
            w[-1, 1],
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
        set_title(ax, f"weight space, b = {self.biases[-1]:.3g}: {found}")

    def _draw_arrows(self, ax: Axes) -> None:
        w = self.weights
        if not 2 <= len(w) <= TUNING.most_arrows:
            return
        # Heads halfway, so that those of short steps do not overlap at the ends.
        for start, end, shade in zip(w[:-1], w[1:], _shades(len(w) - 1), strict=True):
            look = {"arrowstyle": "-|>", "color": shade, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
            halfway = start + 0.55 * (end - start)
            ax.annotate("", halfway, start, arrowprops=look, zorder=3)

    def _handles(self) -> list[Artist]:
        handles: list[Artist] = [*class_handles(self.names)]
        if len(self.planes) > 1:
            handles.append(line_handle("plane, early", "-", str(_shades(9)[0])))
        where = " (outside)" if self.weights[-1].any() else " (none: w = 0)"
        last = "plane, at the end" + ("" if self.planes[-1] else where)
        handles.append(line_handle(last, width=2.2))
        handles.append(line_handle("path of w", "-", "#9A9A9A", 1.0))
        handles.append(mark_handle("its start", "o", hollow=True, edge=1.5))
        handles.append(mark_handle("its end", "*", WRONG, 11))
        if self.solutions_ is not None:
            text = "separating w"
            handles.append(Patch(facecolor=(SOLUTIONS, 0.2), edgecolor=SOLUTIONS, label=text))
        return handles


path = PathDisplay.from_estimator


def solution_region(X: Floats, signs: Floats, b: float, window: Floats) -> Floats:
    """Return the corners of {w in window : y_i(w·x_i + b) > 0 for every i}, none if it is empty.

    The window, one row of two limits per axis, is clipped by one half-plane after another
    (Sutherland, Hodgman, 1974).

    >>> window = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    >>> solution_region(np.array([[1.0, 0.0]]), np.array([1.0]), 0.0, window).tolist()
    [[0.0, -1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 1.0]]
    """
    (left, right), (bottom, top) = window
    corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    for normal, offset in zip(signs[:, None] * X, signs * b, strict=True):
        if not len(corners):
            break
        corners = _cut(corners, normal, float(offset))
    return corners


def _cut(corners: Floats, normal: Floats, offset: float) -> Floats:
    """Return the part of a convex polygon where normal·w + offset ≥ 0."""
    height = corners @ normal + offset
    kept = []
    for k in range(len(corners)):
        before, here = height[k - 1], height[k]
        if before * here < 0:
            share = before / (before - here)
            kept.append(corners[k - 1] + share * (corners[k] - corners[k - 1]))
        if here >= 0:
            kept.append(corners[k])
    return np.array(kept).reshape(-1, 2)


def _compute(
    cls: type[PathDisplay], model: FigureModel, data: FigureData, run: Run, codes: Integers
) -> PathDisplay:
    points = data.rows(np.arange(data.n_samples))
    limits = np.array(limits_of(points))
    lattice, evaluate = _lattice(model, data, run, limits)
    chosen = thinned(run.moments, TUNING.most_planes)
    planes = [lattice.contour(evaluate(moment), 0.0) for moment in chosen]
    weights, biases = _weights(run)
    window = np.array([span(np.append(weights[:, k], 0.0), 0.2) for k in (0, 1)])
    seen = run.X.toarray() if hasattr(run.X, "toarray") else run.X
    window, cone, is_solvable = solutions(seen, run.signs, float(biases[-1]), weights[-1], window)
    names = list(data.names)
    scaled = " after the pipeline" if model.steps else ""
    return cls(
        planes=planes, points=points, codes=codes, limits=limits, weights=weights, biases=biases,
        solutions=cone, is_solvable=is_solvable, window=window,
        normal=_normal(model, data, points, limits), names=model.class_names,
        labels=(names[0], names[1]),
        weight_labels=(f"w of {names[0]}{scaled}", f"w of {names[1]}{scaled}"),
        title=_title(model, run, len(chosen)),
    )  # fmt: skip


def solutions(
    X: Floats, signs: Floats, b: float, w: Floats, window: Floats
) -> tuple[Floats, Floats, bool]:
    """Return a window that shows solutions if possible, those in it, and whether there are any.

    The line of a sample has the distance \\|b\\|/‖x‖ from 0 in weight space: a window many times as
    large shows whether the half-planes intersect.
    """
    corners = solution_region(X, signs, b, window)
    if len(corners) > 2:
        return window, corners, True
    length = np.linalg.norm(X, axis=1)
    far = np.abs(b) / length[(length > 0) & (signs * b <= 0)]
    reach = TUNING.search_widening * max(float(np.abs(window).max()), float(far.max(initial=0.0)))
    corners = solution_region(X, signs, b, np.array([[-reach, reach], [-reach, reach]]))
    # An empty intersection that rounding left corners of has no interior.
    if len(corners) < 3 or not (signs * (X @ corners.mean(axis=0) + b) > 0).all():
        return window, np.empty((0, 2)), False
    edges = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
    nearest = nearest_on(w[None], edges, np.ptp(window, axis=1))[0]
    window = _widened(window, nearest)
    return window, solution_region(X, signs, b, window), True


def _widened(window: Floats, point: Floats) -> Floats:
    """Return the window widened to hold a point; unchanged where the point is far away."""
    wide = np.array([span(np.append(window[k], point[k]), 0.2) for k in (0, 1)])
    too_far = (np.ptp(wide, axis=1) > TUNING.most_widening * np.ptp(window, axis=1)).any()
    return window if too_far else wide


def _lattice(
    model: FigureModel, data: FigureData, run: Run, limits: Floats
) -> tuple[Lattice, Evaluate]:
    """Return points of the picture and what gives g of a moment there.

    The corners are enough for lines; a pipeline that bends the plane needs a finer lattice.
    """
    resolution = TUNING.bent_resolution if model.affine(data.mean, data.fill) is None else 2
    lattice = Lattice.over(limits, resolution)
    return lattice, run.evaluator(model.transform(data.fill(lattice.points)))


def _weights(run: Run) -> tuple[Floats, Floats]:
    """Return w and b of all moments, beginning with 0 where the algorithm starts there."""
    moments: list[Moment] = run.moments
    weights = np.array([run.weights(moment) for moment in moments])
    biases = np.array([moment.b for moment in moments])
    machine = run.model.classifier
    if getattr(machine, "init", "") == "zeros" and not getattr(machine, "warm_start", False):
        weights, biases = np.vstack([np.zeros(2), weights]), np.append(0.0, biases)
    return weights, biases


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


def _title(model: FigureModel, run: Run, shown: int) -> str:
    text = f"{model.name}: {number(run.n_moments, 'plane')}, first to last"
    return text if shown == run.n_moments else f"{text} ({shown} shown)"


def _shades(n: int) -> list[str]:
    """Return n greys from light to dark."""
    return [f"{level:.3f}" for level in np.linspace(0.82, 0.3, max(n, 1))]
