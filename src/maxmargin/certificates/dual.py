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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Integers
from ..problems import DualProblem
from ..problems.dual import usual_length
from ..runtime.threads import in_parallel
from ..solution import Solution
from .base import certify
from .device_scores import are_on_device
from .dual_tasks import (
    TINY,
    Coverage,
    Margins,
    Mask,
    Tasks,
    best_rho,
    gap_terms,
    kkt_rho,
    kkt_violations,
    least_rho,
    of_sums,
    slacks,
    squared_radii,
    values_of,
)
from .scores import UNIT, kernel_scores, scores_of_tasks


@dataclass(frozen=True)
class Tuning:
    """Which scores are recomputed, and what is called optimal."""

    # The error of claimed scores, relative to the largest, above which none of them is used.
    doubtful_error: float = 1e-3
    # The share by which bounds of scores may widen the gap and the violation.
    widening_share: float = 0.1
    # The share of scores to recompute above which all of them are.
    complete_share: float = 0.25
    # Variables of tasks that are certified together.
    variables_together: int = 1 << 15
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
        are as exact as the solver's scores. Of a regression with C = ∞ they are those of a tube
        that is wider by the worst violation.
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
        if max(self.relative_gap, self._worst()) <= TUNING.optimal:
            return f"optimal to a {self.measures}"
        return f"not optimal: {self.measures}"

    def _worst(self) -> float:
        """Return the largest number beside the gap that decides whether an answer is optimal."""
        return max(self.violation + self.rounding, self.balance, self.box)

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


@certify.register
def _(
    problem: DualProblem,
    solution: Solution,
    *,
    sample: int | None = None,
    at_most: int | None = None,
) -> MarginCertificate:
    tasks = Tasks.of(problem)
    claim = Claim.of(tasks, [solution])
    margins = _margins(problem, solution, claim.alpha, sample, at_most)
    return certificates_of(tasks, claim, margins, lengths_of(problem))[0]


def certify_tasks(
    problems: Sequence[DualProblem], solutions: Sequence[Solution]
) -> list[MarginCertificate]:
    """Certify the tasks of a fit completely, small ones together."""
    parts = list(_parts(problems))
    of_parts = [Tasks.of(*problems[part]) for part in parts]
    if len({is_hard for tasks in of_parts for is_hard in tasks.is_hard}) > 1:
        return [certify(*task) for task in zip(problems, solutions, strict=True)]
    claims = [Claim.of(tasks, solutions[part]) for tasks, part in zip(of_parts, parts, strict=True)]
    coefficients, b = [], []
    for tasks, claim in zip(of_parts, claims, strict=True):
        coefficients += tasks.parts(claim.alpha * tasks.signs)
        b += claim.b.tolist()
    found, lengths = scores_of_tasks(problems, coefficients, b), lengths_of(problems[0])

    def one(k: int, stop: Event) -> list[MarginCertificate]:
        scores, errors = (np.concatenate(each) for each in zip(*found[parts[k]], strict=True))
        margins = Margins(of_parts[k].signs * scores, errors, 0, "complete")
        return certificates_of(of_parts[k], claims[k], margins, lengths)

    return [each for some in in_parallel(one, range(len(parts))) for each in some]


def _parts(problems: Sequence[DualProblem]) -> Iterator[slice]:
    """Yield tasks that are certified together: vectors of their variables fit a core's cache."""
    first = size = 0
    for k, problem in enumerate(problems):
        if size and size + problem.n_variables > TUNING.variables_together:
            yield slice(first, k)
            first, size = k, 0
        size += problem.n_variables
    yield slice(first, len(problems))


class Claim(NamedTuple):
    """α of all tasks, as given and clipped to its bounds, and b of each task."""

    given: Floats
    alpha: Floats
    b: Floats

    @classmethod
    def of(cls, tasks: Tasks, solutions: Sequence[Solution]) -> Claim:
        given = np.concatenate([solution.alpha for solution in solutions])  # type: ignore[misc]
        b = np.array([float(solution.b[0]) for solution in solutions])
        return cls(given, np.clip(given, tasks.lower, tasks.upper), b)


class Proofs(NamedTuple):
    """Numbers of `MarginCertificate`, of many tasks: arrays of one shape."""

    primal: Floats
    dual: Floats
    gap: Floats
    relative_gap: Floats
    violation: Floats
    balance: Floats
    box: Floats
    rounding: Floats

    def hold(self, tol: float) -> Mask:
        """Return which of them hold to ``tol``, all scores having been recomputed."""
        is_small: Mask = self.violation + self.rounding <= tol
        is_small &= (self.balance <= tol) & (self.box <= tol)
        return is_small & (self.relative_gap <= 2.0 * tol)


def certificates_of(
    tasks: Tasks, claim: Claim, margins: Margins, lengths: Floats
) -> list[MarginCertificate]:
    """Return the certificate of every task; ``lengths`` are K(x, x) of the rows of X."""
    sizes = tasks.sizes.tolist()
    n_checked = sizes if margins.coverage == "complete" else [margins.n_checked]
    numbers = (column.tolist() for column in proofs_of(tasks, claim, margins, lengths))
    coverage = [margins.coverage] * len(sizes)
    return [
        MarginCertificate(*of_task)
        for of_task in zip(*numbers, n_checked, sizes, coverage, strict=True)
    ]


def proofs_of(tasks: Tasks, claim: Claim, margins: Margins, lengths: Floats) -> Proofs:
    """Return the numbers of the certificate of every task."""
    given, alpha, b = claim
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        box = tasks.largest(np.abs(alpha - given)) / np.maximum(1.0, tasks.largest(alpha))
        balance = np.zeros_like(b)
        for rest in tasks.rests(alpha):
            balance = np.maximum(balance, np.abs(rest))
        balance = balance / np.maximum(1.0, tasks.total(alpha))
        rho = tasks.of_two_groups(kkt_rho, alpha, margins.values)
        wrong = kkt_violations(tasks, margins.values, alpha, rho)
        nominal = np.maximum(tasks.largest(wrong), 0.0)
        worst = np.maximum(tasks.largest(wrong + margins.errors), 0.0)
        largest = _largest(tasks, lengths)
        unit = _units(tasks, b, rho, lengths)
        primal, dual, gap, least = values_of(tasks, alpha, margins, b, largest)
        # Where p = 0, P is about −Σ|t|ρ, and may be 0.
        least = np.where(_target_scales(tasks) > 0.0, least, np.maximum(least, tasks.totals * unit))
        relative = np.where(np.isfinite(gap), gap / np.maximum(least, TINY), np.inf)
        return Proofs(
            primal, dual, gap, relative, nominal / unit, balance, box, (worst - nominal) / unit
        )


def lengths_of(problem: DualProblem) -> Floats:
    """Return K(x, x) of the rows of X, where it is needed."""
    is_needed = problem.groups or not problem.target_scale
    return problem.kernel.diagonal(problem.X) if is_needed else np.empty(0)


def _units(tasks: Tasks, b: Floats, rho: Floats, lengths: Floats) -> Floats:
    """Return what violations are relative to: the scale of the targets, ρ where p = 0.

    But there need be no margin at all, and then it is that of the machine of C = 10⁶/max K, where
    rows far from all others do not count.
    """
    scales = _target_scales(tasks)
    if scales.all():
        return scales
    first = tasks.problems[0]
    if len(tasks.groups) == 2:
        lengths = squared_radii(first.kernel, first.X, lengths)
    least = [least_rho(each, usual_length(lengths[each.index])) for each in tasks.problems]
    of_rho = np.maximum(-of_sums(tasks, b, rho) / tasks.totals, least)
    return np.where(scales > 0.0, scales, np.where(tasks.totals > 0.0, of_rho, 1.0))


def _target_scales(tasks: Tasks) -> Floats:
    return np.array([problem.target_scale for problem in tasks.problems])


def _largest(tasks: Tasks, lengths: Floats) -> Floats:
    """Return max K(x, x) of every task, 0 where there are no sums to repair."""
    if not tasks.groups:
        return np.zeros(len(tasks.problems))
    return tasks.largest(lengths[np.concatenate([problem.index for problem in tasks.problems])])


def _margins(
    problem: DualProblem,
    solution: Solution,
    alpha: Floats,
    sample: int | None,
    at_most: int | None,
) -> Margins:
    """Return s(w·φ(x) + b) of all variables.

    Without ``sample`` all are recomputed, and so they are on a device. Else the solver's own
    scores are taken where the bounds that it gives leave no doubt; those bounds are checked on a
    sample. Scores without bounds are compared with recomputed ones on the sample, and taken to be
    as good elsewhere. Where more than ``at_most`` scores would have to be recomputed, none is, and
    the claims are as wide as that.
    """
    n, b, signs = problem.n_variables, float(solution.b[0]), problem.signs
    coefficients = alpha * signs
    bounds = solution.score_bounds
    is_known = solution.scores is not None and (bounds is None or np.isfinite(bounds).all())
    if are_on_device(problem.kernel, problem.X):
        sample = None
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
    tasks = Tasks.of(problem)
    rho = tasks.of_two_groups(kkt_rho, alpha, margins.values)
    wrong = kkt_violations(tasks, margins.values, alpha, rho)
    certain = max(float((wrong - margins.errors).max()), 0.0)
    chosen: Mask = wrong + margins.errors > (1.0 + TUNING.widening_share) * certain
    values = tasks.widened(margins.values, margins.errors)
    z = slacks(tasks, values, tasks.of_two_groups(best_rho, margins.values))
    terms, widest = gap_terms(tasks, alpha, z, margins.errors)
    wider = np.where(np.isfinite(widest), widest, np.inf) - terms
    wider[chosen] = 0.0
    order = np.argsort(wider)
    allowed = np.cumsum(wider[order]) <= TUNING.widening_share * float(terms.sum())
    chosen[order[~allowed]] = True
    return np.flatnonzero(chosen)
