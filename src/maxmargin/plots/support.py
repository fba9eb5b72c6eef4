"""Dual variables of the samples against their margins, and the line of the KKT conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ..arrays import Floats, MatrixLike
from ..diagnostics import STATES, RegionTable, SupportTable, TubeTable, support_table
from ..diagnostics.fitted_model import ModelLike
from ..diagnostics.region import REGION_STATES
from ..diagnostics.table import SampleTable
from ..diagnostics.targets import TUBE_STATES
from .canvas import (
    FAINT,
    INK,
    PALETTE,
    WRONG,
    figure_of,
    number,
    one_axes,
    set_labels,
    set_title,
    size_of,
    some_rows,
    span,
)
from .display import Display
from .legends import line_handle, set_legend
from .model import FigureModel

MOST_POINTS = 5000
BLUE, ORANGE, GREEN = PALETTE[:3]


class Look(NamedTuple):
    """How the samples of a table are drawn: labels of the axes, colour and marker by state."""

    position: str
    alpha: str
    share: str
    states: Mapping[str, tuple[str, str]]


LOOKS: dict[type[SampleTable], Look] = {
    SupportTable: Look(
        "y·g(x)", "α", "α/C of the sample",
        dict(zip(STATES, ((BLUE, "o"), (GREEN, "D"), (ORANGE, "s"), (WRONG, "X")), strict=True)),
    ),
    TubeTable: Look(
        "y − g(x)", "α − α*", "(α − α*)/C of the sample",
        dict(zip(TUBE_STATES, ((FAINT, "o"), (GREEN, "D"), (WRONG, "^"), (BLUE, "v")),
                 strict=True)),
    ),
    RegionTable: Look(
        "g(x) = w·φ(x) − ρ", "α", "α/weight of the sample",
        dict(zip(REGION_STATES, ((BLUE, "o"), (GREEN, "D"), (WRONG, "X")), strict=True)),
    ),
}  # fmt: skip


@dataclass(eq=False)
class SupportDisplay(Display):
    """Dual variables and KKT states of the training samples; what `support` returns.

    Parameters
    ----------
    table : SupportTable, TubeTable or RegionTable
        α, margin (residual, score) and state of every sample.
    unit : ndarray of shape (n,)
        Divisor of α in the picture: C_i where costs differ, else 1.
    max_points : int, default=5000
        The largest number of samples that are drawn.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    points_ : dict of PathCollection
        One per state.
    corner_ : Line2D
        The set that the KKT conditions allow.
    bound_ : Line2D or None
        α = C, the upper bound.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=1.0, kernel="linear").fit(X, y)
    >>> mm.plots.support(model, X, y, ax=Figure().subplots()).bound_ is None
    False
    """

    table: SupportTable | TubeTable | RegionTable
    unit: Floats
    max_points: int = MOST_POINTS
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    points_: dict[str, PathCollection] = field(init=False)
    corner_: Line2D = field(init=False)
    bound_: Line2D | None = field(init=False, default=None)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        clf: ModelLike,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        task: object = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> SupportDisplay:
        """Draw α of every training sample against its margin, and the KKT conditions.

        y·g > 1 ⇒ α = 0 (outside), 0 < α < C ⇒ y·g = 1 (on the margin), y·g < 1 ⇒ α = C (inside, or
        misclassified): at the optimum every sample lies on that polygonal line. The squared hinge
        has α = 2Cξ, ξ = 1 − y·g, in place of the bound; the hard margin has no bound. Of a
        regression α − α* is drawn against the residual y − g, of a `OneClassSVM` α against g.

        Parameters
        ----------
        clf : fitted support vector machine, or a Pipeline or search that ends in one
            The model.
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples of the fit; that is checked, as in `maxmargin.diagnostics.support_table`.
        y : array-like of shape (n_samples,)
            Labels or targets of the fit; not needed for a `OneClassSVM`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the fit.
        task : int, or labels, optional
            The task of a model of many classes, as in `maxmargin.diagnostics.support_table`.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SupportDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Cristianini, Shawe-Taylor (2000), *An Introduction to Support Vector Machines*, section 6.1.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
        >>> mm.plots.support(model, X, y, ax=Figure().subplots()).table.counts["on margin"]
        3
        """
        model = FigureModel(clf)
        table = support_table(
            model.classifier, model.transform(X), None if y is None else np.asarray(y),
            sample_weight, task=task,
        )  # fmt: skip
        cost = _cost(table)
        known = cost[np.isfinite(cost)]
        differ = known.size > 0 and np.ptp(known) > 1e-12 * known.max()
        return cls(table, cost if differ else np.ones(len(table))).plot(ax, legend=legend)

    @property
    def heights(self) -> Floats:
        """α, or α/C_i where costs differ."""
        return self.table.alpha / self.unit

    @property
    def positions(self) -> Floats:
        """y·g(x) of classes, y − g(x) of a regression, g(x) of one class."""
        table = self.table
        if isinstance(table, SupportTable):
            return table.margin
        return table.residual if isinstance(table, TubeTable) else table.score

    @property
    def edges(self) -> tuple[float, ...]:
        """Positions at which α rises from 0: −ε and ε of a regression, else the margin."""
        if isinstance(self.table, TubeTable):
            return -self.table.epsilon, self.table.epsilon
        return (1.0,) if isinstance(self.table, SupportTable) else (0.0,)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> SupportDisplay:
        """Draw on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SupportDisplay
            The display itself, with its artists.
        """
        ax = one_axes(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        table, heights, positions = self.table, self.heights, self.positions
        look = LOOKS[type(table)]
        left, right = span(np.concatenate([positions, [0.0, *self.edges]]), 0.06)
        top = self._draw_corner(ax, left, right, float(np.abs(heights).max(initial=0.0)))
        rows = some_rows(
            len(table), self.max_points, np.flatnonzero(table.alpha), self.max_points // 2
        )
        self.points_ = {}
        for state, (ink, shape) in look.states.items():
            own = rows[table.state[rows] == state]
            self.points_[state] = ax.scatter(
                positions[own], heights[own], c=ink, marker=shape, s=max(size_of(rows.size), 14),
                edgecolors="white", linewidths=0.5, zorder=3, clip_on=False,
            )  # fmt: skip
        ax.axvline(0.0, color=INK, linewidth=0.8, zorder=1)
        ax.set_xlim(left, right)
        ax.set_ylim(-1.12 * top if len(self.edges) == 2 else -0.04 * top, 1.12 * top)
        set_labels(ax, look.position, look.alpha if (self.unit == 1.0).all() else look.share)
        note = f"{rows.size:,} of {len(table):,} samples shown" if rows.size < len(table) else ""
        n_support = number(int(np.count_nonzero(table.alpha)), "support vector")
        set_title(ax, f"{table.task}: {n_support} of {number(len(table), 'sample')}", note)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_corner(self, ax: Axes, left: float, right: float, highest: float) -> float:
        """Draw the set that the KKT conditions allow; return the height of the picture."""
        bounds, costs = self.table.bound / self.unit, _cost(self.table) / self.unit
        bounded = bool(np.isfinite(bounds).all())
        bound = float(bounds.max()) if bounded else np.inf
        # A squared slack has α = 2Cξ in place of the upper bound.
        slope = 2.0 * float(costs.max()) if not bounded and np.isfinite(costs).all() else 0.0
        top = bound if bounded else max(highest, 1e-300)

        def rise(edge: float, end: float, sign: float) -> list[tuple[float, float]]:
            if slope:
                return [(edge, 0.0), (end, sign * slope * abs(end - edge))]
            if bounded:
                return [(edge, 0.0), (edge, sign * bound), (end, sign * bound)]
            return [(edge, 0.0), (edge, sign * 10.0 * top)]

        if len(self.edges) == 2:
            low, high = self.edges
            corner = [*rise(low, left, -1.0)[::-1], *rise(high, right, 1.0)]
        else:
            corner = [(right, 0.0), *rise(self.edges[0], left, 1.0)]
        (self.corner_,) = ax.plot(
            *np.transpose(corner), color="#9A9A9A", linewidth=5.0, alpha=0.5, zorder=0,
            solid_joinstyle="miter", label=self._conditions(bounded, slope > 0.0),
        )  # fmt: skip
        if bounded:
            for height in (bound, -bound)[: len(self.edges)]:
                self.bound_ = ax.axhline(
                    height, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1
                )
        return top

    def _conditions(self, bounded: bool, squared: bool) -> str:
        """Return the KKT conditions in words."""
        if isinstance(self.table, RegionTable):
            return "KKT: α = 0, g = 0, α at its bound"
        if isinstance(self.table, TubeTable):
            where, bound, slack = "on the edge", "±C", "±2Cξ"
        else:
            where, bound, slack = "margin 1", "C", "2Cξ"
        if squared:
            return f"KKT: α = 0, then α = {slack}"
        return f"KKT: α = 0, {where}, α = {bound}" if bounded else f"KKT: α = 0, or {where}"

    def _handles(self) -> list[Line2D]:
        counts = self.table.counts
        handles = [
            Line2D(
                [], [], linestyle="", marker=shape, color=ink, label=f"{state} ({counts[state]:,})"
            )
            for state, (ink, shape) in LOOKS[type(self.table)].states.items()
            if counts[state]
        ]
        handles.append(line_handle(str(self.corner_.get_label()), "-", "#BBBBBB", 4.0))
        if self.bound_ is not None:
            plain = bool((self.unit == 1.0).all())
            name = "weight" if isinstance(self.table, RegionTable) else "C"
            text = f"{float(self.table.bound.max()):.4g}" if plain else "of the sample"
            text = f"{name} = {text}" if plain else f"{name} {text}"
            handles.append(line_handle(text, "--", width=0.9))
        return handles


support = SupportDisplay.from_estimator


def _cost(table: SupportTable | TubeTable | RegionTable) -> Floats:
    """Return C_i of the samples; of one class α is at most the weight of the sample."""
    return table.bound if isinstance(table, RegionTable) else table.cost
