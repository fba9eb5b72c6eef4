"""A primal–dual interior point method: the linear machine in a few dozen steps, whatever C.

Given: X, y, u, D of a `PrimalProblem`. Wanted: a = (w, b) and α.

    min ½‖w‖² + Σ u_i ξ_i + Σ z_i²/2D_i   subject to   y_i g(x_i) + ξ_i + z_i ≥ 1,  ξ ≥ 0

(ξ for u < ∞, z_i = D_i α_i for D > 0) has the slacks s = y g + ξ + Dα − 1 and ξ, and the
multipliers α and μ = u − α. Newton's method on s_i α_i = τ v_i, ξ_i μ_i = τ (v the costs 1/D
relative to their mean, or 1) and the linear conditions, with τ falling to 0, eliminates all but a:
a step solves

    (I + Σ c_i (x_i, 1)(x_i, 1)ᵀ) Δa = r,   c_i = 1/(s_i/α_i + ξ_i/μ_i + D_i),

first for τ = 0, then with the second-order correction that Mehrotra reads off that (predictor and
corrector). X is read a block at a time: three passes a step.

References: Mehrotra, *SIAM J. Optim.* 2 (1992); Ferris, Munson, *SIAM J. Optim.* 13 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats
from ...problems import PrimalProblem
from ...progress import Limits, Progress
from ...runtime.memory import free_memory
from ...solution import Solution, Status
from .ledger import Ledger, Plane, dual_value, squared
from .newton import Factored

# How far towards the boundary a step goes, and the largest power of what the predictor achieved.
NEARLY, POWER = 0.995, 3
# Steps without a smaller gap before giving up: rounding allows no more. From far away, as long as
# the gap is no less than this, a step that moves the plane or τ by a tenth is on its way.
PATIENCE, FAR, TENTH = 15, 0.1, 0.1
# Times the slack: α/u, or 1 − α/u, that is as good as 0.
NEGLIGIBLE = 0.1


@dataclass(frozen=True)
class InteriorPoint:
    """The solver of the linear machine for n ≫ d, whatever C and the scales of the features.

    Parameters
    ----------
    features : Features
        The engine of X.
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of steps, and seconds.
    """

    features: Any
    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)

    def solve(self, problem: PrimalProblem, start: Plane | None, progress: Progress) -> Solution:
        """Return the plane, and α that proves it; a start is of no use to this method."""
        d = self.features.n_columns
        if 32 * d * d > free_memory():
            raise ValueError(
                f"solver='interior-point' solves systems in all {d} features, beyond "
                "the memory: use solver='coordinate-descent', or 'newton'."
            )
        iterate = _Iterate(problem, self.features)
        ledger = Ledger(problem, self.features)
        n_iter = idle = errors = 0
        status: Status | None = None
        while True:
            before = ledger.gap
            plane = iterate.plane
            ledger.enter(plane, iterate.scores, iterate.whole_alpha)
            errors = iterate.errors if ledger.plane is plane else errors
            falls = ledger.gap <= 0.99 * before or (ledger.gap > FAR and iterate.is_on_its_way)
            idle = 0 if falls else idle + 1
            if n_iter and progress.iteration(
                ledger.primal, errors, ledger.gap, ledger.snapshot,
                primal=ledger.primal, dual=ledger.dual,
            ):  # fmt: skip
                status = Status.STOPPED
            if ledger.gap <= self.tol:
                self._at_bounds(iterate, ledger)
                return ledger.solution(Status.CONVERGED, n_iter, progress)
            if idle > PATIENCE:
                status = Status.PATIENCE
            status = status or (self.limits.reached(n_iter, progress) if n_iter else None)
            if status:
                return ledger.solution(status, n_iter, progress)
            n_iter += 1
            with np.errstate(all="ignore"):  # beyond the range of numbers nothing improves
                iterate.step()

    def _at_bounds(self, iterate: _Iterate, ledger: Ledger) -> None:
        """Put α that are on their way to a bound there, where the gap remains small enough."""
        dual, alpha = dual_value(ledger.problem, self.features, iterate.rounded_alpha)
        if (ledger.primal - dual) <= self.tol * ledger.primal:
            ledger.dual, ledger.alpha = dual, alpha


class _Change(NamedTuple):
    """A step of everything."""

    a: Floats
    scores: Floats
    alpha: Floats
    slack: Floats
    xi: Floats | None


class _Iterate:
    """a, the scores, α, s and ξ, all of them strictly positive but the first two."""

    def __init__(self, problem: PrimalProblem, features: Any) -> None:
        # Samples that do not count have an α of 0, with no interior: they get no weight.
        upper, ridge = problem.upper, problem.ridge
        counts = np.broadcast_to((upper > 0.0) & np.isfinite(ridge), problem.y.shape)
        self.problem, self.features = problem, features
        self.y = problem.y
        self.upper = None if squared(problem) is not None else upper
        self.ridge = ridge
        n, d = features.n_rows, features.n_columns
        self.a, self.scores = np.zeros(d + 1), np.zeros(n)
        self.counts = counts
        costs = np.where(counts, 1.0 / ridge if self.upper is None else upper, 0.0)
        # Of the squared hinge α goes with the costs, and so do the products: a sample of weight 2
        # is two samples. Of the hinge u bounds α.
        mean = float(np.sum(costs) / max(np.count_nonzero(counts), 1))
        self.parts = costs / mean if self.upper is None else np.ones(n)
        self.alpha = self._first_alpha(costs)
        self.slack = np.ones(n)
        self.xi = None if self.upper is None else np.ones(n)
        self.is_on_its_way = True

    def _first_alpha(self, costs: Floats) -> Floats:
        """Return α inside its box with yᵀα = 0; any number for samples that do not count."""
        totals = [float(costs[self.y == sign].sum()) for sign in (1.0, -1.0)]
        shares = [0.5 * min(totals) / max(total, np.finfo(float).tiny) for total in totals]
        return np.where(self.counts, costs * np.where(self.y > 0, *shares), 1.0)

    @property
    def mu(self) -> Floats:
        """u − α; any number for samples that do not count."""
        assert self.upper is not None
        return np.where(self.counts, self.upper - self.alpha, 1.0)

    @property
    def plane(self) -> Plane:
        """The plane now."""
        return Plane(self.a[:-1].copy(), float(self.a[-1]))

    @property
    def whole_alpha(self) -> Floats:
        """α, 0 of samples that do not count."""
        return np.where(self.counts, self.alpha, 0.0)

    @property
    def rounded_alpha(self) -> Floats:
        """α, at its bound where what is complementary to it is far from 0."""
        alpha = self.whole_alpha
        if self.xi is None or self.upper is None:
            scale = 1.0 / np.maximum(self.ridge, np.finfo(float).tiny)
            return np.where(alpha < NEGLIGIBLE * scale * self.slack, 0.0, alpha)
        alpha = np.where(alpha < NEGLIGIBLE * self.upper * self.slack, 0.0, alpha)
        return np.where(self.mu < NEGLIGIBLE * self.upper * self.xi, self.upper, alpha)

    @property
    def errors(self) -> int:
        """Samples on the wrong side."""
        return int(np.count_nonzero(self.y * self.scores < 0.0))

    def step(self) -> None:
        """Predict, correct, and go as far as all stay positive."""
        residual = self._residual()
        weights = self._weights()
        H = self.features.moments(weights)
        bias = self.problem.bias
        H[np.diag_indices(self.a.size - 1)] += 1.0
        H[-1, -1] += float(bias == "penalised")
        if bias == "none":
            H[-1], H[:, -1], H[-1, -1] = 0.0, 0.0, 1.0
        system = Factored(H)
        average = self._average()
        first = self._change(system, weights, residual, 0.0, None)
        reach = self._reach(first)
        there = self._average(first, reach)
        centre = (there / average) ** POWER * average
        change = self._change(system, weights, residual, centre, first)
        t = min(1.0, NEARLY * self._reach(change))
        moved = float(np.abs(t * change.a).max()) > TENTH * float(np.abs(self.a).max())
        self.is_on_its_way = moved or self._average(change, t) < (1.0 - TENTH) * average
        self.a = self.a + t * change.a
        self.scores += t * change.scores
        self.alpha += t * change.alpha
        self.slack += t * change.slack
        if self.xi is not None and change.xi is not None:
            self.xi += t * change.xi

    def _residual(self) -> Floats:
        """1 − y g − ξ − Dα + s, which is 0 at a solution."""
        out = 1.0 - self.y * self.scores + self.slack
        if self.xi is not None:
            return out - self.xi
        return out - self._ridge_alpha(self.alpha)

    def _ridge_alpha(self, alpha: Floats) -> Floats:
        return np.where(np.isfinite(self.ridge), self.ridge, 0.0) * alpha

    def _weights(self) -> Floats:
        """c = 1/(s/α + ξ/μ + D)."""
        width = self.slack / self.alpha
        if self.xi is not None:
            width += self.xi / np.maximum(self.mu, np.finfo(float).tiny)
        else:
            width = width + np.where(np.isfinite(self.ridge), self.ridge, 0.0)
        return np.where(self.counts, 1.0 / width, 0.0)

    def _average(self, change: _Change | None = None, t: float = 0.0) -> float:
        """Return τ: the mean product of what is complementary, after a step of length t."""
        alpha, slack, xi = self.alpha, self.slack, self.xi
        if change is not None:
            alpha, slack = alpha + t * change.alpha, slack + t * change.slack
            xi = None if xi is None or change.xi is None else xi + t * change.xi
        total = float(np.sum(np.where(self.counts, alpha * slack, 0.0)))
        pairs = int(np.count_nonzero(self.counts))
        if xi is None or self.upper is None:
            return total / pairs
        return (total + float(np.sum(np.where(self.counts, (self.upper - alpha) * xi, 0.0)))) / (
            2 * pairs
        )

    def _change(
        self, system: Any, weights: Floats, residual: Floats, centre: float, first: _Change | None
    ) -> _Change:
        """Solve for the step to s α = τv, ξ μ = τv, with the products of the first step or not."""
        of_slack = centre * self.parts - self.alpha * self.slack
        if first is not None:
            of_slack -= first.alpha * first.slack
        e = residual + of_slack / self.alpha
        of_xi = None
        if self.xi is not None:
            of_xi = centre * self.parts - self.mu * self.xi
            if first is not None and first.xi is not None:
                of_xi += first.alpha * first.xi
            e -= of_xi / np.maximum(self.mu, np.finfo(float).tiny)
        e *= weights
        signed = self.y * (np.where(self.counts, self.alpha, 0.0) + e)
        right = np.append(self.features.combine(signed), signed.sum())
        right[:-1] -= self.a[:-1]
        right[-1] -= self.a[-1] * float(self.problem.bias == "penalised")
        if self.problem.bias == "none":
            right[-1] = 0.0
        a = system.solve(right)
        scores = self.features.scores(a[:-1], float(a[-1]))
        alpha = e - weights * self.y * scores
        slack = (of_slack - self.slack * alpha) / self.alpha
        xi = None
        if self.xi is not None and of_xi is not None:
            xi = (of_xi + self.xi * alpha) / np.maximum(self.mu, np.finfo(float).tiny)
        return _Change(a, scores, alpha, slack, xi)

    def _reach(self, change: _Change) -> float:
        """Return the longest step, at most 1/NEARLY, at which nothing is negative."""
        pairs = [(self.alpha, change.alpha), (self.slack, change.slack)]
        if self.xi is not None and change.xi is not None:
            pairs += [(self.mu, -change.alpha), (self.xi, change.xi)]
        fastest = NEARLY
        for values, changes in pairs:
            ratios = np.where(self.counts, -changes / np.maximum(values, np.finfo(float).tiny), 0.0)
            fastest = max(fastest, float(ratios.max()))
        return 1.0 / fastest
