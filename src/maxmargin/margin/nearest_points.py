"""The hard margin as the nearest points of two convex hulls (Bennett, Bredensteiner, 2000).

    minimise ‖Σ_{y=+1} u_i x_i − Σ_{y=−1} u_i x_i‖   with u ≥ 0, Σ_{y=+1} u_i = Σ_{y=−1} u_i = 1

The plane of maximum margin bisects the segment between them, half of whose length is the margin.
Solved exactly, in finitely many steps, by Wolfe's method for the point of least norm in a polytope
(*Mathematical Programming* 11, 1976), here that of the differences x₊ − x₋; it asks the data only
for the most extreme sample of each class in a direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from ..problem import SeparationProblem
from ..samples import Floats, Samples, linear_scores
from ..solution import Progress, Solution, Status


@dataclass
class _Corral:
    """Differences x₊ − x₋ in general position, and the convex weights of the current point."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    weights: Floats = field(default_factory=lambda: np.ones(1))

    def point(self) -> Floats:
        return self.weights @ np.array(self.points)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        self.pairs = [pair for pair, kept in zip(self.pairs, chosen, strict=True) if kept]
        self.points = [point for point, kept in zip(self.points, chosen, strict=True) if kept]
        self.weights = self.weights[chosen] / self.weights[chosen].sum()


@dataclass(frozen=True)
class NearestPoints:
    """Wolfe's method on two separable classes.

    Ends when the margin of the plane is within ``tol`` (relative) of the half distance between the
    points, which no margin exceeds. The solution is the support vector machine of hard margin:
    min y g(x) = 1 and w = Σ α_i y_i x_i.
    """

    tol: float = 1e-10
    max_iter: int = 10_000

    def solve(self, problem: SeparationProblem, progress: Progress) -> Solution:
        """Return the plane of maximum margin and its α."""
        Z = problem.Z
        positive, negative = (np.flatnonzero(Z.labels == sign) for sign in (1.0, -1.0))
        corral = _Corral()
        point, gap, best = _difference(Z, positive[0], negative[0]), np.inf, np.inf
        status = Status.ITERATION_LIMIT
        for _ in range(self.max_iter):
            scores = linear_scores(Z.X, point[np.newaxis], Z.index)[:, 0]
            pair = positive[scores[positive].argmin()], negative[scores[negative].argmax()]
            if corral.points:
                width = float(scores[pair[0]] - scores[pair[1]])
                gap = 1.0 - width / float(point @ point)
                show = partial(_solution, Z, corral)
                stop = progress.iteration(0.5 * float(np.linalg.norm(point)), 0, gap, show)
                if gap <= self.tol or stop:
                    status = Status.CONVERGED if gap <= self.tol else Status.STOPPED
                    break
            if pair in corral.pairs or (gap >= best and len(corral.points) > 2 * point.size):
                break  # rounding has the last word
            best = min(best, gap)
            _add(corral, pair, _difference(Z, *pair))
            point = corral.point()
        return _solution(Z, corral, status, progress)


def _difference(Z: Samples, i: int, j: int) -> Floats:
    rows = Z.augmented(np.array([i, j]))[:, :-1]
    return rows[0] - rows[1]


def _add(corral: _Corral, pair: tuple[int, int], point: Floats) -> None:
    """Enter a point, and move to that of least norm in the hull of the corral, shedding others."""
    corral.pairs.append(pair)
    corral.points.append(point)
    corral.weights = np.append(corral.weights, 0.0) if len(corral.points) > 1 else np.ones(1)
    while True:
        target = _affine_minimiser(np.array(corral.points))
        if (target > 1e-14).all():
            corral.weights = target
            return
        falling = target <= 1e-14
        drop = corral.weights[falling] - target[falling]
        reach = np.min(corral.weights[falling] / np.where(drop > 0, drop, np.inf), initial=1.0)
        corral.weights = reach * target + (1.0 - reach) * corral.weights
        gone = corral.weights <= 1e-14
        if not gone.any():
            gone = falling & (corral.weights == corral.weights[falling].min())
        corral.keep(~gone)


def _affine_minimiser(points: Floats) -> Floats:
    """Weights (of any sign, sum 1) of the point of least norm in the affine hull."""
    if len(points) == 1:
        return np.ones(1)
    # Least squares by QR: the Gram matrix of the edges would square their condition.
    Q, R = qr((points[1:] - points[0]).T, mode="economic", check_finite=False)
    if np.abs(R.diagonal()).min() <= 1e-14 * np.abs(R.diagonal()).max():
        inner = np.linalg.lstsq((points[1:] - points[0]).T, -points[0], rcond=None)[0]
    else:
        inner = solve_triangular(R, -(Q.T @ points[0]), check_finite=False)
    return np.concatenate([[1.0 - inner.sum()], inner])


def _solution(
    Z: Samples,
    corral: _Corral,
    status: Status = Status.STOPPED,
    progress: Progress | None = None,
) -> Solution:
    point = corral.point()
    u = np.zeros(Z.n_samples)
    for (i, j), weight in zip(corral.pairs, corral.weights, strict=True):
        u[i] += weight
        u[j] += weight
    scores = linear_scores(Z.X, point[np.newaxis], Z.index)[:, 0]
    low, high = scores[Z.labels > 0].min(), scores[Z.labels < 0].max()
    scale = 2.0 / (low - high)  # so that the nearest samples have y g(x) = 1
    trace = progress.trace() if progress else None
    return Solution(
        w=scale * point[np.newaxis],
        b=np.array([-0.5 * scale * (low + high)]),
        status=status,
        n_iter=len(trace) if trace else 0,
        seconds=progress.seconds if progress else 0.0,
        alpha=scale * u,
        trace=trace,
    )
