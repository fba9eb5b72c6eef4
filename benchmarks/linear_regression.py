"""Race linear support vector regression against LIBLINEAR.

    python benchmarks/linear_regression.py [--quick] [--out FILE] [--only CASE ...]

``--quick`` takes a twentieth of the rows to see that all of it runs.

Both solve the same problem, min ½‖w‖² + ½b² + C Σ max(0, |y − g(x)| − ε) or its squares, on one
core, in turn, at several tolerances; seconds are those of the processor, the least of some
repetitions. Each has the data in the form that it takes without a copy: LIBLINEAR in float64. One
judge computes P in float64, and how far it is above D, the best dual that any lap of ours has
proved: the fastest laps within `GAP` of it are compared. Squares are LIBLINEAR's primal Newton
method, which is the one that scikit-learn chooses for more rows than features.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import race
from l1_machine import timed
from separating import text_like
from sklearn.svm import LinearSVR

import maxmargin as mm

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")
WIDTHS = (0.0, 0.5)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)
# The gap that is called solved, and the passes after which LIBLINEAR has not got there.
GAP, PASSES = 1e-4, 1000
SEED = 0


@dataclass
class Lap:
    """One fit: its tolerance, seconds, P and the gap to the best dual; ours claim a gap, too."""

    contestant: str
    tol: float
    seconds: float
    primal: float
    claim: float = 0.0
    gap: float = np.inf


@dataclass
class Table:
    """The laps on one problem."""

    case: str
    shape: tuple[int, int]
    loss: str
    epsilon: float
    laps: list[Lap] = field(default_factory=list)

    def solved(self, contestant: str) -> Lap | None:
        """Return the fastest lap of a contestant that has got to `GAP`, and of ours says so."""
        laps = [
            lap
            for lap in self.laps
            if lap.contestant == contestant and max(lap.gap, lap.claim) <= GAP
        ]
        return min(laps, key=lambda lap: lap.seconds, default=None)


# Data --------------------------------------------------------------------------------------------


def dense(n: int = 200_000, d: int = 50) -> tuple[Any, Any]:
    """Return dense float32 rows, and targets with noise of heavy tails."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, d), dtype=np.float32)
    return X, X @ rng.standard_normal(d) + rng.standard_t(3, n)


def wide() -> tuple[Any, Any]:
    """Return more features, and some rows for each."""
    return dense(20_000, 500)


def text() -> tuple[Any, Any]:
    """Return generated text, and targets of which few words decide."""
    X = text_like(10_000, 30_000)[0]
    rng = np.random.default_rng(SEED)
    w = np.where(rng.random(X.shape[1]) < 0.01, 10.0 * rng.standard_normal(X.shape[1]), 0.0)
    return X, X @ w + 0.3 * rng.standard_normal(X.shape[0])


CASES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "dense 200,000 x 50": dense, "dense 20,000 x 500": wide, "generated text": text,
}  # fmt: skip


# Laps --------------------------------------------------------------------------------------------


def ours(loss: str, epsilon: float, tol: float) -> Any:
    return mm.LinearSVR(loss=loss, epsilon=epsilon, tol=tol, penalize_intercept=True, n_jobs=1)


def theirs(loss: str, epsilon: float, tol: float) -> Any:
    return LinearSVR(
        loss=loss, epsilon=epsilon, tol=tol, max_iter=PASSES, dual=loss == LOSSES[0],
        random_state=SEED,
    )  # fmt: skip


def value(model: Any, X: Any, y: Any) -> float:
    """Return P in float64."""
    w, b = model.coef_, float(model.intercept_[0])
    slack = np.maximum(0.0, np.abs(y - X @ w - b) - model.epsilon)
    loss = slack @ slack if model.loss == LOSSES[1] else slack.sum()
    return float(0.5 * (w @ w + b * b) + model.C * loss)


def race_of(case: str, X: Any, y: Any, loss: str, epsilon: float) -> Table:
    """Return the laps on one problem."""
    table, best = Table(case, X.shape, loss, epsilon), 0.0
    doubled = X.astype(np.float64)
    for tol in TOLERANCES:
        model = ours(loss, epsilon, tol)
        lap = Lap("maxmargin", tol, timed(model, X, y), value(model, doubled, y))
        lap.claim = model.certificate_.relative_gap
        best = max(best, model.certificate_.dual)
        table.laps.append(lap)
    for tol in TOLERANCES:
        model = theirs(loss, epsilon, tol)
        lap = Lap("LIBLINEAR", tol, timed(model, doubled, y), value(model, doubled, y))
        table.laps.append(lap)
        if int(model.n_iter_) >= PASSES:
            break
    for lap in table.laps:
        lap.gap = (lap.primal - best) / lap.primal
    return table


# What a person reads -----------------------------------------------------------------------------


def show(table: Table) -> float | None:
    """Print one problem; return how many times our seconds LIBLINEAR takes, at least."""
    n, d = table.shape
    print(f"\n{table.case}, {n:,} × {d:,}, {table.loss}, ε = {table.epsilon:g}")
    for lap in table.laps:
        claim = f"  claims {lap.claim:.1e}" if lap.claim else ""
        print(
            f"  {lap.contestant:10} tol {lap.tol:<7g} {lap.seconds:8.3f} s  P {lap.primal:<14.9g} "
            f"gap {lap.gap:8.1e}{claim}"
        )
    first, second = table.solved("maxmargin"), table.solved("LIBLINEAR")
    us = f"{first.seconds:.3f} s" if first else "never"
    longest = max(lap.seconds for lap in table.laps if lap.contestant == "LIBLINEAR")
    them = f"{second.seconds:.3f} s" if second else f"not in {longest:.1f} s, {PASSES} passes"
    ratio = (second.seconds if second else longest) / first.seconds if first else None
    times = f", {'' if second else 'more than '}{ratio:.1f}×" if ratio else ""
    print(f"  to a gap of {GAP:g}: maxmargin {us}, LIBLINEAR {them}{times}", flush=True)
    return ratio


def main() -> None:
    """Run the race."""
    arguments = command_line()
    warnings.simplefilter("ignore")
    tables, ratios = [], []
    for case, make in CASES.items():
        if arguments.only and case not in arguments.only:
            continue
        X, y = make()
        if arguments.quick:
            X, y = X[::20], y[::20]
        for loss in LOSSES:
            for solver in ("newton", "coordinate-descent"):  # compiled before the clock
                ours(loss, 0.1, 1e-3).set_params(solver=solver, max_iter=5).fit(X[:2000], y[:2000])
            for epsilon in WIDTHS:
                tables.append(race_of(case, X, y, loss, epsilon))
                ratios.append(show(tables[-1]))
    known = [ratio for ratio in ratios if ratio is not None]
    if known:
        middle = np.exp(np.mean(np.log(known)))
        print(
            f"\nLIBLINEAR ÷ ours: {min(known):.2f} to {max(known):.0f}, geometric mean {middle:.1f}"
        )
    if arguments.out:
        record = {"machine": race.machine(), "tables": [asdict(table) for table in tables]}
        arguments.out.write_text(json.dumps(record, indent=1), encoding="utf-8")


def command_line() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*")
    return parser.parse_args()


if __name__ == "__main__":
    main()
