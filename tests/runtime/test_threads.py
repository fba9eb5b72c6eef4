"""Threads and the limits of BLAS, with Ctrl-C at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from maxmargin.runtime import threads


@pytest.fixture
def interrupted() -> Iterator[Callable[[Callable[[], object], float], bool]]:
    """Return a function that repeats work until Ctrl-C ends it, and says whether it did."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("needs the timers of POSIX")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def until(work: Callable[[], object], seconds: float) -> bool:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            lost = time.perf_counter() + 60.0
            while time.perf_counter() < lost:
                work()
        except KeyboardInterrupt:
            return True
        return False

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield until
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def moments(n: int) -> list[float]:
    return np.random.default_rng(0).uniform(1e-4, 2e-3, n).tolist()


def blas_limits() -> list[int]:
    libraries = threads._libraries().select(user_api="blas").lib_controllers
    return [library.get_num_threads() for library in libraries]


def test_no_interruption_is_lost(interrupted):
    assert all(interrupted(lambda: threads.interruptible(int), s) for s in moments(1000))


def test_interruptible_work_returns_and_raises():
    assert threads.interruptible(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        threads.interruptible(lambda: 1 // 0)


@pytest.fixture
def _two_threads_of_blas() -> Iterator[None]:
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("_two_threads_of_blas")
def test_limits_of_blas_are_restored_after_interruptions(interrupted):
    before = blas_limits()

    def limit() -> None:
        with threads.at_most(1), threads.single_threaded_blas():
            pass

    for seconds in moments(300):
        interrupted(limit, seconds)
    assert not len(threads._users)
    assert getattr(threads._here, "limit", None) is None
    limit()
    assert blas_limits() == before


@pytest.mark.usefixtures("_two_threads_of_blas")
def test_the_last_user_restores_the_limits_of_blas():
    before = blas_limits()
    with threads.single_threaded_blas():
        with threads.single_threaded_blas():
            pass
        assert set(blas_limits()) == {1}
    assert blas_limits() == before


@pytest.mark.parametrize(("limit", "share"), [(8, 4), (5, 2), (2, 1)])
def test_cores_are_shared_among_parts(limit, share):
    with threads.at_most(limit):
        inside = threads.in_parallel(lambda part, stop: threads.n_threads(), range(2))
        assert inside == [share, share]
        assert threads.n_threads() == limit


FAILS_WHILE_OTHERS_WORK = """
import threading
import torch
from maxmargin.runtime.threads import in_parallel

begun = threading.Event()

def work(part, stop):
    if threading.current_thread() is threading.main_thread():
        begun.wait()
        raise ValueError("the main thread ends")
    begun.set()
    A = torch.ones(2000, 2000)
    stop.wait()
    for _ in range(10):
        A @ A

in_parallel(work, [0, 1])
"""


def test_a_process_does_not_end_threads_within_torch():
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", FAILS_WHILE_OTHERS_WORK],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.stderr.rstrip().endswith("ValueError: the main thread ends")
    assert done.returncode == 1


def test_a_thread_that_waits_is_stood_in_for():
    """Parts that are left to one thread have parallel work of their own: it uses all cores."""
    from maxmargin.runtime import team  # noqa: F401  its workers do the work of helpers

    started, both = threading.Barrier(2), threading.Barrier(2)

    def work(part, stop):
        started.wait(10.0)
        if part == 0:  # done: its thread waits for the other part
            return True
        time.sleep(0.05)
        threads.in_parallel(lambda k, stop: both.wait(10.0), range(2))
        return True

    if threads.n_threads() != 2:
        pytest.skip("as many parts as cores, for two of them")
    assert threads.in_parallel(work, range(2)) == [True, True]
