"""Whether a plane separates two classes, with a proof in either case (Gordan's alternative).

Either some plane has y g(x) > 0 for every sample, or some u ≥ 0, Σu = 1, has
Σ u_i y_i (x_i, 1) = 0: a point common to the convex hulls of the two classes. Exactly one of the
two is true; what float64 cannot distinguish is reported as undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .. import validation
from ..arrays import Floats, Integers, MatrixLike
from ..certificates import SeparationCertificate, certify, margin_bound, nearest_proof
from ..data.normalised_samples import SignedSamples
from ..data.partitioned_samples import PartitionedSamples
from ..engines.registry import is_partitioned, received_partitions
from ..geometry import Hyperplane
from ..problems import SeparationProblem
from ..progress import Progress
from ..schedules import Constant
from ..solution import Solution, Status
from .middle_bias import middle_bias


@dataclass(frozen=True)
class Tuning:
    """When a perceptron is tried first, and the limit of the last attempt."""

    # Numbers in Z above which a perceptron is tried first; on large data it often suffices.
    min_perceptron_numbers: int = 1_000_000
    min_perceptron_passes: int = 20
    # Programs of many columns are slow, which allows for more passes.
    perceptron_passes_per_column: int = 2
    # Time for the nearest points of the hulls, if the linear program decides nothing.
    max_nearest_points_seconds: float = 3.0
    # The plane of maximum margin must reach the margin of another plane up to this.
    margin_relative_tolerance: float = 1e-9


TUNING = Tuning()


@dataclass(frozen=True)
class Separability:
    """The answer of `separability`, with its proof.

    Parameters
    ----------
    separable : bool or None
        Whether a plane separates the classes; None if undecided at this tolerance.
    hyperplane : Hyperplane or None
        A plane with y g(x) > 0 for every sample (positive for the second class). ‖w‖ = 1 unless
        rounding w would change that, or the plane of maximum margin was requested.
    margin : float
        The smallest distance of a sample from the plane; 0 if not separable, NaN if undecided.
    multipliers : ndarray of shape (n_samples,) or None
        Weights u ≥ 0 with Σu = 1 and Σ u_i y_i (x_i, 1) = 0, if not separable. Those of Dask
        collections are a vector on the workers: ``multipliers.nonzero()`` returns the numbers of
        the rows with u > 0, which are few, and their u; ``np.asarray(multipliers)`` all of them.
    common_point : ndarray of shape (n_features,) or None
        A point in the convex hulls of both classes, Σ_{y=+1} 2u_i x_i = Σ_{y=−1} 2u_i x_i, if not
        separable. None for planes through the origin.
    certificate : SeparationCertificate
        The independent check of the above.
    tol : float
        The smallest margin that counts, relative to the largest distance of a sample from the
        plane.
    margin_bound : float, default=inf
        An upper bound of the margin of all planes, if the maximum margin was requested: half the
        distance of two points in the convex hulls of the classes.

    See Also
    --------
    separability : Decide with a proof whether a plane separates two classes.

    Examples
    --------
    >>> import maxmargin as mm
    >>> report = mm.separability([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> print(report)
    separable: a plane has margin 1 over 4 samples
    >>> report.hyperplane.w
    array([1.])
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
                "common point of the hulls exceeds rounding errors; rescale the features, or drop "
                "dependent ones"
            )
        assert self.multipliers is not None
        used = self._n_used()
        if self.common_point is None:
            return (
                f"not separable by a plane through the origin: {used} of the {n} samples combine "
                f"to Σ u y x = 0 (residual {self.certificate.refutation:.1e})"
            )
        return (
            f"not separable: the convex hulls of the classes share a point, a combination of "
            f"{used} of the {n} samples (residual {self.certificate.refutation:.1e})"
        )

    def _n_used(self) -> int:
        """Return the number of positive multipliers."""
        u = self.multipliers
        assert u is not None
        places: Integers = np.asarray(u.nonzero()[0])
        return places.size


def separability(
    X: MatrixLike, y: ArrayLike, *, tol: float = 1e-12, maximum_margin: bool = False
) -> Separability:
    """Decide with a proof whether a plane separates two classes.

    Either some plane has y g(x) > 0 for every sample, or some u ≥ 0, Σu = 1, has
    Σ u_i y_i (x_i, 1) = 0 (Gordan's alternative).

    Parameters
    ----------
    X : array-like, CSR matrix, dask.array or dask.dataframe of shape (n_samples, n_features)
        Samples of two classes.
    y : array-like or Dask collection of shape (n_samples,)
        Labels of two classes; the second in sorted order is the positive one.
    tol : float, default=1e-12
        The data count as separable if some margin exceeds ``tol`` times the largest distance of a
        sample from the plane. With 0 every plane counts that separates in exact arithmetic.
    maximum_margin : bool, default=False
        Return the plane of largest margin, scaled so that min y g(x) = 1, instead of any
        separating one (of unit ‖w‖), and a bound that shows that no margin is larger.

    Returns
    -------
    Separability
        The verdict, with the plane or the multipliers that prove it.

    See Also
    --------
    SVC : With ``C=inf``, the plane of maximum margin in a feature space.

    Notes
    -----
    Equal rows with different labels are detected first. On large data a perceptron is tried; then
    the linear program max t, y(w·x + b) ≥ t, |w_j| ≤ 1 is solved with as few rows as possible
    (HiGHS). `certify` checks the answer: margins with bounds of their rounding errors, multipliers
    in exact arithmetic if features depend on each other. The verdict does not depend on the units
    or the origin of the features.

    The rows of Dask collections stay on the workers. Those that a plane does not separate come to
    this process, up to some 8 million numbers, until a plane separates all of them or those here
    prove that none does; the certificate is computed on the workers.

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
        raise ValueError(f"tol must be a number in [0, 1), got {tol!r}.")
    if is_partitioned(X):
        rows, labels, _ = received_partitions(X, y, None)
        signs = validation.check_two_partitioned_labels(labels)
        return decide(PartitionedSamples(rows, signs), tol, maximum_margin)
    return decide(SignedSamples(*validation.check_two_labels(X, y)), tol, maximum_margin)


def decide(
    Z: SignedSamples | PartitionedSamples, tol: float, maximum_margin: bool = False
) -> Separability:
    """Return the verdict on validated samples, with a bias or without; see `separability`."""
    if isinstance(Z, PartitionedSamples):
        from .generated_rows import decide_in_partitions

        return decide_in_partitions(Z, tol, maximum_margin)
    contradicted = contradiction(Z, tol)
    if contradicted is not None:
        return contradicted
    problem = SeparationProblem(Z)
    solution = _search(problem)
    certificate = certify(problem, solution)
    if certificate.separates:
        # With features of uneven scale the margin of the program's plane may be far from the
        # largest: then the plane of maximum margin decides.
        widest = maximum_margin or not _exceeds(tol, Z, solution, certificate)
        solution, certificate, bound = _widest(problem, solution, certificate, widest)
        if _exceeds(tol, Z, solution, certificate):
            if not maximum_margin:
                solution, certificate = _normalised(problem, solution, certificate)
            return _separable(solution, certificate, tol, bound)
    if certificate.refutes and not certificate.separates:
        return _refuted(Z, solution, certificate, tol)
    return Separability(None, None, np.nan, None, None, certificate, tol)


def contradiction(Z: SignedSamples, tol: float) -> Separability | None:
    """Return the verdict if two samples are equal but have different labels, else None."""
    from .separating.duplicates import contradicting_rows

    pair = contradicting_rows(Z.X, Z.labels, Z.index)
    if pair is None:
        return None
    u = np.zeros(Z.n_samples)
    u[list(pair)] = 0.5
    no_plane = np.zeros((1, Z.X.shape[1])), np.zeros(1)
    solution = Solution(*no_plane, status=Status.INSEPARABLE, multipliers=u)
    return _refuted(Z, solution, certify(SeparationProblem(Z), solution), tol)


def _exceeds(
    tol: float, Z: SignedSamples, solution: Solution, certificate: SeparationCertificate
) -> bool:
    """Return whether the margin is more than ``tol`` times the largest distance from the plane."""
    margins = Z.dot(Z.pack(solution.w, solution.b))
    return bool(certificate.margin > tol * float(np.abs(margins).max()))


def _search(problem: SeparationProblem) -> Solution:
    from .separating.linear_program import LinearProgram
    from .separating.perceptron import OnlinePerceptron

    Z = problem.Z
    a = np.zeros(Z.shape[1])
    if Z.shape[0] * Z.shape[1] > TUNING.min_perceptron_numbers:
        by_columns = TUNING.perceptron_passes_per_column * Z.shape[1]
        passes = max(TUNING.min_perceptron_passes, by_columns)
        found = OnlinePerceptron(Constant(1.0), passes).solve(problem, a, Progress())
        if found.status is Status.CONVERGED:
            return found
    solution = LinearProgram().solve(problem, a, Progress())
    return solution if solution.status is not Status.ITERATION_LIMIT else _nearest(problem)


def _nearest(problem: SeparationProblem) -> Solution:
    """Return the plane between the nearest points of the hulls, or the proof by their weights.

    It finds margins of 1e-9 and less, which are below the tolerance of the linear program.
    """
    from .dual.nearest_points import NearestPoints
    from .separating.coordinates import Coordinates
    from .separating.linear_program import refine_multipliers

    Z, scale = problem.Z, Coordinates.of(problem.Z).scale
    X = Z.X @ sparse.diags_array(1.0 / scale) if sparse.issparse(Z.X) else Z.X / scale
    scaled = SignedSamples(X, Z.labels, index=Z.index, bias_step=Z.bias_step)
    seconds = TUNING.max_nearest_points_seconds
    nearest_points = NearestPoints(max_iter=50 * Z.shape[1] + 100, seconds=seconds)
    found = nearest_points.solve(SeparationProblem(scaled), Progress())
    assert found.alpha is not None
    w = found.w / scale
    a = Z.pack(w, found.b)
    b = middle_bias(Z, a)[-1:] if Z.bias_step else found.b
    u = refine_multipliers(Z, found.alpha / found.alpha.sum())
    return replace(found, w=w, b=b, multipliers=nearest_proof(Z, u))


def _widest(
    problem: SeparationProblem,
    solution: Solution,
    certificate: SeparationCertificate,
    wanted: bool,
) -> tuple[Solution, SeparationCertificate, float]:
    """Return the plane of largest margin, if wanted and found, and an upper bound of it."""
    from .dual.nearest_points import NearestPoints

    if not wanted:
        return solution, certificate, np.inf
    widest = NearestPoints().solve(problem, Progress())
    checked = certify(problem, widest)
    least = (1.0 - TUNING.margin_relative_tolerance) * certificate.geometric_margin
    if checked.geometric_margin > least:
        solution, certificate = widest, checked
    return solution, certificate, margin_bound(problem.Z, widest.alpha)


def _normalised(
    problem: SeparationProblem, solution: Solution, certificate: SeparationCertificate
) -> tuple[Solution, SeparationCertificate]:
    """Return the plane with ‖w‖ = 1, unless the rounding of w makes it fail to separate."""
    plane, Z = Hyperplane(solution.w[0], float(solution.b[0])).normalized(), problem.Z
    unit = replace(solution, w=plane.w[np.newaxis].copy(), b=np.array([plane.b]))
    checked = certify(problem, unit)
    if not checked.separates and Z.bias_step:
        unit = replace(unit, b=middle_bias(Z, Z.pack(unit.w, unit.b))[-1:])
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
    point = None  # for planes through the origin, Σ u y x = 0 does not imply a common point
    if Z.bias_step:
        point = u[support] @ Z.augmented(support)[:, :-1] / u[support].sum()
    return Separability(False, None, 0.0, u, point, certificate, tol)
