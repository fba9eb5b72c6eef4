"""Limits, callbacks, recorded steps, progress output and Ctrl-C of SVC and NuSVC."""

from __future__ import annotations

import warnings
from itertools import combinations, count, pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.engines.cpu import working_set
from maxmargin.problems import DualProblem
from tests.helpers.clocks import set_clock
from tests.helpers.svc import LOSSES, TOL, assert_certified, cloud, signs

# Limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "smo", "active-set", "decomposition"])
@pytest.mark.parametrize("loss", LOSSES)
def test_iteration_limit(loss, solver):
    X, y = cloud()
    model = LOSSES[loss](max_iter=5, solver=solver)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    message = str(caught[0].message)
    for told in ("max_iter=5", f"{model.certificate_.relative_gap:.1e}", "StandardScaler"):
        assert told in message
    assert model.status_ is mm.Status.ITERATION_LIMIT
    assert model.n_iter_[0] <= 5
    assert model.fit_status_ == 1
    assert not model.certificate_.holds(TOL)
    assert model.predict(X).shape == y.shape
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(("factor", "is_told"), [(1.0, False), (1e4, True)])
def test_bad_scaling_is_told_where_features_spread_unequally(factor, is_told):
    X, y = cloud()
    with pytest.warns(ConvergenceWarning) as caught:
        mm.SVC(max_iter=5).fit(X * np.append(np.ones(X.shape[1] - 1), factor), y)
    assert ("times as far as the narrowest" in str(caught[0].message)) == is_told


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_warning_points_at_the_callers_line(n_classes):
    X, y = cloud(n_classes=n_classes)
    with pytest.warns(ConvergenceWarning) as caught:
        mm.SVC(max_iter=5).fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("make", [mm.SVC, lambda **options: mm.NuSVC(0.3, **options)])
def test_time_limit(make, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = make(time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert model.status_ is mm.Status.TIME_LIMIT
    assert not model.certificate_.holds(TOL)
    assert model.certificate_.gap > 0
    assert set(model.predict(X)) <= set(range(n_classes))


def test_time_limit_is_kept(monkeypatch):
    """In the middle of a problem that takes much longer."""
    X, y = cloud(4500, seed=1)
    set_clock(monkeypatch, range(20))  # a second passes from look to look
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = mm.SVC(C=1e5, gamma=1.0, time_limit=8.0).fit(X, y)
    assert model.status_ is mm.Status.TIME_LIMIT
    assert model.score(X, y) > 0.5
    assert 0 < model.certificate_.gap < np.inf


def test_no_time_is_left_for_the_last_classes(monkeypatch):
    X, y = cloud(4500, n_classes=3)
    set_clock(monkeypatch, count())
    with pytest.warns(ConvergenceWarning):
        model = mm.SVC(C=1e4, gamma=1.0, multi_class="ovr", time_limit=15.0).fit(X, y)
    assert model.statuses_[-1] is mm.Status.TIME_LIMIT
    assert set(model.statuses_) <= {mm.Status.CONVERGED, mm.Status.TIME_LIMIT}
    assert len(model.certificates_) == 3


def test_max_iter_0():
    X, y = cloud()
    with pytest.warns(ConvergenceWarning):
        model = mm.SVC(max_iter=0).fit(X, y)
    assert model.n_iter_[0] == 0
    assert model.support_.size == 0
    assert model.certificate_.dual == pytest.approx(0.0, abs=1e-9)  # rounded down
    assert model.predict(X).shape == y.shape


# Callbacks ----------------------------------------------------------------------------------------


def test_a_callback_sees_every_round_and_stops():
    X, y = cloud(4500, seed=1)
    seen = []

    def watch(step):
        seen.append((step.iteration, step.objective, step.violation))
        return len(seen) == 3

    model = mm.SVC(C=100.0, callback=watch).fit(X, y)
    assert model.status_ is mm.Status.STOPPED
    assert [iteration for iteration, _, _ in seen] == [1, 2, 3]
    assert (np.diff([objective for _, objective, _ in seen]) < 0).all()
    assert model.trace_.objective.tolist() == [objective for _, objective, _ in seen]
    # The model is that of the last step, and says itself how good it is.
    assert -model.certificate_.dual == pytest.approx(seen[-1][1], rel=1e-5)
    assert not model.certificate_.holds(TOL)


def test_a_recorder_keeps_every_step():
    X, y = cloud()
    recorder = mm.Recorder()
    model = mm.SVC(callback=recorder, solver="smo", tol=1e-6).fit(X, y)
    problem = DualProblem.hinge(model.kernel_, X, signs(y), 1.0)
    assert len(recorder.steps) == len(model.trace_) > 0
    for step in recorder.steps:
        solution = step.snapshot()
        certificate = mm.certify(problem, solution)
        assert certificate.dual == pytest.approx(-step.objective, rel=1e-8)
        # Of a pair; each is within half of it of some b.
        assert certificate.violation <= step.violation + 1e-9
        scores = model.kernel_(X) @ (solution.alpha * signs(y)) + solution.b
        assert step.errors == (signs(y) * scores <= 0).sum()
    last = recorder.steps[-1].snapshot()
    np.testing.assert_allclose(last.alpha[model.support_], np.abs(model.dual_coef_[0]), atol=1e-12)


def test_a_recorder_of_many_classes():
    X, y = cloud(n_classes=3)
    recorder = mm.Recorder()
    model = mm.SVC(callback=recorder).fit(X, y)
    assert {step.task for step in recorder.steps} == {0, 1, 2}
    assert sum(len(trace) for trace in model.traces_) == len(recorder.steps)
    assert_certified(model, X, y)


@pytest.mark.parametrize("solver", ["smo", "decomposition"])
def test_a_recorder_of_every_update_sees_pair_after_pair(solver):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    X, y = np.vstack([X, X + np.array([3.0, -2.0])]), np.concatenate([y, y])
    recorder = mm.Recorder(every_update=True)
    watched = mm.SVC(solver=solver, C=2.0, callback=recorder).fit(X, y)
    assert len(recorder.steps) == watched.n_iter_.max() > 3
    alphas = [step.alpha() for step in recorder.steps]
    moved = [np.count_nonzero(b - a) for a, b in pairwise(alphas)]
    assert max(moved) <= 2
    alone = mm.SVC(solver=solver, C=2.0).fit(X, y)
    np.testing.assert_allclose(watched.decision_function(X), alone.decision_function(X), atol=1e-2)


def test_steps_say_which_rows_their_task_is_about():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    recorder = mm.Recorder()
    model = mm.SVC(C=10.0, callback=recorder).fit(X, y)
    last = {step.task: step for step in recorder.steps}
    assert len(last) == 10
    for task, (i, j) in enumerate(combinations(range(5), 2)):
        step = last[task]
        assert set(y[step.rows]) == {i, j}
        assert (step.labels == np.where(y[step.rows] == i, 1.0, -1.0)).all()
        K = model.kernel_(X, X[step.rows])
        g = K @ (step.alpha() * step.labels) + step.snapshot().b[0]
        pairs = mm.SVC(C=10.0, gamma=model.kernel_.gamma).fit(X[step.rows], y[step.rows] == i)
        np.testing.assert_allclose(g, pairs.decision_function(X), atol=0.05)


def test_verbose_prints_one_line_per_round(capsys):
    X, y = cloud(n_classes=3)
    model = mm.SVC(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(trace) for trace in model.traces_)
    for name in ("[0 against 1]", "[0 against 2]", "[1 against 2]"):
        assert any(line.startswith(name) and "objective" in line for line in lines)
    mm.SVC().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", [-1, 10_000])
def test_progress_bars_of_scikit_learn(n_classes, max_iter, capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, y = cloud(n_classes=n_classes)
    model = mm.SVC(max_iter=max_iter).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "SVC" in capsys.readouterr().out
    assert_certified(model, X, y)


# Ctrl-C -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "solver"), [(3000, "auto"), (4500, "auto"), (4500, "smo")])
def test_slices_of_work_are_short(n, solver, monkeypatch):
    """A step reads some n numbers: 3·10⁸ of them take some tenths of a second."""
    sizes = []

    def solve(self, state, stop, max_steps):
        sizes.append(max_steps * self.members.size)
        return plain(self, state, stop, max_steps)

    plain = working_set.WorkingSet.solve
    monkeypatch.setattr(working_set.WorkingSet, "solve", solve)
    mm.SVC(solver=solver).fit(*cloud(n))
    assert max(sizes) <= 3e8


LONG_FITS = {
    "decomposition": "mm.SVC(C=1e6, gamma=1.0, tol=1e-9).fit(*many(20_000, 5))",
    "many classes": "mm.SVC(C=1e6, gamma=1.0, tol=1e-9).fit(*many(9_000, 5, 6))",
    "large classes": "mm.SVC(C=1e6, gamma=1.0, tol=1e-9).fit(*many(20_000, 5, 4))",
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_ctrl_c_stops_a_long_fit(interpreter, name):
    interpreter.interrupt(LONG_FITS[name])


def test_ctrl_c_stops_a_long_prediction(interpreter):
    given = "model = mm.SVC(gamma=1.0, max_iter=5000).fit(*many(2000, 5))"
    interpreter.interrupt("model.predict(many(3_000_000, 5)[0])", given, "maxmargin")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "solver='smo'",
        "solver='qp'",
        "solver='active-set'",
        "solver='coordinate-ascent', fit_intercept=False",
    ],
)
def test_ctrl_c_stops_other_solvers(interpreter, options):
    interpreter.interrupt(f"mm.SVC(C=1e6, gamma=1.0, tol=1e-9, {options}).fit(*many(5_000, 5))")


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-9}])
def test_a_hard_margin_that_is_cut_short_warns_in_its_own_words(limit):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mm.SVC(C=np.inf, **limit).fit(X, X[:, 0] > 0.4 * rng.normal(size=60))
    assert caught
    assert {each.category for each in caught} == {ConvergenceWarning}
