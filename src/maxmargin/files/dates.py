"""Dates as numbers: days since 1970, or year, month, day and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .column_types import NumberStyle, as_text, is_date, is_present, polars
from .table import DataFileError, cut

if TYPE_CHECKING:
    import polars as pl

    from .tabular import TabularFile

# Formats by what comes first; the day of 03/04/2024 may be either.
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%y", "%d.%m.%Y", "%m/%d/%y", "%m/%d/%Y", "%d/%m/%y",
        "%d/%m/%Y")  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S%.f", "T%H:%M", "T%H:%M:%S%.f", "T%H:%M:%S%.fZ")
OTHER_ORDER = {"%m/%d": "%d/%m"}
PARTS = ("year", "month", "day", "weekday")
OF_DAY = ("hour", "minute")
MICROSECONDS_PER_DAY = 86_400_000_000
HOWS = ("parts", "numbers")


@dataclass(frozen=True)
class DateColumn:
    """A column of dates and the columns that are made of it.

    ``format`` is that of text, None where the column holds dates already.
    """

    column: str
    parts: tuple[str, ...]
    format: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are made of it."""
        return [f"{self.column}.{part}" for part in self.parts]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"parts": list(self.parts), "format": self.format}

    def when(self, style: NumberStyle) -> pl.Expr:
        """Return the dates, null where text is not one."""
        pl = polars()
        column = pl.col(self.column)
        if self.format is None:
            return column.cast(pl.Datetime("us"))
        return as_text(column, style).str.to_datetime(self.format, strict=False, time_unit="us")

    def expressions(self, style: NumberStyle) -> list[pl.Expr]:
        """Return the columns that are made of it."""
        pl = polars()
        when = self.when(style)
        made = {
            "days": when.dt.timestamp("us") / MICROSECONDS_PER_DAY,
            "year": when.dt.year(),
            "month": when.dt.month(),
            "day": when.dt.day(),
            "weekday": when.dt.weekday(),
            "hour": when.dt.hour(),
            "minute": when.dt.minute(),
        }
        return [
            made[part].cast(pl.Float64).alias(name)
            for part, name in zip(self.parts, self.names, strict=True)
        ]


def dates_from(record: Mapping[str, Any]) -> list[DateColumn]:
    """Return columns of dates from what was remembered of them."""
    try:
        return [DateColumn(str(c), tuple(of["parts"]), of["format"]) for c, of in record.items()]
    except (KeyError, TypeError, AttributeError):
        raise DataFileError(f"like['dates'] must be that of a table, got {cut(record)}.") from None


def find_dates(
    text: TabularFile, columns: Sequence[str], how: str, format: str | None
) -> tuple[list[DateColumn], list[str]]:
    """Return those of the columns that hold dates, and notes on what is not certain of them."""
    pl = polars()
    found, notes = [], []
    for column in columns:
        dtype = text.schema[column]
        if isinstance(dtype, (pl.Date, pl.Datetime)):
            found.append(DateColumn(column, _parts(how, isinstance(dtype, pl.Datetime))))
        elif dtype == pl.String or (format is not None and dtype.is_integer()):
            values = text.text_of(column)
            held = values.drop_nulls()
            shape = held.to_frame().select(is_date(pl.col(column)).sum()).item() if len(held) else 0
            wanted = _parsed(held, format) if format is not None else 0
            if max(int(shape), wanted) <= len(held) / 2:
                continue
            chosen = format or _format_of(held, column, text.source)
            found.append(DateColumn(column, _parts(how, "%H" in chosen), chosen))
            notes += [] if format is not None else _ambiguity(held, column, chosen)
    for date in found:
        taken = set(date.names) & set(text.schema)
        if taken:
            raise DataFileError(
                f"{text.source}: the column {cut(min(taken))} would be made of the dates of "
                f"{cut(date.column)}, but there is one: rename it."
            )
    return found, notes


def present_dates(text: TabularFile, dates: Sequence[DateColumn]) -> tuple[DateColumn, ...]:
    """Return the columns of dates that a table has, as it has them: of type date, or text."""
    pl = polars()
    found = []
    for date in (date for date in dates if date.column in text.schema):
        if isinstance(text.schema[date.column], (pl.Date, pl.Datetime)):
            date = replace(date, format=None)
        else:
            held = text.text_of(date.column).drop_nulls()
            known = 0 if date.format is None else _parsed(held, date.format)
            if len(held) and known <= len(held) / 2:
                other = _format_of(held, date.column, text.source)
                # Where the year comes first, there is no doubt about day and month.
                is_clear = date.format is None or other.startswith("%Y")
                date = replace(date, format=other) if is_clear else date
        found.append(date)
    return tuple(found)


def check_dates(text: TabularFile, dates: Sequence[DateColumn]) -> None:
    """Raise for text that is not a date in a column of dates."""
    pl = polars()
    for date in dates:
        if date.column not in text.schema:
            continue  # which is said with other columns
        wrong = is_present(pl.col(date.column), text.style) & date.when(text.style).is_null()
        for place, value in text.first_where(wrong, date.column):
            raise DataFileError(
                f"{text.source}: {place}: {cut(value)} in column {cut(date.column)} is not a date "
                f"of the form {date.format}: correct it, or pass another --date-format."
            )


def _parts(how: str, has_times: bool) -> tuple[str, ...]:
    if how == "numbers":
        return ("days",)
    return (*PARTS, *OF_DAY) if has_times else PARTS


def _parsed(values: pl.Series, format: str) -> int:
    """Return how many texts are dates of a format."""
    parsed = values.str.to_datetime(format, strict=False, time_unit="us")
    return len(values) - parsed.null_count()


def _format_of(values: pl.Series, column: str, source: str) -> str:
    """Return the format of which most texts are dates."""
    best, most = "", 0
    for day in DAYS:
        for time in TIMES:
            n = _parsed(values, day + time)
            if n > most:
                best, most = day + time, n
        if most == len(values):
            return best
    if not best:
        raise DataFileError(
            f"{source}: the dates of column {cut(column)}, such as {cut(values[0])}, are of no "
            "known form: pass it as --date-format, such as %d.%m.%Y."
        )
    return best


def _ambiguity(values: pl.Series, column: str, format: str) -> list[str]:
    for order, other in OTHER_ORDER.items():
        if format.startswith(order) and _parsed(values, format.replace(order, other)) == len(
            values
        ):
            return [
                f"the dates of column {cut(column)}, such as {values[0]}, are read as "
                f"month/day/year: pass --date-format {format.replace(order, other)} if the day "
                "comes first."
            ]
    return []
