"""Coordinate descent on β: compiled visits of one row after the other (`DescentState`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ...problems.losses import loss_value
from ...runtime.row_access import compiled, row_add, row_dot, row_prefetch
from ..linear import Visits
from .primal_state import PrimalState

if TYPE_CHECKING:
    from .features import Features


@dataclass(frozen=True)
class Tuning:
    """Sizes of passes over the rows."""

    slice_numbers: int = 1 << 24  # stored numbers that are visited between two chances to stop


TUNING = Tuning()
# No row is left out.
NOWHERE = (np.inf, -np.inf)


class DescentState:
    """β, w = Σ β_i x_i and b as they move.

    Parameters
    ----------
    problem : PrimalProblem
    features : Features
        Rows in one array or CSR matrix.
    """

    def __init__(self, problem: PrimalProblem, features: Features) -> None:
        self.state = PrimalState(problem, features)
        self.problem, self.features = problem, features
        self.w, self.b = np.zeros(features.n_columns), 0.0
        self._rows = features.compiled_rows()
        self._squares = features.squared_lengths()
        # Which samples were on the wrong side when they were last visited.
        self._wrong: NDArray[np.bool_] = np.zeros(features.n_rows, dtype=np.bool_)
        self._slice = max(1, int(TUNING.slice_numbers / (features.stored_per_row + 1.0)))
        self.penalty = 0.0
        self.work = 0.0

    def start(self, alpha: Floats) -> None:
        """Begin with α from the host, put into its bounds, and its w."""
        self.state.start(alpha)
        self.w = self.features.combine(self.state.values)

    def mean_square(self) -> float:
        """Return the mean ‖x_i‖²."""
        return float(self._squares.mean())

    def imbalance(self) -> float:
        """Return Σ β."""
        return float(self.state.values.sum())

    def errors(self) -> int:
        """Return how many rows were on the wrong side when they were last visited."""
        return int(self._wrong.sum())

    def dual_value(self) -> float:
        """Return D(α), without the term of the multiplier of a free bias."""
        beta, problem = self.state.values, self.problem
        ridge, value = problem.ridge, float(problem.y @ beta) - 0.5 * float(self.w @ self.w)
        if problem.epsilon:
            value -= problem.epsilon * float(np.abs(beta).sum())
        if self.problem.bias == "penalised":
            value -= 0.5 * self.imbalance() ** 2
        if ridge.any():
            value -= 0.5 * float(np.sum(np.where(np.isfinite(ridge), ridge, 0.0) * beta**2))
        return value

    def alpha(self) -> Floats:
        """Return a copy of α, as it is."""
        beta = self.state.values
        return beta.copy() if self.problem.two_sided else np.abs(beta)

    def visit(self, order: Integers, left_out: tuple[float, float]) -> Visits:
        """Visit rows in turn, and move their α, w and b; ``order`` is overwritten."""
        kept, found = 0, np.array([-np.inf, np.inf, 0.0])
        self.work += order.size * self.features.stored_per_row
        for first in range(0, order.size, self._slice):
            part = order[first : first + self._slice]
            n_kept, self.b = _visit(*self._arguments(part, left_out, found))
            order[kept : kept + n_kept] = part[:n_kept]
            kept += n_kept
        return Visits(order[:kept], *(float(value) for value in found))

    def visit_again(self, rows: Integers, enough: float, times: int) -> None:
        """Visit the same rows until their α violate by less than ``enough``, or so often."""
        at_once = min(times, max(1, self._slice // rows.size))
        for _ in range(0, times, at_once):
            found = np.zeros(3)
            self.b, violation, done = _visit_again(
                at_once, enough, *self._arguments(rows, NOWHERE, found)
            )
            self.work += done * rows.size * self.features.stored_per_row
            if violation < enough:
                break

    def free(self, rows: Integers) -> Integers:
        """Return those of some rows with 0 < α < u."""
        size, upper = np.abs(self.state.values[rows]), self.problem.upper
        return rows[(size > 0.0) & (size < (upper if upper.size == 1 else upper[rows]))]

    def mark_errors(self) -> None:
        """Count as errors what the scores of the state say."""
        self._wrong = self.problem.errors(self.state.scores)

    def settle(self, radius: float, doubt: float) -> Integers:
        """Put β to its bound where ‖w − w*‖ ≤ ``radius`` makes that certain; return other rows."""
        problem = self.problem
        lengths = np.sqrt(self._squares)
        reach = lengths * radius
        if problem.bias == "penalised":
            reach = np.sqrt(self._squares + 1.0) * radius
        elif problem.bias == "free":
            reach += lengths.max() * radius + doubt
        z = problem.slacks(self.state.scores)
        without = z < -reach
        # Beyond z = uD the loss is a line.
        certain = without | ((z > reach + problem.turns) & np.isfinite(problem.upper))
        self._fix(certain, without)
        return np.flatnonzero(~certain)

    def _fix(self, certain: NDArray[np.bool_], without: NDArray[np.bool_]) -> None:
        beta, problem = self.state.values, self.problem
        sides = np.sign(problem.y - self.state.scores) if problem.two_sided else problem.y
        bound = np.where(without, 0.0, sides * problem.upper)
        moved = np.flatnonzero(certain & (beta != bound))
        if moved.size:
            change = np.zeros_like(beta)
            change[moved] = (bound - beta)[moved]
            beta[moved] = bound[moved]
            self.w += self.features.combine(change)

    def _arguments(
        self, order: Integers, left_out: tuple[float, float], found: Floats
    ) -> tuple[Any, ...]:
        """Return what the compiled visits share."""
        problem = self.problem
        return (
            self._rows, problem.y, problem.two_sided, float(problem.epsilon), problem.upper,
            problem.ridge, self._squares, self.penalty, order, self.state.values, self.w,
            np.array(left_out), self.b, found, self._wrong,
        )  # fmt: skip


_loss_value = compiled(loss_value)


@compiled
def _visit(
    rows,
    y,
    two_sided,
    epsilon,
    upper,
    ridge,
    squares,
    rho,
    order,
    beta,
    w,
    bounds,
    b,
    found,
    wrong,
):
    """Visit samples in turn; return how many remain, at the front of ``order``, and b.

    A visit sees α = |β| of the side on which β is, or would be if it were not 0.
    """
    kept, gap = 0, 0.0
    least_error = 0.0 if two_sided else 1.0
    u, D = upper[0], ridge[0]
    highest, lowest = found[0], found[1]
    for k in range(order.size):
        i = order[k]
        if k + 2 < order.size:
            row_prefetch(rows, order[k + 2])
        if upper.size > 1:
            u = upper[i]
        if ridge.size > 1:
            D = ridge[i]
        r = y[i] - (row_dot(rows, i, w) + b)
        side, alpha = y[i], abs(beta[i])
        if two_sided:
            side = 1.0 if (r if alpha == 0.0 else beta[i]) > 0.0 else -1.0
        slope = epsilon - side * r
        z = abs(r) - epsilon if two_sided else -slope
        wrong[i] = z > least_error
        if np.isinf(D) or u == 0.0:
            continue
        gap += _loss_value(z, u, D) + alpha * (slope + 0.5 * D * alpha)
        slope += D * alpha
        projected = slope
        if alpha <= 0.0:
            if slope > bounds[0]:
                continue
            projected = min(slope, 0.0)
        elif alpha >= u:
            if slope < bounds[1]:
                continue
            projected = max(slope, 0.0)
        order[kept] = i
        kept += 1
        highest, lowest = max(highest, projected), min(lowest, projected)
        curvature = squares[i] + rho + D
        if projected != 0.0 and curvature > 0.0:
            after = alpha - slope / curvature
            if after < 0.0:
                # On to the other side, where the loss has two and ε is not in between.
                after = min(after + 2.0 * epsilon / curvature, 0.0) if two_sided else 0.0
            after = side * min(max(after, -u), u)
            step = after - beta[i]
            beta[i] = after
            if step != 0.0:
                row_add(rows, i, w, step)
                b += rho * step
    found[0], found[1] = highest, lowest
    found[2] += gap
    return kept, b


@compiled
def _visit_again(
    times,
    enough,
    rows,
    y,
    two_sided,
    epsilon,
    upper,
    ridge,
    squares,
    rho,
    order,
    beta,
    w,
    bounds,
    b,
    found,
    wrong,
):
    """Visit the same samples until they are near enough; return b, how near, and how often."""
    violation, done = np.inf, 0
    while done < times:
        done += 1
        found[0], found[1] = -np.inf, np.inf
        _, b = _visit(
            rows,
            y,
            two_sided,
            epsilon,
            upper,
            ridge,
            squares,
            rho,
            order,
            beta,
            w,
            bounds,
            b,
            found,
            wrong,
        )
        violation = found[0] - found[1]
        if violation < enough:
            break
    return b, violation, done
