"""Labels, weights, kernels and data that estimators must reject, or accept, alike."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.algorithms import Algorithm, blobs

# Estimators that do not look for a separating plane, but are given the same data.
MACHINES = [
    Algorithm(name, mm.LinearSVC, {"solver": name})
    for name in ("newton", "interior-point", "coordinate-descent")
]

X, Y = blobs(20, 3)

SCALES = np.array([1e-8, 1.0, 1e8])


def assert_finite(model) -> None:
    """Every published number is finite."""
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.certificate_.violation)
    assert np.isfinite(model.certificate_.margin)


BAD_LABELS = {
    "continuous": np.linspace(0, 1, 20),
    "nan": np.where(np.arange(20) == 3, np.nan, Y),
    "mixed": np.array(["a" if k else 1 for k in Y], dtype=object),
    "none": np.array([None if k else 1 for k in Y], dtype=object),
    "two columns": np.column_stack([Y, Y]),
    "too few": Y[:-1],
}


LABEL_TYPES = {
    "str": np.array(["no", "yes"]),
    "bool": np.array([False, True]),
    "object": np.array(["a", "b"], dtype=object),
    "float": np.array([-1.0, 1.0]),
    "int16": np.array([3, 900], dtype=np.int16),
}

# Weights of 20 samples, and what the message says of them.
BAD_WEIGHTS = {
    "zero": (np.zeros(20), "zero"),
    "nan": (np.where(np.arange(20) == 2, np.nan, 1.0), "NaN"),
    "inf": (np.where(np.arange(20) == 2, np.inf, 1.0), "inf"),
    "short": (np.ones(19), "19"),
    "2-D": (np.ones((20, 2)), "1D"),
}

BAD_KERNELS = {
    "nan": lambda A, B: np.full((len(A), len(B)), np.nan),
    "wide": lambda A, B: np.ones((len(A), len(B) + 1)),
    "flat": lambda A, B: np.ones(len(A)),
    "text": lambda A, B: "kernel",
}


def fits_or_asks_to_rescale(model, X, y) -> bool:
    """Return whether the model was fitted; a refusal must say what to do."""
    message = ""
    try:
        model.fit(X, y)
    except ValueError as error:
        message = str(error)
    assert "rescale" in message or not message
    return not message


def assert_a_failed_fit_changes_nothing(model, X, y) -> None:
    """Fit a fitted model once more, with a callback that fails."""
    before = model.decision_function(X)

    def failing(step):
        raise ZeroDivisionError

    model.set_params(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, np.where(y == 1, "b", "a"))
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert set(model.predict(X)) == set(y)


def rank_deficient(kind):
    """Return six rows that span fewer dimensions than there are rows or columns, and labels."""
    rng = np.random.default_rng(11)
    rows = {
        "n < d": rng.normal(size=(6, 30)),
        "rank 1": np.outer(rng.normal(size=6), rng.normal(size=3)),
        "zero column": np.column_stack([rng.normal(size=6), np.zeros(6)]),
        "all zero": np.zeros((6, 2)),
        "all equal": np.full((6, 2), 7.0),
    }
    return rows[kind], np.array([0, 1, 0, 1, 0, 1])
