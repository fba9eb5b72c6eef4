"""Exact medians of columns in partitions, without bringing the columns together.

A float64 is mapped to a 64-bit key in the same order. Every round counts the keys of each of
`BINS` equal parts of an interval, and goes on with the part that holds the rank searched for, until
few values are left, which are fetched. What moves per round is O(BINS) numbers per column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers, MatrixLike
from ..engines.registry import reduced_partitions
from .column_facts import numbers_of

if TYPE_CHECKING:
    from .column_encoder import ColumnEncoder

Keys = NDArray[np.uint64]

# Bits of a key that a round decides, the parts of an interval, and values that are fetched.
BITS = 11
BINS = 1 << BITS
FETCHED = 2048


class Search(NamedTuple):
    """One order statistic of a column: the value of this rank among the keys of an interval."""

    column: int
    rank: int
    low: int = 0
    bits: int = 64  # the interval holds 2^bits keys, from low on
    n: int = 1 << 62  # values in the interval, many before the first round


def medians_of_partitions(
    encoder: ColumnEncoder, X: Any, columns: list[int], known: Integers
) -> list[float]:
    """Return the medians of columns of a collection that have so many known values each."""
    searches = [
        Search(k, rank)
        for k, n in zip(columns, known.tolist(), strict=True)
        for rank in ((n - 1) // 2, n // 2)
    ]
    while any(_goes_on(search) for search in searches):
        counts = reduced_partitions(encoder, partial(_count, searches), _added, X)
        searches = [
            _narrowed(s, c) if _goes_on(s) else s for s, c in zip(searches, counts, strict=True)
        ]
    values = reduced_partitions(encoder, partial(_fetch, searches), _joined, X)
    found = [
        _value(search.low) if not search.bits else float(np.sort(some)[search.rank])
        for search, some in zip(searches, values, strict=True)
    ]
    return [0.5 * (low + high) for low, high in zip(found[::2], found[1::2], strict=True)]


def _goes_on(search: Search) -> bool:
    return search.bits > 0 and search.n > FETCHED


def _narrowed(search: Search, counts: Integers) -> Search:
    """Return the search in the part of the interval that holds the rank."""
    if not _goes_on(search):
        return search
    ends = np.cumsum(counts)
    k = int(np.searchsorted(ends, search.rank, side="right"))
    before = int(ends[k - 1]) if k else 0
    bits = max(search.bits - BITS, 0)
    low = search.low + (k << bits)
    return Search(search.column, search.rank - before, low, bits, int(counts[k]))


def _keys(values: Floats) -> Keys:
    """Return 64-bit numbers in the order of the values."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    sign = np.uint64(1 << 63)
    keys: Keys = np.where(bits & sign, ~bits, bits | sign)
    return keys


def _value(key: int) -> float:
    """Return the float64 of a key."""
    sign = 1 << 63
    bits = key ^ sign if key & sign else key ^ ((1 << 64) - 1)
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])


# What workers do ----------------------------------------------------------------------------------


def _known(encoder: ColumnEncoder, X: MatrixLike, column: int) -> Floats:
    rows = encoder._rows(X, reset=False)
    values = numbers_of(rows.column(column), rows.name(column), None)
    # −0.0 and 0.0 are one value.
    return values[~np.isnan(values)] + 0.0


def _inside(keys: Keys, search: Search) -> NDArray[np.bool_]:
    """Return which keys are in the interval of a search."""
    low, last = search.low, search.low + (1 << search.bits) - 1
    inside: NDArray[np.bool_] = (keys >= np.uint64(low)) & (keys <= np.uint64(last))
    return inside


def _count(
    searches: Sequence[Search], encoder: ColumnEncoder, X: MatrixLike, y: None, weights: None
) -> list[Integers]:
    """Return how many values are in each part of the intervals."""
    counts = []
    for search in searches:
        if not _goes_on(search) or not X.shape[0]:
            counts.append(np.zeros(BINS, dtype=np.intp))
            continue
        keys = _keys(_known(encoder, X, search.column))
        offsets = keys[_inside(keys, search)] - np.uint64(search.low)
        parts = offsets >> np.uint64(max(search.bits - BITS, 0))
        counts.append(np.bincount(parts.astype(np.intp), minlength=BINS))
    return counts


def _fetch(
    searches: Sequence[Search], encoder: ColumnEncoder, X: MatrixLike, y: None, weights: None
) -> list[Floats]:
    """Return the values in the intervals of more than one key."""
    values: list[Floats] = []
    for search in searches:
        if not search.bits or not X.shape[0]:
            values.append(np.empty(0))
            continue
        known = _known(encoder, X, search.column)
        values.append(known[_inside(_keys(known), search)])
    return values


def _added(parts: list[list[Integers]]) -> list[Integers]:
    return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]


def _joined(parts: list[list[Floats]]) -> list[Floats]:
    return [np.concatenate(each) for each in zip(*parts, strict=True)]
