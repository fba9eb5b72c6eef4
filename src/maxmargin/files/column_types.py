"""polars expressions that tell what a column of text holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

# Texts that mark a missing value.
MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?"]


@dataclass(frozen=True)
class NumberStyle:
    """How numbers and missing values are written.

    ``missing`` are texts that mark missing values besides the usual ones.
    """

    decimal: str = "."
    thousands: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in programs."""
        return self.decimal == "." and self.thousands is None

    @property
    def marks(self) -> list[str]:
        """Texts that mark a missing value."""
        return [*MISSING, *self.missing]

    @property
    def grouped(self) -> str:
        """A pattern of numbers with separators of thousands."""
        mark = f"[{self.thousands_marks}]"
        return rf"^[-+]?\d{{1,3}}({mark}\d{{2,3}})+({re.escape(self.decimal)}\d*)?$"

    @property
    def thousands_marks(self) -> str:
        """The characters that separate thousands, in a pattern; any blank for a blank."""
        return " \u00a0\u202f" if self.thousands == " " else re.escape(self.thousands or "")

    def number(self, text: str) -> float | None:
        """Return the number that a text is; None where it is not one."""
        text = text.strip()
        if self.thousands is not None and re.match(self.grouped, text):
            text = re.sub(f"[{self.thousands_marks}]", "", text)
        if self.decimal != ".":
            text = "" if "." in text else text.replace(self.decimal, ".")
        return float(text) if NUMBER.fullmatch(text) else None


PLAIN = NumberStyle()
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def polars() -> Any:
    """Import polars, or raise an ImportError that says how to install it."""
    try:
        import polars
    except ImportError:
        raise ImportError(
            "CSV, TSV and Parquet files need polars, which is not installed: "
            'pip install "polars>=1.34"'
        ) from None
    return polars


def _stripped(column: pl.Expr) -> pl.Expr:
    return column.cast(polars().String).str.strip_chars()


def as_number(column: pl.Expr, style: NumberStyle = PLAIN) -> pl.Expr:
    """Return text as numbers, null where it is not a number."""
    pl = polars()
    text = _stripped(column)
    if style.thousands is not None:
        bare = text.str.replace_all(f"[{style.thousands_marks}]", "")
        text = pl.when(text.str.contains(style.grouped)).then(bare).otherwise(text)
    if style.decimal != ".":
        pointed = text.str.replace(style.decimal, ".", literal=True)
        text = pl.when(text.str.contains(".", literal=True)).then(None).otherwise(pointed)
    return text.cast(pl.Float64, strict=False).alias(column.meta.output_name())


def as_text(column: pl.Expr, style: NumberStyle = PLAIN) -> pl.Expr:
    """Return text without surrounding blanks, null where it marks a missing value."""
    pl = polars()
    text = _stripped(column)
    known = pl.when(text.is_in(style.marks)).then(None).otherwise(text)
    return known.alias(column.meta.output_name())


def is_present(column: pl.Expr, style: NumberStyle = PLAIN) -> pl.Expr:
    """Return whether there is a value."""
    return column.is_not_null() & ~_stripped(column).is_in(style.marks)


def without_marks(column: pl.Expr, style: NumberStyle) -> pl.Expr:
    """Return numbers as float64, null where they mark a missing value."""
    pl = polars()
    numbers = [n for n in map(style.number, style.missing) if n is not None]
    values = column.cast(pl.Float64)
    if not numbers:
        return values
    known = pl.when(values.is_in(numbers)).then(None).otherwise(values)
    return known.alias(column.meta.output_name())


def as_truth(column: pl.Expr) -> pl.Expr:
    """Return 1 for true and 0 for false, null for anything else."""
    pl = polars()
    text = _stripped(column).str.to_lowercase()
    return pl.when(text == "true").then(1.0).when(text == "false").then(0.0)


def is_date(column: pl.Expr) -> pl.Expr:
    """Return whether text is a date, with or without a time."""
    text = _stripped(column)
    return text.str.contains(
        r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ]|$)|^\d{1,2}[./]\d{1,2}[./]\d{2,4}([T ]|$)"
    )


def has_commas(column: pl.Expr) -> pl.Expr:
    """Return whether text is a number written with commas."""
    text = _stripped(column)
    return text.str.contains(r"^[-+]?\d{1,3}(,\d{3})*(\.\d+)?$|^[-+]?\d+,\d+$") & text.str.contains(
        ","
    )


def with_numbers(values: pl.Series) -> pl.Series:
    """Return text as numbers where all of it is numbers; "007" is text, other columns are as given.

    >>> import polars as pl
    >>> [with_numbers(pl.Series(v)).dtype for v in (["1", None], ["007"], ["1", "2.5"])]
    [Int64, String, Float64]
    """
    pl = polars()
    if values.dtype != pl.String or values.null_count() == len(values):
        return values
    whole = values.cast(pl.Int64, strict=False)
    if whole.cast(pl.String).eq_missing(values).all():
        return whole
    has_zeros = values.str.contains(r"^[-+]?0\d").any()
    numbers = values.cast(pl.Float64, strict=False)
    return values if has_zeros or numbers.null_count() > values.null_count() else numbers
