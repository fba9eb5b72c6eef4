"""Faults of a cluster of processes: workers that die, schedulers that go, interrupts."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.engines.dask import client as clients
from maxmargin.engines.dask import rows
from maxmargin.engines.dask.client import ClusterError
from maxmargin.engines.dask.cluster import Cluster
from tests.helpers.clusters import LONG, Once, comes_to, kill_one, n_tasks, n_workers, new_cluster

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N, D, ROWS = 1200, 5, 300
TOL = 1e-9


@pytest.fixture(scope="module")
def local():
    """Return a cluster that tests leave as it is; workers that they kill are started again."""
    with new_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(local):
    """Return a client of it."""
    with distributed.Client(local) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def impatient(monkeypatch):
    """Give up early where there is no worker."""
    monkeypatch.setattr(clients, "TUNING", replace(clients.TUNING, patience_seconds=2.0))


@pytest.fixture
def streamed(monkeypatch):
    """Keep no rows on the workers."""
    monkeypatch.setattr(rows, "TUNING", replace(rows.TUNING, held_share=0.0))


def data(seed=0):
    """Return rows that no plane separates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=N)
    X = rng.standard_normal((N, D)) + 0.8 * rng.standard_normal((2, D))[y]
    return X, y


def collections(X, y):
    """Return them as Dask arrays that are computed, from blocks in their graph."""
    dX = da.from_array(X, chunks=(ROWS, -1)).map_blocks(lambda block: block + 0.0)
    return dX, da.from_array(y, chunks=ROWS)


def in_memory(X, y):
    """Return the fit to the same rows in memory."""
    return mm.LinearSVC(tol=TOL).fit(X, y)


def same(model, other):
    """Assert that a fit has the plane of another, and that its certificate holds."""
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-7, atol=1e-9)
    assert model.certificate_.holds(1e-8)
    assert model.certificate_.n_checked == N


# No worker, no scheduler --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ("scaled", {"processes": False}),
        pytest.param("killed", {"processes": True}, marks=pytest.mark.slow),
    ],
)
def test_no_worker_left(impatient, how, options):
    X, y = data()
    with new_cluster(1, **options) as cluster, distributed.Client(cluster) as client:
        dX, dy = collections(X, y)

        def leave():
            leave.at = time.monotonic()
            if how == "scaled":
                cluster.scale(0)
            else:
                for nanny in cluster.workers.values():
                    nanny.close_gracefully()  # do not start it again
                kill_one(client)
            assert comes_to(0, lambda: n_workers(client))

        model = mm.LinearSVC(tol=TOL, callback=Once(leave))
        with pytest.raises(ClusterError, match=r"no worker for 2 s.*wait_for_workers"):
            model.fit(dX, dy)
        assert time.monotonic() - leave.at < LONG
        assert not hasattr(model, "coef_")
        assert comes_to(0, lambda: n_tasks(client))
        cluster.scale(2)  # one more than there was
        client.wait_for_workers(1)
        same(mm.LinearSVC(tol=TOL).fit(dX, dy), in_memory(X, y))


def test_no_worker_from_the_beginning(impatient):
    dX, dy = collections(*data())
    with new_cluster(0, processes=False) as empty, distributed.Client(empty):
        started = time.monotonic()
        with pytest.raises(ClusterError, match="has had no worker"):
            mm.LinearSVC().fit(dX, dy)
        assert time.monotonic() - started < LONG


def test_the_scheduler_goes_away():
    X, y = data()
    other = new_cluster(1, processes=False)
    with distributed.Client(other, timeout=3) as own:
        dX, dy = collections(X, y)
        leave = Once(other.close)
        started = time.monotonic()
        with pytest.raises(ClusterError, match="connection to the Dask scheduler was lost"):
            mm.LinearSVC(callback=leave).fit(dX, dy)
        assert time.monotonic() - started < LONG
        assert leave.is_done
        assert own.status != "running"
    with new_cluster(1, processes=False) as another, distributed.Client(another):
        same(mm.LinearSVC(tol=TOL).fit(dX, dy), in_memory(X, y))


# Interrupts and limits of time --------------------------------------------------------------------


def test_an_interrupt_cancels_the_graph(client, local):
    script = """
    import os, signal, sys, threading, time
    import dask.array as da, numpy as np
    from distributed import Client, wait
    import maxmargin as mm
    from tests.helpers.clusters import comes_to, n_tasks

    def slow(block):
        import time

        time.sleep(0.5)
        return block

    with Client(sys.argv[1]) as client:
        y = client.persist(da.from_array(np.arange(600) % 2, chunks=2))
        wait(y)
        X = da.random.random((600, 2), chunks=(2, 2)).map_blocks(slow)  # 75 s of two workers
        model = mm.LinearSVC()

        def interrupt():
            while not any(client.processing().values()):
                time.sleep(0.05)
            interrupt.at = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        try:
            model.fit(X, y)
        except KeyboardInterrupt as error:
            kept = error  # as a session does, and with it all frames of the fit
            print(time.monotonic() - interrupt.at, hasattr(model, "coef_"))
        print(comes_to(300, lambda: n_tasks(client)))  # the labels are the caller's
        print(y.sum().compute(), client.submit(len, "abc").result())
    """
    command = [sys.executable, "-c", textwrap.dedent(script), local.scheduler_address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seconds, is_fitted, are_released, total, length = done.stdout.split()
    assert float(seconds) < 30.0  # not at the end of the round
    assert (is_fitted, are_released, total, length) == ("False", "True", "300", "3")


def test_a_limit_of_time_ends_with_the_best_plane_so_far(client):
    X, y = data()
    dX, dy = collections(X, y)
    slow = Once(lambda: time.sleep(0.6))
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = mm.LinearSVC(tol=TOL, loss="hinge", time_limit=0.5, callback=slow).fit(dX, dy)
    assert model.fit_report_.rounds < 30
    assert np.isfinite(model.certificate_.gap)
    assert model.coef_.shape == (1, D)


# Several fits, and what belongs to the caller -----------------------------------------------------


def test_two_fits_at_once(client, local):
    found = {}

    def fit(seed, client):
        with client.as_current():
            X, y = data(seed)
            found[seed] = mm.LinearSVC(tol=TOL).fit(*collections(X, y))

    with distributed.Client(local) as other:
        threads = [
            threading.Thread(target=fit, args=arguments)
            for arguments in ((1, client), (2, client), (3, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for seed in (1, 2, 3):
        same(found[seed], in_memory(*data(seed)))


def test_the_collections_of_the_caller_stay(client):
    X, y = data()
    dX, dy = client.persist(list(collections(X, y)))
    distributed.wait([dX, dy])
    mine = n_tasks(client)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # among others that of large graphs
        model = mm.LinearSVC(tol=TOL).fit(dX, dy)
    assert comes_to(mine, lambda: n_tasks(client))
    with pytest.raises(ValueError, match="Partition 0"):
        mm.LinearSVC().fit(dX, np.full(N, np.inf))
    with pytest.raises(ZeroDivisionError):
        mm.LinearSVC(callback=lambda step: 1 // 0).fit(dX, dy)
    assert comes_to(mine, lambda: n_tasks(client))
    np.testing.assert_array_equal(dX.compute(), X)
    same(model, in_memory(X, y))
    del model, dX, dy
    gc.collect()
    assert comes_to(0, lambda: n_tasks(client))


def test_large_vectors_in_memory_do_not_warn(client):
    n = 1_500_000  # 12 MB of labels in one partition
    y = np.arange(n) % 2
    dX = da.from_array(np.ones((1, 2)), chunks=(1, 2)).map_blocks(
        lambda block: np.random.default_rng(0).random((n, 2), dtype=np.float32),
        chunks=((n,), (2,)), dtype=np.float32,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = rows.receive(dX, y, None).X.report
    assert report.n_samples == n


# Where tasks run ----------------------------------------------------------------------------------


def test_the_active_client_is_taken(client):
    assert Cluster.current().backend.client is client
    assert Cluster.current().report.n_workers == 2
    with dask.config.set(scheduler="threads"):
        assert Cluster.current().report.scheduler == "threads"
    with dask.config.set(scheduler="synchronous"):
        report = Cluster.current().report
        assert (report.scheduler, report.n_threads) == ("synchronous", 1)
        X, y = data()
        same(mm.LinearSVC(tol=TOL).fit(*collections(X, y)), in_memory(X, y))
    other = distributed.Client(client.cluster, set_as_default=False)
    with other, other.as_current():
        assert Cluster.current().backend.client is other
    assert Cluster.current().backend.client is client


def test_a_fit_inside_of_a_task(client):
    X, y = data()

    def task():
        import dask.array as da

        dX, dy = da.from_array(X, chunks=(ROWS, -1)), da.from_array(y, chunks=ROWS)
        return mm.LinearSVC(tol=TOL).fit(dX, dy)

    # As many as there are threads: each must let the other go on.
    models = client.gather([client.submit(task, pure=False) for _ in range(2)])
    for model in models:
        assert model.fit_report_.n_workers == 2
        same(model, in_memory(X, y))


# Versions of Python and of packages are compared by Dask when a client connects, and when tasks are
# unpickled on workers; nothing of it is done here, and what Dask raises in a round is raised as it
# is, as is every error of a task.


def test_errors_of_tasks_are_raised_as_they_are(client):
    X, y = data()
    dX, dy = collections(X, y)

    def missing(block):
        raise FileNotFoundError("part-3.parquet")

    with pytest.raises(FileNotFoundError, match="part-3"):
        mm.LinearSVC().fit(dX.map_blocks(missing, meta=np.empty((0, D)), dtype=float), dy)
    assert comes_to(0, lambda: n_tasks(client))


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_more_rows_than_memory():
    n, d, chunk = 3_000_000, 40, 50_000  # 480 MB

    def made(block_info=None):
        k = block_info[None]["chunk-location"][0]
        return np.random.default_rng(k).random((chunk, d), dtype=np.float32) - np.float32(0.5)

    def labels(block):
        scores = block @ np.linspace(-1.0, 1.0, d)
        return scores + np.sin(1e4 * block[:, 0]) > 0.0

    def worst_memory():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def spilled_bytes():
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["metrics"]["spilled_bytes"]["disk"] for worker in workers)

    X = da.map_blocks(made, chunks=((chunk,) * (n // chunk), (d,)), dtype=np.float32)
    y = X.map_blocks(labels, drop_axis=1, dtype=bool)
    with new_cluster(2, memory_limit="500 MB") as cluster, distributed.Client(cluster) as client:
        streamed = mm.LinearSVC(tol=1e-4).fit(X, y)
        assert streamed.fit_report_.streamed
        assert max(client.run(worst_memory).values()) < 500e6
        X = client.persist(X)
        distributed.wait(X)
        assert spilled_bytes() > 0
        spilled = mm.LinearSVC(tol=1e-4).fit(X, y)
        assert not spilled.fit_report_.streamed
    for model in (streamed, spilled):
        assert model.certificate_.holds(1e-3)
        assert model.certificate_.n_checked == n
    np.testing.assert_allclose(spilled.coef_, streamed.coef_, rtol=1e-6, atol=1e-9)


# A worker dies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "lazy",
        pytest.param("persisted", marks=pytest.mark.slow),
        pytest.param("streamed", marks=pytest.mark.slow),
    ],
)
def test_the_answer_is_the_same_after_a_worker_was_killed(client, kind, request):
    X, y = data()
    dX, dy = collections(X, y)
    if kind == "persisted":
        dX, dy = client.persist([dX, dy])
        distributed.wait([dX, dy])
    if kind == "streamed":
        request.getfixturevalue("streamed")
    kill = Once(lambda: kill_one(client))
    model = mm.LinearSVC(tol=TOL, callback=kill).fit(dX, dy)
    assert kill.is_done
    assert model.fit_report_.streamed == (kind == "streamed")
    same(model, in_memory(X, y))


@pytest.mark.slow
def test_labels_in_memory_come_back_with_a_worker(client):
    X, y = data()
    dX, _ = collections(X, y)
    kill = Once(lambda: kill_one(client))
    weights = np.random.default_rng(1).integers(1, 3, size=N).astype(float)
    model = mm.LinearSVC(tol=TOL, callback=kill).fit(dX, y, weights)
    assert kill.is_done
    same(model, mm.LinearSVC(tol=TOL).fit(X, y, weights))


def test_a_partition_that_kills_its_workers_is_reported(client):
    X, y = data()
    dX, dy = collections(X, y)

    def deadly(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    def allow(n, dask_scheduler):
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, n
        return before

    before = client.run_on_scheduler(allow, 0)
    try:
        with pytest.raises(ClusterError, match="use smaller partitions"):
            mm.LinearSVC().fit(dX.map_blocks(deadly, meta=np.empty((0, D)), dtype=float), dy)
    finally:
        client.run_on_scheduler(allow, before)
    assert comes_to(0, lambda: n_tasks(client))


@pytest.mark.slow
def test_scattered_rows_that_are_lost_end_with_an_error(client):
    X, y = data()
    worker = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    pid = client.run(os.getpid, workers=[worker])[worker]
    blocks = client.scatter([X[k : k + ROWS] for k in range(0, N, ROWS)], workers=[worker])
    lazy = [da.from_delayed(dask.delayed(b), (ROWS, D), float) for b in blocks]
    dX = da.concatenate(lazy).map_blocks(np.ascontiguousarray)
    kill = Once(lambda: os.kill(pid, signal.SIGKILL))
    with pytest.raises(ClusterError, match="cannot be computed again"):
        mm.LinearSVC(callback=kill).fit(dX, y)
