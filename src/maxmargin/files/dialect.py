"""How the text of a data file is meant: header, encoding, numbers, missing values, dates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from .column_types import NumberStyle
from .table import DataFileError, cut

Header = bool | Literal["auto"]
Dates = Literal["parts", "numbers"]

# Formats on which an option has an effect.
TEXT = ("csv", "tsv")
SHEETS = ("xlsx", "ods")
TABLES = (*TEXT, *SHEETS, "parquet", "arrow", "arff")
EFFECT = {
    "separator": TEXT,
    "header": (*TEXT, *SHEETS),
    "encoding": (*TEXT, "arff"),
    "decimal": (*TEXT, *SHEETS),
    "thousands": (*TEXT, *SHEETS),
    "missing": TABLES,
    "dates": TABLES,
    "date_format": (*TEXT, *SHEETS, "arff"),
    "sheet": SHEETS,
    "keep_index": TABLES,
}
# What a model remembers of the file it was fitted to, to read others of the same kind.
REMEMBERED = ("separator", "header", "decimal", "thousands", "missing")


@dataclass(frozen=True)
class Dialect:
    """Options of `read` that tell how a file is meant; ``fallback`` is for text not in UTF-8."""

    separator: str | None = None
    header: Header = "auto"
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing: tuple[str, ...] = ()
    dates: Dates | None = None
    date_format: str | None = None
    sheet: str | None = None
    keep_index: bool = False
    fallback: str | None = None

    def __post_init__(self) -> None:
        if self.header not in (True, False, "auto"):
            raise ValueError(f"header must be True, False or 'auto', got {self.header!r}.")
        if self.dates not in (None, *get_args(Dates)):
            raise ValueError(f"dates must be 'parts' or 'numbers', got {self.dates!r}.")
        for name, mark in (("decimal", self.decimal), ("thousands", self.thousands)):
            if mark and (len(mark) != 1 or re.match(r"[\w+-]", mark)):
                raise ValueError(
                    f"{name} must be one character, not a letter, digit or sign; got {mark!r}."
                )
        if (self.decimal or ".") == self.thousands:
            raise ValueError(f"decimal and thousands must differ, got {self.thousands!r} for both.")
        if self.date_format is not None and self.dates is None:
            raise ValueError("date_format has no effect without dates.")

    @property
    def style(self) -> NumberStyle:
        """How numbers and missing values are written."""
        return NumberStyle(self.decimal or ".", self.thousands or None, self.missing)

    def check(self, kind: str, source: str) -> None:
        """Raise for options that have no effect on a format."""
        for name, kinds in EFFECT.items():
            is_given = getattr(self, name) != getattr(STANDARD, name)
            # That a table of another format has names is no option.
            is_given = is_given and not (name == "header" and self.header is True)
            if is_given and kind not in kinds:
                raise DataFileError(
                    f"{source}: {name} has no effect on the format {kind}: it is for "
                    f"{', '.join(kinds)}."
                )

    def for_kind(self, kind: str) -> Dialect:
        """Return the options that have an effect on a format."""
        kept = {n: getattr(STANDARD, n) for n, kinds in EFFECT.items() if kind not in kinds}
        return replace(self, **kept)

    def learnt(self, encoding: str | None) -> dict[str, Any]:
        """Return what to remember, as JSON; what is usual is left out."""
        found = {name: getattr(self, name) for name in REMEMBERED}
        usual = {name: getattr(STANDARD, name) for name in REMEMBERED} | {"header": True}
        found["decimal"] = None if self.decimal == "." else self.decimal
        kept = {name: value for name, value in found.items() if value != usual[name]}
        if "missing" in kept:
            kept["missing"] = list(kept["missing"])
        return kept if encoding is None else kept | {"encoding": encoding}

    def like(self, learnt: Mapping[str, Any]) -> Dialect:
        """Return this dialect, with what is remembered where an option is not given."""
        known = {f.name for f in fields(self)} & set(REMEMBERED)
        taken: dict[str, Any] = {
            name: tuple(value) if name == "missing" else value
            for name, value in learnt.items()
            if name in known and getattr(self, name) == getattr(STANDARD, name)
        }
        return replace(self, fallback=learnt.get("encoding"), **taken)


STANDARD = Dialect()


def as_missing(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the texts that mark missing values; one text is one mark."""
    marks = [given] if isinstance(given, str) else list(given)
    for mark in marks:
        if not isinstance(mark, str):
            raise ValueError(f"missing must be texts, such as 'n/a'; got {cut(mark)}.")
    return tuple(mark.strip() for mark in marks)
