"""The vectors of length n of one dual problem on the CPU: β, the gradient, bounds of its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ..base import Claim, DualState, Level, Moves, Result, Totals
from .free_step import best_free_step, free_step_numbers
from .selection import gap_totals, survey, violators
from .working_set import WorkingSet

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .gram import Gram, GramView

ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Tuning:
    """When errors are followed, and when f is computed anew."""

    # Variables up to which f is computed anew at the end, instead of following its errors.
    few_variables: int = 4096
    # The share of variables in doubt from which on f of all is computed anew.
    refresh_share: float = 0.5
    # Rows on which claimed scores are checked.
    n_checked_claims: int = 256
    # Variables that a Newton step moves, at least and at most, and how many matrices of their
    # kernel values it needs.
    least_free: int = 32
    most_free: int = 4096
    free_matrices: int = 3


TUNING = Tuning()


class Variables(NamedTuple):
    """Vectors of some variables of a dual problem: what distinguishes them, β and f."""

    signs: Floats
    ridge: Floats
    target: Floats  # −sp
    lower: Floats  # of β
    upper: Floats
    curvature: Floats  # the diagonal of K + D
    beta: Floats
    f: Floats


class CpuDualState:
    """β = sα within its bounds, f = −sp − (K + D)β, and bounds of the errors of f.

    Kernel values may be float32: the rounding errors that they leave in f are bounded, row by row,
    as f is updated; a bound is ∞ where it is not followed. See `maxmargin.engines.base.DualState`.
    """

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram | GramView,
        alpha: Floats,
        exact: Gram | GramView | None = None,
        claim: Claim | None = None,
    ) -> None:
        s, n = problem.signs, alpha.size
        self.gram, self.exact, self.signs, self.ridge = gram, exact, s, problem.ridge
        self.groups: tuple[Integers, ...] = tuple(np.sort(group) for group in problem.groups)
        self.sums = problem.sums
        self.target: Floats = -s * problem.p
        # + 0.0 turns −0 into 0.
        self.lower: Floats = np.where(s > 0.0, problem.lower, -problem.upper) + 0.0
        self.upper: Floats = np.where(s > 0.0, problem.upper, -problem.lower) + 0.0
        self.curvature: Floats = gram.diagonal() + problem.ridge
        self.beta: Floats = s * alpha
        self.is_part, self.n_updates = False, 0
        self.everything: Integers = np.arange(n)
        self._working_set: WorkingSet | None = None
        self._inside = np.zeros(n, dtype=bool)
        if claim is None or not self._adopt(claim):
            self.f, self.error = self._gradient(gram)
        self.value = self._objective()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of variables in each group."""
        return tuple(group.size for group in self._parts)

    @property
    def largest(self) -> float:
        """The largest diagonal element of K + D."""
        return float(self.curvature.max())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the kernel values in use."""
        return self.gram.dtype

    @property
    def has_groups(self) -> bool:
        """Whether the sums of groups are fixed."""
        return bool(self.groups)

    def moving(self, rows: Integers) -> tuple[Floats, Floats]:
        """Return β and f of some variables."""
        return self.beta[rows], self.f[rows]

    @property
    def _parts(self) -> tuple[Integers, ...]:
        """The groups; all variables where there are none."""
        return self.groups or (self.everything,)

    def levels(self) -> list[Level]:
        """Return the bounds of every group's multiplier."""
        return [self._level(part) for part in self._parts]

    def _level(self, part: Integers) -> Level:
        return Level(*survey(*self._of(part)))

    def _of(self, group: Integers) -> tuple[Floats, Floats, Floats, Floats]:
        """Return f, β and its bounds of the variables of a group."""
        if group.size == self.beta.size:
            return self.f, self.beta, self.lower, self.upper
        return self.f[group], self.beta[group], self.lower[group], self.upper[group]

    def totals(self, multipliers: list[float]) -> Totals:
        """Return the sums of the duality gap, for one multiplier per group."""
        b = float(np.mean(multipliers))
        variables = (
            self.signs, self.target, self.ridge, self.lower, self.upper, self.beta, self.f
        )  # fmt: skip
        parts = [
            gap_totals(part, variables, level, b)
            for part, level in zip(self._parts, multipliers, strict=True)
        ]
        gap, square, smallest, size, errors = zip(*parts, strict=True)
        return Totals(sum(gap), sum(square), min(smallest), sum(size), int(sum(errors)))

    def best_shift(self, b: float) -> float:
        """Return the ρ of the least gap where the multipliers of two groups are b − ρ and b + ρ."""
        first, second = self.groups
        kinks = b - self.f - self.ridge * self.beta
        kinks[second] *= -1.0
        needed = self.sums[0] - self.sums[1] - float(self.lower[first].sum())
        needed += float(self.upper[second].sum())
        order = np.argsort(kinks, kind="stable")
        slopes = np.cumsum((self.upper - self.lower)[order])
        reached = int(np.searchsorted(slopes, needed * (1.0 - 1e-12)))
        return float(kinks[order[min(reached, order.size - 1)]])

    def _objective(self) -> float:
        """Return ½βᵀ(K + D)β + pᵀα, computed from f."""
        return -0.5 * float(self.beta @ (self.f + self.target))

    def violators(
        self, group: int, level: Level, most: float, wanted: int, taken: Integers
    ) -> Integers:
        """Return up to ``wanted`` variables of a group that violate most, none of ``taken``."""
        part = self._parts[group]
        self._inside[taken] = True
        inside = self._inside if part.size == self.beta.size else self._inside[part]
        chosen: Integers = part[
            violators(*self._of(part), inside, (level.top, level.low), most, wanted)
        ]
        self._inside[taken] = False
        return chosen

    def free(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some variables lie strictly between their bounds."""
        beta = self.beta[rows]
        return (self.lower[rows] < beta) & (beta < self.upper[rows])

    def near(self, levels: list[Level], reach: float, at_most: int) -> Integers | None:
        """Return the variables that may come to violate soon, or None."""
        if not self.gram.cheap:  # all kernel values among them are computed anew
            return None
        close = (self.lower < self.beta) & (self.beta < self.upper)
        for part, level in zip(self._parts, levels, strict=True):
            f, beta, lower, upper = self._of(part)
            close[part] |= (beta < upper) & (f > level.low - reach)
            close[part] |= (beta > lower) & (f < level.top + reach)
        rows = np.flatnonzero(close)
        return rows if rows.size <= at_most else None

    def restrict(self, rows: Integers) -> CpuDualState:
        """Return the state of some variables, the others held fixed."""
        names = Variables._fields
        variables = Variables(*(getattr(self, name)[rows] for name in names))
        groups: tuple[Integers, ...] = self.groups
        if len(groups) == 1:
            groups = (np.arange(rows.size),)
        elif groups:
            groups = tuple(np.flatnonzero(np.isin(rows, group)) for group in groups)
        return CpuDualState.part(self.gram.restrict(rows), variables, groups, self.sums, self.value)

    @classmethod
    def part(
        cls,
        gram: Gram | GramView,
        variables: Variables,
        groups: tuple[Integers, ...],
        sums: tuple[float, ...],
        value: float,
    ) -> CpuDualState:
        """Return the state of some variables of a problem, the others held fixed.

        Parameters
        ----------
        gram : Gram or GramView
            K of these variables.
        variables : Variables
        groups : tuple of ndarray of int
            The variables of each group, numbered from 0 to their number.
        sums : tuple of float
            Those of the whole problem.
        value : float
            The objective of the whole problem.
        """
        n = variables.beta.size
        part = object.__new__(cls)
        for name, values in variables._asdict().items():
            setattr(part, name, values)
        part.gram, part.exact = gram, None
        part.error = np.full(n, np.inf)
        part.is_part, part.sums, part.n_updates = True, sums, 0
        part.value, part._working_set = value, None
        part.everything, part._inside = np.arange(n), np.zeros(n, dtype=bool)
        part.groups = groups
        return part

    def solve_block(self, members: list[Integers], stop: float, max_steps: int) -> Moves:
        """Solve the problem of some variables, the others held fixed, and update f."""
        if self._working_set is None:
            self._working_set = WorkingSet([each.size for each in members])
        self._working_set.hold(self, members)
        rows, beta, steps = self._working_set.solve(self, stop, max_steps)
        return Moves(steps, self._move(rows, beta))

    def free_step_numbers(self) -> float:
        """Return how many numbers steps of pairs pass over in the time of `move_free`."""
        if len(self.groups) != 1 or self.dtype != np.float64:
            return np.inf
        n = int(np.count_nonzero(self.free(self.everything)))
        fits = TUNING.free_matrices * 8 * n**2 <= self.gram.budget
        can = fits and TUNING.least_free <= n <= TUNING.most_free
        return free_step_numbers(n) if can else np.inf

    def move_free(self) -> bool:
        """Make a Newton step of the free variables; return whether it lowers the objective."""
        rows = np.flatnonzero(self.free(self.everything))
        K = self.gram.block(rows)
        np.fill_diagonal(K, self.curvature[rows])
        f, beta, lower, upper = (each[rows] for each in self._of(self.everything))
        change, gains = best_free_step(K, f, lower - beta, upper - beta)
        if not gains or not _gains_more_than_rounding(K, f, change):
            return False
        # The bound itself, not what rounding makes of it.
        moved = np.where(change <= lower - beta, lower, beta + change)
        return self._move(rows, np.where(change >= upper - beta, upper, moved))

    def take(self, rows: Integers, part: DualState) -> bool:
        """Take β of some variables from their own state and update f; False if none has moved."""
        assert isinstance(part, CpuDualState)
        return self._move(rows, part.beta)

    def _move(self, rows: Integers, beta: Floats) -> bool:
        change = beta - self.beta[rows]
        moved = np.flatnonzero(change)
        rows, change = rows[moved], change[moved]
        if not rows.size:
            return False
        self.n_updates += 1
        before = self.f[rows]
        self.beta[rows] = beta[moved]
        self.f[rows] -= self.ridge[rows] * change
        error = self.error if self._follows_errors else None
        self.f -= self.gram.dot(rows, change, keep=self.free(rows), error=error)
        if error is None:
            self.error[:] = np.inf
        # Exact for a quadratic function: the mean slope times the way.
        self.value -= 0.5 * float(change @ (before + self.f[rows]))
        return True

    @property
    def _follows_errors(self) -> bool:
        """Whether errors are bounded as f is updated, or f is computed anew at the end."""
        few = self.beta.size <= TUNING.few_variables
        return not self.is_part and not (few and self.gram.dtype == np.float32)

    def refresh(self, multipliers: list[float] | None = None, little: float = 0.0) -> bool:
        """Compute f anew, exactly; with multipliers only where rounding may hide a violation."""
        n, gram = self.beta.size, self.exact or self.gram
        rows = self.everything if multipliers is None else self._in_doubt(multipliers, little)
        if n <= TUNING.few_variables or rows.size > TUNING.refresh_share * n:
            self.f, self.error = self._gradient(gram)
        elif rows.size:
            self.f[rows], self.error[rows] = self._gradient(gram, rows)
        else:
            return False
        self.value = self._objective()
        return True

    def _in_doubt(self, multipliers: list[float], little: float) -> Integers:
        """Return the variables that may violate by more than a little, for all that is known."""
        doubt = np.zeros(self.beta.size, dtype=bool)
        for part, level in zip(self._parts, multipliers, strict=True):
            f, beta, lower, upper = self._of(part)
            error = self.error[part]
            doubt[part] = (error > little) & (
                ((beta < upper) & (f - level + error > little))
                | ((beta > lower) & (f - level - error < -little))
            )
        return np.flatnonzero(doubt)

    def result(self) -> Result:
        """Return α of these variables, with the scores where they are known."""
        alpha = self.signs * self.beta + 0.0
        if self.is_part or not np.isfinite(self.error).all():
            return Result(alpha, None, None)
        # Every update rounds f once more.
        bounds = self.error + (self.n_updates + 4) * ROUNDING * np.abs(self.f)
        return Result(alpha, self.target - self.f - self.ridge * self.beta, bounds)

    def _adopt(self, claim: Claim) -> bool:
        """Compute f from scores that were handed in, if they prove right on some rows."""
        n = self.beta.size
        rows = np.linspace(0, n - 1, min(n, TUNING.n_checked_claims)).astype(np.intp)
        claimed = self.target - self.ridge * self.beta - claim.scores
        f, error = self._gradient(self.exact or self.gram, rows)
        near = np.abs(f - claimed[rows]) <= claim.bounds[rows] + error + ROUNDING * np.abs(f)
        if near.all():
            self.f, self.error = claimed, claim.bounds.copy()
        return bool(near.all())

    def _gradient(
        self, gram: Gram | GramView, rows: Integers | None = None
    ) -> tuple[Floats, Floats]:
        """Return f computed anew, all of it or some, and a bound of its rounding errors."""
        support = np.flatnonzero(self.beta)
        f = self.target - self.ridge * self.beta
        f = f if rows is None else f[rows]
        error = np.zeros(f.size)
        if not support.size:
            return f, error
        beta = self.beta[support]
        if rows is None:
            return f - gram.dot(support, beta, error=error), error
        return f - gram.product(rows, support, beta), gram.bound(rows, support, beta)


def _gains_more_than_rounding(K: Floats, f: Floats, change: Floats) -> bool:
    """Return whether a change lowers the objective visibly; where K is singular it may not."""
    turned = K @ change
    gain = float(change @ (f - 0.5 * turned))
    size = np.abs(change)
    largest = max(float(K.max()), -float(K.min()))
    rounding = ROUNDING * change.size * float(size @ (np.abs(f) + largest * size.sum()))
    return gain > rounding
