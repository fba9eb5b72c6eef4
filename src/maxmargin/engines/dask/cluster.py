"""Where tasks run: the workers of a `distributed.Client`, or Dask's own scheduler without one.

A *round* is one wait: tasks are sent to all partitions, their answers are merged, and the client
waits for the result. Dask places the tasks, moves what they need, and computes again what was lost
with a worker; a task is a pure function of its arguments, so that the answer is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import dask
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
    memory: float  # bytes that the workers may use

    def start(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Handle]:
        """Start ``function(*arguments)`` for the arguments of every row of the columns."""

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for the results."""

    def share(self, value: Any) -> Any:
        """Return a value that many tasks need, sent once."""

    def settle(self, handles: Sequence[Handle]) -> None:
        """Wait until all tasks are done."""


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
        owner = getattr(get_scheduler(), "__self__", None)
        if owner is not None and type(owner).__module__.startswith("distributed"):
            return cls(ClientBackend(owner))
        return cls(SchedulerBackend())

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
        sent: int = 0,
    ) -> tuple[list[Handle], Any]:
        """Like `round` for work that returns a new state, which stays there, and an answer.

        ``sent`` are bytes that tasks are given by each other.
        """
        shared = self._shared(common, len(columns[0]))
        started = time.perf_counter()
        pairs = self.backend.start(partial(_timed_pair, work), *columns, shared)
        states = self.backend.start(_first, pairs)
        answers = self.backend.start(_second, pairs)
        return states, self._merged(work, merge, answers, common, started, reads, sent)

    def _merged(
        self,
        work: Callable[..., Any],
        merge: Callable[[list[Any]], Any],
        tasks: list[Handle],
        common: tuple[Any, ...],
        started: float,
        reads: bool,
        sent: int = 0,
    ) -> Any:
        n, n_tasks = TUNING.merged_at_once, len(tasks)
        while len(tasks) > n:
            groups = [tasks[k : k + n] for k in range(0, len(tasks), n)]
            tasks = self.backend.start(partial(_merge, merge), groups)
        found = _merge(merge, self.backend.results(tasks))
        self.report.add(
            Round(
                _name(work), reads, sizeof(common) * n_tasks + sent, found.n_bytes,
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

    name = "threads"
    n_workers = 1

    def __init__(self) -> None:
        from ...runtime.memory import free_memory
        from ...runtime.threads import n_cores

        self.n_threads = n_cores()
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

    def settle(self, handles: Sequence[Handle]) -> None:
        """Everything is done already."""


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
    """The workers of a `distributed.Client`: handles are futures."""

    def __init__(self, client: Any) -> None:
        self.client = client
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        self.name = str(client.scheduler.address if client.scheduler else "scheduler")
        self.n_workers = len(workers)
        self.n_threads = sum(int(worker["nthreads"]) for worker in workers) or 1
        limits = [float(worker["memory_limit"] or float("inf")) for worker in workers]
        self.memory = sum(limits)

    def start(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Handle]:
        """Send tasks to the scheduler."""
        if any(isinstance(each, Delayed) for column in columns for each in column):
            call = dask.delayed(function, pure=False, traverse=False)
            tasks = [call(*arguments) for arguments in zip(*columns, strict=True)]
            return list(self.client.compute(tasks))
        return list(self.client.map(function, *columns, pure=False))

    def share(self, value: Any) -> Any:
        """Return a task that has the value: Dask can compute it again, as scattered data cannot."""
        return self.client.submit(_given, value, pure=False)

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for the results; give up where no worker is left."""
        try:
            self.settle(handles)
            return list(self.client.gather(list(handles)))
        except BaseException as error:
            self._cancel(handles)
            failure = _told(error)
            if failure is None:
                raise
            raise failure from error

    def settle(self, handles: Sequence[Handle]) -> None:
        """Wait until all tasks are done, or one has failed; look whether there are workers."""
        from distributed import wait

        seen = time.monotonic()
        while True:
            try:
                wait(list(handles), timeout=TUNING.look_seconds, return_when="ALL_COMPLETED")
                return
            except TimeoutError:
                pass
            if any(handle.status == "error" for handle in handles):
                return  # `gather` raises it
            if self.client.status != "running":
                raise ClusterError("The connection to the Dask scheduler was lost during the fit.")
            now = time.monotonic()
            if self.client.scheduler_info(n_workers=1)["workers"]:
                seen = now
            elif now - seen > TUNING.patience_seconds:
                raise ClusterError(
                    "The Dask cluster has no worker left, and none came back within "
                    f"{TUNING.patience_seconds:.0f} s: start workers and fit again."
                )

    def _cancel(self, handles: Sequence[Handle]) -> None:
        """Stop what is still to be done, as far as the scheduler can be reached."""
        if self.client.status == "running":
            self.client.cancel(list(handles), force=True)


def _told(error: BaseException) -> ClusterError | None:
    """Return an error in our words, None where it is the caller's."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return ClusterError(
            "Workers died again and again with the same task, most likely for want of memory: "
            f"use smaller partitions, or workers with more of it ({error})."
        )
    if isinstance(error, CommClosedError):
        return ClusterError(
            f"The connection to the Dask scheduler was lost during the fit: {error}"
        )
    return None
