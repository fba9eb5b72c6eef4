"""Clocks that tests set, in place of the machine's: what a fit does depends on no other."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import SimpleNamespace

MODULES = ("maxmargin.progress", "maxmargin.estimators.claims")


def set_clock(monkeypatch, readings: Iterable[float]) -> None:
    """Let the solvers and the time limits of fits read these seconds from now, in turn."""
    left, now = iter(readings), time.perf_counter()
    clock = SimpleNamespace(perf_counter=lambda: now + float(next(left)))
    for module in MODULES:
        monkeypatch.setattr(f"{module}.time", clock)
