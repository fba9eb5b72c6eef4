"""Kernel machines on a device: every solver and kind of problem, certified there in float64."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.kernels import RBF, Linear
from tests.helpers.devices import pretend_card

torch = pytest.importorskip("torch")

from maxmargin.engines.torch.kernel_rows import KernelRows  # noqa: E402

N = 120
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
Y = np.where(X[:, 0] + 0.4 * RNG.standard_normal(N) > 0.0, 1, -1)
Y3 = np.digitize(X[:, 0] + 0.3 * RNG.standard_normal(N), [-0.5, 0.5])
TARGETS = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(N)
APART = X + 3.0 * np.outer(Y, [1.0, 0.0, 0.0, 0.0])

OUTLIERS = X.copy()
OUTLIERS[:3] *= 1e6
CASES = {
    "outliers": (mm.SVC(), OUTLIERS, Y),
    "far from the origin": (mm.SVC(), X + 1e7, Y),
    "far from the origin, linear": (mm.SVC(kernel="linear"), X + 1e7, Y),
    "scales far apart": (mm.SVC(kernel="linear", C=1e3), X * [1.0, 1e-4, 1e3, 1.0], Y),
    "large C": (mm.SVC(C=1e6), X, Y),
    "small C": (mm.SVC(C=1e-8), X, Y),
    "small tol": (mm.SVC(tol=1e-9), X, Y3),
    "sum of kernels": (mm.SVC(kernel=RBF(0.2) + Linear()), X, Y3),
    "function": (mm.SVC(kernel=lambda A, B: (A @ B.T + 1.0) ** 2), X, Y3),
    "precomputed": (mm.SVC(kernel="precomputed"), RBF(0.3)(X), Y3),
    "indefinite": (mm.SVC(kernel="sigmoid", gamma=0.01), X, Y),
    "csr": (mm.SVC(), sparse.csr_matrix(X * (X > 0.0)), Y3),
    "hard margin": (mm.SVC(C=np.inf, kernel="linear"), APART, Y),
    "hard margin, Gaussian": (mm.SVC(C=np.inf, gamma=10.0), X, Y3),
    "hard tube": (mm.SVR(C=np.inf, epsilon=0.5), X, TARGETS),
    "large targets": (mm.SVR(), X, 1e8 * TARGETS),
    "equal targets": (mm.SVR(), X, np.ones(N)),
    "nu, linear": (mm.NuSVC(nu=0.3, kernel="linear"), X, Y),
    "one class, precomputed": (mm.OneClassSVM(nu=0.2, kernel="precomputed"), RBF(0.3)(X), None),
    "qp": (mm.SVC(solver="qp"), X, Y),
    "active set": (mm.SVC(solver="active-set"), X, Y),
    "smo": (mm.SVC(solver="smo"), X, Y3),
    "decomposition": (mm.SVC(solver="decomposition"), X, Y3),
    "coordinate ascent": (mm.SVC(solver="coordinate-ascent", fit_intercept=False), X, Y),
}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], autouse=True)
def card(request, monkeypatch):
    if request.param == "cpu":
        pretend_card(monkeypatch)


def scores_of(model, rows):
    return (
        model.decision_function(rows)
        if hasattr(model, "decision_function")
        else model.predict(rows)
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_fits_are_certified_on_the_device(name, dtype):
    model, rows, y = CASES[name]
    rows = rows.astype(dtype)
    expected, found = (clone(model).set_params(device=device) for device in ("cpu", "cuda"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        expected.fit(rows, y)
    with warnings.catch_warnings(record=True) as seen_there:
        warnings.simplefilter("always")
        found.fit(rows, y)
    kinds = [{each.category for each in some} - {UserWarning} for some in (seen, seen_there)]
    assert kinds[0] == kinds[1]
    for here, there in zip(expected.certificates_, found.certificates_, strict=True):
        assert there.coverage == "complete"
        assert there.holds(model.tol) or not here.holds(model.tol)
    scores = scores_of(expected, rows)
    near = 5.0 * max(model.tol, 1e-7) * max(1.0, float(np.abs(scores).max()))
    if found.certificate_.holds(model.tol):
        np.testing.assert_allclose(scores_of(found, rows), scores, atol=near)


def test_classes_that_no_plane_separates():
    with pytest.raises(mm.NotSeparableError) as error:
        mm.SVC(C=np.inf, kernel="linear", device="cuda").fit(X, Y)
    with pytest.raises(mm.NotSeparableError) as expected:
        mm.SVC(C=np.inf, kernel="linear").fit(X, Y)
    assert type(error.value.proof) is type(expected.value.proof)


@pytest.mark.parametrize("limit", [{"max_iter": 5}, {"time_limit": 1e-9}])
def test_limits_end_a_fit(limit):
    model = mm.SVC(C=1e3, device="cuda", **limit)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, Y3)
    assert all(each.coverage == "complete" for each in model.certificates_)


@pytest.mark.parametrize("model", [mm.SVC(), mm.NuSVC(nu=0.2), mm.SVR(), mm.OneClassSVM(nu=0.2)])
def test_fits_are_the_same_again(model):
    y = TARGETS if isinstance(model, mm.SVR) else Y3
    once, again = (clone(model).set_params(device="cuda").fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(once.dual_coef_, again.dual_coef_)


def test_a_full_device_leaves_the_fit_to_the_cpu(monkeypatch):
    def full(*args, **kwargs):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(KernelRows, "values", full)
    model = mm.SVC(device="cuda")
    with pytest.warns(UserWarning, match="memory"):
        model.fit(X, Y3)
    assert all(each.holds(1e-3) for each in model.certificates_)
    np.testing.assert_allclose(
        scores_of(model, X), scores_of(mm.SVC().fit(X, Y3), X), atol=5e-3
    )  # fmt: skip
