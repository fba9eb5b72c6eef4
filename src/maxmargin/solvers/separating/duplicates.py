"""Equal rows with different labels: the shortest proof of inseparability in any feature space.

Rows are compared by a 64-bit hash first, block by block, then number by number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...arrays import Floats, Integers, Matrix, blocks_of, row_block, row_length

Hashes = NDArray[np.uint64]

# Rows of the other class with the same hash that are compared: more of them are equal rows.
COMPARED_ROWS = 16
# Constants of the finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
GOLDEN, FIRST, SECOND = (
    np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def contradicting_rows(
    X: Matrix, y: Floats, index: Integers | None = None
) -> tuple[int, int] | None:
    """Return i and j of two equal rows with y_i = +1 and y_j = −1, or None.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n,)
        Labels −1 and +1, aligned with ``index``.
    index : ndarray of int of shape (n,), optional
        Rows of X, all by default; i and j are positions in it.
    """
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    hashes = np.concatenate(
        [_hashes(row_block(X, block, index)) for block in blocks_of(y.size, row_length(X))]
    )
    positive, negative = (np.flatnonzero(y == sign) for sign in (1.0, -1.0))
    common = np.intersect1d(hashes[positive], hashes[negative])
    rows = np.arange(X.shape[0]) if index is None else index
    candidates = [side[np.isin(hashes[side], common)] for side in (positive, negative)]
    by_hash: dict[int, list[int]] = {}
    for j in candidates[1].tolist():
        by_hash.setdefault(int(hashes[j]), []).append(j)
    for i in candidates[0].tolist():
        for j in by_hash[int(hashes[i])][:COMPARED_ROWS]:
            if _equal(X, int(rows[i]), int(rows[j])):
                return i, j
    return None


def _equal(X: Matrix, i: int, j: int) -> bool:
    if sparse.issparse(X):
        return (X[[i]] != X[[j]]).nnz == 0
    return bool(np.array_equal(X[i], X[j]))


def _hashes(rows: Matrix) -> Hashes:
    """Return a hash for each float64 row; zeros of either sign contribute nothing."""
    width = rows.shape[1]
    places = _mixed(np.arange(1, width + 1, dtype=np.uint64) * GOLDEN)
    if not sparse.issparse(rows):
        terms = _mixed(np.ascontiguousarray(rows).view(np.uint64) ^ places)
        return np.where(rows != 0, terms, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    data = np.ascontiguousarray(rows.data, dtype=np.float64)
    terms = np.where(data != 0, _mixed(data.view(np.uint64) ^ places[rows.indices]), np.uint64(0))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
    return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]


def _mixed(bits: Hashes) -> Hashes:
    """Return numbers of which every bit depends on every bit of the input (a bijection)."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))
