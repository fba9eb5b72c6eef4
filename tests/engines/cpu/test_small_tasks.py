"""Small tasks side by side in compiled code: the answers of the general path, proved."""

import numba
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import maxmargin as mm
from maxmargin.engines.cpu import task_descent
from maxmargin.solution import Status
from maxmargin.solvers.dual.choice import Dual

TOL = 1e-3


def blobs(n, n_classes=4, d=6, seed=0):
    return make_classification(
        n, d, n_informative=d - 1, n_redundant=0, n_classes=n_classes, class_sep=1.0,
        random_state=seed,
    )  # fmt: skip


def general(monkeypatch):
    """Let every task take the path of all others."""
    monkeypatch.setattr(Dual, "solve_small", lambda self, problems, starts, limits: [])


def objectives(model):
    return np.array([proof.dual for proof in model.certificates_])


SMALL = {
    "pairs": {},
    "against the rest": {"multi_class": "ovr"},
    "squared": {"loss": "squared_hinge"},
    "without bias": {"fit_intercept": False},
    "polynomial": {"kernel": "poly", "coef0": 1.0},
    "linear": {"kernel": "linear"},
    "callable": {"kernel": lambda x, z: (x @ z.T + 1.0) ** 2},
    "costly": {"C": 100.0},
    "cheap": {"C": 1e-4},
}


@pytest.mark.parametrize("n", [120, 600])
@pytest.mark.parametrize("name", SMALL)
def test_answers_are_those_of_the_general_path(name, n, monkeypatch):
    X, y = blobs(n)
    quick = mm.SVC(**SMALL[name]).fit(X, y)
    assert all(proof.holds(TOL) for proof in quick.certificates_)
    general(monkeypatch)
    other = mm.SVC(**SMALL[name]).fit(X, y)
    np.testing.assert_allclose(objectives(quick), objectives(other), rtol=4 * TOL)
    assert np.mean(quick.predict(X) == other.predict(X)) > 0.99
    if n <= 256:  # answers to rounding
        scores = quick.decision_function(X), other.decision_function(X)
        np.testing.assert_allclose(*scores, rtol=0, atol=1e-6)


NU = {
    "pairs": {},
    "against the rest": {"multi_class": "ovr", "nu": 0.1},
    "polynomial": {"kernel": "poly", "coef0": 1.0},
    "weighted": {"class_weight": {0: 2.0}},
    "large": {"nu": 0.7},
    "no margin": {"nu": 0.01, "kernel": "linear"},
}


@pytest.mark.filterwarnings("ignore:NuSVC. nu=")
@pytest.mark.parametrize("n", [120, 600])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", NU)
def test_answers_of_nu_are_those_of_the_general_path(name, n_classes, n, monkeypatch):
    X, y = blobs(n, n_classes)
    quick = mm.NuSVC(**NU[name]).fit(X, y)
    assert all(proof.holds(TOL) for proof in quick.certificates_)
    general(monkeypatch)
    other = mm.NuSVC(**NU[name]).fit(X, y)
    scale = np.abs(objectives(other)).max()
    allowed = 4 * TOL * scale + 1e-12  # without a margin both are rounding
    np.testing.assert_allclose(objectives(quick), objectives(other), rtol=0, atol=allowed)
    assert np.mean(quick.predict(X) == other.predict(X)) > 0.99
    if n <= 256 and name != "no margin":  # answers to rounding
        scores = quick.decision_function(X), other.decision_function(X)
        np.testing.assert_allclose(*scores, rtol=0, atol=1e-6)


def test_nu_takes_the_quick_path(monkeypatch):
    X, y = blobs(120)
    monkeypatch.setattr(Dual, "solve", None)
    assert mm.NuSVC(nu=0.3).fit(X, y).certificate_.holds(TOL)
    assert mm.NuSVC(nu=0.3).fit(X, y == 0).certificate_.holds(TOL)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1.0, 300.0])
def test_values_between_classes_are_computed_where_rows_are_many(C, dtype, monkeypatch):
    X, y = blobs(2400)
    X = X.astype(dtype)
    quick = mm.SVC(C=C).fit(X, y)
    assert all(proof.holds(TOL) for proof in quick.certificates_)
    assert all(status is Status.CONVERGED for status in quick.statuses_)
    peer = SVC(C=C).fit(X, y)
    assert np.mean(quick.predict(X) == peer.predict(X)) > 0.995
    general(monkeypatch)
    other = mm.SVC(C=C).fit(X, y)
    np.testing.assert_allclose(objectives(quick), objectives(other), rtol=4 * TOL)


def test_float32_values_are_corrected_where_they_are_too_coarse():
    X, y = blobs(2400, 3)
    model = mm.SVC(C=300.0, tol=1e-5).fit(X, y)
    assert all(proof.holds(1e-5) for proof in model.certificates_)


@pytest.mark.parametrize("n", [600, 2400])
def test_the_number_of_threads_does_not_matter(n):
    X, y = blobs(n)
    one, two = (mm.SVC(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_equal_rows_of_several_classes(C):
    X = np.repeat(np.arange(4.0), 30)[:, None] * np.ones(3)
    y = np.arange(120) % 3
    model = mm.SVC(C=C, gamma=1.0).fit(X, y)
    assert all(proof.holds(TOL) for proof in model.certificates_)


def test_one_sample_per_class():
    X = np.eye(5)
    model = mm.SVC(gamma=1.0).fit(X, np.arange(5))
    assert all(proof.holds(TOL) for proof in model.certificates_)
    assert model.predict(X).tolist() == list(range(5))


def test_weights_of_zero_leave_samples_out():
    X, y = blobs(240)
    weights = np.ones(240)
    weights[::3] = 0.0
    model = mm.SVC().fit(X, y, weights)
    other = mm.SVC(gamma=model.kernel_.gamma).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), rtol=0, atol=1e-7
    )


def test_tasks_of_other_samples_than_two_classes_are_solved_too():
    X, y = blobs(2400, 3)
    model = mm.SVC(multi_class="ovr").fit(X, y)
    assert all(proof.holds(TOL) for proof in model.certificates_)


def test_steps_that_do_not_suffice_are_the_start_of_others(monkeypatch):
    X, y = blobs(600)
    monkeypatch.setattr("maxmargin.solvers.dual.small_tasks.MAX_NUMBERS", 6000)
    model = mm.SVC().fit(X, y)
    assert all(proof.holds(TOL) for proof in model.certificates_)


def test_transpose_and_multipliers_without_the_compiler():
    block = np.arange(70.0 * 90.0).reshape(70, 90)
    for function in (numba.njit(task_descent.transpose), task_descent.transpose):
        out = np.empty((90, 70))
        function(block, out)
        np.testing.assert_array_equal(out, block.T)
    f, beta = np.array([0.2, -0.1, 0.4]), np.array([0.5, 0.0, 1.0])
    for function in (numba.njit(task_descent.multipliers), task_descent.multipliers):
        bounds = f, beta, np.zeros(3), np.ones(3), 1
        assert function(*bounds, None, None, TOL, 0.0, 0.0) == (0.0, 0.2, 0.2, 1.0)
        assert function(*bounds, 1, None, TOL, 0.0, 0.0) == (0.2, 0.0, 0.0, 1.0)
        violation, first, second, rho = function(*bounds, None, 1, TOL, 1.0, 0.3)
        assert (violation, first, rho) == (0.0, 0.2, 0.3)
        assert second == pytest.approx(0.15)
        assert function(*bounds, None, 1, TOL, 0.0, 0.0)[-1] == 1.0
        one_class = function(-f, beta, np.zeros(3), np.ones(3), 3, None, 1, TOL, 1.0, 0.01)
        assert one_class[1] == one_class[2] == pytest.approx(-one_class[3])
