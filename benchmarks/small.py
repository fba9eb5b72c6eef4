"""Race small fits, grid searches and predictions of one row against scikit-learn.

    python benchmarks/small.py [--quick] [--cpu] [--only CASE ...] [--out FILE]

Data are the four tables that come with scikit-learn, standardised: iris, wine, breast_cancer and
digits. Both libraries fit in one process, in turn, after a warm-up; the shortest of many times
counts, and the median is shown beside it. With --cpu it is the processor time of the process, all
threads included, for a machine that has other work: searches with workers are left out. A ratio is
our time over theirs: below 1, we are faster. The limits are 2 where theirs takes less than 5 ms,
else 1.2; there is none for perceptrons with their defaults, which do not do the same.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import race

NAMES = ("iris", "wine", "breast_cancer", "digits")
GRID = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [0.001, 0.01, 0.1, 1.0, 10.0]}
# Passes of both perceptrons, at most: where no plane separates, scikit-learn's stops by default at
# a tolerance, after some ten passes, and ours after 1,000.
PASSES = 100
# Theirs, in seconds, below which our time may be twice as long; above it, the closer limit holds.
SHORT, SHORT_LIMIT, LIMIT = 5e-3, 2.0, 1.2
# What tells the time.
CLOCK: Callable[[], float] = time.perf_counter
# Seconds that the repetitions of a line take, about, and how many there are at least and at most.
SECONDS, FEWEST, MOST = 2.0, 3, 200


@dataclass
class Line:
    """One comparison: shortest and median seconds of both, and the largest ratio allowed."""

    what: str
    theirs: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    largest: float | None = None

    @property
    def ratio(self) -> float:
        """Our shortest time over theirs."""
        return min(self.ours) / min(self.theirs)

    @property
    def limit(self) -> float:
        """The largest ratio allowed."""
        return self.largest or (SHORT_LIMIT if min(self.theirs) < SHORT else LIMIT)


@dataclass
class Table:
    """The lines of one case."""

    title: str
    lines: list[Line] = field(default_factory=list)


def table_of(name: str) -> tuple[Any, Any]:
    """Return one of scikit-learn's tables, standardised."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def in_turn(what: str, theirs: Callable[[], Any], ours: Callable[[], Any], **options: Any) -> Line:
    """Time both in turn, after a warm-up of each."""
    line = Line(what, **options)
    theirs(), ours()
    gc.collect()
    begun = time.perf_counter()
    while len(line.ours) < FEWEST or (
        len(line.ours) < MOST and time.perf_counter() - begun < SECONDS
    ):
        for run, seconds in ((theirs, line.theirs), (ours, line.ours)):
            started = CLOCK()
            run()
            seconds.append(CLOCK() - started)
    return line


def estimators() -> Iterator[tuple[str, Any, Any]]:
    """Yield what is fitted, theirs and ours."""
    from sklearn.linear_model import Perceptron
    from sklearn.svm import SVC, LinearSVC

    import maxmargin as mm

    yield "SVC", SVC(), mm.SVC()
    yield "LinearSVC", LinearSVC(), mm.LinearSVC()
    passes = {"max_iter": PASSES, "random_state": 0}
    yield "Perceptron", Perceptron(tol=None, **passes), mm.Perceptron(**passes)


def fits(name: str) -> Table:
    """Fit and predict the training rows."""
    X, y = table_of(name)
    lines = [
        in_turn(what, *(lambda model=each: model.fit(X, y).predict(X) for each in both))
        for what, *both in estimators()
    ]
    return Table(f"{name}, {X.shape[0]} × {X.shape[1]}: fit and predict", lines)


def defaults() -> Table:
    """Fit perceptrons as they come, and show how many passes each has made; no limit is set.

    Ours goes on until no sample is on the wrong side, for up to 1,000 passes; scikit-learn's stops
    when a pass no longer lowers its loss by much.
    """
    from sklearn.linear_model import Perceptron

    import maxmargin as mm

    lines = []
    for name in NAMES:
        X, y = table_of(name)
        theirs, ours = Perceptron().fit(X, y), mm.Perceptron().fit(X, y)
        passes = f"{name}: {theirs.n_iter_} passes and {ours.n_iter_}"
        runs = [partial(each.fit, X, y) for each in (theirs, ours)]
        lines.append(in_turn(passes, *runs, largest=float("inf")))
    return Table("Perceptron() with its defaults: fit", lines)


def one_row() -> Table:
    """Predict one row."""
    lines = []
    for name in NAMES:
        X, y = table_of(name)
        for what, *both in estimators():
            runs = [partial(each.fit(X, y).predict, X[:1]) for each in both]
            lines.append(in_turn(f"{what} of {name}", *runs, largest=LIMIT))
    return Table("predict of one row", lines)


def search(name: str, n_jobs: int | None, library: str, repeats: int) -> list[float]:
    """Return the seconds of grid searches; with workers the first one starts them."""
    from sklearn.model_selection import GridSearchCV

    import maxmargin as mm

    X, y = table_of(name)
    if library == "sklearn":
        from sklearn.svm import SVC
    else:
        from maxmargin import SVC
    mm.SVC().fit(X, y), SVC().fit(X, y)
    seconds = []
    for _ in range(repeats):
        started = CLOCK()
        GridSearchCV(SVC(), GRID, cv=5, n_jobs=n_jobs).fit(X, y)
        seconds.append(CLOCK() - started)
    return seconds


def searches(name: str, rounds: int) -> Table:
    """Search 5 × 5 values of C and gamma in 5 folds, in processes that take turns."""
    table = Table(f"{name}: GridSearchCV(SVC(), 5 × 5 values, cv=5)")
    is_cpu = CLOCK is time.process_time
    for n_jobs in (None,) if is_cpu else (None, 2):
        first, later = (
            Line(f"n_jobs={n_jobs}{which}", largest=LIMIT)
            for which in ((", first", ", later") if n_jobs else ("", ""))
        )
        for _ in range(rounds):
            for library in ("sklearn", "maxmargin"):
                order = ["--search", json.dumps([name, n_jobs, library, 3])]
                # Python may write bytecode, which an installed package has.
                seconds = race.fresh(
                    [__file__, *order, *["--cpu"] * is_cpu], PYTHONDONTWRITEBYTECODE=""
                )
                theirs = library == "sklearn"
                (first.theirs if theirs else first.ours).append(seconds[0])
                (later.theirs if theirs else later.ours).extend(seconds[1:])
        table.lines += [first, later] if n_jobs else [later]
    return table


def show(table: Table) -> None:
    """Print one case."""
    print(f"\n{table.title}")
    print(f"{'':28}{'scikit-learn':>20}{'maxmargin':>20}{'ratio':>8}")
    for line in table.lines:
        verdict = f"≤ {line.limit:g}: " + ("ok" if line.ratio <= line.limit else "MISSED")
        verdict = verdict if line.limit < float("inf") else ""
        times = "".join(
            f"{1e3 * min(each):11.2f} ({1e3 * statistics.median(each):6.2f})"
            for each in (line.theirs, line.ours)
        )
        print(f"{line.what:28}{times}{line.ratio:8.2f}  {verdict}", flush=True)


CASES: dict[str, Callable[[], Table]] = {
    **{name: lambda name=name: fits(name) for name in NAMES},
    "defaults": defaults,
    "one-row": one_row,
    **{f"search-{name}": lambda name=name: searches(name, 2) for name in NAMES},
}


def main() -> None:
    """Read the command line and run the cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="few repetitions: does it run?")
    parser.add_argument("--cpu", action="store_true", help="processor time: other programs run")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--search", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.cpu:
        globals()["CLOCK"] = time.process_time
    if options.search:
        print(json.dumps(search(*json.loads(options.search))))
        return
    if options.quick:
        globals()["SECONDS"] = 0.0
    chosen = [name for name in CASES if not options.only or name in options.only]
    if not chosen:
        parser.error(f"--only must name some of {', '.join(CASES)}.")
    tables = race.report((CASES[name]() for name in chosen), options.out, show)
    missed = [line.what for table in tables for line in table.lines if line.ratio > line.limit]
    print(f"\n{len(missed)} limits missed" + (f": {', '.join(missed)}" if missed else ""))
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
