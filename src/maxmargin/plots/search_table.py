"""The candidates of a search as points of a plane: C, and the kernel or another parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor

from ..arrays import Floats
from ..diagnostics.metrics import scorer_in_words

SYMBOLS = {"gamma": "γ", "nu": "ν", "epsilon": "ε"}
# Parameters on the second axis, the first of them that varies.
SECOND = ("gamma", "kernel", "epsilon", "nu")


class Candidates(NamedTuple):
    """The candidates of one search as points of a plane.

    Parameters
    ----------
    x, y : ndarray of shape (n_candidates,)
        C or ν, and γ or the number of a kernel.
    mean, standard_error : ndarray of shape (n_candidates,)
        Of the scores; NaN where a fold is missing.
    """

    x: Floats
    y: Floats
    mean: Floats
    standard_error: Floats


class SearchAxes(NamedTuple):
    """The parameters of searches, by their part in a figure.

    Parameters
    ----------
    x, y : str
        On the axes; the second is "" where there is none.
    others : list of str
        Those that vary beside them.
    kernels : list of str
        Names of the values on the second axis, empty where all are positive numbers.
    """

    x: str
    y: str
    others: list[str]
    kernels: list[str]

    @classmethod
    def of(cls, tables: list[Mapping[str, Any]]) -> SearchAxes:
        """Return the axes of one search, or of several over the same parameters."""
        names = [key.removeprefix("param_") for key in tables[0] if key.startswith("param_")]
        by_end = {name.rpartition("__")[2]: name for name in names}
        x = by_end.get("C") or by_end.get("nu")
        if x is None:
            raise ValueError(f"a search over C or nu is drawn, got one over {', '.join(names)}.")
        rest = [name for name in names if name != x]
        rest.sort(key=lambda name: SECOND.index(end) if (end := _end(name)) in SECOND else 99)
        varying = [name for name in rest if len({str(v) for v in _values(tables, name)}) > 1]
        y = (varying or rest or [""])[0]
        return cls(x, y, varying[1:], _kernels(_values(tables, y) if y else [None]))


def _end(name: str) -> str:
    """Return the name of a parameter without the steps of a pipeline before it."""
    return name.rpartition("__")[2]


def _values(tables: list[Mapping[str, Any]], name: str) -> list[Any]:
    return [value for table in tables for value in table[f"param_{name}"]]


def _kernels(values: list[Any]) -> list[str]:
    """Return the names of values, in their order; none where all are positive numbers."""
    if all(_is_number(value) and value > 0.0 for value in values):
        return []
    return list(dict.fromkeys(_name(value) for value in values))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _name(value: Any) -> str:
    return f"{value:.4g}" if _is_number(value) else str(value)


def table_of(search: Any) -> Mapping[str, Any]:
    """Return the results of a fitted search."""
    table = getattr(search, "cv_results_", None)
    if table is None:
        raise TypeError(
            f"{type(search).__name__} has no cv_results_: pass a fitted search, such as SVCCV."
        )
    if "mean_test_score" not in table:
        raise ValueError("cv_results_ must hold one score, mean_test_score: use a single scoring.")
    return table  # type: ignore[no-any-return]


def score_of(search: Any) -> str:
    """Return the name of the scores."""
    scoring = getattr(search, "scoring", None)
    if scoring is None and hasattr(search, "__sklearn_tags__"):
        scoring = "accuracy" if is_classifier(search) else "r2" if is_regressor(search) else None
    if not isinstance(scoring, str):
        return "mean score"
    name = scorer_in_words(scoring)
    return name if " mean " in name else f"mean {name}"


def slice_of(
    table: Mapping[str, Any], others: list[str], chosen: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the candidates with the chosen values of some parameters, or the nearest, and these.

    Parameters
    ----------
    table : dict
        Results of a search.
    others : list of str
        The parameters.
    chosen : dict
        Their chosen values.
    """
    at, rows = {}, np.ones(len(table["mean_test_score"]), dtype=bool)
    for name in others:
        values = list(dict.fromkeys(table[f"param_{name}"]))
        at[name] = min(values, key=lambda value, name=name: _distance(value, chosen[name]))  # type: ignore[misc]
        rows &= np.array([value == at[name] for value in table[f"param_{name}"]])
    kept = {
        key: np.asarray(column)[rows] for key, column in table.items()
        if key.startswith(("param_", "split")) or key == "mean_test_score"
    }  # fmt: skip
    return kept, at


def _distance(value: Any, chosen: Any) -> float:
    """Return how far values are apart, those of positive numbers by their ratio."""
    if value == chosen:
        return 0.0
    if not (_is_number(value) and _is_number(chosen)):
        return np.inf
    if value > 0.0 and chosen > 0.0:
        return float(abs(np.log(value / chosen)))
    return 1e9 + float(abs(value - chosen))


def candidates_of(table: Mapping[str, Any], axes: SearchAxes) -> Candidates:
    """Return the candidates of a search as points."""
    mean = np.asarray(table["mean_test_score"], dtype=float)
    folds = [table[key] for key in table if key.startswith("split") and key.endswith("_test_score")]
    error = np.zeros(mean.size)
    if len(folds) > 1:
        error = np.std(np.array(folds, dtype=float), axis=0, ddof=1) / np.sqrt(len(folds))
    across = np.array([float(value) for value in table[f"param_{axes.x}"]])
    second = table[f"param_{axes.y}"] if axes.y else [None] * mean.size
    up = [place_of(value, axes.kernels) for value in second]
    return Candidates(across, np.array(up), mean, error)


def best_of(grids: list[Candidates]) -> tuple[float, float]:
    """Return the largest mean score, and the same less its standard error."""
    means = np.concatenate([grid.mean for grid in grids])
    if np.isnan(means).all():
        raise ValueError("no candidate of the search has a score on all folds.")
    errors = np.concatenate([grid.standard_error for grid in grids])
    k = int(np.nanargmax(means))
    return float(means[k]), float(means[k]) - (float(errors[k]) if errors[k] > 0.0 else 0.0)


def place_of(value: Any, kernels: list[str]) -> float:
    """Return where a value is on the second axis."""
    return float(kernels.index(_name(value)) if kernels else value)


def chosen_of(searches: list[Any]) -> Mapping[str, Any]:
    """Return the parameters that a search chose, or those of its best candidate."""
    found = []
    for each in searches:
        table = table_of(each)
        mean = np.asarray(table["mean_test_score"], dtype=float)
        means = np.where(np.isnan(mean), -np.inf, mean)
        k = int(getattr(each, "best_index_", np.argmax(means)))
        found.append((means[k], table["params"][k]))
    return max(found, key=lambda pair: pair[0])[1]  # type: ignore[no-any-return]


def symbol_of(name: str) -> str:
    """Return the letter of a parameter, or its name."""
    return SYMBOLS.get(name, name)


def value_in_words(name: str, value: Any) -> str:
    """Return a parameter with its value; a kernel by its name alone.

    >>> value_in_words("epsilon", 0.25), value_in_words("kernel", "rbf")
    ('ε = 0.25', 'rbf')
    """
    return _name(value) if name == "kernel" else f"{symbol_of(name)} = {_name(value)}"
