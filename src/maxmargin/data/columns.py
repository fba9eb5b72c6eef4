"""What the columns of X hold: how far they spread, and which are constant."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ..arrays import Floats, Integers, Matrix, OnDevice, Partitioned, blocks_of, container

# Ratio of the spreads of features above which scaling them is advised.
MOST_FEATURE_RATIO = 100.0


def scale_ratio(X: Matrix) -> float:
    """Largest over smallest spread of a feature, seen on some 2,000 rows: bad scaling shows."""
    X = X.head(2000) if isinstance(X, Partitioned) else next(container(X).pieces())[1]
    X = X[:: max(1, X.shape[0] // 2000)]
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    spread = (high - low)[high > low]
    return float(spread.max() / spread.min()) if spread.size else 1.0


def constant_features(X: Matrix) -> tuple[Integers, Floats]:
    """Return the columns of X that hold one value throughout, and those values."""
    if isinstance(X, (OnDevice, Partitioned)):
        return X.constant_columns()
    found = [_constant_in_piece(piece) for _, piece in container(X).pieces()]
    columns, values = found[0]
    for here, there in found[1:]:
        both, first, second = np.intersect1d(columns, here, return_indices=True)
        same = values[first] == there[second]
        columns, values = both[same], values[first][same]
    return columns, values


def _constant_in_piece(X: Matrix) -> tuple[Integers, Floats]:
    if sparse.issparse(X):
        return _constant_columns(X)
    first, columns = X[0], np.arange(X.shape[1])
    for block in blocks_of(X.shape[0], X.shape[1]):
        columns = columns[(X[block][:, columns] == first[columns]).all(axis=0)]
        if not columns.size:
            break
    return columns, first[columns].astype(np.float64)


def _constant_columns(X: Matrix) -> tuple[Integers, Floats]:
    """Columns of a CSR matrix that are empty, or full of one value."""
    stored = np.zeros(X.shape[1], dtype=np.intp)
    for start in range(0, X.nnz, 1 << 20):
        part = slice(start, start + (1 << 20))
        stored += np.bincount(X.indices[part][X.data[part] != 0], minlength=X.shape[1])
    full = np.flatnonzero(stored == X.shape[0])
    first = X[:1].toarray()[0]
    if full.size:
        full = full[(X[:, full].toarray() == first[full]).all(axis=0)]
    columns = np.union1d(np.flatnonzero(stored == 0), full)
    return columns, first[columns].astype(np.float64)
