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
Where that is still slow (large C), `SemismoothNewton` goes on from there.

Rows are visited one at a time, in any order: X must be in one piece.

References: Hsieh, Chang, Lin, Keerthi, Sundararajan, *ICML* (2008); Fercoq, Gramfort, Salmon,
*ICML* (2015), for the gap-safe rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...arrays import Floats, Integers
from ...engines.linear import DescentFeatures, DescentState
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from .direction import step_work
from .ledger import Ledger, Plane
from .newton import SemismoothNewton
from .newton import Tuning as NewtonTuning


@dataclass(frozen=True)
class Tuning:
    """What coordinate descent decides by."""

    rows_together: int = 8  # consecutive rows that stay together when their order is shuffled
    relative_penalty: float = 0.05  # ρ, relative to the mean ‖x‖²; at most 1 for a penalised bias
    most_sweeps: int = 20  # over the free α after a pass
    sweep_fall: float = 0.1  # of their violation, relative to that of the pass
    passes_between_looks: int = 10  # at the gap, at most
    far_gap: float = 0.05  # from which Newton's method had better begin by itself
    newton_steps: int = 25  # that it is expected to take
    newton_faster: float = 8.0  # its multiplications in the time of a visited number of X
    gap_left: float = 0.5  # of the gap that a pass meets, once it is over: a first guess
    newton: NewtonTuning = field(default_factory=NewtonTuning)


@dataclass(frozen=True)
class CoordinateDescent:
    """The solver of the linear machine for sparse X.

    Parameters
    ----------
    features : DescentFeatures
        X, as an engine with random access to its rows holds it.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of passes, and seconds.
    seed : int
        Of the order of the samples.
    tuning : Tuning
    """

    features: DescentFeatures
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it."""
        tuning = self.tuning
        moving = self.features.descent_state(problem)
        ledger = Ledger(problem, moving.state)
        rng = np.random.RandomState(self.seed)
        descent = _Descent(problem.bias, moving, start, rng, tuning)
        n_iter, looked, left_over = 0, 0, tuning.gap_left
        judged, gap_then, work_then = 0, np.inf, 0.0
        while True:
            n_iter += 1
            descent.one_pass()
            status = self.limits.reached(n_iter, progress)
            late = n_iter - looked >= tuning.passes_between_looks
            looks = left_over * descent.gap <= self.tol or late or status is not None
            if descent.report(progress, ledger if looks else None):
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
            if n_iter - judged >= tuning.passes_between_looks:
                left = _passes_left(gap_then, ledger.gap, self.tol)
                if left * (moving.work - work_then) > self._newton_work(ledger, moving):
                    return self._polished(problem, ledger, n_iter, progress)
                judged, gap_then, work_then = n_iter, ledger.gap, moving.work

    def _newton_work(self, ledger: Ledger, moving: DescentState) -> float:
        """Return about what Newton's method would take from here, in visited numbers.

        Counted, not timed: the answer must not depend on what else the computer does.
        """
        tuning, n_free = self.tuning, moving.state.kink().n_rows
        if not ledger.curved:
            # No more of them than that are on the kink of a hinge, in the end.
            n_free = min(n_free, 3 * self.features.n_columns)
        work = step_work(self.features, n_free, tuning.newton.direction)
        return tuning.newton_steps * work / tuning.newton_faster

    def _polished(
        self, problem: PrimalProblem, ledger: Ledger, n_iter: int, progress: Progress
    ) -> Solution:
        """Let Newton's method go on with the free α."""
        limits = self.limits
        progress.unit = "iteration"  # passes, then steps
        if limits.iterations is not None:
            limits = replace(limits, iterations=limits.iterations - n_iter)
        start = None
        if ledger.gap <= self.tuning.far_gap:
            start = replace(ledger.plane, alpha=ledger.state.alpha(kept=True))
        newton = SemismoothNewton(self.features, self.tol, limits, self.tuning.newton)
        solution = newton.solve(problem, start, progress)
        return replace(solution, n_iter=n_iter + solution.n_iter)


def _passes_left(before: float, now: float, tol: float) -> float:
    """Return how many times as far as from one gap to another it is to ``tol``; 0 if not known."""
    if not np.isfinite(before):
        return 0.0
    fall = float(np.log(before / now))
    return float(np.log(now / tol)) / fall if fall > 0.0 else np.inf


def _penalty(bias: str, moving: DescentState, tuning: Tuning) -> float:
    """Return ρ: what b moves by when an α moves by 1."""
    if bias == "none":
        return 0.0
    rho = tuning.relative_penalty * moving.mean_square() or 1.0
    return min(rho, 1.0) if bias == "penalised" else rho


class _Descent:
    """The samples that are still visited, and b; α and w are the engine's."""

    def __init__(
        self,
        bias: str,
        moving: DescentState,
        start: Plane | None,
        rng: np.random.RandomState,
        tuning: Tuning,
    ) -> None:
        self.bias, self.moving, self.rng, self.tuning = bias, moving, rng, tuning
        moving.penalty = _penalty(bias, moving, tuning)
        if start is not None:
            moving.b = start.b if bias != "none" else 0.0
            if start.alpha is not None:
                moving.start(start.alpha)
        # Whether b is yᵀα, and nothing else.
        self.follows = bias == "penalised" and moving.penalty == 1.0
        if self.follows:
            moving.b = moving.imbalance()
        self.visited = self.open = np.arange(moving.state.features.n_rows)
        # G beyond which a sample with α at 0, or at u, is left out.
        self.left_out = np.inf, -np.inf
        # What the last pass met: the gap Σ h − (αz − ½Dα²), relative to P, is summed on the way.
        self.violation, self.gap = np.inf, np.inf

    def report(self, progress: Progress, ledger: Ledger | None) -> bool:
        """Report a pass, after a look at the gap where there is a ledger; return whether to stop.

        P is known after a look only, as D is of a free bias: yᵀα is 0 in the end, not before.
        """
        value, primal, show = self.moving.dual_value(), np.nan, self.snapshot
        dual = value if self.bias != "free" else np.nan
        if ledger is not None:
            self.look(ledger)
            primal, dual, show = ledger.primal, ledger.dual, ledger.snapshot
        progress.unit = "pass"
        return progress.iteration(
            value, self.moving.errors(), self.violation, show, primal=primal, dual=dual,
            exact=False,
        )  # fmt: skip

    def one_pass(self) -> None:
        """Visit the samples that are not left out, then the free α again and again."""
        moving, tuning = self.moving, self.tuning
        visits = moving.visit(self._shuffled(self.visited), self.left_out)
        self.visited, highest, lowest = visits.kept, visits.highest, visits.lowest
        self.violation = highest - lowest
        primal = moving.dual_value() + visits.gap
        self.gap = visits.gap / primal if primal > 0.0 else np.inf
        self.left_out = (
            highest if highest > 0.0 else np.inf,
            lowest if lowest < 0.0 else -np.inf,
        )
        free = moving.free(self.visited)
        if free.size:
            # Where most α are free, sweeps over them are passes.
            sweeps = min(tuning.most_sweeps, 2 * self.open.size // free.size)
            moving.visit_again(free, tuning.sweep_fall * self.violation, sweeps)
        if self.bias != "none":
            pull = moving.b if self.bias == "penalised" else 0.0
            moving.b += moving.penalty * (moving.imbalance() - pull)

    def _shuffled(self, rows: Integers) -> Integers:
        """Return the rows in another order; blocks of consecutive rows stay, for locality."""
        together = self.tuning.rows_together
        n_blocks = rows.size // together
        blocks = rows[: n_blocks * together].reshape(n_blocks, together)
        shuffled = blocks[self.rng.permutation(n_blocks)].ravel()
        return np.concatenate([shuffled, rows[n_blocks * together :]])

    def look(self, ledger: Ledger) -> None:
        """Measure the gap, and begin anew with all samples whose α is not certain.

        P is strongly convex in w: ‖w − w*‖ ≤ r = √(2(P(w) − D)), so y g moves by ‖x‖r, and with b
        by Rr more, R = max‖x‖, beyond the interval of the best b for w: as the scores move, so at
        most do its ends, which are weighted quantiles of y − w·x, or means of some of them.
        """
        moving, state = self.moving, self.moving.state
        state.place(moving.w, moving.b)
        low, high = state.best_biases(moving.b) if self.bias != "none" else (0.0, 0.0)
        # The bias that suits w best is ahead of that which the α have led to.
        shift = min(max(0.0, low), high)
        state.shift(shift)
        plane = Plane(moving.w.copy(), moving.b + shift)
        if not self.follows:
            moving.b = plane.b
        moving.mark_errors()
        primal = ledger.enter(plane)
        radius = float(np.sqrt(2.0 * max(primal - ledger.dual, 0.0)))
        self.open = moving.settle(radius, high - low)
        if self.follows:
            moving.b = moving.imbalance()
        self.visited, self.left_out = self.open, (np.inf, -np.inf)

    def snapshot(self) -> Solution:
        """Return w, b and α now, for callbacks."""
        moving = self.moving
        w: Floats = moving.w[np.newaxis].copy()
        return Solution(w, np.array([moving.b]), Status.STOPPED, alpha=moving.alpha())
