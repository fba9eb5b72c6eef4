"""The scores of a search: a map over C and γ, or a curve over C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from ..arrays import Floats
from ..model_selection.results import Results
from .canvas import INK, WRONG, colour, figure_of, lines, number, one_axes, set_title
from .cells import border_of, cell_of, edges_of, lowest_shown, set_log, united
from .display import Display
from .legends import legend_of_figure, line_handle, mark_handle, set_legend
from .search_table import (
    Candidates,
    SearchAxes,
    best_of,
    candidates_of,
    chosen_of,
    place_of,
    score_of,
    slice_of,
    symbol_of,
    table_of,
    value_in_words,
)

# Cells with their scores written in them.
MOST_NUMBERS = 64


@dataclass(eq=False)
class SearchDisplay(Display):
    """Mean scores of a search over C and the kernel; what `search` returns.

    Parameters
    ----------
    names : tuple of str
        The parameters on the axes; the second is "" where there is one kernel.
    kernels : list of str
        Names of the kernels; empty where the second axis is γ, or another positive number.
    grids : list of Candidates
        The candidates of a search, and of a finer one.
    chosen : tuple of float
        x and y of the chosen candidate.
    score : str
        What the scores are.
    others : dict of str to list, optional
        Further parameters: the value that was chosen, and the one at which each grid is drawn.
    best : float, optional
        The largest mean score, of all candidates; by default of those drawn.
    least : float, optional
        The largest mean score less its standard error.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and their figure.
    cells_ : QuadMesh or None
        The map, of several kernels.
    colorbar_ : Colorbar or None
        Its scale.
    near_ : LineCollection or None
        Border of the region within one standard error of the best candidate.
    curves_ : list of ErrorbarContainer
        Mean scores with standard errors, of one kernel.
    chosen_ : Line2D
        The chosen candidate.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_fruit(return_X_y=True)
    >>> model = mm.SVCCV(Cs=[1, 10, 100], gammas=[0.01, 0.1], cv=3).fit(X, y)
    >>> display = mm.plots.search(model, ax=Figure().subplots())
    >>> display.names
    ('C', 'gamma')
    """

    names: tuple[str, str]
    kernels: list[str]
    grids: list[Candidates]
    chosen: tuple[float, float]
    score: str
    others: Mapping[str, list[Any]] = field(default_factory=dict)
    best: float = np.nan
    least: float = np.nan
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    cells_: QuadMesh | None = field(init=False, default=None)
    colorbar_: Colorbar | None = field(init=False, default=None)
    near_: LineCollection | None = field(init=False, default=None)
    curves_: list[ErrorbarContainer] = field(init=False)
    chosen_: Line2D = field(init=False)
    legend_: Legend | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if np.isnan(self.best):
            self.best, self.least = best_of(self.grids)

    @classmethod
    def from_estimator(
        cls,
        search: Any,
        finer: Any = None,
        *,
        chosen: Mapping[str, Any] | None = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> SearchDisplay:
        """Draw the mean scores of a search.

        Of several kernels a map over C and γ: every cell is a candidate, the chosen one is marked,
        and the region within one standard error of the best is outlined. Of one kernel a curve
        over C with standard errors. C, ν, γ and ε are on logarithmic axes. Where more than two
        parameters vary, such as ε of an `SVR`, candidates of the chosen value are drawn, or of the
        one nearest to it.

        Parameters
        ----------
        search : fitted SVCCV, SVRCV, LinearSVCCV, GridSearchCV or the like
            Has ``cv_results_`` over C (or ν), and over γ, kernels or ε if any; steps of a pipeline
            may precede their names, as in ``svc__C``.
        finer : the same, optional
            A second search around the best candidate of the first, drawn over it.
        chosen : dict, optional
            Parameters of the candidate to mark; by default the one that the search chose, the
            better of two searches.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SearchDisplay
            The numbers drawn, and the artists.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_fruit(return_X_y=True)
        >>> model = mm.SVCCV(Cs=[1, 10, 100], kernel="linear", cv=3).fit(X, y)
        >>> display = mm.plots.search(model, ax=Figure().subplots())
        >>> len(display.curves_)
        1
        """
        searches = [search] if finer is None else [search, finer]
        tables = [table_of(each) for each in searches]
        axes = SearchAxes.of(tables)
        if chosen is None:
            chosen = chosen_of(searches)
        best, least = best_of([candidates_of(table, axes) for table in tables])
        slices = [slice_of(table, axes.others, chosen) for table in tables]
        others = {
            name.rpartition("__")[2]: [chosen[name], *(at[name] for _, at in slices)]
            for name in axes.others
        }
        grids = [candidates_of(table, axes) for table, _ in slices]
        at = float(chosen[axes.x]), place_of(chosen.get(axes.y), axes.kernels)
        names = (axes.x.rpartition("__")[2], axes.y.rpartition("__")[2])
        if np.unique(np.concatenate([each.y for each in grids])).size == 1:
            names = (names[0], "")
        display = cls(names, axes.kernels, grids, at, score_of(search), others, best, least)
        return display.plot(ax, legend=legend)

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], *, ax: Axes | None = None, legend: bool = True
    ) -> SearchDisplay:
        """Draw the search that ``maxmargin tune`` has stored with a model.

        Parameters
        ----------
        record : dict
            ``persistence.about(file)["search"]``.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SearchDisplay
            The numbers drawn, and the artists.
        """
        searches = [
            SimpleNamespace(
                cv_results_=Results.of(grid["parameters"], grid["scores"]).table(),
                scoring=record["scoring"],
            )
            for grid in record["grids"]
        ]
        chosen = record["chosen"]["parameters"]
        return cls.from_estimator(*searches, chosen=chosen, ax=ax, legend=legend)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> SearchDisplay:
        """Draw on axes, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SearchDisplay
            The display itself, with its artists.
        """
        self.ax_ = one_axes(ax)
        self.figure_ = figure_of(self.ax_)
        self.curves_ = []
        if self.names[1]:
            self._draw_map(self.ax_)
        else:
            self._draw_curves(self.ax_)
        self.ax_.set_xlabel(symbol_of(self.names[0]))
        set_title(self.ax_, self._title(), self._subtitle())
        if legend:
            self.legend_ = self._legend(below=ax is None)
        return self

    def _draw_map(self, ax: Axes) -> None:
        is_log = not self.kernels
        across = united([edges_of(grid.x, is_log=True) for grid in self.grids])
        up = united([edges_of(grid.y, is_log=is_log) for grid in self.grids])
        values = self._values(across, up)
        lowest = float(np.nanmin(values))
        low = lowest_shown(lowest, self.best, self.least)
        self.cells_ = ax.pcolormesh(
            across, up, np.ma.masked_invalid(values), cmap="cividis", vmin=low, vmax=self.best
        )
        self.colorbar_ = self.figure_.colorbar(
            self.cells_, ax=ax, pad=0.02, extend="min" if low > lowest else "neither"
        )
        self.colorbar_.set_label(self.score)
        with np.errstate(invalid="ignore"):
            border = border_of(across, up, values >= self.least)
        # Dark with a light rim, to be seen on cells of every colour.
        lines(ax, border, "white", width=4.0).set_capstyle("projecting")
        self.near_ = lines(ax, border, INK, width=1.8)
        self.near_.set_capstyle("projecting")
        ax.set_facecolor("#F4F4F4")
        set_log(ax, "x", np.concatenate([grid.x for grid in self.grids]))
        if is_log:
            set_log(ax, "y", np.concatenate([grid.y for grid in self.grids]))
        else:
            ax.set_yticks(range(len(self.kernels)), self.kernels)
        ax.set_xlim(across[0], across[-1])
        ax.set_ylim(up[0], up[-1])
        ax.set_ylabel(symbol_of(self.names[1]))
        if len(self.grids) == 1 and self.grids[0].mean.size <= MOST_NUMBERS:
            self._write_scores(ax)
        (self.chosen_,) = ax.plot(
            *self.chosen, "*", color=WRONG, markersize=16, markeredgecolor="white", zorder=5
        )

    def _values(self, across: Floats, up: Floats) -> Floats:
        """Return the score of every cell; a finer search lies over a coarse one."""
        values = np.full((up.size - 1, across.size - 1), np.nan)
        x, y = np.sqrt(across[1:] * across[:-1]), (up[1:] + up[:-1]) / 2.0
        for grid in self.grids:
            columns, column = cell_of(grid.x, x, is_log=True)
            rows, row = cell_of(grid.y, y, is_log=not self.kernels)
            table = np.full((rows.size, columns.size), np.nan)
            at = np.searchsorted(rows, grid.y), np.searchsorted(columns, grid.x)
            table[at] = grid.mean
            inside = np.ix_(row >= 0, column >= 0)
            values[inside] = table[np.ix_(row[row >= 0], column[column >= 0])]
        return values

    def _write_scores(self, ax: Axes) -> None:
        """Write the scores into the cells, in the ink that is legible there."""
        (grid,) = self.grids
        assert self.cells_ is not None
        middle = 0.5 * sum(self.cells_.get_clim())
        for x, y, mean in zip(grid.x, grid.y, grid.mean, strict=True):
            if np.isnan(mean) or (x, y) == self.chosen:
                continue
            ink = "white" if mean < middle else INK
            ax.text(x, y, f"{mean:.3g}", ha="center", va="center", fontsize=7, color=ink)

    def _draw_curves(self, ax: Axes) -> None:
        for k, grid in enumerate(self.grids):
            order = np.argsort(grid.x)
            self.curves_.append(
                ax.errorbar(
                    grid.x[order], grid.mean[order], grid.standard_error[order],
                    color=colour(0) if k == 0 else colour(4), marker="o", markersize=4,
                    capsize=3, linewidth=1.5, elinewidth=1.0,
                )
            )  # fmt: skip
        ax.axhline(self.least, color=INK, linestyle=":", linewidth=1.2)
        at = next(
            grid.mean[(grid.x == self.chosen[0]).argmax()]
            for grid in self.grids if (grid.x == self.chosen[0]).any()
        )  # fmt: skip
        (self.chosen_,) = ax.plot(
            self.chosen[0], at, "*", color=WRONG, markersize=14, markeredgecolor="white", zorder=5
        )
        set_log(ax, "x", np.concatenate([grid.x for grid in self.grids]))
        ax.grid(axis="y", color="#E5E5E5", zorder=0)
        ax.set_ylabel(self.score)

    def _legend(self, *, below: bool) -> Legend | None:
        """Put the legend below the axes of a new figure: the scale is beside them."""
        handles = self._handles()
        if not below:
            return set_legend(self.ax_, handles)
        return legend_of_figure(self.ax_, handles)

    def _handles(self) -> list[Line2D]:
        marked = mark_handle("chosen", "*", WRONG, 11.0)
        near = "within one standard error of the best"
        if self.names[1]:
            return [marked, line_handle(near, width=1.8)]
        names = ["mean ± standard error", "around the best"]
        curves = [line_handle(name, ink=colour(4 * k))
                  for k, name in enumerate(names[: len(self.grids)])]  # fmt: skip
        return [*curves, marked, line_handle(near, ":", width=1.2)]

    def _title(self) -> str:
        texts = [f"{symbol_of(self.names[0])} = {self.chosen[0]:.4g}"]
        if self.names[1]:
            value: Any = self.kernels[int(self.chosen[1])] if self.kernels else self.chosen[1]
            texts.append(value_in_words(self.names[1], value))
        texts += [value_in_words(name, chosen) for name, (chosen, *_) in self.others.items()]
        return f"{self.score[0].upper()}{self.score[1:]}: {', '.join(texts)} chosen"

    def _subtitle(self) -> str:
        """Return how many candidates are drawn, and which where there are others."""
        scored = [np.column_stack(grid[:2])[np.isfinite(grid.mean)] for grid in self.grids]
        n = len(np.unique(np.concatenate(scored), axis=0))
        if not self.others:
            return f"{number(n, 'candidate')} with a score on all folds"
        text = number(n, "scored candidate")
        for name, (_, *drawn) in self.others.items():
            words = dict.fromkeys(value_in_words(name, value) for value in drawn)
            text += f", at {', around the best at '.join(words)}"
        return text


search = SearchDisplay.from_estimator
