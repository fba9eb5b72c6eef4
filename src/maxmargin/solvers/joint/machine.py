"""An answer in the making: shares, w and b, what bounds they give, and the clock of the fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import Floats, Integers
from ...certificates.joint import circulating, rival_flows
from ...problems import JointProblem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from .rows import Rows

# The gap aimed at, relative to tol: what is left to the repair of α, and to rounding.
AIM = 0.95
# A slope, relative to Σ C_i |change of values|, that may be rounding.
ROUNDING = 1e-15
TINY = float(np.finfo(np.float64).tiny)


class Run:
    """The fit's clock: what it is aiming at, and what has ended it."""

    def __init__(self, tol: float, limits: Limits, progress: Progress) -> None:
        self.tol, self.limits, self.progress = tol, limits, progress
        self.aim = AIM * tol
        self.status: Status | None = None

    @property
    def overdue(self) -> bool:
        """Whether time is up."""
        return self.limits.seconds is not None and self.progress.seconds >= self.limits.seconds

    def tell(
        self,
        dual: float,
        gap: float,
        errors: int,
        snapshot: Callable[[], Solution],
        bounds: tuple[float, float],
    ) -> bool:
        """Report an iteration; return whether a limit or a callback ends the fit.

        ``bounds`` are P and D of the whole problem, as far as they are known.
        """
        relative = gap / max(abs(dual + gap), TINY)
        self.progress.unit = "iteration"  # passes, then steps
        if self.progress.iteration(
            -dual, errors, relative, snapshot, primal=bounds[0], dual=bounds[1], exact=False
        ):
            self.status = Status.STOPPED
        else:
            self.status = self.limits.reached(len(self.progress.history), self.progress)
        return self.status is not None

    def converged(self, machine: Machine, gap: float, primal: float) -> bool:
        """End the fit where the gap is small enough, and α proves it; return whether it was."""
        if gap <= self.aim * primal and self.proved(machine, primal):
            self.status = Status.CONVERGED
        return self.status is Status.CONVERGED

    def proved(self, machine: Machine, primal: float) -> bool:
        """Return whether α proves that no answer undercuts P by more than tol·P."""
        dual = machine.feasible_dual()
        if not machine.is_sample:
            self.progress.measured(primal, dual)
        return primal - dual <= self.tol * abs(primal)


class Machine:
    """The samples that count, their shares, and w and b: an answer in the making."""

    def __init__(
        self, problem: JointProblem, start: Floats | None, *, is_sample: bool = False
    ) -> None:
        self.problem, self.is_sample = problem, is_sample
        counted = np.flatnonzero(problem.cost > 0.0)
        everything = counted.size == problem.cost.size
        self.counted = counted
        self.rows = Rows(problem.X, None if everything else counted)
        self.labels = np.ascontiguousarray(problem.labels[counted], dtype=np.intp)
        self.cost = np.ascontiguousarray(problem.cost[counted], dtype=np.float64)
        self.has_bias = problem.bias != "none"
        # What ½Σ‖w_k‖² has of the square of a bias.
        self.penalty = float(problem.bias == "penalised")
        # What w and b are multiplied by in the end.
        self.scale = 1.0
        self.p: Floats = np.zeros((counted.size, problem.n_classes))
        if start is not None:
            self.p = rival_flows(problem, start)[counted] / self.cost[:, np.newaxis]
        self.p[self.own] = np.maximum(1.0 - self.p.sum(axis=1), 0.0)
        self.w, self.b = self.combined()
        if not self.flow >= 0.5 * self.square(self.w, self.b):  # worse than nothing
            self.p[:] = 0.0
            self.p[self.own] = 1.0
            self.w[:], self.b[:] = 0.0, 0.0
        self.b *= self.penalty

    @property
    def own(self) -> tuple[Integers, Integers]:
        """The places of the own classes in an array of shape (n, c)."""
        return np.arange(self.labels.size), self.labels

    @property
    def alpha(self) -> Floats:
        """α of the samples that count."""
        return alpha_of(self.p, self.cost, self.own)

    def decide(self) -> None:
        """Give all shares to the class of the largest value."""
        values = self.values() + 1.0
        values[self.own] -= 1.0
        self.p[:] = 0.0
        self.p[np.arange(self.labels.size), values.argmax(axis=1)] = 1.0

    @property
    def flow(self) -> float:
        """Σ_i α_i^y, what flows from the own classes to their rivals."""
        return float(self.alpha[self.own].sum())

    def combined(self) -> tuple[Floats, Floats]:
        """Return Σ_i α_i^k (x_i, 1)."""
        alpha = self.alpha
        return self.rows.combine(alpha), alpha.sum(axis=0)

    def values(self) -> Floats:
        """Return w_k·x_i + b_k."""
        return self.rows.scores(self.w, self.b)

    def square(self, w: Floats, b: Floats) -> float:
        """Return Σ_k‖w_k‖², and b² where it is penalised."""
        return float(np.linalg.norm(w)) ** 2 + self.penalty * float(b @ b)

    def primal(self, loss: float, worst: float) -> float:
        """Return P of losses Σ C_i ξ_i, the largest ξ being ``worst``.

        Where all are small, w/(1 − worst) has none at all, at a price that does not grow with C.
        """
        half = 0.5 * self.square(self.w, self.b)
        self.scale = 1.0 / (1.0 - min(worst, 0.5) - 4.0 * ROUNDING)
        if worst < 0.5 and self.scale**2 * half < half + loss:
            return self.scale**2 * half
        self.scale = 1.0
        return half + loss

    def feasible(self) -> Floats:
        """Return α with Σ_i α_i^k = 0 where the bias is free."""
        alpha = self.alpha
        if self.problem.bias == "free":
            flows = np.maximum(-alpha, 0.0)
            flows[self.own] = 0.0
            alpha = -circulating(self.labels, flows)
            alpha[self.own] = 0.0
            alpha[self.own] = -alpha.sum(axis=1)
        return alpha

    def feasible_dual(self) -> float:
        """Return D of that α."""
        alpha = self.feasible()
        square = self.square(self.rows.combine(alpha), alpha.sum(axis=0))
        return float(alpha[self.own].sum()) - 0.5 * square

    def replace_if_useless(self) -> None:
        """Take α = 0 in place of one with D < 0, and w = b = 0 for a P above that of nothing."""
        if not self.feasible_dual() >= 0.0:
            self.p[:] = 0.0
            self.p[self.own] = 1.0
        values = self.scale * self.values() + 1.0
        values[self.own] -= 1.0
        loss = float(self.cost @ (values.max(axis=1) - values[self.own]))
        if not 0.5 * self.scale**2 * self.square(self.w, self.b) + loss <= self.cost.sum():
            self.w, self.b, self.scale = np.zeros_like(self.w), np.zeros_like(self.b), 1.0

    def bounds(self, primal: float, dual: float) -> tuple[float, float]:
        """Return P and D as far as they are those of the whole problem.

        A sample's are not, nor is D of a free bias before Σ_i α_i^k = 0, which takes a pass.
        """
        if self.is_sample:
            return np.nan, np.nan
        return primal, dual if self.problem.bias != "free" else np.nan

    def snapshot(self) -> Solution:
        """Return the machine now, for those who watch."""
        return self.solution(Status.STOPPED, None)

    def solution(self, status: Status, progress: Progress | None) -> Solution:
        """Return w, b, and α of all samples."""
        w, b = self.scale * np.ascontiguousarray(self.w), self.scale * self.b
        if self.is_sample:
            return Solution(w, b, status)
        alpha = np.zeros((self.problem.cost.size, self.problem.n_classes))
        alpha[self.counted] = self.alpha
        if progress is None:
            return Solution(w, b, status, alpha=alpha)
        trace = progress.trace()
        return Solution(
            w, b, status, len(trace), seconds=progress.seconds, alpha=alpha, trace=trace
        )


def alpha_of(p: Floats, cost: Floats, own: tuple[Integers, Integers]) -> Floats:
    """Return α of shares, the own class's from those of its rivals: Σ_k α_i^k = 0 to rounding."""
    alpha = -cost[:, np.newaxis] * p
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha
