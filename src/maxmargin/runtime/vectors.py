"""Vectors of millions of numbers, on all cores: the NumPy operations of a fit that read each once.

Memory that is written for the first time takes longer than the operation itself, so results are
allocated here and written part by part. Parts depend on sizes alone, not on the number of cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Integers
from .threads import in_parallel

Result = TypeVar("Result")


@dataclass(frozen=True)
class Tuning:
    """Sizes of the parts that cores work on."""

    part_numbers: int = 1 << 15  # read by a part, at least: less is not worth a thread
    in_python: float = 4.0  # times as many, where a part takes the GIL
    most_parts: int = 128  # some for each of many cores


TUNING = Tuning()


def part_rows(n_rows: int, numbers: float = 4.0) -> int:
    """Return how many rows a part has; ``numbers`` are read of each."""
    least = int(TUNING.part_numbers / max(numbers, 0.25))
    return max(least, -(-n_rows // TUNING.most_parts), 16)


def part_count(n_rows: int, step: int) -> int:
    """Return how many parts of ``step`` rows there are: one at least."""
    return max(-(-n_rows // step), 1)


def in_slices(work: Callable[[slice], Result], n_rows: int, numbers: float = 4.0) -> list[Result]:
    """Return ``work(rows)`` of consecutive slices of the rows, computed on all cores."""
    step = part_rows(n_rows, numbers / TUNING.in_python)
    if n_rows <= step:
        return [work(slice(0, n_rows))]
    parts = [slice(k, min(k + step, n_rows)) for k in range(0, n_rows, step)]
    return in_parallel(lambda some, stop: work(some), parts)


def is_one_number(values: NDArray[Any]) -> bool:
    """Return whether values are a single number seen many times (`numpy.broadcast_to`)."""
    return values.size > 0 and values.strides == (0,)


def copied(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy."""
    out = np.empty_like(values)
    in_slices(lambda some: np.copyto(out[some], values[some]), len(values))
    return out


def counting(n: int) -> Integers:
    """Return 0, 1, …, n − 1."""
    out = np.empty(n, dtype=np.intp)

    def count(some: slice) -> None:
        out[some] = np.arange(some.start, some.stop)

    in_slices(count, n)
    return out


def taken(values: NDArray[Any], rows: Integers) -> NDArray[Any]:
    """Return ``values[rows]``; no row may be negative."""
    out = np.empty((rows.size, *values.shape[1:]), dtype=values.dtype)
    numbers = max(out[:1].size, 1) * 2.0

    def take(some: slice) -> None:
        # With "raise" NumPy would write to a buffer first, in case of an error.
        np.take(values, rows[some], axis=0, out=out[some], mode="clip")

    in_slices(take, rows.size, numbers)
    return out


def nonzero(values: NDArray[Any]) -> Integers:
    """Return the places of the numbers that are not 0, or of what is true, in order."""

    def places(some: slice) -> Integers:
        found = np.flatnonzero(values[some] != 0)
        found += some.start
        return found

    parts = in_slices(places, values.size)
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.size for part in parts])
    out = np.empty(ends[-1], dtype=np.intp)

    def write(k: int) -> None:
        out[ends[k] - parts[k].size : ends[k]] = parts[k]

    in_parallel(lambda k, stop: write(k), range(len(parts)))
    return out
