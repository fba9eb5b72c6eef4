"""Gram matrices of data that this process has seen before, found again by their content."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..arrays import Floats, Matrix

# Bytes that the cache of this process and of those it starts may take; 0 without it.
VARIABLE = "MAXMARGIN_KERNEL_CACHE"
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
         "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}  # fmt: skip
# Searches ask for the same matrices in turns. Where all of them do not fit, the least recently used
# one is the next to be asked for: what is kept stays until it has not been used for so many turns.
MOST_TURNS = 4


class Info(NamedTuple):
    """What the cache of kernel values has done so far, and what it holds."""

    hits: int
    misses: int
    n_matrices: int
    n_bytes: int
    max_bytes: int


@dataclass
class _Entry:
    """A matrix, and the number of the request that used it last."""

    K: Floats
    used: int


class KernelCache:
    """Gram matrices by their content: the numbers in X, the kernel, and the precision.

    ``mm.config(kernel_cache="1GB")`` turns it on, ``mm.config(kernel_cache=None)`` off. It serves
    all fits of the process, in any thread. The matrices may not be written. Where there is no room
    for another one, the least recently used is dropped, once it has not been used for some time.

    Parameters
    ----------
    max_bytes : int, default=0
        Bytes that all matrices together may take.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> with mm.config(kernel_cache="1MB"):
    ...     a, b = (mm.SVC(C=C, gamma=1.0).fit(X, y) for C in (1.0, 10.0))
    ...     print(mm.kernel_cache.info())
    Info(hits=1, misses=1, n_matrices=1, n_bytes=128, max_bytes=1000000)
    >>> mm.kernel_cache.info().n_bytes
    0
    """

    def __init__(self, max_bytes: int = 0) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()
        self._n_bytes = self._hits = self._misses = 0

    def info(self) -> Info:
        """Return the requests that were answered so far and those that were not, and the contents.

        Returns
        -------
        Info
            ``hits``, ``misses``, ``n_matrices``, ``n_bytes`` and ``max_bytes``.
        """
        with self._lock:
            return Info(self._hits, self._misses, len(self._entries), self._n_bytes, self.max_bytes)

    def clear(self) -> None:
        """Drop all matrices, and count requests anew."""
        with self._lock:
            self._entries.clear()
            self._n_bytes = self._hits = self._misses = 0

    def resize(self, max_bytes: int) -> None:
        """Change the bytes that may be taken; what exceeds them is dropped.

        Parameters
        ----------
        max_bytes : int
            0 turns the cache off, and counts requests anew.
        """
        with self._lock:
            self.max_bytes = max_bytes
            while self._n_bytes > max_bytes:
                self._drop_oldest()
            if not max_bytes:
                self._hits = self._misses = 0

    def matrix(self, key: Hashable, compute: Callable[[], Floats]) -> Floats:
        """Return the matrix of this key, computed where it is not known; it may not be written.

        Threads that ask at the same time for a matrix that is not known compute it each.

        Parameters
        ----------
        key : hashable
            Equal for equal matrices only.
        compute : callable
            Returns a new array.

        Returns
        -------
        ndarray
            The matrix.
        """
        with self._lock:
            found = self._used(key)
            self._hits += found is not None
            self._misses += found is None
        if found is None:
            K = compute()
            K.flags.writeable = False
            with self._lock:
                found = self._used(key)
                if found is None:
                    self._keep(key, K)
                    found = K
        return found

    def _used(self, key: Hashable) -> Floats | None:
        """Return a matrix that is known, and note that it has been used."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = self._hits + self._misses
        self._entries.move_to_end(key)
        return entry.K

    def _keep(self, key: Hashable, K: Floats) -> None:
        """Keep a matrix if there is room, or can be made."""
        now = self._hits + self._misses
        while self._entries and self._n_bytes + K.nbytes > self.max_bytes:
            oldest = next(iter(self._entries.values()))
            if now - oldest.used <= MOST_TURNS * len(self._entries):
                return
            self._drop_oldest()
        if K.nbytes <= self.max_bytes:
            self._entries[key] = _Entry(K, now)
            self._n_bytes += K.nbytes

    def _drop_oldest(self) -> None:
        _, entry = self._entries.popitem(last=False)
        self._n_bytes -= entry.K.nbytes


def digest_of(X: Matrix) -> bytes:
    """Return a digest of the numbers in X, of their type and of the shape."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    digest = blake2b(digest_size=32)
    for part in parts:
        digest.update(repr((X.shape, part.dtype.str)).encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()


def bytes_of(name: str, value: Any) -> int:
    """Return a number of bytes such as 10**9, "500MB" or "1GiB", 0 for None.

    Raises ValueError with the name of the setting for anything else.
    """
    if value is None:
        return 0
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0:
        return int(value)
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]i?)?b)?\s*", value.lower())
        if found:
            return int(float(found[1]) * UNITS[found[2] or ""])
    raise ValueError(
        f"{name} must be a number of bytes such as 10**9, '500MB' or '1GiB', or None for no cache, "
        f"got {value!r}."
    )


# The cache of this process.
kernel_cache = KernelCache(bytes_of(VARIABLE, os.environ.get(VARIABLE) or None))

if hasattr(os, "register_at_fork"):
    # A child begins with what its parent has, and with a lock that no other thread holds.
    os.register_at_fork(
        before=kernel_cache._lock.acquire,
        after_in_parent=kernel_cache._lock.release,
        after_in_child=kernel_cache._lock.release,
    )
