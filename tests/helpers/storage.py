"""X as every kind of array and sparse matrix that a caller may pass."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from scipy import sparse


def thin(n=300, d=12, n_classes=2, seed=1):
    """Return X, mostly zeros and exact in float32, and y."""
    rng = np.random.default_rng(seed)
    X = np.round(4 * rng.standard_normal((n, d))) / 4 * (rng.random((n, d)) < 0.4)
    y = np.digitize(
        X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(n), [0, 1.0, 2.0][: n_classes - 1]
    )
    return X, y


def shuffled_entries(X):
    """Return X as CSR with the entries of every row in another order."""
    X = sparse.csr_matrix(X)
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[part], X.data[part] = X.indices[part][::-1].copy(), X.data[part][::-1].copy()
    X.has_sorted_indices = X.has_canonical_format = False
    return X


def doubled_entries(X):
    """Return X as CSR with every entry in two halves."""
    X = sparse.csr_matrix(X)
    halves = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    assert not halves.has_canonical_format
    return halves


def explicit_zeros(X):
    n, d = X.shape
    return sparse.csr_matrix((X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), X.shape)


def long_indices(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


DATA = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "lists": lambda X: X.tolist(),
    "read only": read_only,
    "csr": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "csr int64": long_indices,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "unsorted": shuffled_entries,
    "duplicates": doubled_entries,
    "explicit zeros": explicit_zeros,
}


@contextmanager
def unchanged(*given):
    """Make arrays and sparse matrices read-only, and check afterwards that they are the same."""
    parts = []
    for values in given:
        if sparse.issparse(values):
            coo = values.format == "coo"
            names = ("data", "row", "col") if coo else ("data", "indices", "indptr")
            parts += [getattr(values, name) for name in names]
        elif isinstance(values, np.ndarray):
            parts.append(values)
    copies = [part.copy() for part in parts]
    for part in parts:
        part.flags.writeable = False
    yield
    for part, copy in zip(parts, copies, strict=True):
        np.testing.assert_array_equal(part, copy)
        assert part.dtype == copy.dtype
