"""A regression: its curve or surface with the tube, or targets over predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Integers, MatrixLike
from ..diagnostics.fitted_model import ModelLike
from ..diagnostics.targets import (
    TUBE_STATES,
    TargetErrors,
    check_targets,
    edge_tolerance,
    target_errors,
    tube_states,
)
from ..kernels import Precomputed
from .canvas import (
    FAINT,
    INK,
    MOST_POINTS,
    PALETTE,
    WRONG,
    Bools,
    Limits,
    figure_of,
    limits_of,
    lines,
    one_axes,
    set_frame,
    set_labels,
    set_title,
    size_of,
    some_rows,
    span,
)
from .display import Display
from .grid import Lattice
from .legends import line_handle, mark_handle, set_legend
from .model import FigureModel
from .rings import draw_rings, ring_handle
from .slack import tube_slacks
from .titles import described
from .view import FeatureLike, FigureData, View, view_of

Kind = Literal["curve", "surface", "targets"]

MOST_RINGS = 300  # support vectors that are drawn where samples are left out
TUBE = "#DCE6EC"
# Colour and marker by the state of a sample; those in the tube or on its edge look the same.
LOOK = dict(
    zip(TUBE_STATES, ((FAINT, "o"), (FAINT, "o"), (WRONG, "^"), (PALETTE[0], "v")), strict=True)
)
# The same in words, for the legend.
NAMES = {
    "in the tube": LOOK["in the tube"],
    "above the tube": LOOK["above"],
    "below the tube": LOOK["below"],
}
LEVELS = 12  # of the prediction on a surface


@dataclass(eq=False)
class RegressionDisplay(Display):
    """A regression with its tube and the samples about it; what `regression` returns.

    Parameters
    ----------
    kind : {"curve", "surface", "targets"}
        The prediction over one feature, over two features, or targets over predictions.
    points : ndarray of shape (m, 2)
        The samples that are drawn: (x, y), (x₁, x₂), or (g(x), y).
    rows : ndarray of int of shape (m,)
        Their rows of X.
    targets, residuals : ndarray of shape (m,)
        y, and y − g(x).
    states : ndarray of str of shape (m,)
        "in the tube", "on its edge", "above" or "below".
    weights : ndarray of shape (m,)
        \\|α − α*\\| relative to the largest; 0 of samples that are not support vectors.
    x, g : ndarray
        The lattice and the prediction on it: x and g of shape (resolution,) of a curve, a Lattice
        and g of shape (resolution, resolution) of a surface; both ends of the diagonal of targets.
    epsilon : float
        Half the width of the tube.
    errors : TargetErrors
        R² and errors of all samples, also of those that are not drawn.
    slacks : ndarray of shape (k, 2, 2)
        Lines from samples outside of the tube to its edge.
    labels : tuple of str
        Labels of the axes.
    surface_label : str
        Label of the levels of a surface.
    title, note : str
        Title of the figure, and the smaller text below it.
    n_support : int
        How many of all rows of X are support vectors; rings thin out where they would overlap.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    curve_, tube_, surface_ : artists or None
        The prediction, and the tube around it.
    points_ : dict of str to PathCollection
        The samples, by state.
    support_ : PathCollection or None
        Rings of support vectors, whose area grows with \\|α − α*\\|.
    slack_ : LineCollection or None
        The lines of slack.
    colorbar_ : Colorbar or None
        The scale of a surface.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X = np.linspace(0.0, 6.0, 30)[:, np.newaxis]
    >>> model = mm.SVR(epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> display = mm.plots.regression(model, X, np.sin(X[:, 0]), ax=Figure().subplots())
    >>> display.kind, display.epsilon
    ('curve', 0.05)
    """

    kind: Kind
    points: Floats
    rows: Integers
    targets: Floats
    residuals: Floats
    states: NDArray[np.str_]
    weights: Floats
    x: Floats | Lattice
    g: Floats
    epsilon: float
    errors: TargetErrors
    slacks: Floats
    labels: tuple[str, str]
    surface_label: str
    title: str
    note: str = ""
    n_support: int = 0
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    curve_: Artist | None = field(init=False, default=None)
    tube_: Artist | None = field(init=False, default=None)
    surface_: Any = field(init=False, default=None)
    points_: dict[str, PathCollection] = field(init=False)
    support_: PathCollection | None = field(init=False, default=None)
    slack_: LineCollection | None = field(init=False, default=None)
    colorbar_: Colorbar | None = field(init=False, default=None)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        model: ModelLike,
        X: MatrixLike,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        features: FeatureLike = None,
        resolution: int = 200,
        feature_names: Sequence[str] | None = None,
        target_name: str = "y",
        max_points: int = MOST_POINTS,
        legend: bool = True,
    ) -> RegressionDisplay:
        """Draw a regression with its tube, g(x) ± ε, and the samples about it.

        For one feature the curve, for two features the surface as filled levels, for more of them
        the targets over their predictions, with the tube as a band around the diagonal. Samples
        in the tube are grey, those above and below it have colours of their own, with lines of
        slack to the tube; support vectors are ringed, the larger \\|α − α*\\| the wider.

        Parameters
        ----------
        model : fitted SVR, NuSVR or LinearSVR, or a Pipeline or search that ends in one
            The model; a pipeline is drawn in the space of X.
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples, those of the fit or others; support vectors are ringed in those of the fit.
        y : array-like of shape (n_samples,)
            Targets.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        features : one or two features, by number or name, optional
            Draw the curve or surface over these; the others are held at their means (a slice).
        resolution : int, default=200
            Points of the lattice along each axis.
        feature_names : sequence of str, optional
            Names of the features; by default those of the frame X, or of the frame of the fit.
        target_name : str, default="y"
            Name of the target.
        max_points : int, default=2000
            The largest number of samples that are drawn, up to 300 support vectors among them; the
            choice is deterministic.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        RegressionDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Smola, Schölkopf, *Statistics and Computing* 14 (2004), figure 1.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 2.0, 4.0, 6.0, 8.0]
        >>> model = mm.SVR(kernel="linear", C=10.0, epsilon=0.5).fit(X, y)
        >>> mm.plots.regression(model, X, y, ax=Figure().subplots()).title
        'SVR (linear, C = 10, ε = 0.5), 2 support vectors, R² 0.9844'
        """
        if resolution < 2:
            raise ValueError(f"resolution must be at least 2, got {resolution}.")
        fitted = FigureModel(model)
        _require_targets(fitted)
        data = FigureData(X, feature_names, fitted.model)
        targets = check_targets(y, data.n_samples)
        view = _view(fitted, data, features)
        display = _compute(cls, fitted, data, view, targets, resolution, max_points, target_name)
        return display.plot(ax, legend=legend)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> RegressionDisplay:
        """Draw on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        RegressionDisplay
            The display itself, with its artists.
        """
        ax = one_axes(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        if isinstance(self.x, Lattice):
            self._draw_surface(ax, self.x)
        else:
            self._draw_curve(ax, self.x)
        if len(self.slacks):
            self.slack_ = lines(ax, list(self.slacks), INK, "-", 0.8, alpha=0.45, zorder=2)
        self._draw_points(ax)
        self._frame(ax)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_curve(self, ax: Axes, x: Floats) -> None:
        low, high = self.g - self.epsilon, self.g + self.epsilon
        self.tube_ = ax.fill_between(x, low, high, color=TUBE, linewidth=0.0, zorder=0)
        for edge in (low, high):
            ax.plot(x, edge, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1.4)
        (self.curve_,) = ax.plot(x, self.g, color=INK, linewidth=1.8, zorder=1.5)

    def _draw_surface(self, ax: Axes, lattice: Lattice) -> None:
        self.surface_ = ax.contourf(
            lattice.x, lattice.y, self.g, LEVELS, cmap="cividis", alpha=0.5, zorder=0
        )
        # Below the axes, so that the legend has its place beside them.
        self.colorbar_ = figure_of(ax).colorbar(
            self.surface_, ax=ax, location="bottom", shrink=0.7, aspect=30,
            ticks=MaxNLocator(5), label=self.surface_label,
        )  # fmt: skip

    def _draw_points(self, ax: Axes) -> None:
        area = size_of(len(self.points), ax)
        self.points_ = {}
        for state, (ink, shape) in LOOK.items():
            own = self.states == state
            self.points_[state] = ax.scatter(
                self.points[own, 0], self.points[own, 1], c=ink, marker=shape, zorder=3,
                s=(0.6 if ink == FAINT else 1.1) * area, edgecolors="white", linewidths=0.5,
            )  # fmt: skip
        held = self.weights > 0.0
        self.support_ = draw_rings(
            ax, self.points[held], self._limits(), area, 1.2 + 2.8 * self.weights[held]
        )

    def _limits(self) -> Limits:
        if isinstance(self.x, Lattice):
            x, y = self.x.x, self.x.y
            return (x[0], x[-1]), (y[0], y[-1])
        ends = np.array([self.g.min() - self.epsilon, self.g.max() + self.epsilon])
        up = span(np.concatenate([self.points[:, 1], ends]), 0.04)
        return (self.x[0], self.x[-1]), up

    def _frame(self, ax: Axes) -> None:
        if isinstance(self.x, Lattice):
            set_frame(ax, self._limits(), self.labels)
        else:
            across, up = self._limits()
            ax.set_xlim(*across)
            ax.set_ylim(*up)
            set_labels(ax, *self.labels)
        set_title(ax, self.title, self.note)

    def _handles(self) -> list[Artist]:
        handles: list[Artist] = []
        if self.kind != "surface":
            text = "g(x)" if self.kind == "curve" else "y = g(x)"
            handles.append(line_handle(text, width=1.8))
            if self.epsilon > 0.0:
                handles.append(Patch(facecolor=TUBE, label=f"tube, ± {self.epsilon:.4g}"))
        handles += [
            mark_handle(text, *look[::-1])
            for text, look in NAMES.items()
            if any(LOOK[state] == look for state in self.states)
        ]
        if self.n_support:
            drawn = 0 if self.support_ is None else len(np.asarray(self.support_.get_offsets()))
            handles.append(ring_handle(drawn, self.n_support))
        if len(self.slacks):
            handles.append(line_handle("slack", "-", FAINT, 0.9))
        return handles


regression = RegressionDisplay.from_estimator


def _require_targets(model: FigureModel) -> None:
    if not model.has_targets:
        raise TypeError(
            f"the model must be SVR, NuSVR or LinearSVR, got {model.name}: plots.boundary and "
            "plots.margins draw it."
        )
    if model.epsilon is None:
        raise ValueError(
            f"the {model.name} was trained by another program, whose file does not hold the width "
            "of its tube: fit it with maxmargin."
        )


def _view(model: FigureModel, data: FigureData, features: FeatureLike) -> View | None:
    """Return the features to draw over, None for targets over predictions."""
    if isinstance(model.kernel, Precomputed):
        if features is not None:
            raise ValueError("a precomputed kernel has no features to draw: leave out features.")
        return None
    if features is None and (data.n_features > 2 or data.constant):
        return None
    return view_of(model, data, features)


def _compute(
    cls: type[RegressionDisplay],
    model: FigureModel,
    data: FigureData,
    view: View | None,
    targets: Floats,
    resolution: int,
    max_points: int,
    target_name: str,
) -> RegressionDisplay:
    n, epsilon = data.n_samples, model.epsilon or 0.0
    predicted = model.scores(data.X)[:, 0]
    tol = edge_tolerance(model, targets)
    errors = target_errors(targets, predicted, epsilon, tol)
    is_support = model.support_rows(n, take=_rows_of(model, data))
    rows = some_rows(n, max_points, np.flatnonzero(is_support), MOST_RINGS)
    y, residuals = targets[rows], (targets - predicted)[rows]
    kind, x, g, points = _shape(model, data, view, rows, y, predicted[rows], resolution)
    states = tube_states(residuals, epsilon, tol)
    labels = {
        "curve": (view.labels[0] if view else "", target_name),
        "surface": view.labels if view else ("", ""),
        "targets": ("prediction g(x)", target_name),
    }[kind]
    exact = kind == "targets" or (kind == "curve" and view is not None and view.exact)
    slacks: Floats = np.empty((0, 2, 2))
    if exact:
        slacks = tube_slacks(points, residuals, np.isin(states, TUBE_STATES[2:]), epsilon)
    return cls(
        kind=kind, points=points, rows=rows, targets=y, residuals=residuals, states=states,
        weights=_weights(model, n, is_support)[rows], x=x, g=g, epsilon=epsilon, errors=errors,
        slacks=slacks,
        labels=labels, surface_label=f"prediction of {target_name}",
        title=f"{described(model)}, {errors.measures.split(',')[0]}",
        note=_note(view, len(rows), n), n_support=int(is_support.sum()),
    )  # fmt: skip


def _rows_of(model: FigureModel, data: FigureData) -> Any:
    """Return how to compare rows with the support vectors; Gram matrices have none."""
    return None if isinstance(model.kernel, Precomputed) else data.take


def _shape(
    model: FigureModel,
    data: FigureData,
    view: View | None,
    rows: Integers,
    y: Floats,
    predicted: Floats,
    resolution: int,
) -> tuple[Kind, Floats | Lattice, Floats, Floats]:
    """Return the kind of picture, the lattice, the prediction on it, and the samples."""
    if view is None:
        both = span(np.concatenate([y, predicted]), 0.04)
        return "targets", np.array(both), np.array(both), np.column_stack([predicted, y])
    places = view.flatten(data.numbers[rows])
    if view.is_strip:
        x = np.linspace(*span(places[:, 0], 0.05), resolution)
        along = np.column_stack([x, np.zeros(resolution)])
        g = model.scores(data.fill(view.lift(along)))[:, 0]
        return "curve", x, g, np.column_stack([places[:, 0], y])
    lattice = Lattice.over(limits_of(places), resolution)
    g = model.scores(data.fill(view.lift(lattice.points)))[:, 0]
    return "surface", lattice, g.reshape(resolution, resolution), places


def _weights(model: FigureModel, n: int, is_support: Bools) -> Floats:
    """Return |α − α*| of every row relative to the largest, 0 where the fit had other rows."""
    if not is_support.any():
        return np.zeros(n)
    alpha = np.where(is_support, model.alpha(n), 0.0)
    return alpha / alpha.max()


def _note(view: View | None, shown: int, n: int) -> str:
    parts = [view.note] if view is not None and view.note else []
    if view is not None and not view.exact:
        parts.append("samples lie off it, and are coloured by the tube where they are")
    if shown < n:
        parts.append(f"{shown:,} of {n:,} samples shown")
    return "; ".join(parts)
