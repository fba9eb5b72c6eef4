"""Tables of CSV, TSV and Parquet files: features and target, whole or some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Matrix
from .column_types import polars
from .table import DOUBLE, DataFileError, DataTable, find_column
from .tabular import TabularFile
from .targets import Labelled, TargetColumn, Targets, labels_of, numbers_of

if TYPE_CHECKING:
    import polars as pl


def read_tabular(
    file: Path,
    kind: str,
    source: str,
    target: str | None,
    separator: str | None,
    header: bool,
    drop: Sequence[str],
    dtype: np.dtype[Any],
    labelled: Labelled,
    as_words: Sequence[str] = (),
    targets: Targets = "classes",
) -> DataTable:
    """Read a table: one array of floats, or a frame where some column holds categories."""
    text = TabularFile(file, kind, source, separator, header, dtype)
    names = text.names
    label = target_column(target, names, source, labelled if targets != "none" else False)
    features, dropped = features_of(names, label, drop, source)
    named = {names[find_column(name, names, source, "word")] for name in as_words}
    words = [*text.words([f for f in features if f not in named]), *(named & set(features))]
    words.sort(key=features.index)
    column = TargetColumn(text, None if targets == "none" else label, targets)
    X = as_frame(text, features, words, column) if words else as_array(text, features, column)
    return DataTable(X, column.values(), features, source, label, dropped)


def tabular_batches(
    file: Path,
    kind: str,
    source: str,
    names: list[str] | None,
    words: Sequence[str] | None,
    target: str | None,
    separator: str | None,
    header: bool,
    labelled: Labelled,
    targets: Targets = "classes",
) -> Iterator[DataTable]:
    """Yield rows of the wanted columns as frames, labels as text, other targets as numbers."""
    text = TabularFile(file, kind, source, separator, header)
    label = target_column(target, text.names, source, labelled if targets != "none" else False)
    wanted = [n for n in text.names if n != label] if names is None else names
    if label in wanted and targets != "none":
        raise DataFileError(
            f"{source}: column {label!r} is a feature of the model and cannot be its target."
        )
    lacking = [name for name in wanted if name not in text.names]
    if lacking:
        raise DataFileError(
            f"{source}: the columns {', '.join(map(repr, lacking))}, on which the model was "
            f"fitted, are missing; the file has {', '.join(text.names)}."
        )
    if words is None:
        words = text.words(wanted)
    else:
        text.check_numbers([name for name in wanted if name not in words])
    read = None if targets == "none" else label
    for frame in text.pieces(wanted, words, read):
        y = None
        if read is not None and targets == "numbers":
            y = numbers_of(frame[read], text)
        elif read is not None:
            y = labels_of(frame[read], text, required=labelled != "if present")
        yield DataTable(frame.select(wanted), y, wanted, source, label)


def features_of(
    names: list[str], label: str | None, drop: Sequence[str], source: str
) -> tuple[list[str], list[str]]:
    """Return the columns that are features, and those that are dropped."""
    out = {find_column(name, names, source, "dropped") for name in drop}
    features = [n for k, n in enumerate(names) if n != label and k not in out]
    dropped = [names[k] for k in sorted(out)]
    if label in dropped:
        raise DataFileError(f"{source}: column {label!r} is the target and cannot be dropped.")
    if not features:
        used = [f"{label}, the target"] if label is not None else []
        used += [f"{', '.join(dropped)}, dropped"] if dropped else []
        raise DataFileError(f"{source}: no feature is left besides {', and '.join(used)}.")
    return features, dropped


def target_column(
    target: str | None, names: list[str], source: str, labelled: Labelled
) -> str | None:
    """Return the name of the column of targets, None where there is none."""
    if labelled == "if present":
        return target if target in names else None
    if target is not None:
        return names[find_column(target, names, source)]
    if not labelled:
        return None
    raise DataFileError(
        f"{source}: pass the column of labels as target; the file has {', '.join(names[:20])}."
    )


def as_array(text: TabularFile, features: list[str], column: TargetColumn) -> Matrix:
    """Return one array, filled piece by piece, and give the target its pieces."""
    X = np.empty((text.count(), len(features)), dtype=text.dtype)
    n = 0
    for frame in text.pieces(features, [], column.name):
        X[n : n + len(frame)] = frame.select(features).to_numpy()
        n += len(frame)
        column.add(frame)
    return X[:n]


def as_frame(
    text: TabularFile, features: list[str], words: list[str], column: TargetColumn
) -> pl.DataFrame:
    """Return a frame with categorical columns, and give the target its pieces."""
    pl = polars()
    number = pl.Float64 if text.dtype == DOUBLE else pl.Float32
    columns = [pl.col(c).cast(pl.Categorical if c in words else number) for c in features]
    schema = {c: pl.String if c in words else number for c in features}
    frames = [pl.DataFrame(schema=schema).select(columns)]
    for frame in text.pieces(features, words, column.name):
        frames.append(frame.select(columns))
        column.add(frame)
    return pl.concat(frames, rechunk=True)
