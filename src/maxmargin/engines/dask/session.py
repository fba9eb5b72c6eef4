"""A cluster for the time of a command: its own processes, or those of an address."""

from __future__ import annotations

import logging
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any

from ...runtime.threads import n_cores
from .client import ClusterError


@dataclass(frozen=True)
class Tuning:
    """Times, in seconds."""

    connect_seconds: float = 5.0
    workers_seconds: float = 10.0


TUNING = Tuning()
LOCAL = re.compile(r"local(?::([1-9][0-9]*))?")


@contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Connect to a cluster, the active one within the block, and close what was started.

    Parameters
    ----------
    scheduler : str
        "local": one worker process with one thread per core of this machine; "local:4": four of
        them; else the address of a scheduler, such as ``tcp://10.0.0.1:8786``.
    """
    from distributed import Client, LocalCluster

    local = LOCAL.fullmatch(scheduler)
    if local is None and "://" not in scheduler:
        raise ValueError(
            "scheduler must be local, local:N for N worker processes, or an address such as "
            f"tcp://10.0.0.1:8786; got {scheduler!r}."
        )
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        if local is not None:
            with _interrupted_later(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of ports, and of slow disks
                cluster = LocalCluster(
                    n_workers=int(local[1] or n_cores()),
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",  # any free port
                    silence_logs=logging.CRITICAL,
                )
                stack.enter_context(cluster)
            yield stack.enter_context(Client(cluster))
            return
        client = stack.enter_context(_reached(scheduler, Client))
        yield stack.enter_context(client.as_current())


def _reached(address: str, connect: Any) -> Any:
    """Return a client of a scheduler that answers and has workers.

    It is not the default of the process: a client that finds no scheduler would stay the default.
    """
    try:
        client = connect(address, timeout=TUNING.connect_seconds, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # not found, or not an address
        raise ConnectionError(
            f"There must be a Dask scheduler at {address}, but none answered within "
            f"{TUNING.connect_seconds:g} s: start one (dask scheduler), or use local ({error})."
        ) from error
    try:
        client.wait_for_workers(1, timeout=TUNING.workers_seconds)
    except TimeoutError as error:
        client.close()
        raise ClusterError(
            f"The Dask scheduler at {address} must have workers, but none came within "
            f"{TUNING.workers_seconds:g} s: start some (dask worker {address})."
        ) from error
    return client


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, and never reach processes that are started in it.

    A cluster that is interrupted in its start leaves processes behind; later it is closed, and
    closes its workers itself.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which unblocks signals when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Print no messages of Dask about workers and connections: errors are raised."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
