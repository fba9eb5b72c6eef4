"""Kernel machines of more rows than one machine holds: a sample of them is solved first.

With a share m/n of the rows, costs are n/m times as large, so that the function of the sample is
about that of all rows. Its scores of all rows say on which side of the margin each of them is, and
so where most α are: at a bound. Decomposition begins there, and few rounds are left for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...engines.base import HostGram
from ...problems import DualProblem
from ...progress import Limits, Progress
from ...solution import Solution
from .decomposition import Decomposition

# Solves the problem of a sample, to a tolerance.
SolveSample = Callable[[DualProblem, float, Limits], Solution]


@dataclass(frozen=True)
class Tuning:
    """How the first guess is made."""

    # Rows of the sample, and numbers in them.
    sample_rows: int = 4096
    sample_numbers: int = 1 << 22
    # Its tolerance: it is a guess.
    sample_tol: float = 1e-2
    # Halvings of the range of a multiplier.
    bisections: int = 100


TUNING = Tuning()


@dataclass(frozen=True)
class PartitionedDecomposition:
    """Decomposition from the guess that a sample gives.

    Parameters
    ----------
    solver : Decomposition
        Of the engine that holds the rows.
    gram : HostGram
        K of the problem there; only products with it are asked for.
    solve_sample : callable
        (problem, tol, limits) ↦ the solution of a problem in the memory of this process.
    """

    solver: Decomposition
    gram: HostGram
    solve_sample: SolveSample

    def solve(self, problem: DualProblem, progress: Progress) -> Solution:
        """Return α and b."""
        return self.solver.solve(problem, self._guess(problem, progress), progress)

    def _guess(self, problem: DualProblem, progress: Progress) -> Floats | None:
        """Return α of all variables from the function of a sample; None where there is none."""
        chosen = _sample(problem)
        part = _scaled(problem, chosen)
        if part is None or self.solver.limits.reached(0, progress) is not None:
            return None
        tol = max(self.solver.tol, TUNING.sample_tol)
        seconds = self.solver.limits.seconds
        left = None if seconds is None else max(0.0, seconds - progress.seconds)
        solution = self.solve_sample(part, tol, Limits(None, left))
        assert solution.alpha is not None
        support = np.flatnonzero(solution.alpha)
        coefficients = (part.signs * solution.alpha)[support]
        if not support.size:
            return None
        scores = self.gram.dot(chosen[support], coefficients)
        return most_likely(problem, scores)


def _sample(problem: DualProblem) -> Integers:
    """Return the variables of some rows, evenly spaced."""
    rows = np.unique(problem.index)
    per_row = max(1, problem.X.stored() // max(1, problem.X.shape[0]))
    wanted = max(2, min(TUNING.sample_rows, TUNING.sample_numbers // per_row, rows.size))
    some = rows[np.linspace(0, rows.size - 1, wanted).astype(np.intp)]
    return np.flatnonzero(np.isin(problem.index, some))


def _scaled(problem: DualProblem, chosen: Integers) -> DualProblem | None:
    """Return the problem of a sample, costs scaled up; None where no α of it has the right sums."""
    share = problem.n_variables / chosen.size
    part = problem.restrict(chosen)
    rows, index = np.unique(part.index, return_inverse=True)
    part = replace(
        part, X=problem.X[rows], index=index, upper=part.upper * share, lower=part.lower * share,
        ridge=part.ridge / share,
    )  # fmt: skip
    for group, total in zip(part.groups, part.sums, strict=True):
        s, low, high = part.signs[group], part.lower[group], part.upper[group]
        ends = np.where(s > 0, low, -high).sum(), np.where(s > 0, high, -low).sum()
        if not ends[0] <= total <= ends[1] or np.unique(s).size < _signs(problem):
            return None
    return part


def _signs(problem: DualProblem) -> int:
    """Return how many signs the variables of a group have."""
    return int(np.unique(problem.signs[problem.groups[0]]).size)


def most_likely(problem: DualProblem, scores: Floats) -> Floats:
    """Return the α that maximise αz − ½Dα² within their bounds, for z of given scores.

    The multipliers are those at which the sums of the groups are right, but for one variable.
    """
    s = problem.signs
    lower, upper = (
        np.where(s > 0, problem.lower, -problem.upper),
        np.where(s > 0, problem.upper, -problem.lower),
    )
    slopes, beta = -s * problem.p - scores, np.empty(s.size)
    groups: tuple[Any, ...] = problem.groups or (slice(None),)
    for k, group in enumerate(groups):
        of_group = slopes[group], problem.ridge[group], lower[group], upper[group]
        level = _level(*of_group, problem.sums[k]) if problem.groups else 0.0
        beta[group] = _best(level, *of_group)
    return s * beta + 0.0


def _best(level: float, slopes: Floats, ridge: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the β that maximise β(slope − level) − ½Dβ²."""
    above = slopes - level
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.clip(above / ridge, lower, upper)
    return np.where(ridge > 0.0, inside, np.where(above > 0.0, upper, lower))


def _level(slopes: Floats, ridge: Floats, lower: Floats, upper: Floats, total: float) -> float:
    """Return the least multiplier at which Σβ is not above its value."""
    finite = np.abs(np.where(np.isfinite(upper), upper, 0.0)) + np.abs(
        np.where(np.isfinite(lower), lower, 0.0)
    )
    reach = float((ridge * finite).max(initial=0.0)) + abs(total) * float(ridge.max(initial=0.0))
    low, high = float(slopes.min()) - reach - 1e-9, float(slopes.max()) + reach + 1e-9
    for _ in range(TUNING.bisections):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if float(_best(middle, slopes, ridge, lower, upper).sum()) > total:
            low = middle
        else:
            high = middle
    return high
