"""The boundary: regions, plane, margin band, support vectors, slack and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import ListedColormap
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ..arrays import Floats, Integers, MatrixLike
from ..diagnostics.fitted_model import ModelLike
from ..kernels import Precomputed
from ..multiclass import OneVsOne
from .canvas import (
    FAINT,
    INK,
    MOST_POINTS,
    Bools,
    colour,
    draw_classes,
    figure_of,
    limits_of,
    lines,
    number,
    one_axes,
    pale,
    set_frame,
    set_title,
    size_of,
    some_rows,
    strip_heights,
)
from .display import Display
from .grid import Grid
from .legends import class_handles, line_handle, mark_handle, set_legend
from .model import FigureModel
from .slack import slack_lines
from .titles import described, outliers_in_words
from .view import FeatureLike, FigureData, Projection, View, grid_of, view_of

MOST_RINGS = 300  # support vectors that are drawn where samples are left out
LEVELS = 5  # of g on either side of the border of a region
MOST_LINES = 15  # lines of pairs; more would hide everything else


@dataclass(eq=False)
class BoundaryDisplay(Display):
    """The regions of a classifier with the samples in them; what `boundary` returns.

    Parameters
    ----------
    grid : Grid
        Scores and classes over the picture.
    boundaries : list of (label, list of ndarray)
        Polylines of g = 0, one entry per plane.
    band : list of ndarray
        Polylines of g = ±1.
    points : ndarray of shape (m, 2)
        The samples that are drawn.
    rows : ndarray of int of shape (m,)
        Their rows of X.
    codes : ndarray of int of shape (m,)
        Their class numbers.
    is_support, is_wrong : ndarray of bool of shape (m,)
        Which of them are support vectors, and which are misclassified.
    slacks : ndarray of shape (k, 2, 2)
        Lines from violators of the margin to their margin.
    names : list of str
        Names of the classes.
    labels : tuple of str
        Labels of the axes.
    title, note : str
        Title of the figure, and the smaller text below it.
    has_band : bool
        Whether the model has a band: a support vector machine of two classes.
    pairs : list of (int, int)
        The classes of each plane of "ovo".
    is_strip : bool
        Whether one feature is drawn, with one strip per class.
    is_flat : bool
        Whether w = 0, so that there is no plane.
    is_region : bool
        Whether the model is a machine of one class, of which levels of g are drawn.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    regions_ : QuadMesh or ContourSet
        The regions of the classes, or the levels of g of a machine of one class.
    boundary_ : list of LineCollection
        One per plane.
    band_, slack_ : LineCollection or None
        The band and the lines of slack.
    points_ : list of PathCollection
        One per class.
    support_, wrong_ : PathCollection or None
        Rings of support vectors, and crosses of misclassified samples.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> display = mm.plots.boundary(model, X, y, ax=Figure().subplots())
    >>> int(display.is_support.sum()), display.has_band
    (3, True)
    """

    grid: Grid
    boundaries: list[tuple[str, list[Floats]]]
    band: list[Floats]
    points: Floats
    rows: Integers
    codes: Integers
    is_support: Bools
    is_wrong: Bools
    slacks: Floats
    names: list[str]
    labels: tuple[str, str]
    title: str
    note: str = ""
    has_band: bool = False
    pairs: list[tuple[int, int]] = field(default_factory=list)
    is_strip: bool = False
    is_flat: bool = False
    is_region: bool = False
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    regions_: QuadMesh | QuadContourSet = field(init=False)
    boundary_: list[LineCollection] = field(init=False)
    band_: LineCollection | None = field(init=False, default=None)
    slack_: LineCollection | None = field(init=False, default=None)
    points_: list[PathCollection] = field(init=False)
    support_: PathCollection | None = field(init=False, default=None)
    wrong_: PathCollection | None = field(init=False, default=None)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        clf: ModelLike,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        features: FeatureLike = None,
        projection: Projection = None,
        resolution: int = 200,
        feature_names: Sequence[str] | None = None,
        max_points: int = MOST_POINTS,
        legend: bool = True,
    ) -> BoundaryDisplay:
        """Draw the regions of a classifier, its plane g(x) = 0 and the samples.

        For a support vector machine of two classes, also the band g(x) = ±1, the support vectors
        (ringed) and the slack ξ = 1 − y g(x) of violators, as lines to their margin. For many
        classes: the plane of every pair ("ovo", in the colours of both), of every class ("ovr", in
        its colour), or the lines of equal scores (joint). × marks misclassified samples.

        Of a `OneClassSVM`: the levels of g(x) = w·φ(x) − ρ, the border g(x) = 0 of its region, the
        outliers beyond it, and the support vectors, which are outliers or on the border.

        Parameters
        ----------
        clf : fitted classifier or OneClassSVM, or a Pipeline or search that ends in one
            The model; a pipeline is drawn in the space of X.
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples. Columns of a frame that are not numeric are held at their most frequent value.
        y : array-like of shape (n_samples,)
            Labels; of a `OneClassSVM` +1 and −1, or None, and then the predicted ones.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        features : one or two features, by number or name, optional
            The features to draw; the others are held at their means (a slice).
        projection : {"w", "pca"} or array of shape (n_features, 2), optional
            For more than two features. "w", the default: along w against the first principal
            direction orthogonal to it; where g is not affine, w is that of the plane nearest to g.
        resolution : int, default=200
            Points of the lattice along each axis.
        feature_names : sequence of str, optional
            Names of the features; by default those of the frame X, or of the frame of the fit.
        max_points : int, default=2000
            The largest number of samples that are drawn, up to 300 support vectors among them; the
            choice is deterministic.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        BoundaryDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Duda, Hart, Stork, *Pattern Classification*, sections 5.2 and 5.11.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
        >>> mm.plots.boundary(model, X, y, ax=Figure().subplots()).title
        'hard margin, width 5.145, 3 support vectors'
        """
        if resolution < 2:
            raise ValueError(f"resolution must be at least 2, got {resolution}.")
        model = FigureModel(clf)
        model.refuse_targets()
        _require_features(model)
        data = FigureData(X, feature_names, model.model)
        codes = model.labelled(X, y, data.n_samples)
        view = view_of(model, data, features, projection)
        return _compute(cls, model, data, view, codes, resolution, max_points).plot(
            ax, legend=legend
        )

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> BoundaryDisplay:
        """Draw on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        BoundaryDisplay
            The display itself, with its artists.
        """
        ax = one_axes(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        n = len(self.names)
        levels = self.is_region and not self.is_flat
        self.regions_ = self._draw_levels(ax) if levels else self._draw_regions(ax)
        self._draw_planes(ax)
        if len(self.slacks):
            self.slack_ = lines(ax, list(self.slacks), INK, "-", 0.8, alpha=0.55, zorder=2)
        self.points_ = draw_classes(ax, self.points, self.codes, n)
        self._mark(ax)
        self._frame(ax)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_regions(self, ax: Axes) -> QuadMesh:
        n, codes = len(self.names), self.grid.codes
        if self.is_flat and np.ptp(codes) > 0:  # signs of rounding errors
            codes = np.ma.array(codes, mask=True)
        return ax.pcolormesh(
            self.grid.x, self.grid.y, codes, shading="nearest", rasterized=True,
            cmap=ListedColormap([pale(code) for code in range(n)]), vmin=-0.5, vmax=n - 0.5,
            zorder=0,
        )  # fmt: skip

    def _draw_levels(self, ax: Axes) -> QuadContourSet:
        """Fill between levels of g, in the colours of both sides of g = 0, darker far from it."""
        g = self.grid.scores[0]
        strengths = np.linspace(0.12, 0.45, LEVELS)
        below = np.linspace(min(float(g.min()), 0.0), 0.0, LEVELS + 1)
        above = np.linspace(0.0, max(float(g.max()), 0.0), LEVELS + 1)
        sides = [
            (levels, [pale(code, strength) for strength in shades])
            for code, levels, shades in ((0, below, strengths[::-1]), (1, above, strengths))
            if np.ptp(levels) > 0.0
        ]
        return ax.contourf(
            self.grid.x, self.grid.y, g, np.unique([levels for levels, _ in sides]),
            colors=[shade for _, shades in sides for shade in shades], zorder=0,
        )  # fmt: skip

    def _draw_planes(self, ax: Axes) -> None:
        self.boundary_ = []
        for k, (_, pieces) in enumerate(self.boundaries):
            if self.pairs:
                # Both colours of the pair: dashes on top of a line.
                i, j = self.pairs[k]
                lines(ax, pieces, colour(i), "-", 1.6, zorder=1.5)
                drawn = lines(ax, pieces, colour(j), (0, (4, 4)), 1.6, zorder=1.6)
            elif len(self.boundaries) == len(self.names) > 2:
                drawn = lines(ax, pieces, colour(k), "-", 2.0, zorder=1.5)
            else:
                drawn = lines(ax, pieces, INK, "-", 1.8, zorder=1.5)
            self.boundary_.append(drawn)
        if self.band:
            self.band_ = lines(ax, self.band, INK, (0, (5, 3)), 1.1, zorder=1.5)

    def _mark(self, ax: Axes) -> None:
        area = size_of(len(self.points))
        held, wrong = self.points[self.is_support], self.points[self.is_wrong]
        if len(held):
            self.support_ = ax.scatter(
                held[:, 0], held[:, 1], s=max(2.6 * area, 30.0), facecolors="none",
                edgecolors=INK, linewidths=1.2 if len(held) <= 30 else 0.7, zorder=4,
            )  # fmt: skip
        if len(wrong):
            self.wrong_ = ax.scatter(
                wrong[:, 0], wrong[:, 1], s=max(0.8 * area, 8.0), c=INK, marker="x",
                linewidths=1.3 if len(wrong) <= 30 else 0.8, zorder=5,
            )  # fmt: skip

    def _frame(self, ax: Axes) -> None:
        x, y = self.grid.x, self.grid.y
        limits = (x[0], x[-1]), (y[0], y[-1])
        set_frame(ax, limits, self.labels, self.names if self.is_strip else ())
        set_title(ax, self.title, self.note)

    def _handles(self) -> list[Line2D]:
        handles = class_handles(self.names)
        if self.is_flat:
            pass  # there is no line g = 0
        elif len(self.names) == 2:
            handles.append(line_handle(f"g(x) = 0{_unseen(self.boundaries[0][1])}", width=1.8))
        elif self.pairs:
            handles.append(line_handle("plane of a pair", "--", FAINT))
        elif len(self.boundaries) == len(self.names):
            handles.append(line_handle("plane of a class", "-", FAINT))
        else:
            handles.append(line_handle(self.boundaries[0][0]))
        if self.has_band:
            handles.append(line_handle(f"g(x) = ±1{_unseen(self.band)}", "--", width=1.1))
        if self.is_support.any():
            handles.append(mark_handle("support vector", "o", size=9, hollow=True))
        if len(self.slacks):
            handles.append(line_handle("slack", "-", FAINT, 0.9))
        if self.is_wrong.any():
            handles.append(mark_handle("misclassified", "x"))
        return handles


boundary = BoundaryDisplay.from_estimator


def _unseen(pieces: list[Floats]) -> str:
    return "" if pieces else " (outside)"


def _require_features(model: FigureModel) -> None:
    if isinstance(model.kernel, Precomputed):
        raise ValueError(
            "a precomputed kernel has no feature space to draw: use plots.margins or plots.gram."
        )


def _compute(
    cls: type[BoundaryDisplay],
    model: FigureModel,
    data: FigureData,
    view: View,
    codes: Integers,
    resolution: int,
    max_points: int,
) -> BoundaryDisplay:
    n = data.n_samples
    everything = n <= max_points or model.affordable(n)
    is_support = model.support_rows(n, take=data.take)
    kept = np.flatnonzero(is_support)
    rows = np.arange(n) if everything else some_rows(n, max_points, kept, MOST_RINGS)
    whole = data.X if everything else data.take(rows)
    scores, predicted = model.scores(whole), model.predict(whole)
    margins = model.margins(scores, codes[rows])
    is_flat = model.has_no_plane(whole, scores)
    counted = ""
    if everything:
        is_support &= model.support_rows(n, margins)
        counted = "" if is_flat else _counted(model, predicted, codes)
        chosen = some_rows(n, max_points, np.flatnonzero(is_support), MOST_RINGS)
        rows, predicted, margins = chosen, predicted[chosen], margins[chosen]
    is_support = is_support[rows]
    points = view.flatten(data.numbers[rows])
    shown = codes[rows]
    if view.is_strip:
        points[:, 1] = strip_heights(shown)
    limits = limits_of(points, len(model.classes) if view.is_strip else 0)
    grid = grid_of(model, data, view, limits, resolution)
    boundaries, pairs = _planes(model, grid)
    if is_flat:
        boundaries = [(name, []) for name, _ in boundaries]
    has_band = model.is_support_vector_machine and model.is_binary and not is_flat
    band = (
        [line for level in (-1.0, 1.0) for line in grid.contour(grid.scores[0], level)]
        if has_band
        else []
    )
    slacks: Floats = np.empty((0, 2, 2))
    if has_band:
        slacks = slack_lines(model, data, view, grid, points, shown, margins)
    return cls(
        grid=grid, boundaries=boundaries, band=band, points=points, rows=rows, codes=shown,
        is_support=is_support, is_wrong=predicted != shown, slacks=slacks, names=model.class_names,
        labels=view.labels, title=_title(model, data, is_flat) + counted, pairs=pairs,
        note=_note(view, len(rows), n), has_band=has_band, is_strip=view.is_strip,
        is_flat=is_flat, is_region=not model.has_classes,
    )  # fmt: skip


def _planes(
    model: FigureModel, grid: Grid
) -> tuple[list[tuple[str, list[Floats]]], list[tuple[int, int]]]:
    """Return named lines of g = 0, and the pairs of classes that they separate for "ovo"."""
    names = model.class_names
    if model.is_binary:
        return [("g(x) = 0", grid.contour(grid.scores[0], 0.0))], []
    if model.scheme == "ovo" and len(grid.scores) > MOST_LINES:
        steps = [grid.contour(np.where(grid.codes == k, 1.0, -1.0), 0.0) for k in range(len(names))]
        return [("edge of a region", [line for lines in steps for line in lines])], []
    if model.scheme == "ovo":
        pairs = OneVsOne.pairs(len(names))
        named = [f"{names[i]} – {names[j]}" for i, j in pairs]
        found = [grid.contour(g, 0.0) for g in grid.scores]
        return list(zip(named, found, strict=True)), pairs
    if model.scheme != "joint":
        return [
            (name, grid.contour(g, 0.0)) for name, g in zip(names, grid.scores, strict=True)
        ], []
    borders: list[Floats] = []
    for i, j in combinations(range(len(names)), 2):
        others = np.delete(grid.scores, [i, j], axis=0).max(axis=0)
        pair = grid.scores[i] - grid.scores[j]
        # Their line is a boundary only where both scores exceed all others.
        ahead = np.maximum(grid.scores[i], grid.scores[j]) >= others - 1e-12
        borders += [part for line in grid.contour(pair, 0.0) for part in _parts(line, grid, ahead)]
    return [("equal scores", borders)], []


def _parts(line: Floats, grid: Grid, inside: Bools) -> list[Floats]:
    """Return the pieces of a polyline in cells that are inside."""
    column = np.clip(np.searchsorted(grid.x, line[:, 0]), 1, grid.x.size - 1)
    row = np.clip(np.searchsorted(grid.y, line[:, 1]), 1, grid.y.size - 1)
    near = inside[row, column] | inside[row - 1, column] | inside[row, column - 1]
    kept = near | inside[row - 1, column - 1]
    cuts = np.flatnonzero(np.diff(kept.astype(int))) + 1
    pieces = zip(np.split(line, cuts), np.split(kept, cuts), strict=True)
    return [piece for piece, keep in pieces if keep.any() and len(piece) > 1]


def _title(model: FigureModel, data: FigureData, is_flat: bool) -> str:
    width = None
    if is_flat:
        return f"{described(model)}, w = 0: no plane"
    if model.is_binary and model.is_support_vector_machine and not data.constant:
        planes = model.affine(data.mean, data.fill)
        norm = 0.0 if planes is None else float(np.linalg.norm(planes[0][0]))
        # A ν-machine without a margin has w = 0 to rounding.
        far = 1e9 * max(1.0, float(abs(data.numbers).max()))
        width = 2.0 / norm if norm * far > 2.0 else None
    return described(model, width)


def _counted(model: FigureModel, predicted: Integers, codes: Integers) -> str:
    """Return outliers and errors in words; the certificate of a separating rule counts them."""
    text = "" if model.has_classes else f", {outliers_in_words(predicted == 0)}"
    wrong = int((predicted != codes).sum())
    counts_itself = model.is_binary and not model.is_any_machine
    return f"{text}, {number(wrong, 'error')}" if wrong and not counts_itself else text


def _note(view: View, shown: int, n: int) -> str:
    parts = [view.note] if view.note else []
    if shown < n:
        parts.append(f"{shown:,} of {n:,} samples shown")
    return "; ".join(parts)
