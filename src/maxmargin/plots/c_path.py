"""The machines of all costs C: errors, margin, support vectors and α along the path."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from ..arrays import Floats, Integers, MatrixLike
from ..model_selection import CPath
from .canvas import (
    FAINT,
    INK,
    AxesLike,
    colour,
    figure_of,
    lines,
    number,
    set_title,
    several_axes,
    some_rows,
)
from .display import Display
from .legends import line_handle, set_legend

# Samples whose α is drawn, and costs between breakpoints at which it is.
MOST_SAMPLES, MORE_COSTS = 200, 256


@dataclass(eq=False)
class CPathDisplay(Display):
    """Errors, margin, support vectors and α of all costs C; what `c_path` returns.

    Parameters
    ----------
    C : ndarray of shape (n_breakpoints,)
        Costs of the breakpoints.
    training_error : ndarray of shape (n_breakpoints,)
        Fraction of misclassified samples of the path.
    test_error : ndarray of shape (n_breakpoints,) or None
        That of other samples.
    margin : ndarray of shape (n_breakpoints,)
        1/‖w‖.
    n_support, n_free : ndarray of int of shape (n_breakpoints,)
        Support vectors, and those with α below its bound.
    costs : ndarray of shape (n_costs,)
        Costs of ``shares``: breakpoints, and some between them.
    shares : ndarray of shape (n_costs, n_drawn)
        α_i/(C c_i) of samples, between 0 and 1.
    codes : ndarray of int of shape (n_drawn,)
        Class numbers of these samples.
    names : list of str
        Names of the classes.
    title : str
        The title.

    Attributes
    ----------
    axes_ : list of Axes
        Error, margin, support vectors, α.
    ax_, figure_ : Axes, Figure
        The first of them, and their figure.
    training_, margin_, support_, free_ : Line2D
        The curves.
    test_, best_ : Line2D or None
        The error on other samples, and where it is least.
    alpha_ : list of LineCollection
        α of the samples of each class.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> path = mm.model_selection.c_path(X, y, kernel="linear", C_min=0.01, C_max=1.0)
    >>> display = mm.plots.c_path(path, axes=Figure().subplots(4))
    >>> display.shares.shape[1]
    6
    """

    C: Floats
    training_error: Floats
    test_error: Floats | None
    margin: Floats
    n_support: Integers
    n_free: Integers
    costs: Floats
    shares: Floats
    codes: Integers
    names: list[str]
    title: str
    axes_: list[Axes] = field(init=False)
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    training_: Line2D = field(init=False)
    test_: Line2D | None = field(init=False, default=None)
    best_: Line2D | None = field(init=False, default=None)
    margin_: Line2D = field(init=False)
    support_: Line2D = field(init=False)
    free_: Line2D = field(init=False)
    alpha_: list[LineCollection] = field(init=False)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_path(
        cls,
        path: CPath,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        axes: AxesLike = None,
        legend: bool = True,
    ) -> CPathDisplay:
        """Draw the machines of all costs C along a path.

        From top to bottom: the fraction of misclassified samples, the margin 1/‖w‖, the number of
        support vectors, and α of every sample as a share of its bound C c_i: 0 outside of the
        margin, 1 within it. Of many samples some are drawn. C is on a logarithmic axis.

        Parameters
        ----------
        path : CPath
            The path, from `maxmargin.model_selection.c_path`.
        X : array-like or CSR matrix of shape (n_samples, n_features), optional
            Other samples, whose error is drawn as well; its least value is marked.
        y : array-like of shape (n_samples,), optional
            Their labels.
        axes : four matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        CPathDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Hastie, Rosset, Tibshirani, Zhu, *JMLR* 5 (2004).

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> path = mm.model_selection.c_path(X, y, kernel="linear", C_min=0.01, C_max=1.0)
        >>> float(mm.plots.c_path(path, X, y, axes=Figure().subplots(4)).test_error.max())
        0.0
        """
        if (X is None) != (y is None):
            raise ValueError("X and y belong together: pass both, or neither.")
        codes = path.codes
        drawn = some_rows(codes.size, MOST_SAMPLES)
        more = np.geomspace(path.C[0], path.C[-1], MORE_COSTS)
        costs = np.unique(np.concatenate([path.C, more]))
        return cls(
            C=path.C, training_error=path.training_error,
            test_error=None if X is None or y is None else path.error(X, y),
            margin=path.margin, n_support=path.n_support, n_free=path.n_free, costs=costs,
            shares=path.shares(costs)[:, drawn], codes=codes[drawn],
            names=[str(name) for name in path.classes], title=_title(path),
        ).plot(axes, legend=legend)  # fmt: skip

    def plot(self, axes: AxesLike = None, *, legend: bool = True) -> CPathDisplay:
        """Draw on several axes, or on a new figure.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Where to draw, four axes; by default those of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        CPathDisplay
            The display itself, with its artists.
        """
        self.axes_ = several_axes(axes, 4, (7.5, 9.0), rows=True)
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        self._draw_errors(self.axes_[0])
        self._draw_margin(self.axes_[1])
        self._draw_support(self.axes_[2])
        self._draw_alpha(self.axes_[3])
        for ax in self.axes_:
            ax.set_xscale("log")
            ax.set_xlim(self.C[0], self.C[-1])
            ax.grid(axis="x", color="#E5E5E5", zorder=0)
            if ax is not self.axes_[-1]:
                ax.tick_params(labelbottom=False)
        self.axes_[-1].set_xlabel("C")
        set_title(self.ax_, self.title)
        if legend:
            self._draw_legends()
        return self

    def _draw_errors(self, ax: Axes) -> None:
        (self.training_,) = ax.plot(self.C, self.training_error, color=INK, linewidth=1.5)
        if self.test_error is not None:
            (self.test_,) = ax.plot(
                self.C, self.test_error, color=colour(5), linewidth=1.5, linestyle="--"
            )
            k = int(self.test_error.argmin())
            (self.best_,) = ax.plot(
                self.C[k], self.test_error[k], "*", color=colour(5), markersize=12,
                markeredgecolor="white", zorder=4, clip_on=False,
            )  # fmt: skip
        ax.set_ylim(bottom=0.0)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        ax.set_ylabel("errors")

    def _draw_margin(self, ax: Axes) -> None:
        (self.margin_,) = ax.plot(self.C, self.margin, color=INK, linewidth=1.5)
        ax.set_yscale("log")
        ax.set_ylabel("margin 1/‖w‖")

    def _draw_support(self, ax: Axes) -> None:
        (self.support_,) = ax.step(self.C, self.n_support, where="post", color=INK, linewidth=1.5)
        (self.free_,) = ax.step(
            self.C, self.n_free, where="post", color=FAINT, linewidth=1.5, linestyle="-."
        )
        ax.set_ylim(bottom=0.0)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylabel("support vectors")

    def _draw_alpha(self, ax: Axes) -> None:
        strength = float(np.clip(12.0 / max(self.codes.size, 1), 0.25, 0.9))
        self.alpha_ = []
        for code in range(len(self.names)):
            own = self.shares[:, self.codes == code].T
            pieces = [np.column_stack([self.costs, share]) for share in own]
            self.alpha_.append(lines(ax, pieces, colour(code), width=1.0, alpha=strength))
        ax.set_ylim(-0.03, 1.03)
        ax.set_ylabel("α as a share of its bound")

    def _draw_legends(self) -> None:
        handles = [line_handle("on the samples of the path")]
        if self.test_error is not None:
            k = int(self.test_error.argmin())
            handles.append(line_handle("on other samples", "--", colour(5)))
            text = f"least, {self.test_error[k]:.3g} at C = {self.C[k]:.3g}"
            handles.append(
                Line2D([], [], linestyle="", marker="*", color=colour(5), markersize=9, label=text)
            )
        self.legend_ = set_legend(self.axes_[0], handles)
        set_legend(self.axes_[2], [line_handle("all"), line_handle("free, α < C", "-.", FAINT)])
        named = [line_handle(name, ink=colour(k)) for k, name in enumerate(self.names)]
        set_legend(self.axes_[3], named)


c_path = CPathDisplay.from_path


def _title(path: CPath) -> str:
    first, last = f"{path.C[0]:.3g}", f"{path.C[-1]:.3g}"
    return f"C from {first} to {last}: {number(len(path), 'breakpoint')}"
