"""X of a fit as checked partitions, on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import dask
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...arrays import Floats, Integers, Labels, Partitioned
from ...validation import refuse_size, weighted_variance
from .checks import Block, PartFacts, block_of, prepare, vectors_of
from .cluster import Cluster, Handle
from .collections import is_held, known_sizes, partitions_of, vector_partitions
from .vector import DaskVector, column_of, split

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Tuning:
    """Sizes."""

    # The share of the memory of all workers up to which X is kept there.
    held_share: float = 0.5


TUNING = Tuning()


class DaskRows(Partitioned):
    """X in partitions.

    Parameters
    ----------
    cluster : Cluster
    blocks : list of Handle
        `Block`, one per partition that has rows.
    facts : list of PartFacts
        Of the same partitions.
    example : DataFrame, optional
        No row of it, with the names of the columns, of a frame.
    """

    def __init__(
        self, cluster: Cluster, blocks: list[Handle], facts: list[PartFacts], example: Any = None
    ) -> None:
        self.cluster, self.blocks, self.facts, self.example = cluster, blocks, facts, example
        if example is None:
            self.example = np.empty((1, facts[0].n_columns))
        self._head: Any = None
        self.report = cluster.report
        self.shape = sum(self.sizes), facts[0].n_columns
        self.dtype = np.result_type(*{fact.dtype for fact in facts})
        self.sparse = facts[0].sparse
        cluster.report.n_partitions, cluster.report.n_samples = len(blocks), self.shape[0]

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each partition."""
        return [fact.n_rows for fact in self.facts]

    @property
    def n_bytes(self) -> int:
        """The bytes of X."""
        per_number = self.dtype.itemsize + (4 if self.sparse else 0)
        return self.stored() * per_number

    def __len__(self) -> int:
        return self.shape[0]

    def stored(self) -> int:
        """Return how many numbers are stored."""
        return sum(fact.stored for fact in self.facts)

    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Bring one partition after the other to this process."""
        start = 0
        for block, size in zip(self.blocks, self.sizes, strict=True):
            yield start, self.cluster.round(_rows_of, _only, [block])
            start += size

    def head(self, n_rows: int) -> Any:
        """Return about so many rows, evenly spaced: those of the last call if they are enough."""
        if self._head is None or self._head.shape[0] < min(n_rows, self.shape[0]):
            self._head = self._fetched(n_rows)
        return self._head[:: max(1, self._head.shape[0] // n_rows)]

    def remember(self, rows: Any) -> None:
        """Take rows that have come to this process, evenly spaced, for `head`."""
        self._head = rows

    def _fetched(self, n_rows: int) -> Any:
        step = max(1, self.shape[0] // max(n_rows, 1))
        firsts = [int(-start % step) for start in self.first_rows]
        return self.cluster.round(_some_rows, stacked, self.blocks, firsts, common=(step,))

    @property
    def host(self) -> Any:
        """All rows in the memory of this process."""
        return self.head(self.shape[0])

    @property
    def first_rows(self) -> Integers:
        """The first row of each partition."""
        return np.cumsum([0, *self.sizes[:-1]])

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, in any order and more than once, in the memory of this process."""
        different, places = np.unique(np.asarray(rows, dtype=np.intp), return_inverse=True)
        if not different.size:
            return self.empty()
        some, columns = self._held(different)
        found = self.cluster.round(_rows_at, stacked, some, columns, reads=False)
        return found if np.array_equal(different, rows) else found[places]

    def places_in(self, rows: Integers) -> list[Integers]:
        """Return the places of some rows within each partition, in ascending order."""
        ends = np.searchsorted(rows, np.cumsum(self.sizes)[:-1])
        parts = np.split(rows, ends)
        return [part - start for part, start in zip(parts, self.first_rows, strict=True)]

    def _held(self, rows: Integers) -> tuple[list[Handle], list[Integers]]:
        """Return the partitions that hold some rows, and the places of those there."""
        places = self.places_in(rows)
        chosen = [k for k, some in enumerate(places) if some.size]
        return [self.blocks[k] for k in chosen], [places[k] for k in chosen]

    def stacked(self, rows: Integers) -> Handle:
        """Return different rows in ascending order, one below the other, on a worker."""
        parts = self.cluster.start(_rows_at, *self._held(rows))
        return self.cluster.start(stacked, [parts])[0]

    def empty(self) -> Any:
        """Return no row, of the type and the width of X."""
        shape = (0, self.shape[1])
        return sparse.csr_matrix(shape, dtype=self.dtype) if self.sparse else np.empty(shape)

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return self.n_bytes // max(1, self.shape[0])

    def variance(self, weights: Floats | None = None) -> float:
        """Return the variance of all entries, those of a row counted ``weights`` times."""
        vector = np.ones(1) if weights is None else weights
        total, _, squares = self.reduce(_moments, _pooled, vector)
        return squares / total

    def constant_columns(self) -> tuple[Integers, Floats]:
        """Return the columns that hold one value throughout, and those values."""
        columns, values = self.facts[0].constant  # type: ignore[misc]
        for fact in self.facts[1:]:
            here, there = fact.constant  # type: ignore[misc]
            both, first, second = np.intersect1d(columns, here, return_indices=True)
            same = values[first] == there[second]
            columns, values = both[same], values[first][same]
        return columns, values

    def column(self, values: Any) -> Any:
        """Return what each partition gets of a vector, here or in partitions, or of a number."""
        if isinstance(values, np.ndarray) and values.shape == (self.shape[0],):
            values = self.split(values)
        return column_of(values, len(self.blocks))

    def map(
        self, work: Callable[..., Any], *vectors: Any, common: tuple[Any, ...] = ()
    ) -> DaskVector:
        """Return the vector of ``work(rows, *parts of vectors, *common)``."""
        columns = [self.column(each) for each in vectors]
        parts = self.cluster.start(partial(_with_rows, work), self.blocks, *columns, common=common)
        return DaskVector(self.cluster, parts, self.sizes)

    def reduce(
        self,
        work: Callable[..., Answer],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
        reads_rows: bool = True,
    ) -> Answer:
        """Return the merged answers of ``work(rows, *parts of vectors, *common)``."""
        columns = [self.column(each) for each in vectors]
        found: Answer
        if reads_rows:
            columns, work = [self.blocks, *columns], partial(_with_rows, work)
        found = self.cluster.round(work, merge, *columns, common=common, reads=reads_rows)
        return found

    def free(self) -> None:
        """Release all tasks of the fit."""
        self.cluster.backend.free()

    def step(
        self,
        work: Callable[..., tuple[Any, Answer]],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> tuple[DaskVector, Answer]:
        """Like `reduce` for work that returns the part of a new vector, and an answer."""
        columns = [self.column(each) for each in vectors]
        parts, found = self.cluster.step(
            partial(_with_rows, work), merge, self.blocks, *columns, common=common
        )
        return DaskVector(self.cluster, parts, self.sizes), found

    def chain(
        self,
        work: Callable[..., Answer],
        state: Answer,
        *vectors: Any,
        order: Integers,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Visit the partitions one after the other, each given what the one before has returned."""
        columns = [self.blocks, *(self.column(each) for each in vectors)]
        ordered = [[column[k] for k in order] for column in columns]
        found: Answer = self.cluster.chain(
            partial(_with_rows, work), state, *ordered, common=common
        )
        return found

    @property
    def starts(self) -> DaskVector:
        """A vector whose part in each partition is the number of its first row alone."""
        parts = [np.array([start]) for start in self.first_rows]
        return DaskVector(self.cluster, parts, [1] * len(parts), dtype=np.intp)

    def split(self, values: NDArray[Any]) -> DaskVector:
        """Return one number per row, in the memory of this process, as a vector in partitions."""
        return split(self.cluster, values, self.sizes)

    def spread(self, places: Integers, values: Floats) -> DaskVector:
        """Return the vector of these values at these rows, in ascending order, and 0 elsewhere.

        X is not read: tasks that nobody waits for would otherwise read streamed rows once more, or
        keep them in memory until the next passes.
        """
        ends = np.searchsorted(places, np.cumsum(self.sizes)[:-1])
        columns = self.sizes, self.places_in(places), np.split(values, ends)
        return DaskVector(self.cluster, self.cluster.start(_spread, *columns), self.sizes)


class Received(NamedTuple):
    """The arguments of a fit in partitions."""

    X: DaskRows
    y: DaskVector | None
    weights: DaskVector | None


def receive(X: Any, y: Any, sample_weight: Any) -> Received:
    """Check collections partition by partition, and keep them on the workers if there is room."""
    cluster = Cluster.current()
    try:
        return _received(X, y, sample_weight, cluster)
    except BaseException:
        cluster.backend.free()
        raise


def _received(X: Any, y: Any, sample_weight: Any, cluster: Cluster) -> Received:
    sources = partitions_of(X)
    n = len(sources)
    columns = (
        list(range(n)),
        sources,
        vector_partitions("y", y, X, n, cluster),
        vector_partitions("sample_weight", sample_weight, X, n, cluster),
    )
    if _fits(X, sources, cluster):
        vectors, facts = cluster.step(prepare, _joined, *columns)
        blocks = vectors
    else:
        vectors, facts = cluster.step(vectors_of, _joined, *columns)
        lazy = dask.delayed(block_of, pure=False, traverse=False)
        blocks = [lazy(source) for source in sources]
        cluster.report.streamed = True
    facts = sorted(facts, key=lambda fact: fact.number)
    _refuse(facts)
    filled = [k for k, fact in enumerate(facts) if fact.n_rows]
    example = X._meta if hasattr(X, "columns") else None
    blocks, facts, vectors = ([each[k] for k in filled] for each in (blocks, facts, vectors))
    rows = DaskRows(cluster, blocks, facts, example)
    refuse_size(max(fact.largest for fact in rows.facts))
    labels = None if y is None else _labels(rows, vectors)
    return Received(rows, labels, None if sample_weight is None else _weights(rows, vectors))


def _fits(X: Any, sources: list[Any], cluster: Cluster) -> bool:
    """Return whether the workers have room for all of X."""
    if is_held(X, cluster):
        return True
    is_known = known_sizes(X) is not None and not sparse.issparse(X._meta)
    total = float(X.nbytes) if is_known else np.nan
    if np.isnan(total):
        total = len(sources) * cluster.round(_bytes_of, max, sources[:1])
    return total <= TUNING.held_share * cluster.backend.memory


def _refuse(facts: list[PartFacts]) -> None:
    """Raise the error of the first partition that has one, and those of different ones."""
    for fact in facts:
        if fact.error is not None:
            raise ValueError(f"Partition {fact.number}: {fact.error}")
    filled = [fact for fact in facts if fact.n_rows]
    if not filled:
        raise ValueError(
            f"Found array with 0 sample(s) in {len(facts)} partition(s) while a minimum of 1 is "
            "required."
        )
    first = filled[0]
    for fact in filled[1:]:
        if (fact.n_columns, fact.sparse) != (first.n_columns, first.sparse):
            raise ValueError(
                f"Partitions must be alike: {_kind(first)} in partition {first.number}, "
                f"{_kind(fact)} in partition {fact.number}. Convert those that differ."
            )


def _kind(fact: PartFacts) -> str:
    return f"{'CSR' if fact.sparse else 'dense'} rows of {fact.n_columns} columns"


def _labels(rows: DaskRows, vectors: list[Handle]) -> DaskVector:
    kinds = {fact.label_kind for fact in rows.facts}
    classes: Labels | None = None
    lists = [fact.labels for fact in rows.facts]
    if all(each is not None for each in lists):
        _refuse_mixture(rows.facts)
        classes = np.unique(np.concatenate(lists))  # type: ignore[arg-type]
    ends = None
    if kinds <= set("biuf"):
        ends = min(fact.low for fact in rows.facts), max(fact.high for fact in rows.facts)
    parts = rows.cluster.start(_labels_of, vectors)
    dtype = classes.dtype if classes is not None else np.float64
    return DaskVector(rows.cluster, parts, rows.sizes, classes, ends, dtype)


def _refuse_mixture(facts: list[PartFacts]) -> None:
    """Refuse labels that are numbers in one partition, and something else in another."""
    first: dict[bool, PartFacts] = {}
    for fact in facts:
        first.setdefault(fact.label_kind in "biuf", fact)
    if len(first) > 1:
        raise ValueError(
            f"y mixes labels of types: numbers in partition {first[True].number}, others in "
            f"partition {first[False].number}. Pass labels of one type."
        )


def _weights(rows: DaskRows, vectors: list[Handle]) -> DaskVector:
    ends = (
        min(fact.least_weight for fact in rows.facts),
        max(fact.largest_weight for fact in rows.facts),
    )
    if not ends[1] > 0.0:
        raise ValueError("Sample weights are all zero: at least two samples must count.")
    parts = rows.cluster.start(_weights_of, vectors)
    return DaskVector(rows.cluster, parts, rows.sizes, ends=ends)


# What workers do ----------------------------------------------------------------------------------


def _with_rows(work: Callable[..., Any], block: Block, *arguments: Any) -> Any:
    return work(block.X, *arguments)


def _rows_of(block: Block) -> Any:
    return block.X


def _labels_of(block: Block) -> Any:
    return block.y


def _weights_of(block: Block) -> Any:
    return block.weights


def _bytes_of(rows: Any) -> float:
    from dask.sizeof import sizeof

    return float(sizeof(rows))


def _some_rows(block: Block, first: int, step: int) -> Any:
    return block.X[first::step].copy()


def _rows_at(block: Block, places: Integers) -> Any:
    return block.X[places]


def _spread(n_rows: int, places: Integers, values: Floats) -> Floats:
    out = np.zeros(n_rows)
    out[places] = values
    return out


def _moments(X: Any, weights: Floats) -> tuple[float, float, float]:
    """Return the number of entries, their mean, and the sum of squares about it."""
    weights = np.broadcast_to(weights, X.shape[0])
    total = float(weights.sum()) * X.shape[1]
    if not total:
        return 0.0, 0.0, 0.0
    return total, float((X.T @ weights).sum() / total), weighted_variance(X, weights) * total


def _pooled(parts: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    total, mean, squares = parts[0]
    for n, centre, rest in parts[1:]:
        both = max(total + n, np.finfo(float).tiny)
        apart = centre - mean
        squares += rest + apart**2 * total * n / both
        mean += apart * n / both
        total += n
    return total, mean, squares


def stacked(parts: list[Any]) -> Any:
    """Return rows one below the other."""
    return (
        sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    )


def _only(parts: list[Any]) -> Any:
    return parts[0]


def _joined(parts: list[list[Any]]) -> list[Any]:
    return [each for part in parts for each in part]
