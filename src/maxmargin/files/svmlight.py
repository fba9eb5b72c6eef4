"""svmlight/LIBSVM text: ``label index:value …``, read by scikit-learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from .reading import OPENERS
from .table import DataFileError, Table, as_labels


def read_svmlight(file: Path, source: str, dtype: Any, n_features: int | None) -> Table:
    """Read a CSR matrix and its labels."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(file), n_features=n_features, dtype=dtype, zero_based="auto")
    except MemoryError:
        raise
    except Exception as error:
        raise DataFileError(_fault(file, source, n_features) or f"{source}: {error}") from None
    if not X.shape[0]:
        raise DataFileError(f"{source}: holds no rows.")
    if not X.shape[1]:
        raise DataFileError(f"{source}: holds labels, but no features.")
    if X.nnz < 2**31 and X.indices.dtype != np.int32:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return Table(X, as_labels(y, source, "the label"), None, source)


def _fault(file: Path, source: str, n_features: int | None) -> str | None:
    """Return what is wrong with the first line that cannot be read."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rt", errors="replace") as lines:
        try:
            for number, line in enumerate(lines, 1):
                wrong = _wrong(line.split("#")[0].split(), n_features)
                if wrong:
                    return f"{source}: line {number}: {wrong}"
        except (OSError, EOFError) as error:
            return f"{source}: cannot be unpacked: {error}"
    return None


def _wrong(words: list[str], n_features: int | None) -> str | None:
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
            return f"indices must grow, {number} comes after {last}."
        if n_features is not None and number > n_features:
            return f"{word!r} is beyond the {n_features} features of the model."
        last = number
    return None
