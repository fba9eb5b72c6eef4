"""The loop of the active-set method."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ....arrays import Floats
from ....engines.base import HostGram
from ....problems import DualProblem
from ....progress import Limits, Progress
from ....solution import Solution, Status
from ..feasibility import Constraints
from ..optimality import dual_gradient
from .chunk import Chunk, convex
from .point import Point
from .tuning import EPSILON, Tuning


@dataclass(frozen=True)
class ActiveSet:
    """min ½αᵀ(Q + D)α + pᵀα, l ≤ α ≤ u, Aα = a, by Newton steps on the free variables.

    Beyond some hundred samples F is solved together with the worst violators only, whose Gram
    block is fetched once; the others are checked again when those are optimal. A start is
    clipped to the box and made to satisfy Aα = a; what is then strictly within its bounds is free,
    so that a nearly optimal α is polished in a few steps.

    Ends with ``CONVERGED`` when no KKT condition is violated by more than ``tol``, or by more than
    rounding makes of Σ α_j K(x_i, x_j); ``INSEPARABLE`` when α of a classifier can grow without end
    along some d ≥ 0, whose multiple of sum 1 is returned as multipliers (Σ d_i y_i φ(x_i) = 0,
    yᵀd = 0: Gordan's alternative in feature space, up to the rounding of kernel values, by which a
    margin of 1e-7 max‖φ(x)‖ counts as 0); ``DIVERGED`` when it can because the kernel is not
    positive semidefinite; ``PATIENCE`` when rounding allows no further descent. The multipliers μ
    of the groups, of which b is the mean, are the mean of −s_i(p_i + D_i α_i) − w·φ(x_i) over the
    free α, or the midpoint of the interval that the KKT conditions leave where none is free.

    Parameters
    ----------
    gram : HostGram
        K of the rows ``problem.index``, in float64.
    tol : float, default=1e-10
        Largest violation of a KKT condition, in units of the targets, 1 of a classifier.
    limits : Limits, optional
        Steps (changes of the active set) and seconds.
    work : float, default=∞
        Multiplications after which it ends with ``PATIENCE``: rounding may make it cycle through
        many variables, which no count of steps without descent finds.
    tuning : Tuning, optional

    Examples
    --------
    >>> from maxmargin.datasets import load_six_points
    >>> from maxmargin.engines.registry import engine_for
    >>> from maxmargin.kernels import Linear
    >>> X, y = load_six_points(return_X_y=True)
    >>> problem = DualProblem.hard(Linear(), X, y.astype(float))
    >>> solution = ActiveSet(engine_for(X).gram(Linear())).solve(problem, None, Progress())
    >>> print((225 * solution.alpha).round(10))
    [ 8. 0. 9. 0. 17. 0.]
    """

    gram: HostGram
    tol: float = 1e-10
    limits: Limits = field(default_factory=Limits)
    work: float = np.inf
    tuning: Tuning = field(default_factory=Tuning)

    def solve(self, problem: DualProblem, alpha: Floats | None, progress: Progress) -> Solution:
        """Return α and b, starting from ``alpha`` or from nothing."""
        return self._solve(Point(problem, self.gram, alpha, tuning=self.tuning), progress)

    def _solve(self, point: Point, progress: Progress) -> Solution:
        status: Status | None = None
        before = len(progress.history)
        while status is None:
            if point.work > self.work:
                status = Status.PATIENCE
                break
            tol = max(self.tol * point.unit, point.rounding())
            chunk = point.chunk(tol)
            if chunk is None:
                status = Status.CONVERGED
            else:
                status = self._descend(point, chunk, tol, progress, before)
                point.absorb(chunk)
            if status is Status.DIVERGED:
                point, status = self._from_hulls(point, progress)
            elif status is None and not point.descends():
                status = Status.PATIENCE
        return replace(point.solution(status, progress), n_iter=len(progress.history) - before)

    def _from_hulls(self, point: Point, progress: Progress) -> tuple[Point, Status]:
        """Return the hard margin from the nearest points of the hulls, where α grew without end.

        Their squared half distance uᵀQu is 0 of inseparable classes; of others α = u/uᵀQu. The
        steps reported meanwhile are those of u.
        """
        problem, found = point.problem, hulls(point.problem)
        if found is None:
            return point, Status.DIVERGED
        closest, constraints = found
        to_rounding = replace(self, tol=16.0 * EPSILON * max(point.sigma, 1.0))
        nearest = to_rounding._solve(
            Point(closest, self.gram, None, constraints, self.tuning), progress
        )
        assert nearest.alpha is not None
        u = convex(point.A, nearest.alpha)
        square = float(u @ dual_gradient(closest, point.gram, u))
        if abs(square) <= self.tuning.flat_curvature * float(u @ point.sizes) ** 2:
            point.proof = u
            return point, Status.INSEPARABLE
        if square < 0.0:
            return point, Status.DIVERGED
        ended = nearest.status is not Status.CONVERGED
        restarted = Point(problem, self.gram, u / square, tuning=self.tuning)
        return restarted, nearest.status if ended else Status.PATIENCE

    def _descend(
        self, point: Point, chunk: Chunk, tol: float, progress: Progress, before: int
    ) -> Status | None:
        """Take steps until the chunk is solved (None) or one of the other ends is reached."""
        show = partial(point.snapshot, chunk)
        point.work += self.tuning.work_per_kernel_value * chunk.rows.size**2
        while point.work <= self.work:
            status = chunk.step(tol)
            point.work += self.tuning.work_per_step + chunk.rows.size * chunk.free.size
            if status is Status.CONVERGED:
                return None
            errors, primal, dual = point.look(chunk)
            if progress.iteration(
                chunk.objective, errors, chunk.violation, show, primal=primal, dual=dual
            ):
                return Status.STOPPED
            status = status or self.limits.reached(len(progress.history) - before, progress)
            if status is not None:
                return status
        return Status.PATIENCE


def hulls(problem: DualProblem) -> tuple[DualProblem, Constraints] | None:
    """Return the problem of the nearest points in the hulls of the samples without slack.

        min ½uᵀQu   subject to   u ≥ 0,  Σu = 1,  yᵀu = 0

    is the ν-machine's with ν = 1, and bounded where the hard margin's dual is not. Without a bias
    only Σu = 1 is left, whatever the signs. None where some class has no such samples, and for
    machines other than classifiers of margin 1.
    """
    hard, signs = np.isinf(problem.upper) & (problem.ridge == 0.0), problem.signs
    if not problem.has_unit_margin or len(set(signs[hard])) < (2 if problem.groups else 1):
        return None
    nearest = replace(problem, upper=np.where(hard, 1.0, 0.0), p=np.zeros(signs.size))
    if not problem.groups:
        A, a = np.ones((1, signs.size)), np.ones(1)
        return nearest, Constraints(A, a, nearest.lower, nearest.upper)
    classes = (np.flatnonzero(signs > 0), np.flatnonzero(signs < 0))
    nearest = replace(nearest, groups=classes, sums=(0.5, -0.5))
    return nearest, Constraints.of(nearest)
