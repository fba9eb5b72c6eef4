"""Gram matrices, computed in every way, compared with the kernel itself in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from maxmargin.engines.cpu import gram as cpu
from maxmargin.engines.cpu import kernel_values
from maxmargin.engines.cpu.class_pairs import ClassBlocks, PairGram, assemble
from maxmargin.engines.cpu.dense_products import DenseProducts
from maxmargin.engines.cpu.engine import CpuEngine
from maxmargin.engines.cpu.gaussian import gaussian
from maxmargin.engines.cpu.gram import Gram, GramView
from maxmargin.engines.cpu.kernel_values import values_of
from maxmargin.engines.cpu.row_cache import STALE_REQUESTS, keep_rows
from maxmargin.engines.cpu.row_sums import add_rows
from maxmargin.engines.cpu.sparse_panels import (
    PANEL_VECTORS,
    count_nonzeros,
    lay_panels,
    measure_rows,
    n_sections,
    pick_nonzeros,
    sparse_products,
)
from maxmargin.engines.cpu.sparse_products import SparseProducts, WideProducts
from maxmargin.engines.cpu.values import Given, Opaque
from maxmargin.kernels import RBF, Custom, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.runtime import memory
from maxmargin.runtime.simd import aligned, count
from maxmargin.runtime.threads import at_most

# Of a value, relative to the largest of K: products of some dozen terms, and the kernel's formula.
CLOSE = {np.dtype(np.float32): 3e-6, np.dtype(np.float64): 1e-13}
# Samples: more than a tile is wide, and no multiple of anything; features of the mostly zero rows.
N, D = 700, 40
PLENTY = 1 << 30
DENSITY = kernel_values.TUNING

KERNELS = {
    "linear": Linear(),
    "rbf": RBF(gamma=0.1),
    "poly": Polynomial(3, gamma=0.1, coef0=1.0),
    "sigmoid": Sigmoid(gamma=0.05, coef0=0.1),
    "sum": RBF(gamma=0.2) + 0.5 * Linear(),
    "product": RBF(gamma=0.1) * Polynomial(2, gamma=0.1, coef0=1.0),
}


def plain_rbf(X, Z):
    """A Gaussian as a caller would write it."""
    X, Z = (rows.toarray() if sparse.issparse(rows) else rows for rows in (X, Z))
    return np.exp(-0.1 * cdist(X, Z, "sqeuclidean"))


@dataclass(frozen=True)
class Way:
    """Data of one kind, and the class that computes their kernel values."""

    name: str
    kind: type
    data: Any
    budget: float = PLENTY
    kernel: Any = None  # in place of the kernel of the test


def full_rows():
    return np.random.default_rng(0).standard_normal((N, 7)) + 3.0


def thin_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.15)
    X[[0, 300, N - 1]] = 0.0  # rows without an entry
    return X


def long_indices(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


WAYS = [
    Way("dense", DenseProducts, full_rows),
    Way("dense float32", DenseProducts, lambda: full_rows().astype(np.float32)),
    Way("dense by columns", DenseProducts, lambda: np.asfortranarray(full_rows())),
    Way("full csr", DenseProducts, lambda: sparse.csr_matrix(full_rows())),
    Way("zeros", SparseProducts, thin_rows),
    Way("csr", SparseProducts, lambda: sparse.csr_array(thin_rows())),
    Way("csr float32", SparseProducts, lambda: sparse.csr_matrix(thin_rows().astype(np.float32))),
    Way("csr int64", SparseProducts, lambda: long_indices(thin_rows())),
    Way("wide", WideProducts, lambda: sparse.csr_array(thin_rows()), budget=0.0),
    Way("wide zeros", WideProducts, thin_rows, budget=0.0),
    Way("opaque", Opaque, full_rows, kernel=Custom(plain_rbf)),
    Way("opaque csr", Opaque, lambda: sparse.csr_matrix(thin_rows()), kernel=Custom(plain_rbf)),
    Way("given", Given, lambda: RBF(gamma=0.1)(full_rows()), kernel=Precomputed()),
    Way(
        "given float32", Given,
        lambda: RBF(gamma=0.1)(full_rows()).astype(np.float32), kernel=Precomputed(),
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A way, with a kernel and the type of its values."""

    way: Way
    name: str
    dtype: np.dtype

    @property
    def kernel(self):
        return self.way.kernel or KERNELS[self.name]

    def gram(self, index=None, budget=None):
        budget = self.way.budget if budget is None else budget
        return Gram(self.kernel, data_of(self.way), index, budget, self.dtype)

    @property
    def K(self):
        return exact(self.way, self.kernel)

    @property
    def near(self):
        """The largest error of a value."""
        return CLOSE[self.dtype] * np.abs(self.K).max()


@cache
def data_of(way):
    return way.data()


@cache
def exact(way, kernel):
    X = data_of(way)
    X = X.toarray() if sparse.issparse(X) else X
    return kernel(X.astype(np.float64))


# Every kernel by every way to inner products once; of other data the Gaussian.
CASES = [
    Case(way, name, np.dtype(dtype))
    for way in WAYS
    for name in (KERNELS if way.name in ("dense", "zeros", "wide") else ["rbf"])
    for dtype in (np.float32, np.float64)
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case.way.name}-{case.name}-{case.dtype}")
def case(request):
    return request.param


def some_rows(n=N, size=90, seed=2):
    return np.random.default_rng(seed).permutation(n)[:size]


def assert_near(answer, expected, near):
    assert np.shape(answer) == np.shape(expected)
    np.testing.assert_allclose(answer, expected, rtol=0.0, atol=near)


# The same answer in every way ---------------------------------------------------------------------


def test_way_suits_the_data(case):
    assert type(case.gram().values) is case.way.kind


def test_whole(case):
    gram = case.gram(budget=PLENTY)
    assert gram.fits
    K = gram.whole()
    assert gram.is_whole
    assert gram.whole() is K
    assert K.dtype == case.dtype
    assert_near(K, case.K, case.near)


def test_diagonal(case):
    gram = case.gram()
    assert gram.diagonal().dtype == np.float64
    assert_near(gram.diagonal(), case.K.diagonal(), CLOSE[np.dtype(float)] * np.abs(case.K).max())


@pytest.mark.parametrize("whole", [False, True], ids=["computed", "kept"])
def test_block(case, whole):
    gram = case.gram(budget=PLENTY if whole else None)
    if whole:
        gram.whole()
    rows, columns = some_rows(), some_rows(size=300, seed=3)
    for these, those in [
        (rows, columns),
        (columns, rows),
        (rows[:1], columns),
        (rows, columns[:1]),
        (rows[:0], columns),
        (np.arange(N), np.arange(N)),
    ]:
        K = gram.block(these, those)
        assert K.dtype == case.dtype
        assert_near(K, case.K[np.ix_(these, those)], case.near)
    for these in (rows, np.arange(100, 200), np.arange(3)):
        assert_near(gram.block(these), case.K[np.ix_(these, these)], case.near)


def test_a_block_belongs_to_the_caller(case):
    gram = case.gram(budget=PLENTY)
    gram.whole()
    for rows in (np.arange(5), some_rows(size=5)):
        gram.block(rows)[:] = -7.0
        assert_near(gram.block(rows), case.K[np.ix_(rows, rows)], case.near)


@pytest.mark.parametrize("whole", [False, True], ids=["computed", "kept"])
def test_dot(case, whole):
    gram = case.gram(budget=PLENTY if whole else None)
    if whole:
        gram.whole()
    for size in (1, 3, 90, N):
        rows = some_rows(size=size)
        v = np.random.default_rng(4).standard_normal(size)
        product = gram.dot(rows, v)
        assert product.dtype == np.float64
        assert_near(product, case.K[:, rows] @ v, case.near * np.abs(v).sum())


def test_product(case):
    gram = case.gram()
    rows, columns = some_rows(), some_rows(size=300, seed=3)
    v = np.random.default_rng(4).standard_normal(300)
    near = case.near * np.abs(v).sum()
    product = gram.product(rows, columns, v)
    assert product.dtype == np.float64
    assert_near(product, case.K[np.ix_(rows, columns)] @ v, near)
    gram.whole()
    assert_near(gram.product(rows, columns, v), product, near)


def test_product_in_several_steps(monkeypatch):
    monkeypatch.setattr(cpu, "TUNING", cpu.Tuning(values_per_step=1000))
    case = CASES[0]
    rows, columns = some_rows(), some_rows(size=300, seed=3)
    v = np.ones(300)
    product = case.gram().product(rows, columns, v)
    assert_near(product, case.K[np.ix_(rows, columns)] @ v, 300 * case.near)


@pytest.mark.parametrize("size", [1, 90, 600])
def test_restricted(case, size):
    rows = some_rows(size=size)
    K, v = case.K[np.ix_(rows, rows)], np.linspace(-1.0, 1.0, size)
    near = case.near * max(1.0, np.abs(v).sum())
    for gram in (case.gram(rows), case.gram().restrict(rows)):
        assert gram.n_samples == size
        assert_near(gram.diagonal(), K.diagonal(), case.near)
        assert_near(gram.dot(np.arange(size), v), K @ v, near)
        assert_near(gram.block(np.arange(size)), K, case.near)
        assert_near(gram.product(np.arange(size), np.arange(size), v), K @ v, near)
        assert_near(gram.whole(), K, case.near)
        part = np.arange(size)[::-2]
        again = gram.restrict(part)
        assert_near(again.whole(), K[np.ix_(part, part)], case.near)


def test_selected(case):
    index = some_rows(size=300)
    selected = GramView(case.gram(), index)
    K = case.K[np.ix_(index, index)]
    rows, columns = some_rows(300, 40), some_rows(300, 70, seed=3)
    v = np.linspace(-1.0, 1.0, 70)
    near = case.near * np.abs(v).sum()
    assert selected.dtype == case.dtype
    assert_near(selected.diagonal(), K.diagonal(), case.near)
    assert_near(selected.block(rows, columns), K[np.ix_(rows, columns)], case.near)
    assert_near(selected.product(rows, columns, v), K[np.ix_(rows, columns)] @ v, near)
    assert_near(selected.dot(columns, v), K[:, columns] @ v, near)
    part = selected.restrict(rows)
    few = np.arange(5)
    assert_near(part.dot(few, v[:5]), K[np.ix_(rows, rows)][:, few] @ v[:5], near)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_one_thread_gives_the_same_bits(way):
    case = Case(way, "rbf", np.dtype(np.float32))
    rows, v = some_rows(), np.linspace(-1.0, 1.0, 90)

    def answers():
        gram = case.gram(budget=PLENTY)
        return gram.dot(rows, v), gram.block(rows, some_rows(seed=3)), gram.whole()

    several = answers()
    with at_most(1):
        alone = answers()
    for one, other in zip(several, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [1, 2, 15, 64, 128, 512, 513])
@pytest.mark.parametrize("kind", ["dense", "csr", "wide"])
def test_any_number_of_samples(n, kind):
    way = next(way for way in WAYS if way.name == kind)
    X = data_of(way)[:n]
    gram = Gram(RBF(gamma=0.1), X, budget=way.budget, dtype=np.float32)
    K = exact(way, RBF(gamma=0.1))[:n, :n]
    near = CLOSE[gram.dtype]
    v = np.linspace(-1.0, 1.0, n)
    assert_near(gram.dot(np.arange(n), v), K @ v, near * n)
    assert_near(gram.block(np.arange(n)), K, near)
    assert_near(gram.whole(), K, near)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_input_is_not_changed(way):
    X = way.data()
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    copies = [part.copy() for part in parts]
    for part in parts:
        part.flags.writeable = False
    kernel = way.kernel or RBF(gamma=0.1)
    gram = Gram(kernel, X, budget=way.budget, dtype=np.float64)
    gram.dot(some_rows(), np.ones(90), keep=np.ones(90, dtype=bool))
    gram.block(some_rows())
    gram.whole()
    for part, copy in zip(parts, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


# The choice of the way ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "density", "kind"),
    [
        (200, DENSITY.sparse_density + 0.1, DenseProducts),
        (200, DENSITY.sparse_density - 0.1, SparseProducts),
        (20, DENSITY.sparse_density + 0.1, DenseProducts),
        (20, DENSITY.sparse_density - 0.1, SparseProducts),
    ],
)
def test_share_of_zeros_decides(columns, density, kind):
    X = np.where(np.random.default_rng(5).random((300, columns)) < density, 1.0, 0.0)
    for data in (X, sparse.csr_matrix(X)):
        assert type(values_of(Linear(), data, None, np.float32, PLENTY)) is kind


@pytest.mark.parametrize(
    ("form", "dtype", "kept"),
    [
        (np.asarray, np.float32, True),
        (np.asarray, np.float64, False),  # twice as large as X
        (sparse.csr_matrix, np.float32, True),
        (sparse.csr_matrix, np.float64, True),  # which has as many bytes of indices
    ],
)
def test_dense_rows_are_kept_where_they_take_little_more_memory_than_X(form, dtype, kept):
    X = form(full_rows().astype(np.float32))
    values = values_of(RBF(gamma=0.1), X, None, dtype, PLENTY)
    assert isinstance(values, DenseProducts)
    assert values.has_columns is kept


def test_given_values_are_not_copied():
    K = exact(WAYS[0], KERNELS["rbf"])
    gram = Gram(Precomputed(), K)
    assert gram.is_whole
    assert gram.whole() is K
    assert gram.padded() is None  # it may be read to its end only
    assert Gram(Precomputed(), K, dtype=np.float32).is_whole is False


def test_computed_values_may_be_read_beyond_the_end():
    gram = CASES[0].gram(budget=PLENTY)
    assert gram.padded() is None
    gram.whole()
    assert gram.padded() is gram.whole()


def test_type_is_that_of_the_data_by_default():
    for dtype in (np.float32, np.float64):
        assert Gram(Linear(), full_rows().astype(dtype)).dtype == dtype


@pytest.mark.parametrize("way", [WAYS[0], WAYS[4], WAYS[8]], ids=lambda way: way.name)
def test_values_beyond_float32_are_refused(way):
    gram = Gram(Polynomial(40, gamma=10.0), data_of(way), budget=way.budget, dtype=np.float32)
    for ask in (
        lambda: gram.block(np.arange(5), np.arange(9)),
        lambda: gram.dot(np.arange(5), np.ones(5)),
        gram.whole,
    ):
        with pytest.raises(ValueError, match=r"Polynomial.*float32.*rescale"):
            ask()


def test_free_memory(monkeypatch):
    assert memory.free_memory() > 1 << 20

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.free_memory() == 4 << 30


# Kept rows ----------------------------------------------------------------------------------------


class Counting:
    """Values that count how many rows they compute."""

    def __init__(self, inner):
        self.inner, self.n_rows = inner, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def prepare(self, rows):
        self.n_rows += rows.size
        return self.inner.prepare(rows)


def counted(gram):
    gram._values = Counting(gram.values)
    return gram._values


def costly(way_name="dense", rows=N, dtype=np.float64):
    """Return a Gram matrix that may keep so many rows."""
    case = Case(next(way for way in WAYS if way.name == way_name), "rbf", np.dtype(dtype))
    return case, case.gram(budget=rows * N * case.dtype.itemsize)


def test_kept_rows_are_not_computed_again():
    case, gram = costly()
    work = counted(gram)
    rows, v = some_rows(), np.ones(90)
    keep = np.arange(90) % 3 == 0
    first = gram.dot(rows, v, keep)
    assert work.n_rows == 90
    np.testing.assert_allclose(gram.dot(rows, v, keep), first, rtol=0, atol=90 * case.near)
    assert work.n_rows == 90 + 60
    gram.dot(rows[keep], v[keep])
    assert work.n_rows == 90 + 60


@pytest.mark.parametrize("capacity", [0, 1, 10, N])
@pytest.mark.parametrize("way", ["dense", "zeros", "wide", "opaque"])
def test_many_requests_of_a_small_store(capacity, way):
    case, gram = costly(way, capacity)
    rng = np.random.default_rng(6)
    favourites = rng.permutation(N)[:20]
    for request in range(30 if way == "opaque" else 90):
        size = int(rng.integers(1, 30))
        rows = rng.permutation(N)[:size] if request % 2 else rng.permutation(favourites)[:size]
        v = rng.standard_normal(rows.size)
        keep = None if request % 7 == 0 else rng.random(rows.size) < 0.7
        near = case.near * np.abs(v).sum()
        assert_near(gram.dot(rows, v, keep), case.K[:, rows] @ v, near)
        assert gram._kept.cache.nbytes <= gram.budget
    owners = gram._kept.owner[gram._kept.owner >= 0]
    assert owners.size == np.unique(owners).size
    assert owners.size >= min(capacity, 20)
    # Every place belongs to exactly one row.
    np.testing.assert_array_equal(gram._kept.slot[owners], np.flatnonzero(gram._kept.owner >= 0))
    assert (gram._kept.slot >= 0).sum() == owners.size
    for slot, owner in zip(gram._kept.slot[owners], owners, strict=True):
        assert_near(gram._kept.row(slot), case.K[owner], case.near)


def test_rows_long_unused_make_room():
    _, gram = costly(rows=10)
    work = counted(gram)
    old, new = np.arange(10), np.arange(100, 110)
    everything = np.ones(10, dtype=bool)
    gram.dot(old, np.ones(10), everything)
    for _ in range(STALE_REQUESTS + 2):
        gram.dot(new, np.ones(10), everything)
    before = work.n_rows
    gram.dot(new, np.ones(10))
    assert work.n_rows == before
    gram.dot(old, np.ones(10))
    assert work.n_rows == before + 10


def test_cheap_values_are_kept_within_modest_memory(monkeypatch):
    _, gram = costly(rows=N)
    assert gram.cheap
    monkeypatch.setattr(cpu, "TUNING", cpu.Tuning(trifling_bytes=5 * N * 8))
    gram.dot(np.arange(3), np.ones(3))
    assert gram._kept.owner.size == 5
    opaque = Gram(Custom(plain_rbf), full_rows(), budget=8 * N * 8)
    assert not opaque.cheap
    opaque.dot(np.arange(3), np.ones(3))
    assert opaque._kept.owner.size == 8


def test_blocks_of_two_classes_are_put_together():
    K = exact(WAYS[0], KERNELS["rbf"])[:150, :150]
    for cut in (1, 32, 70, 149, 150):
        source = Gram(KERNELS["rbf"], WAYS[0].data())
        gram = PairGram(ClassBlocks(source, (np.arange(N) >= cut).astype(int)), np.arange(150))
        assert gram.padded() is None
        assert_near(gram.whole(), K, 1e-14)
        np.testing.assert_array_equal(gram.whole(), gram.whole().T)
        assert gram.padded() is gram.whole()
        bound = gram.bound(slice(None), np.array([3]), np.array([2.0]))
        assert (bound > 0.0).all()
        assert (bound < 1e-12).all()
        np.testing.assert_array_equal(
            gram.dot(np.array([3]), np.array([2.0])), 2.0 * gram.whole()[3]
        )


def test_a_class_is_computed_once():
    source = Gram(KERNELS["rbf"], WAYS[0].data())
    blocks = ClassBlocks(source, np.arange(N) % 3)
    rows = [np.flatnonzero(np.arange(N) % 3 == k) for k in range(3)]
    first = PairGram(blocks, np.concatenate(rows[:2])).whole()
    kept = dict(blocks._within)
    second = PairGram(blocks, np.concatenate(rows[1:])).whole()
    assert all(blocks._within[k] is kept[k] for k in kept)
    n = rows[0].size
    np.testing.assert_array_equal(first[n:, n:], second[: rows[1].size, : rows[1].size])


def test_other_rows_of_a_class_are_not_taken_from_those_kept():
    source = Gram(KERNELS["rbf"], WAYS[0].data())
    blocks = ClassBlocks(source, np.arange(N) % 2)
    rows = np.arange(N)
    for chosen in (np.r_[rows[:40:2], rows[1:40:2]], np.r_[rows[40:80:2], rows[41:80:2]]):
        np.testing.assert_array_equal(PairGram(blocks, chosen).whole(), source.block(chosen))


def test_float32_rows_far_from_the_origin_are_moved_without_rounding():
    X = 0.5 + 0.3 * np.random.default_rng(0).standard_normal((600, 8))
    X = sparse.csr_matrix(X.astype(np.float32))
    gram = CpuEngine(X).gram(RBF(gamma=2.0))
    error = np.zeros(600)
    scores = gram.dot(np.arange(600), np.ones(600), error=error)
    expected = RBF(gamma=2.0)(X.toarray().astype(np.float64)).sum(axis=1)
    assert (np.abs(scores - expected) <= error + 1e-12).all()


# Compiled code ------------------------------------------------------------------------------------


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def gaussian_of(squares, dtype, gamma=1.0, function=gaussian):
    """exp(−γ s) by way of ⟨x,z⟩ = −s/2 of two vectors without length."""
    dot = (-0.5 * squares)[np.newaxis].astype(dtype)
    nothing = np.zeros(squares.size, dtype)
    function(dot, nothing[:1], nothing, gamma)
    return dot[0]


def test_gaussian_is_as_good_as_the_library(dtype):
    limit = 69.0 if dtype is np.float32 else 665.0
    squares = np.concatenate([np.linspace(0.0, limit, 20_001), np.logspace(-20, 0, 500)])
    squares = squares.astype(dtype).astype(float)
    found = gaussian_of(squares, dtype)
    # The exponent is rounded twice, the power of two and the result once each or so.
    bound = np.finfo(dtype).eps * (2.0 + 1.5 * squares)
    assert (np.abs(found / np.exp(-squares) - 1.0) <= bound).all()


def test_gaussian_at_its_ends(dtype):
    found = gaussian_of(np.array([0.0, -1e-3, -5.0, 1e5, 1e20, 3e38]), dtype)
    np.testing.assert_array_equal(found[:3], 1.0)  # a distance below 0 is rounding
    assert (found[3:] >= 0.0).all()
    # Nothing beside 1, and large enough that products with it are normal numbers.
    assert (found[3:] <= np.finfo(dtype).eps ** 4).all()
    assert (found[3:] * np.finfo(dtype).eps >= np.finfo(dtype).tiny).all()


def test_gaussian_is_what_its_python_says(dtype):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((9, 4)).astype(dtype)
    Z = rng.standard_normal((21, 4)).astype(dtype)
    squares = (X**2).sum(axis=1), (Z**2).sum(axis=1)
    expected = RBF(gamma=0.7).from_products(X @ Z.T, *squares)
    for function in (gaussian, gaussian.py_func):
        dot = X @ Z.T
        function(dot, *squares, 0.7)
        np.testing.assert_allclose(dot, expected, rtol=32 * np.finfo(dtype).eps)


def test_distance_of_a_row_from_itself_is_nothing():
    """Far from the origin too: rows are centred."""
    X = np.random.default_rng(8).standard_normal((50, 3)) + 1e4
    K = RBF(gamma=1.0)(X)
    gram = Gram(RBF(gamma=1.0), X, dtype=np.float32)
    assert_near(gram.block(np.arange(50)), K, 2e-2)  # X itself is known to 1e-3
    np.testing.assert_array_equal(gram.block(np.arange(50)).diagonal(), 1.0)
    np.testing.assert_array_equal(gram.whole().diagonal(), 1.0)


def csr_of(dtype, long=False):
    X = thin_rows()[:150].astype(dtype)
    csr = long_indices(X) if long else sparse.csr_matrix(X)
    return X, (csr.data, csr.indices, csr.indptr)


@pytest.mark.parametrize("n_sections", [1, 2, 5])
@pytest.mark.parametrize("long", [False, True], ids=["int32", "int64"])
def test_sparse_products(dtype, long, n_sections):
    X, csr = csr_of(dtype, long)
    width = PANEL_VECTORS * count(X)
    samples = np.arange(3, 140)
    panels = aligned((-(-samples.size // width), D, width), dtype)
    lay_panels(len(panels), *csr, samples, panels)
    laid = np.swapaxes(panels, 1, 2).reshape(-1, D)
    np.testing.assert_array_equal(laid[: samples.size], X[samples])
    assert not laid[samples.size :].any()
    rows = np.array([0, 149, 7, 7])
    out = np.full((4, laid.shape[0]), np.nan, dtype)
    starts = np.empty((X.shape[0], n_sections + 1), csr[2].dtype)
    measure_rows(1, *csr, D, np.empty(X.shape[0]), starts)
    sparse_products(*csr[:2], starts, rows, panels, out)
    near = D * np.finfo(dtype).eps * 10
    np.testing.assert_allclose(out[:, : samples.size], X[rows] @ X[samples].T, atol=near)
    assert not out[:, samples.size :].any()


def test_panels_are_divided_where_rows_have_many_numbers_in_each_section():
    assert n_sections(300, 12.0) == n_sections(22, 13.0) == n_sections(96, 90.0) == 1
    assert n_sections(784, 150.0) == 9
    assert n_sections(784, 40.0) == 2


def test_rows_whose_indices_are_not_sorted():
    X = thin_rows()
    X = sparse.csr_matrix(X)
    turned = X.copy()
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        turned.indices[part], turned.data[part] = X.indices[part][::-1], X.data[part][::-1]
    turned.has_sorted_indices = False
    values = SparseProducts(RBF(gamma=0.1), turned, None, np.float64)
    np.testing.assert_array_equal(values.csr[1], X.indices)
    assert not turned.has_sorted_indices


def test_lay_panels_is_what_its_python_says(dtype):
    _, csr = csr_of(dtype)
    width = PANEL_VECTORS * 64 // np.dtype(dtype).itemsize
    both = [aligned((2, D, width), dtype) for _ in range(2)]
    lay_panels(2, *csr, np.arange(width + 5), both[0])
    for part in range(2):
        lay_panels.kernel.py_func(part, *csr, np.arange(width + 5), both[1])
    np.testing.assert_array_equal(*both)


def test_measure_rows(dtype):
    X, csr = csr_of(dtype)
    both = []
    for function in (measure_rows.kernel, measure_rows.kernel.py_func):
        squares, starts = np.empty(150, dtype), np.empty((150, 4), dtype=np.int64)
        function(0, *csr, D, squares, starts)
        np.testing.assert_allclose(squares, (X**2).sum(axis=1), rtol=D * np.finfo(dtype).eps)
        both.append(starts)
    np.testing.assert_array_equal(*both)
    np.testing.assert_array_equal(both[0][:, [0, 3]], np.column_stack([csr[2][:-1], csr[2][1:]]))


def test_pick_nonzeros(dtype):
    X = thin_rows()[:150].astype(dtype)
    rows = np.array([5, 0, 149, 80])
    expected = sparse.csr_matrix(X[rows])
    for function in (count_nonzeros.kernel, count_nonzeros.kernel.py_func):
        counts = np.zeros(4, dtype=np.int64)
        function(0, X, rows, counts)
        np.testing.assert_array_equal(counts, np.diff(expected.indptr))
    for function in (pick_nonzeros.kernel, pick_nonzeros.kernel.py_func):
        data, indices = np.zeros(expected.nnz, dtype), np.zeros(expected.nnz, dtype=np.int32)
        function(0, X, rows, expected.indptr[:-1].astype(np.int64), data, indices)
        np.testing.assert_array_equal(data, expected.data)
        np.testing.assert_array_equal(indices, expected.indices)


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("start", [0, 17])
def test_add_rows(dtype, n_rows, start):
    K = np.random.default_rng(9).standard_normal((12, 2100)).astype(dtype)
    rows, v = np.arange(12)[::-1][:n_rows], np.linspace(-1.0, 2.0, n_rows)
    for function in (add_rows, add_rows.py_func):
        total = np.ones(2100 - start)
        function(K, rows, v, start, total)
        expected = 1.0 + v @ K[rows, start:].astype(float)
        np.testing.assert_allclose(total, expected, atol=1e-13)


def test_keep_rows(dtype):
    tile = np.random.default_rng(10).standard_normal((4, 6)).astype(dtype)
    at = np.array([2, -1, 0, -1])
    for function in (keep_rows, keep_rows.py_func):
        cache = np.zeros((3, 20), dtype)
        function(tile, at, 10, cache)
        expected = np.zeros((3, 20), dtype)
        expected[[2, 0], 10:16] = tile[[0, 2]]
        np.testing.assert_array_equal(cache, expected)


@pytest.mark.parametrize("shape", [(1, 1), (5, 40), (33, 2), (64, 65)])
def test_assemble(dtype, shape):
    n, m = shape
    K = np.random.default_rng(11).standard_normal((n + m, n + m)).astype(dtype)
    K = K + K.T
    for function in (assemble, assemble.py_func):
        out = np.empty_like(K)
        function(*map(np.ascontiguousarray, (K[:n, :n], K[:n, n:], K[n:, n:])), out)
        np.testing.assert_array_equal(out, K)
