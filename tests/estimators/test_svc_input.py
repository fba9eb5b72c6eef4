"""Bad input to SVC and NuSVC: data, labels, weights and parameters."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from tests.helpers.bad_input import BAD_WEIGHTS, assert_a_failed_fit_changes_nothing
from tests.helpers.storage import DATA, thin
from tests.helpers.svc import MODELS, cloud


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_not_finite(make, value, kind):
    X, y = thin(40)
    model = make(0.2).fit(X, y)
    X[7, 2] = value
    for use in (lambda: make(0.2).fit(DATA[kind](X), y), lambda: model.predict(DATA[kind](X))):
        with pytest.raises(ValueError, match="row 7, column 2"):
            use()


@pytest.mark.parametrize("make", MODELS)
def test_too_little(make):
    X, y = cloud(20)
    with pytest.raises(ValueError, match="1 class"):
        make().fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="1 class"):
        make().fit(X, y, (y == 0).astype(float))
    with pytest.raises(ValueError, match=r"1 class|1 sample"):
        make().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="0 feature"):
        make().fit(np.empty((4, 0)), [0, 1, 0, 1])
    model = make().fit(X, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.empty((0, 3)))


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.linspace(0, 1, 20), "(?i)label|continuous"),
        (np.array([np.nan, *np.ones(10), *np.zeros(9)]), "NaN"),
        (np.array(["a", 1] * 10, dtype=object), "type"),
        (np.column_stack([np.arange(20) % 2] * 2), "1d|y "),
        (np.arange(19) % 2, "inconsistent"),
    ],
    ids=["continuous", "nan", "mixed", "two columns", "too few"],
)
def test_bad_labels(make, labels, told):
    with pytest.raises(ValueError, match=told):
        make().fit(cloud(20)[0], labels)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("kind", BAD_WEIGHTS)
def test_bad_weights(make, kind):
    weight, told = BAD_WEIGHTS[kind]
    with pytest.raises(ValueError, match=r"(?i)weight") as caught:
        make().fit(*cloud(20), weight)
    assert told.lower() in str(caught.value).lower()


BAD_PARAMETERS = [
    *((mm.SVC, {"C": v}) for v in (0, 0.0, -1.0, np.nan, "1", None)),
    *((mm.NuSVC, {"nu": v}) for v in (0.0, -0.1, 1.5, np.nan, "1")),
    *((make, {"tol": v}) for make in MODELS for v in (0.0, -1.0, np.nan, "1")),
    *((mm.SVC, {"max_iter": v}) for v in (-2, 1.5, "1")),
    *((mm.SVC, {"time_limit": v}) for v in (0.0, -1.0, "1")),
    *((mm.SVC, {"cache_size": v}) for v in (0, -1, "all")),
    *((mm.SVC, {"gamma": v}) for v in (-1.0, np.nan, "wide")),
    (mm.SVC, {"kernel": "laplace"}),
    (mm.SVC, {"loss": "logistic"}),
    (mm.SVC, {"solver": "libsvm"}),
    (mm.SVC, {"degree": -1, "kernel": "poly"}),
    (mm.SVC, {"coef0": np.nan, "kernel": "poly"}),
    (mm.SVC, {"multi_class": "kesler"}),
    (mm.SVC, {"decision_function_shape": "votes"}),
    (mm.SVC, {"callback": 3}),
    (mm.SVC, {"class_weight": "heavy"}),
    (mm.SVC, {"class_weight": {0: -1.0}}),
    (mm.SVC, {"n_jobs": 0}),
    (mm.SVC, {"n_jobs": 1.5}),
]


@pytest.mark.parametrize(
    ("make", "options"), BAD_PARAMETERS, ids=lambda v: v.__name__ if callable(v) else str(v)
)
def test_bad_parameters_are_named(make, options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name) as caught:
        make(**options).fit(*cloud(20))
    assert repr(value) in str(caught.value)


def test_a_failed_fit_leaves_the_last_model_unchanged():
    X, y = cloud()
    assert_a_failed_fit_changes_nothing(mm.SVC().fit(X, y), X, y)
