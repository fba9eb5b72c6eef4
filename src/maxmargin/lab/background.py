"""Work outside of the event loop, of which only the last request counts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Condition
from typing import Any


class Dropped:
    """Says whether a request was dropped, also after a while; called without arguments."""

    def __init__(self, background: Background, number: int) -> None:
        self._background, self._number = background, number

    def __call__(self) -> bool:
        return self._background.wanted != self._number

    def within(self, seconds: float) -> bool:
        """Wait until the request is dropped, at most so long; say whether it was."""
        with self._background.changed:
            return self._background.changed.wait_for(self, seconds)


class Background:
    """One thread that works on the last request, and drops earlier ones.

    Parameters
    ----------
    work : callable
        Called in the thread with a request, and a `Dropped` that says whether it was dropped.
    """

    def __init__(self, work: Callable[[Any, Dropped], None]) -> None:
        self._work = work
        self.wanted = 0
        self.changed = Condition()
        self._last: Future[None] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="maxmargin-lab")

    @property
    def is_busy(self) -> bool:
        """Whether the last request is waiting or at work."""
        return self._last is not None and not self._last.done()

    def ask(self, request: Any) -> None:
        """Work on this next."""
        self.drop()
        self._last = self._pool.submit(self._run, request, self.wanted)

    def drop(self) -> None:
        """Drop the request at work, and those that wait."""
        with self.changed:
            self.wanted += 1
            self.changed.notify_all()

    def close(self) -> None:
        """Stop the thread."""
        self.drop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, request: Any, number: int) -> None:
        is_dropped = Dropped(self, number)
        if not is_dropped():
            self._work(request, is_dropped)
