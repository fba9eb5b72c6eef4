"""The candidates of a search."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from ..arrays import Floats


@dataclass(frozen=True)
class Grid:
    """The candidates of a search: every cost with every kernel.

    Parameters
    ----------
    costs : ndarray
    name : str
        The parameter that names a kernel: "gamma", or "kernel"; "" where there is none.
    kernels : list
        Its values.
    """

    costs: Floats
    name: str
    kernels: list[Any]

    def candidates(self) -> list[dict[str, Any]]:
        """Return the parameters of every candidate, in the order of scikit-learn's searches."""
        if not self.name:
            return [{"C": cost} for cost in self.costs.tolist()]
        pairs = product(self.costs.tolist(), self.kernels)
        return [{"C": cost, self.name: kernel} for cost, kernel in pairs]

    def place(self, cost: int, kernel: int) -> int:
        """Return the candidate of a cost and a kernel."""
        return cost * len(self.kernels) + kernel

    def from_simple(self) -> list[int]:
        """Return the candidates from the simplest on: a small cost, and then a small γ."""

        def width(kernel: int) -> float:
            gamma = self.kernels[kernel]
            return float(gamma) if isinstance(gamma, (int, float)) else 0.0

        places = product(range(self.costs.size), range(len(self.kernels)))
        order = sorted(places, key=lambda pair: (self.costs[pair[0]], width(pair[1]), pair))
        return [self.place(*pair) for pair in order]
