"""svmlight/LIBSVM text: ``label index:value …``, read by scikit-learn."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .reading import OPENERS
from .table import DOUBLE, DataFileError, DataTable, bounded_lines, largest, too_large
from .targets import Labelled, Targets, as_targets


def read_svmlight(
    file: Path,
    source: str,
    dtype: np.dtype[Any] = DOUBLE,
    n_features: int | None = None,
    first_index: int | None = None,
    labelled: Labelled = True,
    targets: Targets = "classes",
) -> DataTable:
    """Read a CSR matrix and its labels.

    Features are counted from 1, or from 0 in a file that has a feature 0; for new rows of a fitted
    model, as in its training data.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        with OPENERS.get(file.suffix.lower(), open)(file, "rb") as stream:
            X, y = load_svmlight_file(_Lines(stream, source), dtype=dtype, zero_based=True)
    except (MemoryError, DataFileError):
        raise
    except Exception as error:
        raise DataFileError(_fault(file, source, None) or f"{source}: {error}") from None
    if not X.shape[0]:
        raise DataFileError(f"{source}: the file has no rows.")
    if not X.nnz and n_features is None:
        raise DataFileError(f"{source}: the file has labels but no features.")
    limit = largest(dtype)
    if np.fmax.reduce(X.data, initial=0.0) > limit or np.fmin.reduce(X.data, initial=0.0) < -limit:
        _check_sizes(file, source, limit)
    least = int(X.indices.min(initial=1))
    first = min(least, 1) if first_index is None else first_index
    if least < first:
        raise DataFileError(
            f"{source}: features must be counted from 1, as in the training data; got a feature 0."
        )
    X.indices -= first
    width = max(X.shape[1] - first, 1)
    if n_features is not None and width > n_features:
        raise DataFileError(
            _fault(file, source, n_features - 1 + first)
            or f"{source}: the model has {n_features} features, got a feature {width - 1 + first}."
        )
    X = type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features or width), copy=False)
    if X.nnz < 2**31 and X.indices.dtype != np.int32:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    values = as_targets(y, source, "the label", labelled, targets)
    return DataTable(X, values, None, source, first_index=first)


class _Lines:
    """A stream for scikit-learn, which reads it line by line; too long lines raise an error."""

    def __init__(self, stream: Any, source: str) -> None:
        self.stream, self.source = stream, source
        self.read = stream.read  # by which scikit-learn tells a stream from a path

    def __iter__(self) -> Iterator[bytes]:
        return bounded_lines(self.stream, self.source)


def _fault(file: Path, source: str, last: int | None) -> str | None:
    """Return what is wrong with the first line that cannot be read, None without one."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rt", errors="replace") as lines:
        try:
            for number, line in enumerate(bounded_lines(lines, source), 1):
                wrong = _wrong(line.split("#")[0].split(), last)
                if wrong:
                    return f"{source}: line {number}: {wrong}"
        except (OSError, EOFError, zlib.error) as error:
            return f"{source}: the file cannot be decompressed: {error}"
    return None


def _check_sizes(file: Path, source: str, limit: float) -> None:
    """Raise for the first finite number that is too large: it was read as ∞."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rt", errors="replace") as lines:
        for number, line in enumerate(bounded_lines(lines, source), 1):
            for word in line.split("#")[0].split()[1:]:
                index, _, value = word.partition(":")
                if index != "qid" and limit < abs(float(value)) < math.inf:
                    raise too_large(f"{source}: line {number}, feature {index}", float(value))


def _wrong(words: list[str], last_feature: int | None) -> str | None:
    if not words:
        return None
    try:
        float(words[0])
    except ValueError:
        return f"the label {words[0]!r} is not a number."
    last = -1
    for word in words[1:]:
        index, colon, value = word.partition(":")
        if index == "qid":
            continue
        try:
            number, known = int(index), math.isfinite(float(value))
        except ValueError:
            colon = ""
        if not colon:
            return f"{word!r} is not index:value."
        if not known or number < 0:
            return f"{word!r} is out of range."
        if number <= last:
            return f"indices must increase, but {number} follows {last}."
        if last_feature is not None and number > last_feature:
            return f"{word!r} is beyond the last feature of the model, {last_feature}."
        last = number
    return None
