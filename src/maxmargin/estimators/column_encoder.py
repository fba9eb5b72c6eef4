"""Columns of a table as features: numbers standardised, categories as 0/1 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from ..arrays import Floats, Labels, Matrix, MatrixLike
from ..caller import warn_caller
from .base import Constraints, validated

# Numbers worked on at a time: a block of rows in float64 stays in cache.
BLOCK = 1 << 18
# Different values above which a text column holds names, not categories.
MOST_CATEGORIES = 1000
# Different values that are categories however few the rows.
FEW_CATEGORIES = 20
# Numbers above which 0/1 columns are not stored as such.
WIDE = 1 << 25


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Standardised numbers, categories as 0/1 columns: x ↦ (e(x) − μ)/σ.

    e(x) has one number per numeric column, and one 0/1 column per category of a text column, all 0
    for a category that the fit has not seen. μ and σ are mean and standard deviation of the numeric
    columns; categories keep μ = 0, σ = 1. Sparse data keep μ = 0, and stay sparse.

    Parameters
    ----------
    scale : bool, default=True
        Whether μ and σ are those of the data, instead of 0 and 1.
    impute : bool, default=False
        Replace missing values by the median, or the most frequent category, of their column.
        Without it they are refused with their count.
    copy : bool, default=True
        False scales an array of floats, or the numbers of a CSR matrix, in place.

    Attributes
    ----------
    categories_ : list of list of str or None
        For each column of the input its categories, in order, or None if it holds numbers.
    fill_ : list of float, str or None
        For each column of the input what a missing value becomes; None without ``impute``.
    mean_ : ndarray of shape (n_features_out_,)
        μ.
    scale_ : ndarray of shape (n_features_out_,)
        σ.
    n_features_in_ : int
        Columns of the input.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had names.
    n_features_out_ : int
        Features of the output.

    Examples
    --------
    >>> import pandas as pd
    >>> from maxmargin import ColumnEncoder
    >>> fruit = pd.DataFrame({"mass": [150.0, 170.0], "colour": ["green", "red"]})
    >>> print(ColumnEncoder().fit_transform(fruit))
    [[-1.  1.  0.]
     [ 1.  0.  1.]]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "scale": ["boolean"],
        "impute": ["boolean"],
        "copy": ["boolean"],
    }

    categories_: list[list[str] | None]
    fill_: list[float | str | None]
    mean_: Floats
    scale_: Floats
    n_features_in_: int
    feature_names_in_: Labels
    n_features_out_: int

    def __init__(self, *, scale: bool = True, impute: bool = False, copy: bool = True) -> None:
        self.scale = scale
        self.impute = impute
        self.copy = copy

    @validated
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn categories, replacements of missing values, means and standard deviations.

        Parameters
        ----------
        X : array-like, CSR matrix, or pandas or polars frame of shape (n_samples, n_columns)
            Only frames and arrays of objects may hold categories.
        y : object, optional
            Ignored, for compatibility with scikit-learn.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        rows = self._rows(X, reset=True)
        if rows.shape[0] == 0:
            raise ValueError("X has 0 rows: a ColumnEncoder learns from at least one.")
        self.categories_ = [None] * rows.shape[1]
        self.fill_ = [None] * rows.shape[1]
        # What is not stored in a sparse column is 0, not missing.
        if not sparse.issparse(rows.X) and (self.impute or not rows.is_numeric):
            for k in range(rows.shape[1]):
                self.categories_[k], self.fill_[k] = self._learn(rows.column(k), rows.name(k))
        self.n_features_out_ = sum(1 if c is None else len(c) for c in self.categories_)
        self.mean_, self.scale_ = np.zeros(self.n_features_out_), np.ones(self.n_features_out_)
        if self.scale:
            self._measure(rows)
        return self

    def transform(self, X: MatrixLike) -> Matrix:
        """Return the features of new rows.

        Categories that were not seen in the fit are 0 in every column, with a warning.

        Parameters
        ----------
        X : array-like, CSR matrix, or pandas or polars frame of shape (n_samples, n_columns)
            Rows with the columns of the fit.

        Returns
        -------
        features : ndarray or CSR matrix of shape (n_samples, n_features_out_)
            Dense; CSR for CSR where nothing is subtracted, and where many 0/1 columns would fill
            the memory.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        self._check_missing(rows)
        if sparse.issparse(rows.X) and not self.mean_.any():
            return self._scaled_sparse(rows.X)
        parts = self._blocks(rows)
        if any(c is not None for c in self.categories_) and self._size(rows) > WIDE:
            return sparse.vstack([sparse.csr_matrix(part) for _, part in parts], format="csr")
        out = rows.X if self._in_place(rows) else self._room(rows)
        for block, part in parts:
            out[block] = part
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Labels:
        """Return the names of the features: those of columns, and column=category.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns, where X had none in the fit.

        Returns
        -------
        names : ndarray of str of shape (n_features_out_,)
            Names of the features.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        out: list[str] = []
        for name, categories in zip(names, self.categories_, strict=True):
            out += [name] if categories is None else [f"{name}={word}" for word in categories]
        return np.array(out, dtype=object)

    # How it is done ------------------------------------------------------------------------

    def _blocks(self, rows: _Columns) -> Iterator[tuple[slice, Floats]]:
        """Yield the features of some rows at a time; warn at the end of new categories."""
        unseen: Counter[int] = Counter()
        for block in rows.blocks(self.n_features_out_):
            features = self._expand(rows, block, unseen)
            features -= self.mean_
            features /= self.scale_
            if not np.isfinite(features).all():
                wild = np.flatnonzero(~np.isfinite(features).all(axis=0))
                raise ValueError(
                    "Input X contains infinity, or a value too large for "
                    f"{self._origin(int(wild[0]), rows)}: remove it."
                )
            yield block, features
        if unseen:
            places = ", ".join(f"{n} in {rows.name(k)}" for k, n in sorted(unseen.items()))
            warn_caller(
                f"Categories that the fit has not seen: {places}. They are 0 in every column."
            )

    def _size(self, rows: _Columns) -> int:
        return rows.shape[0] * self.n_features_out_

    def _rows(self, X: MatrixLike, *, reset: bool) -> _Columns:
        if sparse.issparse(X):
            X = sparse.csr_matrix(X) if not isinstance(X, sparse.csr_array) else X
            if not X.has_canonical_format:  # the same place given twice is a sum
                X = X.copy()
                X.sum_duplicates()
        elif not _is_frame(X):
            X = np.asarray(X)
            if X.ndim != 2:
                raise ValueError(
                    f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either "
                    "using array.reshape(-1, 1) for one feature, or (1, -1) for one row."
                )
            if np.iscomplexobj(X):
                raise ValueError("Complex data not supported: pass real numbers.")
        validate_data(self, X, skip_check_array=True, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        if X.shape[1] == 0:
            raise ValueError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        return _Columns(X, [str(n) for n in names] if names is not None else None)

    def _learn(self, values: Labels, name: str) -> tuple[list[str] | None, float | str | None]:
        """Return the categories of a column, None for numbers, and what a missing value becomes."""
        if values.dtype.kind == "f":
            if not self.impute:
                return None, None
            known = values[~np.isnan(values)]
            if not known.size:
                raise ValueError(f"{name} holds no value: drop it.")
            return None, float(np.median(known))
        counts = Counter(values.tolist())
        counts.pop(None, None)
        if len(counts) > MOST_CATEGORIES or (
            len(counts) > FEW_CATEGORIES and 2 * len(counts) > len(values)
        ):
            raise ValueError(
                f"{name} holds {len(counts)} different values in {len(values)} rows, "
                f"{next(iter(counts))!r} among them: these are names, not categories. Drop it, or "
                "encode it yourself."
            )
        if not counts:
            raise ValueError(f"{name} holds no value: drop it.")
        # Of equally frequent categories the first in order, whatever the order of the rows.
        frequent = min(counts, key=lambda word: (-counts[word], word))
        return sorted(counts), frequent if self.impute else None

    def _check_missing(self, rows: _Columns) -> None:
        if any(fill is not None for fill in self.fill_):
            return
        missing = rows.missing()
        if missing.any():
            held = np.flatnonzero(missing)
            places = ", ".join(f"{missing[k]} in {rows.name(k)}" for k in held[:5])
            places += ", …" if held.size > 5 else ""
            raise ValueError(
                f"Input X contains NaN: {missing.sum()} missing values ({places}). Pass "
                "impute=True to fill them, or remove those rows."
            )

    def _measure(self, rows: _Columns) -> None:
        """Set μ and σ of the columns of numbers, summed in float64 block by block."""
        self._check_missing(rows)
        numbers = np.repeat(
            [c is None for c in self.categories_],
            [1 if c is None else len(c) for c in self.categories_],
        )
        n = rows.shape[0]
        if sparse.issparse(rows.X):
            mean = np.asarray(rows.X.mean(axis=0, dtype=np.float64)).ravel()
            squares = np.zeros(self.n_features_out_)
            np.add.at(squares, rows.X.indices, np.square(rows.X.data - mean[rows.X.indices]))
            stored = np.bincount(rows.X.indices, minlength=self.n_features_out_)
            squares += (n - stored) * mean**2
        else:
            mean, squares = np.zeros(self.n_features_out_), np.zeros(self.n_features_out_)
            with np.errstate(over="ignore", invalid="ignore"):
                for block in rows.blocks(self.n_features_out_):
                    mean += self._expand(rows, block).sum(axis=0) / n
                for block in rows.blocks(self.n_features_out_):
                    squares += np.square(self._expand(rows, block) - mean).sum(axis=0)
        spread = np.sqrt(squares / n)
        wild = np.flatnonzero(~np.isfinite(spread) & numbers)
        if wild.size:
            name = self._origin(int(wild[0]), rows)
            raise ValueError(
                f"Input X contains infinity or a value too large for {name}: its spread is "
                f"{spread[wild[0]]}. Remove such rows, or rescale."
            )
        if not sparse.issparse(rows.X):
            self.mean_[numbers] = mean[numbers]
        # What rounding makes of a constant column, more the more rows are summed, is not a spread.
        eps = np.finfo(float).eps
        constant = spread**2 <= n * eps * spread**2 + (n * mean * eps) ** 2
        self.scale_[numbers] = np.where(constant, 1.0, spread)[numbers]

    def _origin(self, feature: int, rows: _Columns) -> str:
        """Return the column that a feature comes from."""
        widths = [1 if c is None else len(c) for c in self.categories_]
        return rows.name(int(np.searchsorted(np.cumsum(widths), feature, side="right")))

    def _in_place(self, rows: _Columns) -> bool:
        X = rows.X
        return (
            not self.copy
            and isinstance(X, np.ndarray)
            and X.dtype.kind == "f"
            and X.flags.writeable
            and self.n_features_out_ == X.shape[1]
        )

    def _room(self, rows: _Columns) -> Labels:
        kept = np.float32 if rows.is_single(self.categories_) else np.float64
        return np.empty((rows.shape[0], self.n_features_out_), dtype=kept)

    def _expand(self, rows: _Columns, block: slice, unseen: Counter[int] | None = None) -> Floats:
        """Return e(x) of a block of rows; count new categories, column by column."""
        if rows.is_numeric and all(c is None for c in self.categories_):
            features = rows.X[block].astype(np.float64)
            features = features.toarray() if sparse.issparse(features) else features
            if any(fill is not None for fill in self.fill_):
                fills = np.array([np.nan if f is None else f for f in self.fill_], dtype=float)
                np.copyto(features, fills, where=np.isnan(features))
            return features
        features = np.zeros((block.stop - block.start, self.n_features_out_))
        first = 0
        for k, (categories, fill) in enumerate(zip(self.categories_, self.fill_, strict=True)):
            values = rows.column(k, block)
            if categories is None:
                features[:, first] = _numbers(values, rows.name(k), fill)
            else:
                place: dict[object, int] = {word: j for j, word in enumerate(categories)}
                words = [fill if v is None else v for v in _words(values)]
                chosen = np.array([place.get(word, -1) for word in words], dtype=np.intp)
                known = np.flatnonzero(chosen >= 0)
                if unseen is not None and known.size < len(words):
                    unseen[k] += len(words) - known.size - words.count(None)
                features[known, first + chosen[known]] = 1.0
            first += 1 if categories is None else len(categories)
        return features

    def _scaled_sparse(self, X: Matrix) -> Matrix:
        X = X.astype(X.dtype if X.dtype.kind == "f" else np.float64, copy=self.copy)
        X.data /= self.scale_[X.indices].astype(X.dtype)
        if not np.isfinite(X.data).all():
            raise ValueError("Input X contains infinity, or a value too large: remove it.")
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.impute
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Columns:
    """One way to the columns of an array, a CSR matrix or a frame."""

    def __init__(self, X: MatrixLike, names: list[str] | None) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.is_numeric = not _is_frame(X) and X.dtype.kind in "biuf"
        self.names = names

    def name(self, k: int) -> str:
        """Return what to call a column."""
        return f"column {k}" if self.names is None else f"column {self.names[k]!r}"

    def is_single(self, categories: list[list[str] | None]) -> bool:
        """Whether all numbers are float32."""
        if not _is_frame(self.X):
            return bool(self.X.dtype == np.float32)
        numbers = [self.X.columns[k] for k, words in enumerate(categories) if words is None]
        return bool(numbers) and all(np.asarray(self.X[c][:1]).dtype == np.float32 for c in numbers)

    def blocks(self, width: int) -> Iterator[slice]:
        """Yield slices of rows."""
        step = max(1, BLOCK // max(1, width))
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))

    def column(self, k: int, block: slice | None = None) -> Labels:
        """Return a column: float64, NaN where missing, or an object array of text and None."""
        block = slice(0, self.shape[0]) if block is None else block
        if not _is_frame(self.X):
            return _typed(self.X[block, k], self.name(k))
        column = self.X[self.X.columns[k]]
        return _typed(np.asarray(column[block]), self.name(k))

    def missing(self) -> NDArray[np.int64]:
        """Return how many values are missing in each column."""
        counts = np.zeros(self.shape[1], dtype=np.int64)
        if sparse.issparse(self.X):
            bad = np.isnan(self.X.data) if self.X.dtype.kind == "f" else np.zeros(0, dtype=bool)
            if bad.any():
                counts += np.bincount(self.X.indices[bad], minlength=self.shape[1])
            return counts
        for block in self.blocks(self.shape[1]):
            if self.is_numeric:
                counts += np.isnan(self.X[block]).sum(axis=0)
                continue
            for k in range(self.shape[1]):
                values = self.column(k, block)
                if values.dtype.kind == "f":
                    counts[k] += np.count_nonzero(np.isnan(values))
                else:
                    counts[k] += values.tolist().count(None)
        return counts


def _is_frame(X: MatrixLike) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape") and not sparse.issparse(X)


def _typed(values: Labels, name: str) -> Labels:
    """Return numbers as float64, all else as text; None is a missing value."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind not in "OUST":
        raise ValueError(
            f"{name} holds values of type {values.dtype}: pass numbers or text, or drop it."
        )
    plain = [None if _is_missing(v) else v for v in values.tolist()]
    if all(v is None or isinstance(v, (bool, int, float, np.number, np.bool_)) for v in plain):
        return np.array([np.nan if v is None else float(v) for v in plain], dtype=np.float64)
    typed = np.empty(len(plain), dtype=object)
    for k, v in enumerate(plain):
        if v is not None and not isinstance(v, (str, bool, int, float, np.number, np.bool_)):
            raise TypeError(
                f"argument must be a string or a number: {name} holds a {type(v).__name__}."
            )
        typed[k] = v if v is None or isinstance(v, str) else _word(v)
    return typed


def _is_missing(value: object) -> bool:
    # NaN is what differs from itself; pandas' NA answers neither yes nor no.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _word(value: Any) -> str:
    """Return a number as text, as a file has it."""
    number = float(value)
    return str(int(number)) if number.is_integer() else str(number)


def _words(values: Labels) -> list[str | None]:
    """Return text, also where a block of it looks like numbers."""
    if values.dtype.kind == "f":
        return [None if np.isnan(v) else _word(v) for v in values.tolist()]
    return values.tolist()


def _numbers(values: Labels, name: str, fill: float | str | None) -> Floats:
    """Return numbers, also where a block of them came as text."""
    if values.dtype.kind != "f":
        try:
            values = np.array([np.nan if v is None else float(v) for v in values.tolist()])
        except ValueError as error:
            raise ValueError(f"{name} held numbers in the fit: {error}.") from None
    return values if fill is None else np.where(np.isnan(values), fill, values)
