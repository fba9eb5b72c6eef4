"""Newton's method for small dense machines of the squared hinge.

Given: rows a_i = y_i (x_i, 1) of one array, D > 0, u = ∞. Wanted: v = (w, b) and α.

    min ½vᵀMv + Σ z_i₊²/(2D_i),   z_i = 1 − a_i·v,   M = diag(1, …, 1, κ)

is piecewise quadratic, with the gradient Mv − Σ α_i a_i, α_i = z_i₊/D_i, and the Hessian
M + Σ a_i a_iᵀ/D_i over the rows with z_i > 0. Some five to twenty of Newton's steps with a line
search find the rows of the optimum; α then proves it. κ is 1 where the bias is penalised, else 0.

It is the same method as `SemismoothNewton`, without rows held and without an engine: a step takes
some ten calls of NumPy.

Reference: Mangasarian, "A finite Newton method for classification", *Optim. Methods Softw.* 17
(2002).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import lapack

from ...arrays import Floats
from ...problems import PrimalProblem
from ...problems.best_bias import balanced
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..line_search import line_search
from .ledger import Plane, bias_without_plane


@dataclass(frozen=True)
class Tuning:
    """What is small, and when steps end."""

    most_numbers: int = 1 << 18  # in X
    most_columns: int = 256
    aim: float = 0.01  # of tol, the relative gap at which steps end: the last step makes it so
    most_steps: int = 100  # after which a step at a time gets nowhere
    largest_bias_step: float = 10.0  # where nothing else bounds it


TUNING = Tuning()


@dataclass(frozen=True)
class DenseNewton:
    """The solver of the squared hinge for small dense X.

    Parameters
    ----------
    tol : float
        The relative duality gap to stop at.
    limits : Limits
        Of steps, and seconds.
    tuning : Tuning
    """

    tol: float = 1e-4
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = TUNING

    def suits(self, problem: PrimalProblem) -> bool:
        """Return whether X is a small array, and the loss the squared hinge."""
        X, ridge = problem.X, problem.ridge
        if not isinstance(X, np.ndarray) or X.size > self.tuning.most_numbers:
            return False
        is_squared = bool(np.isinf(problem.upper).all() and (ridge > 0.0).all())
        return is_squared and X.shape[1] <= self.tuning.most_columns

    def solve(
        self, problem: PrimalProblem, start: Plane | None, progress: Progress
    ) -> Solution | None:
        """Return the plane and its α; None where rounding leaves no descent."""
        machine = _Machine.of(problem)
        point = machine.at(machine.start(start))
        aim = self.tuning.aim * self.tol
        status: Status | None = None
        n_iter = 0
        while not point.gap <= aim:
            moved = machine.step(point, self.tuning)
            if moved is None or n_iter >= self.tuning.most_steps:
                return None
            n_iter += 1
            point = moved
            stop = progress.iteration(
                point.primal, machine.errors(point), point.gap, partial(_snapshot, point),
                primal=point.primal, dual=point.dual,
            )  # fmt: skip
            status = Status.STOPPED if stop else self.limits.reached(n_iter, progress)
            if status is not None:
                break
        if status is None or point.gap <= self.tol:
            status = Status.CONVERGED
        return Solution(
            w=point.v[np.newaxis, :-1].copy(), b=point.v[-1:].copy(), status=status,
            n_iter=n_iter, seconds=progress.seconds, alpha=point.alpha, trace=progress.trace(),
        )  # fmt: skip


@dataclass(frozen=True)
class _Point:
    """A plane v = (w, b) with z, the gradient and P; α with yᵀα = 0 if need be, and its D."""

    v: Floats
    z: Floats
    alpha: Floats
    gradient: Floats
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """(P − D)/P."""
        return (self.primal - self.dual) / max(self.primal, float(np.finfo(float).tiny))


def _snapshot(point: _Point) -> Solution:
    v = point.v
    return Solution(
        v[np.newaxis, :-1].copy(), v[-1:].copy(), Status.STOPPED, alpha=point.alpha.copy()
    )


@dataclass(frozen=True)
class _Machine:
    """A problem with its rows y (x, 1), 1/D and D of all rows or of each, and the diagonal of M."""

    problem: PrimalProblem
    rows: Floats
    steepness: Floats
    ridge: Floats
    M: Floats

    @classmethod
    def of(cls, problem: PrimalProblem) -> _Machine:
        n, d = problem.X.shape
        rows = np.empty((n, d + 1))
        rows[:, :-1], rows[:, -1] = problem.X, float(problem.bias != "none")
        rows *= problem.y[:, np.newaxis]
        M = np.ones(d + 1)
        M[-1] = float(problem.bias == "penalised")
        # A sample of D = ∞ does not count: its α is 0.
        ridge = np.where(np.isfinite(problem.ridge), problem.ridge, 0.0)
        return cls(problem, rows, 1.0 / problem.ridge, ridge, M)

    def start(self, plane: Plane | None) -> Floats:
        """Return the plane to begin with: the best of w = 0 unless one is given."""
        v = np.zeros(self.M.size)
        v[-1] = bias_without_plane(self.problem) if plane is None else plane.b
        if plane is not None:
            v[:-1] = plane.w
        if self.problem.bias == "none":
            v[-1] = 0.0
        return v

    def at(self, v: Floats) -> _Point:
        """Return what belongs to a plane."""
        z = 1.0 - self.rows @ v
        over = np.maximum(z, 0.0)
        alpha = over * self.steepness
        gradient = self.M * v - alpha @ self.rows
        primal = 0.5 * (float(v @ (self.M * v)) + float(alpha @ over))
        if self.problem.bias == "free":
            alpha = balanced(self.problem, alpha)
        combined = alpha @ self.rows
        square = float(combined @ (self.M * combined)) + float(alpha @ (self.ridge * alpha))
        return _Point(v, z, alpha, gradient, primal, float(alpha.sum()) - 0.5 * square)

    def step(self, point: _Point, tuning: Tuning) -> _Point | None:
        """Return the point after a step, None where rounding leaves no descent."""
        on = point.z > 0.0
        active = self.rows[on]
        steepness = self.steepness if self.steepness.size == 1 else self.steepness[on, np.newaxis]
        H = active.T @ (active * steepness)
        places = np.arange(self.M.size)
        H[places, places] += self.M
        g = point.gradient
        least = abs(float(g[-1])) / tuning.largest_bias_step
        H[-1, -1] = max(H[-1, -1], least, float(np.finfo(float).tiny))
        _, direction, failed = lapack.dposv(H, -g)
        if failed or not np.isfinite(direction).all():
            return None
        change, bend = self.rows @ direction, float(direction @ (self.M * direction))
        first = float(g @ direction)
        flat = float((self.M * point.v) @ direction)

        def slope(t: float) -> float:
            alpha = np.maximum(point.z - t * change, 0.0) * self.steepness
            return flat + t * bend - float(alpha @ change)

        t = line_search(slope, first)
        return self.at(point.v + t * direction) if t > 0.0 else None

    def errors(self, point: _Point) -> int:
        """Return how many samples are on the wrong side."""
        return int(np.count_nonzero(point.z > 1.0))
