"""Measure what choosing a model takes.

    python benchmarks/search.py path [--samples N] [--fits N] [--repeat N]
    python benchmarks/search.py leave-one-out [--samples N] [--repeat N]

``path`` compares the exact path over C with warm-started fits of SVC on a logarithmic grid of the
same range, certificates included on both sides. ``leave-one-out`` compares exact leave-one-out
predictions with a loop of fits, of which some are timed. Both run in this process, in turns; the
shortest of the repetitions counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification, make_moons
from sklearn.preprocessing import StandardScaler

import maxmargin as mm

C_MIN, C_MAX = 1e-2, 1e2
# Fits of a loop that are timed; the others are taken to be as long.
TIMED_FITS = 50


def data_sets(n: int) -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, object]]]:
    """Return X, y and options of the machine by name."""

    def clusters(noise: float) -> tuple[np.ndarray, np.ndarray]:
        return make_classification(
            n, 10, n_informative=6, n_redundant=0, flip_y=noise, class_sep=0.8, random_state=0
        )

    X, y = load_breast_cancer(return_X_y=True)
    return {
        "clusters, 5 % noise, rbf": (*clusters(0.05), {}),
        "clusters, 20 % noise, rbf": (*clusters(0.2), {}),
        "clusters, 20 % noise, linear": (*clusters(0.2), {"kernel": "linear"}),
        "moons, rbf": (*make_moons(n, noise=0.3, random_state=0), {"gamma": 2.0}),
        "breast cancer, rbf": (StandardScaler().fit_transform(X), y, {}),
    }


def shortest(work: Callable[[], object], repeat: int) -> float:
    """Return the shortest of several times in seconds."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def compare_paths(n: int, n_fits: int, repeat: int) -> None:
    """Print seconds of the path and of warm-started fits, for two tolerances of these."""
    head = ("data", "breakpoints", "path s", "fits 1e-3 s", "÷", "fits 1e-6 s", "÷", "resolved")
    print(" | ".join(head))
    for name, (X, y, options) in data_sets(n).items():

        def fits(tol: float, X=X, y=y, options=options) -> None:
            model = mm.SVC(warm_start=True, tol=tol, **options)
            for C in np.geomspace(C_MIN, C_MAX, n_fits):
                model.set_params(C=C).fit(X, y)

        def path(X=X, y=y, options=options) -> mm.model_selection.CPath:
            return mm.model_selection.c_path(X, y, C_min=C_MIN, C_max=C_MAX, **options)

        found = path()
        ours = shortest(path, repeat)
        coarse, fine = (shortest(lambda tol=tol: fits(tol), repeat) for tol in (1e-3, 1e-6))
        print(
            f"{name} | {len(found)} | {ours:.2f} | {coarse:.2f} | {coarse / ours:.1f} | "
            f"{fine:.2f} | {fine / ours:.1f} | {found.n_resolved}",
            flush=True,
        )


def compare_leave_one_out(n: int, repeat: int) -> None:
    """Print seconds of leave_one_out and of a loop of fits."""
    print("data | refits | ours s | loop s | ÷")
    for name, (X, y, options) in data_sets(n).items():
        model = mm.SVC(**options)

        def loop(X=X, y=y, model=model) -> None:
            for row in range(TIMED_FITS):
                others = np.arange(len(y)) != row
                model.fit(X[others], y[others]).predict(X[[row]])

        result = mm.model_selection.leave_one_out(model, X, y)
        ours = shortest(lambda X=X, y=y, m=model: mm.model_selection.leave_one_out(m, X, y), repeat)
        other = shortest(loop, repeat) * len(y) / TIMED_FITS
        print(
            f"{name} | {result.n_refits} | {ours:.2f} | {other:.2f} | {other / ours:.1f}",
            flush=True,
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["path", "leave-one-out"])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    if given.what == "path":
        compare_paths(given.samples, given.fits, given.repeat)
    else:
        compare_leave_one_out(given.samples, given.repeat)


if __name__ == "__main__":
    main()
