"""Separability: the widest band, or a point in both hulls."""

import matplotlib as mpl
import numpy as np
import pytest

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.separability import hull
from tests.helpers.figures import one, vertices


def test_xor_has_a_common_point():
    X, y = mm.datasets.load_xor(return_X_y=True)
    report = mm.separability(X, y)
    display = plots.separability(report, X, y)
    np.testing.assert_allclose(np.asarray(display.common_.get_offsets()), [[0.0, 0.0]], atol=1e-12)
    assert [len(corners) for corners in display.hulls] == [2, 2]
    assert len(display.combination_.get_segments()) == np.count_nonzero(report.multipliers)
    assert display.plane_ is None
    assert display.title.startswith("not separable")


def test_six_points_have_the_widest_band(six):
    X, y = six
    report = mm.separability(X, y, maximum_margin=True)
    display = plots.separability(report, X, y, ax=one())
    w, b = np.array([-1 / 3, 1 / 5]), 2 / 15
    np.testing.assert_allclose(vertices(display.plane_) @ w + b, 0.0, atol=1e-7)
    np.testing.assert_allclose(np.abs(vertices(display.band_) @ w + b), 1.0, atol=1e-7)
    assert display.title == "separable: the widest band is 5.145 wide"
    for code, label in enumerate((-1, 1)):
        corners = {tuple(corner) for corner in display.hulls_[code].get_xy()}
        assert corners == {tuple(row) for row in X[y == label]}
    some = plots.separability(mm.separability(X, y), X, y, ax=one())
    assert "this plane has margin" in some.title


def test_separability_in_other_dimensions(pair):
    X, y = pair
    report = mm.separability(X, y)
    display = plots.separability(report, X, y, ax=one())
    assert "projection of 3 features" in display.note
    for corners in display.hulls:
        assert mpl.path.Path(corners).contains_point(display.common, radius=1e-9) or (
            mpl.path.Path(corners[::-1]).contains_point(display.common, radius=1e-9)
        )
    rng = np.random.RandomState(0)
    labels = np.repeat([0, 1], 30)
    apart = rng.randn(60, 3) + np.outer(labels, [7.0, 0.0, 0.0])
    found = mm.separability(apart, labels, maximum_margin=True)
    drawn = plots.separability(found, apart, labels, ax=one())
    np.testing.assert_allclose(
        drawn.points[:, 0], found.hyperplane.signed_distance(apart), atol=1e-9
    )
    np.testing.assert_allclose(np.abs(vertices(drawn.band_)[:, 0]), found.margin, rtol=1e-6)
    line = X[["mass_g"]]
    strip = plots.separability(mm.separability(line, y), line, y, ax=one())
    assert strip.hulls[0][:, 0].min() == line[y == "apple"].min().item()
    with pytest.raises(ValueError, match="the report is on"):
        plots.separability(report, X[:-1], y[:-1])
    with pytest.raises(ValueError, match="two classes"):
        plots.separability(report, X, np.arange(60))


def test_hulls_of_few_and_of_aligned_points():
    assert hull(np.ones((3, 2))).tolist() == [[1.0, 1.0]]
    assert len(hull(np.array([[0.0, 0.0], [1.0, 2.0]]))) == 2
    upright = np.array([[1.0, 0.0], [1.0, 5.0], [1.0, 2.0]])
    assert sorted(hull(upright).tolist()) == [[1.0, 0.0], [1.0, 5.0]]
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]], dtype=float)
    assert len(hull(square)) == 4


def test_undecided_says_so(six):
    X, y = six
    report = mm.separability(X, y, tol=0.99)
    display = plots.separability(report, X, y, ax=one())
    assert display.title.startswith("undecided")
    assert display.plane_ is None
