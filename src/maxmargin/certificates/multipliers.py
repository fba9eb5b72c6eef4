"""Gordan's alternative: multipliers u ≥ 0, Σu = 1, Zᵀu = 0 prove that no plane separates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from ..arrays import Floats, Integers, PartitionedVector, blocks_of
from ..data.normalised_samples import Samples
from ..data.partitioned_samples import total
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
    whole, nearest = sum(v), np.zeros_like(u)
    nearest[np.flatnonzero(u)] = [float(Fraction(share, whole)) for share in v]
    return nearest


def _exact(Z: Samples, u: Floats) -> Exact | None:
    """Return integers about proportional to u > 0 with Zᵀu = 0 exactly, or None."""
    n_used = Z.reduce(_count, total, u)
    if n_used * Z.shape[1] > TUNING.max_exact_numbers:
        return None
    support, shares = _support(u)
    return exact_multipliers(Z.take(support), shares, Deadline(TUNING.max_exact_seconds))


def _support(u: Floats) -> tuple[Integers, Floats]:
    """Return the rows of positive multipliers, and those."""
    if isinstance(u, PartitionedVector):
        return u.nonzero()
    support = np.flatnonzero(u)
    return support, u[support]


def _count(Z: Samples, u: Floats) -> int:
    return int(np.count_nonzero(u))


def _stays_positive(Z: Samples, u: Floats) -> bool:
    """Return whether the exact solution nearest to u is positive, by a bound of its distance.

    Columns are centred and scaled, which does not change the solutions. The equations of the last
    of several weight vectors follow from the others; without a bias its column is 0.
    """
    kept = max(Z.n_vectors - 1, 1), Z.X.shape[1] + bool(Z.bias_step)
    width = kept[0] * kept[1]
    used = Z.reduce(_used, _merged_used, u)
    n = used.n_rows
    if n < width:
        return False
    centre, scale = used.centre_and_scale(bool(Z.bias_step))
    found = Z.reduce(_system, _added_system, u, common=(centre, scale, kept))
    values = eigvalsh(found.square)
    least = values[0] - (n + 16 * width) * ROUNDING * float(np.trace(found.square))
    if not least > 0.0:
        return False
    error = np.abs(found.residual) + (n + 8) * ROUNDING * found.magnitude
    return bool(2.0 * np.linalg.norm(error) / np.sqrt(least) < used.least)


class Used(NamedTuple):
    """The rows of Z with u > 0: how many, the least u, and the range of their features."""

    n_rows: int
    least: float
    low: Floats
    high: Floats

    def centre_and_scale(self, has_bias: bool) -> tuple[Floats, Floats]:
        """Return midranges of the features, and powers of two near their spread."""
        low, high = self.low, self.high
        centre = low + 0.5 * (high - low) if has_bias else np.zeros_like(low)
        spread = np.append(np.maximum(np.abs(high - centre), np.abs(low - centre)), 1.0)
        return centre, np.ldexp(1.0, np.frexp(np.where(spread > 0, spread, 1.0))[1])


def _used(Z: Samples, u: Floats) -> Used:
    support = np.flatnonzero(u)
    low, high = np.full(Z.X.shape[1], np.inf), np.full(Z.X.shape[1], -np.inf)
    samples = np.unique(support // Z.rows_per_sample)
    for block in blocks_of(samples.size, Z.X.shape[1]):
        x = Z.augmented(samples[block])[:, :-1]
        np.minimum(low, x.min(axis=0), out=low)
        np.maximum(high, x.max(axis=0), out=high)
    return Used(support.size, float(u[support].min(initial=np.inf)), low, high)


def _merged_used(found: list[Used]) -> Used:
    n_rows, least, low, high = zip(*found, strict=True)
    return Used(sum(n_rows), min(least), np.min(low, axis=0), np.max(high, axis=0))


class System(NamedTuple):
    """ZᵀZ of the rows used, Zᵀu and |Z|ᵀu, in centred and scaled columns."""

    square: Floats
    residual: Floats
    magnitude: Floats


def _system(Z: Samples, u: Floats, centre: Floats, scale: Floats, kept: tuple[int, int]) -> System:
    support, width = np.flatnonzero(u), kept[0] * kept[1]
    square = np.zeros((width, width))
    residual, magnitude = np.zeros(width), np.zeros(width)
    for block in blocks_of(support.size, Z.shape[1]):
        z = Z.take(support[block]).reshape(-1, Z.n_vectors, Z.X.shape[1] + 1)
        z[..., :-1] -= centre * z[..., -1:]
        rows = (z / scale)[:, : kept[0], : kept[1]].reshape(-1, width)
        share = u[support[block]]
        square += rows.T @ rows
        residual += share @ rows
        magnitude += share @ np.abs(rows)
    return System(square, residual, magnitude)


def _added_system(found: list[System]) -> System:
    return System(*(np.sum(each, axis=0) for each in zip(*found, strict=True)))


class Balance(NamedTuple):
    """The least u, Σu, Zᵀu and |Z|ᵀu."""

    least: float
    total: float
    residual: Floats
    scale: Floats


def gordan_residual(Z: Samples, u: Floats) -> float:
    """Return ‖Zᵀu‖∞ relative to Σ u_i |z_ij|, or ∞ if u is not a convex combination."""
    found = Z.reduce(_balance, _merged_balance, u)
    if found.least < 0 or not np.isclose(found.total, 1.0):
        return np.inf
    # One scale per feature, the same for the weight vectors of all classes.
    scale = found.scale.reshape(Z.n_vectors, -1).max(axis=0)
    worst = np.abs(found.residual).reshape(Z.n_vectors, -1).max(axis=0)
    return float((worst / np.where(scale > 0, scale, 1.0)).max())


def _balance(Z: Samples, u: Floats) -> Balance:
    residual, scale = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    support = np.flatnonzero(u)
    for block in blocks_of(support.size, Z.shape[1]):
        rows, share = Z.take(support[block]), u[support[block]]
        residual += share @ rows
        scale += share @ np.abs(rows)
    return Balance(float(u.min()), float(u.sum()), residual, scale)


def _merged_balance(found: list[Balance]) -> Balance:
    least, sums, residual, scale = zip(*found, strict=True)
    return Balance(min(least), sum(sums), np.sum(residual, axis=0), np.sum(scale, axis=0))


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
