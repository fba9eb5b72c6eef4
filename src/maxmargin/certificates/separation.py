"""Whether a plane separates, or whether none can; whether it minimises squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats, blocks_of
from ..data.normalised_samples import Samples
from ..problems import KernelSeparationProblem, LeastSquaresProblem, SeparationProblem
from ..solution import Solution
from .base import certify
from .compensated import TINY, compensated_dot, exact_dot
from .multipliers import ROUNDING, gordan_residual, refutes
from .scores import kernel_scores

# Margins of a block of rows that are computed in rational numbers at most.
LARGEST_EXACT = 1000


@dataclass(frozen=True)
class SeparationCertificate:
    """Whether a plane separates, or whether none can.

    Parameters
    ----------
    n_samples, n_errors : int
        Samples, and those with z·a ≤ 0.
    margin : float
        The smallest functional margin min z·a.
    geometric_margin : float
        The smallest distance min z·a/‖w‖, negative when a sample is on the wrong side.
        Between two classes of a linear machine it is the distance to their common plane.
    rounding : float
        Bound on what float64 rounding may have added to ``margin``.
    radius : float
        R = max‖x‖.
    augmented_margin : float
        min z·a/‖a‖ with the bias as a coordinate: what the perceptron's mistake bound is made of.
    augmented_radius : float
        max‖z‖.
    refutation : float or None
        ‖Zᵀu‖∞ of the multipliers u offered as a proof of inseparability, relative to what its
        terms sum to without signs; None when none were offered.
    refutes : bool
        The multipliers prove that no plane separates: Zᵀu = 0 up to rounding, and exactly for some
        u ≥ 0 with the same support where that could be checked in rational arithmetic.
    """

    n_samples: int
    n_errors: int
    margin: float
    geometric_margin: float
    rounding: float
    radius: float
    augmented_margin: float
    augmented_radius: float
    refutation: float | None = None
    refutes: bool = False

    @property
    def separates(self) -> bool:
        """Every sample lies strictly on its side, by more than rounding."""
        return self.margin > self.rounding

    @property
    def violation(self) -> float:
        """0 with a proof either way, else how far the worst sample is on the wrong side."""
        if self.separates or self.refutes:
            return 0.0
        return max(-self.geometric_margin, float(np.finfo(float).tiny))

    @property
    def mistake_bound(self) -> float:
        """(max‖z‖/γ)² ≥ updates of the fixed-increment perceptron from zero; ∞ if not separating.

        γ = min z·a/‖a‖ of this plane, any separating plane gives a bound (Novikoff, 1962). With
        the R² bias convention it is at most (2R/γ)² in the terms of the plane's own margin.
        """
        if not self.separates:
            return np.inf
        return float((self.augmented_radius / self.augmented_margin) ** 2)

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether there is a proof either way; ``tol`` plays no part, only rounding does."""
        return self.separates or self.refutes

    def __str__(self) -> str:
        if self.separates:
            return (
                f"separates all {self.n_samples} samples: smallest distance to the plane "
                f"{self.geometric_margin:.6g}"
            )
        wrong = f"{self.n_errors} of {self.n_samples} samples not strictly on their side"
        if self.refutes:
            return (
                f"no plane separates (Gordan multipliers, residual {self.refutation:.1e}); {wrong}"
            )
        return f"not separated, not refuted: {wrong}"


@dataclass(frozen=True)
class LeastSquaresCertificate(SeparationCertificate):
    """Whether a minimises ‖Za − m‖² (+ ε‖a‖²), and whether it separates.

    ``stationarity`` is the largest entry of the gradient Zᵀ V(Za − m) + εa, each relative to what
    it could be at most; ``residual`` is the criterion's value.
    """

    stationarity: float = np.nan
    residual: float = np.nan

    @property
    def violation(self) -> float:
        """The relative gradient."""
        return self.stationarity

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the gradient vanishes to ``tol``."""
        return bool(self.stationarity <= tol)

    def __str__(self) -> str:
        return (
            f"least squares {self.residual:.6g}, relative gradient {self.stationarity:.1e}; "
            + super().__str__()
        )


@certify.register
def _(problem: SeparationProblem, solution: Solution) -> SeparationCertificate:
    return SeparationCertificate(**_separation_measures(problem, solution))


@certify.register
def _(problem: LeastSquaresProblem, solution: Solution) -> LeastSquaresCertificate:
    Z, weights = problem.Z, problem.row_weights
    a = Z.pack(solution.w, solution.b)
    error = Z.dot(a) - problem.margins
    gradient = problem.restrict(_gradient(Z, weights * error) + problem.ridge * a)
    sizes = np.sqrt(weights @ error**2) + np.sqrt(weights @ problem.margins**2)
    # What each entry of the gradient could be at most: features of any scale count alike.
    columns = np.sqrt(Z.rows_per_sample * Z.squared_columns(problem.weights))
    scale = np.tile(columns, Z.n_vectors) * sizes + problem.ridge * np.abs(a)
    gradient = np.abs(gradient) / np.where(scale > 0, scale, 1.0)
    return LeastSquaresCertificate(
        **_separation_measures(problem, solution),
        stationarity=float(gradient.max()),
        residual=float(weights @ error**2 + problem.ridge * (a @ a)),
    )


def _gradient(Z: Samples, u: Floats) -> Floats:
    """Zᵀu with the plain bias, whichever convention the algorithm used."""
    gradient = Z.adjoint(u).reshape(Z.n_vectors, -1)
    gradient[:, -1] /= Z.bias_step or 1.0
    return gradient.ravel()


@certify.register
def _(problem: KernelSeparationProblem, solution: Solution) -> SeparationCertificate:
    assert solution.alpha is not None
    b = float(solution.b[0])
    scores, errors = kernel_scores(problem, solution.alpha * problem.y, b=b)
    signed = solution.alpha * problem.y
    norm = np.sqrt(max(float(signed @ scores) - b * float(signed.sum()), 0.0))
    margins = problem.y * scores
    largest = float(problem.kernel.diagonal(problem.X)[problem.index].max())
    radius = np.sqrt(max(largest, 0.0))  # an indefinite kernel may have no radius
    step = np.sqrt(max(problem.bias_step, 0.0))
    return SeparationCertificate(
        n_samples=problem.index.size,
        n_errors=int((margins <= 0).sum()),
        margin=float(margins.min()),
        geometric_margin=_ratio(margins.min(), norm),
        # What is left of the smallest margin where every sample has as little as it may.
        rounding=float(margins.min() - (margins - errors).min()),
        radius=radius,
        augmented_margin=_ratio(margins.min(), np.hypot(norm, b / step if step else 0.0)),
        augmented_radius=np.hypot(radius, step),
    )


def _separation_measures(problem: SeparationProblem, solution: Solution) -> dict[str, Any]:
    Z = problem.Z
    a = Z.pack(solution.w, solution.b)
    margins, errors = rounded_margins(Z, a)
    per_sample = Z.worst_of_each(margins)
    smallest = float(margins.min())
    norms = Z.plane_norms(solution.w)
    u = solution.multipliers
    return {
        "n_samples": Z.n_samples,
        "n_errors": int((per_sample <= 0).sum()),
        "margin": smallest,
        "geometric_margin": float((margins / np.where(norms > 0, norms, np.inf)).min()),
        "rounding": smallest - float((margins - errors).min()),
        "radius": float(np.sqrt(Z.squared_rows.max())),
        "augmented_margin": _ratio(smallest, Z.norm(a)),
        "augmented_radius": float(np.sqrt(Z.squared_norms().max())),
        "refutation": None if u is None else gordan_residual(Z, u),
        "refutes": u is not None and refutes(Z, u),
    }


def rounded_margins(Z: Samples, a: Floats) -> tuple[Floats, Floats]:
    """Return Za and bounds of its rounding errors (Higham, 2002, section 3.1: γ_n |z|·|a|).

    Margins that rounding could have moved across 0 are summed again in twice the precision, and
    in rational numbers where that leaves a doubt. Those on the wrong side by more than rounding
    need no closer look, nor do others once one of them is.
    """
    margins = Z.dot(a)
    terms = Z.X.shape[1] + 3
    crude = terms * (ROUNDING * float(np.sqrt(Z.squared_norms().max())) * Z.norm(a) + TINY)
    if not abs(float(margins.min())) <= crude:
        return margins, np.full(margins.shape, crude)
    # Features of uneven scale make that bound far too large.
    errors = terms * (ROUNDING * Z.magnitude(a) + TINY)
    if (margins < -errors).any():
        return margins, errors
    doubtful = np.flatnonzero(margins <= errors)
    for block in blocks_of(doubtful.size, Z.shape[1]):
        some = doubtful[block]
        rows = Z.take(some)
        margins[some], errors[some] = compensated_dot(rows, a)
        left = np.flatnonzero(np.abs(margins[some]) <= errors[some])
        for k in left[:LARGEST_EXACT]:
            value = exact_dot(rows[k], a)
            margins[some[k]] = nearest = float(value)
            errors[some[k]] = ROUNDING * abs(nearest) + (TINY if value and not nearest else 0.0)
        if (margins[some] < -errors[some]).any() or (margins[some] == 0.0).any():
            break
    return margins, errors


def best_bias(Z: Samples, a: Floats) -> Floats:
    """Return the plane with its bias in the middle between the classes, as near as float64 has it.

    The two samples that matter are found in twice the precision, their scores exactly.
    """
    a = a.copy()
    a[-1] = 0.0
    margins, errors = Z.dot(a), (a.size + 2) * ROUNDING * Z.magnitude(a)
    ends = []
    for sign in (1.0, -1.0):
        side = np.flatnonzero(Z.labels == sign)
        lowest = margins[side] + errors[side]
        near = side[margins[side] - errors[side] <= lowest.min()]
        values = [compensated_dot(Z.take(near[k]), a)[0] for k in blocks_of(near.size, a.size)]
        end = near[[np.concatenate(values).argmin()]]
        ends.append(exact_dot(Z.take(end)[0], a))
    a[-1] = float((ends[1] - ends[0]) / 2)
    return a


def _ratio(value: float, norm: float) -> float:
    return float(value / norm) if norm > 0 else 0.0
