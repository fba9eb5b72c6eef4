"""What a data file comes to: rows, labels and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Different values of a target above which it is a measurement, not a class.
MOST_CLASSES = 1000
# Rows looked at at a time.
ROWS = 1 << 16
# Whole numbers up to this are exact in float64.
LARGEST = 2.0**53
DOUBLE = np.dtype(np.float64)
# Sizes of numbers up to which sums of squares stay in float64, however many the rows.
HUGE = 2.0**480
# Labels that are whole numbers as people write them, each in one way but for + and .0; others that
# a program would take for numbers (01, 1e1, 1_1) are words.
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})(\.0*)?")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


# Characters of a line: millions of numbers. More is a file of another kind, or without an end.
LONGEST_LINE = 1 << 26


class DataFileError(ValueError):
    """A data file that cannot be used; the message names the file, and the line or column."""


def bounded_lines(stream: Any, source: str) -> Iterator[Any]:
    """Yield the lines of a text or binary stream, and refuse one that is too long to be a row."""
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
class Table:
    """Rows of a data file.

    Parameters
    ----------
    X : ndarray, CSR matrix or polars DataFrame
        A frame where some column holds words, else floats.
    y : ndarray of shape (n_samples,) or None
        Labels: int where all of them are whole numbers, else str.
    names : list of str or None
        The columns of X, where the file names them.
    source : str
        The file.
    target : str or None
        The column that y came from, where the file names it.
    dropped : list of str
        Columns that were left out.
    first_index : int or None
        0 or 1: the number of the first feature in an svmlight file.
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None
    source: str
    target: str | None = None
    dropped: list[str] = field(default_factory=list)
    first_index: int | None = None

    def missing(self) -> dict[str, int]:
        """Return how many values each column lacks, of those that lack any."""
        return self._counted(np.isnan)

    def infinite(self) -> dict[str, int]:
        """Return how many values of each column are infinite, of those that have any."""
        return self._counted(np.isinf)

    def _counted(self, test: Callable[[Any], Any]) -> dict[str, int]:
        """Return how many values of each column pass a test, of the columns that have any."""
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
            for start in range(0, len(X), ROWS):
                counts += test(X[start : start + ROWS]).sum(axis=0)
        names = self.names or [f"column {k + 1}" for k in range(X.shape[1])]
        return {names[k]: int(n) for k, n in enumerate(counts) if n}

    def labels_to_learn(self) -> NDArray[Any]:
        """Return y, unless it is one class, or measurements or names rather than classes."""
        assert self.y is not None
        where = "the label" if self.target is None else f"column {self.target!r}"
        classes = np.unique(self.y)
        if len(classes) == 1:
            raise DataFileError(
                f"{self.source}: {where} is {classes[0]!s} in all {len(self.y)} rows: got 1 class, "
                "need at least two."
            )
        if len(classes) > MOST_CLASSES or (len(classes) > 20 and len(classes) > len(self.y) / 2):
            raise DataFileError(
                f"{self.source}: {where} holds {len(classes)} different values in {len(self.y)} "
                "rows: no column of classes. Name the column of classes."
            )
        return self.y


def as_labels(values: NDArray[Any], source: str, where: str) -> NDArray[Any]:
    """Return labels as int where all are whole numbers, else as they are."""
    if values.dtype.kind != "f":
        return values
    lacking = np.flatnonzero(np.isnan(values))
    if lacking.size:
        raise DataFileError(
            f"{source}: {where} lacks {lacking.size} values, the first in row "
            f"{lacking[0] + 1}: every row needs a label."
        )
    odd = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > LARGEST))
    if odd.size:
        raise DataFileError(
            f"{source}: {where} holds {values[odd[0]]:g}, a measurement: classes are whole numbers "
            "or words. Name the column of classes."
        )
    return values.astype(np.int64)


def words_as_labels(words: list[str], source: str, where: str) -> NDArray[Any]:
    """Return labels that came as text: whole numbers where all of them are, else the text."""
    if words and all(map(WHOLE.fullmatch, words)):
        return np.array([int(word.partition(".")[0]) for word in words], dtype=np.int64)
    if all(map(NUMBER.fullmatch, words)):
        numbers = np.array([float(word) for word in words])
        as_labels(numbers[numbers != np.floor(numbers)], source, where)  # measurements are refused
    return np.array(words)


def largest(dtype: np.dtype[Any]) -> float:
    """Return the largest size of a number that models can work with."""
    return min(HUGE, float(np.finfo(dtype).max))


def first_beyond(values: NDArray[Any], limit: float) -> int | None:
    """Return the place of the first number that is finite and larger than a limit."""
    if values.dtype.kind != "f" or not values.size:
        return None
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if max(-float(low), float(high)) <= limit:
        return None
    beyond = np.isfinite(values) & (np.abs(values) > np.float64(limit))
    return int(beyond.argmax()) if beyond.any() else None


def too_large(where: str, value: float) -> DataFileError:
    """Return the error that names a number which is finite, but too large."""
    why = (
        "squares of such numbers leave float64" if abs(value) > HUGE else "it does not fit float32"
    )
    remedy = "rescale the column" if abs(value) > HUGE else "use float64, rescale the column"
    return DataFileError(f"{where}: {value:g} is too large, {why}: {remedy}, or remove the row.")


def find_column(wanted: str, names: list[str], source: str, role: str = "target") -> int:
    """Return the number of a column given by its name, or by its place from either end."""
    if wanted in names:
        return names.index(wanted)
    try:
        place = int(wanted)
        names[place]
    except (ValueError, IndexError):
        listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        close = get_close_matches(wanted, names, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DataFileError(
            f"{source}: no {role} column {wanted!r}; it has {listed}.{hint}"
        ) from None
    return place % len(names)
