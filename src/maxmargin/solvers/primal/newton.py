"""Semismooth Newton on the augmented Lagrangian: the linear machine by second-order steps.

Given: X, y, u, D of a `PrimalProblem`. Wanted: a = (w, b) and α.

The proximal point method on the dual, α = argmax D(α) − Σ (δ/2u_i)(α_i − α⁰_i)², asks in the
primal for the minimum of a smooth convex function,

    Φ(a) = ½‖w‖² + Σ_i max {α z_i − ½D_i α² − (δ/2u_i)(α − α⁰_i)² : 0 ≤ α ≤ u_i},

z_i = 1 − y_i g(x_i), which is piecewise quadratic: where α⁰ = 0 it is the hinge, rounded off over a
width of δ. Its generalised Hessian is I + Σ_F x_i x_iᵀ/(D_i + δ/u_i) over the samples F on the
kink, 0 < α_i < u_i: few of them, once δ is small, and the cost of a step follows them. Newton's
method with a line search minimises it; then α⁰ ← α, and δ shrinks. For the squared hinge D > 0 does
what δ does, and one minimisation is enough.

Vectors of length n are those of a `PrimalState`; here are a = (w, b), δ and sums.

Samples far from the kink keep their α, or their parabola, and stay out of the steps: steps on the
rows near the kink alternate with passes over all of X, which measure the duality gap. Large n begin
with a sample of their rows.

References: Rockafellar, *Math. Oper. Res.* 1 (1976); Li, Sun, Toh, *SIAM J. Optim.* 28 (2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ...arrays import Floats
from ...engines.linear import Features, Held, PrimalState, Projection
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..line_search import line_search, search_several
from . import direction
from .direction import Quadratic, newton_direction, normal_work, product_work
from .ledger import Ledger, Plane


@dataclass(frozen=True)
class Tuning:
    """What Newton's method decides by."""

    widest_delta: float = 2.0  # δ of a start from nothing
    nearby_delta: float = 0.2  # δ of a start from a plane nearby
    narrower: float = 0.7  # δ of a minimisation relative to that of the one before
    residual_to_slack: float = 1.0  # at which steps of a minimisation end
    sample_factor: int = 6  # a sample has so many times fewer rows
    fewest_rows: int = 2000  # of a sample
    whole_numbers: int = 1 << 16  # numbers in X up to which all rows take part in every step
    near_share: float = 0.13  # the share of the rows that do elsewhere
    sample_gap: float = 0.01  # the relative gap that is enough for a sample
    aim: float = 0.3  # of tol, at which steps on some rows aim
    next_aim: float = 0.3  # by which that shrinks where it was not enough
    patience: int = 4  # rounds without a smaller gap before giving up
    stalled_steps: int = 30  # without a smaller residual before δ shrinks all the same
    narrowest_delta: float = 1e-6  # at which such steps end
    still: float = 4.0 * float(np.finfo(float).eps)  # a change of scores that is rounding
    direction: direction.Tuning = field(default_factory=direction.Tuning)


class End(Enum):
    """Why a run of steps ended."""

    AIMED = "the gap aimed at is reached"
    SETTLED = "steps have become short: rows far from the kink will stay there"
    STRAYED = "steps have gone so far that rows held may have met the kink"
    LIMIT = "a limit, or a callback"


@dataclass
class Iterate:
    """Where the method stands: a = (w, b) and δ; the state has the rest."""

    a: Floats
    delta: float

    @property
    def plane(self) -> Plane:
        """The plane now."""
        return Plane(self.a[:-1].copy(), float(self.a[-1]))


@dataclass(frozen=True)
class SemismoothNewton:
    """The solver of the linear machine for n ≫ d, any loss of the family.

    Parameters
    ----------
    features : Features
        X, as an engine holds it.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of Newton steps, and seconds.
    tuning : Tuning
    """

    features: Features
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it."""
        state = self.features.primal_state(problem)
        run = _Run(problem.bias, problem.curved, self.limits, progress, self.tuning)
        if start is None and not problem.quadratic:  # of which one step is the answer
            start = run.from_samples(state)
        return run.on_all(Ledger(problem, state), start, self.tol)


class _Run:
    """The steps of a fit so far, and what ends it early."""

    def __init__(
        self, bias: str, curved: bool, limits: Limits, progress: Progress, tuning: Tuning
    ) -> None:
        self.bias, self.limits = bias, limits
        self.curved, self.tries_products = curved, curved
        self.progress, self.tuning = progress, tuning
        self.n_iter = 0
        self.status: Status | None = None

    def from_samples(self, state: PrimalState) -> Plane | None:
        """Return a plane near the answer, from ever larger samples of the rows."""
        n_rows, d = state.features.n_rows, state.features.n_columns
        sizes, n = [], min(n_rows, self.tuning.sample_factor * state.features.most_sampled)
        while (n := n // self.tuning.sample_factor) >= max(self.tuning.fewest_rows, 4 * (d + 1)):
            sizes.append(n)
        plane = None
        for size in reversed(sizes):
            some = state.sample(state.features.draw(size), n_rows / size)
            if some is not None and not self.status:
                steps = _Steps(self, some, self.begin(some, plane), is_whole=False)
                steps.run(self.tuning.sample_gap)
                plane = steps.iterate.plane
        return plane

    def begin(self, state: PrimalState, start: Plane | None) -> Iterate:
        """Begin with a plane, or with none."""
        delta = self.tuning.widest_delta if start is None else self.tuning.nearby_delta
        plane = start or Plane.zero(state.features.n_columns)
        b = plane.b if self.bias != "none" else 0.0
        state.place(plane.w, b)
        if plane.alpha is not None:
            state.start(plane.alpha)
        return Iterate(np.append(plane.w, b), delta)

    def on_all(self, ledger: Ledger, start: Plane | None, tol: float) -> Solution:
        """Alternate steps on the rows near the kink with passes over all rows."""
        state, tuning = ledger.state, self.tuning
        features = state.features
        iterate = self.begin(state, start)
        stored = features.stored_per_row * features.n_rows
        # The parabolas of rows held make a square matrix, which must not outgrow X, nor take longer
        # than steps on all rows.
        n, products = features.n_rows, product_work(features, features.n_rows, tuning.direction)
        quick = self.tries_products and products < normal_work(features, n)
        wide = quick or (self.curved and features.n_columns**2 > stored)
        whole = stored <= tuning.whole_numbers or wide or not features.holds_rows
        share = 1.0 if whole else tuning.near_share
        aim, idle, end = tuning.aim * tol, 0, End.STRAYED
        while True:
            everywhere = share > 0.5 or end is End.STRAYED
            if everywhere:
                end = _Steps(self, state, iterate, share=share).run(aim)
            else:
                held = state.hold(share, iterate.delta)
                end = _Steps(self, held.state, iterate, held=held, is_whole=False).run(aim)
                del held  # and the rows that it has
                state.take_back()
            if end is End.SETTLED:
                continue
            if not everywhere:
                state.place(iterate.a[:-1], float(iterate.a[-1]))
            before = ledger.gap
            ledger.enter(iterate.plane, of_scores=True)
            self.progress.measured(ledger.primal, ledger.dual)
            idle = idle + (end is End.AIMED) if ledger.gap > 0.5 * before else 0
            if ledger.gap <= tol or self.status or idle > tuning.patience:
                break
            if end is End.AIMED:
                aim *= tuning.next_aim
            if end is End.STRAYED and not everywhere:
                share *= 2.0
        met = ledger.gap <= tol
        status = Status.CONVERGED if met else self.status or Status.PATIENCE
        return ledger.solution(status, self.n_iter, self.progress)

    def ended(self, steps: _Steps, gap: float) -> bool:
        """Report a step; return whether a limit or a callback ends the fit."""
        self.n_iter += 1
        relative = gap / max(abs(steps.value), np.finfo(float).tiny)
        primal, dual = steps.bounds()
        stop = self.progress.iteration(
            steps.value, steps.errors, relative, steps.snapshot, primal=primal, dual=dual
        )
        self.status = Status.STOPPED if stop else self.limits.reached(self.n_iter, self.progress)
        return self.status is not None


class _Steps:
    """Newton steps with some rows, all others held: min ½aᵀMa − v·a + Σ h_i(z_i).

    ``is_whole`` where none is held, and all rows of the problem are here. ``share`` is
    that of the rows that would take part if the others were held.
    """

    def __init__(
        self,
        fit: _Run,
        state: PrimalState,
        iterate: Iterate,
        *,
        share: float = 1.0,
        held: Held | None = None,
        is_whole: bool = True,
    ) -> None:
        self.fit, self.state, self.iterate = fit, state, iterate
        self.share, self.is_whole = share, is_whole
        self.reach, self.errors_held = np.inf, 0
        self.quadratic = Quadratic(fit.bias, np.zeros(iterate.a.size))
        if held is not None:
            self.reach, self.errors_held = held.reach, held.errors
            self.quadratic = self.quadratic.plus(held.M, held.v, held.constant)
        # Σ α y (x, 1) of the rows that take part.
        self.total = state.total()

    def snapshot(self) -> Solution:
        """Return the plane now, and α of all rows where they are here, for callbacks."""
        a = self.iterate.a
        alpha = np.asarray(self.state.alpha()) if self.is_whole else None
        return Solution(a[np.newaxis, :-1].copy(), a[-1:].copy(), Status.STOPPED, alpha=alpha)

    def bounds(self) -> tuple[float, float]:
        """Return P and D now.

        Rows held may have met the kink, and a sample of the rows is another problem: not known.
        """
        return (self.value, self.state.dual(self.total)) if self.is_whole else (np.nan, np.nan)

    def run(self, aim: float) -> End:
        """Step until the gap is below ``aim``, relative to the value, or rows must change."""
        iterate, tuning = self.iterate, self.fit.tuning
        strayed, least, stalled = 0.0, np.inf, 0
        self._project()
        while True:
            gradient = self._gradient()
            residual = self._residual(gradient)
            if self.slack + residual <= aim * abs(self.value):
                return End.AIMED
            # Rounding may leave a residual that no step makes smaller.
            stalled = 0 if residual < 0.9 * least else stalled + 1
            least = min(least, residual)
            is_stalled = stalled > tuning.stalled_steps
            if is_stalled and iterate.delta < tuning.narrowest_delta:
                return End.AIMED
            if residual <= tuning.residual_to_slack * self.slack or is_stalled:
                least, stalled = np.inf, 0
                self.state.recentre()
                iterate.delta *= tuning.narrower
                self._project()
                continue
            step, enough = newton_direction(
                self.state, self.quadratic, gradient, iterate.delta, tuning.direction,
                try_products=self.fit.tries_products,
            )  # fmt: skip
            self.fit.tries_products &= enough
            moved, largest = self._move(step)
            strayed += moved
            if moved <= tuning.still * max(1.0, largest):
                stalled = tuning.stalled_steps + 1
            if self.fit.ended(self, self.slack + residual):
                return End.LIMIT
            if strayed > 0.5 * self.reach:
                return End.STRAYED
            if self.share <= 0.5 and 3.0 * moved < self.state.reach(self.share, iterate.delta):
                return End.SETTLED

    def _gradient(self) -> Floats:
        gradient = self.quadratic.apply(self.iterate.a) - self.quadratic.v - self.total
        if self.fit.bias == "none":
            gradient[-1] = 0.0
        return gradient

    def _residual(self, gradient: Floats) -> float:
        """Return what D(α) falls short of Φ by: w is not quite Σ αyx, nor yᵀα 0."""
        residual = 0.5 * float(gradient[:-1] @ gradient[:-1])
        return residual + abs(float(gradient[-1])) * (1.0 + abs(float(self.iterate.a[-1])))

    def _project(self) -> Projection:
        """Make α that of the scores, and all sums that go with it."""
        found = self.state.project(self.iterate.delta)
        self.slack, self.errors = found.slack, found.errors + self.errors_held
        self.total = self.total + found.change
        self.value = self.quadratic.value(self.iterate.a) + found.loss
        return found

    def _move(self, step: Floats) -> tuple[float, float]:
        """Go along the step as far as Φ, which is convex, descends.

        Return by how much scores have moved, and the largest of them.
        """
        iterate, quadratic = self.iterate, self.quadratic
        self.state.aim(step)
        slope = float((quadratic.apply(iterate.a) - quadratic.v) @ step)
        bend = float(quadratic.apply(step) @ step)

        def slopes(points: list[float]) -> list[float]:
            found = self.state.slopes(points, iterate.delta)
            return [slope + t * bend - at for t, at in zip(points, found, strict=True)]

        first, at_once = slope - float(self.total @ step), self.state.features.slopes_at_once
        if at_once == 1:
            t = line_search(lambda t: slopes([t])[0], first)
        else:
            whole_first = self.state.features.whole_step_first
            t = search_several(slopes, first, at_once, whole_first=whole_first)
        iterate.a = iterate.a + t * step
        self.state.advance(t)
        found = self._project()
        return found.moved, found.largest
