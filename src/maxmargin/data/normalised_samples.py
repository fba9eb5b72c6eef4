"""The normalised samples Z of the textbook, as a matrix that is never formed.

A separating algorithm looks for a with Za > 0, where row i of Z is z_i = y_i (x_i, 1)
(Duda, Hart, Stork, *Pattern Classification*, section 5.4.1), or for more than two classes a row of
Kesler's construction (section 5.12.1). Here Z is held as the caller's X (dense or CSR, float32 or
float64, not copied) and a vector of labels; products with it run over blocks of rows in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import Floats, Integers, blocks_of, linear_scores, row_block, row_length


def _squares(rows: Any) -> Any:
    if not sparse.issparse(rows):
        return rows * rows
    return sparse.csr_matrix((rows.data**2, rows.indices, rows.indptr), shape=rows.shape)


class Samples(ABC):
    """An implicit matrix Z, with weight vectors a = (w, b) of length d + 1.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    labels : ndarray of shape (n,)
        Labels of the rows used, aligned with ``index``.
    index : ndarray of int of shape (n,), optional
        Rows of X that take part (a pair of classes, or those of positive weight); all by default.
    bias_step : float, default=1.0
        What b moves by when w moves by x: 1 is the plain bias, R² = max‖x‖² Novikoff's (as if the
        constant feature were R), 0 is no bias.
    """

    n_vectors: int

    def __init__(
        self, X: Any, labels: NDArray[Any], *, index: Integers | None = None, bias_step: float = 1.0
    ) -> None:
        self.X = X
        self.labels = labels
        self._subset = index
        self.index = np.arange(X.shape[0]) if index is None else index
        self.bias_step = float(bias_step)

    @property
    def n_samples(self) -> int:
        """Number of samples, each of which gives one row of Z or several."""
        return self.index.size

    @property
    def rows_per_sample(self) -> int:
        """Rows of Z that one sample gives."""
        return 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of Z."""
        return self.n_samples * self.rows_per_sample, self.n_vectors * (self.X.shape[1] + 1)

    @abstractmethod
    def dot(self, a: Floats) -> Floats:
        """Return Za."""

    @abstractmethod
    def adjoint(self, u: Floats) -> Floats:
        """Return Zᵀu, its last entries (those of the biases) times ``bias_step``."""

    @abstractmethod
    def magnitude(self, a: Floats) -> Floats:
        """Return |Z||a|: what the terms of Za add up to without their signs."""

    @abstractmethod
    def take(self, rows: Integers) -> Floats:
        """Return the named rows of Z as a dense array."""

    @property
    def squared_lengths(self) -> Floats:
        """‖x_i‖² + bias_step of each sample."""
        return self.squared_rows + self.bias_step

    @cached_property
    def squared_rows(self) -> Floats:
        """‖x_i‖² of each sample."""
        total = np.empty(self.n_samples)
        for block in blocks_of(self.n_samples, row_length(self.X)):
            rows = row_block(self.X, block, self._subset)
            if sparse.issparse(rows):
                total[block] = _squares(rows) @ np.ones(rows.shape[1])
            else:
                total[block] = np.einsum("ij,ij->i", rows, rows)
        return total

    def squared_columns(self, weights: Floats) -> Floats:
        """Σ_i v_i x_ij² of each feature, and Σ_i v_i of the bias: (d + 1,)."""
        total = np.zeros(self.X.shape[1] + 1)
        for block in blocks_of(self.n_samples, row_length(self.X)):
            rows = row_block(self.X, block, self._subset)
            total[:-1] += _squares(rows).T @ weights[block]
        total[-1] = float(self.bias_step > 0) * weights.sum()
        return total

    def squared_norms(self) -> Floats:
        """‖z‖² of each row of Z."""
        return self.squared_lengths

    def to_rows(self, per_sample: Floats) -> Floats:
        """Repeat a number per sample for each row of Z that the sample gives."""
        return per_sample

    def worst_of_each(self, rows: Floats) -> Floats:
        """Reduce a number per row of Z to the smallest of each sample."""
        return rows

    def pack(self, w: Floats, b: Floats) -> Floats:
        """Join planes w (n_vectors, d), b (n_vectors,) into one weight vector a."""
        return np.column_stack([w, b if self.bias_step else np.zeros_like(b)]).ravel()

    def norm(self, a: Floats) -> float:
        """Return √(‖w‖² + b²/bias_step): the length of a where z has length ``squared_norms``."""
        vectors = a.reshape(self.n_vectors, -1)
        bias = np.linalg.norm(vectors[:, -1]) / np.sqrt(self.bias_step) if self.bias_step else 0.0
        return float(np.hypot(np.linalg.norm(vectors[:, :-1]), bias))

    def unpack(self, a: Floats) -> tuple[Floats, Floats]:
        """Split a weight vector a into planes w (n_vectors, d) and b (n_vectors,)."""
        vectors = a.reshape(self.n_vectors, -1)
        return vectors[:, :-1].copy(), vectors[:, -1].copy()

    def augmented(self, samples: Integers) -> Floats:
        """Return the rows (x, 1), or (x, 0) without a bias, of the named samples in float64."""
        rows = self.X[self.index[samples]].astype(np.float64)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return np.column_stack([rows, np.full(samples.size, float(self.bias_step > 0))])

    def _scores(self, vectors: Floats, absolute: bool = False) -> Floats:
        """x·w_k + b_k of every sample and every weight vector: (n_samples, n_vectors)."""
        scores = linear_scores(self.X, vectors[:, :-1], self._subset, absolute=absolute)
        scores += np.abs(vectors[:, -1]) if absolute else vectors[:, -1]
        return scores

    def _combine(self, coefficients: Floats) -> Floats:
        """Σ_i c_ik (x_i, bias_step) for every weight vector k: (n_vectors, d + 1)."""
        total = np.zeros((self.n_vectors, self.X.shape[1] + 1))
        for block in blocks_of(self.n_samples, row_length(self.X)):
            rows = row_block(self.X, block, self._subset)
            total[:, :-1] += (rows.T @ coefficients[block]).T
        total[:, -1] = self.bias_step * coefficients.sum(axis=0)
        return total


class SignedSamples(Samples):
    """Two classes: z_i = y_i (x_i, 1) with y_i in {−1, +1}.

    Examples
    --------
    >>> import numpy as np
    >>> Z = SignedSamples(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, -1.0]))
    >>> Z.dot(np.array([1.0, 1.0, -1.0]))
    array([ 2., -2.])
    """

    n_vectors = 1

    def dot(self, a: Floats) -> Floats:
        return self.labels * self._scores(a[np.newaxis])[:, 0]

    def magnitude(self, a: Floats) -> Floats:
        return self._scores(a[np.newaxis], absolute=True)[:, 0]

    def adjoint(self, u: Floats) -> Floats:
        return self._combine((self.labels * u)[:, np.newaxis])[0]

    def take(self, rows: Integers) -> Floats:
        return self.labels[rows, np.newaxis] * self.augmented(rows)


class KeslerSamples(Samples):
    """Kesler's construction: sample i gives a row for every class j other than its own.

    Row (i, j) holds (x_i, 1) in the block of its class y_i, its negative in block j and zeros
    elsewhere, so that Za > 0 iff every sample scores highest in its own class. None of the
    n(c − 1) rows of c(d + 1) numbers is formed: Za is a difference of scores.
    """

    def __init__(
        self,
        X: Any,
        labels: NDArray[Any],
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
        scores = self._scores(a.reshape(self.n_vectors, -1))
        own = np.take_along_axis(scores, self.labels[:, np.newaxis], axis=1)
        return (own - np.take_along_axis(scores, self.rivals, axis=1)).ravel()

    def magnitude(self, a: Floats) -> Floats:
        scores = self._scores(a.reshape(self.n_vectors, -1), absolute=True)
        own = np.take_along_axis(scores, self.labels[:, np.newaxis], axis=1)
        return (own + np.take_along_axis(scores, self.rivals, axis=1)).ravel()

    def adjoint(self, u: Floats) -> Floats:
        u = u.reshape(self.n_samples, -1)
        coefficients = np.zeros((self.n_samples, self.n_vectors))
        np.put_along_axis(coefficients, self.rivals, -u, axis=1)
        coefficients[np.arange(self.n_samples), self.labels] = u.sum(axis=1)
        return self._combine(coefficients).ravel()

    def take(self, rows: Integers) -> Floats:
        sample, rank = np.divmod(rows, self.rows_per_sample)
        augmented = self.augmented(sample)
        out = np.zeros((rows.size, self.n_vectors, augmented.shape[1]))
        out[np.arange(rows.size), self.labels[sample]] = augmented
        out[np.arange(rows.size), self.rivals[sample, rank]] = -augmented
        return out.reshape(rows.size, -1)
