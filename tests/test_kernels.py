"""Kernels against scikit-learn, explicit feature maps, Mercer's condition and bad input."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import tracemalloc

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
    Product,
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


def laplacian(A, B):
    return pairwise.laplacian_kernel(A, B, gamma=0.3)


REFERENCES = [
    (Linear(), pairwise.linear_kernel),
    (Polynomial(), lambda A, B: pairwise.polynomial_kernel(A, B, 3, 1.0, 0.0)),
    (Polynomial(1, 2.0, 1.0), lambda A, B: pairwise.polynomial_kernel(A, B, 1, 2.0, 1.0)),
    (Polynomial(6, 0.2, 1.5), lambda A, B: pairwise.polynomial_kernel(A, B, 6, 0.2, 1.5)),
    (RBF(gamma=0.4), lambda A, B: pairwise.rbf_kernel(A, B, 0.4)),
    (RBF(sigma=2.0), lambda A, B: pairwise.rbf_kernel(A, B, 0.125)),
    (Sigmoid(0.3, -0.2), lambda A, B: pairwise.sigmoid_kernel(A, B, 0.3, -0.2)),
]
COMPOSITIONS = [
    Linear() + RBF(0.5),
    Linear() * RBF(0.5) + 2 * Polynomial(2, coef0=1.0),
    3.0 * (RBF(0.1) + RBF(1.0) + Linear()),
    (RBF(0.1) + Polynomial(2)) * (Linear() + 0.5 * RBF(2.0)),
]
MIXED = [
    Custom(laplacian) + RBF(0.5),
    Custom(laplacian) * (RBF(0.5) + Linear()) + Linear(),
    2 * Custom(laplacian) * Custom(laplacian),
]
ELEMENTWISE = [kernel for kernel, _ in REFERENCES] + COMPOSITIONS


@pytest.mark.parametrize(("kernel", "reference"), REFERENCES, ids=str)
def test_equals_scikit_learn(kernel, reference):
    for A, B in ((X, Z), (X, None)):
        K = kernel(A, B)
        assert K.dtype == np.float64
        expected = reference(A, A if B is None else B)
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ELEMENTWISE, ids=str)
def test_float32_stays_float32(kernel):
    A, B = X.astype(np.float32), Z.astype(np.float32)
    for K, exact in ((kernel(A, B), kernel(X, Z)), (kernel(A), kernel(X))):
        assert K.dtype == np.float32
        np.testing.assert_allclose(K, exact, rtol=1e-3, atol=1e-5 * np.abs(exact).max())
    assert kernel(A, Z).dtype == np.float64
    assert kernel(X.round().astype(int)).dtype == np.float64
    dot = (A @ B.T).copy()
    value = kernel.from_products(dot, squared_norms(A), squared_norms(B))
    assert value.dtype == np.float32


@pytest.mark.parametrize("kernel", ELEMENTWISE + MIXED, ids=str)
def test_sparse_equals_dense(kernel):
    A, B = X * (np.abs(X) > 0.7), Z * (np.abs(Z) > 0.7)
    K = kernel(A, B)
    forms = [sp.csr_matrix, sp.csr_array, sp.csc_array]
    for form in forms:
        np.testing.assert_allclose(kernel(form(A), form(B)), K, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernel(sp.csr_array(A)), kernel(A), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(sp.csr_array(A)), np.diag(kernel(A)), rtol=1e-11)
    if kernel.elementwise:
        np.testing.assert_allclose(kernel(sp.csr_array(A), B), K, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(kernel(A, sp.csr_array(B)), K, rtol=1e-11, atol=1e-12)


def test_unusual_sparse_matrices():
    data, indices = np.array([1, 2, 0, 5, 4]), np.array([2, 2, 0, 1, 0], dtype=np.int64)
    odd = sp.csr_array((data, indices, np.array([0, 3, 5], dtype=np.int64)), shape=(2, 3))
    dense = np.array([[0, 0, 3], [4, 5, 0]])
    for kernel in (Linear(), RBF(0.1), Polynomial(2)):
        np.testing.assert_allclose(kernel(odd), kernel(dense), rtol=1e-14)
        np.testing.assert_allclose(kernel.diagonal(odd), kernel.diagonal(dense), rtol=1e-14)
    assert resolve("rbf", X=odd).gamma == pytest.approx(resolve("rbf", X=dense).gamma, rel=1e-14)
    assert odd.nnz == 5
    assert odd.dtype == data.dtype
    twice = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    assert Polynomial(2)(twice).tolist() == [[81.0]]
    assert twice.nnz == 2


@pytest.mark.parametrize("kernel", ELEMENTWISE + MIXED, ids=str)
def test_diagonal(kernel):
    diagonal = kernel.diagonal(X.astype(np.float32))
    assert diagonal.shape == (40,)
    assert diagonal.dtype == np.float64
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel(X)), rtol=1e-12)


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
    A = X + 1e8
    np.testing.assert_allclose(RBF(0.1)(A[:9], A), RBF(0.1)(A)[:9], rtol=1e-12)


def test_rbf_with_an_outlier_keeps_the_rest_exact():
    A = np.vstack([X, np.full(5, 1e9)])
    np.testing.assert_allclose(RBF(0.1)(A)[:40, :40], RBF(0.1)(X), rtol=1e-12)


def test_from_products_works_in_place():
    for kernel in (Linear(), Polynomial(3), RBF(0.5), Sigmoid(), 2 * RBF(1.0), *COMPOSITIONS):
        dot = X @ Z.T
        K = kernel.from_products(dot, squared_norms(X), squared_norms(Z))
        assert K is dot
        np.testing.assert_allclose(K, kernel(X, Z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ELEMENTWISE, ids=str)
def test_from_products_takes_batches(kernel):
    dot = np.stack([X @ Z.T, -X @ Z.T])
    x_sq, z_sq = (np.stack([squared_norms(A)] * 2) for A in (X, Z))
    K = kernel.from_products(dot, x_sq, z_sq)
    np.testing.assert_allclose(K, [kernel(X, Z), kernel(X, -Z)], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", ELEMENTWISE + MIXED, ids=str)
def test_input_is_not_changed(kernel):
    A, B = X.copy(), sp.csr_array(Z)
    kernel(A), kernel.diagonal(A)
    if kernel.elementwise:
        kernel(A, B)
    assert np.array_equal(A, X)
    assert np.array_equal(B.toarray(), Z)


def test_gram_takes_one_buffer():
    A = RNG.normal(size=(2000, 3)).astype(np.float32)
    for kernel in (RBF(0.5), Polynomial(3), COMPOSITIONS[1]):
        tracemalloc.start()
        K = kernel(A)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.5 * K.nbytes


# Values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [*ELEMENTWISE, *MIXED, Precomputed(), Custom(laplacian)], ids=str
)
def test_kernels_are_values(kernel):
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), clone(kernel)):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
        assert repr(twin) == repr(kernel)
    with pytest.raises(AttributeError):
        kernel.gamma = 1.0


@pytest.mark.parametrize("kernel", ELEMENTWISE, ids=str)
def test_repr_is_code(kernel):
    assert eval(repr(kernel), vars(kernels)) == kernel


def test_parameters_are_normalised():
    assert repr(RBF(gamma=np.float64(0.5))) == "RBF(gamma=0.5)"
    assert Polynomial(np.int64(2), 1) == Polynomial(2, 1.0)
    assert Polynomial(2) != Polynomial(3)
    assert RBF(1.0) != Linear()
    assert len({RBF(0.5), RBF(sigma=1.0), Linear(), Linear()}) == 2


def test_clone_of_an_estimator_that_holds_a_kernel():
    class Machine(BaseEstimator):
        def __init__(self, kernel=None):
            self.kernel = kernel

    assert clone(Machine(Linear() + RBF(1.0))).kernel == Linear() + RBF(1.0)


def test_scikit_learn_accepts_kernels_as_callables():
    y = np.where(X[:, 0] > 0, 1, -1)
    ours, theirs = SVC(kernel=RBF(0.5)).fit(X, y), SVC(gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(Z), theirs.decision_function(Z), atol=1e-6)


@pytest.mark.parametrize("sigma", [1e-3, 0.5, 2.0, 70.0])
def test_both_spellings_of_the_gaussian(sigma):
    kernel = RBF(sigma=sigma)
    assert kernel.gamma == pytest.approx(1 / (2 * sigma**2), rel=1e-15)
    assert kernel.sigma == pytest.approx(sigma, rel=1e-15)
    assert RBF(gamma=kernel.gamma) == kernel


# Compositions ---------------------------------------------------------------------------------


def test_compositions_are_the_elementwise_operations():
    a, b, c = Linear(), RBF(0.5), Polynomial(2, coef0=1.0)
    np.testing.assert_allclose((a + b + c)(X, Z), a(X, Z) + b(X, Z) + c(X, Z), rtol=1e-12)
    np.testing.assert_allclose((a * b * c)(X, Z), a(X, Z) * b(X, Z) * c(X, Z), rtol=1e-11)
    np.testing.assert_allclose((3 * b)(X, Z), 3 * b(X, Z), rtol=1e-14)
    lap = Custom(laplacian)
    np.testing.assert_allclose((lap * b + a)(X, Z), lap(X, Z) * b(X, Z) + a(X, Z), rtol=1e-12)
    np.testing.assert_allclose((Precomputed() + 2 * Precomputed())(X), 3 * X, rtol=1e-15)


def test_compositions_flatten():
    a, b, c = Linear(), RBF(0.5), Polynomial(2)
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    assert 2 * (b * 3) == Scaled(6.0, b)
    assert np.float64(2) * b == b * np.int64(2) == 2 * b


@pytest.mark.parametrize("kernel", COMPOSITIONS + MIXED, ids=str)
def test_compositions_are_positive_semidefinite(kernel):
    report = mercer(kernel, X)
    assert report.positive_semidefinite, report


@pytest.mark.parametrize("kernel", COMPOSITIONS + MIXED[:2], ids=str)
def test_one_matrix_product_serves_all_parts(kernel, monkeypatch):
    calls = []
    product = kernels._inner_products
    monkeypatch.setattr(kernels, "_inner_products", lambda *a: calls.append(1) or product(*a))
    kernel(X, Z)
    assert len(calls) == 1


def test_which_kernels_are_elementwise():
    assert all(kernel.elementwise for kernel in ELEMENTWISE)
    assert not any(kernel.elementwise for kernel in [*MIXED, Precomputed(), Custom(laplacian)])
    for kernel in (Precomputed(), Custom(laplacian)):
        with pytest.raises(TypeError, match="call it on the rows"):
            kernel.from_products(X @ Z.T, squared_norms(X), squared_norms(Z))


def test_which_kernels_are_shift_invariant():
    for kernel in ELEMENTWISE:
        moved = np.allclose(kernel(X + 1, Z + 1), kernel(X, Z))
        assert kernel.shift_invariant == moved
    assert (2 * RBF(1.0) + RBF(2.0) * RBF(3.0)).shift_invariant


@pytest.mark.parametrize(
    "operation",
    [
        lambda: RBF(1.0) + 1,
        lambda: 1.0 + RBF(1.0),
        lambda: RBF(1.0) * "2",
        lambda: np.ones(3) * RBF(1.0),
        lambda: RBF(1.0) - RBF(2.0),
    ],
)
def test_what_is_no_kernel_is_a_type_error(operation):
    with pytest.raises(TypeError):
        operation()


@pytest.mark.parametrize("factor", [0, -1, math.nan, math.inf, True, np.float64(-2)])
def test_multipliers_must_be_positive(factor):
    with pytest.raises(ValueError, match="factor="):
        factor * Linear()


# Feature maps ---------------------------------------------------------------------------------


def test_feature_map_of_the_textbook():
    kernel, r = Polynomial(2, coef0=1.0), math.sqrt(2)
    assert kernel.monomials(2) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)]
    a, b = 3.0, -5.0
    expected = [1, r * a, r * b, r * a * b, a * a, b * b]
    np.testing.assert_allclose(kernel.feature_map([[a, b]])[0], expected, rtol=1e-15)


def test_xor_in_feature_space():
    kernel, y = Polynomial(2, coef0=1.0), np.array([1, -1, 1, -1])
    a = (np.full(4, 1 / 8) * y) @ kernel.feature_map(XOR)
    np.testing.assert_allclose(a, [0, 0, 0, 1 / math.sqrt(2), 0, 0], atol=1e-15)
    assert 1 / np.linalg.norm(a) == pytest.approx(math.sqrt(2), rel=1e-14)
    assert 0.5 - 0.5 * a @ a == pytest.approx(1 / 4, rel=1e-14)
    np.testing.assert_allclose(kernel.feature_map(X[:, :2]) @ a, X[:, 0] * X[:, 1], atol=1e-14)
    K = kernel(XOR)
    assert K.tolist() == [[9, 1, 1, 1], [1, 9, 1, 1], [1, 1, 9, 1], [1, 1, 1, 9]]


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 0.0), (1.0, 1.0), (0.3, 2.5)])
def test_feature_map_gives_the_kernel(p, d, gamma, coef0):
    kernel = Polynomial(p, gamma, coef0)
    A, B = X[:, :d], Z[:, :d]
    phi, psi = kernel.feature_map(A), kernel.feature_map(B)
    exponents = kernel.monomials(d)
    count = math.comb(d + p, p) if coef0 else math.comb(d + p - 1, p)
    assert phi.shape == (40, count)
    assert len(exponents) == len(set(exponents)) == count
    degrees = [sum(k) for k in exponents]
    assert degrees == sorted(degrees)
    assert min(degrees) == (0 if coef0 else p)
    np.testing.assert_allclose(phi @ psi.T, kernel(A, B), rtol=1e-11, atol=1e-11)
    monomials = np.array([[np.prod(row**k) for k in np.array(exponents)] for row in A])
    ratio = phi / monomials  # every coordinate is a constant times its monomial
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-9)


def test_feature_map_input():
    kernel = Polynomial(2, coef0=1.0)
    assert kernel.feature_map(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(kernel.feature_map(sp.csr_array(X)), kernel.feature_map(X))
    assert Linear().feature_map(X) is X
    with pytest.raises(ValueError, match=r"coef0=-1.0 < 0 has no real feature map"):
        Polynomial(2, coef0=-1.0).feature_map(X)
    with pytest.raises(ValueError, match=str(10 * math.comb(209, 9))):
        Polynomial(9, coef0=1.0).feature_map(np.ones((10, 200)))
    with pytest.raises(ValueError, match="more than 10000000"):
        Polynomial(9).monomials(1000)
    with pytest.raises(ValueError, match="d=0"):
        kernel.monomials(0)
    with pytest.raises(ValueError, match="overflows"):
        kernel.feature_map([[1e200]])
    with pytest.raises(ValueError, match="overflows"):
        Polynomial(1100, coef0=1.0).feature_map([[1.0]])


# Mercer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Linear(), RBF(0.5), Polynomial(4), Polynomial(2, 1, 1)], ids=str
)
@pytest.mark.parametrize("repeat", [1, 3])
def test_mercer_kernels_pass(kernel, repeat):
    report = mercer(kernel, np.tile(X, (repeat, 1)).astype(np.float32))
    assert report.positive_semidefinite
    assert report.n_samples == 40 * repeat
    assert str(report).startswith("positive semidefinite on ")


def test_mercer_finds_exact_eigenvalues():
    report = mercer(Polynomial(2, coef0=1.0), XOR)
    assert report.smallest_eigenvalue == pytest.approx(8, rel=1e-14)
    assert report.largest_eigenvalue == pytest.approx(12, rel=1e-14)
    assert report.asymmetry == 0


def test_mercer_refutes():
    sigmoid = mercer(Sigmoid(1.0, -1.0), X)
    assert not sigmoid.positive_semidefinite
    assert sigmoid.smallest_eigenvalue < -0.1
    assert "NOT" in str(sigmoid)
    assert not mercer(Polynomial(2, coef0=-3.0), X).positive_semidefinite
    skew = mercer(Custom(lambda A, B: A @ B.T + A[:, :1]), X)
    assert skew.asymmetry > 0.1
    assert not skew.positive_semidefinite
    lopsided = mercer(Precomputed(), [[2.0, 1.0], [0.0, 2.0]])
    assert (lopsided.asymmetry, lopsided.smallest_eigenvalue) == (1.0, pytest.approx(1.5))
    assert not lopsided.positive_semidefinite
    assert not mercer(Precomputed(), [[0.0, 1.0], [1.0, 0.0]]).positive_semidefinite
    assert mercer(Precomputed(), [[0.0, 1.0], [1.0, 0.0]], tol=2.0).positive_semidefinite
    with pytest.raises(ValueError, match="square"):
        mercer(Precomputed(), np.ones((2, 3)))
    with pytest.raises(ValueError, match="subset of between 1 and 16384 rows"):
        mercer(Linear(), np.ones((20_000, 1)))
    with pytest.raises(ValueError, match="X has 0 rows"):
        mercer(Linear(), np.ones((0, 1)))


# resolve --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda A: A.astype(np.float32)])
def test_gamma_scale_is_that_of_scikit_learn(form):
    A = form(np.where(np.abs(X) > 0.5, X, 0) + (0 if form is sp.csr_array else 3))
    y = np.arange(40) % 2
    assert resolve("rbf", X=A).gamma == pytest.approx(SVC().fit(A, y)._gamma, rel=1e-6)
    dense = A.toarray() if sp.issparse(A) else A.astype(float)
    assert resolve("rbf", X=A).gamma == pytest.approx(1 / (5 * dense.var()), rel=1e-13)
    assert resolve("poly", gamma="auto", X=A).gamma == 1 / 5


def test_gamma_scale_makes_no_copy():
    A = np.ones((200_000, 20), dtype=np.float32)
    A[::2] = 0
    tracemalloc.start()
    kernel = resolve("rbf", X=A)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kernel.gamma == pytest.approx(1 / (20 * 0.25))
    assert peak < A.nbytes


def test_resolve_names():
    assert resolve("linear") == Linear()
    assert resolve("poly", gamma=2, degree=4, coef0=1) == Polynomial(4, 2.0, 1.0)
    assert resolve("sigmoid", gamma=0.5, coef0=-1) == Sigmoid(0.5, -1.0)
    assert resolve("rbf", sigma=3.0) == RBF(sigma=3.0)
    assert resolve("precomputed") == Precomputed()
    assert resolve(laplacian) == Custom(laplacian)
    kernel = RBF(0.5) + Linear()
    assert resolve(kernel) is kernel
    assert resolve("rbf", X=np.ones((3, 2))).gamma == 1.0
    for name in KERNELS:
        assert isinstance(resolve(name, X=X), Kernel)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "gauss"}, "'gauss' is unknown: pass 'linear', 'poly', 'rbf'"),
        ({"kernel": None}, "kernel=None"),
        ({"kernel": RBF}, "kernel=<class"),
        ({"kernel": "rbf"}, "pass X"),
        ({"kernel": "rbf", "gamma": "big", "X": X}, "gamma='big'"),
        ({"kernel": "rbf", "gamma": 0}, "gamma=0"),
        ({"kernel": "rbf", "gamma": None}, "exactly one"),
        ({"kernel": "rbf", "gamma": 1.0, "sigma": 1.0}, "only one of the two"),
        ({"kernel": "poly", "sigma": 1.0}, 'kernel="rbf" only'),
        ({"kernel": RBF(1.0), "sigma": 1.0}, 'kernel="rbf" only'),
        ({"kernel": "rbf", "sigma": -1}, "sigma=-1"),
        ({"kernel": "poly", "gamma": 1.0, "degree": 2.5}, "degree=2.5"),
        ({"kernel": "rbf", "X": [[np.nan]]}, "NaN"),
        ({"kernel": "rbf", "X": [[1e200], [-1e200]]}, "too large"),
        ({"kernel": "rbf", "X": np.empty((0, 2))}, "no rows"),
    ],
)
def test_resolve_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        resolve(**arguments)


# Bad parameters and data ----------------------------------------------------------------------

NOT_POSITIVE = [0, -1, math.nan, math.inf, True, "1", None, [1.0], 10**400]


@pytest.mark.parametrize(
    ("build", "name", "value"),
    [
        *itertools.product([lambda v: RBF(gamma=v)], ["gamma"], NOT_POSITIVE),
        *itertools.product([lambda v: RBF(sigma=v)], ["sigma"], [*NOT_POSITIVE, 1e-200, 1e200]),
        *itertools.product([lambda v: Polynomial(gamma=v)], ["gamma"], NOT_POSITIVE),
        *itertools.product([lambda v: Sigmoid(gamma=v)], ["gamma"], NOT_POSITIVE),
        *itertools.product([lambda v: Polynomial(coef0=v)], ["coef0"], NOT_POSITIVE[2:]),
        *itertools.product([lambda v: Sigmoid(coef0=v)], ["coef0"], NOT_POSITIVE[2:]),
        *itertools.product([Polynomial], ["degree"], [0, -1, 2.0, True, "2", None, math.nan]),
        *itertools.product([Custom], ["function"], [None, 1, "f", RBF]),
        *itertools.product([lambda v: Scaled(2.0, v)], ["kernel"], [None, 1.0]),
        *itertools.product([Sum, Product], ["parts"], [(), (Linear(), 1.0)]),
    ],
)
def test_bad_parameters_are_refused(build, name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        build(value)


def test_rbf_takes_exactly_one_parameter():
    with pytest.raises(ValueError, match="exactly one"):
        RBF()
    with pytest.raises(ValueError, match="exactly one"):
        RBF(gamma=1.0, sigma=1.0)


@pytest.mark.parametrize("kernel", [Linear(), RBF(1.0), Polynomial(2), Sigmoid()], ids=str)
@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), "X has 3 columns, Z has 4"),
        (np.ones(3), None, r"X has shape \(3,\).*reshape"),
        (np.ones((2, 0)), None, r"X has shape \(2, 0\)"),
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
    with pytest.raises(ValueError, match=r"Polynomial.*overflows float64.*rescale"):
        Polynomial(9)([[1e40]])
    with pytest.raises(ValueError, match=r"Polynomial.*overflows float64.*rescale"):
        Polynomial(9).diagonal([[1e40]])
    assert RBF(1.0)([[1e150], [-1e150]]).tolist() == [[1, 0], [0, 1]]


def test_no_rows():
    assert RBF(1.0)(np.empty((0, 3)), np.ones((2, 3))).shape == (0, 2)
    assert RBF(1.0)(np.ones((2, 3)), np.empty((0, 3))).shape == (2, 0)
    assert RBF(1.0)(np.empty((0, 3))).shape == (0, 0)


def test_precomputed():
    K = X @ X.T
    assert Precomputed()(K) is K
    assert np.array_equal(Precomputed()(K[:3], K), K[:3])
    assert np.array_equal(Precomputed()(sp.csr_array(K)), K)
    assert np.array_equal(Precomputed().diagonal(K), np.diag(K))
    with pytest.raises(ValueError, match="39 columns for 40 training rows"):
        Precomputed()(K[:3, :39], K)
    with pytest.raises(ValueError, match=r"shape \(40,\)"):
        Precomputed()(K[0])
    with pytest.raises(ValueError, match=r"shape \(3, 40\): pass the square"):
        Precomputed().diagonal(K[:3])
    with pytest.raises(ValueError, match="NaN or inf"):
        Precomputed()([[np.nan]])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: A, r"returned shape \(40, 5\) for X of shape \(40, 5\) and Z of shape"),
        (lambda A, B: (A @ B.T).T, r"return \(40, 30\)"),
        (lambda A, B: 1.0, r"returned shape \(\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), r"returned nan at \[0, 0\]"),
        (lambda A, B: np.full((len(A), len(B)), -np.inf), "returned -inf"),
        (lambda A, B: np.full((len(A), len(B)), "a"), "returned dtype"),
    ],
)
@pytest.mark.parametrize("wrap", [Custom, lambda f: Custom(f) + RBF(1.0)])
def test_custom_results_are_checked(function, message, wrap):
    with pytest.raises(ValueError, match=message):
        wrap(function)(X, Z)


def test_custom():
    kernel = Custom(laplacian)
    np.testing.assert_array_equal(kernel(X, Z), laplacian(X, Z))
    assert repr(kernel) == "Custom(laplacian)"
    assert Custom(lambda A, B: sp.csr_array(A) @ sp.csr_array(B).T)(X, Z).shape == (40, 30)
    assert Custom(lambda A, B: (A @ B.T).astype(int))(X).dtype == np.float64
    assert Custom(lambda A, B: A @ B.T)(X.astype(np.float32)).dtype == np.float32


def test_squared_norms():
    A = X.astype(np.float32)
    exact = (A.astype(float) ** 2).sum(axis=1)
    for form in (A, sp.csr_array(A), A.tolist()):
        norms = squared_norms(form)
        assert norms.dtype == np.float64
        np.testing.assert_allclose(norms, exact, rtol=1e-14)
