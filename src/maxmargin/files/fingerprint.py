"""A digest of the rows of a data file, by content: another format of the same rows has the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# Rows that are digested at a time, and threads that do so.
BLOCK_ROWS, THREADS = 1 << 16, 4
# Between values of text, which cannot hold it, and in place of a missing one.
BETWEEN, NO_TEXT = "\x00", "\x01"


def fingerprint(X: Any, y: ArrayLike | None = None) -> dict[str, Any]:
    """Return a digest of rows and labels, as model files record it.

    Numbers count by their value and text by its letters, whatever the file format, the layout in
    memory or the names of the columns. The order of rows and columns counts.

    Parameters
    ----------
    X : ndarray, CSR matrix or polars DataFrame of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,), optional
        Labels, which count as text, or targets of type float.

    Returns
    -------
    dict
        ``sha256``, ``rows`` and ``dtype`` of the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.files import fingerprint
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> fingerprint(X, ["a", "b"]) == fingerprint(np.asfortranarray(X), np.array(["a", "b"]))
    True
    """
    n, y = X.shape[0], None if y is None else np.asarray(y)
    with ThreadPoolExecutor(THREADS) as team:
        starts = range(0, n, BLOCK_ROWS)
        digests = team.map(lambda start: _digest(X, y, slice(start, start + BLOCK_ROWS)), starts)
        whole = sha256(repr((n, X.shape[1])).encode())
        for digest in digests:
            whole.update(digest)
    types = [getattr(X, "dtype", None), *getattr(X, "dtypes", ())]
    kind = "float32" if "float32" in (str(each).lower() for each in types) else "float64"
    return {"sha256": whole.hexdigest(), "rows": int(n), "dtype": kind}


def _digest(X: Any, y: Any, rows: slice) -> bytes:
    digest = sha256()
    for part in _parts(X, y, rows):
        digest.update(part)
    return digest.digest()


def _parts(X: Any, y: Any, rows: slice) -> Iterator[bytes]:
    """Yield the content of some rows, column by column."""
    some = X[rows]
    if hasattr(some, "columns"):
        for name in some.columns:
            column = some[name]
            is_number = column.dtype.is_numeric()
            yield _numbers(column.to_numpy()) if is_number else _words(column.to_list())
    elif hasattr(some, "tocsr"):
        some = some.tocsr(copy=True)
        some.sum_duplicates()
        some.eliminate_zeros()
        yield from (_whole_numbers(each) for each in (np.diff(some.indptr), some.indices))
        yield _numbers(some.data)
    else:
        yield _numbers(some.T)
    if y is not None:
        yield _numbers(y[rows]) if y.dtype.kind == "f" else _words(y[rows].tolist())


def _numbers(values: Any) -> bytes:
    # Adding 0 makes −0 into 0; missing values have many forms in float64, of which one is taken.
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    lacking = np.isnan(numbers)
    if lacking.any():
        numbers[lacking] = np.nan
    return numbers.tobytes(order="C")


def _whole_numbers(values: Any) -> bytes:
    return np.asarray(values, dtype=np.int64).tobytes()


def _words(values: list[Any]) -> bytes:
    text = BETWEEN.join(NO_TEXT if value is None else str(value) for value in values)
    return text.encode("utf-8", "surrogatepass")
