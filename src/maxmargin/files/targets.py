"""Targets of data files: labels of classes, or the numbers of a regression."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..arrays import Floats, Labels
from .column_types import as_number, polars
from .table import LARGEST_VALUE, USE_REGRESSION, DataFileError, cut

if TYPE_CHECKING:
    import polars as pl

    from .tabular import TabularFile

# What a target is: labels, numbers, or not used, so that its column is left out.
Targets = Literal["classes", "numbers", "none"]
# Whether the rows of a file need a target.
Labelled = bool | Literal["if present"]

# Integers up to this are exact in float64.
LARGEST_EXACT = 2.0**53
# Labels that are whole numbers: each has one spelling, up to + and .0. Other spellings that a
# program would read as numbers (01, 1e1, 1_1) are text.
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})(\.0*)?")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def as_labels(values: Labels, source: str, where: str) -> Labels:
    """Return labels as int where they are whole numbers; text is returned unchanged."""
    if values.dtype.kind != "f":
        return values
    lacking = np.flatnonzero(np.isnan(values))
    if lacking.size:
        raise DataFileError(
            f"{source}: {where} has {lacking.size} missing values, the first in row "
            f"{lacking[0] + 1}: every row needs a label."
        )
    odd = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > LARGEST_EXACT))
    if odd.size:
        raise DataFileError(
            f"{source}: {where} must hold whole numbers or text, got {values[odd[0]]:g}: "
            f"{USE_REGRESSION}."
        )
    return values.astype(np.int64)


def words_as_labels(words: list[str], source: str, where: str) -> Labels:
    """Return labels given as text as int where all are whole numbers, else as text."""
    if words and all(map(WHOLE.fullmatch, words)):
        return np.array([int(word.partition(".")[0]) for word in words], dtype=np.int64)
    if all(map(NUMBER.fullmatch, words)):
        numbers = np.array([float(word) for word in words])
        as_labels(numbers[numbers != np.floor(numbers)], source, where)  # raises for fractions
    return np.array(words)


def as_numbers(values: Labels, source: str, where: str) -> Floats:
    """Return the targets of a regression as float64; raise for what is not a finite number."""
    if values.dtype.kind not in "iuf":
        raise wrong_number(f"{source}: {where}, row 1", values[0].item())
    numbers = values.astype(np.float64)
    odd = np.flatnonzero(~are_targets(numbers))
    if odd.size:
        raise wrong_number(f"{source}: {where}, row {odd[0] + 1}", numbers[odd[0]].item())
    return numbers


def as_targets(
    values: Labels, source: str, where: str, labelled: Labelled, targets: Targets
) -> Labels | None:
    """Return an array of targets as they are asked for, None where they are not."""
    if not labelled or targets == "none":
        return None
    if targets == "numbers":
        return as_numbers(values, source, where)
    if labelled == "if present":  # any labels will do
        return np.array([_as_text(value) for value in values.tolist()])
    return as_labels(values, source, where)


def _as_text(value: object) -> str:
    """Return a label as text: 1 for 1.0, and "" for NaN."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.17g}"
    return str(value)


def are_targets(numbers: Floats) -> Labels:
    """Say which numbers a regression accepts: finite ones whose squares do not overflow."""
    return np.abs(numbers) <= LARGEST_VALUE  # False for NaN


def wrong_number(where: str, value: object) -> DataFileError:
    """Return the error for a target that a regression does not accept."""
    if value is None or value != value:
        return DataFileError(f"{where}: the target is missing: every row needs a number.")
    remedy = ": rescale the targets" if isinstance(value, float) and np.isfinite(value) else ""
    if isinstance(value, str):
        remedy = ": correct it, or use a classifier for labels"
        if re.fullmatch(r"[-+]?[0-9]+(,[0-9]+)+(\.[0-9]+)?", value):
            remedy = ": pass --decimal , or --thousands , for numbers with commas"
    return DataFileError(f"{where}: the target must be a finite number, got {cut(value)}{remedy}.")


# Columns of tables --------------------------------------------------------------------------------


@dataclass
class TargetColumn:
    """The target of a table, which is read piece by piece.

    Parameters
    ----------
    text : TabularFile
    name : str or None
        The column; None where there is no target to read.
    targets : {"classes", "numbers", "none"}
    """

    text: TabularFile
    name: str | None
    targets: Targets
    codes: list[Labels] = field(default_factory=list)
    words: list[list[str | None]] = field(default_factory=list)
    numbers: list[Floats] = field(default_factory=list)

    def add(self, piece: pl.DataFrame) -> None:
        """Take the target of more rows."""
        if self.name is None:
            return
        if self.targets == "numbers":
            self.numbers.append(numbers_of(piece[self.name], self.text))
            return
        # Distinct labels and their numbers take less memory than the text of every row.
        pl, column = polars(), piece[self.name]
        known = column.unique(maintain_order=True)
        places = pl.Series(range(len(known)), dtype=pl.UInt32)
        codes = column.replace_strict(known, places, return_dtype=pl.UInt32)
        self.words.append(known.to_list())
        self.codes.append(codes.to_numpy())

    def values(self) -> Labels | None:
        """Return numbers, or labels: integers where all are whole numbers, else text."""
        if self.name is None:
            return None
        if self.targets == "numbers":
            return np.concatenate(self.numbers)
        parts = self._labelled_parts()
        words = sorted({word for known in self.words for word in known if word is not None})
        place: dict[str | None, int] = {word: k for k, word in enumerate(words)}
        codes = [np.array([place[word] for word in known])[codes] for known, codes in parts]
        values = words_as_labels(words, self.text.source, f"column {self.name!r}")
        return values[np.concatenate(codes)]

    def part(self) -> Labels | None:
        """Return the numbers, or the labels as text, of a part of a table, which may be empty."""
        if self.name is None:
            return None
        if self.targets == "numbers":
            return np.concatenate([np.zeros(0), *self.numbers])
        texts = [np.array(known, dtype=str)[codes] for known, codes in self._labelled_parts()]
        return np.concatenate([np.zeros(0, dtype="U1"), *texts])

    def _labelled_parts(self) -> list[tuple[list[str | None], Labels]]:
        """Return distinct labels and codes of all pieces; raise for labels that are missing."""
        parts = list(zip(self.words, self.codes, strict=True))
        lacking = [
            int((codes == known.index(None)).sum()) for known, codes in parts if None in known
        ]
        _require_labels(sum(lacking), self.text, str(self.name))
        return parts


def numbers_of(column: pl.Series, text: TabularFile) -> Floats:
    """Return a column of text as the targets of a regression."""
    pl = polars()
    numbers: Floats = (
        column.to_frame().select(as_number(pl.col(column.name), text.style)).to_series().to_numpy()
    )
    if not are_targets(numbers).all():
        raise text.not_a_target(column.name)
    return numbers


def labels_of(column: pl.Series, text: TabularFile, *, required: bool = True) -> Labels:
    """Return labels as text, "" where one is missing that is not required."""
    if required:
        _require_labels(column.null_count(), text, column.name)
    return np.array(column.fill_null("").to_list(), dtype=str)


def _require_labels(lacking: int, text: TabularFile, label: str) -> None:
    if lacking:
        raise DataFileError(
            f"{text.source}: column {label!r} has {lacking} missing values: every row needs a "
            "label."
        )
