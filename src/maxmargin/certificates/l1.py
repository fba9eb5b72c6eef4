"""How far a linear machine with an ℓ1 penalty is from its optimum.

α is put into its bounds, yᵀα = 0 restored where the bias is free, and all of it divided by what is
more than 1 in max_j |Σ α_i y_i x_ij|, rounding included: it is then feasible, and D(α) ≤ P of every
plane.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..problems import L1Problem
from ..solution import Solution
from .base import certify
from .primal import (
    Claim,
    Measures,
    PlaneCertificate,
    claim_of,
    compensates,
    imbalance,
    passes,
    shown,
)
from .scores import UNIT


@certify.register
def _(problem: L1Problem, solution: Solution, *, sample: int | None = None) -> PlaneCertificate:
    assert solution.alpha is not None
    problem = problem.on_host()
    w, b = solution.w[0], float(solution.b[0])
    claim, totals, box = claim_of(problem, w, b, solution.alpha)
    if problem.bias == "none":
        box = max(box, abs(b))  # a bias that there must not be
    balance = imbalance(problem, totals)
    found = _measures(problem, claim, b, exactly=False)
    if compensates(problem, found.blur, found.primal):
        found = _measures(problem, claim, b, exactly=True)
    return shown(found, balance, box, len(problem.y))


def _measures(problem: L1Problem, claim: Claim, b: float, *, exactly: bool) -> Measures:
    """Return what passes over all rows say, in twice the digits of float64 on request."""
    from .plane_sums import Found

    lines, v = passes(claim, exactly)
    found = Found.of(lines)
    penalty = float(np.abs(claim.w).sum())
    constraints, slopes = np.abs(v) + found.blur, _violations(claim.w, v)
    most, off = float(constraints.max(initial=0.0)), float(slopes.max(initial=0.0))
    if problem.bias == "penalised":
        s = problem.intercept_scaling
        penalty += abs(b) / s
        rest = abs(found.rest) + 64.0 * UNIT * found.alpha
        most = max(most, s * rest)
        off = max(off, float(_violations(np.array([b]), np.array([s * found.rest]))[0]))
    factor = min(1.0, 1.0 / most) if most > 0.0 else 1.0
    dual = factor * found.alpha - 0.5 * factor**2 * found.ridge
    error = 64.0 * UNIT * (found.alpha + abs(dual) + penalty)
    if problem.bias == "free":  # what rounding leaves of yᵀα
        error += (abs(found.rest) + 64.0 * UNIT * found.alpha) * abs(claim.b)
    violation = max(1.0 - found.least_slope, found.largest_slope - 1.0, off)
    return Measures(
        penalty + found.loss, dual, found.most_loss - found.loss + error, violation,
        found.error + found.blur,
    )  # fmt: skip


def _violations(w: Floats, v: Floats) -> Floats:
    """Return how far v_j is from the subgradients of |w_j|."""
    return np.where(w != 0.0, np.abs(v - np.sign(w)), np.maximum(np.abs(v) - 1.0, 0.0))
