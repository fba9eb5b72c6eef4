"""The state of a linear machine: scores, α and its centre, as NumPy arrays.

Compiled passes over the rows, shared between the cores; see `engines.base.PrimalState` for what
each operation means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ...problems.best_bias import balanced, best_biases
from ...problems.losses import loss_value, proximal_alpha
from ...runtime.row_access import compiled
from ...runtime.threads import in_parallel
from ..linear import Held, Kink, Projection

if TYPE_CHECKING:
    from .features import Features

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tuning:
    """Sizes of passes over the rows."""

    part_rows: int = 1 << 19  # rows in one core's part of a pass
    quantile_rows: int = 10_000  # rows that a quantile is estimated from
    most_subtracted: int = 4  # rows subtracted from a sum, relative to those in it
    same_turn: float = 1e-9  # relative spread of the u_i D_i that are one number


TUNING = Tuning()


class PrimalState:
    """Scores, α and α⁰ of the rows of X.

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
        self.values = np.zeros(n)  # α
        # α⁰: one number per row, a single one for all, or None where it is α.
        self.center: Floats | None = np.zeros(1)
        self._curved = problem.curved
        self._turn = _turn(problem)
        self._sum = _KinkSum(features)
        self._inside: Mask = np.zeros(n, dtype=bool)
        # The changes of α, and in their place the scores of a step.
        self._change: Floats = np.empty(0)
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
            self.scores.fill(b)

    def shift(self, t: float) -> None:
        """Add t to the bias, and to all scores."""
        self.scores += t

    def start(self, alpha: Floats) -> None:
        """Begin with α, put into its bounds."""
        self.values = np.clip(alpha, 0.0, self.problem.box)
        self.center = None

    def sample(self, rows: Integers, times: float) -> PrimalState | None:
        """Return the state of some rows, each of which costs ``times`` as much."""
        problem = self._problem_of(rows, times)
        if abs(problem.y.sum()) == rows.size:
            return None
        return PrimalState(problem, self.features.restrict(rows))

    def total(self) -> Floats:
        """Return Σ α_i y_i (x_i, 1)."""
        return self._total(self.values * self.problem.y)

    def recentre(self) -> None:
        """Make α⁰ the α now."""
        self.center = self.values.copy()

    # Newton's method -----------------------------------------------------------------------

    def project(self, delta: float) -> Projection:
        """Make α that of the scores."""
        if self._change.size != self.n_rows:
            self._change = np.empty(self.n_rows)
        arrays = (self.scores, self.problem.y, self._center(), *self._bounds())
        done = self._in_parts(_project, *arrays, delta, self.values, self._change)
        slack, loss, errors = np.sum(done, axis=0)
        return Projection(float(slack), float(loss), int(errors), self._total(self._change))

    def aim(self, step: Floats) -> None:
        """Compute the scores of a step."""
        self.features.scores(step[:-1], float(step[-1]), out=self._change)

    def slope(self, t: float, delta: float) -> float:
        """Return Σ α_i y_i (x_i, 1)·step after t steps."""
        arrays = (self.scores, self._change, self.problem.y, self._center(), *self._bounds())
        return float(sum(self._in_parts(_slope, *arrays, delta, t)))

    def advance(self, t: float) -> tuple[float, float]:
        """Go t steps; return the largest change of a score and the largest score."""
        along = self._change
        along *= t
        self.scores += along
        moved = max(along.max(), -along.min())
        return float(moved), float(max(self.scores.max(), -self.scores.min()))

    def reach(self, share: float, delta: float) -> float:
        """Return about how far z is from the kink at most, of a share of the rows."""
        some = slice(None, None, max(1, self.n_rows // TUNING.quantile_rows))
        z = 1.0 - self.problem.y[some] * self.scores[some]
        return _share_of(_off_kink(z, self._width(delta, some)), share)

    def hold(self, share: float, delta: float) -> Held:
        """Hold all rows but a share of them near the kink."""
        z = np.multiply(self.problem.y, self.scores)
        np.subtract(1.0, z, out=z)
        distance = _off_kink(z, self._width(delta))
        reach = _share_of(distance, share)
        near = distance <= reach
        del distance
        rows = np.flatnonzero(near)
        sloping = z > 0.0
        sloping[rows] = False
        errors = int(np.count_nonzero(sloping & (z > 1.0)))
        M, v, constant = self._quadratic(near, sloping, z)
        del z, near, sloping
        self._part = self._restricted(rows)
        self.center = None
        return Held(self._part, M, v, constant, errors, reach)

    def take_back(self) -> None:
        """Take over α from the rows that were not held, and forget them."""
        part, self._part = self._part, None
        if part is not None:
            assert part._rows is not None
            self.values[part._rows] = part.values

    def kink(self) -> Kink:
        """Find the rows on the kink."""
        self._inside = (self.values > 0.0) & (self.values < self.problem.upper)
        return Kink(int(np.count_nonzero(self._inside)), self._sum.changes(self._inside))

    def curvature(self, delta: float) -> Floats:
        """Return Σ c_i (x_i, 1)(x_i, 1)ᵀ over the rows on the kink."""
        costs, factor = self._costs(delta)
        if self._turn.size > 1:  # their ratios change with δ
            self._sum.forget()
        return self._sum.over(self._inside, costs) * factor

    def kink_rows(self, delta: float) -> WeightedRows:
        """Return the rows on the kink, with their c_i."""
        rows = np.flatnonzero(self._inside)
        costs, factor = self._costs(delta)
        weights = np.broadcast_to(_of(costs, rows) * factor, rows.size)
        return WeightedRows(self.features.restrict(rows), weights)

    # Values --------------------------------------------------------------------------------

    def loss(self) -> float:
        """Return Σ h_i(z_i)."""
        return float(sum(self._in_parts(_loss, self.scores, self.problem.y, *self._bounds())))

    def best_biases(self, b: float) -> tuple[float, float]:
        """Return the least and the largest t for which b + t is the best bias."""
        return best_biases(self.problem, self.scores, b)

    def dual(self, total: Floats | None = None, *, of_scores: bool = False) -> float:
        """Return D(α), after yᵀα = 0 is restored where the bias is free."""
        problem, given = self.problem, self.values
        if of_scores and self._curved:
            given = self._alpha_of_scores()
        alpha = balanced(problem, given) if problem.bias == "free" else given
        signed = alpha * problem.y
        if total is None:
            w = self.features.combine(signed)
        elif alpha is not given:
            w = total[:-1] + self.features.combine(signed - given * problem.y)
        else:
            w = total[:-1]
        value = float(signed @ problem.y) - 0.5 * float(w @ w)
        if problem.bias == "penalised":
            value -= 0.5 * float(signed.sum()) ** 2
        if problem.ridge.any():
            ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
            value -= 0.5 * _weighted_sum(ridge, np.square(alpha, out=signed))
        self._measured = alpha if total is None else None
        return value

    def keep(self) -> None:
        """Remember the α that `dual` measured last."""
        # α itself goes on changing in place.
        alpha = self._measured
        self._kept = self.values.copy() if alpha is self.values else alpha

    def alpha(self, *, kept: bool = False) -> Floats:
        """Return a copy of α with yᵀα = 0 where the bias is free, or of the one remembered."""
        if kept:
            return np.zeros(self.n_rows) if self._kept is None else self._kept.copy()
        alpha = self.values.copy()
        return balanced(self.problem, alpha) if self.problem.bias == "free" else alpha

    # How it is done ------------------------------------------------------------------------

    def _bounds(self) -> tuple[Floats, Floats]:
        return self.problem.upper, self.problem.ridge

    def _center(self) -> Floats:
        if self.center is None:
            self.center = self.values.copy()
        return self.center

    def _total(self, signed: Floats) -> Floats:
        return np.append(self.features.combine(signed), signed.sum())

    def _in_parts(self, kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return a compiled kernel's sums over parts of the rows."""
        n, step = self.n_rows, TUNING.part_rows
        return in_parallel(
            lambda k, stop: kernel(*arguments, k, min(k + step, n)), range(0, max(n, 1), step)
        )

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

    def _alpha_of_scores(self) -> Floats:
        """Return α where u = ∞ as the scores have it."""
        alpha, change = np.zeros(self.n_rows), np.empty(self.n_rows)
        arrays = (self.scores, self.problem.y, np.zeros(1), *self._bounds())
        self._in_parts(_project, *arrays, 0.0, alpha, change)
        infinite = np.isinf(self.problem.upper)
        return alpha if infinite.all() else np.where(infinite, alpha, self.values)

    def _problem_of(self, rows: Integers, times: float = 1.0) -> PrimalProblem:
        problem = self.problem
        upper, ridge = _of(problem.upper, rows), _of(problem.ridge, rows)
        return replace(problem, y=problem.y[rows], upper=upper * times, ridge=ridge / times)

    def _restricted(self, rows: Integers) -> PrimalState:
        part = PrimalState(self._problem_of(rows), self.features.restrict(rows))
        part.scores, part.values, part._rows = self.scores[rows], self.values[rows], rows
        part.center = _of(self.center, rows) if self.center is not None else None
        return part

    def _quadratic(
        self, near: Mask, sloping: Mask, scratch: Floats
    ) -> tuple[Floats | None, Floats, float]:
        """Return M, v and the constant of the rows held; α of those on a line goes to its bound."""
        problem, (upper, ridge) = self.problem, self._bounds()
        signed, M, constant = scratch, None, 0.0
        signed[:] = 0.0
        if not np.isinf(upper).all():
            line = sloping & np.isfinite(upper) if self._curved else sloping
            self.values[~near] = 0.0
            self.values[line] = _of(upper, line)
            np.multiply(self.values, problem.y, out=signed, where=line)
            constant = float(signed @ problem.y)
            if ridge.any():
                finite = np.where(np.isfinite(ridge), ridge, 0.0)
                constant -= 0.5 * _weighted_sum(finite, signed * signed)
        if self._curved:
            rows = np.flatnonzero(sloping & np.isinf(upper))
            costs = _of(1.0 / ridge, rows)
            M = self.features.moments(costs, rows)
            signed[rows] = costs * problem.y[rows]
            constant += 0.5 * float(np.sum(np.broadcast_to(costs, rows.shape)))
        return M, self._total(signed), constant


class _KinkSum:
    """Σ c_i (x_i, 1)(x_i, 1)ᵀ over a set of rows, updated as the set changes."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.inside: Mask = np.zeros(features.n_rows, dtype=bool)
        self.total: Floats | None = None
        self.subtracted = 0

    def forget(self) -> None:
        """Compute the sum anew next time."""
        self.total = None

    def changes(self, inside: Mask) -> int:
        """Return how many rows the sum over a set would read."""
        whole = int(np.count_nonzero(inside))
        if self.total is None:
            return whole
        return min(whole, int(np.count_nonzero(inside != self.inside)))

    def over(self, inside: Mask, costs: Floats) -> Floats:
        """Return the sum over a set."""
        left = self.inside & ~inside
        self.subtracted += int(np.count_nonzero(left))
        size = int(np.count_nonzero(inside))
        # Rounding errors of what was subtracted stay: they must not outgrow what is there.
        too_many = self.subtracted > TUNING.most_subtracted * size
        if self.total is None or self.changes(inside) >= size or too_many:
            self.total, self.subtracted = self._sum(inside, costs), 0
        else:
            gained = self._sum(inside & ~self.inside, costs)
            self.total = self.total + gained - self._sum(left, costs)
        self.inside = inside
        return self.total

    def _sum(self, chosen: Mask, costs: Floats) -> Floats:
        rows = np.flatnonzero(chosen)
        return self.features.moments(_of(costs, rows), rows)


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


def _of(values: Floats, rows: Integers | Mask) -> Floats:
    """Return the values of some rows; a single value is that of all."""
    return values if values.size == 1 else values[rows]


def _weighted_sum(weights: Floats, values: Floats) -> float:
    if weights.size == 1:
        return float(weights[0]) * float(values.sum())
    return float(weights @ values)


def _off_kink(z: Floats, width: Floats) -> Floats:
    """Return how far z is from 0 ≤ z ≤ width."""
    distance = z - 0.5 * width
    np.abs(distance, out=distance)
    distance -= 0.5 * width
    return distance


def _share_of(distances: Floats, share: float) -> float:
    """Return the distance within which a share of the rows lies."""
    some = distances[:: max(1, distances.size // TUNING.quantile_rows)]
    return float(np.quantile(some, share))


_proximal_alpha = compiled(proximal_alpha)
_loss_value = compiled(loss_value)


@compiled
def _project(scores, y, center, upper, ridge, delta, alpha, change, first, last):
    """Fill in α, and y times its change; return the slack, the loss and the number of errors."""
    slack, losses, errors = 0.0, 0.0, 0.0
    u, D = upper[0], ridge[0]
    for i in range(first, last):
        if upper.size > 1:
            u = upper[i]
        if ridge.size > 1:
            D = ridge[i]
        z = 1.0 - y[i] * scores[i]
        if z > 1.0:
            errors += 1.0
        before = center[i] if center.size > 1 else center[0]
        a = _proximal_alpha(z, before, u, D, delta)
        loss = _loss_value(z, u, D)
        # Elsewhere α is that of the loss itself.
        finite = D if np.inf > D else 0.0
        slack += loss - a * (z - 0.5 * finite * a) if u < np.inf else 0.0
        losses += loss
        change[i] = (a - alpha[i]) * y[i]
        alpha[i] = a
    return slack, losses, errors


@compiled
def _slope(scores, along, y, center, upper, ridge, delta, t, first, last):
    """Return Σ α_i y_i p_i at the scores s + tp."""
    total = 0.0
    u, D = upper[0], ridge[0]
    for i in range(first, last):
        if upper.size > 1:
            u = upper[i]
        if ridge.size > 1:
            D = ridge[i]
        z = 1.0 - y[i] * (scores[i] + t * along[i])
        before = center[i] if center.size > 1 else center[0]
        total += _proximal_alpha(z, before, u, D, delta) * y[i] * along[i]
    return total


@compiled
def _loss(scores, y, upper, ridge, first, last):
    """Return Σ h_i(z_i)."""
    total = 0.0
    u, D = upper[0], ridge[0]
    for i in range(first, last):
        if upper.size > 1:
            u = upper[i]
        if ridge.size > 1:
            D = ridge[i]
        total += _loss_value(1.0 - y[i] * scores[i], u, D)
    return total
