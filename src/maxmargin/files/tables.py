"""Tables of files with columns: features and target, whole or some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Matrix
from .column_types import polars
from .dates import DateColumn, check_dates, find_dates, present_dates
from .dialect import Dialect
from .headers import has_header
from .index_columns import dropped_note, index_columns
from .table import DOUBLE, DataFileError, DataTable, cut, find_column, listed
from .tabular import KEPT, TabularFile
from .targets import Labelled, TargetColumn, Targets, labels_of, numbers_of
from .unpacking import plain_table

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Opened:
    """A table that is ready to be read, and what was found out about it."""

    text: TabularFile
    how: Dialect
    words: tuple[str, ...]
    encoding: str | None
    notes: list[str]

    def learnt(self, dates: Sequence[DateColumn]) -> dict[str, Any]:
        """Return what is needed to read other files of this kind."""
        kept = self.how.learnt(self.encoding)
        made = {date.column: date.record() for date in dates}
        return kept | ({"dates": made} if made else {})


@contextmanager
def opened(
    file: Path, kind: str, source: str, how: Dialect, dtype: np.dtype[Any], wanted: Sequence[str]
) -> Iterator[Opened]:
    """Yield the table of a file; ``wanted`` are columns that are asked for."""
    with plain_table(file, kind, source, how) as plain:
        text = TabularFile(
            plain.file, plain.kind, source, how.separator, how.header is not False, dtype,
            style=how.style,
        )  # fmt: skip
        notes, header = list(plain.notes), plain.has_names
        if header is None and how.header == "auto" and not text.is_typed:
            text.lines.check_separator()
            header, note = has_header(text.lines, how.style, wanted)
            notes += [] if note is None else [note]
        elif header is None:
            header = how.header is not False
        text = replace(text, header=header)
        notes = [f"{source}: {note}" for note in notes]
        yield Opened(text, replace(how, header=header), plain.words, plain.encoding, notes)


def read_tabular(
    file: Path,
    kind: str,
    source: str,
    target: str | None,
    how: Dialect,
    drop: Sequence[str],
    dtype: np.dtype[Any],
    labelled: Labelled,
    as_words: Sequence[str] = (),
    targets: Targets = "classes",
    as_text: Sequence[str] = (),
) -> DataTable:
    """Read a table: one array of floats, or a frame where some column holds categories."""
    asked = [*([target] if target is not None else []), *drop, *as_words, *as_text]
    with opened(file, kind, source, how, dtype, asked) as table:
        text, names = table.text, table.text.names
        label = target_column(target, names, source, labelled if targets != "none" else False)
        features, dropped = features_of(names, label, drop, source)
        notes, likely = list(table.notes), list[str]()
        if not how.keep_index:
            certain, likely = index_columns(text, features)
            if certain:
                features, dropped = features_of(names, label, [*dropped, *certain], source)
                notes.append(f"{source}: {dropped_note(certain)}")
        long = _columns(as_text, features, names, source, "text")
        named = _columns(as_words, features, names, source, "word")
        declared = [c for c in table.words if c in features]
        text, features, dates = _with_dates(text, features, {*long, *named}, how, notes)
        known = {*named, *long, *declared}
        words = [*text.words([f for f in features if f not in known]), *known]
        words.sort(key=features.index)
        column = TargetColumn(text, None if targets == "none" else label, targets)
        if words:
            X: Matrix = as_frame(text, features, words, column, long)
        else:
            X = as_array(text, features, column)
        return DataTable(
            X, column.values(), features, source, label, dropped, None, table.learnt(dates), notes,
            [c for c in likely if c in features and c not in long],
        )  # fmt: skip


def _columns(
    wanted: Sequence[str], features: list[str], names: list[str], source: str, role: str
) -> list[str]:
    """Return those features that are wanted, by their names or numbers."""
    found = [names[find_column(name, names, source, role)] for name in wanted]
    return [name for name in dict.fromkeys(found) if name in features]


def _with_dates(
    text: TabularFile, features: list[str], others: set[str], how: Dialect, notes: list[str]
) -> tuple[TabularFile, list[str], list[DateColumn]]:
    """Return the table and its features with columns made of dates, where that is asked for."""
    if how.dates is None:
        return text, features, []
    candidates = [c for c in features if c not in others]
    dates, told = find_dates(text, candidates, how.dates, how.date_format)
    if not dates:
        raise DataFileError(
            f"{text.source}: --dates has no effect: no column holds dates; the file has "
            f"{listed(candidates)}."
        )
    notes += [f"{text.source}: {note}" for note in told]
    made = {date.column: date.names for date in dates}
    text = replace(text, dates=tuple(dates))
    check_dates(text, dates)
    return text, [name for c in features for name in made.get(c, [c])], dates


def tabular_batches(
    file: Path,
    kind: str,
    source: str,
    names: list[str] | None,
    words: Sequence[str] | None,
    target: str | None,
    how: Dialect,
    labelled: Labelled,
    targets: Targets = "classes",
    as_text: Sequence[str] = (),
    dates: Sequence[DateColumn] = (),
    keep: Sequence[str] | None = (),
) -> Iterator[DataTable]:
    """Yield rows of the wanted columns as frames, labels as text, other targets as numbers.

    Those of ``keep`` (None for all) are also in ``kept``, as they are in the file.
    """
    pl = polars()
    asked = [*(names or []), *(date.column for date in dates)]
    with opened(file, kind, source, how, DOUBLE, [*asked, *([target] if target else [])]) as table:
        text = replace(table.text, dates=present_dates(table.text, dates))
        check_dates(text, text.dates)
        label = target_column(target, text.names, source, labelled if targets != "none" else False)
        wanted = [n for n in text.names if n != label] if names is None else names
        _check_wanted(wanted, text, label, targets)
        kept = _kept(keep, table.text.names, source)
        text = replace(text, kept=tuple(kept))
        if words is None:
            words = [*text.words([c for c in wanted if c not in as_text]), *as_text]
        else:
            text.check_numbers([name for name in wanted if name not in words])
        read = None if targets == "none" else label
        for piece in text.pieces(wanted, words, read):
            frame = piece.with_columns(pl.col(c).fill_null("") for c in as_text)
            y = None
            if read is not None and targets == "numbers":
                y = numbers_of(frame[read], text)
            elif read is not None:
                y = labels_of(frame[read], text, required=labelled != "if present")
            others = frame.select(pl.col(KEPT + c).alias(c) for c in kept) if kept else None
            yield DataTable(
                frame.select(wanted), y, wanted, source, label, notes=table.notes, kept=others
            )


def _kept(keep: Sequence[str] | None, names: list[str], source: str) -> list[str]:
    """Return the columns that are kept as they are, None for all."""
    if keep is None:
        return names
    return list(dict.fromkeys(names[find_column(c, names, source, "kept")] for c in keep))


def _check_wanted(wanted: list[str], text: TabularFile, label: str | None, targets: str) -> None:
    """Raise where a table lacks a column of the model, or has one of them as target."""
    if label in wanted and targets != "none":
        raise DataFileError(
            f"{text.source}: column {cut(label)} is a feature of the model and cannot be its "
            "target."
        )
    lacking = [name for name in wanted if name not in text.names]
    if lacking:
        raise DataFileError(
            f"{text.source}: the columns {', '.join(cut(c) for c in lacking[:20])}"
            f"{', …' if len(lacking) > 20 else ''}, on which the model was fitted, are missing; "
            f"the file has {listed(text.names)}."
        )


def features_of(
    names: list[str], label: str | None, drop: Sequence[str], source: str
) -> tuple[list[str], list[str]]:
    """Return the columns that are features, and those that are dropped."""
    out = {find_column(name, names, source, "dropped") for name in drop}
    features = [n for k, n in enumerate(names) if n != label and k not in out]
    dropped = [names[k] for k in sorted(out)]
    if label in dropped:
        raise DataFileError(f"{source}: column {cut(label)} is the target and cannot be dropped.")
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
        f"{source}: pass the column of labels as target; the file has {listed(names)}."
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
    text: TabularFile,
    features: list[str],
    words: list[str],
    column: TargetColumn,
    long: Sequence[str] = (),
) -> pl.DataFrame:
    """Return a frame with columns of categories and long text; give the target its pieces."""
    pl = polars()
    number = pl.Float64 if text.dtype == DOUBLE else pl.Float32
    categories = [c for c in words if c not in long]
    columns = [
        pl.col(c).fill_null("")
        if c in long
        else pl.col(c).cast(pl.Categorical if c in categories else number)
        for c in features
    ]
    schema = {c: pl.String if c in words else number for c in features}
    frames = [pl.DataFrame(schema=schema).select(columns)]
    for frame in text.pieces(features, words, column.name):
        frames.append(frame.select(columns))
        column.add(frame)
    return pl.concat(frames, rechunk=True)
