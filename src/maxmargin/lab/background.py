"""Work outside of the event loop, of which only the last request counts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """One thread that works on the last request, and drops earlier ones.

    Parameters
    ----------
    work : callable
        Called in the thread with a request, and a function that says whether it was dropped.
    """

    def __init__(self, work: Callable[[Any, Callable[[], bool]], None]) -> None:
        self._work = work
        self._wanted = 0
        self._last: Future[None] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="maxmargin-lab")

    @property
    def is_busy(self) -> bool:
        """Whether the last request is waiting or at work."""
        return self._last is not None and not self._last.done()

    def ask(self, request: Any) -> None:
        """Work on this next."""
        self._wanted += 1
        self._last = self._pool.submit(self._run, request, self._wanted)

    def drop(self) -> None:
        """Drop the request at work, and those that wait."""
        self._wanted += 1

    def close(self) -> None:
        """Stop the thread."""
        self.drop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, request: Any, number: int) -> None:
        if number == self._wanted:
            self._work(request, lambda: number != self._wanted)
