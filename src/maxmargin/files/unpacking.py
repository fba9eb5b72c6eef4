"""Files as text, Parquet or Arrow that can be scanned: sheets, ARFF, other encodings."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .column_types import NUMBER, polars
from .dialect import SHEETS, TEXT, Dialect
from .encodings import CALLED, guessed_encoding, known_encoding, write_utf8
from .table import DataFileError, cut, listed

ARROW = b"ARROW1"


@dataclass(frozen=True)
class Plain:
    """A table that can be scanned.

    Parameters
    ----------
    file : Path
    kind : {"csv", "tsv", "parquet", "arrow"}
    has_names : bool or None
        Whether the first line names the columns, where the format tells.
    words : tuple of str
        Columns that the format declares as categories.
    encoding : str or None
        The encoding that was found, None for UTF-8.
    notes : list of str
        What was guessed.
    """

    file: Path
    kind: str
    has_names: bool | None = None
    words: tuple[str, ...] = ()
    encoding: str | None = None
    notes: list[str] = field(default_factory=list)


@contextmanager
def plain_table(file: Path, kind: str, source: str, how: Dialect) -> Iterator[Plain]:
    """Yield a table as CSV in UTF-8, Parquet or Arrow; a copy where it is something else."""
    if kind == "parquet" or (kind == "arrow" and _starts_with(file, ARROW)):
        yield Plain(file, kind)
        return
    with tempfile.TemporaryDirectory(prefix="maxmargin") as folder:
        copy = Path(folder) / "table"
        if kind == "arrow":
            _write_stream(file, source, copy)
            yield Plain(copy, "parquet")
        elif kind in SHEETS:
            yield Plain(copy, "csv", notes=_write_sheet(file, source, how.sheet, copy))
        else:
            yield _as_utf8(file, kind, source, how, copy)


def _as_utf8(file: Path, kind: str, source: str, how: Dialect, copy: Path) -> Plain:
    """Return text in UTF-8, ARFF as CSV."""
    notes = []
    encoding = known_encoding(how.encoding) if how.encoding is not None else None
    if encoding is None:
        encoding = guessed_encoding(file, source, how.fallback)
        if encoding is not None:
            notes = [f"not UTF-8, read as {CALLED.get(encoding, encoding)}: pass --encoding if "
                     "that is wrong."]  # fmt: skip
    elif encoding == "utf-8":
        encoding = None
    if encoding is not None:
        write_utf8(file, encoding, source, copy)
        file = copy
    if kind in TEXT:
        return Plain(file, kind, encoding=encoding, notes=notes)
    table = copy.with_name("arff.csv")
    words = _write_arff(file, source, table)
    return Plain(table, "csv", True, words, encoding, notes)


def _starts_with(file: Path, mark: bytes) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(mark)) == mark


def _write_stream(file: Path, source: str, out: Path) -> None:
    """Write a stream of Arrow as Parquet."""
    pl = polars()
    try:
        pl.read_ipc_stream(file).write_parquet(out)
    except Exception as error:
        why = str(error).strip().splitlines()[:1]
        raise DataFileError(
            f"{source}: the Arrow file cannot be read: {(why or ['damaged'])[0][:120]}"
        ) from None


# Sheets -------------------------------------------------------------------------------------------


def _write_sheet(file: Path, source: str, sheet: str | None, out: Path) -> list[str]:
    """Write a sheet as CSV, without what the types of cells say; return notes."""
    pl = polars()
    try:
        import fastexcel
    except ImportError:
        raise ImportError(
            "xlsx and ods files need fastexcel, which is not installed: "
            'pip install "maxmargin[excel]"'
        ) from None
    try:
        names = fastexcel.read_excel(str(file)).sheet_names
        chosen = _sheet(sheet, names, source)
        frame = pl.read_excel(
            file, sheet_name=chosen, engine="calamine", has_header=False, infer_schema_length=0,
            drop_empty_rows=True, raise_if_empty=False,
        )  # fmt: skip
    except DataFileError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:120]
        raise DataFileError(f"{source}: the sheet cannot be read: {why}") from None
    if frame.is_empty():
        raise DataFileError(f"{source}: the sheet {cut(chosen)} is empty.")
    frame.write_csv(out, include_header=False)
    if sheet is None and len(names) > 1:
        others = listed([name for name in names if name != chosen], 5)
        return [f"the first sheet, {chosen}, is read: pass --sheet for another ({others})."]
    return []


def _sheet(wanted: str | None, names: list[str], source: str) -> str:
    if wanted is None:
        return names[0]
    if wanted in names:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise DataFileError(f"{source}: there is no sheet {cut(wanted)}; the file has {listed(names)}.")


# ARFF ---------------------------------------------------------------------------------------------


def _write_arff(file: Path, source: str, out: Path) -> tuple[str, ...]:
    """Write an ARFF file as CSV; return the nominal attributes whose values look like numbers."""
    try:
        import arff
    except ImportError:
        raise ImportError(
            'ARFF files need liac-arff, which is not installed: pip install "maxmargin[arff]"'
        ) from None
    with file.open(encoding="utf-8-sig") as text:
        sparse = any(line.lstrip().startswith("{") for line in text)
    try:
        with (
            file.open(encoding="utf-8-sig") as text,
            out.open("w", encoding="utf-8", newline="") as table,
        ):
            held = arff.load(text, return_type=arff.LOD_GEN if sparse else arff.DENSE_GEN)
            attributes = held["attributes"]
            writer = csv.writer(table, lineterminator="\n")
            writer.writerow([name for name, _ in attributes])
            absent = [kind[0] if isinstance(kind, list) else 0.0 for _, kind in attributes]
            for row in held["data"]:
                values = [row.get(k, absent[k]) for k in range(len(absent))] if sparse else row
                writer.writerow(["?" if value is None else value for value in values])
    except arff.ArffException as error:
        raise DataFileError(
            f"{source}: the ARFF file cannot be read: {' '.join(str(error).split())[:120]}"
        ) from None
    return tuple(name for name, kind in attributes if _is_numbered(kind))


def _is_numbered(kind: Any) -> bool:
    """Say whether an attribute is nominal, and would be taken for numbers; 0/1 are the same."""
    return isinstance(kind, list) and len(kind) > 2 and all(map(NUMBER.fullmatch, kind))
