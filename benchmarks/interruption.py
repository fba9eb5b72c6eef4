"""How long Ctrl-C takes to end a fit: seconds from the signal to the exception.

    python benchmarks/interruption.py [--repeats 5] [--only svc classes] [--out FILE]

Each work is begun, and interrupted after a random time by the signal that the keyboard sends. An
interruption before those that count lets everything be compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm

GOAL_SECONDS = 0.5


@cache
def samples(n: int, d: int, n_classes: int = 2) -> tuple[Any, Any]:
    """Return rows without structure: machines of them take long."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(np.float32), rng.integers(0, n_classes, n)


@cache
def fitted() -> mm.SVC:
    """Return a model of many support vectors."""
    return mm.SVC(gamma=1.0, max_iter=5000).fit(*samples(3000, 10))


WORK: dict[str, Callable[[], object]] = {
    "svc": lambda: mm.SVC(C=1e3, gamma=0.3).fit(*samples(40_000, 10)),
    "classes": lambda: mm.SVC(C=1e3, gamma=0.3).fit(*samples(20_000, 10, 4)),
    "pairs": lambda: mm.SVC(C=1e3, gamma=0.3).fit(*samples(9_000, 10, 12)),
    "nu": lambda: mm.NuSVC(0.4, gamma=0.3).fit(*samples(20_000, 10)),
    "svr": lambda: mm.SVR(C=1e3, gamma=0.3).fit(*samples(20_000, 10)),
    "one-class": lambda: mm.OneClassSVM(nu=0.5, gamma=0.3).fit(samples(60_000, 10)[0]),
    "joint": lambda: mm.SVC(C=1e3, gamma=0.3, multi_class="crammer_singer").fit(
        *samples(4_000, 10, 4)
    ),
    "hinge": lambda: mm.LinearSVC(loss="hinge", tol=1e-9).fit(*samples(2_000_000, 28)),
    "squared": lambda: mm.LinearSVC(tol=1e-12).fit(*samples(2_000_000, 28)),
    "l1": lambda: mm.LinearSVC("l1", C=100.0, tol=1e-10).fit(*samples(100_000, 200)),
    "linear-svr": lambda: mm.LinearSVR(tol=1e-9).fit(*samples(2_000_000, 28)),
    "perceptron": lambda: mm.Perceptron().fit(*samples(1_000_000, 28)),
    "kernel-perceptron": lambda: mm.KernelPerceptron(gamma=0.3).fit(*samples(10_000, 10)),
    "separability": lambda: mm.separability(*samples(100_000, 20)),
    "predict": lambda: fitted().predict(samples(2_000_000, 10)[0]),
}


def delay(work: Callable[[], object], after: float) -> float:
    """Return the seconds between a signal after so many and the exception."""
    sent = []

    def press() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, press)
    try:
        timer.start()
        while True:  # however fast the machine is
            work()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]


def main() -> None:
    """Measure and print the delays of every work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK), metavar="WORK")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    rng, found = np.random.default_rng(0), {}
    fitted()
    print(f"{'':18}{'median s':>9}{'worst s':>9}")
    for name in options.only:
        delay(WORK[name], 8.0)
        delays = [delay(WORK[name], t) for t in rng.uniform(0.1, 2.0, options.repeats)]
        found[name] = delays
        missed = "  missed" if max(delays) > GOAL_SECONDS else ""
        print(f"{name:18}{np.median(delays):9.2f}{max(delays):9.2f}{missed}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
