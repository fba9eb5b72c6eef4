"""A candidate for the answer: shares, w and b, what bounds they give; and the clock of the fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import Floats
from ...engines.linear import JointState
from ...problems.circulation import circulation
from ...progress import Limits, Progress
from ...solution import Solution, Status

# The gap aimed at, relative to tol: what is left to the repair of α, and to rounding.
AIM = 0.95
# A slope, relative to Σ C_i |change of values|, that may be rounding.
ROUNDING = 1e-15
TINY = float(np.finfo(np.float64).tiny)


class Run:
    """The clock of a fit: what it aims at, and what has ended it."""

    def __init__(self, tol: float, limits: Limits, progress: Progress) -> None:
        self.tol, self.limits, self.progress = tol, limits, progress
        self.aim = AIM * tol
        self.status: Status | None = None

    def overdue(self) -> bool:
        """Return whether time is up."""
        return self.limits.seconds is not None and self.progress.seconds >= self.limits.seconds

    def report(
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

    def converged(self, candidate: Candidate, gap: float, primal: float) -> bool:
        """End the fit where the gap is small enough, and α proves it; return whether it was."""
        if gap <= self.aim * primal and self.proved(candidate, primal):
            self.status = Status.CONVERGED
        return self.status is Status.CONVERGED

    def proved(self, candidate: Candidate, primal: float) -> bool:
        """Return whether α proves that no answer undercuts P by more than tol·P."""
        dual = candidate.feasible_dual()
        if not candidate.is_sample:
            self.progress.measured(primal, dual)
        return primal - dual <= self.tol * abs(primal)


class Candidate:
    """a = (w, b) of all classes, and the state that has the shares.

    Parameters
    ----------
    bias : {"free", "penalised", "none"}
    state : JointState
    a : ndarray of shape (c, d + 1), or (c, d) without a bias
    is_sample : bool
        Whether the state is that of some rows of the problem only.
    """

    def __init__(self, bias: str, state: JointState, a: Floats, *, is_sample: bool = False) -> None:
        self.bias, self.state, self.a, self.is_sample = bias, state, a, is_sample
        self.has_bias = bias != "none"
        # What ½Σ‖w_k‖² has of the square of a bias.
        self.penalty = float(bias == "penalised")
        # What w and b are multiplied by in the end.
        self.scale = 1.0

    def start(self, alpha: Floats) -> None:
        """Begin with α, unless it is worse than 0."""
        self.state.start(alpha)
        sums = self.state.sums()
        if sums.flow >= 0.5 * self.square(sums.total):
            self.a = sums.total
            if self.has_bias:
                self.a[:, -1] *= self.penalty
        else:
            self.state.clear()

    @property
    def w(self) -> Floats:
        """The weights of all classes."""
        return np.ascontiguousarray(self.a[:, :-1]) if self.has_bias else self.a

    @property
    def b(self) -> Floats:
        """The biases of all classes."""
        return self.a[:, -1] if self.has_bias else np.zeros(len(self.a))

    def square(self, a: Floats) -> float:
        """Return Σ_k‖w_k‖², and b² where it is penalised."""
        if not self.has_bias:
            return float(np.linalg.norm(a)) ** 2
        return self.square_of(a[:, :-1].copy(), a[:, -1].copy())

    def square_of(self, w: Floats, b: Floats) -> float:
        """Return the same of w and b."""
        return float(np.linalg.norm(w)) ** 2 + self.penalty * float(b @ b)

    def primal(self, loss: float, worst: float) -> float:
        """Return P of losses Σ C_i ξ_i, the largest ξ being ``worst``.

        Where all are small, w/(1 − worst) has none at all, at a price that does not grow with C.
        """
        half = 0.5 * self.square(self.a)
        self.scale = 1.0 / (1.0 - min(worst, 0.5) - 4.0 * ROUNDING)
        if worst < 0.5 and self.scale**2 * half < half + loss:
            return self.scale**2 * half
        self.scale = 1.0
        return half + loss

    def feasible_dual(self) -> float:
        """Return D of α, after Σ_i α_i^k = 0 is restored where the bias is free."""
        factors = None
        if self.bias == "free":
            flows = self.state.flows()
            factors = circulation(flows) / np.where(flows > 0.0, flows, 1.0)
        sums = self.state.sums(factors)
        return sums.flow - 0.5 * self.square(sums.total)

    def shorten(self, shortest: float, cost: float) -> None:
        """Scale w and b of a fit that was cut short down to about the least P along their ray.

        P of w and b on their way may be far above that of w = 0, though their direction is good. P
        is convex along the ray.
        """
        self.state.place(self.a)
        half = 0.5 * self.square(self.a)

        def primal(t: float) -> float:
            return t * t * half + self.state.survey(t).loss

        t, least = self.scale, primal(self.scale)
        while t > shortest and (shorter := primal(0.5 * t)) < least:
            t, least = 0.5 * t, shorter
        self.scale = t if least <= cost else 0.0

    def replace_if_useless(self, cost: float) -> None:
        """Take α = 0 in place of one with D < 0, and w = b = 0 for a P above Σ C_i, their P."""
        if not self.feasible_dual() >= 0.0:
            self.state.clear()
        loss = self.state.survey(self.scale).loss
        if not 0.5 * self.scale**2 * self.square(self.a) + loss <= cost:
            self.a, self.scale = np.zeros_like(self.a), 1.0

    def bounds(self, primal: float, dual: float) -> tuple[float, float]:
        """Return P and D as far as they are those of the whole problem.

        A sample's are not, nor is D of a free bias before Σ_i α_i^k = 0, which takes a pass.
        """
        if self.is_sample:
            return np.nan, np.nan
        return primal, dual if self.bias != "free" else np.nan

    def snapshot(self) -> Solution:
        """Return the candidate now, for callbacks."""
        return self.solution(Status.STOPPED, None)

    def solution(self, status: Status, progress: Progress | None) -> Solution:
        """Return w, b, and α of all samples."""
        w, b = self.scale * self.w, self.scale * self.b
        if self.is_sample:
            return Solution(w, b, status)
        alpha = self.state.alpha()
        if progress is None:
            return Solution(w, b, status, alpha=alpha)
        trace = progress.trace()
        return Solution(
            w, b, status, len(trace), seconds=progress.seconds, alpha=alpha, trace=trace
        )
