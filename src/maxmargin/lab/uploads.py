"""Tables that are uploaded: their cells, their header, and which columns hold what."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .points import MOST_BYTES, MOST_CLASSES, MOST_LETTERS, MOST_POINTS, Points, checked

# Names of a column that holds classes.
OF_CLASSES = ("class", "classes", "label", "labels", "target", "species", "kind")


@dataclass(frozen=True)
class Table:
    """The cells of a file.

    Parameters
    ----------
    header : tuple of str
        The names of the columns, invented where the file has none.
    rows : tuple of tuple of str
    lines : tuple of int
        The line of the file on which each row ends.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def column(self, name: str) -> list[str]:
        """Return the cells of a column."""
        k = self.header.index(name)
        return [row[k] for row in self.rows]

    def share_of_numbers(self, name: str) -> float:
        """Return which share of the cells of a column are numbers."""
        return sum(map(_is_number, self.column(name))) / len(self.rows)

    def guessed(self) -> tuple[str, str, str]:
        """Return the columns that are most likely across, up and the classes.

        A column of classes has 2 to 4 values, or is called so; one of text comes first, then one
        called so, and then the last one. A table of two columns has none.
        """
        last = len(self.header) - 1
        if last == 1:
            return self.header[0], self.header[1], self.header[1]

        def rank(k: int) -> tuple[bool, bool, bool, int]:
            cells = self.column(self.header[k])
            named = self.header[k].lower() in OF_CLASSES
            few = 2 <= len(set(cells)) <= MOST_CLASSES
            return few or named, few and not any(map(_is_number, cells)), named, k

        target = max(range(last + 1), key=rank)
        if not rank(target)[0]:
            target = last
        free = [name for k, name in enumerate(self.header) if k != target]
        free.sort(key=lambda name: self.share_of_numbers(name) < 0.5)  # stable
        return free[0], free[1], self.header[target]


def read_upload(content: bytes, *, classes: bool = True) -> Table:
    """Return the cells of an uploaded CSV file; raise ValueError for what is none.

    Without ``classes`` two columns are enough.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(f"The file must have at most {MOST_BYTES} bytes, got {len(content)}.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("The file must be UTF-8 text.") from None
    if "\0" in text:
        raise ValueError("The file must be text, and holds bytes of 0.")
    if not text.strip():
        raise ValueError("The file is empty.")
    found = list(_cells(text))
    first = found[0][1]
    least, what = (3, "x, y and a class") if classes else (2, "x and y")
    if len(first) < least:
        raise ValueError(
            f"The file must have {least} columns or more ({what}), got {len(first)}; commas, "
            "semicolons and tabs separate columns."
        )
    if not _has_header([cells for _, cells in found]):
        found.insert(0, (0, tuple(f"column {k}" for k in range(1, len(first) + 1))))
    header = tuple(name[:MOST_LETTERS] for name in found[0][1])
    if len(set(header)) < len(header):
        raise ValueError("The first line names a column twice.")
    n = len(found) - 1
    if n < 2:
        raise ValueError(f"The file must have at least two rows of points, got {n}.")
    if n > MOST_POINTS:
        raise ValueError(f"The lab shows at most {MOST_POINTS} rows, got {n}.")
    lines, rows = zip(*found[1:], strict=True)
    table = Table(header, rows, lines)
    numbers = [name for name in header if table.share_of_numbers(name) >= 0.5]
    if len(numbers) < 2:
        raise ValueError(
            f"The file must have two columns of numbers, got {len(numbers)}"
            + (f": {numbers[0]!r}." if numbers else ".")
        )
    return table


def _cells(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the number of each line that is not blank, and its cells, which are equally many."""
    start = next(line for line in text.splitlines() if line.strip())
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=start.count))
    first: tuple[int, int] | None = None
    try:
        for row in reader:
            if not row:
                continue
            first = first or (reader.line_num, len(row))
            if len(row) != first[1]:
                raise ValueError(
                    f"Line {reader.line_num} has {len(row)} fields, line {first[0]} has {first[1]}."
                )
            yield reader.line_num, tuple(cell.strip() for cell in row)
    except csv.Error as error:
        raise ValueError(f"Line {reader.line_num}: {error}.") from None


def _has_header(rows: list[tuple[str, ...]]) -> bool:
    """Say whether the first row names columns: a number is no name of a column of numbers."""
    first, *others = rows
    numbers = [k for k in range(len(first)) if others and all(_is_number(row[k]) for row in others)]
    return not any(_is_number(first[k]) for k in numbers or range(len(first)))


def chosen_columns(table: Table, x: str, y: str, target: str | None = None) -> Points:
    """Return the points of two columns of numbers, and of one of classes where it is given."""
    chosen = (x, y) if target is None else (x, y, target)
    for name in chosen:
        if name not in table.header:
            raise ValueError(f"There is no column {name!r}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"Choose {'two' if target is None else 'three'} different columns.")
    X = np.column_stack([_numbers(table, x), _numbers(table, y)])
    if target is None:
        return checked(X, np.zeros(len(X)), axes=(x, y))
    labels = table.column(target)
    if "" in labels:
        line = table.lines[labels.index("")]
        raise ValueError(f"Line {line} has no class in column {target!r}.")
    names, codes = np.unique(labels, return_inverse=True)
    if not 2 <= names.size <= MOST_CLASSES:
        raise ValueError(f"Column {target!r} must hold 2 to 4 classes, got {names.size}.")
    return checked(X, codes, names, (x, y))


def _numbers(table: Table, name: str) -> list[float]:
    cells = table.column(name)
    for line, cell in zip(table.lines, cells, strict=True):
        if not _is_number(cell):
            hint = "; write a decimal point" if _is_number(cell.replace(",", ".")) else ""
            raise ValueError(f"Line {line}: {cell!r} in column {name!r} is not a number{hint}.")
    return list(map(float, cells))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("_", "no number"))  # 1_0 is a number in Python only
    except ValueError:
        return False
    return True
