"""The kernel matrix ordered by class, its spectrum, and Mercer's condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..arrays import Floats, Integers, Matrix, MatrixLike
from ..diagnostics.fitted_model import ModelLike
from ..kernels import Kernel, MercerReport, Precomputed, mercer, resolve
from ..kernels.products import as_rows
from .canvas import (
    INK,
    PALETTE,
    WRONG,
    AxesLike,
    colour,
    figure_of,
    number,
    set_title,
    several_axes,
    shortened,
    some_rows,
)
from .display import Display
from .model import FigureModel
from .titles import kernel_in_words

# A kernel, its name, a function, or a classifier with a kernel.
KernelLike: TypeAlias = Kernel | str | Callable[..., Floats] | ModelLike

MOST_ROWS = 500  # rows of the matrix; the eigenvalues take time in n³
MOST_LETTERS = 16  # letters of the name of a class beside the matrix


@dataclass(eq=False)
class GramDisplay(Display):
    """A kernel matrix and its eigenvalues; what `gram` returns.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel values of some rows of X, class by class.
    rows : ndarray of int of shape (m,)
        These rows of X.
    spectrum : ndarray of shape (m,)
        Eigenvalues of (K + Kᵀ)/2, the largest first.
    verdict : MercerReport
        Whether K is positive semidefinite.
    blocks : list of (name, start, stop)
        The place of each class.
    name, note : str
        The kernel in words, and the smaller text of the title.

    Attributes
    ----------
    axes_ : list of Axes
        The panels of the matrix and of the spectrum.
    ax_, figure_ : Axes, Figure
        The first panel and its figure.
    image_ : AxesImage
        The matrix.
    positive_, negative_ : Line2D
        Eigenvalues λ > 0, and \\|λ\\| of those below 0; those that are 0 to rounding are left out.
    rounding_ : Annotation or None
        The label of the line below which eigenvalues are left out.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from matplotlib.figure import Figure
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> mm.plots.gram("rbf", X, y, axes=Figure().subplots(1, 2)).K.shape
    (4, 4)
    """

    K: Floats
    rows: Integers
    spectrum: Floats
    verdict: MercerReport
    blocks: list[tuple[str, int, int]]
    name: str
    note: str = ""
    axes_: list[Axes] = field(init=False)
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    image_: AxesImage = field(init=False)
    positive_: Line2D = field(init=False)
    negative_: Line2D = field(init=False)
    rounding_: Annotation | None = field(init=False, default=None)

    @classmethod
    def from_kernel(
        cls,
        kernel: KernelLike,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        axes: AxesLike = None,
        max_rows: int = MOST_ROWS,
    ) -> GramDisplay:
        """Draw the kernel matrix K(x_i, x_j), class by class, and its eigenvalues.

        K is positive semidefinite, vᵀKv ≥ 0, if and only if no eigenvalue is negative: Mercer's
        condition on these rows (`maxmargin.kernels.mercer`).

        Parameters
        ----------
        kernel : Kernel, name, callable, or a fitted classifier with a kernel (or a Pipeline of one)
            The kernel; for a name, γ is "scale" as in scikit-learn.
        X : array-like or CSR matrix of shape (n_samples, n_features), or kernel values
            Samples.
        y : array-like of shape (n_samples,), optional
            Classes, which order the rows; or targets, numbers that are not whole.
        axes : two matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.
        max_rows : int, default=500
            The largest number of rows that are drawn; the choice is deterministic.

        Returns
        -------
        GramDisplay
            The numbers drawn, and the artists.

        References
        ----------
        Schölkopf, Smola, *Learning with Kernels*, section 2.2.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_xor(return_X_y=True)
        >>> kernel = mm.kernels.Polynomial(2, coef0=1.0)
        >>> display = mm.plots.gram(kernel, X, y, axes=Figure().subplots(1, 2))
        >>> print(display.spectrum.round(6))
        [12.  8.  8.  8.]
        """
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}.")
        formula, rows = _resolved(kernel, X)
        n = rows.shape[0]
        codes, names = _order(y, n)
        chosen = some_rows(n, max_rows)
        chosen = chosen[np.argsort(codes[chosen], kind="stable")]
        some = rows[chosen]
        if isinstance(formula, Precomputed):
            some = some[:, chosen]
        K = np.asarray(formula(some), dtype=float)
        ends = np.searchsorted(codes[chosen], np.arange(len(names) + 1))
        blocks = [(name, int(a), int(b)) for name, a, b in zip(names, ends, ends[1:], strict=False)]
        return cls(
            K=K,
            rows=chosen,
            spectrum=np.linalg.eigvalsh((K + K.T) / 2)[::-1],
            verdict=mercer(Precomputed(), K),
            blocks=blocks,
            name=kernel_in_words(formula),
            note=_note(chosen.size, n, by_target=y is not None and not names),
        ).plot(axes)

    @property
    def rounding(self) -> float:
        """The size of an eigenvalue that may be 0 to rounding."""
        m, largest = len(self.spectrum), float(np.abs(self.spectrum).max())
        return float(np.finfo(float).eps) * m * max(largest, 1e-300)

    def plot(self, axes: AxesLike = None) -> GramDisplay:
        """Draw on two axes, or on a new figure.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            Where to draw; by default the axes of a new figure.

        Returns
        -------
        GramDisplay
            The display itself, with its artists.
        """
        self.axes_ = several_axes(axes, 2, (10.0, 4.6))
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        self._draw_matrix(self.axes_[0])
        self._draw_spectrum(self.axes_[1])
        return self

    def _draw_matrix(self, ax: Axes) -> None:
        signed = self.K.min() < 0
        largest = float(np.abs(self.K).max()) or 1.0
        self.image_ = ax.imshow(
            self.K, interpolation="nearest", cmap="PuOr_r" if signed else "cividis",
            vmin=-largest if signed else 0.0, vmax=largest,
        )  # fmt: skip
        figure = figure_of(ax)
        # Without a layout engine, the numbers beside the bar need more room.
        share = 0.15 if figure.get_layout_engine() is not None else 0.3
        bar = figure.colorbar(self.image_, ax=ax, shrink=0.85, fraction=share)
        bar.ax.set_title("K(x, z)", fontsize="small", loc="left")
        bar.ax.tick_params(labelsize="small")
        for _, start, _ in self.blocks[1:]:
            ax.axhline(start - 0.5, color="white" if not signed else INK, linewidth=0.8)
            ax.axvline(start - 0.5, color="white" if not signed else INK, linewidth=0.8)
        m = len(self.K)
        if self.blocks:
            self._bracket(ax, m)
        else:
            ax.set_ylabel("row")
        set_title(ax, f"kernel matrix, {self.name}", self.note)

    def _bracket(self, ax: Axes, m: int) -> None:
        """Name the classes beside their blocks, with a bracket of their colour."""
        for code, (_, start, stop) in enumerate(self.blocks):
            for x, y in (((-0.02, -0.02), (start, stop)), ((start, stop), (-0.02, -0.02))):
                along = ax.get_yaxis_transform() if x[0] == x[1] else ax.get_xaxis_transform()
                place = np.subtract(y, 0.5) if x[0] == x[1] else y
                where = x if x[0] == x[1] else np.subtract(x, 0.5)
                ax.plot(
                    where, place, color=colour(code), linewidth=4.0, clip_on=False,
                    solid_capstyle="butt", transform=along,
                )  # fmt: skip
        middles = [(start + stop - 1) / 2 for _, start, stop in self.blocks]
        names = [shortened(name, MOST_LETTERS) for name, _, _ in self.blocks]
        crowded = max(map(len, names)) * len(names) > 32
        ax.set_yticks(middles, names)
        ax.set_xticks(
            middles, names, rotation=45 if crowded else 0, ha="right" if crowded else "center"
        )
        ax.tick_params(length=0, pad=8)
        ax.set_xlim(-0.5, m - 0.5)
        ax.set_ylim(m - 0.5, -0.5)

    def _draw_spectrum(self, ax: Axes) -> None:
        size, floor = np.abs(self.spectrum), self.rounding
        place = np.arange(1, size.size + 1)
        up, down = self.spectrum > floor, self.spectrum < -floor
        (self.positive_,) = ax.plot(
            place[up], size[up], "o", color=PALETTE[0], markersize=4, label="λ > 0"
        )
        (self.negative_,) = ax.plot(
            place[down], size[down], "v", color=WRONG, markersize=6, label="λ < 0, drawn as |λ|"
        )
        if (up | down).any():
            ax.set_yscale("log")
            ax.axhline(floor, color="#999999", linewidth=0.9, linestyle=":")
            zero = int((~(up | down)).sum())
            text = f"rounding ({number(zero, 'eigenvalue')} below)" if zero else "rounding"
            # Below the line, where no eigenvalue is drawn.
            ax.set_ylim(bottom=floor * (floor / size.max()) ** 0.1)
            self.rounding_ = ax.annotate(
                text, (1.0, floor), xycoords=("axes fraction", "data"), xytext=(-4, -3), ha="right",
                textcoords="offset points", va="top", fontsize="small", color="#666666",
            )  # fmt: skip
        ax.set_xlim(0, size.size + 1)
        ax.set_xlabel("number")
        ax.set_ylabel("eigenvalue λ")
        ax.grid(axis="y", color="#EEEEEE")
        if down.any():
            ax.legend(loc="upper center", fontsize="small")
        extremes = f"λ from {self.spectrum[-1]:.3g} to {self.spectrum[0]:.3g}"
        set_title(ax, self._words(), extremes)

    def _words(self) -> str:
        if self.verdict.positive_semidefinite:
            return "Mercer's condition holds on these rows"
        if self.verdict.asymmetry > 1e-8 * max(self.verdict.largest_eigenvalue, 1e-300):
            return "not symmetric: no Mercer kernel"
        below = int((self.spectrum < -self.rounding).sum())
        return f"not a Mercer kernel: {number(below, 'negative eigenvalue')}"


gram = GramDisplay.from_kernel


def _resolved(kernel: KernelLike, X: MatrixLike) -> tuple[Kernel, Matrix]:
    """Return the kernel with its parameters, and the rows in its input space."""
    if isinstance(kernel, (BaseEstimator, Pipeline)):
        model = FigureModel(kernel)
        if model.kernel is None:
            raise ValueError(f"{model.name} has no kernel: pass kernel='linear' instead.")
        return model.kernel, as_rows(model.transform(X))
    rows = as_rows(X)
    return resolve(kernel, X=rows), rows


def _order(y: ArrayLike | None, n: int) -> tuple[Integers, list[str]]:
    """Return by what rows are ordered, and the names of the classes; targets have none."""
    if y is None:
        return np.zeros(n, dtype=np.int64), []
    values = np.asarray(y).ravel()
    names, codes = np.unique(values, return_inverse=True)
    if codes.size != n:
        raise ValueError(f"y has {codes.size} labels, X {n} rows: pass one label per row.")
    are_targets = values.dtype.kind == "f" and bool((values != np.floor(values)).any())
    return codes, [] if are_targets else [str(name) for name in names]


def _note(shown: int, n: int, by_target: bool) -> str:
    parts = [f"{shown:,} of {n:,} rows"] if shown < n else []
    return ", ".join([*parts, "ordered by their targets"] if by_target else parts)
