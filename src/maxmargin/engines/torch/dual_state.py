"""The vectors of length n of one dual problem on a device: the gradient, bounds of its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ..base import DualState, Level, Moves, Result, Totals
from ..cpu.working_set import WorkingSet

if TYPE_CHECKING:
    from ...problems import DualProblem
    from .gram import TorchGram

ROUNDING = float(np.finfo(np.float64).eps)
# Violations that differ by less than this share of the largest count as equal.
EQUAL_SHARE = 1.0 / 1024.0
# The share of variables in doubt from which on f of all is computed anew.
REFRESH_SHARE = 0.5


@dataclass(frozen=True)
class Variables:
    """What does not change of the variables of a problem, on the host.

    Names are those of `DualState`; ``target`` is −sp, ``number`` that of the group.
    """

    signs: Floats
    target: Floats
    ridge: Floats
    lower: Floats
    upper: Floats
    number: Integers
    n_groups: int
    sums: tuple[float, ...]

    @classmethod
    def of(cls, problem: DualProblem) -> Variables:
        """Return the variables of a problem, in terms of β."""
        s, number = problem.signs, np.zeros(problem.n_variables, dtype=np.int64)
        for k, group in enumerate(problem.groups):
            number[group] = k
        # + 0.0 turns −0 into 0.
        lower = np.where(s > 0.0, problem.lower, -problem.upper) + 0.0
        upper = np.where(s > 0.0, problem.upper, -problem.lower) + 0.0
        n_groups = len(problem.groups)
        return cls(s, -s * problem.p, problem.ridge, lower, upper, number, n_groups, problem.sums)

    def of_some(self, rows: Integers) -> Variables:
        """Return some of the variables."""
        return Variables(
            self.signs[rows], self.target[rows], self.ridge[rows], self.lower[rows],
            self.upper[rows], self.number[rows], self.n_groups, self.sums,
        )  # fmt: skip

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of variables in each group."""
        counts = np.bincount(self.number, minlength=max(1, self.n_groups))
        return tuple(counts.tolist())


class TorchDualState:
    """β = sα within its bounds, f = −sp − (K + D)β, and bounds of the errors of f.

    β is on the device and on the host, which decides where it moves; f stays on the device. See
    `maxmargin.engines.base.DualState`.
    """

    def __init__(self, variables: Variables, gram: TorchGram, beta: Floats) -> None:
        self.gram, self.exact, self.variables = gram, None, variables
        self.host_beta = beta
        self.lower, self.upper, self.ridge = variables.lower, variables.upper, variables.ridge
        self.everything: Integers = np.arange(beta.size)
        self.sizes = variables.sizes
        self.is_part, self.n_updates = False, 0
        self._working_set: WorkingSet | None = None
        self._surveyed: tuple[list[Level], float] | None = None
        v = variables
        vectors = np.stack([v.signs, v.target, v.ridge, v.lower, v.upper, beta])
        self._signs, self._target, self._ridge, self._lower, self._upper, self._beta = gram.put(
            vectors
        )
        inside = [v.number == k for k in range(v.n_groups)] if v.n_groups > 1 else []
        self._inside = [gram.put(each) for each in inside] or [None]
        # Of equal violators, choose some from all over the data.
        self._order = gram.put(np.modf(0.6180339887 * np.arange(beta.size))[0])

    exact: TorchGram | None
    curvature: Floats
    _f: Any
    _error: Any
    _value: Any

    @classmethod
    def of(
        cls, problem: DualProblem, gram: TorchGram, alpha: Floats, exact: TorchGram | None
    ) -> TorchDualState:
        """Return the state of a problem at a feasible α."""
        state = cls(Variables.of(problem), gram, problem.signs * alpha)
        state.exact, state.curvature = exact, gram.diagonal() + problem.ridge
        state._f, state._error = state._gradient(gram)
        state._value = state._objective()
        return state

    @property
    def value(self) -> float:
        """The objective ½βᵀ(K + D)β + pᵀα of the whole problem."""
        return self._survey()[1]

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
        return self.variables.n_groups > 0

    def levels(self) -> list[Level]:
        """Return the bounds of every group's multiplier."""
        return self._survey()[0]

    def _survey(self) -> tuple[list[Level], float]:
        """Return the levels and the objective, which come to the host in one transfer."""
        if self._surveyed is None:
            found = [self._value]
            rises, falls = self._beta < self._upper, self._beta > self._lower
            for inside in self._inside:
                up, down = _both(rises, inside), _both(falls, inside)
                free = up & down
                found += [
                    torch.where(up, self._f, -torch.inf).max(),
                    torch.where(down, self._f, torch.inf).min(),
                    torch.where(free, self._f, 0.0).sum(),
                    free.sum().double(),
                ]
            value, *numbers = torch.stack(found).tolist()
            parts = [numbers[k : k + 4] for k in range(0, len(numbers), 4)]
            self._surveyed = (
                [Level(up, low, sum_ / n if n else np.nan) for up, low, sum_, n in parts],
                value,
            )
        return self._surveyed

    def totals(self, multipliers: list[float]) -> Totals:
        """Return the sums of the duality gap, for one multiplier per group."""
        b, level = float(np.mean(multipliers)), self._each(multipliers)
        ridge, beta = self._ridge, self._beta
        slope = self._f + ridge * beta
        t, score, bent = slope - level, self._target - slope, ridge > 0.0
        # What maximises t a − ½D a² within the bounds.
        best = torch.where(t > 0.0, self._upper, self._lower)
        best = torch.where(bent, (t / ridge).clip(self._lower, self._upper), best)
        gap = (best - beta) * (t - torch.where(bent, 0.5 * ridge * (best + beta), 0.0))
        gap = torch.where((t == 0.0) & ~bent, 0.0, gap)
        wrong = self._signs * (slope - b) >= self._signs * self._target
        numbers = (
            gap.sum(), beta @ score, (self._signs * (score + level)).min(), beta.abs().sum(),
            wrong.sum().double(),
        )  # fmt: skip
        gap_sum, square, smallest, size, errors = torch.stack(numbers).tolist()
        return Totals(gap_sum, square, smallest, size, int(errors))

    def _each(self, multipliers: list[float]) -> Any:
        """Return the multiplier of every variable, or of all."""
        if len(multipliers) == 1:
            return multipliers[0]
        return torch.full_like(self._beta, multipliers[1]).masked_fill_(
            self._inside[0], multipliers[0]
        )

    def best_shift(self, b: float) -> float:
        """Return the ρ of the least gap where the multipliers of two groups are b − ρ and b + ρ."""
        slopes: Floats = (self._f + self._ridge * self._beta).cpu().numpy()
        first = self.variables.number == 0
        kinks = np.where(first, b - slopes, slopes - b)
        needed = self.variables.sums[0] - self.variables.sums[1]
        needed += float(self.upper[~first].sum()) - float(self.lower[first].sum())
        order = np.argsort(kinks, kind="stable")
        reached = np.searchsorted(
            np.cumsum((self.upper - self.lower)[order]), needed * (1.0 - 1e-12)
        )
        return float(kinks[order[min(int(reached), order.size - 1)]])

    def _objective(self) -> Any:
        """Return ½βᵀ(K + D)β + pᵀα, computed from f."""
        return -0.5 * (self._beta @ (self._f + self._target))

    def violators(
        self, group: int, level: Level, most: float, wanted: int, taken: Integers
    ) -> Integers:
        """Return up to ``wanted`` variables of a group that violate most, none of ``taken``."""
        outside = torch.ones_like(self._beta, dtype=torch.bool)
        outside[self.gram.put(taken)] = False
        outside = _both(outside, self._inside[group])
        spread = EQUAL_SHARE * most * self._order

        def ranked(excess: Any, may_move: Any) -> Any:
            return torch.where(outside & may_move & (excess > 0.0), excess + spread, 0.0)

        n = self._beta.shape[0]
        rising = ranked(self._f - level.low, self._beta < self._upper)
        up, first = rising.topk(min(n, wanted // 2))
        falling = ranked(level.top - self._f, self._beta > self._lower)
        falling[first] = torch.where(up > 0.0, 0.0, falling[first])
        down, second = falling.topk(min(n, wanted))
        found = torch.cat([up, down]), torch.cat([first, second]).double()
        excess, rows = torch.stack(found).cpu().numpy()
        chosen: Integers = rows[excess > 0.0].astype(np.intp)
        return chosen[:wanted]

    def free(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some variables lie strictly between their bounds."""
        beta = self.host_beta[rows]
        return (self.lower[rows] < beta) & (beta < self.upper[rows])

    def near(self, levels: list[Level], reach: float, at_most: int) -> Integers | None:
        """Return the variables that may come to violate soon, or None."""
        low = self._each([level.low - reach for level in levels])
        top = self._each([level.top + reach for level in levels])
        rises, falls = self._beta < self._upper, self._beta > self._lower
        close = rises & (falls | (self._f > low)) | falls & (self._f < top)
        rows = np.flatnonzero(close.cpu().numpy())
        return rows if rows.size <= at_most else None

    def restrict(self, rows: Integers) -> TorchDualState:
        """Return the state of some variables, the others held fixed."""
        gram = self.gram.restrict(rows)
        part = TorchDualState(self.variables.of_some(rows), gram, self.host_beta[rows])
        part.is_part, part.curvature = True, self.curvature[rows]
        part._f, part._error, part._value = self._f[gram.put(rows)], None, self._value
        return part

    def solve_block(self, members: list[Integers], stop: float, max_steps: int) -> Moves:
        """Solve the problem of some variables, the others held fixed, and update f."""
        if self._working_set is None:
            self._working_set = WorkingSet([each.size for each in members])
        self._working_set.hold(self, members)
        rows, beta, steps = self._working_set.solve(self, stop, max_steps)
        return Moves(steps, self._move(rows, beta))

    def moving(self, rows: Integers) -> tuple[Floats, Floats]:
        """Return β and f of some variables."""
        return self.host_beta[rows], self._f[self.gram.put(rows)].cpu().numpy()

    def take(self, rows: Integers, part: DualState) -> bool:
        """Take β of some variables from their own state and update f; False if none has moved."""
        assert isinstance(part, TorchDualState)
        return self._move(rows, part.host_beta)

    def _move(self, rows: Integers, beta: Floats) -> bool:
        change = beta - self.host_beta[rows]
        moved = np.flatnonzero(change)
        rows, change = rows[moved], change[moved]
        if not rows.size:
            return False
        self.n_updates += 1
        self.host_beta[rows] = beta[moved]
        at, (by, new) = self.gram.put(rows), self.gram.put(np.stack([change, beta[moved]]))
        before = self._f[at]
        self._beta[at] = new
        self._f[at] -= self._ridge[at] * by
        sums, error = self.gram.column_sums(rows, change)
        self._f -= sums
        if not self.is_part:
            self._error += error
        # Exact for a quadratic function: the mean slope times the way.
        self._value = self._value - 0.5 * (by @ (before + self._f[at]))
        self._surveyed = None
        return True

    def refresh(self, multipliers: list[float] | None = None, little: float = 0.0) -> bool:
        """Compute f anew, exactly; with multipliers only where rounding may hide a violation."""
        n, gram = self.host_beta.size, self.exact or self.gram
        rows = self.everything if multipliers is None else self._in_doubt(multipliers, little)
        if rows.size > REFRESH_SHARE * n:
            self._f, self._error = self._gradient(gram)
        elif rows.size:
            at = gram.put(rows)
            self._f[at], self._error[at] = self._gradient(gram, rows)
        else:
            return False
        self._value, self._surveyed = self._objective(), None
        return True

    def _in_doubt(self, multipliers: list[float], little: float) -> Integers:
        """Return the variables that may violate by more than a little, for all that is known."""
        if self.is_part:
            return self.everything
        excess, error = self._f - self._each(multipliers), self._error
        doubt = (self._beta < self._upper) & (excess + error > little)
        doubt |= (self._beta > self._lower) & (excess - error < -little)
        doubt &= error > little
        return np.flatnonzero(doubt.cpu().numpy())

    def result(self) -> Result:
        """Return α of these variables, with the scores where they are known."""
        alpha = self.variables.signs * self.host_beta + 0.0
        if self.is_part:
            return Result(alpha, None, None)
        # Every update rounds f once more.
        bounds = self._error + (self.n_updates + 4) * ROUNDING * self._f.abs()
        scores = self._target - self._f - self._ridge * self._beta
        known, within = torch.stack([scores, bounds]).cpu().numpy()
        if not np.isfinite(within).all():
            return Result(alpha, None, None)
        return Result(alpha, known, within)

    def _gradient(self, gram: TorchGram, rows: Integers | None = None) -> tuple[Any, Any]:
        """Return f computed anew, all of it or some, and a bound of its rounding errors."""
        support = np.flatnonzero(self.host_beta)
        f = self._target - self._ridge * self._beta
        f = f if rows is None else f[gram.put(rows)]
        if not support.size:
            return f, torch.zeros_like(f)
        beta = self.host_beta[support]
        if rows is None:
            rows = self.everything
        sums, error = gram.row_sums(rows, support, beta)
        return f - sums, error


def _both(one: Any, other: Any) -> Any:
    """Return where both masks are true, None being one that is true everywhere."""
    return one if other is None else one & other
