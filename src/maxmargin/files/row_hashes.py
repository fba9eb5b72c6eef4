"""Hashes of the contents of rows: which rows of a file were seen before, in any order.

The hash of a row is m(Σ_k m(x_k ⊕ m(k)) + m(y)), the sum over all values but 0 and m the finaliser
of splitmix64 (Steele, Lea, Flood, 2014), so that dense and CSR rows have the same one. Text enters
by 8 bytes of its BLAKE2b hash. All of it is the same on every machine.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import Labels, Matrix

Hashes = NDArray[np.uint64]

BLOCK_ROWS = 1 << 16
NOTHING = np.uint64(0x7FF8000000000000)  # a missing value, as a number: the usual NaN


def row_hashes(X: Matrix, y: Labels | None = None, *, single: bool = False) -> Hashes:
    """Return one hash of 64 bits per row.

    Parameters
    ----------
    X : ndarray, CSR matrix or polars DataFrame of shape (n_samples, n_columns)
    y : ndarray of shape (n_samples,), optional
        Labels, which enter as text, or numbers (float).
    single : bool, default=False
        Round numbers to float32 first, for rows that were read so.

    Returns
    -------
    hashes : ndarray of uint64 of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
    >>> hashes = row_hashes(X)
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    >>> bool((row_hashes(sparse.csr_array(X)) == hashes).all())
    True
    """
    with np.errstate(over="ignore"):  # sums are taken modulo 2⁶⁴
        sums = _sparse_sums(X, single) if sparse.issparse(X) else _column_sums(X, single)
        if y is not None:
            is_number = y.dtype.kind == "f"
            sums += _mixed(
                _bits(y, False) if is_number else _text_bits([str(v) for v in y.tolist()])
            )
        return _mixed(sums)


def fingerprint(hashes: Hashes) -> str:
    """Return a hash of all rows, in any order, as text."""
    with np.errstate(over="ignore"):
        return f"{int(hashes.sum(dtype=np.uint64)):016x}"


def _sparse_sums(X: Any, single: bool) -> Hashes:
    rows = sparse.csr_array(X)
    bits = _bits(rows.data, single)
    values = np.where(
        bits == 0, np.uint64(0), _mixed(bits ^ _mixed(rows.indices.astype(np.uint64)))
    )
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    sums: Hashes = total[rows.indptr[1:]] - total[rows.indptr[:-1]]
    return sums


def _column_sums(X: Any, single: bool) -> Hashes:
    sums = np.zeros(X.shape[0], dtype=np.uint64)
    names = getattr(X, "columns", None)
    for k in range(X.shape[1]):
        seed = _mixed(np.array([k], dtype=np.uint64))
        column = X[:, k] if names is None else X[names[k]]
        if names is not None and not column.dtype.is_numeric():
            sums += _mixed(_text_bits(column.cast(str).to_list()) ^ seed)
            continue
        values = column if names is None else column.to_numpy()
        for start in range(0, len(values), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            bits = _bits(values[block], single)
            sums[block] += np.where(bits == 0, np.uint64(0), _mixed(bits ^ seed))
    return sums


def _bits(values: Any, single: bool) -> Hashes:
    """Return numbers as the bits of float64: one zero, and one NaN."""
    numbers = np.asarray(values, dtype=np.float32 if single else np.float64).astype(np.float64)
    bits: Hashes = np.where(numbers == 0.0, 0.0, numbers).view(np.uint64)
    return np.where(np.isnan(numbers), NOTHING, bits)


def _text_bits(texts: list[str | None]) -> Hashes:
    known = {text: _of_text(text) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=np.uint64)


def _of_text(text: str | None) -> int:
    if text is None:
        return int(NOTHING)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(z: Hashes) -> Hashes:
    """Return the finaliser of splitmix64."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
