"""Exact arithmetic on float64 numbers, against fractions; certificates that rest on it."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import maxmargin as mm
from maxmargin.certificates.compensated import compensated_dot, exact_dot
from maxmargin.certificates.exact import (
    Deadline,
    exact_multipliers,
    independent,
    integer_columns,
    solve_integers,
)
from maxmargin.certificates.exact_kernels import exact_gram
from maxmargin.data.normalised_samples import SignedSamples
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import SeparationProblem
from maxmargin.solution import Solution, Status
from maxmargin.solvers.middle_bias import middle_bias
from maxmargin.solvers.separating.duplicates import contradicting_rows

seeds = st.integers(0, 2**32 - 1)
LONG = Deadline(np.inf)


def fractions(values):
    return [Fraction(v) for v in np.ravel(values).tolist()]


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(1, 40))
def test_compensated_products_are_within_their_bounds(seed, d):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, d)) * 10.0 ** rng.uniform(-8, 8, size=(6, d))
    v = rng.normal(size=d) * 10.0 ** rng.uniform(-8, 8, size=d)
    rows[:, -1] = -(rows[:, :-1] @ v[:-1]) / v[-1]  # cancels
    value, bound = compensated_dot(rows, v)
    for k in range(6):
        exact = sum((a * b for a, b in zip(fractions(rows[k]), fractions(v), strict=True)), 0)
        assert exact_dot(rows[k], v) == exact
        assert abs(Fraction(value[k]) - exact) <= Fraction(bound[k])
    assert bound.max() <= 1e-12 * np.abs(rows * v).sum(axis=1).max() + 1e-300


def test_products_that_would_overflow_have_no_bound():
    value, bound = compensated_dot(np.full((1, 2), 1e300), np.array([1.0, -1.0]))
    assert np.isinf(bound).all()
    assert np.isfinite(value).all()


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_columns_become_integers(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, 3)) * 10.0 ** rng.integers(-20, 20, size=(5, 3))
    rows[rng.random(rows.shape) < 0.3] = 0.0
    whole = integer_columns(rows)
    for column, given_ in zip(whole.T, rows.T, strict=True):
        ratios = {a / b for a, b in zip(column, fractions(given_), strict=True) if b}
        assert len(ratios) <= 1  # one power of two
        assert [a == 0 for a in column] == [b == 0 for b in given_]


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 12), st.booleans())
def test_systems_are_solved_exactly(seed, n, whole):
    rng = np.random.default_rng(seed)
    A = rng.integers(-9, 10, size=(n, n)).astype(float) if whole else rng.normal(size=(n, n))
    A = integer_columns(A)
    if len(independent((A % (2**31 - 1)).astype(np.int64), LONG)[0]) < n:
        return
    b = np.array(rng.integers(-(2**40), 2**40, size=n).tolist(), dtype=object)
    x, q = solve_integers(A, b, LONG)
    assert q > 0
    assert not (A @ x - q * b).any()


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(2, 12), st.integers(1, 8))
def test_independent_rows_and_columns(seed, n, d):
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, size=(n, 3)) @ rng.integers(-3, 4, size=(3, d))
    rows, columns = independent(A % (2**31 - 1), LONG)
    assert rows.size == columns.size == np.linalg.matrix_rank(A)
    if rows.size:
        assert np.linalg.matrix_rank(A[np.ix_(rows, columns)]) == rows.size


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 15), st.booleans())
def test_exact_multipliers_solve_the_equations(seed, d, whole):
    """d + 1 rows in d dimensions, and dependent columns besides."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(d + 1, d))
    rows = np.round(10 * rows) if whole else rows
    null = np.linalg.svd(rows.T)[2][-1]
    rows *= np.where(null < 0, -1.0, 1.0)[:, np.newaxis]
    u = np.abs(null) / np.abs(null).sum()
    rows = np.column_stack([rows, rows[:, 0] * 2, np.zeros(d + 1)])
    v = exact_multipliers(rows, u, LONG)
    if v is None:
        assert u.min() < 1e-9 or whole  # a 0 of rounding may be negative
        return
    assert min(v) >= 0
    assert max(v) > 0
    for column in rows.T:
        assert sum(a * b for a, b in zip(v, fractions(column), strict=True)) == 0


def test_no_multipliers_for_independent_rows():
    rows = np.array([[1.0, 1.0], [-1.0, -1.0 - 2.0**-52]])
    assert exact_multipliers(rows, np.array([0.5, 0.5]), LONG) is None
    rows[1, 1] = -1.0
    assert exact_multipliers(rows, np.array([0.5, 0.5]), LONG).tolist() == [1, 1]


@pytest.mark.parametrize("n_looks", [5, 40, 61])
def test_exact_arithmetic_ends_at_its_deadline(n_looks, monkeypatch):
    """In elimination, in inversion, and among the digits of the solution."""
    rows = np.random.default_rng(0).integers(-9, 9, size=(31, 30)).astype(float)
    rows[-1] = -rows[:-1].sum(axis=0)
    u = np.full(31, 1 / 31)
    assert exact_multipliers(rows, u, LONG) is not None
    readings = iter([0.0] * n_looks + [1.0, 1.0])  # a third look is an error
    clock = SimpleNamespace(perf_counter=lambda: next(readings))
    monkeypatch.setattr("maxmargin.certificates.exact.time", clock)
    assert exact_multipliers(rows, u, Deadline(0.5, started=0.0)) is None


KERNELS = [
    Linear(), Polynomial(3, gamma=0.3, coef0=1.0), Linear() + 2.0 * Polynomial(2) * Linear(),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_in_rational_numbers(kernel):
    X = np.random.default_rng(0).normal(size=(7, 3)) + 1e3
    exact = exact_gram(kernel, X)
    np.testing.assert_allclose(exact.astype(float), kernel(X), rtol=1e-12)
    assert exact_gram(kernel + RBF(1.0), X) is None


# Rows that contradict each other ------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 60), st.integers(1, 4), st.sampled_from(["dense", "csr", "float32"]))
def test_contradicting_rows_are_those_of_a_plain_search(seed, n, d, form):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, d)) * rng.choice([1.0, -0.0, 0.1], size=(n, d))
    X = X.astype(np.float32) if form == "float32" else X
    y = rng.choice([-1.0, 1.0], size=n)
    index = rng.permutation(n)[: max(2, n // 2)]
    found = contradicting_rows(sparse.csr_matrix(X) if form == "csr" else X, y[index], index)
    rows = [tuple(row) for row in (X[index] + 0.0).tolist()]
    common = {r for r, s in zip(rows, y[index], strict=True) if s > 0} & {
        r for r, s in zip(rows, y[index], strict=True) if s < 0
    }
    assert (found is None) == (not common)
    if found is not None:
        i, j = found
        assert rows[i] == rows[j]
        assert y[index][i] > 0 > y[index][j]


def test_contradicting_rows_among_many():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 1000, size=(300_000, 8)).astype(float)
    y = rng.choice([-1.0, 1.0], size=len(X))
    X[299_999], y[299_999] = X[5], -y[5]
    assert sorted(contradicting_rows(X, y)) == [5, 299_999]


# Planes -------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    seeds,
    st.integers(1, 6),
    st.sampled_from([0.0, 1.0, 1e4, 1e8]),
    st.sampled_from([0, 8]),
    st.sampled_from(["dense", "csr", "float32"]),
)
def test_a_plane_separates_exactly_when_rational_numbers_say_so(seed, d, offset, scales, form):
    """Planes at the very rows: what rounding makes of their margins must not decide."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-scales, scales, size=d)
    X = (rng.integers(-3, 4, size=(8, d)) + offset) * scale
    X = X.astype(np.float32) if form == "float32" else X
    y = rng.choice([-1.0, 1.0], size=8)
    w = rng.normal(size=d) / scale
    exact = X.astype(float)
    if rng.random() < 0.8:  # through a row, or as near to it as float64 comes
        b = -float(exact_dot(exact[0], w)) * (1.0 + rng.integers(-2, 3) * 2.0**-52)
        y = np.where(exact @ w + b > 0, 1.0, -1.0)
    else:
        b = float(rng.normal())
    X = sparse.csr_matrix(X) if form == "csr" else X
    certificate = mm.certify(
        SeparationProblem(SignedSamples(X, y)),
        Solution(w[np.newaxis], np.array([b]), Status.CONVERGED),
    )
    margins = [int(s) * (exact_dot(row, w) + Fraction(b)) for row, s in zip(exact, y, strict=True)]
    assert certificate.separates == (min(margins) > 0)
    if certificate.separates:
        assert certificate.margin == pytest.approx(float(min(margins)), rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 4), st.sampled_from([0.0, 1e4, 1e8]))
def test_the_middle_bias_separates_where_float64_has_one(seed, d, offset):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, d)) + offset
    w = rng.normal(size=d)
    scores = [exact_dot(row, w) for row in X]
    order = np.argsort([float(s - scores[0]) for s in scores], kind="stable")
    y = np.full(30, -1.0)
    y[order[15:]] = 1.0
    b = middle_bias(SignedSamples(X, y), np.append(w, 0.0))[-1]
    low = max(s for s, sign in zip(scores, y, strict=True) if sign < 0)
    high = min(s for s, sign in zip(scores, y, strict=True) if sign > 0)
    middle = float(-(low + high) / 2)
    assert b == middle
