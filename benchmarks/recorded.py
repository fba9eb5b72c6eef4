"""Draw results of the benchmarks that are on record in ``recorded.json``.

    python benchmarks/recorded.py FOLDER      # one PNG per benchmark

The figures are those of the tables in README.md and benchmarks/README.md, with program, machine and
date; nothing is measured. The page on benchmarks of the documentation is made of these plots.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

RECORD = Path(__file__).with_name("recorded.json")
COLORS = ("#0072b2", "#e69f00", "#009e73")
MARKERS = ("o", "s", "^")


def load() -> dict[str, dict[str, Any]]:
    """Return the results by the name of their benchmark."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def draw(result: dict[str, Any]) -> Figure:
    """Draw one line per case, and a point on it for each contestant."""
    rows, series = result["rows"], result["series"]
    figure = Figure(figsize=(8.0, 1.4 + 0.36 * len(rows)), layout="constrained")
    ax = figure.subplots()
    places = np.arange(len(rows))
    values = np.array(list(rows.values()), dtype=float)
    ax.hlines(places, values.min(axis=1), values.max(axis=1), color="0.75", lw=2, zorder=1)
    for column, name in enumerate(series):
        ax.plot(values[:, column], places, MARKERS[column], color=COLORS[column], ms=7, label=name)
    ax.set(xscale="log", xlabel=result["unit"], title=result["title"])
    ax.set_yticks(places, list(rows))
    ax.invert_yaxis()
    ax.grid(axis="x", color="0.9", zorder=0)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    ax.xaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    ax.margins(y=0.5 / len(rows))
    if len(series) > 1:
        figure.legend(loc="outside lower center", ncols=len(series), frameon=False)
    return figure


def origin(result: dict[str, Any]) -> str:
    """Say what was measured by which program, where and when, in Markdown."""
    return f"`python {result['program']}`, {result['machine']}, {result['date']}. {result['notes']}"


def main() -> None:
    """Write all plots into a folder."""
    folder = Path(sys.argv[1])
    for name, result in load().items():
        draw(result).savefig(folder / f"{name}.png", dpi=150)


if __name__ == "__main__":
    main()
