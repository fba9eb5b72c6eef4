"""The solver of the dual by a general quadratic-programming library."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy import sparse

from ....arrays import Floats
from ....engines.base import HostGram
from ....problems import DualProblem
from ....progress import Limits, Progress
from ....runtime.memory import free_memory
from ....solution import Solution, Status
from ..active_set import ActiveSet
from ..feasibility import Constraints
from ..optimality import dual_gradient, multipliers, primal_value, violations
from .program import QP, Library, QPSolution, QPStatus, solve

# Matrices of n × n numbers held at a time: K, P, the library's copy and its factors.
HELD_MATRICES = 5
# Distance of α from a bound, relative to its size, that may be the interior point's.
BOUND_SHARE = 1e-5


def dual_program(problem: DualProblem, K: Floats, *, dense: bool = True) -> QP:
    """Return the dual of a kernel machine as the textbook's matrices.

    ``K`` is the Gram matrix of the samples; G is dense or CSR.
    """
    signs, n = problem.signs, problem.n_variables
    P = K * signs * signs[:, np.newaxis]
    P[np.diag_indices(n)] += problem.ridge
    bounded = np.flatnonzero(np.isfinite(problem.upper))
    identity = sparse.identity(n, format="csr")
    G = sparse.vstack([identity[bounded], -identity], format="csr")
    h = np.concatenate([problem.upper[bounded], 0.0 - problem.lower])
    constraints = Constraints.of(problem)
    return QP(P, problem.p.copy(), G.toarray() if dense else G, h, constraints.A, constraints.a)


@dataclass(frozen=True)
class QuadraticProgram:
    """The dual by a general quadratic-programming library.

    It reports no steps: the callback is called once, at the end. A start is of no use to an
    interior point, and is ignored. α within the library's accuracy of a bound is put onto
    it, where the multiplier of the bound is the larger of the two; b is the multiplier of yᵀα = 0.
    ``INSEPARABLE`` when the dual is unbounded, with multipliers that prove it.

    Parameters
    ----------
    gram : HostGram
        K of the rows ``problem.index``, in float64.
    tol : float, default=1e-12
        Residuals and gap that the library is to reach. ``CONVERGED`` are those of 1e-8; but an
        α of 0 whose multiplier is 0 differs from a free one by the square root of that only.
    limits : Limits, optional
        The library's iterations, and seconds.
    solver : {"auto", "piqp", "clarabel"}, default="auto"
        As of `solve`.

    Examples
    --------
    >>> from maxmargin.datasets import load_xor
    >>> from maxmargin.engines.registry import engine_for
    >>> from maxmargin.kernels import Polynomial
    >>> X, y = load_xor(return_X_y=True)
    >>> kernel = Polynomial(2, coef0=1.0)
    >>> problem = DualProblem.hard(kernel, X, y.astype(float))
    >>> solution = QuadraticProgram(engine_for(X).gram(kernel)).solve(problem, None, Progress())
    >>> print(solution.alpha.round(6))
    [0.125 0.125 0.125 0.125]
    """

    gram: HostGram
    tol: float = 1e-12
    limits: Limits = field(default_factory=Limits)
    solver: Library = "auto"

    def solve(self, problem: DualProblem, alpha: Floats | None, progress: Progress) -> Solution:
        """Return α and b."""
        n = problem.n_variables
        _refuse_large(n)
        gram, constraints = self.gram, Constraints.of(problem)
        qp = dual_program(problem, gram.block(np.arange(n)), dense=False)
        if _left(self.limits, progress) == 0.0:
            nothing = np.zeros(n), np.zeros(1)
            return _publish(problem, gram, *nothing, Status.TIME_LIMIT, None, progress)
        size, unit = _units(problem, qp)
        limits = replace(self.limits, seconds=_left(self.limits, progress))
        answer = solve(_scaled(qp, size, unit), self.solver, tol=self.tol, limits=limits)
        if answer.status is QPStatus.INFEASIBLE and not _is_feasible(constraints):
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
            alpha = constraints.snapped(_at_bounds(answer, constraints, size))
        elif not hard:
            status = Status.PATIENCE  # D is small beside K, but it is there
        return _publish(problem, gram, alpha, b, status, None, progress)


def _is_feasible(constraints: Constraints) -> bool:
    """Whether some α within its bounds has the sum of each group."""
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
    """Return the sizes of α and y g(x): absolute tolerances of a library assume about 1."""
    kernel = float(np.abs(qp.P.diagonal()).max()) or 1.0
    rooms = problem.upper - problem.lower
    finite = rooms[np.isfinite(rooms) & (rooms > 0)]
    unit = problem.target_scale or problem.total * kernel or 1.0
    return float(np.median(finite)) if finite.size else unit / kernel, unit


def _scaled(qp: QP, size: float, unit: float) -> QP:
    """Return the program of x/size, its gradient divided by unit."""
    return QP(qp.P * (size / unit), qp.q / unit, qp.G, qp.h / size, qp.A, qp.b / size)


def _at_bounds(answer: QPSolution, constraints: Constraints, size: float) -> Floats:
    """Return α = size·x, on a bound where it is nearer to it than its multiplier is to 0.

    On the central path their product is the same small number for all: one of the two is 0.
    """
    lower, upper = constraints.lower / size, constraints.upper / size
    x, bounded = np.clip(answer.x, lower, upper), np.flatnonzero(np.isfinite(upper))
    above = np.zeros(x.size)
    above[bounded] = answer.inequality[: bounded.size]
    below = answer.inequality[bounded.size : bounded.size + x.size]
    scale = np.where(np.isfinite(upper), upper - lower, (x - lower).max())
    down, up = x - lower, upper - x
    x = np.where((down < below * scale) & (down < BOUND_SHARE * scale), lower, x)
    x = np.where((up < above * scale) & (up < BOUND_SHARE * scale), upper, x)
    return size * x


def _publish(
    problem: DualProblem,
    gram: HostGram,
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
    need, free = HELD_MATRICES * 8 * n**2, free_memory()
    if need > free:
        raise ValueError(
            f"a quadratic program of {n} samples takes about {need / 2**30:.1f} GiB for matrices "
            f'of {n} × {n} numbers, {free / 2**30:.1f} GiB are free: use solver="decomposition".'
        )
