"""Gordan's alternative: multipliers u ≥ 0, Σu = 1, Zᵀu = 0 prove that no plane separates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.linalg import eigvalsh

from ..arrays import Floats, blocks_of
from ..data.normalised_samples import Samples
from ..problems import DualProblem
from .exact import Deadline, Exact, exact_multipliers
from .scores import kernel_scores

ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Tuning:
    """Limits of proofs by multipliers."""

    # Numbers in the rows of positive multipliers up to which exact arithmetic is used.
    max_exact_numbers: int = 1 << 21
    max_exact_seconds: float = 2.0
    # Relative residual up to which exact multipliers are sought near approximate ones.
    approximate_relative_residual: float = 1e-6
    # Relative residual of a proof, in rounding units times √(columns of Z).
    rounding_units: float = 64.0


TUNING = Tuning()


def refutes(Z: Samples, u: Floats) -> bool:
    """Return whether u proves that Za > 0 has no solution.

    Because of rounding, the residual r = Zᵀu of a correct proof is not 0, and a margin of a few
    rounding units gives a residual as small. But u minus its projection onto the range of Z (the
    rows used) is an exact solution that differs from u by at most ‖r‖/σ, σ the smallest singular
    value of the rows: if that is less than the smallest entry of u, the solution is positive. If σ
    is 0 up to rounding, exact arithmetic decides whether some u ≥ 0 with the same support has
    Zᵀu = 0.
    """
    if not gordan_residual(Z, u) <= TUNING.rounding_units * ROUNDING * np.sqrt(Z.shape[1]):
        return False
    return _stays_positive(Z, u) or _exact(Z, u) is not None


def nearest_proof(Z: Samples, u: Floats) -> Floats | None:
    """Return multipliers of the same support that prove that Za > 0 has no solution, or None.

    These are u itself, or an exact solution near u, rounded.
    """
    if not gordan_residual(Z, u) <= TUNING.approximate_relative_residual:
        return None
    if refutes(Z, u):
        return u
    v = _exact(Z, u)
    if v is None:
        return None
    total, nearest = sum(v), np.zeros_like(u)
    nearest[np.flatnonzero(u)] = [float(Fraction(share, total)) for share in v]
    return nearest


def _exact(Z: Samples, u: Floats) -> Exact | None:
    """Return integers about proportional to u > 0 with Zᵀu = 0 exactly, or None."""
    support = np.flatnonzero(u)
    if support.size * Z.shape[1] > TUNING.max_exact_numbers:
        return None
    return exact_multipliers(Z.take(support), u[support], Deadline(TUNING.max_exact_seconds))


def _stays_positive(Z: Samples, u: Floats) -> bool:
    """Return whether the exact solution nearest to u is positive, by a bound of its distance.

    Columns are centred and scaled, which does not change the solutions. The equations of the last
    of several weight vectors follow from the others; without a bias its column is 0.
    """
    support = np.flatnonzero(u)
    kept = max(Z.n_vectors - 1, 1), Z.X.shape[1] + bool(Z.bias_step)
    n, width = support.size, kept[0] * kept[1]
    if n < width:
        return False
    centre, scale = _centre_and_scale(Z, u)
    square = np.zeros((width, width))
    residual, magnitude = np.zeros(width), np.zeros(width)
    for block in blocks_of(n, Z.shape[1]):
        z = Z.take(support[block]).reshape(-1, Z.n_vectors, Z.X.shape[1] + 1)
        z[..., :-1] -= centre * z[..., -1:]
        rows = (z / scale)[:, : kept[0], : kept[1]].reshape(-1, width)
        share = u[support[block]]
        square += rows.T @ rows
        residual += share @ rows
        magnitude += share @ np.abs(rows)
    values = eigvalsh(square)
    least = values[0] - (n + 16 * width) * ROUNDING * float(np.trace(square))
    if not least > 0.0:
        return False
    moved = np.linalg.norm(np.abs(residual) + (n + 8) * ROUNDING * magnitude) / np.sqrt(least)
    return bool(2.0 * moved < u[support].min())


def _centre_and_scale(Z: Samples, u: Floats) -> tuple[Floats, Floats]:
    """Return midranges of the features over the rows used, and powers of two near their spread."""
    samples = np.unique(np.flatnonzero(u) // Z.rows_per_sample)
    low, high = np.full(Z.X.shape[1], np.inf), np.full(Z.X.shape[1], -np.inf)
    for block in blocks_of(samples.size, Z.X.shape[1]):
        x = Z.augmented(samples[block])[:, :-1]
        np.minimum(low, x.min(axis=0), out=low)
        np.maximum(high, x.max(axis=0), out=high)
    centre = low + 0.5 * (high - low) if Z.bias_step else np.zeros_like(low)
    spread = np.append(np.maximum(np.abs(high - centre), np.abs(low - centre)), 1.0)
    return centre, np.ldexp(1.0, np.frexp(np.where(spread > 0, spread, 1.0))[1])


def gordan_residual(Z: Samples, u: Floats) -> float:
    """Return ‖Zᵀu‖∞ relative to Σ u_i |z_ij|, or ∞ if u is not a convex combination."""
    if u.min() < 0 or not np.isclose(u.sum(), 1.0):
        return np.inf
    support = np.flatnonzero(u)
    residual, scale = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    for block in blocks_of(support.size, Z.shape[1]):
        rows, share = Z.take(support[block]), u[support[block]]
        residual += share @ rows
        scale += share @ np.abs(rows)
    # One scale per feature, the same for the weight vectors of all classes.
    scale = scale.reshape(Z.n_vectors, -1).max(axis=0)
    worst = np.abs(residual).reshape(Z.n_vectors, -1).max(axis=0)
    return float((worst / np.where(scale > 0, scale, 1.0)).max())


@dataclass(frozen=True)
class FeatureSpaceRefutation:
    """u ≥ 0 with Σ_{y=+1} u_i φ(x_i) = Σ_{y=−1} u_i φ(x_i): a point common to both hulls.

    Parameters
    ----------
    multipliers : ndarray of shape (n,)
        The weights u, of sum 1; ½ in each class.
    distance : float
        The norm ‖Σ u_i y_i φ(x_i)‖ relative to max‖φ(x)‖, recomputed in float64: 0 up to rounding.
        That it is 0 has been proved in exact arithmetic, or the u are those of equal rows.
    """

    multipliers: Floats
    distance: float

    @classmethod
    def of(cls, problem: DualProblem, u: Floats) -> FeatureSpaceRefutation:
        """Return the refutation by multipliers, its distance recomputed."""
        scores, _ = kernel_scores(problem, u * problem.signs)
        largest = float(problem.kernel.diagonal(problem.X)[problem.index].max())
        square = max(float((u * problem.signs) @ scores), 0.0) / max(largest, np.finfo(float).tiny)
        return cls(u, float(np.sqrt(square)))

    def __str__(self) -> str:
        return (
            f"{np.count_nonzero(self.multipliers)} samples combine to a point of both convex "
            f"hulls in feature space (float64 kernel values: to {self.distance:.1e} of the largest "
            "‖φ(x)‖; in exact arithmetic, to 0)"
        )


def margin_bound(Z: Samples, alpha: Floats | None) -> float:
    """Return half the distance of two points in the hulls of two classes, which bounds all margins.

    The points are the combinations of each class with weights proportional to ``alpha`` ≥ 0.
    """
    if alpha is None or not alpha.min() >= 0:
        return np.inf
    shares = np.where(Z.labels > 0, alpha, 0.0), np.where(Z.labels < 0, alpha, 0.0)
    if not (shares[0].any() and shares[1].any()):
        return np.inf
    u = shares[0] / shares[0].sum() + shares[1] / shares[1].sum()
    support = np.flatnonzero(u)
    centre = Z.augmented(support[:1])[0, :-1]  # the difference does not depend on the origin
    total, rounding = np.zeros(centre.size), np.zeros(centre.size)
    for block in blocks_of(support.size, centre.size):
        rows = Z.augmented(support[block])[:, :-1] - centre
        total += (u * Z.labels)[support[block]] @ rows
        rounding += u[support[block]] @ np.abs(rows)
    rounding *= (support.size + 8) * ROUNDING
    return 0.5 * float(np.linalg.norm(np.abs(total) + rounding))
