"""Checks of a `TextEncoder` that was read from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.column_encoder import ColumnEncoder
from ..estimators.text_encoder import TextEncoder
from .errors import InconsistentModelError


def other_columns(model: TextEncoder) -> ColumnEncoder | None:
    """Return the encoder of the columns that are not text, None without one; raise for a text
    encoder whose parts do not fit.
    """
    n, places, words = model.n_features_in_, model.text_columns_, model.vocabulary_
    good = isinstance(places, list) and all(type(k) is int and 0 <= k < n for k in places)
    _require(good and places and len(set(places)) == len(places), f"text_columns_ {places!r:.50}")
    good = isinstance(words, list) and len(words) == len(places)
    _require(good and all(map(_is_vocabulary, words)), "vocabulary_ must have words per column")
    width = sum(map(len, words))
    idf = model.idf_
    good = isinstance(idf, np.ndarray) and idf.shape == (width,) and idf.dtype == np.float64
    _require(good and np.isfinite(idf).all(), f"idf_ must be {width} finite numbers")
    for name in ("categories_", "fill_"):
        held = getattr(model, name)
        _require(isinstance(held, list) and len(held) == n, f"{name} must have one per column")
        _require(all(held[k] is None for k in places), f"{name} of text must be None")
    out = model.n_features_out_
    _require(type(out) is int and out >= width, f"n_features_out_ is {out!r:.50}")
    for name in ("mean_", "scale_"):
        held = getattr(model, name)
        good = isinstance(held, np.ndarray) and held.shape == (out,) and held.dtype == np.float64
        _require(good and np.isfinite(held).all(), f"{name} must be {out} finite numbers")
    others = [k for k in range(n) if k not in places]
    _require(bool(others) or out == width, f"n_features_out_ must be {width}, got {out!r:.50}")
    return model._columns(others) if others else None


def _is_vocabulary(words: Any) -> bool:
    good = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return good and len(set(words)) == len(words) > 0


def row_of_text(model: TextEncoder, row: Any) -> Any:
    """Return a row like those of the fit: ``row`` of the other columns, and a word per text."""
    full = np.empty((1, model.n_features_in_), dtype=object)
    others = [k for k in range(model.n_features_in_) if k not in model.text_columns_]
    for place, k in enumerate(others):
        full[0, k] = row[0, place]
    for k, words in zip(model.text_columns_, model.vocabulary_, strict=True):
        full[0, k] = words[0]
    return full


def _require(true: Any, what: str) -> None:
    if not true:
        raise InconsistentModelError(what)
