"""Ho–Kashyap: minimise ‖Za − m‖² over a and m > 0 (Ho, Kashyap, 1965; Duda, Hart, Stork, 5.9).

It ends with a proof in either case: Za = m > 0, or an error e ≤ 0, e ≠ 0 with Zᵀe = 0, which makes
u = −e the multipliers of Gordan's alternative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats
from ...certificates import refutes
from ...data.partitioned_samples import added
from ...problems import SeparationProblem
from ...progress import Progress
from ...solution import Solution, Status
from .engine_sums import mapped, on_engine, reduced, stepped
from .linear_program import proof_near
from .online import snapshot
from .pseudoinverse import Compressed, is_factorised, iterate


@dataclass(frozen=True)
class Tuning:
    """Constants of the search for a refutation."""

    # ‖Zᵀu‖∞ relative to max‖z‖ up to which u = −e is checked as it is.
    checked_relative_residual: float = 1e-9


TUNING = Tuning()


@dataclass(frozen=True)
class HoKashyap:
    """Repeat e = Za − m, m ← m + 2β max(e, 0), a ← Z⁺m with 0 < β < 1; m never decreases.

    Ends when |e| ≤ tol·m (then Za ≥ (1 − tol) m > 0), with a refutation that the certificate
    accepts, or after ``max_iter`` steps. With weights v it minimises Σ v (z·a − m)², and u = −Ve.
    """

    beta: float
    tol: float
    max_iter: int

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Move ``a`` to the plane of the last step."""
        problem = on_engine(problem)
        Z, project = problem.Z, _pseudoinverse_of(problem)
        m = _first_margins(problem)
        a += project(m, a, reduced(problem, _pull, added, m, common=(a,)))
        show = partial(snapshot, Z, a)
        status, multipliers = Status.ITERATION_LIMIT, None
        for iteration in range(1, self.max_iter + 1):
            grown, found = stepped(problem, grow, merged_errors, m, common=(a, self.beta, self.tol))
            stop = progress.iteration(found.squares, found.errors, found.relative, show, exact=True)
            if found.excess <= 0.0:
                status = Status.CONVERGED
                break
            multipliers = self._refutation(problem, m, a, found, iteration)
            if multipliers is not None:
                status = Status.INSEPARABLE
                break
            if stop:
                status = Status.STOPPED
                break
            m = grown
            # As Zᵀ(Za − m) = 0, the new Z⁺m differs by Z⁺ of the new residual. It is recomputed in
            # each step so that rounding errors do not accumulate.
            a += project(m, a, found.pull + (2.0 * self.beta - 1.0) * found.push)
        n_updates = len(progress.history)
        return snapshot(
            Z, a, status, progress, n_updates=n_updates, multipliers=multipliers, margins=m
        )

    @staticmethod
    def _refutation(
        problem: SeparationProblem, m: Floats, a: Floats, found: Errors, iteration: int
    ) -> Floats | None:
        """Return u ≥ 0, Σu = 1, Zᵀu = 0 if the error proves inseparability."""
        if found.below == 0.0 or found.above > 0.5 * found.below:
            return None
        residual = np.abs(found.pull).max() / found.below
        is_small = residual <= TUNING.checked_relative_residual * problem.Z.longest
        # e approaches e ≤ 0 in the limit only. The rows of its largest entries determine the
        # multipliers exactly. Trying this after 1, 2, 4, 8, … steps adds little cost.
        is_tried = not iteration & (iteration - 1)
        if not (is_small or is_tried):
            return None
        u = mapped(problem, _multipliers, m, common=(a, found.below))
        if is_small and refutes(problem.Z, u):
            return u
        return proof_near(problem.Z, u) if is_tried else None


class Errors(NamedTuple):
    """What e = Za − m says.

    Attributes
    ----------
    squares : float
        Σ v e².
    errors : int
        Samples with z·a ≤ 0.
    relative, excess : float
        The largest |e|/m, and |e| − tol·m.
    below, above : float
        Σ v e⁻ and Σ v e⁺ of the negative and the positive part.
    pull, push : ndarray
        Zᵀ V e⁻ and Zᵀ V e⁺; the latter is 0 where it is not needed, for β = ½.
    """

    squares: float
    errors: int
    relative: float
    excess: float
    below: float
    above: float
    pull: Floats
    push: Floats


def grow(
    problem: SeparationProblem, m: Floats, a: Floats, beta: float, tol: float
) -> tuple[Floats, Errors]:
    """Return the m of the next step, and what the error of this one says."""
    Z, weights = problem.Z, problem.row_weights
    margins = Z.dot(a)
    e = margins - m
    above, below = np.maximum(e, 0.0), np.maximum(-e, 0.0)
    size = np.abs(e)
    found = Errors(
        float(weights @ e**2),
        int((Z.worst_of_each(margins) <= 0).sum()),
        float((size / m).max()),
        float((size - tol * m).max()),
        float(weights @ below),
        float(weights @ above),
        Z.adjoint(weights * below),
        Z.adjoint(weights * above) if beta != 0.5 else np.zeros(Z.shape[1]),
    )
    return m + 2.0 * beta * above, found


def merged_errors(found: list[Errors]) -> Errors:
    """Put together what partitions say."""
    squares, errors, relative, excess, below, above, pull, push = zip(*found, strict=True)
    return Errors(
        sum(squares), sum(errors), max(relative), max(excess), sum(below), sum(above),
        added(list(pull)), added(list(push)),
    )  # fmt: skip


def _first_margins(problem: SeparationProblem) -> Any:
    """Return a vector of the margins that are asked for; rows in partitions are not read for it."""
    if not problem.in_partitions:
        return problem.margins.astype(float)
    labels: Any = problem.Z.labels
    return labels.combined(_of_each, labels, problem.margins)


def _of_each(labels: Floats, margins: Floats) -> Floats:
    return np.where(labels != 0, margins, 0.0)  # rows that do not take part have label 0


def _pull(problem: SeparationProblem, m: Floats, a: Floats) -> Floats:
    """Return ZᵀV(m − Za)."""
    return problem.Z.adjoint(problem.row_weights * (m - problem.Z.dot(a)))


def _multipliers(problem: SeparationProblem, m: Floats, a: Floats, total: float) -> Floats:
    """Return V max(−e, 0), divided by its sum."""
    u: Floats = problem.row_weights * np.maximum(m - problem.Z.dot(a), 0.0) / total
    return u


def _pseudoinverse_of(problem: SeparationProblem) -> Callable[[Floats, Floats, Floats], Floats]:
    """Return (m, a, ZᵀV(m − Za)) ↦ Z⁺(m − Za) for the weighted Z.

    It takes one factorisation, or LSMR per call.
    """
    if not is_factorised(problem):
        return lambda m, a, pull: iterate(problem, m - problem.Z.dot(a))[0]
    compressed = Compressed.of(problem)
    return lambda m, a, pull: compressed.normal_inverse(pull)
