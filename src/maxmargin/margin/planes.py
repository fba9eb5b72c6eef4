"""What the solvers of the linear machine share: a plane with its α, and the gap between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..problem import LinearMarginProblem
from ..samples import Floats, Integers
from ..solution import Progress, Solution, Status


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


def start_of(problem: LinearMarginProblem, start: Plane) -> Plane:
    """Return a start as this problem can use it: without a bias if it has none, α in its box."""
    alpha = start.alpha
    if alpha is not None:
        alpha = np.clip(alpha, 0.0, problem.box)
    return Plane(start.w, start.b if problem.bias != "none" else 0.0, alpha)


def restricted(
    problem: LinearMarginProblem, rows: Integers, X: Any, times: float = 1.0
) -> LinearMarginProblem:
    """Return the problem of some rows, each of which counts several ``times``."""
    upper, ridge = (of_some(values, rows) for values in (problem.upper, problem.ridge))
    return LinearMarginProblem(X, problem.y[rows], upper * times, ridge / times, problem.bias)


def of_some(values: Floats, rows: Any) -> Floats:
    """Return the values of some rows; a single value is that of all."""
    return values if values.size == 1 else values[rows]


def squared(problem: LinearMarginProblem) -> Floats | None:
    """Return 1/D of a squared hinge, None for the hinge."""
    return 1.0 / problem.ridge if np.isinf(problem.upper).all() else None


class Ledger:
    """The best plane and the best α so far, and the duality gap between them.

    P(w, b) ≥ D(α) for every plane and every feasible α, so each side may come from another time.
    """

    def __init__(self, problem: LinearMarginProblem, features: Any) -> None:
        self.problem, self.features = problem, features
        # Nothing that is handed out is to be worse than w = 0 and α = 0.
        self.plane = nothing(problem, features.n_columns)
        scores = np.full(len(problem.y), self.plane.b)
        self.primal, self.dual = primal_value(problem, self.plane, scores), 0.0
        self.alpha: Floats = np.zeros(len(problem.y))

    @property
    def gap(self) -> float:
        """(P − D)/P of the best."""
        if not np.isfinite(self.primal):
            return np.inf
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
        """Return the best as the answer."""
        return Solution(
            w=self.plane.w[np.newaxis],
            b=np.array([self.plane.b]),
            status=status,
            n_iter=n_iter,
            seconds=progress.seconds,
            alpha=self.alpha,
            trace=progress.trace(),
        )


def nothing(problem: LinearMarginProblem, n_features: int) -> Plane:
    """Return w = 0 with the bias that suits it best."""
    if problem.bias == "none":
        return Plane.zero(n_features)
    return Plane(
        np.zeros(n_features), float(np.mean(best_biases(problem, np.zeros(len(problem.y)))))
    )


def primal_value(problem: LinearMarginProblem, plane: Plane, scores: Floats) -> float:
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


def _weighted_sum(weights: Floats, values: Floats) -> float:
    if weights.size == 1:
        return float(weights[0]) * float(values.sum())
    return float(weights @ values)


def dual_value(
    problem: LinearMarginProblem, features: Any, alpha: Floats, w: Floats | None = None
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


def balanced(problem: LinearMarginProblem, alpha: Floats) -> Floats:
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


def best_biases(
    problem: LinearMarginProblem, scores: Floats, b: float = 0.0
) -> tuple[float, float]:
    """Return the least and the largest t for which b + t is the best bias of these scores.

    Where the slope −Σ α_i(t) y_i [+ b + t] of the objective changes sign: for the hinge it rises by
    u_i at every t = y_i − s_i, for the squared hinge by the curvature of the samples with z_i > 0.
    """
    breaks = problem.y - scores
    order = np.argsort(breaks)
    t, y = breaks[order], problem.y[order]
    kappa = float(problem.bias == "penalised")
    if np.isinf(problem.upper).all():
        return (_root_of_parabolas(t, y, of_some(1.0 / problem.ridge, order), kappa, b),) * 2
    costs = np.broadcast_to(of_some(problem.upper, order), t.shape)
    slopes = np.cumsum(costs) - float(costs[y > 0].sum())  # just after every break, without κ
    rounding, last = 1e-12 * float(costs.sum()), t.size - 1
    low = min(int(np.searchsorted(slopes + kappa * (b + t), -rounding)), last)
    if kappa:
        before = slopes[low] - costs[low]
        root = float(t[low]) if before + b + t[low] <= 0.0 else -float(before) - b
        return root, root
    high = min(int(np.searchsorted(slopes, rounding, side="right")), last)
    return float(t[low]), float(t[high])


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
