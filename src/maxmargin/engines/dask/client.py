"""The workers of a `distributed.Client`: how tasks are sent, waited for and released."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import WeakSet

import dask
from dask.delayed import Delayed

from .cluster import Handle, itself


@dataclass(frozen=True)
class Tuning:
    """Times."""

    look_seconds: float = 1.0  # between looks at the workers of a cluster
    patience_seconds: float = 10.0  # without any worker before giving up


TUNING = Tuning()


class ClusterError(RuntimeError):
    """Error raised where a cluster can no longer answer."""


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
            self.results(self.start(itself, [None]))
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
            return self.start(itself, [value])[0]

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
        watch = _Watch(self)
        while not concurrent.futures.wait([answer], TUNING.look_seconds).done:
            watch.look()  # after an error, the answer ends when `free` has released the futures
        found: list[Any] = answer.result()
        return found

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
