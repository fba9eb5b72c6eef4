"""Dual coordinate descent: the linear machine for sparse X and more features than samples.

Given: X, y, u, D of a `PrimalProblem`. Wanted: w = Σ α_i y_i x_i and b.

One α_i at a time goes to the minimum of ½‖w‖² + ½Σ D_i α_i² − Σ α_i,

    α_i ← clip(α_i − G_i/(‖x_i‖² + D_i), 0, u_i),   G_i = y_i (w·x_i + b) − 1 + D_i α_i,

and w moves along. A free bias is the multiplier b of yᵀα = 0: the term ½ρ(yᵀα)² of the augmented
Lagrangian makes b move with every α, as the weight of one more feature of value √ρ would, and after
every pass its center moves to where b is. A penalised bias is the multiplier of yᵀα = b with ρ ≤ 1:
at ρ = 1 it is yᵀα at all times, the weight of one more feature of value 1, and beyond passes would
overshoot.

Samples whose α is at a bound, and will stay there as far as the last pass can tell, are left out
of the next ones; sweeps over the α between their bounds, which are few, come after each pass.
Where that still crawls (large C), `SemismoothNewton` goes on from there.

References: Hsieh, Chang, Lin, Keerthi, Sundararajan, *ICML* (2008); Fercoq, Gramfort, Salmon,
*ICML* (2015), for the gap-safe rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...runtime.row_access import compiled, row_add, row_dot, row_prefetch
from ...solution import Solution, Status
from .ledger import Ledger, Plane, best_biases, of_some, squared, start_of
from .newton import SemismoothNewton, on_kink, step_work

# Consecutive rows that keep together when their order is shuffled.
BLOCK = 8
# ρ, relative to the mean ‖x‖²; of a penalised bias at most 1.
PENALTY = 0.05
# Sweeps over the free α after a pass, at most, and how far below the pass's their violation falls.
SWEEPS, FALL = 20, 0.1
# Passes between two looks at the gap, at most.
LOOK = 10
# A gap from which Newton's method had better begin by itself.
FAR = 0.05
# What Newton's method is expected to take: steps, and its multiplications in the time of a visited
# number of X.
STEPS, FASTER = 25, 8.0
# What is left of the gap that a pass meets once it is over, as a first guess.
LEFT = 0.5
# Stored numbers that are visited between two chances to stop.
SLICE = 1 << 24


@dataclass(frozen=True)
class CoordinateDescent:
    """The solver of the linear machine for sparse X.

    Parameters
    ----------
    features : Features
        The engine of X.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of passes, and seconds.
    seed : int
        Of the order of the samples.
    """

    features: Any
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it."""
        ledger = Ledger(problem, self.features)
        descent = _Descent(problem, self.features, start, np.random.RandomState(self.seed))
        n_iter, looked, left_over = 0, 0, LEFT
        judged, gap_then, work_then = 0, np.inf, 0.0
        while True:
            n_iter += 1
            descent.one_pass()
            status = self.limits.reached(n_iter, progress)
            looks = left_over * descent.gap <= self.tol or n_iter - looked >= LOOK
            looks = looks or status is not None
            if descent.tell(progress, ledger if looks else None):
                status = Status.STOPPED
            if not (looks or status):
                continue
            if not looks:
                descent.look(ledger)
                progress.measured(ledger.primal, ledger.dual)
            if ledger.gap <= self.tol:
                return ledger.solution(Status.CONVERGED, n_iter, progress)
            if status:
                return ledger.solution(status, n_iter, progress)
            met = descent.gap if 0.0 < descent.gap < np.inf else 1.0
            looked, left_over = n_iter, min(1.0, ledger.gap / met)
            if n_iter - judged >= LOOK:
                left = _passes_left(gap_then, ledger.gap, self.tol)
                if left * (descent.work - work_then) > descent.newton_work():
                    return self._polished(problem, ledger, n_iter, progress)
                judged, gap_then, work_then = n_iter, ledger.gap, descent.work

    def _polished(
        self, problem: PrimalProblem, ledger: Ledger, n_iter: int, progress: Progress
    ) -> Solution:
        """Let Newton's method go on with the free α."""
        limits = self.limits
        progress.unit = "iteration"  # passes, then steps
        if limits.iterations is not None:
            limits = replace(limits, iterations=limits.iterations - n_iter)
        start = None if ledger.gap > FAR else replace(ledger.plane, alpha=ledger.alpha)
        solution = SemismoothNewton(self.features, self.tol, limits).solve(problem, start, progress)
        return replace(solution, n_iter=n_iter + solution.n_iter)


def _passes_left(before: float, now: float, tol: float) -> float:
    """Return how many times as far as from one gap to another it is to ``tol``; 0 if not known."""
    if not np.isfinite(before):
        return 0.0
    fall = float(np.log(before / now))
    return float(np.log(now / tol)) / fall if fall > 0.0 else np.inf


def _penalty(bias: str, squares: Floats) -> float:
    """Return ρ: what b moves by when an α moves by 1."""
    if bias == "none":
        return 0.0
    rho = PENALTY * float(squares.mean()) or 1.0
    return min(rho, 1.0) if bias == "penalised" else rho


class _Descent:
    """α, w and b on their way, and the samples that are still visited."""

    def __init__(
        self,
        problem: PrimalProblem,
        features: Any,
        start: Plane | None,
        rng: np.random.RandomState,
    ) -> None:
        self.problem, self.features, self.rng = problem, features, rng
        self.rows = features.rows
        self.squares = features.squared_lengths()
        self.rho = _penalty(problem.bias, self.squares)
        self.alpha, self.b = np.zeros(features.n_rows), 0.0
        self.w = np.zeros(features.n_columns)
        if start is not None:
            start = start_of(problem, start)
            self.b = start.b
            if start.alpha is not None:
                self.alpha = start.alpha
                self.w = features.combine(self.alpha * problem.y)
        # Whether b is yᵀα, and nothing else.
        self.follows = problem.bias == "penalised" and self.rho == 1.0
        if self.follows:
            self.b = float(self.alpha @ problem.y)
        self.visited = self.open = np.arange(features.n_rows)
        # G beyond which a sample with α at 0, or at u, is left out.
        self.bounds = np.array([np.inf, -np.inf])
        # What the last pass met: the gap Σ h − (αz − ½Dα²), relative to P, is summed on the way.
        self.violation, self.gap = np.inf, np.inf
        # Which samples were on the wrong side when they were last visited.
        self.wrong = np.zeros(features.n_rows, dtype=np.bool_)
        # Numbers of X visited so far.
        self.work = 0.0
        self.slice = max(1, int(SLICE / (features.mean_stored + 1.0)))

    @property
    def dual_value(self) -> float:
        """D(α), without the term of the multiplier."""
        value = float(self.alpha.sum()) - 0.5 * float(self.w @ self.w)
        if self.problem.bias == "penalised":
            value -= 0.5 * float(self.alpha @ self.problem.y) ** 2
        ridge = self.problem.ridge
        if ridge.any():
            value -= 0.5 * float(np.sum(np.where(np.isfinite(ridge), ridge, 0.0) * self.alpha**2))
        return value

    def tell(self, progress: Progress, ledger: Ledger | None) -> bool:
        """Report a pass, after a look at the gap where there is a ledger; return whether to stop.

        P is known after a look only, as D is of a free bias: yᵀα is 0 in the end, not before.
        """
        value, primal, show = self.dual_value, np.nan, self.snapshot
        dual = value if self.problem.bias != "free" else np.nan
        if ledger is not None:
            self.look(ledger)
            primal, dual, show = ledger.primal, ledger.dual, ledger.snapshot
        progress.unit = "pass"
        return progress.iteration(
            value, int(self.wrong.sum()), self.violation, show, primal=primal, dual=dual,
            exact=False,
        )  # fmt: skip

    def one_pass(self) -> None:
        """Visit the samples that are not left out, then the free α again and again."""
        order = self._shuffled(self.visited)
        self.visited, (highest, lowest, gap) = self._sweep(order, self.bounds)
        self.violation = highest - lowest
        primal = self.dual_value + gap
        self.gap = gap / primal if primal > 0.0 else np.inf
        self.bounds = np.array(
            [highest if highest > 0.0 else np.inf, lowest if lowest < 0.0 else -np.inf]
        )
        alpha = self.alpha[self.visited]
        free = self.visited[(alpha > 0.0) & (alpha < of_some(self.problem.upper, self.visited))]
        self._again(free, FALL * self.violation)
        if self.problem.bias != "none":
            pull = self.b if self.problem.bias == "penalised" else 0.0
            self.b += self.rho * (float(self.alpha @ self.problem.y) - pull)

    def _again(self, free: Integers, enough: float) -> None:
        """Sweep over the free α until they violate their conditions by less, or often enough."""
        nobody = np.array([np.inf, -np.inf])
        if not free.size:
            return
        # Where most α are free, sweeps over them are passes.
        sweeps = min(SWEEPS, 2 * self.open.size // free.size)
        at_once = min(sweeps, max(1, self.slice // free.size))
        for _ in range(0, sweeps, at_once):
            found = np.zeros(3)
            self.b, violation, done = _visit_again(
                at_once, enough, *self._arguments(free, nobody, found)
            )
            self.work += done * free.size * self.features.mean_stored
            if violation < enough:
                break

    def _arguments(self, order: Integers, bounds: Floats, found: Floats) -> tuple[Any, ...]:
        """Return what the compiled visits share."""
        problem = self.problem
        return (
            self.rows, problem.y, problem.upper, problem.ridge, self.squares, self.rho, order,
            self.alpha, self.w, bounds, self.b, found, self.wrong,
        )  # fmt: skip

    def _sweep(self, order: Integers, bounds: Floats) -> tuple[Integers, Floats]:
        """Visit samples in turn; return those that are not left out, and what was found."""
        kept, found = 0, np.array([-np.inf, np.inf, 0.0])
        self.work += order.size * self.features.mean_stored
        for first in range(0, order.size, self.slice):
            part = order[first : first + self.slice]
            n_kept, self.b = _visit(*self._arguments(part, bounds, found))
            order[kept : kept + n_kept] = part[:n_kept]
            kept += n_kept
        return order[:kept], found

    def _shuffled(self, rows: Integers) -> Integers:
        """Return the rows in another order, neighbours still together: the memory likes it."""
        n_blocks = rows.size // BLOCK
        blocks = rows[: n_blocks * BLOCK].reshape(n_blocks, BLOCK)
        shuffled = blocks[self.rng.permutation(n_blocks)].ravel()
        return np.concatenate([shuffled, rows[n_blocks * BLOCK :]])

    def look(self, ledger: Ledger) -> None:
        """Measure the gap, and begin anew with all samples whose α is not certain."""
        scores = self.features.scores(self.w, self.b)
        low, high = (
            best_biases(self.problem, scores, self.b) if self.problem.bias != "none" else (0.0, 0.0)
        )
        # The bias that suits w best is ahead of that which the α have led to.
        shift = min(max(0.0, low), high)
        scores += shift
        plane = Plane(self.w.copy(), self.b + shift)
        if not self.follows:
            self.b = plane.b
        self.wrong = self.problem.y * scores < 0.0
        primal = ledger.enter(plane, scores, self.alpha)
        self._settle(scores, high - low, primal - ledger.dual)
        self.visited = self.open
        self.bounds = np.array([np.inf, -np.inf])

    def _settle(self, scores: Floats, doubt: float, gap: float) -> None:
        """Leave out for good the samples whose α is at its bound in every optimum.

        P is strongly convex in w: ‖w − w*‖ ≤ r = √(2(P(w) − D)), so y g moves by ‖x‖r, and with b
        by Rr more, R = max‖x‖, beyond the interval of the best b for w: as the scores move, so at
        most do its ends, which are weighted quantiles of y − w·x, or means of some of them.
        """
        problem = self.problem
        radius = np.sqrt(2.0 * max(gap, 0.0))
        lengths = np.sqrt(self.squares)
        reach = lengths * radius
        if problem.bias == "penalised":
            reach = np.sqrt(self.squares + 1.0) * radius
        elif problem.bias == "free":
            reach += lengths.max() * radius + doubt
        slopes = problem.y * scores - 1.0
        above = slopes > reach
        certain = above | ((slopes < -reach) & np.isfinite(problem.upper))
        self.open = np.flatnonzero(~certain)
        self._fix(certain, above)

    def _fix(self, certain: Any, above: Any) -> None:
        """Put what is certain at its bound."""
        upper = np.broadcast_to(self.problem.upper, certain.shape)
        target = np.where(above, 0.0, upper)
        moved = np.flatnonzero(certain & (self.alpha != target))
        if moved.size:
            change = np.zeros_like(self.alpha)
            change[moved] = (target - self.alpha)[moved] * self.problem.y[moved]
            self.alpha[moved] = target[moved]
            self.w += self.features.combine(change)
            if self.follows:
                self.b = float(self.alpha @ self.problem.y)

    def newton_work(self) -> float:
        """Return about what Newton's method would take from here, in visited numbers.

        Counted, not timed: the answer must not depend on what else the machine does.
        """
        n_free = int(np.count_nonzero(on_kink(self.alpha, self.problem.upper)))
        if squared(self.problem) is None:
            # No more of them than that are on the kink of a hinge, in the end.
            n_free = min(n_free, 3 * self.features.n_columns)
        return STEPS * step_work(self.features, n_free) / FASTER

    def snapshot(self) -> Solution:
        """Return where it stands, for those who watch."""
        return Solution(
            self.w[np.newaxis].copy(), np.array([self.b]), Status.STOPPED, alpha=self.alpha.copy()
        )


@compiled
def _visit(rows, y, upper, ridge, squares, rho, order, alpha, w, bounds, b, found, wrong):
    """Visit samples in turn; return how many remain, at the front of ``order``, and b."""
    kept, gap = 0, 0.0
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
        slope = y[i] * (row_dot(rows, i, w) + b) - 1.0
        wrong[i] = slope < -1.0
        if np.isinf(D) or u == 0.0:
            continue
        z = -slope
        if np.isinf(u):
            gap += 0.5 * max(z, 0.0) ** 2 / D - alpha[i] * (z - 0.5 * D * alpha[i])
        else:
            gap += u * max(z, 0.0) - alpha[i] * z
        slope += D * alpha[i]
        projected = slope
        if alpha[i] <= 0.0:
            if slope > bounds[0]:
                continue
            projected = min(slope, 0.0)
        elif alpha[i] >= u:
            if slope < bounds[1]:
                continue
            projected = max(slope, 0.0)
        order[kept] = i
        kept += 1
        highest, lowest = max(highest, projected), min(lowest, projected)
        curvature = squares[i] + rho + D
        if projected != 0.0 and curvature > 0.0:
            before = alpha[i]
            alpha[i] = min(max(before - slope / curvature, 0.0), u)
            step = (alpha[i] - before) * y[i]
            if step != 0.0:
                row_add(rows, i, w, step)
                b += rho * step
    found[0], found[1] = highest, lowest
    found[2] += gap
    return kept, b


@compiled
def _visit_again(
    times, enough, rows, y, upper, ridge, squares, rho, order, alpha, w, bounds, b, found, wrong
):
    """Visit the same samples until they are near enough; return b, how near, and how often."""
    violation, done = np.inf, 0
    while done < times:
        done += 1
        found[0], found[1] = -np.inf, np.inf
        _, b = _visit(rows, y, upper, ridge, squares, rho, order, alpha, w, bounds, b, found, wrong)
        violation = found[0] - found[1]
        if violation < enough:
            break
    return b, violation, done
