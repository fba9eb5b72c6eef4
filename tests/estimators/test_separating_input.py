"""Bad input to the separating algorithms: data, labels, weights, parameters and faults in a fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import ALGORITHMS, over, quiet, weights_of
from tests.helpers.bad_input import BAD_LABELS, BAD_WEIGHTS, LABEL_TYPES, MACHINES, X, Y

# Data ---------------------------------------------------------------------------------------------


@over(ALGORITHMS + MACHINES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_not_finite(algorithm, value, as_sparse):
    bad = X.copy()
    bad[7, 2] = value
    bad = sparse.csr_array(bad) if as_sparse else bad
    with pytest.raises(ValueError, match=r"row 7, column 2"):
        algorithm.make().fit(bad, Y)
    model = algorithm.make(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    with pytest.raises(ValueError, match=r"row 7, column 2"):
        model.predict(bad)


def test_not_finite_in_a_named_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["mass", "width", "height"])
    frame.loc[3, "width"] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 'width'"):
        mm.Perceptron().fit(frame, Y)


@over(ALGORITHMS + MACHINES)
def test_one_class(algorithm):
    with pytest.raises(ValueError, match="1 class"):
        algorithm.make().fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="1 class"):
        algorithm.make().fit(X, Y, (Y == 0).astype(float))


@over(ALGORITHMS)
def test_one_sample_and_two(algorithm):
    with pytest.raises(ValueError, match=r"1 class|1 sample"):
        algorithm.make().fit(X[:1], Y[:1])
    two = np.array([[1.0, 2.0], [4.0, -2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=2000).fit(two, [0, 1])
    assert model.separates_
    if algorithm.name in ("pseudoinverse", "ho-kashyap"):
        assert model.decision_function(two.mean(axis=0)[np.newaxis]) == pytest.approx(0, abs=1e-9)


@over(ALGORITHMS + MACHINES)
def test_no_feature_and_no_row(algorithm):
    with pytest.raises(ValueError, match="0 feature"):
        algorithm.make().fit(np.empty((4, 0)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="0 sample"):
        algorithm.make().fit(np.empty((0, 2)), [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=2).fit(X, Y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.empty((0, 3)))


def test_wrong_columns_in_predict():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["mass", "width", "height"])
    model = mm.Perceptron().fit(frame, Y)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["width", "mass", "height"]])
    with pytest.raises(ValueError, match="colour"):
        model.predict(frame.rename(columns={"mass": "colour"}))
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :2])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


# Labels and weights -------------------------------------------------------------------------------


@over(ALGORITHMS + MACHINES)
@pytest.mark.parametrize("kind", BAD_LABELS)
def test_bad_labels(algorithm, kind):
    with pytest.raises(ValueError, match=r"(?i)y |label|inconsistent|1d"):
        algorithm.make().fit(X, BAD_LABELS[kind])


def test_mixed_labels_in_either_order():
    for labels in (["a", 1] * 10, [1, "a"] * 10):
        with pytest.raises(ValueError, match="type"):
            mm.Perceptron().fit(X, np.array(labels, dtype=object))


@over(ALGORITHMS + MACHINES)
@pytest.mark.parametrize("kind", LABEL_TYPES)
def test_predictions_have_the_type_of_the_labels(algorithm, kind):
    names = LABEL_TYPES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=50).fit(X, names[Y])
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    assert set(predicted.tolist()) <= set(names.tolist())
    assert (predicted == names[Y]).mean() > 0.9


@over(ALGORITHMS + MACHINES)
@pytest.mark.parametrize("kind", [*BAD_WEIGHTS, "negative"])
def test_bad_weights(algorithm, kind):
    negative = np.where(np.arange(20) == 2, -1.5, 1.0), "-1.5"
    weight, told = {**BAD_WEIGHTS, "negative": negative}[kind]
    with pytest.raises(ValueError, match=r"(?i)weight") as caught:
        algorithm.make().fit(X, Y, weight)
    assert told.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    "class_weight", [{0: 0.0, 1: 1.0}, {0: -1.0}, {0: np.nan}, "heavy", {7: 1.0}]
)
def test_bad_class_weights(class_weight):
    with pytest.raises(ValueError, match=r"class_weight|classes|not in class"):
        mm.Perceptron(class_weight=class_weight).fit(X, Y)


# Parameters ---------------------------------------------------------------------------------------

BAD_PARAMETERS = [
    *((mm.Perceptron, {"learning_rate": v}) for v in (0, -1.0, np.nan, np.inf, "1", None)),
    *((mm.LMS, {"learning_rate": v}) for v in (0, -1.0, np.nan, "1")),
    *((mm.HoKashyap, {"learning_rate": v}) for v in (0, 1.0, 1.5, np.nan, "1")),
    *((mm.KernelPerceptron, {"learning_rate": v}) for v in (0, -1.0, np.nan, "1")),
    *((mm.Relaxation, {"margin": v}) for v in (0, -1.0, np.nan, np.inf, "1")),
    *((mm.Pseudoinverse, {"ridge": v}) for v in (-1.0, np.nan, np.inf, "1")),
    *((mm.Pocket, {"patience": v}) for v in (0, -1, 2.5, "1")),
    *((make, {"max_iter": v}) for make in (mm.Perceptron, mm.Pocket) for v in (0, -3, 1.5)),
    *((mm.LMS, {"tol": v}) for v in (-1e-3, np.nan)),
    (mm.Relaxation, {"tol": 1.0}),
    (mm.Perceptron, {"update": "stochastic"}),
    (mm.Perceptron, {"bias": "none"}),
    (mm.Perceptron, {"init": 0}),
    (mm.Perceptron, {"multi_class": "all"}),
    (mm.KernelPerceptron, {"multi_class": "kesler"}),
    (mm.KernelPerceptron, {"kernel": "laplace"}),
    (mm.KernelPerceptron, {"gamma": 0.0}),
    (mm.KernelPerceptron, {"sigma": -1.0}),
    (mm.KernelPerceptron, {"degree": 0, "kernel": "poly"}),
    (mm.Perceptron, {"callback": 3}),
    (mm.Pseudoinverse, {"margins": "equal"}),
]


@pytest.mark.parametrize(
    ("make", "options"), BAD_PARAMETERS, ids=lambda v: v.__name__ if callable(v) else str(v)
)
def test_bad_parameters_are_named(make, options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name) as caught:
        make(**options).fit(X, Y)
    assert repr(value) in str(caught.value)


BAD_SCHEDULES = {
    "zero": mm.Constant(0.0),
    "nan": mm.Constant(np.nan),
    "text": mm.Constant("1"),
    "negative": mm.Constant(-1),
    "harmonic-zero": mm.Harmonic(0.0),
    "harmonic-pole": mm.Harmonic(1.0, -1.0),
    "harmonic-negative": mm.Harmonic(1.0, -5.0),
    "harmonic-infinite": mm.Harmonic(np.inf),
    "function-negative": lambda t: -t,
    "function-nan": lambda t: np.nan,
    "function-text": lambda t: "fast",
}


@pytest.mark.parametrize("schedule", BAD_SCHEDULES.values(), ids=BAD_SCHEDULES)
@pytest.mark.parametrize("update", ["single", "batch"])
@pytest.mark.parametrize("make", [mm.Perceptron, mm.LMS])
def test_bad_schedules_are_named(make, schedule, update):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match="rate"):
            make(learning_rate=schedule, update=update).fit(X, Y)


@pytest.mark.parametrize(
    "margins", [np.ones(19), np.zeros(20), -np.ones(20), np.full(20, np.nan), np.ones((20, 2))]
)
def test_bad_margins(margins):
    with pytest.raises(ValueError, match=r"margins.*20 positive"):
        mm.Pseudoinverse(margins=margins).fit(X, Y)


@pytest.mark.parametrize("make", [mm.Perceptron, mm.Relaxation, mm.LMS])
def test_a_batch_has_no_order_to_shuffle(make):
    shuffled, in_order = (make(update="batch", shuffle=s, max_iter=9) for s in (True, False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(shuffled.fit(X, Y).coef_, in_order.fit(X, Y).coef_)


# Fits that fail -----------------------------------------------------------------------------------


def test_a_failed_first_partial_fit_can_be_repeated():
    model = mm.Perceptron()
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X, np.where(Y == 1, 7, 0), classes=[0, 1])
    model.partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_array_equal(
        weights_of(model), weights_of(mm.Perceptron().partial_fit(X, Y, classes=[0, 1]))
    )


def failing(t):
    raise ZeroDivisionError


@over([a for a in ALGORITHMS if a.name in ("perceptron", "pocket", "ho-kashyap", "kernel-rbf")])
@quiet
def test_a_failed_first_fit_can_be_repeated_warm(algorithm):
    model = algorithm.make(warm_start=True, max_iter=5, callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    model.set_params(callback=None).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(X), algorithm.make(max_iter=5).fit(X, Y).decision_function(X)
    )


def test_a_failed_fit_is_no_fit():
    from sklearn.exceptions import NotFittedError

    model = mm.Perceptron(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_failed_fit_leaves_the_last_model_unchanged():
    model = mm.Perceptron().fit(X, Y)
    before = model.predict(X)
    model.set_params(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, np.where(Y == 1, "b", "a"))
    after = model.predict(X)
    assert set(after.tolist()) == set(before.tolist()) or set(after.tolist()) == {"a", "b"}
    np.testing.assert_array_equal(after, before)


def test_labels_of_bytes_are_named():
    with pytest.raises(ValueError, match="labels of type bytes_: pass strings"):
        mm.SVC().fit(np.eye(4), np.array([b"a", b"b", b"a", b"b"]))
