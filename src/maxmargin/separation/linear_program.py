"""Is there a plane? The linear program that answers with a proof either way.

    maximise t   subject to   z·a ≥ t for every row z of Z,   |w_j| ≤ 1

t > 0 gives a separating plane; at t = 0 the multipliers of the constraints are u ≥ 0 with Zᵀu = 0
(Gordan's alternative). Rows enter the program only when a plane violates them, so that 100,000 of
them cost a few programs of some hundred rows. Solved by SciPy's HiGHS in centred, scaled features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog, nnls

from ..certificate import gordan_residual, refutes
from ..problem import SeparationProblem
from ..samples import Floats, Integers, Samples, blocks_of
from ..solution import Progress, Solution, Status
from ..threads import interruptible
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
        frame = _Frame.of(Z)
        rng = np.random.default_rng(self.seed)
        # Rows at a time, but not more than a dense program of them has room for.
        batch = max(200, min(4 * Z.shape[1], LARGEST_BATCH // Z.shape[1]))
        rows = _first_rows(Z, a, 2 * batch, rng)
        status, multipliers = Status.ITERATION_LIMIT, None
        for _ in range(self.max_iter):
            t, scaled, shares = _solve(frame.rows(Z, rows), Z)
            if t <= NO_MARGIN:
                multipliers = _spread(Z, rows, shares)
                break
            a[:] = frame.weights(scaled, Z)
            margins = Z.dot(a)
            short = np.flatnonzero(margins < 0.5 * t)
            wrong = int((margins <= 0).sum())
            progress.iteration(t, wrong, float(max(0.0, -margins.min())), lambda: snapshot(Z, a))
            if wrong == 0 or np.isin(short, rows).all():
                status = Status.CONVERGED if wrong == 0 else Status.ITERATION_LIMIT
                break
            worst = short[np.argsort(margins[short], kind="stable")[:batch]]
            rows = np.union1d(rows, worst)
        if multipliers is not None:
            multipliers = refine_multipliers(Z, multipliers)
            if refutes(Z, multipliers):
                status = Status.INSEPARABLE
        return snapshot(Z, a, status, progress, multipliers=multipliers)


def refine_multipliers(Z: Samples, u: Floats) -> Floats:
    """Solve Zᵀu = 0, Σu = 1, u ≥ 0 to rounding on the largest entries of an approximate u.

    Non-negative least squares (Lawson, Hanson, 1974, chapter 23) ends with few positive entries,
    whose values are those of a small linear system. Returns the better of the two.
    """
    at_most = min(max(400, 2 * Z.shape[1] + 2), np.count_nonzero(u))
    candidates = np.sort(np.argsort(-u, kind="stable")[:at_most])
    columns = _Frame.of(Z).rows(Z, candidates).reshape(candidates.size, -1)
    system = np.vstack([columns.T, np.ones(candidates.size)])
    target = np.zeros(system.shape[0])
    target[-1] = 1.0
    try:
        shares, _ = interruptible(partial(nnls, system, target))
    except RuntimeError:  # it did not converge: no refinement
        return u
    if not shares.any():
        return u
    refined = np.zeros_like(u)
    refined[candidates] = shares / shares.sum()
    return min(u, refined, key=lambda multipliers: gordan_residual(Z, multipliers))


@dataclass(frozen=True)
class _Frame:
    """Centred and scaled features: separability does not depend on them, the arithmetic does."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, Z: Samples) -> _Frame:
        low, high = _column_range(Z)
        centre = (
            (low + high) / 2 if Z.bias_step and not sparse.issparse(Z.X) else np.zeros_like(low)
        )
        scale = np.maximum(high - centre, centre - low)
        return cls(centre, np.where(scale > 0, scale, 1.0))

    def rows(self, Z: Samples, rows: Integers) -> Floats:
        """Rows of Z with (x − centre)/scale in place of x: (n_rows, n_vectors, d + 1)."""
        z = Z.take(rows).reshape(rows.size, Z.n_vectors, -1)
        z[..., :-1] = (z[..., :-1] - self.centre * z[..., -1:]) / self.scale
        return z

    def weights(self, scaled: Floats, Z: Samples) -> Floats:
        """Turn weights for scaled features (n_vectors, d + 1) into a of Z."""
        w = scaled[:, :-1] / self.scale
        return Z.pack(w, scaled[:, -1] - w @ self.centre)


def _column_range(Z: Samples) -> tuple[Floats, Floats]:
    """Smallest and largest value of each feature over the samples of Z."""
    low = np.full(Z.X.shape[1], np.inf)
    high = np.full(Z.X.shape[1], -np.inf)
    for block in blocks_of(Z.n_samples, Z.X.shape[1]):
        rows = Z.X[Z.index[block]]
        if sparse.issparse(Z.X):
            rows = sparse.vstack([rows.min(axis=0), rows.max(axis=0)]).toarray()
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    return low, high


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


def _solve(z: Floats, Z: Samples) -> tuple[float, Floats, Floats]:
    """Return t, the weights (n_vectors, d + 1) and the multipliers of the program on these rows."""
    n, n_vectors, width = z.shape
    constraints = np.column_stack([-z.reshape(n, -1), np.ones(n)])
    cost = np.zeros(constraints.shape[1])
    cost[-1] = -1.0
    free = (None, None) if Z.bias_step else (0.0, 0.0)
    bounds: list[Any] = ([(-1.0, 1.0)] * (width - 1) + [free]) * n_vectors
    # A linear machine does not change when all its classes move together: pin the last one.
    if n_vectors > 1:
        bounds[-width:] = [(0.0, 0.0)] * width
    bounds.append((0.0, float(2 * width)))
    program = partial(linprog, cost, A_ub=constraints, b_ub=np.zeros(n), bounds=bounds)
    answer = interruptible(partial(program, method="highs-ds"))
    if answer.x is None:
        return 0.0, np.zeros((n_vectors, width)), np.zeros(n)
    weights = answer.x[:-1].reshape(n_vectors, width)
    return float(answer.x[-1]), weights, np.maximum(-answer.ineqlin.marginals, 0.0)


def _spread(Z: Samples, rows: Integers, shares: Floats) -> Floats:
    total = shares.sum()
    u = np.zeros(Z.shape[0])
    u[rows] = shares / total if total > 0 else 1.0 / rows.size
    return u
