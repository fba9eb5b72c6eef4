"""A process to interrupt, and the threads that a fit starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from maxmargin.runtime import team, threads
from tests.helpers.interruption import Interpreter


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    started = Interpreter()
    yield started
    started.close()


@pytest.fixture
def started_threads(monkeypatch):
    """Work that was given to other threads, on a machine of two cores."""
    made, start, run, ask = [], threads.start_new_thread, team.Team.run, team.Team.help

    def started(work, arguments):
        made.append(work)
        return start(work, arguments)

    def ran(self, lay, n_parts, n_helpers, arguments):
        made.extend([lay] * n_helpers)
        return run(self, lay, n_parts, n_helpers, arguments)

    def asked(self, job, count):
        made.extend([job] * count)
        return ask(self, job, count)

    monkeypatch.setattr(threads, "start_new_thread", started)
    monkeypatch.setattr(team.Team, "run", ran)
    monkeypatch.setattr(team.Team, "help", asked)
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    return made
