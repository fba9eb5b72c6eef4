"""The state of a linear machine: scores, β and its centre, as NumPy arrays.

β is yα of labels, and α itself of targets: w is the sum of β_i x_i. Compiled passes over the rows,
shared between the cores; see `engines.base.PrimalState` for what each operation means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ...problems.best_bias import best_biases
from ...runtime.team import Region
from ...runtime.vectors import copied, in_slices, nonzero, part_count, part_rows, taken
from ..linear import ColumnSystem, Held, Kink, Projection
from . import primal_passes as passes

if TYPE_CHECKING:
    from .features import Features

Marks = NDArray[np.uint8]
NOTHING = np.empty(0)


@dataclass(frozen=True)
class Tuning:
    """Sizes of passes over the rows."""

    quantile_rows: int = 10_000  # rows that a quantile is estimated from
    most_subtracted: int = 4  # rows subtracted from a sum, relative to those in it
    same_turn: float = 1e-9  # relative spread of the u_i D_i that are one number


TUNING = Tuning()


class PrimalState:
    """Scores, β and β⁰ of the rows of X.

    Parameters
    ----------
    problem : PrimalProblem
        Its X is not used.
    features : Features
        The rows.
    """

    def __init__(self, problem: PrimalProblem, features: Features) -> None:
        n = features.n_rows
        self.problem, self.features, self.n_rows = replace(problem, X=None), features, n
        self.scores = np.zeros(n)
        self.values = np.zeros(n)  # β
        # β⁰: one number per row, a single one for all, or None where it is β.
        self.center: Floats | None = np.zeros(1)
        self._curved = problem.curved
        self._turn = _turn(problem)
        self._sum = _KinkSum(features, problem.upper)
        # The changes of β, and in their place the scores of a step, or β.
        self._change: Floats = NOTHING
        # The memory of β⁰, kept: to write to new memory takes longer than to copy.
        self._old_center: Floats = NOTHING
        self._moved = 0.0, 0.0
        self._measured: Floats | None = None
        self._kept: Floats | None = None
        self._rows: Integers | None = None
        self._part: PrimalState | None = None

    # The plane and α -----------------------------------------------------------------------

    def place(self, w: Floats, b: float) -> None:
        """Compute the scores of a plane."""
        if w.any():
            self.features.scores(w, b, out=self.scores)
        else:
            self._everywhere(lambda some: self.scores[some].fill(b))

    def shift(self, t: float) -> None:
        """Add t to the bias, and to all scores."""
        self._everywhere(lambda some: np.add(self.scores[some], t, out=self.scores[some]))

    def start(self, alpha: Floats) -> None:
        """Begin with α, put into its bounds."""
        self.values = self.problem.beta(alpha)
        self.center = None

    def sample(self, rows: Any, times: float) -> PrimalState | None:
        """Return the state of some rows, each of which costs ``times`` as much."""
        problem = self._problem_of(rows, times)
        if not problem.two_sided and abs(problem.y.sum()) == rows.size:
            return None
        return PrimalState(problem, self.features.restrict(rows))

    def total(self) -> Floats:
        """Return Σ β_i (x_i, 1)."""
        sums = self._balance(_Balance(), relative=False, out=NOTHING)
        return np.append(self.features.combine(self._change), sums[2])

    def recentre(self) -> None:
        """Make β⁰ the β now."""
        if self._old_center.size != self.n_rows:
            self._old_center = np.empty(self.n_rows)
        self.center = self._old_center
        self._everywhere(lambda some: np.copyto(self._old_center[some], self.values[some]))

    # Newton's method -----------------------------------------------------------------------

    def project(self, delta: float) -> Projection:
        """Make β that of the scores."""
        arrays = (self.scores, *self._targets(), self._center(), *self._bounds(), delta)
        slack, loss, errors, changes = self._sums(
            passes.project, 4, *arrays, self.values, self._scratch()
        )
        change = np.append(self.features.combine(self._change), changes)
        return Projection(float(slack), float(loss), int(errors), change, *self._moved)

    def aim(self, step: Floats) -> None:
        """Compute the scores of a step."""
        self.features.scores(step[:-1], float(step[-1]), out=self._scratch())

    def slopes(self, points: list[float], delta: float) -> list[float]:
        """Return Σ β_i (x_i, 1)·step after t steps, for every t of some."""
        arrays = (self.scores, self._change, *self._targets(), self._center(), *self._bounds())
        return [float(self._sums(passes.slope, 1, *arrays, delta, t)[0]) for t in points]

    def advance(self, t: float) -> None:
        """Go t steps."""
        done = self._lines(passes.advance, 2, self._change, float(t), self.scores)
        moved, largest = done.max(axis=0)
        self._moved = float(moved), float(largest)

    def reach(self, share: float, delta: float) -> float:
        """Return about how far z is from the kink at most, of a share of the rows."""
        some = slice(None, None, max(1, self.n_rows // TUNING.quantile_rows))
        z = self.problem.slacks(self.scores[some], some)
        return float(np.quantile(_off_kink(z, self._width(delta, some)), share))

    def hold(self, share: float, delta: float) -> Held:
        """Hold all rows but a share of them near the kink."""
        reach = self.reach(share, delta)
        marks, counts = np.empty(self.n_rows, np.uint8), self._line_of(3, np.intp)
        upper, ridge = self._bounds()
        lines = self._lines(
            passes.mark_held, 2, self.scores, *self._targets(), upper, ridge, self._width(delta),
            reach, not np.isinf(upper).all(), self.values, self._scratch(), marks, counts,
        )  # fmt: skip
        constant, total = lines.sum(axis=0)
        v = np.append(self.features.combine(self._change), total)
        M = None
        if self._curved:
            bent = self._marked(marks, passes.ON_PARABOLA, counts[:, 1])
            M = self.features.moments(_of(1.0 / ridge, bent), bent)
        self._part = self._restricted(self._marked(marks, passes.NEAR, counts[:, 0]))
        self.center = None
        return Held(self._part, M, v, float(constant), int(counts[:, 2].sum()), reach)

    def take_back(self) -> None:
        """Take over β from the rows that were not held, and forget them."""
        part, self._part = self._part, None
        if part is None:
            return
        rows, values = part._rows, part.values
        assert rows is not None

        def put(some: slice) -> None:
            self.values[rows[some]] = values[some]

        in_slices(put, rows.size)

    def kink(self) -> Kink:
        """Find the rows on the kink."""
        return self._sum.look(self.values)

    def curvature(self, delta: float) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows on the kink."""
        costs, factor = self._costs(delta)
        if self._turn.size > 1:  # their ratios change with δ
            self._sum.forget()
        return self._sum.over(costs) * factor

    def solve_columns(self, delta: float, system: ColumnSystem, gradient: Floats) -> None:
        """Leave the system to the caller: the rows are on the host."""

    def kink_rows(self, delta: float) -> WeightedRows:
        """Return the rows on the kink, with their c_i."""
        rows = self._sum.rows()
        costs, factor = self._costs(delta)
        weights = np.broadcast_to(_of(costs, rows) * factor, rows.size)
        features = self.features if rows.size == self.n_rows else self.features.restrict(rows)
        return WeightedRows(features, weights)

    # Values --------------------------------------------------------------------------------

    def loss(self) -> float:
        """Return Σ h_i(z_i)."""
        arrays = (self.scores, *self._targets(), *self._bounds())
        return float(self._sums(passes.loss, 1, *arrays)[0])

    def class_costs(self) -> tuple[float, float]:
        """Return Σ u, or Σ 1/D where u = ∞, of the classes."""
        return self.problem.class_costs()

    def best_biases(self, b: float) -> tuple[float, float]:
        """Return the least and the largest t for which b + t is the best bias."""
        return best_biases(self.problem, self.scores, b)

    def dual(self, total: Floats | None = None, *, of_scores: bool = False) -> float:
        """Return D(α), after yᵀα = 0 is restored where the bias is free."""
        given = self._beta_of_scores() if of_scores and self._curved else self.values
        change = self._imbalance(given)
        out = np.empty(self.n_rows) if total is None and change.factor != 1.0 else NOTHING
        sums = self._balance(change, given, relative=total is not None, out=out)
        if total is None:
            w = self.features.combine(self._change)
            self._measured = out if out.size else given
        else:
            w = total[:-1]
            if change.factor != 1.0:
                w = w + self.features.combine(self._change)
            self._measured = None
        value = float(sums[0]) - 0.5 * float(w @ w) - 0.5 * float(sums[1])
        if self.problem.bias == "penalised":
            value -= 0.5 * float(sums[2]) ** 2
        return value

    def keep(self) -> None:
        """Remember the α that `dual` measured last."""
        # β itself goes on changing in place.
        beta = self._measured
        self._kept = copied(self.values) if beta is self.values else beta

    def alpha(self, *, kept: bool = False) -> Floats:
        """Return a copy of α with yᵀα = 0 where the bias is free, or of the one remembered."""
        if kept:
            out = np.zeros(self.n_rows) if self._kept is None else copied(self._kept)
        else:
            out = np.empty(self.n_rows)
            self._balance(self._imbalance(self.values), relative=False, out=out)
        if not self.problem.two_sided:
            self._everywhere(lambda some: np.abs(out[some], out=out[some]))
        return out

    # How it is done ------------------------------------------------------------------------

    def _bounds(self) -> tuple[Floats, Floats]:
        return self.problem.upper, self.problem.ridge

    def _targets(self) -> tuple[Floats, bool, float]:
        return self.problem.y, self.problem.two_sided, float(self.problem.epsilon)

    def _center(self) -> Floats:
        if self.center is None:
            self.recentre()
        assert self.center is not None
        return self.center

    def _scratch(self) -> Floats:
        """Return room for a number per row."""
        if self._change.size != self.n_rows:
            self._change = np.empty(self.n_rows)
        return self._change

    def _everywhere(self, work: Callable[[slice], Any]) -> None:
        in_slices(work, self.n_rows)

    def _line_of(self, n_sums: int, dtype: Any = np.float64) -> NDArray[Any]:
        """Return room for the sums of every part of the rows."""
        return np.zeros((part_count(self.n_rows, part_rows(self.n_rows)), n_sums), dtype)

    def _lines(self, region: Region[...], n_sums: int, *arguments: Any) -> Floats:
        """Return what a region adds up, one line for each part of the rows."""
        lines = self._line_of(n_sums)
        region(len(lines), part_rows(self.n_rows), *arguments, lines)
        return lines

    def _sums(self, region: Region[...], n_sums: int, *arguments: Any) -> Floats:
        """Return what a region adds up over all rows."""
        total: Floats = self._lines(region, n_sums, *arguments).sum(axis=0)
        return total

    def _marked(self, marks: Marks, mark: int, counts: Integers) -> Integers:
        """Return the rows that have a mark, given how many there are in each part."""
        first, rows = _places(counts)
        passes.marked(counts.size, part_rows(self.n_rows), marks, mark, first, rows)
        return rows

    def _imbalance(self, beta: Floats) -> _Balance:
        """Return how Σβ = 0 is restored: from β between its bounds if they are enough."""
        if self.problem.bias != "free":
            return _Balance()
        totals = self._sums(passes.sign_totals, 4, beta, self.problem.upper)
        excess = float(totals[0] - totals[1])
        if excess == 0.0:
            return _Balance()
        heavier = 0 if excess > 0.0 else 1
        below = bool(totals[2 + heavier] >= abs(excess))
        total = float(totals[2 + heavier if below else heavier])
        return _Balance(1.0 - 2.0 * heavier, 1.0 - abs(excess) / total, below)

    def _balance(
        self, change: _Balance, beta: Floats | None = None, *, relative: bool, out: Floats
    ) -> Floats:
        """Return Σ yβ − ε|β|, Σ Dβ² and Σ β of a β restored; write it to ``out``."""
        return self._sums(
            passes.balance, 3, self.values if beta is None else beta, self.problem.y,
            float(self.problem.epsilon), *self._bounds(), change.heavier, change.factor,
            change.below, relative, out, self._scratch(),
        )  # fmt: skip

    def _width(self, delta: float, some: slice = slice(None)) -> Floats:
        """Return how wide the kink is: between 0 and there rounding off bends the loss."""
        turn = self._turn if self._turn.size == 1 else self._turn[some]
        return np.where(np.isfinite(turn), turn + delta, 0.0)

    def _costs(self, delta: float) -> tuple[Floats, float]:
        """Return the curvatures 1/(D_i + δ/u_i) on the kink, apart from a factor of all."""
        upper, ridge = self._bounds()
        if self._turn.size == 1 and np.isfinite(self._turn[0]):
            return upper, 1.0 / (float(self._turn[0]) + delta)
        if self._turn.size == 1:
            return 1.0 / ridge, 1.0
        with np.errstate(divide="ignore"):
            return 1.0 / (ridge + delta / upper), 1.0

    def _beta_of_scores(self) -> Floats:
        """Return β where u = ∞ as the scores have it."""
        beta = np.zeros(self.n_rows)
        arrays = (self.scores, *self._targets(), np.zeros(1), *self._bounds(), 0.0)
        self._lines(passes.project, 4, *arrays, beta, self._scratch())
        infinite = np.isinf(self.problem.upper)
        return beta if infinite.all() else np.where(infinite, beta, self.values)

    def _problem_of(self, rows: Integers, times: float = 1.0) -> PrimalProblem:
        problem = self.problem
        upper, ridge = _of(problem.upper, rows), _of(problem.ridge, rows)
        return replace(problem, y=taken(problem.y, rows), upper=upper * times, ridge=ridge / times)

    def _restricted(self, rows: Integers) -> PrimalState:
        part = PrimalState(self._problem_of(rows), self.features.restrict(rows))
        part.scores, part.values = taken(self.scores, rows), taken(self.values, rows)
        part._rows = rows
        part.center = _of(self.center, rows) if self.center is not None else None
        return part


class _Balance(NamedTuple):
    """How Σβ = 0 is restored: β of the heavier sign, or what of it is |β| < u, times a factor."""

    heavier: float = 0.0
    factor: float = 1.0
    below: bool = False


class _KinkSum:
    """Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows on the kink, updated as they change."""

    def __init__(self, features: Features, upper: Floats) -> None:
        self.features, self.upper = features, upper
        self.marks: Marks = np.zeros(features.n_rows, dtype=np.uint8)
        self.step = part_rows(features.n_rows)
        # Rows on the kink, those that came and those that left, in every part of the rows.
        self.counts = np.zeros((part_count(features.n_rows, self.step), 3), dtype=np.intp)
        self.total: Floats | None = None
        self.subtracted = 0

    def forget(self) -> None:
        """Compute the sum anew next time."""
        self.total = None

    def look(self, beta: Floats) -> Kink:
        """Find the rows on the kink."""
        arrays = (beta, self.upper, self.marks, self.counts)
        passes.mark_kink(len(self.counts), self.step, *arrays)
        inside, came, left = (int(count) for count in self.counts.sum(axis=0))
        return Kink(inside, inside if self.total is None else min(inside, came + left))

    def rows(self) -> Integers:
        """Return the rows on the kink."""
        return nonzero(self.marks & passes.ON_KINK)

    def over(self, costs: Floats) -> Floats:
        """Return the sum over the rows on the kink."""
        inside, came, left = (int(count) for count in self.counts.sum(axis=0))
        self.subtracted += left
        # Rounding errors of what was subtracted stay: they must not outgrow what is there.
        too_many = self.subtracted > TUNING.most_subtracted * inside
        if self.total is None or came + left >= inside or too_many:
            rows, _ = self._changes(afresh=True)
            self.total, self.subtracted = self._sum(rows, costs), 0
        else:
            rows, others = self._changes(afresh=False)
            self.total = self.total + self._sum(rows, costs) - self._sum(others, costs)
        return self.total

    def _changes(self, *, afresh: bool) -> tuple[Integers, Integers]:
        """Return the rows to be added and subtracted; those on the kink count as in the sum."""
        first_came, came = _places(self.counts[:, 0 if afresh else 1])
        first_left, left = _places(self.counts[:, 2])
        places = (first_came, first_left, came, left)
        passes.kink_changes(len(self.counts), self.step, self.marks, afresh, *places)
        # Asked again without another look, nothing has changed.
        self.counts[:, 1:] = 0
        return came, left

    def _sum(self, rows: Integers, costs: Floats) -> Floats:
        return self.features.moments(_of(costs, rows), rows)


def _places(counts: Integers) -> tuple[Integers, Integers]:
    """Return where the list of every part begins in a list of all, and room for that."""
    ends = np.cumsum(counts)
    return ends - counts, np.empty(ends[-1], dtype=np.intp)


class WeightedRows:
    """Some rows, each with a weight."""

    def __init__(self, features: Features, weights: Floats) -> None:
        self.features, self.weights = features, weights
        self.n_rows = features.n_rows

    def squares(self) -> Floats:
        """Return Σ c_i (x_i∘x_i, 1)."""
        return np.append(self.features.squared_columns(self.weights), self.weights.sum())

    def product(self, p: Floats) -> Floats:
        """Return Σ c_i (x_i, 1) (x_i, 1)·p."""
        c = self.weights * self.features.scores(p[:-1], float(p[-1]))
        return np.append(self.features.combine(c), c.sum())

    def gram(self, factors: Floats | None = None) -> Floats:
        """Return XXᵀ + diag(1/c), columns multiplied by factors."""
        features = self.features if factors is None else self.features.scaled(factors)
        K = features.gram()
        K[np.diag_indices(self.n_rows)] += 1.0 / self.weights
        return K

    def scores(self, w: Floats) -> Floats:
        """Return Xw."""
        return self.features.scores(w)

    def combine(self, q: Floats) -> Floats:
        """Return Xᵀq."""
        return self.features.combine(q)


def _turn(problem: PrimalProblem) -> Floats:
    """Return where the parabola of a loss turns into a line, z = uD; one number where it is one."""
    upper, ridge = problem.upper, problem.ridge
    if not ridge.any():
        return np.zeros(1)
    if np.isinf(upper).all():
        return np.full(1, np.inf)
    turns = np.broadcast_to(problem.turns, problem.y.shape)
    counted = turns[turns > 0.0]
    if np.ptp(counted) <= TUNING.same_turn * counted.max():
        return counted[:1]
    return turns


def _of(values: Floats, rows: Integers) -> Floats:
    """Return the values of some rows; a single value is that of all."""
    return values if values.size == 1 else taken(values, rows)


def _off_kink(z: Floats, width: Floats) -> Floats:
    """Return how far z is from 0 ≤ z ≤ width."""
    distance: Floats = np.abs(z - 0.5 * width) - 0.5 * width
    return distance
