"""Race contestants on the same data: each in a fresh process, timed after a warm-up fit.

A contestant is a function of a benchmark module. Called with its options it returns ``fit``, and
``fit(X, y)`` returns a model: what it imports and prepares is outside the clock, what ``fit`` does
is inside. A judge, ``judge(model, X, y)``, then states facts about the model, the same for all.
A contestant that takes its data in another form than they were saved in names a function
``form(X)``: it is applied before the clock, and the judge sees the data as saved.
The warm-up is a fit of few rows, or ``fit.warm_up(X, y)`` where ``fit`` has one.

Run as a program, this module is the fresh process of one contestant:

    python race.py '{"module": "separating", "contestant": "perceptron", ...}'
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import math
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

Fit = Callable[[Any, Any], Any]

# Rows of the data that the warm-up fit sees.
WARM_UP = 512
# ru_maxrss is in kilobytes on Linux, in bytes on macOS.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
PACKAGES = ("maxmargin", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Outcome:
    """What one contestant did: seconds of every repetition, extra memory in bytes, facts.

    ``peak`` is the largest resident size of the whole process, imports and data included;
    ``user`` holds the CPU seconds of all threads together, for every repetition.
    """

    seconds: list[float]
    extra_memory: int
    data_memory: int
    facts: dict[str, Any]
    peak: int = 0
    user: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The shortest time: noise of the machine only ever adds."""
        return min(self.seconds)

    @property
    def memory(self) -> float:
        """Peak of data and fit together, as a multiple of the data."""
        return 1.0 + self.extra_memory / self.data_memory


@dataclass
class Row:
    """One line of a table: times, their ratios to ours (above 1: we are faster), the verdict."""

    contestant: str
    a_pass: float | None = None
    pass_ratio: float | None = None
    fit: float | None = None
    fit_ratio: float | None = None
    memory: float | None = None
    verdict: str = ""
    note: str = ""


@dataclass
class Table:
    """The rows of one case."""

    title: str
    rows: list[Row] = field(default_factory=list)


@dataclass
class Target:
    """What was to be reached, what was, and whether that is enough (None: not judged)."""

    what: str
    value: str
    reached: bool | None = None
    goal: str = ""


@dataclass
class Summary:
    """All targets of a run."""

    title: str
    targets: list[Target]


# The data, written once and read by every contestant -----------------------------------------


def save(folder: Path, X: Any, y: Any) -> None:
    """Write X (dense or CSR) and y where `load` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "y.npy", y)
    if isinstance(X, np.ndarray):
        np.save(folder / "X.npy", X)
        return
    np.save(folder / "shape.npy", X.shape)
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))


def load(folder: Path, n_rows: int | None = None) -> tuple[Any, Any]:
    """Read X and y into memory: all rows, or only the first ones."""
    mode = None if n_rows is None else "r"
    y = np.array(
        np.load(folder / "y.npy", mmap_mode=mode)[:n_rows], copy=n_rows is not None or None
    )
    if (folder / "X.npy").exists():
        X = np.load(folder / "X.npy", mmap_mode=mode)
        return (X if n_rows is None else np.array(X[:n_rows])), y
    from scipy import sparse

    data, indices, indptr = (
        np.load(folder / f"{name}.npy", mmap_mode=mode) for name in ("data", "indices", "indptr")
    )
    n, d = (int(k) for k in np.load(folder / "shape.npy"))
    if n_rows is not None:
        n = min(n, n_rows)
        indptr = np.array(indptr[: n + 1])
        data, indices = np.array(data[: indptr[-1]]), np.array(indices[: indptr[-1]])
    return sparse.csr_matrix((data, indices, indptr), shape=(n, d), copy=False), y


def size_of(X: Any) -> int:
    """Bytes of X."""
    if isinstance(X, np.ndarray):
        return X.nbytes
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


# The fresh process ---------------------------------------------------------------------------


def run(
    module: str,
    contestant: str,
    folder: Path,
    *,
    judge: str,
    laps: Sequence[dict[str, Any]] = ({},),
    repeats: int | Sequence[int] = 3,
    form: str | None = None,
    long: float = math.inf,
    limits: Sequence[float] | None = None,
    warm_up: int = WARM_UP,
    cores: int | None = None,
) -> list[Outcome]:
    """Race one contestant in a process of its own; return an outcome for the options of each lap.

    Laps take turns, so that what the machine does meanwhile slows all of them alike. Memory is
    the peak of a lap's first fit, on top of what was there when it began. Fits that take longer
    than ``long`` seconds are not repeated: noise is a small part of them. ``repeats`` may be a
    number for each lap. A fit that takes longer than the ``limits`` of its lap ends the process,
    and there are fewer outcomes than laps. ``warm_up`` is the number of rows of the first fit;
    ``cores`` limits the process to so many cores.
    """
    counts = [repeats] * len(laps) if isinstance(repeats, int) else list(repeats)
    order = {
        "module": module, "contestant": contestant, "folder": str(folder), "judge": judge,
        "laps": list(laps), "repeats": counts, "form": form, "long": long,
        "limits": list(limits or ()), "warm_up": warm_up,
    }  # fmt: skip
    try:
        return outcomes(fresh([__file__, json.dumps(order)], cores))
    except subprocess.CalledProcessError as error:
        if error.returncode != -signal.SIGALRM:
            raise
        return salvaged(error)


def outcomes(record: list[dict[str, Any]]) -> list[Outcome]:
    """Read outcomes from JSON."""
    return [Outcome(**outcome) for outcome in record]


def salvaged(error: subprocess.CalledProcessError) -> list[Outcome]:
    """Return what a contestant had done when its process ended before its time."""
    told = [line for line in error.output.splitlines() if line.startswith("[{")]
    return outcomes(json.loads(told[-1])) if told else []


def fresh(arguments: list[str], cores: int | None = None, **environment: str) -> Any:
    """Run Python on ``arguments`` in a new process; return the JSON of its last line."""
    bound = None
    if cores is not None:
        environment["OMP_NUM_THREADS"] = str(cores)
        bound = partial(os.sched_setaffinity, 0, choose_cores(cores))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=bound,
    )
    return json.loads(done.stdout.splitlines()[-1])


def choose_cores(count: int) -> list[int]:
    """Return the numbers of ``count`` logical cores, different physical cores first."""
    taken: Counter[tuple[str, ...]] = Counter()
    ranks = {}
    for core in sorted(os.sched_getaffinity(0)):
        physical = _physical_core(core)
        ranks[core] = taken[physical]
        taken[physical] += 1
    if count > len(ranks):
        raise ValueError(f"At most {len(ranks)} cores are available here, got {count}.")
    return sorted(ranks, key=lambda core: (ranks[core], core))[:count]


def _physical_core(core: int) -> tuple[str, ...]:
    topology = Path(f"/sys/devices/system/cpu/cpu{core}/topology")
    try:
        return tuple((topology / name).read_text() for name in ("physical_package_id", "core_id"))
    except OSError:
        return (str(core),)


def clocked(statement: str, after: str = "pass", **environment: str) -> float:
    """Return the seconds that a statement takes in a new process, once ``after`` is done."""
    program = (
        f"{after}\nimport json, time\nstarted = time.perf_counter()\n{statement}\n"
        "print(json.dumps(time.perf_counter() - started))"
    )
    return fresh(["-c", program], **environment)


def contest(order: dict[str, Any]) -> Iterator[list[Outcome]]:
    """Warm up, load the data, fit under the clock, then judge: the life of a fresh process.

    Yields what is known so far after every fit.
    """
    module = importlib.import_module(order["module"])
    contestant, judge = getattr(module, order["contestant"]), getattr(module, order["judge"])
    fits: list[Fit] = [contestant(**options) for options in order["laps"]]
    repeats, limits = order["repeats"], order["limits"] or [math.inf] * len(fits)
    folder = Path(order["folder"])
    form = getattr(module, order["form"]) if order["form"] else lambda X: X

    def formed(n_rows: int | None = None) -> tuple[Any, Any]:
        X, y = load(folder, n_rows)
        return form(X), y

    for fit in fits:
        timed(getattr(fit, "warm_up", fit), *formed(order["warm_up"]), max(limits))
    X, y = formed()
    baseline = forget_peak()
    done: list[Outcome] = []
    for repetition in range(max(repeats)):
        for k, fit in enumerate(fits):
            if repetition >= repeats[k]:
                continue
            if repetition and done[k].seconds[-1] > order["long"]:
                continue
            if repetition == 0:
                tidy()
                baseline = forget_peak(baseline)
            model, seconds, user = timed(fit, X, y, limits[k])
            if repetition == 0:
                peak = peak_memory()
                facts = judge(model, *((X, y) if order["form"] is None else load(folder)))
                done.append(Outcome([], peak - baseline, size_of(X), facts, peak))
            done[k].seconds.append(seconds)
            done[k].user.append(user)
            del model
            yield done


def timed(fit: Fit, X: Any, y: Any, limit: float = math.inf) -> tuple[Any, float, float]:
    """Fit under the clock; return the model, the seconds and the user CPU seconds.

    A fit beyond the limit ends the process, whatever it is doing.
    """
    if math.isfinite(limit):
        signal.setitimer(signal.ITIMER_REAL, limit)
    started, user = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
    model = fit(X, y)
    seconds = time.perf_counter() - started
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime - user
    if math.isfinite(limit):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return model, seconds, user


def tidy() -> None:
    """Give what laps and judges have freed back to the system, where it can be done."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def forget_peak(instead: int | None = None) -> int:
    """Start a new peak at what is resident now and return that size.

    Where the system does not let us, return the peak so far, or ``instead``.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_memory() if instead is None else instead
    return peak_memory()


def peak_memory() -> int:
    """Return the largest resident size of this process, in bytes.

    Linux's VmHWM where there is one: ru_maxrss of a fresh process begins at its parent's peak.
    """
    with contextlib.suppress(OSError), open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT


# Where and with what -------------------------------------------------------------------------


def machine(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Describe the machine, the versions and the moment of a measurement."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _cpu_model() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# What a person reads -------------------------------------------------------------------------


def verdict(ratio: float, target: float) -> str:
    """Say whether a ratio of at least ``target`` was reached."""
    return f"{ratio:.1f}× of ≥ {target:g}×: {'ok' if ratio >= target else 'MISSED'}"


def limit(value: float, largest: float, unit: str) -> str:
    """Say whether a value of at most ``largest`` was kept to."""
    return f"{value:.2f} of ≤ {largest:g} {unit}: {'ok' if value <= largest else 'MISSED'}"


def with_ratios(rows: list[Row]) -> list[Row]:
    """Fill in how long each contestant took as a multiple of the first row, which is ours."""
    ours = rows[0]
    for row in rows[1:]:
        row.pass_ratio = _ratio(row.a_pass, ours.a_pass)
        row.fit_ratio = _ratio(row.fit, ours.fit)
    return rows


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return None if theirs is None or ours is None else theirs / ours


def show(table: Table) -> None:
    """Print one case."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=table.title, title_justify="left", title_style="bold")
    grid.add_column("contestant", overflow="fold")
    for heading in ("a pass", "÷ ours", "fit", "÷ ours", "memory"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("target", overflow="fold")
    grid.add_column("note", overflow="fold")
    for row in table.rows:
        grid.add_row(
            row.contestant,
            _seconds(row.a_pass), _times(row.pass_ratio),
            _seconds(row.fit), _times(row.fit_ratio), _times(row.memory),
            f"[{'red' if 'MISSED' in row.verdict else 'green'}]{row.verdict}[/]"
            if row.verdict
            else "",
            row.note,
        )  # fmt: skip
    console = Console()
    Console(width=max(console.width, 130)).print(grid)


def show_summary(summary: Summary) -> None:
    """Print the targets and whether they were reached."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=summary.title, title_justify="left", title_style="bold")
    for heading in ("target", "goal", "measured", "verdict"):
        grid.add_column(heading, overflow="fold")
    words = {True: "[green]reached[/]", False: "[red]MISSED[/]", None: "[dim]not judged[/]"}
    for target in summary.targets:
        grid.add_row(target.what, target.goal, target.value, words[target.reached])
    Console(width=max(Console().width, 130)).print(grid)


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f} s" if value >= 1.0 else f"{1e3 * value:.1f} ms"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×"


def report(
    tables: Iterable[Any],
    out: Path | None,
    show: Callable[[Any], None] = show,
    packages: Sequence[str] = PACKAGES,
) -> list[Any]:
    """Print each case when it is done, and write all of them as JSON where asked."""
    description = machine(packages)
    print(", ".join(f"{name} {value}" for name, value in description.items()))
    done = []
    for table in tables:
        show(table)
        done.append(table)
        if out is not None:  # after every case: a run that is stopped keeps what it has
            out.parent.mkdir(parents=True, exist_ok=True)
            record = {"machine": description, "cases": [asdict(case) for case in done]}
            out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return done


if __name__ == "__main__":
    for so_far in contest(json.loads(sys.argv[1])):
        print(json.dumps([asdict(outcome) for outcome in so_far]), flush=True)
