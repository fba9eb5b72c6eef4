"""NumPy's npz files: an array of rows, or a CSR matrix as SciPy saves it, and labels."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from scipy import sparse

from ..arrays import Labels, Matrix
from .table import DOUBLE, DataFileError, DataTable, first_beyond, largest, too_large
from .targets import Labelled, Targets, as_targets

X_NAMES = ("X", "data", "x")
Y_NAMES = ("y", "target", "labels")


def read_npz(
    file: Path,
    source: str,
    target: str | None,
    labelled: Labelled,
    dtype: np.dtype[Any] = DOUBLE,
    targets: Targets = "classes",
) -> DataTable:
    """Read X and y; arrays of objects, which could run code, raise an error."""
    if not zipfile.is_zipfile(file):
        raise DataFileError(
            f"{source}: the file must be an npz file: save one with np.savez(file, X=X, y=y)."
        )
    try:
        with np.load(file, allow_pickle=False) as arrays:
            X = _rows(arrays, file, source)
            y = None if targets == "none" else _targets(arrays, source, target, labelled, targets)
    except DataFileError:
        raise
    except (ValueError, zipfile.BadZipFile, KeyError, EOFError, OSError, zlib.error) as error:
        raise DataFileError(f"{source}: the npz file cannot be read: {error}") from None
    _check_sizes(X, source, dtype)
    if X.dtype != np.float32:  # float32 as saved: nothing is lost, and it takes half the memory
        X = X.astype(dtype, copy=False)
    if y is not None and len(y) != X.shape[0]:
        raise DataFileError(
            f"{source}: X has {X.shape[0]} rows, y has {len(y)} labels: save one label per row."
        )
    return DataTable(X, y, None, source)


def _rows(arrays: NpzFile, file: Path, source: str) -> Matrix:
    if {"indices", "indptr", "shape", "data"} <= set(arrays):
        X = sparse.csr_matrix(sparse.load_npz(file))
        X.check_format(full_check=True)  # compiled code must not read outside of its arrays
        return X
    found = [name for name in X_NAMES if name in arrays]
    if not found:
        raise DataFileError(
            f"{source}: there is no array X, only {', '.join(arrays) or 'none'}: save the rows by "
            "np.savez(file, X=X, y=y)."
        )
    X = arrays[found[0]]
    if X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise DataFileError(
            f"{source}: {found[0]} must be numbers of shape (n, d), got {X.dtype} of shape "
            f"{X.shape}."
        )
    return X


def _check_sizes(X: Matrix, source: str, dtype: np.dtype[Any]) -> None:
    """Raise for finite numbers that are too large."""
    values = X.data if sparse.issparse(X) else X
    place = first_beyond(values, largest(dtype))
    if place is None:
        return
    if sparse.issparse(X):
        row, column = np.searchsorted(X.indptr, place, side="right") - 1, X.indices[place]
    else:
        row, column = np.unravel_index(place, X.shape)
    value = float(values.flat[place])
    raise too_large(f"{source}: row {row + 1}, column {column + 1}", value)


def _targets(
    arrays: NpzFile, source: str, target: str | None, labelled: Labelled, targets: Targets
) -> Labels | None:
    found = [name for name in ((target,) if target else Y_NAMES) if name in arrays]
    if not labelled or (labelled == "if present" and not found):
        return None
    if not found:
        raise DataFileError(
            f"{source}: there are no labels {target or 'y'!r}, only {', '.join(arrays)}: save them "
            "by np.savez(file, X=X, y=y)."
        )
    y = arrays[found[0]]
    if y.ndim != 1:
        raise DataFileError(
            f"{source}: {found[0]} must have shape (n,), one label per row; got {y.shape}."
        )
    return as_targets(y, source, found[0], labelled, targets)
