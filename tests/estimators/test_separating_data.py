"""Hard data for the separating algorithms: scales, no separating plane, low rank, Ctrl-C."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import ALGORITHMS, LINEAR, blobs, cloud, over
from tests.helpers.bad_input import (
    SCALES,
    X,
    Y,
    assert_finite,
    fits_or_asks_to_rescale,
    rank_deficient,
)

# Scales -------------------------------------------------------------------------------------------


@over(ALGORITHMS)
@pytest.mark.parametrize("scale", [1e110, 1e145, 1e152, 1e155, 1e200, 1e300])
def test_values_that_overflow(algorithm, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=50)
        if fits_or_asks_to_rescale(model, X * scale, Y):
            assert_finite(model)
            assert np.isfinite(model.decision_function(X * scale)).all()


@over(LINEAR)
def test_large_float32(algorithm):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=50).fit((X * 1e30).astype(np.float32), Y)
    assert_finite(model)
    if "rate" not in algorithm.name:
        assert np.isfinite(model.decision_function((X * 1e30).astype(np.float32))).all()


@pytest.mark.parametrize("make", [mm.Pseudoinverse, mm.HoKashyap])
def test_bad_scales_converge_and_certify(make):
    rows, y = blobs(40, 3, gap=8.0, seed=1)
    model = make().fit(rows * SCALES, y)
    plain = make().fit(rows, y)
    assert plain.separates_
    assert model.status_ is mm.Status.CONVERGED
    assert model.score(rows * SCALES, y) == 1.0
    assert model.certificate_.holds(1e-8)
    assert model.separates_, str(model.certificate_)


@over([a for a in LINEAR if a.online and "rate" not in a.name])
def test_bad_scales_get_the_advice_and_the_ratio(algorithm):
    rows, y = cloud(40, 3, seed=1)
    with pytest.warns(ConvergenceWarning, match=r"1?\.?\d*e\+1[56] times.*StandardScaler"):
        algorithm.make(max_iter=10, **({"patience": 10**6} if "pocket" in algorithm.name else {})
                       ).fit(rows * SCALES, y)  # fmt: skip


# No separating plane, or low rank -----------------------------------------------------------------


@over(ALGORITHMS)
def test_the_same_point_with_both_labels(algorithm):
    rows, y = np.vstack([X, X[:1]]), np.append(Y, 1 - Y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=60).fit(rows, y)
    assert not model.separates_
    assert_finite(model)
    verdict = mm.separability(rows, y)
    assert verdict.separable is False
    np.testing.assert_allclose(verdict.common_point, X[0])


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.guaranteed and a.name not in (
    "pocket", "ho-kashyap", "kernel-rbf")], ids=lambda a: a.name)  # fmt: skip
def test_xor_reaches_the_limit_and_says_so(algorithm):
    rows, y = mm.datasets.load_xor(return_X_y=True)
    with pytest.warns(ConvergenceWarning) as caught:
        model = algorithm.make(max_iter=30).fit(rows, y)
    assert model.status_ is mm.Status.ITERATION_LIMIT
    assert not model.separates_
    message = str(caught[0].message)
    for told in ("max_iter=30", "of 4 samples", "separability"):
        assert told in message
    assert "times as far as the narrowest" not in message  # the features spread equally far


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(ConvergenceWarning) as caught:
        mm.Perceptron(max_iter=3).fit(*mm.datasets.load_xor(return_X_y=True))
    assert caught[0].filename == __file__


@over(ALGORITHMS)
@pytest.mark.parametrize("kind", ["n < d", "rank 1", "zero column", "all zero"])
def test_rank_deficient(algorithm, kind):
    rows, y = rank_deficient(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        if "rate" in algorithm.name:
            warnings.simplefilter("ignore", RuntimeWarning)
        model = algorithm.make(max_iter=500).fit(rows, y)
    assert_finite(model)
    if kind == "n < d" and algorithm.guaranteed:
        assert model.separates_
    if kind == "all zero":
        assert not model.separates_


# Ctrl-C -------------------------------------------------------------------------------------------

LONG_FITS = {
    "perceptron": "mm.Perceptron(max_iter=10**9).fit(*many(200_000, 20))",
    "kesler": "mm.Perceptron(max_iter=10**9, multi_class='kesler').fit(*many(200_000, 20, 5))",
    "sparse": "mm.Perceptron(max_iter=10**9).fit(sparse.csr_array(X), y)",
    "perceptron-batch": "mm.Perceptron(update='batch', max_iter=10**9).fit(*many(200_000, 20))",
    "pocket": "mm.Pocket(patience=10**9, max_iter=10**9).fit(*many(200_000, 20))",
    "lms": "mm.LMS(max_iter=10**9, tol=0.0).fit(*many(200_000, 20))",
    "ho-kashyap": "mm.HoKashyap(max_iter=10**9, tol=0.0, learning_rate=1e-9).fit(X, X[:, 0] > 0)",
    "kernel": "mm.KernelPerceptron(max_iter=10**9).fit(*many(4_000, 20))",
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_ctrl_c_stops_a_long_fit(interpreter, name):
    interpreter.interrupt(LONG_FITS[name], "X, y = many(20_000, 20)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "mm.Pseudoinverse().fit(*many(20_000, 2500))",
        "mm.HoKashyap().fit(*many(20_000, 2500))",
        "mm.KernelPerceptron(max_iter=10**9).fit(*many(20_000, 50))",
        "mm.separability(*many(20_000, 400))",
    ],
)
def test_ctrl_c_stops_large_factorisations(interpreter, statement):
    interpreter.interrupt(statement)
