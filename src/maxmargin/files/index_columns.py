"""Columns that number or name the rows: they are not features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .column_types import polars
from .table import listed

if TYPE_CHECKING:
    from .tabular import TabularFile

# Names that pandas gives to an index that has none, in CSV and in Parquet.
OF_PANDAS = re.compile(r"Unnamed: 0(\.\d+)*|__index_level_\d+__")
# Names of columns that identify rows.
LIKE_AN_INDEX = re.compile(
    r"(?i:(.*[_ .-])?(id|index|idx|uuid|guid)|row|rownum|row_?no)|.*[a-z]I[dD]"
)


def index_columns(text: TabularFile, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that are an index, and those that are likely one.

    An index is a column that pandas has named as such, or the first one without a name that counts
    the rows from 0 or 1. Likely ones are called id or the like, or have no name, and hold a
    different whole number or text in every row.
    """
    certain = [c for c in columns if OF_PANDAS.fullmatch(c)]
    likely = []
    for column in columns:
        nameless = column == ""
        if column in certain or not (nameless or LIKE_AN_INDEX.fullmatch(column)):
            continue
        kind = _kind(text, column)
        if kind == "counts" and nameless:
            certain.append(column)
        elif kind is not None:
            likely.append(column)
    return certain, likely


def _kind(text: TabularFile, column: str) -> str | None:
    """Return "counts" for 0, 1, 2, … or 1, 2, 3, …, "differ" for other distinct integers or text;
    None for columns that do not identify rows.
    """
    pl = polars()
    dtype = text.schema[column]
    if not (dtype.is_integer() or dtype in (pl.String, pl.Categorical)):
        return None
    values = text.column_of(column).drop_nulls()
    n = len(values)
    if n < 3 or values.n_unique() < n:
        return None
    if dtype.is_integer():
        first = int(values[0])
        counting = pl.Series(range(first, first + n), dtype=values.dtype)
        if first in (0, 1) and bool((values == counting).all()):
            return "counts"
    return "differ"


def dropped_note(columns: Sequence[str]) -> str:
    """Return the note about columns that were left out."""
    called = [column or "(no name)" for column in columns]
    if len(called) == 1:
        return f"column {listed(called)} is an index, and left out: pass --keep-index to keep it."
    return f"columns {listed(called)} are indexes, and left out: pass --keep-index to keep them."
