"""polars expressions that tell what a column of text holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

# Texts that mark a missing value.
MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?"]


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


def as_number(column: pl.Expr) -> pl.Expr:
    """Return text as numbers, null where it is not a number."""
    pl = polars()
    return _stripped(column).cast(pl.Float64, strict=False)


def as_text(column: pl.Expr) -> pl.Expr:
    """Return text without surrounding blanks, null where it marks a missing value."""
    pl = polars()
    text = _stripped(column)
    return pl.when(text.is_in(MISSING)).then(None).otherwise(text).alias(column.meta.output_name())


def is_present(column: pl.Expr) -> pl.Expr:
    """Return whether there is a value."""
    return column.is_not_null() & ~_stripped(column).is_in(MISSING)


def as_truth(column: pl.Expr) -> pl.Expr:
    """Return 1 for true and 0 for false, null for anything else."""
    pl = polars()
    text = _stripped(column).str.to_lowercase()
    return pl.when(text == "true").then(1.0).when(text == "false").then(0.0)


def is_date(column: pl.Expr) -> pl.Expr:
    """Return whether text is a date, with or without a time."""
    text = _stripped(column)
    return text.str.contains(r"^\d{4}-\d{1,2}-\d{1,2}([T ]|$)|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$")


def has_commas(column: pl.Expr) -> pl.Expr:
    """Return whether text is a number written with commas."""
    text = _stripped(column)
    return text.str.contains(r"^[-+]?\d{1,3}(,\d{3})*(\.\d+)?$|^[-+]?\d+,\d+$") & text.str.contains(
        ","
    )
