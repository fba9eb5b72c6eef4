"""What all displays have in common: a figure, and how it is saved."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

DPI = 150.0


class DisplayFigure(Figure):
    """A figure that a display made for itself, not one of the caller."""


class Display:
    """A figure of a model or of data that has been drawn.

    Attributes
    ----------
    figure_ : Figure
        The figure, one's own or that of the caller's axes.
    """

    figure_: Figure

    def save(self, path: str | Path, *, dpi: float = DPI) -> Path:
        """Write the whole figure to a file, cut to what is drawn: no label is clipped.

        Parameters
        ----------
        path : str or Path
            The file; its ending is the format, such as .png, .svg or .pdf.
        dpi : float, default=150
            Dots per inch.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import maxmargin as mm
        >>> from matplotlib.figure import Figure
        >>> X, y = mm.datasets.load_six_points(return_X_y=True)
        >>> model = mm.SVC(kernel="linear").fit(X, y)
        >>> display = mm.plots.boundary(model, X, y, ax=Figure().subplots())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     display.save(Path(folder) / "six.png").name
        'six.png'
        """
        target = Path(path)
        self.figure_.savefig(target, dpi=dpi, bbox_inches="tight")
        return target
