"""How far a kernel machine is from its optimum.

With w = Σ α_i s_i φ(x_i), multipliers μ of the groups' sums, z_i = −p_i − s_i(w·φ(x_i) + μ) and
h_i(z) = max {az − ½D_i a² : l_i ≤ a ≤ u_i} the loss of a variable, the duality gap of a feasible α
is a sum of terms that are not negative,

    P(w, μ) − D(α) = Σ_i h_i(z_i) − α_i z_i + ½D_i α_i²,

each 0 where α_i = l_i and z_i < 0, or where α_i = u_i and z_i > 0: of such variables the sign of
z_i is all that counts. What rounding may have done to the scores is bounded row by row, and the
claims are as large as these bounds allow.

The bias b is the mean of the multipliers. With two groups they are b − ρ and b + ρ: ρ is the margin
of the ν-classifier, −ε of the ν-regression, and it is chosen here. The margin of a variable is
s_i(w·φ(x_i) + b).
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

# The distance from a bound, relative to it, at which a variable counts as being there.
ROUNDING = 8.0 * UNIT
TINY = float(np.finfo(float).tiny)

Coverage = Literal["complete", "bounded", "sampled"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tuning:
    """Which scores are recomputed, and what is called optimal."""

    # The error of claimed scores, relative to the largest, above which none of them is used.
    doubtful_error: float = 1e-3
    # The share by which bounds of scores may widen the gap and the violation.
    widening_share: float = 0.1
    # The share of scores to recompute above which all of them are.
    complete_share: float = 0.25
    # The relative gap and the violation up to which an answer is called optimal in words.
    optimal: float = 0.02


TUNING = Tuning()


@dataclass(frozen=True)
class MarginCertificate:
    """How far a kernel machine is from its optimum.

    Parameters
    ----------
    primal, dual : float
        P(w, b) and D(α), with P ≥ D for every feasible answer and P = D at the optimum. Rounded
        up and down, as far as rounding may have gone; where ``coverage`` is not "complete" they
        are as exact as the solver's scores.
    gap, relative_gap : float
        P − D, and that relative to P (where p = 0, as of the ν-classifier and the one-class
        machine: to Σ|t|ρ where P is less); both are upper bounds, rounding included.
    violation : float
        The worst violation of the KKT conditions at b, where the margin of a classifier is 1. It
        is relative to half the range of the targets of a regression, and to ρ where p = 0.
    balance : float
        The largest error of a group's sum Σ s_i α_i before it was repaired, relative to Σα where
        that exceeds 1.
    box : float
        How far α was outside of l ≤ α ≤ u before it was clipped, relative to the largest α where
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
        if max(self.relative_gap, worst) <= TUNING.optimal:
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
    """s(w·φ(x) + b) of every variable, by how much it may be wrong, and how it is known."""

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
    alpha, b = np.clip(solution.alpha, problem.lower, problem.upper), float(solution.b[0])
    box = float(np.abs(alpha - solution.alpha).max()) / max(1.0, float(alpha.max()))
    balance = max(map(abs, _rests(problem, alpha)), default=0.0)
    balance /= max(1.0, float(alpha.sum()))
    margins = _margins(problem, solution, alpha, sample, at_most)
    rho = kkt_rho(problem, alpha, margins.values)
    wrong = kkt_violations(problem, margins.values, alpha, rho)
    nominal, worst = (max(float(w.max()), 0.0) for w in (wrong, wrong + margins.errors))
    largest = _largest(problem) if problem.groups else 0.0
    unit = _unit(problem, b, rho, largest)
    primal, dual, gap, least = _values(problem, alpha, margins, b, largest)
    if not problem.target_scale:  # P is about −Σ|t|ρ, and may be 0
        least = max(least, problem.total * unit)
    with np.errstate(over="ignore"):
        relative = float(np.divide(gap, max(least, TINY))) if np.isfinite(gap) else np.inf
    return MarginCertificate(
        primal, dual, gap, relative, nominal / unit, balance, box, (worst - nominal) / unit,
        margins.n_checked, problem.n_variables, margins.coverage,
    )  # fmt: skip


def _rests(problem: DualProblem, alpha: Floats) -> list[float]:
    """Return Σ s_i α_i − t of every group."""
    groups = zip(problem.groups, problem.sums, strict=True)
    return [float(problem.signs[group] @ alpha[group]) - total for group, total in groups]


def _unit(problem: DualProblem, b: float, rho: float, largest: float) -> float:
    """Return what violations are relative to: the scale of the targets, ρ where p = 0.

    But there need be no margin at all, and then it is that of the machine of C = 10⁶/max K.
    """
    if problem.target_scale or not problem.total:
        return problem.target_scale or 1.0
    least = least_rho(problem, largest)
    return max(-_of_sums(problem, b, rho) / problem.total, least)


def least_rho(problem: DualProblem, largest: float) -> float:
    """Return the ρ below which a margin counts as 0, ``largest`` being max K(x, x)."""
    return max(1e-6 * float(problem.upper.mean()) * largest, TINY)


def _margins(
    problem: DualProblem,
    solution: Solution,
    alpha: Floats,
    sample: int | None,
    at_most: int | None,
) -> Margins:
    """Return s(w·φ(x) + b) of all variables.

    Without ``sample`` all are recomputed. Else the solver's own scores are taken where the bounds
    that it gives leave no doubt; those bounds are checked on a sample. Scores without bounds are
    compared with recomputed ones on the sample, and taken to be as good elsewhere. Where more than
    ``at_most`` scores would have to be recomputed, none is, and the claims are as wide as that.
    """
    n, b, signs = problem.n_variables, float(solution.b[0]), problem.signs
    coefficients = alpha * signs
    bounds = solution.score_bounds
    is_known = solution.scores is not None and (bounds is None or np.isfinite(bounds).all())
    if sample is not None and is_known and n > 2 * sample:
        chosen = np.random.RandomState(0).permutation(n)[:sample]
        exact, blur = kernel_scores(problem, coefficients, chosen, b)
        claims = _claims(problem, solution, chosen, exact, blur)
        if claims is not None:
            claims.values[chosen], claims.errors[chosen] = signs[chosen] * exact, blur
            rows = _decisive(problem, alpha, claims)
            few = rows.size <= TUNING.complete_share * n
            if at_most is not None and at_most < (rows.size if few else n):
                return claims._replace(n_checked=chosen.size)
            if few:
                exact, blur = kernel_scores(problem, coefficients, rows, b)
                claims.values[rows], claims.errors[rows] = signs[rows] * exact, blur
                return claims._replace(n_checked=int(np.union1d(chosen, rows).size))
    scores, errors = kernel_scores(problem, coefficients, b=b)
    return Margins(signs * scores, errors, n, "complete")


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
        if error > TUNING.doubtful_error * max(1.0, float(np.abs(exact).max())):
            return None
        return Margins(problem.signs * scores, np.full(scores.size, error), 0, "sampled")
    errors = errors + 4.0 * UNIT * (np.abs(scores) + abs(float(solution.b[0])))
    if (off > errors[chosen] + blur).any():
        return None
    return Margins(problem.signs * scores, errors, 0, "bounded")


def _decisive(problem: DualProblem, alpha: Floats, margins: Margins) -> Integers:
    """Return the variables whose errors widen the claims by more than a little."""
    rho = kkt_rho(problem, alpha, margins.values)
    wrong = kkt_violations(problem, margins.values, alpha, rho)
    certain = max(float((wrong - margins.errors).max()), 0.0)
    chosen: Mask = wrong + margins.errors > (1.0 + TUNING.widening_share) * certain
    terms, widest = _gap_terms(problem, alpha, margins)
    wider = np.where(np.isfinite(widest), widest, np.inf) - terms
    wider[chosen] = 0.0
    order = np.argsort(wider)
    allowed = np.cumsum(wider[order]) <= TUNING.widening_share * float(terms.sum())
    chosen[order[~allowed]] = True
    return np.flatnonzero(chosen)


# KKT conditions ----------------------------------------------------------------------------------


def kkt_violations(problem: DualProblem, margins: Floats, alpha: Floats, rho: float) -> Floats:
    """Return by how much every variable violates its KKT condition; below 0 it does not.

    The derivative s(w·φ(x) + μ) + p + Dα of the Lagrangian must be ≥ 0 for all α that may grow,
    and ≤ 0 for all that may shrink.
    """
    below, above = _may_move(problem, alpha)
    slope = margins + problem.ridge * alpha + problem.p
    if len(problem.groups) == 2:
        slope -= rho * _signs_of_rho(problem)
    return np.maximum(np.where(below, -slope, -np.inf), np.where(above, slope, -np.inf))


def kkt_rho(problem: DualProblem, alpha: Floats, margins: Floats) -> float:
    """Return the ρ that serves the KKT conditions best: 0 but for two groups."""
    if len(problem.groups) != 2:
        return 0.0
    below, above = _may_move(problem, alpha)
    signs = _signs_of_rho(problem)
    rho = signs * (margins + problem.ridge * alpha + problem.p)  # where a condition holds exactly
    rises = signs > 0.0
    largest = float(rho[np.where(rises, below, above)].min(initial=np.inf))
    least = float(rho[np.where(rises, above, below)].max(initial=-np.inf))
    if not (np.isfinite(largest) and np.isfinite(least)):
        return best_rho(problem, margins)
    return 0.5 * (largest + least)


def _may_move(problem: DualProblem, alpha: Floats) -> tuple[Mask, Mask]:
    """Return which α may grow and which may shrink."""
    x, room = alpha - problem.lower, problem.upper - problem.lower
    return x < (1.0 - ROUNDING) * room, x > ROUNDING * np.minimum(room, x.max())


def _signs_of_rho(problem: DualProblem) -> Floats:
    """Return how ρ of two groups enters z = −p − s(w·φ(x) + μ), as +ρ or −ρ."""
    signs = problem.signs.copy()
    signs[problem.groups[1]] *= -1.0
    return signs


# Values ------------------------------------------------------------------------------------------


def _values(
    problem: DualProblem, alpha: Floats, margins: Margins, b: float, largest: float
) -> tuple[float, float, float, float]:
    """Return P at most, D at least, P − D at most, and \\|P\\| at least."""
    values, errors = margins.values, margins.errors
    sizes = np.abs(alpha)
    blur = float(sizes @ errors)
    signed = float(np.sum(problem.signs * alpha)) if problem.groups else 0.0
    square = float(alpha @ values) - b * signed
    repair, off = _repair(problem, alpha, margins, b, largest)
    if _is_hard(problem).all() and problem.has_unit_margin:
        # As if every margin were as small as it may be.
        scale = min(float((values - errors).min()), 1.0)
        worst = 0.5 * (square + blur) / scale**2 if scale > 0.0 else np.inf
        dual = float(alpha.sum()) - 0.5 * (square + blur) - repair - abs(b) * off
        return worst, dual, worst - dual, 0.5 * (square - blur)
    primal = primal_value(problem, square, values, b)
    terms, widest = _gap_terms(problem, alpha, margins)
    # Sums by pairs of numbers round log₂ n times.
    cancelled = abs(b * signed) + abs(b) * problem.total
    size = float(np.abs(problem.p) @ sizes) + abs(primal) + abs(square) + cancelled
    gap = float(widest.sum()) + repair + 64.0 * UNIT * size
    unknown = float((widest - terms).sum()) + 1.5 * blur + 64.0 * UNIT * cancelled
    least = abs(primal) - unknown
    if not problem.total:
        loss = float(losses(problem, -problem.p - values - errors).sum())
        least = 0.5 * (square - blur) + loss
    if margins.coverage == "complete":
        return primal + unknown, primal - unknown - gap, gap, least
    return primal, primal - gap, gap, least


def _repair(
    problem: DualProblem, alpha: Floats, margins: Margins, b: float, largest: float
) -> tuple[float, float]:
    """Return what D loses when α is moved until every sum is right, and the errors of the sums.

    The variables of a group that can be lowered are, by the same share of their distance to l, or
    else those that can be raised. That takes Σ |Δα_i z_i| + ½‖Σ Δα_i s_i φ(x_i)‖² at most from what
    the sum of terms says. Where the bounds leave no room for it, which is for rounding only if the
    answer is feasible, the sum itself is taken for right: μ times its error.
    """
    rho = best_rho(problem, margins.values) if len(problem.groups) == 2 else 0.0
    lost, errors = 0.0, 0.0
    sizes = np.abs(alpha)
    for k, rest in enumerate(_rests(problem, alpha)):
        group, total = problem.groups[k], abs(problem.sums[k])
        off = abs(rest) + 64.0 * UNIT * (float(sizes[group].sum()) + total)
        errors += off
        pull = problem.signs[group] * (1.0 if rest >= 0.0 else -1.0)
        down = (alpha - problem.lower)[group]
        up = (problem.upper - alpha)[group]
        z = _slacks(problem, margins.values, rho)[group]
        distance, cost = down, np.abs(z) + margins.errors[group]
        room, ridge = float(down[pull > 0].sum()), 0.0
        if room < off and np.isfinite(up[pull < 0]).all():
            distance, room = np.where(pull < 0, up, 0.0), float(up[pull < 0].sum())
            cost = cost + (problem.ridge * sizes)[group]
            ridge = float(problem.ridge[group].max(initial=0.0))
        if room >= off > 0.0:
            lost += off / room * float(distance @ cost)
            lost += 0.5 * off**2 * (largest + ridge)
        else:
            lost += off * (abs(b) + abs(rho))
    return lost, errors


def _largest(problem: DualProblem) -> float:
    """Return max K(x, x)."""
    return float(problem.kernel.diagonal(problem.X)[problem.index].max())


def _slacks(problem: DualProblem, margins: Floats, rho: float) -> Floats:
    """Return z = −p − s(w·φ(x) + μ) of every variable."""
    if len(problem.groups) == 2:
        return rho * _signs_of_rho(problem) - problem.p - margins
    return -problem.p - margins


def _gap_terms(problem: DualProblem, alpha: Floats, margins: Margins) -> tuple[Floats, Floats]:
    """Return h(z) − αz + ½Dα² of every variable, and the most that it may be."""
    rho = best_rho(problem, margins.values) if len(problem.groups) == 2 else 0.0
    z = _slacks(problem, margins.values, rho)
    fixed = 0.5 * problem.ridge * alpha**2
    terms = losses(problem, z) - alpha * z + fixed
    # The function is convex in z: the most is at an end.
    ends = [losses(problem, end) - alpha * end for end in (z - margins.errors, z + margins.errors)]
    return terms, np.maximum(*ends) + fixed


def losses(problem: DualProblem, z: Floats) -> Floats:
    """Return h(z) of every variable: ∞ where a hard margin is violated."""
    lower, upper, ridge = problem.lower, problem.upper, problem.ridge
    if not ridge.any() and np.isfinite(upper).all():
        return np.maximum(upper * z, lower * z)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = np.clip(z / ridge, lower, upper)
        bound = np.where(z > 0.0, upper, lower)
        h = np.where(ridge > 0.0, a * (z - 0.5 * ridge * a), bound * z)
        return np.where((z > 0.0) | (lower != 0.0), h, 0.0)


def _is_hard(problem: DualProblem) -> Mask:
    return np.asarray(np.isinf(problem.upper) & (problem.ridge == 0.0))


def best_rho(problem: DualProblem, margins: Floats) -> float:
    """Return the ρ of two groups that minimises P: a weighted quantile where D = 0.

    Σ h_i(z_i) has the slope Σ l_i − Σ u_j, over the z that grow and that fall with ρ, left of all ρ
    at which some z_i is 0, and it grows by u_i − l_i at each of them.
    """
    signs = _signs_of_rho(problem)
    zeros = signs * (margins + problem.p)
    grows = signs > 0.0
    needed = problem.sums[0] - problem.sums[1] - float(problem.lower[grows].sum())
    needed += float(problem.upper[~grows].sum())
    order = np.argsort(zeros, kind="stable")
    sums = np.cumsum((problem.upper - problem.lower)[order])
    reached = int(np.searchsorted(sums, needed * (1.0 - 1e-12)))
    return float(zeros[order[min(reached, order.size - 1)]])


def _of_sums(problem: DualProblem, b: float, rho: float) -> float:
    """Return Σ t μ of the groups."""
    if len(problem.sums) == 2:
        first, second = problem.sums
        return b * (first + second) - rho * (first - second)
    return b * sum(problem.sums)


def primal_value(problem: DualProblem, square: float, margins: Floats, b: float = 0.0) -> float:
    """Return P(w, b) from ‖w‖² and the margins s(w·φ(x) + b), with the best ρ of two groups.

    Without sums other than 0, b is of no account but for the margins. For the hard margin P is that
    of the plane scaled up until every y g(x) ≥ 1; ∞ if none does it.
    """
    if _is_hard(problem).all() and problem.has_unit_margin:
        smallest = float(margins.min())
        return 0.5 * square / min(smallest, 1.0) ** 2 if smallest > 0 else np.inf
    rho = best_rho(problem, margins) if len(problem.groups) == 2 else 0.0
    loss = float(losses(problem, _slacks(problem, margins, rho)).sum())
    return 0.5 * square + _of_sums(problem, b, rho) + loss
