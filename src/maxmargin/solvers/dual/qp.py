"""The dual as a standard quadratic program, answered by a general interior-point library.

    min ½xᵀPx + qᵀx   subject to   Gx ≤ h,  Ax = b

For a support vector machine x = α, P = yyᵀ∘K + D, q = −p, A = yᵀ (one row), b = 0, and G, h hold
α ≤ u, −α ≤ 0 and for the ν-machine −1ᵀα ≤ −ν. P has n² numbers, so that this is a solver for some
thousand samples, and what the others are compared with.
Reference: Vanderbei, *Linear Programming* (2020), chapter 24; Schwan et al., PIQP, *CDC* (2023);
Goulart, Chen, Clarabel (2024).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ...arrays import Floats
from ...problems import DualProblem
from ...progress import Limits, Progress
from ...runtime.memory import free_memory
from ...solution import Solution, Status
from .active_set import (
    ActiveSet,
    Float64Gram,
    GramMatrix,
    dual_gradient,
    multipliers,
)
from .feasibility import Constraints
from .optimality import primal_value, violations
from .qp_libraries import Answer, Program, TimeUpError

# Matrices of n × n numbers held at a time: K, P, the library's copy and its factors.
MATRICES = 5
MAX_ITER = 60
# Variables up to which a library is asked in this process: about a tenth of a second. Seconds that
# it is given at least.
HERE, SHORTEST = 800, 1e-3
# Residuals and gap, relative to what they are the difference of, of a program that is solved.
ACCURACY = 1e-8
# What a normalised direction may leave of Pd = 0, Gd ≤ 0, Ad = 0 to be one without end.
RAY = 1e-6
# Distance of α from a bound, relative to its size, that may be the interior point's.
SNAP = 1e-5

Library = Literal["auto", "piqp", "clarabel"]


class QPStatus(StrEnum):
    """How a quadratic program ended."""

    SOLVED = "solved"
    UNBOUNDED = "unbounded"
    INFEASIBLE = "infeasible"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INACCURATE = "not solved to the tolerance"


@dataclass(frozen=True)
class QP:
    """min ½xᵀPx + qᵀx subject to Gx ≤ h, Ax = b.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric, positive semidefinite.
    q : ndarray of shape (n,)
    G : array or sparse matrix of shape (m, n)
    h : ndarray of shape (m,)
        ∞ is no constraint.
    A : array or sparse matrix of shape (k, n)
    b : ndarray of shape (k,)
    """

    P: Floats
    q: Floats
    G: Any
    h: Floats
    A: Any
    b: Floats

    def objective(self, x: Floats) -> float:
        """Return ½xᵀPx + qᵀx."""
        return float(0.5 * (x @ self.P @ x) + self.q @ x)


@dataclass(frozen=True)
class QPSolution:
    """x with the multipliers of its constraints, and how well they fit.

    Parameters
    ----------
    x : ndarray of shape (n,)
        When the program is unbounded a direction instead, of Σ|x_i| = 1, along which it falls.
    equality : ndarray of shape (k,)
        Multipliers of Ax = b, with Px + q + Gᵀz + Aᵀy = 0.
    inequality : ndarray of shape (m,)
        Multipliers z ≥ 0 of Gx ≤ h.
    status : QPStatus
    objective : float
        ½xᵀPx + qᵀx.
    primal_residual, dual_residual, gap : float
        max(Gx − h, |Ax − b|), ‖Px + q + Gᵀz + Aᵀy‖∞ and |xᵀPx + qᵀx + hᵀz + bᵀy|, recomputed from
        the program.
    n_iter : int
    seconds : float
    solver : str
        The library asked.
    """

    x: Floats
    equality: Floats
    inequality: Floats
    status: QPStatus
    objective: float
    primal_residual: float
    dual_residual: float
    gap: float
    n_iter: int
    seconds: float
    solver: str


def margin_qp(problem: DualProblem, K: Floats, *, dense: bool = True) -> QP:
    """Return the dual of a support vector machine as the textbook's matrices.

    ``K`` is the Gram matrix of the samples; G is dense or CSR.
    """
    y, n = problem.signs, problem.n_variables
    P = K * y * y[:, np.newaxis]
    P[np.diag_indices(n)] += problem.ridge
    bounded = np.flatnonzero(np.isfinite(problem.upper))
    identity = sparse.identity(n, format="csr")
    rows, right = [identity[bounded], -identity], [problem.upper[bounded], -problem.lower]
    G, constraints = sparse.vstack(rows, format="csr"), Constraints.of(problem)
    G = G.toarray() if dense else G
    return QP(P, problem.p.copy(), G, np.concatenate(right), constraints.A, constraints.a)


def solve(
    qp: QP,
    solver: Library = "auto",
    *,
    tol: float = 1e-9,
    limits: Limits | None = None,
) -> QPSolution:
    """Solve a convex quadratic program with PIQP or Clarabel.

    Parameters
    ----------
    qp : QP
    solver : {"auto", "piqp", "clarabel"}, default="auto"
        PIQP, which is the faster on dense P, where it is installed; Clarabel where it is not.
    tol : float, default=1e-9
        Residuals and duality gap, absolute and relative.
    limits : Limits, optional
        Iterations (60 by default) and seconds. A program of more than 800 variables is solved in a
        process of its own, which is left at the end of the time, without an x, and at Ctrl-C.

    Returns
    -------
    QPSolution

    Examples
    --------
    >>> qp = QP(np.eye(2), np.zeros(2), np.empty((0, 2)), np.empty(0), np.ones((1, 2)), np.ones(1))
    >>> print(solve(qp).x.round(6))  # the point of x₁ + x₂ = 1 nearest to 0
    [0.5 0.5]
    """
    _check(qp)
    limits = limits or Limits()
    name = _choose(solver)
    started = time.perf_counter()
    answer = _ask(qp, name, tol, limits)
    status, x = QPStatus(answer.status), answer.x
    residuals = _residuals(qp, x, answer.y, answer.z)
    if _optimal(qp, x, residuals):
        status = QPStatus.SOLVED
    elif (ray := _ray(qp, x)) is not None:
        status, x = QPStatus.UNBOUNDED, ray
    elif _refuted(qp, answer.y, answer.z):
        status = QPStatus.INFEASIBLE
    elif status is QPStatus.SOLVED:
        status = QPStatus.INACCURATE
    return QPSolution(
        x, answer.y, answer.z, status, qp.objective(x), *residuals,
        answer.n_iter, time.perf_counter() - started, name,
    )  # fmt: skip


@dataclass(frozen=True)
class QuadraticProgram:
    """The dual by a general quadratic-programming library.

    It reports no steps: the callback is called once, at the end. A start is of no use to an
    interior point, and is not looked at. α within the library's accuracy of a bound is put onto
    it, told by its multiplier being the larger of the two; b is the multiplier of yᵀα = 0.
    ``INSEPARABLE`` when the dual is unbounded, with multipliers that prove it.

    Parameters
    ----------
    gram : GramMatrix
        The engine of the rows ``problem.index``.
    tol : float, default=1e-12
        Residuals and gap that the library is asked for. ``CONVERGED`` are those of 1e-8; but an
        α that is 0 with a multiplier of 0 is told from a free one by the square root only.
    limits : Limits, optional
        The library's iterations, and seconds.
    solver : {"auto", "piqp", "clarabel"}, default="auto"
        As of `solve`.

    Examples
    --------
    >>> from maxmargin.datasets import load_xor
    >>> from maxmargin.engines.cpu.gram import Gram
    >>> from maxmargin.kernels import Polynomial
    >>> X, y = load_xor(return_X_y=True)
    >>> kernel = Polynomial(2, coef0=1.0)
    >>> problem = DualProblem.hard(kernel, X, y.astype(float))
    >>> solution = QuadraticProgram(Gram(kernel, X)).solve(problem, None, Progress())
    >>> print(solution.alpha.round(6))
    [0.125 0.125 0.125 0.125]
    """

    gram: GramMatrix
    tol: float = 1e-12
    limits: Limits = field(default_factory=Limits)
    solver: Library = "auto"

    def solve(self, problem: DualProblem, alpha: Floats | None, progress: Progress) -> Solution:
        """Return α and b."""
        n = problem.n_variables
        _refuse_large(n)
        gram = Float64Gram(problem, self.gram)
        qp = margin_qp(problem, gram.block(np.arange(n)), dense=False)
        if _left(self.limits, progress) == 0.0:
            nothing = np.zeros(n), np.zeros(1)
            return _publish(problem, gram, *nothing, Status.TIME_LIMIT, None, progress)
        size, unit = _units(problem, qp)
        limits = replace(self.limits, seconds=_left(self.limits, progress))
        answer = solve(_scaled(qp, size, unit), self.solver, tol=self.tol, limits=limits)
        if answer.status is QPStatus.INFEASIBLE and not _is_feasible(problem):
            raise ValueError(
                f"no α has Σα = {problem.total:g} within its bounds: lower the total, or nu."
            )
        hard = bool(np.isinf(problem.upper[problem.ridge == 0.0]).any())
        if hard and answer.status not in (QPStatus.SOLVED, QPStatus.TIME_LIMIT):
            # A library may only fail to find the end: the exact method has the proof.
            limits = replace(self.limits, seconds=_left(self.limits, progress))
            exact = ActiveSet(self.gram, limits=limits).solve(problem, None, Progress())
            if exact.status is Status.INSEPARABLE:
                nothing = np.zeros(n), np.zeros(1)
                return _publish(problem, gram, *nothing, exact.status, exact.multipliers, progress)
        b = np.array([unit * answer.equality.mean() if problem.groups else 0.0])
        alpha = np.zeros(n)
        status = STATUS[answer.status]
        if answer.status is not QPStatus.UNBOUNDED:
            alpha = Constraints.of(problem).snapped(size * _at_bounds(answer, problem.upper / size))
        elif not hard:
            status = Status.PATIENCE  # D is small beside K, but it is there
        return _publish(problem, gram, alpha, b, status, None, progress)


def _is_feasible(problem: DualProblem) -> bool:
    """Whether some α within its bounds has the sum of each group."""
    constraints = Constraints.of(problem)
    alpha = constraints.nearest(None)
    off = np.abs(constraints.A @ alpha - constraints.a)
    return bool((off <= 1e-12 * np.abs(constraints.a)).all())


def _left(limits: Limits, progress: Progress) -> float | None:
    """Return the seconds left."""
    return None if limits.seconds is None else max(0.0, limits.seconds - progress.seconds)


STATUS = {
    QPStatus.SOLVED: Status.CONVERGED,
    QPStatus.UNBOUNDED: Status.DIVERGED,
    QPStatus.ITERATION_LIMIT: Status.ITERATION_LIMIT,
    QPStatus.TIME_LIMIT: Status.TIME_LIMIT,
    QPStatus.INACCURATE: Status.PATIENCE,
    QPStatus.INFEASIBLE: Status.PATIENCE,  # of a program that is feasible: rounding
}


def _units(problem: DualProblem, qp: QP) -> tuple[float, float]:
    """Return what α and y g(x) are about: a library's absolute tolerances want both to be 1."""
    kernel = float(np.abs(qp.P.diagonal()).max()) or 1.0
    finite = problem.upper[np.isfinite(problem.upper) & (problem.upper > 0)]
    size = float(np.median(finite)) if finite.size else 1.0 / kernel
    return size, 1.0 if problem.p.any() else problem.total * kernel


def _scaled(qp: QP, size: float, unit: float) -> QP:
    """Return the program of x/size, its gradient divided by unit."""
    return QP(qp.P * (size / unit), qp.q / unit, qp.G, qp.h / size, qp.A, qp.b / size)


def _at_bounds(answer: QPSolution, upper: Floats) -> Floats:
    """Return x with those entries on a bound that are nearer to it than their multiplier is to 0.

    On the central path their product is the same small number for all: one of the two is 0.
    """
    x, bounded = np.clip(answer.x, 0.0, upper), np.flatnonzero(np.isfinite(upper))
    above = answer.inequality[: bounded.size]
    below = answer.inequality[bounded.size : bounded.size + x.size]
    scale = np.where(np.isfinite(upper), upper, x.max())
    room = np.full(x.size, np.inf)
    room[bounded] = (upper - x)[bounded]
    x[(x < below * scale) & (x < SNAP * scale)] = 0.0
    rows = bounded[(room < SNAP * scale)[bounded] & (room[bounded] < above * scale[bounded])]
    x[rows] = upper[rows]
    return x


def _publish(
    problem: DualProblem,
    gram: Float64Gram,
    alpha: Floats,
    b: Floats,
    status: Status,
    proof: Floats | None,
    progress: Progress,
) -> Solution:
    """Return α and b, after the one call of the callbacks."""
    constraints = Constraints.of(problem)
    gradient = dual_gradient(problem, gram, alpha)
    found = multipliers(constraints, alpha, gradient, constraints.inside(alpha))
    plain = gradient - problem.p - problem.ridge * alpha  # y(g(x) − b)
    margins = plain + problem.signs * b[0]
    violation = float(violations(constraints, alpha, gradient + found @ constraints.A).max())
    objective = 0.5 * float(alpha @ gradient + problem.p @ alpha)
    show = partial(Solution, np.empty((0, 0)), b.copy(), Status.STOPPED, alpha=alpha.copy())
    primal = primal_value(problem, float(alpha @ plain), problem.signs * plain, float(b[0]))
    errors = int((margins <= 0).sum())
    if progress.iteration(objective, errors, violation, show, primal=primal, dual=-objective):
        status = Status.STOPPED
    trace = progress.trace()
    return Solution(
        np.empty((0, 0)), b, status, len(trace), seconds=progress.seconds, alpha=alpha,
        multipliers=proof, scores=problem.signs * plain, trace=trace,
    )  # fmt: skip


def _refuse_large(n: int) -> None:
    need, free = MATRICES * 8 * n**2, free_memory()
    if need > free:
        raise ValueError(
            f"a quadratic program of {n} samples takes about {need / 2**30:.1f} GiB for matrices "
            f'of {n} × {n} numbers, {free / 2**30:.1f} GiB are free: use solver="decomposition".'
        )


def _check(qp: QP) -> None:
    """Refuse matrices that do not fit each other, or hold what is no number."""
    n = len(qp.q)
    shapes = {"P": (n, n), "G": (len(qp.h), n), "A": (len(qp.b), n)}
    for name, expected in shapes.items():
        if np.shape(getattr(qp, name)) != expected:
            raise ValueError(
                f"{name} has shape {np.shape(getattr(qp, name))} for {n} variables: "
                f"pass {expected}."
            )
    for name in ("P", "q", "G", "A", "b"):
        value = getattr(qp, name)
        if not np.isfinite(value.data if sparse.issparse(value) else value).all():
            raise ValueError(f"{name} holds NaN or ∞: pass finite numbers.")
    if np.isnan(qp.h).any() or (qp.h == -np.inf).any():
        raise ValueError("h holds NaN or −∞: pass numbers, or ∞ for no constraint.")
    asymmetry = float(np.abs(qp.P - qp.P.T).max(initial=0.0))
    if asymmetry > 1e-8 * float(np.abs(qp.P).max(initial=0.0)):
        raise ValueError(f"P is not symmetric, by up to {asymmetry:.3g}: pass (P + P.T)/2.")


def _ask(qp: QP, library: str, tol: float, limits: Limits) -> Answer:
    """Return the library's answer; x = 0 where the time was up before there was one."""
    seconds = np.inf if limits.seconds is None else float(limits.seconds)
    max_iter = MAX_ITER if limits.iterations is None else limits.iterations
    program = Program(
        qp.P, qp.q, qp.G, qp.h, qp.A, qp.b, library, tol, max_iter, max(seconds, SHORTEST)
    )
    try:
        return program.answer_elsewhere() if len(qp.q) > HERE else program.answer()
    except TimeUpError:
        x, y, z = (np.zeros(len(part)) for part in (qp.q, qp.b, qp.h))
        return Answer(x, y, z, QPStatus.TIME_LIMIT.value, 0)


def _choose(solver: Library) -> str:
    """Return the library to ask; raise where it is not installed."""
    preferred = ("piqp", "clarabel")
    if solver not in ("auto", *preferred):
        raise ValueError(f"solver={solver!r} is none: pass 'auto', 'piqp' or 'clarabel'.")
    wanted = preferred if solver == "auto" else (solver,)
    for name in wanted:
        if find_spec(name) is not None:
            return name
    raise ImportError(
        f'a general quadratic program needs {" or ".join(wanted)}: pip install "maxmargin[qp]", '
        'or in a clone of the repository pip install ".[qp]"'
    )


def _optimal(qp: QP, x: Floats, residuals: tuple[float, float, float]) -> bool:
    """Whether residuals and gap are small, each relative to what it is the difference of."""
    primal, dual, gap = residuals
    sizes = (
        np.abs(qp.h[np.isfinite(qp.h)]).max(initial=1.0),
        np.abs(qp.P @ x).max(initial=1.0),
        max(abs(qp.objective(x)), 1.0),
    )
    return all(r <= ACCURACY * size for r, size in zip((primal, dual, gap), sizes, strict=True))


def _ray(qp: QP, x: Floats) -> Floats | None:
    """Return x/Σ|x_i| if the program falls along it for ever: Pd = 0, qᵀd < 0, Gd ≤ 0, Ad = 0."""
    total = float(np.abs(x).sum())
    if not np.isfinite(total) or total == 0.0:
        return None
    d = x / total
    bounded = np.isfinite(qp.h)
    flat = np.abs(qp.P @ d).max() <= RAY * max(float(np.abs(qp.P).max()), 1e-300)
    inside = (qp.G @ d)[bounded].max(initial=0.0) <= RAY
    along = np.abs(qp.A @ d).max(initial=0.0) <= RAY
    return d if flat and inside and along and qp.q @ d < -RAY * np.abs(qp.q).max() else None


def _refuted(qp: QP, y: Floats, z: Floats) -> bool:
    """Whether the multipliers show that nothing is feasible: Gᵀz + Aᵀy = 0, hᵀz + bᵀy < 0."""
    total = float(np.abs(y).sum() + z.sum())
    if not np.isfinite(total) or total == 0.0 or z.min(initial=0.0) < 0.0:
        return False
    y, z, bounded = y / total, z / total, np.isfinite(qp.h)
    right = float(qp.h[bounded] @ z[bounded] + qp.b @ y)
    return bool(
        np.abs(qp.G.T @ z + qp.A.T @ y).max() <= RAY
        and right < -RAY * np.abs(qp.h[bounded]).max(initial=1.0)
    )


def _residuals(qp: QP, x: Floats, y: Floats, z: Floats) -> tuple[float, float, float]:
    bounded = np.isfinite(qp.h)
    excess = (qp.G @ x)[bounded] - qp.h[bounded]
    primal = max(float(excess.max(initial=0.0)), float(np.abs(qp.A @ x - qp.b).max(initial=0.0)))
    Px = qp.P @ x
    dual = float(np.abs(Px + qp.q + qp.G.T @ z + qp.A.T @ y).max())
    gap = abs(float(x @ Px + qp.q @ x + qp.h[bounded] @ z[bounded] + qp.b @ y))
    return primal, dual, gap
