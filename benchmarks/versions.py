"""Compare the speed of two versions of maxmargin on the cases of the other benchmarks.

    python benchmarks/versions.py --before SRC [--data DIR] [--only CASE ...] [--out FILE]

SRC is the ``src`` folder of the other version. Every case is fitted by both versions in turn, each
time in a process of its own that first fits once to compile; the shortest time of each version
counts. CPU seconds are compared beside wall seconds: they depend less on what else the machine is
doing. DIR is the data folder of `kernel_machine` and `linear_machine`; without it only generated
data are used.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernel_machine
import linear_machine
import race
import separating

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """Data and the estimator to fit, ``times`` in a row where one fit is too short to measure."""

    make: Callable[[Path], tuple[Any, Any]]
    model: str
    options: dict[str, Any]
    times: int = 1
    generated: bool = False


def _kernel_case(name: str) -> Case:
    problem = kernel_machine.PROBLEMS[name]
    options = {"C": problem.C, "gamma": problem.gamma}
    return Case(problem.make, "SVC", options, generated=problem.generated)


def _linear_case(name: str, n: int = 0, **options: Any) -> Case:
    problem = linear_machine.PROBLEMS[name]
    if problem.read is not None:
        return Case(problem.read, "LinearSVC", options)
    make = problem.make
    assert make is not None
    return Case(lambda folder: make(n or problem.n), "LinearSVC", options, generated=True)


def _generated(
    make: Callable[..., tuple[Any, Any]], *sizes: int, model: str, times: int = 1, **options: Any
) -> Case:
    return Case(lambda folder: make(*sizes), model, options, times, generated=True)


def _iris() -> tuple[Any, Any]:
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


CASES = {
    **{
        f"kernel {name}": _kernel_case(name)
        for name, problem in kernel_machine.PROBLEMS.items()
        if not problem.large
    },
    "linear dense hinge": _linear_case("dense", loss="hinge"),
    "linear dense hinge C=100": _linear_case("dense", loss="hinge", C=100.0),
    "linear dense squared": _linear_case("dense", loss="squared_hinge"),
    "linear text hinge": _linear_case("text", 30_000, loss="hinge"),
    "linear text squared": _linear_case("text", 30_000, loss="squared_hinge"),
    "linear wide hinge": _linear_case("wide", 20_000, loss="hinge"),
    "linear huge hinge": _linear_case("huge", 1_000_000, loss="hinge"),
    **{
        f"linear {name} {loss}": _linear_case(name, loss=loss)
        for name in ("covtype", "a9a", "w8a", "mnist", "reuters")
        for loss in ("hinge", "squared_hinge")
    },
    "joint classes": _generated(
        kernel_machine.twelve_classes, model="LinearSVC", multi_class="crammer_singer"
    ),
    "perceptron": _generated(
        separating.two_clouds, 500_000, 50, model="Perceptron", max_iter=5, random_state=0
    ),
    "perceptron sparse": _generated(
        separating.text_like, 50_000, 50_000, model="Perceptron", max_iter=5, random_state=0
    ),
    "perceptron batch": _generated(
        separating.two_clouds, 200_000, 50, model="Perceptron", update="batch", max_iter=20
    ),
    "LMS": _generated(separating.two_clouds, 500_000, 50, model="LMS", max_iter=5, random_state=0),
    "pseudoinverse": _generated(separating.two_clouds, 200_000, 100, model="Pseudoinverse"),
    "Ho–Kashyap": _generated(
        separating.two_clouds, 50_000, 50, model="HoKashyap", max_iter=30
    ),
    "kernel perceptron": _generated(
        separating.curved, 10_000, 50, model="KernelPerceptron", max_iter=5, random_state=0
    ),
    "iris SVC, 50 fits": _generated(_iris, model="SVC", times=50),
    "iris LinearSVC, 50 fits": _generated(_iris, model="LinearSVC", times=50),
    "iris Perceptron, 50 fits": _generated(_iris, model="Perceptron", times=50),
}  # fmt: skip


def measure(name: str, folder: Path, repeats: int) -> tuple[float, float]:
    """Return the shortest wall and CPU seconds of a case, with the version on the path."""
    import maxmargin as mm

    case = CASES[name]
    X, y = case.make(folder)
    best = math.inf, math.inf
    warnings.simplefilter("ignore")
    for k in range(repeats + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(case.times):
            getattr(mm, case.model)(**case.options).fit(X, y)
        spent = time.perf_counter() - wall, time.process_time() - cpu
        if k:  # the first one compiles
            best = min(best[0], spent[0]), min(best[1], spent[1])
    return best


def in_fresh_process(
    src: Path, name: str, folder: Path | None, repeats: int
) -> tuple[float, float]:
    """Measure a case in a new process with ``src`` on its path."""
    order = json.dumps([name, str(folder or ""), repeats])
    environment = {**os.environ, "PYTHONPATH": str(src)}
    done = subprocess.run(
        [sys.executable, str(HERE / "versions.py"), "--measure", order],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    wall, cpu = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu


def compare(
    name: str, sources: dict[str, Path], folder: Path | None, repeats: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return the best of several rounds in which the versions take turns."""
    best = dict.fromkeys(sources, (math.inf, math.inf))
    for _ in range(rounds):
        for version, src in sources.items():
            wall, cpu = in_fresh_process(src, name, folder, repeats)
            best[version] = min(best[version][0], wall), min(best[version][1], cpu)
    return best


def main() -> None:
    """Read the command line and print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="src folder of the version to compare with")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of data sets")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="cases, by part of their name")
    parser.add_argument("--repeats", type=int, default=3, help="fits per process (default: 3)")
    parser.add_argument("--rounds", type=int, default=2, help="processes per version (default: 2)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, folder, repeats = json.loads(options.measure)
        print(json.dumps(measure(name, Path(folder), repeats)))
        return
    if options.before is None:
        parser.error("--before is missing: pass the src folder of the version to compare with.")
    sources = {"before": options.before, "after": HERE.parent / "src"}
    figures: dict[str, Any] = {"machine": race.machine(), "cases": {}}
    print(f"{'case':28} {'wall before':>11} {'after':>8} {'ratio':>6}   {'CPU':>6} {'ratio':>6}")
    ratios = []
    for name, case in CASES.items():
        if options.only and not any(part in name for part in options.only):
            continue
        if options.data is None and not case.generated:
            continue
        found = compare(name, sources, options.data, options.repeats, options.rounds)
        (wall, cpu), (new_wall, new_cpu) = found["before"], found["after"]
        ratios.append(new_cpu / cpu)
        figures["cases"][name] = found
        print(
            f"{name:28} {wall:11.3f} {new_wall:8.3f} {new_wall / wall:6.2f}   {new_cpu:6.2f} "
            f"{new_cpu / cpu:6.2f}",
            flush=True,
        )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean of the CPU ratios: {mean:.3f}; largest: {max(ratios):.2f}")
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
