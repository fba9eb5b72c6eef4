"""Choose the reader of a file by its name, or by its first bytes."""

from __future__ import annotations

import bz2
import gzip
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, get_args

import numpy as np
from numpy.typing import DTypeLike

from .dialect import TABLES, Dates, Dialect, Header, as_missing
from .encodings import MARKS
from .table import DataFileError, DataTable, listed
from .targets import Labelled, Targets

FORMATS = ("csv", "tsv", "parquet", "arrow", "xlsx", "ods", "arff", "svmlight", "npz")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xlsb": "xlsx",
    ".xls": "xlsx",
    ".ods": "ods",
    ".arff": "arff",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
SVMLIGHT = re.compile(r"[-+.\w]+(\s+\w+:\S+)+\s*(#.*)?$")
LABEL = re.compile(r"[-+.\w]+\s*(#.*)?$")
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}

Batches = Iterator[DataTable]


def read(
    path: str | Path,
    target: str | None = None,
    *,
    format: str | None = None,
    separator: str | None = None,
    header: Header = "auto",
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: str | Sequence[str] = (),
    dates: Dates | None = None,
    date_format: str | None = None,
    sheet: str | None = None,
    keep_index: bool = False,
    drop: str | Sequence[str] = (),
    words: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    dtype: DTypeLike = "float64",
    n_features: int | None = None,
    first_index: int | None = None,
    labelled: Labelled = True,
    targets: Targets = "classes",
) -> DataTable:
    """Read a data file; numbers are stored directly in the array that is returned.

    Blank lines of a CSV file are skipped; a line of missing values (``NA``, ``?``, nothing between
    separators) is a row.

    Parameters
    ----------
    path : str or Path
        The file; ``-`` is standard input. ``.gz``, ``.bz2`` and ``.zip`` (of one file) are
        decompressed.
    target : str, optional
        The column of labels, by name or number (0 is the first, −1 the last); in an npz file the
        name of the array of labels, by default ``y``. In svmlight files labels come first.
    format : {"csv", "tsv", "parquet", "arrow", "xlsx", "ods", "arff", "svmlight", "npz"}, optional
        The format; by default inferred from the name, or from the first bytes. "xlsx" and "ods"
        need fastexcel (``pip install "maxmargin[excel]"``), "arff" liac-arff.
    separator : str, optional
        The separator of a CSV file, one ASCII character; by default a comma, or a tab for ``tsv``.
    header : bool or "auto", default="auto"
        Whether the first line of a CSV file or a sheet names the columns. "auto": it does unless it
        has numbers where names should be; columns without names are column_0, column_1, ….
    encoding : str, optional
        The encoding of text, as Python calls it. By default UTF-8, UTF-16 with or without a byte
        order mark, or Latin-1 (Windows-1252) where it is none of them, with a note.
    decimal : str, optional
        The decimal mark; by default a point.
    thousands : str, optional
        The separator of thousands, as in 1,000,000; " " is any blank, "" is none.
    missing : str or sequence of str, default=()
        Texts that mark missing values, such as "n/a", besides the usual ones.
    dates : {"parts", "numbers"}, optional
        What columns of dates become: year, month, day and weekday, with hour and minute where they
        have times (``when.year``, …), or days since 1970-01-01 (``when.days``). By default they are
        refused.
    date_format : str, optional
        The form of the dates, such as ``%d/%m/%Y``; by default inferred.
    sheet : str, optional
        The sheet of an xlsx or ods file, by name or number (1 is the first); by default the first.
    keep_index : bool, default=False
        Keep index columns: those that pandas calls ``Unnamed: 0`` or ``__index_level_0__``, and one
        without a name that counts the rows. By default they are dropped, with a note.
    drop : str or sequence of str, default=()
        Columns to leave out.
    words : str or sequence of str, default=()
        Numeric columns to be read as categories.
    text : str or sequence of str, default=()
        Columns of free text, which stay text in the frame; a missing one is "". `TextEncoder`
        makes features of them.
    dtype : {"float64", "float32"} or dtype, default="float64"
        Type of X; float32 of an npz file is kept. Finite numbers that it cannot hold raise an
        error.
    n_features : int, optional
        Columns of an svmlight file; by default the largest index.
    first_index : {0, 1}, optional
        Number of the first feature in an svmlight file; by default 0 where a feature 0 exists.
    labelled : bool or "if present", default=True
        Whether labels are required; False reads a file without them, "if present" reads the
        column ``target`` where the file has it.
    targets : {"classes", "numbers", "none"}, default="classes"
        What the target holds: labels of classes, or the numbers of a regression, whole ones too.
        "none" leaves its column out.

    Returns
    -------
    DataTable
        Rows, labels and names.

    Raises
    ------
    DataFileError
        For a file that cannot be read; the message names the line or the column.

    See Also
    --------
    batches : Read some rows at a time.

    Examples
    --------
    >>> import maxmargin as mm
    >>> table = mm.files.read(mm.datasets.fruit_file(), target="fruit", drop="mass_g")
    >>> table.X.shape, table.y[:2].tolist()
    ((150, 2), ['apple', 'apple'])
    """
    drop, words, long, kept = _names(drop), _names(words), _names(text), _float_type(dtype)
    how = Dialect(
        separator, header, encoding, decimal, thousands, as_missing(missing), dates, date_format,
        sheet, keep_index,
    )  # fmt: skip
    _check_targets(targets)
    with local(path, format) as (file, kind, source):
        how.check(kind, source)
        if kind in ("npz", "svmlight") and (drop or words or long):
            raise DataFileError(
                f"{source}: drop, words and text need names of columns, which {kind} files do not "
                "have."
            )
        if kind == "npz":
            from .npz import read_npz

            return read_npz(file, source, target, labelled, kept, targets)
        if kind == "svmlight":
            from .svmlight import read_svmlight

            return read_svmlight(file, source, kept, n_features, first_index, labelled, targets)
        from .tables import read_tabular

        return read_tabular(
            file, kind, source, target, how, drop, kept, labelled, words, targets, long
        )


def batches(
    path: str | Path,
    names: list[str] | None = None,
    *,
    words: str | Sequence[str] | None = None,
    target: str | None = None,
    labelled: Labelled = False,
    targets: Targets = "classes",
    format: str | None = None,
    separator: str | None = None,
    header: Header = "auto",
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: str | Sequence[str] = (),
    sheet: str | None = None,
    text: str | Sequence[str] = (),
    like: Mapping[str, Any] | None = None,
    n_features: int | None = None,
    first_index: int | None = None,
    keep: str | Sequence[str] | None = (),
) -> Batches:
    """Yield new rows of a data file, some at a time, so that memory does not grow with the file.

    svmlight and npz files come in one batch.

    Parameters
    ----------
    path : str or Path
        The file; ``-`` is standard input. ``.gz``, ``.bz2`` and ``.zip`` (of one file) are
        decompressed.
    names : list of str, optional
        The columns of X, found by name in any order; other columns are ignored. By default all.
    words : str or sequence of str, optional
        Columns of X to be read as categories; by default those that hold text.
    target : str, optional
        The column of labels, as in `read`; labels are returned as text.
    labelled : bool or "if present", default=False
        Whether labels are required, as in `read`; "" is a missing one that is not.
    targets : {"classes", "numbers", "none"}, default="classes"
        What the target holds, as in `read`.
    format : {"csv", "tsv", "parquet", "arrow", "xlsx", "ods", "arff", "svmlight", "npz"}, optional
        The format, as in `read`.
    separator : str, optional
        The separator of a CSV file, as in `read`.
    header : bool or "auto", default="auto"
        Whether the first line names the columns, as in `read`.
    encoding, decimal, thousands : str, optional
        How the file is written, as in `read`.
    missing : str or sequence of str, default=()
        Texts that mark missing values, as in `read`.
    sheet : str, optional
        The sheet of an xlsx or ods file, as in `read`.
    text : str or sequence of str, default=()
        Columns of free text, as in `read`.
    like : dict, optional
        ``reading`` of the `DataTable` of the training rows: what it tells, such as the decimal
        mark or the columns of dates, holds here where no option says otherwise.
    n_features : int, optional
        Columns of an svmlight file.
    first_index : {0, 1}, optional
        Number of the first feature in an svmlight file.
    keep : str, sequence of str or None, default=()
        Columns that are also returned as they are in the file, in ``kept``; None for all.

    Yields
    ------
    DataTable
        Some rows, with the same columns in every batch.

    See Also
    --------
    read : Read a whole file.

    Examples
    --------
    >>> import maxmargin as mm
    >>> parts = mm.files.batches(mm.datasets.fruit_file(), ["width_cm", "mass_g"])
    >>> sum(part.X.shape[0] for part in parts)
    150
    """
    _check_targets(targets)
    how = Dialect(separator, header, encoding, decimal, thousands, as_missing(missing), sheet=sheet)
    learnt = like or {}
    with local(path, format) as (file, kind, source):
        how.check(kind, source)
        how = how.like(learnt).for_kind(kind)
        if kind in TABLES:
            from .dates import dates_from
            from .tables import tabular_batches

            known = None if words is None else _names(words)
            yield from tabular_batches(
                file, kind, source, names, known, target, how, labelled, targets, _names(text),
                dates_from(learnt.get("dates", {})), None if keep is None else _names(keep),
            )  # fmt: skip
        else:
            if keep is None or len(keep):
                raise DataFileError(
                    f"{source}: keep needs names of columns, which {kind} files do not have."
                )
            table = read(
                file, target, format=kind, n_features=n_features, first_index=first_index,
                labelled=labelled, targets=targets,
            )  # fmt: skip
            yield replace(table, source=source)


def _check_targets(targets: str) -> None:
    if targets not in get_args(Targets):
        known = ", ".join(get_args(Targets))
        raise ValueError(f"targets must be one of {known}; got {targets!r}.")


def _names(given: str | Sequence[str]) -> Sequence[str]:
    """Return a list of names of columns, also for a single name."""
    return [given] if isinstance(given, str) else given


def _float_type(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        kept = np.dtype(dtype)
    except TypeError:
        kept = None
    if dtype is None or kept not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}.")
    return kept


@contextmanager
def local(path: str | Path, format: str | None) -> Iterator[tuple[Path, str, str]]:
    """Yield a file that can be read twice, its format, and its name for errors."""
    if format is not None and format not in FORMATS:
        raise DataFileError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    if str(path) == "-":
        with _spooled(sys.stdin.buffer) as file, unzipped(file, format, "standard input") as found:
            yield *found, "standard input"
        return
    file = Path(path)
    if not file.exists():
        raise DataFileError(f"{path}: no such file.")
    if file.is_dir():
        raise DataFileError(f"{path}: must be a file, got a folder.")
    if file.is_char_device() or file.is_block_device():
        raise DataFileError(f"{path}: must be a file, got a device.")
    if not file.is_file():  # a named pipe
        with (
            file.open("rb") as stream,
            _spooled(stream, str(path)) as copy,
            unzipped(copy, format, str(path)) as found,
        ):
            yield *found, str(path)
        return
    if file.stat().st_size == 0:
        raise DataFileError(f"{path}: the file is empty.")
    if file.suffix.lower() == ".zip":
        with unzipped(file, format, str(path)) as found:
            yield *found, str(path)
        return
    packed = file.suffix.lower() in OPENERS
    kind = format or SUFFIXES.get(Path(file.stem if packed else file.name).suffix.lower())
    kind = kind or _sniff(file, str(path))
    if kind == "zip":
        with unzipped(file, format, str(path)) as found:
            yield *found, str(path)
        return
    if not packed or kind == "svmlight":  # which its reader decompresses
        yield file, kind, str(path)
        return
    with OPENERS[file.suffix.lower()](file) as stream, _spooled(stream, str(path)) as unpacked:
        yield unpacked, kind, str(path)


@contextmanager
def unzipped(file: Path, format: str | None, source: str) -> Iterator[tuple[Path, str]]:
    """Yield a file and its format; the only member of a zip file instead of it."""
    kind = _sniff(file, source) if format is None or zipfile.is_zipfile(file) else format
    if kind != "zip":
        yield file, format or kind
        return
    try:
        with zipfile.ZipFile(file) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX/" not in n]
            if len(names) != 1:
                raise DataFileError(
                    f"{source}: a zip file must hold one data file, got {len(names)}"
                    f"{': ' * bool(names)}{listed(names, 5)}: unpack it."
                )
            with archive.open(names[0]) as stream, _spooled(stream, source) as copy:
                known = format or SUFFIXES.get(Path(names[0]).suffix.lower())
                yield copy, known or _sniff(copy, source)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise DataFileError(f"{source}: the zip file cannot be read: {error}") from None


def _kind_of_zip(file: Path, source: str) -> str:
    """Return what a zip file is: arrays, a sheet, or a packed file."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError) as error:
        raise DataFileError(f"{source}: the zip file cannot be read: {error}") from None
    if any(name.endswith(".npy") for name in names):
        return "npz"
    if "[Content_Types].xml" in names:
        return "xlsx"
    return "ods" if "mimetype" in names and "content.xml" in names else "zip"


@contextmanager
def _spooled(stream: IO[bytes], source: str = "standard input") -> Iterator[Path]:
    """Yield a temporary file with the contents of a stream, since readers read it twice."""
    with tempfile.TemporaryDirectory(prefix="maxmargin") as folder:
        file = Path(folder) / "data"
        try:
            with file.open("wb") as out:
                shutil.copyfileobj(stream, out, 1 << 20)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{source}: the file cannot be decompressed: {error}") from None
        if not file.stat().st_size:
            raise DataFileError(f"{source}: the file is empty.")
        yield file


def _sniff(file: Path, source: str) -> str:
    """Return the format that the first bytes of a file suggest."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rb") as stream:
        try:
            start: bytes = stream.read(1 << 16)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{source}: the file cannot be read: {error}") from None
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"ARROW1"):
        return "arrow"
    if start.startswith(b"PK"):
        return _kind_of_zip(file, source) if file.suffix.lower() not in OPENERS else "npz"
    marked = next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")
    text = start.decode(marked, "replace").replace("\0", "")
    whole = [line for line in text.splitlines() if line.strip()]
    if any(line.strip().lower().startswith("@relation") for line in whole[:1000]):
        return "arff"
    lines = whole[:-1][:20] or whole
    rows = [line for line in lines if not line.lstrip().startswith("#")]
    # A row of zeros is only a label.
    if any(map(SVMLIGHT.match, rows)) and all(SVMLIGHT.match(r) or LABEL.match(r) for r in rows):
        return "svmlight"
    if lines and "\t" in lines[0]:
        return "tsv"
    if lines and "," in lines[0]:
        return "csv"
    raise DataFileError(
        f"{source}: the format cannot be inferred from the name or the contents: pass one of "
        f"{', '.join(FORMATS)} as format."
    )
