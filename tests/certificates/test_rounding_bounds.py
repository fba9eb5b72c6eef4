"""Bounds of rounding errors: of kernel values, products with K, scores and certificates."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.certificates.compensated import Doubled, combine, product
from maxmargin.certificates.scores import kernel_scores
from maxmargin.engines.cpu.far_rows import FarRows
from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF, Linear, Polynomial, Sigmoid
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution

from ..helpers.exact_kernels import exact_value, fractions

RNG = np.random.default_rng(0)
ROWS = {
    "normal": RNG.normal(size=(24, 3)),
    "offset": RNG.normal(size=(24, 3)) + 1e7,
    "outliers": np.vstack([RNG.normal(size=(20, 3)), 1e6 + RNG.normal(size=(4, 3))]),
    "heavy tails": 100.0 * RNG.standard_cauchy(size=(24, 3)),
    "scales": RNG.normal(size=(24, 3)) * [1e-8, 1.0, 1e8],
}
KERNELS = [
    Linear(),
    Polynomial(3, coef0=1.0),
    RBF(1.0),
    RBF(1e-5),
    2.0 * RBF(1.0) + Linear(),
    RBF(0.5) * Polynomial(2, coef0=1.0),
]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_bounds_of_kernel_values(kernel, rows, kind):
    X, weights = ROWS[rows], np.random.default_rng(1).uniform(size=12)
    K, bound, size = kernel.bounded(kind(X), kind(X[:12]), weights)
    x = fractions(X)
    for i in range(len(X)):
        true = [exact_value(kernel, x[i], z) for z in x[:12]]
        wrong = sum(
            Fraction(float(w)) * abs(Fraction(float(k)) - t)
            for w, k, t in zip(weights, K[i], true, strict=True)
        )
        assert float(wrong) <= bound[i]
    np.testing.assert_allclose(size, np.abs(K) @ weights, rtol=1e-12)


def test_a_kernel_that_gives_no_bound_is_not_trusted():
    assert np.isinf(Sigmoid().rounding(np.ones(2), np.ones(2), np.ones(2), 3, 1e-16)).sum() == 0

    class Unknown(RBF):
        rounding = mm.kernels.Kernel.rounding

    assert np.isinf(Unknown(1.0).rounding(np.ones(2), np.ones(2), np.ones(2), 3, 1e-16)).all()


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e7])
def test_dense_and_sparse_distances_agree(offset):
    X = np.random.default_rng(2).normal(size=(50, 4)) + offset
    for kernel in (RBF(1.0), RBF(1.0) + RBF(0.1), 2.0 * RBF(1.0) * RBF(0.5)):
        dense, thin = kernel(X), kernel(sparse.csr_matrix(X))
        np.testing.assert_allclose(dense, thin, atol=1e-12)
        moved = kernel((X - X[0]) + 0.0)
        np.testing.assert_allclose(dense, moved, atol=1e-8 if offset else 1e-12)


def test_twice_the_digits():
    rng = np.random.default_rng(3)
    X, c = 1e8 + rng.normal(size=(30, 5)), rng.normal(size=30)
    w = combine(Doubled.zeros(5), X, c)
    scores = product(X, w, -3.7e16)
    exact = fractions(X)
    coefficients = [Fraction(float(v)) for v in c]
    plane = [sum(k * x[j] for k, x in zip(coefficients, exact, strict=True)) for j in range(5)]
    true = [
        float(sum(a * b for a, b in zip(x, plane, strict=True)) + Fraction(-3.7e16)) for x in exact
    ]
    np.testing.assert_allclose(scores, true, rtol=1e-13)


@pytest.mark.parametrize("offset", [0.0, 4e6, 1e8])
def test_scores_of_a_linear_kernel_are_those_of_exact_arithmetic(offset):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 3)) + offset, np.where(rng.normal(size=30) > 0, 1.0, -1.0)
    problem = DualProblem.hinge(Linear(), X, y, 1.0)
    beta = rng.normal(size=30)
    beta -= beta.mean()
    b = -float(beta @ X @ X[0])
    scores, errors = kernel_scores(problem, beta, b=b)
    x, c = fractions(X), [Fraction(float(v)) for v in beta]
    plane = [sum(k * row[j] for k, row in zip(c, x, strict=True)) for j in range(3)]
    for i, row in enumerate(x):
        true = sum(a * v for a, v in zip(row, plane, strict=True)) + Fraction(b)
        assert abs(float(Fraction(float(scores[i])) - true)) <= errors[i]
        assert errors[i] < 1e-6


# The engine ---------------------------------------------------------------------------------------


def outlying(n, d, far, distance, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.choice(n, far, replace=False)] = distance + 0.7 * rng.normal(size=(far, d))
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", [10.0, 2e3, 1e6])
@pytest.mark.parametrize(
    "kernel", [RBF(1.0), RBF(0.01), Polynomial(2, coef0=1.0), Linear()], ids=str
)
def test_bounds_of_products_with_K(dtype, distance, kernel):
    X = outlying(1500, 5, 6, distance)
    gram = Gram(kernel, X, dtype=dtype)
    rows = np.sort(np.random.default_rng(1).choice(1500, 300, replace=False))
    v = np.random.default_rng(2).normal(size=300)
    exact, _, _ = kernel.bounded(X, X[rows], np.abs(v))
    for keep in (None, np.ones(300, dtype=bool)):  # computed, then kept
        error = np.zeros(1500)
        wrong = np.abs(gram.dot(rows, v, keep, error=error) - exact @ v)
        assert (wrong <= error).all()
    some = np.arange(0, 1500, 7)
    wrong = np.abs(gram.product(some, rows, v) - (exact @ v)[some])
    assert (wrong <= gram.bound(some, rows, v)).all()


def test_outliers_alone_are_computed_in_float64():
    X = outlying(2000, 5, 6, 2e3)
    gram = Gram(RBF(1.0), X, dtype=np.float32)
    assert isinstance(gram.values, FarRows)
    far = np.flatnonzero(np.linalg.norm(X, axis=1) > 100.0)
    np.testing.assert_allclose(gram.block(far, far), RBF(1.0)(X[far]), atol=1e-6)
    np.testing.assert_allclose(gram.whole()[np.ix_(far, far)], RBF(1.0)(X[far]), atol=1e-6)
    relative = gram.values.relative
    assert relative is not None
    assert relative.max() < 1e-4
    assert not isinstance(Gram(RBF(1.0), outlying(2000, 5, 0, 0.0)).values, FarRows)


# Certificates -------------------------------------------------------------------------------------


def all_scores(model, X):
    """Recompute g(x) of every row from differences of rows."""
    vectors, beta, g = X[model.support_], model.dual_coef_[0], np.empty(len(X))
    for i, x in enumerate(X):
        squares = np.square(vectors - x).sum(axis=1)
        g[i] = np.exp(-model.kernel_.gamma * squares) @ beta
    return g + model.intercept_[0]


def worst_violation(model, X, y, upper):
    margins = np.where(y == model.classes_[1], 1.0, -1.0) * all_scores(model, X)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    below, above = alpha < upper * (1 - 1e-14), alpha > 0
    return max(np.where(below, 1 - margins, 0).max(), np.where(above, margins - 1, 0).max())


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
@pytest.mark.parametrize("case", ["cluster", "tails", "offset"])
def test_certificates_of_large_fits_hold_for_every_row(seed, case):
    """float32 errors that sit in few rows were not seen by a sample of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4500, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=4500) > 0, 1, -1)
    if case == "cluster":
        far = rng.choice(4500, 6, replace=False)
        X[far] = 10.0 ** rng.uniform(2, 5) + 0.7 * rng.normal(size=(6, 4))
        y[far] = [1, 1, 1, -1, -1, -1]
    elif case == "tails":
        X *= rng.standard_cauchy(size=(4500, 1))
    else:
        X += 10.0 ** rng.uniform(4, 8)
    model = mm.SVC(gamma=1.0, C=2.0).fit(X, y)
    certificate = model.certificate_
    assert certificate.coverage in ("complete", "bounded")
    assert model.status_ is mm.Status.CONVERGED
    assert certificate.holds(1e-3)
    true = worst_violation(model, X, y, 2.0)
    assert true <= certificate.violation + certificate.rounding + 1e-9
    again = mm.certify(posed(model, X, y), solution_of(model, X, y))
    assert again.coverage == "complete"
    assert again.relative_gap <= certificate.relative_gap * (1 + 1e-6) + 1e-9


def posed(model, X, y):
    return DualProblem.hinge(
        model.kernel_, X, np.where(y == model.classes_[1], 1.0, -1.0), float(model.C)
    )


def solution_of(model, X, y):
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return Solution(np.empty((0, 0)), model.intercept_, mm.Status.CONVERGED, alpha=alpha)


def test_what_a_certificate_says_of_its_coverage():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    complete = mm.SVC(kernel="linear").fit(X, y).certificate_
    assert (complete.coverage, complete.n_checked, complete.n_samples) == ("complete", 6, 6)
    assert "recomputed" not in str(complete)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.where(X[:, 0] + rng.normal(size=5000) > 0, 1, -1)
    bounded = mm.SVC().fit(X, y).certificate_
    assert bounded.coverage == "bounded"
    assert f"{bounded.n_checked} of 5000 scores recomputed, the others bounded" in str(bounded)


def claims_of(seed=0):
    """A problem, its solution and the true scores with bounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=1500) > 0, 1, -1)
    model = mm.SVC(gamma=1.0).fit(X, y)
    problem, solution = posed(model, X, y), solution_of(model, X, y)
    scores, errors = kernel_scores(problem, solution.alpha * problem.signs)
    return problem, solution, scores, errors


def test_bounds_that_a_sample_refutes_are_not_believed():
    problem, solution, scores, errors = claims_of()
    honest = replace(solution, scores=scores, score_bounds=errors + 1e-9)
    assert mm.certify(problem, honest, sample=200).coverage == "bounded"
    lies = scores + 0.5
    wrong = replace(solution, scores=lies, score_bounds=errors + 1e-9)
    assert mm.certify(problem, wrong, sample=200).coverage == "complete"


def test_scores_without_bounds_prove_nothing():
    problem, solution, scores, _ = claims_of()
    sampled = mm.certify(problem, replace(solution, scores=scores), sample=64)
    assert sampled.coverage == "sampled"
    assert not sampled.holds(0.1)
    assert "not proved" in str(sampled)
    assert "optimal" not in str(sampled).replace("not optimal", "")


def test_wide_bounds_are_recomputed_or_make_wide_claims():
    problem, solution, scores, _ = claims_of()
    coarse = replace(solution, scores=scores, score_bounds=np.full(scores.size, 1e-2))
    narrow = mm.certify(problem, coarse, sample=64)
    assert narrow.holds(1e-3)
    assert narrow.n_checked > 64
    wide = mm.certify(problem, coarse, sample=64, at_most=64)
    assert wide.coverage == "bounded"
    assert wide.n_checked == 64
    assert wide.violation + wide.rounding >= 1e-2
    assert not wide.holds(1e-3)


def test_the_gap_is_part_of_the_promise():
    certificate = mm.certificates.dual.MarginCertificate(2.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0)
    assert not certificate.holds(0.1)
    assert certificate.holds(0.25)
    assert str(certificate).startswith("not optimal: relative gap of 5.0e-01")


def test_costs_times_rounding_count():
    """y g(x) = 1 to the last digit, but a unit of slack costs 10¹²."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 2))
    y = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    X += 0.3 * y[:, None] * [1.0, 2.0]
    weights = np.where(np.arange(20) % 2, 1e12, 1.0)
    problem = DualProblem.hinge(RBF(0.5), X, y, weights)
    model = mm.SVC(gamma=0.5, C=np.inf).fit(X, y)
    alpha = np.zeros(20)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    solution = Solution(np.empty((0, 0)), model.intercept_, mm.Status.CONVERGED, alpha=alpha)
    certificate = mm.certify(problem, solution)
    assert certificate.gap >= certificate.rounding
    assert certificate.relative_gap > 1e-8
