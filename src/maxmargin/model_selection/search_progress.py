"""How far a search is: told to a callback, and printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from .results import Results

# (n, best): further fits are done, or parts of them, and the best mean score so far, −∞ without.
Tell = Callable[[float, float], None]


class SearchProgress:
    """Counts the fits of a search, from any of its threads.

    Parameters
    ----------
    results : Results
        Where the search writes its scores.
    tell : callable or None
        (n, best) ↦ None, called after some fits.
    is_fixed : bool
        Whether all fits of ``results`` will be made, so that the time left can be estimated.
    """

    def __init__(self, results: Results, tell: Tell | None, *, is_fixed: bool = True) -> None:
        self.results, self.tell, self.is_fixed = results, tell, is_fixed
        self.n_done, self._started, self._lock = 0.0, time.perf_counter(), Lock()

    def advance(self, n: float) -> None:
        """Count further fits, or parts of them."""
        with self._lock:
            self._count(n)

    @contextmanager
    def part(self, n: int) -> Iterator[Callable[[float], None]]:
        """Count some fits: yield what takes shares of them; the end counts those not yet told."""
        left = float(n)

        def solved(share: float) -> None:
            nonlocal left
            with self._lock:
                step = min(share * n, left)
                left -= step
                self._count(step)

        yield solved
        self.advance(left)

    def _count(self, n: float) -> None:
        self.n_done += n
        if self.tell is not None:
            self.tell(n, self.best())

    def best(self) -> float:
        """Return the largest mean score so far, −∞ without one."""
        return float(np.nanmax(np.append(self.results.means(), -np.inf)))

    def in_words(self) -> str:
        """Return how many fits are done, and how long the others will take."""
        n, total, seconds = self.n_done, self.results.scores.size, time.perf_counter()
        seconds -= self._started
        best, text = self.best(), f"{n:.0f} of {total} fits in {seconds:.1f} s"
        if self.is_fixed and n:
            text += f", about {seconds / n * (total - n):.0f} s left"
        return text + (f", best mean score {best:.4f}" if np.isfinite(best) else "")

    def ended_at(self, seconds: float | None) -> str:
        """Return the warning of a search that its time limit ended."""
        return (
            f"The search ended at time_limit={seconds:g} s with {self.n_done:.0f} of "
            f"{self.results.scores.size} fits: candidates without all folds have no mean score. "
            "Raise it, or use a smaller grid."
        )
