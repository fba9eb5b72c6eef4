"""Is there a separating plane at all? A proof either way (Gordan's alternative).

Either some plane has y g(x) > 0 for every sample, or some u ≥ 0, Σu = 1, has
Σ u_i y_i (x_i, 1) = 0: a point common to the convex hulls of the two classes. Never both, never
neither; what the arithmetic cannot tell apart is reported as undecided.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from . import validation
from .certificate import SeparationCertificate, certify, margin_bound
from .geometry import Hyperplane
from .problem import SeparationProblem
from .samples import Floats, SignedSamples
from .schedules import Constant
from .solution import Progress, Solution, Status

# Samples × features above which a perceptron has a first look: often there is no need for more.
LARGE = 1_000_000


@dataclass(frozen=True)
class Separability:
    """The verdict on two classes, with its proof.

    Parameters
    ----------
    separable : bool or None
        None is "undecided at this tolerance".
    hyperplane : Hyperplane or None
        A plane with y g(x) > 0 for every sample (positive for the second class).
    margin : float
        Its smallest distance to a sample; 0 when not separable, nan when undecided.
    multipliers : ndarray of shape (n_samples,) or None
        u ≥ 0 with Σu = 1 and Σ u_i y_i (x_i, 1) = 0.
    common_point : ndarray of shape (n_features,) or None
        Σ_{y=+1} 2u_i x_i = Σ_{y=−1} 2u_i x_i: it lies in the convex hulls of both classes.
    certificate : SeparationCertificate
        The independent check of the above.
    tol : float
        Smallest margin, in units of max‖x‖, that counts as one.
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
        return (
            f"not separable: the convex hulls of the classes share a point, a combination of "
            f"{used} of the {n} samples (residual {self.certificate.refutation:.1e})"
        )


def separability(
    X: Any, y: Any, *, tol: float = 1e-12, maximum_margin: bool = False
) -> Separability:
    """Decide with a proof whether a plane separates two classes.

    A perceptron has a first look at large data; then the linear program max t, y(w·x + b) ≥ t,
    |w_j| ≤ 1 over as few rows as it takes (HiGHS). What comes out is checked by `certify`.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes; the second in order is the positive one.
    tol : float, default=1e-12
        Margins of at most tol·max‖x‖ are not told from 0.
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
    Z = SignedSamples(*validation.check_two_labels(X, y))
    problem = SeparationProblem(Z)
    solution = _search(problem)
    certificate = certify(problem, solution)
    limit = tol * certificate.radius
    if certificate.separates:
        # The program's plane may be poor in features of uneven scale: then the widest decides.
        widest = maximum_margin or certificate.geometric_margin <= limit
        report = _separable(problem, solution, certificate, tol, widest)
        if report.margin > limit:
            return report
    if certificate.refutes and not certificate.separates:
        return _refuted(Z, solution, certificate, tol)
    return Separability(None, None, np.nan, None, None, certificate, tol)


def _search(problem: SeparationProblem) -> Solution:
    from .separation.linear_program import LinearProgram
    from .separation.perceptron import OnlinePerceptron

    Z = problem.Z
    a = np.zeros(Z.shape[1])
    if Z.shape[0] * Z.shape[1] > LARGE:
        passes = max(20, 2 * Z.shape[1])  # programs of many columns are slow: look longer
        looked = OnlinePerceptron(Constant(1.0), passes).solve(problem, a, Progress())
        if looked.status is Status.CONVERGED:
            return looked
    return LinearProgram().solve(problem, a, Progress())


def _separable(
    problem: SeparationProblem,
    solution: Solution,
    certificate: SeparationCertificate,
    tol: float,
    maximum_margin: bool,
) -> Separability:
    from .margin.nearest_points import NearestPoints

    bound = np.inf
    if maximum_margin:
        widest = NearestPoints().solve(problem, Progress())
        checked = certify(problem, widest)
        if checked.geometric_margin > (1.0 - 1e-9) * certificate.geometric_margin:
            solution, certificate = widest, checked
        bound = margin_bound(problem.Z, widest.alpha)
    plane = Hyperplane(solution.w[0], float(solution.b[0]))
    margin = certificate.geometric_margin
    plane = plane if maximum_margin else plane.normalized()
    return Separability(True, plane, margin, None, None, certificate, tol, bound)


def _refuted(
    Z: SignedSamples, solution: Solution, certificate: SeparationCertificate, tol: float
) -> Separability:
    u = solution.multipliers
    assert u is not None
    support = np.flatnonzero(u * (Z.labels > 0))
    point = u[support] @ Z.augmented(support)[:, :-1] / u[support].sum()
    return Separability(False, None, 0.0, u, point, certificate, tol)
