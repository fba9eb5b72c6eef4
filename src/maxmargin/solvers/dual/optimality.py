"""How far α and its scores are from the optimum of a kernel machine, as its solvers see it.

The certificate has formulas of its own; here the question is whether to go on, and with which b.
Scores are Σ_l α_l s_l K(x_l, x_m), without the bias; μ are the multipliers of the groups' sums, of
which b is the mean. With two groups they are b − ρ and b + ρ (ν-regression: ρ = −ε).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import Floats, Integers, OnDevice, Partitioned, blocks_of, row_length
from ...engines.base import HostGram
from ...kernels import Precomputed
from ...problems import DualProblem, PrimalProblem
from ...problems.best_bias import best_biases
from ...problems.dual import usual_length
from ...solution import Solution, Status
from .feasibility import Constraints, Mask

# Shares of tol, and of the relative gap of 2·tol, that solvers aim at: the certificate adds up in
# another order.
AIM = 0.5
# α max K(x, x) at which a machine with p = 0 counts as without a margin, relative to mean u.
NO_MARGIN = 1e-6
# A change of Dα, in units of the targets, that nothing shows.
NEGLIGIBLE_CHANGE = 1e-12
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Optimality:
    """α and b, with what the KKT conditions and the duality gap say of them.

    Parameters
    ----------
    alpha : ndarray of shape (n,)
    b : float
    scores : ndarray of shape (n,)
        Σ_l α_l s_l K(x_l, x_m).
    violation : float
        The worst violation of a KKT condition, in the units of the certificate.
    primal, dual, gap : float
        P, D and (P − D)/P, for machines with p = 0 relative to Σ|t|ρ where P is less.
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
        problem: DualProblem,
        alpha: Floats,
        scores: Floats,
        largest: float = 1.0,
        b: float | None = None,
        bounds: Floats | None = None,
    ) -> Optimality:
        """Judge α; without ``b`` it is the one of the least violation.

        ``largest`` is max K(x, x), which sets the unit of violations where p = 0 and there is no
        margin.
        """
        gradient = problem.signs * scores + problem.ridge * alpha + problem.p
        constraints = Constraints.of(problem)
        A = constraints.A
        if b is None:
            mu = np.array([middle(constraints, row, alpha, gradient) for row in A])
            b = float(np.mean(mu)) if mu.size else 0.0
        else:
            mu = np.full(len(A), b)
            if len(A) == 2:
                # ρ is free: the one in the middle of what the conditions leave it.
                along = A[1] - A[0]
                rho = middle(constraints, along, alpha, gradient + mu @ A)
                mu = mu + rho * np.array([-1.0, 1.0])
        slope = gradient + mu @ A
        violation = float(violations(constraints, alpha, slope).max(initial=0.0))
        square = float((alpha * problem.signs) @ scores)
        primal = primal_value(problem, square, scores, b)
        dual = -float(problem.p @ alpha) - 0.5 * square - 0.5 * float(problem.ridge @ alpha**2)
        dual -= float(widening(problem, scores, b) @ alpha)
        unit = violation_unit(problem, mu, largest)
        gap = np.inf
        if np.isfinite(primal):
            gap = (primal - dual) / objective_scale(problem, primal, unit)
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


# KKT conditions ----------------------------------------------------------------------------------


def dual_gradient(problem: DualProblem, gram: HostGram, alpha: Floats) -> Floats:
    """Return the gradient (Q + D)α + p."""
    support = np.flatnonzero(alpha)
    gradient = problem.ridge * alpha + problem.p
    if support.size:
        gradient += problem.signs * gram.dot(support, (alpha * problem.signs)[support])
    return gradient


def kkt_interval(
    constraints: Constraints, row: Floats, alpha: Floats, gradient: Floats
) -> tuple[int, int, float, float]:
    """Return the pair of variables that bound μ of one row of A, and the bounds low ≤ μ ≤ high.

    −row·gradient is the μ at which a variable is stationary: a lower bound of μ where row·α may
    still grow, an upper one where it may shrink. low > high is a violated KKT condition.
    """
    rises, falls = alpha < constraints.upper, alpha > constraints.lower
    values = -row * gradient
    grows = np.where(row > 0, rises, (row < 0) & falls)
    shrinks = np.where(row > 0, falls, (row < 0) & rises)
    low, high = np.where(grows, values, -np.inf), np.where(shrinks, values, np.inf)
    i, j = int(low.argmax()), int(high.argmin())
    return i, j, float(low[i]), float(high[j])


def middle(constraints: Constraints, row: Floats, alpha: Floats, gradient: Floats) -> float:
    """Return the middle of the interval that the KKT conditions leave to μ, or its one end."""
    interval = kkt_interval(constraints, row, alpha, gradient)[2:]
    ends = [end for end in interval if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0


def multipliers(constraints: Constraints, alpha: Floats, gradient: Floats, free: Mask) -> Floats:
    """Return μ of Aα = a, for which the gradient + Aᵀμ of the free variables is 0 on average.

    Where a row of A has no free variable, the KKT conditions leave an interval for its μ: the
    midpoint is taken, or the end there is.
    """
    found = np.zeros(len(constraints.A))
    for k, row in enumerate(constraints.A):
        inner = free & (row != 0)
        if inner.any():
            found[k] = -np.mean((row * gradient)[inner])
        else:
            found[k] = middle(constraints, row, alpha, gradient)
    return found


def bias(problem: DualProblem, found: Floats) -> float:
    """Return b, the mean of the multipliers of the groups' sums; 0 where there are none."""
    return float(np.mean(found)) if problem.groups else 0.0


def violations(constraints: Constraints, alpha: Floats, slope: Floats) -> Floats:
    """Return by how much each KKT condition is violated, ``slope`` being the gradient + Aᵀμ."""
    return np.maximum(
        np.where(alpha < constraints.upper, -slope, 0.0),
        np.where(alpha > constraints.lower, slope, 0.0),
    )


def violation_unit(problem: DualProblem, mu: Floats, largest: float) -> float:
    """Return what violations are relative to, ``largest`` being max K(x, x).

    The scale of the targets; where p = 0 it is ρ = −Σ t_G μ_G / Σ|t_G|. But there need be no margin
    at all, and then it is that of the machine of C = 10⁶/max K.
    """
    if problem.target_scale or not problem.total:
        return problem.target_scale or 1.0
    rho = -float(np.dot(problem.sums, mu)) / problem.total
    least = NO_MARGIN * float(problem.upper.mean()) * largest
    return max(rho, least, TINY)


def objective_scale(problem: DualProblem, primal: float, unit: float) -> float:
    """Return what the gap is relative to: P; where p = 0 at least Σ|t|ρ, for P may be 0 then."""
    least = 0.0 if problem.target_scale else problem.total * unit
    return max(abs(primal), least, TINY)


# The primal --------------------------------------------------------------------------------------


def primal_value(problem: DualProblem, square: float, scores: Floats, b: float) -> float:
    """Return P(w, b) from ‖w‖² and the scores w·φ(x): with two groups that of the best ρ.

    For the hard margin it is that of the plane scaled up until every y g(x) ≥ 1; ∞ if none does it.
    """
    margins = problem.signs * (scores + b)
    if len(problem.groups) == 2:
        pull = signs_of_rho(problem)
        rho = best_rho(problem, pull * (margins + problem.p))
        loss = float(losses(problem, pull * rho - problem.p - margins).sum())
        return 0.5 * square + _fixed_cost(problem, b, rho) + loss
    if problem.has_unit_margin and is_hard(problem).all():
        smallest = float(margins.min())
        return 0.5 * square / min(smallest, 1.0) ** 2 if smallest > 0 else np.inf
    z = -problem.p - margins - widening(problem, scores, b)
    return 0.5 * square + _fixed_cost(problem, b, 0.0) + float(losses(problem, z).sum())


def widening(problem: DualProblem, scores: Floats, b: float) -> Floats:
    """Return by how much p of a regression with C = ∞ must grow: the worst error beyond the tube.

    P would be ∞ by the least rounding otherwise. 0 of all other machines.
    """
    hard = is_hard(problem)
    if problem.has_unit_margin or len(problem.groups) == 2 or not hard.any():
        return np.zeros(scores.size)
    excess = -problem.p - problem.signs * (scores + b)
    return np.where(hard, max(float(excess[hard].max()), 0.0), 0.0)


def _fixed_cost(problem: DualProblem, b: float, rho: float) -> float:
    """Return Σ t_G μ_G with μ = b, or b − ρ and b + ρ."""
    along = (-rho, rho) if len(problem.sums) == 2 else (0.0,)
    return sum(t * (b + by) for t, by in zip(problem.sums, along, strict=False))


def losses(problem: DualProblem, z: Floats) -> Floats:
    """Return h(z) = max {az − ½Da² : l ≤ a ≤ u} of every variable; ∞ where that is unbounded."""
    lower, upper, ridge = problem.lower, problem.upper, problem.ridge
    bound = np.where(z > 0.0, upper, lower)
    if not ridge.any():
        return np.multiply(bound, z, out=np.zeros(z.size), where=z != 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = np.where(ridge > 0.0, np.clip(z / ridge, lower, upper), bound)
        return np.where(a == 0.0, 0.0, a * (z - 0.5 * ridge * a))


def is_hard(problem: DualProblem) -> Mask:
    """Return which variables have nothing that keeps them from growing."""
    return np.asarray(np.isinf(problem.upper) & (problem.ridge == 0.0))


def signs_of_rho(problem: DualProblem) -> Floats:
    """Return how ρ of two groups enters z = −p − s(w·φ(x) + μ): as +ρ or as −ρ."""
    pull = problem.signs.copy()
    pull[problem.groups[1]] *= -1.0
    return pull


def best_rho(problem: DualProblem, levels: Floats) -> float:
    """Return the ρ of least P: a weighted quantile of the ρ at which each loss begins or ends.

    ``levels`` are these ρ. As a function of ρ the sum of the losses has the slope l before and u
    after, or −u before and −l after, where ρ enters as −ρ.
    """
    first, second = problem.sums
    falling = signs_of_rho(problem) < 0.0
    needed = first - second - float(problem.lower[~falling].sum())
    needed += float(problem.upper[falling].sum())
    order = np.argsort(levels, kind="stable")
    sums = np.cumsum((problem.upper - problem.lower)[order])
    reached = int(np.searchsorted(sums, needed * (1.0 - 1e-12)))
    return float(levels[order[min(reached, order.size - 1)]])


def best_bias(problem: DualProblem, scores: Floats) -> float:
    """Return the b of least P for these scores."""
    if not problem.groups:
        return 0.0
    if not problem.total:
        # Targets other than the labels are a shift of the scores.
        plane = PrimalProblem(None, problem.signs, problem.upper, problem.ridge)
        shifted = scores + problem.signs * (1.0 + problem.p)
        return float(np.mean(best_biases(plane, shifted)))
    # P is a sum of one function per μ.
    parts = zip(problem.groups, problem.sums, strict=True)
    return float(np.mean([_best_level(problem, scores, *part) for part in parts]))


def _best_level(problem: DualProblem, scores: Floats, group: Integers, total: float) -> float:
    """Return the μ of least P of one group without a ridge: a weighted quantile.

    Σ_{i∈G} h_i(z_i) + tμ has the slope t − Σ_{s=+1} u + Σ_{s=−1} l left of all μ at which z_i = 0,
    and it grows by u − l at each of them.
    """
    signs, upper, lower = problem.signs[group], problem.upper[group], problem.lower[group]
    breaks = -signs * problem.p[group] - scores[group]
    needed = float(upper[signs > 0].sum()) - float(lower[signs < 0].sum()) - total
    order = np.argsort(breaks, kind="stable")
    reached = np.searchsorted(np.cumsum((upper - lower)[order]), needed * (1.0 - 1e-12))
    return float(breaks[order[min(int(reached), order.size - 1)]])


# Rounding ----------------------------------------------------------------------------------------


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
    if not total > abs(excess):  # NaN, too
        return None
    return alpha - y * room * (excess / total)


def _are_far(problem: DualProblem, alpha: Floats, variables: Integers) -> Mask:
    """Return which variables are those of rows far from the support vectors, by K(x, x)."""
    kernel, X = problem.kernel, problem.X
    if kernel.shift_invariant or isinstance(X, Partitioned):
        return np.zeros(variables.size, dtype=bool)
    lengths, rows = np.zeros(alpha.size), np.union1d(np.flatnonzero(alpha), variables)
    if isinstance(X, OnDevice) or isinstance(kernel, Precomputed):
        lengths = np.abs(kernel.diagonal(X))[problem.index]
    else:
        for block in blocks_of(rows.size, row_length(X)):
            some = rows[block]
            lengths[some] = np.abs(kernel.diagonal(X[problem.index[some]]))
    return np.asarray(lengths[variables] > usual_length(lengths[rows]))


def exactly_balanced(problem: DualProblem, alpha: Floats) -> Floats:
    """Return α with Σ sα = Σt to the last digit, where the free ones can take up the rest.

    Scores of rows far from the origin have the rest of Σ sα, times ‖x‖², in them. Free α are first
    rounded to the spacing of the largest of them, so that their sum has no digits beyond it. Those
    of rows far from all others keep their digits, which K(x, x) makes visible, and so do those
    that D does.
    """
    lower, upper, signs = problem.lower, problem.upper, problem.signs
    free = np.flatnonzero((alpha > lower) & (alpha < upper))
    if not free.size:
        return alpha
    free = free[~_are_far(problem, alpha, free)]
    if not free.size:
        return alpha
    alpha = alpha.copy()
    unit = float(np.spacing(np.abs(alpha[free]).max()))
    free = free[problem.ridge[free] * unit <= NEGLIGIBLE_CHANGE * (problem.target_scale or 1.0)]
    rounded = np.round(alpha[free] / unit) * unit
    inside = (rounded > lower[free]) & (rounded < upper[free])
    alpha[free[inside]] = rounded[inside]
    support = np.flatnonzero(alpha)
    free = free[np.argsort(np.abs(alpha[free]), kind="stable")]  # the smallest have finest digits
    room = np.minimum(alpha - lower, upper - alpha)[free]
    total = -sum(problem.sums)
    for _ in range(4):
        excess = math.fsum([*(alpha * signs)[support], total])
        enough = free[room > abs(excess)]
        if excess == 0.0 or not enough.size:
            break
        alpha[enough[0]] -= signs[enough[0]] * excess
    return alpha
