"""Whether the first line of a table names its columns, or is a row."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice

from .column_types import NumberStyle
from .csv_lines import CsvLines
from .table import bounded_lines, listed

# Whole numbers that count columns from 0 or 1, or name years.
YEARS = range(1900, 2101)


def has_header(
    lines: CsvLines, style: NumberStyle, wanted: Sequence[str] = ()
) -> tuple[bool, str | None]:
    """Return whether the first line names the columns, and a note where this may be wrong.

    Names are text. A line with numbers in it is a row, unless it has a column that is ``wanted``,
    text above a number, or numbers that count columns or years.
    """
    top = _top(lines)
    if not top:
        return True, None
    first, second = top[0], top[1] if len(top) > 1 else []
    if any(name in first and style.number(name) is None for name in wanted):
        return True, None
    numbers = [field for field in first if style.number(field) is not None]
    if not numbers or _has_text_above_numbers(first, second, style):
        return True, None
    if _counts(numbers):
        return True, (
            f"the first line, {listed(first, 6)}, is taken for the names of the columns: pass "
            "--header no if it is a row."
        )
    return False, (
        f"the first line, {listed(first, 6)}, has numbers where names should be: all lines are "
        "rows, and the columns are called column_0, column_1, …; pass --header yes if it names "
        "the columns."
    )


def _top(lines: CsvLines) -> list[list[str]]:
    """Return the fields of the first two lines that are not blank, without surrounding blanks."""
    found = []
    with lines.open_text() as text:
        try:
            rows = csv.reader(bounded_lines(text, lines.source), delimiter=lines.separator)
            for row in islice(rows, 1000):
                if any(field.strip() for field in row):
                    found.append([field.strip() for field in row])
                if len(found) == 2:
                    break
        except csv.Error:  # which the reader of the file describes
            pass
    return found


def _has_text_above_numbers(first: list[str], second: list[str], style: NumberStyle) -> bool:
    pairs = zip(first, second, strict=False)
    return any(
        above not in style.marks and style.number(above) is None and style.number(below) is not None
        for above, below in pairs
    )


def _counts(numbers: list[str]) -> bool:
    """Say whether numbers count by one, from 0, 1 or a year."""
    if len(numbers) < 2 or not all(number.isdecimal() for number in numbers):
        return False
    values = [int(number) for number in numbers]
    begin = values[0]
    return values == list(range(begin, begin + len(values))) and (begin in (0, 1, *YEARS))
