"""How far a support vector machine is from its optimum.

With z_i = 1 − y_i g(x_i) and h_i(z) = max {az − ½D_i a² : 0 ≤ a ≤ u_i} the loss of a sample, the
duality gap of a feasible α and the plane w = Σ α_i y_i φ(x_i), b is a sum of terms that are not
negative,

    P(w, b) − D(α) = Σ_i h_i(z_i) − α_i z_i + ½D_i α_i²,

each 0 where α_i = 0 and z_i < 0, or where α_i = u_i and z_i > 0: of such samples the sign of z_i is
all that counts. What rounding may have done to the scores is bounded row by row, and the claims are
as large as these bounds allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..problems import DualProblem
from ..solution import Solution
from .base import certify
from .scores import UNIT, kernel_scores

# What a variable may be from its bound, relative to it, and count as there: some units of rounding.
ROUNDING = 8.0 * UNIT
# Claimed scores that differ from recomputed ones by more, relative to the largest, are not used.
DOUBTFUL = 1e-3
# By how much, relative to what they are, bounds of scores may widen the gap and the violation.
WIDER = 0.1
# The share of scores to recompute from which on all of them are.
MOST = 0.25
# The relative gap and the violation up to which an answer is called optimal.
OPTIMAL = 0.02

Coverage = Literal["complete", "bounded", "sampled"]


@dataclass(frozen=True)
class MarginCertificate:
    """How far a support vector machine is from its optimum.

    Parameters
    ----------
    primal, dual : float
        P(w, b) and D(α), with P ≥ D for every feasible answer and P = D at the optimum. Rounded
        up and down, as far as rounding may have gone; where ``coverage`` is not "complete" they
        are as exact as the solver's scores.
    gap, relative_gap : float
        P − D, and that relative to P (for the ν-machine: to νρ where P is less); both are upper
        bounds, rounding included.
    violation : float
        The worst violation of the KKT conditions at b, where the margin is 1 (for the ν-machine:
        relative to `margin_unit`, its ρ).
    balance : float
        \\|yᵀα\\| before it was repaired, relative to Σα where that exceeds 1.
    box : float
        How far α was outside of 0 ≤ α ≤ u before it was clipped, relative to the largest α where
        that exceeds 1.
    rounding : float
        By how much the violation may be larger: what rounding can have done to the scores.
    n_checked, n_samples : int
        Samples whose scores were recomputed in float64, of so many.
    coverage : {"complete", "bounded", "sampled"}
        Whether all scores were recomputed; or those that matter, the others being known to be far
        enough from the margin by a bound of all rounding errors of the solver (spot-checked); or
        a sample of them, which proves nothing of the others.
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
    n_samples: int = 0
    coverage: Coverage = "complete"

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the answer is optimal to ``tol``.

        The KKT conditions hold to ``tol``, rounding included, α is feasible to ``tol``, and the
        relative gap is at most 2·tol. A sample of the scores proves none of that.
        """
        violation = max(self.violation + self.rounding, self.balance, self.box)
        is_small = violation <= tol and self.relative_gap <= 2.0 * tol
        return bool(is_small and self.coverage != "sampled")

    def __str__(self) -> str:
        if self.coverage == "sampled":
            return f"not proved: {self.measures}"
        worst = max(self.violation + self.rounding, self.balance, self.box)
        if max(self.relative_gap, worst) <= OPTIMAL:
            return f"optimal to a {self.measures}"
        return f"not optimal: {self.measures}"

    @property
    def measures(self) -> str:
        """The numbers in words, without a verdict."""
        return (
            f"relative gap of {self.relative_gap:.1e}: primal {self.primal:.8g}, dual "
            f"{self.dual:.8g}, worst KKT violation {self.violation + self.rounding:.1e}"
            f"{self._covered()}"
        )

    def _covered(self) -> str:
        if self.coverage == "complete":
            return ""
        if self.coverage == "bounded":
            return f" ({self.n_checked} of {self.n_samples} scores recomputed, the others bounded)"
        return f" (a sample: {self.n_checked} of {self.n_samples} scores recomputed)"


class Margins(NamedTuple):
    """y g(x) of every sample, by how much it may be wrong, and how it is known."""

    values: Floats
    errors: Floats
    n_checked: int
    coverage: Coverage


@certify.register
def _(
    problem: DualProblem,
    solution: Solution,
    *,
    sample: int | None = None,
    at_most: int | None = None,
) -> MarginCertificate:
    assert solution.alpha is not None
    alpha = np.clip(solution.alpha, 0.0, problem.upper)
    box = float(np.abs(alpha - solution.alpha).max()) / max(1.0, float(alpha.max()))
    box = max(box, problem.total - float(alpha.sum()))
    balance = abs(float(problem.signs @ alpha)) if problem.groups else 0.0
    balance /= max(1.0, float(alpha.sum()))
    margins = _margins(problem, solution, alpha, sample, at_most)
    level = kkt_level(problem, alpha, margins.values)
    wrong = kkt_violations(problem, margins.values, alpha, level)
    nominal, worst = (max(float(w.max()), 0.0) for w in (wrong, wrong + margins.errors))
    unit = 1.0
    if problem.total:
        unit = margin_unit(problem, float(level), _largest(problem))
    primal, dual, gap, least = _values(problem, alpha, margins, float(solution.b[0]))
    # P of the ν-machine is about −νρ, and may be anything, 0 included.
    size = max(least, problem.total * unit, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        relative = float(np.divide(gap, size)) if np.isfinite(gap) else np.inf
    return MarginCertificate(
        primal, dual, gap, relative, nominal / unit, balance, box, (worst - nominal) / unit,
        margins.n_checked, problem.n_variables, margins.coverage,
    )  # fmt: skip


def _margins(
    problem: DualProblem,
    solution: Solution,
    alpha: Floats,
    sample: int | None,
    at_most: int | None,
) -> Margins:
    """Return y g(x) of all samples.

    Without ``sample`` all are recomputed. Else the solver's own scores are taken where the bounds
    that it gives leave no doubt; those bounds are checked on a sample. Scores without bounds are
    compared with recomputed ones on the sample, and taken to be as good elsewhere. Where more than
    ``at_most`` scores would have to be recomputed, none is, and the claims are as wide as that.
    """
    n, b = problem.n_variables, float(solution.b[0])
    coefficients = alpha * problem.signs
    bounds = solution.score_bounds
    is_known = solution.scores is not None and (bounds is None or np.isfinite(bounds).all())
    if sample is not None and is_known and n > 2 * sample:
        chosen = np.random.RandomState(0).permutation(n)[:sample]
        exact, blur = kernel_scores(problem, coefficients, chosen, b)
        claims = _claims(problem, solution, chosen, exact, blur)
        if claims is not None:
            claims.values[chosen], claims.errors[chosen] = problem.signs[chosen] * exact, blur
            rows = _decisive(problem, alpha, claims)
            if at_most is not None and at_most < (rows.size if rows.size <= MOST * n else n):
                return claims._replace(n_checked=chosen.size)
            if rows.size <= MOST * n:
                exact, blur = kernel_scores(problem, coefficients, rows, b)
                claims.values[rows], claims.errors[rows] = problem.signs[rows] * exact, blur
                return claims._replace(n_checked=int(np.union1d(chosen, rows).size))
    scores, errors = kernel_scores(problem, coefficients, b=b)
    return Margins(problem.signs * scores, errors, n, "complete")


def _claims(
    problem: DualProblem,
    solution: Solution,
    chosen: Integers,
    exact: Floats,
    blur: Floats,
) -> Margins | None:
    """Return the solver's margins with their errors; None where a recomputed one denies them."""
    assert solution.scores is not None
    scores = solution.scores + float(solution.b[0])
    off = np.abs(exact - scores[chosen])
    errors = solution.score_bounds
    if errors is None:
        error = 2.0 * float(off.max())
        if error > DOUBTFUL * max(1.0, float(np.abs(exact).max())):
            return None
        return Margins(problem.signs * scores, np.full(scores.size, error), 0, "sampled")
    errors = errors + 4.0 * UNIT * (np.abs(scores) + abs(float(solution.b[0])))
    if (off > errors[chosen] + blur).any():
        return None
    return Margins(problem.signs * scores, errors, 0, "bounded")


def _decisive(problem: DualProblem, alpha: Floats, margins: Margins) -> Integers:
    """Return the samples whose errors widen the claims by more than a little."""
    wrong = kkt_violations(
        problem, margins.values, alpha, kkt_level(problem, alpha, margins.values)
    )
    certain = max(float((wrong - margins.errors).max()), 0.0)
    chosen: NDArray[np.bool_] = wrong + margins.errors > (1.0 + WIDER) * certain
    terms, widest = _gap_terms(problem, alpha, margins)
    wider = np.where(np.isfinite(widest), widest, np.inf) - terms
    wider[chosen] = 0.0
    order = np.argsort(wider)
    allowed = np.cumsum(wider[order]) <= WIDER * float(terms.sum())
    chosen[order[~allowed]] = True
    return np.flatnonzero(chosen)


def kkt_level(problem: DualProblem, alpha: Floats, margins: Floats) -> float | Floats:
    """Return what y g(x) is compared with: 1, or the ρ that serves the KKT conditions best."""
    if not problem.total:
        return -problem.p
    below, above = _may_move(problem, alpha)
    if not below.any():
        return best_rho(problem, margins)
    slope = margins + problem.ridge * alpha
    return 0.5 * (float(slope[below].min()) + float(slope[above].max(initial=-np.inf)))


def _may_move(problem: DualProblem, alpha: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which α may grow and which may shrink."""
    below = alpha < (1.0 - ROUNDING) * problem.upper
    return below, alpha > ROUNDING * np.minimum(problem.upper, alpha.max())


def kkt_violations(
    problem: DualProblem, margins: Floats, alpha: Floats, level: float | Floats
) -> Floats:
    """Return by how much every sample violates its KKT condition; below 0 it does not.

    ∂/∂α_i of the dual with b as the multiplier of yᵀα = 0, and ρ as that of 1ᵀα ≥ s, asks for
    y g ≥ ρ of all α that may grow, and y g ≤ ρ of all that may shrink.
    """
    below, above = _may_move(problem, alpha)
    slope = margins + problem.ridge * alpha
    return np.maximum(
        np.where(below, level - slope, -np.inf), np.where(above, slope - level, -np.inf)
    )


def _values(
    problem: DualProblem, alpha: Floats, margins: Margins, b: float
) -> tuple[float, float, float, float]:
    """Return P at most, D at least, P − D at most, and \\|P\\| at least.

    D is that of α with the heavier class shrunk by a factor 1 − t until yᵀα = 0. That takes
    t Σ α_i z_i + ½t²‖w‖² of that class away from what the sum of terms says.
    """
    values, errors = margins.values, margins.errors
    total, blur = float(alpha.sum()), float(alpha @ errors)
    rest = float(np.sum(problem.signs * alpha)) if problem.groups else 0.0
    square = float(alpha @ values) - b * rest
    primal = primal_value(problem, square, values)
    repair = 0.0
    if problem.groups:
        rest = abs(rest) + 64.0 * UNIT * total
        heavier = min(total, 0.5 * (total + rest)) or 1.0
        level = best_rho(problem, values) if problem.total else -problem.p
        slack = float(alpha @ np.abs(level - values)) + blur
        repair = rest / heavier * slack + 0.5 * rest**2 * _largest(problem)
    if _is_hard(problem).all():
        # As if every margin were as small as it may be.
        scale = min(float((values - errors).min()), 1.0)
        worst = 0.5 * (square + blur) / scale**2 if scale > 0.0 else np.inf
        dual = total - 0.5 * (square + blur) - repair - abs(b) * rest
        return worst, dual, worst - dual, 0.5 * (square - blur)
    terms, widest = _gap_terms(problem, alpha, margins)
    # Sums by pairs of numbers round log₂ n times.
    size = float(np.abs(problem.p) @ alpha) + abs(primal) + abs(square)
    gap = float(widest.sum()) + repair + 64.0 * UNIT * size
    if problem.total:
        gap += abs((total - problem.total) * best_rho(problem, values))
    unknown = float((widest - terms).sum()) + 1.5 * blur
    least = abs(primal) - unknown
    if not problem.total:
        loss = float(losses(problem, -problem.p - values - errors).sum())
        least = 0.5 * (square - blur) + loss
    if margins.coverage == "complete":
        return primal + unknown, primal - unknown - gap, gap, least
    return primal, primal - gap, gap, least


def _largest(problem: DualProblem) -> float:
    """Return max K(x, x)."""
    return float(problem.kernel.diagonal(problem.X)[problem.index].max())


def _gap_terms(problem: DualProblem, alpha: Floats, margins: Margins) -> tuple[Floats, Floats]:
    """Return h(z) − αz + ½Dα² of every sample, and the most that it may be."""
    level = best_rho(problem, margins.values) if problem.total else -problem.p
    z = level - margins.values
    fixed = 0.5 * problem.ridge * alpha**2
    terms = losses(problem, z) - alpha * z + fixed
    # The function is convex in z: the most is at an end.
    ends = [losses(problem, end) - alpha * end for end in (z - margins.errors, z + margins.errors)]
    return terms, np.maximum(*ends) + fixed


def losses(problem: DualProblem, z: Floats) -> Floats:
    """Return h(z) of every sample: ∞ where a hard margin is violated."""
    z = np.maximum(z, 0.0)
    if not problem.ridge.any() and np.isfinite(problem.upper).all():
        return problem.upper * z
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = np.minimum(z / problem.ridge, problem.upper)
        h = np.where(problem.ridge > 0.0, a * (z - 0.5 * problem.ridge * a), problem.upper * z)
        return np.where(z > 0.0, h, 0.0)


def _is_hard(problem: DualProblem) -> NDArray[np.bool_]:
    return np.isinf(problem.upper) & (problem.ridge == 0.0)


def margin_unit(problem: DualProblem, rho: float, largest: float) -> float:
    """Return what violations of a ν-machine are relative to, ``largest`` being max K(x, x).

    That is ρ; but there need be no margin at all, and then that of the machine of C = 10⁶/max K.
    """
    return float(max(rho, least_rho(problem, largest)))


def least_rho(problem: DualProblem, largest: float) -> float:
    """Return the ρ of a ν-machine below which there is no margin to speak of."""
    return float(max(1e-6 * problem.upper.mean() * largest, np.finfo(float).tiny))


def best_rho(problem: DualProblem, margins: Floats) -> float:
    """Return the ρ that minimises −sρ + Σ u_i (ρ − y_i g(x_i))₊: a weighted quantile."""
    order = np.argsort(margins, kind="stable")
    sums = np.cumsum(problem.upper[order])
    reached = int(np.searchsorted(sums, problem.total * (1.0 - 1e-12)))
    return float(margins[order[min(reached, order.size - 1)]])


def primal_value(problem: DualProblem, square: float, margins: Floats) -> float:
    """Return P(w, b) from ‖w‖² and the margins y g(x).

    For the hard margin it is that of the plane scaled up until every y g(x) ≥ 1; ∞ if none does it.
    """
    if problem.total:
        rho = best_rho(problem, margins)
        slack = np.maximum(rho - margins, 0.0)
        return 0.5 * square - problem.total * rho + float(problem.upper @ slack)
    hard = _is_hard(problem)
    if hard.all():
        smallest = float(margins.min())
        return 0.5 * square / min(smallest, 1.0) ** 2 if smallest > 0 else np.inf
    return 0.5 * square + float(losses(problem, 1.0 - margins).sum())
