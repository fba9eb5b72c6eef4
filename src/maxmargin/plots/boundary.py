"""The boundary: regions, plane, margin band, support vectors, slack and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    strip_heights,
)
from .display import Display
from .grid import Grid
from .legends import class_handles, line_handle, mark_handle, set_legend
from .model import FigureModel
from .region_lines import region_lines
from .rings import draw_rings, ring_handle
from .shown import shown_of
from .slack import slack_lines
from .view import (
    FeatureLike,
    FigureData,
    Projection,
    View,
    answers_at,
    grid_of,
    resolution_for,
    view_of,
)

LEVELS = 5  # of g on either side of the border of a region


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
    answers : ndarray of int of shape (m,) or None
        The class numbers that the model answers for the samples, where the picture is a slice:
        they are the colours of the points.
    is_elsewhere : ndarray of bool of shape (m,)
        Which of the samples lie in a region of another class than the model's answer for them.
    n_support : int
        How many of all rows of X are support vectors.

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
        Rings of support vectors, of some of them where they would cover the data, and crosses of
        misclassified samples.
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
    answers: Integers | None = None
    is_elsewhere: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    n_support: int = 0
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
        resolution: int | None = None,
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

        Where many support vectors lie close together, rings are drawn around some of them, chosen
        at random but always the same; the legend says how many.

        Of more than two features a slice is drawn where g is not a function of two directions.
        Samples lie off the slice, so that the region under a point may be that of another class
        than the model's answer for the sample. There the colour of a point is the answer, its
        marker and edge are those of its class, and the text below the title counts the points in
        regions of other classes than their answers.

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
        resolution : int, optional
            Points of the lattice along each axis; by default 200, fewer for machines of so many
            support vectors that their scores would take long.
        feature_names : sequence of str, optional
            Names of the features; by default those of the frame X, or of the frame of the fit.
        max_points : int, default=2000
            The largest number of samples that are drawn; the choice is random but always the same.
            Support vectors keep their share, and are up to 300 where their share is less.
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
        if resolution is not None and resolution < 2:
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
            strength = 0.55 if len(self.slacks) <= 100 else 0.35
            self.slack_ = lines(ax, list(self.slacks), INK, "-", 0.8, alpha=strength, zorder=2)
        self.points_ = draw_classes(ax, self.points, self.codes, n, answers=self.answers)
        self._mark(ax)
        self._frame(ax)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_regions(self, ax: Axes) -> QuadMesh:
        n, codes = len(self.names), self.grid.codes
        if self.is_flat and np.ptp(codes) > 0:  # signs of rounding errors
            codes = np.ma.array(codes, mask=True)
        # Fainter where they are not the answers for all samples above them.
        strength = 0.12 if self.is_elsewhere.any() else 0.2
        return ax.pcolormesh(
            self.grid.x, self.grid.y, codes, shading="nearest", rasterized=True,
            cmap=ListedColormap([pale(code, strength) for code in range(n)]), vmin=-0.5,
            vmax=n - 0.5, zorder=0,
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
        area = size_of(len(self.points), ax)
        held, wrong = self.points[self.is_support], self.points[self.is_wrong]
        limits = (self.grid.x[0], self.grid.x[-1]), (self.grid.y[0], self.grid.y[-1])
        self.support_ = draw_rings(ax, held, limits, max(2.6 * area, 18.0))
        if len(wrong):
            self.wrong_ = ax.scatter(
                wrong[:, 0], wrong[:, 1], s=max(0.8 * area, 8.0), c=INK, marker="x",
                linewidths=1.3 if len(wrong) <= 30 else 0.8 if len(wrong) <= 100 else 0.5,
                alpha=1.0 if len(wrong) <= 100 else 0.6, zorder=5,
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
        if self.n_support:
            drawn = 0 if self.support_ is None else len(np.asarray(self.support_.get_offsets()))
            handles.append(ring_handle(drawn, self.n_support))
        if len(self.slacks):
            handles.append(line_handle("slack", "-", FAINT, 0.9))
        if self.is_wrong.any():
            handles.append(mark_handle("misclassified", "x"))
            if self.answers is not None:
                words = "colour: the model's answer\nmarker, edge: the true class"
                handles.append(line_handle(words, ""))
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
    resolution: int | None,
    max_points: int,
) -> BoundaryDisplay:
    n = data.n_samples
    shown = shown_of(model, data, codes, max_points)
    rows = shown.rows
    points = view.flatten(data.numbers[rows])
    limits = limits_of(points, 0)
    is_elsewhere = np.zeros(rows.size, dtype=bool)
    if not view.exact:
        is_elsewhere = answers_at(model, data, view, points) != shown.answers
    if view.is_strip:
        points[:, 1] = strip_heights(codes[rows])
        limits = limits_of(points, len(model.classes))
    grid = grid_of(model, data, view, limits, resolution or resolution_for(model))
    boundaries, pairs = region_lines(model, grid)
    if shown.is_flat:
        boundaries = [(name, []) for name, _ in boundaries]
    has_band = model.is_support_vector_machine and model.is_binary and not shown.is_flat
    band: list[Floats] = []
    slacks: Floats = np.empty((0, 2, 2))
    if has_band:
        band = [line for level in (-1.0, 1.0) for line in grid.contour(grid.scores[0], level)]
        slacks = slack_lines(model, data, view, grid, points, codes[rows], shown.margins)
    return cls(
        grid=grid, boundaries=boundaries, band=band, points=points, rows=rows, codes=codes[rows],
        is_support=shown.is_support, is_wrong=shown.answers != codes[rows], slacks=slacks,
        names=model.class_names, labels=view.labels,
        title=shown.title,
        note=_note(view, n, is_elsewhere), has_band=has_band, pairs=pairs,
        is_strip=view.is_strip, is_flat=shown.is_flat, is_region=not model.has_classes,
        answers=None if view.exact else shown.answers, is_elsewhere=is_elsewhere,
        n_support=shown.n_support,
    )  # fmt: skip


def _note(view: View, n: int, is_elsewhere: Bools) -> str:
    parts = [view.note] if view.note else []
    shown = is_elsewhere.size
    if shown < n:
        parts.append(f"{shown:,} of {n:,} samples shown")
    elsewhere = int(is_elsewhere.sum())
    if elsewhere:
        parts.append(
            f"{elsewhere:,} of {number(shown, 'sample')} "
            f"{'lies' if elsewhere == 1 else 'lie'} in a region that is not the model's answer"
        )
    return "; ".join(parts)
