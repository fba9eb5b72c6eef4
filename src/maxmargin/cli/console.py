"""Output of the commands: tables, JSON, and progress on a terminal."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import click

# The key of "quiet" or "verbose" in the context of a command.
LEVEL = "maxmargin.level"
# Columns of what is not a terminal.
MOST_COLUMNS = 1000


def plain(value: Any) -> Any:
    """Return a value of JSON: NumPy numbers as Python numbers, non-finite numbers as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return value.value if isinstance(value, Enum) else str(value)


def print_json(record: Any) -> None:
    """Print a JSON record on one line."""
    click.echo(json.dumps(plain(record), ensure_ascii=False, allow_nan=False))


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line; those without a value are left out."""
    from rich.text import Text

    known = {name: str(v) for name, v in facts.items() if v is not None and v != ""}
    width = max(map(len, known), default=0)
    if title:
        _print(Text(title, style="bold underline"))
    for name, value in known.items():
        _print(Text.assemble((name.ljust(width), "bold"), "  ", value))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    title: str | None = None,
    caption: str | None = None,
    left: Sequence[str] = (),
    colours: Mapping[str, str] | None = None,
) -> None:
    """Print rows under headings, numbers aligned right; some texts may have colours."""
    from rich.measure import Measurement
    from rich.text import Text

    console = _console()
    lines = [[str(cell) for cell in row] for row in rows]
    for gap in (None, 2, 1):
        table = _table(columns, lines, left, colours or {}, gap)
        needed = Measurement.get(console, console.options.update(width=MOST_COLUMNS), table)
        # Lines between the columns, or, on a narrow terminal, spaces and wrapped texts.
        if needed.maximum <= console.width:
            break
    if title:
        _print(Text(title, style="bold"))
    _print(table)
    if caption:
        _print(Text(caption, style="italic"))


def _table(
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    left: Sequence[str],
    colours: Mapping[str, str],
    gap: int | None,
) -> Any:
    """Return a table with lines, or with so many spaces between its columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    if gap is not None:
        table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for k, column in enumerate(columns):
        is_text = column in left
        side = "left" if k == 0 or is_text else "right"
        # Names and numbers are whole on a narrow terminal: headings and other texts are wrapped.
        words = [word for line in lines for word in (line[k].split() if is_text else [line[k]])]
        width = max(map(len, [*words, *column.split()]), default=0)
        table.add_column(
            Text(column),
            justify=side,  # type: ignore[arg-type]
            width=None if gap is None else width,
        )
    for line in lines:
        # Text, not markup: a label such as [/bold] is a label.
        table.add_row(*[Text(cell, style=colours.get(cell, "")) for cell in line])
    return table


def _print(thing: Any) -> None:
    _console().print(thing)


def _console() -> Any:
    """Return the terminal, or a wide one for a file or a pipe, which have no width."""
    from rich.console import Console

    console = Console(file=sys.stdout)
    return console if console.is_terminal else Console(file=sys.stdout, width=MOST_COLUMNS)


def _level() -> str | None:
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(LEVEL)


def is_quiet() -> bool:
    """Whether nothing is printed but results and errors."""
    return _level() == "quiet"


def is_verbose() -> bool:
    """Whether more is printed than usual."""
    return _level() == "verbose"


def note(message: str) -> None:
    """Print a message on standard error, unless the command is quiet."""
    if not is_quiet():
        click.echo(message, err=True)


@contextmanager
def progress(text: str, total: int | None = None) -> Iterator[Progress]:
    """Show a progress bar, on a terminal only, unless the command is quiet."""
    if not sys.stderr.isatty() or is_quiet():
        yield Progress(None, None)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns: list[ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
    ]
    if total is not None:
        columns += [TimeRemainingColumn(), TextColumn("left")]
    # The time left is that of all steps so far, however long they take.
    screen = Console(stderr=True)
    with Bar(*columns, console=screen, transient=True, speed_estimate_period=1e9) as bar:
        yield Progress(bar, bar.add_task(text, total=total, state=""))


class Progress:
    """A progress bar, or nothing where standard error is not a terminal."""

    def __init__(self, bar: Any, task: object) -> None:
        self.bar, self.task = bar, task

    def advance(self, state: str = "", steps: float = 1) -> None:
        """Advance by some steps, and show the state."""
        if self.bar is not None:
            self.bar.update(self.task, advance=steps, state=state)

    def callback(self, *, has_classes: bool = True) -> Callable[[Any], None] | None:
        """Return the callback of a fit that shows its steps; None without a bar."""
        if self.bar is None:
            return None

        def show(step: Any) -> None:
            state = f"{step.unit} {step.iteration}, violation {step.violation:.1e}"
            if has_classes:
                state += f", {step.errors} {'errors' if step.exact else 'mistakes met'}"
            self.bar.update(self.task, state=state)

        return show


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Yield a list that holds the distinct warnings after the block."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for warning in caught:
        shown = issubclass(warning.category, (UserWarning, RuntimeWarning))
        if shown and str(warning.message) not in messages:
            messages.append(str(warning.message))


def percent(share: float | None) -> str:
    """Return a fraction in percent, a dash for None or NaN."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.2f} %"


def number(value: float | None) -> str:
    """Return a number with four digits, a dash for None or NaN."""
    if value is None or math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else f"{value:.4g}"


def duration(value: float) -> str:
    """Return a time in words, as coarse as an estimate is.

    >>> duration(0.4), duration(95), duration(5400), duration(500_000)
    ('1 s', '95 s', '1.5 hours', '5.8 days')
    """
    for size, name in ((172_800, "days"), (5400, "hours"), (120, "minutes")):
        if value >= size:
            unit = {"days": 86_400, "hours": 3600, "minutes": 60}[name]
            return f"{value / unit:.2g} {name}"
    return f"{max(value, 1.0):.0f} s"


def seconds(value: float) -> str:
    """Return a time in milliseconds or seconds."""
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"
