"""Measures of predictions: against scikit-learn, in pieces, and where they are not defined."""

import math
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from maxmargin.diagnostics import metrics


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_regression_errors_in_pieces(shift):
    rng = np.random.default_rng(0)
    y = rng.normal(size=1000) + shift
    given = y + rng.normal(size=1000)
    cuts = [0, 1, 2, 500, 1000]
    pairs = [(y[a:b], given[a:b]) for a, b in pairwise(cuts)]
    found = metrics.regression_errors(pairs, baseline=float(y.mean()))
    assert found["rows"] == 1000
    assert found["r2"] == pytest.approx(r2_score(y, given), rel=1e-6)
    assert found["mae"] == pytest.approx(mean_absolute_error(y, given), rel=1e-6)
    assert found["rmse"] == pytest.approx(root_mean_squared_error(y, given), rel=1e-6)
    assert found["baseline"]["r2"] == pytest.approx(0.0, abs=1e-9)
    assert found["baseline"]["rmse"] == pytest.approx(y.std(), rel=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_equal_targets_have_no_r2(value):
    y = np.full(7, value)
    pairs = [(y[:3], y[:3]), (y[3:], y[3:] + 1.0)]
    found = metrics.regression_errors(pairs)
    assert math.isnan(found["r2"])
    assert found["mae"] == pytest.approx(4 / 7)
    assert metrics.in_words(found).startswith("R² –, MAE ")


def test_outliers_by_label():
    given = np.array([1, -1, -1, 1])
    labels = np.array(["u", "u", "v", ""])
    found = metrics.outlier_counts([(labels[:2], given[:2]), (labels[2:], given[2:])])
    assert found["outliers"] == 2
    assert found["labels"] == {
        "": {"rows": 1, "outliers": 0},
        "u": {"rows": 2, "outliers": 1},
        "v": {"rows": 1, "outliers": 1},
    }
    assert metrics.outlier_counts([(None, given), (labels, given)])["labels"] is None
    many = np.arange(1000).astype(str)
    assert metrics.outlier_counts([(many, np.ones(1000))])["labels"] is None


def test_folds_have_standard_errors():
    found = metrics.of_folds([{"r2": 0.5, "baseline": {}}, {"r2": 0.7, "baseline": {}}])
    assert found["r2"] == pytest.approx(0.6)
    assert found["standard_errors"]["r2"] == pytest.approx(0.1)
    assert "baseline" not in found
    assert metrics.in_words(found, found["standard_errors"]) == "R² 0.6 ± 0.1"
