"""Ho–Kashyap: minimise ‖Za − m‖² over a and m > 0 (Ho, Kashyap, 1965; Duda, Hart, Stork, 5.9).

It ends with a proof in either case: Za = m > 0, or an error e ≤ 0, e ≠ 0 with Zᵀe = 0, which makes
u = −e the multipliers of Gordan's alternative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arrays import Floats
from ...certificates import nearest_proof, refutes
from ...problems import SeparationProblem
from ...progress import Progress
from ...solution import Solution, Status
from .engine_sums import on_engine
from .linear_program import refine_multipliers
from .online import snapshot
from .pseudoinverse import Compressed, fits, iterate


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
        Z, weights = problem.Z, problem.row_weights
        project = _pseudoinverse_of(problem)
        m = problem.margins.astype(float).copy()
        a += project(m - Z.dot(a))
        show = partial(snapshot, Z, a)
        status, multipliers = Status.ITERATION_LIMIT, None
        for iteration in range(1, self.max_iter + 1):
            margins = Z.dot(a)
            e = margins - m
            errors = int((Z.worst_of_each(margins) <= 0).sum())
            stop = progress.iteration(
                float(weights @ e**2), errors, float(np.abs(e / m).max()), show, exact=True
            )
            if (np.abs(e) <= self.tol * m).all():
                status = Status.CONVERGED
                break
            multipliers = self._refutation(problem, e, iteration)
            if multipliers is not None:
                status = Status.INSEPARABLE
                break
            if stop:
                status = Status.STOPPED
                break
            m += 2.0 * self.beta * np.maximum(e, 0.0)
            # As Zᵀ(Za − m) = 0, the new Z⁺m differs by Z⁺ of the new residual. It is recomputed in
            # each step so that rounding errors do not accumulate.
            a += project(m - margins)
        n_updates = len(progress.history)
        return snapshot(
            Z, a, status, progress, n_updates=n_updates, multipliers=multipliers, margins=m
        )

    @staticmethod
    def _refutation(problem: SeparationProblem, e: Floats, iteration: int) -> Floats | None:
        """Return u ≥ 0, Σu = 1, Zᵀu = 0 if the error proves inseparability."""
        weights = problem.row_weights
        u = weights * np.maximum(-e, 0.0)
        total = u.sum()
        if total == 0.0 or weights @ np.maximum(e, 0.0) > 0.5 * total:
            return None
        u /= total
        longest = np.sqrt(problem.Z.squared_norms().max())
        residual = np.abs(problem.Z.adjoint(u)).max()
        if residual <= TUNING.checked_relative_residual * longest and refutes(problem.Z, u):
            return u
        # e approaches e ≤ 0 in the limit only. The rows of its largest entries determine the
        # multipliers exactly. Trying this after 1, 2, 4, 8, … steps adds little cost.
        if iteration & (iteration - 1):
            return None
        return nearest_proof(problem.Z, refine_multipliers(problem.Z, u))


def _pseudoinverse_of(problem: SeparationProblem) -> Callable[[Floats], Floats]:
    """Return r ↦ Z⁺r for the weighted Z, by one factorisation or by LSMR per call."""
    if not fits(problem.Z):
        return lambda residual: iterate(problem, residual)[0]
    compressed = Compressed.of(problem)
    weights = problem.row_weights
    return lambda residual: compressed.normal_inverse(problem.Z.adjoint(weights * residual))
