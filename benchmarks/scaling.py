"""Race contestants over numbers of cores: seconds, speed-up, CPU time, ratio to ours.

`kernel_machine.py --cores`, `linear_machine.py --cores`, `kernel_regression.py` and `one_class.py`
are built on this module. Every contestant runs in a fresh process that is bound to so many cores,
of different physical cores first, with OMP_NUM_THREADS set to the same number. Results of earlier
runs (``--known``) are read instead of being measured again, so that a long comparison can be split
into several runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import race
from race import Outcome, Summary, Target

# Rows of the first fit of a process: enough for the code of large problems to be loaded.
WARM_UP = 6000
# Fits of which the shortest counts, and seconds beyond which a fit is not repeated.
REPEATS, LONG = 2, 10.0
# A peer is stopped at so many times our seconds on the same cores, but not before EARLIEST seconds.
PATIENCE, EARLIEST = 8.0, 20.0
# Seconds that must be left of the budget to begin another process.
LEAST_LEFT = 5.0


@dataclass
class Row:
    """One contestant on so many cores; ``beyond``: the seconds after which it was stopped.

    ``speed_up`` is against the contestant's own single core; ``ratio`` above 1: ours is faster on
    the same number of cores. ``user``: CPU seconds of the shortest fit, all threads together.
    """

    contestant: str
    cores: int
    seconds: float | None = None
    beyond: float | None = None
    user: float | None = None
    speed_up: float | None = None
    ratio: float | None = None
    relative_gap: float | None = None
    violation: float | None = None
    note: str = ""
    all_seconds: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Table:
    """The rows of one case."""

    case: str
    title: str = ""
    rows: list[Row] = field(default_factory=list)

    def row(self, contestant: str, cores: int) -> Row | None:
        """Return the row of a contestant on so many cores, if it ran."""
        same = (r for r in self.rows if (r.contestant, r.cores) == (contestant, cores))
        return next((row for row in same if row.seconds or row.beyond), None)


# A function of contestant, cores, limit in seconds, and whether the answer is judged in full. No
# outcome: stopped at the limit; None: this contestant cannot solve this problem.
Run = Callable[[str, int, float, bool], list[Outcome] | None]
# Makes the data of a case in a folder; returns a title and how to run a contestant.
Prepare = Callable[[str, Path], tuple[str, Run]]


@dataclass(frozen=True)
class Plan:
    """What is measured, in this order; the first contestant is ours."""

    cases: Sequence[str]
    counts: Sequence[int]
    contestants: Sequence[str]
    known: dict[str, Table]
    deadline: float
    patience: float = PATIENCE
    longest: float = inf  # seconds of a peer's fit

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()


# The options ---------------------------------------------------------------------------------


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a race over cores."""
    add = parser.add_argument
    add("--cores", type=_counts, metavar="N,N,...", help="race on so many cores, in this order")
    add("--known", type=Path, nargs="+", metavar="FILE", default=[],
        help="with --cores: results (--out) of earlier runs, not measured again")  # fmt: skip
    add("--budget", type=float, metavar="SECONDS", default=inf,
        help="with --cores: begin nothing after so many seconds, and stop fits then")  # fmt: skip


def _counts(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def plan(
    arguments: argparse.Namespace,
    cases: Sequence[str],
    contestants: Sequence[str],
    patience: float = PATIENCE,
    longest: float = inf,
) -> Plan:
    """Read a plan from the options."""
    known = read_known(arguments.known)
    deadline = time.monotonic() + arguments.budget
    return Plan(cases, arguments.cores, contestants, known, deadline, patience, longest)


def read_known(files: Iterable[Path]) -> dict[str, Table]:
    """Return what earlier runs measured, by case."""
    tables: dict[str, Table] = {}
    for file in files:
        for record in json.loads(file.read_text())["cases"]:
            if "case" not in record:  # the summary
                continue
            table = tables.setdefault(record["case"], Table(record["case"], record["title"]))
            for row in (Row(**fields) for fields in record["rows"]):
                if (row.seconds or row.beyond) and table.row(row.contestant, row.cores) is None:
                    table.rows.append(row)
    return tables


# The race ------------------------------------------------------------------------------------


def over_cores(plan: Plan, prepare: Prepare) -> Iterator[Table]:
    """Measure what is not known yet, case by case."""
    with tempfile.TemporaryDirectory() as scratch:
        for case in plan.cases:
            table = plan.known.get(case, Table(case))
            missing = [
                (cores, name)
                for cores in plan.counts
                for name in plan.contestants
                if table.row(name, cores) is None
            ]
            if missing and plan.seconds_left > LEAST_LEFT:
                table.title, run = prepare(case, Path(scratch))
                for cores, name in missing:
                    table.rows.append(_measured(plan, table, run, name, cores))
                    _tell(case, table.rows[-1])
            if table.rows:
                yield compared(table, plan.contestants[0])


def _measured(plan: Plan, table: Table, run: Run, name: str, cores: int) -> Row:
    left = plan.seconds_left
    if left < LEAST_LEFT:
        return Row(name, cores, note="not run: out of time")
    limit, ours = inf, table.row(plan.contestants[0], cores)
    if name != plan.contestants[0] and ours is not None and ours.seconds:
        limit = min(max(EARLIEST, plan.patience * ours.seconds), plan.longest)
    # The judge needs all cores to be quick: in full on the largest number only.
    judged = cores == max([*plan.counts, *(row.cores for row in table.rows)])
    try:
        outcomes = run(name, cores, min(limit, left), judged)
    except subprocess.CalledProcessError:  # its reason stands above, on stderr
        return Row(name, cores, note="[red]failed[/]")
    if outcomes is None:
        return Row(name, cores, note="not for this problem")
    if not outcomes:
        lost = limit < left  # else it might have come home, given more time
        return Row(name, cores, beyond=limit if lost else None, note="stopped")
    (outcome,) = outcomes
    shortest = int(np.argmin(outcome.seconds))
    facts = outcome.facts
    return Row(
        name, cores, outcome.best, user=outcome.user[shortest], all_seconds=outcome.seconds,
        relative_gap=facts.get("relative_gap"), violation=facts.get("violation"),
        note="judged" if judged else "", facts=facts,
    )  # fmt: skip


def _tell(case: str, row: Row) -> None:
    """Print a row as soon as it is known: the run may be stopped before the table is complete."""
    seconds = "–" if row.seconds is None else f"{row.seconds:.3f} s, CPU {row.user:.2f} s"
    print(f"{case}, {row.contestant}, cores={row.cores}: {seconds} {row.note}", flush=True)


def compared(table: Table, ours: str) -> Table:
    """Fill in speed-ups and ratios; sort by contestant and cores."""
    names = list(dict.fromkeys(row.contestant for row in table.rows))
    names.sort(key=lambda name: name != ours)
    table.rows = [row for row in table.rows if row.seconds or row.beyond or row.note]
    table.rows.sort(key=lambda row: (names.index(row.contestant), row.cores))
    for row in table.rows:
        alone, mine = table.row(row.contestant, 1), table.row(ours, row.cores)
        if row.seconds and alone is not None and alone.seconds:
            row.speed_up = alone.seconds / row.seconds
        seconds = row.seconds or row.beyond
        if row.contestant != ours and seconds and mine is not None and mine.seconds:
            row.ratio = seconds / mine.seconds
    return table


# What a person reads -------------------------------------------------------------------------


def show(table: Table | Summary) -> None:
    """Print one case, or the summary."""
    if isinstance(table, Summary):
        return race.show_summary(table)
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=table.title, title_justify="left", title_style="bold")
    grid.add_column("contestant", no_wrap=True)
    for heading in ("cores", "fit", "speed-up", "CPU", "÷ ours", "relative gap", "worst KKT"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("note", overflow="fold")
    for row in table.rows:
        more = "> " if row.beyond else ""
        grid.add_row(
            row.contestant, str(row.cores), more + _text(row.seconds or row.beyond, ".3f", " s"),
            _text(row.speed_up, ".2f", "×"), _text(row.user, ".2f", " s"),
            more + _text(row.ratio, ".2f", "×"), _text(row.relative_gap, ".1e"),
            _text(row.violation, ".1e"), row.note,
        )  # fmt: skip
    Console(width=max(Console().width, 110)).print(grid)
    return None


def _text(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"


# Targets -------------------------------------------------------------------------------------


def against(
    tables: Iterable[Table], cases: Sequence[str], cores: int, peer: str, least: float, aim: float
) -> Target:
    """The geometric mean of a peer's seconds over ours on so many cores, and the worst case."""
    rows = ((table.case, table.row(peer, cores)) for table in tables if table.case in cases)
    ratios = {case: row.ratio for case, row in rows if row is not None and row.ratio}
    what = f"{cores} cores, against {peer}, geometric mean"
    slower = [f"{case} {ratio:.2f}×" for case, ratio in ratios.items() if ratio < 1.0]
    goal = f"≥ {least:g}×, aim {aim:g}×, no case below 1×"
    target = _mean(what, ratios, len(cases), least, aim, goal)
    if slower:
        target.value += f"; below 1×: {', '.join(slower)}"
        target.reached = False
    return target


def speed_up(
    tables: Iterable[Table], cases: Sequence[str], ours: str, cores: int, least: float,
    aim: float | None, longest: int,
) -> Target:  # fmt: skip
    """The geometric mean of our speed-ups, of the cases that take longest on one core."""
    both = [
        (table.case, alone.seconds, all_cores.speed_up)
        for table in tables
        if table.case in cases
        if (alone := table.row(ours, 1)) and (all_cores := table.row(ours, cores))
        if alone.seconds and all_cores.speed_up
    ]
    both.sort(key=lambda entry: entry[1], reverse=True)
    ratios = {case: ratio for case, _, ratio in both[:longest]}
    what = f"{cores} cores against our own 1 core, the {longest} longest, geometric mean"
    # Which cases take longest is known when all are.
    n_expected = longest if len(both) == len(cases) else len(cases)
    goal = f"≥ {least:g}×" + ("" if aim is None else f", aim {aim:g}×")
    return _mean(what, ratios, n_expected, least, aim, goal)


def _mean(
    what: str, ratios: dict[str, float], n_expected: int, least: float, aim: float | None, goal: str
) -> Target:
    """The geometric mean; not judged before all cases are measured."""
    if not ratios:
        return Target(what, "not measured", goal=goal)
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    each = ", ".join(f"{case} {ratio:.2f}" for case, ratio in ratios.items())
    if len(ratios) < n_expected:
        value = f"{mean:.2f}× over {len(ratios)} of {n_expected} cases ({each})"
        return Target(what, value, goal=goal)
    value = f"{mean:.2f}× ({each})"
    if aim is not None:
        value += f"; aim {'reached' if mean >= aim else 'not reached'}"
    return Target(what, value, mean >= least, goal)


def exact(tables: Iterable[Table], ours: str, name: str, most: float) -> Target:
    """The largest gap or violation of our answers, on any number of cores."""
    what = f"worst {name.replace('_', ' ')} of our answers"
    values = {
        f"{table.case}, cores={row.cores}": value
        for table in tables
        for row in table.rows
        if row.contestant == ours and (value := getattr(row, name)) is not None
    }
    if not values:
        return Target(what, "not measured", goal=f"≤ {most:g}")
    worst = max(values, key=lambda where: values[where])
    return Target(what, f"{values[worst]:.1e} ({worst})", values[worst] <= most, f"≤ {most:g}")


# The picture ---------------------------------------------------------------------------------

# Okabe and Ito, for colour-blind readers.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#777777")


def draw(tables: Sequence[Table], ours: str, path: Path) -> None:
    """Draw speed over cores, as a multiple of ours on one core: a panel per case."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    tables = [table for table in tables if table.row(ours, 1)]
    columns = min(3, len(tables))
    rows = -(-len(tables) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 0.9 + 2.6 * rows), layout="constrained",
        squeeze=False, sharex=True, sharey=True,
    )  # fmt: skip
    for axes in panels.ravel()[len(tables) :]:
        axes.set_visible(False)
    for axes, table in zip(panels.ravel(), tables, strict=False):
        _panel(axes, table, ours)
    figure.supxlabel("cores", fontsize=9)
    figure.supylabel("speed (1: ours on one core)", fontsize=9)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def _panel(axes: Any, table: Table, ours: str) -> None:
    unit = table.row(ours, 1)
    counts = sorted({row.cores for row in table.rows})
    axes.plot(counts, counts, color="#BBBBBB", linewidth=1, linestyle="--", label="n times")
    contestants = dict.fromkeys(row.contestant for row in table.rows)
    for name, colour in zip(contestants, COLOURS, strict=False):
        rows = [row for row in table.rows if row.contestant == name and row.seconds]
        axes.plot(
            [row.cores for row in rows], [unit.seconds / row.seconds for row in rows],
            marker="o", markersize=4, color=colour, label=name,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title(f"{table.case} ({unit.seconds:.2g} s)", loc="left", fontsize=9)
    axes.grid(color="#E5E5E5")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
