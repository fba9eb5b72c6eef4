"""The normalised samples Z of two classes in partitions, on the workers of a cluster.

What is asked of all rows is computed where they are, by the code for samples in memory: a partition
is a `SignedSamples` there. Numbers of rows are those of the whole collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Matrix, Partitioned, PartitionedVector, by_rows
from .normalised_samples import Samples, SharedSigns, SignedSamples

Answer = TypeVar("Answer")


class Facts(NamedTuple):
    """Samples of both classes, and the largest ‖x‖²."""

    n_positive: int
    n_negative: int
    largest_square: float


class SomeRows(NamedTuple):
    """Rows that have come to this process, in increasing order of their numbers."""

    places: Integers
    X: Matrix
    labels: Floats


class PartitionedSamples(Samples):
    """Two classes in partitions: z_i = y_i (x_i, 1) with y_i in {−1, 0, +1}.

    Rows of label 0 do not take part. Vectors of one number per row have 0 there, or any number.

    Parameters
    ----------
    X : Partitioned
    labels : PartitionedVector
        −1, +1, or 0 of rows that do not take part.
    bias_step : float, default=1.0
        The change of b that accompanies a change of w by x; see `Samples`.
    """

    n_vectors = 1

    def __init__(
        self, X: Partitioned, labels: PartitionedVector, *, bias_step: float = 1.0
    ) -> None:
        self.X: Any = X
        self.labels: Any = labels
        self.bias_step = float(bias_step)

    def with_bias_step(self, bias_step: float) -> Self:
        """Return the same samples with another step of the bias."""
        samples = copy(self)
        samples.bias_step = float(bias_step)
        return samples

    @property
    def n_samples(self) -> int:
        return self.facts.n_positive + self.facts.n_negative

    @cached_property
    def facts(self) -> Facts:
        """What is known of all samples, after one round."""
        return self.reduce(_facts, _merged_facts)

    @property
    def largest_square(self) -> float:
        return self.facts.largest_square

    @property
    def longest(self) -> float:
        return float(np.sqrt(self.largest_square + self.bias_step))

    def ones(self) -> Floats:
        """Return the number 1, for all rows."""
        return np.ones(1)

    def reduce(
        self,
        work: Callable[..., Answer],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Return the merged answers of ``work(Z of a partition, *parts of vectors, *common)``.

        Partitions of which no row takes part are not asked.
        """
        found: Answer | None = self.X.reduce(
            self._sent(_answer_of_part, work, vectors), partial(_merged, merge),
            self.labels, self.X.starts, *vectors, common=common,
        )  # fmt: skip
        assert found is not None, "no row takes part"
        return found

    def step(
        self,
        work: Callable[..., tuple[Any, Answer]],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> tuple[Any, Answer]:
        found: tuple[Any, Answer] = self.X.step(
            self._sent(_pair_of_part, work, vectors), partial(_merged, merge),
            self.labels, self.X.starts, *vectors, common=common,
        )  # fmt: skip
        return found

    def map(self, work: Callable[..., Floats], *vectors: Any, common: tuple[Any, ...] = ()) -> Any:
        return self.X.map(
            self._sent(_vector_of_part, work, vectors), self.labels, self.X.starts, *vectors,
            common=common,
        )  # fmt: skip

    def chain(
        self,
        work: Callable[..., Answer],
        state: Answer,
        *vectors: Any,
        order: Integers,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Visit partitions one after the other: ``work(Z, *parts of vectors, state, *common)``."""
        found: Answer = self.X.chain(
            self._sent(_next_of_part, work, vectors), state, self.labels, self.X.starts, *vectors,
            order=order, common=common,
        )  # fmt: skip
        return found

    def _sent(self, kind: Any, work: Any, vectors: tuple[Any, ...]) -> Any:
        return partial(kind, self.bias_step, len(vectors), work)

    def dot(self, a: Floats) -> Any:
        return self.map(SignedSamples.dot, common=(a,))

    def magnitude(self, a: Floats) -> Any:
        return self.map(SignedSamples.magnitude, common=(a,))

    def adjoint(self, u: Any) -> Floats:
        return self.reduce(SignedSamples.adjoint, added, u)

    def take(self, rows: Integers) -> Floats:
        """Return rows of Z, given in increasing order of their numbers, as a dense array."""
        some = self.some_rows(rows)
        return self.held(some).take(np.arange(rows.size))

    def augmented(self, samples: Integers) -> Floats:
        some = self.some_rows(samples)
        return self.held(some).augmented(np.arange(samples.size))

    def some_rows(self, places: Integers) -> SomeRows:
        """Bring rows, given in increasing order of their numbers, to this process."""
        return self.reduce(rows_at, merged_rows, common=(places,))

    def held(self, some: SomeRows) -> SignedSamples:
        """Return the normalised samples of rows that have come to this process."""
        return SignedSamples(some.X, some.labels, bias_step=self.bias_step)

    def spread(self, places: Integers, values: Floats) -> Any:
        """Return the vector that has these values at these places, and 0 elsewhere."""
        return self.X.spread(places, values)

    def plane_norms(self, w: Floats) -> Any:
        raise NotImplementedError("ask for the smallest margin of each partition")

    def prior_biases(self, weights: Floats) -> Floats:
        raise NotImplementedError("no rule in partitions starts at a prior")

    def groups(self, margins: Floats) -> Iterator[SharedSigns]:
        raise NotImplementedError("ask for the groups of each partition")


# What workers do ----------------------------------------------------------------------------------


class _Part(NamedTuple):
    """The samples of a partition, their vectors, and what all partitions are given."""

    Z: SignedSamples
    vectors: list[Floats]
    others: tuple[Any, ...]
    n_rows: int

    @classmethod
    def of(
        cls, bias_step: float, n_vectors: int, X: Any, labels: Floats, start: Integers,
        arguments: tuple[Any, ...],
    ) -> _Part:  # fmt: skip
        vectors, others = arguments[:n_vectors], arguments[n_vectors:]
        index = None if labels.all() else np.flatnonzero(labels)
        y = labels if index is None else labels[index]
        Z = SignedSamples(by_rows(X), y, index=index, bias_step=bias_step)
        Z.first_row = int(start[0])
        return cls(Z, [_of_samples(v, index, y.size) for v in vectors], others, labels.size)

    def vector(self, values: Floats) -> Floats:
        """Return one number per row: those of samples, and 0 of rows that do not take part."""
        if self.Z.subset is None:
            return values
        out = np.zeros(self.n_rows)
        out[self.Z.subset] = values
        return out


def _of_samples(vector: Floats, index: Integers | None, n: int) -> Floats:
    """Return the numbers of samples of a vector of all rows, or of one number."""
    if vector.size == 1:
        return np.full(n, vector[0])
    return vector if index is None else vector[index]


def _answer_of_part(
    bias_step: float, n_vectors: int, work: Callable[..., Any], X: Any, labels: Floats,
    start: Integers, *arguments: Any,
) -> Any:  # fmt: skip
    part = _Part.of(bias_step, n_vectors, X, labels, start, arguments)
    return work(part.Z, *part.vectors, *part.others) if part.Z.n_samples else None


def _pair_of_part(
    bias_step: float, n_vectors: int, work: Callable[..., Any], X: Any, labels: Floats,
    start: Integers, *arguments: Any,
) -> Any:  # fmt: skip
    part = _Part.of(bias_step, n_vectors, X, labels, start, arguments)
    if not part.Z.n_samples:
        return np.zeros(part.n_rows), None
    values, answer = work(part.Z, *part.vectors, *part.others)
    return part.vector(values), answer


def _vector_of_part(
    bias_step: float, n_vectors: int, work: Callable[..., Any], X: Any, labels: Floats,
    start: Integers, *arguments: Any,
) -> Floats:  # fmt: skip
    part = _Part.of(bias_step, n_vectors, X, labels, start, arguments)
    if not part.Z.n_samples:
        return np.zeros(part.n_rows)
    return part.vector(work(part.Z, *part.vectors, *part.others))


def _next_of_part(
    bias_step: float, n_vectors: int, work: Callable[..., Any], X: Any, labels: Floats,
    start: Integers, *arguments: Any,
) -> Any:  # fmt: skip
    part = _Part.of(bias_step, n_vectors, X, labels, start, arguments)
    state = part.others[0]
    return work(part.Z, *part.vectors, *part.others) if part.Z.n_samples else state


def _merged(merge: Callable[[list[Any]], Any], found: list[Any]) -> Any:
    """Merge the answers of partitions that have some."""
    answers = [each for each in found if each is not None]
    return merge(answers) if answers else None


def added(found: list[Any]) -> Any:
    """Return the sum of numbers or arrays."""
    return np.sum(found, axis=0)


def total(found: list[Any]) -> Any:
    """Return the sum of numbers."""
    return sum(found)


def _facts(Z: SignedSamples) -> Facts:
    positive = int(np.count_nonzero(Z.labels > 0))
    return Facts(positive, Z.n_samples - positive, Z.largest_square)


def _merged_facts(found: list[Facts]) -> Facts:
    positive, negative, squares = zip(*found, strict=True)
    return Facts(sum(positive), sum(negative), max(squares))


def rows_at(Z: SignedSamples, places: Integers) -> SomeRows:
    """Return those rows of a partition that are asked for."""
    mine = np.searchsorted(places, [Z.first_row, Z.first_row + Z.X.shape[0]])
    rows = places[mine[0] : mine[1]] - Z.first_row
    samples = rows if Z.subset is None else np.searchsorted(Z.index, rows)
    return rows_of_samples(Z, samples)


def rows_of_samples(Z: SignedSamples, samples: Integers) -> SomeRows:
    """Return the rows of some samples, in increasing order, to be sent."""
    return SomeRows(Z.places(samples), Z.X[Z.index[samples]], Z.labels[samples])


def merged_rows(found: list[SomeRows]) -> SomeRows:
    """Join rows of some partitions, in increasing order of their numbers."""
    places, rows, labels = zip(*found, strict=True)
    X = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.vstack(rows)
    joined = np.concatenate(places)
    order = np.argsort(joined)
    return SomeRows(joined[order], X[order], np.concatenate(labels)[order])
