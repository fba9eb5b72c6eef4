"""Planes as sums over support vectors, w = Σ α y φ(z), with α y where LIBSVM has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from threading import Event

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers, Matrix, container, linear_scores
from ..kernels import Kernel, Linear, Precomputed
from ..kernels.products import far_columns, shifted
from ..multiclass import OneVsOne, Task
from ..runtime.threads import blas_for, in_parallel
from .training import Training

# Rows and support vectors whose kernel values are computed together in a prediction.
TILE_ROWS, TILE_VECTORS = 256, 2048


@dataclass(frozen=True)
class Expansion:
    """The planes of a machine, without their biases.

    Parameters
    ----------
    kernel : Kernel
    support : ndarray of int of shape (n_support,)
        Rows of the training data, class by class.
    vectors : array or CSR matrix
        These rows (empty for a precomputed kernel).
    counts : ndarray of int of shape (n_classes,)
        Support vectors of each class; one number without classes.
    dual : array or CSR matrix of shape (n_classes − 1, n_support), or (n_planes, n_support)
        α y. Of pairs of classes a vector of class i has that of the pair with j in row j, in row
        j − 1 where j > i.
    of_pairs : bool
        Whether there is a plane for every pair of classes.
    """

    kernel: Kernel
    support: Integers
    vectors: Matrix
    counts: Integers
    dual: Matrix
    of_pairs: bool

    def scores(self, X: Matrix) -> Floats:
        """Return Σ α y K(x, z) of every plane, (n, n_planes); each vector is evaluated once.

        Those of a linear kernel are w·x: kernel values of rows far from the origin would cancel.
        """
        if isinstance(self.kernel, Linear):
            w = self.planes()
            return linear_scores(X, w.toarray() if sparse.issparse(w) else w)
        dual = (self.dual.toarray() if sparse.issparse(self.dual) else self.dual).T
        ends = self._ends if self.of_pairs else [0, self.support.size]
        parts = list(enumerate(pairwise(ends)))
        # Σ α y K(x, ·) of every column of dual, over the support vectors of one class each.
        sums = np.zeros((X.shape[0], len(parts), dual.shape[1]))

        def work(start: int, stop: Event) -> None:
            rows = slice(start, start + TILE_ROWS)
            for first in range(0, self.support.size, TILE_VECTORS):
                if stop.is_set():
                    return
                last = min(first + TILE_VECTORS, self.support.size)
                values = self._values(X[rows], slice(first, last))
                for c, (begin, end) in parts:
                    begin, end = max(begin, first), min(end, last)
                    if begin < end:
                        some = values[:, begin - first : end - first]
                        sums[rows, c] += some @ dual[begin:end]

        # One row takes products with dual only, which are short.
        with blas_for((X.shape[0] - 1) * self.support.size * X.shape[1]):
            in_parallel(work, range(0, X.shape[0], TILE_ROWS), alone=not self.kernel.elementwise)
        if not self.of_pairs:
            return sums[:, 0]
        i, j = np.array(self._pairs).T
        return sums[:, i, j - 1] + sums[:, j, i]

    def coefficients(self) -> Floats:
        """Return α y of every vector in every plane, (n_support, n_planes)."""
        dual = self.dual.toarray() if sparse.issparse(self.dual) else self.dual
        if not self.of_pairs:
            return np.ascontiguousarray(dual.T)
        ends, pairs = self._ends, self._pairs
        coefficients = np.zeros((self.support.size, len(pairs)))
        for k, (i, j) in enumerate(pairs):
            coefficients[ends[i] : ends[i + 1], k] = dual[j - 1, ends[i] : ends[i + 1]]
            coefficients[ends[j] : ends[j + 1], k] = dual[i, ends[j] : ends[j + 1]]
        return coefficients

    def planes(self) -> Matrix:
        """Return Σ α y z of every plane, (n_planes, n_features): w of a linear kernel."""
        if not self.of_pairs:
            return _combined(self.dual, self.vectors)
        parts = [slice(*ends) for ends in pairwise(self._ends)]
        rows = []
        for i, j in self._pairs:
            both = np.r_[parts[i], parts[j]]
            of_j = np.arange(both.size) >= parts[i].stop - parts[i].start
            dual = self.dual[:, both]
            dual = dual.toarray() if sparse.issparse(dual) else dual
            signed = np.where(of_j, dual[i], dual[j - 1])[np.newaxis]
            signed = sparse.csr_matrix(signed) if sparse.issparse(self.dual) else signed
            rows.append(_combined(signed, self.vectors[both]))
        return sparse.vstack(rows).tocsr() if sparse.issparse(rows[0]) else np.vstack(rows)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return OneVsOne.pairs(len(self.counts))

    @property
    def _ends(self) -> list[int]:
        """Where the vectors of each class begin and end."""
        return [0, *accumulate(self.counts.tolist())]

    def _values(self, X: Matrix, some: slice) -> Floats:
        """K(x, z) in float64 for some support vectors z."""
        if isinstance(self.kernel, Precomputed):
            return np.asarray(X[:, self.support[some]], dtype=np.float64)
        z = self.vectors[some].astype(np.float64, copy=False)
        if sparse.issparse(X) != sparse.issparse(z):
            # Products of one kind are the faster ones; these are small blocks.
            X = X.toarray() if sparse.issparse(X) else X
            z = z.toarray() if sparse.issparse(z) else z
        return self.kernel(X.astype(np.float64, copy=False), z)


def _combined(dual: Matrix, vectors: Matrix) -> Matrix:
    """Return Σ α y z, about the mean of far columns where Σ α y = 0 but for rounding.

    Terms α y z of vectors far from the origin would cancel, and leave their rounding.
    """
    z = vectors.astype(np.float64, copy=False)
    centre = far_columns(z)
    if not centre.any():
        return dual @ z
    far = centre != 0.0
    sums, sizes = (np.asarray(each.sum(axis=1)).ravel() for each in (dual, abs(dual)))
    sums[np.abs(sums) <= dual.shape[1] * np.finfo(float).eps * sizes] = 0.0
    if not sparse.issparse(z):
        return dual @ (z - centre) + np.outer(sums, centre)
    w = dual @ shifted(z, centre)
    w = w.toarray() if sparse.issparse(w) else w
    order = np.concatenate([np.flatnonzero(~far), np.flatnonzero(far)])  # where they were put
    back = np.empty_like(w)
    back[:, order] = w
    return sparse.csr_matrix(back + np.outer(sums, centre))


def expanded(
    kernel: Kernel,
    training: Training,
    tasks: Sequence[Task],
    coefficients: Sequence[Floats],
    of_pairs: bool,
) -> Expansion:
    """Return the planes of the tasks, from the coefficients of their rows in w."""
    X, codes, n_classes = training.X, training.codes, max(1, len(training.classes))
    is_support = np.zeros(X.shape[0], dtype=bool)
    for task, signed in zip(tasks, coefficients, strict=True):
        is_support[task.rows[signed != 0.0]] = True
    support = np.flatnonzero(is_support)
    support = support[np.argsort(codes[support], kind="stable")]
    place = np.full(X.shape[0], -1)
    place[support] = np.arange(support.size)
    dual = np.zeros((n_classes - 1 if of_pairs else len(tasks), support.size))
    pairs = OneVsOne.pairs(n_classes) if of_pairs else []
    for k, (task, signed) in enumerate(zip(tasks, coefficients, strict=True)):
        used = np.flatnonzero(signed)
        at = place[task.rows[used]]
        if of_pairs:
            i, j = pairs[k]
            dual[np.where(task.labels[used] > 0, j - 1, i), at] = signed[used]
        else:
            dual[k, at] = signed[used]
    return Expansion(
        kernel,
        support.astype(np.int32),
        X[:0] if isinstance(kernel, Precomputed) else X[support],
        np.bincount(codes[support], minlength=n_classes).astype(np.int32),
        sparse.csr_matrix(dual) if container(X).sparse else dual,
        of_pairs,
    )
