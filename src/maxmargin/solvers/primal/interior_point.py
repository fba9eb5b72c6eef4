"""A primal–dual interior point method: the linear machine in a few dozen steps, whatever C.

Given: X, y, u, D of a `PrimalProblem`. Wanted: a = (w, b) and α.

    min ½‖w‖² + Σ u_i ξ_i + Σ z_i²/2D_i   subject to   y_i g(x_i) + ξ_i + z_i ≥ 1,  ξ ≥ 0

(ξ for u < ∞, z_i = D_i α_i for D > 0) has the slacks s = y g + ξ + Dα − 1 and ξ, and the
multipliers α and μ = u − α. Newton's method on s_i α_i = τ v_i, ξ_i μ_i = τ (v the costs 1/D
relative to their mean, or 1) and the linear conditions, with τ falling to 0, eliminates all but a:
a step solves

    (I + Σ c_i (x_i, 1)(x_i, 1)ᵀ) Δa = r,   c_i = 1/(s_i/α_i + ξ_i/μ_i + D_i),

first for τ = 0, then with the second-order correction that Mehrotra reads off that (predictor and
corrector). X is read a block at a time: three passes per step.

References: Mehrotra, *SIAM J. Optim.* 2 (1992); Ferris, Munson, *SIAM J. Optim.* 13 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...arrays import Floats
from ...engines.linear import InteriorFeatures, InteriorState
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...runtime.memory import free_memory
from ...solution import Solution, Status
from ..linear_systems import Factored
from .ledger import Ledger, Plane


@dataclass(frozen=True)
class Tuning:
    """What the interior point method decides by."""

    nearly: float = 0.995  # how far towards the boundary a step goes
    power: int = 3  # of what the predictor achieved, in the τ of the corrector
    patience: int = 15  # steps without a smaller gap before giving up
    far_gap: float = 0.1  # above which a step that moves the plane or τ is on its way
    far_move: float = 0.1  # by so much, relatively


@dataclass(frozen=True)
class InteriorPoint:
    """The solver of the linear machine for n ≫ d, whatever C and the scales of the features.

    Parameters
    ----------
    features : InteriorFeatures
        X, as an engine holds it.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of steps, and seconds.
    tuning : Tuning
    """

    features: InteriorFeatures
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it; a start is of no use to this method."""
        d = self.features.n_columns
        if 32 * d * d > free_memory():
            raise ValueError(
                f"solver='interior-point' solves systems in all {d} features, beyond "
                "the memory: use solver='coordinate-descent', or 'newton'."
            )
        iterate = _Iterate(problem, self.features.interior_state(problem), self.tuning)
        ledger = Ledger(problem, iterate.interior.state)
        iterate.begin()
        n_iter = idle = errors = 0
        status: Status | None = None
        while True:
            before, plane = ledger.gap, iterate.plane
            iterate.interior.publish()
            ledger.enter(plane)
            errors = iterate.interior.errors() if ledger.plane is plane else errors
            on_its_way = ledger.gap > self.tuning.far_gap and iterate.is_on_its_way
            idle = 0 if ledger.gap <= 0.99 * before or on_its_way else idle + 1
            if n_iter and progress.iteration(
                ledger.primal, errors, ledger.gap, ledger.snapshot,
                primal=ledger.primal, dual=ledger.dual,
            ):  # fmt: skip
                status = Status.STOPPED
            if ledger.gap <= self.tol:
                self._at_bounds(iterate.interior, ledger)
                return ledger.solution(Status.CONVERGED, n_iter, progress)
            if idle > self.tuning.patience:
                status = Status.PATIENCE
            status = status or (self.limits.reached(n_iter, progress) if n_iter else None)
            if status:
                return ledger.solution(status, n_iter, progress)
            n_iter += 1
            with np.errstate(all="ignore"):  # beyond the range of numbers nothing improves
                iterate.step()

    def _at_bounds(self, interior: InteriorState, ledger: Ledger) -> None:
        """Put α that are on their way to a bound there, where the gap remains small enough."""
        interior.publish(rounded=True)
        dual = ledger.state.dual()
        if (ledger.primal - dual) <= self.tol * ledger.primal:
            ledger.dual = dual
            ledger.state.keep()


class _Iterate:
    """a = (w, b), and the rest of the iterate in the engine."""

    def __init__(self, problem: PrimalProblem, interior: InteriorState, tuning: Tuning) -> None:
        self.bias, self.interior, self.tuning = problem.bias, interior, tuning
        self.a: Floats = np.zeros(interior.state.features.n_columns + 1)
        self.is_on_its_way = True

    def begin(self) -> None:
        """Begin with w = 0 and b = 0."""
        self.interior.state.place(self.a[:-1], 0.0)

    @property
    def plane(self) -> Plane:
        """The plane now."""
        return Plane(self.a[:-1].copy(), float(self.a[-1]))

    def step(self) -> None:
        """Predict, correct, and go as far as all stay positive."""
        interior, tuning = self.interior, self.tuning
        system = self._system()
        average = interior.average(0.0)
        if not average > 0.0:  # below the range of numbers
            self.is_on_its_way = False
            return
        self._change(system, 0.0, corrected=False)
        there = interior.average(interior.reach(1.0 / tuning.nearly))
        centre = (there / average) ** tuning.power * average
        step = self._change(system, centre, corrected=True)
        t = min(1.0, tuning.nearly * interior.reach(1.0 / tuning.nearly))
        moved = float(np.abs(t * step).max()) > tuning.far_move * float(np.abs(self.a).max())
        less = interior.average(t) < (1.0 - tuning.far_move) * average
        self.is_on_its_way = moved or less
        self.a = self.a + t * step
        interior.advance(t)

    def _system(self) -> Factored:
        H = self.interior.curvature()
        H[np.diag_indices(self.a.size - 1)] += 1.0
        H[-1, -1] += float(self.bias == "penalised")
        if self.bias == "none":
            H[-1], H[:, -1], H[-1, -1] = 0.0, 0.0, 1.0
        return Factored(H)

    def _change(self, system: Factored, centre: float, *, corrected: bool) -> Floats:
        """Solve for the step to s α = τv, ξ μ = τv; return that of (w, b)."""
        right = self.interior.right_side(centre, corrected=corrected)
        right[:-1] -= self.a[:-1]
        right[-1] -= self.a[-1] * float(self.bias == "penalised")
        if self.bias == "none":
            right[-1] = 0.0
        step = system.solve(right)
        self.interior.change(step)
        return step
