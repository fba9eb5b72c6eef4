"""CSV, TSV and Parquet files, read by polars in pieces; errors name the line and the column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .column_types import (
    PLAIN,
    NumberStyle,
    as_number,
    as_text,
    as_truth,
    has_commas,
    is_date,
    is_present,
    polars,
    without_marks,
)
from .csv_lines import CsvLines
from .dates import DateColumn
from .table import DOUBLE, LARGEST_VALUE, DataFileError, cut, first_beyond, largest, too_large
from .targets import wrong_number

if TYPE_CHECKING:
    import polars as pl

# Lines from which the types of the columns are inferred; the other lines must agree.
INFERENCE_LINES = 10_000
# What a column holds: "nothing" where all values are missing.
Contents = Literal["numbers", "words", "nothing"]
# What names of columns begin with that are read as they are, besides features of these names.
KEPT = "\0kept "
# Numbers that are read at a time.
PIECE_VALUES = 1 << 21


@dataclass
class TabularFile:
    """A table in a file; only the names and types of its columns are in memory.

    ``part`` are the first row and the number of rows of a part of a Parquet file. A part of a table
    may have no rows. ``style`` is how numbers are written; columns are made of those of ``dates``.
    ``kept`` are columns that are also read as they are, under names that begin with KEPT.
    """

    file: Path
    kind: str
    source: str
    separator: str | None
    header: bool
    dtype: np.dtype[Any] = DOUBLE
    part: tuple[int, int] | None = None
    may_be_empty: bool = False
    style: NumberStyle = PLAIN
    dates: tuple[DateColumn, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def is_typed(self) -> bool:
        """Whether the format has types, and is not text."""
        return self.kind in ("parquet", "arrow")

    @cached_property
    def lines(self) -> CsvLines:
        """The lines of a CSV file."""
        mark = ("\t" if self.kind == "tsv" else ",") if self.separator is None else self.separator
        return CsvLines(self.file, self.source, mark, self.header)

    def scan(self, **options: Any) -> pl.LazyFrame:
        """Return a lazy frame of the table, with the columns that are made of dates."""
        pl = polars()
        made = [column for date in self.dates for column in date.expressions(self.style)]
        if self.is_typed:
            scan = pl.scan_parquet if self.kind == "parquet" else pl.scan_ipc
            rows = scan(self.file, glob=False)
            rows = rows if self.part is None else rows.slice(*self.part)
            return rows.with_columns(made) if made else rows  # type: ignore[no-any-return]
        overrides = options.pop("schema_overrides", None)
        if overrides is not None:
            for date in self.dates:
                overrides = {c: t for c, t in overrides.items() if c not in date.names}
                overrides[date.column] = pl.String
            own = {} if self.header else {name: own for own, name in self._numbered.items()}
            options["schema_overrides"] = {own.get(c, c): t for c, t in overrides.items()}
        rows = self._scan_csv(**options)
        if not self.header:
            rows = rows.rename(self._numbered)
        return rows.with_columns(made) if made else rows

    def _scan_csv(self, **options: Any) -> pl.LazyFrame:
        return polars().scan_csv(  # type: ignore[no-any-return]
            self.file,
            separator=self.lines.separator,
            has_header=self.header,
            null_values=self.style.marks,
            # Numbers that are not written as in programs are text at first.
            infer_schema_length=INFERENCE_LINES if self.style.is_plain else 0,
            eol_char=self.lines.line_end,
            glob=False,
            with_column_names=self._header_names if self.header else None,
            **options,
        )

    @cached_property
    def _numbered(self) -> dict[str, str]:
        """Names of columns without a header, by those of polars, whose versions differ in them."""
        own = self._scan_csv().collect_schema().names()
        return {name: f"column_{k}" for k, name in enumerate(own)}

    def _header_names(self, names: list[str]) -> list[str]:
        """Return the names of the first line without quotes and surrounding blanks."""
        first = self.lines.first
        return first if len(first) == len(names) else names

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns and their inferred types."""
        if not self.is_typed:
            self.lines.check_header()
        try:
            schema = dict(self.scan().collect_schema())
        except Exception as error:
            raise self.fault(error) from None
        self._check_separator(list(schema))
        return schema

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.schema)

    def _check_separator(self, names: list[str]) -> None:
        other = next((c for c in (";", "\t", "|", ",") if c in names[0]), None)
        if not self.is_typed and len(names) == 1 and other:
            raise DataFileError(
                f"{self.source}: line 1 is one column, {names[0][:60]!r}: pass "
                f"--separator {other!r}."
            )

    def words(self, columns: list[str]) -> list[str]:
        """Return the columns of categories; raise for a column of numbers with some text in it."""
        return [c for c, kind in self.contents(columns).items() if kind != "numbers"]

    def contents(self, columns: list[str]) -> dict[str, Contents]:
        """Return what each column holds; raise for a column of numbers with some text in it."""
        pl = polars()
        kinds = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
        texts = [c for c in columns if isinstance(self.schema[c], kinds)]
        odd = [c for c in columns if c not in texts and not self.schema[c].is_numeric()]
        if odd:
            is_time = isinstance(self.schema[odd[0]], (pl.Date, pl.Datetime))
            remedy = "pass --dates parts or --dates numbers" if is_time else "convert it"
            raise DataFileError(
                f"{self.source}: column {cut(odd[0])} holds values of type {self.schema[odd[0]]}: "
                f"drop it, or {remedy}{'' if is_time else ' to numbers or text'}."
            )
        held: dict[str, Contents] = dict.fromkeys(columns, "numbers")
        if self.is_typed:
            return held | {c: "words" for c in texts if self.schema[c] != pl.Boolean}
        if not texts:
            return held
        frame = self._collect(
            self.scan(schema_overrides=dict.fromkeys(texts, pl.String)).select(
                *[
                    as_number(pl.col(c), self.style).is_not_null().sum().alias(f"n{k}")
                    for k, c in enumerate(texts)
                ],
                *[
                    is_present(pl.col(c), self.style).sum().alias(f"m{k}")
                    for k, c in enumerate(texts)
                ],
                *[has_commas(pl.col(c)).sum().alias(f"c{k}") for k, c in enumerate(texts)],
                *[
                    as_truth(pl.col(c)).is_not_null().sum().alias(f"t{k}")
                    for k, c in enumerate(texts)
                ],
                *[is_date(pl.col(c)).sum().alias(f"d{k}") for k, c in enumerate(texts)],
            )
        )
        for k, column in enumerate(texts):
            numbers, values, commas, truths, dates = (int(frame[f"{key}{k}"][0]) for key in "nmctd")
            if values and truths == values:  # true and false are 1 and 0
                continue
            if dates > values / 2:
                raise DataFileError(
                    f"{self.source}: column {cut(column)} holds dates: drop it, or pass --dates "
                    "parts or --dates numbers."
                )
            wrong = self.not_a_number(column) if values > numbers > values / 2 else None
            if wrong is not None:
                raise wrong
            if commas > values / 2 and self.style.is_plain:
                raise DataFileError(
                    f"{self.source}: column {cut(column)} holds numbers with commas: pass "
                    "--decimal , for decimal commas, or --thousands , for separators of thousands."
                )
            if numbers < values or not values:
                held[column] = "words" if values else "nothing"
        return held

    def check_numbers(self, columns: list[str]) -> None:
        """Raise for text where the model takes numbers; a column may lack all values."""
        for column in self.words(columns):
            if self.is_typed:
                raise DataFileError(
                    f"{self.source}: column {column!r} must hold numbers, got text."
                )
            wrong = self.not_a_number(column)
            if wrong is not None:
                raise wrong

    def rows(self, columns: list[str], words: Sequence[str], label: str | None) -> pl.LazyFrame:
        """Return the wanted columns, numbers as float64; a blank line is a row of nulls."""
        pl = polars()
        wanted = [*columns, *([label] if label is not None else [])]
        texts = [c for c in wanted if c in words or c == label]
        kept = [pl.col(c).alias(KEPT + c) for c in self.kept]
        if self.is_typed:
            numbers = [c for c in columns if c not in words]
            return (
                self.scan()
                .select(*wanted, *kept)
                .with_columns(
                    *[without_marks(pl.col(c), self.style) for c in numbers],
                    *[as_text(pl.col(c), self.style) for c in texts],
                )
            )
        plain = (pl.String, pl.Boolean)
        spaced = [
            c for c in columns if c not in words and (self.schema[c] in plain or c in self.kept)
        ]
        # Other columns may hold anything.
        types = {c: pl.Float64 if c in columns else pl.String for c in self.schema}
        types |= dict.fromkeys([*texts, *spaced], pl.String)
        return (
            self.scan(schema_overrides=types)
            .select(*wanted, *kept)
            .with_columns(
                *[as_text(pl.col(c), self.style) for c in texts],
                *[
                    pl.coalesce(as_truth(pl.col(c)), as_number(pl.col(c), self.style)).alias(c)
                    for c in spaced
                ],
            )
        )

    def pieces(
        self, columns: list[str], words: Sequence[str], label: str | None
    ) -> Iterator[pl.DataFrame]:
        """Yield frames of some rows at a time, without blank lines."""
        size = max(1000, PIECE_VALUES // len(self.schema))
        numbers = [c for c in columns if c not in words]
        read = held = 0
        try:
            for frame in self.rows(columns, words, label).collect_batches(
                chunk_size=size, maintain_order=True
            ):
                self._check_sizes(frame.select(numbers), read)
                rows = self._held(frame, read)
                read += len(frame)
                held += len(rows)
                if len(rows):
                    yield rows
        except DataFileError:
            raise
        except Exception as error:
            raise self.fault(error, numbers) from None
        if not held and not self.may_be_empty:
            raise DataFileError(f"{self.source}: the file has a header but no rows.")

    def _held(self, frame: pl.DataFrame, start: int) -> pl.DataFrame:
        """Return a frame that begins at row ``start`` without the rows of blank lines.

        A blank line and a line of missing values are both rows of nulls, and so are the last fields
        of a short line, for which this raises. Lines are read only where there is a null.
        """
        pl = polars()
        if self.is_typed or not any(frame[c].null_count() for c in frame.columns):
            return frame
        blank_rows = self.lines.blank_rows
        if isinstance(blank_rows, DataFileError):
            raise blank_rows
        nothing = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
        blank = nothing & np.isin(np.arange(start, start + len(frame)), blank_rows)
        return frame.filter(~blank) if blank.any() else frame

    def count(self) -> int:
        """Return an upper bound of the number of rows: blank lines may count."""
        pl = polars()
        return int(self._collect(self.scan().select(pl.len())).item())

    def _collect(self, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            return rows.collect(engine="streaming")
        except Exception as error:
            raise self.fault(error) from None

    def column_of(self, column: str) -> pl.Series:
        """Return the values of a column, as they are inferred."""
        return self._collect(self.scan().select(column)).to_series()

    def text_of(self, column: str) -> pl.Series:
        """Return a column of text, null where a value is missing."""
        pl = polars()
        options = {} if self.is_typed else {"schema_overrides": {column: pl.String}}
        rows = self.scan(**options).select(as_text(pl.col(column), self.style))
        return self._collect(rows).to_series()

    def first_where(self, condition: pl.Expr, column: str) -> list[tuple[str, Any]]:
        """Return the place and the text of the first row that meets a condition, if any."""
        found = self._rows_where(condition, column, 1)
        return [(self._place(row), value) for row, value in found]

    # Errors ----------------------------------------------------------------------------------

    def fault(self, error: Exception, numbers: Sequence[str] = ()) -> Exception:
        """Return the most precise error that describes what is wrong with the file."""
        pl = polars()
        if not isinstance(error, (pl.exceptions.PolarsError, OSError, ValueError, TypeError)):
            return error
        if isinstance(error, pl.exceptions.NoDataError):
            return DataFileError(f"{self.source}: the file is empty.")
        if self.is_typed:
            kind = "Parquet" if self.kind == "parquet" else "Arrow"
            return DataFileError(f"{self.source}: the {kind} file cannot be read: {_first(error)}")
        not_text = self.lines.not_utf8()
        if not_text is not None:
            return not_text
        if isinstance(self.lines.blank_rows, DataFileError):
            return self.lines.blank_rows
        for column in numbers:
            try:
                wrong = self.not_a_number(column)
            except pl.exceptions.PolarsError:
                continue
            if wrong is not None:
                return wrong
        return DataFileError(f"{self.source}: the file cannot be read: {_first(error)}")

    def not_a_number(self, column: str) -> DataFileError | None:
        """Return the error that names the first text in a column of numbers; None without text."""
        pl = polars()
        bad = is_present(pl.col(column), self.style)
        bad &= as_number(pl.col(column), self.style).is_null()
        for row, value in self._rows_where(bad, column, 1):
            return DataFileError(
                f"{self.source}: {self._place(row)}: {cut(value)} is not a number, as others in "
                f"column {cut(column)} are: correct it, or name it by --missing."
            )
        return None

    def not_a_target(self, column: str) -> DataFileError:
        """Return the error that names the first row whose target is not a finite number."""
        pl = polars()
        number = as_number(pl.col(column), self.style)
        # NaN is larger than any number in polars.
        bad = ~(number.abs() <= LARGEST_VALUE).fill_null(False)
        blank = () if self.is_typed else self.lines.blank_rows
        assert not isinstance(blank, DataFileError)
        for row, text in self._rows_where(bad, column, len(blank) + 1):
            if row not in blank:
                shown = as_number(pl.lit(text), self.style)
                value = None if text is None else pl.select(shown).item()
                where = f"{self.source}: {self._place(row)}, column {column!r}"
                return wrong_number(where, text if value is None else value)
        raise AssertionError("every target is a finite number")

    def _rows_where(self, condition: pl.Expr, column: str, most: int) -> list[tuple[int, Any]]:
        """Return the first rows that meet a condition, with the text of a column."""
        pl = polars()
        made = {name for date in self.dates for name in date.names}
        texts = {c: pl.String for c in self.schema if c not in made}
        options = {} if self.is_typed else {"schema_overrides": texts}
        rows = (
            self.scan(**options)
            .with_row_index("\0row")
            .filter(condition)
            .select("\0row", as_text(pl.col(column), self.style))
        )
        return [(int(row), text) for row, text in rows.head(most).collect().iter_rows()]

    def _place(self, row: int) -> str:
        """Return where a row is in the file, in words."""
        if self.is_typed:
            return f"row {row + 1 + (self.part or (0, 0))[0]}"
        return f"line {self.lines.line_of(row)}"

    def _check_sizes(self, numbers: pl.DataFrame, start: int) -> None:
        """Raise for finite numbers that are too large, in a frame that begins at row ``start``."""
        pl = polars()
        limit = largest(self.dtype)
        sizes = numbers.select(pl.all().abs().max())
        for column in (c for c in sizes.columns if (sizes[c] > limit).any()):
            values = numbers[column].to_numpy()
            place = first_beyond(values, limit)
            if place is not None:  # otherwise all of them are infinite
                where = f"{self.source}: {self._place(start + place)}, column {column!r}"
                raise too_large(where, float(values[place]))


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
