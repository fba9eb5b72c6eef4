"""Fits with the cache of Gram matrices: the same answers, from values that are found again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV

import maxmargin as mm
from maxmargin.engines.registry import engine_for
from maxmargin.kernels import RBF, Kernel

SIZE = 10**8


@pytest.fixture(autouse=True)
def _without_cache():
    with mm.config(kernel_cache=None):
        yield


def cloud(n, n_classes=2, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (np.floor(2.0 * (np.sin(2.0 * X[:, 0]) + X[:, 1])) % n_classes).astype(int)


def assert_same(one, other):
    """Assert that two models agree to the last bit, certificates included."""
    for name in ("dual_coef_", "intercept_", "support_"):
        values = [getattr(model, name) for model in (one, other)]
        arrays = [each.toarray() if sparse.issparse(each) else each for each in values]
        np.testing.assert_array_equal(*arrays)
    certificates = [
        getattr(model, "certificates_", None) or [model.certificate_] for model in (one, other)
    ]
    assert certificates[0] == certificates[1]


MODELS = {
    "two classes": (mm.SVC(C=3.0), 300, 2),
    "pairs": (mm.SVC(C=3.0), 400, 4),
    "against the rest": (mm.SVC(multi_class="ovr"), 300, 3),
    "few rows": (mm.SVC(C=100.0), 60, 2),
    "tiles": (mm.SVC(C=3.0), 700, 2),
    "squared hinge": (mm.SVC(loss="squared_hinge"), 300, 2),
    "polynomial": (mm.SVC(kernel="poly", coef0=1.0), 300, 2),
    "sigmoid": (mm.SVC(kernel="sigmoid", gamma=0.01), 300, 2),
    "decomposition": (mm.SVC(solver="decomposition"), 600, 2),
    "smo": (mm.SVC(solver="smo"), 600, 2),
    "active set": (mm.SVC(solver="active-set"), 200, 2),
    "qp": (mm.SVC(solver="qp"), 100, 2),
    "jointly": (mm.SVC(multi_class="crammer_singer"), 200, 3),
    "nu": (mm.NuSVC(nu=0.2), 300, 2),
    "regression": (mm.SVR(C=2.0), 300, 5),
    "nu regression": (mm.NuSVR(C=2.0), 300, 5),
    "one class": (mm.OneClassSVM(nu=0.2), 300, 2),
    "many": (mm.SVC(C=3.0), 3100, 2),
}


@pytest.mark.filterwarnings("ignore:The kernel Sigmoid")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_the_same_to_the_last_bit(name, storage, dtype):
    model, n, n_classes = MODELS[name]
    X, y = cloud(n, n_classes)
    X = storage(X.astype(dtype))
    plain = type(model)(**model.get_params()).fit(X, y)
    with mm.config(kernel_cache=SIZE):
        for _ in range(2):  # computed, and found again
            assert_same(type(model)(**model.get_params()).fit(X, y), plain)
        info = mm.kernel_cache.info()
        # Of many rows no solver wants all of K.
        assert (info.hits > 0) == (info.n_matrices > 0) == (name != "many")


@pytest.mark.parametrize("n", [200, 700])
def test_searches_find_the_matrix_of_every_fold_and_kernel(n):
    X, y = cloud(n)
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 3.0]}

    def search():
        return GridSearchCV(mm.SVC(), grid, cv=3, refit=False).fit(X, y).cv_results_

    plain = search()
    with mm.config(kernel_cache=SIZE):
        found, info = search(), mm.kernel_cache.info()
    for name in plain:
        if name.endswith("test_score"):
            np.testing.assert_array_equal(plain[name], found[name])
    assert info.hits >= 3 * info.misses
    assert info.n_matrices == info.misses >= 9
    assert mm.kernel_cache.info().n_bytes == 0  # dropped at the end of the block


@pytest.mark.parametrize("kind", [RandomizedSearchCV, HalvingGridSearchCV])
def test_other_searches_find_some(kind):
    X, y = cloud(300)
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.5]}
    options = {"n_iter": 4} if kind is RandomizedSearchCV else {"resource": "n_samples"}

    def search():
        return kind(mm.SVC(), grid, cv=2, random_state=0, **options).fit(X, y)

    plain = search()
    with mm.config(kernel_cache=SIZE):
        found, info = search(), mm.kernel_cache.info()
    assert info.hits > 0
    assert plain.best_params_ == found.best_params_
    assert_same(plain.best_estimator_, found.best_estimator_)


def test_the_kernel_rows_and_precision_count():
    X, _ = cloud(300)
    other = X[::-1].copy()
    some = np.arange(0, 300, 2)
    cases = [
        (X, 1.0, None, "exact"), (X, 2.0, None, "exact"), (other, 1.0, None, "exact"),
        (X, 1.0, some, "exact"), (X, 1.0, None, "fast"),
    ]  # fmt: skip
    plain = [engine_for(X).gram(RBF(g), i, precision).whole() for X, g, i, precision in cases]
    with mm.config(kernel_cache=SIZE):
        for _ in range(2):
            for (X, gamma, index, precision), expected in zip(cases, plain, strict=True):
                K = engine_for(X).gram(RBF(gamma), index, precision).whole()
                np.testing.assert_array_equal(K, expected)
                assert K.dtype == expected.dtype
        assert mm.kernel_cache.info()[:3] == (5, 5, 5)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_rows_that_are_changed_in_place_are_others(storage):
    X, y = cloud(300)
    X = storage(X)
    with mm.config(kernel_cache=SIZE):
        mm.SVC(gamma=1.0).fit(X, y)
        values = X.data if sparse.issparse(X) else X.reshape(-1)
        values[:100] *= -2.0
        changed = mm.SVC(gamma=1.0).fit(X, y)
        assert mm.kernel_cache.info().hits == 0
    assert_same(changed, mm.SVC(gamma=1.0).fit(X, y))


def test_no_solver_writes_to_what_is_kept():
    X, y = cloud(300)
    with mm.config(kernel_cache=SIZE):
        K = engine_for(X).gram(RBF(1.0)).whole().copy()
        for options in ({}, {"loss": "squared_hinge"}, {"C": np.inf}, {"fit_intercept": False},
                        {"solver": "decomposition"}, {"solver": "smo"}, {"solver": "qp"},
                        {"solver": "active-set"}):  # fmt: skip
            mm.SVC(gamma=1.0, **options).fit(X, y)
        mm.model_selection.c_path(X, y, C_min=0.1, C_max=1.0, gamma=1.0)
        hits = mm.kernel_cache.info().hits
        np.testing.assert_array_equal(engine_for(X).gram(RBF(1.0)).whole(), K)
        assert mm.kernel_cache.info().hits == hits + 1
        assert hits > 5


@dataclass(frozen=True)
class Square(Kernel):
    """A kernel of the caller's own."""

    def from_products(self, dot, x_sq, z_sq):
        dot += 1.0
        return dot * dot


@pytest.mark.parametrize(
    "kernel", [lambda x, z: x @ z.T, "precomputed", Square()], ids=["callable", "given", "own"]
)
def test_values_of_other_kernels_are_not_kept(kernel):
    X, y = cloud(100)
    X = X @ X.T if kernel == "precomputed" else X
    with mm.config(kernel_cache=SIZE):
        for _ in range(2):
            mm.SVC(kernel=kernel).fit(X, y)
        assert mm.kernel_cache.info()[:3] == (0, 0, 0)


def test_nothing_is_hashed_without_the_cache(monkeypatch):
    monkeypatch.setattr("maxmargin.engines.cpu.gram.digest_of", None)
    X, y = cloud(300)
    assert mm.SVC().fit(X, y).certificate_.holds(1e-3)
    with mm.config(kernel_cache=1000):  # nor where K does not fit it
        assert mm.SVC().fit(X, y).certificate_.holds(1e-3)


def test_fits_in_threads_share_it():
    X, y = cloud(400)
    costs = np.geomspace(0.1, 100.0, 12)
    plain = [mm.SVC(C=C, gamma=1.0).fit(X, y) for C in costs]
    with mm.config(kernel_cache=SIZE), ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda C: mm.SVC(C=C, gamma=1.0).fit(X, y), costs))
        info = mm.kernel_cache.info()
    assert info.n_matrices >= 1
    assert info.hits >= 12 - 3
    for one, other in zip(plain, found, strict=True):
        assert_same(one, other)
