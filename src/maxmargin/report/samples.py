"""Rows to look at, with their original values: the most influential and the most doubtful."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats, Integers
from ..kernels import Precomputed
from .checked import CheckedRows, take

# Rows of a table; rows of the doubtful ones that are kept for right answers.
SHOWN_ROWS, SHOWN_RIGHT = 15, 5
# Columns of the data beside them; values of a sparse row; letters of a text.
SHOWN_COLUMNS, SHOWN_VALUES, LONGEST_TEXT = 12, 6, 60
# Margins below this share of the largest are 0.
ROUNDING = 1e-9


@dataclass(frozen=True)
class RowTable:
    """Some rows of the data.

    Parameters
    ----------
    title, caption : str
    columns : list of str
        What is known of a row, and then the columns of the data.
    rows : list of (list of str, bool)
        The cells, and whether the answer is wrong.
    """

    title: str
    caption: str
    columns: list[str]
    rows: list[tuple[list[str], bool]]


def row_tables(checked: CheckedRows) -> list[RowTable]:
    """Return the tables of rows."""
    return [_influential(checked), _doubtful(checked)]


def _influential(checked: CheckedRows) -> RowTable:
    title, reason = "The most influential rows", _without_alpha(checked)
    if reason:
        return RowTable(title, reason, [], [])
    assert checked.training is not None
    alpha = checked.fitted.alpha(len(checked.training))
    margins = np.nan_to_num(checked.margins[checked.training], nan=-np.inf)
    if checked.fitted.has_targets:
        margins = -np.abs(margins)
    order = np.lexsort((margins, -alpha))
    order = order[alpha[order] > 0.0][:SHOWN_ROWS]
    n_support = int(np.count_nonzero(alpha))
    first = "those furthest on the wrong side" if checked.fitted.has_classes else "the lowest g"
    first = "the largest residuals" if checked.fitted.has_targets else first
    caption = (
        f"Of {len(alpha):,} training rows, {n_support:,} have a weight α > 0: they are the model; "
        f"shown are the largest α{_among_equals(alpha, order, first)}."
    )
    return _table(checked, title, caption, checked.training[order], alpha[order])


def _among_equals(alpha: Floats, order: Integers, first: str) -> str:
    """Return which rows were chosen where more of them have the same α."""
    last = alpha[order[-1]] if order.size else 0.0
    n_equal = int(np.count_nonzero(np.isclose(alpha, last, rtol=1e-9)))
    n_shown = int(np.count_nonzero(np.isclose(alpha[order], last, rtol=1e-9)))
    if n_equal <= n_shown:
        return ""
    return f" ({n_equal:,} rows have α = {last:.4g}: {first} come first)"


def _without_alpha(checked: CheckedRows) -> str:
    """Return why there is no α for the rows; "" where there is."""
    fitted = checked.fitted
    if fitted.is_approximated:
        return "Not shown: the model has weights of features in the place of a weight α per row."
    if fitted.support is None:
        if fitted.is_any_machine:
            return (
                "Not shown: the model file keeps no α per row (maxmargin fit --keep-dual keeps it)."
            )
        return "Not shown: the algorithm has no weight α per row."
    if checked.training is None:
        return "Not shown: the rows that the model was fitted to were not found among these."
    return ""


def _doubtful(checked: CheckedRows) -> RowTable:
    margins, fitted = checked.margins, checked.fitted
    if fitted.has_targets:
        chosen = np.argsort(-np.abs(margins), kind="stable")[:SHOWN_ROWS]
        caption = "The largest residuals, target less answer."
    elif not fitted.has_classes:
        lowest = np.argsort(margins, kind="stable")[: SHOWN_ROWS - SHOWN_RIGHT]
        near = [k for k in np.argsort(np.abs(margins), kind="stable") if k not in set(lowest)]
        chosen = np.array([*lowest, *near[:SHOWN_RIGHT]], dtype=np.intp)
        caption = "The lowest scores g first; then the rows nearest to the border g = 0."
    else:
        order = np.argsort(np.nan_to_num(margins, nan=-np.inf), kind="stable")
        wrong = checked.is_wrong[order]
        first, rest = order[wrong][: SHOWN_ROWS - SHOWN_RIGHT], order[~wrong]
        chosen = np.concatenate([first, rest[: SHOWN_ROWS - len(first)]])
        shown = f"{len(first)} of {int(wrong.sum()):,} wrong answers, the smallest margins first"
        caption = f"{shown}; then the right answers nearest to a boundary."
        if not len(first):
            caption = "No answer is wrong: the right answers nearest to a boundary."
    return _table(checked, "The most doubtful rows", caption, chosen, None)


def _table(
    checked: CheckedRows, title: str, caption: str, rows: Integers, alpha: Floats | None
) -> RowTable:
    fitted, places = checked.fitted, _places(checked)
    known = ["row", *(["part"] if checked.parts else [])]
    if fitted.has_classes or fitted.has_targets:
        known.append("class" if fitted.has_classes else "target")
    measured = "margin" if fitted.has_classes else "residual" if fitted.has_targets else "score g"
    known += ["answer", measured, *(["α"] if alpha is not None else [])]
    columns = checked.columns
    names, note = _value_names(columns, places)
    is_wrong = checked.is_wrong if fitted.has_classes else np.zeros(len(checked), dtype=bool)
    unit = float(np.nanmax(np.abs(checked.margins), initial=0.0))
    lines = []
    for k, row in enumerate(rows.tolist()):
        cells = _known(checked, row, unit)
        cells += [] if alpha is None else [f"{alpha[k]:.4g}"]
        lines.append(([*cells, *_values(checked.X, row, columns, places)],
                      bool(is_wrong[row])))  # fmt: skip
    return RowTable(title, " ".join(filter(None, [caption, note])), [*known, *names], lines)


def _known(checked: CheckedRows, row: int, unit: float) -> list[str]:
    """Return number, part, truth, answer and margin of a row; rounding errors of the unit are 0."""
    fitted, answer = checked.fitted, checked.given.labels[row]
    cells = [f"{row + 1:,}", *([checked.part_of(row)] if checked.parts else [])]
    if checked.y is not None and (fitted.has_classes or fitted.has_targets):
        cells.append(cell(checked.y[row]))
    if not fitted.has_classes and not fitted.has_targets:
        cells.append("outlier" if answer < 0 else "inside")
    else:
        cells.append(cell(answer))
    margin = float(checked.margins[row])
    if math.isnan(margin):
        return [*cells, "–"]
    return [*cells, f"{margin:.3g}" if abs(margin) > ROUNDING * unit else "0"]


# The values of a row ------------------------------------------------------------------------------


def _places(checked: CheckedRows) -> list[int] | None:
    """Return the columns that are shown, None for sparse rows; the heaviest of a linear model."""
    X, fitted = checked.X, checked.fitted
    if isinstance(fitted.kernel, Precomputed):
        return []
    if hasattr(X, "tocsr"):
        return None
    d = X.shape[1]
    if d > SHOWN_COLUMNS and fitted.is_linear and fitted.W.shape[1] == d:
        heaviest = np.argsort(-np.abs(fitted.W).max(axis=0), kind="stable")[:SHOWN_COLUMNS]
        return sorted(heaviest.tolist())
    return list(range(min(d, SHOWN_COLUMNS)))


def _value_names(columns: list[str], places: list[int] | None) -> tuple[list[str], str]:
    """Return the heads of the columns of values, and a remark where not all are shown."""
    d = len(columns)
    if places is None:
        return ["values"], f"Of each row, the values of largest size ({d:,} columns)."
    note = ""
    if 0 < len(places) < d:
        is_first = places == list(range(len(places)))
        note = f"The first {len(places)} of {d:,} columns are shown."
        if not is_first:
            note = f"The {len(places)} of {d:,} columns with the largest weights are shown."
    return [columns[k] for k in places], note


def _values(X: Any, row: int, names: Sequence[str], places: list[int] | None) -> list[str]:
    if places is None:
        some = take(X, [row]).tocsr()
        largest = np.argsort(-np.abs(some.data), kind="stable")[:SHOWN_VALUES]
        parts = [f"{names[some.indices[k]]} = {cell(some.data[k])}" for k in sorted(largest)]
        return [", ".join(parts) + (", …" if some.nnz > SHOWN_VALUES else "")]
    if hasattr(X, "iloc"):
        return [cell(X.iloc[row, k]) for k in places]
    return [cell(X[row, k]) for k in places]


def cell(value: Any) -> str:
    """Return a value as a table shows it: numbers with six digits, long texts cut.

    >>> cell(0.1 + 0.2), cell(None), cell("a" * 100)[-3:], cell(3.0)
    ('0.3', 'missing', 'aa…', '3')
    """
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return "missing"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
