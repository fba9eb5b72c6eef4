"""Where tasks run: the workers of a `distributed.Client`, or Dask's own scheduler without one.

A *round* is one wait: tasks are sent to all partitions, their answers are merged, and the client
waits for the result. Dask places the tasks, moves what they need, and computes again what was lost
with a worker; a task is a pure function of its arguments, so that the answer is the same.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol
from weakref import WeakSet

import dask
import dask.local
import dask.threaded
from dask.base import get_scheduler
from dask.delayed import Delayed
from dask.sizeof import sizeof

from ...runtime.threads import at_most, single_threaded_blas
from .report import FitReport, Round

# What a task returns, where it is: a future, a lazy value, or the value itself.
Handle = Any


@dataclass(frozen=True)
class Tuning:
    """Sizes and times."""

    merged_at_once: int = 8  # answers that are merged by one task, or by the client
    shared_bytes: int = 1 << 16  # from which on an argument of all tasks is a task of its own
    look_seconds: float = 1.0  # between looks at the workers of a cluster
    patience_seconds: float = 10.0  # without any worker before giving up


TUNING = Tuning()


class ClusterError(RuntimeError):
    """Error raised where a cluster can no longer answer."""


class Timed(NamedTuple):
    """An answer, the seconds that it took, and the bytes of all answers merged into it."""

    answer: Any
    seconds: float
    n_bytes: int


class Backend(Protocol):
    """How tasks are started and waited for."""

    name: str
    n_workers: int
    n_threads: int
    memory: float  # bytes that the workers have left
    in_this_process: bool  # whether tasks share the memory of the client

    def start(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Handle]:
        """Start ``function(*arguments)`` for the arguments of every row of the columns."""

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for the results."""

    def share(self, value: Any) -> Any:
        """Return a value that many tasks need, sent once."""

    def free(self) -> None:
        """Release all tasks that were started, of a fit that failed or was interrupted."""


class Cluster:
    """Rounds of tasks, counted.

    Parameters
    ----------
    backend : Backend
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.report = FitReport(backend.name, backend.n_workers, backend.n_threads)

    @classmethod
    def current(cls) -> Cluster:
        """Return the active `distributed.Client`, or else the scheduler that Dask has set."""
        get = get_scheduler()
        owner = getattr(get, "__self__", None)
        if owner is not None and type(owner).__module__.startswith("distributed"):
            return cls(ClientBackend(owner))
        return cls(SchedulerBackend(get))

    def start(
        self, work: Callable[..., Any], *columns: Sequence[Any], common: tuple[Any, ...] = ()
    ) -> list[Handle]:
        """Start ``work(*arguments, *common)`` in every partition; do not wait."""
        shared = self._shared(common, len(columns[0]))
        return self.backend.start(partial(_limited, work), *columns, shared)

    def round(
        self,
        work: Callable[..., Any],
        merge: Callable[[list[Any]], Any],
        *columns: Sequence[Any],
        common: tuple[Any, ...] = (),
        reads: bool = True,
    ) -> Any:
        """Return the merged answers of ``work(*arguments, *common)`` in every partition."""
        shared = self._shared(common, len(columns[0]))
        started = time.perf_counter()
        tasks = self.backend.start(partial(_timed, work), *columns, shared)
        return self._merged(work, merge, tasks, common, started, reads)

    def step(
        self,
        work: Callable[..., tuple[Any, Any]],
        merge: Callable[[list[Any]], Any],
        *columns: Sequence[Any],
        common: tuple[Any, ...] = (),
        reads: bool = True,
    ) -> tuple[list[Handle], Any]:
        """Like `round` for work that returns a new state, which stays there, and an answer."""
        shared = self._shared(common, len(columns[0]))
        started = time.perf_counter()
        pairs = self.backend.start(partial(_timed_pair, work), *columns, shared)
        states = self.backend.start(_first, pairs)
        answers = self.backend.start(_second, pairs)
        return states, self._merged(work, merge, answers, common, started, reads)

    def _merged(
        self,
        work: Callable[..., Any],
        merge: Callable[[list[Any]], Any],
        tasks: list[Handle],
        common: tuple[Any, ...],
        started: float,
        reads: bool,
    ) -> Any:
        n, n_tasks = TUNING.merged_at_once, len(tasks)
        while len(tasks) > n:
            groups = [tasks[k : k + n] for k in range(0, len(tasks), n)]
            tasks = self.backend.start(partial(_merge, merge), groups)
        found = _merge(merge, self.backend.results(tasks))
        self.report.add(
            Round(
                _name(work), reads, sizeof(common) * n_tasks, found.n_bytes,
                time.perf_counter() - started, found.seconds / max(self.backend.n_threads, 1),
            )
        )  # fmt: skip
        return found.answer

    def _shared(self, common: tuple[Any, ...], n_tasks: int) -> list[Any]:
        """Return the arguments of all tasks, once for each of them."""
        is_large = sizeof(common) >= TUNING.shared_bytes
        return [self.backend.share(common) if is_large else common] * n_tasks


def _name(work: Any) -> str:
    """Return the name of a function, of a partial one that of its last argument."""
    while isinstance(work, partial):
        work = work.args[-1] if work.args else work.func
    return getattr(work, "__name__", "work")


# What workers do ----------------------------------------------------------------------------------


def _limited(work: Callable[..., Any], *arguments: Any) -> Any:
    """Compute in this thread alone: the others of a worker have partitions of their own."""
    *own, common = arguments
    with at_most(1), single_threaded_blas():
        return work(*own, *common)


def _timed(work: Callable[..., Any], *arguments: Any) -> Timed:
    started = time.perf_counter()
    answer = _limited(work, *arguments)
    return Timed(answer, time.perf_counter() - started, sizeof(answer))


def _timed_pair(work: Callable[..., Any], *arguments: Any) -> tuple[Any, Timed]:
    started = time.perf_counter()
    state, answer = _limited(work, *arguments)
    return state, Timed(answer, time.perf_counter() - started, sizeof(answer))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _merge(merge: Callable[[list[Any]], Any], found: list[Timed]) -> Timed:
    return Timed(
        merge([each.answer for each in found]),
        sum(each.seconds for each in found),
        sum(each.n_bytes for each in found),
    )


def _given(value: Any) -> Any:
    return value


# Schedulers ---------------------------------------------------------------------------------------


class SchedulerBackend:
    """The scheduler that Dask has set, its threads by default: handles are values."""

    n_workers = 1
    in_this_process = True

    def __init__(self, get: Callable[..., Any] | None = None) -> None:
        from ...runtime.memory import free_memory
        from ...runtime.threads import n_cores

        is_serial = get is dask.local.get_sync
        self.name = "synchronous" if is_serial else "threads"
        if get not in (None, dask.local.get_sync, dask.threaded.get):
            self.name = str(getattr(get, "__module__", "") or get)
        self.n_threads = 1 if is_serial else n_cores()
        self.memory = float(free_memory())

    def start(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Handle]:
        """Compute all of it now."""
        tasks = [_bound(function, arguments) for arguments in zip(*columns, strict=True)]
        return list(dask.compute(*tasks))

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """Return the values."""
        return list(handles)

    def share(self, value: Any) -> Any:
        """Return the value."""
        return value

    def free(self) -> None:
        """There is nothing to release: values go with the references to them."""


def _bound(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Delayed:
    """Return a lazy call; Dask looks into none of the arguments that are values."""
    lazy = [isinstance(each, Delayed) for each in arguments]
    kept = [None if is_lazy else each for each, is_lazy in zip(arguments, lazy, strict=True)]
    call = partial(_call, function, _Opaque(kept), lazy)
    waiting = [each for each, is_lazy in zip(arguments, lazy, strict=True) if is_lazy]
    delayed: Delayed = dask.delayed(call, pure=False, traverse=False)(*waiting)
    return delayed


class _Opaque:
    """Arguments that Dask is not to look into."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def _call(function: Callable[..., Any], kept: _Opaque, lazy: list[bool], *found: Any) -> Any:
    given = iter(found)
    return function(
        *(next(given) if is_lazy else each for each, is_lazy in zip(kept.values, lazy, strict=True))
    )


class ClientBackend:
    """The workers of a `distributed.Client`: handles are futures.

    Every task is pure and depends on the collections alone: nothing is scattered, and Dask can
    compute again what is lost with a worker. Keys are unique, so that fits at the same time, of
    one client or of several, share none.
    """

    in_this_process = False

    def __init__(self, client: Any) -> None:
        self.client = client
        self._started: WeakSet[Any] = WeakSet()
        self.name = str(client.scheduler.address if client.scheduler else "scheduler")
        if not self._workers(1):
            # Waits for a worker. An adaptive cluster starts one where there is a task.
            self.results(self.start(_given, [None]))
        workers = self._workers(-1).values()
        self.n_workers = len(workers)
        self.n_threads = sum(int(worker["nthreads"]) for worker in workers) or 1
        self.memory = sum(_free_bytes(worker) for worker in workers)

    def _workers(self, n_workers: int) -> dict[str, Any]:
        """Return what the scheduler knows of so many workers, of all for −1."""
        workers: dict[str, Any] = self.client.scheduler_info(n_workers=n_workers)["workers"]
        return workers

    def start(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Handle]:
        """Send tasks to the scheduler."""
        try:
            if any(isinstance(each, Delayed) for column in columns for each in column):
                call = dask.delayed(function, pure=False, traverse=False)
                tasks = [call(*arguments) for arguments in zip(*columns, strict=True)]
                futures = list(self.client.compute(tasks))
            else:
                futures = list(self.client.map(function, *columns, pure=False))
        except BaseException as error:
            self._give_up(error)
        self._started.update(futures)
        return futures

    def share(self, value: Any) -> Any:
        """Return a task that has the value: Dask can compute it again, as scattered data cannot.

        Dask's warning of large graphs advises to scatter: it is not given.
        """
        with dask.config.set({_WARNED_FROM: "1 TB"}):
            return self.start(_given, [value])[0]

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for the results; give up where no worker is left."""
        try:
            with _outside_of_tasks():
                return self._gathered(list(handles))
        except BaseException as error:
            self._give_up(error)

    def _gathered(self, handles: list[Handle]) -> list[Any]:
        """Wait, and look at the workers every now and then.

        What is waited for has no limit of time: an error raised at a limit would refer to all
        calling functions, and with them to every future of the fit.
        """
        answer = self._asked(self.client.gather(handles, asynchronous=True))
        try:
            watch = _Watch(self)
            while not concurrent.futures.wait([answer], TUNING.look_seconds).done:
                watch.look()
            found: list[Any] = answer.result()
            return found
        finally:
            answer.cancel()

    def _asked(self, coroutine: Any) -> concurrent.futures.Future[Any]:
        """Start a coroutine in the event loop of the client."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    def free(self) -> None:
        """Release all tasks: Dask forgets them, and stops what is still to be done.

        Futures of the caller are none of these.
        """
        for future in list(self._started):
            future.release()
        self._started.clear()

    def _give_up(self, error: BaseException) -> NoReturn:
        """Release all tasks, and raise an error in our words if it is one of the cluster."""
        self.free()
        failure = _told(error)
        if failure is None and isinstance(error, Exception) and self.client.status != "running":
            failure = _lost(error)
        if failure is None or isinstance(error, ClusterError):
            raise error
        raise failure from error


def _free_bytes(worker: dict[str, Any]) -> float:
    """Return the memory that a worker has left: its process alone takes some hundred MB."""
    limit = worker["memory_limit"]
    if not limit:  # 0 and None mean that there is none
        return float("inf")
    return max(0.0, float(limit) - float(worker.get("metrics", {}).get("memory", 0)))


# Dask's setting of the size from which on it warns of graphs.
_WARNED_FROM = "distributed.admin.large-graph-warning-threshold"


class _Watch:
    """Looks at the workers of a cluster during a wait.

    The scheduler is asked, and its answer is read at the next look: whether it answers at all is
    left to Dask, which closes a connection that is lost.
    """

    def __init__(self, backend: ClientBackend) -> None:
        self.backend, self.seen = backend, time.monotonic()
        self.asked: concurrent.futures.Future[Any] | None = None

    def look(self) -> None:
        """Raise an error where the scheduler, or every worker, has been gone for too long."""
        client, now = self.backend.client, time.monotonic()
        if client.status not in ("running", "connecting"):
            raise _lost()
        if self.asked is None:
            self.asked = self.backend._asked(client.scheduler.identity(n_workers=1))
            return
        if self.asked.done():
            known, self.asked = self.asked, None
            if known.exception() is None and known.result()["workers"]:
                self.seen = now
        elif client.status == "running":
            return
        if now - self.seen <= TUNING.patience_seconds:
            return
        if client.status != "running":
            raise _lost()
        raise ClusterError(
            f"The Dask cluster has had no worker for {TUNING.patience_seconds:.0f} s, and a fit "
            "needs one at least: start workers, wait for them with client.wait_for_workers(1), "
            "and fit again."
        )


@contextmanager
def _outside_of_tasks() -> Iterator[None]:
    """Let a worker go on with other tasks while one of its tasks waits for them."""
    from distributed import rejoin, secede
    from distributed.worker import thread_state

    if not getattr(thread_state, "key", None):
        yield
        return
    secede()
    try:
        yield
    finally:
        rejoin()


def _told(error: BaseException) -> ClusterError | None:
    """Return an error in our words, None where it is the caller's."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError, FuturesCancelledError
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return ClusterError(
            "Workers died again and again with the same task, most likely for want of memory: "
            f"use smaller partitions, or workers with more memory ({error})."
        )
    if isinstance(error, CommClosedError) or getattr(error, "reason", "") == _LOST:
        return _lost(error)
    if isinstance(error, (FutureCancelledError, FuturesCancelledError)):
        return ClusterError(
            "Partitions were cancelled, or were lost with their worker and cannot be computed "
            "again, as data that were scattered: make the collections anew, from what Dask can "
            f"read again, and fit again ({error})."
        )
    return None


# Dask's reason of futures that are cancelled as the scheduler cannot be reached.
_LOST = "scheduler-connection-lost"


def _lost(error: BaseException | None = None) -> ClusterError:
    details = f" ({error})" if error is not None else ""
    return ClusterError(
        "The connection to the Dask scheduler was lost during the fit: connect a new client, make "
        f"the collections anew if they were persisted, and fit again{details}."
    )
