"""The hard margin as the nearest points of two convex hulls (Bennett, Bredensteiner, 2000).

    minimise ‖Σ_{y=+1} u_i x_i − Σ_{y=−1} u_i x_i‖   with u ≥ 0, Σ_{y=+1} u_i = Σ_{y=−1} u_i = 1

The plane of maximum margin bisects the segment between them, half of whose length is the margin.
Solved exactly, in finitely many steps, by Wolfe's method for the point of least norm in a polytope
(*Mathematical Programming* 11, 1976), here that of the differences x₊ − x₋; it asks the data only
for the most extreme sample of each class in a direction. Without a bias the polytope is that of the
y_i x_i. Points are summed in twice the precision: hulls may be 1e-12 of their size apart.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from ...arrays import Floats, Integers, linear_scores
from ...certificates.compensated import EPSILON, compensated_dot
from ...data.normalised_samples import Samples
from ...problems import SeparationProblem
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..centring import middle_of
from ..middle_bias import middle_bias

Vertex = tuple[int, ...]


@dataclass(frozen=True)
class Tuning:
    """What Wolfe's method is tuned by."""

    # Passes of iterative refinement, each of which gains as many digits as the first solution has.
    refinements: int = 2
    # The length of the nearest point, relative to a vertex, from which float64 is precise enough.
    long_share: float = 1e-3
    # Steps that may fail to bring the point nearer: without rounding every step does.
    stalled_steps: int = 3
    # Weights that are rounding, in the working precision and in about twice of it.
    least_weight: float = 1e-14
    least_doubled_weight: float = 1e-28


TUNING = Tuning()


@dataclass
class _Corral:
    """Vertices in general position, the convex weights of the nearest point, and that point."""

    vertices: list[Vertex] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    weights: Floats = field(default_factory=lambda: np.ones(1))
    nearest: Floats = field(default_factory=lambda: np.zeros(0))

    def __copy__(self) -> _Corral:
        return _Corral(self.vertices.copy(), self.points.copy(), self.weights, self.nearest)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        self.vertices = [v for v, kept in zip(self.vertices, chosen, strict=True) if kept]
        self.points = [point for point, kept in zip(self.points, chosen, strict=True) if kept]
        self.weights = self.weights[chosen] / self.weights[chosen].sum()


@dataclass(frozen=True)
class _Polytope:
    """The differences x₊ − x₋, or the y_i x_i where there is no bias; rows scaled to at most 1."""

    Z: Samples
    rows: Any
    unit: float
    sides: tuple[Integers, ...]

    @classmethod
    def of(cls, Z: Samples) -> _Polytope:
        """Centre the rows where the bias allows it: scores then round no more than they must."""
        sides = [np.flatnonzero(Z.labels == sign) for sign in (1.0, -1.0)]
        rows = Z.X[Z.index]
        if sparse.issparse(rows):
            largest = float(np.abs(rows.data).max(initial=0.0))
        else:
            rows = rows.astype(np.float64, copy=False)  # already one of our own
            if Z.bias_step:
                rows -= middle_of(rows)
            largest = float(np.abs(rows).max(initial=0.0))
        unit = float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest else 1.0
        return cls(Z, rows / unit, unit, tuple(sides))

    def scores(self, point: Floats) -> Floats:
        """Return y_i (x_i·point) of the centred rows."""
        return self.Z.labels * linear_scores(self.rows, point[np.newaxis])[:, 0]

    def lowest(self, margins: Floats) -> Vertex:
        """Return the vertex that is lowest in the direction that these are the margins of."""
        if not self.Z.bias_step:
            return (int(margins.argmin()),)
        return tuple(int(side[margins[side].argmin()]) for side in self.sides)

    def point(self, vertex: Vertex) -> Floats:
        """Return a vertex, from the rows as they were given: their difference rounds once."""
        samples = np.array(vertex)
        signed = self.Z.labels[samples, np.newaxis] * self.Z.augmented(samples)[:, :-1]
        total: Floats = signed.sum(axis=0) / self.unit
        return total


@dataclass(frozen=True)
class NearestPoints:
    """Wolfe's method on two separable classes.

    Ends when the margin of the plane is within ``tol`` (relative) of the half distance between the
    points, which no margin exceeds, or as near as rounding allows. The solution is the support
    vector machine of hard margin: min y g(x) = 1 and w = Σ α_i y_i x_i.
    """

    tol: float = 1e-10
    max_iter: int = 10_000
    seconds: float | None = None

    def solve(self, problem: SeparationProblem, progress: Progress) -> Solution:
        """Return the plane of maximum margin and its α."""
        polytope, corral = _Polytope.of(problem.Z), _Corral()
        limits, begun = Limits(self.max_iter, self.seconds), Progress()
        vertex: Vertex = polytope.lowest(np.zeros(problem.Z.n_samples))
        _add(corral, vertex, polytope.point(vertex))
        shortest, stalled, n_iter, status = np.inf, 0, 0, None
        best: tuple[float, _Corral, Floats] = np.inf, corral, np.zeros(0)
        while status is None:
            point, n_iter = corral.nearest, n_iter + 1
            margins = polytope.scores(point)
            vertex = polytope.lowest(margins)
            length = float(np.linalg.norm(point))
            width = float(margins[list(vertex)].sum())
            gap = 1.0 - width / length**2 if length else np.inf
            show = partial(_solution, polytope, corral, margins)
            # An objective in the units of X: the margin that no plane exceeds.
            objective = length * polytope.unit / len(vertex)
            wrong = int((margins <= 0).sum())
            if progress.iteration(objective, wrong, gap, show):
                status = Status.STOPPED
            elif gap <= max(self.tol, 8.0 * EPSILON * np.sqrt(point.size) / (length or 1.0)):
                status = Status.CONVERGED
            elif not length or vertex in corral.vertices or stalled > TUNING.stalled_steps:
                status = Status.PATIENCE  # rounding allows no further descent
            else:
                status = limits.reached(n_iter, begun)
            if gap <= best[0] or min(gap, best[0]) >= 1.0:  # none that separates: the nearest yet
                best = gap, copy(corral), margins
            if status is None:
                stalled = 0 if length < shortest else stalled + 1
                shortest = min(length, shortest)
                _add(corral, vertex, polytope.point(vertex))
        return _solution(polytope, *best[1:], status, progress)


def _add(corral: _Corral, vertex: Vertex, point: Floats) -> None:
    """Enter a point, and move to that of least norm in the hull of the corral, shedding others."""
    corral.vertices.append(vertex)
    corral.points.append(point)
    corral.weights = np.append(corral.weights, 0.0) if len(corral.points) > 1 else np.ones(1)
    while True:
        target, corral.nearest, least = _affine_minimiser(np.array(corral.points))
        if (target > least).all():
            corral.weights = target
            return
        falling = target <= least
        drop = corral.weights[falling] - target[falling]
        reach = np.min(corral.weights[falling] / np.where(drop > 0, drop, np.inf), initial=1.0)
        corral.weights = reach * target + (1.0 - reach) * corral.weights
        gone = corral.weights <= least
        if not gone.any():
            gone = falling & (corral.weights == corral.weights[falling].min())
        corral.keep(~gone)


def _affine_minimiser(points: Floats) -> tuple[Floats, Floats, float]:
    """Return the point of least norm in the affine hull, after its weights, of any sign, sum 1.

    The third number is what a weight must exceed to be more than rounding.
    """
    if len(points) == 1:
        return np.ones(1), points[0], TUNING.least_weight
    # Least squares by QR: the Gram matrix of the edges would square their condition.
    edges = (points[1:] - points[0]).T
    Q, R = qr(edges, mode="economic", check_finite=False)
    sizes = np.abs(R.diagonal())
    if edges.shape[1] > edges.shape[0] or sizes.min() <= 1e-14 * sizes.max():
        inner = np.linalg.lstsq(edges, -points[0], rcond=None)[0]
        return np.append(1.0 - inner.sum(), inner), points[0] + edges @ inner, TUNING.least_weight
    parts = [solve_triangular(R, -(Q.T @ points[0]), check_finite=False)]
    nearest = points[0] + edges @ parts[0]
    if np.linalg.norm(nearest) > TUNING.long_share * np.linalg.norm(points[0]):
        return np.append(1.0 - parts[0].sum(), parts[0]), nearest, TUNING.least_weight
    for _ in range(TUNING.refinements + 1):
        # The point is small where its terms are not: it is their sum in twice the precision.
        terms = np.column_stack([points[0], *[edges] * len(parts)])
        nearest = compensated_dot(terms, np.concatenate([[1.0], *parts]))[0]
        if len(parts) > TUNING.refinements:
            break
        parts.append(solve_triangular(R, -(Q.T @ nearest), check_finite=False))
    inner = np.sum(parts[::-1], axis=0)
    first = math.fsum([1.0, *(-np.concatenate(parts)).tolist()])
    return np.append(first, inner), nearest, TUNING.least_doubled_weight


def _solution(
    polytope: _Polytope,
    corral: _Corral,
    margins: Floats,
    status: Status = Status.STOPPED,
    progress: Progress | None = None,
) -> Solution:
    """Return the plane scaled so that the nearest samples have y g(x) = 1, and its α."""
    Z, unit = polytope.Z, polytope.unit
    u = np.zeros(Z.n_samples)
    for vertex, weight in zip(corral.vertices, corral.weights, strict=True):
        u[list(vertex)] += weight
    lowest = polytope.lowest(margins)
    width = float(margins[list(lowest)].sum())
    length = float(corral.nearest @ corral.nearest)
    scale = len(lowest) / (width if width > 0 else length or 1.0)
    w = scale / unit * corral.nearest
    a = np.append(w, 0.0)
    b = float(middle_bias(Z, a)[-1]) if Z.bias_step else 0.0
    trace = progress.trace() if progress else None
    return Solution(
        w=w[np.newaxis],
        b=np.array([b]),
        status=status,
        n_iter=len(trace) if trace else 0,
        seconds=progress.seconds if progress else 0.0,
        alpha=scale / unit / unit * u,
        trace=trace,
    )
