"""The checks of a partition, on its worker: errors that name the partition and the row."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from ...arrays import Floats, Integers, Labels
from ...data.columns import constant_features

# Different labels of a partition that are listed.
MOST_LABELS = 4096


class Block(NamedTuple):
    """A checked partition: rows in float32 or float64, C-ordered or CSR; labels and weights."""

    X: Any
    y: Labels | None
    weights: Floats | None

    def __dask_sizeof__(self) -> int:
        """Return the bytes, for Dask's own account of the memory."""
        return sum(_bytes(each) for each in self)


class PartFacts(NamedTuple):
    """What a check has found of a partition."""

    number: int
    error: str | None
    n_rows: int = 0
    n_columns: int = 0
    dtype: str = ""
    sparse: bool = False
    stored: int = 0
    largest: float = 0.0
    constant: tuple[Integers, Floats] | None = None
    labels: Labels | None = None  # different ones of positive weight; None where they are many
    label_kind: str = ""
    low: float = np.inf  # of y, where it holds numbers
    high: float = -np.inf
    largest_weight: float = 1.0
    least_weight: float = 1.0


def _bytes(values: Any) -> int:
    if values is None:
        return 0
    if sparse.issparse(values):
        return int(values.data.nbytes + values.indices.nbytes + values.indptr.nbytes)
    return int(values.nbytes)


def prepare(number: int, X: Any, y: Any, weights: Any) -> tuple[Block | None, list[PartFacts]]:
    """Return a partition as fits take it, and what it holds; errors are among the facts."""
    try:
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        n = X.shape[0]
        labels, costs = _labels(y, n), _weights(weights, n)
        if not n:
            return None, [PartFacts(number, None)]
        block = Block(_rows(X), labels, costs)
        return block, [_facts(number, block)]
    except (ValueError, TypeError, OverflowError) as error:
        return None, [PartFacts(number, _located(str(error), X))]


def block_of(X: Any) -> Block:
    """Return the rows of a partition that was checked before, where every pass reads it anew."""
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    return Block(_rows(X, is_checked=True), None, None)


def vectors_of(number: int, X: Any, y: Any, weights: Any) -> tuple[Block | None, list[PartFacts]]:
    """Return labels and weights of a partition, and what it holds, without its rows."""
    block, facts = prepare(number, X, y, weights)
    return None if block is None else block._replace(X=None), facts


def _rows(X: Any, *, is_checked: bool = False) -> Any:
    rows = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X",
        ensure_all_finite=not is_checked,
    )  # fmt: skip
    if sparse.issparse(rows):
        rows = sparse.csr_matrix(rows)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return rows
    return np.ascontiguousarray(rows)


def _labels(y: Any, n: int) -> Labels | None:
    if y is None:
        return None
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    _refuse_length("y", values, n)
    refuse_missing("y", values)
    return _numbers(values)


def _weights(weights: Any, n: int) -> Floats | None:
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"sample_weight must be a number or a 1d array, got an array of shape {values.shape}."
        )
    _refuse_length("sample_weight", values, n)
    refuse_missing("sample_weight", values)
    if (values < 0.0).any():
        row = int(np.argmax(values < 0.0))
        raise ValueError(
            f"sample_weight holds {values[row]:g} in row {row}: weights must be at least 0. Pass 0 "
            "for a sample that is not to count."
        )
    return values


def _refuse_length(name: str, values: Labels, n: int) -> None:
    if values.shape != (n,):
        raise ValueError(
            f"X has {n} rows here, and {name} has {values.size}: partition both alike."
        )


def refuse_missing(name: str, values: Labels) -> None:
    """Refuse values that are missing or not finite."""
    if values.dtype.kind in "fc":
        bad = ~np.isfinite(values)
    elif values.dtype.kind == "O":
        bad = np.array([_is_missing(each) for each in values], dtype=bool)
    else:
        return
    if not bad.any():
        return
    row = int(np.argmax(bad))
    value = values[row]
    what = "None" if value is None else "NaN" if _is_missing(value) else "infinity"
    raise ValueError(f"Input {name} contains {what}. The first is in row {row}.")


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas has for them, which equals nothing."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _numbers(values: Labels) -> Labels:
    """Return objects that are all numbers as an array of numbers."""
    if values.dtype.kind != "O" or not all(
        isinstance(each, Real) and not isinstance(each, bool) for each in values
    ):
        return values
    numbers = np.array(values.tolist())
    return numbers if numbers.dtype.kind in "iuf" else values


def _facts(number: int, block: Block) -> PartFacts:
    X, y, weights = block
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    low, high, labels, kind = np.inf, -np.inf, None, ""
    if y is not None:
        kind = y.dtype.kind
        labels = _different(y if weights is None else y[weights > 0.0])
        if kind in "biuf" and y.size:
            low, high = float(y.min()), float(y.max())
    return PartFacts(
        number, None, X.shape[0], X.shape[1], str(X.dtype), bool(sparse.issparse(X)),
        int(values.size), largest, constant_features(X), labels, kind, low, high,
        float(weights.max()) if weights is not None else 1.0,
        float(weights.min()) if weights is not None else 1.0,
    )  # fmt: skip


def _different(y: Labels) -> Labels | None:
    """Return the different labels, None where they are too many to be classes."""
    if y.dtype.kind in "iuf" and y.size > MOST_LABELS:
        some = np.unique(y[: 2 * MOST_LABELS])
        if some.size > MOST_LABELS:
            return None
        low, high = y.min(), y.max()
        if ((y == low) | (y == high)).all():  # two classes need no sorting
            return np.unique([low, high])
    try:
        labels: Labels = np.unique(y)
    except TypeError:  # of several types
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"y mixes labels of types {', '.join(kinds)}: pass labels of one type."
        ) from None
    return labels if labels.size <= MOST_LABELS else None


def _located(message: str, X: Any) -> str:
    """Return the first line of a message, with the place of the first NaN or infinity of X."""
    message = message.partition("\n")[0].rstrip(": ")
    if ("NaN" not in message and "inf" not in message) or "Input X" not in message:
        return message
    try:
        values = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        row, column = map(int, np.argwhere(~np.isfinite(values))[0])
    except (TypeError, ValueError, IndexError):
        return message
    names = getattr(X, "columns", None)
    name = f"column {column}" if names is None else f"column {names[column]!r}"
    return f"{message} The first is in row {row}, {name}."
