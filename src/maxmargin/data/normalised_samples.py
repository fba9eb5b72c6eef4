"""The normalised samples Z of the textbook, as a matrix that is never formed.

A separating algorithm looks for a with Za > 0, where row i of Z is z_i = y_i (x_i, 1)
(Duda, Hart, Stork, *Pattern Classification*, section 5.4.1), or for more than two classes a row of
Kesler's construction (section 5.12.1). Z is represented by the caller's X (dense or CSR, float32 or
float64, not copied) and a vector of labels; products with it are sums over blocks of rows in
float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Labels, Matrix
from .row_sums import BlockSums, RowSums

Answer = TypeVar("Answer")


class SharedSigns(NamedTuple):
    """Samples whose rows of Z are (x, 1) placed in the weight vectors with the same signs.

    Attributes
    ----------
    samples : ndarray of int of shape (n,)
    targets : ndarray of shape (n, n_rows_per_sample)
        m of each row of Z, times −1 where the row is negated.
    signs : ndarray of shape (n_rows_per_sample, n_vectors)
        The coefficient, +1, −1 or 0, with which (x, 1) enters each weight vector.
    """

    samples: Integers
    targets: Floats
    signs: Floats


class Samples(ABC):
    """An implicit matrix Z, with weight vectors a = (w, b) of length d + 1.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    labels : ndarray of shape (n,)
        Labels of the rows used, aligned with ``index``.
    index : ndarray of int of shape (n,), optional
        The rows of X to use (a pair of classes, or those of positive weight); all by default.
    bias_step : float, default=1.0
        The change of b that accompanies a change of w by x: 1 is the plain bias, R² = max‖x‖²
        Novikoff's (as if the constant feature were R), 0 is no bias.

    Attributes
    ----------
    index : ndarray of int of shape (n,)
        The rows of X that are used.
    subset : ndarray of int of shape (n,) or None
        The same, but None for all rows.
    first_row : int
        The number of the first row of X in the whole data, of which X may be a partition.
    """

    n_vectors: int
    first_row: int = 0

    def __init__(
        self,
        X: Matrix,
        labels: Labels,
        *,
        index: Integers | None = None,
        bias_step: float = 1.0,
    ) -> None:
        self.X = X
        self.labels = labels
        self.subset = index
        self.index = np.arange(X.shape[0]) if index is None else index
        self.bias_step = float(bias_step)
        self._plain_sums = BlockSums(X, index)
        self._sums: RowSums = self._plain_sums

    def computed_by(self, sums: RowSums) -> Self:
        """Return the same samples, with the sums over rows of ``sums``, an engine's features.

        Solvers use it; certificates stay with the plain sums.
        """
        samples = copy(self)
        samples._sums = sums
        return samples

    @property
    def n_samples(self) -> int:
        """Number of samples, each of which gives one row of Z or several."""
        return self.index.size

    @property
    def rows_per_sample(self) -> int:
        """Number of rows of Z per sample."""
        return 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of Z."""
        return self.n_samples * self.rows_per_sample, self.n_vectors * (self.X.shape[1] + 1)

    @abstractmethod
    def dot(self, a: Floats) -> Floats:
        """Return Za."""

    @abstractmethod
    def adjoint(self, u: Floats) -> Floats:
        """Return Zᵀu, its last entries (those of the biases) times ``bias_step``."""

    @abstractmethod
    def magnitude(self, a: Floats) -> Floats:
        """Return |Z||a|, the sums of the absolute terms of Za."""

    @abstractmethod
    def take(self, rows: Integers) -> Floats:
        """Return some rows of Z as a dense array."""

    @abstractmethod
    def plane_norms(self, w: Floats) -> Floats:
        """Return, for each row z of Z, the norm of w that turns z·a into a distance."""

    @abstractmethod
    def prior_biases(self, weights: Floats) -> Floats:
        """Return biases by which the class of the largest weight wins where w = 0."""

    @abstractmethod
    def groups(self, margins: Floats) -> Iterator[SharedSigns]:
        """Yield the samples in groups whose rows of Z have the same signs, with their targets."""

    def reduce(
        self,
        work: Callable[..., Answer],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> Answer:
        """Return ``work(Z, *vectors, *common)``.

        Of samples in partitions (`PartitionedSamples`) it is computed for the samples of each of
        them, with their parts of vectors of one number per row of Z, and the answers are merged.
        """
        return work(self, *vectors, *common)

    def step(
        self,
        work: Callable[..., tuple[Any, Answer]],
        merge: Callable[[list[Answer]], Answer],
        *vectors: Any,
        common: tuple[Any, ...] = (),
    ) -> tuple[Any, Answer]:
        """Return ``work(Z, *vectors, *common)``: a new vector, and an answer as of `reduce`."""
        return work(self, *vectors, *common)

    def map(self, work: Callable[..., Floats], *vectors: Any, common: tuple[Any, ...] = ()) -> Any:
        """Return ``work(Z, *vectors, *common)``, a vector, which stays where the rows are."""
        return work(self, *vectors, *common)

    def ones(self) -> Floats:
        """Return a vector of 1 for each row of Z."""
        return np.ones(self.shape[0])

    def places(self, samples: Integers) -> Integers:
        """Return the numbers of some samples in the whole data."""
        return self.first_row + self.index[samples]

    @property
    def largest_square(self) -> float:
        """The largest ‖x‖²."""
        return float(self.squared_rows.max())

    @property
    def longest(self) -> float:
        """The largest ‖z‖."""
        return float(np.sqrt(self.squared_norms().max()))

    @property
    def squared_rows(self) -> Floats:
        """‖x_i‖² of each sample, computed once for the solver and the certificate."""
        return self._plain_sums.squared_lengths

    @property
    def squared_lengths(self) -> Floats:
        """‖x_i‖² + bias_step of each sample."""
        return self.squared_rows + self.bias_step

    def squared_norms(self) -> Floats:
        """Return ‖z‖² of each row of Z."""
        return self.squared_lengths

    def squared_columns(self, weights: Floats) -> Floats:
        """Return Σ_i v_i x_ij² of each feature, and Σ_i v_i for the bias: (d + 1,)."""
        bias = float(self.bias_step > 0) * weights.sum()
        return np.append(self._plain_sums.squared_columns(weights), bias)

    def to_rows(self, per_sample: Floats) -> Floats:
        """Repeat one number per sample for each row of Z of that sample."""
        return per_sample

    def worst_of_each(self, rows: Floats) -> Floats:
        """Reduce one number per row of Z to the smallest of each sample."""
        return rows

    def pack(self, w: Floats, b: Floats) -> Floats:
        """Join planes w (n_vectors, d), b (n_vectors,) into one weight vector a."""
        return np.column_stack([w, b if self.bias_step else np.zeros_like(b)]).ravel()

    def norm(self, a: Floats) -> float:
        """Return ‖a‖ = √(‖w‖² + b²/bias_step), so that |z·a| ≤ ‖a‖‖z‖ with `squared_norms`."""
        vectors = a.reshape(self.n_vectors, -1)
        bias = np.linalg.norm(vectors[:, -1]) / np.sqrt(self.bias_step) if self.bias_step else 0.0
        return float(np.hypot(np.linalg.norm(vectors[:, :-1]), bias))

    def unpack(self, a: Floats) -> tuple[Floats, Floats]:
        """Split a weight vector a into planes w (n_vectors, d) and b (n_vectors,)."""
        vectors = a.reshape(self.n_vectors, -1)
        return vectors[:, :-1].copy(), vectors[:, -1].copy()

    def augmented(self, samples: Integers) -> Floats:
        """Return the rows (x, 1), or (x, 0) without a bias, of some samples in float64."""
        rows = self.X[self.index[samples]].astype(np.float64)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return np.column_stack([rows, np.full(samples.size, float(self.bias_step > 0))])

    def _scores(self, a: Floats) -> Floats:
        """x·w_k + b_k of every sample and every weight vector: (n_samples, n_vectors)."""
        vectors = a.reshape(self.n_vectors, -1)
        return self._sums.scores(vectors[:, :-1], vectors[:, -1])

    def _magnitudes(self, a: Floats) -> Floats:
        """|x|·|w_k| + |b_k| of every sample and every weight vector: (n_samples, n_vectors)."""
        vectors = a.reshape(self.n_vectors, -1)
        return self._plain_sums.magnitudes(vectors[:, :-1], vectors[:, -1])

    def _combine(self, coefficients: Floats) -> Floats:
        """Σ_i c_ik (x_i, bias_step) for every weight vector k, one after the other."""
        biases = self.bias_step * coefficients.sum(axis=0)
        return np.column_stack([self._sums.combine(coefficients), biases]).ravel()


class SignedSamples(Samples):
    """Two classes: z_i = y_i (x_i, 1) with y_i in {−1, +1}.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    labels : ndarray of shape (n,)
        Labels −1 and +1 of the rows used, aligned with ``index``.
    index : ndarray of int of shape (n,), optional
        The rows of X to use; all by default.
    bias_step : float, default=1.0
        The change of b that accompanies a change of w by x; see `Samples`.

    Examples
    --------
    >>> import numpy as np
    >>> Z = SignedSamples(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, -1.0]))
    >>> Z.dot(np.array([1.0, 1.0, -1.0]))
    array([ 2., -2.])
    """

    n_vectors = 1

    def dot(self, a: Floats) -> Floats:
        return self.labels * self._scores(a)[:, 0]

    def magnitude(self, a: Floats) -> Floats:
        return self._magnitudes(a)[:, 0]

    def adjoint(self, u: Floats) -> Floats:
        return self._combine((self.labels * u)[:, np.newaxis])

    def take(self, rows: Integers) -> Floats:
        return self.labels[rows, np.newaxis] * self.augmented(rows)

    def plane_norms(self, w: Floats) -> Floats:
        return np.full(self.n_samples, np.linalg.norm(w))

    def prior_biases(self, weights: Floats) -> Floats:
        # The share of the positive class minus that of the other; where they are equal, either.
        excess = float(weights @ self.labels) / float(weights.sum())
        return np.array([excess or 1.0 / self.n_samples])

    def groups(self, margins: Floats) -> Iterator[SharedSigns]:
        # z·a − m = y (x'·a − y m): the labels are moved to the targets.
        targets = (self.labels * margins)[:, np.newaxis]
        yield SharedSigns(np.arange(self.n_samples), targets, np.ones((1, 1)))


class KeslerSamples(Samples):
    """Kesler's construction: sample i gives one row per class j other than its own.

    Row (i, j) holds (x_i, 1) in the block of its class y_i, its negative in block j and zeros
    elsewhere, so that Za > 0 iff every sample has the highest score in its own class. None of the
    n(c − 1) rows of c(d + 1) numbers is formed: Za is a difference of scores.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    labels : ndarray of int of shape (n,)
        Class numbers 0, …, c − 1 of the rows used, aligned with ``index``.
    n_classes : int
        c, the number of weight vectors.
    index : ndarray of int of shape (n,), optional
        The rows of X to use; all by default.
    bias_step : float, default=1.0
        The change of b that accompanies a change of w by x; see `Samples`.
    """

    def __init__(
        self,
        X: Matrix,
        labels: Labels,
        *,
        n_classes: int,
        index: Integers | None = None,
        bias_step: float = 1.0,
    ) -> None:
        super().__init__(X, labels, index=index, bias_step=bias_step)
        self.n_vectors = n_classes

    @property
    def rows_per_sample(self) -> int:
        return self.n_vectors - 1

    @cached_property
    def rivals(self) -> Integers:
        """The other classes of each sample, in order: (n_samples, n_classes − 1)."""
        ranks = np.arange(self.n_vectors - 1)
        return ranks + (ranks >= self.labels[:, np.newaxis])

    def squared_norms(self) -> Floats:
        return self.to_rows(2.0 * self.squared_lengths)

    def to_rows(self, per_sample: Floats) -> Floats:
        return np.repeat(per_sample, self.rows_per_sample)

    def worst_of_each(self, rows: Floats) -> Floats:
        return rows.reshape(self.n_samples, self.rows_per_sample).min(axis=1)

    def dot(self, a: Floats) -> Floats:
        own, others = self._own_and_others(self._scores(a))
        return (own - others).ravel()

    def magnitude(self, a: Floats) -> Floats:
        own, others = self._own_and_others(self._magnitudes(a))
        return (own + others).ravel()

    def adjoint(self, u: Floats) -> Floats:
        u = u.reshape(self.n_samples, -1)
        coefficients = np.zeros((self.n_samples, self.n_vectors))
        np.put_along_axis(coefficients, self.rivals, -u, axis=1)
        coefficients[np.arange(self.n_samples), self.labels] = u.sum(axis=1)
        return self._combine(coefficients)

    def take(self, rows: Integers) -> Floats:
        sample, rank = np.divmod(rows, self.rows_per_sample)
        augmented = self.augmented(sample)
        out = np.zeros((rows.size, self.n_vectors, augmented.shape[1]))
        out[np.arange(rows.size), self.labels[sample]] = augmented
        out[np.arange(rows.size), self.rivals[sample, rank]] = -augmented
        return out.reshape(rows.size, -1)

    def plane_norms(self, w: Floats) -> Floats:
        pairwise = np.array([np.linalg.norm(w - row, axis=1) for row in w])
        return pairwise[self.labels[:, np.newaxis], self.rivals].ravel()

    def prior_biases(self, weights: Floats) -> Floats:
        totals = np.bincount(self.labels, weights=weights, minlength=self.n_vectors)
        return totals / totals.sum()

    def groups(self, margins: Floats) -> Iterator[SharedSigns]:
        margins = margins.reshape(self.n_samples, -1)
        for own in range(self.n_vectors):
            members = np.flatnonzero(self.labels == own)
            signs = -np.delete(np.eye(self.n_vectors), own, axis=0)
            signs[:, own] = 1.0
            yield SharedSigns(members, margins[members], signs)

    def _own_and_others(self, scores: Floats) -> tuple[Floats, Floats]:
        """Scores of the own class of each sample, (n, 1), and of the others, (n, c − 1)."""
        own = np.take_along_axis(scores, self.labels[:, np.newaxis], axis=1)
        return own, np.take_along_axis(scores, self.rivals, axis=1)
