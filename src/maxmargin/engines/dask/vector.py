"""A vector of length n in partitions, as X is; host code sees an array of few numbers only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from ...arrays import Floats, Integers, Labels, PartitionedVector
from .cluster import Cluster, Handle, itself

# Values that may come to this process.
MOST_VALUES = 50_000_000


class DaskVector(NDArrayOperatorsMixin, PartitionedVector):
    """Labels, targets, costs or α in partitions.

    Operations of NumPy that work number by number are done where the parts are.

    Parameters
    ----------
    cluster : Cluster
    parts : list of Handle
        Arrays, one per partition.
    sizes : list of int
        Their lengths.
    classes : ndarray, optional
        The different labels, in order, where these are labels of classes.
    ends : tuple of float, optional
        The least and the largest value, where they are known.
    """

    ndim = 1

    def __init__(
        self,
        cluster: Cluster,
        parts: list[Handle],
        sizes: list[int],
        classes: Labels | None = None,
        ends: tuple[float, float] | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.cluster, self.parts, self.sizes = cluster, parts, sizes
        self.classes, self._ends, self.dtype = classes, ends, np.dtype(dtype)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest value, where they are known."""
        return self._ends

    @property
    def size(self) -> int:
        """The number of values."""
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int]:
        """The number of values, in a tuple."""
        return (self.size,)

    @property
    def strides(self) -> tuple[int]:
        """As of an array of different numbers."""
        return (self.dtype.itemsize,)

    def __len__(self) -> int:
        return self.size

    @property
    def host(self) -> NDArray[Any]:
        """All values in the memory of this process."""
        if self.size > MOST_VALUES:
            raise MemoryError(
                f"{self.size:,} values are on the workers of a cluster: they are not brought to "
                "this process."
            )
        joined: NDArray[Any] = self.cluster.round(itself, _joined, self.parts, reads=False)
        return joined

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.host, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.signature:  # as that of matmul
            return NotImplemented
        if ufunc in (np.isinf, np.isfinite) and self.ends is not None:
            inside = bool(np.isfinite(self.ends).all())
            if inside:  # the same of all
                return np.array([ufunc is np.isfinite])
        return self.combined(
            ufunc, *(each if _is_number(each) else self._split(each) for each in inputs)
        )

    def combined(
        self, function: Callable[..., Any], *inputs: Any, ends: tuple[float, float] | None = None
    ) -> DaskVector:
        """Return ``function`` of vectors and numbers, part by part."""
        columns = [column_of(each, len(self.parts)) for each in inputs]
        kinds = [each.dtype if isinstance(each, DaskVector) else each for each in inputs]
        dtype = function(*(np.ones(1, k) if isinstance(k, np.dtype) else k for k in kinds)).dtype
        parts = self.cluster.start(_apply, [function] * len(self.parts), *columns)
        return DaskVector(self.cluster, parts, self.sizes, ends=ends, dtype=dtype)

    def _split(self, values: Any) -> Any:
        """Return a vector in partitions as it is, one of this process as one."""
        return values if isinstance(values, DaskVector) else split(self.cluster, values, self.sizes)

    def __getitem__(self, rows: Any) -> Any:
        """Return every k-th value, for a slice with a step, in the memory of this process."""
        if isinstance(rows, slice) and rows.start is None and rows.stop is None:
            step = rows.step or 1
            if step == 1 and self.size > MOST_VALUES:
                return self.host  # raises
            starts = np.cumsum([0, *self.sizes[:-1]])
            firsts = [int(-start % step) for start in starts]
            return self.cluster.round(
                _strided, _joined, self.parts, firsts, common=(step,), reads=False
            )
        return self.host[rows]

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (self.host,)

    def encoded(self) -> tuple[Labels, DaskVector] | None:
        """Return the different labels, and the class number of every one."""
        if self.classes is None:
            return None
        parts = self.cluster.start(_encode, self.parts, common=(self.classes,))
        ends = 0.0, float(len(self.classes) - 1)
        codes = DaskVector(self.cluster, parts, self.sizes, ends=ends, dtype=np.intp)
        return self.classes, codes

    def signs(self, k: int) -> DaskVector:
        """Return +1.0 for class number k and −1.0 for all others."""
        parts = self.cluster.start(_signs, self.parts, common=(k,))
        return DaskVector(self.cluster, parts, self.sizes, ends=(-1.0, 1.0))

    def pair_signs(self, i: int, j: int) -> DaskVector:
        """Return +1.0 for class number i, −1.0 for j and 0.0 for all others."""
        parts = self.cluster.start(_pair_signs, self.parts, common=(i, j))
        return DaskVector(self.cluster, parts, self.sizes, ends=(-1.0, 1.0))

    def rows(self) -> AllPlaces:
        """Return the places of all values."""
        return AllPlaces(self.cluster, [], self.sizes, dtype=np.intp)

    def nonzero(self, factors: Any = None) -> tuple[Integers, Floats]:
        """Return the places of values other than 0, and those values times factors, on the host."""
        starts = np.cumsum([0, *self.sizes[:-1]]).tolist()
        columns = column_of(factors if factors is not None else np.ones(1), len(self.parts))
        places, values = self.cluster.round(
            _nonzero, _joined_pairs, starts, self.parts, columns, reads=False
        )
        return places, values

    def as_targets(self, largest: float) -> DaskVector | None:
        """Return float64 numbers; None where one is larger than this, or no number."""
        if self.ends is None or not max(abs(self.ends[0]), abs(self.ends[1])) <= largest:
            return None
        parts = self.cluster.start(_as_numbers, self.parts)
        return DaskVector(self.cluster, parts, self.sizes, ends=self.ends)

    def min(self, **options: Any) -> float:
        """Return the least value."""
        return self.ends[0] if self.ends is not None else float(self._reduced(np.min))

    def max(self, **options: Any) -> float:
        """Return the largest value."""
        return self.ends[1] if self.ends is not None else float(self._reduced(np.max))

    def sum(self, **options: Any) -> float:
        """Return the sum of all values."""
        return float(self._reduced(np.sum))

    def any(self, **options: Any) -> bool:
        """Return whether some value is not 0."""
        return bool(self._reduced(np.any))

    def all(self, **options: Any) -> bool:
        """Return whether no value is 0."""
        return bool(self._reduced(np.all))

    def _reduced(self, function: Callable[[Any], Any]) -> Any:
        functions = [function] * len(self.parts)
        return self.cluster.round(_reduce, function, functions, self.parts, reads=False)


class AllPlaces(DaskVector):
    """0, 1, …, n − 1, of which no number is made unless it is asked for."""

    @property
    def host(self) -> Integers:
        """All places."""
        return np.arange(self.size)


def split(cluster: Cluster, values: Any, sizes: list[int]) -> DaskVector:
    """Return one number per row, in the memory of this process, as a vector in partitions."""
    values = np.asarray(values)
    if values.shape != (sum(sizes),):
        raise ValueError(
            f"A vector must have one number for each of {sum(sizes)} rows, got shape "
            f"{values.shape}."
        )
    handles = cluster.start(itself, np.split(values, np.cumsum(sizes)[:-1]))
    return DaskVector(cluster, handles, sizes, dtype=values.dtype)


def _is_number(value: Any) -> bool:
    """Return whether a value is the same for all rows."""
    return np.ndim(value) == 0 or np.shape(value) == (1,)


def column_of(values: Any, n: int) -> Sequence[Any]:
    """Return the parts of a vector, a list of them, or a number for all partitions."""
    if isinstance(values, DaskVector):
        return values.parts
    return values if isinstance(values, list) else [values] * n


# What workers do ----------------------------------------------------------------------------------


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts)


def _joined_pairs(parts: list[tuple[Any, Any]]) -> tuple[Integers, Floats]:
    places, values = zip(*parts, strict=True)
    return np.concatenate(places), np.concatenate(values)


def _apply(function: Callable[..., Any], *values: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return function(*values)


def _reduce(function: Callable[[Any], Any], part: NDArray[Any]) -> Any:
    return function(part)


def _strided(part: NDArray[Any], first: int, step: int) -> NDArray[Any]:
    return part[first::step].copy()


def _encode(part: Labels, classes: Labels) -> Integers:
    if len(classes) == 2:
        return (part == classes[1]).astype(np.int8)
    return np.minimum(np.searchsorted(classes, part), len(classes) - 1)


def _signs(part: Integers, k: int) -> Floats:
    return np.where(part == k, 1.0, -1.0)


def _pair_signs(part: Integers, i: int, j: int) -> Floats:
    return (part == i).astype(np.float64) - (part == j)


def _nonzero(start: int, part: Floats, factors: Floats) -> tuple[Integers, Floats]:
    places = np.flatnonzero(part)
    values = part[places] * (factors if factors.size == 1 else factors[places])
    return places + start, values


def _as_numbers(part: NDArray[Any]) -> Floats:
    return np.asarray(part, dtype=np.float64)
