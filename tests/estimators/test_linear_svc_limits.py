"""Limits, callbacks, recorded steps, progress output and Ctrl-C of LinearSVC."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.linear_svc import LOSSES, SOLVERS, TOL, apart, assert_certified, cloud, made


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_iteration_limit(solver, loss, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = made(max_iter=1, solver=solver, loss=loss)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    for told in ("max_iter=1", "relative gap", "Raise max_iter"):
        assert told in message
    assert model.status_ is mm.Status.ITERATION_LIMIT
    assert model.n_iter_ == 1
    assert not model.certificate_.holds(TOL)
    assert 0.0 < model.certificate_.gap < np.inf
    assert np.isfinite(model.decision_function(X)).all()
    assert set(model.predict(X)) <= set(range(n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_time_limit(solver, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = mm.LinearSVC(time_limit=1e-9, solver=solver)
    with pytest.warns(ConvergenceWarning, match="time_limit") as caught:
        model.fit(X, y)
    assert "relative gap" in str(caught[0].message)
    assert model.status_ is mm.Status.TIME_LIMIT
    assert 0.0 < model.certificate_.gap < np.inf
    assert np.isfinite(model.decision_function(X)).all()


def test_a_hard_margin_has_limits_too():
    X, y = apart()
    for limit in ({"max_iter": 1}, {"time_limit": 1e-9}):
        with pytest.warns(ConvergenceWarning):
            model = mm.LinearSVC(C=np.inf, **limit).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert not model.certificate_.holds(TOL)


def test_no_limit_at_all():
    model = mm.LinearSVC(max_iter=-1).fit(*cloud())
    assert model.certificate_.holds(TOL)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_callback_sees_every_step_and_stops(solver, loss):
    X, y = cloud()
    seen = []

    def watch(step):
        seen.append((step.iteration, step.objective))
        return len(seen) == 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = made(C=100.0, tol=1e-10, solver=solver, loss=loss, callback=watch).fit(X, y)
    assert model.status_ is mm.Status.STOPPED
    assert [iteration for iteration, _ in seen] == [1, 2]
    assert model.trace_.objective.tolist() == [objective for _, objective in seen]
    assert model.n_iter_ == 2
    assert not model.certificate_.holds(1e-10)
    assert np.isfinite(model.certificate_.gap)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_recorder_keeps_every_step(solver, n_classes):
    X, y = cloud(n_classes=n_classes)
    recorder = mm.Recorder()
    model = made(callback=recorder, solver=solver).fit(X, y)
    assert {step.task for step in recorder.steps} == set(range(len(model.coef_)))
    assert sum(len(trace) for trace in model.traces_) == len(recorder.steps)
    for k, w in enumerate(model.coef_):
        last = [step for step in recorder.steps if step.task == k][-1]
        np.testing.assert_allclose(last.planes()[0][0], w, atol=0.5)
    assert_certified(model, X, y)


def test_verbose_prints_one_line_per_step(capsys):
    X, y = cloud(n_classes=3)
    model = made(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(trace) for trace in model.traces_)
    for name in ("[0 against the rest]", "[2 against the rest]"):
        assert any(line.startswith(name) and "objective" in line for line in lines)
    made().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("max_iter", [-1, 1000])
def test_progress_bars_of_scikit_learn(max_iter, capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, y = cloud(n_classes=3)
    model = made(max_iter=max_iter).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "LinearSVC" in capsys.readouterr().out
    assert_certified(model, X, y)


LONG_FITS = {
    "newton": "mm.LinearSVC(loss='hinge', tol=1e-12).fit(*many(500_000, 30))",
    "coordinate-descent": "mm.LinearSVC(C=100.0, loss='hinge', "
    "solver='coordinate-descent', tol=1e-12).fit(X, y)",
    "l1": "mm.LinearSVC('l1', C=1e3, tol=1e-14, max_iter=-1).fit(noise, np.arange(1500) % 2)",
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_ctrl_c_stops_a_long_fit(interpreter, name):
    given = "X, y = many(100_000, 30); X = sparse.csr_matrix(X); "
    given += "noise = np.random.default_rng(0).standard_normal((1500, 6000))"
    interpreter.interrupt(LONG_FITS[name], given)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "solver='interior-point'",
        "loss='squared_hinge', solver='newton'",
        "C=np.inf",
        "multi_class='crammer_singer'",
    ],
)
def test_ctrl_c_stops_other_solvers(interpreter, options):
    options = f"**{{'loss': 'hinge', 'tol': 1e-14, **dict({options})}}"
    interpreter.interrupt(f"mm.LinearSVC({options}).fit(*many(1_000_000, 60, 3))")
