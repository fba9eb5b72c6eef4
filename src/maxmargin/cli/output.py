"""The file of predictions: CSV, TSV, lines of JSON, Parquet or Arrow, written in pieces."""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import click

from . import console

# Formats by the suffix of the output; other suffixes are CSV.
FORMS = {
    ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".ipc": "arrow",
}  # fmt: skip
REFUSED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".xlsx", ".ods", ".npz", ".mm")

# Some rows of the output: values by the name of their column; of JSON also records of values.
Columns = Mapping[str, Any]


def form_of(out: str, *, as_json: bool) -> str:
    """Return the format of an output file by its name."""
    suffix = Path(out).suffix.lower()
    if suffix in REFUSED:
        raise click.UsageError(
            f"{out}: predictions are written as CSV, TSV, Parquet or Arrow: use a suffix such as "
            ".csv or .parquet."
        )
    if not as_json:
        return FORMS.get(suffix, "csv")
    if FORMS.get(suffix, "tsv") != "tsv":
        raise click.UsageError(f"--json writes lines of JSON, not {out}: use a suffix .jsonl.")
    return "json"


class Output(Protocol):
    """What takes the rows of the output, some at a time."""

    def write(self, columns: Columns) -> None:
        """Write some rows."""


@contextmanager
def output(out: str, form: str) -> Iterator[Output]:
    """Yield what rows are written to; a file is created when the output is complete."""
    if form in ("parquet", "arrow"):
        with _Typed(form) as typed:
            yield typed
            typed.finish(out)
        return
    with _writing(out) as stream:
        yield _Lines(stream) if form == "json" else _Text(stream, "\t" if form == "tsv" else ",")


@contextmanager
def _writing(out: str) -> Iterator[IO[str]]:
    if out == "-":
        yield sys.stdout
        return
    if Path(out).exists() and not Path(out).is_file():  # a pipe, or /dev/stdout
        with open(out, "w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    from ..persistence.writing import replacing

    with replacing(out) as part, open(part, "w", encoding="utf-8", newline="") as stream:
        yield stream


def _listed(values: Any) -> list[Any]:
    """Return a column of NumPy or polars as Python's values."""
    found: list[Any] = values.tolist() if hasattr(values, "tolist") else values.to_list()
    return found


class _Text:
    """CSV or TSV."""

    def __init__(self, stream: IO[str], separator: str) -> None:
        self.writer = csv.writer(stream, lineterminator="\n", delimiter=separator)
        self.has_heading = False

    def write(self, columns: Columns) -> None:
        if not self.has_heading:
            self.writer.writerow(columns)
            self.has_heading = True
        self.writer.writerows(zip(*map(_listed, columns.values()), strict=True))


class _Lines:
    """A record of JSON per line; columns of one kind, such as "score_a", are records in it."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, columns: Columns) -> None:
        for values in zip(*map(_listed, columns.values()), strict=True):
            record = console.plain(dict(zip(columns, values, strict=True)))
            self.stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


class _Typed:
    """Parquet or Arrow: pieces are files of their own until all types are known.

    Text that is the same when it is read as whole numbers is written as such, then what consists of
    numbers; where pieces differ, the common type is written.
    """

    def __init__(self, form: str) -> None:
        self.form, self.n = form, 0

    def __enter__(self) -> _Typed:
        self.folder = tempfile.TemporaryDirectory(prefix="maxmargin")
        return self

    def __exit__(self, *error: object) -> None:
        self.folder.cleanup()

    def write(self, columns: Columns) -> None:
        from ..files.column_types import polars, with_numbers

        pl = polars()
        series = {}
        for name, values in columns.items():
            is_kept = hasattr(values, "to_list") and not hasattr(values, "tolist")
            series[name] = with_numbers(values) if is_kept else pl.Series(_listed(values))
        pl.DataFrame(series).write_ipc(self._piece(self.n))
        self.n += 1

    def finish(self, out: str) -> None:
        """Write the file."""
        from ..files.column_types import polars
        from ..persistence.writing import replacing

        pl = polars()
        pieces = [pl.scan_ipc(self._piece(k)) for k in range(self.n)]
        rows = pl.concat(pieces, how="vertical_relaxed")
        with replacing(out) as part:
            rows.sink_parquet(part) if self.form == "parquet" else rows.sink_ipc(part)

    def _piece(self, k: int) -> Path:
        return Path(self.folder.name) / f"{k}.arrow"
