"""SVC on badly scaled and overflowing data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.bad_input import fits_or_asks_to_rescale, rank_deficient
from tests.helpers.svc import MODELS, TOL, N, assert_certified, cloud


def far_from_the_origin():
    """Yield data whose products are large against the differences that matter."""
    rng = np.random.default_rng(6)
    X, y = cloud(600)
    for offset in (1e2, 1e4):
        yield pytest.param(X + offset, y, {"gamma": 0.5}, id=f"offset {offset:g}")
        yield pytest.param(X + offset, y, {"kernel": "linear"}, id=f"linear, offset {offset:g}")
        clusters = X.copy()
        clusters[:, 0] += offset * rng.choice([-1.0, 1.0], len(X))
        yield pytest.param(clusters, y, {"gamma": 0.5}, id=f"clusters, offset {offset:g}")
        zeros = np.column_stack([X[:, :1] + offset, X[:, 1:], np.zeros((len(X), 10))])
        for C in (1.0, 100.0):
            name = f"zeros, C={C:g}, offset {offset:g}"
            yield pytest.param(zeros, y, {"gamma": 0.5, "C": C}, id=name)
    X = X * np.array([1e-8, 1.0, 1e8])
    yield pytest.param(X, y, {}, id="scales")
    yield pytest.param(X, y, {"gamma": 1.0}, id="scales, gamma")
    yield pytest.param(X, y, {"kernel": "linear"}, id="scales, linear")
    yield pytest.param(X, y, {"kernel": "poly"}, id="scales, poly")


@pytest.mark.parametrize(("X", "y", "options"), list(far_from_the_origin()))
def test_bad_scales_converge_or_are_warned_of(X, y, options):
    """Never a wrong answer that calls itself converged, and never without an end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mm.SVC(time_limit=300.0, **options).fit(X, y)
    warned = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    if model.status_ is mm.Status.CONVERGED:
        assert_certified(model, X, y)
    else:
        assert model.status_ is not mm.Status.TIME_LIMIT
        assert len(warned) == 1
        assert "StandardScaler" in str(warned[0].message)


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [
        (kernel, scale)
        for kernel in ("linear", "rbf", "poly")
        for scale in (1e10, 1e30, 1e60, 1e155, 1e300)
    ],
)
def test_values_that_overflow(kernel, scale):
    X, y = cloud()
    model = mm.SVC(kernel=kernel, time_limit=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        fitted = fits_or_asks_to_rescale(model, X * scale, y)
    if fitted:
        assert np.isfinite(model.decision_function(X * scale)).all()
        assert model.status_ is not mm.Status.CONVERGED or model.certificate_.holds(TOL)


def test_large_float32():
    X, y = cloud()
    X = (X * 1e30).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = mm.SVC(time_limit=300.0).fit(X, y)
    assert_certified(model, X.astype(float), y)


@pytest.mark.parametrize("make", MODELS)
def test_a_constant_feature_changes_nothing(make):
    X, y = cloud()
    widened = np.column_stack([X, np.full(N, 3.0)])
    model = make(0.3, kernel="linear", tol=1e-8).fit(widened, y)
    plain = make(0.3, kernel="linear", tol=1e-8).fit(X, y)
    assert abs(model.coef_[0, 3]) < 1e-6  # Σαy times 3
    np.testing.assert_allclose(model.decision_function(widened), plain.decision_function(X),
                               atol=1e-4)  # fmt: skip


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("kind", ["n < d", "rank 1", "zero column", "all zero", "all equal"])
def test_rank_deficient(make, kind):
    X, y = rank_deficient(kind)
    for kernel in ("linear", "rbf"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*leaves no margin")
            model = make(kernel=kernel).fit(X, y)
        assert model.certificate_.holds(TOL)
        assert np.isfinite(model.decision_function(X)).all()
