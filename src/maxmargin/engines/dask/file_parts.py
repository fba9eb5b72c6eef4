"""Parts of data files, read on the workers: row groups of Parquet, blocks of CSV, whole files."""

from __future__ import annotations

import csv
import io
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...arrays import Labels
from ...files.reading import OPENERS, local
from ...files.svmlight import read_svmlight
from ...files.table import MOST_CLASSES, DataFileError, DataTable
from ...files.tables import as_array, as_frame
from ...files.tabular import Contents, TabularFile
from ...files.targets import TargetColumn, Targets


@dataclass(frozen=True)
class Format:
    """How all of the files are read, and which of their columns.

    Parameters
    ----------
    kind : str or None
        "csv", "tsv", "parquet" or "svmlight"; None where it is inferred from the file.
    separator : str or None
        Of a CSV file.
    header : bool
        Whether the first line of a CSV file names the columns.
    dtype : str
        Of X.
    targets : {"classes", "numbers", "none"}
        What the target holds.
    first_index : int or None
        Number of the first feature of svmlight text.
    target : str or None
        The column of targets of a table.
    features : tuple of str
        The columns of X of a table.
    words : tuple of str
        Those of them that hold categories.
    """

    kind: str | None = None
    separator: str | None = None
    header: bool = True
    dtype: str = "float64"
    targets: Targets = "classes"
    first_index: int | None = None
    target: str | None = None
    features: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Part(NamedTuple):
    """A file, or rows (Parquet) or bytes (CSV) of it; ``names`` are those of a header."""

    path: str
    start: int = 0
    length: int | None = None
    names: tuple[str, ...] = ()


class FileFacts(NamedTuple):
    """What is known of a file before its rows are read.

    ``groups`` are the rows and bytes of each row group of a Parquet file.
    """

    path: str
    kind: str
    n_bytes: int
    names: list[str]
    groups: list[tuple[int, int]]


class Loaded(NamedTuple):
    """The rows of a part: an array, a CSR matrix or a pandas frame, and targets, labels as text."""

    X: Any
    y: Labels | None
    first_index: int | None

    def __dask_sizeof__(self) -> int:
        """Return the bytes, for Dask's own account of the memory."""
        from dask.sizeof import sizeof

        return int(sizeof(self.X) + sizeof(self.y))


class PartContents(NamedTuple):
    """What was read of a part.

    ``labels`` counts the rows of every label; ``numbers`` are rows, mean, sum of squares about it,
    least and largest number of a regression.
    """

    number: int
    n_rows: int
    n_columns: int
    first_index: int | None
    labels: dict[Any, int]
    numbers: tuple[int, float, float, float, float]
    missing: dict[str, int]
    infinite: dict[str, int]


# Files -------------------------------------------------------------------------------------------


def survey(path: str, how: Format) -> list[FileFacts]:
    """Return the format, size and columns of a file, as this worker sees it."""
    if not Path(path).exists():
        raise DataFileError(
            f"{path}: no such file on a worker of the cluster: all machines must find the data "
            "under the same name, as in a shared folder."
        )
    size = Path(path).stat().st_size
    with local(path, how.kind) as (file, kind, source):
        if kind not in ("csv", "tsv", "parquet", "svmlight"):
            raise DataFileError(
                f"{source}: {kind} files are read by one process: use Parquet, CSV or svmlight "
                "text on a cluster."
            )
        if kind == "svmlight":
            return [FileFacts(path, kind, size, [], [])]
        text = TabularFile(file, kind, source, how.separator, how.header)
        names, groups = text.names, []
        if kind == "parquet":
            groups = _row_groups(file)
            size = sum(n_bytes for _, n_bytes in groups)
        else:
            size = file.stat().st_size
    return [FileFacts(path, kind, size, names, groups)]


def _row_groups(file: Path) -> list[tuple[int, int]]:
    """Return the rows and bytes of every row group of a Parquet file."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        held = opened.metadata
        groups = [held.row_group(k) for k in range(held.num_row_groups)]
        return [(group.num_rows, group.total_byte_size) for group in groups]


def parts_of(facts: FileFacts, block_bytes: int) -> list[Part]:
    """Return a file in parts of about so many bytes: row groups, or blocks of lines."""
    path = facts.path
    if facts.kind == "parquet":
        return _groups_as_parts(path, facts.groups, block_bytes)
    is_packed = Path(path).suffix.lower() in OPENERS
    if facts.kind == "svmlight" or is_packed or facts.n_bytes <= block_bytes:
        return [Part(path)]
    n = -(-facts.n_bytes // block_bytes)
    ends = [k * facts.n_bytes // n for k in range(n + 1)]
    return [Part(path, start, end - start, tuple(facts.names)) for start, end in pairwise(ends)]


def _groups_as_parts(path: str, groups: list[tuple[int, int]], block_bytes: int) -> list[Part]:
    parts, start, n_rows, n_bytes = [], 0, 0, 0
    for rows, size in groups:
        if n_rows and n_bytes + size > block_bytes:
            parts.append(Part(path, start, n_rows))
            start, n_rows, n_bytes = start + n_rows, 0, 0
        n_rows, n_bytes = n_rows + rows, n_bytes + size
    return [*parts, Part(path, start, n_rows)]


@contextmanager
def opened(part: Part, how: Format) -> Iterator[TabularFile]:
    """Yield a part of a table as a table."""
    dtype = np.dtype(how.dtype)
    if part.length is not None and how.kind != "parquet":
        with _block(part, how) as file:
            source = f"{part.path}, lines counted from byte {part.start}"
            text = TabularFile(file, str(how.kind), source, how.separator, how.header, dtype)
            yield replace(text, may_be_empty=True)
        return
    with local(part.path, how.kind) as (file, kind, source):
        text = TabularFile(file, kind, source, how.separator, how.header, dtype)
        rows = None if part.length is None else (part.start, part.length)
        yield replace(text, part=rows, may_be_empty=True)


@contextmanager
def _block(part: Part, how: Format) -> Iterator[Path]:
    """Yield a file with the lines of a block and the header of its file.

    A line belongs to the block in which it begins; quoted line breaks are not looked for.
    """
    from fsspec.utils import read_block

    with open(part.path, "rb") as stream:
        end = b"\n" if b"\n" in stream.read(1 << 16) else b"\r"
        lines = read_block(stream, part.start, part.length, delimiter=end)
    with tempfile.TemporaryDirectory(prefix="maxmargin") as folder:
        file = Path(folder) / "data"
        with file.open("wb") as out:
            if how.header and part.start:
                out.write(_header(part.names, how))
            out.write(lines)
        yield file


def _header(names: tuple[str, ...], how: Format) -> bytes:
    line, mark = io.StringIO(), how.separator or ("\t" if how.kind == "tsv" else ",")
    csv.writer(line, delimiter=mark, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def contents(number: int, part: Part, how: Format) -> list[tuple[int, dict[str, Contents]]]:
    """Return what the features of a part hold."""
    with opened(part, how) as text:
        return [(number, text.contents(list(how.features)))]


# Rows --------------------------------------------------------------------------------------------


def load(number: int, part: Part, how: Format) -> Loaded:
    """Read a part."""
    return loaded(number, part, how)[0]


def facts_of(number: int, part: Part, how: Format) -> list[PartContents]:
    """Read a part, and return what it holds."""
    return loaded(number, part, how)[1]


def loaded(number: int, part: Part, how: Format) -> tuple[Loaded, list[PartContents]]:
    """Return the rows of a part, and what they hold."""
    if how.kind == "svmlight":
        table = _svmlight(part, how)
        X = table.X
    else:
        table = _table(part, how)
        X = _as_pandas(table.X) if how.words else table.X
    return Loaded(X, table.y, table.first_index), [_contents(number, table, how.targets)]


def _svmlight(part: Part, how: Format) -> DataTable:
    with local(part.path, how.kind) as (file, _, source):
        dtype, is_labelled = np.dtype(how.dtype), how.targets != "none"
        return read_svmlight(
            file, source, dtype, None, how.first_index, is_labelled, how.targets
        )  # fmt: skip


def _table(part: Part, how: Format) -> DataTable:
    features, words = list(how.features), list(how.words)
    with opened(part, how) as text:
        column = TargetColumn(text, how.target, how.targets)
        X = as_frame(text, features, words, column) if words else as_array(text, features, column)
        return DataTable(X, column.part(), features, text.source, how.target)


def _as_pandas(frame: Any) -> Any:
    """Return a frame of polars as one of pandas, categories as text."""
    import polars as pl

    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String)).to_pandas()


def _contents(number: int, table: DataTable, targets: Targets) -> PartContents:
    labels: dict[Any, int] = {}
    numbers = (0, 0.0, 0.0, np.inf, -np.inf)
    y, n = table.y, int(table.X.shape[0])
    if y is not None and targets == "classes":
        # More than these are not classes, whatever they are.
        found = Counter(dict(zip(*_counted(y), strict=True)))
        labels = dict(found.most_common(MOST_CLASSES + 1))
    elif y is not None and n:
        mean = float(y.mean())
        numbers = n, mean, float(np.sum((y - mean) ** 2)), float(y.min()), float(y.max())
    return PartContents(
        number, n, int(table.X.shape[1]), table.first_index, labels, numbers, table.missing(),
        table.infinite(),
    )  # fmt: skip


def _counted(y: Labels) -> tuple[list[Any], list[int]]:
    values, counts = np.unique(y, return_counts=True)
    return values.tolist(), counts.tolist()


# What collections are made of --------------------------------------------------------------------


def rows_of(part: Loaded, n_columns: int, first_index: int | None) -> Any:
    """Return X of a part, CSR rows with the width of all parts."""
    X = part.X
    if part.first_index is None or first_index is None:
        return X
    shift = part.first_index - first_index
    indices = X.indices + shift if shift else X.indices
    return sparse.csr_matrix((X.data, indices, X.indptr), shape=(X.shape[0], n_columns), copy=False)


def labels_of(part: Loaded, words: Labels | None, labels: Labels | None) -> Any:
    """Return y of a part, text as the label that it stands for in all parts."""
    if words is None or labels is None or part.y is None:
        return part.y
    return labels[np.searchsorted(words, part.y)]
