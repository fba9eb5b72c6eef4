"""Rows of K that were computed and are kept, as many as memory allows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...runtime.row_access import compiled
from .values import TILE_COLUMNS

# Columns of a strip, which lie in one piece: shorter ones are not read at the speed of the memory.
STRIP_COLUMNS = 2 * TILE_COLUMNS
# Requests after which a kept row that none of them wanted may be replaced.
STALE_REQUESTS = 32


class Slots(NamedTuple):
    """Where the rows of one request are kept: −1 for those that have no place."""

    cache: Floats
    capacity: int
    of: Integers
    known: NDArray[np.bool_]


class RowCache:
    """Rows of K that were computed: as many as the budget holds, the least recently used go."""

    def __init__(self, n_samples: int, dtype: np.dtype[Any], budget: float) -> None:
        capacity = int(min(n_samples, budget // max(1, n_samples * dtype.itemsize)))
        # Strips of columns lie apart, each with all of its rows: the thread that computes a strip
        # is the first to write to its memory, which the system provides at that moment.
        self.cache = np.empty(capacity * n_samples, dtype=dtype)
        self.slot = np.full(n_samples, -1)
        self.owner = np.full(capacity, -1)
        self.used = np.zeros(capacity, dtype=np.int64)
        self.n_given = 0
        self.clock = 0

    def slots(self, rows: Integers, keep: Any) -> Slots:
        """Return the slots of ``rows``; those with ``keep`` are given one if they have none."""
        self.clock += 1
        at = self.slot[rows]
        known = at >= 0
        self.used[at[known]] = self.clock
        if keep is not None:
            wanted = np.flatnonzero(~known & keep)
            at[wanted] = self._give(rows[wanted])
        return Slots(self.cache, self.owner.size, at, known)

    def _give(self, rows: Integers) -> Integers:
        """Give slots to rows: empty ones, then those unused for long; −1 where there are none.

        Rows that are asked for in turns would drive each other out before they are of use.
        """
        slots = np.full(rows.size, -1)
        fresh = np.arange(self.n_given, min(self.n_given + rows.size, self.owner.size))
        self.n_given += fresh.size
        self.used[fresh] = self.clock
        n = min(rows.size - fresh.size, self.owner.size)
        if n > 0:
            oldest = np.argpartition(self.used, n - 1)[:n]
            fresh = np.concatenate([fresh, oldest[self.used[oldest] < self.clock - STALE_REQUESTS]])
        owners = self.owner[fresh]
        self.slot[owners[owners >= 0]] = -1
        slots[: fresh.size] = fresh
        self.owner[fresh], self.slot[rows[: fresh.size]] = rows[: fresh.size], fresh
        self.used[fresh] = self.clock
        return slots

    def row(self, slot: int) -> Floats:
        """Return the row in a slot."""
        n, capacity = self.slot.size, self.owner.size
        strips = range(-(-n // STRIP_COLUMNS))
        return np.concatenate([strip_of(self.cache, capacity, n, k)[slot] for k in strips])


@compiled
def strip_of(cache, capacity, n, k):
    """Return a strip of columns of all slots."""
    j, stop = k * STRIP_COLUMNS, min((k + 1) * STRIP_COLUMNS, n)
    return cache[j * capacity : stop * capacity].reshape(capacity, stop - j)


@compiled
def keep_rows(tile, at, start, cache):
    """Do cache[at_k, start:] ← tile[k], as far as it goes, for the rows k that have a slot."""
    for k in range(at.size):
        if at[k] >= 0:
            values, row = tile[k], cache[at[k]][start : start + tile.shape[1]]
            for j in range(row.size):
                row[j] = values[j]
