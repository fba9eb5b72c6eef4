"""Newton's method for small dense machines of a squared loss.

Given: rows a_i = (x_i, 1) of one array, D > 0, u = ∞. Wanted: v = (w, b) and β.

    min ½vᵀMv + Σ f_i²/(2D_i),   M = diag(1, …, 1, κ),

f being what is left of r_i = y_i − a_i·v on its side of a label, or beyond ±ε of a target, is
piecewise quadratic, with the gradient Mv − Σ β_i a_i, β_i = f_i/D_i, and the Hessian
M + Σ a_i a_iᵀ/D_i over the rows with f_i ≠ 0. Some five to twenty of Newton's steps with a line
search find the rows of the optimum; β then proves it. κ is 1 where the bias is penalised, else 0.

It is the same method as `SemismoothNewton`, without rows held and without an engine: a step takes
three compiled sums over the rows.

Reference: Mangasarian, "A finite Newton method for classification", *Optim. Methods Softw.* 17
(2002).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...arrays import Floats
from ...problems import PrimalProblem
from ...problems.best_bias import balanced
from ...progress import Limits, Progress
from ...solution import Solution, Status
from ..line_search import line_search
from .compiled_newton import measure, slope_of_losses, solve_newton
from .ledger import Plane, bias_without_plane, least_size

TINY = float(np.finfo(float).tiny)


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
    """The solver of squared losses for small dense X.

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
        """Return whether X is a small array, and the loss a square."""
        X, ridge = problem.X, problem.ridge
        if not isinstance(X, np.ndarray) or X.size > self.tuning.most_numbers:
            return False
        is_squared = bool(np.isinf(problem.upper).all() and (ridge > 0.0).all())
        return is_squared and X.shape[1] <= self.tuning.most_columns

    def solve(
        self, problem: PrimalProblem, start: Plane | None, progress: Progress
    ) -> Solution | None:
        """Return the plane and its α; None where rounding leaves no descent."""
        machine = _Machine(problem)
        point = machine.at(machine.start(start))
        aim = self.tuning.aim * self.tol
        status: Status | None = None
        n_iter = 0
        while status is None and not point.gap <= aim:
            moved = machine.step(point, self.tuning)
            if moved is None or n_iter >= self.tuning.most_steps:
                return None
            point, n_iter = moved, n_iter + 1
            stop = progress.iteration(
                point.primal, point.errors, point.gap,
                partial(machine.solution, point, Status.STOPPED),
                primal=point.primal, dual=point.dual,
            )  # fmt: skip
            status = Status.STOPPED if stop else self.limits.reached(n_iter, progress)
        if status is None or point.gap <= self.tol:
            status = Status.CONVERGED
        return replace(
            machine.solution(point, status),
            n_iter=n_iter,
            seconds=progress.seconds,
            trace=progress.trace(),
        )


@dataclass(frozen=True)
class _Point:
    """A plane v = (w, b) with r, f, the gradient, P, D of its β once balanced, and errors."""

    v: Floats
    r: Floats
    f: Floats
    gradient: Floats
    least: float
    primal: float
    dual: float
    errors: int

    @property
    def gap(self) -> float:
        """(P − D)/P."""
        return (self.primal - self.dual) / max(self.primal, self.least)


class _Machine:
    """A problem with its rows (x, 1), 1/D of all rows or of each, and the diagonal of M."""

    def __init__(self, problem: PrimalProblem) -> None:
        n, d = problem.X.shape
        self.problem = problem
        self.rows = np.empty((n, d + 1))
        self.rows[:, :-1], self.rows[:, -1] = problem.X, float(problem.bias != "none")
        self.targets = np.asarray(problem.y, dtype=np.float64), problem.two_sided, problem.epsilon
        self.least = least_size(problem)
        self.steepness = 1.0 / problem.ridge
        self.M = np.ones(d + 1)
        self.M[-1] = float(problem.bias == "penalised")

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
        r, f, gradient = np.empty(len(self.rows)), np.empty(len(self.rows)), np.empty(v.size)
        values = measure(
            self.rows, *self.targets, self.steepness, self.problem.bias == "free", self.M, v,
            r, f, gradient,
        )  # fmt: skip
        return _Point(v, r, f, gradient, self.least, *values)

    def step(self, point: _Point, tuning: Tuning) -> _Point | None:
        """Return the point after a step, None where rounding leaves no descent."""
        direction = np.empty(point.v.size)
        least = max(abs(float(point.gradient[-1])) / tuning.largest_bias_step, TINY)
        if not solve_newton(
            self.rows, self.steepness, self.M, point.f, point.gradient, least, direction
        ):
            return None
        change, first = self.rows @ direction, float(point.gradient @ direction)
        flat, bend = float((self.M * point.v) @ direction), float(self.M @ direction**2)
        t = line_search(
            lambda t: (
                flat + t * bend + slope_of_losses(point.r, *self.targets, change, self.steepness, t)
            ),
            first,
        )
        return self.at(point.v + t * direction) if t > 0.0 and np.isfinite(t) else None

    def solution(self, point: _Point, status: Status) -> Solution:
        """Return a plane with its α, for which yᵀα = 0 if the bias is free."""
        alpha = point.f * self.steepness
        if not self.problem.two_sided:
            alpha = np.abs(alpha)
        if self.problem.bias == "free":
            alpha = balanced(self.problem, alpha)
        return Solution(point.v[np.newaxis, :-1].copy(), point.v[-1:].copy(), status, alpha=alpha)
