"""Labels, column names and bad parameters of LinearSVC."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import validation
from maxmargin.runtime import vectors
from tests.helpers.bad_input import LABEL_TYPES, assert_a_failed_fit_changes_nothing
from tests.helpers.linear_svc import TIGHT, N, cloud, made


@pytest.mark.parametrize("kind", LABEL_TYPES)
def test_predictions_have_the_type_of_the_labels(kind):
    names = LABEL_TYPES[kind]
    X, y = cloud()
    plain = made().fit(X, y)
    model = made().fit(X, names[y])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    np.testing.assert_array_equal(predicted, names[plain.predict(X)])


@pytest.mark.parametrize("kind", LABEL_TYPES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_labels_are_read_in_parts(kind, n_classes, monkeypatch):
    X, y = cloud(600, 4, n_classes)
    names = LABEL_TYPES[kind]
    names = names[: max(y) + 1] if len(names) > max(y) else np.array(["a", "b", "c"])
    whole = made().fit(X, names[y])
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))
    model = made().fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, whole.classes_)
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    np.testing.assert_array_equal(predicted, whole.predict(X))


def test_faults_of_many_rows_are_found_in_parts(monkeypatch):
    """Where X or y has a fault, the message is that of small data."""
    monkeypatch.setattr(vectors, "TUNING", vectors.Tuning(part_numbers=64))
    monkeypatch.setattr(validation, "THREADED_NUMBERS", 0)
    X, y = cloud(600, 4)
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[400, 2] = value
        with pytest.raises(ValueError, match=r"The first is in row 400, column 2"):
            made().fit(bad, y)
        with pytest.raises(ValueError, match=r"The first is in row 400, column 2"):
            made().fit(X, y).predict(bad)
    with pytest.raises(ValueError, match="rescale the features"):
        made().fit(X * 1e80, y)
    labels = y.astype(float)
    labels[500] = 0.5
    with pytest.raises(ValueError, match="continuous"):
        made().fit(X, labels)
    labels[500] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        made().fit(X, labels)


def test_column_names_of_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = cloud()
    columns = ["mass", "width", "height", "depth"]
    frame = pandas.DataFrame(X, columns=columns)
    labels = pandas.Series(np.where(y == 1, "apple", "pear"))
    model = made(tol=TIGHT).fit(frame, labels, pandas.Series(np.ones(N)))
    assert model.feature_names_in_.tolist() == columns
    assert model.n_features_in_ == 4
    plain = made(tol=TIGHT).fit(X, labels.to_numpy())
    np.testing.assert_allclose(
        model.decision_function(frame), plain.decision_function(X), atol=1e-4
    )  # fmt: skip
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[columns[::-1]])
    with pytest.raises(ValueError, match="2 features"):
        plain.predict(X[:, :2])
    # Blocks have no names: those of the last fit are forgotten.
    model.fit(mm.RowBlocks([X]), labels)
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)


def test_a_failed_fit_leaves_the_last_model_unchanged():
    X, y = cloud()
    assert_a_failed_fit_changes_nothing(made().fit(X, y), X, y)


BAD_PARAMETERS = [
    *({"C": v} for v in (0, 0.0, -1.0, np.nan, "1", None)),
    *({"tol": v} for v in (0.0, -1.0, np.nan, "1")),
    *({"max_iter": v} for v in (-2, 0, 1.5, "1")),
    *({"time_limit": v} for v in (0.0, -1.0, "1")),
    {"loss": "logistic"},
    {"solver": "liblinear"},
    {"penalize_intercept": "yes"},
    {"fit_intercept": 3},
    {"multi_class": "kesler"},
    {"callback": 3},
    {"class_weight": "heavy"},
    {"class_weight": {0: -1.0}},
    {"n_jobs": 0},
    {"n_jobs": 1.5},
    {"random_state": "seed"},
]


@pytest.mark.parametrize("options", BAD_PARAMETERS, ids=str)
def test_bad_parameters_are_named(options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name) as caught:
        mm.LinearSVC(**options).fit(*cloud(20))
    assert repr(value) in str(caught.value)
