"""CSV, TSV and Parquet, read by polars in pieces; what is wrong is named by line and column."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .table import (
    DOUBLE,
    DataFileError,
    Table,
    bounded_lines,
    find_column,
    first_beyond,
    largest,
    too_large,
    words_as_labels,
)

if TYPE_CHECKING:
    import polars as pl

# What tables write for a value that is not there.
MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?"]
# Lines from which the types of columns are guessed; the rest of the file is held to them.
GUESSED = 10_000
# Numbers in one piece.
PIECE = 1 << 21


def polars() -> Any:
    """Import polars, or say how to install it."""
    try:
        import polars
    except ImportError:
        raise ImportError(
            "CSV, TSV and Parquet files need polars, which is not installed: "
            'pip install "polars>=1.34"'
        ) from None
    return polars


def read_tabular(
    file: Path,
    kind: str,
    source: str,
    target: str | None,
    separator: str | None,
    header: bool,
    drop: Sequence[str],
    dtype: np.dtype[Any],
    labelled: bool,
    as_words: Sequence[str] = (),
) -> Table:
    """Read a table: floats in one array, or a frame where some column holds words."""
    text = _Text(file, kind, source, separator, header, dtype)
    names = text.names
    label = _target(target, names, source, labelled)
    out = {find_column(name, names, source, "dropped") for name in drop}
    features = [n for k, n in enumerate(names) if n != label and k not in out]
    dropped = [names[k] for k in sorted(out)]
    if label in dropped:
        raise DataFileError(f"{source}: column {label!r} is the target, it cannot be dropped.")
    if not features:
        used = [f"{label}, the target"] if label is not None else []
        used += [f"{', '.join(dropped)}, dropped"] if dropped else []
        raise DataFileError(f"{source}: has no column besides {', and '.join(used)}.")
    named = {names[find_column(name, names, source, "word")] for name in as_words}
    words = [*text.words([f for f in features if f not in named]), *(named & set(features))]
    words.sort(key=features.index)
    if words:
        X, y = _as_frame(text, features, words, label)
    else:
        X, y = _as_array(text, features, label)
    labels = None if label is None else _labels(y, text, label)
    return Table(X, labels, features, source, label, dropped)


def tabular_batches(
    file: Path,
    kind: str,
    source: str,
    names: list[str] | None,
    words: Sequence[str] | None,
    target: str | None,
    separator: str | None,
    header: bool,
    labelled: bool,
) -> Iterator[Table]:
    """Yield rows of the wanted columns as frames, labels as they are written."""
    text = _Text(file, kind, source, separator, header)
    label = _target(target, text.names, source, labelled)
    wanted = [n for n in text.names if n != label] if names is None else names
    lacking = [name for name in wanted if name not in text.names]
    if lacking:
        raise DataFileError(
            f"{source}: lacks {', '.join(map(repr, lacking))} of the columns that the model was "
            f"fitted on; it has {', '.join(text.names)}."
        )
    if words is None:
        words = text.words(wanted)
    else:
        text.check_numbers([name for name in wanted if name not in words])
    for frame in text.pieces(wanted, words, label):
        y = None if label is None else _written(frame[label], text, label)
        yield Table(frame.select(wanted), y, wanted, source, label)


def _target(target: str | None, names: list[str], source: str, labelled: bool) -> str | None:
    if target is not None:
        return names[find_column(target, names, source)]
    if not labelled:
        return None
    raise DataFileError(
        f"{source}: name the column of labels as target; it has {', '.join(names[:20])}."
    )


@dataclass
class _Text:
    """A table in a file, of which nothing is in memory but the names of its columns."""

    file: Path
    kind: str
    source: str
    separator: str | None
    header: bool
    dtype: np.dtype[Any] = DOUBLE
    # The rows that are blank lines, once they are known.
    _blank: NDArray[np.int64] | None = field(default=None, init=False)

    def scan(self, **options: Any) -> pl.LazyFrame:
        """Return the table, to be read later."""
        pl = polars()
        if self.kind == "parquet":
            return pl.scan_parquet(self.file, glob=False)  # type: ignore[no-any-return]
        return pl.scan_csv(  # type: ignore[no-any-return]
            self.file,
            separator=self._separator,
            has_header=self.header,
            null_values=MISSING,
            infer_schema_length=GUESSED,
            eol_char=self.line_end,
            glob=False,
            with_column_names=(lambda names: self.header_names(names)) if self.header else None,
            **options,
        )

    def header_names(self, names: list[str]) -> list[str]:
        """Return the names of the first line without quotes and blanks around them."""
        return self.first if len(self.first) == len(names) else names

    @property
    def _separator(self) -> str:
        return ("\t" if self.kind == "tsv" else ",") if self.separator is None else self.separator

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The columns, and what they seem to hold."""
        self._check_header()
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

    def _check_header(self) -> None:
        """Refuse what is no text, and names that are given twice."""
        if self.kind == "parquet":
            return
        mark = self._separator
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
            raise DataFileError(
                f"{self.source}: separator={mark!r}: pass one ASCII character, not a quote."
            )
        if b"\0" in self._start or self._start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataFileError(f"{self.source}: is no text in UTF-8.")
        first = self.first if self.header else []
        if any("\ufffd" in name for name in first):
            raise DataFileError(f"{self.source}: line 1 is no UTF-8 text.")
        twice = sorted({name for name in first if first.count(name) > 1})
        if twice:
            raise DataFileError(f"{self.source}: line 1 names the column {twice[0]!r} twice.")

    def _check_separator(self, names: list[str]) -> None:
        other = next((c for c in (";", "\t", "|", ",") if c in names[0]), None)
        if self.kind != "parquet" and len(names) == 1 and other:
            raise DataFileError(
                f"{self.source}: line 1 is one column, {names[0][:60]!r}: pass {other!r} as "
                "separator."
            )

    def words(self, columns: list[str]) -> list[str]:
        """Return the columns of words; one of numbers with some text in it is refused."""
        pl = polars()
        kinds = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
        texts = [c for c in columns if isinstance(self.schema[c], kinds)]
        odd = [c for c in columns if c not in texts and not self.schema[c].is_numeric()]
        if odd:
            raise DataFileError(
                f"{self.source}: column {odd[0]!r} holds values of type {self.schema[odd[0]]}: "
                "drop it, or turn it into numbers or words."
            )
        if self.kind == "parquet":
            return [c for c in texts if self.schema[c] != pl.Boolean]
        if not texts:
            return texts
        frame = self._collect(
            self.scan(schema_overrides=dict.fromkeys(texts, pl.String)).select(
                *[
                    _number(pl.col(c)).is_not_null().sum().alias(f"n{k}")
                    for k, c in enumerate(texts)
                ],
                *[_present(pl.col(c)).sum().alias(f"m{k}") for k, c in enumerate(texts)],
                *[_commas(pl.col(c)).sum().alias(f"c{k}") for k, c in enumerate(texts)],
                *[
                    _truth(pl.col(c)).is_not_null().sum().alias(f"t{k}")
                    for k, c in enumerate(texts)
                ],
                *[_dates(pl.col(c)).sum().alias(f"d{k}") for k, c in enumerate(texts)],
            )
        )
        words = []
        for k, column in enumerate(texts):
            numbers, values, commas, truths, dates = (int(frame[f"{key}{k}"][0]) for key in "nmctd")
            if values and truths == values:  # yes or no is 1 or 0
                continue
            if dates > values / 2:
                raise DataFileError(
                    f"{self.source}: column {column!r} holds dates: drop it, or turn it into "
                    "numbers."
                )
            wrong = self.not_a_number(column) if values > numbers > values / 2 else None
            if wrong is not None:
                raise wrong
            if commas > values / 2:
                raise DataFileError(
                    f"{self.source}: column {column!r} holds numbers with commas: write them with "
                    "decimal points, and without separators of thousands."
                )
            if numbers < values or not values:
                words.append(column)
        return words

    def check_numbers(self, columns: list[str]) -> None:
        """Refuse words where a model wants numbers; a column without any value is just missing."""
        for column in self.words(columns):
            if self.kind == "parquet":
                raise DataFileError(
                    f"{self.source}: column {column!r} holds words, the model wants numbers."
                )
            wrong = self.not_a_number(column)
            if wrong is not None:
                raise wrong

    def rows(self, columns: list[str], words: Sequence[str], label: str | None) -> pl.LazyFrame:
        """Return the wanted columns, numbers as float64; a blank line is a row of nulls."""
        pl = polars()
        wanted = [*columns, *([label] if label is not None else [])]
        texts = [c for c in wanted if c in words or c == label]
        if self.kind == "parquet":
            numbers = [c for c in columns if c not in words]
            return (
                self.scan()
                .select(wanted)
                .with_columns(pl.col(numbers).cast(pl.Float64), *[_word(pl.col(c)) for c in texts])
            )
        plain = (pl.String, pl.Boolean)
        spaced = [c for c in columns if c not in words and self.schema[c] in plain]
        # What nobody asked for may hold anything.
        types = {c: pl.Float64 if c in columns else pl.String for c in self.schema}
        types |= dict.fromkeys([*texts, *spaced], pl.String)
        return (
            self.scan(schema_overrides=types)
            .select(wanted)
            .with_columns(
                *[_word(pl.col(c)) for c in texts],
                *[pl.coalesce(_truth(pl.col(c)), _number(pl.col(c))).alias(c) for c in spaced],
            )
        )

    def pieces(
        self, columns: list[str], words: Sequence[str], label: str | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time, without blank lines."""
        size = max(1000, PIECE // len(self.schema))
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
        if not held:
            raise DataFileError(f"{self.source}: has a header, but no rows.")

    def _held(self, frame: pl.DataFrame, start: int) -> pl.DataFrame:
        """Return the rows that lines with something on them hold, of rows from ``start`` on.

        A blank line and one of missing values both come as nulls, and so do the last fields of a
        short line, which is refused. Only where there is a null the lines are looked at.
        """
        pl = polars()
        if self.kind == "parquet" or not any(frame[c].null_count() for c in frame.columns):
            return frame
        ragged = self._ragged()
        if ragged:
            raise ragged
        assert self._blank is not None
        nothing = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
        blank = nothing & np.isin(np.arange(start, start + len(frame)), self._blank)
        return frame.filter(~blank) if blank.any() else frame

    def count(self) -> int:
        """Return the number of rows, at least: blank lines may count."""
        pl = polars()
        return int(self._collect(self.scan().select(pl.len())).item())

    def _collect(self, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            return rows.collect(engine="streaming")
        except Exception as error:
            raise self.fault(error) from None

    # What is wrong ---------------------------------------------------------------------------

    def fault(self, error: Exception, numbers: Sequence[str] = ()) -> Exception:
        """Return what is wrong with the file, as precisely as can be found out."""
        pl = polars()
        if not isinstance(error, (pl.exceptions.PolarsError, OSError, ValueError, TypeError)):
            return error
        if isinstance(error, pl.exceptions.NoDataError):
            return DataFileError(f"{self.source}: is empty.")
        if self.kind == "parquet":
            return DataFileError(f"{self.source}: is no usable Parquet file: {_first(error)}")
        known = self._not_text() or self._ragged()
        if known:
            return known
        for column in numbers:
            try:
                wrong = self.not_a_number(column)
            except pl.exceptions.PolarsError:
                continue
            if wrong is not None:
                return wrong
        return DataFileError(f"{self.source}: cannot be read: {_first(error)}")

    def _not_text(self) -> DataFileError | None:
        """Return the error that names the first line which is no UTF-8."""
        with self.file.open("rb") as lines:
            for number, line in enumerate(bounded_lines(lines, self.source), 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return DataFileError(f"{self.source}: line {number} is no UTF-8 text.")
        return None

    def not_a_number(self, column: str) -> DataFileError | None:
        """Return the error that names the first text in a column of numbers, if there is any."""
        pl = polars()
        texts = dict.fromkeys(self.schema, pl.String)
        bad = self.scan(schema_overrides=texts, row_index_name="\0line").filter(
            _present(pl.col(column)) & _number(pl.col(column)).is_null()
        )
        frame = bad.select("\0line", column).head(1).collect()
        if not len(frame):
            return None
        line, value = self._line_of(int(frame[0, 0])), frame[0, 1]
        return DataFileError(
            f"{self.source}: line {line}: {value!r} is not a number, as others in column "
            f"{column!r} are."
        )

    def _check_sizes(self, numbers: pl.DataFrame, start: int) -> None:
        """Refuse numbers that are finite and too large, of rows from ``start`` on."""
        pl = polars()
        limit = largest(self.dtype)
        sizes = numbers.select(pl.all().abs().max())
        for column in (c for c in sizes.columns if (sizes[c] > limit).any()):
            values = numbers[column].to_numpy()
            place = first_beyond(values, limit)
            if place is not None:  # else all of them are infinite
                row = start + place
                where = f"row {row + 1}" if self.kind == "parquet" else f"line {self._line_of(row)}"
                raise too_large(f"{self.source}: {where}, column {column!r}", float(values[place]))

    def _ragged(self) -> DataFileError | None:
        """Return the error that names the first line of another length; else note blank lines."""
        if self._blank is not None:
            return None
        width, first, blank = 0, 0, []
        try:
            for row, (line, fields) in enumerate(self._lines(), -self.header):
                if not fields:
                    blank.append(row)
                elif not width:
                    width, first = fields, line
                elif fields != width:
                    return DataFileError(
                        f"{self.source}: line {line} has {fields} fields, line {first} has {width}."
                    )
        except DataFileError as unclosed:
            return unclosed
        self._blank = np.array(blank, dtype=np.int64)
        return None

    def _lines(self) -> Iterator[tuple[int, int]]:
        """Yield the line that a row begins on and the number of its fields, 0 where it is blank.

        Blank lines above a header are none of the rows.
        """
        begin, fields, is_open, above = 1, 0, False, self.header
        with self._open() as lines:
            for number, line in enumerate(bounded_lines(lines, self.source), 1):
                begin = begin if is_open else number
                fields += not is_open
                bare, is_open = self._unquoted(line, is_open)
                fields += bare.count(self._separator)
                if is_open:
                    continue
                if fields == 1 and not line.strip():
                    fields = 0
                above = above and not fields
                if not above:
                    yield begin, fields
                fields = 0
        if is_open:
            raise DataFileError(f"{self.source}: line {begin}: a quote is never closed.")

    def _unquoted(self, line: str, is_open: bool) -> tuple[str, bool]:
        """Return a line without what is in quotes, and whether a quote is open at its end.

        Not by Python's csv, which gives up on long fields and takes an open quote for a closed one.
        """
        if not is_open and '"' not in line:
            return line, False
        quoted, opening = self._quotes
        bare = quoted.sub(r"\1", f'"{line}' if is_open else line)
        opens = opening.search(bare)
        return (bare, False) if opens is None else (bare[: opens.end()], True)

    @cached_property
    def _quotes(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Patterns of a field in quotes and of the quote that begins it."""
        opening = rf'(^|{re.escape(self._separator)})"'
        # Possessive, or the first of two quotes that stand for one would be taken for the end.
        return re.compile(rf'{opening}(?:[^"]+|"")*+"'), re.compile(opening)

    def _line_of(self, row: int) -> int:
        """Return the line on which a row begins, which a quoted line break moves."""
        place = row + self.header
        return next(islice(self._lines(), place, None), (place + 1, 0))[0]

    @cached_property
    def first(self) -> list[str]:
        """The fields of the first line that is not blank, without blanks around them."""
        begin, _ = next(((line, n) for line, n in self._lines() if n), (1, 0))
        with self._open() as lines:
            try:
                row = next(csv.reader(islice(lines, begin - 1, None), delimiter=self._separator))
            except StopIteration:
                return []
            except csv.Error:
                raise DataFileError(
                    f"{self.source}: line {begin} cannot be read: end all lines in one way, and "
                    f"keep names of columns below {csv.field_size_limit()} characters."
                ) from None
        return [name.strip() for name in row]

    @cached_property
    def _start(self) -> bytes:
        with self.file.open("rb") as file:
            return file.read(1 << 16)

    @property
    def line_end(self) -> str:
        """What ends a line: LF, perhaps after CR, or CR alone, as on old Macs."""
        return "\r" if b"\r" in self._start and b"\n" not in self._start else "\n"

    def _open(self) -> Any:
        return self.file.open(newline=self.line_end, encoding="utf-8-sig", errors="replace")


def _number(column: Any) -> Any:
    """Return text as numbers, null where it is none."""
    pl = polars()
    return column.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)


def _word(column: Any) -> Any:
    """Return text without blanks around it, null where it stands for a missing value."""
    pl = polars()
    text = column.cast(pl.String).str.strip_chars()
    return pl.when(text.is_in(MISSING)).then(None).otherwise(text).alias(column.meta.output_name())


def _present(column: Any) -> Any:
    """Return whether there is a value."""
    pl = polars()
    return column.is_not_null() & ~column.cast(pl.String).str.strip_chars().is_in(MISSING)


def _truth(column: Any) -> Any:
    """Return 1 for true and 0 for false, null for all else."""
    pl = polars()
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return pl.when(text == "true").then(1.0).when(text == "false").then(0.0)


def _dates(column: Any) -> Any:
    """Return whether text is a date, perhaps with a time."""
    pl = polars()
    text = column.cast(pl.String).str.strip_chars()
    return text.str.contains(r"^\d{4}-\d{1,2}-\d{1,2}([T ]|$)|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$")


def _commas(column: Any) -> Any:
    """Return whether text is a number written with commas."""
    pl = polars()
    text = column.cast(pl.String).str.strip_chars()
    return text.str.contains(r"^[-+]?\d{1,3}(,\d{3})*(\.\d+)?$|^[-+]?\d+,\d+$") & text.str.contains(
        ","
    )


def _as_array(
    text: _Text, features: list[str], label: str | None
) -> tuple[NDArray[Any], list[Any]]:
    """Fill one array piece by piece."""
    X = np.empty((text.count(), len(features)), dtype=text.dtype)
    labels, n = [], 0
    for frame in text.pieces(features, [], label):
        X[n : n + len(frame)] = frame.select(features).to_numpy()
        n += len(frame)
        if label is not None:
            labels.append(_words_of(frame[label]))
    return X[:n], labels


def _as_frame(
    text: _Text, features: list[str], words: list[str], label: str | None
) -> tuple[Any, list[Any]]:
    """Read a frame whose words are kept once each."""
    pl = polars()
    number = pl.Float64 if text.dtype == DOUBLE else pl.Float32
    columns = [pl.col(c).cast(pl.Categorical if c in words else number) for c in features]
    frames, labels = [], []
    for frame in text.pieces(features, words, label):
        frames.append(frame.select(columns))
        if label is not None:
            labels.append(_words_of(frame[label]))
    return pl.concat(frames, rechunk=True), labels


def _words_of(column: Any) -> tuple[list[str | None], NDArray[Any]]:
    """Return the different words of a column of labels, and which one each row has."""
    pl = polars()
    known = column.unique(maintain_order=True)
    places = pl.Series(range(len(known)), dtype=pl.UInt32)
    codes = column.replace_strict(known, places, return_dtype=pl.UInt32)
    return known.to_list(), codes.to_numpy()


def _labels(parts: list[tuple[list[str | None], NDArray[Any]]], text: _Text, label: str) -> Any:
    """Return labels: whole numbers where all are, else words."""
    lacking = sum(
        int((codes == known.index(None)).sum()) for known, codes in parts if None in known
    )
    _refuse_lacking(lacking, text, label)
    words = sorted({word for known, _ in parts for word in known if word is not None})
    place: dict[str | None, int] = {word: k for k, word in enumerate(words)}
    codes = [np.array([place[word] for word in known])[codes] for known, codes in parts]
    values = words_as_labels(words, text.source, f"column {label!r}")
    return values[np.concatenate(codes)]


def _written(column: Any, text: _Text, label: str) -> Any:
    """Return labels as the file has them."""
    _refuse_lacking(column.null_count(), text, label)
    return np.array(column.to_list(), dtype=str)


def _refuse_lacking(lacking: int, text: _Text, label: str) -> None:
    if lacking:
        raise DataFileError(
            f"{text.source}: column {label!r} lacks {lacking} values: every row needs a label."
        )


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
