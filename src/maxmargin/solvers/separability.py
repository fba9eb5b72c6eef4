"""Is there a separating plane at all? A proof either way (Gordan's alternative).

Either some plane has y g(x) > 0 for every sample, or some u ≥ 0, Σu = 1, has
Σ u_i y_i (x_i, 1) = 0: a point common to the convex hulls of the two classes. Never both, never
neither; what the arithmetic cannot tell apart is reported as undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from .. import validation
from ..arrays import Floats
from ..certificates import SeparationCertificate, certify, margin_bound, nearest_proof
from ..certificates.separation import best_bias
from ..data.normalised_samples import SignedSamples
from ..geometry import Hyperplane
from ..problems import SeparationProblem
from ..progress import Progress
from ..schedules import Constant
from ..solution import Solution, Status

# Samples × features above which a perceptron has a first look: often there is no need for more.
LARGE = 1_000_000
# What the nearest points of the hulls may take, where the linear program decides nothing.
NEAREST_SECONDS = 3.0


@dataclass(frozen=True)
class Separability:
    """The verdict on two classes, with its proof.

    Parameters
    ----------
    separable : bool or None
        None is "undecided at this tolerance".
    hyperplane : Hyperplane or None
        A plane with y g(x) > 0 for every sample (positive for the second class).
        ‖w‖ = 1 unless its rounding would spoil that, or the maximum margin was asked for.
    margin : float
        Its smallest distance to a sample; 0 when not separable, nan when undecided.
    multipliers : ndarray of shape (n_samples,) or None
        u ≥ 0 with Σu = 1 and Σ u_i y_i (x_i, 1) = 0.
    common_point : ndarray of shape (n_features,) or None
        Σ_{y=+1} 2u_i x_i = Σ_{y=−1} 2u_i x_i: it lies in the convex hulls of both classes. None
        where only planes through the origin were asked for.
    certificate : SeparationCertificate
        The independent check of the above.
    tol : float
        Smallest margin, relative to the largest distance of a sample from the plane, that counts.
    margin_bound : float
        What no plane's margin exceeds, where the maximum margin was asked for: half the distance
        of two points in the convex hulls of the classes.
    """

    separable: bool | None
    hyperplane: Hyperplane | None
    margin: float
    multipliers: Floats | None
    common_point: Floats | None
    certificate: SeparationCertificate
    tol: float
    margin_bound: float = np.inf

    def __str__(self) -> str:
        n = self.certificate.n_samples
        if self.separable:
            text = f"separable: a plane has margin {self.margin:.6g} over {n} samples"
            known = np.isfinite(self.margin_bound)
            return f"{text}, none has more than {self.margin_bound:.6g}" if known else text
        if self.separable is None:
            return (
                f"undecided at tolerance {self.tol:g}: over {n} samples neither a margin nor a "
                "common point of the hulls stands out of rounding; rescale the features, or drop "
                "dependent ones"
            )
        assert self.multipliers is not None
        used = int(np.count_nonzero(self.multipliers))
        if self.common_point is None:
            return (
                f"not separable by a plane through the origin: {used} of the {n} samples combine "
                f"to Σ u y x = 0 (residual {self.certificate.refutation:.1e})"
            )
        return (
            f"not separable: the convex hulls of the classes share a point, a combination of "
            f"{used} of the {n} samples (residual {self.certificate.refutation:.1e})"
        )


def separability(
    X: Any, y: Any, *, tol: float = 1e-12, maximum_margin: bool = False
) -> Separability:
    """Decide with a proof whether a plane separates two classes.

    Equal rows with different labels are looked for first. A perceptron has a first look at large
    data; then the linear program max t, y(w·x + b) ≥ t, |w_j| ≤ 1 over as few rows as it takes
    (HiGHS). What comes out is checked by `certify`: margins with bounds of their rounding,
    multipliers in exact arithmetic where features depend on each other. The verdict does not
    depend on the units or the origin of the features.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes; the second in order is the positive one.
    tol : float, default=1e-12
        A margin of at most ``tol`` times the largest distance of a sample from the plane is not
        told from 0. With 0 every plane counts that separates in exact arithmetic.
    maximum_margin : bool, default=False
        Return the plane of largest margin, scaled so that min y g(x) = 1, instead of any
        separating one (of unit ‖w‖), and the bound that shows that no margin is larger.

    Returns
    -------
    Separability

    References
    ----------
    Gordan (1873); Mangasarian (1969), *Nonlinear Programming*, section 2.4.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_xor(return_X_y=True)
    >>> report = mm.separability(X, y)
    >>> print(report.separable, report.common_point)
    False [0. 0.]
    """
    if not isinstance(tol, Real) or not 0.0 <= tol < 1.0:
        raise ValueError(f"tol={tol!r} must be a number of at least 0 and below 1.")
    return decide(SignedSamples(*validation.check_two_labels(X, y)), tol, maximum_margin)


def decide(Z: SignedSamples, tol: float, maximum_margin: bool = False) -> Separability:
    """Return the verdict on checked samples, with a bias or without; see `separability`."""
    contradicted = contradiction(Z, tol)
    if contradicted is not None:
        return contradicted
    problem = SeparationProblem(Z)
    solution = _search(problem)
    certificate = certify(problem, solution)
    if certificate.separates:
        # The program's plane may be poor in features of uneven scale: then the widest decides.
        widest = maximum_margin or not _stands_out(Z, solution, certificate, tol)
        solution, certificate, bound = _widest(problem, solution, certificate, widest)
        if _stands_out(Z, solution, certificate, tol):
            if not maximum_margin:
                solution, certificate = _normalised(problem, solution, certificate)
            return _separable(solution, certificate, tol, bound)
    if certificate.refutes and not certificate.separates:
        return _refuted(Z, solution, certificate, tol)
    return Separability(None, None, np.nan, None, None, certificate, tol)


def contradiction(Z: SignedSamples, tol: float) -> Separability | None:
    """Return the verdict on samples of which two are equal with different labels, else None."""
    from .separating.duplicates import contradicting_rows

    pair = contradicting_rows(Z.X, Z.labels, Z.index)
    if pair is None:
        return None
    u = np.zeros(Z.n_samples)
    u[list(pair)] = 0.5
    nowhere = np.zeros((1, Z.X.shape[1])), np.zeros(1)
    solution = Solution(*nowhere, status=Status.INSEPARABLE, multipliers=u)
    return _refuted(Z, solution, certify(SeparationProblem(Z), solution), tol)


def _stands_out(
    Z: SignedSamples, solution: Solution, certificate: SeparationCertificate, tol: float
) -> bool:
    """Whether the margin is more than ``tol`` times the largest distance from the plane."""
    margins = Z.dot(Z.pack(solution.w, solution.b))
    return bool(certificate.margin > tol * float(np.abs(margins).max()))


def _search(problem: SeparationProblem) -> Solution:
    from .separating.linear_program import LinearProgram
    from .separating.perceptron import OnlinePerceptron

    Z = problem.Z
    a = np.zeros(Z.shape[1])
    if Z.shape[0] * Z.shape[1] > LARGE:
        passes = max(20, 2 * Z.shape[1])  # programs of many columns are slow: look longer
        looked = OnlinePerceptron(Constant(1.0), passes).solve(problem, a, Progress())
        if looked.status is Status.CONVERGED:
            return looked
    solution = LinearProgram().solve(problem, a, Progress())
    return solution if solution.status is not Status.ITERATION_LIMIT else _nearest(problem)


def _nearest(problem: SeparationProblem) -> Solution:
    """Return the plane between the nearest points of the hulls, or what their weights prove.

    A margin of 1e-9 and less, which the linear program does not see, is well within their reach.
    """
    from .dual.nearest_points import NearestPoints
    from .separating.coordinates import Coordinates
    from .separating.linear_program import refine_multipliers

    Z, scale = problem.Z, Coordinates.of(problem.Z).scale
    X = Z.X @ sparse.diags_array(1.0 / scale) if sparse.issparse(Z.X) else Z.X / scale
    scaled = SignedSamples(X, Z.labels, index=Z.index, bias_step=Z.bias_step)
    limits = NearestPoints(max_iter=50 * Z.shape[1] + 100, seconds=NEAREST_SECONDS)
    found = limits.solve(SeparationProblem(scaled), Progress())
    assert found.alpha is not None
    w = found.w / scale
    a = Z.pack(w, found.b)
    b = best_bias(Z, a)[-1:] if Z.bias_step else found.b
    u = refine_multipliers(Z, found.alpha / found.alpha.sum())
    return replace(found, w=w, b=b, multipliers=nearest_proof(Z, u))


def _widest(
    problem: SeparationProblem,
    solution: Solution,
    certificate: SeparationCertificate,
    wanted: bool,
) -> tuple[Solution, SeparationCertificate, float]:
    """Return the plane of largest margin, where it is wanted and found, and its upper bound."""
    from .dual.nearest_points import NearestPoints

    if not wanted:
        return solution, certificate, np.inf
    widest = NearestPoints().solve(problem, Progress())
    checked = certify(problem, widest)
    if checked.geometric_margin > (1.0 - 1e-9) * certificate.geometric_margin:
        solution, certificate = widest, checked
    return solution, certificate, margin_bound(problem.Z, widest.alpha)


def _normalised(
    problem: SeparationProblem, solution: Solution, certificate: SeparationCertificate
) -> tuple[Solution, SeparationCertificate]:
    """Return the plane with ‖w‖ = 1, unless what this rounds makes it separate no more."""
    plane, Z = Hyperplane(solution.w[0], float(solution.b[0])).normalized(), problem.Z
    unit = replace(solution, w=plane.w[np.newaxis].copy(), b=np.array([plane.b]))
    checked = certify(problem, unit)
    if not checked.separates and Z.bias_step:
        unit = replace(unit, b=best_bias(Z, Z.pack(unit.w, unit.b))[-1:])
        checked = certify(problem, unit)
    return (unit, checked) if checked.separates else (solution, certificate)


def _separable(
    solution: Solution, certificate: SeparationCertificate, tol: float, bound: float
) -> Separability:
    plane = Hyperplane(solution.w[0], float(solution.b[0]))
    margin = certificate.geometric_margin
    return Separability(True, plane, margin, None, None, certificate, tol, bound)


def _refuted(
    Z: SignedSamples, solution: Solution, certificate: SeparationCertificate, tol: float
) -> Separability:
    u = solution.multipliers
    assert u is not None
    support = np.flatnonzero(u * (Z.labels > 0))
    point = None  # of planes through the origin: Σ u y x = 0, which need not share a point
    if Z.bias_step:
        point = u[support] @ Z.augmented(support)[:, :-1] / u[support].sum()
    return Separability(False, None, 0.0, u, point, certificate, tol)
