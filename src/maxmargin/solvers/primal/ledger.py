"""What the solvers of the linear machine share: a plane with its α, and the gap between the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ...arrays import Floats
from ...engines.linear import PrimalState
from ...problems import PrimalProblem
from ...problems.best_bias import best_biases
from ...progress import Progress
from ...solution import Solution, Status

# What rounding leaves of a loss, relative to that of the targets themselves.
RESOLUTION = 1e-11
# Rows from which the best bias of w = 0 is computed, about.
LEVEL_ROWS = 10_000


@dataclass(frozen=True)
class Plane:
    """(w, b), and α where it is known."""

    w: Floats
    b: float
    alpha: Floats | None = None

    @classmethod
    def zero(cls, n_features: int) -> Self:
        """Return w = 0 and b = 0."""
        return cls(np.zeros(n_features), 0.0)

    @property
    def augmented(self) -> Floats:
        """(w, b) as one vector."""
        return np.append(self.w, self.b)


class Ledger:
    """The best plane and the best α so far, and the duality gap between them.

    P(w, b) ≥ D(α) for every plane and every feasible α, so each side may come from another time.
    They begin with w = 0 and α = 0: nothing worse is ever the answer.

    Parameters
    ----------
    problem : PrimalProblem
    state : PrimalState
        Its scores are those of w = 0 and the best bias afterwards.
    """

    def __init__(self, problem: PrimalProblem, state: PrimalState) -> None:
        self.bias, self.curved, self.state = problem.bias, problem.curved, state
        self.least = least_size(problem)
        b = bias_without_plane(problem, state.class_costs)
        self.plane = Plane(np.zeros(state.features.n_columns), b)
        state.place(self.plane.w, b)
        self.primal, self.dual = self._primal(self.plane), 0.0

    @property
    def gap(self) -> float:
        """(P − D)/P of the best."""
        return (self.primal - self.dual) / max(self.primal, self.least)

    def enter(self, plane: Plane, *, of_scores: bool = False) -> float:
        """Take in the plane and the α of the state, or that of its scores where u = ∞.

        Return P of that plane, which need not be the best one.
        """
        primal = self._primal(plane)
        if primal < self.primal:
            self.primal, self.plane = primal, plane
        dual = self.state.dual(of_scores=of_scores)
        if dual > self.dual:
            self.dual = dual
            self.state.keep()
        return primal

    def snapshot(self) -> Solution:
        """Return a copy of the best, for callbacks."""
        return Solution(
            self.plane.w[np.newaxis].copy(), np.array([self.plane.b]), Status.STOPPED,
            alpha=np.asarray(self.state.alpha(kept=True)),
        )  # fmt: skip

    def solution(self, status: Status, n_iter: int, progress: Progress) -> Solution:
        """Return the best as the answer, its bias in the middle of all that are as good."""
        self._centre_bias()
        progress.measured(self.primal, self.dual)
        return Solution(
            w=self.plane.w[np.newaxis],
            b=np.array([self.plane.b]),
            status=status,
            n_iter=n_iter,
            seconds=progress.seconds,
            alpha=self.state.alpha(kept=True),
            trace=progress.trace(),
        )

    def _primal(self, plane: Plane) -> float:
        """Return ½‖w‖² [+ ½b²] + Σ h_i of the scores now."""
        value = 0.5 * float(plane.w @ plane.w)
        if self.bias == "penalised":
            value += 0.5 * plane.b**2
        return value + self.state.loss()

    def _centre_bias(self) -> None:
        """Move a free bias to the middle of the interval of the best for w."""
        if self.bias != "free" or self.curved:  # which has one best bias
            return
        plane, state = self.plane, self.state
        state.place(plane.w, plane.b)
        shift = 0.5 * sum(state.best_biases(plane.b))
        state.shift(shift)
        centred = Plane(plane.w, plane.b + shift)
        primal = self._primal(centred)
        if primal <= (1.0 + 4.0 * np.finfo(float).eps) * self.primal:
            self.plane, self.primal = centred, min(primal, self.primal)


def least_size(problem: PrimalProblem) -> float:
    """Return the P below which it is 0: what rounding makes of the losses of the targets.

    P is 0 where the tube holds all of them.
    """
    tiny = float(np.finfo(float).tiny)
    if not problem.two_sided:
        return tiny
    y, costs = np.abs(problem.y), problem.upper if not problem.curved else 0.5 / problem.ridge
    losses: Any = y if not problem.curved else y * y
    total = float(costs[0]) * losses.sum() if costs.size == 1 else np.sum(costs * losses)
    return max(tiny, RESOLUTION * float(total))


def bias_without_plane(
    problem: PrimalProblem, class_costs: Callable[[], tuple[float, float]] | None = None
) -> float:
    """Return the best b where w = 0: of every score the same.

    Of labels −1 ≤ b ≤ 1, and slopes are those of c₊ h(1 − b) + c₋ h(1 + b) [+ ½b²], c± the costs
    of the classes; where the loss is a line every b is as good for classes of equal costs, and 0 is
    taken. Of a loss that is a parabola first, that of a line is good enough.
    """
    if problem.bias == "none":
        return 0.0
    if problem.two_sided:
        return _level(problem)
    positive, negative = (class_costs or problem.class_costs)()
    excess, kappa = positive - negative, float(problem.bias == "penalised")
    if problem.curved:
        return excess / (positive + negative + kappa)
    return min(max(excess, -1.0), 1.0) if kappa else float(np.sign(excess))


def _level(problem: PrimalProblem) -> float:
    """Return the best b of targets where w = 0, from some of them where they are many."""
    step = max(1, problem.y.size // LEVEL_ROWS)
    upper, ridge = (
        (each if each.size == 1 else each[::step]) * factor
        for each, factor in ((problem.upper, float(step)), (problem.ridge, 1.0 / step))
    )
    some = replace(problem, X=None, y=problem.y[::step], upper=upper, ridge=ridge)
    return 0.5 * sum(best_biases(some, np.zeros(some.y.size)))
