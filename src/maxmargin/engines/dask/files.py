"""Many data files as Dask collections: what they hold is found and read on the workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask
import numpy as np
from scipy import sparse

from ...arrays import Floats, Labels
from ...files.table import DataFileError, find_column, require_classes
from ...files.tables import features_of, target_column
from ...files.tabular import Contents
from ...files.targets import words_as_labels
from .cluster import Cluster, Handle
from .collections import array_of_parts
from .file_parts import (
    FileFacts,
    Format,
    Part,
    PartContents,
    contents,
    facts_of,
    labels_of,
    load,
    loaded,
    parts_of,
    rows_of,
    survey,
)


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    block_bytes: int = 100_000_000  # of a part of a large file
    # The share of the memory of all workers up to which what was read is kept there. A fit keeps
    # prepared rows besides.
    held_share: float = 0.2


TUNING = Tuning()


@dataclass(frozen=True)
class FileCollection:
    """The rows of many files as collections, and what they hold.

    Parameters
    ----------
    X : dask.array or dask.dataframe
        A frame where some column holds categories, else floats, dense or CSR.
    y : dask.array or None
        Labels, integers where all of them are whole numbers, else text; or numbers.
    source : str
        What the files are called in messages.
    n_files, n_rows, n_columns : int
    names : list of str or None
        The columns of X; None where the files have no names.
    target : str or None
        The column of y.
    dropped : list of str
        Columns that were left out.
    first_index : int or None
        The number of the first feature in svmlight files.
    classes : dict
        Rows of every label.
    mean, std, least, largest : float
        Of the targets of a regression.
    missing, infinite : dict of str to int
        Values by column, of those that have any.
    """

    X: Any
    y: Any
    source: str
    n_files: int
    n_rows: int
    n_columns: int
    names: list[str] | None
    target: str | None
    dropped: list[str]
    first_index: int | None
    classes: dict[Any, int]
    mean: float
    std: float
    least: float
    largest: float
    missing: dict[str, int]
    infinite: dict[str, int]


def read_files(
    paths: Sequence[str],
    how: Format,
    *,
    source: str,
    drop: Sequence[str] = (),
    words: Sequence[str] = (),
) -> FileCollection:
    """Return the rows of files as partitions of collections.

    Workers read the files: row groups of Parquet, blocks of CSV and whole svmlight files become
    partitions. What was read is kept there if it takes a fifth of their memory at most.

    Parameters
    ----------
    paths : sequence of str
        The files, as the workers find them, of one format.
    how : Format
        Without the columns, which are found here.
    source : str
        What to call the files in messages.
    drop, words : sequence of str
        Columns to leave out, and to be read as categories.
    """
    cluster = Cluster.current()
    found = cluster.round(survey, _joined, list(paths), common=(how,), reads=False)
    by_path = {each.path: each for each in found}
    files = [by_path[path] for path in paths]
    how = replace(how, kind=_common_kind(files))
    parts = [part for each in files for part in parts_of(each, TUNING.block_bytes)]
    dropped: list[str] = []
    if how.kind != "svmlight":
        _require_same_columns(files)
        how, dropped = _chosen(how, files[0], drop)
        how = replace(how, words=_words(cluster, parts, how, words, files[0].path))
    elif drop or words:
        raise DataFileError(
            f"{source}: drop and words need names of columns, which svmlight files do not have."
        )
    handles, facts = _read(cluster, parts, how, sum(each.n_bytes for each in files))
    return _collected(handles, facts, how, source, len(files), dropped)


def _joined(lists: list[list[Any]]) -> list[Any]:
    return [each for some in lists for each in some]


# Columns -----------------------------------------------------------------------------------------


def _common_kind(files: list[FileFacts]) -> str:
    kinds = {each.kind: each.path for each in files}
    if len(kinds) > 1:
        places = ", ".join(f"{path} is {kind}" for kind, path in kinds.items())
        raise DataFileError(f"The files must be of one format, but {places}.")
    return next(iter(kinds))


def _require_same_columns(files: list[FileFacts]) -> None:
    """Raise for files whose columns differ, in whatever order."""
    first = files[0]
    for each in files[1:]:
        odd = sorted(set(first.names) ^ set(each.names))
        if odd:
            has, lacks = (first, each) if odd[0] in first.names else (each, first)
            raise DataFileError(
                f"{each.path}: the files must have the same columns, but {odd[0]!r} of "
                f"{has.path} is not in {lacks.path}."
            )


def _chosen(how: Format, first: FileFacts, drop: Sequence[str]) -> tuple[Format, list[str]]:
    """Add the columns of X and y; return those that are dropped besides."""
    is_labelled = how.targets != "none"
    label = target_column(how.target, first.names, first.path, is_labelled)
    features, dropped = features_of(first.names, label, drop, first.path)
    target = label if is_labelled else None
    return replace(how, target=target, features=tuple(features)), dropped


def _words(
    cluster: Cluster, parts: list[Part], how: Format, named: Sequence[str], path: str
) -> tuple[str, ...]:
    """Return the columns of categories: those that hold text in most parts."""
    features = list(how.features)
    chosen = {features[find_column(name, features, path, "word")] for name in named}
    asked = replace(how, features=tuple(name for name in features if name not in chosen))
    numbers = list(range(len(parts)))
    found = cluster.round(contents, _joined, numbers, parts, common=(asked,), reads=False)
    held = dict(found)
    return tuple(
        name
        for name in features
        if name in chosen or _is_words(name, [held[k][name] for k in numbers], parts)
    )


def _is_words(name: str, held: list[Contents], parts: list[Part]) -> bool:
    counts = Counter(held)
    if counts["words"] and counts["numbers"] > counts["words"]:
        path = parts[held.index("words")].path
        raise DataFileError(
            f"{path}: column {name!r} holds text, but numbers in {counts['numbers']} of "
            f"{len(parts)} partitions: correct it, or read it as categories (words)."
        )
    return bool(counts["words"]) or not counts["numbers"]


# Rows --------------------------------------------------------------------------------------------


def _read(
    cluster: Cluster, parts: list[Part], how: Format, n_bytes: int
) -> tuple[list[Handle], list[PartContents]]:
    """Return what was read where there is room for it, else lazily, and what it holds."""
    columns = list(range(len(parts))), parts
    handles: list[Handle]
    if n_bytes <= TUNING.held_share * cluster.backend.memory:
        handles, facts = cluster.step(loaded, _joined, *columns, common=(how,))
    else:
        facts = cluster.round(facts_of, _joined, *columns, common=(how,))
        lazy = dask.delayed(load, pure=False, traverse=False)
        handles = [lazy(*each, how) for each in zip(*columns, strict=True)]
    return handles, sorted(facts, key=lambda fact: fact.number)


def _collected(
    handles: list[Handle],
    facts: list[PartContents],
    how: Format,
    source: str,
    n_files: int,
    dropped: list[str],
) -> FileCollection:
    n_rows = sum(fact.n_rows for fact in facts)
    if not n_rows:
        raise DataFileError(f"{source}: there are no rows.")
    firsts = {fact.first_index for fact in facts if fact.first_index is not None}
    first = min(firsts, default=None)
    width = max(
        fact.n_columns + (fact.first_index - first if first is not None else 0)  # type: ignore[operator]
        for fact in facts
    )
    n, mean, squares, least, largest = _merged_numbers(facts)
    words, labels, classes = _common_labels(facts, how, source)
    # Dask leaves parts without rows out of arrays, but not out of frames: X and y would differ.
    filled = [k for k, fact in enumerate(facts) if fact.n_rows]
    handles, sized = [handles[k] for k in filled], [facts[k] for k in filled]
    return FileCollection(
        _rows(handles, sized, how, width, first),
        None if how.targets == "none" else _labels(handles, sized, words, labels),
        source, n_files, n_rows, width, list(how.features) or None, how.target, dropped, first,
        classes, mean, float(np.sqrt(squares / max(n, 1))), least, largest,
        _summed(fact.missing for fact in facts), _summed(fact.infinite for fact in facts),
    )  # fmt: skip


def _summed(counts: Any) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _merged_numbers(facts: list[PartContents]) -> tuple[int, float, float, float, float]:
    """Return rows, mean, squares about it, least and largest target of all parts."""
    n, mean, squares, least, largest = 0, 0.0, 0.0, np.inf, -np.inf
    for here, centre, about, low, high in (fact.numbers for fact in facts if fact.numbers[0]):
        step = centre - mean
        squares += about + step * step * n * here / (n + here)
        n, mean = n + here, mean + step * here / (n + here)
        least, largest = min(least, low), max(largest, high)
    return n, mean, squares, least, largest


def _common_labels(
    facts: list[PartContents], how: Format, source: str
) -> tuple[Labels | None, Labels | None, dict[Any, int]]:
    """Return the labels of all parts as text, what they stand for, and the rows of each."""
    if how.targets != "classes":
        return None, None, {}
    where = "the label" if how.target is None else f"column {how.target!r}"
    counts = _summed(fact.labels for fact in facts)
    n_rows = sum(fact.n_rows for fact in facts)
    if how.kind == "svmlight":
        found = np.array(sorted(counts))
        require_classes(found, n_rows, source, where)
        return None, None, {label: counts[label] for label in found.tolist()}
    words = sorted(counts)
    labels = words_as_labels(words, source, where)
    classes: Counter[Any] = Counter()
    for word, label in zip(words, labels.tolist(), strict=True):
        classes[label] += counts[word]  # 1 and 1.0 are one label
    require_classes(np.unique(labels), n_rows, source, where)
    return np.array(words), labels, dict(sorted(classes.items()))


def _rows(
    handles: list[Handle], facts: list[PartContents], how: Format, width: int, first: int | None
) -> Any:
    """Return X, with the sizes of its partitions; a frame where some column holds text."""
    take = dask.delayed(rows_of, pure=False, traverse=False)
    parts = [take(handle, width, first) for handle in handles]
    if how.words:
        return _frame(parts, how)
    meta: Floats | Any = np.empty((0, width), dtype=how.dtype)
    meta = sparse.csr_matrix(meta) if how.kind == "svmlight" else meta
    return array_of_parts(parts, [fact.n_rows for fact in facts], meta)


def _frame(parts: list[Any], how: Format) -> Any:
    import dask.dataframe as dd
    import pandas as pd

    empty = {
        name: pd.Series([], dtype="str" if name in how.words else how.dtype)
        for name in how.features
    }
    return dd.from_delayed(parts, meta=pd.DataFrame(empty), verify_meta=False)


def _labels(
    handles: list[Handle], facts: list[PartContents], words: Labels | None, labels: Labels | None
) -> Any:
    take = dask.delayed(labels_of, pure=False, traverse=False)
    dtype = labels.dtype if labels is not None else np.dtype(np.float64)
    if labels is None and facts[0].labels:
        dtype = np.dtype(np.int64)
    parts = [take(handle, words, labels) for handle in handles]
    return array_of_parts(parts, [fact.n_rows for fact in facts], np.empty(0, dtype=dtype))
