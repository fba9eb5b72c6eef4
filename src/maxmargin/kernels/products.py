"""Rows of samples, dense or sparse, and their inner products."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, OnDevice, blocks_of, refuse_partitions
from .namespace import array_namespace, copied

RowsLike: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray


def as_rows(X: Any, name: str = "X") -> Any:
    """Return X as a float32 or float64 2-D array or CSR matrix without duplicate entries."""
    if isinstance(X, OnDevice):
        return X.host
    refuse_partitions(X)
    rows: Any = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"{name} has shape {rows.shape}: for one row pass x.reshape(1, -1).")
    if rows.dtype.kind not in "biufO":
        raise ValueError(f"{name} has dtype {rows.dtype}: pass real numbers.")
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if sp.issparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()  # the caller's stays as it is
        rows.sum_duplicates()
    return rows


def dense(rows: Any) -> Floats:
    """Return rows as an array."""
    return rows.toarray() if sp.issparse(rows) else rows


def squared_norms(X: RowsLike) -> NDArray[np.float64]:
    """Return ‖x_i‖² for every row, summed in float64 without a float64 copy of X.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The rows.

    Returns
    -------
    ndarray of shape (n,)
        Squared Euclidean norms.

    Examples
    --------
    >>> print(squared_norms([[3, 4], [1, 0]]))
    [25.  1.]
    """
    if isinstance(X, OnDevice):
        return _refuse_overflow(X.squared_norms(), X, "X")
    rows = as_rows(X)
    return _refuse_overflow(row_squares(rows), rows, "X")


class Products(NamedTuple):
    """⟨x,z⟩ of shape (n, m), ‖x‖², ‖z‖², and the largest number of terms in these sums."""

    dot: Floats
    x_sq: Floats
    z_sq: Floats
    terms: int


def products(X: Any, Z: Any, centre: bool) -> Products:
    """Return the inner products of rows, relative to a better origin where ``centre`` is true."""
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, Z has {Z.shape[1]}: pass as many.")
    A, B = _centred(X, Z) if centre else (X, Z)
    dot = _inner_products(A, B)
    if A is B:  # squares from the diagonal, so that ‖x − x‖² is exactly 0
        squares = _refuse_overflow(copied(dot.diagonal()), X, "X")
        return Products(dot, squares, squares, _n_terms(A))
    xp = array_namespace(dot)
    x_sq, z_sq = (xp.astype(row_squares(rows), dot.dtype, copy=False) for rows in (A, B))
    x_sq, z_sq = _refuse_overflow(x_sq, X, "X"), _refuse_overflow(z_sq, Z, "Z")
    return Products(dot, x_sq, z_sq, _n_terms(A))


def finite(values: Floats, name: object) -> Floats:
    """Return ``values``, or raise ValueError where one of them is not finite.

    ``name`` says what they are, and is made a string only then.
    """
    # Extremes need no temporary of the size of a Gram matrix, and NaN is one.
    if 0 in values.shape or (math.isfinite(values.min()) and math.isfinite(values.max())):
        return values
    xp = array_namespace(values)
    place = int(xp.argmin(xp.astype(xp.isfinite(values), xp.int8)))
    at = [int(i) for i in np.unravel_index(place, tuple(values.shape))]
    value = float(values[tuple(at)])
    raise ValueError(
        f"{name} is {value} at {at} in {values.dtype}: pass finite values, or rescale "
        "the features where they overflow."
    )


def _inner_products(X: Any, Z: Any) -> Floats:
    if not (sp.issparse(X) or sp.issparse(Z)):
        return X @ Z.T  # type: ignore[no-any-return]
    if not (sp.issparse(X) and sp.issparse(Z)):
        return np.asarray(X @ Z.T)
    dot = np.empty((X.shape[0], Z.shape[0]), dtype=np.result_type(X.dtype, Z.dtype))
    for block in blocks_of(*dot.shape):  # a full sparse product would hold three times dot
        dot[block] = (X[block] @ Z.T).toarray()
    return dot


def _centred(X: Any, Z: Any) -> tuple[Any, Any]:
    """Subtract from X and Z the mean of those columns of Z whose mean exceeds their spread.

    ‖x‖² + ‖z‖² − 2⟨x,z⟩ would cancel there. Elsewhere an outlier may dominate the mean.
    """
    centre = far_columns(Z)
    if not centre.any():
        return X, Z
    xp = array_namespace(centre)
    centre = xp.astype(centre, xp.result_type(X.dtype, Z.dtype))
    moved = shifted(Z, centre)
    return (moved if X is Z else shifted(X, centre)), moved


def shifted(X: Any, centre: Floats) -> Any:
    """Return X − centre; CSR rows stay sparse where the centre is 0.

    At least half of the entries of a column whose mean exceeds its spread are not 0, so a shifted
    column has at most twice as many.
    """
    if not sp.issparse(X):
        return X - centre
    far = centre != 0.0
    rows: Any = sp.hstack([X[:, ~far], sp.csr_matrix(X[:, far].toarray() - centre[far])]).tocsr()
    return rows


def far_columns(Z: Any, share: float = 0.5) -> Any:
    """Return the mean of each column where its square is most of the mean square, 0 elsewhere.

    With a ``share`` of ½ the mean exceeds the spread there, with 1 − ε it does so √(1/ε) times.
    """
    n = max(Z.shape[0], 1)
    if isinstance(Z, OnDevice):
        mean, means = Z.column_means()
        return np.where(mean**2 > share * means, mean, 0.0)
    if sp.issparse(Z):
        sums = np.bincount(Z.indices, Z.data, minlength=Z.shape[1])
        squares = np.bincount(Z.indices, Z.data.astype(np.float64) ** 2, minlength=Z.shape[1])
    elif isinstance(Z, np.ndarray):
        sums = Z.sum(axis=0, dtype=np.float64)
        squares = np.einsum("ij,ij->j", Z, Z, dtype=np.float64)
    else:
        xp = array_namespace(Z)
        sums, squares = (xp.sum(each, axis=0, dtype=xp.float64) for each in (Z, Z * Z))
    mean = sums / n
    mean[~(mean**2 > share * squares / n)] = 0.0
    return mean


def _n_terms(X: Any) -> int:
    return int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else X.shape[1]


def row_squares(rows: Any) -> Any:
    """Return ‖x_i‖² of every row, summed in float64."""
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    if not sp.issparse(rows):
        xp = array_namespace(rows)
        return xp.sum(rows * rows, axis=1, dtype=xp.float64)
    squares = np.empty(rows.shape[0])
    for block in blocks_of(rows.shape[0], rows.nnz // max(1, rows.shape[0])):
        squares[block] = rows[block].astype(np.float64).power(2).sum(axis=1).reshape(-1)
    return squares


def _refuse_overflow(squares: NDArray[Any], rows: Any, name: str) -> NDArray[Any]:
    """Return ‖x_i‖² if finite: by Cauchy–Schwarz all inner products are finite then."""
    if not squares.shape[0] or math.isfinite(squares.max()):
        return squares  # NaN is the largest of all
    xp = array_namespace(squares)
    i = int(xp.argmin(xp.astype(xp.isfinite(squares), xp.int8)))
    row = np.array([float(value) for value in dense(rows[[i]])[0]])
    for j in np.flatnonzero(~np.isfinite(row)):
        raise ValueError(f"{name}[{i}, {j}]={row[j]} is not finite: impute or remove it.")
    raise ValueError(f"‖x‖² of {name}[{i}] overflows {squares.dtype}: rescale the features.")
