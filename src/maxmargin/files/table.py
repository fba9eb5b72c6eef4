"""What a data file comes to: rows, labels and names."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Different values of a target above which it is a measurement, not a class.
MOST_CLASSES = 1000
# Rows looked at at a time.
ROWS = 1 << 16


class DataFileError(ValueError):
    """A data file that cannot be used; the message names the file, and the line or column."""


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
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None
    source: str
    target: str | None = None
    dropped: list[str] = field(default_factory=list)

    def missing(self) -> dict[str, int]:
        """Return how many values each column lacks, of those that lack any."""
        if hasattr(self.X, "null_count"):
            counts = [int(self.X[c].null_count()) for c in self.X.columns]
            counts = [
                n + int(self.X[c].is_nan().sum()) if self.X[c].dtype.is_float() else n
                for n, c in zip(counts, self.X.columns, strict=True)
            ]
        elif hasattr(self.X, "indices"):
            bad = self.X.indices[np.isnan(self.X.data)]
            counts = np.bincount(bad, minlength=self.X.shape[1]).tolist()
        elif self.X.dtype.kind == "f":
            counts = [0] * self.X.shape[1]
            for start in range(0, len(self.X), ROWS):
                here = np.isnan(self.X[start : start + ROWS]).sum(axis=0)
                counts = (np.array(counts) + here).tolist()
        else:
            counts = []
        names = self.names or [f"column {k}" for k in range(len(counts))]
        return {names[k]: n for k, n in enumerate(counts) if n}

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
    if values.dtype.kind == "f":
        lacking = np.flatnonzero(np.isnan(values))
        if lacking.size:
            raise DataFileError(
                f"{source}: {where} lacks {lacking.size} values, the first in row "
                f"{lacking[0] + 1}: every row needs a label."
            )
        if not (values == np.floor(values)).all():
            example = values[values != np.floor(values)][0]
            raise DataFileError(
                f"{source}: {where} holds {example:g}, a measurement: classes are whole numbers or "
                "words. Name the column of classes."
            )
        values = values.astype(np.int64)
    return values


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
