"""The lines of a CSV file: where rows begin, how many fields they have, which are blank."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from .encodings import first_bad_line
from .table import DataFileError, bounded_lines, cut


@dataclass
class CsvLines:
    """The text of a CSV file.

    Parameters
    ----------
    file : Path
    source : str
        The name of the file in errors.
    separator : str
        One character.
    header : bool
        Whether the first line that is not blank names the columns.
    """

    file: Path
    source: str
    separator: str
    header: bool

    def check_separator(self) -> None:
        """Raise where the separator is not one character."""
        mark = self.separator
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
            raise DataFileError(
                f"{self.source}: separator must be one ASCII character other than a quote, got "
                f"{mark!r}."
            )

    def check_header(self) -> None:
        """Raise where the file is not text, or names a column twice."""
        self.check_separator()
        if b"\0" in self._start or self._start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataFileError(
                f"{self.source}: the file must be text in UTF-8, or pass its encoding."
            )
        first = self.first if self.header else []
        if any("\ufffd" in name for name in first):
            raise first_bad_line(self.file, self.source) or DataFileError(
                f"{self.source}: line 1 is not UTF-8 text."
            )
        twice = sorted({name for name in first if first.count(name) > 1})
        if twice:
            raise DataFileError(f"{self.source}: line 1 names the column {cut(twice[0])} twice.")

    @cached_property
    def first(self) -> list[str]:
        """The fields of the first line that is not blank, without surrounding blanks."""
        begin, _ = next(((line, n) for line, n in self._rows() if n), (1, 0))
        with self.open_text() as lines:
            try:
                row = next(csv.reader(islice(lines, begin - 1, None), delimiter=self.separator))
            except StopIteration:
                return []
            except csv.Error:
                raise DataFileError(
                    f"{self.source}: line {begin} cannot be read: use the same line end on all "
                    f"lines, and names of columns below {csv.field_size_limit()} characters."
                ) from None
        return [name.strip() for name in row]

    def not_utf8(self) -> DataFileError | None:
        """Return the error that names the first line which is not UTF-8."""
        return first_bad_line(self.file, self.source)

    @cached_property
    def blank_rows(self) -> NDArray[np.intp] | DataFileError:
        """The rows that are blank lines; an error that names a line of another length."""
        width, first, blank = 0, 0, []
        try:
            for row, (line, fields) in enumerate(self._rows(), -self.header):
                if not fields:
                    blank.append(row)
                elif not width:
                    width, first = fields, line
                elif fields != width:
                    return DataFileError(
                        f"{self.source}: line {line} has {fields} fields, line {first} has {width}."
                    )
        except DataFileError as unclosed:
            return unclosed
        return np.array(blank, dtype=np.intp)

    def line_of(self, row: int) -> int:
        """Return the line on which a row begins: quoted line breaks move it."""
        place = row + self.header
        return next(islice(self._rows(), place, None), (place + 1, 0))[0]

    @property
    def line_end(self) -> str:
        """The last character of a line: LF, or CR alone, as on old Macs."""
        return "\r" if b"\r" in self._start and b"\n" not in self._start else "\n"

    def _rows(self) -> Iterator[tuple[int, int]]:
        """Yield the line on which a row begins and the number of its fields, 0 where it is blank.

        Blank lines above a header are not rows.
        """
        begin, fields, is_open, above = 1, 0, False, self.header
        with self.open_text() as lines:
            for number, line in enumerate(bounded_lines(lines, self.source), 1):
                begin = begin if is_open else number
                fields += not is_open
                bare, is_open = self._unquoted(line, is_open)
                fields += bare.count(self.separator)
                if is_open:
                    continue
                if fields == 1 and not line.strip():
                    fields = 0
                above = above and not fields
                if not above:
                    yield begin, fields
                fields = 0
        if is_open:
            raise DataFileError(f"{self.source}: line {begin}: a quote is not closed.")

    def _unquoted(self, line: str, is_open: bool) -> tuple[str, bool]:
        """Return a line without quoted text, and whether a quote is open at its end.

        Python's csv module fails on long fields and accepts an open quote at the end of the file.
        """
        if not is_open and '"' not in line:
            return line, False
        quoted, opening = self._quotes
        bare = quoted.sub(r"\1", f'"{line}' if is_open else line)
        opens = opening.search(bare)
        return (bare, False) if opens is None else (bare[: opens.end()], True)

    @cached_property
    def _quotes(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Patterns of a quoted field and of the quote that begins it."""
        opening = rf'(^|{re.escape(self.separator)})"'
        # Possessive: otherwise the first of two quotes that mean one would end the field.
        return re.compile(rf'{opening}(?:[^"]+|"")*+"'), re.compile(opening)

    @cached_property
    def _start(self) -> bytes:
        with self.file.open("rb") as file:
            return file.read(1 << 16)

    def open_text(self) -> TextIO:
        """Open the file as text."""
        return self.file.open(newline=self.line_end, encoding="utf-8-sig", errors="replace")
