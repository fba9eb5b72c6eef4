"""Targets in units of their spread, about a centre that a free bias takes up.

With y ↦ (y − c)/σ, ε ↦ ε/σ and u ↦ u/σ an optimum becomes w/σ, (b − c)/σ and β/σ, and P becomes
P/σ²: what solvers of the linear machine call small, or near, then has no unit. σ is a power of 2:
only y − c is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..arrays import Floats, VectorOnDevice
from ..problems import PrimalProblem
from ..progress import Progress, Report
from ..runtime.vectors import in_slices
from ..solution import Solution, Status
from .best_seen import BestSeen
from .primal.ledger import Plane

# Rows from which the centre and the spread are computed, about.
UNIT_ROWS = 50_000

Solve = Callable[[PrimalProblem, Plane | None, Progress], Solution]


@dataclass(frozen=True)
class Units:
    """c and σ of some targets."""

    centre: float
    scale: float

    @classmethod
    def of(cls, problem: PrimalProblem) -> Self:
        """Return the median of targets, 0 where no free bias takes it up, and their spread."""
        y = problem.y
        some = y[:: max(1, y.size // UNIT_ROWS)]
        centre = float(np.median(some)) if problem.bias == "free" else 0.0
        away = np.abs(some - centre)
        # More than half of them may be the same number.
        spread = float(np.median(away)) or float(away.mean()) or float(np.abs(y - centre).max())
        exponent = int(np.frexp(spread)[1]) - 1 if spread > 0.0 else 0
        return cls(centre, float(np.ldexp(1.0, exponent)))

    def of_targets(self, y: Floats) -> Floats:
        """Return (y − c)/σ."""
        if isinstance(y, VectorOnDevice):
            return (y - self.centre) / self.scale
        out = np.empty(y.size)

        def write(some: slice) -> None:
            np.subtract(y[some], self.centre, out=out[some])
            out[some] /= self.scale

        in_slices(write, y.size)
        return out

    def posed(self, problem: PrimalProblem) -> PrimalProblem:
        """Return the problem in these units."""
        return replace(
            problem, y=self.of_targets(problem.y), upper=problem.upper / self.scale,
            epsilon=problem.epsilon / self.scale,
        )  # fmt: skip

    def entered(self, plane: Plane) -> Plane:
        """Return a plane in these units."""
        alpha = None if plane.alpha is None else plane.alpha / self.scale
        return Plane(plane.w / self.scale, (plane.b - self.centre) / self.scale, alpha)

    def back(self, solution: Solution) -> Solution:
        """Return a solution in these units as one of the targets themselves."""
        alpha = None if solution.alpha is None else self.scale * solution.alpha
        b = self.scale * solution.b + self.centre
        return replace(solution, w=self.scale * solution.w, b=b, alpha=alpha)


class _Rescaled(BestSeen):
    """A `Progress` that reports values and solutions in the units of the targets themselves."""

    def __init__(self, progress: Progress, units: Units) -> None:
        super().__init__(progress, units.back)
        self.square = units.scale**2

    def record(self, report: Report) -> bool:
        """Record an iteration."""
        return super().record(
            report._replace(
                objective=self.square * report.objective, primal=self.square * report.primal,
                dual=self.square * report.dual,
            )
        )  # fmt: skip

    def measured(self, primal: float, dual: float) -> None:
        """Enter what has become known after the last iteration."""
        super().measured(self.square * primal, self.square * dual)


def solve_in_units(
    solve: Solve, problem: PrimalProblem, start: Plane | None, progress: Progress
) -> Solution:
    """Solve a machine of targets in their units."""
    level = _level_in_tube(problem)
    if level is not None:
        return Solution(
            np.zeros((1, problem.X.shape[1])), np.array([level]), Status.CONVERGED,
            seconds=progress.seconds, alpha=np.zeros(problem.y.size), trace=progress.trace(),
        )  # fmt: skip
    units = Units.of(problem)
    if start is not None:
        start = units.entered(start)
    return units.back(solve(units.posed(problem), start, _Rescaled(progress, units)))


def _level_in_tube(problem: PrimalProblem) -> float | None:
    """Return the b for which w = 0 has no loss at all, in the middle of all such; None without."""
    low, high = _ends(problem)
    if problem.bias != "free":
        return 0.0 if max(high, -low) <= problem.epsilon else None
    return low + 0.5 * (high - low) if high - low <= 2.0 * problem.epsilon else None


def _ends(problem: PrimalProblem) -> tuple[float, float]:
    """Return the least and the largest target that counts."""
    if isinstance(problem.y, VectorOnDevice) and problem.box.size == 1:
        return problem.y.min(), problem.y.max()
    counts = np.broadcast_to(problem.box > 0.0, problem.y.shape)

    def ends(some: slice) -> tuple[float, float]:
        y, counted = problem.y[some], counts[some]
        return (
            float(np.min(y, initial=np.inf, where=counted)),
            float(np.max(y, initial=-np.inf, where=counted)),
        )

    lows, highs = zip(*in_slices(ends, problem.y.size), strict=True)
    return min(lows), max(highs)
