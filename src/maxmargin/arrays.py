"""Array types, and blocks of rows of X, dense or CSR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.intp]
Labels = NDArray[Any]
# X as a caller passes it (array-like, CSR matrix, frame or RowBlocks), and as the checks return it
# (float32 or float64, dense or CSR, or RowBlocks). scipy.sparse has no types.
MatrixLike: TypeAlias = Any
Matrix: TypeAlias = Any

Answer = TypeVar("Answer")

# The size of X up to which it may be copied for another layout.
COPIED_BYTES = 64 << 20


class Container(Protocol):
    """What holds the rows of X: one array or CSR matrix, or pieces of them."""

    sparse: bool
    random_access: bool  # whether any row can be had without reading others
    on_device: bool  # whether they are outside the memory of the host

    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Yield arrays or CSR matrices of consecutive rows, each with the place of its first."""

    def stored(self) -> int:
        """Return how many numbers are stored."""


class OnDevice(ABC):
    """X on a device other than the host: what is asked of it there, without a copy on the host.

    Indexing copies some rows to the host, as arrays of NumPy or CSR matrices.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool

    @property
    @abstractmethod
    def device(self) -> Any:
        """Where X is."""

    @property
    @abstractmethod
    def host(self) -> Any:
        """X in the memory of the host, copied when it is first asked for."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any:
        """Return some rows in the memory of the host."""

    @abstractmethod
    def take(self, rows: Integers, columns: Integers | None = None) -> Self:
        """Return some rows, and some of their columns, on the device."""

    @abstractmethod
    def less(self, centre: Floats) -> Self:
        """Return x − c for every row, in the type of X, on the device."""

    @abstractmethod
    def with_constant(self, value: float) -> Self:
        """Return X with one more column of a constant value, on the device."""

    @abstractmethod
    def constant_columns(self) -> tuple[Integers, Floats]:
        """Return the columns that hold one value throughout, and those values."""

    @abstractmethod
    def as_numbers(self) -> Self | None:
        """Return X in float32 or float64, stored row by row, or as CSR without duplicates.

        None stands for what is not a matrix of real numbers with at least one of them.
        """

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest value stored; both are NaN where one is."""

    @abstractmethod
    def variance(self, weights: Floats | None = None) -> float:
        """Return the variance of all entries, those of a row counted ``weights`` times."""

    @abstractmethod
    def squared_norms(self) -> Floats:
        """Return ‖x‖² of every row, summed in float64."""

    @abstractmethod
    def diagonal(self) -> Floats:
        """Return the diagonal of a square X in float64."""

    @abstractmethod
    def put(self, values: NDArray[Any]) -> Any:
        """Return an array of the host as an array on the device."""

    @abstractmethod
    def get(self, values: Any) -> NDArray[Any]:
        """Return an array on the device as an array of the host."""

    @abstractmethod
    def float64_rows(self, rows: Any) -> Any:
        """Return some rows in float64 on the device, dense: those of a slice, or of an array there.

        It may be X itself, which is only read.
        """

    @abstractmethod
    def in_blocks(self, compute: Callable[[float], Answer]) -> Answer:
        """Return ``compute(n)`` for as many bytes n as a block may take there.

        It is tried with smaller blocks where memory is full; then MemoryError is raised.
        """

    @abstractmethod
    def column_means(self) -> tuple[Floats, Floats]:
        """Return the means of the columns, and those of their squares."""

    @abstractmethod
    def digest(self) -> bytes:
        """Return what is the same for equal numbers, and hardly ever for others."""

    @abstractmethod
    def asymmetry(self) -> tuple[float, float]:
        """Return max |K − Kᵀ| and max |K| of a square X."""


class Partitioned(ABC):
    """X in partitions of consecutive rows outside of the memory of this process: on a cluster.

    What is asked of all rows is computed where they are. Functions that are sent there must be
    importable, and must not change their arguments: results are computed again where a worker dies.
    """

    random_access = False
    on_device = False
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool
    report: Any  # what a fit took: rounds, bytes and seconds
    example: Any  # no row, or an arbitrary one: as many columns, and their names

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """The number of rows of each partition, none of them empty."""

    @abstractmethod
    def stored(self) -> int:
        """Return how many numbers are stored."""

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Bring one partition after the other to this process."""

    @abstractmethod
    def head(self, n_rows: int) -> Any:
        """Return about so many rows, evenly spaced, in the memory of this process."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any:
        """Return the rows that an array of integers names in the memory of this process."""

    @abstractmethod
    def places_in(self, rows: Integers) -> list[Integers]:
        """Return the places of some rows within each partition, in ascending order."""

    @abstractmethod
    def variance(self, weights: Floats | None = None) -> float:
        """Return the variance of all entries, those of a row counted ``weights`` times."""

    @abstractmethod
    def constant_columns(self) -> tuple[Integers, Floats]:
        """Return the columns that hold one value throughout, and those values."""

    @property
    @abstractmethod
    def host(self) -> Any:
        """All rows in the memory of this process: for few of them."""

    @abstractmethod
    def map(
        self, work: Callable[..., NDArray[Any]], *vectors: Any, common: tuple[Any, ...] = ()
    ) -> Any:
        """Return the vector of ``work(rows, *parts of vectors, *common)``, one number per row."""

    @abstractmethod
    def reduce(
        self,
        work: Callable[..., Answer],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
        reads_rows: bool = True,
    ) -> Answer:
        """Return the merged answers of ``work(rows, *parts of vectors, *common)``.

        Vectors are partitioned as X is, arrays of one number for all rows, or lists of what each
        partition is given. ``merge`` is applied to the answers of some consecutive partitions, and
        to what it has returned for them, in order. Without ``reads_rows`` the work is not given the
        rows.
        """

    @abstractmethod
    def free(self) -> None:
        """Stop what is being computed, and give back what was computed, for a fit that failed."""

    def free_after_error(self, kind: type[BaseException] | None, *details: Any) -> None:
        """Do so at the end of a context that an error has left."""
        if kind is not None:
            self.free()

    @abstractmethod
    def step(
        self,
        work: Callable[..., tuple[NDArray[Any], Answer]],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> tuple[Any, Answer]:
        """Like `reduce` for work that returns an array, the part of a new vector, and an answer."""

    @abstractmethod
    def chain(
        self,
        work: Callable[..., Answer],
        state: Answer,
        *vectors: Any,
        order: Integers,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Visit the partitions one after the other, in the order of their numbers.

        ``work(rows, *parts of vectors, state, *common)`` is given what the partition before has
        returned; the answer is that of the last one.
        """

    @property
    @abstractmethod
    def starts(self) -> Any:
        """A vector whose part in each partition is the number of its first row alone."""

    @abstractmethod
    def split(self, values: NDArray[Any]) -> Any:
        """Return one number per row, in the memory of this process, as a vector in partitions."""

    @abstractmethod
    def spread(self, places: Integers, values: Floats) -> Any:
        """Return the vector of these values at these rows, in ascending order, and 0 elsewhere."""


class VectorOnDevice(ABC):
    """Labels, targets, costs or α on a device, or in partitions of a cluster.

    Host code may treat it as an array, which copies it.

    Labels and targets come as they were given: `encoded` and `as_targets` check and convert them.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int]:
        """The number of values, in a tuple."""

    @property
    @abstractmethod
    def host(self) -> Any:
        """The values in the memory of the host, copied when they are first asked for."""

    @abstractmethod
    def encoded(self) -> tuple[Labels, Any] | None:
        """Return the different labels, and the class number of every one on the device.

        None stands for what is not one label per row, few of them different and none of them NaN.
        """

    @abstractmethod
    def signs(self, k: int) -> Any:
        """Return +1.0 for class number k and −1.0 for all others, on the device."""

    @abstractmethod
    def rows(self) -> Any:
        """Return the places of all values, on the device."""

    @abstractmethod
    def nonzero(self, factors: Any = None) -> tuple[Integers, Floats]:
        """Return the places of values other than 0, and those values times factors, on the host."""

    @abstractmethod
    def as_targets(self, largest: float) -> Any:
        """Return float64 numbers on the device; None where one is larger than this, or NaN."""


class PartitionedVector(VectorOnDevice):
    """A `VectorOnDevice` in the partitions of a `Partitioned` X."""

    sizes: list[int]  # the number of values in each partition

    @abstractmethod
    def pair_signs(self, i: int, j: int) -> Any:
        """Return +1.0 for class number i, −1.0 for j and 0.0 for all others."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of values."""

    @abstractmethod
    def min(self) -> float:
        """Return the least value."""

    @abstractmethod
    def sum(self) -> float:
        """Return the sum of all values."""

    @abstractmethod
    def combined(
        self, function: Callable[..., Any], *inputs: Any, ends: tuple[float, float] | None = None
    ) -> Any:
        """Return ``function`` of such vectors and numbers, part by part.

        ``ends`` are a lower and an upper bound of its values, where they are known.
        """

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest value, where they are known."""


def is_partitioned(values: Any) -> bool:
    """Return whether values are a collection of Dask, without importing it."""
    kind = type(values)
    is_dask = kind.__module__.partition(".")[0] in ("dask", "dask_expr")
    return is_dask and hasattr(kind, "__dask_graph__")


def refuse_partitions(*values: Any) -> None:
    """Raise TypeError for a collection of Dask, where all of its rows would have to be brought."""
    for each in values:
        if is_partitioned(each):
            kind = f"{type(each).__module__.partition('.')[0]} {type(each).__name__}"
            raise TypeError(
                f"Got a {kind} where rows in the memory of this process are needed: pass X and y "
                "of one kind to fit, predict and score, and some rows to everything else, for "
                "instance X[:1000].compute() of an array or X.head(1000) of a frame."
            )


def on_host(X: Matrix) -> Matrix:
    """Return X in the memory of the host; what is in partitions stays there."""
    return X.host if container(X).on_device else X


def take(X: Matrix, rows: Integers) -> Matrix:
    """Return some rows of X, where X is."""
    return X.take(rows) if isinstance(X, OnDevice) else X[rows]


class InMemory:
    """An array or a CSR matrix."""

    random_access = True
    on_device = False

    def __init__(self, X: Any) -> None:
        self.X, self.sparse = X, bool(sparse.issparse(X))

    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Yield X."""
        yield 0, self.X

    def stored(self) -> int:
        """Return how many numbers are stored."""
        return int(self.X.nnz if self.sparse else self.X.size)


@singledispatch
def container(X: Any) -> Container:
    """Return X as a `Container`; a type of X that is none of the usual registers itself here."""
    return InMemory(X)


@container.register
def _(X: Partitioned) -> Container:
    return X


# Numbers in one block of rows: small enough for the cache of a core, large enough for BLAS.
BLOCK = 1 << 18


def blocks_of(n_rows: int, row_length: int) -> Iterator[slice]:
    """Yield slices of consecutive rows that hold about ``BLOCK`` numbers each."""
    step = max(16, BLOCK // max(row_length, 1))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def row_length(X: Matrix) -> int:
    """Return the numbers stored per row: columns of a dense X, mean non-zeros of a sparse one."""
    return int(X.nnz // max(X.shape[0], 1)) + 1 if sparse.issparse(X) else X.shape[1]


def row_pieces(X: Matrix, numbers: int = 1 << 21) -> Iterator[tuple[int, Any]]:
    """Yield pieces of X that are stored row by row, each with the place of its first row.

    Columns are turned into rows some ``numbers`` at a time: all of them are not copied.
    """
    for start, piece in container(X).pieces():
        if sparse.issparse(piece) or piece.flags.c_contiguous:
            yield start, piece
            continue
        step = max(64, numbers // max(piece.shape[1], 1))
        for first in range(0, piece.shape[0], step):
            yield start + first, np.ascontiguousarray(piece[first : first + step])


def linear_scores(
    X: Matrix, w: Floats, index: Integers | None = None, *, absolute: bool = False
) -> Floats:
    """Return X wᵀ in float64, block by block, for some rows of X.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    w : ndarray of shape (n_vectors, n_features)
    index : ndarray of int, optional
        Rows of X, in any order; all of them by default.
    absolute : bool, default=False
        Return |X| |w|ᵀ instead.

    Returns
    -------
    ndarray of shape (n_rows, n_vectors)
        The products in float64.
    """
    scores = np.empty((X.shape[0] if index is None else index.size, w.shape[0]))
    for start, piece in container(X).pieces() if index is None else [(0, X)]:
        here = scores[start : start + piece.shape[0]] if index is None else scores
        for block in blocks_of(len(here), row_length(piece)):
            rows = row_block(piece, block, index)
            here[block] = abs(rows) @ np.abs(w).T if absolute else rows @ w.T
    return scores


def by_rows(X: Matrix) -> Matrix:
    """Return X as compiled passes over its rows take it: C order, or CSR with 32-bit indices.

    Other orders are copied rather than read across the rows in every pass, and passes are compiled
    for one kind of array; a large X stays as it is.
    """
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X) if X.nbytes <= COPIED_BYTES else X
    if sparse.issparse(X) and X.indices.dtype != np.int32 and X.data.nbytes <= COPIED_BYTES:
        indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return type(X)((X.data, indices, indptr), shape=X.shape)
    return X


def with_constant(X: Matrix, value: float) -> Matrix:
    """Return a copy of X, an array or a CSR matrix, with one more column of a constant value."""
    if isinstance(X, OnDevice):
        return X.with_constant(value)
    column = np.full((X.shape[0], 1), value, dtype=X.dtype)
    if not sparse.issparse(X):
        return np.hstack([X, column])
    return sparse.hstack([X, sparse.csr_matrix(column)], format="csr")


def dense(matrix: Matrix) -> Floats:
    """Return an array, or a sparse matrix made dense, in float64."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def row_block(X: Matrix, block: slice, index: Integers | None = None) -> Matrix:
    """Return some rows of X in float64."""
    if index is None and sparse.issparse(X):
        # The same as X[block], without its checks of every index.
        bounds = X.indptr[block.start : block.stop + 1]
        stored = slice(bounds[0], bounds[-1])
        parts = X.data[stored], X.indices[stored], bounds - bounds[0]
        rows = sparse.csr_matrix(parts, shape=(bounds.size - 1, X.shape[1]))
    else:
        rows = X[block] if index is None else X[index[block]]
    return rows.astype(np.float64, copy=False)


def has_repeats(index: Integers) -> bool:
    """Return whether a row is named more than once."""
    return bool(index.size and np.bincount(index).max() > 1)
