"""Which solver suits a linear machine, and what follows where rounding ends it early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import numpy as np

from ...engines.linear import DescentFeatures, Features, InteriorFeatures
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from .coordinate_descent import CoordinateDescent
from .interior_point import InteriorPoint
from .ledger import Plane
from .newton import SemismoothNewton

Name = Literal["auto", "interior-point", "newton", "coordinate-descent"]
PrimalSolver = SemismoothNewton | InteriorPoint | CoordinateDescent


@dataclass(frozen=True)
class Tuning:
    """Times that the benchmark's cases have taken, and limits."""

    # Seconds per multiplication in the systems of all of Newton's steps, by loss.
    kinked_system_seconds: float = 3e-9
    curved_system_seconds: float = 2.7e-10
    pass_seconds: float = 1.3e-7  # per number of X, in all passes of coordinate descent
    interior_columns: int = 1000  # up to which an interior point method takes over from Newton


TUNING = Tuning()


@dataclass(frozen=True)
class Choice:
    """Solve linear machines by a given solver, or by the one that suits.

    Parameters
    ----------
    features : Features
        X, as an engine holds it.
    name : {"auto", "interior-point", "newton", "coordinate-descent"}
    tol : float
        The relative duality gap to stop at.
    limits : Limits
    seed : int
        Of the order of the samples.
    """

    features: Features
    name: Name = "auto"
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    tuning: Tuning = TUNING

    def solver(self, problem: PrimalProblem) -> PrimalSolver:
        """Return the solver of a problem."""
        name = self.name
        if name == "auto":
            name = suited(problem, self.features, self.tuning)
        return _SOLVERS[name](self)

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it.

        Where rounding ends Newton's steps, the interior point method follows: α = u z/δ multiplies
        the rounding of z by costs, and that method moves α itself.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # at huge costs; the proof shows it
            return self._solve(problem, start, progress)

    def _solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        solver = self.solver(problem)
        solution = solver.solve(problem, start, progress)
        wide = self.features.n_columns > self.tuning.interior_columns
        has_other = not (isinstance(solver, InteriorPoint) or wide or self.features.on_device)
        if solution.status is not Status.PATIENCE or not has_other:
            return solution
        other = _SOLVERS["interior-point"](self).solve(problem, None, progress)
        best = other if other.status is Status.CONVERGED else solution
        return replace(best, n_iter=solution.n_iter + other.n_iter, trace=other.trace)


# Solvers that need more of an engine than Newton's method; `suited` asks before it names one.
_SOLVERS: dict[str, Callable[[Choice], PrimalSolver]] = {
    "newton": lambda choice: SemismoothNewton(choice.features, choice.tol, choice.limits),
    "interior-point": lambda choice: InteriorPoint(
        cast(InteriorFeatures, choice.features), choice.tol, choice.limits
    ),
    "coordinate-descent": lambda choice: CoordinateDescent(
        cast(DescentFeatures, choice.features), choice.tol, choice.limits, choice.seed
    ),
}


def suited(
    problem: PrimalProblem, features: Features, tuning: Tuning = TUNING
) -> Literal["newton", "coordinate-descent"]:
    """Return the solver that suits a problem by its shape, density and loss.

    Coordinate descent goes over the stored numbers of X, some dozens of times on one core. Newton's
    method solves systems in the features, or in the samples on the kink if they are fewer: for the
    hinge no more than a few times the features, for the squared hinge a good part of all. Squares
    of targets bend everywhere but in the tube: systems in the samples have nearly all of them,
    those in the features are solved fewer times.
    """
    if not (features.random_access and features.by_rows):
        return "newton"
    n, d, per_row = features.n_rows, features.n_columns, features.stored_per_row
    curved = bool(np.isinf(problem.upper).all())
    on_kink = n / 3 if curved else min(n, 3 * d)
    in_features = on_kink * per_row**2 + d**3 / 3
    solved = n if curved and problem.two_sided else on_kink
    in_samples = solved**2 * per_row + solved**3 / 3
    seconds = tuning.curved_system_seconds if curved else tuning.kinked_system_seconds
    newton = seconds * min(in_features, in_samples)
    return "coordinate-descent" if tuning.pass_seconds * per_row * n < newton else "newton"
