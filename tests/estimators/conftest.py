"""A process to interrupt, and the threads that a fit starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from maxmargin.runtime import threads
from tests.helpers.interruption import Interpreter


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    started = Interpreter()
    yield started
    started.close()


@pytest.fixture
def started_threads(monkeypatch):
    """Threads that were started, on a machine of two cores."""
    made, start = [], threads.start_new_thread

    def started(work, arguments):
        made.append(work)
        return start(work, arguments)

    monkeypatch.setattr(threads, "start_new_thread", started)
    monkeypatch.setattr(threads, "_available", lambda: 2)
    return made
