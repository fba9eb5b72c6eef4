"""The bias: the b of least loss for given scores, and β with Σβ = 0."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..runtime.vectors import in_slices
from .primal import PrimalProblem

# All breaks are sorted for the best bias up to this number; of more, this share near 0 first.
SORTED_BREAKS, NEAR_SHARE = 10_000, 0.02


def best_biases(problem: PrimalProblem, scores: Floats, b: float = 0.0) -> tuple[float, float]:
    """Return the least and the largest t for which b + t is the best bias of these scores.

    There the slope −Σ α_i(t) y_i [+ b + t] of the objective changes sign: at t = y_i − s_i it
    begins to change by the curvature 1/D_i of the loss, or jumps by u_i where D_i = 0.
    """
    kappa = float(problem.bias == "penalised")
    if problem.two_sided and (kappa or problem.ridge.any()):
        return best_biases(*_both_sides(problem, scores), b)
    if problem.ridge.any():
        return _between_parabolas(problem, problem.y - scores, kappa, b)
    positive, negative = problem.class_costs()
    # The slope left of all breaks, without κ.
    before, rounding = -positive, 1e-12 * (positive + negative)
    if not kappa:
        return flat_part(*_near_breaks(problem, scores, before, rounding), rounding)
    breaks = problem.y - scores
    costs = np.broadcast_to(problem.upper, breaks.shape)
    order = np.argsort(breaks)
    t, slopes = breaks[order], before + np.cumsum(costs[order])
    low = min(int(np.searchsorted(slopes + b + t, -rounding)), t.size - 1)
    before = float(slopes[low] - costs[order[low]])
    root = float(t[low]) if before + b + t[low] <= 0.0 else -before - b
    return root, root


def _both_sides(problem: PrimalProblem, scores: Floats) -> tuple[PrimalProblem, Floats]:
    """Return targets as pairs of labels, and scores for which they have the same losses.

    max(0, |r| − ε) is that of a label +1 with z = r − ε and of a label −1 with z = −r − ε.
    """
    n, r = scores.size, problem.y - scores
    labels = np.repeat([1.0, -1.0], n)
    upper, ridge = (
        each if each.size == 1 else np.tile(each, 2) for each in (problem.upper, problem.ridge)
    )
    sides = PrimalProblem(None, labels, upper, ridge, problem.bias)
    return sides, labels - np.concatenate([r - problem.epsilon, r + problem.epsilon])


def _near_breaks(
    problem: PrimalProblem, scores: Floats, before: float, rounding: float
) -> tuple[Floats, Floats, float]:
    """Return the breaks, their costs, and the slope left of them.

    Of many breaks only those near 0 are returned, where the slope changes its sign between them.
    """
    y, n, epsilon = problem.y, scores.size, problem.epsilon
    costs = np.broadcast_to(problem.upper, y.shape)

    def of(rows: slice) -> tuple[Floats, Floats]:
        t: Floats = y[rows] - scores[rows]
        if not problem.two_sided:
            return t, costs[rows]
        return np.concatenate([t - epsilon, t + epsilon]), np.tile(costs[rows], 2)

    if n > SORTED_BREAKS:
        some = slice(None, None, n // SORTED_BREAKS)
        reach = float(np.quantile(np.abs(of(some)[0]), NEAR_SHARE))

        def near(rows: slice) -> tuple[float, Floats, Floats]:
            t, c = of(rows)
            inside = np.abs(t) <= reach
            return float(c @ (t < -reach)), t[inside], c[inside]

        left, breaks, of_breaks = zip(*in_slices(near, n), strict=True)
        first, inside = before + sum(left), np.concatenate(of_breaks)
        if first < -rounding and first + float(inside.sum()) > rounding:
            return np.concatenate(breaks), inside, first
    return *of(slice(None)), before


def flat_part(t: Floats, costs: Floats, before: float, rounding: float) -> tuple[float, float]:
    """Return the least and the largest t at which before + Σ_{t_i ≤ t} c_i changes sign."""
    order = np.argsort(t)
    t, slopes = t[order], before + np.cumsum(costs[order])
    low = int(np.searchsorted(slopes, -rounding))
    high = int(np.searchsorted(slopes, rounding, side="right"))
    return float(t[min(low, t.size - 1)]), float(t[min(high, t.size - 1)])


def _between_parabolas(
    problem: PrimalProblem, breaks: Floats, kappa: float, b: float
) -> tuple[float, float]:
    """Return the best t where every loss begins with a parabola.

    A loss that turns into a line at z = uD is its parabola less one that begins there.
    """
    y, costs = problem.y, np.broadcast_to(1.0 / problem.ridge, breaks.shape)
    widths = np.broadcast_to(problem.turns, breaks.shape)
    turning = np.isfinite(widths)
    if turning.any():
        breaks = np.concatenate([breaks, (breaks - y * widths)[turning]])
        y, costs = np.concatenate([y, y[turning]]), np.concatenate([costs, -costs[turning]])
    order = np.argsort(breaks)
    t, y, costs = breaks[order], y[order], costs[order]
    if not turning.any():
        return (_root_of_parabolas(t, y, costs, kappa, b),) * 2
    return _flat_roots(t, y, costs, kappa, b)


def _root_of_parabolas(t: Floats, y: Floats, costs: Floats, kappa: float, b: float) -> float:
    """Return where κ(b + t) + Σ_{y=1, t_i > t} c_i (t − t_i) + Σ_{y=−1, t_i < t} … = 0."""
    weight, pull = _lines(t, y, costs, kappa, b)
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


def _flat_roots(t: Floats, y: Floats, costs: Floats, kappa: float, b: float) -> tuple[float, float]:
    """Return the least and the largest t at which the same slope is 0; it may be 0 in between."""
    weight, pull = _lines(t, y, costs, kappa, b)
    slopes = np.maximum.accumulate(weight * t - pull)
    rounding = 1e-12 * float(np.abs(slopes).max())
    low = int(np.searchsorted(slopes, -rounding)) - 1
    high = int(np.searchsorted(slopes, rounding, side="right")) - 1
    return _crossing(t, slopes, low, kappa), _crossing(t, slopes, high, kappa)


def _crossing(t: Floats, slopes: Floats, k: int, kappa: float) -> float:
    """Return where the slope is 0 between breaks k and k + 1; beyond all breaks κ alone bends."""
    if k < 0 or k + 1 >= t.size:
        end = 0 if k < 0 else t.size - 1
        return float(t[end] - slopes[end] / kappa) if kappa else float(t[end])
    rise = slopes[k + 1] - slopes[k]
    share = min(max(-slopes[k] / rise, 0.0), 1.0) if rise > 0.0 else 0.0
    return float(t[k] + share * (t[k + 1] - t[k]))


def _lines(t: Floats, y: Floats, costs: Floats, kappa: float, b: float) -> tuple[Floats, Floats]:
    """Return the slope of the slope, and minus its value at 0, right of every break."""
    weight = np.cumsum(np.where(y > 0, 0.0, costs)) + _from_the_end(np.where(y > 0, costs, 0.0))
    pull = np.cumsum(np.where(y > 0, 0.0, costs * t)) - kappa * b
    pull += _from_the_end(np.where(y > 0, costs * t, 0.0))
    weight += kappa
    return weight, pull


def _from_the_end(values: Floats) -> Floats:
    """Return the sum of all that come after each."""
    return np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)


def balanced(problem: PrimalProblem, alpha: Floats) -> Floats:
    """Take from the heavier class until yᵀα = 0: from α between its bounds if they are enough.

    Of targets α is β, and it is taken from the heavier sign until Σβ = 0.
    """
    excess = float(np.sum(alpha)) if problem.two_sided else float(problem.y @ alpha)
    if excess == 0.0:
        return alpha
    signs = alpha if problem.two_sided else problem.y
    heavier, size = signs * np.sign(excess) > 0.0, np.abs(alpha)
    for some in (heavier & (size < problem.upper), heavier):
        total = float(np.sum(size, where=some))
        if total > 0.0 and total >= abs(excess):
            alpha = alpha.copy()
            return np.multiply(alpha, 1.0 - abs(excess) / total, out=alpha, where=some)
    return np.zeros_like(alpha)
