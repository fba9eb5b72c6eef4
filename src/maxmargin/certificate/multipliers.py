"""Gordan's alternative: multipliers u ≥ 0, Σu = 1, Zᵀu = 0 prove that no plane separates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.linalg import eigvalsh

from ..problem import MarginProblem
from ..samples import Floats, Samples, blocks_of
from .scores import kernel_scores

# Terms of a sum, and steps of an elimination, up to which they are done in rational numbers: some
# tenths of a second.
LARGEST_EXACT = 50_000
LARGEST_ELIMINATION = 12_000
ROUNDING = float(np.finfo(np.float64).eps)


def refutes(Z: Samples, u: Floats) -> bool:
    """Return whether u proves that Za > 0 has no solution.

    Rounding leaves a residual r = Zᵀu even of a true proof, and a margin of a few rounding units
    leaves one as small. But u less its projection onto the range of Z (the rows used) is an exact
    solution, and moved by at most ‖r‖/σ, σ their smallest singular value: where that is less than
    the smallest entry of u, it is positive still. Where σ is 0, or as good as, only rational
    numbers know: what they do not show proves nothing.
    """
    if not gordan_residual(Z, u) <= 64.0 * ROUNDING * np.sqrt(Z.shape[1]):
        return False
    support = np.flatnonzero(u)
    scale = np.sqrt(np.tile(Z.squared_columns(np.ones(Z.n_samples)), Z.n_vectors))
    scale = np.where(scale > 0, scale, 1.0)
    square = np.zeros((Z.shape[1], Z.shape[1]))
    residual = np.zeros(Z.shape[1], dtype=np.longdouble)
    for block in blocks_of(support.size, Z.shape[1]):
        rows = Z.take(support[block]) / scale
        square += rows.T @ rows
        residual += u[support[block]].astype(np.longdouble) @ rows.astype(np.longdouble)
    values = eigvalsh(square)
    if values[0] > 1e-12 * values[-1]:
        moved = 2.0 * np.linalg.norm(residual.astype(float)) / np.sqrt(values[0])
        return bool(moved < u[support].min())
    return support.size * Z.shape[1] <= LARGEST_EXACT and _holds_exactly(
        Z.take(support), u[support]
    )


def _holds_exactly(rows: Floats, u: Floats) -> bool:
    """Whether Σ u_i z_i = 0 has an exact solution u ≥ 0, u ≠ 0, near the one given.

    Tried are u itself, its neighbours of small denominator (which integer data have), and, where
    the system is small, elimination over the rationals.
    """
    equations = [[Fraction(entry) for entry in column] for column in rows.T.tolist()]
    given = [Fraction(share) for share in u.tolist()]
    for values in (given, [share.limit_denominator(10**6) for share in given]):
        sums = (sum(a * b for a, b in zip(e, values, strict=True) if a) for e in equations)
        if max(values) > 0 and not any(sums):
            return True
    if rows.shape[0] * rows.shape[1] ** 2 > LARGEST_ELIMINATION:
        return False
    values = _eliminate(equations, given)
    return min(values) >= 0 and max(values) > 0


def _eliminate(equations: list[list[Fraction]], values: list[Fraction]) -> list[Fraction]:
    """Solve homogeneous equations exactly; free variables keep the values given."""
    pivots: list[tuple[int, list[Fraction]]] = []
    for equation in equations:
        for pivot, other in pivots:
            factor = equation[pivot]
            if factor:
                equation = [a - factor * b for a, b in zip(equation, other, strict=True)]
        open_ones = [k for k, entry in enumerate(equation) if entry]
        if open_ones:
            # Large shares are solved for: they stay positive, and small ones are left alone.
            pivot = max(open_ones, key=lambda k: values[k])
            scale = equation[pivot]
            pivots.append((pivot, [entry / scale for entry in equation]))
    values = list(values)
    for pivot, equation in reversed(pivots):
        others = (e * values[k] for k, e in enumerate(equation) if e and k != pivot)
        values[pivot] = -sum(others, Fraction(0))
    return values


def gordan_residual(Z: Samples, u: Floats) -> float:
    """‖Zᵀu‖∞ relative to Σ u_i |z_ij|, or ∞ for u that is no convex combination."""
    if u.min() < 0 or not np.isclose(u.sum(), 1.0):
        return np.inf
    support = np.flatnonzero(u)
    residual = np.zeros(Z.shape[1], dtype=np.longdouble)
    scale = np.zeros(Z.shape[1])
    for block in blocks_of(support.size, Z.shape[1]):
        rows, share = Z.take(support[block]), u[support[block]]
        residual += share.astype(np.longdouble) @ rows.astype(np.longdouble)
        scale += share @ np.abs(rows)
    # One scale a feature, whichever class's weight vector it belongs to.
    scale = scale.reshape(Z.n_vectors, -1).max(axis=0)
    worst = np.abs(residual).reshape(Z.n_vectors, -1).max(axis=0)
    return float((worst / np.where(scale > 0, scale, 1.0)).max())


@dataclass(frozen=True)
class FeatureSpaceRefutation:
    """u ≥ 0 with Σ_{y=+1} u_i φ(x_i) = Σ_{y=−1} u_i φ(x_i): a point common to both hulls.

    Parameters
    ----------
    multipliers : ndarray of shape (n,)
        u, of sum 1; half of it in each class.
    distance : float
        ‖Σ u_i y_i φ(x_i)‖ relative to max‖φ(x)‖, recomputed in float64: 0 up to rounding.
    """

    multipliers: Floats
    distance: float

    @classmethod
    def of(cls, problem: MarginProblem, u: Floats) -> FeatureSpaceRefutation:
        """Recompute what the multipliers prove."""
        scores, _ = kernel_scores(problem, u * problem.y)
        largest = float(problem.kernel.diagonal(problem.X)[problem.index].max())
        square = max(float((u * problem.y) @ scores), 0.0) / max(largest, np.finfo(float).tiny)
        return cls(u, float(np.sqrt(square)))

    def __str__(self) -> str:
        return (
            f"{np.count_nonzero(self.multipliers)} samples combine to a point of both convex "
            f"hulls in feature space (distance {self.distance:.1e} of the largest ‖φ(x)‖)"
        )


def margin_bound(Z: Samples, alpha: Floats | None) -> float:
    """Return half the distance of two points in the hulls of two classes: no margin exceeds it.

    The points are the combinations of each class with weights proportional to ``alpha`` ≥ 0.
    """
    if alpha is None or alpha.min() < 0:
        return np.inf
    shares = np.where(Z.labels > 0, alpha, 0.0), np.where(Z.labels < 0, alpha, 0.0)
    if not (shares[0].any() and shares[1].any()):
        return np.inf
    u = shares[0] / shares[0].sum() + shares[1] / shares[1].sum()
    return 0.5 * float(np.linalg.norm(Z.adjoint(u)[:-1]))
