"""Parallel work on all cores, with BLAS limited to one thread meanwhile.

Work in Python is done by the threads of the team (`runtime.team`) once that is loaded, which takes
the compiler; threads are started for it before. Regions of compiled code use the team directly.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar
from weakref import WeakSet

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

# Multiplications up to which BLAS uses no threads, and from which, about a millisecond, it may.
UNTHREADED_PRODUCTS, THREADED_PRODUCTS = 1 << 13, 1 << 25

Part = TypeVar("Part")
Result = TypeVar("Result")

_lock = threading.RLock()  # of a frame that is cleared while it is held, too
_users: WeakSet[_User] = WeakSet()
_old_limits: list[tuple[Any, int]] | None = None
# The limit that `at_most` has set for this thread.
_here = threading.local()
# Helpers that are at work, and how long the end of the process waits for them.
_at_work: set[object] = set()
LONGEST_WAIT_SECONDS = 10.0


@cache
def _libraries() -> Any:
    """Find the BLAS libraries once: the search reads the memory map of the process."""
    import scipy.linalg  # noqa: F401  loads its own BLAS, to be found as well

    return ThreadpoolController()


class _User:
    """One use of `single_threaded_blas`, for as long as its frame is alive."""


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread; the last of several concurrent users restores the old limit.

    Ctrl-C may come at any moment of this, too: the old limits are known until they are restored.
    """
    global _old_limits
    if n_cores() == 1:  # so has BLAS, and the search for its libraries takes longer than a fit
        yield
        return
    user = _User()
    try:
        with _lock:
            _users.add(user)
            if _old_limits is None:
                libraries = _libraries().select(user_api="blas").lib_controllers
                _old_limits = [(library, library.get_num_threads()) for library in libraries]
            if len(_users) == 1:
                for library, _ in _old_limits:
                    library.set_num_threads(1)
        yield
    except KeyboardInterrupt:
        # Threads that are still at work after Ctrl-C may be unable to restore those of this one.
        with _lock:
            _restore(_old_limits)
        raise
    finally:
        with _lock:
            _users.discard(user)
            if not _users:
                _restore(_old_limits)
                _old_limits = None


def blas_for(multiplications: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for products that are not worth the wait for another."""
    limited = UNTHREADED_PRODUCTS < multiplications < THREADED_PRODUCTS
    return single_threaded_blas() if limited else nullcontext()


def _restore(limits: list[tuple[Any, int]] | None) -> None:
    for library, limit in limits or ():
        library.set_num_threads(limit)


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[None]:
    """Limit this thread to ``n_jobs`` cores (None: as before; −1: all; −2: all but one)."""
    before = getattr(_here, "limit", None)
    if n_jobs == 0:
        raise ValueError("n_jobs must be a non-zero integer or None, got 0: −1 means all cores.")
    try:
        if n_jobs is not None:
            _here.limit = n_jobs if n_jobs > 0 else max(1, n_cores() + 1 + n_jobs)
        yield
    finally:
        _here.limit = before


def in_parallel(
    work: Callable[[Part, threading.Event], Result], parts: Sequence[Part], *, alone: bool = False
) -> list[Result]:
    """Return ``[work(part, stop) for part in parts]``, computed on all cores.

    Parameters
    ----------
    work : callable
        (part, stop) ↦ result. It should release the GIL, and return early once ``stop`` is set,
        which is how Ctrl-C in the main thread ends the other threads. In parallel work that it
        starts itself those threads help that have nothing else to do; with a limit on the number
        of cores, each has its share of them.
    parts : sequence
    alone : bool, default=False
        Compute everything in this thread, for work that calls functions of the caller.

    Returns
    -------
    list
        The results, in the order of ``parts``.
    """
    stop = threading.Event()
    helpers = 0 if alone or len(parts) < 2 else min(n_threads(), len(parts)) - 1
    if helpers < 1:
        return [work(part, stop) for part in parts]
    results: list[Any] = [None] * len(parts)
    failures: list[BaseException] = []
    turn = itertools.count()  # its next() is atomic
    by_others = threading.Semaphore(0)
    limit = getattr(_here, "limit", None)
    inner = None if limit is None else max(1, limit // (helpers + 1))

    def take_turns(finished: Callable[[], None]) -> int:
        taken = 0
        with at_most(inner):
            while not stop.is_set() and (k := next(turn)) < len(parts):
                results[k] = work(parts[k], stop)
                taken += 1
                finished()
        return taken

    def help_out() -> None:
        me = object()
        _at_work.add(me)
        try:
            take_turns(by_others.release)
        except BaseException as error:
            failures.append(error)
            stop.set()
            by_others.release(len(parts))
        finally:
            _at_work.discard(me)

    with single_threaded_blas():
        withdraw = no_request
        try:
            withdraw = _call_helpers(help_out, helpers)
            mine = take_turns(lambda: None)
            if mine < len(parts):
                _stand_in(helpers + 1)
            for _ in range(len(parts) - mine):
                by_others.acquire()
            if failures:
                raise failures[0]
            return results
        finally:
            # After Ctrl-C, a thread inside LAPACK ends on its own later.
            stop.set()
            withdraw()


def _call_helpers(job: Callable[[], None], count: int) -> Callable[[], None]:
    """Let other threads call a function; return what spares those that have not begun."""
    team = sys.modules.get(f"{__package__}.team")
    if team is not None and team.SUPPORTED:
        withdraw: Callable[[], None] = team.team_of(count).help(job, count)
        return withdraw
    for _ in range(count):
        # Unlike threading.Thread, this does not wait for the thread to start: by then all parts
        # may be done.
        start_new_thread(job, ())
    return no_request


def _stand_in(count: int) -> None:
    """Have so many workers: one does what this thread could while it waits for the others.

    Parts that are still computed may have parallel work of their own.
    """
    team = sys.modules.get(f"{__package__}.team")
    if team is not None and team.SUPPORTED:
        team.team_of(count)


def _wait_for_helpers() -> None:
    """Let helpers that were told to stop do so before the interpreter ends.

    It ends threads where they are: within torch, which is C++, that aborts the process, and within
    BLAS, whose own threads are joined, the process may not end.
    """
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while _at_work and time.monotonic() < until:
        time.sleep(0.002)


atexit.register(_wait_for_helpers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_at_work.clear)


def no_request() -> None:
    """Withdraw nothing."""


def interruptible(work: Callable[[], Result]) -> Result:
    """Return ``work()``, run in another thread so that Ctrl-C does not wait for its end.

    An executor would lose a Ctrl-C that comes while its weak references are cleared.
    """
    results: list[Result] = []
    failures: list[BaseException] = []
    running = allocate_lock()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)
        finally:
            running.release()

    running.acquire()
    start_new_thread(run, ())
    running.acquire()  # once it is released
    if failures:
        raise failures[0]
    return results[0]


def n_threads() -> int:
    """Return the number of cores that this thread may use."""
    return getattr(_here, "limit", None) or n_cores()


def n_cores() -> int:
    """Return the cores of this process; joblib and Dask limit workers by OMP_NUM_THREADS."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    return min(_cores(), int(share)) if share.isdigit() and int(share) > 0 else _cores()


@cache
def _cores() -> int:
    """Return the number of cores, counted once: it takes reading system files."""
    return int(cpu_count())
