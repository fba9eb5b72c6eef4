"""Is there a plane? The linear program that answers with a proof either way.

    maximise t   subject to   z·a ≥ t for every row z of Z,   |w_j| ≤ 1

t > 0 gives a separating plane; at t = 0 the multipliers of the constraints are u ≥ 0 with Zᵀu = 0
(Gordan's alternative). Rows enter the program only when a plane violates them, so that 100,000 of
them cost a few programs of some hundred rows. Solved by SciPy's HiGHS in centred, scaled features.

Features that depend on each other up to rounding (all 0/1 columns of a category, standardised) hide
from HiGHS, which works to about 1e-9, what exact arithmetic sees. Where its multipliers prove
nothing, the program is solved once more with such combinations of features, summed in twice the
precision, as features of their own scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from ...arrays import Floats, Integers
from ...certificates import gordan_residual, nearest_proof
from ...certificates.separation import best_bias, rounded_margins
from ...data.normalised_samples import Samples
from ...problems import SeparationProblem
from ...progress import Progress
from ...runtime.threads import interruptible
from ...solution import Solution, Status
from .frames import EnlargedFrame, Frame
from .online import snapshot

# t at or below this (features scaled to at most 1) counts as no margin found: HiGHS works to 1e-9.
NO_MARGIN = 1e-9
LARGEST_BATCH = 1 << 23


@dataclass(frozen=True)
class LinearProgram:
    """Constraint generation over the rows of Z.

    The solution carries a plane (``CONVERGED``), multipliers that refute one (``INSEPARABLE``), or
    neither (``ITERATION_LIMIT``): a margin too small for the arithmetic.
    """

    max_iter: int = 1000
    seed: int = 0

    def solve(self, problem: SeparationProblem, a: Floats, progress: Progress) -> Solution:
        """Put the plane found into ``a``."""
        Z = problem.Z
        rng = np.random.default_rng(self.seed)
        # Rows at a time, but not more than a dense program of them has room for.
        batch = max(200, min(4 * Z.shape[1], LARGEST_BATCH // Z.shape[1]))
        state = _State(Frame.of(Z), _first_rows(Z, a, 2 * batch, rng))
        status = self._generate(Z, a, state, batch, progress)
        if status is Status.ITERATION_LIMIT and state.enlarge(Z):
            status = self._generate(Z, a, state, batch, progress)
        proof = state.multipliers if status is Status.INSEPARABLE else None
        return snapshot(Z, a, status, progress, multipliers=proof)

    def _generate(
        self, Z: Samples, a: Floats, state: _State, batch: int, progress: Progress
    ) -> Status:
        """Add rows that planes violate, until there is a plane, a proof, or rounding in the way."""
        frame = state.frame
        for _ in range(self.max_iter):
            z, sizes = frame.rows(Z, state.rows)
            t, scaled, shares = _solve(z, frame.bounds(Z))
            state.multipliers = _spread(Z, state.rows, shares / sizes)
            if t <= NO_MARGIN:
                proof = nearest_proof(Z, refine_multipliers(Z, state.multipliers, frame))
                if proof is None:
                    return Status.ITERATION_LIMIT
                state.multipliers = proof
                return Status.INSEPARABLE
            found = frame.weights(scaled, Z)
            margins, level = frame.margins(Z, scaled), 0.5 * t
            wrong = int((margins <= 0).sum())
            if wrong == 0 or isinstance(frame, EnlargedFrame):
                found, margins, wrong = _exactly(Z, found)
                level = 0.0
            a[:] = found
            progress.iteration(t, wrong, float(max(0.0, -margins.min())), lambda: snapshot(Z, a))
            short = np.setdiff1d(np.flatnonzero(margins <= level), state.rows)
            if wrong == 0 or not short.size:
                return Status.CONVERGED if wrong == 0 else Status.ITERATION_LIMIT
            worst = short[np.argsort(margins[short], kind="stable")[:batch]]
            state.rows = np.union1d(state.rows, worst)
        return Status.ITERATION_LIMIT


@dataclass
class _State:
    """The frame in which programs are solved, the rows in them, and their last multipliers."""

    frame: Frame
    rows: Integers
    multipliers: Floats = field(default_factory=lambda: np.zeros(0))

    def enlarge(self, Z: Samples) -> bool:
        """Enlarge the directions in which the rows are flat; return whether there are any."""
        frame = self.frame.enlarged(Z, self.rows)
        self.frame = frame or self.frame
        return frame is not None


def _exactly(Z: Samples, a: Floats) -> tuple[Floats, Floats, int]:
    """Return a, its bias moved where that helps, its margins, and how many may be wrong."""
    margins, errors = rounded_margins(Z, a)
    if (margins <= errors).any() and Z.bias_step and Z.n_vectors == 1:
        moved = best_bias(Z, a)
        better = rounded_margins(Z, moved)
        if (better[0] - better[1]).min() > (margins - errors).min():
            a, (margins, errors) = moved, better
    return a, margins, int((margins <= errors).sum())


def refine_multipliers(Z: Samples, u: Floats, frame: Frame | None = None) -> Floats:
    """Solve Zᵀu = 0, Σu = 1, u ≥ 0 to rounding on the largest entries of an approximate u.

    Non-negative least squares (Lawson, Hanson, 1974, chapter 23) ends with few positive entries,
    whose values are those of a small linear system. Returns the better of the two.
    """
    at_most = min(max(400, 2 * Z.shape[1] + 2), np.count_nonzero(u))
    candidates = np.sort(np.argsort(-u, kind="stable")[:at_most])
    columns, sizes = (frame or Frame.of(Z)).rows(Z, candidates)
    system = np.vstack([columns.reshape(candidates.size, -1).T, np.ones(candidates.size)])
    target = np.zeros(system.shape[0])
    target[-1] = 1.0
    try:
        shares, _ = interruptible(partial(nnls, system, target))
    except RuntimeError:  # it did not converge: no refinement
        return u
    if not shares.any():
        return u
    refined = np.zeros_like(u)
    refined[candidates] = shares / sizes
    refined /= refined.sum()
    if isinstance(frame, EnlargedFrame):
        return refined  # the residual is too small to be judged in the features
    return min(u, refined, key=lambda multipliers: gordan_residual(Z, multipliers))


def _first_rows(Z: Samples, a: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Rows to begin with: those a given plane finds hardest, and a random few."""
    n_rows = Z.shape[0]
    if n_rows <= count:
        return np.arange(n_rows)
    chosen = rng.choice(n_rows, size=count // 2, replace=False)
    if a.any():
        hardest = np.argsort(Z.dot(a), kind="stable")[: count // 2]
        chosen = np.concatenate([chosen, hardest])
    # Both classes must be there, or the program is unbounded.
    first_of_each = np.unique(Z.to_rows(Z.labels.astype(float)), return_index=True)[1]
    return np.unique(np.concatenate([chosen, first_of_each]))


def _solve(z: Floats, bounds: list[Any]) -> tuple[float, Floats, Floats]:
    """Return t, the weights of all columns and the multipliers of the program on these rows."""
    n = z.shape[0]
    constraints = np.column_stack([-z.reshape(n, -1), np.ones(n)])
    cost = np.zeros(constraints.shape[1])
    cost[-1] = -1.0
    bounds = [*bounds, (0.0, 2.0 * len(bounds))]
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    program = partial(linprog, cost, A_ub=constraints, b_ub=np.zeros(n), bounds=bounds)
    answer = interruptible(partial(program, method="highs-ds", options=options))
    if answer.x is None:
        return 0.0, np.zeros(len(bounds) - 1), np.zeros(n)
    return float(answer.x[-1]), answer.x[:-1], np.maximum(-answer.ineqlin.marginals, 0.0)


def _spread(Z: Samples, rows: Integers, shares: Floats) -> Floats:
    total = shares.sum()
    u = np.zeros(Z.shape[0])
    u[rows] = shares / total if total > 0 else 1.0 / rows.size
    return u
