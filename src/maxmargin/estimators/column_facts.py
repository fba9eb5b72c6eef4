"""What a table holds, column by column: numbers or words, their counts, means and spreads.

Facts of some rows are merged with those of others, so that the rows may be in partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import Floats, Labels, MatrixLike

# Numbers worked on at a time: a block of rows in float64 stays in cache.
BLOCK = 1 << 18
# Different words of a column that are counted.
MOST_WORDS = 10_000


class Words(NamedTuple):
    """The words of a column: text, and numbers as text."""

    is_text: bool  # whether some are not numbers
    counts: Counter[str]
    more: bool = False  # whether there are others, which were not counted
    unknown: bool = False  # whether they were not counted in some rows


class Facts(NamedTuple):
    """What some rows hold.

    Parameters
    ----------
    n : int
        The number of rows.
    missing : ndarray of int of shape (n_columns,)
        Values that are missing.
    mean, squares : ndarray of shape (n_columns,)
        Of the numbers that are not missing: their mean, and the sum of (x − mean)².
    words : dict
        `Words` of the columns that may hold text.
    """

    n: int
    missing: NDArray[np.int64]
    mean: Floats
    squares: Floats
    words: dict[int, Words]


def facts_of(columns: Columns, may_hold_text: list[int]) -> Facts:
    """Return the facts of rows; the words of these columns are counted even if all are numbers."""
    if sparse.issparse(columns.X):
        return _sparse_facts(columns)
    d = columns.shape[1]
    found = Facts(0, np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d), {})
    blocks = (_block_facts(columns, block, may_hold_text) for block in columns.blocks(d))
    return reduce(lambda all_facts, facts: merged([all_facts, facts]), blocks, found)


def text_columns(columns: Columns) -> list[int]:
    """Return the columns whose type allows text."""
    if not is_frame(columns.X):
        return [] if columns.is_numeric else list(range(columns.shape[1]))
    return [k for k in range(columns.shape[1]) if columns.kind(k) not in "biuf"]


def merged(parts: list[Facts]) -> Facts:
    """Return the facts of the rows of all parts (Chan, Golub, LeVeque, 1983)."""
    parts = [part for part in parts if part.n] or parts[:1]
    known = [part.n - part.missing for part in parts]
    total = np.maximum(np.sum(known, axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.sum([n / total * p.mean for n, p in zip(known, parts, strict=True)], axis=0)
        squares = np.sum(
            [p.squares + n * (p.mean - mean) ** 2 for n, p in zip(known, parts, strict=True)],
            axis=0,
        )
    return Facts(
        sum(part.n for part in parts),
        np.sum([part.missing for part in parts], axis=0),
        mean,
        squares,
        {k: _merged_words(k, parts) for k in sorted({k for part in parts for k in part.words})},
    )


def _merged_words(k: int, parts: list[Facts]) -> Words:
    """Return the words of a column in all parts."""
    known = [part.words[k] for part in parts if k in part.words]
    counts: Counter[str] = Counter()
    for words in known:
        counts.update(words.counts)
    more = len(counts) > MOST_WORDS or any(words.more for words in known)
    unknown = any(
        part.words[k].unknown if k in part.words else part.missing[k] < part.n for part in parts
    )
    counts = counts if len(counts) <= MOST_WORDS else Counter(dict(counts.most_common(MOST_WORDS)))
    return Words(any(words.is_text for words in known), counts, more, unknown)


def _block_facts(columns: Columns, block: slice, may_hold_text: list[int]) -> Facts:
    words: dict[int, Words] = {}
    if columns.is_numeric:
        values = columns.X[block].astype(np.float64)
    else:
        values = np.zeros((block.stop - block.start, columns.shape[1]))
        for k in range(columns.shape[1]):
            column = columns.column(k, block)
            is_text = column.dtype.kind != "f"
            if is_text or k in may_hold_text:
                counts = Counter(words_of(column))
                counts.pop(None, None)
                words[k] = Words(is_text, counts)  # type: ignore[arg-type]
            values[:, k] = [np.nan if v is None else 0.0 for v in column] if is_text else column
    n, missing = values.shape[0], np.zeros(columns.shape[1], dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = values.sum(axis=0) / n
        if np.isnan(mean).any():
            gaps = np.isnan(values)
            missing = gaps.sum(axis=0)
            mean = np.where(gaps, 0.0, values).sum(axis=0) / np.maximum(n - missing, 1)
            np.copyto(values, mean, where=gaps)
        values -= mean
        squares = np.einsum("ij,ij->j", values, values)
    return Facts(n, missing, mean, squares, words)


def _sparse_facts(columns: Columns) -> Facts:
    """Return the facts of a CSR matrix: what is not stored is 0."""
    X, n, missing = columns.X, columns.shape[0], columns.missing()
    if missing.any():
        nothing = np.zeros(columns.shape[1])
        return Facts(n, missing, nothing, nothing, {})
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    squares = np.zeros(columns.shape[1])
    np.add.at(squares, X.indices, np.square(X.data - mean[X.indices]))
    stored = np.bincount(X.indices, minlength=columns.shape[1])
    return Facts(n, missing, mean, squares + (n - stored) * mean**2, {})


class Columns:
    """One way to the columns of an array, a CSR matrix or a frame."""

    def __init__(self, X: MatrixLike, names: list[str] | None) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.is_numeric = not is_frame(X) and X.dtype.kind in "biuf"
        self.names = names

    def name(self, k: int) -> str:
        """Return what to call a column."""
        return f"column {k}" if self.names is None else f"column {self.names[k]!r}"

    def kind(self, k: int) -> str:
        """Return the kind of NumPy's type of a column."""
        return np.asarray(self.X[self.X.columns[k]][:1]).dtype.kind

    def is_single(self, categories: list[list[str] | None]) -> bool:
        """Whether all numbers are float32."""
        if not is_frame(self.X):
            return bool(self.X.dtype == np.float32)
        numbers = [self.X.columns[k] for k, words in enumerate(categories) if words is None]
        return bool(numbers) and all(np.asarray(self.X[c][:1]).dtype == np.float32 for c in numbers)

    def blocks(self, width: int) -> Iterator[slice]:
        """Yield slices of rows."""
        step = max(1, BLOCK // max(1, width))
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))

    def column(self, k: int, block: slice | None = None) -> Labels:
        """Return a column: float64, NaN where missing, or an object array of text and None."""
        block = slice(0, self.shape[0]) if block is None else block
        if not is_frame(self.X):
            return _typed(self.X[block, k], self.name(k))
        column = self.X[self.X.columns[k]]
        some = column.iloc[block] if hasattr(column, "iloc") else column[block]
        return _typed(np.asarray(some), self.name(k))

    def missing(self) -> NDArray[np.int64]:
        """Return how many values are missing in each column."""
        counts = np.zeros(self.shape[1], dtype=np.int64)
        if sparse.issparse(self.X):
            bad = np.isnan(self.X.data) if self.X.dtype.kind == "f" else np.zeros(0, dtype=bool)
            if bad.any():
                counts += np.bincount(self.X.indices[bad], minlength=self.shape[1])
            return counts
        for block in self.blocks(self.shape[1]):
            if self.is_numeric:
                counts += np.isnan(self.X[block]).sum(axis=0)
                continue
            for k in range(self.shape[1]):
                values = self.column(k, block)
                if values.dtype.kind == "f":
                    counts[k] += np.count_nonzero(np.isnan(values))
                else:
                    counts[k] += values.tolist().count(None)
        return counts


def is_frame(X: MatrixLike) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape") and not sparse.issparse(X)


def _typed(values: Labels, name: str) -> Labels:
    """Return numbers as float64, all else as text; None is a missing value."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind not in "OUST":
        raise ValueError(
            f"{name} holds values of type {values.dtype}: pass numbers or text, or drop it."
        )
    plain = [None if _is_missing(v) else v for v in values.tolist()]
    if all(v is None or isinstance(v, (bool, int, float, np.number, np.bool_)) for v in plain):
        return np.array([np.nan if v is None else float(v) for v in plain], dtype=np.float64)
    typed = np.empty(len(plain), dtype=object)
    for k, v in enumerate(plain):
        if v is not None and not isinstance(v, (str, bool, int, float, np.number, np.bool_)):
            raise TypeError(
                f"argument must be a string or a number: {name} holds a {type(v).__name__}."
            )
        typed[k] = v if v is None or isinstance(v, str) else _word(v)
    return typed


def _is_missing(value: object) -> bool:
    # NaN is what differs from itself; pandas' NA answers neither yes nor no.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _word(value: Any) -> str:
    """Return a number as text, as a file has it."""
    number = float(value)
    return str(int(number)) if number.is_integer() else str(number)


def words_of(values: Labels) -> list[str | None]:
    """Return text, also where a block of it looks like numbers."""
    if values.dtype.kind == "f":
        return [None if np.isnan(v) else _word(v) for v in values.tolist()]
    return values.tolist()


def numbers_of(values: Labels, name: str, fill: float | str | None) -> Floats:
    """Return numbers, also where a block of them came as text."""
    if values.dtype.kind != "f":
        try:
            values = np.array([np.nan if v is None else float(v) for v in values.tolist()])
        except ValueError as error:
            raise ValueError(f"{name} held numbers in the fit: {error}.") from None
    return values if fill is None else np.where(np.isnan(values), fill, values)
