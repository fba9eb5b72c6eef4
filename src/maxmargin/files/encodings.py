"""Text that is not UTF-8: which encoding it has, and a copy of it in UTF-8."""

from __future__ import annotations

import codecs
import re
import shutil
from pathlib import Path

from .table import DataFileError, bounded_lines

CHUNK = 1 << 20
# Byte order marks; those of UTF-32 begin like those of UTF-16.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Names for people.
CALLED = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "utf-16": "UTF-16", "utf-32": "UTF-32",
          "latin-1": "Latin-1", "cp1252": "Windows-1252 (Latin-1 with € and “ ”)"}  # fmt: skip
# Control characters, which text does not have.
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def known_encoding(name: str) -> str:
    """Return the name of an encoding of text; raise where Python has none of this name."""
    try:
        found = codecs.lookup(name)
        "a,1\n".encode(found.name)
    except (LookupError, TypeError, ValueError):
        raise DataFileError(
            f"encoding must be one that Python knows, such as utf-8, utf-16, latin-1 or cp1250; "
            f"got {name!r}."
        ) from None
    return found.name


def guessed_encoding(file: Path, source: str, fallback: str | None = None) -> str | None:
    """Return the encoding of text that is not UTF-8, None for UTF-8.

    Text without a byte order mark is UTF-16 where every other byte of it is 0. Other text that is
    not UTF-8 is taken for ``fallback``, or for Latin-1 or its extension by Windows, unless most of
    it is UTF-8, with errors.
    """
    with file.open("rb") as stream:
        start = stream.read(1 << 16)
    marked = next((name for mark, name in MARKS.items() if start.startswith(mark)), None)
    if marked is not None:
        return None if marked == "utf-8-sig" else marked
    if b"\0" in start:
        return _wide(start, source)
    if _is_utf8(file):
        return None
    if fallback is not None:
        return fallback
    wrong, right = _counted(file)
    # What is UTF-8 beyond ASCII is hardly anything else: then some bytes are damaged.
    if right > wrong or not wrong:
        return None
    return next((name for name in ("latin-1", "cp1252") if _is_text(file, name)), None)


def _wide(start: bytes, source: str) -> str:
    """Return which UTF-16 the beginning of a file is; raise for what is not text."""
    even, odd = start[0::2], start[1::2]
    for name, high in (("utf-16-le", odd), ("utf-16-be", even)):
        if high.count(0) > 0.5 * len(high) and not (even if high is odd else odd).count(0):
            return name
    raise DataFileError(f"{source}: the file must be text in UTF-8, or pass its encoding.")


def _is_utf8(file: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                if decoder.getstate()[0] or not chunk.isascii():
                    decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _counted(file: Path) -> tuple[int, int]:
    """Return how many pieces are not UTF-8, and how many characters beyond ASCII are."""
    wrong = right = 0
    with file.open(encoding="utf-8", errors="replace", newline="") as stream:
        while text := stream.read(CHUNK):
            bad = text.count("\ufffd")
            wrong += bad
            right += len(text) - len(text.encode("ascii", "ignore")) - bad
    return wrong, right


def _is_text(file: Path, encoding: str) -> bool:
    """Say whether a file is text in an encoding, without control characters."""
    try:
        with file.open(encoding=encoding, newline="") as stream:
            while text := stream.read(CHUNK):
                if CONTROLS.search(text):
                    return False
    except UnicodeDecodeError:
        return False
    return True


def write_utf8(file: Path, encoding: str, source: str, out: Path) -> None:
    """Write a copy of a text in UTF-8; raise where it is not in its encoding."""
    try:
        with (
            file.open(encoding=encoding, newline="") as text,
            out.open("w", encoding="utf-8", newline="") as copy,
        ):
            shutil.copyfileobj(text, copy, CHUNK)
    except (UnicodeError, ValueError) as error:
        raise DataFileError(
            f"{source}: the file is not text in {encoding}: {str(error)[:120]}"
        ) from None


def first_bad_line(file: Path, source: str) -> DataFileError | None:
    """Return the error that names the first line which is not UTF-8."""
    with file.open("rb") as lines:
        for number, line in enumerate(bounded_lines(lines, source), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return DataFileError(
                    f"{source}: line {number} is not UTF-8 text: pass the encoding of the file, "
                    "such as latin-1."
                )
    return None
