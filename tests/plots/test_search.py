"""The figure of a search."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm

CS, GAMMAS = [0.1, 1.0, 10.0, 100.0], [0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def tuned(moons):
    return mm.SVCCV(CS, GAMMAS, cv=4).fit(*moons)


def test_cells_are_the_mean_scores(tuned):
    display = mm.plots.search(tuned)
    means = tuned.cv_results_["mean_test_score"].reshape(4, 3)
    np.testing.assert_array_equal(display.cells_.get_array(), means.T)
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("C", "γ")
    assert [float(each[0]) for each in display.chosen_.get_data()] == [tuned.C_, tuned.gamma_]
    assert display.colorbar_.ax.get_ylabel() == "mean accuracy"
    display.figure_.canvas.draw()
    ticks = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert any("10^{0}" in text for text in ticks)


def test_the_outline_is_one_standard_error_of_the_best(tuned):
    display = mm.plots.search(tuned)
    table, k = tuned.cv_results_, tuned.best_index_
    folds = np.array([table[f"split{f}_test_score"][k] for f in range(4)])
    assert display.least == pytest.approx(folds.mean() - folds.std(ddof=1) / 2.0)
    inside = (table["mean_test_score"] >= display.least).reshape(4, 3)
    framed = np.pad(inside, 1)
    sides = (framed[1:] != framed[:-1]).sum() + (framed[:, 1:] != framed[:, :-1]).sum()
    assert 0 < len(display.near_.get_segments()) == sides


def test_a_finer_search_lies_over_the_first(tuned, moons):
    steps = 10.0 ** (np.array([-1.0, 0.0, 1.0]) / 3.0)
    finer = mm.SVCCV(tuned.C_ * steps, tuned.gamma_ * steps, cv=4).fit(*moons)
    display = mm.plots.search(tuned, finer)
    values = np.ma.filled(display.cells_.get_array(), np.nan)
    assert set(finer.cv_results_["mean_test_score"]) <= set(values.ravel())
    better = max((tuned, finer), key=lambda each: each.best_score_)
    assert display.chosen == (better.C_, better.gamma_)
    marked = mm.plots.search(tuned, finer, chosen={"C": 1.0, "gamma": 0.1})
    assert marked.chosen == (1.0, 0.1)


def test_one_kernel_is_a_curve(moons):
    model = mm.SVCCV(CS, kernel="linear", cv=4, scoring="balanced_accuracy").fit(*moons)
    display = mm.plots.search(model)
    (curve,) = display.curves_
    np.testing.assert_array_equal(curve.lines[0].get_xdata(), CS)
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), model.cv_results_["mean_test_score"])
    assert display.cells_ is None
    assert display.ax_.get_ylabel() == "mean balanced accuracy"


def test_kernels_have_names(moons):
    model = mm.SVCCV(CS, kernel=["linear", "rbf"], cv=3).fit(*moons)
    display = mm.plots.search(model)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["linear", "rbf"]
    assert display.ax_.get_yscale() == "linear"


def test_grid_search_of_a_pipeline(moons):
    pipeline = make_pipeline(StandardScaler(), mm.SVC())
    grid = {"svc__C": [1, 10], "svc__gamma": [0.5, 2.0]}
    found = GridSearchCV(pipeline, grid, cv=3).fit(*moons)
    ax = Figure().subplots()
    display = mm.plots.search(found, ax=ax)
    assert display.ax_ is ax
    assert display.names == ("C", "gamma")
    assert display.chosen == tuple(found.best_params_[f"svc__{name}"] for name in display.names)


def test_what_cannot_be_drawn(moons, tuned):
    with pytest.raises(TypeError, match="SVC has no cv_results_"):
        mm.plots.search(mm.SVC())
    found = GridSearchCV(mm.SVC(), {"tol": [1e-3, 1e-2]}, cv=2).fit(*moons)
    with pytest.raises(ValueError, match="over C or nu is drawn, got one over tol"):
        mm.plots.search(found)


def test_further_parameters_are_drawn_at_the_chosen_value(moons):
    X, y = moons
    grid = {"svr__C": [0.1, 1.0, 10.0], "svr__gamma": [0.1, 1.0], "svr__epsilon": [0.05, 0.2, 0.8]}
    pipeline = make_pipeline(StandardScaler(), mm.SVR())
    found = GridSearchCV(pipeline, grid, cv=3).fit(X, y.astype(float))
    display = mm.plots.search(found)
    assert display.names == ("C", "gamma")
    assert display.score == "mean R²"
    table, epsilon = found.cv_results_, found.best_params_["svr__epsilon"]
    mine = table["mean_test_score"][np.asarray(table["param_svr__epsilon"] == epsilon)]
    np.testing.assert_array_equal(display.cells_.get_array(), mine.reshape(3, 2).T)
    assert display.best == found.best_score_
    assert f"ε = {epsilon:g} chosen" in display._title()
    other = {"svr__C": 1.0, "svr__gamma": 1.0, "svr__epsilon": 0.19}
    near = mm.plots.search(found, chosen=other)
    assert near.others == {"epsilon": [0.19, 0.2]}
    assert "at ε = 0.2" in near._subtitle()
    assert near.best == found.best_score_  # of all candidates, not of those drawn


def test_epsilon_is_on_the_second_axis_where_there_is_no_kernel(moons):
    X, y = moons
    grid = {"C": [0.1, 1.0], "epsilon": [0.0, 0.2]}
    found = GridSearchCV(mm.LinearSVR(), grid, cv=3).fit(X, y.astype(float))
    display = mm.plots.search(found)
    assert (display.names, display.kernels) == (("C", "epsilon"), ["0", "0.2"])
    assert display.score == "mean R²"
    assert display.ax_.get_ylabel() == "ε"
    grid["epsilon"] = [0.1, 0.2]
    found = GridSearchCV(mm.LinearSVR(), grid, cv=3).fit(X, y.astype(float))
    assert mm.plots.search(found).ax_.get_yscale() == "log"
