"""The peers of a search: fits of a grid on processes that take one after the other.

What GridSearchCV does without its overhead, but a fit can be stopped, and so can the whole. Fits
come in random order, so that those that were made until then stand for all.

Run as a program, this module is one of the processes:

    python search_peers.py '{"peer": "sklearn", "file": "data.pickle"}'

It reads a line of JSON per fit from standard input, and answers with one.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

# The module that a peer needs.
PEERS = {"our SVC": "maxmargin", "scikit-learn": "sklearn", "oneDAL float32": "sklearnex"}


def installed(peer: str) -> bool:
    """Return whether a peer can be imported."""
    return find_spec(PEERS[peer]) is not None


def machine(peer: str) -> Any:
    """Return the class of a peer's machine, and its options."""
    if peer == "our SVC":
        from maxmargin import SVC

        return SVC(n_jobs=1)
    if peer == "scikit-learn":
        from sklearn.svm import SVC

        return SVC()
    from sklearnex.svm import SVC

    return SVC()


@dataclass(frozen=True)
class PeerTimes:
    """What a peer took.

    Parameters
    ----------
    seconds : float
        Of the whole grid: measured, or estimated from the fits that were made.
    n_fits, n_made, n_stopped : int
        Fits of the grid, those that were made, and those of them that were stopped at their limit.
    scores : ndarray of shape (n_candidates, n_folds)
        NaN where there is none.
    """

    seconds: float
    n_fits: int
    n_made: int
    n_stopped: int
    scores: Any

    def __str__(self) -> str:
        sign = ">" if self.n_stopped else ""
        told = f"{sign}{self.seconds:.1f} s"
        if self.n_made < self.n_fits:
            told += f" (estimated from {self.n_made} of {self.n_fits} fits at random)"
        if self.n_stopped:
            told += f" ({self.n_stopped} fits were stopped at their limit)"
        return told


def race(
    peer: str, X: Any, y: Any, candidates: list[dict[str, float]], splits: list[Any],
    *, n_processes: int, fit_limit: float, limit: float,
) -> PeerTimes:  # fmt: skip
    """Return what a peer takes for all candidates and splits on so many processes."""
    if peer == "oneDAL float32":
        X = X.astype(np.float32)
    tasks = [(c, k) for c in range(len(candidates)) for k in range(len(splits))]
    order = np.random.default_rng(0).permutation(len(tasks))
    left: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for place in order:
        left.put(tasks[place])
    scores = np.full((len(candidates), len(splits)), np.nan)
    seconds, stopped = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.pickle"
        file.write_bytes(pickle.dumps((X, y, candidates, splits)))
        workers = [_Worker(peer, file) for _ in range(n_processes)]
        started = time.perf_counter()

        def work(worker: _Worker) -> None:
            while time.perf_counter() - started < limit:
                try:
                    c, k = left.get_nowait()
                except queue.Empty:
                    return
                begun = time.perf_counter()
                answer = worker.fit(c, k, fit_limit)
                seconds.append(time.perf_counter() - begun)
                if answer is None:
                    stopped.append((c, k))
                else:
                    scores[c, k] = answer

        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - started
        for worker in workers:
            worker.end()
    whole = wall if len(seconds) == len(tasks) else sum(seconds) / n_processes
    return PeerTimes(
        whole * len(tasks) / len(seconds), len(tasks), len(seconds), len(stopped), scores
    )


class _Worker:
    """A process that fits, and is replaced by another where a fit takes too long."""

    def __init__(self, peer: str, file: Path) -> None:
        self.given = json.dumps({"peer": peer, "file": str(file)})
        self._start()

    def _start(self) -> None:
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **({} if "oneDAL" in self.given else threads)}
        self.process = subprocess.Popen(
            [sys.executable, __file__, self.given], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        self._answer(600.0)  # it is ready

    def fit(self, candidate: int, split: int, limit: float) -> float | None:
        """Return the score of a fit; None where it takes longer than the limit."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([candidate, split]) + "\n")
        self.process.stdin.flush()
        answer = self._answer(limit)
        if answer is None:
            self.end()
            self._start()
        return answer

    def _answer(self, limit: float) -> float | None:
        """Return what the process says, None after the limit."""
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        timer.cancel()
        return float(line) if line else None

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def serve(given: dict[str, str]) -> None:
    """Fit what standard input asks for, after a small fit."""
    X, y, candidates, splits = pickle.loads(Path(given["file"]).read_bytes())
    model = machine(given["peer"])
    few = np.random.default_rng(0).permutation(len(y))[:200]
    model.fit(X[few], y[few]).predict(X[few])
    print(0.0, flush=True)
    for line in sys.stdin:
        c, k = json.loads(line)
        train, test = splits[k]
        model.set_params(**candidates[c]).fit(X[train], y[train])
        print(model.score(X[test], y[test]), flush=True)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
