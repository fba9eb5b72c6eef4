"""K on a device is that of the host, whatever is kept of it."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from maxmargin.engines.registry import engine_for
from maxmargin.kernels import RBF, Custom, Linear, Polynomial, Precomputed, Sigmoid

from ...helpers.devices import marked

torch = pytest.importorskip("torch")

from maxmargin.engines.base import DeviceMemoryFull  # noqa: E402
from maxmargin.engines.torch import gram as gram_module  # noqa: E402
from maxmargin.engines.torch.kernel_rows import KernelRows  # noqa: E402
from maxmargin.engines.torch.memory import with_smaller_blocks  # noqa: E402

KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, gamma=0.2, coef0=1.0),
    "gaussian": RBF(0.3),
    "sigmoid": Sigmoid(0.1),
    "sum": Linear() + 2.0 * RBF(0.5),
    "product": Polynomial(2, coef0=1.0) * RBF(0.1),
    "custom": Custom(lambda X, Z: np.minimum(X[:, None], Z[None]).sum(axis=2)),
}
ROWS = np.array([3, 41, 7, 20])


def samples(n=60, d=5):
    return np.random.default_rng(0).uniform(0.0, 2.0, (n, d))


@pytest.fixture(params=marked(["cpu", "cuda"]))
def gram_of(request):
    def make(kernel, X, index=None, precision="exact", **options):
        engine = engine_for(X, "torch", device=request.param, **options)
        return engine.gram(kernel, index, precision)

    return make


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture(params=["exact", "fast"])
def precision(request):
    return request.param


@pytest.fixture(params=["all", "some", "repeated"])
def index(request):
    return {
        "all": None,
        "some": np.arange(59, 4, -1),
        "repeated": np.tile(np.arange(5, 55), 2),
    }[request.param]


def test_values(gram_of, kernel, precision, index):
    X = samples()
    gram = gram_of(kernel, X, index, precision)
    K, near = kernel(X if index is None else X[index]), 1e-4 if precision == "fast" else 1e-11
    assert gram.n_samples == len(K)
    assert gram.fits
    v, columns = np.linspace(-1.0, 1.0, 10), np.arange(0, 40, 4)
    close = {"rtol": near, "atol": near}
    for _ in range(2):  # the second time from rows that are kept
        np.testing.assert_allclose(gram.dot(columns, v), K[:, columns] @ v, **close)
    np.testing.assert_allclose(gram.diagonal(), K.diagonal(), **close)
    np.testing.assert_allclose(gram.block(ROWS, columns), K[np.ix_(ROWS, columns)], **close)
    np.testing.assert_allclose(gram.block(ROWS), K[np.ix_(ROWS, ROWS)], **close)
    np.testing.assert_allclose(gram.product(ROWS, columns, v), K[ROWS][:, columns] @ v, **close)
    part = gram.restrict(np.arange(10, 50))
    np.testing.assert_allclose(part.block(np.arange(5)), K[10:15, 10:15], **close)
    np.testing.assert_allclose(gram.whole(), K, **close)
    np.testing.assert_allclose(gram.block(ROWS, columns), K[np.ix_(ROWS, columns)], **close)


def test_errors_are_within_their_bounds(gram_of, kernel, precision, index):
    X = samples()
    gram = gram_of(kernel, X, index, precision)
    K = kernel(X if index is None else X[index])
    v, columns = np.random.default_rng(1).standard_normal(40), np.arange(40)
    error = np.zeros(gram.n_samples)
    sums = gram.dot(columns, v, error=error)
    assert (np.abs(sums - K[:, columns] @ v) <= error + 1e-13).all()
    near = 1e-3 if precision == "fast" else 1e-11
    assert error.max() <= near * (np.abs(K[:, columns]) @ np.abs(v)).max()
    bound = gram.bound(ROWS, columns, v)
    assert (np.abs(gram.product(ROWS, columns, v) - K[ROWS][:, columns] @ v) <= bound + 1e-13).all()


def test_precomputed(gram_of):
    X = samples()
    K = RBF(0.3)(X)
    gram = gram_of(Precomputed(), K, np.arange(10, 50))
    np.testing.assert_array_equal(gram.whole(), K[10:50, 10:50])
    np.testing.assert_array_equal(gram.diagonal(), np.ones(40))


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), Polynomial(2)])
def test_sparse_rows(gram_of, kernel):
    X = samples()
    X[X < 1.0] = 0.0
    gram = gram_of(kernel, sparse.csr_matrix(X))
    np.testing.assert_allclose(gram.whole(), kernel(X), rtol=1e-12)


@pytest.mark.parametrize("n_kept", [0, 1, 7, 30])
def test_a_small_budget_changes_nothing(gram_of, n_kept):
    X = samples()
    gram = gram_of(RBF(0.3), X, budget=8.0 * 60 * n_kept)
    K, rng = RBF(0.3)(X), np.random.default_rng(2)
    for _ in range(20):
        rows = rng.permutation(60)[:12]
        v = rng.standard_normal(12)
        np.testing.assert_allclose(gram.dot(rows, v), K[:, rows] @ v, rtol=1e-11, atol=1e-13)


def test_rows_far_from_their_differences_are_those_of_the_host(gram_of):
    """‖x‖² + ‖z‖² − 2⟨x,z⟩ of two clusters that are far apart has no digits left."""
    X = samples()
    X[:30] += 1e7
    gram = gram_of(RBF(0.3), X)
    np.testing.assert_allclose(gram.block(np.arange(60)), RBF(0.3)(X), rtol=1e-9)


def test_smaller_tiles_where_memory_is_full(gram_of, monkeypatch):
    X = samples()
    gram, K = gram_of(RBF(0.3), X, budget=0.0), RBF(0.3)(X)
    values, v, rows = KernelRows.values, np.linspace(-1.0, 1.0, 60), np.arange(60)

    def small(self, rows, columns=None, out=None):
        if len(rows) > 10:
            raise torch.OutOfMemoryError("full")
        return values(self, rows, columns, out)

    monkeypatch.setattr(KernelRows, "values", small)
    with monkeypatch.context() as patch:
        tiny = partial(with_smaller_blocks, least=1)
        patch.setattr(gram_module, "with_smaller_blocks", tiny)
        np.testing.assert_allclose(gram.dot(rows, v), K @ v, rtol=1e-12)
        np.testing.assert_allclose(
            gram.product(rows[::-1], rows, v), K[::-1] @ v, rtol=1e-12, atol=1e-14
        )
    with pytest.raises(DeviceMemoryFull):
        gram.dot(rows, v)
