"""Dual variables of the samples against y·g, and the line on which the KKT conditions hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ..arrays import Floats, MatrixLike
from ..diagnostics import STATES, SupportTable, support_table
from ..diagnostics.fitted_model import ModelLike
from .canvas import (
    INK,
    PALETTE,
    WRONG,
    figure_of,
    line_handle,
    number,
    one_axes,
    set_legend,
    set_title,
    size_of,
    some_rows,
    span,
)
from .model import FigureModel

MOST_POINTS = 5000
LOOK = dict(
    zip(
        STATES, ((PALETTE[0], "o"), (PALETTE[2], "D"), (PALETTE[1], "s"), (WRONG, "X")), strict=True
    )
)


@dataclass(eq=False)
class SupportDisplay:
    """Dual variables and KKT states of the training samples; what `support` returns.

    Parameters
    ----------
    table : SupportTable
        α, margin and state of every sample.
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
        α = C.
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

    table: SupportTable
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
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        task: object = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> SupportDisplay:
        """Draw α of every training sample against its margin, and the KKT conditions.

        y·g > 1 ⇒ α = 0 (outside), 0 < α < C ⇒ y·g = 1 (on the margin), y·g < 1 ⇒ α = C (inside, or
        misclassified): at the optimum every sample lies on that polygonal line. The squared hinge
        has α = 2Cξ, ξ = 1 − y·g, in place of the bound; the hard margin has no bound.

        Parameters
        ----------
        clf : fitted support vector machine, or a Pipeline or search that ends in one
            The model.
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples of the fit; that is checked, as in `maxmargin.diagnostics.support_table`.
        y : array-like of shape (n_samples,)
            Labels of the fit.
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
        labels = np.asarray(y)
        table = support_table(
            model.classifier, model.transform(X), labels, sample_weight, task=task
        )
        known = table.cost[np.isfinite(table.cost)]
        differ = known.size > 0 and np.ptp(known) > 1e-12 * known.max()
        unit = table.cost if differ else np.ones(len(table))
        return cls(table, unit).plot(ax, legend=legend)

    @property
    def heights(self) -> Floats:
        """α, or α/C_i where costs differ."""
        return self.table.alpha / self.unit

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
        table, heights = self.table, self.heights
        left, right = span(np.concatenate([table.margin, [0.0, 1.0]]), 0.06)
        top = self._draw_corner(ax, left, right, float(heights.max(initial=0.0)))
        rows = some_rows(
            len(table), self.max_points, np.flatnonzero(table.alpha), self.max_points // 2
        )
        self.points_ = {}
        for state, (ink, shape) in LOOK.items():
            own = rows[table.state[rows] == state]
            self.points_[state] = ax.scatter(
                table.margin[own], heights[own], c=ink, marker=shape, s=max(size_of(rows.size), 14),
                edgecolors="white", linewidths=0.5, zorder=3, clip_on=False,
            )  # fmt: skip
        ax.axvline(0.0, color=INK, linewidth=0.8, zorder=1)
        ax.set_xlim(left, right)
        ax.set_ylim(-0.04 * top, 1.12 * top)
        ax.set_xlabel("y·g(x)")
        ax.set_ylabel("α" if (self.unit == 1.0).all() else "α/C of the sample")
        note = f"{rows.size:,} of {len(table):,} samples shown" if rows.size < len(table) else ""
        n_support = number(int(np.count_nonzero(table.alpha)), "support vector")
        set_title(ax, f"{table.task}: {n_support} of {number(len(table), 'sample')}", note)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_corner(self, ax: Axes, left: float, right: float, highest: float) -> float:
        """Draw the set that the KKT conditions allow; return the height of the picture."""
        table = self.table
        bounded = np.isfinite(table.bound).all()
        bound = float((table.bound / self.unit).max()) if bounded else np.inf
        squared = not bounded and np.isfinite(table.cost).all()
        top = bound if bounded else max(highest, 1e-300)
        if squared:
            # The squared hinge has α = 2Cξ in place of the upper bound.
            slope = 2.0 * float((table.cost / self.unit).max())
            corner = np.array([[right, 0.0], [1.0, 0.0], [left, slope * (1.0 - left)]])
            label = "KKT: α = 0, then α = 2Cξ"
        elif bounded:
            corner = np.array([[right, 0.0], [1.0, 0.0], [1.0, bound], [left, bound]])
            label = "KKT: α = 0, margin 1, α = C"
        else:
            corner = np.array([[right, 0.0], [1.0, 0.0], [1.0, 10.0 * top]])
            label = "KKT: α = 0, or margin 1"
        (self.corner_,) = ax.plot(
            corner[:, 0], corner[:, 1], color="#9A9A9A", linewidth=5.0, alpha=0.5, zorder=0,
            solid_joinstyle="miter", label=label,
        )  # fmt: skip
        if bounded:
            self.bound_ = ax.axhline(
                bound, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1
            )
        return top

    def _handles(self) -> list[Line2D]:
        counts = self.table.counts
        handles = [
            Line2D(
                [], [], linestyle="", marker=shape, color=ink, label=f"{state} ({counts[state]:,})"
            )
            for state, (ink, shape) in LOOK.items()
            if counts[state]
        ]
        handles.append(line_handle(str(self.corner_.get_label()), "-", "#BBBBBB", 4.0))
        if self.bound_ is not None:
            plain = bool((self.unit == 1.0).all())
            text = f"C = {float(self.table.bound.max()):.4g}" if plain else "C of the sample"
            handles.append(line_handle(text, "--", width=0.9))
        return handles


support = SupportDisplay.from_estimator
