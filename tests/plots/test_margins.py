"""Histograms of margins."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from tests.helpers.figures import blobs, one, overlap, texts


def test_margins_are_those_of_the_plane(pair):
    X, y = pair
    model = mm.SVC(C=1.0, kernel="linear").fit(X, y)
    display = plots.margins(model, X, y)
    sign = np.where(y == "orange", 1.0, -1.0)
    found = sign * model.decision_function(X)
    np.testing.assert_allclose(display.margins, found)
    for code, name in enumerate(("apple", "orange")):
        own = found[y == name]
        text = display.counts_[code].get_text()
        assert text.startswith(f"30 samples\n{(own < 1 - 1e-6).sum()} with slack\n")
        assert f"{(own < 0).sum()} error" in text
        heights = np.abs(display.histograms_[code].get_data().values - (code + 0.95))
        share = np.histogram(own + 1e-9, display.edges)[0]
        np.testing.assert_allclose(heights / heights.max(), share / share.max())
    assert display.band_ is not None
    assert 0.0 in display.edges.round(9)
    assert 1.0 in display.edges.round(9)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["apple", "orange"]
    assert "wrong side" in texts(display.legend_)


def test_margins_of_many_classes_are_against_the_best_rival(fruit):
    X, y = fruit
    model = mm.LinearSVC(C=10.0, multi_class="crammer_singer").fit(X, y)
    display = plots.margins(model, X, y, ax=one())
    scores = model.decision_function(X)
    codes = np.searchsorted(model.classes_, y)
    own = scores[np.arange(150), codes]
    rival = np.where(np.arange(5) == codes[:, None], -np.inf, scores).max(axis=1)
    np.testing.assert_allclose(display.margins, own - rival)
    assert display.errors.sum() == (model.predict(X) != y).sum()
    assert display.has_band
    assert len(display.histograms_) == 5


def test_margins_of_pairs_are_those_of_the_winning_pair(fruit):
    X, y = fruit
    model = make_pipeline(StandardScaler(), mm.SVC(decision_function_shape="ovo")).fit(X, y)
    display = plots.margins(model, X, y)
    codes, g = np.searchsorted(model.classes_, y), model.decision_function(X)
    given = np.searchsorted(model.classes_, model.predict(X))
    of_pair = {pair: g[:, k] for k, pair in enumerate(combinations(range(5), 2))}
    for row in np.flatnonzero(given != codes):  # the rival is the class that won
        i, j = sorted((codes[row], given[row]))
        sign = 1.0 if codes[row] == i else -1.0
        assert display.margins[row] == pytest.approx(sign * of_pair[i, j][row])
    own = np.array([
        min(of_pair[k, r][row] if k < r else -of_pair[r, k][row] for r in range(5) if r != k)
        for row, k in enumerate(codes)
    ])  # fmt: skip
    assert (display.margins >= own - 1e-12).all()
    np.testing.assert_array_equal(display.margins < 0, given != codes)
    assert "pair" in display.ax_.get_xlabel()
    assert display.has_band
    assert display.is_two_sided
    assert "band |g| ≤ 1" in texts(display.legend_)


@pytest.mark.parametrize(
    ("c", "size", "lines"), [(2, (7, 4.8), 3), (5, (3, 3), 1), (20, (7, 11.2), 1), (20, (4, 3), 0)]
)
def test_labels_of_margins_are_clear_of_lines_and_of_each_other(c, size, lines):
    X, y = blobs(20 * c, 2, c, 2.0)
    ax = Figure(figsize=size, layout="constrained").subplots()
    display = plots.margins(mm.SVC().fit(X, y), X, y, ax=ax)
    display.figure_.draw_without_rendering()
    inside = ax.get_window_extent()
    names = [label.get_window_extent() for label in ax.get_yticklabels()]
    counts = [text.get_window_extent() for text in display.counts_ if text.get_text()]
    assert all(len(t.get_text().split("\n")) == lines for t in display.counts_ if t.get_text())
    assert len(counts) == (c if lines else 0)
    assert all(box.x1 <= inside.x0 and box.x0 >= -1.0 for box in names + counts)
    assert not any(overlap(a, b) for a, b in combinations(names + counts, 2))


def test_margins_count_the_errors_of_predict():
    X, y = mm.datasets.load_xor(return_X_y=True)
    nowhere = plots.margins(mm.SVC(kernel="linear").fit(X, y), X, y, ax=one())
    np.testing.assert_allclose(nowhere.margins, 0.0, atol=1e-9)
    assert nowhere.title.endswith("2 errors")
    assert [text.get_text().split("\n")[-1] for text in nowhere.counts_] == [
        "2 errors",
        "0 errors",
    ]
    X, y = blobs(60, 2, 3, 1.2)
    model = mm.LinearSVC(multi_class="crammer_singer").fit(X, y)
    model.coef_, model.intercept_ = np.zeros((3, 2)), np.zeros(3)
    ties = plots.margins(model, X, y, ax=one())
    np.testing.assert_array_equal(ties.errors, model.predict(X) != y)
    assert ties.title == plots.boundary(model, X, y, ax=one(), resolution=10).title
    assert ties.title.endswith("40 errors")


def test_margins_need_a_label_a_row(six, hard):
    X, y = six
    with pytest.raises(ValueError, match="y has 5 labels, X 6 rows"):
        plots.margins(hard, X, y[:5])


def test_margins_of_a_perceptron_are_distances(six):
    X, y = six
    model = mm.Perceptron().fit(X, y)
    display = plots.margins(model, X, y, ax=one())
    assert display.margins.min() == pytest.approx(model.certificate_.geometric_margin)
    assert display.band_ is None
    assert "‖w‖" in display.label
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        plots.margins(model, X, y, bins=0)


def test_far_outliers_do_not_squeeze_the_others(six, hard):
    X, y = six
    many = np.vstack([np.tile(X, (100, 1)), [[1e4, 4.0]]])
    display = plots.margins(hard, many, np.append(np.tile(y, 100), -1), ax=one())
    assert display.margins.max() > 1000
    assert display.edges[-1] < 10
    last = display.histograms_[0].get_data().values[-1]
    assert last != pytest.approx(0.95)  # it is in the last bar
