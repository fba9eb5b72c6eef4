"""Hyperplane against the formulas of the textbook and the exact numbers of the six points."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmargin.geometry import Hyperplane

POINTS = np.array([[1, 6], [1, 10], [4, 11], [5, 2], [7, 6], [10, 4]], dtype=float)
SIGNS = np.array([1, 1, 1, -1, -1, -1])
SIX = Hyperplane([-1 / 3, 1 / 5], 2 / 15)

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
planes = st.builds(
    Hyperplane,
    arrays(np.float64, 3, elements=numbers).filter(lambda w: np.abs(w).max() > 0.01),
    numbers,
)
tables = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(3)), elements=numbers)


def test_six_points_are_separated_with_the_textbooks_margins():
    margins = SIX.margins(POINTS, SIGNS)
    np.testing.assert_allclose(margins, [1, 9 / 5, 1, 17 / 15, 1, 12 / 5], rtol=0, atol=1e-14)
    assert margins.min() >= 1 - 1e-14
    assert SIX.margin_width() == pytest.approx(30 / math.sqrt(34), rel=1e-15)
    assert f"{SIX.margin_width():.9f}" == "5.144957554"
    assert SIX.geometric_margin(POINTS, SIGNS) == pytest.approx(15 / math.sqrt(34), rel=1e-14)
    np.testing.assert_allclose(SIX.intercepts(), [2 / 5, -2 / 3], rtol=1e-15)
    assert SIX.distance_to_origin() == pytest.approx(2 / math.sqrt(34), rel=1e-15)


def test_mistake_bound_of_six_points():
    # R² = ‖(4, 11)‖² = 137 and γ² = 225/34.
    assert SIX.mistake_bound(POINTS, SIGNS) == pytest.approx(4 * 137 * 34 / 225, rel=1e-13)
    assert SIX.mistake_bound(sp.csr_array(POINTS), SIGNS) == pytest.approx(4 * 137 * 34 / 225)
    assert SIX.mistake_bound(POINTS, -SIGNS) == math.inf
    with pytest.raises(ValueError, match="got only 1"):
        SIX.mistake_bound(POINTS[:3], SIGNS[:3])


def test_mistake_bound_holds_for_novikoffs_perceptron():
    w, b, mistakes, radius = np.zeros(2), 0.0, 0, 137.0
    for _ in range(1000):
        clean = True
        for x, y in zip(POINTS, SIGNS, strict=True):
            if y * (w @ x + b) <= 0:
                w, b, mistakes, clean = w + y * x, b + y * radius, mistakes + 1, False
        if clean:
            break
    assert clean
    assert mistakes <= SIX.mistake_bound(POINTS, SIGNS)


@given(planes, tables)
def test_foot_of_the_perpendicular_lies_on_the_plane(plane, X):
    feet = plane.project(X)
    scale = 1 + np.abs(X).max() + plane.distance_to_origin()
    assert np.abs(plane.signed_distance(feet)).max() <= 1e-13 * scale
    lengths = np.linalg.norm(X - feet, axis=1)
    np.testing.assert_allclose(lengths, np.abs(plane.signed_distance(X)), atol=1e-12 * scale)


@given(planes, tables, st.floats(1e-3, 1e3))
def test_positive_scaling_is_the_same_plane(plane, X, c):
    scaled = Hyperplane(c * plane.w, c * plane.b)
    atol = 1e-12 * (1 + np.abs(X).max() + plane.distance_to_origin())
    assert scaled.same_plane(plane)
    assert not Hyperplane(-plane.w, -plane.b).same_plane(plane)
    np.testing.assert_allclose(scaled.signed_distance(X), plane.signed_distance(X), atol=atol)
    np.testing.assert_allclose(scaled.project(X), plane.project(X), atol=atol)
    np.testing.assert_allclose(scaled.intercepts(), plane.intercepts(), rtol=1e-12)
    assert scaled.margin_width() * c == pytest.approx(plane.margin_width(), rel=1e-12)


@given(planes)
def test_normalized_has_unit_normal(plane):
    unit = plane.normalized()
    assert np.linalg.norm(unit.w) == pytest.approx(1, abs=1e-15)
    assert unit.same_plane(plane)
    assert abs(unit.b) == plane.distance_to_origin()


@settings(deadline=None)
@given(planes, tables)
def test_dense_sparse_and_single_rows_agree(plane, X):
    dense = plane.decision(X)
    for form in (sp.csr_matrix(X), sp.csr_array(X), sp.coo_array(X), np.asfortranarray(X)):
        np.testing.assert_allclose(plane.decision(form), dense, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(plane.project(form), plane.project(X), atol=1e-9)
    row = plane.decision(X[0])
    assert np.ndim(row) == 0
    assert row == pytest.approx(dense[0], rel=1e-12, abs=1e-9)
    assert plane.project(X[0]).shape == (3,)
    assert np.ndim(plane.margins(X[0], -1)) == 0


@pytest.mark.parametrize("size", [1e200, 1e-200, 1.7e308, 1e-310])
def test_extreme_normals_do_not_overflow(size):
    plane = Hyperplane([size, size], size)
    assert plane.signed_distance([1, 0]) == pytest.approx(math.sqrt(2), rel=1e-12)
    assert plane.distance_to_origin() == pytest.approx(1 / math.sqrt(2), rel=1e-12)
    assert plane.margin_width() == pytest.approx(math.sqrt(2) / size, rel=1e-12)
    np.testing.assert_allclose(plane.project([1, 1]), [-0.5, -0.5], rtol=1e-12)


def test_extreme_samples_in_the_mistake_bound():
    X = np.array([[1e200, 0.0], [-1e200, 0.0]])
    assert Hyperplane([1, 0]).mistake_bound(X, [1, -1]) == pytest.approx(4)


def test_sparse_duplicates_count_once():
    X = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    plane = Hyperplane([1, 0], -1)
    assert plane.decision(X).tolist() == [2.0]
    assert plane.project(X).tolist() == [[1.0, 0.0]]
    both = sp.csr_array(
        (np.array([1.0, 2.0, -1.0, -2.0]), np.zeros(4, dtype=int), np.array([0, 2, 4])),
        shape=(2, 2),
    )
    assert Hyperplane([1, 0]).mistake_bound(both, [1, -1]) == pytest.approx(4)
    assert both.data.tolist() == [1, 2, -1, -2]  # the caller's matrix is as it was


def test_float32_is_kept_and_never_copied_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 20)).astype(np.float32)
    before = X.copy()
    plane = Hyperplane(rng.normal(size=20), 0.5)
    tracemalloc.start()
    g = plane.decision(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.size * 8 / 3
    np.testing.assert_allclose(g, X.astype(float) @ plane.w + 0.5, rtol=1e-12, atol=1e-12)
    feet = plane.project(X)
    assert feet.dtype == np.float32
    assert np.abs(plane.signed_distance(feet)).max() < 1e-5
    assert np.array_equal(X, before)


def test_is_a_frozen_value():
    w = np.array([1.0, 2.0])
    plane = Hyperplane(w, 3)
    w[0] = 9
    assert plane.w.tolist() == [1.0, 2.0]
    assert type(plane.b) is float
    with pytest.raises(ValueError, match="read-only"):
        plane.w[0] = 1
    with pytest.raises(AttributeError):
        plane.b = 1.0
    assert plane == Hyperplane([1, 2], 3.0)
    assert hash(plane) == hash(Hyperplane([1, 2], 3.0))
    assert plane != Hyperplane([2, 4], 6)
    assert plane.same_plane(Hyperplane([2, 4], 6))
    assert not plane.same_plane(Hyperplane([1, 2, 0], 3))
    assert plane != "plane"
    assert pickle.loads(pickle.dumps(plane)) == plane
    assert Hyperplane([Fraction(-1, 3), Fraction(1, 5)], Fraction(2, 15)) == SIX


@pytest.mark.parametrize(
    ("w", "b", "message"),
    [
        ([], 0, r"shape \(0,\)"),
        ([[1, 2]], 0, r"shape \(1, 2\)"),
        ([1, np.nan], 0, "nan"),
        ([np.inf], 0, "inf"),
        ([1], math.nan, "b=nan"),
    ],
)
def test_bad_planes_are_refused(w, b, message):
    with pytest.raises(ValueError, match=message):
        Hyperplane(w, b)


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.signed_distance([[1, 2]]),
        lambda p: p.project([[1, 2]]),
        lambda p: p.intercepts(),
        lambda p: p.distance_to_origin(),
        lambda p: p.normalized(),
        lambda p: p.margin_width(),
        lambda p: p.geometric_margin([[1, 2]], [1]),
        lambda p: p.mistake_bound([[1, 2]], [1]),
        lambda p: p.same_plane(p),
    ],
)
def test_zero_normal_is_no_hyperplane(use):
    untrained = Hyperplane([0, 0], 1)
    assert untrained.decision([[3, 4]]).tolist() == [1.0]
    with pytest.raises(ValueError, match="w must not be 0: "):
        use(untrained)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((3, 4)), r"shape \(n, 2\).*got \(3, 4\)"),
        (np.ones(3), r"shape \(n, 2\).*got \(3,\)"),
        (np.ones((2, 2, 2)), r"got \(2, 2, 2\)"),
        (sp.csr_array((2, 5)), r"shape \(n, 2\).*got \(2, 5\)"),
        ([[1, 2], [np.nan, 0]], r"X\[1, 0\]=nan"),
        ([[1, np.inf]], r"X\[0, 1\]=inf"),
        (sp.csr_array([[0, 0], [0, np.inf]]), r"X\[1, 1\]=inf"),
        ([["a", "b"]], "dtype"),
        ([[1e308, 1e308]], "overflows float64 at row 0"),
    ],
)
def test_bad_samples_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Hyperplane([9, 9]).decision(X)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], r"got \[0, 1\].*np.where"),
        (["a", "b"], r"got \['a', 'b'\].*np.where"),
        ([True, False], r"got \[False, True\].*np.where"),
        ([1.0, np.nan], "nan"),
        ([1], r"one label per row; got \(1,\)"),
        ([[1], [-1]], r"one label per row; got \(2, 1\)"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        Hyperplane([1, 0]).margins([[1, 0], [0, 1]], y)


def test_no_rows():
    plane = Hyperplane([1, 0])
    assert plane.decision(np.empty((0, 2))).shape == (0,)
    assert plane.project(np.empty((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match="zero-size"):
        plane.geometric_margin(np.empty((0, 2)), [])


def test_intercepts_of_axes_never_met():
    assert np.array_equal(Hyperplane([0, 2], 4).intercepts(), [np.nan, -2], equal_nan=True)
    through_origin = Hyperplane([1, -1]).intercepts()
    assert not np.signbit(through_origin).any()
