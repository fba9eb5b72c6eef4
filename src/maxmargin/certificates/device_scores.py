"""Decision values of kernel expansions on a device, in float64, with bounds of rounding errors.

All tasks of a fit share tiles of kernel values, of some rows and all support vectors: one product
of a tile with the coefficients of all tasks gives their scores, another with the absolute values
bounds what rounding does to them. Arrays are those of X's own library.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
        self.n_tasks, self._at = len(tasks.index), None
        c = self._coefficients()
        xp = self.xp = array_namespace(c)
        used = xp.nonzero(xp.any(c != 0.0, axis=1))[0]
        self.support = used if used.shape[0] else self.X.put(np.zeros(1, dtype=np.int64))
        self.c = c[self.support, :]
        self.n_terms = xp.sum(self.c != 0.0, axis=0, dtype=xp.float64)
        present = np.zeros(self.X.shape[0], dtype=bool)
        present[np.concatenate(tasks.wanted)] = True
        self.has_all_rows = bool(present.all())
        self.rows = np.flatnonzero(present)

    def _coefficients(self) -> Any:
        """Return the coefficients of all rows of X, one column per task."""
        n, tasks = self.X.shape[0], self.tasks
        if self.n_tasks == 1:  # the two variables of a row of a regression have one sum
            c = np.bincount(tasks.index[0], tasks.coefficients[0], minlength=n)
            return self.X.put(c.astype(np.float64, copy=False)[:, np.newaxis])
        at = self._at = self._places(tasks.index)
        xp = array_namespace(at)
        flat = xp.zeros(n * self.n_tasks, dtype=xp.float64, device=at.device)
        flat[at] = self.X.put(np.concatenate(tasks.coefficients))
        return xp.reshape(flat, (n, self.n_tasks))

    def _places(self, index: Sequence[Integers]) -> Any:
        """Return where rows of each task are in a matrix with one column per task."""
        sizes = [each.size for each in index]
        number = np.repeat(np.arange(self.n_tasks, dtype=np.int64), sizes)
        return self.X.put(np.concatenate(index)) * self.n_tasks + self.X.put(number)

    def scores(self) -> list[tuple[Floats, Floats]]:
        """Return the values of each task at the rows wanted, and a bound of each error."""
        xp, wanted = self.xp, self.tasks.wanted
        values, errors = self._sums(self.X.put(np.asarray(self.tasks.b, dtype=np.float64)))
        if not self.has_all_rows:
            wanted = [np.searchsorted(self.rows, each) for each in wanted]
        is_index = all(map(operator.is_, wanted, self.tasks.index))
        at = self._at if is_index and self._at is not None else self._places(wanted)
        values, errors = xp.reshape(values, (-1,))[at], xp.reshape(errors, (-1,))[at]
        scores, bounds = self.X.get(xp.stack([values, errors]))
        ends = np.cumsum([0, *(each.size for each in wanted)]).tolist()
        parts = [slice(*part) for part in pairwise(ends)]
        return [(scores[part], bounds[part]) for part in parts]

    def _sums(self, b: Any) -> tuple[Any, Any]:
        """Return the scores of all rows and tasks, and their errors."""
        xp = self.xp
        if isinstance(self.tasks.kernel, Linear):
            return self._linear_sums(b)
        shape = (self.rows.size, self.n_tasks)
        values, errors = (xp.zeros(shape, dtype=xp.float64, device=self.c.device) for _ in range(2))
        parts = list(_slices(self.support.shape[0], self._width()))
        unit = UNIT * (self.n_terms + len(parts) + 3.0)
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
        for columns in _slices(self.support.shape[0], self._width()):
            some, c = self._others(columns), self.c[columns, :]
            w, sizes = w + some.T @ c, sizes + xp.abs(some).T @ xp.abs(c)
        unit, found = UNIT * (self.n_terms + d + 5.0), []
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
        if self.has_all_rows:
            return self.X.float64_rows(rows)
        return self.X.float64_rows(self.X.put(self.rows[rows]))

    def _others(self, columns: slice) -> Any:
        """Return support vectors, or the columns of a given kernel matrix."""
        chosen = self.support[columns]
        if isinstance(self.tasks.kernel, Precomputed):
            return chosen
        return self.X.float64_rows(chosen)

    def _width(self) -> int:
        """Return how many support vectors a tile has."""
        most = min(self.numbers / self.X.shape[1], self.numbers / LEAST_ROWS)
        return max(1, min(self.support.shape[0], int(most)))

    def _height(self, width: int) -> int:
        """Return how many rows a tile has."""
        return max(1, int(self.numbers / max(width, self.X.shape[1])))


def _slices(n: int, step: int) -> Iterator[slice]:
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
