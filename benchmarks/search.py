"""Measure what choosing a model takes.

    python benchmarks/search.py path [--samples N] [--fits N] [--repeat N]
    python benchmarks/search.py leave-one-out [--samples N] [--repeat N]
    python benchmarks/search.py grid [--data FOLDER] [--only NAME …] [--peers NAME …]
    python benchmarks/search.py linear [--data FOLDER]
    python benchmarks/search.py cache [--repeat N]

``path`` compares the exact path over C with warm-started fits of SVC on a logarithmic grid of the
same range, certificates included on both sides. ``leave-one-out`` compares exact leave-one-out
predictions with a loop of fits, of which some are timed. Both run in this process, in turns; the
shortest of the repetitions counts. ``grid`` compares SVCCV on 7 × 7 candidates and five folds with
a loop over all fits of its peers on two processes (oneDAL: one, with two threads): our own SVC,
scikit-learn's and that of scikit-learn-intelex; ``linear`` compares LinearSVCCV of 20 costs with
GridSearchCV of LinearSVC. Both print the largest difference of scores. ``cache`` measures
the CPU time of GridSearchCV of our SVC with and without the cache of kernel values.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from search_peers import PEERS, installed, race
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_svmlight_file,
    make_classification,
    make_moons,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold
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


def shortest(
    work: Callable[[], object], repeat: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the shortest of several times in seconds."""
    times = []
    for _ in range(repeat):
        started = clock()
        work()
        times.append(clock() - started)
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


# Searches -----------------------------------------------------------------------------------------

CS, GAMMAS = 2.0 ** np.linspace(-5.0, 15.0, 7), 2.0 ** np.linspace(-15.0, 3.0, 7)


def search_data(folder: Path | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield the data of searches by name; those of files only with a folder."""
    scaled = StandardScaler().fit_transform
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", scaled(X), y
    X, y = load_digits(return_X_y=True)
    yield "digits", scaled(X), y
    rng = np.random.default_rng(0)
    if folder is not None:
        for name in ("svmguide1", "satimage"):
            X, y = load_svmlight_file(str(folder / f"{name}.bz2"))
            yield name, scaled(X.toarray()), y
        X, y = load_svmlight_file(str(folder / "usps.bz2"))
        yield "usps", X.toarray(), y
        X, y = load_svmlight_file(str(folder / "letter.scale.t.bz2"))
        yield "letter", X.toarray(), y
        X, y = load_svmlight_file(str(folder / "a9a.bz2"))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        yield "a9a", X[:10_000], y[:10_000]
    X = rng.standard_normal((10_000, 20))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * rng.standard_normal(10_000)
    yield "generated, 10,000 x 20", X, np.sign(score)


def compare_grids(given: argparse.Namespace) -> None:
    """Print seconds of SVCCV and of its peers on the same folds."""
    ratios: dict[str, list[float]] = {peer: [] for peer in PEERS}
    for name, X, y in search_data(given.data):
        if given.only and name not in given.only:
            continue
        few = np.random.default_rng(0).permutation(len(y))[:200]
        mm.SVCCV(CS[:2], GAMMAS[:2], refit=False).fit(X[few], y[few])
        search = mm.SVCCV(CS, GAMMAS, refit=False)
        ours = shortest(lambda s=search, X=X, y=y: s.fit(X, y), given.repeat)
        table = search.cv_results_
        print(f"{name}: SVCCV {ours:.2f} s, {table['certified'].mean():.1%} certified, "
              f"best {search.best_score_:.4f}", flush=True)  # fmt: skip
        splits = list(StratifiedKFold(5).split(X, y))
        mine = np.column_stack([table[f"split{k}_test_score"] for k in range(5)])
        for peer in given.peers:
            times = race(
                peer, X, y, table["params"], splits, limit=given.limit, fit_limit=given.fit_limit,
                n_processes=1 if "oneDAL" in peer else 2,
            )  # fmt: skip
            ratios[peer].append(times.seconds / ours)
            off = np.nanmax(np.abs(times.scores - mine))
            print(f"    {peer} {times}: {times.seconds / ours:.1f} times; scores of a fold differ "
                  f"by {off:.1e} at most", flush=True)  # fmt: skip
    for peer, values in ratios.items():
        if values:
            print(f"geometric mean against {peer}: {np.exp(np.log(values).mean()):.1f}")


def compare_linear(folder: Path | None) -> None:
    """Print seconds of LinearSVCCV and of GridSearchCV."""
    rng = np.random.default_rng(0)
    cases = {}
    for n, d in ((2_000, 20), (20_000, 50), (200_000, 50)):
        X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
        cases[f"{n:,} x {d}"] = X, np.sign(X @ w + 2.0 * rng.standard_normal(n))
    if folder is not None:
        X, y = load_svmlight_file(str(folder / "a9a.bz2"))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        cases["a9a"] = X, y
    Cs = np.logspace(-4.0, 4.0, 20)
    for name, (X, y) in cases.items():
        for loss in ("hinge", "squared_hinge"):
            search = mm.LinearSVCCV(Cs, loss=loss, refit=False)
            grid = GridSearchCV(mm.LinearSVC(loss=loss), {"C": Cs}, refit=False)
            search.fit(X[:500], y[:500])
            ours = shortest(lambda s=search, X=X, y=y: s.fit(X, y), 2)
            other = shortest(lambda g=grid, X=X, y=y: g.fit(X, y), 2)
            off = np.abs(grid.cv_results_["mean_test_score"]
                         - search.cv_results_["mean_test_score"])  # fmt: skip
            print(f"{name}, {loss}: LinearSVCCV {ours:.2f} s, GridSearchCV {other:.2f} s, "
                  f"{other / ours:.1f} times; mean scores differ by {off.max():.1e} at most",
                  flush=True)  # fmt: skip


def compare_cache(repeat: int) -> None:
    """Print CPU seconds of GridSearchCV of SVC without and with the cache of kernel values."""
    for name, X, y in search_data(None):
        if name.startswith("generated"):
            name, X, y = "generated, 2,000 x 20", X[:2000], y[:2000]
        searched_with(None, X, y)  # compiles
        pairs = [[searched_with(size, X, y) for size in (None, "1GB")] for _ in range(repeat)]
        plain, kept = (min(run[0] for run in runs) for runs in zip(*pairs, strict=True))
        info, scores = pairs[-1][1][1], [run[2] for pair in pairs for run in pair]
        same = all(np.array_equal(each, scores[0]) for each in scores)
        print(f"{name}: {plain:.2f} s without, {kept:.2f} s with the cache, {1 - kept / plain:.0%} "
              f"less; {info.hits} hits, {info.misses} misses, {info.n_bytes / 1e6:.0f} MB; "
              f"{'equal' if same else 'DIFFERENT'} scores", flush=True)  # fmt: skip


def searched_with(size: str | None, X: Any, y: Any) -> tuple[float, Any, np.ndarray]:
    """Return CPU seconds of a search with such a cache, what the cache did, and mean scores."""
    grid = GridSearchCV(mm.SVC(), {"C": CS, "gamma": GAMMAS}, refit=False)
    with mm.config(kernel_cache=size):
        seconds = shortest(lambda: grid.fit(X, y), 1, time.process_time)
        return seconds, mm.kernel_cache.info(), grid.cv_results_["mean_test_score"]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["path", "leave-one-out", "grid", "linear", "cache"])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, help="where the data files are")
    parser.add_argument("--only", nargs="*", help="names of data sets")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), help="default: those installed",
                        default=[peer for peer in PEERS if installed(peer)])  # fmt: skip
    parser.add_argument("--fit-limit", type=float, default=60.0, help="seconds of a peer's fit")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a peer's grid")
    given = parser.parse_args()
    if given.what == "path":
        compare_paths(given.samples, given.fits, given.repeat)
    elif given.what == "grid":
        compare_grids(given)
    elif given.what == "linear":
        compare_linear(given.data)
    elif given.what == "cache":
        compare_cache(given.repeat)
    else:
        compare_leave_one_out(given.samples, given.repeat)


if __name__ == "__main__":
    main()
