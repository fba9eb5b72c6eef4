"""Columns of a table as features: numbers standardised, categories as 0/1 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from ..arrays import Floats, Labels, Matrix, MatrixLike
from ..caller import warn_caller
from ..engines.registry import example_rows, is_partitioned, lazy_answers, reduced_partitions
from ..files.table import cut
from .base import Constraints, validated
from .column_facts import (
    Columns,
    Facts,
    Words,
    facts_of,
    is_frame,
    merged,
    numbers_of,
    text_columns,
    words_of,
)
from .partition_medians import medians_of_partitions

# Different values above which a text column holds names, not categories.
MOST_CATEGORIES = 1000
# Different values that are categories however few the rows.
FEW_CATEGORIES = 20
# Numbers above which 0/1 columns are not stored as such.
WIDE = 1 << 25
# Features of a collection above which 0/1 columns are not stored as such, where they are so many
# per column that CSR rows take less than a fifth of the memory.
WIDE_ROWS, FEATURES_PER_COLUMN = 256, 8
NO_ROWS = "X has 0 rows: a ColumnEncoder learns from at least one."


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
    _lazy_as: Matrix  # of a copy on the workers: no row of the features of all blocks

    def __init__(self, *, scale: bool = True, impute: bool = False, copy: bool = True) -> None:
        self.scale = scale
        self.impute = impute
        self.copy = copy

    @validated
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn categories, replacements of missing values, means and standard deviations.

        Parameters
        ----------
        X : array-like, CSR matrix, frame or Dask collection of shape (n_samples, n_columns)
            Only frames (of pandas, polars or Dask) and arrays of objects may hold categories.
            Partitions of a Dask collection are read once, and some times more for the medians of
            ``impute=True``: what they hold comes back, and not their rows.
        y : object, optional
            Ignored, for compatibility with scikit-learn.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        lazy = is_partitioned(X)
        rows = self._rows(example_rows(X) if lazy else X, reset=True)
        if rows.shape[0] == 0:
            raise ValueError(NO_ROWS)
        self.categories_ = [None] * rows.shape[1]
        self.fill_ = [None] * rows.shape[1]
        facts = None
        if lazy or self.scale or self.impute or not rows.is_numeric:
            facts = self._facts(X, rows)
            self._learn(facts, rows, X)
        self.n_features_out_ = sum(1 if c is None else len(c) for c in self.categories_)
        self.mean_, self.scale_ = np.zeros(self.n_features_out_), np.ones(self.n_features_out_)
        if self.scale and facts is not None:
            self._measure(facts, rows)
        return self

    def transform(self, X: MatrixLike) -> Matrix:
        """Return the features of new rows.

        Categories that were not seen in the fit are 0 in every column, with a warning.

        Parameters
        ----------
        X : array-like, CSR matrix, frame or Dask collection of shape (n_samples, n_columns)
            Rows with the columns of the fit.

        Returns
        -------
        features : ndarray, CSR matrix or dask.array of shape (n_samples, n_features_out_)
            Dense; CSR for CSR where nothing is subtracted, and where many 0/1 columns would fill
            the memory. Those of a Dask collection are not computed yet; one chunk per block of
            rows, all of them dense or CSR.
        """
        check_is_fitted(self)
        if is_partitioned(X):
            return self._lazy_features(X)
        rows = self._rows(X, reset=False)
        if all(fill is None for fill in self.fill_):
            self._check_missing(rows.missing(), rows)
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

    def _blocks(self, rows: Columns) -> Iterator[tuple[slice, Floats]]:
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

    def _lazy_features(self, X: Any) -> Any:
        """Return the features of a collection, block by block, all of them dense or CSR."""
        if _get_output_config("transform", self)["dense"] != "default":
            raise ValueError(
                "The features of a Dask collection are a dask.array: use "
                "set_output(transform='default')."
            )
        rows, d = self._rows(example_rows(X), reset=False), self.n_features_out_
        example = self._room(rows)
        if sparse.issparse(rows.X) and not self.mean_.any():
            example = self._scaled_sparse(rows.X.astype(rows.X.dtype))
        elif d > max(WIDE_ROWS, FEATURES_PER_COLUMN * rows.shape[1]):
            example = sparse.csr_matrix(example.shape, dtype=example.dtype)
        sent = copy(self)
        sent.copy = True  # blocks of a collection belong to it
        sent._lazy_as = example[:0]
        return lazy_answers(sent, "_features_of_block", X, example)

    def _features_of_block(self, X: MatrixLike) -> Matrix:
        """Return the features of one block of a collection, of the kind of all blocks."""
        features = self.transform(X)
        if sparse.issparse(self._lazy_as):
            features = sparse.csr_matrix(features)
        elif sparse.issparse(features):
            features = features.toarray()
        return features.astype(self._lazy_as.dtype, copy=False)

    def _size(self, rows: Columns) -> int:
        return rows.shape[0] * self.n_features_out_

    def _rows(self, X: MatrixLike, *, reset: bool) -> Columns:
        if sparse.issparse(X):
            X = sparse.csr_matrix(X) if not isinstance(X, sparse.csr_array) else X
            if not X.has_canonical_format:  # the same place given twice is a sum
                X = X.copy()
                X.sum_duplicates()
        elif not is_frame(X):
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
        return Columns(X, [str(n) for n in names] if names is not None else None)

    def _facts(self, X: MatrixLike, rows: Columns) -> Facts:
        """Return what all rows hold; those of a collection are read where they are."""
        may_hold_text = text_columns(rows)
        if not is_partitioned(X):
            return facts_of(rows, may_hold_text)
        facts = reduced_partitions(self, partial(_part_facts, may_hold_text), merged, X)
        if not facts.n:
            raise ValueError(NO_ROWS)
        return facts

    def _learn(self, facts: Facts, rows: Columns, X: MatrixLike) -> None:
        """Set the categories of columns of text, and what missing values become."""
        for k, words in facts.words.items():
            if words.is_text:
                self.categories_[k] = _categories(words, facts.n, rows.name(k))
                self.fill_[k] = _most_frequent(words) if self.impute else None
        # What is not stored in a sparse column is 0, not missing.
        if not self.impute or sparse.issparse(rows.X):
            return
        numbers = [k for k, words in enumerate(self.categories_) if words is None]
        known = facts.n - facts.missing
        for k in numbers:
            if not known[k]:
                raise ValueError(f"{rows.name(k)} holds no value: drop it.")
        if is_partitioned(X):
            middles = medians_of_partitions(self, X, numbers, known[numbers])
        else:
            middles = [float(np.nanmedian(rows.column(k))) for k in numbers]
        for k, middle in zip(numbers, middles, strict=True):
            self.fill_[k] = middle

    def _check_missing(self, missing: NDArray[np.int64], rows: Columns) -> None:
        if any(fill is not None for fill in self.fill_) or not missing.any():
            return
        held = np.flatnonzero(missing)
        places = ", ".join(f"{missing[k]} in {rows.name(k)}" for k in held[:5])
        places += ", …" if held.size > 5 else ""
        raise ValueError(
            f"Input X contains NaN: {missing.sum()} missing values ({places}). Pass "
            "impute=True to fill them, or remove those rows."
        )

    def _measure(self, facts: Facts, rows: Columns) -> None:
        """Set μ and σ of the columns of numbers, missing values being filled."""
        self._check_missing(facts.missing, rows)
        widths = [1 if c is None else len(c) for c in self.categories_]
        numbers = np.array([c is None for c in self.categories_])
        n, known = facts.n, facts.n - facts.missing
        fill = np.array([f if isinstance(f, float) else 0.0 for f in self.fill_])
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (known * facts.mean + facts.missing * fill) / n
            squares = facts.squares + known * (facts.mean - mean) ** 2
            spread = np.sqrt((squares + facts.missing * (fill - mean) ** 2) / n)
        wild = np.flatnonzero(~np.isfinite(spread) & numbers)
        if wild.size:
            raise ValueError(
                f"Input X contains infinity or a value too large for {rows.name(int(wild[0]))}: "
                f"its spread is {spread[wild[0]]}. Remove such rows, or rescale."
            )
        # What rounding makes of a constant column, more the more rows are summed, is not a spread.
        eps = np.finfo(float).eps
        constant = spread**2 <= n * eps * spread**2 + (n * mean * eps) ** 2
        if sparse.issparse(rows.X):
            mean = np.zeros_like(mean)
        self.mean_ = np.repeat(np.where(numbers, mean, 0.0), widths)
        self.scale_ = np.repeat(np.where(constant | ~numbers, 1.0, spread), widths)

    def _origin(self, feature: int, rows: Columns) -> str:
        """Return the column that a feature comes from."""
        widths = [1 if c is None else len(c) for c in self.categories_]
        return rows.name(int(np.searchsorted(np.cumsum(widths), feature, side="right")))

    def _in_place(self, rows: Columns) -> bool:
        X = rows.X
        return (
            not self.copy
            and isinstance(X, np.ndarray)
            and X.dtype.kind == "f"
            and X.flags.writeable
            and self.n_features_out_ == X.shape[1]
        )

    def _room(self, rows: Columns) -> Labels:
        kept = np.float32 if rows.is_single(self.categories_) else np.float64
        return np.empty((rows.shape[0], self.n_features_out_), dtype=kept)

    def _expand(self, rows: Columns, block: slice, unseen: Counter[int] | None = None) -> Floats:
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
                features[:, first] = numbers_of(values, rows.name(k), fill)
            else:
                place: dict[object, int] = {word: j for j, word in enumerate(categories)}
                words = [fill if v is None else v for v in words_of(values)]
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


def _part_facts(
    may_hold_text: list[int], encoder: ColumnEncoder, X: MatrixLike, y: None, weights: None
) -> Facts:
    """Return the facts of a partition."""
    return facts_of(encoder._rows(X, reset=False), may_hold_text)


def _categories(words: Words, n: int, name: str) -> list[str]:
    """Return the categories of a column of text, in order."""
    counts = words.counts
    if words.unknown:
        raise ValueError(
            f"{name} holds text in some partitions, and numbers in others: convert it, for "
            "instance with astype(str)."
        )
    many = len(counts) > MOST_CATEGORIES or words.more
    if many or (len(counts) > FEW_CATEGORIES and 2 * len(counts) > n):
        size = f"more than {len(counts)}" if words.more else f"{len(counts)}"
        raise ValueError(
            f"{name} holds {size} different values in {n} rows, {cut(next(iter(counts)))} among "
            "them: these are names or free text, not categories. Drop it, or encode free text by "
            "TextEncoder (--text)."
        )
    return sorted(counts)


def _most_frequent(words: Words) -> str:
    """Return the most frequent category, of equally frequent ones the first in order."""
    return min(words.counts, key=lambda word: (-words.counts[word], word))
