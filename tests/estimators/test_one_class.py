"""OneClassSVM: certificates, agreement with scikit-learn, ν, densities, errors."""

from __future__ import annotations

import inspect
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neighbors import KernelDensity

import maxmargin as mm
from maxmargin.kernels import RBF
from tests.helpers.regression import (
    KERNELS,
    SECONDS,
    STORAGE,
    N,
    assert_agrees,
    assert_pickles_and_clones,
    coefficients,
    proof,
    rows_for,
    targets,
    weights_for,
)

X, Y = targets()
FEW, _ = targets(40)


def test_parameters_are_scikit_learns_and_more():
    ours, theirs = (
        inspect.signature(each).parameters for each in (mm.OneClassSVM, svm.OneClassSVM)
    )
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert parameter.kind is ours[name].kind
        if name != "cache_size":
            assert ours[name].default == parameter.default


@pytest.mark.filterwarnings("ignore:The kernel")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "callable", "precomputed"])
def test_agrees_with_scikit_learn(kernel, storage, weighted):
    # Away from the origin: the plane of a linear kernel lies between.
    rows = rows_for(kernel, storage, X + 4.0)
    if rows is None:
        pytest.skip("kernel values are given as a dense matrix")
    if storage == "csr" and kernel == "callable":
        rows = X + 4.0
    if weighted and kernel in ("precomputed", "callable"):
        pytest.skip("scikit-learn's support_ counts only rows of positive weight")
    weights = weights_for() if weighted else None
    # Where νn is a whole number no α need be free, and ρ is not unique.
    ours = mm.OneClassSVM(nu=0.303, tol=1e-6, time_limit=SECONDS, **KERNELS[kernel])
    theirs = svm.OneClassSVM(nu=0.303, tol=1e-8, **KERNELS[kernel])
    ours.fit(rows, sample_weight=weights)
    theirs.fit(rows, sample_weight=weights)
    assert_agrees(ours, theirs, rows)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-3)
    np.testing.assert_allclose(ours.score_samples(rows), theirs.score_samples(rows), rtol=1e-3)
    sure = np.abs(theirs.decision_function(rows)) > 1e-3 * theirs.offset_
    np.testing.assert_array_equal(ours.predict(rows)[sure], theirs.predict(rows)[sure])
    assert ours.predict(rows).dtype == theirs.predict(rows).dtype
    assert proof(ours, rows, None, weights).holds(2e-6)


@pytest.mark.parametrize("nu", [0.02, 0.3, 0.9])
def test_nu_bounds_outliers_and_support_vectors(nu):
    model = mm.OneClassSVM(nu=nu, gamma=0.3, tol=1e-6).fit(X)
    outliers = model.decision_function(X) < -1e-4 * model.offset_
    assert outliers.mean() <= nu <= model.n_support_[0] / N
    assert np.abs(dual_sum(model) - nu * N) <= 1e-6 * N
    assert model.certificate_.holds(1e-6)


def dual_sum(model):
    """Return Σα, and check the bounds of α."""
    alpha = coefficients(model, N)
    assert alpha.min() >= 0.0
    assert alpha.max() <= 1.0
    return alpha.sum()


def test_all_samples_make_a_kernel_density():
    model = mm.OneClassSVM(nu=1.0, gamma=0.5).fit(X)
    np.testing.assert_allclose(coefficients(model, N), 1.0)
    density = np.exp(KernelDensity(bandwidth=1.0).fit(X).score_samples(FEW))
    ratio = model.score_samples(FEW) / density
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert ratio[0] == pytest.approx(N * (2.0 * np.pi) ** 1.5)
    assert model.certificate_.holds(1e-6)


def test_values_are_those_of_a_quadratic_program():
    pytest.importorskip("piqp")
    model = mm.OneClassSVM(nu=0.4, gamma=0.5, tol=1e-9).fit(FEW)
    eye = np.eye(40)
    program = mm.qp.QP(
        RBF(0.5)(FEW),
        np.zeros(40),
        np.vstack([eye, -eye]),
        np.repeat([1.0, 0.0], 40),
        np.ones((1, 40)),
        np.array([16.0]),
    )
    found = mm.qp.solve(program)
    assert -found.objective == pytest.approx(model.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(coefficients(model, 40), found.x, atol=1e-5)


@pytest.mark.parametrize("solver", ["decomposition", "smo", "active-set"])
def test_every_solver_finds_the_same(solver):
    first = mm.OneClassSVM(tol=1e-8).fit(FEW).score_samples(FEW)
    again = mm.OneClassSVM(tol=1e-8, solver=solver).fit(FEW).score_samples(FEW)
    np.testing.assert_allclose(again, first, rtol=1e-5)


def test_one_sample_and_equal_samples():
    model = mm.OneClassSVM(gamma=1.0).fit([[1.0, 2.0]])
    assert model.offset_ == pytest.approx(0.5)
    assert model.certificate_.holds(1e-6)
    same = mm.OneClassSVM(gamma=1.0).fit(np.ones((5, 2)))
    assert same.decision_function([[1.0, 1.0]]) == pytest.approx(0.0, abs=1e-9)
    assert same.predict([[9.0, 9.0]]) == -1


def test_labels_are_ignored():
    plain = mm.OneClassSVM(gamma=0.3).fit(X).score_samples(X)
    for labels in (Y, np.array(["a", "b"] * (N // 2)), np.full(N, np.nan), None):
        model = mm.OneClassSVM(gamma=0.3).fit(X, labels)
        np.testing.assert_array_equal(model.score_samples(X), plain)
    np.testing.assert_array_equal(
        mm.OneClassSVM(gamma=0.3).fit_predict(X), mm.OneClassSVM(gamma=0.3).fit(X).predict(X)
    )
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.1, np.nan, "0.5"])
def test_bad_nu_is_refused(nu):
    with pytest.raises(ValueError, match="'nu' parameter"):
        mm.OneClassSVM(nu=nu).fit(FEW)


def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="row 2, column 1"):
        mm.OneClassSVM().fit(np.where(np.arange(120).reshape(40, 3) == 7, np.nan, FEW))
    with pytest.raises(ValueError, match="zero or negative weights"):
        mm.OneClassSVM().fit(FEW, sample_weight=np.zeros(40))
    with pytest.raises(TypeError, match="Sparse precomputed"):
        mm.OneClassSVM(kernel="precomputed").fit(sparse.csr_matrix(FEW @ FEW.T))
    with pytest.raises(ValueError, match="square"):
        mm.OneClassSVM(kernel="precomputed").fit(FEW)
    with pytest.raises(NotFittedError):
        mm.OneClassSVM().score_samples(FEW)
    with pytest.raises(NotFittedError):
        _ = mm.OneClassSVM().offset_


def test_warm_start_limits_and_callbacks():
    model = mm.OneClassSVM(warm_start=True, tol=1e-5).fit(X)
    steps, scores = model.n_iter_, model.score_samples(X)
    np.testing.assert_allclose(model.fit(X).score_samples(X), scores, rtol=1e-4)
    assert model.n_iter_ <= max(steps // 4, 1)
    assert model.set_params(nu=0.2).fit(X).certificate_.holds(1e-5)
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        limited = mm.OneClassSVM(max_iter=2).fit(X)
    assert limited.n_iter_ == 2
    recorder = mm.Recorder()
    mm.OneClassSVM(callback=recorder, tol=1e-6).fit(X)
    assert recorder.steps
    stopped = mm.OneClassSVM(callback=lambda step: True, tol=1e-6).fit(X)
    assert stopped.status_ is mm.Status.STOPPED


def test_input_is_not_changed_and_models_are_copied():
    for storage in STORAGE.values():
        rows = storage(X.copy())
        before = rows.copy()
        model = mm.OneClassSVM().fit(rows, sample_weight=weights_for())
        assert abs(rows - before).max() == 0.0
        assert_pickles_and_clones(model, rows)


def test_where_the_optimum_is_0_no_sample_is_an_outlier_by_rounding():
    # The origin is among the samples, and nothing separates them from it: w = 0 and ρ = 0.
    X = np.random.default_rng(0).normal(size=(80, 3))
    for rows in (X, sparse.csr_matrix(X)):
        model = mm.OneClassSVM(kernel="linear").fit(rows)
        assert model.certificate_.holds(1e-3)
        assert (model.predict(rows) == 1).all()


def test_a_row_far_from_all_others_hides_no_gap():
    """The optimum is nearly w = 0 and ρ = 0: the gap is small beside the sums that it is from."""
    X = np.random.default_rng(3).normal(size=(90, 5))
    X[3] = 1e8
    model = mm.OneClassSVM(kernel="linear").fit(X)
    rows = [[Fraction(value) for value in row] for row in X.tolist()]
    alpha = dict(zip(model.support_.tolist(), model.dual_coef_[0].tolist(), strict=True))
    w = [sum(Fraction(a) * rows[i][j] for i, a in alpha.items()) for j in range(5)]
    half = sum(each * each for each in w) / 2
    rho = Fraction(-float(model.intercept_[0]))
    scores = [sum(map(mul, w, row)) for row in rows]
    primal = half - 45 * rho + sum(max(rho - score, Fraction(0)) for score in scores)
    assert sum(map(Fraction, alpha.values())) == 45
    assert model.certificate_.primal >= primal * (1 - Fraction(1, 10**9))
    assert model.certificate_.dual <= -half
    assert primal < 1e-5


def test_heavy_tails_about_the_origin():
    X = np.random.default_rng(1).standard_cauchy(size=(500, 5))
    model = mm.OneClassSVM(kernel="linear").fit(X)
    assert model.certificate_.holds(model.tol)
    assert model.certificate_.primal <= 1e-2


def test_weights_whose_products_underflow():
    X = np.random.default_rng(3).normal(size=(90, 5))
    model = mm.OneClassSVM().fit(X, sample_weight=np.full(90, 1e-200))
    np.testing.assert_array_equal(model.predict(X), mm.OneClassSVM().fit(X).predict(X))
