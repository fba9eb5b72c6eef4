"""Models and the values of their parameters among which a search chooses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats
from .results import Parameters

# Candidates of a fine grid on an axis, in steps of the coarse grid from its best candidate, and
# those of the axes after the second.
FINE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 3.0
FEWER = np.array([-1.0, 0.0, 1.0]) / 3.0


@dataclass(frozen=True)
class Family:
    """A model, and the values of its parameters among which to choose.

    Parameters
    ----------
    name : str
        What it is called.
    model : estimator
        With all other parameters.
    axes : dict of str to list
        The values of each parameter, ascending. The first parameter is C or ν.
    refined : tuple of str
        The parameters that have a fine grid as well.
    """

    name: str
    model: Any
    axes: Mapping[str, list[Any]]
    refined: tuple[str, ...] = ()

    def candidates(self) -> list[Parameters]:
        """Return the parameters of every candidate, the last parameter varying fastest."""
        return [dict(zip(self.axes, each, strict=True)) for each in product(*self.axes.values())]

    def around(self, best: Parameters) -> Family | None:
        """Return the fine grid around a candidate; None where nothing is to be refined."""
        axes, is_finer = dict(self.axes), False
        for k, (name, values) in enumerate(self.axes.items()):
            if name in self.refined and len(values) > 1:
                steps = np.diff(np.log(np.asarray(values, dtype=float)))
                places = FINE if k < 2 else FEWER
                axes[name] = rounded(best[name] * np.exp(places * steps.mean()))
                is_finer = True
            elif name in self.refined:
                axes[name] = [best[name]]
        if "nu" in axes:
            axes["nu"] = [nu for nu in axes["nu"] if nu <= 1.0]
        return replace(self, axes=axes) if is_finer else None

    def simplicity(self, candidate: Parameters) -> tuple[float, ...]:
        """Return a key by which the simplest candidate comes first.

        That is the one of the least C or largest ν, then of the least γ, then of the fewest support
        vectors: of the largest ε, or least ν beside C. Texts, such as ``gamma="scale"``, come
        before numbers.
        """
        falling = {"epsilon"} if "C" in candidate else {"epsilon", "nu"}
        return tuple(
            0.0 if isinstance(value, str) else float(-value if name in falling else value)
            for name, value in candidate.items()
        )


def rounded(values: Floats) -> list[float]:
    """Return values with six digits, which can be read and typed.

    >>> rounded(np.array([2.0**-5, 2.0**0.3]))
    [0.03125, 1.23114]
    """
    return [float(f"{value:.6g}") for value in values]


class Block(NamedTuple):
    """Candidates of all these costs with all these kernels, and the same other parameters.

    Parameters
    ----------
    costs, gammas : list
        None stands for the one γ of a family without that axis.
    others : dict
    places : list of int
        Where they are among all candidates, costs varying slowest.
    """

    costs: list[Any]
    gammas: list[Any]
    others: Parameters
    places: list[int]


def blocks_of(candidates: Sequence[Parameters], wanted: Sequence[int]) -> Iterator[Block]:
    """Yield the wanted candidates as blocks, as few as there can be without further ones."""
    found: dict[tuple[Any, ...], dict[Any, dict[Any, int]]] = {}
    for place in wanted:
        others = dict(candidates[place])
        cost, gamma = others.pop("C"), others.pop("gamma", None)
        kernels = found.setdefault(tuple(others.items()), {})
        kernels.setdefault(gamma, {})[cost] = place
    for shared, kernels in found.items():
        by_costs: dict[tuple[Any, ...], list[Any]] = {}
        for gamma, by_cost in kernels.items():
            by_costs.setdefault(tuple(by_cost), []).append(gamma)
        for costs, gammas in by_costs.items():
            places = [kernels[gamma][cost] for cost in costs for gamma in gammas]
            yield Block(list(costs), gammas, dict(shared), places)


def chains_of(candidates: Sequence[Parameters], wanted: Sequence[int]) -> list[list[int]]:
    """Return the wanted candidates that differ in their first parameter alone, together."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place in wanted:
        _, *others = candidates[place].values()
        found.setdefault(tuple(others), []).append(place)
    return list(found.values())
