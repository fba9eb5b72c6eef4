"""How far α and its scores are from the optimum of a kernel machine, as its solvers see it.

The certificate has formulas of its own; here the question is whether to go on, and with which b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import Floats
from ...certificates.dual import margin_unit, primal_value
from ...problems import LinearMarginProblem, MarginProblem
from ...solution import Solution, Status
from ..primal.ledger import best_biases
from .active_set import bias, equalities, kkt_interval, violations

# Shares of tol, and of the relative gap of 2·tol, that solvers aim at: the certificate adds up in
# another order.
AIM = 0.5


@dataclass(frozen=True)
class Optimality:
    """α and b, with what the KKT conditions and the duality gap say of them.

    Parameters
    ----------
    alpha : ndarray of shape (n,)
    b : float
    scores : ndarray of shape (n,)
        Σ_l α_l y_l K(x_l, x_m).
    violation : float
        The worst violation of a KKT condition, in the units of the certificate.
    primal, dual, gap : float
        P, D and (P − D)/P, for the ν-machine relative to νρ where P is less.
    bounds : ndarray of shape (n,), optional
        By how much rounding may have made each of the scores wrong.
    """

    alpha: Floats
    b: float
    scores: Floats
    violation: float
    primal: float
    dual: float
    gap: float
    bounds: Floats | None = None

    @classmethod
    def of(
        cls,
        problem: MarginProblem,
        alpha: Floats,
        scores: Floats,
        largest: float = 1.0,
        b: float | None = None,
        bounds: Floats | None = None,
    ) -> Optimality:
        """Judge α; without ``b`` it is the one of the least violation. ``largest`` is max K(x, x).

        For the ν-machine ``largest`` sets the unit of violations where there is no margin.
        """
        y = problem.y
        gradient = y * scores + problem.ridge * alpha - problem.linear
        A, _ = equalities(problem)
        found = np.array([_middle(row, alpha, problem.upper, gradient) for row in A])
        rho = -float(np.mean(found)) if problem.total else 1.0  # λ are b − ρ and −b − ρ
        if b is None:
            b = bias(problem, found)
            slope = gradient + found @ A
        else:
            slope = gradient + y * b
            if problem.total:
                # ρ is free: the one in the middle of what the conditions leave it.
                rho = -_middle(np.ones(y.size), alpha, problem.upper, slope)
                slope -= rho
        violation = float(violations(alpha, problem.upper, slope).max(initial=0.0))
        square = float((alpha * y) @ scores)
        primal = primal_value(problem, square, y * (scores + b))
        dual = problem.linear * float(alpha.sum()) - 0.5 * square
        dual -= 0.5 * float(problem.ridge @ alpha**2)
        size, unit = abs(primal), 1.0
        if problem.total:
            unit = margin_unit(problem, rho, largest)
            size = max(size, problem.total * unit)
        gap = (primal - dual) / max(size, np.finfo(float).tiny) if np.isfinite(primal) else np.inf
        return cls(alpha, b, scores, violation / unit, primal, dual, float(gap), bounds)

    def share(self, tol: float) -> float:
        """Return the larger of violation/tol and gap/(2·tol): at most 1 where both are met."""
        return max(self.violation / tol, abs(self.gap) / (2.0 * tol))

    def solution(self, status: Status) -> Solution:
        """Return α and b as a solution."""
        return Solution(
            np.empty((0, 0)), np.array([self.b]), status, alpha=self.alpha,
            scores=None if self.bounds is None else self.scores, score_bounds=self.bounds,
        )  # fmt: skip


def _middle(row: Floats, alpha: Floats, upper: Floats, gradient: Floats) -> float:
    """Return the middle of the interval that the KKT conditions leave to λ, or its one end."""
    ends = [end for end in kkt_interval(row, alpha, upper, gradient)[2:] if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0


def best_bias(problem: MarginProblem, scores: Floats) -> float:
    """Return the b of least P for these scores."""
    if not problem.balanced:
        return 0.0
    if not problem.total:
        plane = LinearMarginProblem(None, problem.y, problem.upper, problem.ridge)
        return float(np.mean(best_biases(plane, scores)))
    # P falls apart into a function of ρ − b for the positive class and one of ρ + b.
    levels = []
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(problem.y == sign)
        order = rows[np.argsort(sign * scores[rows], kind="stable")]
        sums = np.cumsum(problem.upper[order])
        reached = int(np.searchsorted(sums, 0.5 * problem.total * (1.0 - 1e-12)))
        levels.append(float(sign * scores[order[min(reached, order.size - 1)]]))
    return 0.5 * (levels[1] - levels[0])


def moved_to_balance(alpha: Floats, y: Floats, upper: Floats) -> Floats | None:
    """Return α with yᵀα = 0 to rounding, moving the free ones only; None where they cannot.

    An α at its bound stays there: a sample off the margin must not leave it.
    """
    excess = float(y @ alpha)
    if excess == 0.0:
        return alpha
    free = (alpha > 0.0) & (alpha < upper)
    room = np.where(y * excess > 0.0, alpha, np.minimum(upper - alpha, alpha))
    room[~free] = 0.0
    total = float(room.sum())
    if total <= abs(excess):
        return None
    return alpha - y * room * (excess / total)


def exactly_balanced(alpha: Floats, y: Floats, upper: Floats) -> Floats:
    """Return α with yᵀα = 0 to the last digit, where the free ones can take up what is left of it.

    Scores of rows far from the origin have the rest of yᵀα, times ‖x‖², in them. Free α are first
    rounded to the spacing of the largest of them, so that their sum has no digits beyond it.
    """
    free = np.flatnonzero((alpha > 0.0) & (alpha < upper))
    if not free.size:
        return alpha
    alpha = alpha.copy()
    unit = float(np.spacing(alpha[free].max()))
    rounded = np.round(alpha[free] / unit) * unit
    inside = (rounded > 0.0) & (rounded < upper[free])
    alpha[free[inside]] = rounded[inside]
    support = np.flatnonzero(alpha)
    free = free[np.argsort(alpha[free], kind="stable")]  # the smallest have the finest digits
    room = np.minimum(alpha, upper - alpha)[free]
    for _ in range(4):
        excess = math.fsum((alpha * y)[support])
        enough = free[room > abs(excess)]
        if excess == 0.0 or not enough.size:
            break
        alpha[enough[0]] -= y[enough[0]] * excess
    return alpha
