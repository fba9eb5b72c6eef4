"""Race the linear machine with an ℓ1 penalty against LIBLINEAR.

    python benchmarks/l1_machine.py [--data DIR] [--quick] [--out FILE] [--only CASE ...]

Without ``--data`` everything runs on generated data; DIR adds a9a, w8a, Reuters money-fx, RCV1 and
20 newsgroups. ``--quick`` takes a twentieth of the rows to see that all of it runs.

Both solve the same problem, min ‖w‖₁ + |b| + C Σ max(0, 1 − y g(x))², on one core, in turn, at
several tolerances; seconds are those of the processor, the least of some repetitions. One judge
computes P in float64, and how far it is above D, the best dual that any lap of ours has proved. A
lap of LIBLINEAR is compared with the fastest of ours whose P is no larger. skglm has no squared
hinge to minimise in the primal form, and Snap ML no ℓ1 penalty for it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import race
from kernel_machine import svmlight
from separating import text_like
from sklearn.svm import LinearSVC

import maxmargin as mm

COSTS = (0.1, 1.0)
OUR_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
THEIR_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)
# The gap that is called solved, and the passes after which LIBLINEAR has not got there.
GAP, PASSES = 1e-4, 1000
# Repetitions, and the seconds beyond which there are none.
REPEATS, LONG = 3, 2.0
# Rounding, in comparisons of P.
EQUAL = 1e-9
SEED = 0


@dataclass
class Lap:
    """One fit: its tolerance, seconds, P, the gap to the best dual, and features used."""

    contestant: str
    tol: float
    seconds: float
    primal: float
    n_used: int
    gap: float = np.inf
    ratio: float | None = None
    claim: float | None = None


@dataclass
class Table:
    """The laps on one problem; ``dual`` is the best that was proved."""

    case: str
    shape: tuple[int, int]
    C: float
    laps: list[Lap] = field(default_factory=list)
    dual: float = 0.0

    def solved(self, contestant: str) -> Lap | None:
        """Return the fastest lap of a contestant that has got to `GAP`, and of ours says so."""
        laps = [
            lap
            for lap in self.laps
            if lap.contestant == contestant and max(lap.gap, lap.claim or 0.0) <= GAP
        ]
        return min(laps, key=lambda lap: lap.seconds, default=None)


# Data --------------------------------------------------------------------------------------------


def tall(n: int = 200_000, d: int = 50) -> tuple[Any, Any]:
    """Return dense float32 rows; ten features decide, and neighbours are correlated."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, d))
    X[:, 1:] = 0.6 * X[:, :-1] + 0.8 * X[:, 1:]
    w = np.where(np.arange(d) % 5 == 0, rng.standard_normal(d), 0.0)
    return X.astype(np.float32), np.where(X @ w + rng.standard_normal(n) > 0.3, 1, -1)


def square(n: int = 2000, d: int = 2000) -> tuple[Any, Any]:
    """Return as many dense features as rows."""
    return tall(n, d)


def text() -> tuple[Any, Any]:
    """Return generated text of more words than messages."""
    return text_like(10_000, 30_000)


def cases(data: Path | None) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Return the cases by name."""
    found: dict[str, Callable[[], tuple[Any, Any]]] = {
        "dense 200,000 x 50": tall, "dense 2,000 x 2,000": square, "generated text": text,
    }  # fmt: skip
    if data is not None:
        for name in ("a9a", "w8a", "reuters_money-fx.trn", "rcv1_sample", "20news"):
            found[name] = lambda name=name: labelled(data, name)
    return found


def labelled(data: Path, name: str) -> tuple[Any, Any]:
    """Return a file of the folder; of several classes the first half against the others."""
    X, y = svmlight(data, name)
    classes = np.unique(y)
    return X, np.where(np.isin(y, classes[len(classes) // 2 :]), 1, -1)


# Laps --------------------------------------------------------------------------------------------


def ours(C: float, tol: float) -> Any:
    return mm.LinearSVC("l1", C=C, tol=tol, penalize_intercept=True, n_jobs=1)


def theirs(C: float, tol: float) -> Any:
    return LinearSVC("l1", dual=False, C=C, tol=tol, max_iter=PASSES, random_state=SEED)


def timed(model: Any, X: Any, y: Any) -> float:
    """Return the least processor seconds of some fits."""
    least = np.inf
    for _ in range(REPEATS):
        started = time.process_time()
        model.fit(X, y)
        least = min(least, time.process_time() - started)
        if least > LONG:
            break
    return least


def value(model: Any, X: Any, y: Any) -> float:
    """Return P in float64."""
    w, b = model.coef_[0], float(model.intercept_[0])
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return float(np.abs(w).sum() + abs(b) + model.C * (slack @ slack))


def laps(X: Any, y: Any, C: float) -> Iterator[tuple[Lap, float]]:
    """Yield laps of both, each with the dual that it proves."""
    for make, name, tolerances in (
        (ours, "maxmargin", OUR_TOLERANCES), (theirs, "LIBLINEAR", THEIR_TOLERANCES),
    ):  # fmt: skip
        for tol in tolerances:
            model = make(C, tol)
            seconds = timed(model, X, y)
            certificate = getattr(model, "certificate_", None)
            lap = Lap(name, tol, seconds, value(model, X, y), int(np.count_nonzero(model.coef_)))
            lap.claim = None if certificate is None else certificate.relative_gap
            yield lap, 0.0 if certificate is None else certificate.dual


def race_of(case: str, X: Any, y: Any, C: float) -> Table:
    """Return the laps on one problem, compared."""
    table = Table(case, X.shape, C)
    for lap, dual in laps(X, y, C):
        table.laps.append(lap)
        table.dual = max(table.dual, dual)
    for lap in table.laps:
        lap.gap = (lap.primal - table.dual) / lap.primal
        if lap.contestant == "LIBLINEAR":
            good = [
                other.seconds
                for other in table.laps
                if other.contestant == "maxmargin" and other.primal <= lap.primal * (1.0 + EQUAL)
            ]
            lap.ratio = lap.seconds / min(good) if good else None
    return table


# What a person reads -----------------------------------------------------------------------------


def show(table: Table) -> None:
    """Print one problem."""
    print(f"\n{table.case}, {table.shape[0]:,} × {table.shape[1]:,}, C = {table.C:g}")
    for lap in table.laps:
        times = f"{lap.ratio:6.2f}× ours at equal P" if lap.ratio is not None else ""
        claim = f"claims {lap.claim:.1e}" if lap.claim is not None else ""
        print(
            f"  {lap.contestant:10} tol {lap.tol:<7g} {lap.seconds:8.3f} s  P {lap.primal:<14.9g} "
            f"gap {lap.gap:8.1e}  {lap.n_used:6d} features  {times}{claim}"
        )
    first, second = table.solved("maxmargin"), table.solved("LIBLINEAR")
    us = f"{first.seconds:.3f} s" if first else "never"
    them = f"{second.seconds:.3f} s" if second else f"never in {PASSES} passes"
    print(f"  to a gap of {GAP:g}: maxmargin {us}, LIBLINEAR {them}")


def main() -> None:
    """Run the race."""
    arguments = command_line()
    warnings.simplefilter("ignore")
    tables = []
    for case, make in cases(arguments.data).items():
        if arguments.only and case not in arguments.only:
            continue
        X, y = make()
        if arguments.quick:
            X, y = X[::20], y[::20]
        for solver in ("newton", "coordinate-descent"):  # compiled before the clock
            ours(1.0, 1e-3).set_params(solver=solver, max_iter=5).fit(X[:2000], y[:2000])
        for C in COSTS:
            tables.append(race_of(case, X, y, C))
            show(tables[-1])
    ratios = [lap.ratio for table in tables for lap in table.laps if lap.ratio is not None]
    if ratios:
        middle = np.exp(np.mean(np.log(ratios)))
        spread = f"{min(ratios):.2f} to {max(ratios):.1f}"
        print(f"\nLIBLINEAR ÷ ours at equal P: {spread}, geometric mean {middle:.1f}")
    if arguments.out:
        record = {"machine": race.machine(), "tables": [asdict(table) for table in tables]}
        arguments.out.write_text(json.dumps(record, indent=1), encoding="utf-8")


def command_line() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*")
    return parser.parse_args()


if __name__ == "__main__":
    main()
