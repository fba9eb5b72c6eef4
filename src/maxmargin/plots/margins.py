"""Histograms of the margins y·g by class, with the band and the slack."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Patch, StepPatch
from matplotlib.text import Text
from numpy.typing import ArrayLike

from ..arrays import Floats, Integers, MatrixLike
from ..diagnostics.fitted_model import ModelLike
from .canvas import (
    INK,
    Bools,
    colour,
    figure_of,
    inner_size,
    number,
    one_axes,
    set_labels,
    set_title,
    shortened,
    span,
)
from .display import Display
from .legends import line_handle, set_legend
from .model import FigureModel
from .titles import described, outliers_in_words

TAIL_PERCENT = 0.5  # samples at either end that may lie outside the bins
HIGHEST_BAR = 0.85  # of the height of a row
COUNT_SIZE = 0.75  # of the letters of the counts, as a fraction of those of names


@dataclass(eq=False)
class MarginsDisplay(Display):
    """The margins of the samples, one histogram per class; what `margins` returns.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
        y·g(x), in units of ``label``.
    codes : ndarray of int of shape (n_samples,)
        Class numbers.
    errors : ndarray of bool of shape (n_samples,)
        Which samples are misclassified; a sample on the plane itself may be classified correctly.
    names : list of str
        Names of the classes.
    label, title : str
        Label of the horizontal axis, and title.
    has_band : bool
        Whether a margin of 1 is what the model requires.
    is_two_sided : bool
        Whether margins are y·g of two classes, or of a pair, so that |g| ≤ 1 is a band.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins; values beyond are in the first or the last one.
    is_region : bool, default=False
        Whether the model is a machine of one class: margins are g(x), and errors are outliers.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    histograms_ : list of StepPatch
        One per class, each on its own row.
    band_ : artist or None
        The span |g| ≤ 1.
    counts_ : list of Text
        Samples, slacks and errors of each class.
    legend_ : Legend or None
        The legend.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> int(mm.plots.margins(model, X, y, ax=Figure().subplots()).slacks.sum())
    0
    """

    margins: Floats
    codes: Integers
    errors: Bools
    names: list[str]
    label: str
    title: str
    has_band: bool
    is_two_sided: bool
    edges: Floats
    is_region: bool = False
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    histograms_: list[StepPatch] = field(init=False)
    band_: Artist | None = field(init=False, default=None)
    counts_: list[Text] = field(init=False)
    legend_: Legend | None = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        clf: ModelLike,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        bins: int = 40,
        legend: bool = True,
    ) -> MarginsDisplay:
        """Draw the distribution of the margins of the samples, class by class.

        The margin is y·g(x): below 0 is an error, below 1 has slack ξ = 1 − y·g(x). For many
        classes it is the score of the own class less that of its strongest rival; for one machine
        per pair ("ovo") y·g(x) of the machine of these two classes. All pairs vote, so that an
        error may have a positive margin. Where a margin of 1
        has no meaning (a perceptron), it is the signed distance y·g(x)/‖w‖ for linear models, else
        y·g(x). Of a `OneClassSVM` it is g(x) = w·φ(x) − ρ whatever y is: outliers are below 0.

        Parameters
        ----------
        clf : fitted classifier or OneClassSVM, or a Pipeline or search that ends in one
            The model.
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels; of a `OneClassSVM` +1 and −1, or None for one histogram.
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        bins : int, default=40
            Number of bars; heights are relative to the highest of a class. Outliers are in the last
            bar.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        MarginsDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Schölkopf, Smola, *Learning with Kernels*, section 7.2.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
        >>> print(mm.plots.margins(model, X, y, ax=Figure().subplots()).margins.round(3))
        [1. 1.8 1. 1.133 1. 2.4 ]
        """
        if bins < 1:
            raise ValueError(f"bins must be at least 1, got {bins}.")
        model = FigureModel(clf)
        model.refuse_targets()
        scores = model.scores(X)
        has_band = model.is_support_vector_machine and model.scheme != "ovr"
        title = described(model)
        if model.has_no_plane(X, scores):
            title += ", w = 0: no plane"
        label, scale = _unit(model)
        if model.has_classes:
            codes, names = model.labelled(X, y, len(scores)), model.class_names
            errors = model.predict(X) != codes
            found = model.margins(scores, codes) / scale
            if model.is_support_vector_machine or not model.is_binary:
                title = f"{title}, {number(int(errors.sum()), 'error')}"
        else:
            codes, names = _given(model, y, len(scores))
            errors, found = model.predict(X) == 0, scores[:, 0]
            title = f"{title}, {outliers_in_words(errors)}"
        return cls(
            margins=found, codes=codes, errors=errors, names=names, label=label,
            title=title, has_band=has_band, is_two_sided=has_band and model.scheme != "joint",
            edges=_edges(found, bins, has_band), is_region=not model.has_classes,
        ).plot(ax, legend=legend)  # fmt: skip

    @property
    def slacks(self) -> Bools:
        """Which samples have a margin below 1, errors included."""
        return self.margins < 1.0 - 1e-6 if self.has_band else np.zeros(len(self.margins), bool)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> MarginsDisplay:
        """Draw on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        legend : bool, default=True
            Whether to draw a legend.

        Returns
        -------
        MarginsDisplay
            The display itself, with its artists.
        """
        ax = one_axes(ax, height=max(4.8, 1.2 + 0.5 * len(self.names)))
        self.ax_, self.figure_ = ax, figure_of(ax)
        self._draw_zones(ax)
        self.histograms_ = []
        # A margin of 1 to rounding counts as 1.
        raised = self.margins + 1e-9 * np.maximum(1.0, np.abs(self.margins))
        clipped = np.clip(raised, self.edges[0], self.edges[-1])
        for code in range(len(self.names)):
            self._draw_row(ax, code, clipped[self.codes == code])
        n = len(self.names)
        ax.set_ylim(n, 0.0)
        ax.set_xlim(self.edges[0], self.edges[-1])
        self._name_rows(ax)
        set_labels(ax, self.label, "")
        set_title(ax, self.title)
        if legend:
            self.legend_ = set_legend(ax, self._handles())
        return self

    def _draw_zones(self, ax: Axes) -> None:
        # Hatched as well, so that the zones differ without colour.
        ax.axvspan(self.edges[0] - 1.0, 0.0, facecolor="#F2D9CC", edgecolor="none", zorder=0)
        ax.axvline(0.0, color=INK, linewidth=1.4, zorder=3)
        if not self.has_band:
            return
        low = -1.0 if self.is_two_sided else 0.0
        self.band_ = ax.axvspan(
            low, 1.0, facecolor="none", edgecolor="#BBBBBB", hatch="///", linewidth=0.0, zorder=0.5
        )
        ax.axvline(1.0, color=INK, linewidth=1.1, linestyle=(0, (5, 3)), zorder=3)

    def _draw_row(self, ax: Axes, code: int, own: Floats) -> None:
        counts, _ = np.histogram(own, self.edges)
        heights = HIGHEST_BAR * counts / max(counts.max(initial=0), 1)
        base = code + 0.95
        drawn = ax.stairs(
            base - heights, self.edges, baseline=base, fill=True, facecolor=colour(code),
            edgecolor=INK, linewidth=0.6, zorder=2,
        )  # fmt: skip
        ax.axhline(base, color="#CCCCCC", linewidth=0.8, zorder=1)
        self.histograms_.append(drawn)

    def _name_rows(self, ax: Axes) -> None:
        """Write the names beside the rows, with the counts below them as far as there is room."""
        n = len(self.names)
        high = 72.0 * inner_size(ax)[1] / n
        # Letters of names leave room for the counts, but not below the size that is legible.
        size = float(np.clip(0.42 * high, min(6.5, 0.8 * high), plt.rcParams["font.size"]))
        most = int((high / size - 1.2) / (1.2 * COUNT_SIZE))
        texts = [self._counts(code, most) for code in range(n)]
        ax.set_yticks(
            [row + 0.5 for row in range(n)], list(map(shortened, self.names)), fontsize=size,
            va="bottom" if any(texts) else "center",
        )  # fmt: skip
        ax.tick_params(axis="y", length=0, pad=4)
        self.counts_ = [
            ax.annotate(
                text, (0.0, row + 0.5), xycoords=ax.get_yaxis_transform(), xytext=(-4.0, 0.0),
                textcoords="offset points", ha="right", va="top", fontsize=COUNT_SIZE * size,
                color="#555555", annotation_clip=False,
            )
            for row, text in enumerate(texts)
        ]  # fmt: skip

    def _counts(self, code: int, most: int) -> str:
        """Return the samples, slacks and errors of a class on so many lines, or the errors only."""
        mine = self.codes == code
        n, wrong = int(mine.sum()), int((self.errors & mine).sum())
        errors = number(wrong, "outlier" if self.is_region else "error")
        slack = [f"{int((self.slacks & mine).sum()):,} with slack"] if self.has_band else []
        parts = [number(n, "sample"), *slack, errors]
        if most >= len(parts):
            return "\n".join(parts)
        return f"{errors} of {n:,}" if most >= 1 else ""

    def _handles(self) -> list[Artist]:
        zero = "the plane" if self.is_two_sided or len(self.names) == 2 else "a rival as strong"
        zero = "the border, g(x) = 0" if self.is_region else zero
        handles: list[Artist] = [line_handle(zero, width=1.4)]
        if self.has_band:
            handles.append(line_handle("the margin, 1", "--", width=1.1))
            text = "band |g| ≤ 1" if self.is_two_sided else "right, but with slack"
            handles.append(Patch(facecolor="white", edgecolor="#BBBBBB", hatch="///", label=text))
        side = "outliers" if self.is_region else "wrong side"
        handles.append(Patch(facecolor="#F2D9CC", label=side))
        return handles


margins = MarginsDisplay.from_estimator


def _given(model: FigureModel, y: ArrayLike | None, n: int) -> tuple[Integers, list[str]]:
    """Return the rows of histograms of a machine of one class: one, or one per label."""
    if y is None:
        return np.zeros(n, dtype=np.intp), ["samples"]
    return model.codes(y, n), [f"y = {label}" for label in model.classes]


def _unit(model: FigureModel) -> tuple[str, float]:
    """Return the label of the margins, and their divisor."""
    if not model.has_classes:
        return "g(x) = w·φ(x) − ρ", 1.0
    if model.scheme == "ovo":
        return "y·g(x) of the pair: own class against its strongest rival", 1.0
    if not model.is_binary:
        return "score of the own class less that of its strongest rival", 1.0
    if not model.is_support_vector_machine and model.is_linear and not model.steps:
        norm = float(np.linalg.norm(model.classifier.coef_))
        if norm > 0:
            return "y·g(x)/‖w‖: signed distance to the plane", norm
    return "y·g(x)", 1.0


def _edges(found: Floats, bins: int, has_band: bool) -> Floats:
    """Return edges around all margins; outliers are left out where they would compress the rest."""
    marks = np.array([-1.0, 0.0, 1.0]) if has_band else np.zeros(1)
    low, high = span(np.concatenate([found, marks]), 0.04)
    inner = (
        np.percentile(found, [TAIL_PERCENT, 100.0 - TAIL_PERCENT]) if found.size else np.zeros(2)
    )
    near_low, near_high = span(np.concatenate([inner, marks]), 0.04)
    if high - low > 3.0 * (near_high - near_low):
        low, high = near_low, near_high
    width = (high - low) / bins
    if has_band:
        width = 1.0 / max(1, round(1.0 / width))  # no bar lies across 0 or 1
    return width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
