"""How far a support vector machine is from its optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import MarginProblem
from ..samples import Floats
from ..solution import Solution
from .base import certify
from .scores import kernel_scores

ROUNDING = 1e-14
# Claimed scores that differ from recomputed ones by more, relative to the largest, are not used.
DOUBTFUL = 1e-3
# Times the sample: how many samples near the worst violation are recomputed at most.
MANY = 8


@dataclass(frozen=True)
class MarginCertificate:
    """How far a support vector machine is from its optimum.

    Parameters
    ----------
    primal, dual : float
        P(w, b) and D(α), with P ≥ D for every feasible answer and P = D at the optimum.
    gap, relative_gap : float
        P − D, and that relative to P (for the ν-machine: to νρ where P is less).
    violation : float
        The worst violation of the KKT conditions at b, where the margin is 1 (for the ν-machine:
        relative to `margin_unit`, its ρ).
    balance : float
        \\|yᵀα\\| before it was repaired, relative to Σα where that exceeds 1.
    box : float
        How far α was outside of 0 ≤ α ≤ u before it was clipped, relative to the largest α where
        that exceeds 1.
    rounding : float
        By how much the violation may be larger: 0 where all scores were recomputed, or all that
        come near it (see ``sample`` of `certify`).
    n_checked : int
        Samples whose scores were recomputed in float64.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    violation: float
    balance: float
    box: float
    rounding: float = 0.0
    n_checked: int = 0

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the KKT conditions hold to ``tol`` and α is feasible to ``tol``."""
        return max(self.violation + self.rounding, self.balance, self.box) <= tol

    def __str__(self) -> str:
        gap = max(self.relative_gap, 0.0)  # rounding may put D above P
        return (
            f"optimal to a relative gap of {gap:.1e}: primal {self.primal:.8g}, dual "
            f"{self.dual:.8g}, worst KKT violation {self.violation:.1e}"
        )


@certify.register
def _(
    problem: MarginProblem, solution: Solution, *, sample: int | None = None
) -> MarginCertificate:
    assert solution.alpha is not None
    alpha = np.clip(solution.alpha, 0.0, problem.upper)
    box = float(np.abs(alpha - solution.alpha).max()) / max(1.0, float(alpha.max()))
    box = max(box, problem.total - float(alpha.sum()))
    balance = abs(float(problem.y @ alpha)) if problem.balanced else 0.0
    balance /= max(1.0, float(alpha.sum()))
    # At its bound is what rounding cannot tell from it.
    below = alpha < (1.0 - ROUNDING) * problem.upper
    above = alpha > ROUNDING * np.minimum(problem.upper, alpha.max())
    scores, rounding, n_checked = _scores(problem, solution, alpha, sample)
    alpha = _balanced(alpha, problem.y) if problem.balanced else alpha
    margins = problem.y * (scores + float(solution.b[0]))
    square = float((alpha * problem.y) @ scores)
    dual = problem.linear * float(alpha.sum()) - 0.5 * square
    dual -= 0.5 * float(problem.ridge @ alpha**2)
    primal = primal_value(problem, square, margins)
    # ∂/∂α_i of the dual with b as the multiplier of yᵀα = 0, and ρ as that of 1ᵀα ≥ s: for no α
    # at its upper bound y g ≥ ρ, for none at 0 y g ≤ ρ.
    slope = margins + problem.ridge * alpha
    least, most = slope[below].min(initial=np.inf), slope[above].max(initial=-np.inf)
    rho = problem.linear
    if problem.total:
        rho = 0.5 * (least + most) if below.any() else best_rho(problem, margins)
    violation, unit = float(max(rho - least, most - rho, 0.0)), 1.0
    if problem.total:
        largest = float(problem.kernel.diagonal(problem.X)[problem.index].max())
        unit = margin_unit(problem, rho, largest)
        violation, rounding = violation / unit, rounding / unit
    gap = primal - dual
    # P of the ν-machine is about −νρ, and may be anything, 0 included.
    relative = gap / max(abs(primal), problem.total * unit, np.finfo(float).tiny)
    return MarginCertificate(
        primal, dual, gap, relative, violation, balance, box, rounding, n_checked
    )


def _scores(
    problem: MarginProblem, solution: Solution, alpha: Floats, sample: int | None
) -> tuple[Floats, float, int]:
    """Return Σ_l α_l y_l K(x_l, x_m) of every sample, how well they are known, and of how many.

    Without ``sample`` all are recomputed. Else the solver's own are compared with those of so many
    samples taken at random: they differ by e at most. All samples within 2e of being the worst
    violator are then recomputed as well, so that no other can be it. Should the claims be far off,
    or too many samples be that near, all are recomputed after all.
    """
    n, coefficients = problem.y.size, alpha * problem.y
    if problem.balanced and sample is None:
        coefficients = _balanced(alpha, problem.y) * problem.y
    if sample is None or solution.scores is None or n <= 2 * sample:
        return kernel_scores(problem, coefficients)[0], 0.0, n
    scores = solution.scores.copy()
    chosen = np.random.RandomState(0).permutation(n)[:sample]
    exact = kernel_scores(problem, coefficients, chosen)[0]
    error = 2.0 * float(np.abs(exact - scores[chosen]).max())
    wrong = _violations(problem, scores, float(solution.b[0]), alpha)
    near = np.flatnonzero(wrong >= wrong.max() - 2.0 * error)
    if error > DOUBTFUL * max(1.0, float(np.abs(exact).max())) or near.size > n // 8:
        return kernel_scores(problem, coefficients)[0], 0.0, n
    # Of very many the worst will do; then e is what is not known.
    worst = near[np.argsort(-wrong[near])[: MANY * sample]]
    scores[chosen] = exact
    scores[worst] = kernel_scores(problem, coefficients, worst)[0]
    return scores, 0.0 if worst.size == near.size else error, np.union1d(chosen, worst).size


def _violations(problem: MarginProblem, scores: Floats, b: float, alpha: Floats) -> Floats:
    """Return by how much every sample violates its KKT condition; below 0 it does not."""
    slope = problem.y * (scores + b) + problem.ridge * alpha
    level = best_rho(problem, slope) if problem.total else problem.linear
    return np.maximum(
        np.where(alpha < problem.upper, level - slope, -np.inf),
        np.where(alpha > 0.0, slope - level, -np.inf),
    )


def margin_unit(problem: MarginProblem, rho: float, largest: float) -> float:
    """Return what violations of a ν-machine are relative to, ``largest`` being max K(x, x).

    That is ρ; but there need be no margin at all, and then that of the machine of C = 1000/max K.
    """
    return float(max(rho, 1e-3 * problem.upper.mean() * largest, np.finfo(float).tiny))


def best_rho(problem: MarginProblem, margins: Floats) -> float:
    """Return the ρ that minimises −sρ + Σ u_i (ρ − y_i g(x_i))₊: a weighted quantile."""
    order = np.argsort(margins, kind="stable")
    sums = np.cumsum(problem.upper[order])
    reached = int(np.searchsorted(sums, problem.total * (1.0 - 1e-12)))
    return float(margins[order[min(reached, order.size - 1)]])


def primal_value(problem: MarginProblem, square: float, margins: Floats) -> float:
    """Return P(w, b) from ‖w‖² and the margins y g(x).

    For the hard margin it is that of the plane scaled up until every y g(x) ≥ 1; ∞ if none does it.
    """
    if problem.total:
        rho = best_rho(problem, margins)
        slack = np.maximum(rho - margins, 0.0)
        return 0.5 * square - problem.total * rho + float(problem.upper @ slack)
    hard = np.isinf(problem.upper) & (problem.ridge == 0.0)
    if hard.all():
        smallest = float(margins.min())
        return 0.5 * square / min(smallest, 1.0) ** 2 if smallest > 0 else np.inf
    slack = np.maximum(1.0 - margins, 0.0)
    if slack[hard].any():
        return np.inf
    linear, squared = np.isfinite(problem.upper), problem.ridge > 0.0
    cost = float(problem.upper[linear] @ slack[linear])
    return 0.5 * square + cost + float((0.5 / problem.ridge[squared]) @ slack[squared] ** 2)


def _balanced(alpha: Floats, y: Floats) -> Floats:
    """Shrink the heavier class of α until yᵀα = 0: it stays in its box."""
    sums = alpha[y > 0].sum(), alpha[y < 0].sum()
    target = min(sums)
    factors = [target / total if total > 0 else 0.0 for total in sums]
    return np.where(y > 0, factors[0], factors[1]) * alpha
