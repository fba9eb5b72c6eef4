"""Two convex hulls: a common point, or the band between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from ..arrays import Floats, Integers, MatrixLike
from ..solvers.separability import Separability
from .canvas import (
    FAINT,
    INK,
    MOST_POINTS,
    colour,
    draw_classes,
    figure_of,
    limits_of,
    lines,
    number,
    one_axes,
    set_frame,
    set_title,
    some_rows,
    strip_heights,
)
from .display import Display
from .legends import class_handles, line_handle, mark_handle, set_legend
from .view import DIRECTION_ROWS, FigureData, principal


@dataclass(eq=False)
class SeparabilityDisplay(Display):
    """The convex hulls of two classes with the proof; what `separability` returns.

    Parameters
    ----------
    report : Separability
        The decision and its proof.
    points : ndarray of shape (n, 2)
        The samples in the picture.
    codes : ndarray of int of shape (n,)
        Their class numbers.
    drawn : ndarray of int of shape (m,)
        Which of them are drawn.
    hulls : list of ndarray of shape (k, 2)
        Corners of the convex hull of each class: 1 of a point, 2 of a segment.
    common : ndarray of shape (2,) or None
        The common point.
    used : ndarray of int of shape (k,)
        Samples of which the common point is a combination.
    plane, band : ndarray or None
        Ends of the line g = 0, (2, 2), and of the lines at the distance of the margin, (2, 2, 2).
    names : list of str
        Names of the classes.
    labels : tuple of str
        Labels of the axes.
    title, note : str
        Title of the figure, and the smaller text below it.
    is_strip : bool
        Whether there is one feature, with one strip per class.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    hulls_ : list of Polygon
        One per class.
    points_ : list of PathCollection
        One per class.
    plane_, band_, combination_ : LineCollection or None
        The plane, its margin, and lines from the samples to the common point.
    common_ : PathCollection or None
        The common point.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> display = mm.plots.separability(mm.separability(X, y), X, y, ax=Figure().subplots())
    >>> display.common is None, len(display.hulls)
    (True, 2)
    """

    report: Separability
    points: Floats
    codes: Integers
    drawn: Integers
    hulls: list[Floats]
    common: Floats | None
    used: Integers
    plane: Floats | None
    band: Floats | None
    names: list[str]
    labels: tuple[str, str]
    title: str
    note: str = ""
    is_strip: bool = False
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    hulls_: list[Polygon] = field(init=False)
    points_: list[PathCollection] = field(init=False)
    plane_: LineCollection | None = field(init=False, default=None)
    band_: LineCollection | None = field(init=False, default=None)
    combination_: LineCollection | None = field(init=False, default=None)
    common_: PathCollection | None = field(init=False, default=None)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_report(
        cls,
        report: Separability,
        X: MatrixLike,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        feature_names: Sequence[str] | None = None,
        max_points: int = MOST_POINTS,
        legend: bool = True,
    ) -> SeparabilityDisplay:
        """Draw the convex hulls of two classes, and a plane between them or a common point.

        Gordan's alternative: either a plane has y·g(x) > 0 for every sample, or u ≥ 0, Σu = 1,
        gives Σ u_i y_i (x_i, 1) = 0, a point common to both hulls. More than two features are
        projected: along w against the first principal direction orthogonal to it, which keeps the
        hulls apart, or onto two principal directions, which keep the common point common.

        Parameters
        ----------
        report : Separability
            The result of `maxmargin.separability`; with ``maximum_margin=True`` the band is the
            widest.
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples of the report.
        y : array-like of shape (n_samples,)
            Labels.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        feature_names : sequence of str, optional
            Names of the features; by default those of the frame X, or of the frame of the fit.
        max_points : int, default=2000
            The largest number of samples that are drawn; the hulls are those of all.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SeparabilityDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Gordan (1873); Bennett, Bredensteiner, *ICML* (2000), on the hulls and the margin.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_xor(return_X_y=True)
        >>> display = mm.plots.separability(mm.separability(X, y), X, y, ax=Figure().subplots())
        >>> print(display.title, display.common)
        not separable: the hulls share a point made of 4 samples [0. 0.]
        """
        data = FigureData(X, feature_names)
        names, codes = np.unique(np.asarray(y).ravel(), return_inverse=True)
        if len(names) != 2 or codes.size != data.n_samples:
            raise ValueError(
                f"y must hold {data.n_samples} labels of two classes, got {codes.size} of "
                f"{len(names)}: pass the X and y of the report."
            )
        if report.certificate.n_samples != data.n_samples:
            raise ValueError(
                f"the report is on {report.certificate.n_samples} samples, X has "
                f"{data.n_samples}: pass the X and y of the report."
            )
        return _compute(cls, report, data, codes, [str(a) for a in names], max_points).plot(
            ax, legend=legend
        )

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> SeparabilityDisplay:
        """Draw on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        SeparabilityDisplay
            The display itself, with its artists.
        """
        ax = one_axes(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        self.hulls_ = []
        for code, corners in enumerate(self.hulls):
            ink = colour(code)
            drawn = Polygon(corners, facecolor=(ink, 0.22), edgecolor=ink, linewidth=2.0, zorder=1)
            self.hulls_.append(drawn)
            ax.add_patch(drawn)
        if self.band is not None:
            self.band_ = lines(ax, list(self.band), INK, (0, (5, 3)), 1.1, zorder=2)
        if self.plane is not None:
            self.plane_ = lines(ax, [self.plane], INK, "-", 1.8, zorder=2)
        self._draw_proof(ax)
        self.points_ = draw_classes(ax, self.points[self.drawn], self.codes[self.drawn], 2)
        self._frame(ax)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_proof(self, ax: Axes) -> None:
        if self.common is None:
            return
        threads = [np.array([self.points[row], self.common]) for row in self.used]
        self.combination_ = lines(ax, threads, INK, ":", 1.2, zorder=2.5)
        self.common_ = ax.scatter(
            self.common[0], self.common[1], s=190, marker="*", c=INK, edgecolors="white",
            linewidths=0.8, zorder=6,
        )  # fmt: skip

    def _frame(self, ax: Axes) -> None:
        limits = limits_of(self.points, 2 if self.is_strip else 0)
        set_frame(ax, limits, self.labels, self.names if self.is_strip else ())
        set_title(ax, self.title, self.note)

    def _handles(self) -> list[Line2D]:
        handles = class_handles(self.names)
        if self.plane is not None:
            handles.append(line_handle("a separating plane", width=1.8))
            widest = np.isfinite(self.report.margin_bound)
            handles.append(line_handle("widest band" if widest else "its margin", "--", width=1.1))
        if self.common is not None:
            handles.append(mark_handle("common point", "*", size=12))
            handles.append(line_handle("combination of", ":", FAINT, 1.2))
        return handles


separability = SeparabilityDisplay.from_report


def _compute(
    cls: type[SeparabilityDisplay],
    report: Separability,
    data: FigureData,
    codes: Integers,
    names: list[str],
    max_points: int,
) -> SeparabilityDisplay:
    basis, offset, labels, note = _projection(report, data)
    points = np.asarray(data.numbers @ basis, dtype=float) + offset
    strip = data.n_features == 1
    if strip:
        points[:, 1] = strip_heights(codes)
    common = None if report.common_point is None else report.common_point @ basis + offset
    if strip and common is not None:
        common[1] = 0.5
    u = report.multipliers
    used = np.flatnonzero(u) if u is not None else np.empty(0, dtype=np.int64)
    drawn = some_rows(codes.size, max_points, used, max_points)
    plane, band = _lines(report, basis, offset, points, strip)
    if drawn.size < codes.size:
        shown = f"{drawn.size:,} of {codes.size:,} samples shown"
        note = f"{note}; {shown}" if note else shown
    return cls(
        report=report, points=points, codes=codes, drawn=drawn,
        hulls=[_interval(points, codes, code) if strip else hull(points[codes == code])
               for code in (0, 1)],
        common=common, used=used,
        plane=plane, band=band, names=names, labels=labels, title=_title(report, used.size),
        note=note, is_strip=strip,
    )  # fmt: skip


def _projection(
    report: Separability, data: FigureData
) -> tuple[Floats, Floats, tuple[str, str], str]:
    """Return the directions of the picture (d, 2), its offset, labels, and a note."""
    d, nothing = data.n_features, np.zeros(2)
    if d <= 2:
        names = [*data.names, ""]
        return np.eye(d, 2), nothing, (names[0], names[1]), ""
    rows = data.numbers[some_rows(data.n_samples, DIRECTION_ROWS)]
    if report.hyperplane is None:
        labels = ("first principal direction", "second principal direction")
        note = f"projection of {d} features onto two directions"
        if report.common_point is None:
            note += ", in which separate hulls may meet"
        return principal(rows, 2), nothing, labels, note
    plane = report.hyperplane.normalized()
    second = principal(rows, 1, plane.w[:, None])[:, 0]
    labels = ("signed distance to the plane", "first principal direction orthogonal to w")
    basis = np.column_stack([plane.w, second])
    return basis, np.array([plane.b, 0.0]), labels, f"projection of {d} features along w"


def _lines(
    report: Separability, basis: Floats, offset: Floats, points: Floats, strip: bool
) -> tuple[Floats | None, Floats | None]:
    """Return the plane and both edges of its margin as lines across the picture."""
    if report.hyperplane is None:
        return None, None
    plane = report.hyperplane.normalized()
    # Points p of the picture are xB + offset: w lies in the span of B's columns.
    w = plane.w @ basis
    b = plane.b - float(w @ offset)
    low, high = np.array(limits_of(points, 2 if strip else 0)).T
    reach = 2.0 * float(np.linalg.norm(high - low)) + abs(report.margin)
    middle = (low + high) / 2
    foot = middle - (w @ middle + b) * w
    along = np.array([-w[1], w[0]]) * reach
    line = np.array([foot - along, foot + along])
    aside = report.margin * w
    return line, np.array([line - aside, line + aside])


def _interval(points: Floats, codes: Integers, code: int) -> Floats:
    """Return the hull of numbers as a box in the strip of their class."""
    own = points[codes == code, 0]
    low, high = own.min(), own.max()
    return np.array([[low, code - 0.3], [high, code - 0.3], [high, code + 0.3], [low, code + 0.3]])


def hull(points: Floats) -> Floats:
    """Return the corners of the convex hull in order: 2 of a segment, 1 of a point.

    >>> hull(np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]])).tolist()
    [[0.0, 0.0], [2.0, 2.0]]
    """
    different = np.unique(points, axis=0)
    if len(different) <= 2:
        return different
    try:
        corners: Floats = different[ConvexHull(different).vertices]
        return corners
    except QhullError:
        # All points are on a line: its ends are the first and the last along it.
        along = (different - different[0]) @ (different[-1] - different[0])
        return different[[along.argmin(), along.argmax()]]


def _title(report: Separability, n_used: int) -> str:
    if report.separable is None:
        return "undecided: margin and common point are below rounding"
    if not report.separable:
        return f"not separable: the hulls share a point made of {number(n_used, 'sample')}"
    if np.isfinite(report.margin_bound):
        return f"separable: the widest band is {2.0 * report.margin:.4g} wide"
    return f"separable: this plane has margin {report.margin:.4g}"
