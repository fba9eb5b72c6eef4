"""Where the time of a decomposition goes: phases of one fit of SVC, on one thread by default.

    python benchmarks/phases.py --data DIR a9a a9a-500
    python benchmarks/phases.py --data DIR covtype --cores 16 --working-set 1024

Seconds of the calling thread's own work, without what it calls: processor time on one core, else
wall clock. ``rows`` is kernel values of all samples and their sum, ``refresh`` the same in float64,
``block`` and ``hold`` the working set's matrix, ``steps`` SMO's.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import kernel_machine
import numpy as np

import maxmargin as mm
from maxmargin.engines.cpu.dual_state import CpuDualState
from maxmargin.engines.cpu.gram import Gram
from maxmargin.engines.cpu.working_set import WorkingSet
from maxmargin.estimators import fitting
from maxmargin.solvers.dual import decomposition

PHASES: list[tuple[Any, str, str]] = [
    (decomposition.Decomposition, "solve", "rest of the solver"),
    (fitting, "_certified", "certificate"),
    (WorkingSet, "solve", "steps"),
    (WorkingSet, "hold", "hold"),
    (Gram, "block", "block"),
    (Gram, "_add_new", "rows"),
    (Gram, "_add_cached", "kept rows"),
    (Gram, "product", "refresh"),
    (CpuDualState, "violators", "selection"),
    (CpuDualState, "levels", "levels"),
    (CpuDualState, "totals", "totals"),
    (CpuDualState, "near", "near"),
]


class Clock:
    """Seconds and calls of each phase, without those of the phases that it calls."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.inner = [0.0]

    def watch(self, owner: Any, name: str, phase: str) -> None:
        """Time every call of a function."""
        function = getattr(owner, name)

        @wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            start = self.now()
            self.inner.append(0.0)
            try:
                return function(*args, **options)
            finally:
                seconds = self.now() - start
                self.seconds[phase] += seconds - self.inner.pop()
                self.inner[-1] += seconds
                self.calls[phase] += 1

        setattr(owner, name, timed)


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", metavar="CASE", choices=kernel_machine.PROBLEMS)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with a9a.bz2 and others")
    parser.add_argument("--cores", type=int, default=1, metavar="N")
    parser.add_argument("--working-set", type=int, default=decomposition.WORKING_SET, metavar="N")
    return parser.parse_args()


def resize(working_set: int) -> None:
    """Let decompositions take working sets of another size, half of it new in each round."""
    decomposition.WORKING_SET = working_set
    tuning = decomposition.Tuning(fresh_variables=working_set // 2)
    make = decomposition.Decomposition.__init__

    def init(self: decomposition.Decomposition, *args: Any, **options: Any) -> None:
        make(self, *args, **{"tuning": tuning, **options})

    decomposition.Decomposition.__init__ = init  # type: ignore[method-assign]


def main() -> None:
    """Fit each case twice, and print the phases of the second fit."""
    options = arguments()
    warnings.simplefilter("ignore")
    clock = Clock(time.thread_time if options.cores == 1 else time.perf_counter)
    resize(options.working_set)
    for phase in PHASES:
        clock.watch(*phase)
    for name in options.cases:
        problem = kernel_machine.PROBLEMS[name]
        X, y = problem.make(options.data)
        model = mm.SVC(C=problem.C, gamma=problem.gamma, n_jobs=options.cores).fit(X, y)
        clock.seconds.clear()
        clock.calls.clear()
        start = clock.now()
        model.fit(X, y)
        total = clock.now() - start
        print(f"{name}, {X.shape[0]:,} x {X.shape[1]:,}: {total:.3f} s, ", end="")
        print(f"{int(np.sum(model.n_iter_)):,} steps")
        rows = sorted(clock.seconds.items(), key=lambda row: -row[1])
        for phase, seconds in [*rows, ("everything else", total - sum(clock.seconds.values()))]:
            print(f"  {phase:20} {seconds:7.3f}  {clock.calls.get(phase, 1):5}")


if __name__ == "__main__":
    main()
