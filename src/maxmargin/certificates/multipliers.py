"""Gordan's alternative: multipliers u ≥ 0, Σu = 1, Zᵀu = 0 prove that no plane separates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from ..arrays import Floats, blocks_of
from ..data.normalised_samples import Samples
from ..problems import DualProblem
from .exact import Deadline, exact_multipliers
from .scores import kernel_scores

# Numbers of the rows used up to which they are looked at in exact arithmetic, and for how long.
LARGEST_EXACT = 1 << 21
EXACT_SECONDS = 2.0
# Relative residual up to which multipliers are worth being made exact.
APPROXIMATE = 1e-6
ROUNDING = float(np.finfo(np.float64).eps)


def refutes(Z: Samples, u: Floats) -> bool:
    """Return whether u proves that Za > 0 has no solution.

    Rounding leaves a residual r = Zᵀu even of a true proof, and a margin of a few rounding units
    leaves one as small. But u less its projection onto the range of Z (the rows used) is an exact
    solution, and moved by at most ‖r‖/σ, σ their smallest singular value: where that is less than
    the smallest entry of u, it is positive still. Where σ is 0, or as good as, exact arithmetic
    decides whether some u ≥ 0 with the same support has Zᵀu = 0.
    """
    if not gordan_residual(Z, u) <= 64.0 * ROUNDING * np.sqrt(Z.shape[1]):
        return False
    return _stays_positive(Z, u) or _exact(Z, u) is not None


def nearest_proof(Z: Samples, u: Floats) -> Floats | None:
    """Return multipliers of the same support that prove that Za > 0 has no solution, or None.

    These are u itself, or what exact arithmetic makes of an approximate u, rounded.
    """
    if not gordan_residual(Z, u) <= APPROXIMATE:
        return None
    if refutes(Z, u):
        return u
    v = _exact(Z, u)
    if v is None:
        return None
    total, nearest = sum(v), np.zeros_like(u)
    nearest[np.flatnonzero(u)] = [float(Fraction(share, total)) for share in v]
    return nearest


def _exact(Z: Samples, u: Floats) -> Any:
    """Return integers about proportional to u > 0 with Zᵀu = 0 exactly, or None."""
    support = np.flatnonzero(u)
    if support.size * Z.shape[1] > LARGEST_EXACT:
        return None
    return exact_multipliers(Z.take(support), u[support], Deadline(EXACT_SECONDS))


def _stays_positive(Z: Samples, u: Floats) -> bool:
    """Whether the exact solution nearest to u is positive, by a bound on the way to it.

    Columns are centred and scaled: other equations with the same solutions. Those of the last of
    several weight vectors follow from the others, and without a bias its column is 0.
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
    """Return means of the features over the rows used, and powers of two about their spread."""
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
    """‖Zᵀu‖∞ relative to Σ u_i |z_ij|, or ∞ for u that is no convex combination."""
    if u.min() < 0 or not np.isclose(u.sum(), 1.0):
        return np.inf
    support = np.flatnonzero(u)
    residual, scale = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    for block in blocks_of(support.size, Z.shape[1]):
        rows, share = Z.take(support[block]), u[support[block]]
        residual += share @ rows
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
        ‖Σ u_i y_i φ(x_i)‖ relative to max‖φ(x)‖, recomputed in float64: 0 up to rounding. That it
        is 0 has been shown in exact arithmetic, or the u are those of equal rows.
    """

    multipliers: Floats
    distance: float

    @classmethod
    def of(cls, problem: DualProblem, u: Floats) -> FeatureSpaceRefutation:
        """Recompute what the multipliers prove."""
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
    """Return half the distance of two points in the hulls of two classes: no margin exceeds it.

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
