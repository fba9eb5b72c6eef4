"""Work shared between the cores: a small pool a call, BLAS held to one thread meanwhile.

Pools are made when needed and not kept, so that forked children, threads and Dask workers are safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_limits

Part = TypeVar("Part")
Result = TypeVar("Result")

_lock = threading.Lock()
_users = 0
_limits: Any = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread; the last of several concurrent users restores what was."""
    global _users, _limits
    with _lock:
        _users += 1
        if _users == 1:
            _limits = threadpool_limits(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()


def in_parallel(
    work: Callable[[Part, threading.Event], Result], parts: Sequence[Part], *, alone: bool = False
) -> list[Result]:
    """Return ``[work(part, stop) for part in parts]``, computed on all cores.

    ``work`` should release the GIL and return early once ``stop`` is set: that is how Ctrl-C in
    the main thread ends the others. ``alone`` keeps to this thread, for work that calls back
    into the caller's own functions.
    """
    stop = threading.Event()
    if alone or len(parts) == 1:
        return [work(part, stop) for part in parts]
    pool = ThreadPoolExecutor(max_workers=n_threads())
    with single_threaded_blas():
        try:
            return list(pool.map(lambda part: work(part, stop), parts))
        finally:
            stop.set()
            # After Ctrl-C a thread deep in LAPACK is left to end by itself.
            pool.shutdown(wait=False, cancel_futures=True)


def interruptible(work: Callable[[], Result]) -> Result:
    """Return ``work()``, run beside this thread so that Ctrl-C need not wait for its end."""
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        return pool.submit(work).result()
    finally:
        pool.shutdown(wait=False)


def n_threads() -> int:
    """Cores this process may use."""
    return int(cpu_count())
