"""Learning rates ρ(t) as functions of the number of the update, t = 1, 2, …"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Floats


class Schedule(Protocol):
    """A learning rate, of which the algorithms take many consecutive values at once."""

    def rates(self, first: int, count: int) -> Floats:
        """Return ρ(first), …, ρ(first + count − 1)."""


@dataclass(frozen=True)
class Constant:
    """Constant learning rate, ρ(t) = rate.

    On separable data the perceptron converges with any constant rate.

    Parameters
    ----------
    rate : float, default=1.0
        The rate; positive.

    See Also
    --------
    Harmonic : A rate that falls with the number of updates.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.Constant(0.5)(7)
    0.5
    """

    rate: float = 1.0

    def __call__(self, t: float) -> float:
        """Return ρ(t)."""
        return self.rate

    def rates(self, first: int, count: int) -> Floats:
        """Return ρ(first), …, ρ(first + count − 1).

        Parameters
        ----------
        first : int
            Number of the first update.
        count : int
            Number of rates.

        Returns
        -------
        ndarray of shape (count,)
            The rates.
        """
        return _positive([self.rate] * min(count, 1), self).repeat(count)


@dataclass(frozen=True)
class Harmonic:
    """Harmonic learning rate, ρ(t) = c/(t + offset).

    Σρ = ∞ and Σρ² < ∞, as stochastic approximation requires (Robbins, Monro, 1951).

    Parameters
    ----------
    c : float, default=1.0
        The numerator; positive.
    offset : float, default=0.0
        Added to the number of the update; greater than −1.

    See Also
    --------
    Constant : The same rate for every update.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.Harmonic(2.0, offset=3.0)(1)
    0.5
    """

    c: float = 1.0
    offset: float = 0.0

    def __call__(self, t: float) -> float:
        """Return ρ(t)."""
        return self.c / (t + self.offset)

    def rates(self, first: int, count: int) -> Floats:
        """Return ρ(first), …, ρ(first + count − 1).

        Parameters
        ----------
        first : int
            Number of the first update.
        count : int
            Number of rates.

        Returns
        -------
        ndarray of shape (count,)
            The rates.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return _positive(self.c / (np.arange(first, first + count) + self.offset), self)


@dataclass(frozen=True)
class Function:
    """Learning rate ρ(t) given as a Python callable, which must depend on t alone."""

    function: Callable[[int], float]

    def __call__(self, t: int) -> float:
        """Return ρ(t)."""
        return self.function(t)

    def rates(self, first: int, count: int) -> Floats:
        """Return ρ(first), …, ρ(first + count − 1), one call each."""
        return _positive([self.function(t) for t in range(first, first + count)], self)


def as_schedule(learning_rate: float | Schedule | Callable[[int], float]) -> Schedule:
    """Return a number, a schedule or a callable as a schedule."""
    if isinstance(learning_rate, (Constant, Harmonic, Function)):
        return learning_rate
    if callable(learning_rate):
        return Function(learning_rate)
    return Constant(learning_rate)  # type: ignore[arg-type]


def _positive(rates: ArrayLike, schedule: object) -> Floats:
    numbers = np.asarray(rates)
    if numbers.dtype.kind in "iuf":
        bad = ~((numbers > 0) & np.isfinite(numbers))
        if not bad.any():
            return numbers.astype(np.float64, copy=False)
        numbers = numbers[bad]
    raise ValueError(
        f"learning_rate={schedule!r} gives {numbers.ravel()[0]!r}: "
        "every rate ρ(t), t = 1, 2, …, must be a positive, finite number."
    )
