"""Columns of a table as features, with columns of free text as tf-idf weights of their words."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from ..arrays import Floats, Labels, Matrix, MatrixLike
from .base import Constraints, validated
from .column_encoder import ColumnEncoder
from .column_facts import is_frame


class TextEncoder(TransformerMixin, BaseEstimator):
    """Words of free text by tf-idf, other columns as by `ColumnEncoder`: CSR features.

    The features of a column of text are those of scikit-learn's TfidfVectorizer: counts of its
    words times ln((1 + n)/(1 + n_word)) + 1, each row scaled to length 1. They follow those of the
    other columns.

    Parameters
    ----------
    text : sequence of str or int
        The columns of text, by name or number.
    scale, impute, copy : bool
        Of the other columns, as of `ColumnEncoder`. Missing text has no words.
    max_words : int, default=10000
        Only the most frequent words of each column, at most so many, are features.

    Attributes
    ----------
    text_columns_ : list of int
        The numbers of the columns of text.
    vocabulary_ : list of list of str
        For each of them its words, in order.
    idf_ : ndarray
        Weights of the words of all of them, one after the other.
    categories_, fill_ : list
        As of `ColumnEncoder`; None for columns of text.
    mean_, scale_ : ndarray of shape (n_features_out_,)
        As of `ColumnEncoder`; 0 and 1 for words.
    n_features_in_ : int
        Columns of the input.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had names.
    n_features_out_ : int
        Features of the output.

    Examples
    --------
    >>> import pandas as pd
    >>> from maxmargin import TextEncoder
    >>> notes = pd.DataFrame({"stars": [1.0, 5.0], "note": ["bad fruit", "good fruit"]})
    >>> encoder = TextEncoder(["note"]).fit(notes)
    >>> print(*encoder.get_feature_names_out())
    stars note:bad note:fruit note:good
    >>> print(encoder.transform(notes).toarray().round(2))
    [[-1.    0.81  0.58  0.  ]
     [ 1.    0.    0.58  0.81]]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "text": ["array-like"],
        "scale": ["boolean"],
        "impute": ["boolean"],
        "copy": ["boolean"],
        "max_words": [Interval(Integral, 1, None, closed="left")],
    }

    text_columns_: list[int]
    vocabulary_: list[list[str]]
    idf_: Floats
    categories_: list[list[str] | None]
    fill_: list[float | str | None]
    mean_: Floats
    scale_: Floats
    n_features_in_: int
    feature_names_in_: Labels
    n_features_out_: int

    def __init__(
        self,
        text: Sequence[str | int] = (),
        *,
        scale: bool = True,
        impute: bool = False,
        copy: bool = True,
        max_words: int = 10_000,
    ) -> None:
        self.text = text
        self.scale = scale
        self.impute = impute
        self.copy = copy
        self.max_words = max_words

    @validated
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn the words and their weights, and what `ColumnEncoder` learns.

        Parameters
        ----------
        X : frame or array of objects of shape (n_samples, n_columns)
            Rows with columns of text.
        y : object, optional
            Ignored, for compatibility with scikit-learn.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        X = self._rows(X, reset=True)
        self.text_columns_ = [self._place(column) for column in self.text]
        if not self.text_columns_ or len(set(self.text_columns_)) < len(self.text_columns_):
            raise ValueError(f"text must name different columns, at least one; got {self.text!r}.")
        others = self._others()
        inner = ColumnEncoder(scale=self.scale, impute=self.impute, copy=True)
        self.categories_, self.fill_ = [None] * X.shape[1], [None] * X.shape[1]
        self.mean_, self.scale_ = np.zeros(0), np.ones(0)
        if others:
            inner.fit(_taken(X, others))
            for k, words, fill in zip(others, inner.categories_, inner.fill_, strict=True):
                self.categories_[k], self.fill_[k] = words, fill
            self.mean_, self.scale_ = inner.mean_, inner.scale_
        fitted = [self._fitted_words(X, k) for k in self.text_columns_]
        self.vocabulary_ = [words for words, _ in fitted]
        self.idf_ = np.concatenate([weights for _, weights in fitted])
        self.mean_ = np.concatenate([self.mean_, np.zeros(self.idf_.size)])
        self.scale_ = np.concatenate([self.scale_, np.ones(self.idf_.size)])
        self.n_features_out_ = self.mean_.size
        return self

    def transform(self, X: MatrixLike) -> Matrix:
        """Return the features of new rows.

        Parameters
        ----------
        X : frame or array of objects of shape (n_samples, n_columns)
            Rows with the columns of the fit.

        Returns
        -------
        features : CSR matrix of shape (n_samples, n_features_out_)
            Those of the other columns, and then the words.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        others, parts = self._others(), []
        if others:
            parts.append(sparse.csr_matrix(self._columns(others).transform(_taken(X, others))))
        first = 0
        for k, words in zip(self.text_columns_, self.vocabulary_, strict=True):
            weights = self.idf_[first : first + len(words)]
            parts.append(_vectorizer(words, weights).transform(_texts(X, k)))
            first += len(words)
        features = sparse.csr_matrix(sparse.hstack(parts, format="csr"))
        features.sort_indices()
        return features

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Labels:
        """Return the names of the features: those of other columns, and column:word.

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
        for k in self._others():
            known = self.categories_[k]
            out += [names[k]] if known is None else [f"{names[k]}={word}" for word in known]
        for k, words in zip(self.text_columns_, self.vocabulary_, strict=True):
            out += [f"{names[k]}:{word}" for word in words]
        return np.array(out, dtype=object)

    # How it is done ------------------------------------------------------------------------

    def _rows(self, X: MatrixLike, *, reset: bool) -> Any:
        if sparse.issparse(X):
            raise TypeError("Columns of text cannot be sparse: pass a frame, or an array.")
        X = X if is_frame(X) else np.asarray(X, dtype=object)
        if len(X.shape) != 2:
            raise ValueError(f"Expected 2D array, got {len(X.shape)}D array instead.")
        validate_data(self, X, skip_check_array=True, reset=reset)
        return X

    def _place(self, column: str | int) -> int:
        """Return the number of a column."""
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, (int, np.integer)) and 0 <= column < self.n_features_in_:
            return int(column)
        raise ValueError(f"there is no column {column!r} of text; X has {self.n_features_in_}.")

    def _others(self) -> list[int]:
        return [k for k in range(self.n_features_in_) if k not in self.text_columns_]

    def _columns(self, others: list[int]) -> ColumnEncoder:
        """Return the fitted encoder of the other columns."""
        encoder = ColumnEncoder(scale=self.scale, impute=self.impute, copy=True)
        width = self.n_features_out_ - self.idf_.size
        encoder.categories_ = [self.categories_[k] for k in others]
        encoder.fill_ = [self.fill_[k] for k in others]
        encoder.mean_, encoder.scale_ = self.mean_[:width], self.scale_[:width]
        encoder.n_features_in_, encoder.n_features_out_ = len(others), width
        if hasattr(self, "feature_names_in_"):
            encoder.feature_names_in_ = self.feature_names_in_[others]
        return encoder

    def _fitted_words(self, X: Any, k: int) -> tuple[list[str], Floats]:
        """Return the words of a column of text, and their weights."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(max_features=self.max_words)
        try:
            vectorizer.fit(_texts(X, k))
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(
                f"column {k} must hold text with words of two letters or more: drop it."
            ) from None
        words = [str(word) for word in vectorizer.get_feature_names_out()]
        return words, np.asarray(vectorizer.idf_, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def _vectorizer(words: list[str], weights: Floats) -> Any:
    """Return scikit-learn's vectorizer of these words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(vocabulary=words)
    vectorizer.idf_ = weights
    return vectorizer


def _taken(X: Any, columns: list[int]) -> Any:
    """Return some columns of a frame or an array."""
    if not is_frame(X):
        return X[:, columns]
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def _texts(X: Any, k: int) -> list[str]:
    """Return a column as text; a missing one is empty."""
    values = np.asarray(X[X.columns[k]] if is_frame(X) else X[:, k], dtype=object).tolist()
    return ["" if value is None or value != value else str(value) for value in values]
