"""An algorithm at work, step by step, as a GIF or an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.text import Text
from numpy.typing import ArrayLike

from ..arrays import Floats, Integers, MatrixLike
from ..diagnostics.fitted_model import ModelLike
from .animation_scene import scene_of
from .canvas import (
    INK,
    Bools,
    draw_classes,
    limits_of,
    lines,
    number,
    pale,
    set_frame,
    set_title,
    size_of,
    strip_heights,
)
from .captions import captions_of, moved_rows, run_in_words
from .display import Display, DisplayFigure
from .grid import Lattice
from .legends import class_handles, line_handle, mark_handle, set_legend
from .model import FigureModel
from .recording import Caption, write_page
from .steps import Moment, fitted_classifier, run_of
from .view import FeatureLike, FigureData, Projection, View, view_of

FPS = 4.0
MOST_FRAMES = 100
DPI = 100.0
RESOLUTION = 100


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of an animation.

    Parameters
    ----------
    g : ndarray of shape (resolution, resolution)
        Scores on the lattice of the picture.
    wrong : ndarray of bool of shape (n,)
        Samples that are not strictly on their side.
    moved : ndarray of int
        The sample being corrected, or the pair whose α changed.
    moment : Moment
        b, and w or α.
    is_flat : bool, default=False
        Whether w = 0 to rounding, so that there is no line.
    """

    g: Floats
    wrong: Bools
    moved: Integers
    moment: Moment
    is_flat: bool = False


@dataclass(eq=False)
class AnimationDisplay(Display):
    """The frames of an algorithm at work; what `animate` returns.

    Parameters
    ----------
    frames : list of Frame
        The pictures, first to last.
    grid : Lattice
        The points at which scores were computed.
    points : ndarray of shape (n, 2)
        The samples.
    codes : ndarray of int of shape (n,)
        Their class numbers.
    name : str
        Name of the algorithm.
    names : list of str
        Names of the classes.
    labels : tuple of str
        Labels of the axes.
    note : str
        What a projection leaves out.
    captions : list of Caption
        What is said of the start, of every step and of the answer, on an HTML page.
    has_band : bool
        Whether g = ±1 is drawn.
    is_strip : bool
        Whether there is one feature, with one strip per class.
    fps : float, default=4
        Frames per second.
    n_steps : int, default=0
        Steps of the fit, some of which are frames.
    run_note : str, default=""
        What is to be known of the steps: that some overflow, or are not those of this fit.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        A figure outside of pyplot, which need not be closed.
    title_ : Text
        The title.
    regions_, boundary_, band_, points_, sample_, wrong_ : artists
        The artists that change from frame to frame.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> display = mm.plots.animate(mm.Perceptron(shuffle=False), X, y)
    >>> len(display), display.name
    (2, 'Perceptron')
    """

    frames: list[Frame]
    grid: Lattice
    points: Floats
    codes: Integers
    name: str
    names: list[str]
    labels: tuple[str, str]
    note: str
    captions: list[Caption]
    has_band: bool
    is_strip: bool
    fps: float = FPS
    n_steps: int = 0
    run_note: str = ""
    figure_: Figure = field(init=False)
    ax_: Axes = field(init=False)
    title_: Text = field(init=False)
    regions_: AxesImage = field(init=False)
    boundary_: LineCollection = field(init=False)
    band_: LineCollection = field(init=False)
    points_: list[PathCollection] = field(init=False)
    sample_: PathCollection = field(init=False)
    wrong_: PathCollection = field(init=False)

    def __post_init__(self) -> None:
        self._set_up()
        self.draw(0)

    def __len__(self) -> int:
        return len(self.frames)

    def draw(self, k: int) -> list[Artist]:
        """Change the figure to a frame.

        Parameters
        ----------
        k : int
            Number of the frame.

        Returns
        -------
        list of artists
            The artists that changed.
        """
        frame, grid = self.frames[k], self.grid
        moment = frame.moment
        self.regions_.set_data((frame.g >= 0).astype(float))
        self.boundary_.set_segments([] if frame.is_flat else grid.contour(frame.g, 0.0))
        levels = (-1.0, 1.0) if self.has_band and not frame.is_flat else ()
        self.band_.set_segments([line for a in levels for line in grid.contour(frame.g, a)])
        self._size_points(moment)
        self.wrong_.set_offsets(self.points[frame.wrong])
        self.sample_.set_offsets(self.points[frame.moved])
        self.title_.set_text(self._words(k))
        return [self.regions_, self.boundary_, self.band_, *self.points_, self.wrong_, self.sample_]

    def save(
        self,
        path: str | Path,
        *,
        dpi: float = DPI,
        progress: Callable[[int, int], object] | None = None,
    ) -> Path:
        """Write the animation to a file.

        Parameters
        ----------
        path : str or Path
            A .gif of the pictures; or a self-contained .html page, which plays the steps in a
            browser, with captions, a slider and the keyboard.
        dpi : float, default=100
            Dots per inch of a .gif; a page has none.
        progress : callable, optional
            Called with the number of each frame, from 0, and the number of frames.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in (".gif", ".html"):
            raise ValueError(f"path must end in .gif or .html, got {str(path)!r}.")
        n = len(self)
        told = (lambda k, n: None) if progress is None else progress
        if suffix == ".html":
            write_page(target, f"{self.name}, step by step", [scene_of(self)], self.fps)
            told(n - 1, n)
            return target
        pictures = FuncAnimation(
            self.figure_, self.draw, frames=n, init_func=lambda: self.draw(0), blit=False
        )
        writer = PillowWriter(fps=self.fps)  # type: ignore[arg-type]
        pictures.save(
            str(target), writer=writer, dpi=dpi, progress_callback=lambda k, _: told(k, n)
        )
        return target

    def _set_up(self) -> None:
        self.figure_ = DisplayFigure(figsize=(6.4, 4.6), layout="constrained")
        FigureCanvasAgg(self.figure_)
        ax = self.ax_ = self.figure_.subplots()
        x, y, n = self.grid.x, self.grid.y, len(self.points)
        # The points of the lattice are the centres of the pixels.
        half_x, half_y = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
        self.regions_ = ax.imshow(
            np.zeros((y.size, x.size)), vmin=-0.5, vmax=1.5, zorder=0, origin="lower",
            cmap=ListedColormap([pale(0), pale(1)]), interpolation="nearest", aspect="auto",
            extent=(x[0] - half_x, x[-1] + half_x, y[0] - half_y, y[-1] + half_y),
        )  # fmt: skip
        self.boundary_ = lines(ax, [], INK, "-", 2.0, zorder=1.5)
        self.band_ = lines(ax, [], INK, (0, (5, 3)), 1.1, zorder=1.5)
        self.points_ = draw_classes(ax, self.points, self.codes, 2)
        area = size_of(n)
        self.sample_ = ax.scatter(
            [], [], s=5.0 * area, facecolors="none", edgecolors=INK, linewidths=2.4, zorder=5
        )
        self.wrong_ = ax.scatter([], [], s=0.8 * area, c=INK, marker="x", linewidths=1.2, zorder=4)
        limits = (x[0], x[-1]), (y[0], y[-1])
        set_frame(ax, limits, self.labels, self.names if self.is_strip else ())
        notes = [text for text in (self.note, self.run_note) if text]
        set_title(ax, self._words(len(self) - 1), "; ".join(notes))
        self.title_ = ax.title
        set_legend(ax, self._handles())
        # The layout is fixed, so that it does not change from frame to frame.
        self.figure_.canvas.draw()
        self.figure_.set_layout_engine("none")

    def _size_points(self, moment: Moment) -> None:
        """Make α the area of the markers, where the algorithm has one."""
        if moment.alpha is None:
            return
        known = [frame.moment.alpha for frame in self.frames if frame.moment.alpha is not None]
        largest = max(float(alpha.max(initial=0.0)) for alpha in known) or 1.0
        sizes = size_of(len(self.points)) * (0.45 + 2.2 * moment.alpha / largest)
        for code, drawn in enumerate(self.points_):
            drawn.set_sizes(sizes[self.codes == code])

    def _words(self, k: int) -> str:
        frame = self.frames[k]
        parts = [f"{frame.moment.unit} {frame.moment.iteration}"]
        parts.append(number(int(frame.wrong.sum()), "error"))
        if k == len(self) - 1:
            parts = [parts[1], "the answer"]
        elif np.isfinite(frame.moment.objective):
            parts.append(f"objective {frame.moment.objective:.4g}")
        place = f"step {k + 1} of {len(self)}"
        if self.n_steps > len(self):
            place = f"picture {k + 1} of {len(self)} ({self.n_steps:,} steps)"
        return f"{self.name}: {place}\n{', '.join(parts)}"

    def _handles(self) -> list[Line2D]:
        handles = class_handles(self.names)
        handles.append(line_handle("g(x) = 0", width=2.0))
        if self.has_band:
            handles.append(line_handle("g(x) = ±1", "--", width=1.1))
        if any(frame.moved.size for frame in self.frames):
            handles.append(mark_handle("being moved", "o", size=11, hollow=True, edge=2.2))
        handles.append(mark_handle("on the wrong side", "x"))
        if any(frame.moment.alpha is not None for frame in self.frames):
            handles.append(mark_handle("area: α", "o", "#BBBBBB", 10))
        return handles


def animate(
    clf: ModelLike,
    X: MatrixLike,
    y: ArrayLike,
    path: str | Path | None = None,
    *,
    fps: float = FPS,
    max_frames: int = MOST_FRAMES,
    resolution: int = RESOLUTION,
    features: FeatureLike = None,
    projection: Projection = None,
    feature_names: Sequence[str] | None = None,
) -> AnimationDisplay:
    """Show an algorithm at work on two classes: its plane or curve after every step.

    The steps are the solver's: those of ``clf.callback`` where that is a `Recorder`, else those of
    a fit with the same parameters (with ``random_state=None`` and random choices they differ). The
    sample being corrected is ringed, α of a dual algorithm is the area of the markers, × is on the
    wrong side.

    Parameters
    ----------
    clf : classifier of two classes, or a Pipeline or search that ends in one
        The model; one that is not fitted is fitted to X and y.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Samples of the fit.
    y : array-like of shape (n_samples,)
        Labels of the fit.
    path : str or Path, optional
        A .gif or .html file to write; `AnimationDisplay.save` writes it later, too. The page plays
        the run in a browser, without a server: with a slider, captions, the start, and what the
        certificate of the answer proves.
    fps : float, default=4
        Frames per second.
    max_frames : int, default=100
        The largest number of frames; steps are left out evenly, never the first or the last one.
    resolution : int, default=100
        Points of the lattice along each axis.
    features : one or two features, by number or name, optional
        The features to draw, as in `boundary`.
    projection : {"w", "pca"} or array of shape (n_features, 2), optional
        For more than two features, as in `boundary`.
    feature_names : sequence of str, optional
        Names of the features; by default those of the frame X, or of the frame of the fit.

    Returns
    -------
    AnimationDisplay
        The frames, and the figure.

    References
    ----------
    Duda, Hart, Stork, *Pattern Classification*, section 5.5, figure 5.13.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> len(mm.plots.animate(mm.Perceptron(shuffle=False).fit(X, y), X, y))
    2
    """
    if max_frames < 2 or resolution < 2 or not 0 < fps < np.inf:
        raise ValueError(
            "max_frames and resolution must be at least 2, fps positive and finite, got "
            f"{max_frames}, {resolution} and {fps}."
        )
    if path is not None and Path(path).suffix.lower() not in (".gif", ".html"):
        raise ValueError(f"path must end in .gif or .html, got {str(path)!r}.")
    model = fitted_classifier(clf, X, y)
    data = FigureData(X, feature_names, model.model)
    view = view_of(model, data, features, projection)
    display = _compute(model, data, view, X, y, fps, max_frames, resolution)
    if path is not None:
        display.save(path)
    return display


def _compute(
    model: FigureModel,
    data: FigureData,
    view: View,
    X: MatrixLike,
    y: ArrayLike,
    fps: float,
    max_frames: int,
    resolution: int,
) -> AnimationDisplay:
    run = run_of(model, X, y, max_frames)
    codes = model.codes(y)
    points = view.flatten(data.numbers)
    limits = limits_of(points, 2 if view.is_strip else 0)
    if view.is_strip:
        points[:, 1] = strip_heights(codes)
    lattice = Lattice.over(limits, resolution)
    on_lattice = run.evaluator(model.transform(data.fill(view.lift(lattice.points))))
    on_samples = run.evaluator(run.X)
    frames = []
    for before, moment in zip(run.before, run.moments, strict=True):
        g, at = on_lattice(moment), on_samples(moment)
        moved = np.array(moved_rows(moment, before), dtype=np.int64)
        is_flat = run.is_flat(moment, np.concatenate([g, at]))
        wrong = ~(run.signs * at > 0.0)
        frames.append(Frame(g.reshape(resolution, resolution), wrong, moved, moment, is_flat))
    errors = [None if frame.is_flat else int(frame.wrong.sum()) for frame in frames]
    captions = captions_of(run, errors)
    return AnimationDisplay(
        frames=frames, grid=lattice,
        points=points, codes=codes, name=model.name, names=model.class_names,
        labels=view.labels, note=view.note, captions=captions,
        has_band=model.is_support_vector_machine, is_strip=view.is_strip, fps=fps,
        n_steps=run.n_moments, run_note=run_in_words(run),
    )  # fmt: skip
