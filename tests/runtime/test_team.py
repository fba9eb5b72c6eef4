"""Parallel regions of compiled code on the threads of the team."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from maxmargin.runtime import team
from maxmargin.runtime.atomics import SUPPORTED, add, now
from maxmargin.runtime.team import parallel
from maxmargin.runtime.threads import at_most, in_parallel

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="needs the system calls of POSIX")


@parallel
def square(part, x, out):
    out[part] = x[part] * x[part]


@parallel
def count_threads(part, address, most, milliseconds):
    """Note how many threads are in a part at the same time."""
    here = add(address, 1) + 1
    most[part] = here
    until = now() + milliseconds * 1_000_000
    while now() < until:
        pass
    add(address, -1)


@parallel
def sum_slices(part, pair, out):
    """Take slices of arrays in a tuple, whose references are counted elsewhere."""
    x, z = pair
    for k in range(100):
        row = x[part][k % 3 :]
        out[part] += row.sum() + z[k % 3 : k % 3 + 4].sum()


@parallel
def allocate(part, sizes):
    np.empty(sizes[part])


@parallel
def spin(part, done, milliseconds):
    until = now() + milliseconds * 1_000_000
    while now() < until:
        pass
    done[part] = 1


def most_threads(n_jobs: int) -> int:
    word, most = np.zeros(1, dtype=np.int64), np.zeros(24, dtype=np.int64)
    with at_most(n_jobs):
        count_threads(24, word.ctypes.data, most, 5)
    assert word[0] == 0
    return int(most.max())


def squares_are_right(n: int = 1000) -> None:
    x, out = np.arange(float(n)), np.zeros(n)
    with at_most(4):
        square(n, x, out)
    assert_array_equal(out, x**2)


def test_every_part_is_done_once():
    for n in (0, 1, 2, 3, 17, 5000):
        x, out = np.arange(float(n)), np.zeros(n)
        for n_jobs in (1, 2, 4):
            out[:] = 0.0
            with at_most(n_jobs):
                square(n, x, out)
            assert_array_equal(out, x**2)


def test_regions_one_after_another():
    # A worker that is late for one region must not take a part of the next one twice.
    done = np.zeros(3, dtype=np.int64)
    for k in range(3000):
        x, out = np.full(3, float(k)), np.zeros(3)
        with at_most(3):
            square(3, x, out)
        assert (out == k**2).all()
    with at_most(3):
        spin(3, done, 0)
    assert done.all()


def several_threads_meet() -> bool:
    """Whether two threads are in a part at the same time, sooner or later on a busy machine."""
    return any(most_threads(4) > 1 for _ in range(200))


def test_no_more_threads_than_allowed():
    assert most_threads(1) == 1
    assert most_threads(2) <= 2
    assert most_threads(4) <= 4
    assert several_threads_meet()


def test_arguments_of_other_types():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, dtype=np.float32)
    with at_most(2):
        square(8, x, out)
        assert_array_equal(out, x**2)
        strided = np.zeros(16)[::2]
        square(8, np.arange(8.0), strided)
    assert_array_equal(strided, np.arange(8.0) ** 2)


def test_slices_of_arguments():
    for _ in range(20):
        x, z, out = np.ones((40, 30)), np.ones(10), np.zeros(40)
        with at_most(3):
            sum_slices(40, (x, z), out)
        del x, z
        assert (out == out[0]).all()
        assert out[0] == sum(30 - k % 3 + 4 for k in range(100))


def test_failed_parts_are_an_error():
    sizes = np.ones(8, dtype=np.int64)
    with at_most(2):
        allocate(8, sizes)
        sizes[5] = 1 << 60
        with pytest.raises(MemoryError):
            allocate(8, sizes)
    squares_are_right()


def test_callers_in_many_threads():
    failures = []

    def call() -> None:
        try:
            for _ in range(50):
                squares_are_right(200)
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=call) for _ in range(8)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(timeout=600)
        assert not each.is_alive()
    assert not failures


def test_more_callers_than_slots(monkeypatch):
    here = team.team_of(1)
    monkeypatch.setattr(here, "_slots", [])
    squares_are_right()


def test_parts_that_open_regions():
    def work(part: int, stop: threading.Event) -> float:
        x, out = np.full(50, float(part)), np.zeros(50)
        square(50, x, out)
        inner = in_parallel(lambda k, stop: k + part, range(4))
        return float(out.sum() + sum(inner))

    expected = [50.0 * k**2 + 4 * k + 6 for k in range(30)]
    assert in_parallel(work, range(30)) == expected
    with at_most(2):
        assert in_parallel(work, range(30)) == expected


def test_python_work_raises_and_goes_on():
    def work(part: int, stop: threading.Event) -> int:
        if part == 7:
            raise ZeroDivisionError
        return part

    with at_most(4):
        for _ in range(200):
            with pytest.raises(ZeroDivisionError):
                in_parallel(work, range(20))
            assert in_parallel(lambda k, stop: k, range(20)) == list(range(20))


def work_until_interrupted(seconds: float) -> None:
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            squares_are_right(50)
            in_parallel(lambda k, stop: k, range(4))
    except KeyboardInterrupt:
        return


def test_interruptions_at_any_moment():
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for seconds in np.random.default_rng(0).uniform(1e-4, 3e-3, 300).tolist():
            work_until_interrupted(seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    squares_are_right()
    assert several_threads_meet()


def test_a_long_region_is_interrupted():
    done = np.zeros(10_000, dtype=np.int64)  # 100 seconds of two threads
    with at_most(2):
        spin(2, np.zeros_like(done), 0)  # compiled before the alarm

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with at_most(2), pytest.raises(KeyboardInterrupt):
            spin(done.size, done, 20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert done.sum() < done.size
    at_end = done.sum()
    time.sleep(0.1)
    assert done.sum() == at_end  # nobody works on
    squares_are_right()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_team_of_its_own():
    squares_are_right()
    context = multiprocessing.get_context("fork")
    child = context.Process(target=squares_are_right)
    child.start()
    child.join(timeout=600)
    assert child.exitcode == 0
    squares_are_right()


def test_a_process_with_a_team_ends():
    program = (
        "from tests.runtime.test_team import squares_are_right, most_threads\n"
        "squares_are_right()\nprint(most_threads(2) > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["True"]), done.stderr


def test_short_naps_in_place_of_futexes(tmp_path):
    program = (
        "from maxmargin.runtime import atomics\natomics.HAS_FUTEX = False\n"
        "from tests.runtime.test_team import *\n"
        "test_every_part_is_done_once()\ntest_callers_in_many_threads()\n"
        "test_a_long_region_is_interrupted()\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, timeout=600, check=False
    )
    assert done.returncode == 0
