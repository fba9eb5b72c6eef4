"""Kernel machines on a cluster of processes: workers that die, interrupts, limits of time."""

import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.engines.dask import client as clients
from maxmargin.engines.dask import rows
from maxmargin.engines.dask.client import ClusterError
from maxmargin.estimators import formulation
from maxmargin.solvers.dual import partitioned as first_guess
from tests.helpers.clusters import LONG, Once, comes_to, kill_one, n_tasks, n_workers, new_cluster

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N, D, ROWS, TOL = 900, 4, 300, 1e-4
MACHINES = {
    "SVC": mm.SVC(C=2.0, tol=TOL),
    "NuSVC": mm.NuSVC(nu=0.6, tol=TOL),
    "SVR": mm.SVR(C=2.0, tol=TOL),
    # The gap, which bounds the distance of two answers, is relative to ρ of one class.
    "OneClassSVM": mm.OneClassSVM(nu=0.2, tol=0.01 * TOL),
}
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def local():
    """Return a cluster; workers that tests kill are started again."""
    with new_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(local):
    """Return a client of it."""
    with distributed.Client(local) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(autouse=True)
def _in_partitions(monkeypatch):
    """Solve tasks of some hundred rows as if they were too many for the client."""
    few = replace(formulation.TUNING, gathered_rows=300)
    monkeypatch.setattr(formulation, "TUNING", few)
    monkeypatch.setattr(first_guess, "TUNING", replace(first_guess.TUNING, sample_rows=100))


def data():
    """Return rows of overlapping classes, and targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    level = X[:, 0] + X[:, 1] + 0.5 * np.sin(3.0 * X[:, 2]) + 0.3 * rng.standard_normal(N)
    return X, (level > 0.2).astype(int), 3.0 + 2.0 * level


def arguments(name, lazy=True):
    """Return X and the labels or targets of a machine, as Dask arrays that are computed."""
    X, labels, targets = data()
    given = [X] if name == "OneClassSVM" else [X, targets if name == "SVR" else labels]
    if not lazy:
        return given
    blocks = [da.from_array(X, chunks=(ROWS, -1)).map_blocks(lambda block: block + 0.0)]
    return blocks + [da.from_array(each, chunks=ROWS) for each in given[1:]]


def check_same(model, name):
    """Assert that a fit has the function of one in memory, and that its certificate holds."""
    other = clone(MACHINES[name]).fit(*arguments(name, lazy=False))
    assert model.certificate_.holds(TOL)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=20.0 * TOL)
    X = data()[0]
    expected = other.predict(X) if name == "SVR" else other.decision_function(X)
    found = model.predict(X) if name == "SVR" else model.decision_function(X)
    np.testing.assert_allclose(found, expected, atol=30.0 * TOL * np.abs(expected).max())


# A worker dies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SVC", "lazy"),
        pytest.param("OneClassSVM", "lazy", marks=SLOW),
        pytest.param("NuSVC", "lazy", marks=SLOW),
        pytest.param("SVR", "lazy", marks=SLOW),
        pytest.param("SVC", "persisted", marks=SLOW),
        pytest.param("SVC", "streamed", marks=SLOW),
    ],
)
def test_the_answer_is_the_same_after_a_worker_was_killed(client, name, kind, monkeypatch):
    given = arguments(name)
    if kind == "persisted":
        given = client.persist(given)
        distributed.wait(given)
    if kind == "streamed":
        monkeypatch.setattr(rows, "TUNING", replace(rows.TUNING, held_share=0.0))
    kill = Once(lambda: kill_one(client))
    model = clone(MACHINES[name]).set_params(callback=kill).fit(*given)
    assert kill.n_steps > 1
    asked = [each.name for each in model.fit_report_.all_rounds]
    assert "begin" in asked  # it was solved where the rows are
    assert model.fit_report_.streamed == (kind == "streamed")
    check_same(model, name)


@pytest.mark.parametrize("name", ["SVC", pytest.param("OneClassSVM", marks=SLOW)])
def test_no_worker_left(name, monkeypatch):
    monkeypatch.setattr(clients, "TUNING", replace(clients.TUNING, patience_seconds=2.0))
    given = arguments(name)
    with new_cluster(1, processes=False) as cluster, distributed.Client(cluster) as client:

        def leave():
            leave.at = time.monotonic()
            cluster.scale(0)
            assert comes_to(0, lambda: n_workers(client))

        model = clone(MACHINES[name]).set_params(callback=Once(leave))
        with pytest.raises(ClusterError, match=r"no worker for 2 s.*wait_for_workers"):
            model.fit(*given)
        assert time.monotonic() - leave.at < LONG
        assert not hasattr(model, "dual_coef_")
        assert comes_to(0, lambda: n_tasks(client))
        cluster.scale(1)
        client.wait_for_workers(1)
        check_same(clone(MACHINES[name]).fit(*given), name)


# Interrupts and limits of time --------------------------------------------------------------------


def test_an_interrupt_cancels_the_graph(client, local):
    script = """
    import os, signal, sys, threading, time
    from dataclasses import replace
    import dask.array as da, numpy as np
    from distributed import Client
    import maxmargin as mm
    from maxmargin.estimators import formulation

    signal.signal(signal.SIGINT, signal.default_int_handler)
    formulation.TUNING = replace(formulation.TUNING, gathered_rows=100)
    here = os.getpid()

    def slow(X, Z):
        if os.getpid() != here:
            time.sleep(0.05)  # of many calls in a round
        return np.exp(-0.25 * np.square(X[:, np.newaxis] - Z).sum(axis=2))

    def interrupt():
        interrupt.at = time.monotonic()
        os.kill(here, signal.SIGINT)

    def arm(step):
        if not armed:
            armed.append(threading.Timer(0.2, interrupt))
            armed[0].start()

    armed = []
    with Client(sys.argv[1]) as client:
        rng = np.random.default_rng(0)
        X = da.from_array(rng.standard_normal((200, 2)), chunks=(100, 2))
        y = da.from_array(rng.integers(2, size=200), chunks=100)
        model = mm.SVC(kernel=slow, callback=arm)
        try:
            model.fit(X, y)
        except KeyboardInterrupt as error:
            kept = error  # as a session does, and with it all frames of the fit
            print(time.monotonic() - interrupt.at, hasattr(model, "dual_coef_"))
        time.sleep(0.5)
        print(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        print(client.submit(len, "abc").result())
    """
    command = [sys.executable, "-c", textwrap.dedent(script), local.scheduler_address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seconds, is_fitted, n_keys, length = done.stdout.split()
    assert float(seconds) < 1.0
    assert (is_fitted, n_keys, length) == ("False", "0", "3")


@pytest.mark.parametrize("name", ["SVC", "OneClassSVM"])
def test_a_limit_of_time_ends_with_the_best_so_far(client, name):
    slow = Once(lambda: time.sleep(0.6))
    model = clone(MACHINES[name]).set_params(time_limit=0.5, callback=slow)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(*arguments(name))
    assert model.fit_status_ == 1
    assert np.isfinite(model.certificate_.gap)
    assert model.certificate_.box == 0.0
    assert comes_to(0, lambda: n_tasks(client))
