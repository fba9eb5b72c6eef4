"""What a parallel region costs beyond its work, on 1, 2, 4, ... threads.

    python benchmarks/threads.py [--threads 1,2,4,8,16] [--out FILE]

A region of the team (`maxmargin.runtime.team`) with one empty part per thread is timed while the
workers still spin after the last one (hot), and after 2 ms in which they fell asleep (rested).
Python work in parallel (`runtime.threads.in_parallel`) is timed in the same way. Eight parts of
20 µs per thread show what sharing costs: ideal is the time of eight parts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from maxmargin.runtime.atomics import now
from maxmargin.runtime.team import parallel
from maxmargin.runtime.threads import at_most, in_parallel

LIMIT_US = 30.0


@parallel
def do_nothing(part, x):
    """Do nothing."""


@parallel
def spin(part, x):
    """Keep a core busy for 20 µs."""
    until = now() + 20_000
    while now() < until:
        pass


def median_us(work: Callable[[], object], repeats: int, rest: float = 0.0) -> float:
    """Return the median time of some work, each time after a rest."""
    times = []
    for _ in range(repeats):
        if rest:
            time.sleep(rest)
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


def measure(n_threads: int) -> dict[str, float]:
    """Time regions of so many threads."""
    x = np.zeros(1)

    def python() -> None:
        in_parallel(lambda part, stop: None, range(n_threads))

    with at_most(n_threads):
        for warm in (lambda: do_nothing(n_threads, x), lambda: spin(n_threads, x), python):
            median_us(warm, 20)
        return {
            "threads": n_threads,
            "hot_us": median_us(lambda: do_nothing(n_threads, x), 2000),
            "rested_us": median_us(lambda: do_nothing(n_threads, x), 300, 0.002),
            "shared_us": median_us(lambda: spin(8 * n_threads, x), 200),
            "python_hot_us": median_us(python, 300),
            "python_rested_us": median_us(python, 100, 0.002),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default=None, help="numbers of threads, as in 1,2,4")
    parser.add_argument("--out", type=Path, help="a JSON file of the figures")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    numbers = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= (cores or 1)]
    if options.threads:
        numbers = [int(n) for n in options.threads.split(",")]
    print("threads  hot µs  rested µs  8 × 20 µs each  Python: hot µs  rested µs")
    rows = []
    for n in numbers:
        row = measure(n)
        rows.append(row)
        print(
            f"{n:7}  {row['hot_us']:6.1f}  {row['rested_us']:9.1f}  {row['shared_us']:14.0f}"
            f"  {row['python_hot_us']:14.1f}  {row['python_rested_us']:9.1f}",
            flush=True,
        )
    worst = max(row["rested_us"] for row in rows)
    verdict = "met" if worst < LIMIT_US else "missed"
    print(f"a region beyond its work: at most {worst:.1f} µs; {LIMIT_US:.0f} µs {verdict}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"cores": cores, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
