"""Numbers, vectors and planes as text, with few digits and proper signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..arrays import Floats
from ..progress import counted

# Of numbers on the page; the table has more of them.
DIGITS = 3
# Sizes below this are rounding errors of numbers near 1.
ROUNDING = 1e-12
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def number(value: float, digits: int = DIGITS) -> str:
    """Return a number with a few digits.

    >>> number(-1 / 3), number(1234567.0), number(1e-17), number(float("inf"))
    ('−0.333', '1,230,000', '0', '∞')
    """
    if not np.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "unknown"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) <= ROUNDING:
        return "0"
    small = abs(rounded) < 1e-4
    large = abs(rounded) >= 10.0**digits
    text = (
        f"{rounded:.{digits}g}" if small or not large or abs(rounded) >= 1e9 else f"{rounded:,.0f}"
    )
    return text.replace("-", "−")


def in_brackets(value: float) -> str:
    """Return a factor: a number, in brackets where it is negative.

    >>> in_brackets(2.0), in_brackets(-1.0)
    ('2', '(−1)')
    """
    text = number(value)
    return f"({text})" if text.startswith("−") else text


def vector(values: Iterable[float]) -> str:
    """Return a vector.

    >>> vector([2.0, -1.0])
    '(2, −1)'
    """
    return f"({', '.join(number(float(value)) for value in values)})"


def plus(value: float) -> str:
    """Return what is added, with its sign.

    >>> plus(0.2), plus(-1.0)
    ('+ 0.2', '− 1')
    """
    text = number(value)
    return f"− {text[1:]}" if text.startswith("−") else f"+ {text}"


def affine(w: Sequence[float] | Floats, b: float, axes: Sequence[str]) -> str:
    """Return w·x + b.

    >>> affine([-1 / 3, 1 / 5], 2 / 15, ["x₁", "x₂"])
    '−0.333 x₁ + 0.2 x₂ + 0.133'
    """
    first, *others = w
    terms = [f"{number(first)} {axes[0]}"]
    terms += [f"{plus(float(v))} {axis}" for v, axis in zip(others, axes[1:], strict=True)]
    return " ".join([*terms, plus(b)])


def numbered(letter: str, k: int) -> str:
    """Return a letter with a number below.

    >>> numbered("x", 12)
    'x₁₂'
    """
    return letter + str(k).translate(SUBSCRIPTS)


def points_are(n: int) -> str:
    """Return a number of points with the verb that follows.

    >>> points_are(1), points_are(3)
    ('1 point is', '3 points are')
    """
    return f"{counted(n, 'point')} {'is' if n == 1 else 'are'}"
