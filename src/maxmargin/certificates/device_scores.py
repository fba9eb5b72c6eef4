"""Decision values of kernel expansions on a device, in float64, with bounds of rounding errors.

All tasks of a fit share tiles of kernel values, of some rows and all support vectors: one product
of a tile with the coefficients of all tasks gives their scores, another with the absolute values
bounds what rounding does to them. Arrays are those of X's own library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats, Integers, OnDevice
from ..kernels import Kernel, Linear, Precomputed
from ..kernels.base import UNIT
from ..kernels.namespace import array_namespace

# The share of a block's bytes that each of its parts may take: a tile of kernel values with what
# is made of it, the rows on either side, and the scores.
PART_SHARE = 0.25
# Rows of a tile at least, where columns are divided instead.
LEAST_ROWS = 256


def are_on_device(kernel: Kernel, X: Any) -> bool:
    """Return whether X is on a device that computes this kernel."""
    return isinstance(X, OnDevice) and (kernel.elementwise or isinstance(kernel, Precomputed))


@dataclass(frozen=True)
class Expansions:
    """The functions Σ_l c_l K(x_l, ·) + b of some tasks, and the rows whose values are wanted.

    Parameters
    ----------
    kernel : Kernel
    X : OnDevice
    index : sequence of ndarray of int
        The rows x_l of each task. Those of several tasks do not repeat.
    coefficients : sequence of ndarray
        c of each task.
    b : sequence of float
    wanted : sequence of ndarray of int
        Rows of X.
    """

    kernel: Kernel
    X: OnDevice
    index: Sequence[Integers]
    coefficients: Sequence[Floats]
    b: Sequence[float]
    wanted: Sequence[Integers]

    def scores(self) -> list[tuple[Floats, Floats]] | None:
        """Return the values of each task, and a bound of each error; None where memory is full."""
        try:
            return self.X.in_blocks(self._in_blocks)
        except MemoryError:
            return None

    def _in_blocks(self, block_bytes: float) -> list[tuple[Floats, Floats]]:
        """Compute the scores of some tasks at a time."""
        numbers = PART_SHARE * block_bytes / 8.0
        n_tasks = len(self.index)
        step = max(1, int(numbers / 2 / self.X.shape[0]))
        if step >= n_tasks:
            return _Batch(self, numbers).scores()
        parts = (slice(first, first + step) for first in range(0, n_tasks, step))
        return [found for part in parts for found in _Batch(self._of(part), numbers).scores()]

    def _of(self, part: slice) -> Expansions:
        return Expansions(
            self.kernel, self.X, self.index[part], self.coefficients[part], self.b[part],
            self.wanted[part],
        )  # fmt: skip


class _Batch:
    """Tasks whose scores are computed together, in tiles of so many numbers.

    ``xp`` is the library of the device, ``c`` are the coefficients of the support vectors of all
    tasks, one column per task.
    """

    def __init__(self, tasks: Expansions, numbers: float) -> None:
        self.tasks, self.X, self.numbers = tasks, tasks.X, numbers
        self.n_tasks = len(tasks.index)
        index, c = np.concatenate(tasks.index), np.concatenate(tasks.coefficients)
        number = np.repeat(np.arange(self.n_tasks), [each.size for each in tasks.index])
        if self.n_tasks == 1:  # the two variables of a row of a regression have one sum
            c = np.bincount(index, c, minlength=self.X.shape[0]).astype(np.float64, copy=False)
            index, number = np.arange(c.size), np.zeros(c.size, dtype=np.intp)
        used = np.flatnonzero(c)
        self.n_terms = np.bincount(number[used], minlength=self.n_tasks)
        self.support, places = _different(index[used], self.X.shape[0])
        if not self.support.size:  # one without a coefficient
            self.support = np.zeros(1, dtype=np.intp)
        at = self.X.put(places * self.n_tasks + number[used])
        self.xp = array_namespace(at)
        c_of_all = self._zeros(self.support.size * self.n_tasks, at.device)
        c_of_all[at] = self.X.put(c[used])
        self.c = c_of_all.reshape(-1, self.n_tasks)
        self.rows, self.places = _different(np.concatenate(tasks.wanted), self.X.shape[0])

    def _zeros(self, shape: Any, device: Any) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=device)

    def scores(self) -> list[tuple[Floats, Floats]]:
        """Return the values of each task at the rows wanted, and a bound of each error."""
        xp, tasks, put = self.xp, self.tasks, self.X.put
        b = put(np.asarray(tasks.b, dtype=np.float64))
        values, errors = self._sums(b)
        sizes = [each.size for each in tasks.wanted]
        number = np.repeat(np.arange(self.n_tasks), sizes)
        at = put(self.places * self.n_tasks + number)
        values, errors = xp.reshape(values, (-1,))[at], xp.reshape(errors, (-1,))[at]
        scores, bounds = self.X.get(xp.stack([values, errors]))
        ends = np.cumsum(sizes)[:-1]
        return list(zip(np.split(scores, ends), np.split(bounds, ends), strict=True))

    def _sums(self, b: Any) -> tuple[Any, Any]:
        """Return the scores of all rows and tasks, and their errors."""
        xp = self.xp
        if isinstance(self.tasks.kernel, Linear):
            return self._linear_sums(b)
        shape = (self.rows.size, self.n_tasks)
        values, errors = (self._zeros(shape, self.c.device) for _ in range(2))
        parts = list(_slices(self.support.size, self._width()))
        unit = self.X.put(UNIT * (self.n_terms + len(parts) + 3.0))
        for columns in parts:
            c, others = self.c[columns, :], self._others(columns)
            for rows in _slices(self.rows.size, self._height(columns.stop - columns.start)):
                K, error, size = self._tile(rows, others, xp.abs(c))
                values[rows, :] += K @ c
                errors[rows, :] += error + unit * size
        values += b
        errors += 2.0 * UNIT * (xp.abs(values) + xp.abs(b))
        return values, errors

    def _linear_sums(self, b: Any) -> tuple[Any, Any]:
        """Return w·x + b with w = Σ c_l x_l."""
        xp, w, sizes, d = self.xp, 0.0, 0.0, self.X.shape[1]
        for columns in _slices(self.support.size, self._width()):
            some, c = self._others(columns), self.c[columns, :]
            w, sizes = w + some.T @ c, sizes + xp.abs(some).T @ xp.abs(c)
        unit, found = self.X.put(UNIT * (self.n_terms + d + 5.0)), []
        for rows in _slices(self.rows.size, self._height(1)):
            x = self._rows(rows)
            found.append((x @ w + b, unit * (xp.abs(x) @ sizes + xp.abs(b))))
        values, errors = zip(*found, strict=True)
        return xp.concat(values, axis=0), xp.concat(errors, axis=0)

    def _tile(self, rows: slice, others: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return kernel values, Σ weights·|error| and Σ weights·|K| per row and task."""
        if not isinstance(self.tasks.kernel, Precomputed):
            return self.tasks.kernel.bounded(self._rows(rows), others, weights)
        K = self._rows(rows)[:, others]
        return K, 0.0, self.xp.abs(K) @ weights

    def _rows(self, rows: slice) -> Any:
        """Return rows of X in float64, which are dense."""
        if self.rows.size == self.X.shape[0]:
            return self.X.float64_rows(rows)
        return self.X.float64_rows(self.X.put(self.rows[rows]))

    def _others(self, columns: slice) -> Any:
        """Return support vectors, or the columns of a given kernel matrix."""
        chosen = self.X.put(self.support[columns])
        if isinstance(self.tasks.kernel, Precomputed):
            return chosen
        return self.X.float64_rows(chosen)

    def _width(self) -> int:
        """Return how many support vectors a tile has."""
        most = min(self.numbers / self.X.shape[1], self.numbers / LEAST_ROWS)
        return max(1, min(self.support.size, int(most)))

    def _height(self, width: int) -> int:
        """Return how many rows a tile has."""
        return max(1, int(self.numbers / max(width, self.X.shape[1])))


def _different(rows: Integers, n: int) -> tuple[Integers, Integers]:
    """Return the different ones of some rows in order, and the place of each among them."""
    present = np.zeros(n, dtype=bool)
    present[rows] = True
    places = np.cumsum(present) - 1
    return np.flatnonzero(present), places[rows]


def _slices(n: int, step: int) -> Iterator[slice]:
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
