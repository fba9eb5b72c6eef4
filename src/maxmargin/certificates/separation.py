"""Certificates of separating planes, of their absence, and of least-squares planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Floats, blocks_of
from ..data.normalised_samples import Samples
from ..problems import KernelSeparationProblem, LeastSquaresProblem, SeparationProblem
from ..solution import Solution
from .base import certify
from .compensated import TINY, compensated_dot, exact_dot
from .multipliers import ROUNDING, gordan_residual, refutes
from .scores import kernel_scores

# Margins per block of rows that are computed in rational numbers, at most.
MAX_EXACT_MARGINS = 1000


@dataclass(frozen=True)
class SeparationCertificate:
    """Proof that a plane separates the classes, or that no plane does.

    Parameters
    ----------
    n_samples : int
        The number of samples.
    n_errors : int
        The number of samples with z·a ≤ 0.
    margin : float
        The smallest functional margin min z·a.
    geometric_margin : float
        The smallest distance min z·a/‖w‖, negative if a sample is on the wrong side. For two
        classes of a linear machine it is the distance to the plane between them.
    rounding : float
        A bound of the rounding error of ``margin``.
    radius : float
        The largest norm R = max‖x‖.
    augmented_margin : float
        The smallest distance min z·a/‖a‖ with the bias as a coordinate, which is in the mistake
        bound of the perceptron.
    augmented_radius : float
        The largest norm max‖z‖.
    refutation : float or None, default=None
        The residual ‖Zᵀu‖∞ of the multipliers u given as a proof of inseparability, relative to
        Σ u_i |z_ij|; None without multipliers.
    refutes : bool, default=False
        Whether the multipliers prove that no plane separates: Zᵀu = 0 up to rounding, and exactly
        for some u ≥ 0 with the same support if that was checked in rational arithmetic.

    Attributes
    ----------
    separates : bool
        Whether every margin exceeds its rounding error.
    violation : float
        The value 0 with a proof of either kind, else the distance of the worst sample from its
        side.
    mistake_bound : float
        The largest number of updates of the fixed-increment perceptron from zero; ∞ if the plane
        does not separate.

    See Also
    --------
    separability : Decide with a proof whether a plane separates two classes.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_and(return_X_y=True)
    >>> print(mm.Perceptron().fit(X, y).certificate_.separates)
    True
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
        """Whether every sample is on its side by more than the rounding error."""
        return self.margin > self.rounding

    @property
    def violation(self) -> float:
        """Return 0 with a proof of either kind, else the distance of the worst sample."""
        if self.separates or self.refutes:
            return 0.0
        return max(-self.geometric_margin, float(np.finfo(float).tiny))

    @property
    def mistake_bound(self) -> float:
        """The bound (max‖z‖/γ)² of the updates of the fixed-increment perceptron from zero.

        γ = min z·a/‖a‖ of this plane: every separating plane gives a bound (Novikoff, 1962), ∞ if
        it does not separate. With the R² bias convention it is at most (2R/γ)², where γ is the
        geometric margin of the plane.
        """
        if not self.separates:
            return np.inf
        return float((self.augmented_radius / self.augmented_margin) ** 2)

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether there is a proof of either kind; it does not depend on ``tol``."""
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
    """Proof that a minimises Σ v (z·a − m)² + ε‖a‖²; and whether it separates.

    Fields that are not listed are those of `SeparationCertificate`.

    Attributes
    ----------
    stationarity : float
        The largest entry of the gradient ZᵀV(Za − m) + εa, each relative to an upper bound of it.
    residual : float
        The value of the criterion.
    """

    stationarity: float = np.nan
    residual: float = np.nan

    @property
    def violation(self) -> float:
        """The relative gradient."""
        return self.stationarity

    def holds(self, tol: float = 1e-6) -> bool:
        """Return whether the relative gradient is at most ``tol``."""
        return bool(self.stationarity <= tol)

    def __str__(self) -> str:
        return (
            f"least squares {self.residual:.6g}, relative gradient {self.stationarity:.1e}; "
            + super().__str__()
        )


@certify.register
def _(problem: SeparationProblem, solution: Solution) -> SeparationCertificate:
    return _separation(problem, solution)


@certify.register
def _(problem: LeastSquaresProblem, solution: Solution) -> LeastSquaresCertificate:
    Z = problem.Z
    a = Z.pack(solution.w, solution.b)
    sums = problem.reduce(_square_sums, _added_sums, common=(a,))
    gradient = problem.restrict(sums.gradient + problem.ridge * a)
    sizes = np.sqrt(sums.squares) + np.sqrt(sums.targets)
    # An upper bound of each entry of the gradient makes it independent of the scale of features.
    columns = np.sqrt(Z.rows_per_sample * sums.columns)
    scale = np.tile(columns, Z.n_vectors) * sizes + problem.ridge * np.abs(a)
    gradient = np.abs(gradient) / np.where(scale > 0, scale, 1.0)
    return LeastSquaresCertificate(
        **vars(_separation(problem, solution)),
        stationarity=float(gradient.max()),
        residual=float(sums.squares + problem.ridge * (a @ a)),
    )


class SquareSums(NamedTuple):
    """Σ v (z·a − m)², Σ v m², ZᵀV(Za − m) and Σ v x_j²."""

    squares: float
    targets: float
    gradient: Floats
    columns: Floats


def _square_sums(problem: LeastSquaresProblem, a: Floats) -> SquareSums:
    Z, weights = problem.Z, problem.row_weights
    error = Z.dot(a) - problem.margins
    return SquareSums(
        float(weights @ error**2), float(weights @ problem.margins**2),
        _gradient(Z, weights * error), Z.squared_columns(problem.weights),
    )  # fmt: skip


def _added_sums(found: list[SquareSums]) -> SquareSums:
    return SquareSums(*(np.sum(each, axis=0) for each in zip(*found, strict=True)))


def _gradient(Z: Samples, u: Floats) -> Floats:
    """Return Zᵀu with the plain bias, also if the algorithm used another convention."""
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
        # The smallest margin minus the smallest lower bound of a margin.
        rounding=float(margins.min() - (margins - errors).min()),
        radius=radius,
        augmented_margin=_ratio(margins.min(), np.hypot(norm, b / step if step else 0.0)),
        augmented_radius=np.hypot(radius, step),
    )


class Margins(NamedTuple):
    """Samples with z·a ≤ 0, and the least z·a, lower bound of it, and z·a/‖w‖."""

    n_errors: int
    smallest: float
    least: float
    nearest: float


def _separation(problem: SeparationProblem, solution: Solution) -> SeparationCertificate:
    Z = problem.Z
    a, longest = Z.pack(solution.w, solution.b), Z.longest
    found = Z.reduce(_margins, _merged_margins, common=(a, solution.w, longest))
    u = solution.multipliers
    return SeparationCertificate(
        n_samples=Z.n_samples,
        n_errors=found.n_errors,
        margin=found.smallest,
        geometric_margin=found.nearest,
        rounding=found.smallest - found.least,
        radius=float(np.sqrt(Z.largest_square)),
        augmented_margin=_ratio(found.smallest, Z.norm(a)),
        augmented_radius=longest,
        refutation=None if u is None else gordan_residual(Z, u),
        refutes=u is not None and refutes(Z, u),
    )


def _margins(Z: Samples, a: Floats, w: Floats, longest: float) -> Margins:
    margins, errors = rounded_margins(Z, a, longest)
    norms = Z.plane_norms(w)
    return Margins(
        int((Z.worst_of_each(margins) <= 0).sum()),
        float(margins.min()),
        float((margins - errors).min()),
        float((margins / np.where(norms > 0, norms, np.inf)).min()),
    )


def _merged_margins(found: list[Margins]) -> Margins:
    n_errors, smallest, least, nearest = zip(*found, strict=True)
    return Margins(sum(n_errors), min(smallest), min(least), min(nearest))


def rounded_margins(Z: Samples, a: Floats, longest: float | None = None) -> tuple[Floats, Floats]:
    """Return Za and bounds of its rounding errors (Higham, 2002, section 3.1: γ_n |z|·|a|).

    Margins whose sign is uncertain are summed again in twice the precision, and in rational numbers
    if that does not decide it, unless some sample is on the wrong side by more than its error.
    ``longest`` is the largest ‖z‖: that of all partitions where Z is one of them.
    """
    margins = Z.dot(a)
    terms = Z.X.shape[1] + 3
    crude = terms * (ROUNDING * (longest or Z.longest) * Z.norm(a) + TINY)
    if not abs(float(margins.min())) <= crude:
        return margins, np.full(margins.shape, crude)
    # With features of uneven scale that bound is far too large.
    errors = terms * (ROUNDING * Z.magnitude(a) + TINY)
    if (margins < -errors).any():
        return margins, errors
    doubtful = np.flatnonzero(margins <= errors)
    for block in blocks_of(doubtful.size, Z.shape[1]):
        some = doubtful[block]
        rows = Z.take(some)
        margins[some], errors[some] = compensated_dot(rows, a)
        left = np.flatnonzero(np.abs(margins[some]) <= errors[some])
        for k in left[:MAX_EXACT_MARGINS]:
            value = exact_dot(rows[k], a)
            margins[some[k]] = nearest = float(value)
            errors[some[k]] = ROUNDING * abs(nearest) + (TINY if value and not nearest else 0.0)
        if (margins[some] < -errors[some]).any() or (margins[some] == 0.0).any():
            break
    return margins, errors


def _ratio(value: float, norm: float) -> float:
    return float(value / norm) if norm > 0 else 0.0
