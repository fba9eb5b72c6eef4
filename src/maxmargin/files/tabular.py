"""CSV, TSV and Parquet, read by polars in pieces; what is wrong is named by line and column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .table import DataFileError, Table, find_column, words_as_labels

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
            'pip install "maxmargin[polars]"'
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
    dtype: Any,
    labelled: bool,
    as_words: Sequence[str] = (),
) -> Table:
    """Read a table: floats in one array, or a frame where some column holds words."""
    text = _Text(file, kind, source, separator, header)
    names = text.names
    label = _target(target, names, source, labelled)
    out = {find_column(name, names, source, "dropped") for name in drop}
    features = [n for k, n in enumerate(names) if n != label and k not in out]
    if not features:
        raise DataFileError(f"{source}: has no column besides {', '.join(names)}.")
    dropped = [names[k] for k in sorted(out)]
    if label in dropped:
        raise DataFileError(f"{source}: column {label!r} is the target, it cannot be dropped.")
    named = {names[find_column(name, names, source, "word")] for name in as_words}
    words = [*text.words([f for f in features if f not in named]), *(named & set(features))]
    words.sort(key=features.index)
    if words:
        X, y = _as_frame(text, features, words, label, dtype)
    else:
        X, y = _as_array(text, features, label, dtype)
    if not len(X):
        raise DataFileError(f"{source}: has a header, but no rows.")
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
    empty = True
    for frame in text.pieces(wanted, words, label):
        empty = False
        y = None if label is None else _written(frame[label], text, label)
        yield Table(frame.select(wanted), y, wanted, source, label)
    if empty:
        raise DataFileError(f"{source}: has a header, but no rows.")


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
            glob=False,
            with_column_names=(lambda names: self.header_names(names)) if self.header else None,
            **options,
        )

    def header_names(self, names: list[str]) -> list[str]:
        """Return the names of the first line without quotes and blanks around them."""
        line = [name.strip() for name in self._line(1)]
        return line if len(line) == len(names) else names

    @property
    def _separator(self) -> str:
        return self.separator or ("\t" if self.kind == "tsv" else ",")

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
        with self.file.open("rb") as file:
            start = file.read(1 << 16)
        if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataFileError(f"{self.source}: is no text in UTF-8.")
        first = [name.strip() for name in self._line(1)]
        if self.header and any("\ufffd" in name for name in first):
            raise DataFileError(f"{self.source}: line 1 is no UTF-8 text.")
        twice = sorted({name for name in first if first.count(name) > 1}) if self.header else []
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
        """Return the wanted columns, numbers as float64; blank lines are left out."""
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
        scan = self.scan(schema_overrides=types)
        return (
            scan.filter(~pl.all_horizontal(pl.all().is_null()))
            .select(wanted)
            .with_columns(
                *[_word(pl.col(c)) for c in texts],
                *[pl.coalesce(_truth(pl.col(c)), _number(pl.col(c))).alias(c) for c in spaced],
            )
        )

    def pieces(
        self, columns: list[str], words: Sequence[str], label: str | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows, some at a time."""
        size = max(1000, PIECE // len(self.schema))
        try:
            for frame in self.rows(columns, words, label).collect_batches(
                chunk_size=size, maintain_order=True
            ):
                self._check_ragged(frame)
                yield frame
        except DataFileError:
            raise
        except Exception as error:
            raise self.fault(error, [c for c in columns if c not in words]) from None

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
            for number, line in enumerate(lines, 1):
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

    def _check_ragged(self, frame: pl.DataFrame) -> None:
        """Refuse short lines, which come as missing values of the last column."""
        if self.kind != "parquet" and any(frame[c].null_count() for c in frame.columns):
            ragged = self._ragged()
            if ragged:
                raise ragged

    def _ragged(self) -> DataFileError | None:
        """Return the error that names the first line of another length than the first."""
        if self._known_even:
            return None
        with self._open() as lines:
            rows = csv.reader(lines, delimiter=self._separator)
            first = next(rows, [])
            for row in rows:
                if row and len(row) != len(first):
                    return DataFileError(
                        f"{self.source}: line {rows.line_num} has {len(row)} fields, line 1 has "
                        f"{len(first)}."
                    )
        self._known_even = True
        return None

    _known_even = False

    def _open(self) -> Any:
        return self.file.open(newline="", encoding="utf-8-sig", errors="replace")

    def _line(self, number: int) -> list[str]:
        with self._open() as lines:
            rows = csv.reader(lines, delimiter=self._separator)
            return next(islice(rows, number - 1, None), [])

    def _line_of(self, row: int) -> int:
        """Return the line on which a row ends, which a quoted line break moves."""
        with self._open() as lines:
            rows = csv.reader(lines, delimiter=self._separator)
            for _ in islice(rows, row + 1 + self.header):
                pass
            return rows.line_num


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
    text: _Text, features: list[str], label: str | None, dtype: Any
) -> tuple[NDArray[Any], list[Any]]:
    """Fill one array piece by piece."""
    X = np.empty((text.count(), len(features)), dtype=dtype)
    labels, n = [], 0
    for frame in text.pieces(features, [], label):
        X[n : n + len(frame)] = frame.select(features).to_numpy()
        n += len(frame)
        if label is not None:
            labels.append(_words_of(frame[label]))
    return X[:n], labels


def _as_frame(
    text: _Text, features: list[str], words: list[str], label: str | None, dtype: Any
) -> tuple[Any, list[Any]]:
    """Read a frame whose words are kept once each."""
    pl = polars()
    numbers = [c for c in features if c not in words]
    kind = pl.Float32 if dtype == "float32" else pl.Float64
    rows = text.rows(features, words, label).with_columns(
        pl.col(words).cast(pl.Categorical), pl.col(numbers).cast(kind)
    )
    try:
        frame = rows.collect(engine="streaming")
    except Exception as error:
        raise text.fault(error, [c for c in features if c not in words]) from None
    text._check_ragged(frame)
    return frame.select(features), [] if label is None else [_words_of(frame[label])]


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
