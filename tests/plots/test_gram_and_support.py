"""Gram matrices and support vectors."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from tests.helpers.figures import blobs, one, two


def test_gram_orders_by_class_and_knows_its_spectrum(fruit):
    X, y = StandardScaler().fit_transform(fruit[0]), fruit[1]
    shuffled = np.random.RandomState(0).permutation(150)
    display = plots.gram("rbf", X[shuffled], y[shuffled])
    assert (np.diff(np.searchsorted(np.unique(y), y[shuffled][display.rows])) >= 0).all()
    K = mm.kernels.RBF(1 / 3)(X[shuffled][display.rows])
    np.testing.assert_allclose(display.K, K)
    np.testing.assert_allclose(display.image_.get_array(), K)
    np.testing.assert_allclose(display.spectrum, np.linalg.eigvalsh(K)[::-1], atol=1e-12)
    drawn = display.positive_.get_ydata()
    np.testing.assert_allclose(drawn, display.spectrum[: len(drawn)])
    assert display.verdict.positive_semidefinite
    assert "Mercer's condition holds" in display.axes_[1].get_title().replace("\n", " ")
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == list(np.unique(y))


def test_gram_marks_negative_eigenvalues(pair):
    X, y = StandardScaler().fit_transform(pair[0]), pair[1]
    display = plots.gram(mm.kernels.Sigmoid(1.0, -1.0), X, y, axes=two())
    below = display.spectrum < 0
    assert below.any()
    np.testing.assert_allclose(
        np.sort(display.negative_.get_ydata()), np.sort(-display.spectrum[below])
    )
    title = display.axes_[1].get_title().replace("\n", " ")
    assert title == f"not a Mercer kernel: {below.sum()} negative eigenvalues"


def test_gram_does_not_count_rounding_as_negative():
    X, y = blobs(60, 2, 2, 2.0, seed=0)
    display = plots.gram("precomputed", X @ np.diag([1.0, -0.01]) @ X.T, y)
    assert (display.spectrum < 0).sum() > 1
    assert len(display.negative_.get_ydata()) == 1
    assert display.axes_[1].get_title() == "not a Mercer kernel: 1 negative eigenvalue"


def test_gram_has_its_words_below_the_eigenvalues_and_short_names(fruit):
    X = StandardScaler().fit_transform(fruit[0])
    names = np.where(fruit[1] == "pear", "a pear that has got a long name", fruit[1])
    display = plots.gram("rbf", X, names)
    display.figure_.canvas.draw()
    top = display.rounding_.get_window_extent().y1
    drawn = display.axes_[1].transData.transform(display.positive_.get_xydata())
    assert (drawn[:, 1] > top).all()
    assert display.rounding_.get_window_extent().y0 > display.axes_[1].get_window_extent().y0
    for ticks in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [tick.get_text() for tick in ticks][:2] == ["a pear that has…", "apple"]


def test_gram_keeps_its_numbers_to_itself_where_nothing_makes_room(pair):
    X, y = StandardScaler().fit_transform(pair[0]), pair[1]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4))
    room = axes[0].get_window_extent().frozen()
    plots.gram(mm.kernels.Sigmoid(1.0, -1.0), X, y, axes=axes[:2])
    figure.canvas.draw()
    bar = figure.axes[-1]
    assert max(tick.get_window_extent().x1 for tick in bar.get_yticklabels()) <= room.x1
    assert bar.get_title(loc="left") == "K(x, z)"
    for ax in axes[:2]:
        assert ax.title.get_window_extent().y1 <= figure.bbox.y1


def test_gram_of_a_fitted_machine_a_pipeline_and_given_values(pair):
    X, y = pair
    clf = make_pipeline(StandardScaler(), mm.SVC(gamma=0.7)).fit(X, y)
    display = plots.gram(clf, X, y, axes=two())
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(display.K, mm.kernels.RBF(0.7)(scaled)[np.ix_(*[display.rows] * 2)])
    given = plots.gram("precomputed", scaled @ scaled.T, y, axes=two(), max_rows=20)
    assert given.K.shape == (20, 20)
    assert given.note == "20 of 60 rows"
    np.testing.assert_allclose(given.K, (scaled @ scaled.T)[np.ix_(given.rows, given.rows)])
    assert plots.gram("linear", X.to_numpy(), axes=two()).blocks == []
    assert plots.gram("linear", sparse.csr_array(X.to_numpy()), y, axes=two()).K.shape == (60, 60)
    zero = plots.gram("linear", np.zeros((4, 2)), axes=two())
    assert (zero.spectrum == 0).all()
    with pytest.raises(ValueError, match="has no kernel"):
        plots.gram(mm.LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="59 labels"):
        plots.gram("rbf", X, y[:59])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_support_draws_every_sample_by_its_state(pair, loss):
    X, y = pair
    model = mm.SVC(kernel="linear", loss=loss).fit(X, y)
    display = plots.support(model, X, y)
    table = mm.diagnostics.support_table(model, X, y)
    for state, drawn in display.points_.items():
        own = table.state == state
        np.testing.assert_allclose(
            drawn.get_offsets(), np.column_stack([table.margin[own], table.alpha[own]])
        )
    corner = display.corner_.get_xydata()
    if loss == "hinge":
        assert corner[1:3].tolist() == [[1.0, 0.0], [1.0, 1.0]]
        assert display.bound_.get_ydata()[0] == 1.0
    else:
        np.testing.assert_allclose(corner[2, 1], 2.0 * (1.0 - corner[2, 0]))
        assert display.bound_ is None
    assert f"{len(model.support_)} support vectors of 60 samples" in display.ax_.get_title()


def test_support_of_hard_weighted_and_many(six, hard, pair, fruit):
    X, y = six
    display = plots.support(hard, X, y, ax=one())
    assert display.bound_ is None
    np.testing.assert_allclose(np.sort(225 * display.heights)[-3:], [8, 9, 17], rtol=1e-6)
    X, y = pair
    weighted = mm.SVC(class_weight={"apple": 2.0}).fit(X, y)
    display = plots.support(weighted, X, y, ax=one())
    assert display.heights.max() == pytest.approx(1.0)
    assert display.ax_.get_ylabel() == "α/C of the sample"
    linear = plots.support(mm.LinearSVC(loss="hinge", tol=1e-9).fit(X, y), X, y, ax=one())
    assert linear.bound_.get_ydata()[0] == 1.0
    clf = make_pipeline(StandardScaler(), mm.SVC()).fit(*fruit)
    chosen = plots.support(clf, *fruit, task=("apple", "pear"), ax=one())
    assert chosen.ax_.get_title().startswith("apple against pear")
    with pytest.raises(ValueError, match="tasks"):
        plots.support(clf, *fruit, ax=one())


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({}, "KKT: α = 0, on the edge, α = ±C"),
        ({"loss": "squared_epsilon_insensitive"}, "KKT: α = 0, then α = ±2Cξ"),
    ],
)
def test_support_of_a_regression_is_drawn_against_its_residuals(overlap, options, label):
    X = overlap[0]
    y = X[:, 0] + np.sin(3.0 * X[:, 1])
    model = mm.SVR(C=2.0, **options).fit(X, y)
    display = plots.support(model, X, y)
    np.testing.assert_allclose(display.positions, y - model.predict(X), atol=1e-9)
    corner = display.corner_.get_xydata()
    assert {(-0.1, 0.0), (0.1, 0.0)} <= {tuple(point) for point in corner}
    assert display.corner_.get_label() == label
    assert (display.bound_ is not None) == (not options)
    assert display.ax_.get_ylabel() == "α − α*"


def test_support_of_one_class_is_drawn_against_its_scores(overlap):
    X = overlap[0]
    model = mm.OneClassSVM(nu=0.2).fit(X)
    display = plots.support(model, X)
    np.testing.assert_allclose(display.positions, model.decision_function(X), atol=1e-6)
    assert display.bound_ is not None
    weights = np.linspace(0.5, 1.5, len(X))
    weighted = plots.support(model.fit(X, sample_weight=weights), X, None, weights)
    assert weighted.ax_.get_ylabel() == "α/weight of the sample"
    assert weighted.heights.max() == pytest.approx(1.0)
