"""Ho–Kashyap: minimise ‖Za − m‖² over a and m > 0 (Ho, Kashyap, 1965; Duda, Hart, Stork, 5.9).

The only rule of the family that ends with a proof either way: Za = m > 0, or an error e ≤ 0,
e ≠ 0 with Zᵀe = 0, which makes u = −e the multipliers of Gordan's alternative.
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
from .linear_program import refine_multipliers
from .online import snapshot
from .pseudoinverse import Compressed, fits, iterate


@dataclass(frozen=True)
class HoKashyap:
    """Repeat e = Za − m, m ← m + 2β max(e, 0), a ← Z⁺m with 0 < β < 1; m never shrinks.

    Ends when |e| ≤ tol·m (then Za ≥ (1 − tol) m > 0), with a refutation that passes the test of
    the certificate, or at ``max_iter`` steps. Weights v minimise Σ v (z·a − m)², and u = −Ve.
    """

    beta: float
    tol: float
    max_iter: int

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Move ``a`` to the last step's plane."""
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
            # From Zᵀ(Za − m) = 0 the new Z⁺m differs by Z⁺ of the new residual; taking the
            # residual afresh each time keeps rounding from piling up.
            a += project(m - margins)
        numbers = {"n_updates": len(progress.history), "multipliers": multipliers, "margins": m}
        return snapshot(Z, a, status, progress, **numbers)

    @staticmethod
    def _refutation(problem: SeparationProblem, e: Floats, iteration: int) -> Floats | None:
        """Return u ≥ 0, Σu = 1, Zᵀu = 0 if the error has come to prove inseparability."""
        weights = problem.row_weights
        u = weights * np.maximum(-e, 0.0)
        total = u.sum()
        if total == 0.0 or weights @ np.maximum(e, 0.0) > 0.5 * total:
            return None
        u /= total
        close = np.abs(problem.Z.adjoint(u)).max() <= 1e-9 * np.sqrt(
            problem.Z.squared_norms().max()
        )
        if close and refutes(problem.Z, u):
            return u
        # e approaches e ≤ 0 in the limit only. Its largest entries name the rows that matter, from
        # which the multipliers follow exactly; asked at 1, 2, 4, 8, … steps, it costs nothing.
        if iteration & (iteration - 1):
            return None
        return nearest_proof(problem.Z, refine_multipliers(problem.Z, u))


def _pseudoinverse_of(problem: SeparationProblem) -> Callable[[Floats], Floats]:
    """Return r ↦ Z⁺r for the weighted Z, factorised once or by LSMR each time."""
    if not fits(problem.Z):
        return lambda residual: iterate(problem, residual)[0]
    compressed = Compressed.of(problem)
    weights = problem.row_weights
    return lambda residual: compressed.normal_inverse(problem.Z.adjoint(weights * residual))
