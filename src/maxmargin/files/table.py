"""The contents of a data file: rows, labels and names of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Labels, Matrix

if TYPE_CHECKING:
    import polars as pl

# Distinct values of a target above which it is not a class.
MOST_CLASSES = 1000
# What to do where numbers are taken for classes.
USE_REGRESSION = "pass the column of classes, or use a regression (SVR, --model svr) for numbers"
# Rows that are checked at a time.
CHECKED_ROWS = 1 << 16
DOUBLE = np.dtype(np.float64)
# Values up to this have sums of squares within float64, for any number of rows.
LARGEST_VALUE = 2.0**480
# Characters of a line, enough for millions of numbers.
LONGEST_LINE = 1 << 26
# Characters of a value, and of a name in a list, that messages show.
SHOWN_VALUE, SHOWN_NAME = 60, 40


class DataFileError(ValueError):
    """A data file cannot be used; the message names the file, and the line or column.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.files.read("none.csv", target="y")
    Traceback (most recent call last):
        ...
    maxmargin.files.table.DataFileError: none.csv: no such file.
    """


def cut(value: object, most: int = SHOWN_VALUE) -> str:
    """Return a value in quotes as it is shown in messages, where long text is cut.

    >>> cut("a" * 100, most=5)
    "'aaaaa…'"
    """
    if isinstance(value, str) and len(value) > most:
        return repr(value[:most] + "…")
    return repr(value)


def listed(names: Sequence[object], most: int = 20) -> str:
    """Return the first names of a list as they are shown in messages, long ones cut."""
    texts = [str(name) for name in names[:most]]
    texts = [text if len(text) <= SHOWN_NAME else text[:SHOWN_NAME] + "…" for text in texts]
    return ", ".join(texts) + (", …" if len(names) > most else "")


def bounded_lines(stream: Any, source: str) -> Iterator[Any]:
    """Yield the lines of a text or binary stream; raise for a line that is too long to be a row."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise DataFileError(
                f"{source}: line {number} has more than {LONGEST_LINE} characters: pass a file "
                "with one row per line."
            )
        yield line


@dataclass(frozen=True)
class DataTable:
    """Rows of a data file; what `read` returns.

    Parameters
    ----------
    X : ndarray, CSR matrix or polars DataFrame
        A frame where some column holds categories, else floats.
    y : ndarray of shape (n_samples,) or None
        Labels: int where all of them are whole numbers, else str. float64 where they were read as
        numbers, the targets of a regression.
    names : list of str or None
        The columns of X; None where the file has no names.
    source : str
        The file.
    target : str or None
        The column of y; None where the file has no names.
    dropped : list of str
        Columns that were left out.
    first_index : int or None
        The number of the first feature in an svmlight file, 0 or 1; None for other formats.
    reading : dict
        What is needed to read other files of this kind, as JSON, for ``like`` of `batches`: whether
        there is a header, the separator, how numbers and dates are written.
    notes : list of str
        What was found out about the file: a guessed encoding, no header, an index that was dropped.
    index_like : list of str
        Columns of X that are called like an index, with a different value in every row.
    kept : polars DataFrame or None
        Columns that were asked for as they are, text where the file is text.

    Examples
    --------
    >>> import maxmargin as mm
    >>> table = mm.files.read(mm.datasets.fruit_file(), target="fruit")
    >>> table.names, table.missing()
    (['mass_g', 'width_cm', 'height_cm'], {})
    """

    X: Matrix
    y: Labels | None
    names: list[str] | None
    source: str
    target: str | None = None
    dropped: list[str] = field(default_factory=list)
    first_index: int | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    index_like: list[str] = field(default_factory=list)
    kept: pl.DataFrame | None = None

    @property
    def labels(self) -> Labels:
        """The labels of a file that was read with labels."""
        assert self.y is not None
        return self.y

    def missing(self) -> dict[str, int]:
        """Return the number of missing values of each column that has any.

        Returns
        -------
        dict of str to int
            Counts by the name of the column.
        """
        return self._counted(np.isnan)

    def infinite(self) -> dict[str, int]:
        """Return the number of infinite values of each column that has any.

        Returns
        -------
        dict of str to int
            Counts by the name of the column.
        """
        return self._counted(np.isinf)

    def _counted(self, test: Callable[[Any], Any]) -> dict[str, int]:
        """Return the number of values that pass a test, for each column that has any."""
        X = self.X
        counts = np.zeros(X.shape[1], dtype=np.int64)
        if hasattr(X, "null_count"):
            for k, name in enumerate(X.columns):
                column = X[name]
                values = column.to_numpy() if column.dtype.is_float() else np.zeros(0)
                lacking = column.null_count() if test is np.isnan and not values.size else 0
                counts[k] = lacking + np.count_nonzero(test(values))
        elif hasattr(X, "indices"):
            counts += np.bincount(X.indices[test(X.data)], minlength=X.shape[1])
        elif X.dtype.kind == "f":
            for start in range(0, len(X), CHECKED_ROWS):
                counts += test(X[start : start + CHECKED_ROWS]).sum(axis=0)
        names = self.names or [f"column {k + 1}" for k in range(X.shape[1])]
        return {names[k]: int(n) for k, n in enumerate(counts) if n}

    def labels_to_learn(self) -> Labels:
        """Return y; raise where it has one class only, or too many distinct values for classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels.

        Raises
        ------
        DataFileError
            Where the labels are not classes.
        """
        y = self.labels
        where = "the label" if self.target is None else f"column {self.target!r}"
        require_classes(np.unique(y), len(y), self.source, where)
        return y


def require_classes(classes: Labels, n: int, source: str, where: str) -> None:
    """Raise where the distinct labels of n rows are one class only, or too many for classes."""
    if len(classes) == 1:
        raise DataFileError(
            f"{source}: {where} must hold at least two classes, got "
            f"{listed(classes[:1].tolist())} in all {n} rows."
        )
    if len(classes) > MOST_CLASSES or (len(classes) > 20 and len(classes) > n / 2):
        remedy = USE_REGRESSION if classes.dtype.kind == "i" else "pass the column of classes"
        raise DataFileError(
            f"{source}: {where} must hold classes, got {len(classes)} distinct values in "
            f"{n} rows: {remedy}."
        )


def largest(dtype: np.dtype[Any]) -> float:
    """Return the largest absolute value that models accept."""
    return min(LARGEST_VALUE, float(np.finfo(dtype).max))


def first_beyond(values: Labels, limit: float) -> int | None:
    """Return the place of the first finite number above a limit; None without one."""
    if values.dtype.kind != "f" or not values.size:
        return None
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if max(-float(low), float(high)) <= limit:
        return None
    beyond = np.isfinite(values) & (np.abs(values) > np.float64(limit))
    return int(beyond.argmax()) if beyond.any() else None


def too_large(where: str, value: float) -> DataFileError:
    """Return the error for a finite number that is too large."""
    why, remedy = "its square overflows float64", "rescale the column"
    if abs(value) <= LARGEST_VALUE:
        why, remedy = "it overflows float32", "use float64, rescale the column"
    return DataFileError(f"{where}: {value:g} is too large, {why}: {remedy}, or remove the row.")


def find_column(wanted: str, names: list[str], source: str, role: str = "target") -> int:
    """Return the number of a column given by name, or by number from either end."""
    if wanted in names:
        return names.index(wanted)
    try:
        place = int(wanted)
        names[place]
    except (ValueError, IndexError):
        close = get_close_matches(wanted, names, 1)
        hint = f" Did you mean {cut(close[0])}?" if close else ""
        raise DataFileError(
            f"{source}: there is no {role} column {cut(wanted)}; the file has {listed(names)}."
            f"{hint}"
        ) from None
    return place % len(names)
