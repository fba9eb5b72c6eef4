"""LinearSVC on badly scaled, overflowing and rank-deficient data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.bad_input import fits_or_asks_to_rescale, rank_deficient
from tests.helpers.linear_svc import BIASES, LOSSES, SOLVERS, TIGHT, TOL, N, cloud, made

SCALES = {
    "1e-8 to 1e8": np.array([1e-8, 1.0, 1e8, 1.0]),
    "the useful one is large": np.array([1e8, 1e-8, 1.0, 1e4]),
    "the useful one is small": np.array([1e-8, 1e8, 1e4, 1.0]),
    "all 1e10": np.full(4, 1e10),
    "all 1e-10": np.full(4, 1e-10),
    "all 1e30": np.full(4, 1e30),
}


@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_bad_scales_converge_or_are_warned_of(solver, loss, scales):
    """Never a wrong answer that calls itself converged, and never without an end."""
    X, y = cloud()
    X = X * scales
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = made(solver=solver, loss=loss, max_iter=300).fit(X, y)
    others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    assert not others, str(others[0].message)
    assert model.status_ is not mm.Status.TIME_LIMIT
    assert np.isfinite(model.decision_function(X)).all()
    if model.status_ is mm.Status.CONVERGED:
        assert not caught
        assert model.certificate_.holds(TOL)
    else:
        assert len(caught) == 1
        assert "scale the features" in str(caught[0].message)
        # The best so far is no nonsense: without any plane the objective is N.
        assert model.certificate_.primal <= 10.0 * N


@pytest.mark.parametrize(
    "weight",
    # Unequal weights lie between a weight and its inverse: the largest cover the others.
    [1e-11, *(pytest.param(weight, marks=pytest.mark.slow) for weight in (1e-5, 1e5)), 1e11],
)
@pytest.mark.parametrize(
    "exponent", [-8, 0, 8, *(pytest.param(k, marks=pytest.mark.slow) for k in (-5, 5))]
)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_any_scale_with_any_weight(solver, loss, bias, exponent, weight):
    """C‖x‖² from 1e-27 to 1e27: converged, or warned of where float64 has no digits left."""
    rng = np.random.default_rng(0)
    X, y = cloud(40, 3)
    scale = 10.0**exponent
    columns = (
        X * scale,
        X * [scale, 1.0, 1.0 / scale],
        np.hstack([X, np.full((40, 1), scale)]),
    )
    for x in columns:
        for weights in (np.full(40, weight), weight ** rng.uniform(-1.0, 1.0, 40)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = made(solver=solver, loss=loss, **BIASES[bias]).fit(x, y, weights)
            size = weights.max() * float(np.square(x).sum(axis=1).max())
            assert model.certificate_.relative_gap <= 1.0
            assert np.isfinite(model.decision_function(x)).all()
            if size < 1e22:
                assert not caught, str(caught[0].message)
            if not model.certificate_.holds(TOL):
                assert [w.category for w in caught] == [ConvergenceWarning]


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_far_from_the_origin(solver, offset):
    X, y = cloud()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = made(solver=solver).fit(X + offset, y)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert model.certificate_.holds(TOL) or caught
    assert model.status_ is not mm.Status.TIME_LIMIT


@pytest.mark.parametrize("scale", [1e60, 1e155, 1e300])
@pytest.mark.parametrize("solver", SOLVERS)
def test_values_that_overflow(solver, scale):
    X, y = cloud(60)
    model = made(solver=solver, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        fitted = fits_or_asks_to_rescale(model, X * scale, y)
    if fitted:
        assert np.isfinite(model.decision_function(X * scale)).all()
        assert model.status_ is not mm.Status.CONVERGED or model.certificate_.holds(TOL)


@pytest.mark.parametrize("solver", SOLVERS)
def test_large_float32(solver):
    """Whose squares are not float32's any more."""
    X, y = cloud(60)
    X = (X * 1e25).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model = made(solver=solver, max_iter=100).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.status_ is not mm.Status.CONVERGED or model.certificate_.holds(TOL)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_constant_feature_has_weight_0(solver, loss, value):
    X, y = cloud()
    widened = np.column_stack([X[:, :2], np.full(N, value), X[:, 2:]])
    plain = made(solver=solver, loss=loss, tol=TIGHT).fit(X, y)
    for rows in (widened, sparse.csr_array(widened), mm.RowBlocks([widened[:9], widened[9:]])):
        if isinstance(rows, mm.RowBlocks) and solver == "coordinate-descent":
            continue
        model = made(solver=solver, loss=loss, tol=TIGHT).fit(rows, y)
        assert model.coef_[0, 2] == 0.0
        assert model.certificate_.holds(TIGHT)
        np.testing.assert_allclose(np.delete(model.coef_, 2), plain.coef_[0], atol=1e-4)
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-4)


@pytest.mark.parametrize("kind", ["n < d", "rank 1", "zero column", "all zero", "all equal"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_rank_deficient(solver, loss, kind):
    X, y = rank_deficient(kind)
    for rows in (X, sparse.csr_matrix(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = made(solver=solver, loss=loss, tol=1e-6).fit(rows, y)
        assert model.certificate_.holds(1e-6)
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))]
)
def test_few_features_without_any_loss(seed, fit_intercept):
    # Steps go where no sample is inside, and α = 0 there.
    rng = np.random.RandomState(seed)
    X = 1e60 * rng.randn(50, 300)
    y = (X @ rng.randn(300) > 0).astype(int)
    model = mm.LinearSVC(penalty="l1", dual=False, C=1e-3, fit_intercept=fit_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cost", [1e100, 1e300])
def test_costs_beyond_the_range_of_products_are_one_warning(loss, cost):
    X, y = cloud(N)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mm.LinearSVC(C=cost, loss=loss, random_state=0).fit(X, y)
    assert {each.category for each in caught} <= {ConvergenceWarning}
