"""Which reader a file needs: by its name, else by how it begins."""

from __future__ import annotations

import bz2
import gzip
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from .table import DataFileError, Table

FORMATS = ("csv", "tsv", "parquet", "svmlight", "npz")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
SVMLIGHT = re.compile(r"[-+.\w]+(\s+\w+:\S+)+\s*(#.*)?$")
LABEL = re.compile(r"[-+.\w]+\s*(#.*)?$")
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}

Batches = Iterator[Table]


def read(
    path: str | Path,
    target: str | None = None,
    *,
    format: str | None = None,
    separator: str | None = None,
    header: bool = True,
    drop: str | Sequence[str] = (),
    words: str | Sequence[str] = (),
    dtype: Any = "float64",
    n_features: int | None = None,
    first_index: int | None = None,
    labelled: bool = True,
) -> Table:
    """Read a data file into memory once: numbers go straight into the array that is returned.

    Blank lines of a CSV file are left out; a line of missing values (``NA``, ``?``, nothing between
    separators) is a row.

    Parameters
    ----------
    path : str or Path
        ``-`` is standard input. ``.gz`` and ``.bz2`` are unpacked.
    target : str, optional
        The column of labels, by name or by place (0 is the first, −1 the last); in an npz file the
        array of labels (``y``). svmlight files have it in front.
    format : {"csv", "tsv", "parquet", "svmlight", "npz"}, optional
        By default what the name says, else what the beginning of the file looks like.
    separator : str, optional
        Of a CSV file, one ASCII character; a comma, or a tab for ``tsv``.
    header : bool, default=True
        Whether the first line of a CSV file names the columns.
    drop : str or sequence of str
        Columns to leave out.
    words : str or sequence of str
        Columns of categories that look like numbers.
    dtype : {"float64", "float32"}, or NumPy's types of these names
        Of X; float32 of an npz file stays what it is. Finite numbers that it cannot hold are
        refused.
    n_features, first_index : int, optional
        Columns of an svmlight file, which does not say, and whether they are counted from 0 or 1:
        by default from 0 where there is a 0.
    labelled : bool, default=True
        False if labels are neither needed nor missed.

    Returns
    -------
    Table
    """
    drop, words, kept = _names(drop), _names(words), _float_type(dtype)
    with local(path, format) as (file, kind, source):
        _check_kind(kind, source, separator, header)
        if kind in ("npz", "svmlight") and (drop or words):
            raise DataFileError(f"{source}: has no names of columns to drop, or to take for words.")
        if kind == "npz":
            from .arrays import read_npz

            return read_npz(file, source, target, labelled, kept)
        if kind == "svmlight":
            from .svmlight import read_svmlight

            return read_svmlight(file, source, kept, n_features, first_index, labelled)
        from .tabular import read_tabular

        return read_tabular(
            file, kind, source, target, separator, header, drop, kept, labelled, words
        )


def batches(
    path: str | Path,
    names: list[str] | None = None,
    *,
    words: str | Sequence[str] | None = None,
    target: str | None = None,
    labelled: bool = False,
    format: str | None = None,
    separator: str | None = None,
    header: bool = True,
    n_features: int | None = None,
    first_index: int | None = None,
) -> Batches:
    """Yield new rows of a data file, some at a time: memory does not grow with the file.

    ``names`` are the columns that are wanted, found by name in any order; others are ignored.
    ``words`` are those of them that hold words, whatever they look like in this file. Labels come
    as they are written. svmlight and npz files come in one piece. Other parameters are those of
    `read`.
    """
    with local(path, format) as (file, kind, source):
        _check_kind(kind, source, separator, header)
        if kind in ("csv", "tsv", "parquet"):
            from .tabular import tabular_batches

            known = None if words is None else _names(words)
            yield from tabular_batches(
                file, kind, source, names, known, target, separator, header, labelled
            )
        else:
            table = read(
                file, target, format=kind, n_features=n_features, first_index=first_index,
                labelled=labelled,
            )  # fmt: skip
            yield replace(table, source=source)


def _check_kind(kind: str, source: str, separator: str | None, header: bool) -> None:
    """Refuse what would change nothing."""
    if kind not in ("csv", "tsv") and (separator is not None or not header):
        raise DataFileError(f"{source}: is read as {kind}, which has no separator and no header.")


def _names(given: str | Sequence[str]) -> Sequence[str]:
    """Return names of columns; a lone one is not taken letter by letter."""
    return [given] if isinstance(given, str) else given


def _float_type(dtype: Any) -> np.dtype[Any]:
    try:
        kept = np.dtype(dtype)
    except TypeError:
        kept = None
    if dtype is None or kept not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}: pass float64 or float32.")
    return kept


@contextmanager
def local(path: str | Path, format: str | None) -> Iterator[tuple[Path, str, str]]:
    """Yield a file that can be read twice, its format, and the name to speak of."""
    if format is not None and format not in FORMATS:
        raise DataFileError(f"format={format!r} is unknown: pass one of {', '.join(FORMATS)}.")
    if str(path) == "-":
        with _spooled(sys.stdin.buffer) as file:
            yield file, format or _sniff(file, "standard input"), "standard input"
        return
    file = Path(path)
    if not file.exists():
        raise DataFileError(f"{path}: no such file.")
    if file.is_dir():
        raise DataFileError(f"{path}: is a folder, not a data file.")
    if file.is_char_device() or file.is_block_device():
        raise DataFileError(f"{path}: is a device, not a data file.")
    if not file.is_file():  # a pipe with a name
        with file.open("rb") as stream, _spooled(stream, str(path)) as copy:
            yield copy, format or _sniff(copy, str(path)), str(path)
        return
    if file.stat().st_size == 0:
        raise DataFileError(f"{path}: is empty.")
    packed = file.suffix.lower() in OPENERS
    kind = format or SUFFIXES.get(Path(file.stem if packed else file.name).suffix.lower())
    kind = kind or _sniff(file, str(path))
    if not packed or kind == "svmlight":  # whose reader unpacks as it goes
        yield file, kind, str(path)
        return
    with OPENERS[file.suffix.lower()](file) as stream, _spooled(stream, str(path)) as unpacked:
        yield unpacked, kind, str(path)


@contextmanager
def _spooled(stream: IO[bytes], source: str = "standard input") -> Iterator[Path]:
    """Yield a temporary file with what a stream holds: readers look at it more than once."""
    with tempfile.TemporaryDirectory(prefix="maxmargin") as folder:
        file = Path(folder) / "data"
        try:
            with file.open("wb") as out:
                shutil.copyfileobj(stream, out, 1 << 20)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{source}: cannot be unpacked: {error}") from None
        if not file.stat().st_size:
            raise DataFileError(f"{source}: is empty.")
        yield file


def _sniff(file: Path, source: str) -> str:
    """Return the format that the beginning of a file looks like."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rb") as stream:
        try:
            start: bytes = stream.read(1 << 16)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{source}: cannot be read: {error}") from None
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK"):
        return "npz"
    whole = [line for line in start.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = whole[:-1][:20] or whole
    rows = [line for line in lines if not line.lstrip().startswith("#")]
    # A row of zeros is a label alone.
    if any(map(SVMLIGHT.match, rows)) and all(SVMLIGHT.match(r) or LABEL.match(r) for r in rows):
        return "svmlight"
    if lines and "\t" in lines[0]:
        return "tsv"
    if lines and "," in lines[0]:
        return "csv"
    raise DataFileError(
        f"{source}: neither its name nor its beginning tells its format: pass one of "
        f"{', '.join(FORMATS)} as format."
    )
