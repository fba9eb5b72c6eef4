"""Limits of time."""

from __future__ import annotations

from threading import Event

import pytest

from maxmargin.progress import Limits, Progress, Report
from maxmargin.solution import Status
from maxmargin.solvers.best_seen import BestSeen


def test_an_iteration_that_would_end_beyond_the_limit_is_not_begun():
    progress = Progress()
    progress.history = [(1, 0.0, 0, 0.0, 0.0), (2, 0.0, 0, 0.0, 10.0)]
    assert progress.expected_seconds == pytest.approx(5.0, abs=1.0)
    assert Limits(None, 4.0).reached(2, progress) is Status.TIME_LIMIT
    assert Limits(None, 7.0).reached(2, progress) is None


def test_an_event_stops_a_solver_at_its_next_report():
    stop = Event()
    progress = Progress(stop=stop)
    seen = BestSeen(progress)
    report = Report(0.0, 0, 1.0, lambda: None)  # type: ignore[arg-type]
    assert not progress.record(report)
    stop.set()
    assert progress.record(report)
    assert seen.record(report)
