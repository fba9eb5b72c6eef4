"""A primal–dual interior point method for the dual of a kernel machine with some thousand samples.

    min ½αᵀHα + pᵀα   subject to   Aα = a,  l ≤ α ≤ u,   H = Q + D

has the multipliers λ of Aα = a, s ≥ 0 of r = α − l ≥ 0 and v ≥ 0 of t = u − α ≥ 0. Newton's method
on

    Hα + p + Aᵀλ − s + v = 0,   Aα = a,   s_i r_i = τ,   v_i t_i = τ,

with τ falling to 0, first for τ = 0 and then with the second-order correction that this predicts
(Mehrotra's predictor and corrector), eliminates all but α and λ: a step factors
H + diag(s/r + v/t), n³/3 multiplications. Some dozens of steps suffice, whatever C and the scale of
the kernel, also where SMO needs millions of steps and the active set is ill-conditioned.

References: Mehrotra, *SIAM J. Optim.* 2 (1992); Ferris, Munson, *SIAM J. Optim.* 13 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ...arrays import Floats
from ...engines.base import HostGram
from ...problems import DualProblem
from ...problems.dual import usual_length
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..linear_systems import Factored
from .feasibility import Constraints
from .optimality import AIM, Optimality, violation_unit


@dataclass(frozen=True)
class Tuning:
    """Lengths of steps, and when they end."""

    # The share of the way to the boundary that a step goes.
    boundary_share: float = 0.99
    # The power of the predictor's success that sets the target of the corrector.
    centring_power: int = 3
    max_steps: int = 80
    # Steps in a row without progress after which it ends: before tol is reached, and after.
    patience_steps: int = 10
    settled_patience_steps: int = 2
    # The share of tol at which further steps gain nothing.
    finished_share: float = 1e-3


@dataclass(frozen=True)
class DualInteriorPoint:
    """Mehrotra's method on the whole Gram matrix in float64.

    α off the margin is put onto its bound after every step, the answer being the best of these.
    Ends with ``CONVERGED`` where its KKT conditions hold to ``tol`` with a relative gap of at most
    2·tol, with ``PATIENCE`` where rounding, or a kernel that is not positive semidefinite, allows
    no more.

    Parameters
    ----------
    gram : HostGram
        K of the rows ``problem.index``, in float64.
    tol : float
        The largest violation of a KKT condition.
    limits : Limits
        Of steps, and seconds.
    tuning : Tuning
    """

    gram: HostGram
    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: DualProblem, alpha: Floats | None, progress: Progress) -> Solution:
        """Return α and b; a start is of no use to this method but as the answer to improve on."""
        K = self.gram.block(np.arange(problem.n_variables))
        tuning = self.tuning
        iterate, idle = _Iterate(problem, K, tuning), _Idle()
        best, steps = iterate.judged(iterate.feasible(alpha)), 0
        status: Status | None = None
        while status is None:
            with np.errstate(all="ignore"):  # beyond the range of numbers nothing improves
                moved = iterate.step()
            steps += 1
            point = iterate.judged(iterate.settled(0.5 * self.tol)) if moved else best
            best = min(best, point, key=lambda each: each.share(self.tol))
            share = best.share(self.tol)
            idle.look(share, *(iterate.distances() if share > AIM else ()))
            errors = int((problem.signs * (best.scores + best.b) <= 0).sum())
            if progress.iteration(
                -best.dual, errors, best.violation,
                partial(best.solution, Status.STOPPED), primal=best.primal, dual=best.dual,
            ):  # fmt: skip
                status = Status.STOPPED
            elif (
                share <= tuning.finished_share
                or not moved
                or idle.steps > self._patience(share)
                or steps >= tuning.max_steps
            ):
                status = Status.CONVERGED if share <= AIM else Status.PATIENCE
            else:
                status = self.limits.reached(steps, progress)
        trace = progress.trace()
        return replace(best.solution(status), n_iter=steps, seconds=progress.seconds, trace=trace)

    def _patience(self, share: float) -> int:
        """Return the steps without progress to wait for: fewer where tol is reached."""
        tuning = self.tuning
        return tuning.settled_patience_steps if share <= AIM else tuning.patience_steps


class _Idle:
    """How many steps in a row have brought none of the given numbers down by a tenth."""

    def __init__(self) -> None:
        self.least = [np.inf] * 3
        self.steps = 0

    def look(self, *numbers: float) -> None:
        """Take in the numbers after a step."""
        falls = any(new < 0.9 * old for new, old in zip(numbers, self.least, strict=False))
        self.least[: len(numbers)] = map(min, numbers, self.least[: len(numbers)])
        self.steps = 0 if falls else self.steps + 1


class _Change(NamedTuple):
    """A step of everything."""

    alpha: Floats
    lam: Floats
    s: Floats
    v: Floats


class _Iterate:
    """α strictly within its bounds, λ, and s, v > 0; v is 0 where u = ∞."""

    def __init__(self, problem: DualProblem, K: Floats, tuning: Tuning) -> None:
        y, n = problem.signs, problem.n_variables
        self.problem, self.K, self.tuning = problem, K, tuning
        self.H = K * y * y[:, np.newaxis]
        self.H[np.diag_indices(n)] += problem.ridge
        self.constraints = Constraints.of(problem)
        self.A, self.a = self.constraints.A, self.constraints.a
        self.largest = usual_length(K.diagonal())
        self.bounded = np.isfinite(problem.upper)
        self.alpha = self._start()
        self.lam = np.zeros(len(self.A))
        # As large as the gradient is: all conditions are then equally far from holding.
        unit = max(
            float(np.abs(self._slope()).max()), float(np.abs(problem.p).max()), np.finfo(float).tiny
        )
        self.s = np.full(n, unit)
        self.v = np.where(self.bounded, unit, 0.0)

    def _start(self) -> Floats:
        """Return α in the middle of its box, or of the size that its slack's cost gives it.

        From above it comes down by a factor of a hundred per step; from below it takes longer.
        """
        lower, upper, ridge = self.problem.lower, self.problem.upper, self.problem.ridge
        tiny = np.finfo(float).tiny
        free = 1.0 / np.maximum(np.where(ridge > 0.0, ridge, self.H.diagonal()), tiny)
        return lower + np.where(self.bounded, 0.5 * (upper - lower), free)

    @property
    def r(self) -> Floats:
        """α − l."""
        return self.alpha - self.problem.lower

    @property
    def t(self) -> Floats:
        """u − α."""
        return self.problem.upper - self.alpha

    def _slope(self) -> Floats:
        """Hα + p + Aᵀλ."""
        return self.H @ self.alpha + self.problem.p + self.lam @ self.A

    def distances(self) -> tuple[float, float]:
        """Return what is left of complementarity, and of the linear conditions."""
        of_slope = float(np.abs(self._slope() - self.s + self.v).max())
        of_sums = float(np.abs(self.A @ self.alpha - self.a).max(initial=0.0))
        return self._average(self.r, self.t, self.s, self.v), of_slope + of_sums

    def judged(self, alpha: Floats) -> Optimality:
        """Return what α is worth as an answer."""
        scores = self.K @ (alpha * self.problem.signs)
        return Optimality.of(self.problem, alpha, scores, self.largest)

    def feasible(self, alpha: Floats | None) -> Floats:
        """Return α as an answer has to be."""
        return self.constraints.snapped(self.constraints.nearest(alpha))

    def settled(self, band: float) -> Floats:
        """Return α at the bound that its slope points to, where that is beyond the band."""
        slope, problem = self._slope(), self.problem
        unit = violation_unit(problem, self.lam, self.largest)
        alpha = np.where((slope > band * unit) & (self.s > self.v), problem.lower, self.alpha)
        at_top = (slope < -band * unit) & (self.v > self.s)
        return self.feasible(np.where(at_top, problem.upper, alpha))

    def step(self) -> bool:
        """Predict, correct, and go as far as all stay positive; return whether that is anywhere."""
        r, t = self.r, self.t
        theta = self.s / r + self.v / t
        M = self.H.copy()
        M[np.diag_indices(t.size)] += theta
        if not np.isfinite(M.diagonal()).all():
            return False
        system = _System(Factored(M), M, self.A)
        if not system.is_regular:
            return False
        residuals = self._slope() - self.s + self.v, self.A @ self.alpha - self.a
        average = self._average(r, t, self.s, self.v)
        if not average > 0.0:  # below the range of numbers
            return False
        zero = np.zeros(t.size)
        first = self._change(system, residuals, 0.0, zero, zero)
        reach = min(1.0, self._reach(first))
        there = self._average(
            r + reach * first.alpha, t - reach * first.alpha,
            self.s + reach * first.s, self.v + reach * first.v,
        )  # fmt: skip
        centre = (there / average) ** self.tuning.centring_power * average
        change = self._change(
            system, residuals, centre, first.alpha * first.s, -first.alpha * first.v
        )
        length = min(1.0, self.tuning.boundary_share * self._reach(change))
        new = [
            old + length * by
            for old, by in zip((self.alpha, self.lam, self.s, self.v), change, strict=True)
        ]
        if not all(np.isfinite(each).all() for each in new):
            return False
        self.alpha, self.lam, self.s, self.v = new
        return length > 1e-10 and bool((self.r > 0).all() and (self.t > 0).all())

    def _average(self, r: Floats, t: Floats, s: Floats, v: Floats) -> float:
        """Return the mean product of what is complementary."""
        above = t[self.bounded] * v[self.bounded]
        return float((r @ s + above.sum()) / (r.size + above.size))

    def _change(
        self,
        system: _System,
        residuals: tuple[Floats, Floats],
        centre: float,
        of_s: Floats,
        of_v: Floats,
    ) -> _Change:
        """Return the step to s r = τ, v t = τ, with the products of the first step taken off."""
        r, t, bounded = self.r, self.t, self.bounded
        lower = centre - r * self.s - of_s
        upper = np.where(bounded, centre - np.where(bounded, t, 1.0) * self.v - of_v, 0.0)
        right = -residuals[0] + lower / r - upper / t
        alpha, lam = system.solve(right, -residuals[1])
        s = (lower - self.s * alpha) / r
        return _Change(alpha, lam, s, (upper + self.v * alpha) / t)

    def _reach(self, change: _Change) -> float:
        """Return the longest step at which nothing is negative."""
        fastest = float(np.finfo(float).tiny)
        for values, changes in (
            (self.r, change.alpha), (self.s, change.s), (self.t, -change.alpha),
            (self.v, change.v),
        ):  # fmt: skip
            ratios = np.where(values > 0.0, -changes / values, 0.0)
            fastest = max(fastest, float(ratios.max()))
        return 1.0 / fastest


class _System:
    """M Δα + AᵀΔλ = r, AΔα = q, with one step of iterative refinement."""

    def __init__(self, factored: Factored, M: Floats, A: Floats) -> None:
        self.factored, self.M, self.A = factored, M, A
        self.V = np.array([factored.solve(row) for row in A]).reshape(A.shape)
        self.schur = A @ self.V.T

    @property
    def is_regular(self) -> bool:
        """Whether rounding leaves the equations of λ independent of each other."""
        try:
            np.linalg.inv(self.schur)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return Δα and Δλ."""
        alpha, lam = self._once(right, sums)
        more = self._once(right - self.M @ alpha - lam @ self.A, sums - self.A @ alpha)
        return alpha + more[0], lam + more[1]

    def _once(self, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        alpha = self.factored.solve(right)
        lam = np.linalg.solve(self.schur, self.A @ alpha - sums) if len(self.A) else sums
        return alpha - lam @ self.V, lam
