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
    """Sizes."""

    merged_at_once: int = 8  # answers that are merged by one task, or by the client
    shared_bytes: int = 1 << 16  # from which on an argument of all tasks is a task of its own


TUNING = Tuning()


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
        from .client import ClientBackend

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
        sent: int = 0,
        spent: list[Handle] | None = None,
    ) -> tuple[list[Handle], Any]:
        """Like `round` for work that returns a new state, which stays there, and an answer.

        ``sent`` are bytes that tasks are given by each other; ``spent`` is the column that nobody
        needs afterwards, and is emptied.
        """
        shared = self._shared(common, len(columns[0]))
        started = time.perf_counter()
        pairs = self.backend.start(partial(_timed_pair, work), *columns, shared)
        states = self.backend.start(_first, pairs)
        answers = self.backend.start(_second, pairs)
        # Dask releases what no handle is left of as soon as the tasks that read it are done.
        del pairs
        if spent is not None:
            spent.clear()
        return states, self._merged(work, merge, answers, common, started, reads, sent)

    def chain(
        self,
        work: Callable[..., Any],
        state: Any,
        *columns: Sequence[Any],
        common: tuple[Any, ...] = (),
    ) -> Any:
        """Return ``work(*arguments, state, *common)`` of the last partition.

        Every partition is given what the one before has returned. The tasks depend on each other:
        Dask runs them one after the other, and the client waits once.
        """
        n_tasks = len(columns[0])
        shared = self._shared(common, n_tasks)
        started = time.perf_counter()
        link: Handle = Timed(state, 0.0, 0)
        for *arguments, each in zip(*columns, shared, strict=True):
            columns_of_one = [[argument] for argument in arguments]
            (link,) = self.backend.start(
                partial(_timed_link, work), *columns_of_one, [link], [each]
            )
        (found,) = self.backend.results([link])
        self.report.add(
            Round(
                _name(work), True, sizeof(common) * n_tasks, found.n_bytes,
                time.perf_counter() - started, found.seconds / max(self.backend.n_threads, 1),
            )
        )  # fmt: skip
        return found.answer

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


def _timed_link(work: Callable[..., Any], *arguments: Any) -> Timed:
    *own, before, common = arguments
    started = time.perf_counter()
    answer = _limited(work, *own, before.answer, common)
    seconds = before.seconds + time.perf_counter() - started
    return Timed(answer, seconds, before.n_bytes + sizeof(answer))


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


def itself(value: Any) -> Any:
    """Return what is given: a task that has a value."""
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
