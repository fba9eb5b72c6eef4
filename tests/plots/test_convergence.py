"""Bounds, gaps and errors of a fit, step by step."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin import plots
from maxmargin.plots.model import FigureModel
from tests.helpers.figures import blobs, six_of, texts, two


def test_convergence_shows_bounds_gap_and_errors(pair):
    X, y = pair
    model = mm.LinearSVC(solver="newton", loss="hinge").fit(X, y)
    display = plots.convergence(model)
    trace = model.trace_
    assert len(display.axes_) == 3
    np.testing.assert_array_equal(display.errors_[0].get_ydata(), trace.errors)
    primal, dual = display.primal_[0].get_ydata(), display.dual_[0].get_ydata()
    np.testing.assert_allclose(primal, np.fmin.accumulate(trace.primal))
    np.testing.assert_allclose(dual, np.fmax.accumulate(trace.dual))
    gap = display.gap_[0].get_ydata()
    known = np.isfinite(gap)
    np.testing.assert_allclose(gap[known], ((primal - dual) / np.abs(primal))[known])
    assert (np.diff(gap[known]) <= 1e-12).all()
    assert display.axes_[1].get_yscale() == "log"
    assert display.axes_[2].get_xlabel() == "step"
    assert trace.exact.all()
    seconds = plots.convergence(model, x="seconds", axes=two(3))
    np.testing.assert_array_equal(seconds.errors_[0].get_xdata(), trace.seconds)


def test_several_models_are_told_apart(pair):
    X, y = pair
    machines = {s: mm.SVC(kernel="linear", solver=s).fit(X, y) for s in ("smo", "active-set")}
    by_name = plots.convergence(machines, axes=two(3))
    assert texts(by_name.legend_)[:2] == ["smo", "active-set"]
    listed = plots.convergence(list(machines.values()), axes=two(3))
    assert [course.name for course in listed.courses] == ["SVC, smo", "SVC, active-set"]
    others = plots.convergence(*machines.values(), labels=["a", "b"], axes=two(3))
    assert [course.name for course in others.courses] == ["a", "b"]
    same = plots.convergence(machines["smo"], machines["smo"], axes=two(3))
    assert [course.name for course in same.courses] == ["SVC (1)", "SVC (2)"]
    costs = [mm.SVC(C=C).fit(X, y) for C in (0.1, 1.0)]
    named = [course.name for course in plots.convergence(costs, axes=two(3)).courses]
    assert named == ["SVC, C = 0.1", "SVC, C = 1"]
    shares = [mm.NuSVC(nu=nu).fit(X, y) for nu in (0.5, 0.8)]
    named = [course.name for course in plots.convergence(shares, axes=two(3)).courses]
    assert named == ["NuSVC, ν = 0.5", "NuSVC, ν = 0.8"]
    piped = make_pipeline(StandardScaler(), mm.SVC()).fit(X, y)
    mixed = plots.convergence(piped, mm.Perceptron(max_iter=500).fit(*six_of()), axes=two(3))
    assert len(mixed.errors_) == 2
    assert len(mixed.primal_) == 1


def test_the_perceptrons_family_has_its_criterion(six):
    model = mm.Perceptron(shuffle=False).fit(*six)
    display = plots.convergence(model, axes=two(2))
    np.testing.assert_array_equal(display.objective_[0].get_ydata(), model.trace_.objective)
    np.testing.assert_array_equal(display.errors_[0].get_ydata(), [2, 0])
    assert display.axes_[0].get_ylabel() == "criterion"
    assert display.axes_[0].get_title() == "Perceptron: 2 passes, 0 mistakes met in the last"
    assert display.axes_[-1].get_ylabel() == "mistakes met"
    assert display.axes_[-1].get_xlabel() == "pass"
    assert len(plots.convergence(model, mm.LMS().fit(*six), axes=two(2)).objective_) == 2


def test_convergence_refuses_what_it_cannot_draw(six):
    model = mm.Perceptron().fit(*six)
    with pytest.raises(ValueError, match="2 panels"):
        plots.convergence(model, axes=two(3))
    with pytest.raises(ValueError, match="'iteration' or 'seconds'"):
        plots.convergence(model, x="epoch")
    with pytest.raises(ValueError, match="names"):
        plots.convergence(model, labels=["a", "b"])
    with pytest.raises(ValueError, match="at least one"):
        plots.convergence([])
    with pytest.raises(ValueError, match="leave out labels"):
        plots.convergence({"a": model}, labels=["b"])


def test_no_errors_are_the_bottom_of_their_axis(pair):
    X, y = blobs(60, 2, 2, 4.0)
    bottom = plots.convergence(mm.SVC().fit(X, y), axes=two(3)).axes_[-1]
    low, high = bottom.get_ylim()
    assert -0.1 < low <= 0.0
    assert high == 1.0
    many = plots.convergence(mm.LinearSVC(solver="newton").fit(*pair), axes=two(3))
    assert many.axes_[-1].get_ylim()[1] >= many.errors_[0].get_ydata().max()


def counted_by(model, X, y):
    """Errors of the planes that the steps of a binary linear fit hand out."""
    recorder = mm.Recorder()
    model.set_params(callback=recorder).fit(X, y)
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    planes = [step.plane() for step in recorder.steps]
    return [int((signs * (np.asarray(X) @ p.w + p.b) <= 0).sum()) for p in planes]


def test_errors_are_those_of_the_planes_and_mistakes_met_have_their_own_axis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=600) > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        online = mm.Perceptron(max_iter=10)
        truth = counted_by(online, X, y)
    newton = mm.LinearSVC(solver="newton", loss="hinge")
    np.testing.assert_array_equal(counted_by(newton, X, y), newton.trace_.errors)
    display = plots.convergence({"newton": newton, "online": online})
    exact, met = display.errors_
    np.testing.assert_array_equal(exact.get_ydata(), newton.trace_.errors)
    # During a pass other planes were met than the one at its end.
    assert (met.get_ydata() != truth).any()
    assert met.axes is display.mistakes_ax_ is not exact.axes
    assert display.mistakes_ax_.get_ylabel() == "mistakes met"
    assert display.axes_[-1].get_ylabel() == "errors"
    assert "mistakes met" in texts(display.legend_)
    alone = plots.convergence(online, axes=two(2))
    words = " ".join(text.get_text() for text in alone.ax_.texts)
    wrong = int((online.predict(X) != y).sum())
    assert f"{wrong} of 600 samples" in " ".join(words.split())


def test_convergence_names_the_task_and_what_it_counts():
    X, y = blobs(40, 2, 4, 1.5)
    model = mm.SVC().fit(X, y)
    display = plots.convergence(model, axes=two(3))
    (course,) = display.courses
    assert "1 of 6 tasks" in course.name
    assert course.unit == "round"
    title = " ".join(display.ax_.get_title().split())
    k = max(range(6), key=lambda k: len(model.traces_[k]))
    assert f"({model.n_iter_[k]} step" in title
    labels = model.classes_.tolist()
    chosen = plots.convergence(model, task=(labels[3], labels[1]), axes=two(3))
    assert chosen.courses[0].name.startswith(f"SVC, {labels[1]} against {labels[3]} ")
    np.testing.assert_array_equal(
        chosen.errors_[0].get_ydata(), model.traces_[4].errors[model.traces_[4].exact]
    )
    assert plots.convergence(model, task=2, axes=two(3)).courses[0].steps == model.n_iter_[2]
    with pytest.raises(ValueError, match="task=9"):
        plots.convergence(model, task=9)
    with pytest.raises(ValueError, match="one task"):
        plots.convergence(mm.SVC().fit(*blobs(40, 2, 2, 1.5)), task=1)


@pytest.mark.parametrize("make", [mm.LinearSVC, lambda: mm.SVC(kernel="linear")])
def test_a_picture_of_w_0_shows_no_plane(make):
    X, y = mm.datasets.load_xor(return_X_y=True)
    display = plots.boundary(make().fit(X, y), X, y)
    assert display.is_flat
    assert display.title.endswith("w = 0: no plane")
    assert not any("g(x)" in text for text in texts(display.legend_))
    assert not display.band
    assert all(not pieces for _, pieces in display.boundaries)
    assert "w = 0: no plane" in plots.margins(make().fit(X, y), X, y).title
    six = plots.boundary(make().fit(*six_of()), *six_of())
    assert not six.is_flat


@pytest.mark.parametrize(
    "model", [mm.LinearSVC(), mm.LinearSVC(loss="hinge"), mm.SVC(kernel="linear", tol=0.05)],
    ids=["squared hinge", "hinge", "kernel"],
)  # fmt: skip
def test_features_that_are_not_scaled_have_a_plane_and_scaled_xor_has_none(model):
    rng = np.random.default_rng(0)
    X = rng.normal([6e4, 40.0], [2e4, 10.0], size=(200, 2)) * [10.0, 1.0]
    y = X[:, 0] / 2e5 + rng.normal(0.0, 1.5, 200) > 3.0
    fitted = FigureModel(model.fit(X, y))
    g = model.decision_function(X)[:, np.newaxis]
    assert np.ptp(g) > 1.0
    assert not fitted.has_no_plane(X, g)
    xor, signs = mm.datasets.load_xor(return_X_y=True)
    xor = 1e6 * (np.repeat(xor, 9, axis=0) + 7.3)
    fitted = FigureModel(model.fit(xor, np.repeat(signs, 9)))
    assert fitted.has_no_plane(xor, model.decision_function(xor)[:, np.newaxis])


def test_tasks_that_are_not_optimal_are_counted_in_the_title():
    X, y = blobs(60, 2, 3, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.SVC(C=1e4, max_iter=5).fit(X, y)
    left = sum(not proof.holds(model.tol) for proof in model.certificates_)
    assert left > 0
    assert plots.boundary(model, X, y).title.count(f"{left} of 3 tasks not optimal") == 1


def test_a_fit_of_one_round_has_ticks_that_can_be_read(fruit):
    display = plots.convergence(mm.SVC().fit(*fruit))
    display.figure_.canvas.draw()
    top = display.axes_[0]
    ticks = [label.get_text() for label in top.get_yticklabels()]
    assert all(len(tick) <= 8 for tick in ticks)
    assert len(set(ticks)) == len(ticks)
    assert display.axes_[-1].get_xticks().tolist() == [1]
    (name, *_) = texts(display.legend_)
    assert max(map(len, name.split("\n"))) <= 28
    assert name.replace("\n", " ") == display.courses[0].name
