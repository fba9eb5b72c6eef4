"""Columns of numbers as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..arrays import Floats


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


def near_zero(values: Floats, unit: float) -> list[str]:
    """Return numbers without the rounding errors of differences of numbers of this size."""
    digits = 7 - int(np.floor(np.log10(unit))) if unit > 0.0 else 7
    return [f"{round(float(value), digits) + 0.0:.6g}" for value in values]


def described_support(n_support: int, n_samples: int | None, n_bound: int | None) -> str:
    """Return how many support vectors there are, and how many of them are at their bound."""
    text = f"{n_support} support vectors"
    text += "" if n_samples is None else f" of {n_samples} samples"
    if n_bound is None:
        return f"{text} (pass X and y for more)"
    return f"{text}: {n_support - n_bound} free, {n_bound} at their bound"


def described_task(name: str, lines: Iterable[tuple[str, str]]) -> str:
    """Return a name, and below it what is known, line by line."""
    body = [f"  {what:<13}  {text}" for what, text in lines if text]
    return "\n".join([name, *body])
