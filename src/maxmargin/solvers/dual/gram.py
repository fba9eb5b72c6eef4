"""What solvers that keep vectors of length n need of an engine."""

from __future__ import annotations

from typing import Protocol

from ...arrays import Floats, Integers


class GramMatrix(Protocol):
    """K in float64."""

    def block(self, rows: Integers) -> Floats:
        """K[rows, rows]."""

    def dot(self, rows: Integers, v: Floats) -> Floats:
        """K[:, rows] v."""

    def diagonal(self) -> Floats:
        """K(x_i, x_i)."""
