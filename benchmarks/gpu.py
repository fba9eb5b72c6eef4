"""Machines on a GPU: seconds of whole fits and predictions, each with its certificate.

    python benchmarks/gpu.py --data DIR                  # everything, DIR as for kernel_machine.py
    python benchmarks/gpu.py --data DIR --only a9a letter --phases
    python benchmarks/gpu.py --only table --rows 3000 --device cpu     # without data, without a GPU

X and y are float32 and int64 on the device before the clock starts. The first fit of a case, which
may compile, is reported on its own; of the later ones the fastest counts. Violations (rounding
included) and relative gaps are the worst of all tasks of a fit, recomputed in float64 from all
scores.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gpu_linear
import numpy as np
import torch
from gpu_linear import Clock, patched
from kernel_machine import digits, svmlight_dense, table

import maxmargin as mm
from maxmargin.estimators import fitting

Data = tuple[Any, Any]


@dataclass(frozen=True)
class Case:
    """A data set and the parameters of the machine that is fitted to it."""

    load: Callable[[Path | None], Data]
    C: float
    gamma: float


@dataclass
class Row:
    """What one case took, and what is proved of it."""

    case: str
    first: float
    seconds: float
    violation: float = np.nan
    gap: float = np.nan
    coverage: str = ""
    steps: int = 0
    vectors: int = 0


def svmlight(name: str) -> Callable[[Path | None], Data]:
    """Return how a data set is read, as a dense array."""
    return lambda folder: svmlight_dense(folder, name)


def even(folder: Path | None) -> Data:
    """Return MNIST, odd digits against even ones."""
    X, y = digits(folder, "train")
    return X, np.asarray(y).astype(int) % 2


def covtype(n: int) -> Callable[[Path | None], Data]:
    """Return some rows of covtype, class 2 against the rest, columns scaled to [0, 1]."""

    def load(folder: Path | None) -> Data:
        X, y = svmlight_dense(folder, "covtype")
        X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
        rows = np.random.default_rng(0).permutation(len(y))[:n]
        return X[rows], (y[rows] == 2).astype(int)

    return load


CASES = {
    "table": Case(table, 10.0, 0.1),
    "usps": Case(svmlight("usps"), 10.0, 1 / 128),
    "letter": Case(svmlight("letter.scale"), 16.0, 1.0),
    "a9a": Case(svmlight("a9a"), 1.0, 1 / 123),
    "a9a-500": Case(svmlight("a9a"), 500.0, 1 / 123),
    "w8a": Case(svmlight("w8a"), 10.0, 1 / 300),
    "ijcnn1": Case(svmlight("ijcnn1"), 32.0, 2.0),
    "mnist": Case(lambda folder: digits(folder, "train"), 10.0, 1 / 50),
    "mnist-even": Case(even, 10.0, 1 / 50),
    "covtype-40000": Case(covtype(40_000), 10.0, 1.0),
    "covtype-100000": Case(covtype(100_000), 10.0, 1.0),
    "covtype-581012": Case(covtype(581_012), 10.0, 1.0),
}
LINEAR = {f"linear-{name}": name for name in gpu_linear.CASES}


def kernel_case(name: str, options: Any, device: Any) -> list[Row]:
    """Return what fits of a case took, and predictions of ten classes."""
    case = CASES[name]
    X, y = _on(*case.load(options.data), options.rows, device)
    model = mm.SVC(C=case.C, gamma=case.gamma, kernel="rbf", device="auto")
    row = timed(name, lambda: model.fit(X, y), options.fits, device)
    describe(row, model)
    if options.phases:
        print(phases(model, X, y, device), flush=True)
    rows = [row]
    if name == "mnist":
        new, _ = _on(*digits(options.data, "t10k"), None, device)
        rows.append(timed("mnist, predict", lambda: model.predict(new), options.fits, device))
    return rows


def linear_case(name: str, options: Any, device: Any) -> list[Row]:
    """Return what fits of a linear machine took."""
    model, X, y, seconds = gpu_linear.measure(LINEAR[name], options.data, device, options.rows)
    row = Row(name, seconds[0], min(seconds[1:]))
    describe(row, model)
    if options.phases:
        print(gpu_linear.phases(model, X, y, device), flush=True)
    return [row]


def timed(name: str, run: Callable[[], Any], n_runs: int, device: Any) -> Row:
    """Return the seconds of the first run, and of the fastest of those that follow."""
    clock, seconds = Clock(device), []
    for _ in range(1 + n_runs):
        start = clock.now()
        run()
        seconds.append(clock.now() - start)
    return Row(name, seconds[0], min(seconds[1:]))


def describe(row: Row, model: Any) -> None:
    """Write what the certificates of a model say."""
    worst = model.certificates_
    row.violation = max(
        getattr(each, "violation", 0.0) + getattr(each, "rounding", 0.0) for each in worst
    )
    row.gap = max(each.relative_gap for each in worst)
    row.coverage = "/".join(sorted({getattr(each, "coverage", "complete") for each in worst}))
    row.steps, row.vectors = int(np.sum(model.n_iter_)), len(model.support_)


def phases(model: Any, X: Any, y: Any, device: Any) -> Clock:
    """Return the seconds of the phases of one fit."""
    clock = Clock(device)
    shown = {
        "received": "receive", "placed": "place", "_solve": "solve", "_certified": "certify",
        "_publish": "publish",
    }  # fmt: skip
    names = {name: clock.timed(label, getattr(fitting, name)) for name, label in shown.items()}
    tasks = clock.timed("tasks", fitting.Method.tasks)
    with patched(fitting, names), patched(fitting.Method, {"tasks": tasks}):
        clock.timed("fit", model.fit)(X, y)
    return clock


def _on(X: Any, y: Any, rows: int | None, device: Any) -> Data:
    """Return data on the device, labels as whole numbers."""
    X = X.toarray() if hasattr(X, "toarray") else X
    codes = np.unique(np.asarray(y)[:rows], return_inverse=True)[1]
    X = torch.from_numpy(np.ascontiguousarray(X[:rows], dtype=np.float32))
    return X.to(device), torch.from_numpy(codes.astype(np.int64)).to(device)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="*", choices=[*CASES, *LINEAR])
    parser.add_argument("--fits", type=int, default=3, help="fits after the first one")
    parser.add_argument("--rows", type=int, help="of every data set, to try this program")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cpu":
        gpu_linear._let_the_cpu_be_a_card()
    else:
        print(torch.cuda.get_device_name(device), "torch", torch.__version__, flush=True)
    known = list(CASES) + list(LINEAR) if options.data else ["table", "linear-generated"]
    found: list[Row] = []
    for name in options.only or known:
        began = time.perf_counter()
        measure = kernel_case if name in CASES else linear_case
        for row in measure(name, options, device):
            found.append(row)
            print(
                f"{row.case:<18}{row.seconds:9.4f} s  first {row.first:6.2f}  violation "
                f"{row.violation:.1e}  gap {row.gap:.1e}  {row.coverage}  {row.steps} steps, "
                f"{row.vectors} vectors",
                flush=True,
            )
        print(f"    ({time.perf_counter() - began:.0f} s in all)", flush=True)
        if options.out:
            options.out.write_text(json.dumps([asdict(row) for row in found], indent=1))


if __name__ == "__main__":
    main()
