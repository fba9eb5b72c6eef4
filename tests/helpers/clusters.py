"""Clusters of Dask on this machine, and what happens to them in the middle of a fit."""

from __future__ import annotations

import os
import signal
import time
import warnings

# Seconds that nothing takes on a busy machine, unless it hangs.
LONG = 60.0


def new_cluster(n_workers=2, **options):
    """Return a cluster of processes."""
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": None, **options}
    options = {"processes": True, "silence_logs": "CRITICAL", **options}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Port")  # of the dashboard
        return LocalCluster(n_workers=n_workers, **options)


class Once:
    """A callback that does something after the first step of a fit."""

    def __init__(self, act):
        self.act, self.n_steps = act, 0

    @property
    def is_done(self):
        """Whether there was a step."""
        return self.n_steps > 0

    def __call__(self, step):
        self.n_steps += 1
        if self.n_steps == 1:
            self.act()


def kill_one(client):
    """Kill the process of one worker."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def n_tasks(client):
    """Return how many tasks the scheduler knows."""
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def n_workers(client):
    """Return how many workers the scheduler knows."""
    return len(client.scheduler_info(n_workers=-1)["workers"])


def comes_to(expected, value, seconds=LONG):
    """Return whether a function returns a value before long."""
    end = time.monotonic() + seconds
    while (found := value()) != expected and time.monotonic() < end:
        time.sleep(0.02)
    return found == expected
