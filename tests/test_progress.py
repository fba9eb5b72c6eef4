"""Limits of time."""

from __future__ import annotations

import pytest

from maxmargin.progress import Limits, Progress
from maxmargin.solution import Status


def test_an_iteration_that_would_end_beyond_the_limit_is_not_begun():
    progress = Progress()
    progress.history = [(1, 0.0, 0, 0.0, 0.0), (2, 0.0, 0, 0.0, 10.0)]
    assert progress.expected_seconds == pytest.approx(5.0, abs=1.0)
    assert Limits(None, 4.0).reached(2, progress) is Status.TIME_LIMIT
    assert Limits(None, 7.0).reached(2, progress) is None
