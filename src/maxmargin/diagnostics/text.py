"""Columns of numbers as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def near_one(value: float) -> str:
    """Return a margin or a slack without the rounding errors of numbers near 1."""
    return f"{round(float(value), 9):.6g}"


def if_known(value: float | None) -> str:
    """Return a number, or a dash for None."""
    return "–" if value is None else f"{value:.4g}"


def aligned(columns: Iterable[tuple[str, Iterable[str]]], left: Sequence[str]) -> list[str]:
    """Return lines of named columns two blanks apart, aligned right except those in ``left``."""
    padded = []
    for name, values in columns:
        cells = [name, *values]
        width = max(map(len, cells))
        padded.append([c.ljust(width) if name in left else c.rjust(width) for c in cells])
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]
