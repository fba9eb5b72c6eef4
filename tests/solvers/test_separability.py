"""Separability: a proof either way, each checked here by other means."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from scipy.stats import ortho_group

import maxmargin as mm
from tests.helpers.algorithms import blobs, cloud, materialised
from tests.helpers.bad_input import BAD_LABELS, SCALES, X, Y

seeds = st.integers(0, 2**20)


def check(report, X, y):
    """Verify a verdict from the data alone."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    y = np.unique(y, return_inverse=True)[1]
    if report.separable:
        signs = 2 * y - 1
        assert (signs * (X @ report.hyperplane.w + report.hyperplane.b) > 0).all()
        assert report.margin == pytest.approx(
            report.hyperplane.geometric_margin(X, signs), rel=1e-9
        )
        assert report.margin > 0
        assert report.multipliers is None
        assert "separable" in str(report)
    elif report.separable is False:
        u = report.multipliers
        Z = materialised(X, y)
        assert (u >= 0).all()
        assert u.sum() == pytest.approx(1.0, abs=1e-12)
        assert (np.abs(Z.T @ u) <= 1e-12 * (np.abs(Z).T @ u).max()).all()
        for side in (0, 1):
            share = 2 * u * (y == side)
            assert share.sum() == pytest.approx(1.0, abs=1e-9)
            np.testing.assert_allclose(share @ X, report.common_point, atol=1e-9 * np.abs(X).max())
        assert report.hyperplane is None
        assert report.margin == 0.0
        assert "not separable" in str(report)


def truth(X, y):
    """Whether the hulls are disjoint, by a feasibility program of another form."""
    Z = materialised(X, y)
    return (
        linprog(np.zeros(Z.shape[1]), A_ub=-Z, b_ub=-np.ones(len(Z)), bounds=(None, None)).status
        == 0
    )


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(4, 60), d=st.integers(1, 6), shift=st.floats(0, 3))
def test_verdict_is_that_of_another_program(seed, n, d, shift):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + shift * y[:, np.newaxis]
    report = mm.separability(X, y)
    check(report, X, y)
    assert report.separable == truth(X, y)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, d=st.integers(1, 4), as_float32=st.booleans())
def test_integers_are_decided_exactly(seed, d, as_float32):
    """Small integers, often with hulls that touch: never undecided, and refuted exactly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(12, d)).astype(np.float32 if as_float32 else float)
    y = np.arange(12) % 2
    report = mm.separability(X, y)
    assert report.separable is not None
    check(report, X, y)
    if report.separable is False:
        point = [Fraction(v).limit_denominator(10**6) for v in report.common_point]
        hull = linprog(
            np.zeros(6), A_eq=np.vstack([X[y == 0].T, np.ones(6)]),
            b_eq=np.append([float(v) for v in point], 1.0), bounds=(0, None),
        )  # fmt: skip
        assert hull.status == 0


@settings(max_examples=25, deadline=None)
@given(seed=seeds, separable=st.booleans())
def test_affine_maps_do_not_change_the_verdict(seed, separable):
    X, y = blobs(30, 3, seed=seed) if separable else cloud(60, 3, seed=seed)
    rng = np.random.default_rng(seed)
    A = ortho_group.rvs(3, random_state=seed) * 10.0 ** rng.uniform(-2, 2, size=3)
    moved = X @ A + 10 * rng.normal(size=3)
    before, after = mm.separability(X, y), mm.separability(moved, y)
    check(after, moved, y)
    assert before.separable == after.separable


@pytest.mark.parametrize("exponent", [-70, -40, -12, 12, 40, 70])
@pytest.mark.parametrize("data", [blobs, cloud])
def test_units_do_not_change_the_verdict(exponent, data):
    X, y = data(60, 3, seed=1)
    report = mm.separability(X * 10.0**exponent, y)
    assert report.separable == mm.separability(X, y).separable


@pytest.mark.parametrize("offset", [1e3, 1e6])
@pytest.mark.parametrize("data", [blobs, cloud])
def test_a_far_origin_does_not_change_the_verdict(offset, data):
    X, y = data(60, 3, seed=2)
    report = mm.separability(X + offset, y)
    check(report, X + offset, y)
    assert report.separable == (data is blobs)


@pytest.mark.parametrize("n", [2, 5, 100, 1001])
def test_hulls_that_touch_are_not_separable(n):
    X = np.concatenate([np.linspace(-1, 0, n), np.linspace(0, 1, n)])[:, np.newaxis]
    report = mm.separability(X, np.repeat([0, 1], n))
    check(report, X, np.repeat([0, 1], n))
    assert report.separable is False
    assert report.common_point == pytest.approx(0.0, abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(
    gap=st.floats(1e-17, 1e-11), at=st.sampled_from([0.0, 1.0, -3.0, 1000.0]), n=st.integers(1, 400)
)
def test_never_a_wrong_verdict_near_zero(gap, at, n):
    """Exact arithmetic (on a line) says what is true: the verdict is that or undecided."""
    low, high = at - np.arange(n) / n, at + gap + np.arange(n) / n
    report = mm.separability(np.concatenate([low, high])[:, np.newaxis], np.repeat([0, 1], n))
    exact = Fraction(low.max()) < Fraction(high.min())
    assert report.separable in (exact, None)


def test_tolerance_is_in_units_of_the_radius():
    X, y = np.array([[-100.0], [-1e-3], [1e-3], [100.0]]), [0, 0, 1, 1]
    assert mm.separability(X, y).separable
    assert mm.separability(X, y, tol=1e-4).separable is None
    assert mm.separability(X * 1e5, y, tol=1e-4).separable is None


def test_two_points():
    report = mm.separability([[0.0, 0.0], [3.0, 4.0]], ["a", "b"])
    check(report, [[0.0, 0.0], [3.0, 4.0]], [0, 1])
    assert 0 < report.margin <= 2.5 + 1e-12


@settings(max_examples=20, deadline=None)
@given(seed=seeds, gap=st.floats(2.5, 8.0), d=st.integers(1, 5))
def test_maximum_margin(seed, gap, d):
    X, y = blobs(30, d, gap=gap, seed=seed)
    widest = mm.separability(X, y, maximum_margin=True)
    check(widest, X, y)
    assert widest.margin >= mm.separability(X, y).margin * (1 - 1e-9)
    # The half distance of the hulls, by a quadratic program over convex combinations.
    from sklearn.svm import SVC

    svc = SVC(kernel="linear", C=1e10, tol=1e-10).fit(X, y)
    assert widest.margin == pytest.approx(1 / np.linalg.norm(svc.coef_), rel=1e-5)


def test_six_points_maximum_margin():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    report = mm.separability(X, y, maximum_margin=True)
    assert report.hyperplane.same_plane(mm.Hyperplane([-1 / 3, 1 / 5], 2 / 15))
    assert 2 * report.margin == pytest.approx(5.144957554, abs=1e-9)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("separable", [True, False])
def test_sparse(form, separable):
    X, y = blobs(80, 5, seed=3) if separable else cloud(200, 5, seed=3)
    X[np.abs(X) < 0.7] = 0.0
    report = mm.separability(form(X), y)
    check(report, X, y)
    assert report.separable == separable


def test_many_sparse_columns():
    rng = np.random.default_rng(4)
    X = sparse.random_array((400, 3000), density=0.01, rng=rng, format="csr")
    y = np.arange(400) % 2
    report = mm.separability(X, y)
    assert report.separable
    twice = sparse.vstack([X, X[:1]]).tocsr()
    report = mm.separability(twice, np.append(y, 1 - y[0]))
    check(report, twice, np.append(y, 1 - y[0]))
    assert report.separable is False


@pytest.mark.parametrize("separable", [True, False])
def test_a_hundred_thousand_rows(separable):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100_000, 20))
    w = rng.normal(size=20)
    score = X @ w
    keep = np.abs(score) > 0.05
    X, y = X[keep], (score[keep] > 0).astype(int)
    if not separable:
        y[X[:, 0].argmax()] ^= 1
        y[np.abs(X).sum(axis=1).argmin()] ^= 1
    report = mm.separability(X, y)
    check(report, X, y)
    assert report.separable == separable


def test_overlapping_hundred_thousand_rows():
    X, y = cloud(100_000, 20, seed=6)
    report = mm.separability(X, y)
    check(report, X, y)
    assert report.separable is False


@pytest.mark.parametrize("y", [np.zeros(6), np.arange(6) % 3, np.arange(6)])
def test_it_is_about_two_classes(y):
    with pytest.raises(ValueError, match=r"2 classes, got (1 class|[36] classes)"):
        mm.separability(np.random.default_rng(0).normal(size=(6, 2)), y)


def test_inputs_are_not_changed():
    X, y = cloud(300, 3, seed=7)
    X.flags.writeable = y.flags.writeable = False
    before = X.copy()
    check(mm.separability(X, y), X, y)
    check(mm.separability(X, y, maximum_margin=True), X, y)
    np.testing.assert_array_equal(X, before)
    assert mm.separability(X, y).multipliers.tolist() == mm.separability(X, y).multipliers.tolist()


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_all_samples_at_one_point(value):
    report = mm.separability(np.full((6, 2), value), [0, 1, 0, 1, 0, 1])
    assert report.separable is False
    np.testing.assert_allclose(report.common_point, value)


@pytest.mark.parametrize("tol", [-1.0, np.nan, "1", np.inf])
def test_bad_tolerance_is_refused(tol):
    with pytest.raises(ValueError, match="tol"):
        mm.separability([[0.0], [1.0]], [0, 1], tol=tol)


@pytest.mark.parametrize("d", [8, 24, 30, 60])
def test_a_centroid_that_rounding_moved_is_never_a_wrong_verdict(d):
    """The mean of d affinely independent points: inseparable, but for its last digit."""
    rng = np.random.default_rng(d)
    P = rng.standard_normal((d, d))
    X, y = np.vstack([P, P.mean(axis=0)]), np.r_[np.ones(d), -1]
    assert mm.separability(X, y).separable is None


@pytest.mark.parametrize("d", [3, 40, 150])
def test_inseparable_in_many_dimensions(d):
    rng = np.random.default_rng(d)
    verdict = mm.separability(rng.standard_normal((8 * d, d)), rng.integers(0, 2, 8 * d))
    assert verdict.separable is False
    assert np.count_nonzero(verdict.multipliers) <= d + 2


def test_one_hot_columns_depend_on_each_other_and_are_decided():
    rng = np.random.default_rng(0)
    X = np.hstack([np.eye(k)[rng.integers(0, k, 300)] for k in (8, 5)])
    assert mm.separability(X, rng.integers(0, 2, 300)).separable is False


def category_table(seed, n, *, separable, decimals, standardised):
    """Return 0/1 columns of several categories (they depend on each other) beside numbers."""
    rng = np.random.default_rng(seed)
    parts = [np.eye(k)[rng.integers(0, k, n)] for k in (5, 8, 3)]
    parts.append(rng.integers(0, 100, size=(n, 4)).astype(float))
    if decimals:
        money = np.round(50 * rng.normal(size=(n, 4)), 2)
        parts += [money, money[:, :1] + money[:, 1:2]]  # a sum, but for its last digit
    X = np.hstack(parts)
    score = X @ rng.normal(size=X.shape[1])
    score -= np.median(score)
    y = (score > 0).astype(int)
    if separable:
        kept = np.abs(score) > 0.01 * score.std()
        X, y = X[kept], y[kept]
    else:
        y ^= rng.random(n) < 0.02
    return ((X - X.mean(axis=0)) / X.std(axis=0) if standardised else X), y


@pytest.mark.parametrize("n", [500, 3000])
@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize("decimals", [True, False])
@pytest.mark.parametrize("standardised", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_tables_with_categories_are_decided(n, separable, decimals, standardised, form):
    how = {"separable": separable, "decimals": decimals, "standardised": standardised}
    for seed in range(3 if n == 500 else 1):
        X, y = category_table(seed, n, **how)
        report = mm.separability(form(X), y)
        check(report, X, y)
        assert report.separable == separable


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, np.float32])
def test_equal_rows_with_different_labels_are_the_shortest_proof(form):
    X, y = category_table(0, 2000, separable=True, decimals=True, standardised=False)
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    report = mm.separability(form(X), y)
    assert report.separable is False
    assert np.flatnonzero(report.multipliers).tolist() == [0, len(X) - 1]
    assert report.multipliers.max() == 0.5
    expected = X[0].astype(np.float32) if form is np.float32 else X[0]
    np.testing.assert_array_equal(report.common_point, expected)


def test_columns_that_sum_to_another_but_for_rounding():
    """The sums' last digits are the only thing that could separate: not above the tolerance."""
    rng = np.random.default_rng(0)
    a, b = np.round(rng.normal(size=(2, 400)), 1)
    X = np.column_stack([a, b, a + b])
    y = rng.integers(0, 2, 400)
    report = mm.separability(X, y)
    check(report, X, y)
    assert report.separable is False


@pytest.mark.parametrize("exponent", [-11, -10, -9, -7])
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_margins_below_the_linear_programs_are_found(exponent, d, offset):
    rng = np.random.default_rng(d)
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    X = rng.uniform(-1, 1, size=(60, d))
    y = np.where(X @ w > 0, 1, -1)
    X[:20] += np.outer(y[:20] * 10.0**exponent - X[:20] @ w, w)
    report = mm.separability(X + offset, y, tol=0.0)
    assert report.separable
    exact = [Fraction(v) for v in report.hyperplane.w.tolist()], Fraction(report.hyperplane.b)
    for row, sign in zip((X + offset).tolist(), y.tolist(), strict=True):
        score = sum(Fraction(v) * c for v, c in zip(row, exact[0], strict=True)) + exact[1]
        assert sign * score > 0


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_tolerance_knows_neither_units_nor_origin(scale, offset):
    """The one feature that separates has the smallest, or the largest, unit."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] = scale * (X[:, 0] + np.where(y, 1.0, -1.0) + offset)
    report = mm.separability(X, y)
    check(report, X, y)
    assert report.separable


# Bad input and hard data --------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(value):
    bad = X.copy()
    bad[7, 2] = value
    with pytest.raises(ValueError, match=r"row 7, column 2"):
        mm.separability(bad, Y)


@pytest.mark.parametrize("kind", ["nan", "mixed", "two columns", "too few"])
def test_bad_labels(kind):
    with pytest.raises(ValueError, match=r"(?i)y |label|inconsistent|1d"):
        mm.separability(X, BAD_LABELS[kind])


@pytest.mark.parametrize("scale", [1e120, 1e155, 1e200, 1e300])
@pytest.mark.parametrize("data", [blobs, cloud])
def test_large_values(scale, data):
    rows, y = data(40, 3)
    truth = mm.separability(rows, y).separable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = mm.separability(rows * scale, y).separable
        except ValueError as error:
            found = truth if "rescale" in str(error) else str(error)
    assert found in (truth, None)


def test_bad_scales():
    rows, y = blobs(40, 3, gap=8.0, seed=1)
    verdict = mm.separability(rows * SCALES[::-1], y)
    assert verdict.separable
    rows, y = cloud(60, 3, seed=1)
    assert mm.separability(rows, y).separable is False
    assert mm.separability(rows * SCALES, y).separable is False


def test_bisector_of_two_samples():
    two = np.array([[1.0, 2.0], [4.0, -2.0]])
    verdict = mm.separability(two, [0, 1], maximum_margin=True)
    assert verdict.margin == pytest.approx(2.5)
    assert verdict.hyperplane.same_plane(mm.Hyperplane([3.0, -4.0], -7.5))
    with pytest.raises(ValueError, match="1 class"):
        mm.separability(two[:1], [0])


@pytest.mark.parametrize("n", [4, 100, 10_000])
@pytest.mark.parametrize("gap", [1e-16, 1e-15, 1e-14, 1e-13])
@pytest.mark.parametrize("at", [0.0, 1.0])
def test_a_margin_lost_in_rounding_is_undecided(n, gap, at):
    low, high = np.linspace(at - 1, at, n // 2), np.linspace(at, at + 1, n // 2)
    high[0] = np.nextafter(at, 2) if at + gap == at else at + gap
    assert low.max() < high.min()  # there is a plane, in exact arithmetic
    verdict = mm.separability(np.concatenate([low, high])[:, np.newaxis], np.repeat([0, 1], n // 2))
    assert verdict.separable is None
    assert "undecided at tolerance" in str(verdict)
    assert verdict.hyperplane is None
    assert verdict.multipliers is None
