"""The vectors of length n of one dual problem on the CPU: β, the gradient, bounds of its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ..base import Block, Claim, DualState, Level, Result, Totals
from .selection import extremes, gap_sums, violators
from .working_set import WorkingSet

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .gram import Gram, Selected

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


TUNING = Tuning()


class CpuDualState:
    """β = sα within its bounds, f = −sp − (K + D)β, and bounds of the errors of f.

    Kernel values may be float32: the rounding errors that they leave in f are bounded, row by row,
    as f is updated; a bound is ∞ where it is not followed. See `maxmargin.engines.base.DualState`.
    """

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram | Selected,
        alpha: Floats,
        exact: Gram | Selected | None = None,
        claim: Claim | None = None,
    ) -> None:
        s, n = problem.signs, alpha.size
        self.gram, self.exact, self.signs, self.ridge = gram, exact, s, problem.ridge
        self.groups: tuple[Integers, ...] = tuple(np.sort(group) for group in problem.groups)
        self.total = float(sum(abs(t) for t in problem.sums))
        self.target: Floats = -s * problem.p
        # + 0.0 turns −0 into 0.
        self.lower: Floats = np.where(s > 0.0, problem.lower, -problem.upper) + 0.0
        self.upper: Floats = np.where(s > 0.0, problem.upper, -problem.lower) + 0.0
        self.curvature: Floats = gram.diagonal() + problem.ridge
        self.beta: Floats = s * alpha
        self.parent: CpuDualState | None = None
        self.rows: Integers = np.arange(n)
        self.n_updates = 0
        self._everything = self.rows
        self._inside = np.zeros(n, dtype=bool)
        if claim is None or not self._adopt(claim):
            self.f, self.error = self._gradient(gram)

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
    def may_restrict(self) -> bool:
        """Whether K among some of the variables is cheap."""
        return self.gram.cheap

    @property
    def _parts(self) -> tuple[Integers, ...]:
        """The groups; all variables where there are none."""
        return self.groups or (self._everything,)

    def levels(self) -> list[Level]:
        """Return, per group, the largest f that may grow and the least f that may shrink."""
        return [extremes(*self._of(part)) for part in self._parts]

    def _of(self, group: Integers) -> tuple[Floats, Floats, Floats, Floats]:
        """Return f, β and its bounds of the variables of a group."""
        if group.size == self.beta.size:
            return self.f, self.beta, self.lower, self.upper
        return self.f[group], self.beta[group], self.lower[group], self.upper[group]

    def mean_free(self, group: int) -> float:
        """Return the mean of f over the free variables of a group, NaN where there are none."""
        f, beta, lower, upper = self._of(self._parts[group])
        free = f[(lower < beta) & (beta < upper)]
        return float(free.mean()) if free.size else np.nan

    def totals(self, multipliers: list[float]) -> Totals:
        """Return the sums of the duality gap, for one multiplier per group."""
        b = float(np.mean(multipliers))
        parts = [
            gap_sums(
                part, self.signs, self.target, self.ridge, self.lower, self.upper,
                self.beta, self.f, level, b,
            )
            for part, level in zip(self._parts, multipliers, strict=True)
        ]  # fmt: skip
        gap, square, smallest, size, errors = zip(*parts, strict=True)
        return Totals(sum(gap), sum(square), min(smallest), sum(size), int(sum(errors)))

    def best_shift(self, b: float) -> float:
        """Return the ρ for which the multipliers b ∓ ρ of two groups fit best."""
        margins = self.signs * (b - self.f - self.ridge * self.beta)
        order = np.argsort(margins, kind="stable")
        sums = np.cumsum((self.upper - self.lower)[order])
        reached = int(np.searchsorted(sums, self.total * (1.0 - 1e-12)))
        return float(margins[order[min(reached, order.size - 1)]])

    def objective(self) -> float:
        """Return ½βᵀ(K + D)β + pᵀα, computed from f."""
        return -0.5 * float(self.beta @ (self.f + self.target))

    def violators(
        self, group: int, level: Level, most: float, wanted: int, taken: Integers
    ) -> Integers:
        """Return up to ``wanted`` variables of a group that violate most, none of ``taken``."""
        part, (top, low) = self._parts[group], level
        self._inside[taken] = True
        inside = self._inside if part.size == self.beta.size else self._inside[part]
        chosen: Integers = part[violators(*self._of(part), inside, top, low, most, wanted)]
        self._inside[taken] = False
        return chosen

    def free(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some variables lie strictly between their bounds."""
        beta = self.beta[rows]
        return (self.lower[rows] < beta) & (beta < self.upper[rows])

    def near(self, levels: list[Level], reach: float, at_most: int) -> CpuDualState | None:
        """Return the state of the variables that may come to violate soon, or None."""
        close = (self.lower < self.beta) & (self.beta < self.upper)
        for part, (top, low) in zip(self._parts, levels, strict=True):
            f, beta, lower, upper = self._of(part)
            close[part] |= (beta < upper) & (f > low - reach)
            close[part] |= (beta > lower) & (f < top + reach)
        rows = np.flatnonzero(close)
        return self._restricted(rows) if rows.size <= at_most else None

    def _restricted(self, rows: Integers) -> CpuDualState:
        part = object.__new__(CpuDualState)
        part.gram, part.exact = self.gram.restrict(rows), None
        for name in ("signs", "ridge", "target", "lower", "upper", "curvature", "beta", "f"):
            setattr(part, name, getattr(self, name)[rows])
        part.error = np.full(rows.size, np.inf)
        part.parent, part.rows, part.total, part.n_updates = self, rows, self.total, 0
        part._everything, part._inside = np.arange(rows.size), np.zeros(rows.size, dtype=bool)
        part.groups = self.groups
        if len(self.groups) == 1:
            part.groups = (part._everything,)
        elif self.groups:
            number = np.empty(self.beta.size, dtype=np.intp)
            for k, group in enumerate(self.groups):
                number[group] = k
            part.groups = tuple(np.flatnonzero(number[rows] == k) for k in range(len(self.groups)))
        return part

    def block(self, capacity: list[int]) -> WorkingSet:
        """Return an empty working set with room for so many variables of each group."""
        return WorkingSet(self, capacity)

    def take(self, part: DualState | Block) -> float | None:
        """Take over β from a part and update f; return by how much the objective fell."""
        assert isinstance(part, CpuDualState | WorkingSet)
        change = part.beta - self.beta[part.rows]
        moved = np.flatnonzero(change)
        rows, change = part.rows[moved], change[moved]
        if not rows.size:
            return None
        self.n_updates += 1
        before = self.f[rows]
        self.beta[rows] = part.beta[moved]
        self.f[rows] -= self.ridge[rows] * change
        error = self.error if self._follows_errors else None
        self.f -= self.gram.dot(rows, change, keep=self.free(rows), error=error)
        if error is None:
            self.error[:] = np.inf
        # Exact for a quadratic function: the mean slope times the way.
        return 0.5 * float(change @ (before + self.f[rows]))

    @property
    def _follows_errors(self) -> bool:
        """Whether errors are bounded as f is updated, or f is computed anew at the end."""
        few = self.beta.size <= TUNING.few_variables
        return self.parent is None and not (few and self.gram.dtype == np.float32)

    def refresh(self) -> None:
        """Compute f anew, from exact kernel values where there are any."""
        self.f, self.error = self._gradient(self.exact or self.gram)

    def correct(self, multipliers: list[float], little: float) -> int:
        """Compute f anew, exactly, where rounding may hide a violation; return of how many."""
        n, rows = self.beta.size, self._in_doubt(multipliers, little)
        if n <= TUNING.few_variables or rows.size > TUNING.refresh_share * n:
            self.refresh()
            return n
        if rows.size:
            self.f[rows], self.error[rows] = self._gradient(self.exact or self.gram, rows)
        return rows.size

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

    def turn_exact(self) -> None:
        """Use exact kernel values from here on."""
        assert self.exact is not None
        self.gram, self.exact = self.exact, None
        self.refresh()

    def result(self) -> Result:
        """Return α of all variables of the problem, with the scores where they are known."""
        alpha = self.signs * self.beta + 0.0
        if self.parent is not None:
            everything = self.parent.result().alpha
            everything[self._numbers()] = alpha
            return Result(everything, None, None)
        if not np.isfinite(self.error).all():
            return Result(alpha, None, None)
        # Every update rounds f once more.
        bounds = self.error + (self.n_updates + 4) * ROUNDING * np.abs(self.f)
        return Result(alpha, self.target - self.f - self.ridge * self.beta, bounds)

    def _numbers(self) -> Integers:
        """Return which variables of the problem these are."""
        return self.rows if self.parent is None else self.parent._numbers()[self.rows]

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
        self, gram: Gram | Selected, rows: Integers | None = None
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
