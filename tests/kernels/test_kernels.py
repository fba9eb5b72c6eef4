"""Kernels against scikit-learn, explicit feature maps, Mercer's condition and bad input."""

from __future__ import annotations

import math
import pickle
import tracemalloc

import array_api_compat
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from maxmargin import kernels
from maxmargin.kernels import (
    KERNELS,
    RBF,
    Custom,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Scaled,
    Sigmoid,
    Sum,
    mercer,
    resolve,
    squared_norms,
)

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 5))
Z = RNG.normal(size=(30, 5))
XOR = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]], dtype=float)


def dense(A):
    return A.toarray() if sp.issparse(A) else A


def laplacian(A, B):
    return pairwise.laplacian_kernel(A, B, gamma=0.3)


REFERENCES = [
    (Linear(), pairwise.linear_kernel),
    (Polynomial(), lambda A, B: pairwise.polynomial_kernel(A, B, 3, 1.0, 0.0)),
    (Polynomial(6, 0.2, 1.5), lambda A, B: pairwise.polynomial_kernel(A, B, 6, 0.2, 1.5)),
    (RBF(gamma=0.4), lambda A, B: pairwise.rbf_kernel(A, B, 0.4)),
    (RBF(sigma=2.0), lambda A, B: pairwise.rbf_kernel(A, B, 0.125)),
    (Sigmoid(0.3, -0.2), lambda A, B: pairwise.sigmoid_kernel(A, B, 0.3, -0.2)),
]
COMPOSITIONS = [
    Linear() * RBF(0.5) + 2 * Polynomial(2, coef0=1.0),
    3.0 * (RBF(0.1) + RBF(1.0) + Linear()),
    (RBF(0.1) + Polynomial(2)) * (Linear() + 0.5 * RBF(2.0)),
]
MIXED = [Custom(laplacian) * (RBF(0.5) + Linear()) + Linear(), 2 * Custom(laplacian)]
ELEMENTWISE = [kernel for kernel, _ in REFERENCES] + COMPOSITIONS

over_elementwise = pytest.mark.parametrize("kernel", ELEMENTWISE, ids=str)
over_all = pytest.mark.parametrize("kernel", ELEMENTWISE + MIXED, ids=str)


@pytest.mark.parametrize(
    ("kernel", "reference"), REFERENCES, ids=lambda value: type(value).__name__
)
def test_equals_scikit_learn(kernel, reference):
    np.testing.assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(X), reference(X, X), rtol=1e-12, atol=1e-12)


@over_elementwise
def test_float32_stays_float32(kernel):
    A, B = X.astype(np.float32), Z.astype(np.float32)
    for K, exact in ((kernel(A, B), kernel(X, Z)), (kernel(A), kernel(X))):
        assert K.dtype == np.float32
        np.testing.assert_allclose(K, exact, rtol=1e-3, atol=1e-5 * np.abs(exact).max())
    assert kernel(A, Z).dtype == kernel(X.round().astype(int)).dtype == np.float64
    assert kernel.from_products(A @ B.T, squared_norms(A), squared_norms(B)).dtype == np.float32


@over_all
def test_every_form_of_the_data_gives_the_same(kernel):
    A, B = X * (np.abs(X) > 0.7), Z * (np.abs(Z) > 0.7)
    K = kernel(A, B)
    for form in (np.array, sp.csr_matrix, sp.csr_array, sp.csc_array):
        one, two = form(A), form(B)
        np.testing.assert_allclose(kernel(one, two), K, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(one), np.diag(kernel(A)), rtol=1e-11)
        assert kernel.diagonal(one.astype(np.float32)).dtype == np.float64
        assert np.array_equal(dense(one), A)  # the input is not changed
        assert np.array_equal(dense(two), B)
    if kernel.elementwise:
        np.testing.assert_allclose(kernel(sp.csr_array(A), B), K, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(kernel(A, sp.csr_array(B)), K, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.1), Polynomial(2)], ids=str)
def test_unusual_sparse_matrices(kernel):
    data = np.array([1.0, 2, 0, 5, 4])
    odd = sp.csr_array((data.copy(), [2, 2, 0, 1, 0], np.array([0, 3, 5])), shape=(2, 3))
    plain = np.array([[0, 0, 3], [4, 5, 0]])
    np.testing.assert_allclose(kernel(odd), kernel(plain), rtol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(odd), kernel.diagonal(plain), rtol=1e-14)
    assert resolve("rbf", X=odd).gamma == pytest.approx(resolve("rbf", X=plain).gamma, rel=1e-14)
    assert odd.data.tolist() == data.tolist()  # the caller's matrix is as it was


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rbf_diagonal_is_exactly_one(dtype, form):
    A = form((1000 * X).astype(dtype))
    for K in (RBF(3.0)(A), RBF(3.0)(A, A)):
        assert (K.diagonal() == 1).all()
        assert K.max() <= 1
        assert K.min() >= 0


def test_rbf_survives_an_offset():
    A = (X + 1e4).astype(np.float32)
    exact = np.exp(-0.1 * ((A[:, None].astype(float) - A[None].astype(float)) ** 2).sum(-1))
    np.testing.assert_allclose(RBF(0.1)(A), exact, atol=1e-6)
    np.testing.assert_allclose((RBF(0.1) * RBF(0.1))(A, A.copy()), exact**2, atol=1e-6)
    np.testing.assert_allclose(RBF(0.1)(A.astype(float), A), exact, rtol=1e-9)
    A = X + 1e8
    np.testing.assert_allclose(RBF(0.1)(A[:9], A), RBF(0.1)(A)[:9], rtol=1e-12)


def test_rbf_with_an_outlier_keeps_the_rest_exact():
    A = np.vstack([X, np.full(5, 1e9)])
    np.testing.assert_allclose(RBF(0.1)(A)[:40, :40], RBF(0.1)(X), rtol=1e-12)


@over_elementwise
def test_from_products_works_in_place_and_on_batches(kernel):
    dot = np.stack([X @ Z.T, -X @ Z.T])
    x_sq, z_sq = squared_norms(X), squared_norms(Z)
    expected = [kernel(X, Z), kernel(X, -Z)]
    assert kernel.from_products(dot[0], x_sq, z_sq).base is dot
    np.testing.assert_allclose(dot[0], expected[0], rtol=1e-11, atol=1e-12)
    dot[0] = X @ Z.T
    assert kernel.from_products(dot, np.stack([x_sq] * 2), np.stack([z_sq] * 2)) is dot
    np.testing.assert_allclose(dot, expected, rtol=1e-11, atol=1e-12)


def peak_memory(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory():
    A = RNG.normal(size=(2000, 3)).astype(np.float32)
    for kernel in (RBF(0.5), Polynomial(3), COMPOSITIONS[0]):  # one buffer for a Gram matrix
        assert peak_memory(lambda kernel=kernel: kernel(A)) < 1.5 * 4 * 2000**2
    A = np.ones((200_000, 20), dtype=np.float32)
    for form in (A, sp.csr_array(A)):  # and no float64 copy of the samples
        assert peak_memory(lambda form=form: squared_norms(form)) < A.nbytes
        assert peak_memory(lambda form=form: resolve("rbf", X=form)) < A.nbytes


class Machine(BaseEstimator):
    def __init__(self, kernel=None):
        self.kernel = kernel


@pytest.mark.parametrize("kernel", [*ELEMENTWISE, *MIXED, Precomputed()], ids=str)
def test_kernels_are_values(kernel):
    for twin in (pickle.loads(pickle.dumps(kernel)), clone(Machine(kernel)).kernel):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
    with pytest.raises(AttributeError):
        kernel.gamma = 1.0
    if kernel.elementwise:
        assert eval(repr(kernel), vars(kernels)) == kernel


def test_parameters_are_normalised():
    assert repr(RBF(gamma=np.float64(0.5))) == "RBF(gamma=0.5)"
    assert Polynomial(np.int64(2), 1) == Polynomial(2, 1.0) != Polynomial(3)
    assert len({RBF(0.5), RBF(sigma=1.0), Linear(), Linear()}) == 2
    assert RBF(sigma=70.0).sigma == pytest.approx(70, rel=1e-15)


def test_compositions_are_the_elementwise_operations():
    a, b, c = Linear(), RBF(0.5), Custom(laplacian)
    assert a + b == Sum((a, b)) != a * b
    assert np.float64(2) * b == b * np.int64(2) == Scaled(2.0, b)
    np.testing.assert_allclose((a + b + a)(X, Z), 2 * a(X, Z) + b(X, Z), rtol=1e-12)
    np.testing.assert_allclose((a * b * a)(X, Z), a(X, Z) ** 2 * b(X, Z), rtol=1e-11)
    np.testing.assert_allclose((3 * b)(X, Z), 3 * b(X, Z), rtol=1e-14)
    np.testing.assert_allclose((c * b + a)(X, Z), c(X, Z) * b(X, Z) + a(X, Z), rtol=1e-12)
    K = X @ X.T
    np.testing.assert_allclose((Precomputed() + 2 * Precomputed())(K), 3 * K, rtol=1e-15)
    for part in (1, "2"):
        with pytest.raises(TypeError):
            RBF(1.0) + part


def test_which_kernels_are_elementwise_and_shift_invariant():
    assert not any(kernel.elementwise for kernel in [*MIXED, Precomputed()])
    with pytest.raises(TypeError, match="call it on the rows"):
        Precomputed().from_products(X @ Z.T, squared_norms(X), squared_norms(Z))
    for kernel in [*ELEMENTWISE, 2 * RBF(1.0) + RBF(2.0) * RBF(3.0)]:
        assert kernel.shift_invariant == np.allclose(kernel(X + 1, Z + 1), kernel(X, Z))


def test_feature_map_of_the_textbook():
    kernel, y, r = Polynomial(2, coef0=1.0), np.array([1, -1, 1, -1]), math.sqrt(2)
    expected = [1, 3 * r, -5 * r, -15 * r, 9, 25]
    np.testing.assert_allclose(kernel.feature_map([[3.0, -5.0]])[0], expected, rtol=1e-15)
    a = (np.full(4, 1 / 8) * y) @ kernel.feature_map(XOR)  # the machine that solves XOR
    np.testing.assert_allclose(a, [0, 0, 0, 1 / r, 0, 0], atol=1e-15)
    np.testing.assert_allclose(kernel.feature_map(X[:, :2]) @ a, X[:, 0] * X[:, 1], atol=1e-14)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 0.0), (1.0, 1.0), (0.3, 2.5)])
def test_feature_map_gives_the_kernel(p, d, gamma, coef0):
    kernel = Polynomial(p, gamma, coef0)
    A, B = X[:, :d], Z[:, :d]
    phi = kernel.feature_map(A)
    assert phi.shape == (40, math.comb(d + p, p) if coef0 else math.comb(d + p - 1, p))
    np.testing.assert_allclose(phi @ kernel.feature_map(B).T, kernel(A, B), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(kernel.feature_map(sp.csr_array(A)), phi)
    assert kernel.feature_map(A.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("kernel", "A", "message"),
    [
        (Polynomial(2, coef0=-1.0), X, "coef0 must be >= 0 for a real feature map, got -1.0"),
        (Polynomial(9, coef0=1.0), np.ones((10, 200)), str(10 * math.comb(209, 9))),
        (Polynomial(2), [[1e200]], "overflow"),
    ],
)
def test_feature_maps_that_are_refused(kernel, A, message):
    with pytest.raises(ValueError, match=message):
        kernel.feature_map(A)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(4), *COMPOSITIONS, *MIXED], ids=str)
@pytest.mark.parametrize("repeat", [1, 3])
def test_mercer_kernels_pass(kernel, repeat):
    report = mercer(kernel, np.tile(X, (repeat, 1)).astype(np.float32))
    assert report.positive_semidefinite, report
    assert report.n_samples == 40 * repeat


def test_mercer_finds_exact_eigenvalues():
    report = mercer(Polynomial(2, coef0=1.0), XOR)
    assert report.smallest_eigenvalue == pytest.approx(8, rel=1e-14)
    assert report.largest_eigenvalue == pytest.approx(12, rel=1e-14)
    lopsided = mercer(Precomputed(), [[2.0, 1.0], [0.0, 2.0]])
    assert (lopsided.asymmetry, lopsided.smallest_eigenvalue) == (1.0, pytest.approx(1.5))
    assert not lopsided.positive_semidefinite
    assert mercer(Precomputed(), [[0.0, 1.0], [1.0, 0.0]], tol=2.0).positive_semidefinite


@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(1.0, -1.0), Polynomial(2, coef0=-3.0), Custom(lambda A, B: A @ B.T + A[:, :1])],
)
def test_mercer_refutes(kernel):
    report = mercer(kernel, X)
    assert not report.positive_semidefinite
    assert "NOT" in str(report)


@pytest.mark.parametrize(("shape", "message"), [((2, 3), "square"), ((20_000, 1), "subset")])
def test_mercer_refuses(shape, message):
    with pytest.raises(ValueError, match=message):
        mercer(Precomputed(), np.ones(shape))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda A: A.astype(np.float32)])
def test_gamma_is_that_of_scikit_learn(form):
    A = form(np.where(np.abs(X) > 0.5, X, 0) + (0 if form is sp.csr_array else 3))
    theirs = SVC().fit(A, np.arange(40) % 2)._gamma
    assert resolve("rbf", X=A).gamma == pytest.approx(theirs, rel=1e-6)
    whole = dense(A).astype(float)
    assert resolve("rbf", X=A).gamma == pytest.approx(1 / (5 * whole.var()), rel=1e-13)
    assert resolve("poly", gamma="auto", X=A).gamma == 1 / 5
    assert resolve("rbf", X=np.ones((3, 2))).gamma == 1.0


def test_resolve_names():
    assert resolve("poly", gamma=2, degree=4, coef0=1) == Polynomial(4, 2.0, 1.0)
    assert resolve("sigmoid", gamma=0.5, coef0=-1) == Sigmoid(0.5, -1.0)
    assert resolve("rbf", sigma=3.0) == RBF(sigma=3.0)
    assert resolve(laplacian) == Custom(laplacian)
    kernel = RBF(0.5) + Linear()
    assert resolve(kernel) is kernel
    for name in KERNELS:
        assert isinstance(resolve(name, X=X), Kernel)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be 'linear', 'poly', 'rbf'.* got 'gauss'"),
        ({"kernel": None}, "got None"),
        ({"kernel": RBF}, "got <class"),
        ({"kernel": "rbf"}, "pass X"),
        ({"kernel": "rbf", "gamma": "big", "X": X}, "gamma must be .* got 'big'"),
        ({"kernel": "rbf", "gamma": 0}, "gamma must be > 0, got 0"),
        ({"kernel": "rbf", "gamma": 1.0, "sigma": 1.0}, "exactly one"),
        ({"kernel": "rbf", "gamma": None}, "exactly one"),
        ({"kernel": "poly", "sigma": 1.0}, 'unless kernel="rbf"'),
        ({"kernel": RBF(1.0), "sigma": 1.0}, 'unless kernel="rbf"'),
        ({"kernel": "rbf", "X": [[np.nan]]}, "remove NaN"),
        ({"kernel": "rbf", "X": [[1e200], [-1e200]]}, "rescale"),
        ({"kernel": "rbf", "X": np.empty((0, 2))}, "at least one"),
    ],
)
def test_resolve_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        resolve(**arguments)


@pytest.mark.parametrize("value", [-math.inf, math.nan, True, "1", [1.0]])
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda v: RBF(gamma=v), "gamma"),
        (lambda v: RBF(sigma=v), "sigma"),
        (lambda v: Polynomial(gamma=v), "gamma"),
        (lambda v: Polynomial(coef0=v), "coef0"),
        (lambda v: Sigmoid(gamma=v), "gamma"),
        (lambda v: Sigmoid(coef0=v), "coef0"),
        (lambda v: Scaled(v, Linear()), "factor"),
        (Polynomial, "degree"),
    ],
)
def test_bad_parameters_are_refused(build, name, value):
    with pytest.raises(ValueError, match=f"{name} must be .* got "):
        build(value)
    if name != "coef0":
        with pytest.raises(ValueError, match=f"{name} must be .* got 0"):
            build(0)


@pytest.mark.parametrize("kernel", [Linear(), RBF(1.0), Sigmoid()], ids=str)
@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), "X has 3 columns, Z has 4"),
        (np.ones(3), None, r"X has shape \(3,\).*reshape"),
        ([["a"]], None, "X has dtype"),
        ([[1.0], [np.nan]], None, r"X\[1, 0\]=nan"),
        ([[1.0]], [[0.0], [np.inf]], r"Z\[1, 0\]=inf"),
        ([[1.0]], sp.csr_array([[0.0], [np.inf]]), r"Z\[1, 0\]=inf"),
        ([[1e155], [-1e155]], None, r"X\[0\] overflows float64: rescale"),
        (np.float32([[1e30], [0], [0]]), np.float32([[1.0]]), r"X\[0\] overflows float32: resc"),
    ],
)
def test_bad_rows_are_refused(kernel, A, B, message):
    with pytest.raises(ValueError, match=message):
        kernel(A, B)


def test_overflow_of_the_formula_is_refused():
    for evaluate in (Polynomial(9), Polynomial(9).diagonal):
        with pytest.raises(ValueError, match=r"Polynomial.* is inf at .* in float64.*rescale"):
            evaluate([[1e40]])
    assert RBF(1.0)([[1e150], [-1e150]]).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(("n", "m"), [(0, 2), (2, 0), (0, 0)])
def test_no_rows(n, m):
    assert RBF(1.0)(np.ones((n, 3)), np.ones((m, 3))).shape == (n, m)


def test_precomputed():
    K = X @ X.T
    assert Precomputed()(K) is K
    assert np.array_equal(Precomputed()(K[:3], K), K[:3])
    assert np.array_equal(Precomputed()(sp.csr_array(K)), K)
    assert np.array_equal(Precomputed().diagonal(K), np.diag(K))
    for evaluate in (Precomputed(), Precomputed().diagonal):
        with pytest.raises(ValueError, match=r"shape \(3, 40\) for 3 training rows: .*square"):
            evaluate(K[:3])
    with pytest.raises(ValueError, match=r"is nan at \[0, 0\]"):
        Precomputed()([[np.nan]])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: A, r"returned shape \(40, 5\): return \(40, 30\)"),
        (lambda A, B: 1.0, r"returned shape \(\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), r"is nan at \[0, 0\]"),
        (lambda A, B: np.full((len(A), len(B)), -np.inf), "is -inf"),
        (lambda A, B: np.full((len(A), len(B)), "a"), "dtype"),
    ],
)
@pytest.mark.parametrize("wrap", [Custom, lambda f: Custom(f) + RBF(1.0)])
def test_custom_results_are_checked(function, message, wrap):
    with pytest.raises(ValueError, match=message):
        wrap(function)(X, Z)


def test_custom():
    assert repr(Custom(laplacian)) == "Custom(laplacian)"
    assert Custom(lambda A, B: sp.csr_array(A) @ sp.csr_array(B).T)(X, Z).shape == (40, 30)
    assert Custom(lambda A, B: (A @ B.T).astype(int))(X).dtype == np.float64
    assert Custom(lambda A, B: A @ B.T)(X.astype(np.float32)).dtype == np.float32


def test_squared_norms_are_summed_in_float64():
    A = X.astype(np.float32)
    for form in (A, sp.csr_array(A), A.tolist()):
        np.testing.assert_allclose(squared_norms(form), (A.astype(float) ** 2).sum(1), rtol=1e-14)


ARRAY_LIBRARIES = ["numpy", "array_api_strict", "torch"]


@pytest.mark.parametrize("library", ARRAY_LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(3, 0.5, 1.0), RBF(0.3), Sigmoid(0.1, 0.5), 2 * RBF(0.3) + Linear(),
     RBF(0.3) * Polynomial(2)],
    ids=str,
)  # fmt: skip
def test_formulas_take_arrays_of_any_library(kernel, dtype, library):
    module = pytest.importorskip(library)
    xp = array_api_compat.array_namespace(module.asarray(np.zeros(1)))
    A, B = X.astype(dtype), Z.astype(dtype)
    products = A @ B.T, (A**2).sum(axis=1), (B**2).sum(axis=1)
    expected = kernel.from_products(*(part.copy() for part in products))
    found = kernel.from_products(*(xp.asarray(part.copy()) for part in products))
    assert type(found) is type(xp.asarray(A))
    rounding = 64.0 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rounding, atol=rounding)
    bounds = kernel.rounding(products[1], products[2], np.ones(len(B), dtype), 5, 1e-7)
    others = (xp.asarray(part) for part in (*products[1:], np.ones(len(B), dtype)))
    np.testing.assert_allclose(np.asarray(kernel.rounding(*others, 5, 1e-7)), bounds, rtol=1e-5)


CLUSTERS = {
    "near": X,
    "far from 0": X + 1e7,
    "far apart": X + 1e6 * (np.arange(len(X)) % 2)[:, None],
}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("rows", CLUSTERS)
@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(3, 0.5, 1.0), RBF(0.3), Sigmoid(0.1, 0.5), 2 * RBF(0.3) + Linear(),
     RBF(0.3) * Polynomial(2)],
    ids=str,
)  # fmt: skip
def test_bounded_values_of_any_library_and_of_several_weights(kernel, rows, library):
    module = pytest.importorskip(library)
    xp = array_api_compat.array_namespace(module.asarray(np.zeros(1)))
    A = CLUSTERS[rows]
    B = A[::-1][:5].copy()
    weights = np.random.default_rng(0).random((5, 3))
    found = kernel.bounded(*(xp.asarray(part) for part in (A, B, weights)))
    assert all(type(part) is type(xp.asarray(A)) for part in found)
    K, errors, sizes = map(np.asarray, found)
    for k in range(3):
        expected, error, size = kernel.bounded(A, B, weights[:, k].copy())
        rounding = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=rounding)
        np.testing.assert_allclose(errors[:, k], error, rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(sizes[:, k], size, rtol=1e-9, atol=5 * rounding)
