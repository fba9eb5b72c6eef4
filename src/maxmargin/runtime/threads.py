"""Work shared between the cores: some threads a call, BLAS held to one thread meanwhile.

Threads are started when needed and not kept, so that forked children, threads and Dask workers are
safe.
"""

from __future__ import annotations

import itertools
import os
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")

_lock = threading.Lock()
_users = 0
_limits: Any = None
# What `at_most` set for this thread.
_here = threading.local()


@cache
def _libraries() -> Any:
    """Find the BLAS libraries once: the search reads the whole map of the process."""
    import scipy.linalg  # noqa: F401  brings its own, which must be there to be found

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread; the last of several concurrent users restores what was."""
    global _users, _limits
    with _lock:
        _users += 1
        if _users == 1:
            _limits = _libraries().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[None]:
    """Let this thread use ``n_jobs`` cores (None: as before; −1: all; −2: all but one)."""
    before = getattr(_here, "limit", None)
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning: pass the number of cores, −1 for all, or None.")
    if n_jobs is not None:
        _here.limit = n_jobs if n_jobs > 0 else max(1, _available() + 1 + n_jobs)
    try:
        yield
    finally:
        _here.limit = before


def in_parallel(
    work: Callable[[Part, threading.Event], Result], parts: Sequence[Part], *, alone: bool = False
) -> list[Result]:
    """Return ``[work(part, stop) for part in parts]``, computed on all cores, this thread's too.

    ``work`` should release the GIL and return early once ``stop`` is set: that is how Ctrl-C in
    the main thread ends the others; what it shares between cores in turn stays on its own.
    ``alone`` keeps to this thread, for work that calls back into the caller's own functions.
    """
    stop = threading.Event()
    helpers = 0 if alone or len(parts) < 2 else min(n_threads(), len(parts)) - 1
    if helpers < 1:
        return [work(part, stop) for part in parts]
    results: list[Any] = [None] * len(parts)
    failures: list[BaseException] = []
    turn = itertools.count()  # its next() is atomic
    by_others = threading.Semaphore(0)

    def take_turns(finished: Callable[[], None]) -> int:
        taken = 0
        with at_most(1):
            while not stop.is_set() and (k := next(turn)) < len(parts):
                results[k] = work(parts[k], stop)
                taken += 1
                finished()
        return taken

    def help_out() -> None:
        try:
            take_turns(by_others.release)
        except BaseException as error:
            failures.append(error)
            stop.set()
            by_others.release(len(parts))

    with single_threaded_blas():
        try:
            for _ in range(helpers):
                # Without the handshake of threading.Thread: a core may take a while to wake up, and
                # by then there may be nothing left to do, which is nothing to wait for.
                start_new_thread(help_out, ())
            mine = take_turns(lambda: None)
            for _ in range(len(parts) - mine):
                by_others.acquire()
            if failures:
                raise failures[0]
            return results
        finally:
            # After Ctrl-C a thread deep in LAPACK is left to end by itself.
            stop.set()


def interruptible(work: Callable[[], Result]) -> Result:
    """Return ``work()``, run beside this thread so that Ctrl-C need not wait for its end."""
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        return pool.submit(work).result()
    finally:
        pool.shutdown(wait=False)


def n_threads() -> int:
    """Cores that this thread may use."""
    return getattr(_here, "limit", None) or _available()


def _available() -> int:
    """Cores of this process; the workers of joblib and Dask share them by OMP_NUM_THREADS."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    return min(_cores(), int(share)) if share.isdigit() and int(share) > 0 else _cores()


@cache
def _cores() -> int:
    """Count them once: files of the system are read for it."""
    return int(cpu_count())
