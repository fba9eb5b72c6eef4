"""What the solvers of the linear machine share: a plane with its α, and the gap between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...arrays import Floats, Integers
from ...problems import PrimalProblem
from ...progress import Progress
from ...solution import Solution, Status

# Breaks up to which all of them are sorted for the best bias; of more, this share first.
SORTED, NEAR = 10_000, 0.02


@dataclass(frozen=True)
class Plane:
    """(w, b), and α where it is known."""

    w: Floats
    b: float
    alpha: Floats | None = None

    @classmethod
    def zero(cls, n_features: int) -> Self:
        """No plane yet."""
        return cls(np.zeros(n_features), 0.0)

    @property
    def augmented(self) -> Floats:
        """(w, b) as one vector."""
        return np.append(self.w, self.b)


def start_of(problem: PrimalProblem, start: Plane) -> Plane:
    """Return a start as this problem can use it: without a bias if it has none, α in its box."""
    alpha = start.alpha
    if alpha is not None:
        alpha = np.clip(alpha, 0.0, problem.box)
    return Plane(start.w, start.b if problem.bias != "none" else 0.0, alpha)


def restricted(problem: PrimalProblem, rows: Integers, X: Any, times: float = 1.0) -> PrimalProblem:
    """Return the problem of some rows, each of which counts several ``times``."""
    upper, ridge = (of_some(values, rows) for values in (problem.upper, problem.ridge))
    return PrimalProblem(X, problem.y[rows], upper * times, ridge / times, problem.bias)


def of_some(values: Floats, rows: Any) -> Floats:
    """Return the values of some rows; a single value is that of all."""
    return values if values.size == 1 else values[rows]


def squared(problem: PrimalProblem) -> Floats | None:
    """Return 1/D of a squared hinge, None for the hinge."""
    return 1.0 / problem.ridge if np.isinf(problem.upper).all() else None


class Ledger:
    """The best plane and the best α so far, and the duality gap between them.

    P(w, b) ≥ D(α) for every plane and every feasible α, so each side may come from another time.
    They begin with w = 0 and α = 0: nothing worse is ever the answer.
    """

    def __init__(self, problem: PrimalProblem, features: Any) -> None:
        self.problem, self.features = problem, features
        # Nothing that is handed out is to be worse than w = 0 and α = 0.
        self.plane = Plane(np.zeros(features.n_columns), bias_without_plane(problem))
        scores = np.full(len(problem.y), self.plane.b)
        self.primal, self.dual = primal_value(problem, self.plane, scores), 0.0
        self.alpha: Floats = np.zeros(len(problem.y))

    @property
    def gap(self) -> float:
        """(P − D)/P of the best."""
        return (self.primal - self.dual) / max(self.primal, np.finfo(float).tiny)

    def enter(self, plane: Plane, scores: Floats, alpha: Floats) -> float:
        """Take in a plane, with the scores w·x + b of all samples, and an α of 0 ≤ α ≤ u.

        Return P of that plane, which need not be the best one.
        """
        primal = primal_value(self.problem, plane, scores)
        if primal < self.primal:
            self.primal, self.plane = primal, plane
        dual, feasible = dual_value(self.problem, self.features, alpha)
        if dual > self.dual:
            # A solver may go on in place.
            self.dual, self.alpha = dual, alpha.copy() if feasible is alpha else feasible
        return primal

    def snapshot(self) -> Solution:
        """Return a copy of the best, for those who watch."""
        return Solution(
            self.plane.w[np.newaxis].copy(), np.array([self.plane.b]), Status.STOPPED,
            alpha=self.alpha.copy(),
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
            alpha=self.alpha,
            trace=progress.trace(),
        )

    def _centre_bias(self) -> None:
        """Move a free bias of the hinge to the middle of the interval of the best for w."""
        problem, plane = self.problem, self.plane
        if problem.bias != "free" or squared(problem) is not None:
            return
        scores = self.features.scores(plane.w, plane.b)
        shift = 0.5 * sum(best_biases(problem, scores))
        scores += shift
        centred = Plane(plane.w, plane.b + shift)
        primal = primal_value(problem, centred, scores)
        if primal <= (1.0 + 4.0 * np.finfo(float).eps) * self.primal:
            self.plane, self.primal = centred, min(primal, self.primal)


def primal_value(problem: PrimalProblem, plane: Plane, scores: Floats) -> float:
    """Return ½‖w‖² [+ ½b²] + Σ h_i(1 − y_i g(x_i))."""
    z = np.multiply(problem.y, scores)
    np.subtract(1.0, z, out=z)
    np.maximum(z, 0.0, out=z)
    value = 0.5 * float(plane.w @ plane.w)
    if problem.bias == "penalised":
        value += 0.5 * plane.b**2
    if np.isinf(problem.upper).all():
        z *= z
        return value + 0.5 * _weighted_sum(1.0 / problem.ridge, z)
    return value + _weighted_sum(problem.upper, z)


def bias_without_plane(problem: PrimalProblem) -> float:
    """Return the best b where w = 0: of every score the same, −1 ≤ b ≤ 1.

    Slopes are those of Σ c₊ h(1 − b) + c₋ h(1 + b) [+ ½b²], c± the costs of the classes; of a hinge
    whose classes cost the same every b is as good, and 0 is taken.
    """
    if problem.bias == "none":
        return 0.0
    costs = squared(problem)
    costs = np.broadcast_to(problem.upper if costs is None else costs, problem.y.shape)
    positive, negative = (float(np.sum(costs, where=problem.y == sign)) for sign in (1.0, -1.0))
    kappa = float(problem.bias == "penalised")
    if squared(problem) is not None:
        return (positive - negative) / (positive + negative + kappa)
    excess = positive - negative
    return min(max(excess, -1.0), 1.0) if kappa else float(np.sign(excess))


def _weighted_sum(weights: Floats, values: Floats) -> float:
    if weights.size == 1:
        return float(weights[0]) * float(values.sum())
    return float(weights @ values)


def dual_value(
    problem: PrimalProblem, features: Any, alpha: Floats, w: Floats | None = None
) -> tuple[float, Floats]:
    """Return D(α), and α: with yᵀα = 0 where the bias is free.

    Where ``w`` = Σ α_i y_i x_i of the α given is known, only the rows that this changes are read.
    """
    given = alpha
    if problem.bias == "free":
        alpha = balanced(problem, alpha)
    signed = alpha * problem.y
    if w is None:
        w = features.combine(signed)
    elif alpha is not given:
        w = w + features.combine(signed - given * problem.y)
    value = float(signed @ problem.y) - 0.5 * float(w @ w)
    if problem.bias == "penalised":
        value -= 0.5 * float(signed.sum()) ** 2
    if problem.ridge.any():
        ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
        value -= 0.5 * _weighted_sum(ridge, np.square(alpha, out=signed))
    return value, alpha


def balanced(problem: PrimalProblem, alpha: Floats) -> Floats:
    """Take from the heavier class until yᵀα = 0: from α between its bounds if they are enough."""
    excess = float(problem.y @ alpha)
    if excess == 0.0:
        return alpha
    heavier = problem.y == np.sign(excess)
    for some in (heavier & (alpha < problem.upper), heavier):
        total = float(np.sum(alpha, where=some))
        if total > 0.0 and total >= abs(excess):
            alpha = alpha.copy()
            return np.multiply(alpha, 1.0 - abs(excess) / total, out=alpha, where=some)
    return np.zeros_like(alpha)


def best_biases(problem: PrimalProblem, scores: Floats, b: float = 0.0) -> tuple[float, float]:
    """Return the least and the largest t for which b + t is the best bias of these scores.

    Where the slope −Σ α_i(t) y_i [+ b + t] of the objective changes sign: for the hinge it rises by
    u_i at every t = y_i − s_i, for the squared hinge by the curvature of the samples with z_i > 0.
    """
    breaks = problem.y - scores
    kappa = float(problem.bias == "penalised")
    if np.isinf(problem.upper).all():
        order = np.argsort(breaks)
        costs = of_some(1.0 / problem.ridge, order)
        return (_root_of_parabolas(breaks[order], problem.y[order], costs, kappa, b),) * 2
    costs = np.broadcast_to(problem.upper, breaks.shape)
    before = -float(np.sum(costs, where=problem.y > 0))  # the slope left of all breaks, without κ
    rounding = 1e-12 * float(costs.sum())
    if not kappa:
        return _flat_part(breaks, costs, before, rounding)
    order = np.argsort(breaks)
    t, slopes = breaks[order], before + np.cumsum(costs[order])
    low = min(int(np.searchsorted(slopes + b + t, -rounding)), t.size - 1)
    before = float(slopes[low] - costs[order[low]])
    root = float(t[low]) if before + b + t[low] <= 0.0 else -before - b
    return root, root


def _flat_part(t: Floats, costs: Floats, before: float, rounding: float) -> tuple[float, float]:
    """Return the least and the largest t at which before + Σ_{t_i ≤ t} c_i changes sign.

    Of many breaks those near 0 are sorted only, where the sign changes between them.
    """
    if t.size > SORTED:
        size = np.abs(t)
        reach = float(np.quantile(size[:: t.size // SORTED], NEAR))
        inside = size <= reach
        first = before + float(np.sum(costs, where=t < -reach))
        if first < -rounding and first + float(np.sum(costs, where=inside)) > rounding:
            t, costs, before = t[inside], costs[inside], first
    order = np.argsort(t)
    t, slopes = t[order], before + np.cumsum(costs[order])
    low = int(np.searchsorted(slopes, -rounding))
    high = int(np.searchsorted(slopes, rounding, side="right"))
    return float(t[min(low, t.size - 1)]), float(t[min(high, t.size - 1)])


def _root_of_parabolas(t: Floats, y: Floats, costs: Floats, kappa: float, b: float) -> float:
    """Return where κ(b + t) + Σ_{y=1, t_i > t} c_i (t − t_i) + Σ_{y=−1, t_i < t} … = 0."""
    costs = np.broadcast_to(costs, t.shape)
    weight = np.cumsum(np.where(y > 0, 0.0, costs)) + _from_the_end(np.where(y > 0, costs, 0.0))
    pull = np.cumsum(np.where(y > 0, 0.0, costs * t)) - kappa * b
    pull += _from_the_end(np.where(y > 0, costs * t, 0.0))
    weight += kappa
    # Between t_k and t_{k+1} these are the sums; the slope at t_{k+1} has the same ones.
    slopes = weight[:-1] * t[1:] - pull[:-1]
    k = int(np.searchsorted(slopes, 0.0))
    first = (
        float(np.sum(np.where(y > 0, costs, 0.0))) + kappa,
        float(np.sum(np.where(y > 0, costs * t, 0.0))) - kappa * b,
    )
    if first[0] * t[0] >= first[1]:  # left of all breaks
        return first[1] / first[0]
    return float(pull[k] / weight[k]) if weight[k] > 0.0 else float(t[k])


def _from_the_end(values: Floats) -> Floats:
    """Return the sum of all that come after each."""
    return np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)
